//! pg_trgm: similarity of texts by their trigrams, and indexes that find texts by them.

mod gin;
mod similarity;
mod trigrams;

use melba_fmgr::{CallInfo, ScalarFn, Session};
use melba_functions::array::functions::one_dimensional;
use melba_types::case::lower;
use melba_types::{Datum, Result, oids};

pub use gin::CLASSES as GIN_CLASSES;
use similarity::{ExtentSearch, similarity};
use trigrams::{Trigram, trigrams};

/// The settings of the operators' thresholds.
const SIMILARITY: &str = "pg_trgm.similarity_threshold";
const WORD_SIMILARITY: &str = "pg_trgm.word_similarity_threshold";
const STRICT_WORD_SIMILARITY: &str = "pg_trgm.strict_word_similarity_threshold";

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("set_limit", set_limit),
    ("show_limit", |c, _| Ok(limit(c))),
    ("show_trgm", |_, a| trigrams(a[0].as_str(), lower).map(|trigrams| shown(&trigrams))),
    ("similarity", |_, a| similarity(a[0].as_str(), a[1].as_str()).map(Datum::Float4)),
    ("similarity_dist", |_, a| similarity(a[0].as_str(), a[1].as_str()).map(distance)),
    ("similarity_op", |c, a| {
        let found = similarity(a[0].as_str(), a[1].as_str())?;
        Ok(Datum::Bool(f64::from(found) >= threshold(c.session, SIMILARITY)))
    }),
    ("word_similarity", |_, a| WORDS.similarity(a[0].as_str(), a[1].as_str()).map(Datum::Float4)),
    ("word_similarity_op", |c, a| reaches(c, WORDS, &a[0], &a[1])),
    ("word_similarity_commutator_op", |c, a| reaches(c, WORDS, &a[1], &a[0])),
    ("word_similarity_dist_op", |_, a| WORDS.similarity(a[0].as_str(), a[1].as_str()).map(distance)),
    ("word_similarity_dist_commutator_op", |_, a| WORDS.similarity(a[1].as_str(), a[0].as_str()).map(distance)),
    ("strict_word_similarity", |_, a| STRICT.similarity(a[0].as_str(), a[1].as_str()).map(Datum::Float4)),
    ("strict_word_similarity_op", |c, a| reaches(c, STRICT, &a[0], &a[1])),
    ("strict_word_similarity_commutator_op", |c, a| reaches(c, STRICT, &a[1], &a[0])),
    ("strict_word_similarity_dist_op", |_, a| STRICT.similarity(a[0].as_str(), a[1].as_str()).map(distance)),
    ("strict_word_similarity_dist_commutator_op", |_, a| STRICT.similarity(a[1].as_str(), a[0].as_str()).map(distance)),
];

const WORDS: ExtentSearch = ExtentSearch { strict: false, enough: None };
const STRICT: ExtentSearch = ExtentSearch { strict: true, enough: None };

/// Whether the similarity of a text to an extent of another reaches the threshold that is set.
fn reaches(call: &CallInfo<'_>, search: ExtentSearch, wanted: &Datum, text: &Datum) -> Result<Datum> {
    let least = threshold(call.session, if search.strict { STRICT_WORD_SIMILARITY } else { WORD_SIMILARITY });
    let found = ExtentSearch { enough: Some(least), ..search }.similarity(wanted.as_str(), text.as_str())?;
    Ok(Datum::Bool(f64::from(found) >= least))
}

fn threshold(session: &dyn Session, setting: &str) -> f64 {
    session.setting_number(setting).unwrap_or(1.0)
}

fn distance(similarity: f32) -> Datum {
    Datum::Float4((1.0 - f64::from(similarity)) as f32)
}

fn limit(call: &CallInfo<'_>) -> Datum {
    Datum::Float4(threshold(call.session, SIMILARITY) as f32)
}

fn set_limit(call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
    let Datum::Float4(least) = args[0] else { return Ok(Datum::Null) };
    let set = [Datum::text(SIMILARITY), Datum::text(least.to_string()), Datum::Bool(false)];
    call.session.system_function("set_config_by_name", call, &set)?;
    Ok(limit(call))
}

/// Trigrams of other characters than ASCII letters, digits and spaces are shown as numbers.
fn shown(trigrams: &[Trigram]) -> Datum {
    let element = |[a, b, c]: &Trigram| {
        let bytes = [*a, *b, *c];
        Datum::text(match bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b' ') {
            true => bytes.iter().map(|byte| char::from(*byte)).collect(),
            false => format!("0x{a:02x}{b:02x}{c:02x}"),
        })
    };
    one_dimensional(oids::TEXT, trigrams.iter().map(element).collect())
}
