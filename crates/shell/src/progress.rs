//! The progress message of a long statement: its duration, and how far it is, where the server knows that.

use std::io::{IsTerminal as _, Write as _, stderr};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use melba_client::target::Target;

/// Statements that end sooner are left alone.
const PATIENCE: Duration = Duration::from_secs(1);
const INTERVAL: Duration = Duration::from_millis(500);

/// A session's progress: words, how much is done, and of how much. Zero: the server does not know.
const QUERY: &str = "
SELECT command || ', ' || tuples_processed || ' rows', bytes_processed, bytes_total FROM pg_catalog.pg_stat_progress_copy WHERE pid = $pid
UNION ALL SELECT command || ', ' || phase, CASE WHEN tuples_total > 0 THEN tuples_done ELSE blocks_done END,
  CASE WHEN tuples_total > 0 THEN tuples_total ELSE blocks_total END FROM pg_catalog.pg_stat_progress_create_index WHERE pid = $pid
UNION ALL SELECT 'VACUUM, ' || phase, heap_blks_scanned, heap_blks_total FROM pg_catalog.pg_stat_progress_vacuum WHERE pid = $pid
UNION ALL SELECT 'ANALYZE, ' || phase, sample_blks_scanned, sample_blks_total FROM pg_catalog.pg_stat_progress_analyze WHERE pid = $pid
UNION ALL SELECT command || ', ' || phase, heap_blks_scanned, heap_blks_total FROM pg_catalog.pg_stat_progress_cluster WHERE pid = $pid
LIMIT 1";

/// A running statement. Nothing more is printed once it is dropped.
pub struct Running(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<ProgressState>,
    ended: Condvar,
}

#[derive(Default)]
struct ProgressState {
    is_over: bool,
    /// Something is on the screen.
    is_shown: bool,
}

impl Running {
    /// Of the session `pid` of a server.
    pub fn start(target: &Target, pid: i32) -> Running {
        let running = Running::silent();
        if stderr().is_terminal() {
            let (shared, target) = (Arc::clone(&running.0), target.clone());
            // Without the thread the statement runs as well.
            let _ = std::thread::Builder::new().name("progress".into()).spawn(move || watch(&shared, &target, pid));
        }
        running
    }

    /// A progress that prints nothing.
    pub fn silent() -> Running {
        Running(Arc::default())
    }

    /// Results arrive: nothing more is printed.
    pub fn clear(&self) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_over {
            return;
        }
        state.is_over = true;
        self.0.ended.notify_all();
        if state.is_shown {
            eprint!("\r\x1b[K");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.clear();
    }
}

fn watch(shared: &Shared, target: &Target, pid: i32) {
    let begun = Instant::now();
    if wait(shared, PATIENCE) {
        return;
    }
    // By a separate session, if there is room for one.
    let mut connection = melba_client::open(target, &mut |_| None).ok();
    let query = QUERY.replace("$pid", &pid.to_string());
    loop {
        let far = connection.as_mut().and_then(|connection| connection.rows(&query).ok()).and_then(|rows| described(&rows));
        let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_over {
            return;
        }
        state.is_shown = true;
        let far = far.map_or_else(String::new, |far| format!("  {far}"));
        eprint!("\r\x1b[K{:.1} s{far}  (Ctrl-C cancels)", begun.elapsed().as_secs_f64());
        // Nothing can be done about a closed terminal.
        let _ = stderr().flush();
        drop(state);
        if wait(shared, INTERVAL) {
            return;
        }
    }
}

/// Whether it ended meanwhile.
fn wait(shared: &Shared, time: Duration) -> bool {
    let state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = shared.ended.wait_timeout_while(state, time, |state| !state.is_over);
    waited.unwrap_or_else(PoisonError::into_inner).0.is_over
}

fn described(rows: &[Vec<Option<String>>]) -> Option<String> {
    let [Some(what), done, total] = rows.first()?.as_slice() else { return None };
    let number = |value: &Option<String>| value.as_deref().and_then(|value| value.parse::<f64>().ok()).unwrap_or(0.0);
    let (done, total) = (number(done), number(total));
    let share = if total > 0.0 { format!(" {:.0} %", (done / total * 100.0).min(100.0)) } else { String::new() };
    Some(format!("{what}{share}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_told_where_the_whole_is_known() {
        let row = |what: &str, done: &str, total: &str| vec![[what, done, total].map(|v| Some(v.to_owned())).to_vec()];
        assert_eq!(described(&row("COPY FROM, 5 rows", "30", "120")).as_deref(), Some("COPY FROM, 5 rows 25 %"));
        assert_eq!(described(&row("VACUUM, scanning", "30", "0")).as_deref(), Some("VACUUM, scanning"));
        assert_eq!(described(&[]), None);
    }
}
