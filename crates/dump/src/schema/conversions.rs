//! Conversions, and what depends on an extension without being a member. Transforms are refused.

use super::{Reader, USER};
use crate::Result;
use crate::archive::{Entry, Section};

pub fn after(reader: &mut Reader) -> Result<Vec<Entry>> {
    let mut all = reader.entries(Section::After, &definitions())?;
    all.extend(reader.entries(Section::After, DEPENDENTS)?);
    Ok(all)
}

/// Each with its owner and comment.
fn definitions() -> String {
    format!(
        "SELECT o.kind, n.nspname, c.conname, o.statement
         FROM pg_catalog.pg_conversion c JOIN pg_catalog.pg_namespace n ON n.oid = c.connamespace
            CROSS JOIN LATERAL (VALUES (1, 'CONVERSION', format('CREATE %sCONVERSION %I.%I FOR %L TO %L FROM %s;',
                    CASE WHEN c.condefault THEN 'DEFAULT ' ELSE '' END, n.nspname, c.conname, pg_encoding_to_char(c.conforencoding),
                    pg_encoding_to_char(c.contoencoding), c.conproc)),
                (2, 'OWNER', format('ALTER CONVERSION %I.%I OWNER TO %I;', n.nspname, c.conname, pg_get_userbyid(c.conowner))),
                (3, 'COMMENT', CASE WHEN obj_description(c.oid, 'pg_conversion') IS NOT NULL THEN
                    format('COMMENT ON CONVERSION %I.%I IS %L;', n.nspname, c.conname, obj_description(c.oid, 'pg_conversion')) END))
                o (place, kind, statement)
         WHERE {USER} AND o.statement IS NOT NULL
         ORDER BY c.oid, o.place"
    )
}

/// Functions, indexes, materialized views and triggers.
const DEPENDENTS: &str = "SELECT 'DEPENDS ON EXTENSION', i.schema, coalesce(i.name, i.identity),
        format('ALTER %s %s DEPENDS ON EXTENSION %I;', upper(i.type), i.identity, e.extname)
     FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass
        CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) i
     WHERE d.deptype = 'x' ORDER BY d.classid, d.objid";
