//! Properties that any object may have: an owner, privileges, a comment.

use super::foreign::OWN_WRAPPER;
use super::types::OWN_BASE;
use super::{OWN_FUNCTION, Reader, USER};
use crate::Result;
use crate::archive::{Entry, Section};
use crate::privileges::{Granted, all_letters, quoted};

pub fn entries(reader: &mut Reader) -> Result<Vec<Entry>> {
    let mut all = Vec::new();
    for sql in [owners(), comments(), large_object_comments().to_owned()] {
        all.extend(reader.entries(Section::After, &sql)?);
    }
    for sql in [object_privileges(), column_privileges()] {
        all.extend(privileges(reader, &sql)?);
    }
    all.extend(default_privileges(reader)?);
    Ok(all)
}

/// The word for a function, of the alias `p`, and its name with the types of its arguments.
const ROUTINE: &str = "CASE p.prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END";
const SIGNATURE: &str = "format('%I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid))";

/// Objects that have owner and privileges: word of ALTER, word of GRANT, schema, name, quoted name, owner, ACL.
fn owned() -> String {
    format!(
        "SELECT 'SCHEMA' AS kind, 'SCHEMA' AS granted, NULL AS schema, n.nspname AS name, quote_ident(n.nspname) AS quoted, n.nspowner AS owner, n.nspacl AS acl
            FROM pg_catalog.pg_namespace n WHERE {USER}
         UNION ALL SELECT CASE t.typtype WHEN 'd' THEN 'DOMAIN' ELSE 'TYPE' END, 'TYPE', n.nspname, t.typname,
                format('%I.%I', n.nspname, t.typname), t.typowner, t.typacl
            FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace LEFT JOIN pg_catalog.pg_class c ON c.oid = t.typrelid
            WHERE {USER} AND (t.typtype IN ('e', 'd', 'r') OR t.typtype = 'c' AND c.relkind = 'c' OR NOT t.typisdefined OR {OWN_BASE})
         UNION ALL SELECT 'FOREIGN DATA WRAPPER', 'FOREIGN DATA WRAPPER', NULL, w.fdwname, quote_ident(w.fdwname), w.fdwowner, w.fdwacl
            FROM pg_catalog.pg_foreign_data_wrapper w WHERE {OWN_WRAPPER}
         UNION ALL SELECT 'SERVER', 'FOREIGN SERVER', NULL, s.srvname, quote_ident(s.srvname), s.srvowner, s.srvacl
            FROM pg_catalog.pg_foreign_server s
         UNION ALL SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW'
                WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END,
                CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, n.nspname, c.relname, format('%I.%I', n.nspname, c.relname), c.relowner, c.relacl
            FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            WHERE {USER} AND c.relkind IN ('r', 'p', 'S', 'v', 'm', 'f') AND c.relpersistence <> 't'
         UNION ALL SELECT {ROUTINE}, {ROUTINE}, n.nspname, p.proname, {SIGNATURE}, p.proowner, p.proacl
            FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
            WHERE {USER} AND p.prokind <> 'a' AND {OWN_FUNCTION}"
    )
}

