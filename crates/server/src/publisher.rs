//! Publishes in the background: each publication with a format, every snapshot_interval, by `melba_publish` in a session that no view shows.
//!
//! Errors are logged and stand in melba_publications; after them the next attempts wait longer and longer
//! (`melba_statement::publishing`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use melba_serverlog::Level;
use melba_sql::session::STACK_BYTES;
use melba_statement::context::{Instance, SessionState};
use melba_statement::publishing::Due;
use melba_types::{Result, err};
use parking_lot::Mutex;

use crate::questions::Questions;

/// How often it looks for publications that are due.
const LOOK: Duration = Duration::from_millis(200);
/// Publications that are published at a time.
const PUBLISHED_MAX: usize = 4;
/// How long a stop waits for sessions that it has ended.
const PATIENCE: Duration = Duration::from_secs(10);

/// The thread that publishes.
pub struct Publisher {
    shared: Arc<PublisherShared>,
    thread: JoinHandle<()>,
}

struct PublisherShared {
    instance: Arc<Instance>,
    is_stopping: AtomicBool,
    sessions: Mutex<Vec<Arc<SessionState>>>,
}

impl Publisher {
    /// # Errors
    /// There is no thread for it.
    pub fn start(instance: Arc<Instance>) -> Result<Publisher> {
        let shared = Arc::new(PublisherShared { instance, is_stopping: AtomicBool::new(false), sessions: Mutex::default() });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("publisher".into());
        let thread = thread.spawn(move || work(&of_thread)).map_err(|e| err!(IO_ERROR, "could not start a thread: {e}"))?;
        Ok(Publisher { shared, thread })
    }

    /// Ends what it does: a snapshot that is not finished is none.
    pub fn stop(self) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && !(self.thread.is_finished() && self.shared.sessions.lock().is_empty()) {
            self.shared.sessions.lock().iter().for_each(|session| session.interrupt.terminate());
            std::thread::sleep(LOOK / 20);
        }
    }
}

fn work(shared: &Arc<PublisherShared>) {
    while !shared.is_stopping.load(Ordering::SeqCst) {
        let free = PUBLISHED_MAX.saturating_sub(shared.sessions.lock().len());
        for due in shared.instance.publishing.due(&shared.instance.cluster, free) {
            let of_thread = Arc::clone(shared);
            // Queries run as in a session.
            let thread = std::thread::Builder::new().name("publisher".into()).stack_size(STACK_BYTES);
            let asked = Arc::new(due);
            let due = Arc::clone(&asked);
            if let Err(e) = thread.spawn(move || of_thread.publish(&due)) {
                shared.end(&asked, &Err(err!(IO_ERROR, "could not start a thread: {e}")));
            }
        }
        std::thread::park_timeout(LOOK);
    }
}

impl PublisherShared {
    fn publish(&self, due: &Due) {
        self.end(due, &self.ask(due));
    }

    fn end(&self, due: &Due, asked: &Result<()>) {
        self.instance.publishing.done(&self.instance.cluster, due, asked);
        if let Err(e) = asked {
            let Due { publication, database_name, .. } = due;
            if !self.is_stopping.load(Ordering::SeqCst) {
                let message = format!("publication \"{publication}\" of database \"{database_name}\" failed: {}", e.message());
                self.instance.log().server(Level::Warning, message);
            }
        }
    }

    fn ask(&self, due: &Due) -> Result<()> {
        let catalog = self.instance.cluster.catalog(due.database);
        let mut questions = Questions::new(&self.instance, &catalog, &due.database_name)?;
        let state = Arc::clone(questions.state());
        self.sessions.lock().push(Arc::clone(&state));
        let asked = match self.is_stopping.load(Ordering::SeqCst) {
            true => Ok(()),
            false => questions.ask(&format!("SELECT melba_publish({})", literal(&due.publication))).map(|_| ()),
        };
        drop(questions);
        self.sessions.lock().retain(|session| !Arc::ptr_eq(session, &state));
        asked
    }
}

/// A text as SQL has it, whatever standard_conforming_strings is.
fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_within_their_literal() {
        assert_eq!(literal("a'b\\'c"), "E'a''b\\\\''c'");
    }
}
