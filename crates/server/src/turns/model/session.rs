//! A connection with its session: a small model of `connection` and `client_session`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::mail::Mailbox;
use super::socket::Read;
use super::{Message, ModelState, Reply, Socket, about_to_wait};
use crate::turns::world::{Served, Turn, Watch};

pub(in crate::turns) struct ModelSession {
    shared: Arc<ModelState>,
    socket: Arc<Socket>,
    /// Read and not handled yet.
    input: VecDeque<Message>,
    /// The socket had nothing left when it was last read.
    drained: bool,
    output: Vec<Reply>,
    committing: Option<u64>,
    /// Messages handled.
    handled: u32,
    has_lock: bool,
    in_transaction: bool,
    mailbox: Arc<Mailbox>,
}

impl ModelSession {
    pub fn new(shared: &Arc<ModelState>, socket: &Arc<Socket>, mailbox: &Arc<Mailbox>) -> ModelSession {
        ModelSession {
            shared: Arc::clone(shared),
            socket: Arc::clone(socket),
            input: VecDeque::new(),
            drained: false,
            output: Vec::new(),
            committing: None,
            handled: 0,
            has_lock: false,
            in_transaction: false,
            mailbox: Arc::clone(mailbox),
        }
    }

    /// Sends as much as the socket takes; false when the client has disconnected.
    pub fn send_some(&mut self) -> bool {
        if self.committing.is_some() && !self.output.is_empty() {
            self.shared.violation("sent during a commit");
        }
        let Some(count) = self.socket.send_some(&self.output) else { return false };
        self.output.drain(..count);
        true
    }

    fn send_all(&mut self) -> bool {
        let mut waits = false;
        loop {
            if !self.send_some() {
                return false;
            }
            if self.output.is_empty() {
                return true;
            }
            if self.socket.must_end() {
                return false;
            }
            if !std::mem::replace(&mut waits, true) {
                about_to_wait();
            }
            self.socket.wait_to_send();
        }
    }

    fn fail(&mut self) -> Turn {
        self.output.push(Reply::Fatal);
        self.send_all();
        Turn::Ends
    }

    /// The end of the turn, if the message ends it.
    fn handle(&mut self, message: Message) -> Option<Turn> {
        if self.socket.must_end() {
            return Some(self.fail());
        }
        if !self.output.is_empty() && !self.send_all() {
            return Some(Turn::Ends);
        }
        match message {
            Message::Ask => {}
            Message::Commit => self.committing = Some(self.shared.log.start()),
            Message::Lock => {
                if !self.has_lock && !self.shared.lock.take(|| self.socket.must_end()) {
                    return Some(self.fail());
                }
                self.has_lock = true;
            }
            Message::Unlock => self.unlock(),
            Message::Begin => self.in_transaction = true,
            Message::End => self.in_transaction = false,
            Message::Tell => self.shared.tell_others(&self.mailbox),
            Message::Compute => {
                self.shared.pass(Duration::from_millis(1));
                (0..4).for_each(|_| shuttle::thread::yield_now());
            }
            // Without the message that a panic prints.
            Message::Panic => std::panic::resume_unwind(Box::new("a statement that panics")),
            Message::Quit => return Some(Turn::Ends),
        }
        self.output.push(Reply::Done(self.handled));
        self.handled += 1;
        self.committing.map(|_| Turn::Commits)
    }

    fn unlock(&mut self) {
        if std::mem::take(&mut self.has_lock) {
            self.shared.lock.free();
        }
    }
}

impl ModelSession {
    fn feed(&mut self, news: bool, hung_up: bool) -> Turn {
        self.drained &= !news;
        loop {
            if let Some(message) = self.input.pop_front() {
                match self.handle(message) {
                    Some(turn) => return turn,
                    None => continue,
                }
            }
            if self.drained && !hung_up {
                return Turn::Waits;
            }
            match self.socket.read() {
                Read::Messages(messages, all) => {
                    self.input.extend(messages);
                    self.drained = all;
                }
                Read::Nothing => {
                    self.drained = true;
                    return Turn::Waits;
                }
                Read::End if self.socket.must_end() => return self.fail(),
                Read::End => return Turn::Ends,
            }
        }
    }
}

impl Served for ModelSession {
    type Socket = Arc<Socket>;

    fn socket(&self) -> Arc<Socket> {
        Arc::clone(&self.socket)
    }

    fn turn(&mut self, news: bool, hung_up: bool) -> Turn {
        let turn = self.feed(news, hung_up);
        if turn == Turn::Waits && self.has_call() {
            let letters = self.mailbox.take();
            self.output.extend(std::iter::repeat_n(Reply::Told, letters));
        }
        turn
    }

    fn wants_turn(&self) -> bool {
        !self.input.is_empty() || !self.drained
    }

    fn has_call(&self) -> bool {
        self.mailbox.is_filled() && !self.in_transaction && self.committing.is_none()
    }

    fn set_call(&mut self, call: Box<dyn Fn() + Send + Sync>) {
        self.mailbox.set_call(call);
    }

    fn has_answer(&self) -> bool {
        !self.output.is_empty()
    }

    fn send_answer(&mut self) -> bool {
        self.send_all()
    }

    fn finish_commit(&mut self) -> bool {
        let Some(commit) = self.committing else { return true };
        let committed = self.shared.log.wait(commit, &self.shared);
        self.committing = None;
        if !committed {
            self.output = vec![Reply::Fatal];
        }
        committed
    }

    fn flush_log(&self) {
        self.shared.log.flush(&self.shared);
    }

    fn idle_timeout(&self) -> Option<Duration> {
        self.shared.options.idle_timeout
    }

    fn time_out(&mut self) {
        self.output.push(Reply::Fatal);
    }

    fn watch(&self) -> Arc<dyn Watch> {
        Arc::new(NoWatch)
    }

    fn close(&mut self) {
        self.unlock();
        self.socket.close();
        self.shared.note_end();
    }
}

struct NoWatch;

impl Watch for NoWatch {
    fn client_is_gone(&self, _: Duration) {}
}
