//! Rules of tables and views. They are created after the rows, and so apply to none of them.

use super::{Reader, USER};
use crate::Result;
use crate::archive::{Entry, Section};

pub fn after(reader: &mut Reader) -> Result<Vec<Entry>> {
    let mut all = Vec::new();
    for sql in [definitions(), states(), comments()] {
        all.extend(reader.entries(Section::After, &sql)?);
    }
    Ok(all)
}

/// The FROM clause of queries for rules, with the aliases `r`, `c` (the relation) and `n`; views have their queries themselves.
const FROM: &str = "pg_catalog.pg_rewrite r JOIN pg_catalog.pg_class c ON c.oid = r.ev_class AND r.rulename <> '_RETURN'
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace";

fn definitions() -> String {
    format!(
        "SELECT 'RULE', n.nspname, c.relname, pg_get_ruledef(r.oid)
         FROM {FROM} WHERE c.relpersistence <> 't' AND {USER} ORDER BY r.oid"
    )
}

/// Whether each applies, where it is not as a new one.
fn states() -> String {
    format!(
        "SELECT 'RULE', n.nspname, c.relname, format('ALTER TABLE %I.%I %s RULE %I;', n.nspname, c.relname,
            CASE r.ev_enabled WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' ELSE 'ENABLE ALWAYS' END, r.rulename)
         FROM {FROM} WHERE r.ev_enabled <> 'O' AND c.relpersistence <> 't' AND {USER} ORDER BY r.oid"
    )
}

fn comments() -> String {
    format!(
        "SELECT 'COMMENT', n.nspname, c.relname,
            format('COMMENT ON RULE %I ON %I.%I IS %s;', r.rulename, n.nspname, c.relname, quote_literal(d.description))
         FROM {FROM} JOIN pg_catalog.pg_description d ON d.classoid = 'pg_rewrite'::regclass AND d.objoid = r.oid
         WHERE c.relpersistence <> 't' AND {USER} ORDER BY r.oid"
    )
}
