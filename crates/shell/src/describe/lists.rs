//! The queries of lists, over PostgreSQL's catalogs.

use super::pattern::Pattern;
use super::which::Which;

/// Letter after `\d`, kinds of pg_class, and their names.
const KINDS: [(char, &str, &str); 6] = [
    ('t', "'r', 'p'", "tables"),
    ('v', "'v'", "views"),
    ('m', "'m'", "materialized views"),
    ('s', "'S'", "sequences"),
    ('i', "'i', 'I'", "indexes"),
    ('E', "'f'", "foreign tables"),
];

/// The kinds that `\d` alone lists.
const ALL: &str = "tvmsE";

pub fn relations_title(letters: &str) -> String {
    match KINDS.iter().find(|(letter, ..)| letters.len() == 1 && letters.starts_with(*letter)) {
        Some((.., words)) => format!("List of {words}"),
        None => "List of relations".to_owned(),
    }
}

const SYSTEM: &str = "n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_toast'";

/// Not those of the system, unless they are requested.
fn without_system<'a>(condition: &'a str, pattern: &Pattern, which: &Which) -> &'a str {
    if which.with_system || !pattern.is_empty() { "true" } else { condition }
}

fn when(is_verbose: bool, columns: &str) -> &str {
    if is_verbose { columns } else { "" }
}

pub fn relations(letters: &str, pattern: &Pattern, which: &Which) -> String {
    let letters = if letters.is_empty() { ALL } else { letters };
    let kinds: Vec<&str> = KINDS.iter().filter(|(letter, ..)| letters.contains(*letter)).map(|(_, kinds, _)| *kinds).collect();
    let has_indexes = letters.contains('i');
    let of_table = when(has_indexes, ", t.relname AS \"Table\"");
    let join = when(
        has_indexes,
        "LEFT JOIN pg_catalog.pg_index x ON x.indexrelid = c.oid LEFT JOIN pg_catalog.pg_class t ON t.oid = x.indrelid",
    );
    let more = when(
        which.is_verbose,
        ", CASE c.relpersistence WHEN 'p' THEN 'permanent' WHEN 't' THEN 'temporary' WHEN 'u' THEN 'unlogged' END AS \"Persistence\", \
         am.amname AS \"Access method\", pg_catalog.pg_size_pretty(pg_catalog.pg_table_size(c.oid)) AS \"Size\", \
         pg_catalog.obj_description(c.oid, 'pg_class') AS \"Description\"",
    );
    format!(
        "SELECT n.nspname AS \"Schema\", c.relname AS \"Name\", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' \
         WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' \
         WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index' END AS \"Type\", \
         pg_catalog.pg_get_userbyid(c.relowner) AS \"Owner\"{of_table}{more} \
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam {join} \
         WHERE c.relkind IN ({}) AND {} AND {} ORDER BY 1, 2",
        kinds.join(", "),
        without_system(SYSTEM, pattern, which),
        pattern.condition("n.nspname", "c.relname", Some("pg_catalog.pg_table_is_visible(c.oid)"))
    )
}

pub fn functions(pattern: &Pattern, which: &Which) -> String {
    let more = when(
        which.is_verbose,
        ", CASE p.provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END AS \"Volatility\", \
         CASE p.proparallel WHEN 's' THEN 'safe' WHEN 'r' THEN 'restricted' ELSE 'unsafe' END AS \"Parallel\", \
         pg_catalog.pg_get_userbyid(p.proowner) AS \"Owner\", CASE WHEN p.prosecdef THEN 'definer' ELSE 'invoker' END AS \"Security\", \
         l.lanname AS \"Language\", pg_catalog.obj_description(p.oid, 'pg_proc') AS \"Description\"",
    );
    format!(
        "SELECT n.nspname AS \"Schema\", p.proname AS \"Name\", pg_catalog.pg_get_function_result(p.oid) AS \"Result data type\", \
         pg_catalog.pg_get_function_arguments(p.oid) AS \"Argument data types\", \
         CASE p.prokind WHEN 'a' THEN 'agg' WHEN 'w' THEN 'window' WHEN 'p' THEN 'proc' ELSE CASE WHEN p.prorettype = 'pg_catalog.trigger'::pg_catalog.regtype \
         THEN 'trigger' ELSE 'func' END END AS \"Type\"{more} \
         FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace LEFT JOIN pg_catalog.pg_language l ON l.oid = p.prolang \
         WHERE {} AND {} ORDER BY 1, 2, 4",
        without_system(SYSTEM, pattern, which),
        pattern.condition("n.nspname", "p.proname", Some("pg_catalog.pg_function_is_visible(p.oid)"))
    )
}

pub fn types(pattern: &Pattern, which: &Which) -> String {
    let more = when(
        which.is_verbose,
        ", (SELECT pg_catalog.string_agg(e.enumlabel, E'\\n' ORDER BY e.enumsortorder) FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid) AS \"Elements\", \
         pg_catalog.pg_get_userbyid(t.typowner) AS \"Owner\"",
    );
    format!(
        "SELECT n.nspname AS \"Schema\", pg_catalog.format_type(t.oid, NULL) AS \"Name\"{more}, \
         pg_catalog.obj_description(t.oid, 'pg_type') AS \"Description\" \
         FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace LEFT JOIN pg_catalog.pg_class c ON c.oid = t.typrelid \
         WHERE (t.typrelid = 0 OR c.relkind = 'c') AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_type e WHERE e.oid = t.typelem AND e.typarray = t.oid) \
         AND {} AND {} ORDER BY 1, 2",
        without_system(SYSTEM, pattern, which),
        pattern.condition("n.nspname", "t.typname", Some("pg_catalog.pg_type_is_visible(t.oid)"))
    )
}

