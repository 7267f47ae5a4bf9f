//! The completions of Tab: key words, relations, columns, functions, backslash commands, files.

use std::collections::BTreeSet;

use crate::Result;
use crate::commands;
use melba_client::Connection;

/// The names of a database, for completion.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub relations: Vec<String>,
    /// With their relations.
    pub columns: Vec<(String, String)>,
    pub functions: Vec<String>,
    pub schemas: Vec<String>,
    pub databases: Vec<String>,
    pub roles: Vec<String>,
    pub settings: Vec<String>,
}

/// A database may have very many names.
const NAMES_MAX: usize = 20_000;

impl Names {
    /// # Errors
    /// The server's.
    pub fn of(connection: &mut Connection) -> Result<Names> {
        let mut list = |sql: &str| -> Result<Vec<Vec<Option<String>>>> { connection.rows(&format!("{sql} LIMIT {NAMES_MAX}")) };
        let one = |rows: Vec<Vec<Option<String>>>| rows.into_iter().filter_map(|mut row| row.pop().flatten()).collect();
        let relations = "SELECT CASE WHEN pg_catalog.pg_table_is_visible(c.oid) THEN pg_catalog.quote_ident(c.relname) \
             ELSE pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname) END \
             FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f', 'S') \
             AND n.nspname NOT IN ('pg_toast') ORDER BY n.nspname IN ('pg_catalog', 'information_schema'), 1";
        let columns = "SELECT pg_catalog.quote_ident(c.relname), pg_catalog.quote_ident(a.attname) FROM pg_catalog.pg_attribute a \
             JOIN pg_catalog.pg_class c ON c.oid = a.attrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v', 'm', 'p', 'f') AND n.nspname NOT IN ('pg_toast') \
             ORDER BY n.nspname IN ('pg_catalog', 'information_schema')";
        let functions = "SELECT DISTINCT pg_catalog.quote_ident(proname) FROM pg_catalog.pg_proc WHERE pg_catalog.pg_function_is_visible(oid) \
             AND proname !~ '(_in|_out|_recv|_send|sel|cmp|handler)$' ORDER BY 1";
        let pairs = |rows: Vec<Vec<Option<String>>>| {
            let pair = |row: Vec<Option<String>>| match <[Option<String>; 2]>::try_from(row) {
                Ok([Some(relation), Some(column)]) => Some((relation, column)),
                _ => None,
            };
            rows.into_iter().filter_map(pair).collect()
        };
        Ok(Names {
            relations: one(list(relations)?),
            columns: pairs(list(columns)?),
            functions: one(list(functions)?),
            schemas: one(list("SELECT pg_catalog.quote_ident(nspname) FROM pg_catalog.pg_namespace ORDER BY 1")?),
            databases: one(list(
                "SELECT pg_catalog.quote_ident(datname) FROM pg_catalog.pg_database WHERE datallowconn ORDER BY 1",
            )?),
            roles: one(list(
                "SELECT pg_catalog.quote_ident(rolname) FROM pg_catalog.pg_roles WHERE rolname !~ '^pg_' ORDER BY 1",
            )?),
            settings: one(list("SELECT name FROM pg_catalog.pg_settings ORDER BY 1")?),
        })
    }
}

/// Words that begin statements.
const STATEMENTS: &str = "ALTER ANALYZE BEGIN CALL CHECKPOINT COMMENT COMMIT COPY CREATE DELETE DO DROP EXECUTE EXPLAIN FETCH GRANT INSERT LISTEN \
     LOCK MERGE NOTIFY PREPARE REFRESH REINDEX RELEASE RESET REVOKE ROLLBACK SAVEPOINT SELECT SET SHOW START TABLE TRUNCATE UPDATE VACUUM VALUES WITH";
