//! Random histories of a few transactions at a time, which end in two steps as those of a server do: the commit is visible before the
//! module is told, and others act in between.

use std::collections::BTreeMap;

use super::*;

/// The events so far.
#[derive(Default)]
struct History {
    /// Of each key, its versions: commit and transaction.
    versions: BTreeMap<u8, Vec<(Csn, usize)>>,
    committed: Vec<Committed>,
    failed: usize,
    /// Commits while others were visible and not reported.
    overlapping: usize,
}

/// A transaction that has committed.
struct Committed {
    number: usize,
    snapshot: Csn,
    /// Keys that were searched, found or not.
    reads: Vec<u8>,
}

struct Running {
    number: usize,
    txn: Arc<Transaction>,
    read_only: bool,
    snapshot: Option<Csn>,
    reads: Vec<u8>,
    writes: Vec<u8>,
}

const KEYS: u8 = 6;
/// Transactions at work, and commits on their way.
const RUNNING: usize = 5;
const ENDING: usize = 3;

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

impl Running {
    fn begin(store: &Store, number: usize, seed: &mut u64) -> Running {
        let txn = store.begin();
        let read_only = random(seed).is_multiple_of(4);
        txn.set_access(read_only, false);
        Running { number, txn, read_only, snapshot: None, reads: Vec::new(), writes: Vec::new() }
    }

    /// One action.
    fn act(&mut self, store: &Store, seed: &mut u64) -> Result<(), EngineError> {
        self.snapshot.get_or_insert(self.txn.statement_view().csn);
        let key = (random(seed) % u64::from(KEYS)) as u8;
        let last = (key + 2).min(KEYS - 1);
        match random(seed) % 8 {
            0..3 => store.range(&self.txn, key, key).map(|_| self.reads.push(key)),
            3 => store.range(&self.txn, key, last).map(|_| self.reads.extend(key..=last)),
            4 => store.scan(&self.txn).map(|_| self.reads.extend(0..KEYS)),
            _ if self.read_only => Ok(()),
            action => {
                let changed = match action {
                    5 => store.remove(&self.txn, key)?,
                    _ => store.put(&self.txn, key, self.number as u64).map(|()| true)?,
                };
                self.reads.push(key);
                self.writes.extend(changed.then_some(key));
                Ok(())
            }
        }
    }

    /// Commits; the module is notified when the returned commit ends.
    fn start_commit(&mut self, history: &mut History, durability: Durability) -> Result<Committing, EngineError> {
        let snapshot = self.snapshot.unwrap_or(Csn(0));
        let committing = self.txn.start_commit(durability, None)?;
        self.writes.sort_unstable();
        self.writes.dedup();
        for key in &self.writes {
            history.versions.entry(*key).or_default().push((committing.csn(), self.number));
        }
        history.committed.push(Committed { number: self.number, snapshot, reads: std::mem::take(&mut self.reads) });
        Ok(committing)
    }
}

/// The edges of the history's serialization graph (Adya): from the transaction that comes first in a serial order.
fn edges(history: &mut History) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    for versions in history.versions.values_mut() {
        versions.sort_unstable();
        out.extend(versions.windows(2).map(|w| (w[0].1, w[1].1)));
    }
    for reader in &history.committed {
        for key in &reader.reads {
            let versions = history.versions.get(key).map_or(&[][..], |v| v);
            let next = versions.partition_point(|(csn, _)| *csn <= reader.snapshot);
            out.extend(next.checked_sub(1).map(|read| (versions[read].1, reader.number)));
            out.extend(versions.get(next).map(|(_, writer)| (reader.number, *writer)));
        }
    }
    out.retain(|(a, b)| a != b);
    out
}

fn has_cycle(history: &mut History) -> bool {
    let mut edges = edges(history);
    let mut left: Vec<usize> = history.committed.iter().map(|t| t.number).collect();
    loop {
        let before = left.len();
        left.retain(|n| edges.iter().any(|(_, to)| to == n));
        edges.retain(|(from, to)| left.contains(from) && left.contains(to));
        if left.len() == before {
            return !left.is_empty();
        }
    }
}

/// One history from a seed.
fn run(seed: u64) -> History {
    let (store, mut history) = (Store::new(), History::default());
    let (mut running, mut ending): (Vec<Running>, Vec<Committing>) = Default::default();
    let seed = &mut { seed };
    for step in 0..300 {
        if running.len() < RUNNING {
            running.push(Running::begin(&store, step, seed));
        }
        let at = random(seed) as usize % running.len();
        match random(seed) % 12 {
            0 => store.engine.flush_log().expect("flushes"),
            1 | 2 if !ending.is_empty() => {
                let committing = ending.swap_remove(random(seed) as usize % ending.len());
                ending.extend(committing.poll().err());
            }
            3 | 4 if ending.len() < ENDING => {
                let mut one = running.swap_remove(at);
                let durability = [Durability::Sync, Durability::Async][random(seed) as usize % 2];
                match one.start_commit(&mut history, durability) {
                    Ok(committing) => {
                        history.overlapping += usize::from(!ending.is_empty());
                        ending.push(committing);
                    }
                    Err(_) => {
                        history.failed += 1;
                        one.txn.rollback();
                    }
                }
            }
            _ => {
                if running[at].act(&store, seed).is_err() {
                    history.failed += 1;
                    running.swap_remove(at).txn.rollback();
                }
            }
        }
    }
    ending.into_iter().for_each(|committing| assert!(committing.wait().is_ok()));
    running.iter().for_each(|r| r.txn.rollback());
    assert_eq!(store.tracked(), (0, 0, 0), "nothing is kept when nobody runs");
    history
}

#[test]
fn random_histories_are_serializable() {
    let (mut committed, mut failed, mut overlapping) = (0, 0, 0);
    for seed in 0..300 {
        let mut history = run(seed);
        assert!(!has_cycle(&mut history), "seed {seed} is not serializable");
        committed += history.committed.len();
        failed += history.failed;
        overlapping += history.overlapping;
    }
    assert!(committed > 5000 && failed > 1000 && overlapping > 2000, "{committed}, {failed}, {overlapping}");
}
