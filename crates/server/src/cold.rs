//! Moves old segments of tables into stores in the background (`melba_statement::cold`). Failures are logged when they are new, and
//! stand in melba_cold.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use melba_serverlog::Level;
use melba_statement::context::Instance;
use melba_types::limits::{self, Interruptible};
use melba_types::{Result, err};

/// How often it looks for segments that are due.
const LOOK: Duration = Duration::from_secs(1);
/// How long a stop waits for a move that it has ended.
const PATIENCE: Duration = Duration::from_secs(10);

/// The thread that moves.
pub struct ColdMover {
    stop: Arc<Stop>,
    thread: JoinHandle<()>,
}

/// Ends waits for stores.
#[derive(Default)]
struct Stop(AtomicBool);

impl Stop {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl Interruptible for Stop {
    fn check(&self) -> Result<()> {
        if self.is_set() { Err(err!(ADMIN_SHUTDOWN, "the server stops")) } else { Ok(()) }
    }
}

impl ColdMover {
    /// # Errors
    /// There is no thread for it.
    pub fn start(instance: Arc<Instance>) -> Result<ColdMover> {
        let stop = Arc::<Stop>::default();
        let of_thread = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("cold mover".into());
        let thread = thread.spawn(move || work(&instance, &of_thread));
        let thread = thread.map_err(|e| err!(IO_ERROR, "could not start a thread: {e}"))?;
        Ok(ColdMover { stop, thread })
    }

    /// Ends what it does: a segment that has not moved is where it was.
    pub fn stop(self) {
        self.stop.0.store(true, Ordering::SeqCst);
        self.thread.thread().unpark();
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && !self.thread.is_finished() {
            std::thread::sleep(LOOK / 100);
        }
    }
}

fn work(instance: &Arc<Instance>, stop: &Arc<Stop>) {
    while !stop.is_set() {
        let interrupt = Arc::clone(stop) as Arc<dyn Interruptible>;
        let step = || instance.cold.step(&instance.cluster, &instance.settings(), &|| stop.is_set());
        let failures = limits::run(interrupt, step);
        if !stop.is_set() {
            for failure in failures {
                instance.log().server(Level::Warning, format!("cold data: {failure}"));
            }
            std::thread::park_timeout(LOOK);
        }
    }
}
