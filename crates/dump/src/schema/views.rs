//! Views and materialized views.

use super::{Definition, Reader, USER};
use crate::Result;
use crate::archive::{Entry, Section};

pub fn definitions(reader: &mut Reader) -> Result<Vec<Definition>> {
    let views = format!(
        "SELECT 'r' || c.oid, CASE c.relkind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'VIEW' END, n.nspname, c.relname,
            format(CASE c.relkind WHEN 'm' THEN 'CREATE MATERIALIZED VIEW %I.%I%s AS %s WITH NO DATA;' ELSE 'CREATE VIEW %I.%I%s AS %s;' END,
                n.nspname, c.relname, coalesce(' WITH (' || array_to_string(c.reloptions, ', ') || ')', ''), rtrim(pg_get_viewdef(c.oid), ';')),
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

/// The statements after the rows.
pub fn after(reader: &mut Reader) -> Result<Vec<Entry>> {
    let mut all = reader.entries(Section::After, &defaults())?;
    all.extend(reader.entries(Section::After, &indexes())?);
    Ok(all)
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
