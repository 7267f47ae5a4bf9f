//! Commits of all groups on a slow disk: one thread writes the log for them, one write after the other.
//!
//! The thread that has a seat whose commit waits for the log puts the seat here, and continues with others. When a write begins,
//! all seats that are here take part in it, whichever group they belong to; when it has ended, each group gets its seats back and
//! ends their commits (`Group::give_back`), unless the writer has nothing else to do, and does that. A thread is woken only for
//! work it can do now: the writer by commits, an owner by commits that were written.
//!
//! If clients send the next commit directly after each answer, two crowds would form: one whose commits are written, and one that
//! just misses the write and waits for the whole of the next. So the writer waits for the clients it has answered last, if they
//! usually come back soon (`Company`). Where they take longer than a write, two crowds are better: one sends while the other's
//! commits are written; then the writer waits for half of them.

use std::time::Duration;

use super::sync::atomic::{AtomicU64, Ordering};
use super::sync::{Condvar, Mutex};
use super::world::{PlantedBug, World};

/// See the module. `S`: a seat.
pub(super) struct Commits<S> {
    state: Mutex<CommitState<S>>,
    wake: Condvar,
    /// How long writing the log takes, in microseconds: a moving average.
    log_micros: AtomicU64,
}

struct CommitState<S> {
    waiting: Vec<S>,
    /// The writer sleeps until this many wait; 0: it does not sleep.
    wake_at: usize,
    company: Company,
    is_stopped: bool,
}

/// Handing a commit to the writer and taking it back costs about as much as waiting this long for the log.
const LOG_MICROS_MAX: u64 = 200;

impl<S> Commits<S> {
    pub fn new() -> Commits<S> {
        let state = CommitState { waiting: Vec::new(), wake_at: 0, company: Company::default(), is_stopped: false };
        Commits { state: Mutex::new(state), wake: Condvar::new(), log_micros: AtomicU64::new(0) }
    }

    /// Whether commits are handed to the writer, rather than written by the thread that has them.
    pub fn is_log_slow(&self) -> bool {
        self.log_micros.load(Ordering::Relaxed) > LOG_MICROS_MAX
    }

    /// The log was written within this time.
    pub fn note_write(&self, took: Duration) {
        let average = self.log_micros.load(Ordering::Relaxed);
        self.log_micros.store((average * 7 + took.as_micros() as u64) / 8, Ordering::Relaxed);
    }

    /// Leaves seats whose commits have begun to the writer.
    pub fn put<W: World>(&self, world: &W, seats: Vec<S>) {
        let mut state = self.state.lock();
        state.company.note_arrivals(world.now(), seats.len());
        state.waiting.extend(seats);
        if state.wake_at != 0 && state.waiting.len() >= state.wake_at && !world.is_planted(PlantedBug::NoCommitWake) {
            state.wake_at = 0;
            self.wake.notify_one();
        }
    }

    /// The seats for the next write: waits until there are some, and for their company. `None`: everything has stopped.
    pub fn take<W: World>(&self, world: &W) -> Option<Vec<S>> {
        let mut state = self.state.lock();
        loop {
            if state.is_stopped {
                return None;
            }
            if state.waiting.is_empty() {
                state.wake_at = 1;
                state = self.wake.wait(state);
                continue;
            }
            let (now, write) = (world.now(), Duration::from_micros(self.log_micros.load(Ordering::Relaxed)));
            match state.company.missing(write) {
                Some((missing, until)) if until > now => {
                    state.wake_at = state.waiting.len() + missing;
                    let late;
                    (state, late) = self.wake.wait_briefly(&self.state, state, until - now);
                    state.wake_at = 0;
                    if late && !state.is_stopped {
                        return Some(std::mem::take(&mut state.waiting));
                    }
                }
                _ => return Some(std::mem::take(&mut state.waiting)),
            }
        }
    }

    /// So many commits were written; whether others wait.
    pub fn note_written<W: World>(&self, world: &W, count: usize) -> bool {
        let mut state = self.state.lock();
        let waiting = state.waiting.len();
        state.company.note_answers(world.now(), count, waiting);
        waiting > 0
    }

    pub fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.wake.notify_one();
    }
}

/// When those come back whose commits were written last.
#[derive(Default)]
struct Company {
    answered: usize,
    answered_at: Duration,
    /// Those that had come before that, and were not written.
    left: usize,
    /// Commits of all clients that came since then.
    arrived: usize,
    /// The time from the answers until the same number of commits had come: a moving average.
    return_time: Option<Duration>,
}

