//! Telling how far recovery is, when it takes its time.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use melba_engine::RecoveryProgress;

/// Recovery that is over sooner is not told of.
const FIRST_AFTER: Duration = Duration::from_secs(1);
const THEN_EVERY: Duration = Duration::from_secs(5);

/// A sentence without its end; `None` before recovery knows how much there is to do.
pub fn describe(progress: &RecoveryProgress) -> Option<String> {
    let (done, all) = progress.replayed();
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    (all > 0).then(|| format!("{:.1} of at most {:.1} MB of the log are replayed", megabytes(done), megabytes(all)))
}

/// Runs `body`, and tells on stderr how far it is.
pub fn report_while<T>(progress: &RecoveryProgress, body: impl FnOnce() -> T) -> T {
    std::thread::scope(|scope| {
        let (over, waiting) = channel::<()>();
        let began = Instant::now();
        let reporter = std::thread::Builder::new().name("recovery".into()).spawn_scoped(scope, move || {
            let mut wait = FIRST_AFTER;
            while waiting.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                if let Some(text) = describe(progress) {
                    eprintln!("melba: recovery: {text} after {:.0} s", began.elapsed().as_secs_f64());
                }
                wait = THEN_EVERY;
            }
            if began.elapsed() >= FIRST_AFTER {
                eprintln!("melba: recovery took {:.1} s", began.elapsed().as_secs_f64());
            }
        });
        // Without the thread nothing is told.
        drop(reporter);
        let result = body();
        drop(over);
        result
    })
}
