//! Foreign data: wrappers, servers and user mappings. Foreign tables are dumped with the tables.

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

pub fn wrappers() -> String {
    format!(
        "SELECT 'w' || w.oid, 'FOREIGN DATA WRAPPER', NULL, w.fdwname, format('CREATE FOREIGN DATA WRAPPER %I%s%s%s;', w.fdwname,
            CASE w.fdwhandler WHEN 0 THEN '' ELSE ' HANDLER ' || w.fdwhandler::regproc END,
            CASE w.fdwvalidator WHEN 0 THEN '' ELSE ' VALIDATOR ' || w.fdwvalidator::regproc END, {})
         FROM pg_catalog.pg_foreign_data_wrapper w WHERE {OWN_WRAPPER} ORDER BY w.oid",
        options("w.fdwoptions")
    )
}

pub fn servers() -> String {
    format!(
        "SELECT 's' || s.oid, 'SERVER', NULL, s.srvname, format('CREATE SERVER %I%s%s FOREIGN DATA WRAPPER %I%s;', s.srvname,
            coalesce(' TYPE ' || quote_literal(s.srvtype), ''), coalesce(' VERSION ' || quote_literal(s.srvversion), ''), w.fdwname, {})
         FROM pg_catalog.pg_foreign_server s JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid = s.srvfdw ORDER BY s.oid",
        options("s.srvoptions")
    )
}

/// With the options that the role of the dump may see: not everybody may read pg_user_mapping.
pub fn mappings() -> String {
    format!(
        "SELECT 'USER MAPPING', NULL, m.srvname, format('CREATE USER MAPPING FOR %s SERVER %I%s;',
            CASE m.umuser WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(m.umuser)) END, m.srvname, {})
         FROM pg_catalog.pg_user_mappings m ORDER BY m.umid",
        options("m.umoptions")
    )
}
