//! Schemas and types.

use super::{Reader, USER};
use crate::Result;
use crate::archive::{Entry, Section};

pub fn schemas(reader: &mut Reader) -> Result<Vec<Entry>> {
    let schemas = format!(
        "SELECT 'SCHEMA', NULL, n.nspname,
            format(CASE n.nspname WHEN 'public' THEN 'CREATE SCHEMA IF NOT EXISTS %I;' ELSE 'CREATE SCHEMA %I;' END, n.nspname)
         FROM pg_catalog.pg_namespace n WHERE {USER} ORDER BY n.oid"
    );
    reader.entries(Section::Before, &schemas)
}

/// Extensions by OID, except the one that every database has.
pub fn extensions(reader: &mut Reader) -> Result<Vec<Entry>> {
    let extensions = "SELECT 'EXTENSION', n.nspname, e.extname,
            format('CREATE EXTENSION IF NOT EXISTS %I WITH SCHEMA %I;', e.extname, n.nspname)
         FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
         WHERE e.extname <> 'plpgsql' ORDER BY e.oid";
    reader.entries(Section::Before, extensions)
}

/// Base types of users, of the alias `t`: neither array types nor parts of an extension.
pub const OWN_BASE: &str = "t.typtype = 'b' AND NOT EXISTS (SELECT FROM pg_catalog.pg_type e WHERE e.typarray = t.oid)
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
        WHERE d.classid = 'pg_catalog.pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e')";

/// Shells, those of base types first of all: the functions of a base type need it, and it needs them.
pub fn shells(reader: &mut Reader) -> Result<Vec<Entry>> {
    let shells = format!(
        "SELECT 'TYPE', n.nspname, t.typname, format('CREATE TYPE %I.%I;', n.nspname, t.typname)
         FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
         WHERE {USER} AND (NOT t.typisdefined OR {OWN_BASE}) ORDER BY t.oid"
    );
    reader.entries(Section::Before, &shells)
}

/// Base types, each to be made after its functions.
pub fn base_types() -> String {
    let function = |attribute: &str, column: &str| format!("'{attribute} = ' || nullif(t.{column}::oid, 0)::regproc");
    let functions = [
        function("INPUT", "typinput"),
        function("OUTPUT", "typoutput"),
        function("RECEIVE", "typreceive"),
        function("SEND", "typsend"),
        function("TYPMOD_IN", "typmodin"),
        function("TYPMOD_OUT", "typmodout"),
        function("ANALYZE", "typanalyze"),
        // Versions before 14 have no subscripting functions.
        "'SUBSCRIPT = ' || nullif(to_jsonb(t) ->> 'typsubscript', '-')".to_owned(),
    ]
    .join(", ");
    format!(
        "SELECT 't' || t.oid, 'TYPE', n.nspname, t.typname, format('CREATE TYPE %I.%I (%s);', n.nspname, t.typname, concat_ws(', ',
                'INTERNALLENGTH = ' || CASE t.typlen WHEN -1 THEN 'variable' ELSE t.typlen::text END, {functions},
                'ELEMENT = ' || CASE WHEN t.typelem <> 0 THEN format_type(t.typelem, NULL) END,
                'DEFAULT = ' || quote_literal(t.typdefault),
                'CATEGORY = ' || quote_literal(t.typcategory::text), 'PREFERRED = ' || t.typispreferred,
                'DELIMITER = ' || quote_literal(t.typdelim::text), 'COLLATABLE = ' || (t.typcollation <> 0),
                'ALIGNMENT = ' || CASE t.typalign WHEN 'd' THEN 'double' WHEN 'i' THEN 'int4' WHEN 's' THEN 'int2' ELSE 'char' END,
                'STORAGE = ' || CASE t.typstorage WHEN 'p' THEN 'plain' WHEN 'e' THEN 'external' WHEN 'x' THEN 'extended' ELSE 'main' END,
                'PASSEDBYVALUE = ' || t.typbyval))
         FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE {USER} AND {OWN_BASE} ORDER BY t.oid"
    )
}

