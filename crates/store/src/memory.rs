//! The memory of queries and write sets: one budget for the process, of which all of them reserve pieces.
//!
//! Invariants:
//! 1. The reservations of all `QueryMemory`s together are at most the budget's limit.
//! 2. A reservation is released when its `Held` or `QueryMemory` is dropped, however the query ended.
//! 3. A `QueryMemory` uses at most its reservation, however many threads of its statement take and release at a time.

use std::sync::Arc;

use crate::error::{EngineError, Result};
use melba_threads::Mutex;
use melba_threads::atomic::{AtomicU64, Ordering};
use melba_threads::planted::{Plant, is_planted};

/// Reserved from the budget at a time, so that the shared counter is touched rarely.
const PIECE_BYTES: u64 = 256 << 10;

/// The memory that all queries of the process together may hold.
#[derive(Debug)]
pub struct MemoryBudget {
    limit: u64,
    reserved: AtomicU64,
}

impl MemoryBudget {
    pub fn new(limit: u64) -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget { limit, reserved: AtomicU64::new(0) })
    }

    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes reserved now.
    pub fn reserved(&self) -> u64 {
        self.reserved.load(Ordering::Relaxed)
    }

    /// `spare`: so much must be left. A refusal changes nothing, be it for a moment, that another would be refused for.
    fn try_reserve(&self, bytes: u64, spare: u64) -> bool {
        let most = self.limit.saturating_sub(spare);
        let more = |taken: u64| taken.checked_add(bytes).filter(|all| *all <= most);
        self.reserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn release(&self, bytes: u64) {
        self.reserved.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// One statement's part of the budget, in all its threads.
pub struct QueryMemory {
    budget: Arc<MemoryBudget>,
    account: Mutex<Account>,
}

/// Bytes.
#[derive(Default)]
struct Account {
    used: u64,
    reserved: u64,
}

impl QueryMemory {
    pub fn new(budget: &Arc<MemoryBudget>) -> Arc<QueryMemory> {
        Arc::new(QueryMemory { budget: Arc::clone(budget), account: Mutex::new(Account::default()) })
    }

    /// Bytes that all queries together may have.
    pub fn limit(&self) -> u64 {
        self.budget.limit()
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.account.lock().used
    }

    /// `spare`: so much of the budget must be left.
    fn try_grow(&self, bytes: u64, spare: u64) -> bool {
        let mut account = self.account.lock();
        let used = account.used + bytes;
        if let Some(missing) = used.checked_sub(account.reserved).filter(|missing| *missing > 0) {
            let pieces = [missing.next_multiple_of(PIECE_BYTES), missing];
            let Some(reserved) = pieces.into_iter().find(|wanted| self.budget.try_reserve(*wanted, spare)) else { return false };
            account.reserved += reserved;
        }
        account.used = used;
        true
    }

    fn shrink(&self, bytes: u64) {
        let mut account = self.account.lock();
        account.used -= bytes;
        let spare = account.reserved - account.used;
        if spare >= 2 * PIECE_BYTES {
            let back = spare - PIECE_BYTES;
            if is_planted(Plant::GiveBackTwice) {
                drop(account);
                account = self.account.lock();
            }
            account.reserved -= back;
            self.budget.release(back);
        }
    }
}

impl Drop for QueryMemory {
    fn drop(&mut self) {
        self.budget.release(self.account.lock().reserved);
    }
}

/// The part of its query's memory that one holder of rows has taken.
pub struct Held {
    memory: Arc<QueryMemory>,
    bytes: usize,
}

impl Held {
    pub fn new(memory: &Arc<QueryMemory>) -> Held {
        Held { memory: Arc::clone(memory), bytes: 0 }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the amount held; false, with nothing changed, when the budget has too little left.
    #[must_use]
    pub fn try_set(&mut self, bytes: usize) -> bool {
        self.try_set_sparing(bytes, 0)
    }

    /// The same, but more is held only as long as `spare` bytes of the budget are left for others.
    #[must_use]
    pub fn try_set_sparing(&mut self, bytes: usize, spare: u64) -> bool {
        if bytes > self.bytes {
            if !self.memory.try_grow((bytes - self.bytes) as u64, spare) {
                return false;
            }
        } else {
            self.memory.shrink((self.bytes - bytes) as u64);
        }
        self.bytes = bytes;
        true
    }

    /// Changes the amount held by a holder that has no other choice.
    ///
    /// # Errors
    /// 53200 when the budget has not so much left.
    pub fn set(&mut self, bytes: usize) -> Result<()> {
        match self.try_set(bytes) {
            true => Ok(()),
            false => {
                Err(EngineError::MemoryExhausted { request: (bytes - self.bytes) as u64, limit: self.memory.budget.limit() })
            }
        }
    }

    /// Holds more, see `set`.
    pub fn grow(&mut self, bytes: usize) -> Result<()> {
        self.set(self.bytes + bytes)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.memory.shrink(self.bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back_and_no_more_than_the_limit_is_given() {
        let budget = MemoryBudget::new(1 << 20);
        let (a, b) = (QueryMemory::new(&budget), QueryMemory::new(&budget));
        let (mut x, mut y) = (Held::new(&a), Held::new(&b));
        x.set(10).expect("fits");
        assert_eq!(budget.reserved(), PIECE_BYTES);
        x.set(760 << 10).expect("fits");
        assert!(!y.try_set(300 << 10) && y.bytes() == 0 && b.used() == 0);
        assert!(matches!(y.set(300 << 10), Err(EngineError::MemoryExhausted { request: 307_200, limit: 1_048_576 })));
        assert!(!y.try_set_sparing(200 << 10, 100 << 10) && y.bytes() == 0, "others could not have so much any more");
        assert!(y.try_set(200 << 10), "a piece is left");
        x.set(0).expect("shrinks");
        y.grow(500 << 10).expect("fits now");
        drop((x, y));
        drop((a, b));
        assert_eq!(budget.reserved(), 0);
    }
}
