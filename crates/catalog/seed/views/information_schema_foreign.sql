-- information_schema: foreign data. A section a view; see src/views.rs, which casts the columns to the schema's domains.

-- view _pg_foreign_data_wrappers
SELECT w.oid, w.fdwowner, w.fdwoptions, current_database() AS foreign_data_wrapper_catalog, w.fdwname AS foreign_data_wrapper_name,
    r.rolname AS authorization_identifier, 'c' AS foreign_data_wrapper_language
FROM pg_foreign_data_wrapper w JOIN pg_authid r ON r.oid = w.fdwowner
WHERE pg_has_role(w.fdwowner, 'USAGE') OR has_foreign_data_wrapper_privilege(w.oid, 'USAGE')

-- view _pg_foreign_servers
SELECT s.oid, s.srvoptions, current_database() AS foreign_server_catalog, s.srvname AS foreign_server_name,
    current_database() AS foreign_data_wrapper_catalog, w.fdwname AS foreign_data_wrapper_name, s.srvtype AS foreign_server_type,
    s.srvversion AS foreign_server_version, r.rolname AS authorization_identifier
FROM pg_foreign_server s
    JOIN pg_foreign_data_wrapper w ON w.oid = s.srvfdw
    JOIN pg_authid r ON r.oid = s.srvowner
WHERE pg_has_role(s.srvowner, 'USAGE') OR has_server_privilege(s.oid, 'USAGE')

-- view _pg_foreign_tables
SELECT current_database() AS foreign_table_catalog, n.nspname AS foreign_table_schema, c.relname AS foreign_table_name, t.ftoptions,
    current_database() AS foreign_server_catalog, s.srvname AS foreign_server_name, r.rolname AS authorization_identifier
FROM pg_foreign_table t
    JOIN pg_class c ON c.oid = t.ftrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_foreign_server s ON s.oid = t.ftserver
    JOIN pg_authid r ON r.oid = c.relowner
WHERE pg_has_role(c.relowner, 'USAGE')
    OR has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
    OR has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES')

-- view _pg_foreign_table_columns
SELECT n.nspname, c.relname, a.attname, a.attfdwoptions
FROM pg_foreign_table t
    JOIN pg_class c ON c.oid = t.ftrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE pg_has_role(c.relowner, 'USAGE') OR has_column_privilege(c.oid, a.attnum, 'SELECT, INSERT, UPDATE, REFERENCES')

-- view _pg_user_mappings
SELECT m.oid, m.umoptions, m.umuser, coalesce(r.rolname, 'PUBLIC') AS authorization_identifier, s.foreign_server_catalog,
    s.foreign_server_name, s.authorization_identifier AS srvowner
FROM pg_user_mapping m
    JOIN information_schema._pg_foreign_servers s ON s.oid = m.umserver
    LEFT JOIN pg_authid r ON r.oid = m.umuser

-- view foreign_data_wrappers
SELECT foreign_data_wrapper_catalog, foreign_data_wrapper_name, authorization_identifier, NULL AS library_name,
    foreign_data_wrapper_language
FROM information_schema._pg_foreign_data_wrappers

-- view foreign_data_wrapper_options
SELECT w.foreign_data_wrapper_catalog, w.foreign_data_wrapper_name, o.option_name, o.option_value
FROM information_schema._pg_foreign_data_wrappers w, pg_options_to_table(w.fdwoptions) o

-- view foreign_servers
SELECT foreign_server_catalog, foreign_server_name, foreign_data_wrapper_catalog, foreign_data_wrapper_name, foreign_server_type,
    foreign_server_version, authorization_identifier
FROM information_schema._pg_foreign_servers

-- view foreign_server_options
SELECT s.foreign_server_catalog, s.foreign_server_name, o.option_name, o.option_value
FROM information_schema._pg_foreign_servers s, pg_options_to_table(s.srvoptions) o

-- view foreign_tables
SELECT foreign_table_catalog, foreign_table_schema, foreign_table_name, foreign_server_catalog, foreign_server_name
FROM information_schema._pg_foreign_tables

-- view foreign_table_options
SELECT t.foreign_table_catalog, t.foreign_table_schema, t.foreign_table_name, o.option_name, o.option_value
FROM information_schema._pg_foreign_tables t, pg_options_to_table(t.ftoptions) o

-- view column_options
SELECT current_database() AS table_catalog, c.nspname AS table_schema, c.relname AS table_name, c.attname AS column_name,
    o.option_name, o.option_value
FROM information_schema._pg_foreign_table_columns c, pg_options_to_table(c.attfdwoptions) o

-- view user_mappings
SELECT authorization_identifier, foreign_server_catalog, foreign_server_name
FROM information_schema._pg_user_mappings

-- view user_mapping_options
SELECT m.authorization_identifier, m.foreign_server_catalog, m.foreign_server_name, o.option_name,
    CASE WHEN m.umuser <> 0 AND m.authorization_identifier = current_user
        OR m.umuser = 0 AND pg_has_role(m.srvowner::name, 'USAGE')
        OR (SELECT rolsuper FROM pg_authid WHERE rolname = current_user) THEN o.option_value END AS option_value
FROM information_schema._pg_user_mappings m, pg_options_to_table(m.umoptions) o
