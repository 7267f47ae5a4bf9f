//! Statistics of values that have an order, from a sample of them: pure computation, as PostgreSQL's ANALYZE does it
//! (compute_scalar_stats).

use melba_engine::distinct_in_all;

/// A value in fewer clusters of rows than this may be frequent there only.
const CLUSTERS_MIN: usize = 5;
/// PostgreSQL gives numbers of distinct values above this share of the rows as a share.
const STATED_SHARE: f64 = 0.1;

/// A sample and the rows that it stands for.
pub struct SampleExtent {
    pub rows: usize,
    pub nulls: usize,
    /// Rows of the table.
    pub all: f64,
    /// Rows of the sample that follow each other, this many at a time, lie close to each other.
    pub cluster_rows: usize,
    /// The statistics target: most values of a list, most parts of a histogram.
    pub target: usize,
    /// Distinct values of the table, if they are known better than by the sample.
    pub distinct: Option<f64>,
}

/// The sampled values that are not NULL, in their order.
pub struct Values {
    /// Each with its key, its row in the sample and its place among the values.
    sorted: Vec<(Vec<u8>, u32, usize)>,
    /// Values that are too long to be listed.
    long: usize,
}

/// What is found; values are given by their places.
#[derive(Debug, Default, PartialEq)]
pub struct ScalarStatistics {
    /// As pg_statistic.stadistinct.
    pub distinct: f64,
    /// The most common values, and how many rows have each.
    pub common: Vec<(usize, usize)>,
    pub bounds: Vec<usize>,
    pub correlation: Option<f64>,
}

impl SampleExtent {
    /// As it is shown.
    fn null_share(&self) -> f64 {
        f64::from((self.nulls as f64 / self.rows as f64) as f32)
    }
}

/// A value that occurs more than once.
struct Repeated {
    /// Its first place in the order, and how often it occurs.
    first: usize,
    count: usize,
}

impl Values {
    /// `listed`: each with its key, its row and its place; `all`: their number, with those that are too long.
    pub fn new(mut listed: Vec<(Vec<u8>, u32, usize)>, all: usize) -> Values {
        let long = all - listed.len();
        listed.sort_unstable();
        Values { sorted: listed, long }
    }

    pub fn describe(&self, extent: &SampleExtent) -> ScalarStatistics {
        if self.sorted.is_empty() {
            return ScalarStatistics { distinct: extent.null_share() - 1.0, ..ScalarStatistics::default() };
        }
        let groups: Vec<Repeated> = self.groups();
        let distinct_found = groups.len();
        let mut repeated: Vec<Repeated> = groups.into_iter().filter(|group| group.count > 1).collect();
        let distinct = self.distinct(extent, distinct_found, repeated.len());
        // The first of equally frequent values stays first.
        repeated.sort_by_key(|group| std::cmp::Reverse(group.count));
        repeated.truncate(extent.target);
        self.keep_common(&mut repeated, extent, distinct, distinct_found);
        ScalarStatistics {
            distinct,
            bounds: self.bounds(&repeated, extent.target, distinct_found),
            common: repeated.iter().map(|group| (self.sorted[group.first].2, group.count)).collect(),
            correlation: (self.sorted.len() > 1).then(|| self.correlation()),
        }
    }

    /// All values, in their order.
    fn groups(&self) -> Vec<Repeated> {
        let mut groups: Vec<Repeated> = Vec::new();
        for (at, (key, ..)) in self.sorted.iter().enumerate() {
            match groups.last_mut() {
                Some(last) if self.sorted[last.first].0 == *key => last.count += 1,
                _ => groups.push(Repeated { first: at, count: 1 }),
            }
        }
        groups
    }

    fn distinct(&self, extent: &SampleExtent, found: usize, repeated: usize) -> f64 {
        let null_share = extent.null_share();
        if let Some(known) = extent.distinct {
            return stated(known.max(found as f64), extent.all, null_share);
        }
        if repeated == 0 {
            return null_share - 1.0;
        }
        if self.long == 0 && repeated == found {
            return stated(found as f64, extent.all, 0.0);
        }
        let once = found - repeated + self.long;
        let values = (extent.all * (1.0 - null_share)).round() as u64;
        let all = distinct_in_all(extent.rows - extent.nulls, once + repeated, once, values);
        let all = (all + 0.5).floor();
        if all > STATED_SHARE * extent.all { -(all / extent.all) } else { all }
    }

    /// Leaves the values that are known to be more frequent than others.
    fn keep_common(&self, repeated: &mut Vec<Repeated>, extent: &SampleExtent, distinct: f64, found: usize) {
        let is_complete = extent.rows as f64 >= extent.all;
        let all = if distinct < 0.0 { -distinct * extent.all } else { distinct };
        let are_all = repeated.len() == found && self.long == 0 && distinct > 0.0 && (is_complete || all <= found as f64 * 1.01);
        if is_complete || are_all {
            return;
        }
        let counts: Vec<usize> = repeated.iter().map(|group| group.count).collect();
        repeated.truncate(common_values(&counts, extent, all));
        repeated.retain(|group| {
            let rows = self.sorted[group.first..group.first + group.count].iter().map(|(_, row, _)| *row as usize);
            let mut clusters: Vec<usize> = rows.map(|row| row / extent.cluster_rows).collect();
            clusters.dedup();
            clusters.len() >= CLUSTERS_MIN
        });
    }

