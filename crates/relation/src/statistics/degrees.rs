//! What statistics objects say of a sample of rows: pure computation, as PostgreSQL's ANALYZE does it.

use std::collections::HashMap;

use melba_engine::distinct_in_all;

/// A sample of rows, by dimension. Equal values of a dimension have the same rank, and NULL has one.
pub struct Sample {
    /// Ranks by dimension and row.
    pub dimensions: Vec<Vec<u32>>,
    pub rows: usize,
    /// Rows of the table that the sample stands for.
    pub rows_total: u64,
}

/// A combination of dimensions with what was found for it.
pub type Found<T> = Vec<(Vec<usize>, T)>;

/// A frequent combination of ranks: with its share of rows, and the share it would have if the dimensions were independent.
#[derive(Debug, PartialEq)]
pub struct Common {
    pub ranks: Vec<u32>,
    pub frequency: f64,
    pub base_frequency: f64,
}

impl Sample {
    fn ranks(&self, row: usize, dimensions: &[usize]) -> Vec<u32> {
        dimensions.iter().map(|d| self.dimensions[*d][row]).collect()
    }

    /// How often each combination of values occurs.
    fn counts(&self, dimensions: &[usize]) -> HashMap<Vec<u32>, usize> {
        let mut counts = HashMap::new();
        for row in 0..self.rows {
            *counts.entry(self.ranks(row, dimensions)).or_default() += 1;
        }
        counts
    }

    /// The number of distinct values of every combination of two dimensions and more.
    pub fn ndistinct(&self) -> Found<u64> {
        let sizes = 2..=self.dimensions.len();
        let combinations = sizes.flat_map(|size| combinations(self.dimensions.len(), size));
        combinations.map(|c| (c.clone(), self.distinct(&c))).collect()
    }

    /// Estimated for the whole table.
    fn distinct(&self, dimensions: &[usize]) -> u64 {
        let counts = self.counts(dimensions);
        let once = counts.values().filter(|count| **count == 1).count();
        distinct_in_all(self.rows, counts.len(), once, self.rows_total).round() as u64
    }

    /// For every dimension and every set of others: the share of rows in whose group, by the others, it has one value. Shares of 0
    /// are left out.
    pub fn dependencies(&self) -> Found<f64> {
        let count = self.dimensions.len();
        let mut found = Vec::new();
        for size in 2..=count {
            for determining in combinations(count, size - 1) {
                for last in (0..count).filter(|d| !determining.contains(d)) {
                    let degree = self.degree(&determining, last);
                    if degree > 0.0 {
                        found.push((determining.iter().copied().chain([last]).collect(), degree));
                    }
                }
            }
        }
        found
    }

    fn degree(&self, determining: &[usize], determined: usize) -> f64 {
        // By group: the first value, whether others follow, and the rows.
        let mut groups: HashMap<Vec<u32>, (u32, bool, usize)> = HashMap::new();
        for row in 0..self.rows {
            let value = self.dimensions[determined][row];
            let group = groups.entry(self.ranks(row, determining)).or_insert((value, true, 0));
            group.1 &= group.0 == value;
            group.2 += 1;
        }
        let supporting: usize = groups.values().filter(|(_, one, _)| *one).map(|(_, _, rows)| rows).sum();
        supporting as f64 / self.rows as f64
    }

    /// The combinations of all dimensions that occur often enough for a list of at most `items`, most frequent first.
    pub fn most_common(&self, items: usize) -> Vec<Common> {
        let all: Vec<usize> = (0..self.dimensions.len()).collect();
        let mut counted: Vec<(Vec<u32>, usize)> = self.counts(&all).into_iter().collect();
        counted.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        counted.truncate(items);
        let least = self.least_count();
        counted.retain(|(_, count)| *count as f64 >= least);
        let alone: Vec<HashMap<Vec<u32>, usize>> = all.iter().map(|d| self.counts(&[*d])).collect();
        let share = |count: usize| count as f64 / self.rows as f64;
        let common = |(ranks, count): (Vec<u32>, usize)| {
            let of = |(d, rank): (usize, &u32)| share(alone[d].get([*rank].as_slice()).copied().unwrap_or_default());
            let base_frequency = ranks.iter().enumerate().map(of).product();
            Common { ranks, frequency: share(count), base_frequency }
        };
        counted.into_iter().map(common).collect()
    }

    /// The least count in the sample from which on the error of the share is below a fifth, as PostgreSQL requires (Cochran,
    /// "Sampling Techniques", 1977, for samples without replacement).
    fn least_count(&self) -> f64 {
        let (rows, total) = (self.rows as f64, self.rows_total as f64);
        let denominator = total - rows + 0.04 * rows * (total - 1.0);
        if denominator == 0.0 { 0.0 } else { rows * (total - rows) / denominator }
    }
}

/// All sets of `size` of the numbers below `count`, in lexicographic order.
fn combinations(count: usize, size: usize) -> Vec<Vec<usize>> {
    let sets = (0u32..1 << count).filter(|set| set.count_ones() as usize == size);
    let mut all: Vec<Vec<usize>> = sets.map(|set| (0..count).filter(|n| set & 1 << n != 0).collect()).collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dimension 1 is determined by dimension 0, but not the reverse.
    fn sample() -> Sample {
        let dimensions = vec![vec![0, 1, 2, 3, 0, 1, 2, 3], vec![0, 1, 0, 1, 0, 1, 0, 1]];
        Sample { dimensions, rows: 8, rows_total: 8 }
    }

    #[test]
    fn a_full_sample_is_counted_exactly() {
        assert_eq!(sample().ndistinct(), vec![(vec![0, 1], 4)]);
    }

    #[test]
    fn values_seen_once_in_a_part_stand_for_more() {
        let sample = Sample { dimensions: vec![(0..10).collect(), vec![0; 10]], rows: 10, rows_total: 100 };
        assert_eq!(sample.ndistinct(), vec![(vec![0, 1], 100)]);
    }

    #[test]
    fn only_dependencies_that_hold_somewhere_are_listed() {
        assert_eq!(sample().dependencies(), vec![(vec![0, 1], 1.0)]);
    }

    #[test]
    fn common_combinations_know_their_share_without_dependence() {
        let common = sample().most_common(2);
        assert_eq!(common.len(), 2);
        assert_eq!(common[0], Common { ranks: vec![0, 0], frequency: 0.25, base_frequency: 0.125 });
    }

    #[test]
    fn combinations_come_in_lexicographic_order() {
        assert_eq!(combinations(3, 2), vec![vec![0, 1], vec![0, 2], vec![1, 2]]);
    }
}
