//! Values of settings: reads users' input, checks it, and prints it as SHOW does.

use std::sync::Arc;

use melba_types::{Result, bail, boolean, err};

use crate::table::{Definition, Type};

/// A checked value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Bool(bool),
    /// In the setting's unit.
    Integer(i64),
    Real(f64),
    Text(Arc<str>),
}

impl Value {
    pub fn as_bool(&self) -> bool {
        matches!(self, Value::Bool(true))
    }

    pub fn as_integer(&self) -> i64 {
        match self {
            Value::Integer(v) => *v,
            _ => 0,
        }
    }

    pub fn as_real(&self) -> f64 {
        match self {
            Value::Real(v) => *v,
            _ => 0.0,
        }
    }

    pub fn as_text(&self) -> &str {
        match self {
            Value::Text(v) => v,
            _ => "",
        }
    }
}

/// Units by the base unit's family: name and size in the family's smallest unit, largest first.
const MEMORY_UNITS: &[(&str, f64)] =
    &[("TB", 1_099_511_627_776.0), ("GB", 1_073_741_824.0), ("MB", 1_048_576.0), ("kB", 1024.0), ("B", 1.0)];
const TIME_UNITS: &[(&str, f64)] =
    &[("d", 86_400_000_000.0), ("h", 3_600_000_000.0), ("min", 60_000_000.0), ("s", 1_000_000.0), ("ms", 1000.0), ("us", 1.0)];

struct Units {
    units: &'static [(&'static str, f64)],
    /// Size of the setting's own unit in the family's smallest.
    base: f64,
    hint: &'static str,
}

fn units_of(unit: &str) -> Option<Units> {
    const MEMORY_HINT: &str = "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".";
    const TIME_HINT: &str = "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".";
    let memory = |base| Some(Units { units: MEMORY_UNITS, base, hint: MEMORY_HINT });
    match unit {
        "" => None,
        "8kB" => memory(8192.0),
        _ => match MEMORY_UNITS.iter().find(|(name, _)| *name == unit) {
            Some((_, base)) => memory(*base),
            None => TIME_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, base)| Units {
                units: TIME_UNITS,
                base: *base,
                hint: TIME_HINT,
            }),
        },
    }
}

/// Reads `text` as a value of the setting, without the checks that need more than the value itself.
pub fn parse(definition: &Definition, text: &str) -> Result<Value> {
    match definition.ty {
        Type::Bool => match boolean::parse(text) {
            Some(v) => Ok(Value::Bool(v)),
            None => bail!(INVALID_PARAMETER_VALUE, "parameter \"{}\" requires a Boolean value", definition.name),
        },
        Type::Enum => parse_enum(definition, text),
        Type::Text => Ok(Value::Text(text.into())),
        Type::Integer => parse_integer(definition, text),
        Type::Real => parse_real(definition, text),
    }
}

fn parse_enum(definition: &Definition, text: &str) -> Result<Value> {
    if let Some(option) = definition.options().find(|o| o.eq_ignore_ascii_case(text)) {
        return Ok(Value::Text(option.into()));
    }
    let has = |name| definition.options().any(|o| o == name);
    if has("on")
        && has("off")
        && let Some(v) = boolean::parse(text)
    {
        return Ok(Value::Text(if v { "on" } else { "off" }.into()));
    }
    // Options that PostgreSQL accepts without listing them.
    match text.to_ascii_lowercase().as_str() {
        "debug" if has("debug2") => return Ok(Value::Text("debug2".into())),
        level @ ("info" | "fatal" | "panic") if has("notice") => return Ok(Value::Text(level.into())),
        _ => {}
    }
    let options: Vec<&str> = definition.options().collect();
    Err(invalid(definition, text).hint(format!("Available values: {}.", options.join(", "))))
}

pub fn invalid(definition: &Definition, text: &str) -> melba_types::DbError {
    err!(INVALID_PARAMETER_VALUE, "invalid value for parameter \"{}\": \"{text}\"", definition.name)
}

/// A number with an optional unit, in the setting's unit.
fn parse_number(definition: &Definition, text: &str) -> Result<f64> {
    let t = text.trim();
    let end = number_end(t);
    let digits = &t[..end];
    let octal = digits.strip_prefix('0').filter(|_| definition.ty == Type::Integer);
    let number = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => i64::from_str_radix(hex, 16).ok().map(|v| v as f64),
        None => match octal.filter(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit())) {
            Some(octal) => i64::from_str_radix(octal, 8).ok().map(|v| v as f64),
            None => digits.parse::<f64>().ok(),
        },
    };
    let Some(number) = number.filter(|n| n.is_finite()) else { return Err(invalid(definition, text)) };
    let suffix = t[end..].trim_start();
    if suffix.is_empty() {
        return Ok(number);
    }
    let Some(units) = units_of(definition.unit) else { return Err(invalid(definition, text)) };
    match units.units.iter().find(|(name, _)| *name == suffix) {
        Some((_, size)) => Ok(number * size / units.base),
        None => Err(invalid(definition, text).hint(units.hint)),
    }
}