/// Others, of queries and definitions.
const WORDS: &str = "ADD ALL ALTER AND ANALYZE ANY AS ASC BETWEEN BIGINT BOOLEAN BY CASCADE CASE CAST CHECK COALESCE COLUMN CONCURRENTLY CONFLICT \
     CONSTRAINT CREATE CROSS CURRENT_DATE CURRENT_TIMESTAMP DATABASE DATE DEFAULT DELETE DESC DISTINCT DO DOUBLE PRECISION DROP ELSE END EXCEPT EXISTS EXPLAIN \
     EXTENSION FALSE FETCH FILTER FIRST FOLLOWING FOR FOREIGN FROM FULL FUNCTION GENERATED GROUP HAVING IDENTITY IF ILIKE IN INDEX INNER INSERT INTEGER INTERSECT INTERVAL \
     INTO IS JOIN JSONB KEY LAST LATERAL LEFT LIKE LIMIT MATERIALIZED NATURAL NOT NOTHING NULL NULLS NUMERIC OFFSET ON OR ORDER OUTER OVER OWNER PARTITION PRECEDING \
     PRIMARY PROCEDURE RECURSIVE REFERENCES RENAME REPLACE RETURNING RETURNS RIGHT ROLE ROWS SCHEMA SELECT SEQUENCE SET SIMILAR SOME TABLE TEMPORARY TEXT THEN \
     TIMESTAMPTZ TO TRIGGER TRUE UNION UNIQUE UPDATE USING UUID VALUES VIEW WHEN WHERE WINDOW WITH";

/// Where the typed word begins, and its completions; `before` is all text before the cursor.
pub fn complete(names: &Names, before: &str) -> (usize, Vec<String>) {
    let line = &before[before.rfind('\n').map_or(0, |end| end + 1)..];
    if let Some(typed) = line.trim_start().strip_prefix('\\') {
        return (before.len() - typed.len() - 1, of_command(names, typed, before));
    }
    let start = before
        .rfind(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '"' | '$')))
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    (start, of_statement(names, &before[..start], &before[start..]))
}

fn of_statement(names: &Names, before: &str, typed: &str) -> Vec<String> {
    let words: Vec<String> = before
        .rsplit(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|w| !w.is_empty())
        .map(str::to_uppercase)
        .take(2)
        .collect();
    let last = words.first().map_or("", String::as_str);
    if let Some((relation, column)) = typed.rsplit_once('.') {
        let of_relation = names.columns.iter().filter(|(of, _)| of == relation).map(|(_, name)| format!("{relation}.{name}"));
        let qualified = names.relations.iter().filter(|name| name.contains('.')).cloned();
        let typed = format!("{relation}.{column}");
        return beginning(of_relation.chain(qualified), &typed);
    }
    match last {
        "" => beginning(STATEMENTS.split_whitespace().map(str::to_owned), typed),
        "FROM" | "JOIN" | "INTO" | "UPDATE" | "TABLE" | "TRUNCATE" | "COPY" | "VIEW" | "ANALYZE" | "VACUUM" | "REFERENCES" => {
            beginning(names.relations.iter().chain(&names.schemas).cloned(), typed)
        }
        "DATABASE" => beginning(names.databases.iter().cloned(), typed),
        "ROLE" | "USER" | "OWNER" => beginning(names.roles.iter().cloned(), typed),
        "SCHEMA" => beginning(names.schemas.iter().cloned(), typed),
        "SET" | "SHOW" | "RESET" if words.len() == 1 => beginning(names.settings.iter().cloned(), typed),
        _ if typed.is_empty() => Vec::new(),
        _ => {
            let words = STATEMENTS.split_whitespace().chain(WORDS.split_whitespace());
            let columns = names.columns.iter().map(|(_, name)| name);
            let of_database = columns.chain(&names.relations).chain(&names.functions).cloned();
            beginning(words.map(str::to_owned).chain(of_database), typed)
        }
    }
}

