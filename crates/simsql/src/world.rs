//! The server, its disk and its clock, the sessions, and the choice of the next event.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use melba_engine::{BackgroundStep, Engine, EngineOptions, RecoveryProgress, Scheduler};
use melba_settings::Settings;
use melba_statement::context::Instance;
use melba_transaction::cluster::Cluster;
use melba_vfs::{Clock, Directory, Faults, FaultyDirectory, FileOperation, ManualClock, MemoryDirectory, SeededRandom};
use melba_workload::{Attempt, Connection, Failure, Operation, Session, State, Statement, Transaction, judge, read, schema};

use crate::client::SimClient;
use crate::trace::Trace;

/// The counts of a run, or of many together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    pub statements: u64,
    pub commits: u64,
    pub refused: u64,
    pub background: u64,
    pub ends: [u64; 3],
    pub failures: u64,
}

impl Stats {
    pub fn add(&mut self, other: &Stats) {
        self.statements += other.statements;
        self.commits += other.commits;
        self.refused += other.refused;
        self.background += other.background;
        self.failures += other.failures;
        self.ends.iter_mut().zip(other.ends).for_each(|(a, b)| *a += b);
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stats { statements, commits, refused, background, ends: [cuts, kills, stops], failures } = self;
        write!(
            f,
            "{statements} statements, {commits} commits, {refused} transactions refused, {background} background steps, {cuts} power \
             cuts, {kills} kills, {stops} clean stops, {failures} failures of the disk"
        )
    }
}

/// How a seed ended.
pub struct Run {
    pub stats: Stats,
    /// The same for every run of a seed.
    pub hash: u64,
    /// The finding, and the events before it.
    pub failure: Option<String>,
}

impl Run {
    pub fn failed(message: String) -> Run {
        Run { stats: Stats::default(), hash: 0, failure: Some(message) }
    }
}

/// Runs a seed; `verbose` prints all events. Without `fsync` commits are lost, which must be found.
pub fn run(seed: u64, verbose: bool, fsync: bool) -> Run {
    let mut world = match World::new(seed, verbose, fsync) {
        Ok(world) => world,
        Err(message) => return Run::failed(message),
    };
    let failure = match catch_unwind(AssertUnwindSafe(|| world.live())) {
        Ok(result) => result.err(),
        Err(panic) => {
            let message = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            Some(format!("a panic: {}", message.unwrap_or("without a message")))
        }
    };
    let failure = failure.map(|message| format!("{message}\n  the last events:\n{}", world.trace.tail()));
    Run { stats: world.stats, hash: world.trace.hash(), failure }
}

/// How a server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    PowerCut,
    /// The operating system continues.
    Kill,
    Clean,
}

/// A transaction under way: its statements, and which is next.
struct Open {
    transaction: Transaction,
    statements: Vec<Statement>,
    next: usize,
}

/// A session's history, its data, and its connection.
struct Member {
    history: Session,
    state: State,
    client: SimClient,
    open: Option<Open>,
    /// The outcome of its last transaction is unknown: it waits for the server's end.
    over: bool,
}

struct World {
    random: SeededRandom,
    trace: Trace,
    stats: Stats,
    options: EngineOptions,
    steps: usize,
    /// In a thousand steps: ends, failures of the disk.
    ends: usize,
    faulty: usize,
    survive: &'static [usize],
    directory: Arc<MemoryDirectory>,
    faults: Arc<Faults>,
    clock: Arc<ManualClock>,
    instance: Arc<Instance>,
    members: Vec<Member>,
    ticks: u64,
    /// Rows of the unlogged table.
    scratch: u64,
}

/// Recoveries that may be cut short before one is let through.
const CUT_RECOVERIES_MAX: usize = 2;

/// Time passes while the only thread waits: this is how its lock_timeout ends a wait for a lock.
struct TimePasses(Arc<ManualClock>);

impl Scheduler for TimePasses {
    fn before_wait(&self) -> bool {
        self.0.advance(Duration::from_millis(1));
        false
    }

    fn before_thread(&self) {}
}

