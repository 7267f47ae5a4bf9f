//! Statistics objects of tables. What ANALYZE has collected for them is left out: the next ANALYZE collects it again.

use super::{Reader, USER};
use crate::Result;
use crate::archive::{Entry, Section};

pub fn after(reader: &mut Reader) -> Result<Vec<Entry>> {
    reader.entries(Section::After, &definitions())
}

/// Each with its target, owner and comment.
fn definitions() -> String {
    format!(
        "SELECT o.kind, n.nspname, s.stxname, o.statement
         FROM pg_catalog.pg_statistic_ext s JOIN pg_catalog.pg_namespace n ON n.oid = s.stxnamespace
            JOIN pg_catalog.pg_class c ON c.oid = s.stxrelid
            CROSS JOIN LATERAL (VALUES (1, 'STATISTICS', pg_get_statisticsobjdef(s.oid) || ';'),
                (2, 'STATISTICS', CASE WHEN s.stxstattarget >= 0
                    THEN format('ALTER STATISTICS %I.%I SET STATISTICS %s;', n.nspname, s.stxname, s.stxstattarget) END),
                (3, 'OWNER', format('ALTER STATISTICS %I.%I OWNER TO %I;', n.nspname, s.stxname, pg_get_userbyid(s.stxowner))),
                (4, 'COMMENT', CASE WHEN obj_description(s.oid, 'pg_statistic_ext') IS NOT NULL THEN
                    format('COMMENT ON STATISTICS %I.%I IS %L;', n.nspname, s.stxname, obj_description(s.oid, 'pg_statistic_ext')) END))
                o (place, kind, statement)
         WHERE {USER} AND c.relpersistence <> 't' AND o.statement IS NOT NULL
         ORDER BY s.oid, o.place"
    )
}
