//! pg_size_pretty and pg_size_bytes: numbers of bytes for people.

use melba_fmgr::ScalarFn;
use melba_types::{Datum, Numeric, Result, err};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("pg_size_pretty", |_, args| Ok(Datum::text(pretty(args[0].as_i64())))),
    ("pg_size_pretty_numeric", |_, args| pretty_numeric(args[0].as_numeric()).map(Datum::text)),
    ("pg_size_bytes", |_, args| bytes(args[0].as_str()).map(Datum::Int8)),
];

/// Units and the power of two that each is.
const UNITS: [(&str, u32); 7] = [("bytes", 0), ("B", 0), ("kB", 10), ("MB", 20), ("GB", 30), ("TB", 40), ("PB", 50)];

/// A number with a unit after it, which may be missing.
fn bytes(text: &str) -> Result<i64> {
    let trimmed = melba_fmgr::type_io::trim(text);
    let rest = trimmed.trim_start_matches(['+', '-']);
    let sign = trimmed.len() - rest.len();
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(rest);
    let point = usize::from(rest[whole..].starts_with('.'));
    let fraction = digits(&rest[whole + point..]) * point;
    if sign > 1 || whole + fraction == 0 {
        return Err(err!(INVALID_PARAMETER_VALUE, "invalid size: \"{text}\""));
    }
    let mut end = sign + whole + point + fraction;
    // An exponent, unless the letter begins the unit.
    if let Some(exponent) = trimmed[end..].strip_prefix(['e', 'E']) {
        let signed = usize::from(exponent.starts_with(['+', '-']));
        let length = digits(&exponent[signed..]);
        end += if length > 0 { 1 + signed + length } else { 0 };
    }
    let mut number = Numeric::parse(&trimmed[..end])?;
    let unit = melba_fmgr::type_io::trim(&trimmed[end..]);
    if !unit.is_empty() {
        let Some((_, power)) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) else {
            return Err(err!(INVALID_PARAMETER_VALUE, "invalid size: \"{text}\"")
                .detail(format!("Invalid size unit: \"{unit}\"."))
                .hint("Valid units are \"bytes\", \"B\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\"."));
        };
        number = number.mul(&Numeric::from(1i64 << power))?;
    }
    number.to_i64()
}

/// The first unit in which the number stays below 10240. From kB on, numbers are kept in half units until they are
/// rounded, away from zero.
fn pretty(bytes: i64) -> String {
    if bytes.unsigned_abs() < 10 * 1024 {
        return format!("{bytes} bytes");
    }
    let mut halves = bytes / 512;
    for unit in ["kB", "MB", "GB", "TB"] {
        if halves.unsigned_abs() < 20 * 1024 - 1 {
            return format!("{} {unit}", half_rounded(halves));
        }
        halves /= 1024;
    }
    format!("{} PB", half_rounded(halves))
}

/// The same of numbers of any size and with fractions, which bytes keep.
fn pretty_numeric(bytes: &Numeric) -> Result<String> {
    let number = |n: i64| Numeric::from(n);
    if bytes.abs() < number(10 * 1024) {
        return Ok(format!("{bytes} bytes"));
    }
    let rounded = |halves: &Numeric| halves.add(&number(i64::from(halves.signum())))?.div_trunc(&number(2));
    let mut halves = bytes.div_trunc(&number(512))?;
    for unit in ["kB", "MB", "GB", "TB"] {
        if halves.abs() < number(20 * 1024 - 1) {
            return Ok(format!("{} {unit}", rounded(&halves)?));
        }
        halves = halves.div_trunc(&number(1024))?;
    }
    Ok(format!("{} PB", rounded(&halves)?))
}

fn half_rounded(halves: i64) -> i64 {
    (halves + halves.signum()) / 2
}

#[cfg(test)]
mod tests {
    use super::{Numeric, bytes, pretty, pretty_numeric};

    /// Expected values are PostgreSQL 18's.
    #[test]
    fn sizes_are_read_with_their_unit() {
        for (text, expected) in [
            ("1", 1),
            ("123bytes", 123),
            ("1kB", 1024),
            (" 1MB ", 1 << 20),
            ("1.5 GB", 1_610_612_736),
            ("-.5 kb", -512),
            ("1e3 B", 1000),
            ("3 TB", 3_298_534_883_328),
        ] {
            assert_eq!(bytes(text).expect(text), expected, "{text}");
        }
        for text in ["1 AB", "", "kb", "-", "1 kB A", "--1"] {
            assert_eq!(bytes(text).expect_err(text).message(), format!("invalid size: \"{text}\""));
        }
        assert_eq!(bytes("9223372036854775807.9").expect_err("is large").sqlstate().as_str(), "22003");
    }

    #[test]
    fn sizes_read_as_postgresqls() {
        for (bytes, text) in [
            (10239, "10239 bytes"),
            (10240, "10 kB"),
            (10485247, "10239 kB"),
            (10485248, "10 MB"),
            (-10736893952, "-10 GB"),
            (1_000_000_000_000, "931 GB"),
            (i64::MAX, "8192 PB"),
        ] {
            assert_eq!(pretty(bytes), text, "{bytes}");
        }
    }

    #[test]
    fn sizes_of_any_magnitude_read_as_postgresqls() {
        for (bytes, text) in [
            ("10.5", "10.5 bytes"),
            ("-10239.9", "-10239.9 bytes"),
            ("10240", "10 kB"),
            ("10485247", "10239 kB"),
            ("10485248", "10 MB"),
            ("-10736893952.7", "-10 GB"),
            ("1e12", "931 GB"),
            ("12345678901234567890123", "10965166 PB"),
            ("NaN", "NaN PB"),
            ("-Infinity", "-Infinity PB"),
        ] {
            assert_eq!(pretty_numeric(&Numeric::parse(bytes).expect(bytes)).expect(bytes), text, "{bytes}");
        }
    }
}
