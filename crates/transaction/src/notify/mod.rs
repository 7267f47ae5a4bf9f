//! NOTIFY: passes the notifications of committed transactions to the sessions that listen.
//!
//! A transaction gathers its notifications (`pending`). When it commits it takes its turn (a lock that passes from commit to
//! commit in the order of the log) and a place in the queue here; once it has committed, its place and those that have committed
//! before it are handed to the listeners (`listener`), each of which gets the transaction's whole batch and selects its channels.
//!
//! Invariants:
//! 1. Places are in the order of the commits, and listeners get them in that order.
//! 2. A batch is handed on after its transaction is visible to others, and before its commit returns.
//! 3. The memory of batches is counted from their place in the queue until the last listener has read them. Over the limit no
//!    transaction gets a place (54000): a session that does not read costs a bounded amount of memory.

mod batch;
mod listener;
mod pending;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hashbrown::HashMap;
use melba_types::{DbError, Oid, Result, err};
use parking_lot::{Condvar, Mutex};

pub use batch::{Notification, NotificationBatch};
pub use listener::{Delivery, Listener};
use pending::Action;
pub use pending::{PendingNotifications, PendingPosition};

/// The queue of a server, and the listeners.
pub struct Notifications {
    state: Mutex<ChannelState>,
    /// Places were handed on, or removed.
    moved: Condvar,
    used: Arc<AtomicU64>,
    limit: AtomicU64,
}

/// The listeners of a channel, by process id.
type Channels = HashMap<Arc<str>, HashMap<i32, Arc<Listener>>>;

#[derive(Default)]
struct ChannelState {
    /// By database.
    listeners: HashMap<Oid, Channels>,
    queue: VecDeque<Place>,
    /// Number of the queue's front.
    first: u64,
    /// When the last warning about the filling queue was sent.
    warned: Option<Duration>,
}

enum Place {
    Committing,
    Committed(NotificationBatch),
    /// Its transaction has failed.
    Gone,
}

/// A committing transaction's place in the queue; dropped, the transaction has failed.
pub struct Reserved<'a> {
    queue: &'a Notifications,
    number: u64,
    batch: Option<NotificationBatch>,
}

/// Time between two warnings.
const WARNING_PAUSE: Duration = Duration::from_secs(5);

impl Notifications {
    /// `limit`: bytes that the queue may hold.
    pub fn new(limit: u64) -> Notifications {
        Notifications { state: Mutex::default(), moved: Condvar::new(), used: Arc::default(), limit: AtomicU64::new(limit) }
    }

    /// How full the queue is, from 0 to 1.
    pub fn usage(&self) -> f64 {
        (self.used.load(Ordering::Relaxed) as f64 / self.limit() as f64).min(1.0)
    }

