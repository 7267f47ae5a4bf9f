//! ts_stat: how often each lexeme is in the vectors of a query.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use melba_fmgr::{CallInfo, SetFn};
use melba_types::tsvector::TsVector;
use melba_types::{Datum, Result, bail, limits, oids};

use crate::words::weight_of;

pub const SETS: &[(&str, SetFn)] = &[
    ("ts_stat1", |c, a| statistics(c, a[0].as_str(), 0)),
    ("ts_stat2", |c, a| statistics(c, a[0].as_str(), weights(a[1].as_str()))),
];

type Rows = Box<dyn Iterator<Item = Result<Vec<Datum>>> + Send>;

/// The weights that a text names; other letters name none.
fn weights(text: &str) -> u8 {
    text.chars().filter_map(weight_of).fold(0, |all, weight| all | 1 << weight)
}

/// The lexemes of a query's vectors, the last one first: in how many vectors, and how often, they are. `weights`: those that count,
/// 0 for all.
fn statistics(call: &CallInfo<'_>, text: &str, weights: u8) -> Result<Rows> {
    let (types, rows) = call.session.query_rows(text, call.view)?;
    if types.len() != 1 || !call.session.catalog().is_binary_coercible(types[0], oids::TSVECTOR) {
        bail!(INVALID_PARAMETER_VALUE, "ts_stat query must return one tsvector column");
    }
    let mut counts: BTreeMap<Reverse<String>, (i32, i32)> = BTreeMap::new();
    for row in limits::ticked(&rows) {
        let Datum::Bytes(vector) = &row?[0] else { continue };
        for lexeme in TsVector::new(vector).iter() {
            let counted = lexeme.positions().filter(|position| weights == 0 || weights & 1 << position.weight() != 0).count();
            let entries = if weights == 0 { lexeme.positions().len().max(1) } else { counted };
            if entries > 0 {
                let (documents, all) = counts.entry(Reverse(lexeme.str().to_owned())).or_default();
                (*documents, *all) = (documents.saturating_add(1), all.saturating_add(entries as i32));
            }
        }
    }
    let row = |(Reverse(word), (documents, entries))| Ok(vec![Datum::text(word), Datum::Int4(documents), Datum::Int4(entries)]);
    Ok(Box::new(counts.into_iter().map(row)))
}
