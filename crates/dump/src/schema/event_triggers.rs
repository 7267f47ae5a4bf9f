//! Event triggers. They are created last, and so fire for no other statement.

use super::Reader;
use crate::Result;
use crate::archive::{Entry, Section};

/// Each with its state, owner and comment.
const DEFINITIONS: &str = "SELECT o.kind, NULL, e.evtname, o.statement
    FROM pg_catalog.pg_event_trigger e JOIN pg_catalog.pg_proc p ON p.oid = e.evtfoid
        JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
        CROSS JOIN LATERAL (VALUES (1, 'EVENT TRIGGER', format('CREATE EVENT TRIGGER %I ON %s%s EXECUTE FUNCTION %I.%I();', e.evtname, e.evtevent,
                coalesce(' WHEN TAG IN (' || (SELECT string_agg(quote_literal(t), ', ') FROM unnest(e.evttags) t) || ')', ''),
                n.nspname, p.proname)),
            (2, 'EVENT TRIGGER', CASE e.evtenabled WHEN 'D' THEN format('ALTER EVENT TRIGGER %I DISABLE;', e.evtname)
                WHEN 'R' THEN format('ALTER EVENT TRIGGER %I ENABLE REPLICA;', e.evtname)
                WHEN 'A' THEN format('ALTER EVENT TRIGGER %I ENABLE ALWAYS;', e.evtname) END),
            (3, 'OWNER', format('ALTER EVENT TRIGGER %I OWNER TO %I;', e.evtname, pg_get_userbyid(e.evtowner))),
            (4, 'COMMENT', CASE WHEN obj_description(e.oid, 'pg_event_trigger') IS NOT NULL
                THEN format('COMMENT ON EVENT TRIGGER %I IS %L;', e.evtname, obj_description(e.oid, 'pg_event_trigger')) END)) o (place, kind, statement)
    WHERE o.statement IS NOT NULL AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
        WHERE d.classid = 'pg_catalog.pg_event_trigger'::regclass AND d.objid = e.oid AND d.deptype = 'e')
    ORDER BY e.oid, o.place";

pub fn last(reader: &mut Reader) -> Result<Vec<Entry>> {
    reader.entries(Section::After, DEFINITIONS)
}
