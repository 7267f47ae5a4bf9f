//! Transaction ids as SQL shows them (xid8): a transaction gets one on demand.
//!
//! Invariants:
//! 1. Ids ascend in the order of assignment, over restarts too: the first one after a start is the time of the start, in
//!    microseconds since 2000.
//! 2. A snapshot reports as running every transaction that its view does not show: an end is noted with the number of the commit,
//!    and forgotten ends are older than every view that is requested, or the snapshot shows nothing.

use std::collections::{BTreeMap, BTreeSet};

use melba_types::{Csn, Result, bail};
use parking_lot::Mutex;

/// Ends that are remembered.
const ENDED_MAX: usize = 1 << 16;

/// The lowest id that is a transaction's own; the two below stand for "committed long ago".
const FIRST_NORMAL: u64 = 3;

/// The state of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XidStatus {
    Running,
    Committed,
    Aborted,
}

/// pg_snapshot: ids below `xmin` are over, those from `xmax` on are not, of those between `running` are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XidSnapshot {
    pub xmin: u64,
    pub xmax: u64,
    pub running: Vec<u64>,
}

/// The ids of one server.
#[derive(Debug)]
pub struct Xids(Mutex<XidState>);

#[derive(Debug)]
struct XidState {
    first: u64,
    next: u64,
    running: BTreeSet<u64>,
    ended: BTreeMap<u64, (Csn, XidStatus)>,
    by_end: BTreeSet<(Csn, u64)>,
    /// The newest end that is forgotten.
    forgotten: Csn,
}

impl Xids {
    /// Of a server that starts at a time.
    pub fn starting_at(micros: i64) -> Xids {
        let first = (micros.max(0) as u64).max(FIRST_NORMAL);
        Xids(Mutex::new(XidState {
            first,
            next: first,
            running: BTreeSet::new(),
            ended: BTreeMap::new(),
            by_end: BTreeSet::new(),
            forgotten: Csn(0),
        }))
    }

    /// Assigns the next id to a transaction, which must `end` it.
    pub fn assign(&self) -> u64 {
        let mut state = self.0.lock();
        let xid = state.next;
        state.next += 1;
        state.running.insert(xid);
        xid
    }

    /// Notes an end: of a commit the number at which it becomes visible, of a rollback the newest visible one.
    pub fn end(&self, xid: u64, csn: Csn, is_commit: bool) {
        let mut state = self.0.lock();
        if !state.running.remove(&xid) {
            return;
        }
        let status = if is_commit { XidStatus::Committed } else { XidStatus::Aborted };
        state.ended.insert(xid, (csn, status));
        state.by_end.insert((csn, xid));
        if state.by_end.len() > ENDED_MAX
            && let Some((csn, xid)) = state.by_end.pop_first()
        {
            state.ended.remove(&xid);
            state.forgotten = csn;
        }
    }

    /// The id of the transaction that a commit ended, as xmin shows it in 32 bits: it tells versions of a row apart. A number of the
    /// commit itself stands for one that had no id, or whose id is forgotten.
    pub fn of_commit(&self, csn: Csn) -> u32 {
        let state = self.0.lock();
        let mut ends = state.by_end.range((csn, 0)..=(csn, u64::MAX)).map(|(_, xid)| *xid);
        let committed = ends.find(|xid| matches!(state.ended.get(xid), Some((_, XidStatus::Committed))));
        let shown = committed.unwrap_or(csn.0) as u32;
        shown.max(FIRST_NORMAL as u32)
    }

    /// `None`: it is too old to be known.
    ///
    /// # Errors
    /// 22023 for an id that was not given yet.
    pub fn status(&self, xid: u64) -> Result<Option<XidStatus>> {
        let state = self.0.lock();
        if (1..FIRST_NORMAL).contains(&xid) {
            return Ok(Some(XidStatus::Committed));
        }
        if xid >= state.next {
            bail!(INVALID_PARAMETER_VALUE, "transaction ID {xid} is in the future");
        }
        if state.running.contains(&xid) {
            return Ok(Some(XidStatus::Running));
        }
        Ok(state.ended.get(&xid).map(|(_, status)| *status))
    }

    /// How many ids were given since the one with these low 32 bits (PostgreSQL's age). Ids of before the server's start count from the
    /// start: nothing has to be frozen, so that no row's age means a danger.
    pub fn age(&self, low: u32) -> i32 {
        if u64::from(low) < FIRST_NORMAL {
            return i32::MAX;
        }
        let state = self.0.lock();
        let since = (state.next as u32).wrapping_sub(low);
        u64::from(since).min(state.next - state.first).min(i32::MAX as u64) as i32
    }