    /// Places of values that divide those that are not listed into parts of as many rows each.
    fn bounds(&self, listed: &[Repeated], target: usize, found: usize) -> Vec<usize> {
        let count = (found - listed.len()).min(target + 1);
        if count < 2 {
            return Vec::new();
        }
        let mut left = vec![true; self.sorted.len()];
        listed.iter().for_each(|group| left[group.first..group.first + group.count].fill(false));
        let rest: Vec<usize> = (0..self.sorted.len()).filter(|at| left[*at]).map(|at| self.sorted[at].2).collect();
        (0..count).map(|bound| rest[bound * (rest.len() - 1) / (count - 1)]).collect()
    }

    /// Of places in the order with places in the table.
    fn correlation(&self) -> f64 {
        // Among the values that are listed.
        let mut places: Vec<(u32, usize)> = self.sorted.iter().enumerate().map(|(at, (_, row, _))| (*row, at)).collect();
        places.sort_unstable();
        let count = self.sorted.len() as f64;
        let products: f64 = places.iter().enumerate().map(|(place, (_, at))| place as f64 * *at as f64).sum();
        let sum = (count - 1.0) * count / 2.0;
        let squares = (count - 1.0) * count * (2.0 * count - 1.0) / 6.0;
        (count * products - sum * sum) / (count * squares - sum * sum)
    }
}

/// A number of distinct values in the form of pg_statistic.stadistinct.
pub fn stated(distinct: f64, rows: f64, null_share: f64) -> f64 {
    let values = rows * (1.0 - null_share);
    // Counts of segments are good to a few hundredths.
    if distinct >= values * 0.98 && null_share < 1.0 && distinct > 1.0 {
        return null_share - 1.0;
    }
    if distinct > STATED_SHARE * rows { -(distinct / rows) } else { distinct.round() }
}

/// How many of some counts of values, most frequent first, are surely above the average of the others (PostgreSQL's
/// analyze_mcv_list): by more than two standard deviations of a hypergeometric distribution.
fn common_values(counts: &[usize], extent: &SampleExtent, distinct: f64) -> usize {
    let (rows, all) = (extent.rows as f64, extent.all);
    let null_share = extent.nulls as f64 / rows;
    let mut kept = counts.len();
    while kept > 0 {
        let before: usize = counts[..kept - 1].iter().sum();
        let mut share = (1.0 - before as f64 / rows - null_share).clamp(0.0, 1.0);
        let others = distinct - (kept - 1) as f64;
        if others > 1.0 {
            share /= others;
        }
        let count = counts[kept - 1] as f64;
        let in_all = all * count / rows;
        let variance = rows * in_all * (all - in_all) * (all - rows) / (all * all * (all - 1.0));
        if count > share * rows + 2.0 * variance.max(0.0).sqrt() + 0.5 {
            break;
        }
        kept -= 1;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(of: &[u8]) -> Values {
        let listed = of.iter().enumerate().map(|(at, value)| (vec![*value], at as u32, at)).collect();
        Values::new(listed, of.len())
    }

    fn complete(rows: usize, nulls: usize) -> SampleExtent {
        SampleExtent { rows, nulls, all: rows as f64, cluster_rows: 1, target: 100, distinct: None }
    }

    #[test]
    fn few_values_are_all_listed() {
        let found = values(&[2, 1, 2, 3, 1, 2, 3, 3, 3, 3]).describe(&complete(10, 0));
        assert_eq!(found.distinct, -0.3);
        assert_eq!(found.common, [(3, 5), (0, 3), (1, 2)]);
        assert!(found.bounds.is_empty());
    }

    #[test]
    fn a_key_has_a_histogram_and_its_order() {
        let all: Vec<u8> = (0..=200).collect();
        let found = values(&all).describe(&complete(201, 0));
        assert_eq!((found.distinct, found.common.len(), found.bounds.len()), (-1.0, 0, 101));
        assert_eq!((found.bounds[1], found.bounds[100], found.correlation), (2, 200, Some(1.0)));
        let reversed: Vec<u8> = (0..=200).rev().collect();
        assert_eq!(values(&reversed).describe(&complete(201, 0)).correlation, Some(-1.0));
    }

    #[test]
    fn nulls_and_values_met_once_are_accounted_for() {
        // 9 values, of which one occurs twice, and 10 rows without one.
        let found = values(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 9]).describe(&complete(20, 10));
        assert_eq!(found.distinct, -0.45);
        assert_eq!(found.common, [(8, 2)]);
        assert_eq!(found.bounds.len(), 8);
    }

    #[test]
    fn of_a_sample_only_values_above_the_average_are_common() {
        // 1024 of 100,000 rows: value 0 in a quarter of them, everywhere; value 1 in one place.
        let mut of: Vec<u8> = (0..1024u32).map(|i| if i % 4 == 0 { 0 } else { 100 + (i % 100) as u8 }).collect();
        of[8..16].fill(1);
        let extent = SampleExtent { rows: 1024, nulls: 0, all: 100_000.0, cluster_rows: 8, target: 100, distinct: Some(5000.0) };
        let found = values(&of).describe(&extent);
        assert_eq!(found.distinct, 5000.0);
        let common: Vec<u8> = found.common.iter().map(|(at, _)| of[*at]).collect();
        assert!(common[0] == 0 && common.len() == 76 && !common.contains(&1), "{common:?}");
    }

    #[test]
    fn of_a_sample_values_as_frequent_as_others_are_not_common() {
        // 100 values, of which each occurs some ten times, among 10,000.
        let of: Vec<u8> = (0..1024u32).map(|i| (i * 37 % 100) as u8).collect();
        let extent = SampleExtent { rows: 1024, nulls: 0, all: 100_000.0, cluster_rows: 8, target: 50, distinct: Some(100.0) };
        let found = values(&of).describe(&extent);
        assert_eq!((found.common.len(), found.bounds.len()), (0, 51));
    }
}
