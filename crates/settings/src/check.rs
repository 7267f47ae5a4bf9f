//! Settings whose text has a canonical form: DateStyle, TimeZone, client_encoding and so on, converted to the form that SHOW prints.

use jiff::tz::TimeZone;
use melba_encoding::Encoding;
use melba_fmgr::{DateOrder, DateStyle};
use melba_types::datetime::IntervalStyle;
use melba_types::timezone::Zone;
use melba_types::{Result, err, interval};

use crate::identifiers::cut_to_name;
use crate::table::Definition;
use crate::value::{Value, invalid};

/// Of the Unix epoch's beginning to that of PostgreSQL's.
const SECONDS_TO_2000: i64 = 946_684_800;

/// Less is a number without its unit. No server of a use has less.
const MEMORY_KILOBYTES_MIN: i64 = 4 << 10;

/// Whether the authority of a URL begins with a user.
fn has_user(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#', '\\']).next().is_some_and(|authority| authority.contains('@'))
}

/// Checks a value beyond its type, and returns it in canonical form. `current` and `reset`: the setting's present value, and the
/// one that RESET restores.
pub fn check(definition: &Definition, value: Value, current: &Value, reset: &Value) -> Result<Value> {
    if definition.name == "default_with_oids" && value.as_bool() {
        return Err(err!(FEATURE_NOT_SUPPORTED, "tables declared WITH OIDS are not supported"));
    }
    if definition.name == "memory" && (1..MEMORY_KILOBYTES_MIN).contains(&value.as_integer()) {
        return Err(err!(INVALID_PARAMETER_VALUE, "{} kB is too little for parameter \"memory\"", value.as_integer())
            .hint("A size needs its unit, as in 5GB or 512MB."));
    }
    let Value::Text(text) = &value else { return Ok(value) };
    let canonical = match definition.name {
        "DateStyle" => {
            let known = |value: &Value| date_style(definition, value.as_text(), DATE_STYLE, DATE_STYLE).unwrap_or(DATE_STYLE);
            let (style, order) = date_style(definition, text, known(current), known(reset))?;
            date_style_text(style, order)
        }
        "search_path" | "temp_tablespaces" if !is_identifier_list(text) => {
            return Err(invalid(definition, text).detail("List syntax is invalid."));
        }
        "TimeZone" | "log_timezone" => match time_zone(text) {
            Some(name) if Zone::lookup(&name).is_some_and(|zone| zone.at(SECONDS_TO_2000).offset % 60 != 0) => {
                return Err(err!(INVALID_PARAMETER_VALUE, "time zone \"{text}\" appears to use leap seconds")
                    .detail("PostgreSQL does not support leap seconds."));
            }
            Some(name) => name,
            None => return Err(invalid(definition, text)),
        },
        "client_encoding" => client_encoding(definition, text)?,
        "traces_endpoint" if has_user(text) => {
            return Err(err!(
                INVALID_PARAMETER_VALUE,
                "invalid value for parameter \"traces_endpoint\": it has a user or a password"
            )
            .hint("Credentials are headers in the file of traces_headers_file."));
        }
        // They are kept as names are.
        "application_name" | "cluster_name" => printable_ascii(cut_to_name(text)),
        // eventlog, which PostgreSQL has on Windows, is no destination here.
        "log_destination" => key_words(definition, text, &["stderr", "csvlog", "jsonlog", "syslog"])?,
        "restrict_nonsystem_relation_kind" => key_words(definition, text, &["view", "foreign-table"])?,
        "log_connections" => log_connections(definition, text)?,
        "plpgsql.extra_errors" | "plpgsql.extra_warnings" => extra_checks(definition, text)?,
        // No other access methods can be created.
        "default_table_access_method" => match &**text {
            "heap" | "memory" => return Ok(value),
            "" => return Err(invalid(definition, "").detail("\"default_table_access_method\" cannot be empty.")),
            other => return Err(invalid(definition, other).detail(format!("Table access method \"{other}\" does not exist."))),
        },
        _ => return Ok(value),
    };
    Ok(Value::Text(canonical.into()))
}

/// Identifiers, each quoted or not, with commas between them; or nothing.
fn is_identifier_list(text: &str) -> bool {
    let mut rest = text.trim();
    if rest.is_empty() {
        return true;
    }
    loop {
        let end = match rest.strip_prefix('"') {
            Some(mut quoted) => loop {
                let Some(at) = quoted.find('"') else { return false };
                quoted = &quoted[at + 1..];
                match quoted.strip_prefix('"') {
                    Some(after) => quoted = after,
                    None => break rest.len() - quoted.len(),
                }
            },
            None => rest.find(|c: char| c == ',' || c.is_ascii_whitespace()).unwrap_or(rest.len()),
        };
        if end == 0 {
            return false;
        }
        rest = rest[end..].trim_start();
        match rest.strip_prefix(',') {
            Some(after) => rest = after.trim_start(),
            None => return rest.is_empty(),
        }
    }
}

