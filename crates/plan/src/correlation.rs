//! What statistics objects say of columns that depend on each other.

use melba_catalog::StatisticsData;

/// How many times as many rows pass equalities on columns of one table as would if the columns were independent. `shares`: of
/// rows that pass each column's equality.
///
/// As in PostgreSQL, a dependency of degree f makes P(a, b) = f * min(P(a), P(b)) + (1 - f) * P(a) * P(b); the one over most
/// columns comes first, then the strongest, and a column that it determines counts no more.
pub fn dependence(data: &[&StatisticsData], shares: &[(i16, f64)]) -> f64 {
    let mut known: Vec<(i16, f64)> = Vec::new();
    for (column, share) in shares {
        if !known.iter().any(|(c, _)| c == column) {
            known.push((*column, *share));
        }
    }
    let mut factor = 1.0;
    loop {
        let applies = |columns: &[i16]| columns.iter().all(|c| known.iter().any(|(k, _)| k == c));
        let all = data.iter().flat_map(|d| &d.dependencies).filter(|(columns, _)| applies(columns));
        let best = all.max_by(|a, b| a.0.len().cmp(&b.0.len()).then_with(|| a.1.total_cmp(&b.1)));
        let Some(([determining @ .., determined], degree)) = best.map(|(columns, degree)| (&columns[..], degree)) else {
            return factor;
        };
        let share = |column: &i16| known.iter().find(|(k, _)| k == column).map_or(1.0, |(_, share)| *share);
        let (first, last) = (determining.iter().map(share).product::<f64>(), share(determined));
        let independent = first * last;
        if independent > 0.0 {
            factor *= (degree * first.min(last) + (1.0 - degree) * independent) / independent;
        }
        known.retain(|(k, _)| k != determined);
    }
}

/// The largest set of columns of one table, two or more of `columns`, whose combinations ANALYZE has counted, and their number.
pub fn counted<'d>(data: &[&'d StatisticsData], columns: &[i16]) -> Option<(&'d [i16], f64)> {
    let all = data.iter().flat_map(|d| &d.ndistinct).filter(|(set, _)| set.iter().all(|c| columns.contains(c)));
    all.max_by_key(|(set, _)| set.len()).map(|(set, count)| (&set[..], *count as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> StatisticsData {
        StatisticsData {
            ndistinct: vec![(vec![1, 2], 10), (vec![1, 3], 20), (vec![1, 2, 3], 20), (vec![1, -1], 7)],
            dependencies: vec![(vec![1, 2], 1.0), (vec![2, 1], 0.5)],
            ..StatisticsData::default()
        }
    }

    #[test]
    fn a_determined_column_restricts_nothing_more() {
        let data = data();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
        close(dependence(&[&data], &[(1, 0.01), (2, 0.1)]), 10.0);
        close(dependence(&[&data], &[(1, 0.01), (3, 0.1)]), 1.0);
        close(dependence(&[&data], &[(1, 0.01), (1, 0.01)]), 1.0);
    }

    #[test]
    fn the_largest_counted_set_is_taken() {
        let data = data();
        assert_eq!(counted(&[&data], &[3, 2, 1]), Some((&[1, 2, 3][..], 20.0)));
        assert_eq!(counted(&[&data], &[2, 1]), Some((&[1, 2][..], 10.0)));
        assert_eq!(counted(&[&data], &[2, 3]), None);
    }
}
