//! Foreign data: wrappers, servers and user mappings. Foreign tables are dumped with the tables.

use super::Reader;
use crate::Result;
use crate::archive::{Entry, Section};

/// ` OPTIONS (...)` of a list as the catalogs keep it, or nothing.
pub fn options(list: &str) -> String {
    format!(
        "coalesce((SELECT ' OPTIONS (' || string_agg(format('%I %L', split_part(o, '=', 1), substr(o, strpos(o, '=') + 1)), ', ' ORDER BY n) || ')'
            FROM unnest({list}) WITH ORDINALITY u(o, n)), '')"
    )
}

/// Wrappers of users, of the alias `w`: neither built in nor an extension's.
pub const OWN_WRAPPER: &str = "w.oid >= 16384 AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
    WHERE d.classid = 'pg_catalog.pg_foreign_data_wrapper'::regclass AND d.objid = w.oid AND d.deptype = 'e')";

pub fn servers(reader: &mut Reader) -> Result<Vec<Entry>> {
    let wrappers = format!(
        "SELECT 'FOREIGN DATA WRAPPER', NULL, w.fdwname, format('CREATE FOREIGN DATA WRAPPER %I%s%s%s;', w.fdwname,
            CASE w.fdwhandler WHEN 0 THEN '' ELSE ' HANDLER ' || w.fdwhandler::regproc END,
            CASE w.fdwvalidator WHEN 0 THEN '' ELSE ' VALIDATOR ' || w.fdwvalidator::regproc END, {})
         FROM pg_catalog.pg_foreign_data_wrapper w WHERE {OWN_WRAPPER} ORDER BY w.oid",
        options("w.fdwoptions")
    );
    let servers = format!(
        "SELECT 'SERVER', NULL, s.srvname, format('CREATE SERVER %I%s%s FOREIGN DATA WRAPPER %I%s;', s.srvname,
            coalesce(' TYPE ' || quote_literal(s.srvtype), ''), coalesce(' VERSION ' || quote_literal(s.srvversion), ''), w.fdwname, {})
         FROM pg_catalog.pg_foreign_server s JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid = s.srvfdw ORDER BY s.oid",
        options("s.srvoptions")
    );
    let mappings = format!(
        "SELECT 'USER MAPPING', NULL, s.srvname, format('CREATE USER MAPPING FOR %s SERVER %I%s;',
            CASE m.umuser WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(m.umuser)) END, s.srvname, {})
         FROM pg_catalog.pg_user_mapping m JOIN pg_catalog.pg_foreign_server s ON s.oid = m.umserver ORDER BY m.oid",
        options("m.umoptions")
    );
    let mut all = Vec::new();
    for sql in [wrappers, servers, mappings] {
        all.extend(reader.entries(Section::Before, &sql)?);
    }
    Ok(all)
}