/// The default of DateStyle.
const DATE_STYLE: (DateStyle, DateOrder) = (DateStyle::Iso, DateOrder::Mdy);

/// Reads a DateStyle in its full form.
pub fn full_date_style(definition: &Definition, text: &str) -> Result<(DateStyle, DateOrder)> {
    date_style(definition, text, DATE_STYLE, DATE_STYLE)
}

/// Reads DateStyle: a style and an order in any sequence; a missing one keeps its value.
fn date_style(
    definition: &Definition,
    text: &str,
    current: (DateStyle, DateOrder),
    reset: (DateStyle, DateOrder),
) -> Result<(DateStyle, DateOrder)> {
    let (mut style, mut order) = (None, None);
    let conflict = || invalid(definition, text).detail("Conflicting \"DateStyle\" specifications.");
    for word in text.split([',', ' ']).map(|w| w.trim().trim_matches('"')).filter(|w| !w.is_empty()) {
        let lower = word.to_ascii_lowercase();
        let (named_style, named_order) = match lower.as_str() {
            "iso" => (Some(DateStyle::Iso), None),
            "sql" => (Some(DateStyle::Sql), None),
            w if w.starts_with("postgres") => (Some(DateStyle::Postgres), None),
            w if w.starts_with("german") => (Some(DateStyle::German), None),
            "ymd" => (None, Some(DateOrder::Ymd)),
            "dmy" => (None, Some(DateOrder::Dmy)),
            w if w.starts_with("euro") => (None, Some(DateOrder::Dmy)),
            "mdy" | "us" => (None, Some(DateOrder::Mdy)),
            w if w.starts_with("noneuro") => (None, Some(DateOrder::Mdy)),
            "default" => {
                (style, order) = (style.or(Some(reset.0)), order.or(Some(reset.1)));
                continue;
            }
            _ => return Err(invalid(definition, text).detail(format!("Unrecognized key word: \"{lower}\"."))),
        };
        let contradicts = |before: bool| before.then(conflict).map_or(Ok(()), Err);
        contradicts(named_style.is_some_and(|named| style.is_some_and(|before| before != named)))?;
        contradicts(named_order.is_some_and(|named| order.is_some_and(|before| before != named)))?;
        (style, order) = (named_style.or(style), named_order.or(order));
    }
    let german = (style == Some(DateStyle::German)).then_some(DateOrder::Dmy);
    Ok((style.unwrap_or(current.0), order.or(german).unwrap_or(current.1)))
}

pub fn date_style_text(style: DateStyle, order: DateOrder) -> String {
    let style = match style {
        DateStyle::Iso => "ISO",
        DateStyle::Sql => "SQL",
        DateStyle::Postgres => "Postgres",
        DateStyle::German => "German",
    };
    let order = match order {
        DateOrder::Mdy => "MDY",
        DateOrder::Dmy => "DMY",
        DateOrder::Ymd => "YMD",
    };
    format!("{style}, {order}")
}

/// A zone as SHOW prints it: the name in its own spelling, a number of hours as a POSIX zone; `None` when there is none.
pub fn time_zone(text: &str) -> Option<String> {
    let text = text.trim();
    if let Ok(hours) = text.parse::<f64>() {
        return (hours.abs() < 168.0).then(|| zone_of_seconds((hours * 3600.0).round() as i64));
    }
    if text.eq_ignore_ascii_case("utc") || text.eq_ignore_ascii_case("gmt") {
        return Some(text.to_ascii_uppercase());
    }
    if let Some(span) = text.get(..8).filter(|start| start.eq_ignore_ascii_case("interval")).map(|_| text[8..].trim()) {
        let span = span.strip_prefix('\'')?.strip_suffix('\'')?;
        let span = interval::parse(span, -1, IntervalStyle::Postgres).ok()?;
        return (span.months == 0 && span.days == 0).then(|| zone_of_seconds(span.micros / 1_000_000));
    }
    if let Ok(zone) = TimeZone::get(text) {
        return zone.iana_name().map(str::to_owned).or_else(|| Some(text.to_owned()));
    }
    Zone::lookup(text).map(|_| text.to_ascii_uppercase())
}

