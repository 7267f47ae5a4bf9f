//! Sockets, and pollers that watch them edge-triggered.

use std::collections::VecDeque;
use std::io::Result;
use std::sync::Arc;

use super::ModelSession;
use crate::turns::sync::{Condvar, Mutex};
use crate::turns::world::{News, Poll, SendTogether};

/// A client's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::turns) enum Message {
    /// Something that is answered at once.
    Ask,
    /// A transaction that is to be durable.
    Commit,
    /// Waits for the lock, unless the session has it.
    Lock,
    Unlock,
    /// From here to `End` the client gets only answers.
    Begin,
    End,
    /// Leaves something for the client of every other session.
    Tell,
    /// Computes for long.
    Compute,
    Panic,
    /// Goodbye.
    Quit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::turns) enum Reply {
    /// To the message of that number.
    Done(u32),
    /// Another session has left something.
    Told,
    /// The session's last word.
    Fatal,
}

#[derive(Default)]
pub(in crate::turns) struct Socket {
    state: Mutex<SocketState>,
    changed: Changed,
}

struct Changed(Condvar);

impl Default for Changed {
    fn default() -> Changed {
        Changed(Condvar::new())
    }
}

#[derive(Default)]
struct SocketState {
    to_server: VecDeque<Message>,
    to_client: VecDeque<Reply>,
    /// Answers that fit before the client reads.
    room: usize,
    /// Nothing further comes from the client, because it says so or the server does not listen.
    is_shut: bool,
    client_closed: bool,
    server_closed: bool,
    must_end: bool,
    watcher: Option<(Arc<Watcher>, u64)>,
}

/// The result of a read by the server.
pub(super) enum Read {
    Messages(Vec<Message>, bool),
    Nothing,
    End,
}

impl Socket {
    pub fn new(room: usize) -> Arc<Socket> {
        Arc::new(Socket { state: Mutex::new(SocketState { room, ..SocketState::default() }), changed: Changed::default() })
    }

    /// The client's send.
    pub fn ask(&self, messages: &[Message]) {
        let mut state = self.state.lock();
        state.to_server.extend(messages);
        state.tell(false);
    }

    /// The client's next answer; `None` when the server has closed the connection.
    pub fn receive(&self) -> Option<Reply> {
        let mut state = self.state.lock();
        loop {
            if let Some(reply) = state.to_client.pop_front() {
                self.changed.0.notify_all();
                return Some(reply);
            }
            if state.server_closed {
                return None;
            }
            state = self.changed.0.wait(state);
        }
    }

    /// The client disconnects.
    pub fn hang_up(&self) {
        let mut state = self.state.lock();
        (state.is_shut, state.client_closed) = (true, true);
        state.tell(true);
        self.changed.0.notify_all();
    }

    /// Another session ends this one.
    pub fn terminate(&self) {
        let mut state = self.state.lock();
        (state.is_shut, state.must_end) = (true, true);
        state.tell(true);
        self.changed.0.notify_all();
    }

    pub fn must_end(&self) -> bool {
        self.state.lock().must_end
    }

    pub fn is_closed(&self) -> bool {
        self.state.lock().server_closed
    }

    pub(super) fn close(&self) {
        self.state.lock().server_closed = true;
        self.changed.0.notify_all();
    }

    /// The server's read, which may take less than all. Returns whether it may have been all.
    pub(super) fn read(&self) -> Read {
        let mut state = self.state.lock();
        let there = state.to_server.len();
        if there == 0 {
            return if state.is_shut { Read::End } else { Read::Nothing };
        }
        let count = 1 + super::random(there);
        let all = count == there && super::random(2) == 0;
        Read::Messages(state.to_server.drain(..count).collect(), all)
    }

    /// The server's send: how many were taken, or `None` when the client has disconnected.
    pub(super) fn send_some(&self, replies: &[Reply]) -> Option<usize> {
        let mut state = self.state.lock();
        if state.client_closed {
            return None;
        }
        let count = replies.len().min(state.room - state.to_client.len());
        state.to_client.extend(&replies[..count]);
        self.changed.0.notify_all();
        Some(count)
    }

    /// Waits until the client has read, or there is another reason to check again.
    pub(super) fn wait_to_send(&self) {
        let mut state = self.state.lock();
        while state.to_client.len() >= state.room && !state.client_closed && !state.must_end {
            state = self.changed.0.wait(state);
        }
    }
}

impl SocketState {
    fn tell(&self, hung_up: bool) {
        if let Some((watcher, id)) = &self.watcher {
            watcher.note(*id, hung_up);
        }
    }
}

/// The news that a poller must report.
struct Watcher {
    state: Mutex<WatcherState>,
    changed: Condvar,
}

#[derive(Default)]
struct WatcherState {
    news: VecDeque<News>,
    is_woken: bool,
}

impl Watcher {
    fn note(&self, id: u64, hung_up: bool) {
        let mut state = self.state.lock();
        match state.news.iter_mut().find(|one| one.id == id) {
            Some(one) => one.hung_up |= hung_up,
            None => state.news.push_back(News { id, hung_up }),
        }
        self.changed.notify_one();
    }
}

pub(in crate::turns) struct ModelPoller(Arc<Watcher>);

impl Poll<Arc<Socket>> for ModelPoller {
    fn new() -> Result<ModelPoller> {
        Ok(ModelPoller(Arc::new(Watcher { state: Mutex::default(), changed: Condvar::new() })))
    }

    fn add(&self, socket: &Arc<Socket>, id: u64) -> Result<()> {
        let mut state = socket.state.lock();
        assert!(state.watcher.is_none(), "a socket is watched by one poller");
        state.watcher = Some((Arc::clone(&self.0), id));
        if !state.to_server.is_empty() || state.is_shut {
            state.tell(state.is_shut);
        }
        Ok(())
    }

    fn remove(&self, socket: &Arc<Socket>) {
        let mut state = socket.state.lock();
        if let Some((watcher, id)) = state.watcher.take() {
            watcher.state.lock().news.retain(|one| one.id != id);
        }
    }

    fn wait(&self, block: bool, max: usize, news: &mut Vec<News>) {
        let mut state = self.0.state.lock();
        while block && state.news.is_empty() && !state.is_woken {
            state = self.0.changed.wait(state);
        }
        state.is_woken = false;
        let count = state.news.len().min(max);
        news.extend(state.news.drain(..count));
    }

    fn wake(&self) {
        self.0.state.lock().is_woken = true;
        self.0.changed.notify_one();
    }
}

pub(in crate::turns) struct ModelSender;

impl SendTogether<ModelSession> for ModelSender {
    fn new() -> ModelSender {
        ModelSender
    }

    fn send(&mut self, served: Vec<&mut ModelSession>) {
        served.into_iter().for_each(|session| {
            session.send_some();
        });
    }
}
