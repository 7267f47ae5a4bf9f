//! Errors and notices of a server, in psql's format.

use std::io::ErrorKind;

use postgres::fallible_iterator::FallibleIterator as _;
use postgres_protocol::message::backend::ErrorFields;
use unicode_width::UnicodeWidthChar as _;

use crate::escape;

/// The shown part of a line with an error's position, in columns.
const EXCERPT_COLUMNS: usize = 60;

#[derive(Clone, Debug, Default)]
pub struct Report {
    pub severity: String,
    pub code: String,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    /// In the statement, in characters from 1.
    pub position: Option<usize>,
    /// In a query that the server ran on its own.
    internal: Option<(usize, String)>,
    pub context: Option<String>,
    /// The object of the error, and its origin.
    location: Vec<(&'static str, String)>,
}

/// Why there is no connection.
#[derive(Debug)]
pub enum Failure {
    /// The server's words.
    Refused(Box<Report>),
    Other(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Refused(report) => f.write_str(&report.full(None, false)),
            Failure::Other(text) => f.write_str(text),
        }
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Failure {
        Failure::Other(text)
    }
}

impl From<std::io::Error> for Failure {
    fn from(e: std::io::Error) -> Failure {
        Failure::Other(lost(&e))
    }
}

impl Report {
    pub(crate) fn of(mut fields: ErrorFields<'_>) -> Report {
        let mut report = Report::default();
        let (mut internal_position, mut internal_query) = (None, None);
        while let Ok(Some(field)) = fields.next() {
            let value = || String::from_utf8_lossy(field.value_bytes()).into_owned();
            match field.type_() {
                b'S' => report.severity = value(),
                b'C' => report.code = value(),
                b'M' => report.message = value(),
                b'D' => report.detail = Some(value()),
                b'H' => report.hint = Some(value()),
                b'P' => report.position = value().parse().ok(),
                b'p' => internal_position = value().parse().ok(),
                b'q' => internal_query = Some(value()),
                b'W' => report.context = Some(value()),
                b's' => report.location.push(("SCHEMA NAME", value())),
                b't' => report.location.push(("TABLE NAME", value())),
                b'c' => report.location.push(("COLUMN NAME", value())),
                b'd' => report.location.push(("DATATYPE NAME", value())),
                b'n' => report.location.push(("CONSTRAINT NAME", value())),
                _ => {}
            }
        }
        report.internal = internal_position.zip(internal_query);
        report
    }

    pub fn is_fatal(&self) -> bool {
        matches!(self.severity.as_str(), "FATAL" | "PANIC")
    }

    /// In one line.
    pub fn brief(&self) -> String {
        let detail = self.detail.as_ref().map_or_else(String::new, |detail| format!(" ({detail})"));
        escape::text(&format!("{}{detail}", self.message)).into_owned()
    }

    /// All of it, with the place in the statement that it belongs to, without the last end of line.
    pub fn full(&self, statement: Option<&str>, with_context: bool) -> String {
        let mut text = format!("{}:  {}", self.severity, self.message);
        let place = match (&self.internal, self.position, statement) {
            (Some((position, query)), ..) => excerpt(query, *position),
            (None, Some(position), Some(statement)) => excerpt(statement, position),
            _ => None,
        };
        let mut line = |title: &str, value: Option<&str>| {
            if let Some(value) = value {
                text.push_str(&format!("\n{title}{value}"));
            }
        };
        line("", place.as_deref());
        line("DETAIL:  ", self.detail.as_deref());
        line("HINT:  ", self.hint.as_deref());
        line("QUERY:  ", self.internal.as_ref().map(|(_, query)| query.as_str()));
        line("CONTEXT:  ", self.context.as_deref().filter(|_| with_context));
        escape::text(&text).into_owned()
    }
}

impl Report {
    /// With its code and all other fields.
    pub fn verbose(&self, statement: &str) -> String {
        let text = self.full(Some(statement), true);
        let head = format!("{}:  ", self.severity);
        let rest = text.strip_prefix(&head).unwrap_or(&text);
        let location =
            self.location.iter().map(|(name, value)| format!("\n{name}:  {}", escape::text(value))).collect::<String>();
        format!("{head}{}: {rest}{location}", self.code)
    }
}

/// Why there is no answer any more.
pub fn lost(e: &std::io::Error) -> String {
    match e.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            "the server closed the connection unexpectedly".to_owned()
        }
        _ => format!("the connection to the server is lost: {e}"),
    }
}

/// `LINE n: ...` and a mark below the character at a position.
fn excerpt(statement: &str, position: usize) -> Option<String> {
    let at = statement.char_indices().nth(position.checked_sub(1)?).map_or(statement.len(), |(at, _)| at);
    let start = statement[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = statement[at..].find('\n').map_or(statement.len(), |length| at + length);
    let number = statement[..start].matches('\n').count() + 1;
    // A tab takes one column here, so that the mark is where it belongs.
    let shown: Vec<char> = statement[start..end].trim_end_matches('\r').replace('\t', " ").chars().collect();
    let marked = statement[start..at].chars().count().min(shown.len());
    let width = |chars: &[char]| chars.iter().map(|c| c.width().unwrap_or(0)).sum::<usize>();
    let (mut first, mut last) = (0, shown.len());
    if width(&shown) > EXCERPT_COLUMNS {
        first = (0..=marked).find(|first| width(&shown[*first..marked]) <= EXCERPT_COLUMNS / 2).unwrap_or(marked);
        last = (marked..=shown.len()).rev().find(|last| width(&shown[first..*last]) <= EXCERPT_COLUMNS).unwrap_or(marked);
        // Remaining space is used for the beginning, when the end is fully shown.
        while last == shown.len() && first > 0 && width(&shown[first - 1..]) <= EXCERPT_COLUMNS {
            first -= 1;
        }
    }
    let dots = |is_cut: bool| if is_cut { "..." } else { "" };
    let head = format!("LINE {number}: {}", dots(first > 0));
    let body: String = shown[first..last].iter().collect();
    let mark = " ".repeat(head.len() + width(&shown[first..marked]));
    Some(format!("{head}{body}{}\n{mark}^", dots(last < shown.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_below_the_place() {
        assert_eq!(excerpt("select 1,\n  x from 漢字;", 13).as_deref(), Some("LINE 2:   x from 漢字;\n          ^"));
        assert_eq!(excerpt("select 漢, x", 11).as_deref(), Some("LINE 1: select 漢, x\n                   ^"));
        assert_eq!(excerpt("selec", 6).as_deref(), Some("LINE 1: selec\n             ^"));
        let long = format!("select {} from t", "a, ".repeat(50));
        let text = excerpt(&long, 100).expect("a place");
        let (line, mark) = text.split_once('\n').expect("two lines");
        assert_eq!(line.chars().nth(mark.len() - 1), long.chars().nth(99));
        assert!(line.starts_with("LINE 1: ...") && line.ends_with("..."), "{line}");
        assert_eq!(excerpt("x", 0), None);
    }

    #[test]
    fn reports_are_written_in_psqls_order() {
        let report = Report {
            severity: "ERROR".to_owned(),
            message: "no\x1b[2J".to_owned(),
            detail: Some("why".to_owned()),
            hint: Some("do".to_owned()),
            position: Some(1),
            context: Some("where".to_owned()),
            ..Report::default()
        };
        let full = "ERROR:  no\\x1B[2J\nLINE 1: x\n        ^\nDETAIL:  why\nHINT:  do\nCONTEXT:  where";
        assert_eq!(report.full(Some("x"), true), full);
    }
}