/// A fixed offset east of Greenwich as a POSIX zone: `<+03>-03`.
pub fn zone_of_seconds(east: i64) -> String {
    let part = |sign: char| {
        let (hours, minutes, seconds) = (east.abs() / 3600, east.abs() / 60 % 60, east.abs() % 60);
        match (minutes, seconds) {
            (0, 0) => format!("{sign}{hours:02}"),
            (_, 0) => format!("{sign}{hours:02}:{minutes:02}"),
            _ => format!("{sign}{hours:02}:{minutes:02}:{seconds:02}"),
        }
    };
    let (sign, inverse) = if east < 0 { ('-', '+') } else { ('+', '-') };
    format!("<{}>{}", part(sign), part(inverse))
}

fn client_encoding(definition: &Definition, text: &str) -> Result<String> {
    match Encoding::by_name(text) {
        Some(encoding) if encoding.is_convertible() => Ok(encoding.name().to_owned()),
        Some(encoding) => {
            let name = encoding.name();
            let error = err!(FEATURE_NOT_SUPPORTED, "{}", invalid(definition, text).message());
            Err(error.detail(format!("Conversion between {name} and UTF8 is not supported.")))
        }
        None => Err(invalid(definition, text)),
    }
}

/// The words of a list that is no list of identifiers: in lower case, without their quotes.
fn words(definition: &Definition, text: &str) -> Result<Vec<String>> {
    match is_identifier_list(text) {
        true => Ok(crate::split_identifiers(text)),
        false => Err(invalid(definition, text).detail("List syntax is invalid.")),
    }
}

/// A list of some of these words.
fn key_words(definition: &Definition, text: &str, known: &[&str]) -> Result<String> {
    match words(definition, text)?.into_iter().find(|word| !known.contains(&&**word)) {
        Some(word) => Err(invalid(definition, text).detail(format!("Unrecognized key word: \"{word}\"."))),
        None => Ok(text.to_owned()),
    }
}

/// A Boolean value, as before PostgreSQL 18, or a list of aspects.
/// The checks of PL/pgSQL that a user can ask for.
const EXTRA_CHECKS: [&str; 3] = ["shadowed_variables", "too_many_rows", "strict_multi_assignment"];

/// `all`, `none`, or a list of checks.
fn extra_checks(definition: &Definition, text: &str) -> Result<String> {
    if matches!(text.to_ascii_lowercase().as_str(), "all" | "none") || text.is_empty() {
        return Ok(text.to_owned());
    }
    if !is_identifier_list(text) {
        return Err(invalid(definition, text).detail("List syntax is invalid."));
    }
    for word in crate::split_identifiers(text) {
        let lower = word.to_ascii_lowercase();
        if matches!(lower.as_str(), "all" | "none") {
            let detail = format!("Key word \"{word}\" cannot be combined with other key words.");
            return Err(invalid(definition, text).detail(detail));
        }
        if !EXTRA_CHECKS.contains(&lower.as_str()) {
            return Err(invalid(definition, text).detail(format!("Unrecognized key word: \"{word}\".")));
        }
    }
    Ok(text.to_owned())
}

fn log_connections(definition: &Definition, text: &str) -> Result<String> {
    let is_switch = |word: &str| matches!(word, "on" | "off" | "true" | "false" | "yes" | "no" | "1" | "0");
    let words = words(definition, text)?;
    for word in &words {
        let known = matches!(&**word, "receipt" | "authentication" | "authorization" | "setup_durations" | "all");
        if is_switch(word) && words.len() > 1 {
            let detail = format!("Cannot specify log_connections option \"{word}\" in a list with other options.");
            return Err(invalid(definition, text).detail(detail));
        }
        if !known && !is_switch(word) {
            return Err(invalid(definition, text).detail(format!("Invalid option \"{word}\".")));
        }
    }
    Ok(text.to_owned())
}

/// The form that logs and pg_stat_activity may show: other bytes become `\xNN`.
fn printable_ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for b in text.bytes() {
        if (32..127).contains(&b) { out.push(b as char) } else { out.push_str(&format!("\\x{b:02x}")) }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_have_no_passwords() {
        assert!(has_user("http://u:p@h:4318/x") && has_user("http://u@h") && has_user("u:p@h"));
        assert!(!has_user("http://h:4318/a@b") && !has_user("") && !has_user("https://h?x=@"));
    }

    #[test]
    fn lists_of_identifiers_are_known() {
        for good in ["", "a", " a , b ", "\"$user\", public", "\"\"", "\"a\"\"b\",c", "$user"] {
            assert!(is_identifier_list(good), "{good}");
        }
        for bad in ["a,", ",a", "a b", "\"a", "\"a\" b", "a,,b"] {
            assert!(!is_identifier_list(bad), "{bad}");
        }
    }
}
