//! The published results for the experiment's forms, and those measured here.

use super::measure::Measured;
use crate::report::{Claim, Finding};

/// Published sizes of 10,000 rows, in MB: the text's, and each form's.
const TEXT_MB: f64 = 5715.0;
const PUBLISHED: [(&str, &str, f64); 4] = [
    ("zlib a row", "files: zlib a row", 326.0),
    ("lzma level 3 a row", "files: lzma level 3 a row", 255.0),
    ("ClickHouse, ZSTD(16)", "ClickHouse, ZSTD(16)", 212.0),
    ("everything in one xz stream", "one xz stream", 29.5),
];
/// Shares of the text hold within this factor.
const TOLERANCE: f64 = 1.25;

/// Judges the forms of one source by their names.
pub fn judge(source: &str, measured: &[(String, Measured)]) -> Vec<Claim> {
    let each = |(what, form, megabytes): &(&str, &str, f64)| {
        let published = megabytes / TEXT_MB;
        let found = measured.iter().find(|(name, _)| name == form).map(|(_, m)| m.bytes as f64 / m.raw_bytes as f64);
        let finding = |share: f64| Finding {
            target: source.to_owned(),
            measured: format!("{:.2} %", share * 100.0),
            holds: (share / published).max(published / share) <= TOLERANCE,
        };
        Claim {
            published: format!("{what} takes {megabytes} MB, {:.2} % of the text", published * 100.0),
            findings: found.map(finding).into_iter().collect(),
        }
    };
    PUBLISHED.iter().map(each).collect()
}
