//! log_line_prefix: the prefix of each line of the stderr format.

use std::iter::Peekable;
use std::str::Chars;

use crate::LogRecord;

/// Printed for a name that is not known yet.
const UNKNOWN: &str = "[unknown]";

/// Appends the prefix of one more line of the record's source.
pub(crate) fn append(out: &mut String, prefix: &str, record: &LogRecord<'_>) {
    let line = record.source.next_line();
    let mut chars = prefix.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if chars.peek() == Some(&'%') {
            chars.next();
            out.push('%');
            continue;
        }
        let Some(padding) = padding(&mut chars) else { return };
        let Some(escape) = chars.next() else { return };
        if escape == 'q' {
            if record.source.client.is_none() {
                return;
            }
            continue;
        }
        if let Some(text) = value(escape, record, line) {
            pad(out, &text, padding);
        }
    }
}

/// The number behind `%`; negative: on the right. `None`: the prefix ends in it.
fn padding(chars: &mut Peekable<Chars<'_>>) -> Option<i32> {
    let sign = if chars.next_if_eq(&'-').is_some() { -1 } else { 1 };
    let mut width = 0i32;
    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
        chars.next();
        width = width.saturating_mul(10).saturating_add(digit as i32);
    }
    chars.peek().map(|_| sign * width)
}

fn pad(out: &mut String, text: &str, padding: i32) {
    let width = padding.unsigned_abs() as usize;
    let missing = width.saturating_sub(text.len());
    let spaces = |out: &mut String| out.extend(std::iter::repeat_n(' ', missing));
    if padding > 0 {
        spaces(out);
    }
    out.push_str(text);
    if padding < 0 {
        spaces(out);
    }
}

/// The value of an escape; empty for values that only sessions have, `None` for a letter that is no escape.
fn value(escape: char, record: &LogRecord<'_>, line: u64) -> Option<String> {
    let (source, entry) = (record.source, record.entry);
    let client = source.client.as_ref();
    let known = |text: &str| if text.is_empty() { UNKNOWN.to_owned() } else { text.to_owned() };
    let login = || client.map(|client| client.login());
    Some(match escape {
        'a' => client.map_or_else(String::new, |client| known(&client.application_name())),
        'u' => login().map_or_else(String::new, |login| known(login.as_ref().map_or("", |(user, _)| user))),
        'd' => login().map_or_else(String::new, |login| known(login.as_ref().map_or("", |(_, database)| database))),
        'b' => source.kind.to_owned(),
        'p' => source.pid.to_string(),
        // No statement has workers that are separate processes.
        'P' => String::new(),
        'c' => source.session_id(),
        'l' => line.to_string(),
        'm' => record.stamp.milliseconds(),
        't' => record.stamp.seconds(),
        'n' => record.stamp.epoch(),
        's' => record.started.seconds(),
        'i' => client.map_or_else(String::new, |_| entry.command.to_owned()),
        'L' => client.map_or_else(|| "[none]".to_owned(), |client| client.local_host.clone()),
        'h' => client.map_or_else(String::new, |client| client.host.clone()),
        'r' => client.map_or_else(String::new, |client| match client.port {
            Some(port) => format!("{}({port})", client.host),
            None => client.host.clone(),
        }),
        'v' => virtual_id(record).unwrap_or_default(),
        'x' => entry.transaction.xid.to_string(),
        'e' => entry.sqlstate.as_str().to_owned(),
        'Q' => entry.query_id.to_string(),
        _ => return None,
    })
}

/// As pg_locks.virtualtransaction has it.
pub(crate) fn virtual_id(record: &LogRecord<'_>) -> Option<String> {
    record.entry.transaction.virtual_id.map(|(process, count)| format!("{process}/{count}"))
}
