//! The bytes of a data directory over time.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often files are measured.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Measures the files of a data directory all the time, on a separate thread.
pub struct Watch {
    pub now: Arc<AtomicU64>,
    pub most: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Watch {
    pub fn start(data: PathBuf) -> Watch {
        let watch = Watch { now: Arc::default(), most: Arc::default(), stop: Arc::default() };
        let (now, most, stop) = (Arc::clone(&watch.now), Arc::clone(&watch.most), Arc::clone(&watch.stop));
        std::thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                let bytes = bytes_of(&data);
                now.store(bytes, Ordering::SeqCst);
                most.fetch_max(bytes, Ordering::SeqCst);
                std::thread::sleep(LOOK_EVERY);
            }
        });
        watch
    }

    /// The bytes once they have not changed for ten seconds.
    pub fn settled(&self, within: Duration) -> u64 {
        let began = Instant::now();
        let (mut last, mut since) = (0, Instant::now());
        while began.elapsed() < within && since.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(LOOK_EVERY);
            let now = self.now.load(Ordering::SeqCst);
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        last
    }

    /// Watches for `within`; returns when the bytes were below the limit for good.
    pub fn below(&self, bar: u64, within: Duration) -> Option<Duration> {
        let began = Instant::now();
        let mut reached = None;
        while began.elapsed() < within {
            std::thread::sleep(LOOK_EVERY);
            let is_below = self.now.load(Ordering::SeqCst) < bar;
            reached = if is_below { reached.or(Some(began.elapsed())) } else { None };
        }
        reached
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

/// Bytes of all files below a folder.
fn bytes_of(folder: &Path) -> u64 {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_of(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}
