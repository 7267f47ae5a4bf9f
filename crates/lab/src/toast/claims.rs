//! The published claims about lz4 and pglz, and whether they hold here.

use super::corpus::Corpus;
use super::{EXTERNAL, RATIO, line, section};
use crate::Common;
use crate::report::{Claim, Collector, Finding};

/// Published ratios hold within this factor.
const RATIO_TOLERANCE: f64 = 1.1;
/// "About 20 %" holds up to here.
const INSERT_SHARE_MAX: f64 = 0.3;
/// "Close to uncompressed" holds up to here.
const SELECT_CLOSE: f64 = 1.2;

pub fn judge(common: &Common, collector: &Collector, corpora: &[Corpus]) -> Vec<Claim> {
    let each = |published: &str, judged: &dyn Fn(usize) -> Vec<(String, bool)>| {
        let findings = common.targets.iter().enumerate().flat_map(|(index, target)| {
            judged(index).into_iter().map(|(measured, holds)| Finding { target: target.name.clone(), measured, holds })
        });
        Claim { published: published.to_owned(), findings: findings.collect() }
    };
    // By corpus: one method's time in a section as a share of another's.
    let shares = |what: &str, method: &str, other: &str, target: usize, most: f64| {
        let share = |corpus: &Corpus| {
            let of = |m: &str| collector.value(&section(what, 1), &line(corpus, m), target);
            let share = of(method)? / of(other)?;
            Some((format!("{}: {:.0} %", corpus.name, share * 100.0), share <= most))
        };
        corpora.iter().filter_map(share).collect::<Vec<_>>()
    };
    let ratios = |method: &str, published: f64, target: usize| {
        let ratio = |corpus: &Corpus| {
            let ratio = collector.value(RATIO, &line(corpus, method), target)?;
            let off = (ratio / published).max(published / ratio);
            Some((format!("{}: {ratio:.2}", corpus.name), off <= RATIO_TOLERANCE))
        };
        corpora.iter().filter_map(ratio).collect::<Vec<_>>()
    };
    vec![
        each("INSERT with lz4 takes about 20 % of the time with pglz", &|t| shares("INSERT", "lz4", "pglz", t, INSERT_SHARE_MAX)),
        each("pglz's compression ratio is 2.23", &|t| ratios("pglz", 2.23, t)),
        each("lz4's compression ratio is 2.07", &|t| ratios("lz4", 2.07, t)),
        each("SELECT of lz4 takes about as long as of uncompressed values", &|t| {
            shares("SELECT", "lz4", EXTERNAL, t, SELECT_CLOSE)
        }),
    ]
}
