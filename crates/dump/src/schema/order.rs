//! The order in which objects are created: each after those it needs.

use std::collections::{HashMap, HashSet};

use super::Reader;
use crate::Result;
use crate::archive::{Entry, Section};

/// A type, sequence, function, table, view, foreign-data wrapper or server.
pub struct Definition {
    /// `t`, `f`, `r`, `w` or `s`, a type, function, relation, wrapper or server, and its OID.
    pub key: String,
    pub entry: Entry,
    /// The statement that fills it once everything exists.
    pub refresh: Option<String>,
}

/// By object, the objects that it needs. The needs of a table's defaults and checks are the table's; a row type is its table.
fn needs(reader: &mut Reader) -> Result<HashMap<String, Vec<String>>> {
    const SQL: &str = "SELECT DISTINCT
            CASE d.classid WHEN 'pg_class'::regclass THEN 'r' || d.objid WHEN 'pg_proc'::regclass THEN 'f' || d.objid
                WHEN 'pg_type'::regclass THEN 't' || d.objid WHEN 'pg_attrdef'::regclass THEN 'r' || f.adrelid
                WHEN 'pg_rewrite'::regclass THEN 'r' || r.ev_class
                WHEN 'pg_foreign_data_wrapper'::regclass THEN 'w' || d.objid WHEN 'pg_foreign_server'::regclass THEN 's' || d.objid
                WHEN 'pg_constraint'::regclass THEN CASE o.contypid WHEN 0 THEN 'r' || o.conrelid ELSE 't' || o.contypid END END,
            CASE d.refclassid WHEN 'pg_class'::regclass THEN CASE c.relkind WHEN 'c' THEN 't' || c.reltype ELSE 'r' || d.refobjid END
                WHEN 'pg_proc'::regclass THEN 'f' || d.refobjid WHEN 'pg_foreign_data_wrapper'::regclass THEN 'w' || d.refobjid
                WHEN 'pg_foreign_server'::regclass THEN 's' || d.refobjid
                ELSE CASE WHEN b.typrelid <> 0 AND l.relkind <> 'c' THEN 'r' || b.typrelid ELSE 't' || b.oid END END
        FROM pg_catalog.pg_depend d
        LEFT JOIN pg_catalog.pg_attrdef f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
        LEFT JOIN pg_catalog.pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN'
        LEFT JOIN pg_catalog.pg_constraint o ON d.classid = 'pg_constraint'::regclass AND o.oid = d.objid
        LEFT JOIN pg_catalog.pg_class c ON d.refclassid = 'pg_class'::regclass AND c.oid = d.refobjid
        LEFT JOIN pg_catalog.pg_type t ON d.refclassid = 'pg_type'::regclass AND t.oid = d.refobjid
        LEFT JOIN pg_catalog.pg_type b ON b.oid = CASE WHEN t.typelem <> 0 AND t.typlen = -1 THEN t.typelem ELSE t.oid END
        LEFT JOIN pg_catalog.pg_class l ON l.oid = b.typrelid
        WHERE d.deptype = 'n' AND (o.contype IS NULL OR o.contype = 'c')
            -- The functions of a base type are made over its shell.
            AND NOT (d.classid = 'pg_proc'::regclass AND b.oid IS NOT NULL
                AND d.objid IN (b.typinput::oid, b.typoutput::oid, b.typreceive::oid, b.typsend::oid))
            AND d.refclassid IN ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_type'::regclass,
                'pg_foreign_data_wrapper'::regclass, 'pg_foreign_server'::regclass)";
    let mut needs: HashMap<String, Vec<String>> = HashMap::new();
    for row in reader.rows(SQL)? {
        if let [Some(object), Some(needed)] = &row[..]
            && object != needed
        {
            needs.entry(object.clone()).or_default().push(needed.clone());
        }
    }
    Ok(needs)
}

/// Entries that make the objects, and those that fill them, in an order that works.
pub fn entries(reader: &mut Reader, definitions: Vec<Definition>) -> Result<(Vec<Entry>, Vec<Entry>)> {
    let order: Vec<String> = definitions.iter().map(|d| d.key.clone()).collect();
    let mut found: HashMap<String, Definition> = definitions.into_iter().map(|d| (d.key.clone(), d)).collect();
    let (mut made, mut refreshes) = (Vec::new(), Vec::new());
    for key in sorted(&order, &needs(reader)?) {
        let Some(Definition { entry, refresh, .. }) = found.remove(&key) else { continue };
        refreshes.extend(refresh.map(|sql| Entry { section: Section::After, kind: "REFRESH".to_owned(), sql, ..entry.clone() }));
        made.push(entry);
    }
    Ok((made, refreshes))
}

/// The same, each preceded by the objects it needs.
fn sorted(order: &[String], needs: &HashMap<String, Vec<String>>) -> Vec<String> {
    let (mut done, mut out) = (HashSet::new(), Vec::new());
    // A stack instead of recursion: chains of views may be long. An object is pushed again behind the objects it needs.
    let mut stack: Vec<(&String, bool)> = order.iter().rev().map(|v| (v, false)).collect();
    while let Some((object, is_ready)) = stack.pop() {
        if is_ready {
            out.push(object.clone());
        } else if done.insert(object) {
            stack.push((object, true));
            stack.extend(needs.get(object).into_iter().flatten().map(|v| (v, false)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_comes_first() {
        let names = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let needs = HashMap::from([("a".to_owned(), names(&["c"])), ("c".to_owned(), names(&["b"]))]);
        assert_eq!(sorted(&names(&["a", "b", "c", "d"]), &needs), names(&["b", "c", "a", "d"]));
    }
}
