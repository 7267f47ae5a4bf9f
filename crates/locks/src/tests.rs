//! Waits by a clock that a test moves.

use std::sync::Arc;
use std::time::Duration;

use melba_store::{EngineError, Interrupt};
use melba_threads::OwnThreads;
use melba_types::{RowId, TreeId};
use melba_vfs::{Clock, ManualClock};

use crate::{HoldDuration, LockKey, LockManager, RowLockMode, WaitPolicy};

#[test]
fn lock_timeout_follows_the_clock_that_is_given() {
    let clock = Arc::new(ManualClock::new());
    let locks = LockManager::new(Arc::new(OwnThreads), Arc::clone(&clock) as Arc<dyn Clock>);
    (0..2).for_each(|slot| locks.attach(slot));
    let lock = |slot| {
        let interrupt = Interrupt::new();
        let (key, mode) = (LockKey::Row(TreeId(1), RowId(1)), RowLockMode::ForUpdate.into());
        let (lock_timeout, deadlock_timeout) = (Some(Duration::from_millis(2)), Duration::MAX);
        let wait = WaitPolicy { block: true, interrupt: &interrupt, lock_timeout, deadlock_timeout, watch: None };
        locks.lock(slot, key, mode, HoldDuration::Transaction, &wait)
    };
    assert!(lock(0).expect("is free"));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| lock(1));
        std::thread::sleep(Duration::from_millis(20));
        assert!(!waiting.is_finished(), "the clock stands still");
        clock.advance(Duration::from_millis(2));
        assert!(matches!(waiting.join().expect("answers"), Err(EngineError::LockTimeout)));
    });
}