    /// The ids as a view sees them.
    pub fn snapshot(&self, view: Csn) -> XidSnapshot {
        let state = self.0.lock();
        if view < state.forgotten {
            return XidSnapshot { xmin: state.first, xmax: state.first, running: Vec::new() };
        }
        let mut running = state.running.clone();
        running.extend(state.by_end.range((Csn(view.0 + 1), 0)..).map(|(_, xid)| *xid));
        let xmin = running.first().copied().unwrap_or(state.next);
        let mut xmax = state.next;
        // As in PostgreSQL it ends with the newest one that is over.
        while running.last().is_some_and(|xid| xid + 1 == xmax) {
            xmax -= 1;
            running.pop_last();
        }
        XidSnapshot { xmin, xmax, running: running.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_before_the_start_are_as_old_as_the_start() {
        let xids = Xids::starting_at(5_000_000_000_000);
        let first = xids.assign();
        let second = xids.assign();
        let ages = [first, second, 0, 2, 3].map(|xid| xids.age(xid as u32));
        assert_eq!(ages, [2, 1, i32::MAX, i32::MAX, 2]);
    }

    fn snapshot(xmin: u64, xmax: u64, running: &[u64]) -> XidSnapshot {
        XidSnapshot { xmin, xmax, running: running.to_vec() }
    }

    #[test]
    fn a_snapshot_lists_transactions_invisible_to_its_view_as_running() {
        let xids = Xids::starting_at(100);
        assert_eq!(xids.snapshot(Csn(5)), snapshot(100, 100, &[]));
        let all: Vec<u64> = (0..4).map(|_| xids.assign()).collect();
        assert_eq!(xids.snapshot(Csn(5)), snapshot(100, 100, &[]));
        xids.end(all[1], Csn(6), true);
        xids.end(all[2], Csn(6), false);
        assert_eq!(xids.snapshot(Csn(5)), snapshot(100, 100, &[]));
        assert_eq!(xids.snapshot(Csn(6)), snapshot(100, 103, &[100]));
        xids.end(all[3], Csn(7), true);
        assert_eq!(xids.snapshot(Csn(6)), snapshot(100, 103, &[100]));
        assert_eq!(xids.snapshot(Csn(7)), snapshot(100, 104, &[100]));
        xids.end(all[0], Csn(8), true);
        assert_eq!(xids.snapshot(Csn(7)), snapshot(100, 104, &[100]));
        assert_eq!(xids.snapshot(Csn(8)), snapshot(104, 104, &[]));
    }

    #[test]
    fn commits_are_shown_by_their_ids_or_by_their_numbers() {
        let xids = Xids::starting_at(1000);
        let (first, second) = (xids.assign(), xids.assign());
        xids.end(first, Csn(7), false);
        assert_eq!([xids.of_commit(Csn(7)), xids.of_commit(Csn(0))], [7, FIRST_NORMAL as u32]);
        xids.end(second, Csn(7), true);
        assert_eq!(xids.of_commit(Csn(7)), second as u32);
    }

    #[test]
    fn ends_are_told_until_they_are_forgotten() {
        let xids = Xids::starting_at(100);
        let (first, second) = (xids.assign(), xids.assign());
        xids.end(first, Csn(1), false);
        // An end is noted once.
        xids.end(first, Csn(1), true);
        assert_eq!(xids.status(first).expect("given"), Some(XidStatus::Aborted));
        assert_eq!(xids.status(second).expect("given"), Some(XidStatus::Running));
        assert_eq!(xids.status(2).expect("always there"), Some(XidStatus::Committed));
        assert_eq!(xids.status(99).expect("of the past"), None);
        assert_eq!(xids.status(102).expect_err("not given yet").message(), "transaction ID 102 is in the future");
        for csn in 0..ENDED_MAX as u64 {
            xids.end(xids.assign(), Csn(csn + 2), true);
        }
        assert_eq!(xids.status(first).expect("given"), None);
        assert_eq!(xids.snapshot(Csn(0)), snapshot(100, 100, &[]), "a view older than what is remembered");
        assert_eq!(xids.snapshot(Csn(u64::MAX - 1)).running, [second]);
    }
}
