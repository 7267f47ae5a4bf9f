//! Reports that there is something to recover, and the progress when it takes long.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use melba_engine::RecoveryProgress;
use melba_serverlog::{Level, ServerLog};

/// Interval of the check whether there is something to recover.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A sentence without its end; `None` before recovery knows how much there is to do.
pub fn describe(progress: &RecoveryProgress) -> Option<String> {
    let (done, all) = progress.replayed();
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    (all > 0).then(|| format!("{:.1} of at most {:.1} MB of the log are replayed", megabytes(done), megabytes(all)))
}

/// Runs `body`, and logs its progress, every `interval` if that is not zero (log_startup_progress_interval).
pub fn report_while<T>(progress: &RecoveryProgress, log: &ServerLog, interval: Duration, body: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    std::thread::scope(|scope| {
        let (over, waiting) = channel::<()>();
        let reporter = std::thread::Builder::new().name("recovery".into()).spawn_scoped(scope, move || {
            let (mut is_told, mut next) = (false, interval);
            while waiting.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                let Some(text) = describe(progress) else { continue };
                if !std::mem::replace(&mut is_told, true) {
                    log.server(Level::Log, INTERRUPTED);
                }
                let elapsed = began.elapsed();
                if !interval.is_zero() && elapsed >= next {
                    next = elapsed + interval;
                    log.server(Level::Log, format!("redo in progress, elapsed time: {:.2} s, {text}", elapsed.as_secs_f64()));
                }
            }
            if let Some(text) = describe(progress) {
                if !is_told {
                    log.server(Level::Log, INTERRUPTED);
                }
                log.server(Level::Log, format!("redo done: {text}, elapsed {:.2} s", began.elapsed().as_secs_f64()));
            }
        });
        // Without the thread nothing is reported.
        drop(reporter);
        let result = body();
        drop(over);
        result
    })
}

const INTERRUPTED: &str = "database system was not properly shut down; automatic recovery in progress";
