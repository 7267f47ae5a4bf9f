//! TABLESAMPLE: which rows of a table are in a sample.
//!
//! A row is taken by a hash of its number and the seed, so that the same seed gives the same sample as long as the rows keep
//! their numbers, however they are read.

use melba_fmgr::ScalarFn;
use melba_types::{Datum, Result, err};

/// Called with a row's ctid, the percentage and the seed.
pub const FUNCTIONS: &[(&str, ScalarFn)] =
    &[("tablesample_bernoulli", |_, a| sampled(a, 0)), ("tablesample_system", |_, a| sampled(a, BLOCK_BITS))];

/// There are no pages: rows whose numbers share all bits but these are a block, about as many as in a page of PostgreSQL.
const BLOCK_BITS: u32 = 6;

fn sampled(a: &[Datum], block_bits: u32) -> Result<Datum> {
    let [Datum::Int8(row), percent, seed] = a else { return Ok(Datum::Null) };
    let Datum::Float4(percent) = percent else {
        return Err(err!(INVALID_TABLESAMPLE_ARGUMENT, "TABLESAMPLE parameter cannot be null"));
    };
    let Datum::Float8(seed) = seed else {
        return Err(err!(INVALID_TABLESAMPLE_REPEAT, "TABLESAMPLE REPEATABLE parameter cannot be null"));
    };
    if !(0.0..=100.0).contains(percent) {
        return Err(err!(INVALID_TABLESAMPLE_ARGUMENT, "sample percentage must be between 0 and 100"));
    }
    // -0 is the seed 0, too.
    let seed = mix((seed + 0.0).to_bits());
    let hash = mix(seed ^ (*row as u64 >> block_bits)) >> 32;
    let cutoff = f64::from(*percent) / 100.0 * 2f64.powi(32);
    Ok(Datum::Bool((hash as f64) < cutoff))
}

/// The finalizer of splitmix64: every bit of the result depends on every bit of the argument.
fn mix(bits: u64) -> u64 {
    let mut z = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(percent: f32, block_bits: u32) -> Vec<i64> {
        let is_taken = |row: &i64| {
            let args = [Datum::Int8(*row), Datum::Float4(percent), Datum::Float8(7.0)];
            matches!(sampled(&args, block_bits), Ok(Datum::Bool(true)))
        };
        (0..100_000).filter(is_taken).collect()
    }

    #[test]
    fn samples_have_their_share_of_rows() {
        assert!((9_500..10_500).contains(&taken(10.0, 0).len()));
        assert!((8_500..11_500).contains(&taken(10.0, BLOCK_BITS).len()));
        assert_eq!((taken(0.0, 0).len(), taken(100.0, 0).len()), (0, 100_000));
    }

    #[test]
    fn blocks_are_taken_whole() {
        let rows = taken(10.0, BLOCK_BITS);
        assert!(rows.iter().all(|row| rows.binary_search(&(row ^ 1)).is_ok()));
    }
}
