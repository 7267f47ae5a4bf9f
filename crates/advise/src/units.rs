//! Sizes in human-readable form.

use crate::Result;

/// "25GB" in bytes; units are powers of 1000, those with an i of 1024.
pub fn parse_bytes(text: &str) -> Result<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" | "k" => 1e3,
        "mb" | "m" => 1e6,
        "gb" | "g" => 1e9,
        "tb" | "t" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err(format!("\"{text}\" is no size: 25GB, 500MB")),
    };
    let bytes = number.parse::<f64>().map_err(|_| format!("\"{text}\" is no size: 25GB, 500MB"))? * factor;
    if bytes >= 1.0 { Ok(bytes as u64) } else { Err(format!("\"{text}\" is no size: 25GB, 500MB")) }
}

/// Bytes as a person reads them.
pub fn bytes(bytes: f64) -> String {
    let (value, unit) = match bytes {
        b if b >= 1e12 => (b / 1e12, "TB"),
        b if b >= 1e9 => (b / 1e9, "GB"),
        b if b >= 1e6 => (b / 1e6, "MB"),
        b => (b / 1e3, "kB"),
    };
    format!("{value:.*} {unit}", if value >= 100.0 { 0 } else { 1 })
}

/// A whole number with its thousands apart.
pub fn count(value: f64) -> String {
    let digits = format!("{value:.0}");
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits.as_str()), |rest| ("-", rest));
    let mut out = sign.to_owned();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        assert_eq!(parse_bytes("25GB"), Ok(25_000_000_000));
        assert_eq!(parse_bytes("1.5 MiB"), Ok(1_572_864));
        assert_eq!(parse_bytes("7"), Ok(7));
        for bad in ["", "GB", "1XB", "0", "-1GB"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
        assert_eq!((bytes(25e9), bytes(123e6), bytes(900.0)), ("25.0 GB".into(), "123 MB".into(), "0.9 kB".into()));
        assert_eq!((count(1234567.0), count(12.0)), ("1,234,567".into(), "12".into()));
    }
}
