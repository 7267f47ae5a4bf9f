//! The last flushes and merges of a server, for the views melba_flushes and melba_merges.

use std::collections::VecDeque;
use std::time::Duration;

use melba_engine::BackgroundEvent;
use melba_types::{Datum, TreeId};
use parking_lot::Mutex;

/// Flushes, and merges, that are remembered.
const REMEMBERED: usize = 1000;

/// See the module.
#[derive(Debug, Default)]
pub struct BackgroundWork {
    /// The last one first.
    pub(super) flushes: Mutex<VecDeque<Flush>>,
    pub(super) merges: Mutex<VecDeque<Merge>>,
    /// Of all flushes since the server's start.
    pub(super) flushed: Mutex<FlushSums>,
}

/// Flushes together, for pg_stat_checkpointer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FlushSums {
    pub count: u64,
    pub took: Duration,
    pub bytes: u64,
}

impl FlushSums {
    pub fn since(self, before: FlushSums) -> FlushSums {
        FlushSums {
            count: self.count.saturating_sub(before.count),
            took: self.took.saturating_sub(before.took),
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }
}

#[derive(Debug)]
pub(super) struct Flush {
    pub span: Span,
    pub trees: usize,
    pub segments: usize,
    pub bytes: u64,
}

#[derive(Debug)]
pub(super) struct Merge {
    pub span: Span,
    pub tree: TreeId,
    pub inputs: usize,
    pub outputs: usize,
    pub bytes_before: u64,
    pub bytes_after: u64,
}

#[derive(Debug)]
pub(super) struct Span {
    /// Microseconds since 2000-01-01.
    ended: i64,
    took: Duration,
}

impl BackgroundWork {
    /// Remembers what has ended `now`, in microseconds since 2000-01-01.
    pub fn note(&self, event: &BackgroundEvent, now: i64) {
        let span = |took: &Duration| Span { ended: now, took: *took };
        match event {
            BackgroundEvent::Flushed { trees, segments, bytes, took } => {
                let flush = Flush { span: span(took), trees: *trees, segments: *segments, bytes: *bytes };
                remember(&mut self.flushes.lock(), flush);
                let mut flushed = self.flushed.lock();
                flushed.count += 1;
                flushed.took += *took;
                flushed.bytes += bytes;
            }
            BackgroundEvent::Merged { tree, inputs, outputs, bytes_before, bytes_after, took } => {
                let merge = Merge {
                    span: span(took),
                    tree: TreeId(*tree),
                    inputs: *inputs,
                    outputs: *outputs,
                    bytes_before: *bytes_before,
                    bytes_after: *bytes_after,
                };
                remember(&mut self.merges.lock(), merge);
            }
            BackgroundEvent::Failed { .. } | BackgroundEvent::Poisoned { .. } => {}
        }
    }
}

fn remember<T>(all: &mut VecDeque<T>, new: T) {
    all.truncate(REMEMBERED - 1);
    all.push_front(new);
}

impl Span {
    /// started_at, duration (milliseconds).
    pub fn columns(&self) -> [Datum; 2] {
        let micros = i64::try_from(self.took.as_micros()).unwrap_or(i64::MAX);
        [Datum::Int8(self.ended.saturating_sub(micros)), Datum::Float8(self.took.as_secs_f64() * 1000.0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_remembered() {
        let work = BackgroundWork::default();
        for n in 0..REMEMBERED + 3 {
            let took = Duration::from_millis(2);
            work.note(&BackgroundEvent::Flushed { trees: n, segments: 1, bytes: 10, took }, 5000);
        }
        let flushes = work.flushes.lock();
        let trees: Vec<usize> = flushes.iter().map(|flush| flush.trees).collect();
        assert_eq!((trees.len(), trees[0], trees[REMEMBERED - 1]), (REMEMBERED, REMEMBERED + 2, 3));
        let columns = flushes[0].span.columns();
        assert!(matches!(columns, [Datum::Int8(3000), Datum::Float8(2.0)]), "{columns:?}");
        let all = *work.flushed.lock();
        assert_eq!((all.count, all.bytes), (REMEMBERED as u64 + 3, 10 * (REMEMBERED as u64 + 3)));
        assert_eq!(all.since(all), FlushSums::default());
    }
}
