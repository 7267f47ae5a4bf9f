//! pg_size_pretty: numbers of bytes for people.

use melba_types::Datum;

use crate::ScalarFn;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[("pg_size_pretty", |_, args| Ok(Datum::text(pretty(args[0].as_i64()))))];

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

fn half_rounded(halves: i64) -> i64 {
    (halves + halves.signum()) / 2
}

#[cfg(test)]
mod tests {
    use super::pretty;

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
}