/// `typed`: without the backslash.
fn of_command(names: &Names, typed: &str, before: &str) -> Vec<String> {
    let Some((command, argument)) = typed.split_once(' ') else {
        return beginning(commands::names().map(|name| format!("\\{name}")), &format!("\\{typed}"));
    };
    let of = |names: &mut dyn Iterator<Item = String>| -> Vec<String> {
        beginning(names, argument.trim_start()).into_iter().map(|name| format!("\\{command} {name}")).collect()
    };
    // The first argument only.
    if argument.trim_start().contains(' ') || before.ends_with("  ") {
        return Vec::new();
    }
    match command.trim_end_matches(['+', 'S']) {
        "c" | "connect" => of(&mut names.databases.iter().cloned()),
        "i" | "ir" | "o" | "include" | "out" => of(&mut files(argument.trim_start()).into_iter()),
        "df" | "sf" => of(&mut names.functions.iter().cloned()),
        "dn" => of(&mut names.schemas.iter().cloned()),
        "du" | "dg" | "password" => of(&mut names.roles.iter().cloned()),
        "x" | "timing" | "t" => of(&mut ["on", "off"].into_iter().map(str::to_owned)),
        "format" => of(&mut crate::format::Format::NAMES.split(", ").map(str::to_owned)),
        name if name.starts_with('d') || matches!(name, "copy" | "sv" | "z") => of(&mut names.relations.iter().cloned()),
        _ => Vec::new(),
    }
}

fn files(typed: &str) -> Vec<String> {
    let folder = typed.rfind('/').map_or("", |end| &typed[..=end]);
    let Ok(entries) = std::fs::read_dir(if folder.is_empty() { "." } else { folder }) else { return Vec::new() };
    let path = |entry: std::fs::DirEntry| {
        let end = if entry.path().is_dir() { "/" } else { "" };
        Some(format!("{folder}{}{end}", entry.file_name().to_str()?))
    };
    entries.filter_map(|entry| path(entry.ok()?)).filter(|path| !path.contains(' ')).collect()
}

/// Candidates that begin with the typed text, in any case, each once. Key words follow the case that is typed.
fn beginning(candidates: impl IntoIterator<Item = String>, typed: &str) -> Vec<String> {
    let lower = typed.to_lowercase();
    let is_lower = typed.chars().any(char::is_lowercase);
    let begins = candidates.into_iter().filter(|name| name.to_lowercase().starts_with(&lower));
    let cased =
        |name: String| if is_lower && name.chars().all(|c| c.is_uppercase() || c == '_') { name.to_lowercase() } else { name };
    begins.map(cased).collect::<BTreeSet<String>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(before: &str) -> (usize, Vec<String>) {
        let names = Names {
            relations: ["orders", "order_lines", "s.t"].map(str::to_owned).to_vec(),
            columns: [("orders", "id"), ("orders", "item")].map(|(r, c)| (r.to_owned(), c.to_owned())).to_vec(),
            functions: vec!["ordinality".to_owned()],
            databases: vec!["shop".to_owned()],
            ..Names::default()
        };
        complete(&names, before)
    }

    #[test]
    fn the_previous_word_decides_the_completions() {
        assert_eq!(completed("sel"), (0, vec!["select".to_owned()]));
        assert_eq!(completed("select * from ord"), (14, ["order_lines", "orders"].map(str::to_owned).to_vec()));
        assert_eq!(completed("select orders.i"), (7, ["orders.id", "orders.item"].map(str::to_owned).to_vec()));
        assert_eq!(completed("SELECT ORDER"), (7, ["ORDER", "order_lines", "orders"].map(str::to_owned).to_vec()));
        assert_eq!(completed("select 1\nfrom s."), (14, vec!["s.t".to_owned()]));
        assert_eq!(completed("\\c "), (0, vec!["\\c shop".to_owned()]));
        assert_eq!(completed("\\d order"), (0, ["\\d order_lines", "\\d orders"].map(str::to_owned).to_vec()));
        assert!(completed("\\tim").1.contains(&"\\timing".to_owned()));
    }
}