fn start(
    options: &EngineOptions,
    directory: Arc<dyn Directory>,
    clock: &Arc<ManualClock>,
    random: u64,
) -> Result<Arc<Instance>, String> {
    let scheduler = Arc::new(TimePasses(Arc::clone(clock)));
    let clock: Arc<dyn Clock> = Arc::clone(clock) as Arc<dyn Clock>;
    let engine = Engine::open_in_server(options.clone(), directory, Arc::clone(&clock), scheduler, &RecoveryProgress::default())
        .map_err(|e| format!("the engine: {e}"))?;
    let cluster =
        Cluster::open(engine, clock, Arc::new(SeededRandom::new(random))).map_err(|e| format!("the catalog: {}", e.message()))?;
    let settings = Settings::server(&[]).map_err(|e| format!("the settings: {}", e.message()))?;
    Ok(Arc::new(Instance::new(settings, cluster)))
}

fn text(e: &Failure) -> String {
    format!("{} {}", e.state, e.message)
}

impl World {
    fn new(seed: u64, verbose: bool, fsync: bool) -> Result<World, String> {
        let random = SeededRandom::new(seed);
        let one_of = |choices: &[usize]| choices[random.below(choices.len())];
        let options = EngineOptions {
            memory_bytes: one_of(&[60_000, 200_000, 1 << 20]) as u64,
            wal_file_bytes: one_of(&[4096, 32_768, 1 << 20]) as u64,
            segment_bytes: one_of(&[4000, 30_000, 1 << 20]),
            bulk_rows_min: one_of(&[8, 8192]),
            write_set_bytes: one_of(&[2000, 16 << 20]),
            open_files_max: one_of(&[4, 512]),
            wal_writer_delay: Duration::from_millis(one_of(&[1, 50, 200]) as u64),
            fsync,
            ..EngineOptions::default()
        };
        let (steps, ends, faulty) = (one_of(&[300, 900]), one_of(&[4, 12]), one_of(&[0, 0, 6]));
        let sessions = one_of(&[2, 4, 6]);
        let directory = MemoryDirectory::new();
        let clock = Arc::default();
        let instance = start(&options, Arc::clone(&directory) as Arc<dyn Directory>, &clock, seed)?;
        let mut client = SimClient::connect(&instance)?;
        for statement in schema() {
            client.ask(&statement).map_err(|e| format!("{statement}: {}", text(&e)))?;
        }
        client.close();
        let mut world = World {
            random,
            trace: Trace::new(verbose),
            stats: Stats::default(),
            options,
            steps,
            ends,
            faulty,
            survive: &[0, 0, 30, 50, 80, 100],
            directory,
            faults: Faults::new(),
            clock,
            instance,
            members: Vec::new(),
            ticks: 0,
            scratch: 0,
        };
        world.join((0..sessions as u32).map(Session::new).collect())?;
        Ok(world)
    }

    fn engine(&self) -> Arc<Engine> {
        Arc::clone(&self.instance.cluster.engine)
    }

    fn join(&mut self, histories: Vec<Session>) -> Result<(), String> {
        for history in histories {
            let client = SimClient::connect(&self.instance)?;
            let state = history.state_after(0);
            self.members.push(Member { history, state, client, open: None, over: false });
        }
        Ok(())
    }

    fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }

    fn is_troubled(&self) -> bool {
        self.faults.failures() > 0 || self.directory.is_off()
    }

    fn live(&mut self) -> Result<(), String> {
        for _ in 0..self.steps {
            self.clock.advance(Duration::from_millis(self.random.below(20) as u64));
            if let Some(cause) = self.engine().failure() {
                if cause.contains("panicked") || !self.is_troubled() {
                    return Err(format!("the engine has stopped: {cause}"));
                }
                let end = if self.random.chance(50) { End::Kill } else { End::PowerCut };
                self.restart(end)?;
            } else if self.directory.is_off() || self.members.iter().all(|m| m.over) {
                self.restart(End::PowerCut)?;
            }
            self.step()?;
        }
        let end = [End::Kill, End::PowerCut, End::Clean][self.random.below(3)];
        self.restart(end)
    }

    fn step(&mut self) -> Result<(), String> {
        match self.random.below(1000) {
            choice if choice < self.ends => match self.random.below(8) {
                0..3 => self.restart(End::PowerCut),
                3 => self.restart(End::Kill),
                4 | 5 => self.restart(End::Clean),
                _ => {
                    let sync = self.directory.syncs() + self.random.below(12) as u64;
                    self.trace.event(format_args!("the power goes at sync {sync}"));
                    self.directory.cut_power_at_sync(sync);
                    Ok(())
                }
            },
            choice if choice < self.ends + self.faulty => {
                let n = self.random.below(60) as u64;
                self.trace.event(format_args!("operation {n} of files is to fail"));
                self.faults.fail_once(FileOperation::ALL, n);
                Ok(())
            }
            0..200 => {
                self.background();
                Ok(())
            }
            _ => {
                let at = self.random.below(self.members.len());
                if self.members[at].over { Ok(()) } else { self.act(at) }
            }
        }
    }

    fn background(&mut self) {
        self.stats.background += 1;
        let step = match self.random.below(100) {
            0..20 => BackgroundStep::Log,
            20..25 => BackgroundStep::LogFile,
            25..60 => BackgroundStep::Flush,
            60..97 => BackgroundStep::Merge,
            _ => {
                // The engine's failure or the next checkpoint reports an error.
                let done = self.engine().checkpoint().is_ok();
                return self.trace.event(format_args!("checkpoint: {done}"));
            }
        };
        let worked = self.engine().run_step(step);
        self.trace.event(format_args!("{step:?} step: {worked}"));
    }

    /// The next statement of a session.
    fn act(&mut self, at: usize) -> Result<(), String> {
        self.stats.statements += 1;
        let member = &mut self.members[at];
        let open = member.open.get_or_insert_with(|| {
            let n = member.history.next;
            member.history.next += 1;
            let transaction = Transaction::random(&self.random, &member.state, n);
            Open { statements: transaction.statements(member.history.number), transaction, next: 0 }
        });
        let statement = open.statements[open.next].clone();
        open.next += 1;
        if open.next == open.statements.len() {
            return self.commit(at, &statement.text);
        }
        let answer = member.client.ask(&statement.text);
        let state = answer.as_ref().err().map_or("", |e| e.state.as_str());
        self.trace.event(format_args!("session {at}: {} {state}", statement.text));
        match (answer, statement.refused) {
            (Ok(_), None) => Ok(()),
            (Ok(_), Some(state)) => Err(format!("{}: succeeded, {state} expected", statement.text)),
            (Err(e), Some(state)) if e.state == state => Ok(()),
            (Err(e), _) if self.may_fail(&e) => {
                self.stats.refused += 1;
                let member = &mut self.members[at];
                member.open = None;
                member.over = member.client.ask("rollback").is_err();
                Ok(())
            }
            (Err(e), _) => Err(format!("{}: {}", statement.text, text(&e))),
        }
    }

    /// Conflicts, locks that are not free, and effects of failing disks.
    fn may_fail(&self, e: &Failure) -> bool {
        let of_disk = e.state.is_empty() || ["53", "58", "XX"].iter().any(|class| e.state.starts_with(class));
        e.state.starts_with("40") || e.state == "55P03" || (of_disk && self.is_troubled())
    }

    fn commit(&mut self, at: usize, statement: &str) -> Result<(), String> {
        let sent = self.tick();
        let member = &mut self.members[at];
        let Some(open) = member.open.take() else { return Ok(()) };
        let answer = member.client.ask(statement);
        let state = answer.as_ref().err().map_or("", |e| e.state.as_str());
        self.trace.event(format_args!("session {at}: commit {} {state}", open.transaction.n));
        let acknowledged = answer.is_ok().then(|| self.tick());
        match answer {
            Err(e) if !self.may_fail(&e) => return Err(format!("commit: {}", text(&e))),
            Err(e) if e.state.starts_with("40") || e.state == "55P03" => {
                self.stats.refused += 1;
                return Ok(());
            }
            _ => {}
        }
        self.stats.commits += 1;
        let member = &mut self.members[at];
        member.over = acknowledged.is_none();
        open.transaction.apply(&mut member.state);
        let place = acknowledged.unwrap_or(u64::MAX);
        member.history.attempts.push(Attempt { transaction: open.transaction, sent, acknowledged, place });
        Ok(())
    }

    /// Ends the server, starts another on the remaining data, and judges that.
    fn restart(&mut self, mut end: End) -> Result<(), String> {
        self.trace.event(format_args!("end: {end:?}"));
        if end != End::Clean {
            self.directory.cut_power();
        }
        let wanted = end;
        let mut histories = Vec::new();
        for member in self.members.drain(..) {
            if end == End::Clean {
                member.client.close();
            }
            histories.push(member.history);
        }
        if end == End::Clean
            && let Err(e) = self.engine().shutdown()
        {
            self.trace.event(format_args!("shutdown: {e}"));
            if !self.is_troubled() {
                return Err(format!("shutdown: {e}"));
            }
            end = End::PowerCut;
        }
        self.stats.ends[end as usize] += 1;
        let survive = match end {
            End::Kill => 100,
            End::Clean => 0,
            End::PowerCut => self.survive[self.random.below(self.survive.len())],
        };
        let crashed = self.recover(survive)?;
        // A shutdown that failed may have completed after all.
        let whole = if wanted == End::Clean && (end != End::Clean || crashed) { None } else { Some(end == End::Clean) };
        let left = self.judged(&histories, whole)?;
        histories.iter_mut().zip(left).for_each(|(history, left)| history.rebase(left));
        self.join(histories)
    }

    /// The power returns, and a server comes up. Some are cut short before; whether one had come up by then, and more than once.
    fn recover(&mut self, survive: usize) -> Result<bool, String> {
        let mut crashed = false;
        for attempt in 0..=CUT_RECOVERIES_MAX {
            self.directory.cut_power();
            self.stats.failures += self.faults.failures();
            self.faults = Faults::new();
            let random = &self.random;
            self.directory = self.directory.after_power_cut(&mut || random.chance(survive));
            let folder = FaultyDirectory::new(Arc::clone(&self.directory) as Arc<dyn Directory>, Arc::clone(&self.faults));
            let cut = attempt < CUT_RECOVERIES_MAX && self.random.chance(20);
            if cut {
                self.directory.cut_power_at_sync(self.random.below(8) as u64);
            }
            match start(&self.options, folder, &self.clock, self.ticks) {
                Ok(instance) if !self.directory.is_off() => {
                    self.directory.cut_power_at_sync(u64::MAX);
                    self.instance = instance;
                    return Ok(crashed);
                }
                Err(e) if !self.directory.is_off() => return Err(format!("recovery failed: {e}")),
                started => {
                    self.trace.event(format_args!("recovery cut: {}", started.is_ok()));
                    crashed = true;
                }
            }
        }
        Err("no recovery was let through".to_owned())
    }

    /// `whole`: whether everything must be there, or unlogged tables be empty; `None`: either.
    fn judged(&mut self, histories: &[Session], whole: Option<bool>) -> Result<Vec<usize>, String> {
        let wrong = self.instance.cluster.check_indexes();
        if !wrong.is_empty() {
            return Err(format!("indexes and tables disagree: {}", wrong.join("; ")));
        }
        let mut client = SimClient::connect(&self.instance)?;
        let found = read(&mut client)?;
        let left = judge(&found, histories, self.ticks).map_err(|problems| problems.join("\n"))?;
        client.close();
        self.trace.event(format_args!("left: {left:?}, rows of the unlogged table: {}", found.scratch));
        let of_all = || histories.iter().zip(&left);
        if whole == Some(true) && of_all().any(|(h, left)| h.attempts[*left..].iter().any(|a| a.acknowledged.is_some())) {
            return Err("a clean stop has lost a commit".to_owned());
        }
        let operations = of_all().flat_map(|(h, left)| &h.attempts[..*left]).flat_map(|a| &a.transaction.operations);
        let all = self.scratch + operations.filter(|o| matches!(o, Operation::Scratch(_))).count() as u64;
        let allowed = match whole {
            Some(true) => [all, all],
            Some(false) => [0, 0],
            None => [0, all],
        };
        if !allowed.contains(&found.scratch) {
            return Err(format!("the unlogged table has {} rows, {allowed:?} expected", found.scratch));
        }
        self.scratch = found.scratch;
        Ok(left)
    }
}
