//! Bugs on purpose: `cargo xtask sim --plant BUG` shows that the simulator finds them, `cargo xtask threads` that the model
//! checker finds those of order. Without the feature `planted` they cannot be turned on, and the check costs nothing.

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Plant {
    /// The manifest is not synced.
    SkipFsync = 1,
    /// Synchronous commits are published before their log record is durable.
    PublishEarly = 2,
    /// Merges of indexes lose an entry now and then.
    DropIndexEntry = 3,
    /// A SERIALIZABLE commit forgets conflicts with prepared ones that have not reported yet that they are visible.
    ForgetPrepared = 4,
    /// The log is called durable before it is synced.
    DurableEarly = 5,
    /// A flush of the log after a failed one succeeds, without the bytes of the failed one.
    ForgetFailedFlush = 6,
    /// Files of the log are released without a check of the reserved space.
    ForgetPromises = 7,
    /// The leader of a failed flush does not report it.
    KeepFailure = 8,
    /// Asynchronous commits do not wake the log writer.
    NoWake = 9,
    /// A writer that waits for the row store does not look whether its flush has failed.
    WaitForFailed = 10,
    /// Of two threads that count the row store's bytes at once, one count is lost.
    CountApart = 11,
    /// Two threads of a statement that give memory back at once give the same reservation back.
    GiveBackTwice = 12,
}

impl Plant {
    /// A bug by its name on the command line, of those that the simulator finds.
    pub fn parse(name: &str) -> Option<Plant> {
        match name {
            "skip-fsync" => Some(Plant::SkipFsync),
            "publish-early" => Some(Plant::PublishEarly),
            "drop-index-entry" => Some(Plant::DropIndexEntry),
            "forget-prepared" => Some(Plant::ForgetPrepared),
            _ => None,
        }
    }
}

#[cfg(feature = "planted")]
static PLANTED: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

/// Turns a bug on for the whole process.
pub fn plant(plant: Plant) {
    #[cfg(feature = "planted")]
    PLANTED.store(plant as u8, std::sync::atomic::Ordering::SeqCst);
    #[cfg(not(feature = "planted"))]
    let _ = plant;
}

/// Turns it off again.
#[cfg(feature = "shuttle")]
pub fn unplant() {
    #[cfg(feature = "planted")]
    PLANTED.store(0, std::sync::atomic::Ordering::SeqCst);
}

/// Whether a bug is turned on.
#[cfg(feature = "planted")]
pub fn is_planted(plant: Plant) -> bool {
    PLANTED.load(std::sync::atomic::Ordering::Relaxed) == plant as u8
}

/// Whether a bug is turned on.
#[cfg(not(feature = "planted"))]
pub const fn is_planted(_: Plant) -> bool {
    false
}
