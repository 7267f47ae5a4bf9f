//! Sorting that can be interrupted.

use std::cmp::Ordering;

use crate::Result;
use crate::limits::{self, Ticker};

/// Values sorted between two checks of the statement's limits.
const RUN: usize = 1024;

/// Sorts by comparisons; equal values stay in their order.
///
/// # Errors
/// Those of `limits::check`; some values are lost then.
pub fn sort_by<T>(values: &mut Vec<T>, mut compare: impl FnMut(&T, &T) -> Ordering) -> Result<()> {
    if values.len() <= RUN {
        values.sort_by(compare);
        return Ok(());
    }
    let (mut runs, mut rest) = (Vec::new(), std::mem::take(values).into_iter());
    while rest.len() > 0 {
        limits::check()?;
        let mut run: Vec<T> = rest.by_ref().take(RUN).collect();
        run.sort_by(&mut compare);
        runs.push(run);
    }
    while runs.len() > 1 {
        let mut merged = Vec::with_capacity(runs.len().div_ceil(2));
        let mut pairs = runs.into_iter();
        while let Some(first) = pairs.next() {
            merged.push(match pairs.next() {
                Some(second) => merge(first, second, &mut compare)?,
                None => first,
            });
        }
        runs = merged;
    }
    *values = runs.pop().unwrap_or_default();
    Ok(())
}

/// Two sorted runs as one.
fn merge<T>(first: Vec<T>, second: Vec<T>, mut compare: impl FnMut(&T, &T) -> Ordering) -> Result<Vec<T>> {
    let mut ticker = Ticker::new();
    let mut out = Vec::with_capacity(first.len() + second.len());
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    while let ([a, ..], [b, ..]) = (first.as_slice(), second.as_slice()) {
        ticker.step()?;
        let next = if compare(a, b).is_le() { first.next() } else { second.next() };
        out.extend(next);
    }
    out.extend(first);
    out.extend(second);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_sorted_and_stable() {
        for count in [0, 1, 1024, 1025, 5000, 10_240] {
            let mut values: Vec<(u64, usize)> = (0..count).map(|i| ((i as u64 * 7919) % 1009, i)).collect();
            let mut expected = values.clone();
            expected.sort_by_key(|v| v.0);
            sort_by(&mut values, |a, b| a.0.cmp(&b.0)).expect("is not stopped");
            assert_eq!(values, expected);
        }
    }
}
