//! Chooses the segments of a tree to rewrite, by arithmetic over their metadata.
//!
//! A run that overlaps no older one is a *bottom* run; these never overlap each other and together are the table, dead rows included.
//! All others lie *above*: their rows replace rows below. The key axis is cut into slices, each from the beginning of a bottom run to
//! that of the next. Rewriting a slice reads a bottom run and everything above it within the slice; the result is a bottom run, and
//! within the slice the runs above are *absorbed*. A run that is absorbed from its first key to its last is superfluous. So a merge
//! rewrites only the slices with the most dead rows, and a run that nothing overlaps is never rewritten in vain.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use melba_store::Bulk;
use melba_types::Csn;

/// Levels of about one size above the bottom after which they are merged into one.
const LEVELS_MAX: usize = 4;
/// A level is of the size of those in front of it when it is at most this many times larger than all of them.
const SIZE_RATIO: u64 = 2;
/// Small neighbours are put together when there are this many.
const SMALL_RUNS: usize = 8;
/// A run is small below this share of the size that is aimed at.
const SMALL_SHARE: u64 = 4;

/// Raw bytes of dense values to those of the same values compressed by lz4, about.
const SPOOL_SHARE: u64 = 6;
/// Waiting values are merged with dense ones that are at most DENSE_AGAIN times as many. When dense values are the most, their
/// blocks are copied, and the others are compressed against their reference: that costs a copy, where a separate section would
/// take several times their space.
const DENSE_AGAIN: u64 = 16;

/// How much a rewriting takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Raw bytes of a run to make.
    pub aim_bytes: u64,
    /// Bytes of waiting frames to make dense together, at most.
    pub gather_bytes: u64,
    /// Runs that may overlap and are read together: the rest of them comes with the next choice.
    pub fan_in: usize,
}

/// A run as the choice sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Candidate {
    /// Several when a merge could not put its rows into one column layout; newest first.
    pub files: Vec<u64>,
    pub bytes: u64,
    pub raw_bytes: u64,
    pub rows: u64,
    /// About how many of the rows only snapshots older than `csn_max` need: tombstones and versions behind newer ones.
    pub held: u64,
    /// Bytes of frames that are to become dense.
    pub waiting_bytes: u64,
    /// Raw bytes of values that are dense.
    pub dense_bytes: u64,
    /// Of these, those that a fast level has compressed.
    pub hasty_bytes: u64,
    pub csn_max: Csn,
    /// Keys as bytes; for rows, the id big-endian.
    pub first: Vec<u8>,
    pub last: Vec<u8>,
}

impl Candidate {
    /// Takes the next file of the same unit.
    pub fn join(&mut self, other: Candidate) {
        self.files.extend(other.files);
        self.bytes += other.bytes;
        self.raw_bytes += other.raw_bytes;
        self.rows += other.rows;
        self.held += other.held;
        self.waiting_bytes += other.waiting_bytes;
        self.dense_bytes += other.dense_bytes;
        self.hasty_bytes += other.hasty_bytes;
        self.csn_max = self.csn_max.max(other.csn_max);
        self.first = std::mem::take(&mut self.first).min(other.first);
        self.last = std::mem::take(&mut self.last).max(other.last);
    }
}

/// From a key on, up to and without another; `None`: to the end.
type KeyRange = (Vec<u8>, Option<Vec<u8>>);

/// The key ranges in which runs (by their first file) are absorbed: their versions there are in runs behind them, or dead. Lost
/// when the engine stops: absorbing twice only costs time.
#[derive(Default)]
pub(crate) struct Absorbed(HashMap<u64, Vec<KeyRange>>);

impl Absorbed {
    /// Adds a range of a run.
    pub fn add(&mut self, file: u64, from: &[u8], to: Option<&[u8]>) {
        let ranges = self.0.entry(file).or_default();
        let (mut from, mut to) = (from.to_vec(), to.map(<[u8]>::to_vec));
        // Those that it touches become one with it.
        ranges.retain(|(f, t)| {
            let apart = t.as_ref().is_some_and(|t| *t < from) || to.as_ref().is_some_and(|to| to < f);
            if !apart {
                from = std::mem::take(&mut from).min(f.clone());
                to = match (to.take(), t) {
                    (Some(a), Some(b)) => Some(a.max(b.clone())),
                    _ => None,
                };
            }
            apart
        });
        ranges.push((from, to));
    }