/// At a shorter write the writer does not wait for company: the wait would cost as much as it gains.
const WRITE_MIN: Duration = Duration::from_micros(500);

impl Company {
    fn note_arrivals(&mut self, now: Duration, count: usize) {
        let was_missing = self.arrived < self.answered;
        self.arrived += count;
        if was_missing && self.arrived >= self.answered {
            self.note_return(now);
        }
    }

    fn note_answers(&mut self, now: Duration, answered: usize, left: usize) {
        if self.arrived < self.answered {
            // It is longer than this, and too long.
            self.note_return(now);
        }
        *self = Company { answered, answered_at: now, left, arrived: 0, return_time: self.return_time };
    }

    fn note_return(&mut self, now: Duration) {
        let time = now.saturating_sub(self.answered_at);
        self.return_time = Some(self.return_time.map_or(time, |average| (average * 3 + time) / 4));
    }

    /// How many the writer should wait for, and until when; `write` is the time of a write of the log.
    ///
    /// In one crowd a client has a commit in the time of a write and of the return of all; in two, in that of two writes. The
    /// return of all is estimated in proportion to their number, because they share the processors. A client that does not return
    /// within two writes is idle.
    fn missing(&self, write: Duration) -> Option<(usize, Duration)> {
        let (answered, all) = (self.answered.max(1) as u32, self.answered + self.left);
        let usual = self.return_time.filter(|time| write >= WRITE_MIN && *time < write * 2)?;
        let is_one_crowd = usual * all as u32 / answered < write;
        let wanted = if is_one_crowd { self.answered } else { all.div_ceil(2).saturating_sub(self.left) };
        let until = self.answered_at + (usual * 2 * wanted as u32 / answered).min(write);
        let missing = wanted.saturating_sub(self.arrived);
        (missing > 0).then_some((missing, until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn those_who_come_back_soon_are_waited_for() {
        let mut company = Company::default();
        assert_eq!(company.missing(ms(20)), None, "nobody was answered yet");
        company.note_answers(ms(100), 3, 0);
        assert_eq!(company.missing(ms(20)), None, "nobody knows when they come");
        company.note_arrivals(ms(101), 2);
        company.note_arrivals(ms(104), 1);
        assert_eq!(company.missing(ms(20)), None, "they are here");
        company.note_answers(ms(200), 3, 0);
        assert_eq!(company.missing(ms(20)), Some((3, ms(208))));
        company.note_arrivals(ms(201), 1);
        assert_eq!(company.missing(ms(20)), Some((2, ms(208))));
        assert_eq!(company.missing(ms(6)), Some((2, ms(206))), "not longer than a write");
    }

    #[test]
    fn half_are_waited_for_when_all_take_longer_than_a_write() {
        let mut company = Company { return_time: Some(ms(4)), ..Company::default() };
        company.note_answers(ms(100), 8, 0);
        assert_eq!(company.missing(ms(3)), Some((4, ms(103))), "two crowds are better");
        company.note_arrivals(ms(101), 4);
        assert_eq!(company.missing(ms(3)), None);
        company.note_arrivals(ms(104), 4);
        company.note_answers(ms(104), 4, 4);
        assert_eq!(company.missing(ms(3)), None, "the other crowd is here");
        assert_eq!(company.missing(ms(7)), None, "eight of them would take eight milliseconds");
        assert_eq!(company.missing(ms(9)), Some((4, ms(112))), "which is worth waiting for here");
        assert_eq!(company.missing(ms(1)), None, "they think");
        company.return_time = Some(Duration::from_micros(300));
        assert_eq!(company.missing(Duration::from_micros(400)), None, "not for so short a write");
    }

    #[test]
    fn those_who_do_not_come_back_are_not_waited_for_again() {
        let mut company = Company::default();
        for at in [0, 100, 200] {
            company.note_answers(ms(at), 3, 0);
            company.note_arrivals(ms(at + 1), 2);
        }
        assert_eq!(company.missing(ms(20)), None);
        for at in 3..20 {
            company.note_answers(ms(at * 100), 2, 0);
            company.note_arrivals(ms(at * 100 + 1), 2);
        }
        company.note_answers(ms(5000), 2, 0);
        assert_eq!(company.missing(ms(20)).map(|(missing, _)| missing), Some(2), "until they do");
    }
}
