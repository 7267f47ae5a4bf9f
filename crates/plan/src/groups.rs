//! Estimates how many groups rows make by some expressions.

use std::collections::{BTreeSet, HashSet};

use melba_tree::Expr;

use super::correlation::counted;
use super::planner::Planner;
use super::rels::rels_of;
use super::sampled::{Numbered, numbered};
use super::selectivity::{
    SAMPLED_ROWS_MIN, beginning_of, collected, column_of, distinct_of_system_column, distinct_values, estimate, table_of,
    table_rows,
};

/// An expression that has more values than this among the rows of a sample repeats too rarely there to tell how many it has.
const UNIQUE_SHARE: f64 = 0.98;
/// Values of one column and of it with others differ by this factor at least, or the sample tells nothing about their dependence.
const INFORMATIVE: f64 = 1.02;

/// How many groups rows make by expressions.
pub fn groups_of(planner: &Planner<'_>, exprs: &[Expr], rows: f64) -> f64 {
    let (mut groups, counted) = counted_groups(planner, exprs);
    let left: Vec<&Expr> = exprs.iter().enumerate().filter(|(at, _)| !counted.contains(at)).map(|(_, expr)| expr).collect();
    let entries: BTreeSet<u32> = left.iter().map(|expr| entry_of(expr)).collect();
    for entry in entries {
        let of_entry: Vec<&Expr> = left.iter().filter(|expr| entry_of(expr) == entry).copied().collect();
        let known: Vec<Option<f64>> = of_entry.iter().map(|expr| values_of(planner, expr)).collect();
        groups *= combinations(planner, entry as usize, &of_entry, &known).unwrap_or_else(|| {
            // Without statistics a tenth of the rows are assumed to be groups.
            let of_one = |known: &Option<f64>| known.map_or((rows * 0.1).max(1.0), |known| known.max(1.0));
            known.iter().map(of_one).product()
        });
    }
    groups.clamp(1.0, rows.max(1.0))
}

/// The entry that an expression is about; 127 when there is none, or more than one.
fn entry_of(expr: &Expr) -> u32 {
    let rels = rels_of(expr);
    if rels.count_ones() == 1 { rels.trailing_zeros() } else { 127 }
}

/// As many values as an expression has at most: those that its columns have together.
fn values_of(planner: &Planner<'_>, expr: &Expr) -> Option<f64> {
    let (mut values, mut is_known) = (1.0, true);
    expr.visit_vars(&mut |v| {
        if v.levels_up > 0 {
            return;
        }
        let distinct = match usize::try_from(v.column - 1) {
            Ok(column) => distinct_values(planner, v.entry, column),
            Err(_) => distinct_of_system_column(planner, v.entry, v.column),
        };
        match distinct {
            Some(distinct) => values *= distinct,
            None => is_known = false,
        }
    });
    if let Some((entry, column, Some(characters))) = beginning_of(planner, expr)
        && let Some(estimate) = estimate(planner, entry, column)
    {
        values = values.min(estimate.distinct_beginnings(characters));
    }
    is_known.then_some(values)
}

/// The groups that columns of one table make together, where ANALYZE has counted them, and the places of these columns.
fn counted_groups(planner: &Planner<'_>, exprs: &[Expr]) -> (f64, HashSet<usize>) {
    let columns: Vec<(usize, (usize, usize))> =
        exprs.iter().enumerate().filter_map(|(at, e)| Some((at, column_of(planner, e)?))).collect();
    let entries: BTreeSet<usize> = columns.iter().map(|(_, (entry, _))| *entry).collect();
    let (mut groups, mut places) = (1.0, HashSet::new());
    for entry in entries {
        let data = collected(planner, entry);
        if data.is_empty() {
            continue;
        }
        let of_entry = columns.iter().filter(|(_, column)| column.0 == entry);
        let mut left: Vec<(usize, i16)> = of_entry.map(|(at, column)| (*at, column.1 as i16 + 1)).collect();
        while let Some((set, count)) = counted(&data, &left.iter().map(|(_, number)| *number).collect::<Vec<i16>>()) {
            groups *= count;
            places.extend(left.extract_if(.., |(_, number)| set.contains(number)).map(|(at, _)| at));
        }
    }
    (groups, places)
}

