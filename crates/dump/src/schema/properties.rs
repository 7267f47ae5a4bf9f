//! What any object may have: an owner, privileges, a comment.

use super::{Reader, USER};
use crate::Result;
use crate::archive::{Entry, Section};

pub fn entries(reader: &mut Reader) -> Result<Vec<Entry>> {
    let mut all = Vec::new();
    for sql in [owners(), comments(), large_object_comments().to_owned(), privileges(), column_privileges(), default_privileges()]
    {
        all.extend(reader.entries(Section::After, &sql)?);
    }
    Ok(all)
}

/// Objects that have owner and privileges: word of ALTER, word of GRANT, schema, name, quoted name, owner, ACL.
fn owned() -> String {
    format!(
        "SELECT 'SCHEMA' AS kind, 'SCHEMA' AS granted, NULL AS schema, n.nspname AS name, quote_ident(n.nspname) AS quoted, n.nspowner AS owner, n.nspacl AS acl
            FROM pg_catalog.pg_namespace n WHERE {USER}
         UNION ALL SELECT CASE t.typtype WHEN 'd' THEN 'DOMAIN' ELSE 'TYPE' END, 'TYPE', n.nspname, t.typname,
                format('%I.%I', n.nspname, t.typname), t.typowner, t.typacl
            FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace LEFT JOIN pg_catalog.pg_class c ON c.oid = t.typrelid
            WHERE {USER} AND (t.typtype IN ('e', 'd', 'r') OR t.typtype = 'c' AND c.relkind = 'c')
         UNION ALL SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'TABLE' END,
                CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, n.nspname, c.relname, format('%I.%I', n.nspname, c.relname), c.relowner, c.relacl
            FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            WHERE {USER} AND c.relkind IN ('r', 'S', 'v', 'm') AND c.relpersistence <> 't'"
    )
}

/// A sequence that belongs to a table changes its owner with it.
fn owners() -> String {
    format!(
        "SELECT 'OWNER', o.schema, o.name, format('ALTER %s %s OWNER TO %I;', o.kind, o.quoted, pg_get_userbyid(o.owner)) FROM ({}) o
         WHERE NOT (o.kind = 'SEQUENCE' AND EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_class'::regclass
            AND d.objid = o.quoted::regclass AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')))",
        owned()
    )
}

/// A GRANT a grantee, of an `acl` of the alias `o`: what is granted on `what` (a quoted name with its kind), privileges as words.
fn grants(privilege: &str, what: &str) -> String {
    format!(
        "(SELECT string_agg(format('GRANT %s ON {what} TO %s%s;', g.privileges, CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END,
            CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END), ' ' ORDER BY g.place)
          FROM (SELECT x.grantee, x.is_grantable, string_agg({privilege}, ', ' ORDER BY x.ordinality) AS privileges, min(x.ordinality) AS place
                FROM aclexplode(o.acl) WITH ORDINALITY x GROUP BY x.grantee, x.is_grantable) g)"
    )
}

/// Everything is taken away first: what is left is the ACL, whatever the defaults of the server it is restored to.
fn privileges() -> String {
    let grants = grants("x.privilege_type", "%s %s").replace("g.privileges, CASE", "g.privileges, o.granted, o.quoted, CASE");
    format!(
        "SELECT 'ACL', o.schema, o.name, format('REVOKE ALL ON %s %s FROM PUBLIC; REVOKE ALL ON %s %s FROM %I; ', o.granted, o.quoted, o.granted, o.quoted,
            pg_get_userbyid(o.owner)) || coalesce({grants}, '')
         FROM ({}) o WHERE o.acl IS NOT NULL",
        owned()
    )
}

fn column_privileges() -> String {
    let grants = grants("format('%s (%I)', x.privilege_type, o.attname)", "TABLE %s")
        .replace("g.privileges, CASE", "g.privileges, o.quoted, CASE");
    format!(
        "SELECT 'ACL', o.nspname, o.relname, {grants} FROM (
            SELECT n.nspname, c.relname, format('%I.%I', n.nspname, c.relname) AS quoted, a.attname, a.attacl AS acl
            FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            WHERE {USER} AND c.relpersistence <> 't' AND a.attacl IS NOT NULL AND cardinality(a.attacl) > 0 ORDER BY c.oid, a.attnum) o"
    )
}

fn default_privileges() -> String {
    let alter = "format('ALTER DEFAULT PRIVILEGES FOR ROLE %I%s ', pg_get_userbyid(o.defaclrole),
        CASE WHEN n.nspname IS NULL THEN '' ELSE format(' IN SCHEMA %I', n.nspname) END)";
    let objects = "CASE o.defaclobjtype WHEN 'r' THEN 'TABLES' WHEN 'S' THEN 'SEQUENCES' WHEN 'f' THEN 'FUNCTIONS' WHEN 'T' THEN 'TYPES' WHEN 'n' THEN 'SCHEMAS' ELSE 'LARGE OBJECTS' END";
    format!(
        "SELECT 'DEFAULT ACL', n.nspname, {objects},
            CASE WHEN n.nspname IS NULL THEN {alter} || format('REVOKE ALL ON %s FROM PUBLIC; ', {objects}) || {alter}
                || format('REVOKE ALL ON %s FROM %I; ', {objects}, pg_get_userbyid(o.defaclrole)) ELSE '' END
            || coalesce((SELECT string_agg({alter} || format('GRANT %s ON %s TO %s%s;', g.privileges, {objects},
                    CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END,
                    CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END), ' ' ORDER BY g.place)
                FROM (SELECT x.grantee, x.is_grantable, string_agg(x.privilege_type, ', ' ORDER BY x.ordinality) AS privileges, min(x.ordinality) AS place
                    FROM aclexplode(o.defaclacl) WITH ORDINALITY x GROUP BY x.grantee, x.is_grantable) g), '')
         FROM pg_catalog.pg_default_acl o LEFT JOIN pg_catalog.pg_namespace n ON n.oid = o.defaclnamespace"
    )
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
                    WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'i' THEN 'INDEX' WHEN 'c' THEN 'TYPE' ELSE 'TABLE' END END, n.nspname, c.relname,
                    format('%I.%I', n.nspname, c.relname) || CASE WHEN d.objsubid > 0 THEN '.' || quote_ident(a.attname) ELSE '' END, {literal}
                FROM pg_catalog.pg_description d JOIN pg_catalog.pg_class c ON c.oid = d.objoid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.objsubid
                WHERE d.classoid = 'pg_class'::regclass AND {USER} AND c.relpersistence <> 't'
            UNION ALL SELECT 'CONSTRAINT', n.nspname, o.conname, format('%I ON %s%I.%I', o.conname, CASE WHEN o.conrelid = 0 THEN 'DOMAIN ' ELSE '' END,
                    n.nspname, coalesce(c.relname, t.typname)), {literal}
                FROM pg_catalog.pg_description d JOIN pg_catalog.pg_constraint o ON o.oid = d.objoid JOIN pg_catalog.pg_namespace n ON n.oid = o.connamespace
                LEFT JOIN pg_catalog.pg_class c ON c.oid = o.conrelid LEFT JOIN pg_catalog.pg_type t ON t.oid = o.contypid
                WHERE d.classoid = 'pg_constraint'::regclass AND {USER}) o"
    )
}

fn large_object_comments() -> &'static str {
    "SELECT 'COMMENT', NULL, d.objoid::text, format('COMMENT ON LARGE OBJECT %s IS %s;', d.objoid, quote_literal(d.description))
     FROM pg_catalog.pg_description d WHERE d.classoid = 'pg_largeobject'::regclass"
}
