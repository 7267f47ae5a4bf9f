//! Delays of the machine itself, measured beside a server: a small file's sync, and a thread's sleep. A pause of the server in
//! which the machine paused as long is due to the disk and the processor, not to the server.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Shorter pauses of the machine are not kept.
const KEPT: Duration = Duration::from_millis(20);
const EVERY: Duration = Duration::from_millis(5);

/// From when to when, in seconds since 1970.
#[derive(Clone, Copy)]
pub struct Pause {
    pub from: f64,
    pub to: f64,
}

impl Pause {
    pub fn millis(&self) -> f64 {
        (self.to - self.from) * 1e3
    }

    fn shared_with(&self, other: &Pause) -> f64 {
        (self.to.min(other.to) - self.from.max(other.from)).max(0.0) * 1e3
    }
}

/// Threads that measure until their results are requested.
pub struct Probe {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Pause>>>,
}

/// Pauses of the machine.
pub struct Pauses {
    pub disk: Vec<Pause>,
    pub processor: Vec<Pause>,
}

impl Probe {
    /// `file` is made in the file system in question, and removed in the end.
    pub fn start(file: &Path) -> Result<Probe, String> {
        let stop: Arc<AtomicBool> = Arc::default();
        let open = std::fs::File::create(file).map_err(|e| format!("{}: {e}", file.display()))?;
        open.write_all_at(&[0; 4096], 0).and_then(|()| open.sync_all()).map_err(|e| format!("{}: {e}", file.display()))?;
        let path = file.to_owned();
        let sync = move |n: u64| {
            // Like the log's files: overwritten in place, so that only the data need be written.
            let _ = open.write_all_at(&n.to_le_bytes(), 0).and_then(|()| open.sync_data());
        };
        let disk = measure(&stop, sync, move || drop(std::fs::remove_file(&path)));
        let processor = measure(&stop, |_| std::thread::sleep(Duration::from_millis(1)), || {});
        Ok(Probe { stop, threads: vec![disk, processor] })
    }

    pub fn finish(mut self) -> Pauses {
        self.stop.store(true, Ordering::SeqCst);
        let mut found = self.threads.drain(..).map(|t| t.join().unwrap_or_default());
        Pauses { disk: found.next().unwrap_or_default(), processor: found.next().unwrap_or_default() }
    }
}

fn measure(
    stop: &Arc<AtomicBool>,
    step: impl Fn(u64) + Send + 'static,
    end: impl FnOnce() + Send + 'static,
) -> JoinHandle<Vec<Pause>> {
    let stop = Arc::clone(stop);
    std::thread::spawn(move || {
        let mut found = Vec::new();
        for n in 0.. {
            if stop.load(Ordering::SeqCst) {
                break;
            }
            let from = now();
            step(n);
            let pause = Pause { from, to: now() };
            if pause.millis() >= KEPT.as_secs_f64() * 1e3 {
                found.push(pause);
            }
            std::thread::sleep(EVERY);
        }
        end();
        found
    })
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

impl Pauses {
    /// Milliseconds of a server's pause that the machine paused, too.
    pub fn shared_with(&self, pause: &Pause) -> f64 {
        let of = |all: &[Pause]| all.iter().map(|p| p.shared_with(pause)).sum::<f64>();
        of(&self.disk).max(of(&self.processor))
    }

    pub fn longest(all: &[Pause]) -> f64 {
        all.iter().map(Pause::millis).fold(0.0, f64::max)
    }
}
