//! The order of each list's versions, inferred from the reads.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::lost_reads::{self, LostReads};
use super::{Anomaly, AnomalyKind, Ending, History, Key, Level, ListOperation, Value};

/// The writer of each value, and the order of values.
pub(super) struct Versions<'a> {
    /// The transaction of each value.
    pub writers: HashMap<(Key, Value), usize>,
    /// The longest list that was seen of each key.
    pub orders: BTreeMap<Key, &'a [Value]>,
    /// The last value that a transaction appended to a key.
    pub last: HashMap<(usize, Key), Value>,
    /// Transactions that have committed: it was reported, or some of their values were seen in the end.
    pub committed: Vec<bool>,
    /// Reads of commits that a crash lost; the values they show of those are no versions.
    pub lost_reads: LostReads,
}

impl<'a> Versions<'a> {
    pub fn infer(history: &'a History, level: Level, found: &mut Vec<Anomaly>) -> Versions<'a> {
        let (mut writers, mut last) = (HashMap::new(), HashMap::new());
        for (t, transaction) in history.transactions.iter().enumerate() {
            for operation in &transaction.operations {
                if let ListOperation::Append(key, value) = operation {
                    writers.insert((*key, *value), t);
                    last.insert((t, *key), *value);
                }
            }
        }
        let mut committed: Vec<bool> = history.transactions.iter().map(|t| t.ending == Ending::Committed).collect();
        for (key, list) in &history.finally {
            for t in list.iter().filter_map(|v| writers.get(&(*key, *v))) {
                committed[*t] |= history.transactions[*t].ending == Ending::Unknown;
            }
        }
        let lost_reads = lost_reads::find(history, level, &writers, &committed);
        let mut versions = Versions { writers, orders: BTreeMap::new(), last, committed, lost_reads };
        versions.infer_orders(history, found);
        versions
    }

    fn infer_orders(&mut self, history: &'a History, found: &mut Vec<Anomaly>) {
        let mut lists: Vec<(Key, &[Value])> = history.finally.iter().map(|(k, list)| (*k, list.as_slice())).collect();
        for (t, transaction) in history.transactions.iter().enumerate() {
            let mut own: HashSet<Key> = HashSet::new();
            for (n, operation) in transaction.operations.iter().enumerate() {
                match operation {
                    ListOperation::Append(key, _) => {
                        own.insert(*key);
                    }
                    ListOperation::Read(key, list) if self.lost_reads.contains_key(&(t, n)) => {
                        lists.push((*key, &list[..self.lost_reads[&(t, n)]]));
                    }
                    // A value that an aborted transaction read of its own append never was a version.
                    ListOperation::Read(key, _) if own.contains(key) && transaction.ending != Ending::Committed => {}
                    ListOperation::Read(key, list) => lists.push((*key, list)),
                }
            }
        }
        for (key, list) in &lists {
            let longest = self.orders.entry(*key).or_default();
            if list.len() > longest.len() {
                *longest = list;
            }
        }
        for (key, list) in lists {
            let order = self.orders[&key];
            if !order.starts_with(list) {
                let text = format!("key {key} was read as {list:?} and as {order:?}");
                found.push(Anomaly { kind: AnomalyKind::Disagreement, text });
            }
        }
        for (key, order) in &self.orders {
            let mut seen = HashSet::new();
            for value in *order {
                if !seen.insert(value) || !self.writers.contains_key(&(*key, *value)) {
                    let text = format!("key {key} has {value} twice, or nobody appended it");
                    found.push(Anomaly { kind: AnomalyKind::Garbled, text });
                }
            }
        }
    }

    /// The value after a version, which is named by its list.
    pub fn next(&self, key: Key, list: &[Value]) -> Option<Value> {
        self.orders.get(&key)?.get(list.len()).copied()
    }
}
