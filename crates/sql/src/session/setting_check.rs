//! Settings whose text has a form of its own: DateStyle, TimeZone, client_encoding and so on, brought into the form that SHOW prints.

use jiff::tz::TimeZone;
use melba_functions::{DateOrder, DateStyle};
use melba_types::{Result, bail};

use super::setting_table::Definition;
use super::setting_value::{Value, invalid};

/// Checks a value beyond its type, and returns it in canonical form.
pub fn check(definition: &Definition, value: Value) -> Result<Value> {
    let Value::Text(text) = &value else { return Ok(value) };
    let canonical = match definition.name {
        "DateStyle" => {
            let (style, order) = date_style(definition, text)?;
            date_style_text(style, order)
        }
        "TimeZone" | "log_timezone" => match time_zone(text) {
            Some(name) => name,
            None => return Err(invalid(definition, text)),
        },
        "client_encoding" => client_encoding(definition, text)?,
        "application_name" | "cluster_name" => printable_ascii(text),
        // Nobody can make others.
        "default_table_access_method" => match &**text {
            "heap" | "memory" => return Ok(value),
            "" => return Err(invalid(definition, "").detail("\"default_table_access_method\" cannot be empty.")),
            other => return Err(invalid(definition, other).detail(format!("Table access method \"{other}\" does not exist."))),
        },
        _ => return Ok(value),
    };
    Ok(Value::Text(canonical.into()))
}

/// Reads DateStyle: a style and an order in any sequence; what is not named keeps the default that goes with the style.
pub fn date_style(definition: &Definition, text: &str) -> Result<(DateStyle, DateOrder)> {
    let (mut style, mut order) = (None, None);
    for word in text.split([',', ' ']).map(|w| w.trim().trim_matches('"')).filter(|w| !w.is_empty()) {
        let lower = word.to_ascii_lowercase();
        match lower.as_str() {
            "iso" => style = Some(DateStyle::Iso),
            "sql" => style = Some(DateStyle::Sql),
            w if w.starts_with("postgres") => style = Some(DateStyle::Postgres),
            w if w.starts_with("german") => {
                style = Some(DateStyle::German);
                order = order.or(Some(DateOrder::Dmy));
            }
            "ymd" => order = Some(DateOrder::Ymd),
            "dmy" => order = Some(DateOrder::Dmy),
            "mdy" => order = Some(DateOrder::Mdy),
            w if w.starts_with("euro") => order = Some(DateOrder::Dmy),
            w if w.starts_with("us") || w.starts_with("noneuro") => order = Some(DateOrder::Mdy),
            "default" => (style, order) = (style.or(Some(DateStyle::Iso)), order.or(Some(DateOrder::Mdy))),
            _ => return Err(invalid(definition, text).detail(format!("Unrecognized key word: \"{lower}\"."))),
        }
    }
    Ok((style.unwrap_or(DateStyle::Iso), order.unwrap_or(DateOrder::Mdy)))
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
    if let Ok(zone) = TimeZone::get(text) {
        return zone.iana_name().map(str::to_owned).or_else(|| Some(text.to_owned()));
    }
    TimeZone::posix(text).is_ok().then(|| text.to_owned())
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

/// Text is UTF-8 throughout; SQL_ASCII clients get the same bytes.
fn client_encoding(definition: &Definition, text: &str) -> Result<String> {
    let plain: String = text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    Ok(match plain.as_str() {
        "utf8" | "unicode" => "UTF8",
        "sqlascii" => "SQL_ASCII",
        _ if OTHER_ENCODINGS.contains(&plain.as_str()) => {
            bail!(FEATURE_NOT_SUPPORTED, "conversion between {} and UTF8 is not supported", text.to_ascii_uppercase())
        }
        _ => return Err(invalid(definition, text)),
    }
    .to_owned())
}

const OTHER_ENCODINGS: &[&str] = &[
    "abc",
    "alt",
    "big5",
    "euccn",
    "eucjis2004",
    "eucjp",
    "euckr",
    "euctw",
    "gb18030",
    "gbk",
    "iso88591",
    "iso885910",
    "iso885913",
    "iso885914",
    "iso885915",
    "iso885916",
    "iso88592",
    "iso88593",
    "iso88594",
    "iso88595",
    "iso88596",
    "iso88597",
    "iso88598",
    "iso88599",
    "johab",
    "koi8",
    "koi8r",
    "koi8u",
    "latin1",
    "latin10",
    "latin2",
    "latin3",
    "latin4",
    "latin5",
    "latin6",
    "latin7",
    "latin8",
    "latin9",
    "mskanji",
    "muleinternal",
    "shiftjis",
    "shiftjis2004",
    "sjis",
    "tcvn",
    "tcvn5712",
    "uhc",
    "vscii",
    "win",
    "win1250",
    "win1251",
    "win1252",
    "win1253",
    "win1254",
    "win1255",
    "win1256",
    "win1257",
    "win1258",
    "win866",
    "win874",
    "win932",
    "win936",
    "win949",
    "win950",
    "windows1252",
];

/// What logs and pg_stat_activity may show: other bytes become `\xNN`.
fn printable_ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for b in text.bytes() {
        if (32..127).contains(&b) { out.push(b as char) } else { out.push_str(&format!("\\x{b:02x}")) }
    }
    out
}
