//! `\d` and its variants: lists of a database's objects, and relations with all their parts.

mod lists;
mod pattern;
mod relation;
mod which;

use pattern::Pattern;
use which::{Listing, Which, parse};

use crate::Result;
use crate::format::{Printer, Style};
use crate::output::Results;
use crate::progress::Running;
use crate::shell::Shell;

/// Kinds of relations that letters after `\d` stand for.
const RELATION_LETTERS: &str = "tvmsiE";

pub fn is_one(name: &str) -> bool {
    let name = parse(name).name;
    is_relations(name) || matches!(name, "l" | "z" | "df" | "dT" | "dn" | "du" | "dg" | "dp" | "dx")
}

fn is_relations(name: &str) -> bool {
    name.strip_prefix('d').is_some_and(|letters| letters.chars().all(|c| RELATION_LETTERS.contains(c)))
}

/// # Errors
/// The server's, or that there is nothing of this name.
pub fn describe(shell: &mut Shell, name: &str, rest: &str) -> Result<()> {
    let which = parse(name);
    let text = rest.trim().trim_end_matches(';').trim_end();
    let pattern = Pattern::parse(text);
    if which.name == "d" && !text.is_empty() {
        return describe_relations(shell, &pattern, text, &which);
    }
    let (title, sql) = match which.name {
        "df" => ("List of functions".to_owned(), lists::functions(&pattern, &which)),
        "dT" => ("List of data types".to_owned(), lists::types(&pattern, &which)),
        "dn" => ("List of schemas".to_owned(), lists::schemas(&pattern, &which)),
        "du" | "dg" => ("List of roles".to_owned(), lists::roles(&pattern, &which)),
        "dp" | "z" => ("Access privileges".to_owned(), lists::privileges(&pattern, &which)),
        "dx" => ("List of installed extensions".to_owned(), lists::extensions(&pattern)),
        "l" => ("List of databases".to_owned(), lists::databases(&pattern, &which)),
        letters => (lists::relations_title(&letters[1..]), lists::relations(&letters[1..], &pattern, &which)),
    };
    let (columns, rows) = shell.table(&sql)?;
    if rows.is_empty() && is_relations(which.name) {
        let what = title.strip_prefix("List of ").unwrap_or("relations");
        return Err(match text {
            "" => format!("Did not find any {what}."),
            text => format!("Did not find any {what} named \"{text}\"."),
        });
    }
    show(shell, Listing { title, columns, rows, footers: None })
}

/// A relation, or all that a pattern matches.
fn describe_relations(shell: &mut Shell, pattern: &Pattern, text: &str, which: &Which) -> Result<()> {
    let sql = format!(
        "SELECT c.oid, n.nspname, c.relname, c.relkind, c.relpersistence FROM pg_catalog.pg_class c \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE {} ORDER BY 2, 3",
        pattern.condition("n.nspname", "c.relname", Some("pg_catalog.pg_table_is_visible(c.oid)"))
    );
    let (_, found) = shell.table(&sql)?;
    if found.is_empty() {
        return Err(format!("Did not find any relation named \"{text}\"."));
    }
    for row in found {
        let relation = relation::Relation::of(row).ok_or("the server's answer has no relation")?;
        let listing = relation::relation(shell, &relation, which.is_verbose)?;
        show(shell, listing)?;
    }
    Ok(())
}

pub fn show(shell: &mut Shell, listing: Listing) -> Result<()> {
    let Listing { title, columns, rows, footers } = listing;
    let running = Running::silent();
    shell.style.is_terminal = shell.output.is_terminal();
    shell.style.width = shell.output.width();
    let uses_pager = shell.uses_pager && shell.style.is_terminal;
    // An empty value is shown as empty here, whatever null is shown as.
    let style = Style { null: String::new(), ..shell.style.clone() };
    let mut printer = Printer::new(&style, columns).with_texts(title, footers);
    let mut results = Results::new(&mut shell.output, uses_pager, &running);
    let mut write = || {
        printer.begin(&mut results)?;
        for row in &rows {
            let values: Vec<Option<&[u8]>> = row.iter().map(|value| value.as_deref().map(str::as_bytes)).collect();
            printer.row(&values, &mut results)?;
        }
        printer.end(&mut results)
    };
    write().and_then(|()| results.finish()).or_else(|e| if crate::output::is_enough(&e) { Ok(()) } else { Err(e.to_string()) })
}
