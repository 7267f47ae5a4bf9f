//! Reads of commits that a crash lost: docs/design/isolation.md, "Locks released before the commit is durable".
//!
//! A read of a value is one when all of this holds:
//!
//! 1. The level is READ COMMITTED: snapshots show only durable commits.
//! 2. The reader had appended before, and so held a lock: statements of others show only durable commits.
//! 3. The reader's end was not answered, and none of its appends remains.
//! 4. The writer had asked for COMMIT, got no answer, and none of its appends remains.
//! 5. They ran at the same time, so that one crash ended both.
//! 6. In the list all later values are lost, too, or are the reader's own: recovery keeps a prefix of the order of commits.
//!
//! No other deviation of such a read is excused.

use std::collections::HashMap;

use super::{Ending, History, Key, Level, ListOperation, Value};

/// By transaction and position of the read within it: the position of the first value in the list that was lost.
pub(super) type LostReads = HashMap<(usize, usize), usize>;

pub(super) fn find(history: &History, level: Level, writers: &HashMap<(Key, Value), usize>, committed: &[bool]) -> LostReads {
    let mut found = LostReads::new();
    if level.has_snapshot() {
        return found;
    }
    for (t, reader) in history.transactions.iter().enumerate() {
        if reader.ending.is_answered() || committed[t] {
            continue;
        }
        let is_lost = |w: usize| {
            let writer = &history.transactions[w];
            writer.ending == Ending::Unknown && !committed[w] && writer.began < reader.ended && reader.began < writer.ended
        };
        let first_append = reader.operations.iter().position(|o| matches!(o, ListOperation::Append(..)));
        for (n, operation) in reader.operations.iter().enumerate().skip(first_append.unwrap_or(usize::MAX)) {
            let ListOperation::Read(key, list) = operation else { continue };
            let writer = |value: &Value| writers.get(&(*key, *value)).copied();
            let tail = list.iter().rev().take_while(|v| writer(v).is_some_and(|w| w == t || is_lost(w))).count();
            let first = list.len() - tail;
            if let Some(own) = list[first..].iter().position(|v| writer(v) != Some(t)) {
                found.insert((t, n), first + own);
            }
        }
    }
    found
}
