//! gin_trgm_ops and gist_trgm_ops: the trigrams of a text, folded.

use melba_fmgr::Session;
use melba_fmgr::gin::{GinKey, GinQuery, GinSupport};
use melba_regexp::{Flags, Required, RequiredPart, required};
use melba_types::case::lower;
use melba_types::key::KeyColumn;
use melba_types::{Datum, DbError, Result, limits};

use super::trigrams::{TextPart, Trigram, folded, trigrams, trigrams_of_parts};
use super::{SIMILARITY, STRICT_WORD_SIMILARITY, WORD_SIMILARITY, threshold};

const SUPPORT: GinSupport =
    GinSupport { extract_value: |_, value| keys(trigrams(value.as_str(), folded)?), extract_query: query };

pub const CLASSES: &[(&str, GinSupport)] = &[("gin_extract_value_trgm", SUPPORT), ("gtrgm_compress", SUPPORT)];

/// Strategies of the operators: `%`, `~~`, `~~*`, `~`, `~*`, `%>`, `%>>`, `=`.
const SIMILAR: i16 = 1;
const LIKE: i16 = 3;
const ILIKE: i16 = 4;
const REGEXP: i16 = 5;
const IREGEXP: i16 = 6;
const WORD_SIMILAR: i16 = 7;
const STRICT_WORD_SIMILAR: i16 = 9;
const EQUAL: i16 = 11;

fn keys(trigrams: Vec<Trigram>) -> Result<Vec<GinKey>> {
    /// The least that an allocator gives.
    const ALLOCATED: usize = 32;
    limits::check_memory(trigrams.len() * (size_of::<GinKey>() + ALLOCATED))?;
    Ok(trigrams.into_iter().map(|trigram| GinKey::Key(trigram.to_vec())).collect())
}

fn query(_: &KeyColumn, strategy: i16, value: &Datum, session: &dyn Session) -> Result<GinQuery> {
    let text = value.as_str();
    Ok(match strategy {
        SIMILAR => similar(text, threshold(session, SIMILARITY))?,
        WORD_SIMILAR => similar(text, threshold(session, WORD_SIMILARITY))?,
        STRICT_WORD_SIMILAR => similar(text, threshold(session, STRICT_WORD_SIMILARITY))?,
        LIKE | ILIKE => GinQuery::every(keys(trigrams_of_parts(parts_of_like(text)))?),
        REGEXP => of_required(required(text, Flags::default())?)?,
        IREGEXP => of_required(required(text, Flags { ignore_case: true, ..Flags::default() })?)?,
        EQUAL => match keys(trigrams(text, folded)?)? {
            none if none.is_empty() => GinQuery::Key(GinKey::None),
            keys => GinQuery::every(keys),
        },
        other => return Err(DbError::internal(format!("unknown strategy of gin_trgm_ops: {other}"))),
    })
}

/// Texts of that similarity have that share of the trigrams at least.
fn similar(text: &str, least: f64) -> Result<GinQuery> {
    if least <= 0.0 {
        return Ok(GinQuery::ALL);
    }
    let all = trigrams(text, lower)?.len();
    let suffices = |count: &usize| f64::from(*count as f32 / all as f32) >= least;
    let needed = (1..=all).find(suffices).unwrap_or(all);
    let folded = trigrams(text, folded)?;
    // Several trigrams may have become one.
    let lost = all - folded.len().min(all);
    let needed = needed.saturating_sub(lost).max(1);
    Ok(GinQuery::AtLeast(needed, keys(folded)?.into_iter().map(GinQuery::Key).collect()))
}

fn parts_of_like(pattern: &str) -> Vec<TextPart> {
    let mut parts = vec![TextPart::Edge];
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' | '_' => parts.push(TextPart::Gap),
            '\\' => parts.extend(chars.next().map(TextPart::Char)),
            c => parts.push(TextPart::Char(c)),
        }
    }
    parts.push(TextPart::Edge);
    parts
}

fn of_required(required: Required) -> Result<GinQuery> {
    let all = |parts: Vec<Required>| parts.into_iter().map(of_required).collect::<Result<Vec<GinQuery>>>();
    Ok(match required {
        Required::Text(parts) => {
            let part = |part| match part {
                RequiredPart::Char(c) => TextPart::Char(c),
                RequiredPart::Gap => TextPart::Gap,
                RequiredPart::Edge => TextPart::Edge,
            };
            GinQuery::every(keys(trigrams_of_parts(parts.into_iter().map(part)))?)
        }
        Required::All(parts) => GinQuery::And(all(parts)?.into_iter().filter(|part| *part != GinQuery::ALL).collect()),
        Required::Any(parts) => {
            let parts = all(parts)?;
            if parts.contains(&GinQuery::ALL) { GinQuery::ALL } else { GinQuery::Or(parts) }
        }
    })
}
