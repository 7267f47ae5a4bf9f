//! A session that may listen: its channels, and the notifications it has not read.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;
use melba_types::Oid;
use parking_lot::Mutex;

use super::batch::{Notification, NotificationBatch, PLACE_BYTES};

/// Wakes the session's connection; it costs little when there is nothing to wake.
type Wake = Box<dyn Fn() + Send + Sync>;

/// A session that may listen.
pub struct Listener {
    pub pid: i32,
    pub database: Oid,
    state: Mutex<ListenerState>,
    /// The queue is not empty: set before the session is woken.
    has_queued: AtomicBool,
    wake: OnceLock<Wake>,
}

#[derive(Default)]
struct ListenerState {
    /// With the number of their LISTEN.
    channels: HashMap<Arc<str>, u64>,
    listened: u64,
    queue: VecDeque<Arc<NotificationBatch>>,
    /// How many of the first batch's notifications were read.
    read: usize,
}

/// A notification for a session.
pub struct Delivery {
    batch: Arc<NotificationBatch>,
    at: usize,
}

impl Delivery {
    /// Of the session that sent it.
    pub fn pid(&self) -> i32 {
        self.batch.pid
    }

    pub fn notification(&self) -> &Notification {
        &self.batch.notifications[self.at]
    }
}

impl Listener {
    pub fn new(pid: i32, database: Oid) -> Arc<Listener> {
        let (state, has_queued) = (Mutex::default(), AtomicBool::new(false));
        Arc::new(Listener { pid, database, state, has_queued, wake: OnceLock::new() })
    }

    /// How to wake the session when it waits for its client.
    pub fn set_wake(&self, wake: Wake) {
        // A session has one connection.
        let _ = self.wake.set(wake);
    }

    /// There are notifications that the session has not read.
    #[inline]
    pub fn has_queued(&self) -> bool {
        self.has_queued.load(Ordering::SeqCst)
    }

    /// The next notification that the session listens to.
    pub fn take(&self) -> Option<Delivery> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        while let Some(batch) = state.queue.front() {
            let listens = |n: &Notification| state.channels.contains_key(&n.channel);
            let rest = &batch.notifications[state.read..];
            if let Some(skipped) = rest.iter().position(listens) {
                let at = state.read + skipped;
                state.read = at + 1;
                return Some(Delivery { batch: Arc::clone(batch), at });
            }
            state.drop_first();
        }
        self.has_queued.store(false, Ordering::SeqCst);
        None
    }

    /// pg_listening_channels, in the order of LISTEN.
    pub fn channels(&self) -> Vec<Arc<str>> {
        let state = self.state.lock();
        let mut channels: Vec<(&u64, &Arc<str>)> = state.channels.iter().map(|(channel, number)| (number, channel)).collect();
        channels.sort_unstable();
        channels.into_iter().map(|(_, channel)| Arc::clone(channel)).collect()
    }

    pub(super) fn is_listening(&self) -> bool {
        !self.state.lock().channels.is_empty()
    }

    /// How many batches wait.
    pub(super) fn queued(&self) -> usize {
        self.state.lock().queue.len()
    }

    pub(super) fn add(&self, channel: Arc<str>) {
        let mut state = self.state.lock();
        state.listened += 1;
        let number = state.listened;
        state.channels.entry(channel).or_insert(number);
    }

    pub(super) fn remove(&self, channel: &str) {
        self.state.lock().channels.remove(channel);
    }

    pub(super) fn remove_all(&self) -> Vec<Arc<str>> {
        self.state.lock().channels.drain().map(|(channel, _)| channel).collect()
    }

    /// Drops unread notifications.
    pub(super) fn clear(&self) {
        let mut state = self.state.lock();
        while !state.queue.is_empty() {
            state.drop_first();
        }
        self.has_queued.store(false, Ordering::SeqCst);
    }

    /// Queues a batch, unless it is already queued; whether the session must be woken for it.
    pub(super) fn put(&self, batch: &Arc<NotificationBatch>) -> bool {
        let mut state = self.state.lock();
        if state.queue.back().is_some_and(|last| Arc::ptr_eq(last, batch)) {
            return false;
        }
        batch.used.fetch_add(PLACE_BYTES, Ordering::Relaxed);
        state.queue.push_back(Arc::clone(batch));
        !self.has_queued.swap(true, Ordering::SeqCst)
    }

    pub(super) fn wake(&self) {
        if let Some(wake) = self.wake.get() {
            wake();
        }
    }
}

impl ListenerState {
    fn drop_first(&mut self) {
        self.read = 0;
        if let Some(batch) = self.queue.pop_front() {
            batch.used.fetch_sub(PLACE_BYTES, Ordering::Relaxed);
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.clear();
    }
}
