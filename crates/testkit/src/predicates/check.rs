//! Dependencies by row and by predicate, and the cycles among them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::RangeInclusive;

use super::{Key, PredicateOperation, PredicateTransaction, Row, Version, Write};
use crate::history::graph::{Edge, Graph};
use crate::history::{Anomaly, AnomalyKind};

/// A row's state from one commit on; before its first one it is not there.
struct RowState {
    key: Option<Key>,
    writer: usize,
}

/// A place in a row's states, with 0 for "not there yet": the state before it is at the place minus one.
type Place = usize;

struct RowStates<'a> {
    transactions: &'a [PredicateTransaction],
    /// The states of each row in their order.
    states: BTreeMap<Row, Vec<RowState>>,
    /// Of the committed: which row's, and its place.
    places: HashMap<Version, (Row, Place)>,
    /// When a row's first commit began, and when the one that removed it had ended.
    lives: Vec<(u64, u64, Row)>,
}

/// Finds results that no order of the committed transactions explains.
pub fn check(transactions: &[PredicateTransaction]) -> Vec<Anomaly> {
    let mut found = Vec::new();
    let rows = RowStates::infer(transactions, &mut found);
    let mut graph = Graph::new(transactions.len());
    for states in rows.states.values() {
        for pair in states.windows(2) {
            graph.add(pair[0].writer, Edge::Overwrites, pair[1].writer);
        }
    }
    for t in (0..transactions.len()).filter(|t| transactions[*t].committed) {
        rows.add_reads(t, &mut graph, &mut found);
    }
    graph.cycles(&mut found);
    found
}

impl RowStates<'_> {
    /// Orders the versions of each row by the versions that they name as replaced.
    fn infer<'a>(transactions: &'a [PredicateTransaction], found: &mut Vec<Anomaly>) -> RowStates<'a> {
        let mut next: HashMap<(Row, Option<Version>), (Write, usize)> = HashMap::new();
        for (t, transaction) in transactions.iter().enumerate().filter(|(_, x)| x.committed) {
            for operation in &transaction.operations {
                let PredicateOperation::Write(write) = operation else { continue };
                if let Some((_, other)) = next.insert((write.row, write.before), (*write, t)) {
                    let text = format!("transaction {t} and transaction {other} have replaced the same version: {write:?}");
                    found.push(Anomaly { kind: AnomalyKind::GSingle, text });
                }
            }
        }
        let (mut states, mut places) = (BTreeMap::new(), HashMap::new());
        for row in next.keys().filter(|(_, before)| before.is_none()).map(|(row, _)| *row) {
            let (mut of_row, mut before) = (Vec::new(), None);
            while let Some((write, writer)) = next.get(&(row, before)) {
                of_row.push(RowState { key: write.key, writer: *writer });
                places.insert(write.after, (row, of_row.len()));
                before = Some(write.after);
            }
            states.insert(row, of_row);
        }
        let life = |(row, states): (&Row, &Vec<RowState>)| {
            let (first, last) = (states.first()?, states.last()?);
            let removed = if last.key.is_none() { transactions[last.writer].ended } else { u64::MAX };
            Some((transactions[first.writer].committing, removed, *row))
        };
        let lives = states.iter().filter_map(life).collect();
        RowStates { transactions, states, places, lives }
    }

    fn is_within(&self, states: &[RowState], place: Place, range: &RangeInclusive<Key>) -> bool {
        place.checked_sub(1).and_then(|at| states[at].key).is_some_and(|key| range.contains(&key))
    }

    /// The edges of a transaction's reads.
    fn add_reads(&self, t: usize, graph: &mut Graph, found: &mut Vec<Anomaly>) {
        let reader = &self.transactions[t];
        // Others came after it, or were deleted before: time alone tells the order.
        let near: Vec<Row> = self
            .lives
            .iter()
            .filter(|(born, gone, _)| *born < reader.ended && *gone >= reader.began)
            .map(|life| life.2)
            .collect();
        let mut own: HashSet<Row> = HashSet::new();
        for operation in &self.transactions[t].operations {
            let (from, to, seen) = match operation {
                PredicateOperation::Write(write) => {
                    own.insert(write.row);
                    continue;
                }
                PredicateOperation::Read(from, to, seen) => (*from, *to, seen),
            };
            let mut there: HashSet<Row> = HashSet::new();
            for (row, version) in seen {
                if !there.insert(*row) {
                    found.push(Anomaly { kind: AnomalyKind::Garbled, text: format!("transaction {t} found row {row} twice") });
                }
                if own.contains(row) {
                    continue;
                }
                match self.places.get(version) {
                    Some((of, place)) if of == row => self.add_seen(t, *row, *place, graph),
                    _ => {
                        let text = format!("transaction {t} read version {version} of row {row}, which nobody has committed");
                        found.push(Anomaly { kind: AnomalyKind::G1a, text });
                    }
                }
            }
            for row in near.iter().filter(|row| !there.contains(row) && !own.contains(row)) {
                self.add_missed(t, *row, &self.states[row], &(from..=to), graph, found);
            }
        }
    }

    fn add_seen(&self, t: usize, row: Row, place: Place, graph: &mut Graph) {
        let states = &self.states[&row];
        graph.add(states[place - 1].writer, Edge::IsRead, t);
        if let Some(next) = states.get(place) {
            graph.add(t, Edge::IsOverwritten, next.writer);
        }
    }

    /// A row that was not within the range: where it can have been, and which transactions changed that before and after.
    fn add_missed(
        &self,
        t: usize,
        row: Row,
        states: &[RowState],
        range: &RangeInclusive<Key>,
        graph: &mut Graph,
        found: &mut Vec<Anomaly>,
    ) {
        let within = |place: &Place| self.is_within(states, *place, range);
        if !(1..=states.len()).any(|place| within(&place)) {
            return;
        }
        let reader = &self.transactions[t];
        let writer = |place: Place| &self.transactions[states[place - 1].writer];
        let first = (1..=states.len()).rev().find(|place| writer(*place).ended < reader.began).unwrap_or(0);
        let beyond = (first + 1..=states.len()).find(|place| writer(*place).committing > reader.looked);
        let mut possible = (first..beyond.unwrap_or(states.len() + 1)).filter(|place| !within(place));
        let Some(least) = possible.next() else {
            let text = format!("transaction {t} did not find row {row} in {range:?}, where it was all the time");
            found.push(Anomaly { kind: AnomalyKind::Internal, text });
            return;
        };
        let most = possible.next_back().unwrap_or(least);
        if (least..=most).any(|place| within(&place)) {
            // It was there in between: before or after is not known.
            return;
        }
        let left = (1..=least).rev().take_while(|place| !within(place)).last();
        // A row that was never within before has not left.
        if let Some(left) = left.filter(|left| *left > 1) {
            graph.add(states[left - 1].writer, Edge::IsRead, t);
        }
        if let Some(enters) = (most + 1..=states.len()).find(within) {
            graph.add(t, Edge::IsOverwritten, states[enters - 1].writer);
        }
    }
}
