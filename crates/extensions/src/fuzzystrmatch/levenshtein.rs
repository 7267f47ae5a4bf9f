//! Levenshtein's distance: the least cost of insertions, deletions and substitutions that make one text of another.

use melba_types::{Datum, Result, bail};

/// Characters at most (PostgreSQL's MAX_LEVENSHTEIN_STRLEN).
const CHARACTERS_MAX: usize = 255;

#[derive(Clone, Copy)]
pub struct Costs {
    insertion: i64,
    deletion: i64,
    substitution: i64,
}

impl Costs {
    pub const EQUAL: Costs = Costs { insertion: 1, deletion: 1, substitution: 1 };

    /// Three integers.
    pub fn of(args: &[Datum]) -> Costs {
        let cost = |at: usize| integer(&args[at]);
        Costs { insertion: cost(0), deletion: cost(1), substitution: cost(2) }
    }
}

fn integer(value: &Datum) -> i64 {
    if let Datum::Int4(value) = value { i64::from(*value) } else { 0 }
}

pub fn distance(source: &str, target: &str, costs: Costs) -> Result<Datum> {
    result(least_cost(source, target, costs)?.0)
}

/// The distance, or one more than `most` when it is greater.
pub fn distance_within(source: &str, target: &str, costs: Costs, most: &Datum) -> Result<Datum> {
    let most = integer(most);
    match least_cost(source, target, costs)? {
        (found, true) if most >= 0 && found > most => result(most + 1),
        (found, _) => result(found),
    }
}

fn result(distance: i64) -> Result<Datum> {
    match i32::try_from(distance) {
        Ok(distance) => Ok(Datum::Int4(distance)),
        Err(_) => bail!(NUMERIC_VALUE_OUT_OF_RANGE, "levenshtein distance out of range"),
    }
}

/// The distance, and whether both texts have characters.
fn least_cost(source: &str, target: &str, costs: Costs) -> Result<(i64, bool)> {
    let count = |text: &str| text.chars().count();
    let (deleted, inserted) = (count(source), count(target));
    if deleted == 0 || inserted == 0 {
        return Ok((inserted as i64 * costs.insertion + deleted as i64 * costs.deletion, false));
    }
    if deleted.max(inserted) > CHARACTERS_MAX {
        bail!(INVALID_PARAMETER_VALUE, "levenshtein argument exceeds maximum length of {CHARACTERS_MAX} characters");
    }
    let source: Vec<char> = source.chars().collect();
    // The costs of making the beginning of the target of each beginning of the source.
    let mut row: Vec<i64> = (0..=source.len() as i64).map(|length| length * costs.deletion).collect();
    for c in target.chars() {
        let mut diagonal = row[0];
        row[0] += costs.insertion;
        for (at, s) in source.iter().enumerate() {
            let substituted = diagonal + if *s == c { 0 } else { costs.substitution };
            diagonal = row[at + 1];
            row[at + 1] = substituted.min(diagonal + costs.insertion).min(row[at] + costs.deletion);
        }
    }
    Ok((row[source.len()], true))
}
