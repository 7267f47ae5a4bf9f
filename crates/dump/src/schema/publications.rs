//! Publications, with their tables and schemas. Their format and location stand in a view that only Melba has; those of other servers are for
//! subscribers, and not dumped.

use super::Reader;
use crate::Result;
use crate::archive::{Entry, Section};

const IS_KNOWN: &str = "SELECT 1::text WHERE to_regclass('pg_catalog.melba_publications') IS NOT NULL";

/// Each with its members, owner and comment.
const DEFINITIONS: &str = "SELECT o.kind, NULL, p.pubname, o.statement
    FROM pg_catalog.pg_publication p LEFT JOIN pg_catalog.melba_publications m ON m.pubid = p.oid
        CROSS JOIN LATERAL (
            SELECT 1, 'PUBLICATION', format('CREATE PUBLICATION %I%s WITH (publish = %L%s%s%s);', p.pubname,
                CASE WHEN p.puballtables THEN ' FOR ALL TABLES' ELSE '' END,
                concat_ws(', ', CASE WHEN p.pubinsert THEN 'insert' END, CASE WHEN p.pubupdate THEN 'update' END,
                    CASE WHEN p.pubdelete THEN 'delete' END, CASE WHEN p.pubtruncate THEN 'truncate' END),
                CASE WHEN p.pubviaroot THEN ', publish_via_partition_root = true' ELSE '' END,
                CASE WHEN p.pubgencols = 's' THEN ', publish_generated_columns = stored' ELSE '' END,
                (SELECT string_agg(format(', %I = %L', split_part(x, '=', 1), substr(x, strpos(x, '=') + 1)), '') FROM unnest(m.options) x))
            UNION ALL
            SELECT 2, 'PUBLICATION TABLE', format('ALTER PUBLICATION %I ADD TABLE %I.%I;', p.pubname, n.nspname, c.relname)
            FROM pg_catalog.pg_publication_rel r JOIN pg_catalog.pg_class c ON c.oid = r.prrelid
                JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE r.prpubid = p.oid
            UNION ALL
            SELECT 3, 'PUBLICATION SCHEMA', format('ALTER PUBLICATION %I ADD TABLES IN SCHEMA %I;', p.pubname, n.nspname)
            FROM pg_catalog.pg_publication_namespace s JOIN pg_catalog.pg_namespace n ON n.oid = s.pnnspid WHERE s.pnpubid = p.oid
            UNION ALL
            SELECT 4, 'OWNER', format('ALTER PUBLICATION %I OWNER TO %I;', p.pubname, pg_get_userbyid(p.pubowner))
            UNION ALL
            SELECT 5, 'COMMENT', format('COMMENT ON PUBLICATION %I IS %L;', p.pubname, obj_description(p.oid, 'pg_publication'))
            WHERE obj_description(p.oid, 'pg_publication') IS NOT NULL) o (place, kind, statement)
    ORDER BY p.oid, o.place, o.statement";

pub fn entries(reader: &mut Reader) -> Result<Vec<Entry>> {
    if reader.rows(IS_KNOWN)?.is_empty() {
        return Ok(Vec::new());
    }
    reader.entries(Section::After, DEFINITIONS)
}
