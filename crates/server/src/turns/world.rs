//! The turns' interface to the world: connections with their sessions, pollers, threads, processors, a clock. The server
//! implements it in `client_session`; the model checker in `model`.

use std::io::Result;
use std::sync::Arc;
use std::time::Duration;

use melba_threads::Scheduler;

/// Where a turn of a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The client must send next.
    Waits,
    /// The session's commit waits for the log (`finish_commit`); after that the output is to be sent.
    Commits,
    /// The connection is over.
    Ends,
}

/// A connection and its session.
pub(crate) trait Served: Send + 'static {
    type Socket;

    fn socket(&self) -> Self::Socket;

    /// Feeds the session the client's messages, until they are used up. `news`: the socket may have bytes. `hung_up`: its end may
    /// have come.
    fn turn(&mut self, news: bool, hung_up: bool) -> Turn;

    /// There is more to do without further news of the socket.
    fn wants_turn(&self) -> bool;

    /// Other sessions have left something for the client, which a turn sends to it.
    fn has_call(&self) -> bool;

    /// The function to call after something was left, as `has_call` reports.
    fn set_call(&mut self, call: Box<dyn Fn() + Send + Sync>);

    /// An answer waits to be sent.
    fn has_answer(&self) -> bool;

    /// Sends the answer, waiting for the client if it must, but not longer than the session may be idle; false when the
    /// connection is over.
    fn send_answer(&mut self) -> bool;

    /// Waits for the commit; false when it has failed: the connection is over when the answer it has then was sent.
    fn finish_commit(&mut self) -> bool;

    /// Writes the log for all commits that have begun.
    fn flush_log(&self);

    /// How long the session may wait for its client now.
    fn idle_timeout(&self) -> Option<Duration>;

    /// The session has waited too long: its answer is the error.
    fn time_out(&mut self);

    /// The watch to notify when the client disconnects while the session is served.
    fn watch(&self) -> Arc<dyn Watch>;

    /// Ends the session.
    fn close(&mut self);
}

/// Looks after a session whose client has hung up while it is served.
pub(crate) trait Watch: Send + Sync {
    fn client_is_gone(&self, since: Duration);
}

/// News of a socket since the last report.
pub(crate) struct News {
    pub id: u64,
    /// The peer sends no more, or the connection broke.
    pub hung_up: bool,
}

/// A set of watched sockets, edge-triggered.
pub(crate) trait Poll<Socket>: Sized + Send + Sync {
    fn new() -> Result<Self>;

    /// Watches a socket; bytes that it already has are news.
    fn add(&self, socket: &Socket, id: u64) -> Result<()>;

    fn remove(&self, socket: &Socket);

    /// Appends news, at most `max`; waits for some, or to be woken, if there are none and `block` is true.
    fn wait(&self, block: bool, max: usize, news: &mut Vec<News>);

    /// Ends a `wait` of another thread.
    fn wake(&self);
}

/// Sends to many sockets by one call.
pub(crate) trait SendTogether<Served>: Send {
    fn new() -> Self;

    /// Sends their answers as far as that needs no waiting.
    fn send(&mut self, served: Vec<&mut Served>);
}

/// Threads, processors and time.
pub(crate) trait World: Send + Sync + Sized + 'static {
    type Socket: Send;
    type Served: Served<Socket = Self::Socket>;
    type Poller: Poll<Self::Socket>;
    type Sender: SendTogether<Self::Served>;

    fn start_thread(&self, name: String, run: Box<dyn FnOnce() + Send>) -> Result<()>;

    /// Sets or removes the scheduler that this thread runs before it waits.
    fn set_scheduler(&self, scheduler: Option<Arc<dyn Scheduler>>);

    /// The kernel's number of this thread.
    fn thread_number(&self) -> i32;

    /// Binds this thread to the `index`th processor.
    fn bind(&self, index: usize);

    /// Lets a thread (0: this one) run anywhere.
    fn release(&self, thread: i32);

    /// Lets the kernel prefer other threads to this one, for as long as it lives.
    fn lower_priority(&self, thread: i32);

    /// The same for all threads that help statements.
    fn lower_helpers(&self);

    /// The processor time that a thread has used.
    fn processor_time(&self, thread: i32) -> Duration;

    /// The index of the processor on which a socket's client runs.
    fn processor_of(&self, socket: &Self::Socket) -> Option<usize>;

    /// Turns of a connection between two checks which group would serve it best.
    fn look_turns(&self) -> u32 {
        32
    }

    /// Time since the start.
    fn now(&self) -> Duration;

    fn sleep(&self, time: Duration);

    /// A thread of the turns has panicked, not in a session, and continues.
    fn note_panic(&self) {}

    /// Whether a bug was put in on purpose, which the model's tests must find.
    fn is_planted(&self, _: PlantedBug) -> bool {
        false
    }
}

/// Bugs on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlantedBug {
    /// A deferred answer is forgotten when its seat is still held as the others are sent.
    ForgetHeldAnswer,
    /// News that come while a seat is held are dropped.
    DropNews,
    /// A seat is parked without a check for things that others have left for it.
    ParkWithCall,
    /// A call searches for its seat in the group that it was in at first.
    CallFirstGroup,
    /// Answers are sent before their commits have ended.
    AnswerBeforeCommit,
    /// After a commit a thread serves one seat while it holds others.
    ServeWhileHolding,
    /// A thread that puts a seat into the queue does not wake the thread that polls.
    NoWake,
    /// A thread that leaves a commit to the writer of the log does not wake it.
    NoCommitWake,
}
