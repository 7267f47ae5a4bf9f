//! Messages on their way to the files: sessions enqueue them, one thread writes them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::configuration::Configuration;

/// How long a session waits for room, when the writer makes progress.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
/// The most bytes that may wait.
const BYTES_MAX: usize = 8 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Stderr,
    Csv,
    Json,
    Syslog,
}

/// The writer's next work.
#[derive(Default)]
pub(crate) struct Work {
    pub pieces: Vec<(Destination, Vec<u8>)>,
    /// Messages that found no room since the last time.
    pub lost: u64,
    pub rotate: bool,
    pub configuration: Option<Arc<Configuration>>,
}

#[derive(Default)]
struct QueueState {
    work: Work,
    bytes: usize,
    /// The writer has pieces that it has not reported as written.
    is_writing: bool,
    /// A thread has waited for room without success since the writer last took something.
    is_stuck: bool,
}

#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<QueueState>,
    filled: Condvar,
    taken: Condvar,
}

impl Queue {
    /// Puts a message in, or counts it as lost.
    pub fn push(&self, destination: Destination, piece: Vec<u8>) {
        let mut state = self.state.lock();
        let until = Instant::now() + PATIENCE;
        while state.bytes + piece.len() > BYTES_MAX && state.bytes > 0 {
            if state.is_stuck || self.taken.wait_until(&mut state, until).timed_out() {
                state.is_stuck = true;
                state.work.lost += 1;
                return;
            }
        }
        state.bytes += piece.len();
        state.work.pieces.push((destination, piece));
        self.filled.notify_one();
    }

    pub fn request_rotation(&self) {
        self.state.lock().work.rotate = true;
        self.filled.notify_one();
    }

    pub fn reconfigure(&self, configuration: Arc<Configuration>) {
        self.state.lock().work.configuration = Some(configuration);
        self.filled.notify_one();
    }

    /// Waits until all is written, at most `patience`.
    pub fn flush(&self, patience: Duration) {
        let until = Instant::now() + patience;
        let mut state = self.state.lock();
        while state.bytes > 0 || state.is_writing {
            if self.taken.wait_until(&mut state, until).timed_out() {
                return;
            }
        }
    }

    /// The next work; waits for it at most `patience`. Work taken before has been written.
    pub fn take(&self, patience: Duration) -> Work {
        let mut state = self.state.lock();
        state.is_writing = false;
        self.taken.notify_all();
        let is_idle = |work: &Work| work.pieces.is_empty() && !work.rotate && work.configuration.is_none();
        if is_idle(&state.work) {
            self.filled.wait_for(&mut state, patience);
        }
        state.bytes = 0;
        state.is_stuck = false;
        state.is_writing = !state.work.pieces.is_empty();
        self.taken.notify_all();
        std::mem::take(&mut state.work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_that_is_stuck_costs_one_wait_and_messages() {
        let queue = Queue::default();
        let began = Instant::now();
        for _ in 0..40 {
            queue.push(Destination::Stderr, vec![b'x'; 1 << 20]);
        }
        assert!(began.elapsed() < 3 * PATIENCE, "{:?}", began.elapsed());
        let work = queue.take(Duration::ZERO);
        assert_eq!((work.pieces.len(), work.lost), (8, 32));
        queue.push(Destination::Stderr, vec![b'x']);
        assert_eq!(queue.take(Duration::ZERO).pieces.len(), 1);
    }

    #[test]
    fn one_message_may_be_longer_than_the_queue() {
        let queue = Queue::default();
        queue.push(Destination::Csv, vec![b'x'; BYTES_MAX + 1]);
        assert_eq!(queue.take(Duration::ZERO).pieces.len(), 1);
    }
}
