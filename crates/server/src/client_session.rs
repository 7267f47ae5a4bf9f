//! A connection and its session, as they are served in turns, and the server's environment for that.

use std::io::Result;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use melba_sql::session::{STACK_BYTES, Session};
use melba_statement::backends::Backends;
use melba_statement::context::SessionState;
use melba_threads::{Scheduler, priority};

use crate::connection::Connection;
use crate::poller::Poller;
use crate::processors::Processors;
use crate::scheduler::set_of_thread;
use crate::sender::{Answer, Sender};
use crate::turns::world::{News, Poll, SendTogether, Served, Turn, Watch, World};

/// A connection and its session.
pub(crate) struct ClientSession {
    connection: Connection,
    session: Session,
    pid: i32,
    backends: Arc<Backends>,
}

/// The threads of this process.
pub(crate) struct Machine {
    processors: Processors,
    started: Instant,
}

impl ClientSession {
    /// # Errors
    /// The socket cannot be waited for without limit.
    pub fn new(mut connection: Connection, mut session: Session, pid: i32, backends: &Arc<Backends>) -> Result<ClientSession> {
        connection.set_timeout(None)?;
        session.defer_commits();
        Ok(ClientSession { connection, session, pid, backends: Arc::clone(backends) })
    }
}

impl Served for ClientSession {
    type Socket = RawFd;

    fn socket(&self) -> RawFd {
        self.connection.descriptor()
    }

    fn turn(&mut self, news: bool, hung_up: bool) -> Turn {
        self.connection.turn(&mut self.session, news, hung_up)
    }

    fn wants_turn(&self) -> bool {
        self.connection.wants_turn()
    }

    fn has_call(&self) -> bool {
        self.session.has_notifications()
    }

    fn set_call(&mut self, call: Box<dyn Fn() + Send + Sync>) {
        self.session.state().listener.set_wake(call);
    }

    fn has_answer(&self) -> bool {
        self.connection.has_answer()
    }

    fn send_answer(&mut self) -> bool {
        self.connection.patience().limit(self.session.idle_timeout());
        let sent = self.connection.send_answer().is_ok();
        self.connection.patience().limit(None);
        sent
    }

    fn finish_commit(&mut self) -> bool {
        match self.session.finish_commit() {
            Ok(()) => true,
            Err(error) => {
                self.connection.discard_output();
                self.connection.prepare_end(error);
                false
            }
        }
    }

    fn flush_log(&self) {
        // A write that fails is reported by each commit.
        let _ = self.session.state().engine().flush_log();
    }

    fn idle_timeout(&self) -> Option<Duration> {
        self.session.idle_timeout()
    }

    fn time_out(&mut self) {
        let error = self.session.idle_timeout_error();
        self.session.log_error(&error);
        self.connection.prepare_end(error);
    }

    fn watch(&self) -> Arc<dyn Watch> {
        Arc::new(SessionWatch(Arc::clone(self.session.state())))
    }

    fn close(&mut self) {
        self.session.log_disconnection();
        self.session.close_all();
        self.connection.say_end();
        self.session.state().settings.lock().forget_socket();
        let now = self.session.state().instance.cluster.clock.now_micros();
        self.backends.remove(self.pid, now);
    }
}

struct SessionWatch(Arc<SessionState>);

impl Watch for SessionWatch {
    fn client_is_gone(&self, since: Duration) {
        self.0.client_is_gone(since);
    }
}

impl Poll<RawFd> for Poller {
    fn new() -> Result<Poller> {
        Poller::new()
    }

    fn add(&self, socket: &RawFd, id: u64) -> Result<()> {
        Poller::add(self, *socket, id)
    }

    fn remove(&self, socket: &RawFd) {
        Poller::remove(self, *socket);
    }

    fn wait(&self, block: bool, max: usize, news: &mut Vec<News>) {
        Poller::wait(self, block, max, news);
    }

    fn wake(&self) {
        Poller::wake(self);
    }
}

impl SendTogether<ClientSession> for Sender {
    fn new() -> Sender {
        Sender::new()
    }

    fn send(&mut self, mut served: Vec<&mut ClientSession>) {
        // An answer that cannot be encrypted is not sent; the connection is then served alone, and ends.
        served.retain_mut(|served| served.connection.prepare_answer().is_ok());
        let answers: Vec<Answer<'_>> =
            served.iter().map(|s| (s.connection.descriptor(), s.connection.prepared_answer())).collect();
        let sent = Sender::send(self, &answers);
        for (served, sent) in served.into_iter().zip(sent) {
            served.connection.note_sent(sent);
        }
    }
}

impl Machine {
    /// With as many groups of threads.
    pub fn new(groups: usize) -> Machine {
        Machine { processors: Processors::of_this_process(groups), started: Instant::now() }
    }
}

impl World for Machine {
    type Socket = RawFd;
    type Served = ClientSession;
    type Poller = Poller;
    type Sender = Sender;

    fn start_thread(&self, name: String, run: Box<dyn FnOnce() + Send>) -> Result<()> {
        std::thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(move || {
            melba_types::limits::start_session_thread();
            run();
        })?;
        Ok(())
    }

    fn set_scheduler(&self, scheduler: Option<Arc<dyn Scheduler>>) {
        set_of_thread(scheduler);
    }

    fn thread_number(&self) -> i32 {
        // SAFETY: the call has no arguments and cannot fail.
        unsafe { libc::gettid() }
    }

    fn bind(&self, index: usize) {
        self.processors.bind(index);
    }

    fn release(&self, thread: i32) {
        self.processors.release(thread);
    }

    fn lower_priority(&self, thread: i32) {
        priority::lower(thread);
    }

    fn lower_helpers(&self) {
        priority::lower_helpers();
    }

    fn processor_time(&self, thread: i32) -> Duration {
        priority::processor_time(thread)
    }

    fn processor_of(&self, socket: &RawFd) -> Option<usize> {
        self.processors.of_client(*socket)
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }
}
