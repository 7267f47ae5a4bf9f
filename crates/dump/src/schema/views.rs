//! Views and materialized views. A view that groups by a primary key, which is made behind the rows, has empty columns until then.

use super::{Definition, Reader, USER};
use crate::Result;
use crate::archive::{Entry, Section};

/// Whether the view `c` needs a constraint.
const NEEDS_KEY: &str =
    "c.relkind = 'v' AND EXISTS (SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid
    WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_constraint'::regclass AND r.ev_class = c.oid)";

/// The query of NULLs of the types that the view's columns have.
const EMPTY_COLUMNS: &str = "(SELECT 'SELECT ' || string_agg(format('NULL::%s%s AS %I', format_type(a.atttypid, a.atttypmod),
        CASE WHEN a.attcollation <> t.typcollation THEN format(' COLLATE %I.%I', o.collnamespace::regnamespace, o.collname) ELSE '' END, a.attname),
        ', ' ORDER BY a.attnum)
    FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid LEFT JOIN pg_catalog.pg_collation o ON o.oid = a.attcollation
    WHERE a.attrelid = c.oid AND a.attnum > 0)";

/// A key that is made with its table: what needs it cannot be empty until the rows are there.
pub struct EarlyKey {
    /// The key of the table's definition.
    pub table: String,
    pub statement: String,
}

/// The keys that materialized views and functions need, of tables that are no partitions.
pub fn early_keys(reader: &mut Reader) -> Result<Vec<EarlyKey>> {
    let sql = format!(
        "SELECT 'r' || c.oid, format('ALTER TABLE ONLY %I.%I ADD CONSTRAINT %I %s;', n.nspname, c.relname, o.conname, pg_get_constraintdef(o.oid))
         FROM pg_catalog.pg_constraint o JOIN pg_catalog.pg_class c ON c.oid = o.conrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
         WHERE {USER} AND c.relkind = 'r' AND NOT c.relispartition AND c.relpersistence <> 't' AND o.contype IN ('p', 'u')
            AND EXISTS (SELECT FROM pg_catalog.pg_depend d LEFT JOIN pg_catalog.pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
                LEFT JOIN pg_catalog.pg_class v ON v.oid = r.ev_class
                WHERE d.refclassid = 'pg_constraint'::regclass AND d.refobjid = o.oid AND (d.classid = 'pg_proc'::regclass OR v.relkind = 'm'))
         ORDER BY o.oid"
    );
    let key = |row: Vec<Option<String>>| {
        let [table, statement] = <[_; 2]>::try_from(row).ok()?;
        Some(EarlyKey { table: table?, statement: statement? })
    };
    Ok(reader.rows(&sql)?.into_iter().filter_map(key).collect())
}

pub fn definitions(reader: &mut Reader) -> Result<Vec<Definition>> {
    let views = format!(
        "SELECT 'r' || c.oid, CASE c.relkind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'VIEW' END, n.nspname, c.relname,
            format(CASE c.relkind WHEN 'm' THEN 'CREATE MATERIALIZED VIEW %I.%I%s AS %s WITH NO DATA;' ELSE 'CREATE VIEW %I.%I%s AS %s;' END,
                n.nspname, c.relname, coalesce(' WITH (' || array_to_string(c.reloptions, ', ') || ')', ''),
                CASE WHEN {NEEDS_KEY} THEN {EMPTY_COLUMNS} ELSE rtrim(pg_get_viewdef(c.oid), ';') END),
            CASE WHEN c.relkind = 'm' AND c.relispopulated THEN format('REFRESH MATERIALIZED VIEW %I.%I;', n.nspname, c.relname) END
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relkind IN ('v', 'm') AND c.relpersistence <> 't' AND {USER} ORDER BY c.oid"
    );
    let mut all = Vec::new();
    for row in reader.rows(&views)? {
        let [key, kind, schema, name, sql, refresh] = <[_; 6]>::try_from(row).map_err(|_| "a view without a name".to_owned())?;
        let (Some(key), Some(kind), Some(name), Some(sql)) = (key, kind, name, sql) else { continue };
        all.push(Definition { key, entry: Entry { section: Section::Before, kind, schema, name, sql }, refresh });
    }
    Ok(all)
}

/// The views that need keys, now that these are there; materialized views over them are refreshed behind.
pub fn with_keys(reader: &mut Reader) -> Result<Vec<Entry>> {
    reader.entries(Section::After, &complete())
}

/// The other statements after the rows.
pub fn after(reader: &mut Reader) -> Result<Vec<Entry>> {
    let mut all = reader.entries(Section::After, &defaults())?;
    all.extend(reader.entries(Section::After, &indexes())?);
    Ok(all)
}

fn complete() -> String {
    format!(
        "SELECT 'VIEW', n.nspname, c.relname, format('CREATE OR REPLACE VIEW %I.%I%s AS %s;', n.nspname, c.relname,
            coalesce(' WITH (' || array_to_string(c.reloptions, ', ') || ')', ''), rtrim(pg_get_viewdef(c.oid), ';'))
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relpersistence <> 't' AND {USER} AND {NEEDS_KEY} ORDER BY c.oid"
    )
}

/// The defaults of a view's columns on INSERT.
fn defaults() -> String {
    format!(
        "SELECT 'DEFAULT', n.nspname, c.relname, format('ALTER VIEW %I.%I ALTER COLUMN %I SET DEFAULT %s;', n.nspname, c.relname, a.attname,
            pg_get_expr(f.adbin, f.adrelid))
         FROM pg_catalog.pg_attrdef f JOIN pg_catalog.pg_class c ON c.oid = f.adrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
         JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = f.adnum
         WHERE {USER} AND c.relkind = 'v' AND c.relpersistence <> 't' ORDER BY c.oid, a.attnum"
    )
}

fn indexes() -> String {
    format!(
        "SELECT 'INDEX', n.nspname, t.relname, pg_get_indexdef(i.indexrelid) || ';'
         FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class t ON t.oid = i.indrelid JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
         WHERE {USER} AND t.relkind = 'm' ORDER BY i.indexrelid"
    )
}
