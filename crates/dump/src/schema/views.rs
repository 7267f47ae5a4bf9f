//! Views and materialized views, each after those it reads.

use std::collections::{HashMap, HashSet};

use super::{Reader, USER};
use crate::Result;
use crate::archive::{Entry, Section};

pub fn entries(reader: &mut Reader) -> Result<Vec<Entry>> {
    let views = format!(
        "SELECT c.oid, CASE c.relkind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'VIEW' END, n.nspname, c.relname,
            format(CASE c.relkind WHEN 'm' THEN 'CREATE MATERIALIZED VIEW %I.%I%s AS %s WITH NO DATA;' ELSE 'CREATE VIEW %I.%I%s AS %s;' END,
                n.nspname, c.relname, coalesce(' WITH (' || array_to_string(c.reloptions, ', ') || ')', ''), rtrim(pg_get_viewdef(c.oid), ';')),
            CASE WHEN c.relkind = 'm' AND c.relispopulated THEN format('REFRESH MATERIALIZED VIEW %I.%I;', n.nspname, c.relname) END
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relkind IN ('v', 'm') AND c.relpersistence <> 't' AND {USER} ORDER BY c.oid"
    );
    let mut order = Vec::new();
    let mut found = HashMap::new();
    for row in reader.rows(&views)? {
        let [oid, kind, schema, name, sql, refresh] = <[_; 6]>::try_from(row).map_err(|_| "a view without a name".to_owned())?;
        let (Some(oid), Some(kind), Some(name), Some(sql)) = (oid, kind, name, sql) else { continue };
        order.push(oid.clone());
        found.insert(oid, (Entry { section: Section::Before, kind, schema, name, sql }, refresh));
    }
    let mut all = Vec::new();
    let mut refreshes = Vec::new();
    for oid in sorted(&order, &reads(reader)?) {
        let Some((entry, refresh)) = found.remove(&oid) else { continue };
        refreshes.extend(refresh.map(|sql| Entry { section: Section::After, kind: "REFRESH".to_owned(), sql, ..entry.clone() }));
        all.push(entry);
    }
    all.extend(refreshes);
    all.extend(reader.entries(Section::After, &defaults())?);
    all.extend(reader.entries(Section::After, &indexes())?);
    Ok(all)
}

/// By view, the views that it reads.
fn reads(reader: &mut Reader) -> Result<HashMap<String, Vec<String>>> {
    let sql = "SELECT DISTINCT r.ev_class, d.refobjid FROM pg_catalog.pg_rewrite r
        JOIN pg_catalog.pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass
        JOIN pg_catalog.pg_class c ON c.oid = d.refobjid WHERE c.relkind IN ('v', 'm') AND d.refobjid <> r.ev_class";
    let mut reads: HashMap<String, Vec<String>> = HashMap::new();
    for row in reader.rows(sql)? {
        if let [Some(view), Some(read)] = &row[..] {
            reads.entry(view.clone()).or_default().push(read.clone());
        }
    }
    Ok(reads)
}

/// The same, with what each reads before it.
fn sorted(order: &[String], reads: &HashMap<String, Vec<String>>) -> Vec<String> {
    let (mut done, mut out) = (HashSet::new(), Vec::new());
    // A stack instead of recursion: chains of views may be long. A view is pushed again behind what it reads.
    let mut stack: Vec<(&String, bool)> = order.iter().rev().map(|v| (v, false)).collect();
    while let Some((view, is_ready)) = stack.pop() {
        if is_ready {
            out.push(view.clone());
        } else if done.insert(view) {
            stack.push((view, true));
            stack.extend(reads.get(view).into_iter().flatten().map(|v| (v, false)));
        }
    }
    out
}

/// What a view gives to its table's columns on INSERT.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_comes_first() {
        let names = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let reads = HashMap::from([("a".to_owned(), names(&["c"])), ("c".to_owned(), names(&["b"]))]);
        assert_eq!(sorted(&names(&["a", "b", "c", "d"]), &reads), names(&["b", "c", "a", "d"]));
    }
}
