//! Sequences: counters that live outside transactions.
//!
//! Creation and removal are transactional, values are not: a value that `nextval` returned never comes again, not after a
//! rollback and not after a crash. Values are logged ahead of their use, `LOG_AHEAD` at a time, as in PostgreSQL.

use melba_types::Lsn;
use melba_types::bytes::{ByteReader, put_i64};

use crate::error::{EngineError, Result};
use crate::ids::SequenceId;
use crate::persistence::Persistence;
use melba_threads::Mutex;

/// Values that are logged ahead.
pub const LOG_AHEAD: i64 = 32;

/// The fixed part of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceDefinition {
    pub increment: i64,
    pub min: i64,
    pub max: i64,
    pub cycle: bool,
}

/// The moving part, as `SELECT last_value, is_called FROM sequence` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceState {
    /// The last value returned, or the first one to return when not `is_called`.
    pub last_value: i64,
    pub is_called: bool,
}

/// One sequence in memory.
pub struct Sequence {
    pub id: SequenceId,
    pub definition: SequenceDefinition,
    pub persistence: Persistence,
    /// Where an unlogged sequence begins again after a crash.
    pub start: SequenceState,
    pub state: Mutex<Counter>,
}

/// The counter and how far the log knows of it.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    pub state: SequenceState,
    /// Values that may be handed out before the log needs another record.
    pub logged_ahead: i64,
    /// The state that the log has, or will have: never behind the values handed out.
    pub logged: SequenceState,
    /// Where the log ended after the last record.
    pub logged_at: Lsn,
    /// The creating transaction has committed: the log may mention it.
    pub committed: bool,
}

impl Sequence {
    pub fn new(
        id: SequenceId,
        definition: SequenceDefinition,
        state: SequenceState,
        persistence: Persistence,
        committed: bool,
    ) -> Sequence {
        let counter = Counter { state, logged_ahead: 0, logged: state, logged_at: Lsn(0), committed };
        Sequence { id, definition, persistence, start: state, state: Mutex::new(counter) }
    }

    /// Advances the counter. `log` gets the state that the log must hold before the value is used, unless it already does, and
    /// returns where the log then ends; it is called under the counter's lock, so that the log has the states in order.
    ///
    /// Also returns how far the log must be durable before the value may be relied on: another session may have logged it.
    pub fn next(&self, log: impl FnOnce(SequenceState) -> Lsn) -> Result<(i64, Lsn)> {
        let mut counter = self.state.lock();
        let value = self.definition.after(counter.state)?;
        counter.state = SequenceState { last_value: value, is_called: true };
        if !counter.committed || self.persistence != Persistence::Logged {
            counter.logged = counter.state;
            return Ok((value, Lsn(0)));
        }
        if counter.logged_ahead > 0 {
            counter.logged_ahead -= 1;
            return Ok((value, counter.logged_at));
        }
        let (ahead, steps) = self.definition.ahead(counter.state);
        counter.logged_ahead = steps;
        counter.logged = ahead;
        counter.logged_at = log(ahead);
        Ok((value, counter.logged_at))
    }

    /// Sets the counter; `log` as for `next`.
    pub fn set(&self, value: i64, is_called: bool, log: impl FnOnce(SequenceState) -> Lsn) -> Result<Lsn> {
        let SequenceDefinition { min, max, .. } = self.definition;
        if value < min || value > max {
            return Err(EngineError::SequenceBounds { value, min, max });
        }
        let mut counter = self.state.lock();
        counter.state = SequenceState { last_value: value, is_called };
        counter.logged_ahead = 0;
        counter.logged = counter.state;
        if counter.committed && self.persistence == Persistence::Logged {
            counter.logged_at = log(counter.state);
        }
        Ok(counter.logged_at)
    }
}

impl SequenceState {
    /// Appends its bytes in the log and the manifest.
    pub fn put(self, out: &mut Vec<u8>) {
        put_i64(self.last_value, out);
        out.push(u8::from(self.is_called));
    }

    pub fn read(r: &mut ByteReader<'_>) -> Option<SequenceState> {
        Some(SequenceState { last_value: r.i64()?, is_called: r.u8()? != 0 })
    }
}

impl SequenceDefinition {
    /// Appends its bytes in the log and the manifest.
    pub fn put(&self, out: &mut Vec<u8>) {
        for v in [self.increment, self.min, self.max] {
            put_i64(v, out);
        }
        out.push(u8::from(self.cycle));
    }

    pub fn read(r: &mut ByteReader<'_>) -> Option<SequenceDefinition> {
        Some(SequenceDefinition { increment: r.i64()?, min: r.i64()?, max: r.i64()?, cycle: r.u8()? != 0 })
    }

    /// The value that follows a state.
    fn after(&self, state: SequenceState) -> Result<i64> {
        if !state.is_called {
            return Ok(state.last_value);
        }
        let next = state.last_value.checked_add(self.increment).filter(|v| (self.min..=self.max).contains(v));
        match next {
            Some(value) => Ok(value),
            None if self.cycle => Ok(if self.increment > 0 { self.min } else { self.max }),
            None => Err(EngineError::SequenceExhausted {
                ascending: self.increment > 0,
                limit: if self.increment > 0 { self.max } else { self.min },
            }),
        }
    }

    /// The state after as many of the next `LOG_AHEAD` values as there are before the end, and how many those are.
    fn ahead(&self, mut state: SequenceState) -> (SequenceState, i64) {
        for steps in 0..LOG_AHEAD {
            // Logging past a wrap would make recovery skip a whole cycle.
            match state.last_value.checked_add(self.increment).filter(|v| (self.min..=self.max).contains(v)) {
                Some(value) => state = SequenceState { last_value: value, is_called: true },
                None => return (state, steps),
            }
        }
        (state, LOG_AHEAD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(min: i64, max: i64, increment: i64, cycle: bool) -> Sequence {
        Sequence::new(
            SequenceId(1),
            SequenceDefinition { increment, min, max, cycle },
            SequenceState { last_value: if increment > 0 { min } else { max }, is_called: false },
            Persistence::Logged,
            true,
        )
    }

    #[test]
    fn values_follow_the_definition_and_the_log_is_always_ahead() {
        let s = sequence(1, 100, 1, false);
        let mut logged = None;
        for expected in 1..=100 {
            let log = |state| {
                logged = Some(state);
                Lsn(expected as u64)
            };
            let (value, needed) = s.next(log).expect("in bounds");
            assert_eq!(value, expected);
            assert!(needed > Lsn(0), "whoever had it logged, the value waits for it");
            assert!(logged.is_some_and(|l: SequenceState| l.last_value >= value));
        }
        assert!(matches!(s.next(|_| Lsn(1)), Err(EngineError::SequenceExhausted { ascending: true, limit: 100 })));

        let s = sequence(-3, -1, -2, true);
        let values: Vec<i64> = (0..5).map(|_| s.next(|_| Lsn(1)).expect("cycles").0).collect();
        assert_eq!(values, [-1, -3, -1, -3, -1]);
        assert!(matches!(s.set(0, true, |_| Lsn(1)), Err(EngineError::SequenceBounds { .. })));
        s.set(-3, false, |_| Lsn(1)).expect("in bounds");
        assert_eq!(s.next(|_| Lsn(1)).expect("cycles").0, -3);
    }
}
