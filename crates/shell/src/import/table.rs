//! The table that is created from files, or to which they are added.

use super::source::{Column, Source};
use crate::Result;
use crate::scan::{identifier, literal};
use melba_client::Connection;
use melba_files::{Form, names};

/// A table with the files that are loaded into it.
pub struct ImportTable {
    /// In SQL.
    pub name: String,
    pub columns: Vec<TableColumn>,
    pub sources: Vec<Source>,
}

pub struct TableColumn {
    pub name: String,
    pub type_name: String,
}

impl ImportTable {
    /// A table with all columns of its files.
    ///
    /// # Errors
    /// A file is wrong, or a type is given for a column that none has.
    pub fn of(
        name: String,
        mut sources: Vec<Source>,
        types: &[(String, String)],
        read: &mut dyn FnMut(u64),
    ) -> Result<ImportTable> {
        let mut columns: Vec<Column> = Vec::new();
        for source in &mut sources {
            for column in source.survey(read)? {
                match columns.iter_mut().find(|known| known.name == column.name) {
                    Some(known) => known.guess.merge(column.guess),
                    None => columns.push(column),
                }
            }
        }
        if let Some((unknown, _)) = types.iter().find(|(name, _)| columns.iter().all(|column| column.name != *name)) {
            let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            return Err(format!("--types {unknown}: there is no such column in {name}, which has {}", names.join(", ")));
        }
        let typed = |column: Column| {
            let given = types.iter().find(|(name, _)| *name == column.name).map(|(_, given)| given.clone());
            let given = given.or(column.type_name);
            TableColumn { type_name: given.unwrap_or_else(|| column.guess.type_name().to_owned()), name: column.name }
        };
        let columns: Vec<TableColumn> = columns.into_iter().map(typed).collect();
        if columns.is_empty() {
            return Err(format!("{name}: there are no columns"));
        }
        Ok(ImportTable { name, columns, sources })
    }

    pub fn create_statement(&self) -> String {
        let columns: Vec<String> =
            self.columns.iter().map(|c| format!("    {} {}", quoted_if_needed(&c.name), c.type_name)).collect();
        format!("CREATE TABLE {} (\n{}\n)", self.name, columns.join(",\n"))
    }

    /// Takes the types of an existing table.
    ///
    /// # Errors
    /// There is no such table, or it lacks a column.
    pub fn adapt_to_existing(&mut self, connection: &mut Connection) -> Result<()> {
        let sql = format!(
            "SELECT attname, pg_catalog.format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute \
             WHERE attrelid = {}::pg_catalog.regclass AND attnum > 0 AND NOT attisdropped",
            literal(&self.name)
        );
        let existing: Vec<(String, String)> = connection
            .rows(&sql)?
            .into_iter()
            .filter_map(|row| match <[Option<String>; 2]>::try_from(row) {
                Ok([Some(name), Some(type_name)]) => Some((name, type_name)),
                _ => None,
            })
            .collect();
        for column in &mut self.columns {
            // A name of other case is meant, too.
            let found = existing.iter().find(|(name, _)| *name == column.name);
            let found = found.or_else(|| existing.iter().find(|(name, _)| names::name(name) == column.name));
            let Some((name, type_name)) = found else {
                return Err(format!("column \"{}\" of relation {} does not exist", column.name, self.name));
            };
            name.clone_into(&mut column.name);
            type_name.clone_into(&mut column.type_name);
        }
        Ok(())
    }

    /// A file's columns by their titles, as the table takes them; and the statement that copies them.
    pub fn copy_statement(&self, source: &Source) -> (Vec<(String, Form)>, String) {
        let of_table = |name: &str| self.columns.iter().find(|column| column.name == name || names::name(&column.name) == name);
        let mut forms = Vec::new();
        let mut names = Vec::new();
        for (title, name) in &source.titles {
            let Some(column) = of_table(name) else { continue };
            forms.push((title.clone(), Form::of(&column.type_name)));
            names.push(identifier(&column.name));
        }
        let format = if source.is_parquet() { " (FORMAT parquet)" } else { "" };
        (forms, format!("COPY {} ({}) FROM STDIN{format}", self.name, names.join(", ")))
    }
}

/// A table's name of the command line, with a schema perhaps, as SQL has it.
pub fn table_name(text: &str) -> String {
    if text.contains('"') {
        return text.to_owned();
    }
    text.split('.').map(quoted_if_needed).collect::<Vec<_>>().join(".")
}

/// PostgreSQL's key words that are no names of columns or tables.
const RESERVED: &str = " all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation column \
     concurrently constraint create cross current_catalog current_date current_role current_schema current_time current_timestamp current_user default \
     deferrable desc distinct do else end except false fetch for foreign freeze from full grant group having ilike in initially inner intersect into is \
     isnull join lateral leading left like limit localtime localtimestamp natural not notnull null offset on only or order outer overlaps placing primary \
     references returning right select session_user similar some symmetric system_user table tablesample then to trailing true union unique user using \
     variadic verbose when where window with ";

fn quoted_if_needed(name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && !RESERVED.contains(&format!(" {name} "));
    if is_plain { name.to_owned() } else { identifier(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_sql_wants_it() {
        assert_eq!(
            ["a_1", "order", "Größe", "a b", "1a"].map(quoted_if_needed),
            ["a_1", "\"order\"", "\"Größe\"", "\"a b\"", "\"1a\""]
        );
        assert_eq!(table_name("s.Sales"), "s.\"Sales\"");
        assert_eq!(table_name("\"a.b\".c"), "\"a.b\".c");
    }
}
