//! A transaction's notifications, and their memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use melba_types::{DbError, Oid, err};

/// One notification.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Notification {
    pub channel: Arc<str>,
    pub payload: Box<str>,
}

/// The notifications of one transaction for the sessions of its database.
pub struct NotificationBatch {
    /// Of the session that sends it.
    pub pid: i32,
    pub database: Oid,
    pub notifications: Vec<Notification>,
    /// Its size in memory, counted in `used` until it is dropped.
    pub(super) bytes: u64,
    pub(super) used: Arc<AtomicU64>,
}

/// A notification's length in memory beside its texts.
const NOTIFICATION_BYTES: usize = size_of::<Notification>() + 2 * size_of::<usize>();
/// A batch's place in the queue of one listener.
pub(super) const PLACE_BYTES: u64 = size_of::<Arc<NotificationBatch>>() as u64;

impl Notification {
    pub(super) fn bytes(&self) -> usize {
        NOTIFICATION_BYTES + self.channel.len() + self.payload.len()
    }
}

impl Drop for NotificationBatch {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

pub(super) fn too_many() -> DbError {
    err!(PROGRAM_LIMIT_EXCEEDED, "too many notifications in the NOTIFY queue")
}