    /// Limits the queue to `bytes`.
    pub fn limit_to(&self, bytes: u64) {
        self.limit.fetch_min(bytes.max(1), Ordering::Relaxed);
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Takes the next place, for a transaction whose turn it is. The warning is one that the queue is filling.
    ///
    /// # Errors
    /// 54000 when it is full.
    pub(crate) fn reserve(&self, pending: &mut PendingNotifications, now: Duration) -> Result<(Reserved<'_>, Option<DbError>)> {
        let notifications = pending.take_notifications();
        let bytes = notifications.iter().map(Notification::bytes).sum::<usize>() as u64;
        let mut state = self.state.lock();
        if bytes > 0 && self.used.load(Ordering::Relaxed) + bytes > self.limit() {
            return Err(batch::too_many());
        }
        self.used.fetch_add(bytes, Ordering::Relaxed);
        let used = Arc::clone(&self.used);
        let batch = NotificationBatch { pid: pending.pid, database: pending.database, notifications, bytes, used };
        let number = state.first + state.queue.len() as u64;
        state.queue.push_back(Place::Committing);
        let warning = self.filling(&mut state, now);
        Ok((Reserved { queue: self, number, batch: Some(batch) }, warning))
    }

    fn filling(&self, state: &mut ChannelState, now: Duration) -> Option<DbError> {
        let usage = self.usage();
        if usage < 0.5 || state.warned.is_some_and(|at| now.saturating_sub(at) < WARNING_PAUSE) {
            return None;
        }
        state.warned = Some(now);
        let warning = err!(WARNING, "NOTIFY queue is {:.0}% full", usage * 100.0);
        let all = state.listeners.values().flat_map(HashMap::values).flat_map(HashMap::values);
        let slowest = all.filter(|listener| listener.has_queued()).max_by_key(|listener| listener.queued());
        Some(match slowest {
            Some(listener) => warning
                .detail(format!("The server process with PID {} is among those with the oldest transactions.", listener.pid))
                .hint("The NOTIFY queue cannot be emptied until that process ends its current transaction."),
            None => warning,
        })
    }

    /// LISTEN and UNLISTEN of a transaction that has committed.
    pub(crate) fn apply(&self, pending: &mut PendingNotifications) {
        let Some(listener) = pending.listener.take() else { return };
        let mut state = self.state.lock();
        for action in pending.actions.drain(..) {
            match action {
                Action::Listen(channel) => {
                    let channels = state.listeners.entry(listener.database).or_default();
                    channels.entry(Arc::clone(&channel)).or_default().insert(listener.pid, Arc::clone(&listener));
                    listener.add(channel);
                }
                Action::Unlisten(channel) => {
                    listener.remove(&channel);
                    state.forget(&listener, &channel);
                }
                Action::UnlistenAll => {
                    listener.remove_all().iter().for_each(|channel| state.forget(&listener, channel));
                }
            }
        }
    }

    /// The session ends.
    pub fn forget(&self, listener: &Listener) {
        let mut state = self.state.lock();
        listener.remove_all().iter().for_each(|channel| state.forget(listener, channel));
        listener.clear();
    }

    /// Hands on the places at the queue's front whose transactions have ended; whom to wake.
    fn hand_on(&self, state: &mut ChannelState) -> Vec<Arc<Listener>> {
        let mut woken = Vec::new();
        while let Some(place) = state.queue.pop_front_if(|place| !matches!(place, Place::Committing)) {
            state.first += 1;
            if let Place::Committed(batch) = place {
                state.deliver(Arc::new(batch), &mut woken);
            }
        }
        self.moved.notify_all();
        woken
    }
}

impl ChannelState {
    fn forget(&mut self, listener: &Listener, channel: &str) {
        let Some(channels) = self.listeners.get_mut(&listener.database) else { return };
        if let Some(of_channel) = channels.get_mut(channel) {
            of_channel.remove(&listener.pid);
            if of_channel.is_empty() {
                channels.remove(channel);
            }
        }
        if channels.is_empty() {
            self.listeners.remove(&listener.database);
        }
    }

    fn deliver(&self, batch: Arc<NotificationBatch>, woken: &mut Vec<Arc<Listener>>) {
        let Some(channels) = self.listeners.get(&batch.database) else { return };
        for (at, notification) in batch.notifications.iter().enumerate() {
            // Of the same channel as the one before: everybody has it.
            if at > 0 && batch.notifications[at - 1].channel == notification.channel {
                continue;
            }
            for listener in channels.get(&notification.channel).into_iter().flat_map(HashMap::values) {
                if listener.put(&batch) {
                    woken.push(Arc::clone(listener));
                }
            }
        }
    }
}

impl Reserved<'_> {
    /// The transaction has committed: its listeners get its notifications, after those of earlier ones. `before_wait` may be called first.
    pub(crate) fn publish(mut self, before_wait: impl FnOnce()) {
        let Some(batch) = self.batch.take() else { return };
        let mut state = self.queue.state.lock();
        self.end(&mut state, Place::Committed(batch));
        let woken = self.queue.hand_on(&mut state);
        let is_late = |state: &ChannelState| state.first <= self.number;
        let waits = is_late(&state);
        drop(state);
        woken.iter().for_each(|listener| listener.wake());
        if waits {
            // Those before it have committed, too, and will say so at once.
            before_wait();
            let mut state = self.queue.state.lock();
            while is_late(&state) {
                self.queue.moved.wait(&mut state);
            }
        }
    }

    fn end(&self, state: &mut ChannelState, place: Place) {
        let at = (self.number - state.first) as usize;
        state.queue[at] = place;
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if self.batch.is_none() {
            return;
        }
        let mut state = self.queue.state.lock();
        self.end(&mut state, Place::Gone);
        let woken = self.queue.hand_on(&mut state);
        drop(state);
        woken.iter().for_each(|listener| listener.wake());
    }
}
