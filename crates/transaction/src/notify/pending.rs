//! The changes about notifications that a transaction makes when it commits.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use melba_types::{Oid, Result, bail};

use super::batch::Notification;
use super::listener::Listener;

/// Names are shorter than this (NAMEDATALEN).
const CHANNEL_BYTES: usize = 64;
/// Payloads are shorter than this.
const PAYLOAD_BYTES: usize = 8000;

/// LISTEN, UNLISTEN and NOTIFY of an open transaction.
#[derive(Default)]
pub struct PendingNotifications {
    pub(super) pid: i32,
    pub(super) database: Oid,
    /// The session, once it has begun or ceased to listen.
    pub(super) listener: Option<Arc<Listener>>,
    pub(super) actions: Vec<Action>,
    notifications: Vec<Notification>,
    /// Places in `notifications`, by hash: equal ones are sent once.
    known: HashTable<usize>,
    hasher: DefaultHashBuilder,
    bytes: usize,
}

pub(super) enum Action {
    Listen(Arc<str>),
    Unlisten(Arc<str>),
    UnlistenAll,
}

/// How much was pending at a savepoint.
#[derive(Clone, Copy, Default)]
pub struct PendingPosition {
    actions: usize,
    notifications: usize,
}

impl PendingNotifications {
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty() && self.notifications.is_empty()
    }

    /// There are notifications to send.
    pub(crate) fn notifies(&self) -> bool {
        !self.notifications.is_empty()
    }

    /// Tells it at the commit, if the transaction does not do so already.
    ///
    /// # Errors
    /// 22023 for a channel or payload that is too long, or no channel; 54000 when the queue could not hold them all (`limit`: its bytes).
    pub(crate) fn notify(&mut self, from: (i32, Oid), channel: &str, payload: &str, limit: u64) -> Result<()> {
        check_channel(channel)?;
        if payload.len() >= PAYLOAD_BYTES {
            bail!(INVALID_PARAMETER_VALUE, "payload string too long");
        }
        (self.pid, self.database) = from;
        let PendingNotifications { notifications, known, hasher, .. } = self;
        let hash = hasher.hash_one((channel, payload));
        let is_same = |at: &usize| *notifications[*at].channel == *channel && *notifications[*at].payload == *payload;
        if known.find(hash, is_same).is_some() {
            return Ok(());
        }
        // A channel's name comes again and again.
        let channel = match notifications.last() {
            Some(last) if *last.channel == *channel => Arc::clone(&last.channel),
            _ => channel.into(),
        };
        let notification = Notification { channel, payload: payload.into() };
        self.bytes += notification.bytes();
        if self.bytes as u64 > limit {
            return Err(super::batch::too_many());
        }
        notifications.push(notification);
        known.insert_unique(hash, notifications.len() - 1, |at| hash_of(hasher, &notifications[*at]));
        Ok(())
    }

    /// LISTEN.
    ///
    /// # Errors
    /// 22023, as of `notify`.
    pub(crate) fn listen(&mut self, listener: &Arc<Listener>, channel: &str) -> Result<()> {
        check_channel(channel)?;
        self.act(listener, Action::Listen(channel.into()));
        Ok(())
    }

    /// UNLISTEN; `None`: all channels.
    pub(crate) fn unlisten(&mut self, listener: &Arc<Listener>, channel: Option<&str>) {
        if self.actions.is_empty() && !listener.is_listening() {
            return;
        }
        self.act(listener, channel.map_or(Action::UnlistenAll, |channel| Action::Unlisten(channel.into())));
    }

    fn act(&mut self, listener: &Arc<Listener>, action: Action) {
        self.listener = Some(Arc::clone(listener));
        self.actions.push(action);
    }

    pub(crate) fn position(&self) -> PendingPosition {
        PendingPosition { actions: self.actions.len(), notifications: self.notifications.len() }
    }

    pub(crate) fn roll_back_to(&mut self, position: PendingPosition) {
        self.actions.truncate(position.actions);
        let PendingNotifications { notifications, known, hasher, bytes, .. } = self;
        for (at, undone) in notifications.iter().enumerate().skip(position.notifications) {
            *bytes -= undone.bytes();
            if let Ok(entry) = known.find_entry(hash_of(hasher, undone), |known| *known == at) {
                entry.remove();
            }
        }
        notifications.truncate(position.notifications);
    }

    pub(super) fn take_notifications(&mut self) -> Vec<Notification> {
        self.known.clear();
        std::mem::take(&mut self.notifications)
    }
}

fn hash_of(hasher: &DefaultHashBuilder, notification: &Notification) -> u64 {
    hasher.hash_one((&*notification.channel, &*notification.payload))
}

fn check_channel(channel: &str) -> Result<()> {
    match channel.len() {
        0 => bail!(INVALID_PARAMETER_VALUE, "channel name cannot be empty"),
        CHANNEL_BYTES.. => bail!(INVALID_PARAMETER_VALUE, "channel name too long"),
        _ => Ok(()),
    }
}