/// How many combinations of values some expressions over one table have, by sampled rows; `None`: without these the product is as good, or
/// nothing is known. `known`: as many values as each has at most.
fn combinations(planner: &Planner<'_>, entry: usize, exprs: &[&Expr], known: &[Option<f64>]) -> Option<f64> {
    let rows = table_rows(planner, table_of(planner, entry)?);
    let is_plain = |expr: &&Expr| column_of(planner, expr).is_some();
    if rows < SAMPLED_ROWS_MIN
        || exprs.iter().all(is_plain) && (exprs.len() < 2 || known.iter().any(|k| k.is_some_and(|k| k >= rows)))
    {
        return None;
    }
    let sample = numbered(planner, entry, exprs)?;
    if sample.is_complete {
        return Some(sample.distinct(|_| 0).0 as f64);
    }
    let of_one = |(at, expr): (usize, &&Expr)| {
        let (distinct, once) = sample.only(at).distinct(|_| 0);
        match known[at] {
            Some(known) if is_plain(expr) => known,
            known => melba_engine::distinct_in_all(sample.rows, distinct, once, rows as u64).min(known.unwrap_or(rows)),
        }
        .max(distinct as f64)
    };
    let values: Vec<f64> = exprs.iter().enumerate().map(of_one).collect();
    Some(dependent(&sample, &values, rows))
}

/// The combinations of values in all rows. If the expressions are independent, they have as many as that many draws from the product of
/// their values give; if one determines the others, as many as it has values. The sample says where between these the truth is: how its
/// combinations compare with those that remain when the expressions take their values from different rows.
fn dependent(sample: &Numbered, values: &[f64], rows: f64) -> f64 {
    let fewest = values.iter().copied().fold(1.0, f64::max).min(rows);
    let product: f64 = values.iter().product();
    let most = (product * (1.0 - (-rows / product).exp())).clamp(fewest, rows.max(fewest));
    if values.len() < 2 {
        return fewest;
    }
    let sampled = sample.rows as f64;
    let of_one = (0..values.len()).map(|at| sample.only(at).distinct(|_| 0).0).max().unwrap_or(1) as f64;
    let together = sample.distinct(|_| 0).0 as f64;
    let apart = sample.distinct(|at| at * sample.rows / values.len()).0 as f64;
    if together >= sampled * UNIQUE_SHARE {
        // Without a repetition among n rows there are some n * n / 2 combinations at least.
        return (fewest.max(sampled * sampled / 2.0).min(most) * most).sqrt();
    }
    let independence =
        if apart < of_one * INFORMATIVE { 0.5 } else { ((together / of_one).ln() / (apart / of_one).ln()).clamp(0.0, 1.0) };
    fewest * (most / fewest).powf(independence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(of: &[&dyn Fn(u32) -> u32]) -> Numbered {
        let numbers = of.iter().map(|f| (0..1024).map(f).collect()).collect();
        Numbered { numbers, rows: 1024, is_complete: false }
    }

    /// Without an order: Steele, Lea and Flood's SplitMix64.
    fn scatter(n: u32, of: u32) -> u32 {
        let z = u64::from(n).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % u64::from(of)) as u32
    }

    #[track_caller]
    fn about(found: f64, wanted: f64) {
        assert!((found / wanted - 1.0).abs() < 0.15, "{found}, not about {wanted}");
    }

    #[test]
    fn independent_columns_multiply() {
        let few = sample(&[&|i| scatter(i, 7), &|i| scatter(i + 5000, 5)]);
        about(dependent(&few, &[7.0, 5.0], 1e6), 35.0);
        let many = sample(&[&|i| scatter(i, 1000), &|i| scatter(i + 5000, 1000)]);
        assert!(dependent(&many, &[1000.0, 1000.0], 1e6) > 4e5);
    }

    #[test]
    fn a_determined_column_adds_nothing() {
        let both = sample(&[&|i| scatter(i, 200), &|i| scatter(i, 200) / 10]);
        about(dependent(&both, &[200.0, 20.0], 1e6), 200.0);
    }

    #[test]
    fn columns_that_depend_on_each_other_in_part_lie_between() {
        // Each of 20 values goes with 5 of 20 others.
        let both = sample(&[&|i| scatter(i, 20), &|i| (scatter(i, 20) + scatter(i + 7000, 5)) % 20]);
        about(dependent(&both, &[20.0, 20.0], 1e6), 100.0);
    }
}