/// Enums, domains, composite types and ranges by OID: one that uses another was made after it.
pub fn types() -> String {
    let labels = "SELECT string_agg(quote_literal(e.enumlabel), ', ' ORDER BY e.enumsortorder)
        FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid";
    let attributes = "SELECT string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod))
            || coalesce((SELECT format(' COLLATE %I.%I', m.nspname, l.collname) FROM pg_catalog.pg_collation l
                JOIN pg_catalog.pg_namespace m ON m.oid = l.collnamespace JOIN pg_catalog.pg_type b ON b.oid = a.atttypid
                WHERE l.oid = a.attcollation AND a.attcollation <> b.typcollation), ''), ', ' ORDER BY a.attnum)
        FROM pg_catalog.pg_attribute a WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped";
    let checks = "SELECT string_agg(format(' CONSTRAINT %I %s', o.conname, pg_get_constraintdef(o.oid)), '' ORDER BY o.conname)
        FROM pg_catalog.pg_constraint o WHERE o.contypid = t.oid AND o.contype = 'c'";
    let collation = "SELECT format(' COLLATE %I.%I', m.nspname, l.collname) FROM pg_catalog.pg_collation l
        JOIN pg_catalog.pg_namespace m ON m.oid = l.collnamespace
        WHERE l.oid = t.typcollation AND t.typcollation <> (SELECT b.typcollation FROM pg_catalog.pg_type b WHERE b.oid = t.typbasetype)";
    // Versions before 14 have no multiranges.
    let range = "SELECT concat_ws(', ', 'subtype = ' || format_type(r.rngsubtype, NULL),
            CASE WHEN NOT o.opcdefault THEN format('subtype_opclass = %I.%I', k.nspname, o.opcname) END,
            (SELECT format('collation = %I.%I', m.nspname, l.collname) FROM pg_catalog.pg_collation l
                JOIN pg_catalog.pg_namespace m ON m.oid = l.collnamespace JOIN pg_catalog.pg_type b ON b.oid = r.rngsubtype
                WHERE l.oid = r.rngcollation AND r.rngcollation <> b.typcollation),
            'subtype_diff = ' || nullif(r.rngsubdiff::oid, 0)::regproc,
            'multirange_type_name = ' || format_type((to_jsonb(r) ->> 'rngmultitypid')::oid, NULL))
        FROM pg_catalog.pg_range r JOIN pg_catalog.pg_opclass o ON o.oid = r.rngsubopc
        JOIN pg_catalog.pg_namespace k ON k.oid = o.opcnamespace WHERE r.rngtypid = t.oid";
    format!(
        "SELECT 't' || t.oid, CASE t.typtype WHEN 'd' THEN 'DOMAIN' ELSE 'TYPE' END, n.nspname, t.typname,
            format(CASE t.typtype WHEN 'd' THEN 'CREATE DOMAIN %I.%I AS %s;' ELSE 'CREATE TYPE %I.%I AS %s;' END, n.nspname, t.typname,
                CASE t.typtype
                WHEN 'e' THEN format('ENUM (%s)', ({labels}))
                WHEN 'c' THEN format('(%s)', ({attributes}))
                WHEN 'r' THEN format('RANGE (%s)', ({range}))
                ELSE format_type(t.typbasetype, t.typtypmod) || coalesce(({collation}), '') || coalesce(' DEFAULT ' || t.typdefault, '')
                    || coalesce(({checks}), '') || CASE WHEN t.typnotnull THEN ' NOT NULL' ELSE '' END
                END)
         FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
         LEFT JOIN pg_catalog.pg_class c ON c.oid = t.typrelid
         WHERE {USER} AND (t.typtype IN ('e', 'd', 'r') OR t.typtype = 'c' AND c.relkind = 'c') ORDER BY t.oid"
    )
}
