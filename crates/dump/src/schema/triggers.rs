//! Triggers of tables and views. They are created after the rows, and so fire for none of them.

use super::{Reader, USER};
use crate::Result;
use crate::archive::{Entry, Section};

pub fn after(reader: &mut Reader) -> Result<Vec<Entry>> {
    let mut all = reader.entries(Section::After, &definitions())?;
    all.extend(reader.entries(Section::After, &states())?);
    Ok(all)
}

/// The FROM clause of queries for triggers, with the aliases `t`, `c` (the relation) and `n`.
const FROM: &str = "pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace";

/// Those of partitions come with the partitioned table's.
fn definitions() -> String {
    format!(
        "SELECT 'TRIGGER', n.nspname, c.relname, pg_get_triggerdef(t.oid) || ';'
         FROM {FROM} WHERE NOT t.tgisinternal AND t.tgparentid = 0 AND c.relpersistence <> 't' AND {USER} ORDER BY c.oid, t.oid"
    )
}

/// Whether each fires, where it is not as a new one: enabled, or as the partitioned table's. Parents come before partitions, whose
/// triggers a statement about the parent's changes, too.
fn states() -> String {
    format!(
        "SELECT 'TRIGGER', n.nspname, c.relname, format('ALTER TABLE %I.%I %s TRIGGER %I;', n.nspname, c.relname,
            CASE t.tgenabled WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' WHEN 'A' THEN 'ENABLE ALWAYS' ELSE 'ENABLE' END, t.tgname)
         FROM {FROM} LEFT JOIN pg_catalog.pg_trigger p ON p.oid = t.tgparentid
         WHERE NOT t.tgisinternal AND c.relpersistence <> 't' AND {USER} AND t.tgenabled <> coalesce(p.tgenabled, 'O')
         ORDER BY (SELECT count(*) FROM pg_catalog.pg_partition_ancestors(c.oid)), c.oid, t.oid"
    )
}
