//! Clients with scripts, and the bugs that must be found.
//!
//! `MELBA_MODEL_SECONDS` is the duration of each scenario (1), each run with another schedule of the threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

use super::{Mailbox, Message, Model, ModelOptions, ModelSession, Reply, Socket, random};
use crate::turns::Turns;
use crate::turns::sync::{Condvar, Mutex};
use crate::turns::world::PlantedBug;
use Message::{Ask, Begin, Commit, Compute, End, Lock, Panic, Quit, Tell, Unlock};

/// A client's next step.
#[derive(Clone, Copy)]
enum Step {
    Send(&'static [Message]),
    /// Reads this many answers.
    Read(u32),
    /// Sends, and reads all answers.
    Do(&'static [Message]),
    /// Waits, without a request, until this many things left by others have arrived in all.
    Hear(u32),
    /// Lets the clients continue that wait for this one to arrive here.
    Open,
    /// Waits until another client has reached `Open`.
    Await,
    /// Waits until the server ends the connection, while time passes.
    Idle,
    /// Ends the session of the client before this one.
    TerminateOther,
    /// Goes without a word.
    HangUp,
}
use Step::{Await, Do, HangUp, Hear, Idle, Open, Read, Send, TerminateOther};

struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

struct Client {
    number: usize,
    sockets: Vec<Arc<Socket>>,
    gate: Arc<Gate>,
    model: Model,
    sent: u32,
    received: u32,
    heard: u32,
    /// It has begun a transaction and not sent its end.
    hears_nothing: bool,
    has_ended: bool,
}

impl Client {
    fn run(mut self, steps: &[Step]) {
        let socket = Arc::clone(&self.sockets[self.number]);
        for step in steps {
            match step {
                Send(messages) => self.send(&socket, messages),
                Read(count) => self.read(&socket, *count),
                Do(messages) => {
                    self.send(&socket, messages);
                    self.read(&socket, self.sent - self.received);
                    self.hears_nothing |= messages.last() == Some(&Begin);
                }
                Hear(count) => {
                    while self.heard < *count {
                        assert_eq!(socket.receive(), Some(Reply::Told), "nothing was asked");
                        self.hear();
                    }
                }
                Open => {
                    *self.gate.is_open.lock() = true;
                    self.gate.opened.notify_all();
                }
                Await => {
                    let mut is_open = self.gate.is_open.lock();
                    while !*is_open {
                        is_open = self.gate.opened.wait(is_open);
                    }
                }
                Idle => {
                    while !socket.is_closed() {
                        self.model.0.allow_ticks(1);
                        shuttle::thread::yield_now();
                    }
                    assert_eq!(socket.receive(), Some(Reply::Fatal), "the client is told");
                    return;
                }
                TerminateOther => {
                    self.sockets[self.number - 1].terminate();
                    self.model.0.lock.wake();
                }
                HangUp => return socket.hang_up(),
            }
        }
        socket.ask(&[Quit]);
    }

    fn hear(&mut self) {
        assert!(!self.hears_nothing, "told within a transaction");
        self.heard += 1;
    }

    fn send(&mut self, socket: &Socket, messages: &[Message]) {
        self.hears_nothing &= !messages.contains(&End);
        socket.ask(messages);
        self.sent += messages.len() as u32;
    }

    /// Each answer once, in order; a session that was ended may say so first.
    fn read(&mut self, socket: &Socket, count: u32) {
        let wanted = self.received + count;
        while self.received < wanted {
            match socket.receive() {
                Some(Reply::Done(number)) => {
                    assert_eq!(number, self.received, "answers come in order, each once");
                    self.received += 1;
                }
                Some(Reply::Told) => self.hear(),
                Some(Reply::Fatal) | None if self.may_end() => {
                    self.has_ended = true;
                    return;
                }
                other => panic!("{other:?} instead of answer {}", self.received),
            }
        }
    }

    fn may_end(&self) -> bool {
        self.has_ended
            || self.sockets[self.number].must_end()
            || self.model.0.options.log_writes_max < usize::MAX
            || self.model.0.options.idle_timeout.is_some()
    }
}

/// One run: as many clients as scripts, from the first connection to the last thread.
fn play(options: ModelOptions, scripts: &[&'static [Step]]) {
    let room = options.room;
    let groups = options.groups;
    let model = Model::new(options);
    let turns = Turns::start(model.clone(), groups).expect("there are threads");
    let sockets: Vec<Arc<Socket>> = scripts.iter().map(|_| Socket::new(room)).collect();
    let mailboxes: Vec<Arc<Mailbox>> = scripts.iter().map(|_| Mailbox::new()).collect();
    *model.0.mailboxes.lock() = mailboxes.clone();
    let gate = Arc::new(Gate { is_open: Mutex::new(false), opened: Condvar::new() });
    let mut threads = Vec::new();
    for (number, script) in scripts.iter().copied().enumerate() {
        let client = Client {
            number,
            sockets: sockets.clone(),
            gate: Arc::clone(&gate),
            model: model.clone(),
            sent: 0,
            received: 0,
            heard: 0,
            hears_nothing: false,
            has_ended: false,
        };
        threads.push(shuttle::thread::spawn(move || client.run(script)));
        let session = ModelSession::new(&model.0, &sockets[number], &mailboxes[number]);
        let turns = Arc::clone(&turns);
        threads.push(shuttle::thread::spawn(move || turns.add(session)));
    }
    threads.into_iter().for_each(|thread| thread.join().expect("what a client expects holds"));
    model.0.await_ends(scripts.len());
    turns.stop();
    model.0.stop_monitor();
    model.0.join_threads();
    assert_eq!(turns.connections(), 0);
    assert!(turns.groups.iter().all(|group| group.len() == 0), "no seat is left");
    model.0.check();
}

fn config(time: Duration) -> Config {
    let mut config = Config::new();
    config.max_time = Some(time);
    config.max_steps = MaxSteps::FailAfter(200_000);
    config.silence_warnings = true;
    config.stack_size = 0x40000;
    config
}

/// Runs scripts by many schedules: half of the time any, half of the time those with few changes of threads that were not due.
fn check(options: ModelOptions, scripts: &'static [&'static [Step]]) {
    let seconds = std::env::var("MELBA_MODEL_SECONDS").ok().and_then(|text| text.parse::<f64>().ok()).unwrap_or(1.0);
    let time = Duration::from_secs_f64(seconds / 2.0);
    let run = |scheduler: Box<dyn Scheduler + std::marker::Send>| {
        let options = options.clone();
        Runner::new(scheduler, config(time)).run(move || play(options.clone(), scripts))
    };
    let any = run(Box::new(RandomScheduler::new(usize::MAX)));
    // A client that looks again and again would never let others do theirs.
    let spins = scripts.iter().any(|script| script.iter().any(|step| matches!(step, Idle)));
    let few = if spins { 0 } else { run(Box::new(PctScheduler::new(3, usize::MAX))) };
    println!("{any} + {few} schedules");
    assert!(any > 0);
}

/// The scripts of the test that shows the bug: it must be found.
fn finds(plant: PlantedBug, options: ModelOptions, scripts: &'static [&'static [Step]]) {
    let options = ModelOptions { plant: Some(plant), ..options };
    let mut config = config(Duration::from_secs(60));
    config.failure_persistence = FailurePersistence::None;
    let began = std::time::Instant::now();
    let runner = Runner::new(RandomScheduler::new(usize::MAX), config);
    let run = AssertUnwindSafe(|| runner.run(move || play(options.clone(), scripts)));
    assert!(catch_unwind(run).is_err(), "{plant:?} was not found");
    println!("{plant:?}: found after {:?}", began.elapsed());
}

const QUESTIONS: &[&[Step]] =
    &[&[Do(&[Ask]), Do(&[Ask, Ask])], &[Do(&[Ask]), Do(&[Compute]), Do(&[Ask])], &[Do(&[Ask, Ask, Ask]), HangUp]];

#[test]
fn questions_are_answered() {
    check(ModelOptions::default(), QUESTIONS);
}

const COMMITS: &[&[Step]] =
    &[&[Do(&[Commit]), Do(&[Ask]), Do(&[Commit])], &[Do(&[Commit, Ask]), Do(&[Commit, Commit])], &[Do(&[Ask, Commit, Ask])]];

#[test]
fn commits_are_answered() {
    check(ModelOptions::default(), COMMITS);
}

#[test]
fn commits_of_a_slow_log_are_answered() {
    check(ModelOptions { slow_log: true, groups: 1, ..ModelOptions::default() }, COMMITS);
}

#[test]
fn commits_that_fail_end_their_sessions() {
    check(ModelOptions { log_writes_max: 1, ..ModelOptions::default() }, COMMITS);
}

/// A lock that another session has, whose release is in its client's stream behind a commit.
const LOCKS: &[&[Step]] = &[
    &[Do(&[Lock]), Do(&[Commit, Unlock])],
    &[Do(&[Commit, Lock]), Do(&[Unlock, Ask])],
    &[Do(&[Lock, Commit, Unlock]), Do(&[Ask])],
];

#[test]
fn locks_are_handed_over() {
    check(ModelOptions { groups: 1, ..ModelOptions::default() }, LOCKS);
    check(ModelOptions { slow_log: true, ..ModelOptions::default() }, LOCKS);
}

/// One client reads only when others were answered.
const LATE_READERS: &[&[Step]] = &[
    &[Send(&[Ask, Ask, Ask, Commit]), Await, Read(4)],
    &[Send(&[Ask, Commit, Ask]), Await, Read(3), Do(&[Ask])],
    &[Do(&[Ask]), Do(&[Commit]), Do(&[Ask]), Open],
];

#[test]
fn clients_that_do_not_read_delay_no_other_client() {
    check(ModelOptions { room: 1, groups: 1, ..ModelOptions::default() }, LATE_READERS);
    check(ModelOptions { room: 1, slow_log: true, ..ModelOptions::default() }, LATE_READERS);
}

/// The last client ends the one before, whatever that is doing.
const TERMINATED: &[&[Step]] = &[
    &[Do(&[Lock]), Await, Do(&[Unlock])],
    &[Send(&[Ask, Commit, Lock, Ask]), Await, Read(4)],
    &[Do(&[Ask]), TerminateOther, Do(&[Ask]), Open],
];

#[test]
fn sessions_can_be_ended() {
    check(ModelOptions { room: 2, ..ModelOptions::default() }, TERMINATED);
}

#[test]
fn statements_that_panic_cost_their_session() {
    check(ModelOptions::default(), &[&[Send(&[Panic])], &[Do(&[Ask]), Do(&[Commit, Ask])]]);
}

#[test]
fn idle_sessions_end() {
    let idle_timeout = Some(Duration::from_millis(8));
    check(ModelOptions { idle_timeout, ..ModelOptions::default() }, &[&[Idle], &[Idle]]);
}

/// No thread is left that could take the group.
#[test]
fn too_few_threads_are_enough_for_commits_and_late_readers() {
    check(
        ModelOptions { groups: 1, threads_max: 3, room: 1, ..ModelOptions::default() },
        &[&[Send(&[Ask, Commit, Ask]), Read(3), Do(&[Ask])], &[Do(&[Commit]), Do(&[Ask])], &[Do(&[Commit, Ask])]],
    );
}

/// Every client gets the others' notifications, also one that never sends.
const TOLD: &[&[Step]] =
    &[&[Hear(2)], &[Do(&[Ask]), Do(&[Tell]), Hear(1), Do(&[Ask])], &[Do(&[Ask, Ask]), Do(&[Ask, Tell]), Hear(1)]];

/// Notifications left during a transaction or a commit arrive after it.
const TOLD_MEANWHILE: &[&[Step]] = &[
    &[Do(&[Begin]), Do(&[Ask]), Do(&[Ask, End]), Hear(2)],
    &[Do(&[Commit]), Do(&[Tell, Commit]), Hear(1)],
    &[Do(&[Commit, Tell]), Hear(1), Do(&[Ask])],
];

/// The client that gets the letter has been in other groups.
const TOLD_AFTER_MOVES: &[&[Step]] =
    &[&[Await, Do(&[Tell])], &[Do(&[Ask]), Do(&[Ask]), Do(&[Ask]), Do(&[Ask]), Do(&[Ask]), Open, Hear(1)]];

#[test]
fn notifications_reach_an_idle_session() {
    check(ModelOptions::default(), TOLD);
    check(ModelOptions { look_turns: 1, ..ModelOptions::default() }, TOLD_AFTER_MOVES);
    check(ModelOptions { groups: 1, ..ModelOptions::default() }, TOLD);
}

#[test]
fn notifications_arrive_after_a_transaction() {
    check(ModelOptions { slow_log: true, ..ModelOptions::default() }, TOLD_MEANWHILE);
    check(ModelOptions { room: 1, groups: 1, ..ModelOptions::default() }, TOLD_MEANWHILE);
}

#[test]
fn a_seat_that_is_parked_with_a_call_is_found() {
    finds(PlantedBug::ParkWithCall, ModelOptions::default(), TOLD);
}

#[test]
fn a_call_that_does_not_follow_its_seat_is_found() {
    finds(PlantedBug::CallFirstGroup, ModelOptions { look_turns: 1, ..ModelOptions::default() }, TOLD_AFTER_MOVES);
}

#[test]
fn a_forgotten_answer_is_found() {
    const TWO: &[&[Step]] = &[&[Do(&[Ask]), Do(&[Ask])], &[Do(&[Ask]), Do(&[Ask])]];
    finds(PlantedBug::ForgetHeldAnswer, ModelOptions { groups: 1, ticks: 40, ..ModelOptions::default() }, TWO);
}

#[test]
fn dropped_news_are_found() {
    finds(PlantedBug::DropNews, ModelOptions::default(), QUESTIONS);
}

#[test]
fn an_answer_before_its_commit_is_found() {
    finds(PlantedBug::AnswerBeforeCommit, ModelOptions::default(), COMMITS);
}

#[test]
fn a_thread_that_serves_while_it_holds_others_is_found() {
    const HANDOVER: &[&[Step]] = &[&[Do(&[Commit, Lock]), Do(&[Unlock])], &[Do(&[Lock]), Do(&[Commit, Unlock])]];
    finds(PlantedBug::ServeWhileHolding, ModelOptions { groups: 1, ..ModelOptions::default() }, HANDOVER);
}

#[test]
fn a_poller_that_is_not_woken_is_found() {
    finds(PlantedBug::NoWake, ModelOptions { slow_log: true, groups: 1, ..ModelOptions::default() }, COMMITS);
}

#[test]
fn a_writer_of_the_log_that_is_not_woken_is_found() {
    finds(PlantedBug::NoCommitWake, ModelOptions { slow_log: true, ..ModelOptions::default() }, COMMITS);
}

#[test]
fn random_numbers_differ() {
    Runner::new(RandomScheduler::new(1), config(Duration::from_secs(1))).run(|| {
        let numbers: Vec<usize> = (0..64).map(|_| random(2)).collect();
        assert!(numbers.contains(&0) && numbers.contains(&1));
    });
}