fn number_end(t: &str) -> usize {
    let bytes = t.as_bytes();
    let mut i = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    if t[i..].starts_with("0x") || t[i..].starts_with("0X") {
        i += 2;
        while bytes.get(i).is_some_and(u8::is_ascii_hexdigit) {
            i += 1;
        }
        return i;
    }
    while bytes.get(i).is_some_and(|b| b.is_ascii_digit() || *b == b'.') {
        i += 1;
    }
    if matches!(bytes.get(i), Some(b'e' | b'E')) {
        let mut j = i + 1;
        if matches!(bytes.get(j), Some(b'+' | b'-')) {
            j += 1;
        }
        if bytes.get(j).is_some_and(u8::is_ascii_digit) {
            while bytes.get(j).is_some_and(u8::is_ascii_digit) {
                j += 1;
            }
            i = j;
        }
    }
    i
}

fn parse_integer(definition: &Definition, text: &str) -> Result<Value> {
    let number = parse_number(definition, text)?.round_ties_even();
    if !(f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number) {
        return Err(invalid(definition, text).hint("Value exceeds integer range."));
    }
    let (min, max) = (definition.min.parse::<i64>(), definition.max.parse::<i64>());
    let value = number as i64;
    if min.is_ok_and(|m| value < m) || max.is_ok_and(|m| value > m) {
        return Err(out_of_range(definition, &value.to_string()));
    }
    Ok(Value::Integer(value))
}

fn parse_real(definition: &Definition, text: &str) -> Result<Value> {
    let value = parse_number(definition, text)?;
    let (min, max) = (definition.min.parse::<f64>(), definition.max.parse::<f64>());
    if min.is_ok_and(|m| value < m) || max.is_ok_and(|m| value > m) {
        return Err(out_of_range(definition, &print_real(value)));
    }
    Ok(Value::Real(value))
}

fn out_of_range(d: &Definition, value: &str) -> melba_types::DbError {
    let unit = if d.unit.is_empty() { String::new() } else { format!(" {}", d.unit) };
    err!(
        INVALID_PARAMETER_VALUE,
        "{value}{unit} is outside the valid range for parameter \"{}\" ({}{unit} .. {}{unit})",
        d.name,
        d.min,
        d.max
    )
}

/// Six significant digits, as C's %g prints them in the ranges that settings have.
fn print_real(v: f64) -> String {
    if v != 0.0 && (v.abs() < 1e-4 || v.abs() >= 1e6) {
        let text = format!("{v:.5e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
        let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |d| ('-', d));
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    let decimals = if v == 0.0 { 0 } else { (5 - v.abs().log10().floor() as i32).max(0) as usize };
    let text = format!("{v:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// The value as SHOW prints it: with the largest unit that divides it.
pub fn show(definition: &Definition, value: &Value) -> String {
    match value {
        Value::Integer(_) if is_file_mode(definition) => setting(definition, value),
        Value::Integer(v) if *v > 0 => match units_of(definition.unit) {
            Some(units) => {
                let total = *v as f64 * units.base;
                let fits = units.units.iter().find(|(_, size)| total % size == 0.0);
                fits.map_or_else(|| v.to_string(), |(name, size)| format!("{}{name}", (total / size) as i64))
            }
            None => v.to_string(),
        },
        Value::Real(v) if *v > 0.0 => match units_of(definition.unit) {
            Some(units) => {
                let total = v * units.base;
                let fits = units.units.iter().find(|(_, size)| (total / size).fract() == 0.0);
                fits.map_or_else(
                    || format!("{}{}", print_real(*v), definition.unit),
                    |(name, size)| format!("{}{name}", print_real(total / size)),
                )
            }
            None => print_real(*v),
        },
        _ => plain(value),
    }
}

/// The value as pg_settings.setting has it.
pub fn setting(definition: &Definition, value: &Value) -> String {
    match value {
        Value::Integer(mode) if is_file_mode(definition) => format!("{mode:04o}"),
        _ => plain(value),
    }
}

fn is_file_mode(definition: &Definition) -> bool {
    matches!(definition.name, "data_directory_mode" | "log_file_mode" | "unix_socket_permissions")
}

/// The value in the setting's unit.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Bool(v) => if *v { "on" } else { "off" }.to_owned(),
        Value::Integer(v) => v.to_string(),
        Value::Real(v) => print_real(*v),
        Value::Text(v) => v.to_string(),
    }
}