pub fn schemas(pattern: &Pattern, which: &Which) -> String {
    let more = when(
        which.is_verbose,
        ", pg_catalog.array_to_string(n.nspacl, E'\\n') AS \"Access privileges\", pg_catalog.obj_description(n.oid, 'pg_namespace') AS \"Description\"",
    );
    format!(
        "SELECT n.nspname AS \"Name\", pg_catalog.pg_get_userbyid(n.nspowner) AS \"Owner\"{more} FROM pg_catalog.pg_namespace n \
         WHERE {} AND {} ORDER BY 1",
        without_system("n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'", pattern, which),
        pattern.condition("n.nspname", "n.nspname", None)
    )
}

pub fn roles(pattern: &Pattern, which: &Which) -> String {
    let more = when(which.is_verbose, ", pg_catalog.shobj_description(r.oid, 'pg_authid') AS \"Description\"");
    format!(
        "SELECT r.rolname AS \"Role name\", pg_catalog.concat_ws(', ', CASE WHEN r.rolsuper THEN 'Superuser' END, CASE WHEN NOT r.rolinherit THEN 'No inheritance' END, \
         CASE WHEN r.rolcreaterole THEN 'Create role' END, CASE WHEN r.rolcreatedb THEN 'Create DB' END, CASE WHEN NOT r.rolcanlogin THEN 'Cannot login' END, \
         CASE WHEN r.rolreplication THEN 'Replication' END, CASE WHEN r.rolbypassrls THEN 'Bypass RLS' END) \
         || CASE WHEN r.rolconnlimit = 0 THEN E'\\nNo connections' WHEN r.rolconnlimit = 1 THEN E'\\n1 connection' \
         WHEN r.rolconnlimit > 1 THEN E'\\n' || r.rolconnlimit || ' connections' ELSE '' END \
         || COALESCE(E'\\nPassword valid until ' || r.rolvaliduntil, '') AS \"Attributes\"{more} \
         FROM pg_catalog.pg_roles r WHERE {} AND {} ORDER BY 1",
        without_system("r.rolname !~ '^pg_'", pattern, which),
        pattern.condition("r.rolname", "r.rolname", None)
    )
}

pub fn privileges(pattern: &Pattern, which: &Which) -> String {
    format!(
        "SELECT n.nspname AS \"Schema\", c.relname AS \"Name\", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' \
         WHEN 'S' THEN 'sequence' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' END AS \"Type\", \
         pg_catalog.array_to_string(c.relacl, E'\\n') AS \"Access privileges\", \
         (SELECT pg_catalog.string_agg(a.attname || E':\\n  ' || pg_catalog.array_to_string(a.attacl, E'\\n  '), E'\\n' ORDER BY a.attnum) \
         FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND NOT a.attisdropped AND a.attacl IS NOT NULL) AS \"Column privileges\", \
         (SELECT pg_catalog.string_agg(p.polname, E'\\n' ORDER BY p.polname) FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid) AS \"Policies\" \
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relkind IN ('r', 'v', 'm', 'S', 'f', 'p') AND {} AND {} ORDER BY 1, 2",
        without_system(SYSTEM, pattern, which),
        pattern.condition("n.nspname", "c.relname", Some("pg_catalog.pg_table_is_visible(c.oid)"))
    )
}

pub fn extensions(pattern: &Pattern) -> String {
    format!(
        "SELECT e.extname AS \"Name\", e.extversion AS \"Version\", a.default_version AS \"Default version\", n.nspname AS \"Schema\", \
         pg_catalog.obj_description(e.oid, 'pg_extension') AS \"Description\" FROM pg_catalog.pg_extension e \
         JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace LEFT JOIN pg_catalog.pg_available_extensions() a ON a.name = e.extname \
         WHERE {} ORDER BY 1",
        pattern.condition("n.nspname", "e.extname", None)
    )
}

pub fn databases(pattern: &Pattern, which: &Which) -> String {
    let more = when(
        which.is_verbose,
        ", CASE WHEN pg_catalog.has_database_privilege(d.oid, 'CONNECT') THEN pg_catalog.pg_size_pretty(pg_catalog.pg_database_size(d.oid)) \
         ELSE 'No Access' END AS \"Size\", pg_catalog.shobj_description(d.oid, 'pg_database') AS \"Description\"",
    );
    format!(
        "SELECT d.datname AS \"Name\", pg_catalog.pg_get_userbyid(d.datdba) AS \"Owner\", pg_catalog.pg_encoding_to_char(d.encoding) AS \"Encoding\", \
         d.datcollate AS \"Collate\", d.datctype AS \"Ctype\", pg_catalog.array_to_string(d.datacl, E'\\n') AS \"Access privileges\"{more} \
         FROM pg_catalog.pg_database d WHERE {} ORDER BY 1",
        pattern.condition("d.datname", "d.datname", None)
    )
}