    pub fn remove(&mut self, file: u64) {
        self.0.remove(&file);
    }

    /// Takes a range of a run back.
    pub fn subtract(&mut self, file: u64, from: &[u8], to: Option<&[u8]>) {
        let Some(ranges) = self.0.get_mut(&file) else { return };
        let mut rest = Vec::new();
        for (f, t) in ranges.drain(..) {
            if f.as_slice() < from {
                let end = t.as_deref().map_or(from, |t| t.min(from)).to_vec();
                rest.push((f.clone(), Some(end)));
            }
            if let Some(to) = to
                && t.as_deref().is_none_or(|t| to < t)
            {
                rest.push((f.max(to.to_vec()), t));
            }
        }
        match rest.is_empty() {
            true => drop(self.0.remove(&file)),
            false => *ranges = rest,
        }
    }

    /// Whether a run is absorbed somewhere at or after `from` and before `to`.
    fn touches(&self, run: &Candidate, from: &[u8], to: Option<&[u8]>) -> bool {
        let touches = |(f, t): &KeyRange| to.is_none_or(|to| f.as_slice() < to) && t.as_deref().is_none_or(|t| from < t);
        self.0.get(&run.files[0]).is_some_and(|ranges| ranges.iter().any(touches))
    }

    fn is_known(&self, run: &Candidate) -> bool {
        self.0.contains_key(&run.files[0])
    }

    /// Whether a run is absorbed as far as it lies at or after `from` and before `to`.
    fn covers(&self, run: &Candidate, from: &[u8], to: Option<&[u8]>) -> bool {
        let from = from.max(run.first.as_slice());
        let covers = |(f, t): &KeyRange| {
            f.as_slice() <= from && t.as_deref().is_none_or(|t| to.is_some_and(|to| to <= t) || run.last.as_slice() < t)
        };
        self.0.get(&run.files[0]).is_some_and(|ranges| ranges.iter().any(covers))
    }
}

/// The minimum gain that justifies rewriting a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Eagerness {
    /// A quarter of its rows is dead: while there are commits.
    Busy = 1,
    /// An eighth of its rows is dead.
    Idle = 2,
    /// Values that a fast level has made dense are compressed again: when there is nothing else to do.
    Cold = 3,
    /// Everything that has anything above it, and all of that at once.
    Everything = 4,
}

impl Eagerness {
    /// One in this many rows is dead.
    fn share(self) -> u64 {
        match self {
            Eagerness::Busy => 4,
            Eagerness::Idle | Eagerness::Cold => 8,
            Eagerness::Everything => u64::MAX,
        }
    }
}

/// A rewriting: positions among the candidates.
#[derive(Debug, PartialEq)]
pub(crate) enum Plan {
    /// Neighbouring bottom runs, with the runs above them in their slices. The runs above stay. Those that are left for another
    /// time are not absorbed there, even if they were noted as absorbed.
    Sink { bottoms: Vec<usize>, above: Vec<usize>, left: Vec<usize>, from: Vec<u8>, to: Option<Vec<u8>> },
    /// Runs above the bottom, newest first, into one level.
    Collapse { runs: Vec<usize> },
}

impl Plan {
    /// Bytes that it rewrites.
    pub fn bytes(&self, runs: &[Candidate]) -> u64 {
        let (Plan::Sink { bottoms: which, .. } | Plan::Collapse { runs: which }) = self;
        which.iter().map(|at| runs[*at].bytes).sum()
    }
}

/// The runs of a tree, newest first, with the runs they lie on.
pub(crate) struct Shape<'a> {
    runs: &'a [Candidate],
    /// 0 at the bottom; else one more than the deepest run that this one covers.
    height: Vec<usize>,
    /// The bottom runs, by key.
    bottoms: Vec<usize>,
}

