//! Sessions over a real server, which run transactions until they are told to stop or the server has ended.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use melba_vfs::SeededRandom;
use melba_workload::{Attempt, Connection, Failure, Row, Session, Statement, Transaction};
use postgres::{NoTls, SimpleQueryMessage};

/// A session without an answer for this long counts as hanging.
const WITHIN: Duration = Duration::from_secs(40);

/// A connection to a server.
pub struct Client(postgres::Client);

impl Client {
    /// # Errors
    /// The server does not take it.
    pub fn connect(port: u16) -> Result<Client, Failure> {
        let mut config = postgres::Client::configure();
        config.host("127.0.0.1").port(port).user("postgres").dbname("postgres").connect_timeout(Duration::from_secs(5));
        config.connect(NoTls).map(Client).map_err(|e| failure(&e))
    }
}

fn failure(e: &postgres::Error) -> Failure {
    match e.as_db_error() {
        Some(error) => Failure { state: error.code().code().to_owned(), message: error.message().to_owned() },
        None => Failure { state: String::new(), message: e.to_string() },
    }
}

impl Connection for Client {
    fn ask(&mut self, statement: &str) -> Result<Vec<Row>, Failure> {
        let messages = self.0.simple_query(statement).map_err(|e| failure(&e))?;
        let rows = messages.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|n| row.get(n).map(str::to_owned)).collect()),
            _ => None,
        });
        Ok(rows.collect())
    }
}

/// Percentage of transactions that begin with a checkpoint, which flushes the rows in memory.
const CHECKPOINT_PERCENT: usize = 4;

/// State that sessions share.
struct Shared {
    port: u16,
    stop: AtomicBool,
    /// Whether files fail, so that statements do.
    faults: bool,
    /// Counts sendings and acknowledgements.
    clock: AtomicU64,
    /// Its length is where the disk is.
    journal: PathBuf,
}

impl Shared {
    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// The server may have ended, and statements with files may fail when the files do.
    fn may_fail(&self, e: &Failure) -> bool {
        e.state.is_empty() || (self.faults && ["53", "58", "XX"].iter().any(|class| e.state.starts_with(class)))
    }

    fn place(&self) -> u64 {
        std::fs::metadata(&self.journal).map_or(0, |m| m.len())
    }
}

/// Sessions that are at work.
pub struct Sessions {
    shared: Arc<Shared>,
    ended: mpsc::Receiver<Result<Session, String>>,
    count: usize,
}

impl Sessions {
    /// Lets sessions work on, each in a thread.
    pub fn begin(sessions: Vec<Session>, port: u16, journal: PathBuf, seed: u64, faults: bool) -> Sessions {
        let shared = Arc::new(Shared { port, stop: AtomicBool::new(false), faults, clock: AtomicU64::new(0), journal });
        let (sender, ended) = mpsc::channel();
        let count = sessions.len();
        for mut session in sessions {
            let (shared, sender) = (Arc::clone(&shared), sender.clone());
            let random = SeededRandom::new(seed.wrapping_mul(1000).wrapping_add(u64::from(session.number)));
            std::thread::spawn(move || {
                let result = work(&mut session, &shared, &random);
                // The receiver has ended when another session has hung.
                let _ = sender.send(result.map(|()| session));
            });
        }
        Sessions { shared, ended, count }
    }

    /// Tells them to stop and waits for them.
    ///
    /// # Errors
    /// A session hangs, or had an error that it should not have.
    pub fn end(self) -> Result<Vec<Session>, String> {
        self.shared.stop.store(true, Ordering::SeqCst);
        let until = Instant::now() + WITHIN;
        let mut sessions = Vec::new();
        for _ in 0..self.count {
            let session = self.ended.recv_timeout(until.saturating_duration_since(Instant::now()));
            sessions.push(session.map_err(|_| "a session hangs: it has no answer".to_owned())??);
        }
        sessions.sort_by_key(|s| s.number);
        Ok(sessions)
    }
}

/// The end of a transaction, as far as the session's next step depends on it.
enum TransactionEnd {
    Committed,
    RolledBack,
    /// The server has ended, or the transaction's outcome is unknown.
    Over,
}

fn work(session: &mut Session, shared: &Shared, random: &SeededRandom) -> Result<(), String> {
    let Ok(mut client) = Client::connect(shared.port) else { return Ok(()) };
    let mut state = session.state_after(0);
    while !shared.stop.load(Ordering::SeqCst) {
        if random.chance(CHECKPOINT_PERCENT)
            && let Err(e) = client.ask("checkpoint")
            && !shared.may_fail(&e)
        {
            return Err(format!("checkpoint: {} {}", e.state, e.message));
        }
        let transaction = Transaction::random(random, &state, session.next);
        session.next += 1;
        match run(&transaction, session, shared, &mut client)? {
            TransactionEnd::Committed => transaction.apply(&mut state),
            TransactionEnd::RolledBack => {}
            TransactionEnd::Over => break,
        }
    }
    Ok(())
}

fn run(transaction: &Transaction, session: &mut Session, shared: &Shared, client: &mut Client) -> Result<TransactionEnd, String> {
    let statements = transaction.statements(session.number);
    let (commit, statements) = statements.split_last().ok_or("a transaction without statements")?;
    for statement in statements {
        if let Some(ending) = step(statement, shared, client)? {
            return Ok(ending);
        }
    }
    session.attempts.push(Attempt { transaction: transaction.clone(), sent: shared.tick(), acknowledged: None, place: u64::MAX });
    let answer = client.ask(&commit.text);
    let attempt = session.attempts.last_mut().ok_or("no attempt")?;
    match answer {
        Ok(_) => {
            (attempt.acknowledged, attempt.place) = (Some(shared.tick()), shared.place());
            Ok(TransactionEnd::Committed)
        }
        // Conflicts, and space that was missing before the commit had its place.
        Err(e) if e.state.starts_with("40") || (shared.faults && e.state.starts_with("53")) => {
            session.attempts.pop();
            Ok(TransactionEnd::RolledBack)
        }
        Err(e) if e.state.is_empty() || shared.faults => Ok(TransactionEnd::Over),
        Err(e) => Err(format!("COMMIT: {} {}", e.state, e.message)),
    }
}

/// A statement before the commit; how the transaction has ended by it, if so.
fn step(statement: &Statement, shared: &Shared, client: &mut Client) -> Result<Option<TransactionEnd>, String> {
    let failure = match (client.ask(&statement.text), statement.refused) {
        (Ok(_), None) => return Ok(None),
        (Ok(_), Some(state)) => return Err(format!("{}: succeeded, {state} expected", statement.text)),
        (Err(e), Some(state)) if e.state == state => return Ok(None),
        (Err(e), _) => e,
    };
    if !failure.state.starts_with("40") && !shared.may_fail(&failure) {
        return Err(format!("{}: {} {}", statement.text, failure.state, failure.message));
    }
    let rolled_back = !failure.state.is_empty() && client.ask("rollback").is_ok();
    Ok(Some(if rolled_back { TransactionEnd::RolledBack } else { TransactionEnd::Over }))
}
