//! Finds every anomaly of a history that a level forbids.

use std::collections::HashMap;

use super::graph::{Edge, Graph};
use super::versions::Versions;
use super::{Anomaly, AnomalyKind, Ending, History, Key, Level, ListOperation, Value};

/// The anomalies of a history that a level forbids.
pub fn check(history: &History, level: Level) -> Vec<Anomaly> {
    let mut found = Vec::new();
    let versions = Versions::infer(history, level, &mut found);
    for t in 0..history.transactions.len() {
        internal(history, t, level, &mut found);
        reads(history, &versions, t, &mut found);
        appends(history, t, &mut found);
    }
    graph(history, &versions, level).cycles(&mut found);
    found.retain(|a| level.forbids(a.kind));
    found
}

/// A transaction's reads agree with its own appends, and with each other when it has one snapshot.
fn internal(history: &History, t: usize, level: Level, found: &mut Vec<Anomaly>) {
    let transaction = &history.transactions[t];
    // The exact expected result of the next read of a key, or its end when others' appends may come in between.
    let mut expected: HashMap<Key, Vec<Value>> = HashMap::new();
    let mut appended: HashMap<Key, Vec<Value>> = HashMap::new();
    for operation in &transaction.operations {
        match operation {
            ListOperation::Append(key, value) => {
                if let Some(list) = expected.get_mut(key) {
                    list.push(*value);
                }
                appended.entry(*key).or_default().push(*value);
            }
            ListOperation::Read(key, list) => {
                let own = appended.get(key).map_or(&[][..], |v| v);
                let moved = level.has_snapshot() && expected.get(key).is_some_and(|e| e != list);
                if moved || !list.ends_with(own) {
                    let text = format!("transaction {t} read key {key} as {list:?} after appending {own:?}");
                    found.push(Anomaly { kind: AnomalyKind::Internal, text });
                }
                expected.insert(*key, list.clone());
            }
        }
    }
}

/// Reads of states that were never committed; transactions that fail later have the same guarantees as others.
fn reads(history: &History, versions: &Versions<'_>, t: usize, found: &mut Vec<Anomaly>) {
    let transaction = &history.transactions[t];
    for (n, operation) in transaction.operations.iter().enumerate() {
        let ListOperation::Read(key, list) = operation else { continue };
        let kept = versions.lost_reads.get(&(t, n)).copied().unwrap_or(list.len());
        for value in &list[..kept] {
            let writer = versions.writers.get(&(*key, *value)).copied().filter(|w| *w != t);
            if let Some(w) = writer.filter(|w| !versions.committed[*w]) {
                let text = format!("transaction {t} read {value} of key {key} from transaction {w}, which did not commit");
                found.push(Anomaly { kind: AnomalyKind::G1a, text });
            }
        }
        let others = list.iter().rev().find(|v| versions.writers.get(&(*key, **v)) != Some(&t));
        if let Some((value, w)) = others.and_then(|v| Some((*v, *versions.writers.get(&(*key, *v))?)))
            && versions.last.get(&(w, *key)).is_some_and(|last| *last != value)
        {
            let text = format!("transaction {t} read key {key} up to {value}, in the middle of transaction {w}");
            found.push(Anomaly { kind: AnomalyKind::G1b, text });
        }
    }
}

/// Appends that exist although they must not, or the reverse.
fn appends(history: &History, t: usize, found: &mut Vec<Anomaly>) {
    let transaction = &history.transactions[t];
    let of_appends = transaction.operations.iter().filter_map(|o| match o {
        ListOperation::Append(key, value) => Some((*key, *value)),
        ListOperation::Read(..) => None,
    });
    let is_there = |(key, value): (Key, Value)| history.finally.get(&key).is_some_and(|list| list.contains(&value));
    let (there, lost): (Vec<_>, Vec<_>) = of_appends.partition(|a| is_there(*a));
    match transaction.ending {
        Ending::Committed if !lost.is_empty() => {
            found.push(Anomaly {
                kind: AnomalyKind::LostAppend,
                text: format!("transaction {t} committed, {lost:?} is not there"),
            });
        }
        Ending::Aborted | Ending::Interrupted if !there.is_empty() => {
            found.push(Anomaly { kind: AnomalyKind::G1a, text: format!("transaction {t} did not commit, {there:?} is there") });
        }
        Ending::Unknown if !there.is_empty() && !lost.is_empty() => {
            found.push(Anomaly {
                kind: AnomalyKind::Torn,
                text: format!("of transaction {t} {there:?} is there, {lost:?} is not"),
            });
        }
        _ => {}
    }
}

/// The dependencies among the committed transactions.
fn graph(history: &History, versions: &Versions<'_>, level: Level) -> Graph {
    let mut graph = Graph::new(history.transactions.len());
    for (key, order) in &versions.orders {
        for pair in order.windows(2) {
            let writer = |v: Value| versions.writers.get(&(*key, v)).copied();
            if let (Some(a), Some(b)) = (writer(pair[0]), writer(pair[1])) {
                graph.add(a, Edge::Overwrites, b);
            }
        }
    }
    for (t, transaction) in history.transactions.iter().enumerate() {
        for operation in &transaction.operations {
            let ListOperation::Read(key, list) = operation else { continue };
            let others = list.iter().rev().find_map(|v| versions.writers.get(&(*key, *v)).filter(|w| **w != t));
            if let Some(writer) = others {
                graph.add(*writer, Edge::IsRead, t);
            }
            if let Some(next) = versions.next(*key, list).and_then(|v| versions.writers.get(&(*key, v))) {
                graph.add(t, Edge::IsOverwritten, *next);
            }
        }
    }
    if level == Level::RepeatableRead {
        graph.add_times(&history.transactions);
    }
    graph.keep(&versions.committed);
    graph
}