impl<'a> Shape<'a> {
    pub fn new(runs: &'a [Candidate]) -> Shape<'a> {
        let mut height = vec![0; runs.len()];
        // The runs of one height do not overlap: where a key range meets one is found by its first key.
        let mut levels: Vec<BTreeMap<&[u8], &[u8]>> = Vec::new();
        for (i, run) in runs.iter().enumerate().rev() {
            let meets = |level: &BTreeMap<&[u8], &[u8]>| {
                level.range(..=run.last.as_slice()).next_back().is_some_and(|(_, last)| *last >= run.first.as_slice())
            };
            let at = levels.iter().rposition(meets).map_or(0, |below| below + 1);
            if at == levels.len() {
                levels.push(BTreeMap::new());
            }
            levels[at].insert(&run.first, &run.last);
            height[i] = at;
        }
        let mut bottoms: Vec<usize> = (0..runs.len()).filter(|i| height[*i] == 0).collect();
        bottoms.sort_by(|a, b| runs[*a].first.cmp(&runs[*b].first));
        Shape { runs, height, bottoms }
    }

    pub fn bulk(&self) -> Bulk {
        let mut bulk = Bulk::default();
        for (run, height) in self.runs.iter().zip(&self.height) {
            let bytes = if *height == 0 { &mut bulk.bottom_bytes } else { &mut bulk.above_bytes };
            *bytes += run.bytes;
        }
        bulk
    }

    /// The slices that a run reaches into, as positions in `bottoms`.
    fn slices(&self, run: &Candidate) -> Range<usize> {
        let upto = |key: &[u8]| self.bottoms.partition_point(|b| self.runs[*b].first.as_slice() <= key);
        upto(&run.first).saturating_sub(1)..upto(&run.last).max(1).min(self.bottoms.len())
    }

    fn above(&self) -> impl Iterator<Item = usize> {
        (0..self.runs.len()).filter(|i| self.height[*i] > 0)
    }

    /// Whether a slice has absorbed a run's versions within it.
    fn is_absorbed(&self, absorbed: &Absorbed, run: &Candidate, slice: usize) -> bool {
        let (from, to) = self.bounds(slice..slice + 1);
        absorbed.covers(run, &from, to.as_deref())
    }

    /// About how many rows above each bottom run (by position in `bottoms`) it has not absorbed.
    fn rows_above(&self, absorbed: &Absorbed) -> Vec<u64> {
        let mut rows = vec![0; self.bottoms.len()];
        for i in self.above() {
            let run = &self.runs[i];
            let slices = self.slices(run);
            let share = (run.rows / slices.len().max(1) as u64).max(1);
            for at in slices {
                if !self.is_absorbed(absorbed, run, at) {
                    rows[at] += share;
                }
            }
        }
        rows
    }

    /// The runs that are absorbed altogether, oldest first. One stays as long as an older one stays that it overlaps and that may
    /// have versions it hides: any run that lies above the bottom, or did.
    pub fn superfluous(&self, absorbed: &Absorbed) -> Vec<usize> {
        let mut gone = Vec::new();
        let mut staying: Vec<usize> = Vec::new();
        for i in (0..self.runs.len()).rev().filter(|i| self.height[*i] > 0 || absorbed.is_known(&self.runs[*i])) {
            let run = &self.runs[i];
            let overlaps = |other: &usize| self.runs[*other].first <= run.last && run.first <= self.runs[*other].last;
            if absorbed.covers(run, &[], None) && !staying.iter().any(overlaps) {
                gone.push(i);
            } else {
                staying.push(i);
            }
        }
        gone
    }

    /// The next rewriting, if any pays. `oldest` is the oldest snapshot in use.
    pub fn choose(&self, absorbed: &Absorbed, eagerness: Eagerness, oldest: Csn, limits: Limits) -> Option<Plan> {
        let Limits { aim_bytes, gather_bytes, fan_in } = limits;
        let above = self.rows_above(absorbed);
        let run = |at: usize| &self.runs[self.bottoms[at]];
        let pays = |at: usize, rows: u64, share: u64| rows > 0 && rows.saturating_mul(share) > run(at).rows;
        let share = eagerness.share();
        // Space: the slice with the most dead rows, and neighbours that are half as bad, up to one run's size.
        let worst = (0..above.len()).filter(|at| pays(*at, above[*at], share)).max_by(|a, b| {
            let (x, y) = (above[*a] as f64 / run(*a).rows.max(1) as f64, above[*b] as f64 / run(*b).rows.max(1) as f64);
            x.total_cmp(&y).then(b.cmp(a))
        });
        if let Some(worst) = worst {
            let mut raw = run(worst).raw_bytes;
            let mut end = worst + 1;
            while end < above.len() && pays(end, above[end], share.saturating_mul(2)) && raw + run(end).raw_bytes <= aim_bytes {
                raw += run(end).raw_bytes;
                end += 1;
            }
            return Some(self.sink(absorbed, worst..end, fan_in));
        }
        if let Some(runs) = self.levels_to_collapse(fan_in) {
            return Some(Plan::Collapse { runs });
        }
        if let Some(gathered) = self.neighbours_to_gather(eagerness, gather_bytes) {
            return Some(self.sink(absorbed, gathered, fan_in));
        }
        if let Some(small) = self.small_neighbours(aim_bytes) {
            return Some(self.sink(absorbed, small, fan_in));
        }
        if eagerness != Eagerness::Busy
            && let Some(slice) = self.rest_of_an_absorbed_run(absorbed)
        {
            return Some(self.sink(absorbed, slice..slice + 1, fan_in));
        }
        // Versions that only dropped snapshots needed.
        let freed = |at: &usize| run(*at).csn_max <= oldest && pays(*at, run(*at).held, share);
        let is_hasty = |at: &usize| eagerness >= Eagerness::Cold && run(*at).hasty_bytes > 0;
        let mut slices = 0..self.bottoms.len();
        slices.clone().find(freed).or_else(|| slices.find(is_hasty)).map(|at| self.sink(absorbed, at..at + 1, fan_in))
    }

    /// A slice that keeps a run above the bottom of which most is dead already: absorbed in at least half of its slices.
    fn rest_of_an_absorbed_run(&self, absorbed: &Absorbed) -> Option<usize> {
        self.above().find_map(|i| {
            let run = &self.runs[i];
            let slices = self.slices(run);
            let is_left = |at: &usize| !self.is_absorbed(absorbed, run, *at);
            let left = slices.clone().filter(is_left).count();
            slices.clone().find(is_left).filter(|_| left * 2 <= slices.len())
        })
    }

    /// Whether dead versions wait for snapshots to end.
    pub fn is_held_back(&self, oldest: Csn) -> bool {
        self.bottoms.iter().any(|b| self.runs[*b].held > 0 && self.runs[*b].csn_max > oldest)
    }

    /// The key range of neighbouring slices. The first slice begins where all keys do.
    fn bounds(&self, slices: Range<usize>) -> KeyRange {
        let first = |at: usize| self.bottoms.get(at).map(|b| self.runs[*b].first.clone());
        let from = if slices.start == 0 { None } else { first(slices.start) };
        (from.unwrap_or_default(), first(slices.end))
    }

    /// The rewriting of some neighbouring slices, with the lowest of the levels above that they have not absorbed.
    fn sink(&self, absorbed: &Absorbed, slices: Range<usize>, fan_in: usize) -> Plan {
        let mut bottoms: Vec<usize> = self.bottoms[slices.clone()].to_vec();
        bottoms.sort_unstable();
        let reaches = |i: &usize| {
            let reached = self.slices(&self.runs[*i]);
            reached.start < slices.end && slices.start < reached.end
        };
        let (from, to) = self.bounds(slices.clone());
        let mut above: Vec<usize> = self.above().filter(reaches).collect();
        // An absorbed run need not be read again, unless it hides rows that another run still has: one that was absorbed in part,
        // or that came to the bottom when nothing was left of its slice.
        let is_absorbed = |i: &usize| absorbed.covers(&self.runs[*i], &from, to.as_deref());
        let is_stale = |i: &usize| absorbed.touches(&self.runs[*i], &from, to.as_deref());
        if !bottoms.iter().any(is_stale) && !above.iter().any(|i| is_stale(i) && !is_absorbed(i)) {
            above.retain(|i| !is_absorbed(i));
        }
        // The runs of a level do not overlap, and the versions that a run hides lie in lower ones.
        let mut levels: Vec<usize> = above.iter().map(|i| self.height[*i]).collect();
        levels.sort_unstable();
        levels.dedup();
        let mut left = Vec::new();
        if let Some(level) = levels.get(fan_in - 1) {
            left = above.extract_if(.., |i| self.height[*i] >= *level).collect();
        }
        Plan::Sink { bottoms, above, left, from, to }
    }

    /// Enough levels of about one size, as usual in a log-structured merge tree: bounds the number of runs that a read must
    /// search. The newest of them.
    fn levels_to_collapse(&self, fan_in: usize) -> Option<Vec<usize>> {
        let top = self.height.iter().copied().max().unwrap_or(0);
        let mut bytes = vec![0; top + 1];
        for (run, height) in self.runs.iter().zip(&self.height) {
            bytes[*height] += run.bytes;
        }
        let (mut total, mut count) = (0, 0);
        for level in (1..=top).rev() {
            if count >= LEVELS_MAX && bytes[level] > total * SIZE_RATIO {
                break;
            }
            total += bytes[level];
            count += 1;
        }
        let newest = top - count.min(fan_in);
        (count > LEVELS_MAX).then(|| (0..self.runs.len()).filter(|i| self.height[*i] > newest).collect())
    }

    /// Neighbours with frames that wait to become dense together, and dense ones beside them that are not too large: so a value is copied
    /// a few times in its life. While there are commits, only as many as fill a segment.
    fn neighbours_to_gather(&self, eagerness: Eagerness, gather_bytes: u64) -> Option<Range<usize>> {
        let run = |at: usize| &self.runs[self.bottoms[at]];
        let spooled = |at: usize| run(at).waiting_bytes + run(at).dense_bytes / SPOOL_SHARE;
        let is_full = |at: usize| run(at).waiting_bytes == 0 && spooled(at) * 2 >= gather_bytes;
        let first = (0..self.bottoms.len()).find(|at| run(*at).waiting_bytes > 0)?;
        let (mut range, mut waiting, mut bytes) = (first..first + 1, run(first).waiting_bytes, spooled(first));
        while range.end < self.bottoms.len() && bytes + spooled(range.end) <= gather_bytes && !is_full(range.end) {
            bytes += spooled(range.end);
            waiting += run(range.end).waiting_bytes;
            range.end += 1;
        }
        let is_enough = eagerness != Eagerness::Busy || bytes * 4 >= gather_bytes * 3;
        while range.start > 0
            && !is_full(range.start - 1)
            && bytes + spooled(range.start - 1) <= gather_bytes
            && (eagerness == Eagerness::Everything || spooled(range.start - 1) <= waiting * DENSE_AGAIN)
        {
            range.start -= 1;
            bytes += spooled(range.start);
        }
        is_enough.then_some(range)
    }

    /// Enough small bottom runs beside each other.
    fn small_neighbours(&self, aim_bytes: u64) -> Option<Range<usize>> {
        // Waiting values are gathered instead.
        let is_small = |at: usize| {
            let run = &self.runs[self.bottoms[at]];
            run.raw_bytes < aim_bytes / SMALL_SHARE && run.waiting_bytes == 0
        };
        let mut from = 0;
        for at in 0..self.bottoms.len() {
            if !is_small(at) {
                from = at + 1;
            } else if at + 1 - from >= SMALL_RUNS {
                return Some(from..at + 1);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AIM: u64 = 64 << 20;

    fn run(file: u64, megabytes: u64, first: u8, last: u8) -> Candidate {
        Candidate {
            files: vec![file],
            bytes: megabytes << 20,
            raw_bytes: megabytes << 20,
            rows: megabytes * 100,
            first: vec![first],
            last: vec![last],
            ..Candidate::default()
        }
    }

    fn choose(runs: &[Candidate], absorbed: &Absorbed, eagerness: Eagerness) -> Option<Plan> {
        Shape::new(runs).choose(absorbed, eagerness, Csn(10), Limits { aim_bytes: AIM, gather_bytes: AIM, fan_in: 32 })
    }

    fn sink(bottoms: &[usize], above: &[usize], from: Option<u8>, to: Option<u8>) -> Option<Plan> {
        let from = from.map(|k| vec![k]).unwrap_or_default();
        Some(Plan::Sink { bottoms: bottoms.to_vec(), above: above.to_vec(), left: vec![], from, to: to.map(|k| vec![k]) })
    }

    #[test]
    fn large_runs_without_overlap_are_not_merged() {
        let none = Absorbed::default();
        for eagerness in [Eagerness::Busy, Eagerness::Idle, Eagerness::Cold, Eagerness::Everything] {
            assert_eq!(choose(&[], &none, eagerness), None);
            assert_eq!(choose(&[run(2, 60, 5, 9), run(1, 60, 1, 4)], &none, eagerness), None);
        }
        let small: Vec<Candidate> = (0..9).map(|i| run(u64::from(i), 1, i, i)).collect();
        assert_eq!(choose(&small, &none, Eagerness::Busy), sink(&[0, 1, 2, 3, 4, 5, 6, 7], &[], None, Some(8)));
    }

    #[test]
    fn the_slice_with_the_most_dead_rows_is_rewritten_alone() {
        // New rows behind all others overlap nothing; a few deletions among old ones affect one slice.
        let runs = [run(5, 20, 3, 4), run(4, 60, 8, 9), run(3, 60, 5, 7), run(2, 60, 3, 4), run(1, 60, 1, 2)];
        assert_eq!(Shape::new(&runs).bulk(), Bulk { bottom_bytes: 240 << 20, above_bytes: 20 << 20 });
        let mut absorbed = Absorbed::default();
        assert_eq!(choose(&runs, &absorbed, Eagerness::Busy), sink(&[3], &[0], Some(3), Some(5)));
        assert!(Shape::new(&runs).superfluous(&absorbed).is_empty());
        absorbed.add(5, &[3], Some(&[5]));
        assert_eq!(choose(&runs, &absorbed, Eagerness::Busy), None);
        assert_eq!(Shape::new(&runs).superfluous(&absorbed), [0]);
    }

    #[test]
    fn idle_merges_absorb_the_rest_of_a_run() {
        let mut runs = [run(4, 1, 2, 9), run(3, 60, 5, 9), run(2, 60, 1, 4)];
        let mut absorbed = Absorbed::default();
        assert_eq!(choose(&runs, &absorbed, Eagerness::Idle), None, "little is above");
        absorbed.add(4, &[], Some(&[5]));
        assert_eq!(choose(&runs, &absorbed, Eagerness::Busy), None);
        assert_eq!(choose(&runs, &absorbed, Eagerness::Idle), sink(&[1], &[0], Some(5), None));
        absorbed.add(4, &[5], None);
        assert_eq!(choose(&runs, &absorbed, Eagerness::Idle), None);
        // Most of its rows are live.
        (runs[0].first, runs[1].last) = (vec![1], vec![6]);
        let third = [runs[0].clone(), run(5, 60, 7, 9), runs[1].clone(), runs[2].clone()];
        let mut absorbed = Absorbed::default();
        absorbed.add(4, &[], Some(&[5]));
        assert_eq!(choose(&third, &absorbed, Eagerness::Idle), None);
    }

    #[test]
    fn ranges_are_added_and_taken_back() {
        let run = run(7, 1, 3, 9);
        let mut absorbed = Absorbed::default();
        absorbed.add(7, &[], Some(&[5]));
        absorbed.add(7, &[5], Some(&[8]));
        assert!(absorbed.covers(&run, &[3], Some(&[8])) && !absorbed.covers(&run, &[3], None));
        absorbed.subtract(7, &[4], Some(&[6]));
        assert!(absorbed.covers(&run, &[], Some(&[4])) && absorbed.covers(&run, &[6], Some(&[8])));
        assert!(!absorbed.touches(&run, &[4], Some(&[6])) && absorbed.touches(&run, &[4], Some(&[7])));
        assert!(!absorbed.touches(&run, &[8], None));
        absorbed.subtract(7, &[], None);
        assert!(!absorbed.touches(&run, &[], None));
    }

    #[test]
    fn a_run_above_stays_until_all_slices_and_hidden_rows_are_merged() {
        let runs = [run(4, 30, 1, 3), run(3, 30, 1, 9), run(2, 60, 5, 9), run(1, 60, 1, 4)];
        let mut absorbed = Absorbed::default();
        assert_eq!(choose(&runs, &absorbed, Eagerness::Idle), sink(&[3], &[0, 1], None, Some(5)));
        [3, 4].iter().for_each(|file| absorbed.add(*file, &[], Some(&[5])));
        assert!(Shape::new(&runs).superfluous(&absorbed).is_empty(), "4 hides rows of 3, of which the other slice needs some");
        assert_eq!(choose(&runs, &absorbed, Eagerness::Idle), sink(&[2], &[1], Some(5), None));
        absorbed.add(3, &[5], None);
        assert_eq!(Shape::new(&runs).superfluous(&absorbed), [1, 0]);
    }

    #[test]
    fn absorbed_rows_stay_hidden_after_bottom_merge() {
        // 3 deletes rows of 2 and 1; the slice of 1 is done and nothing is left of it, so that 2 is at the bottom, and stale in part.
        let runs = [run(3, 10, 1, 9), run(2, 10, 3, 9)];
        let mut absorbed = Absorbed::default();
        [2, 3].iter().for_each(|file| absorbed.add(*file, &[], Some(&[5])));
        assert!(Shape::new(&runs).superfluous(&absorbed).is_empty());
        absorbed.add(3, &[5], None);
        assert!(Shape::new(&runs).superfluous(&absorbed).is_empty(), "2 still has what 3 hides");
        absorbed.add(2, &[7], None);
        absorbed.add(2, &[5], Some(&[7]));
        assert_eq!(Shape::new(&runs).superfluous(&absorbed), [1, 0]);
    }

    #[test]
    fn levels_collapse_when_there_are_many() {
        let mut runs: Vec<Candidate> = (10..15).map(|file| run(file, 1, 2, 8)).collect();
        runs.push(run(1, 100, 1, 9));
        let none = Absorbed::default();
        assert_eq!(choose(&runs, &none, Eagerness::Busy), Some(Plan::Collapse { runs: vec![0, 1, 2, 3, 4] }));
        assert_eq!(choose(&runs[1..], &none, Eagerness::Busy), None);
        assert_eq!(choose(&runs[1..], &none, Eagerness::Everything), sink(&[4], &[0, 1, 2, 3], None, None));
    }

    #[test]
    fn no_more_runs_overlap_than_may_be_read_together() {
        // Ten levels of two runs each over one slice.
        let mut runs: Vec<Candidate> = (0..20).map(|i| run(100 - i, 10, 1 + 4 * (i % 2) as u8, 4 + 4 * (i % 2) as u8)).collect();
        runs.push(run(1, 100, 1, 9));
        let mut absorbed = Absorbed::default();
        let mut seen = Vec::new();
        while seen.len() < 20 {
            let limits = Limits { aim_bytes: AIM, gather_bytes: AIM, fan_in: 4 };
            let plan = Shape::new(&runs).choose(&absorbed, Eagerness::Everything, Csn(10), limits).expect("there is more");
            let Plan::Sink { bottoms, above, left, .. } = plan else { panic!("a sinking") };
            assert_eq!((bottoms, above.len()), (vec![20], (20 - seen.len()).min(6)));
            assert!(above.iter().all(|i| seen.iter().all(|s| i < s)), "older ones first");
            assert_eq!(above.len() + left.len() + seen.len(), 20);
            above.iter().for_each(|i| absorbed.add(runs[*i].files[0], &[], None));
            seen.extend(above);
        }
        assert_eq!(seen.len(), 20);
        // A run that was absorbed in part, or came to the bottom afterwards, is read with all runs that hide its rows.
        let all = Shape::new(&runs).sink(&Absorbed::default(), 0..1, 4);
        for stale in [1, 90] {
            let mut absorbed = Absorbed::default();
            runs[..20].iter().for_each(|run| absorbed.add(run.files[0], &[], None));
            absorbed.subtract(90, &[3], None);
            absorbed.subtract(90, &[1], Some(&[2]));
            if stale == 1 {
                absorbed.add(90, &[], None);
                absorbed.add(1, &[1], Some(&[2]));
            }
            assert_eq!(Shape::new(&runs).sink(&absorbed, 0..1, 4), all, "{stale}");
        }
        let collapse = Shape::new(&runs).levels_to_collapse(4).expect("there are many");
        assert_eq!(collapse, (0..8).collect::<Vec<_>>());
    }

    #[test]
    fn waiting_frames_are_gathered() {
        let waiting = |file, megabytes: u64, key| Candidate { waiting_bytes: megabytes << 20, ..run(file, megabytes, key, key) };
        let dense =
            |file, megabytes: u64, key| Candidate { dense_bytes: (megabytes * SPOOL_SHARE) << 20, ..run(file, 1, key, key) };
        let none = Absorbed::default();
        let runs = [waiting(4, 8, 4), waiting(3, 8, 3), dense(2, 12, 2), dense(1, 40, 1)];
        assert_eq!(choose(&runs, &none, Eagerness::Busy), None, "not enough for a segment");
        // 1 is more than half of a segment.
        assert_eq!(choose(&runs, &none, Eagerness::Idle), sink(&[0, 1, 2], &[], Some(2), None));
        // Run 2 is too large compared with the waiting values.
        assert_eq!(choose(&runs[1..], &none, Eagerness::Idle), sink(&[0, 1], &[], Some(2), None));
        let runs = [Candidate { waiting_bytes: 512 << 10, ..run(3, 1, 3, 3) }, dense(2, 12, 2)];
        assert_eq!(choose(&runs, &none, Eagerness::Idle), sink(&[0], &[], Some(3), None));
        assert_eq!(choose(&runs, &none, Eagerness::Everything), sink(&[0, 1], &[], None, None));
        // As many as a segment has, at a time.
        let many: Vec<Candidate> = (1..=20).rev().map(|i| waiting(i, 8, i as u8)).collect();
        let gathered: Vec<usize> = (12..20).collect();
        assert_eq!(choose(&many, &none, Eagerness::Busy), sink(&gathered, &[], None, Some(9)));
        assert_eq!(choose(&[dense(2, 12, 2), dense(1, 12, 1)], &none, Eagerness::Idle), None);
    }

    #[test]
    fn hastily_compressed_dense_values_are_recompressed_by_idle_merges() {
        let hasty = Candidate { dense_bytes: 99 << 20, hasty_bytes: 9 << 20, ..run(1, 9, 1, 2) };
        let runs = [run(2, 9, 3, 4), hasty];
        let none = Absorbed::default();
        assert_eq!(choose(&runs, &none, Eagerness::Idle), None);
        assert_eq!(choose(&runs, &none, Eagerness::Cold), sink(&[1], &[], None, Some(3)));
        let dead = [run(3, 3, 3, 4), runs[0].clone(), runs[1].clone()];
        assert_eq!(choose(&dead, &none, Eagerness::Cold), sink(&[1], &[0], Some(3), None), "what is dead goes first");
    }

    #[test]
    fn rows_held_by_snapshots_are_removed_after_them() {
        let mut held = run(1, 10, 1, 9);
        (held.held, held.csn_max) = (300, Csn(10));
        let none = Absorbed::default();
        assert_eq!(choose(std::slice::from_ref(&held), &none, Eagerness::Busy), sink(&[0], &[], None, None));
        held.csn_max = Csn(11);
        assert_eq!(choose(&[held], &none, Eagerness::Busy), None);
    }
}
