//! The human-readable format: a line for each part of a message, each with the prefix.

use crate::LogRecord;
use crate::policy::Verbosity;
use crate::prefix;

/// The lines of a message, as PostgreSQL has them.
pub(crate) fn lines(record: &LogRecord<'_>, prefix: &str) -> String {
    let entry = record.entry;
    let mut out = String::new();
    prefix::append(&mut out, prefix, record);
    out.push_str(entry.level.name());
    out.push_str(":  ");
    if record.verbosity == Verbosity::Verbose {
        out.push_str(entry.sqlstate.as_str());
        out.push_str(": ");
    }
    indented(&mut out, &entry.message);
    if let Some(position) = entry.position.or(entry.internal.as_ref().map(|(position, _)| *position)) {
        out.push_str(&format!(" at character {position}"));
    }
    out.push('\n');
    let mut part = |name: &str, text: Option<&str>| {
        if let Some(text) = text {
            prefix::append(&mut out, prefix, record);
            out.push_str(name);
            out.push_str(":  ");
            indented(&mut out, text);
            out.push('\n');
        }
    };
    if record.verbosity >= Verbosity::Default {
        part("DETAIL", entry.detail.as_deref());
        part("HINT", entry.hint.as_deref());
        part("QUERY", entry.internal.as_ref().map(|(_, query)| &**query));
        part("CONTEXT", entry.context.as_deref());
    }
    if record.verbosity == Verbosity::Verbose
        && let Some(origin) = &entry.origin
    {
        part("LOCATION", Some(&format!("{}, {}:{}", origin.routine, origin.file, origin.line)));
    }
    part("STATEMENT", entry.statement.as_deref());
    out
}

/// Lines behind the first begin with a tab, so that none is taken for another message.
fn indented(out: &mut String, text: &str) {
    for (i, line) in text.split('\n').enumerate() {
        if i > 0 {
            out.push_str("\n\t");
        }
        out.push_str(line);
    }
}