/// A sequence that belongs to a table changes its owner with it.
fn owners() -> String {
    format!(
        "SELECT 'OWNER', o.schema, o.name, format('ALTER %s %s OWNER TO %I;', o.kind, o.quoted, pg_get_userbyid(o.owner)) FROM ({}) o
         WHERE NOT (o.kind = 'SEQUENCE' AND EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_class'::regclass
            AND d.objid = CASE o.kind WHEN 'SEQUENCE' THEN o.quoted::regclass END AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')))",
        owned()
    )
}

/// Entries of a query that returns (schema, name, granted object, column or NULL, owner, ACL, acldefault() or NULL). An object's
/// list is built from nothing; a column has no privileges before.
fn privileges(reader: &mut Reader, sql: &str) -> Result<Vec<Entry>> {
    let mut all = Vec::new();
    for row in reader.rows(sql)? {
        let [schema, name, object, column, owner, acl, usual] =
            <[_; 7]>::try_from(row).map_err(|_| "privileges of nothing".to_owned())?;
        let (Some(name), Some(object), Some(owner), Some(acl)) = (name, object, owner, acl) else { continue };
        let letters = usual.as_deref().map(all_letters).unwrap_or_default();
        let granted = Granted { prefix: "", object: &object, column: column.as_deref(), owner: &owner, all: &letters };
        let revoked = if column.is_none() { granted.revoke_all() } else { String::new() };
        let sql = format!("{revoked}{}", granted.grants(&acl)?);
        all.push(Entry { section: Section::After, kind: "ACL".to_owned(), schema, name, sql });
    }
    Ok(all)
}

fn object_privileges() -> String {
    format!(
        "SELECT o.schema, o.name, o.granted || ' ' || o.quoted, NULL, pg_get_userbyid(o.owner), o.acl,
            acldefault(CASE o.granted WHEN 'SCHEMA' THEN 'n' WHEN 'TYPE' THEN 'T' WHEN 'SEQUENCE' THEN 's'
                WHEN 'FUNCTION' THEN 'f' WHEN 'PROCEDURE' THEN 'f' WHEN 'FOREIGN DATA WRAPPER' THEN 'F' WHEN 'FOREIGN SERVER' THEN 'S' ELSE 'r' END::\"char\", o.owner)
         FROM ({} UNION ALL SELECT 'FOREIGN DATA WRAPPER', 'FOREIGN DATA WRAPPER', NULL, w.fdwname, quote_ident(w.fdwname), w.fdwowner, w.fdwacl
            FROM pg_catalog.pg_foreign_data_wrapper w WHERE NOT ({OWN_WRAPPER})) o WHERE o.acl IS NOT NULL",
        owned()
    )
}

fn column_privileges() -> String {
    format!(
        "SELECT n.nspname, c.relname, format('TABLE %I.%I', n.nspname, c.relname), quote_ident(a.attname), pg_get_userbyid(c.relowner), a.attacl, NULL
         FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
         WHERE {USER} AND c.relpersistence <> 't' AND a.attacl IS NOT NULL AND cardinality(a.attacl) > 0 ORDER BY c.oid, a.attnum"
    )
}

/// Default privileges in one schema are added to those for all schemas, which stand alone.
fn default_privileges(reader: &mut Reader) -> Result<Vec<Entry>> {
    const SQL: &str = "SELECT n.nspname, pg_get_userbyid(o.defaclrole), o.defaclacl,
            acldefault(CASE o.defaclobjtype WHEN 'S' THEN 's' ELSE o.defaclobjtype END::\"char\", o.defaclrole),
            CASE o.defaclobjtype WHEN 'r' THEN 'TABLES' WHEN 'S' THEN 'SEQUENCES' WHEN 'f' THEN 'FUNCTIONS' WHEN 'T' THEN 'TYPES'
                WHEN 'n' THEN 'SCHEMAS' ELSE 'LARGE OBJECTS' END
        FROM pg_catalog.pg_default_acl o LEFT JOIN pg_catalog.pg_namespace n ON n.oid = o.defaclnamespace ORDER BY o.oid";
    let mut all = Vec::new();
    for row in reader.rows(SQL)? {
        let [schema, owner, acl, usual, objects] =
            <[_; 5]>::try_from(row).map_err(|_| "default privileges of nobody".to_owned())?;
        let (Some(owner), Some(acl), Some(usual), Some(objects)) = (owner, acl, usual, objects) else { continue };
        let place = schema.as_deref().map_or_else(String::new, |s| format!("IN SCHEMA {} ", quoted(s)));
        let prefix = format!("ALTER DEFAULT PRIVILEGES FOR ROLE {} {place}", quoted(&owner));
        let letters = all_letters(&usual);
        let granted = Granted { prefix: &prefix, object: &objects, column: None, owner: &owner, all: &letters };
        let revoked = if schema.is_none() { granted.revoke_all() } else { String::new() };
        let sql = format!("{revoked}{}", granted.grants(&acl)?);
        all.push(Entry { section: Section::After, kind: "DEFAULT ACL".to_owned(), schema, name: objects, sql });
    }
    Ok(all)
}

fn comments() -> String {
    let literal = "quote_literal(d.description)";
    format!(
        "SELECT 'COMMENT', o.schema, o.name, format('COMMENT ON %s %s IS %s;', o.kind, o.quoted, o.description) FROM (
            SELECT 'SCHEMA' AS kind, NULL AS schema, n.nspname AS name, quote_ident(n.nspname) AS quoted, {literal} AS description
                FROM pg_catalog.pg_description d JOIN pg_catalog.pg_namespace n ON n.oid = d.objoid
                WHERE d.classoid = 'pg_namespace'::regclass AND {USER} AND NOT (n.nspname = 'public' AND d.description = 'standard public schema')
            UNION ALL SELECT CASE t.typtype WHEN 'd' THEN 'DOMAIN' ELSE 'TYPE' END, n.nspname, t.typname, format('%I.%I', n.nspname, t.typname), {literal}
                FROM pg_catalog.pg_description d JOIN pg_catalog.pg_type t ON t.oid = d.objoid JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
                WHERE d.classoid = 'pg_type'::regclass AND {USER}
            UNION ALL SELECT CASE WHEN d.objsubid > 0 THEN 'COLUMN' ELSE CASE c.relkind WHEN 'S' THEN 'SEQUENCE' WHEN 'v' THEN 'VIEW'
                    WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'i' THEN 'INDEX' WHEN 'I' THEN 'INDEX' WHEN 'c' THEN 'TYPE' WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END END, n.nspname, c.relname,
                    format('%I.%I', n.nspname, c.relname) || CASE WHEN d.objsubid > 0 THEN '.' || quote_ident(a.attname) ELSE '' END, {literal}
                FROM pg_catalog.pg_description d JOIN pg_catalog.pg_class c ON c.oid = d.objoid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.objsubid
                WHERE d.classoid = 'pg_class'::regclass AND {USER} AND c.relpersistence <> 't'
            UNION ALL SELECT 'FOREIGN DATA WRAPPER', NULL, w.fdwname, quote_ident(w.fdwname), {literal}
                FROM pg_catalog.pg_description d JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid = d.objoid
                WHERE d.classoid = 'pg_foreign_data_wrapper'::regclass AND {OWN_WRAPPER}
            UNION ALL SELECT 'SERVER', NULL, s.srvname, quote_ident(s.srvname), {literal}
                FROM pg_catalog.pg_description d JOIN pg_catalog.pg_foreign_server s ON s.oid = d.objoid
                WHERE d.classoid = 'pg_foreign_server'::regclass
            UNION ALL SELECT {ROUTINE}, n.nspname, p.proname, {SIGNATURE}, {literal}
                FROM pg_catalog.pg_description d JOIN pg_catalog.pg_proc p ON p.oid = d.objoid JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
                WHERE d.classoid = 'pg_proc'::regclass AND {USER}
            UNION ALL SELECT 'TRIGGER', n.nspname, t.tgname, format('%I ON %I.%I', t.tgname, n.nspname, c.relname), {literal}
                FROM pg_catalog.pg_description d JOIN pg_catalog.pg_trigger t ON t.oid = d.objoid JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
                JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                WHERE d.classoid = 'pg_trigger'::regclass AND {USER} AND c.relpersistence <> 't'
            UNION ALL SELECT 'CONSTRAINT', n.nspname, o.conname, format('%I ON %s%I.%I', o.conname, CASE WHEN o.conrelid = 0 THEN 'DOMAIN ' ELSE '' END,
                    n.nspname, coalesce(c.relname, t.typname)), {literal}
                FROM pg_catalog.pg_description d JOIN pg_catalog.pg_constraint o ON o.oid = d.objoid JOIN pg_catalog.pg_namespace n ON n.oid = o.connamespace
                LEFT JOIN pg_catalog.pg_class c ON c.oid = o.conrelid LEFT JOIN pg_catalog.pg_type t ON t.oid = o.contypid
                WHERE d.classoid = 'pg_constraint'::regclass AND {USER}) o"
    )
}

fn large_object_comments() -> &'static str {
    "SELECT 'LARGE OBJECT COMMENT', NULL, d.objoid::text, format('COMMENT ON LARGE OBJECT %s IS %s;', d.objoid, quote_literal(d.description))
     FROM pg_catalog.pg_description d WHERE d.classoid = 'pg_largeobject'::regclass"
}
