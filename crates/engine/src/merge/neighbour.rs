//! The segment whose references a merge offers to its values.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use melba_segment::{Neighbour, ReferenceName, TableSegmentReader};
use melba_store::TableRun;

use super::Job;
use crate::options::EngineOptions;

/// The nearest segments with dense values, among which the reference is found that most of them have. A section that prefers a
/// reference of its own, by the noise of a sample, does not turn those behind it away from the common one. Where the content of the
/// values changes from some row on, as many sections pass until they share a new one.
const NEAR_SEGMENTS: usize = 16;

/// The segment with dense values that lies near a job's inputs.
pub(super) fn find(options: &EngineOptions, runs: &[Arc<TableRun>], job: &Job<TableSegmentReader>) -> Option<Neighbour> {
    let first_row = |run: &TableRun| run.reader.meta().row_id_min.0;
    let first = job.inputs.iter().map(|run| first_row(run)).min()?;
    let is_other =
        |run: &&Arc<TableRun>| run.reader.meta().dense_bytes > 0 && !job.inputs.iter().any(|input| Arc::ptr_eq(input, run));
    let mut near: Vec<&Arc<TableRun>> = runs.iter().filter(is_other).collect();
    near.sort_by_key(|run| first_row(run).abs_diff(first));
    near.truncate(NEAR_SEGMENTS);
    let names: Vec<Vec<ReferenceName>> = near.iter().map(|run| references(run).collect()).collect();
    let all: HashSet<ReferenceName> = runs.iter().flat_map(|run| references(run)).collect();
    let segment = Arc::clone(&near.get(commonest(&names)?)?.reader);
    Some(Neighbour { segment, is_crowded: options.are_crowded(all.len()) })
}

fn references(run: &TableRun) -> impl Iterator<Item = ReferenceName> {
    run.reader.sections().filter_map(|section| section.reference_name)
}

/// The first of the segments whose references most of them have.
fn commonest(segments: &[Vec<ReferenceName>]) -> Option<usize> {
    let mut counts = HashMap::<ReferenceName, usize>::new();
    segments.iter().flatten().for_each(|name| *counts.entry(*name).or_default() += 1);
    let commonness = |at: &usize| segments[*at].iter().map(|name| counts[name]).sum::<usize>();
    // The last of equal ones would be the farthest.
    (0..segments.len()).rev().max_by_key(commonness)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_of_most_near_segments_is_offered() {
        let names = |all: &[u8]| all.iter().map(|n| vec![ReferenceName([*n; 16])]).collect::<Vec<_>>();
        assert_eq!(commonest(&names(&[])), None);
        assert_eq!(commonest(&names(&[1, 2, 3])), Some(0));
        assert_eq!(commonest(&names(&[1, 2, 3, 2])), Some(1));
        assert_eq!(commonest(&[vec![], vec![ReferenceName([1; 16])], vec![]]), Some(1));
    }
}
