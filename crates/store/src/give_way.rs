//! Making values dense takes minutes of processor time, and no client waits for it, so it yields to all other work.
//!
//! The merge's thread measures that itself: when it had less processor time than has passed, others had the processor. Then it
//! pauses for a multiple of the time it has worked. Machines with an idle processor lose nothing, and it makes no difference
//! whether statements, their clients or other programs are busy.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use melba_segment::Pace;
use melba_threads::Scheduler;
use melba_vfs::Clock;

/// Work between two looks, at least.
const WORK_MIN: Duration = Duration::from_millis(4);
/// Percentage of the time that occasional other work may keep a thread from a processor.
const KEPT_PERCENT: u32 = 8;
/// The ratio of a pause to the work before it: the thread then gets a quarter of the time.
const PAUSE_TIMES: u32 = 3;
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// A pause sleeps this long at a time, so that it notices the engine's stop.
const NAP: Duration = Duration::from_millis(20);

thread_local! {
    static GIVING_WAY: RefCell<Option<GivingWay>> = const { RefCell::new(None) };
}

/// Whether a session waits for the thread's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hurry {
    No,
    /// Its result is waited for: it does not pause.
    Awaited,
    /// Other work of the thread waits for it: it takes the fast way.
    Pressed,
    /// Its end is waited for: it takes the fast way, and does not pause.
    Late,
}

/// The state of a thread that yields.
struct GivingWay {
    clock: Arc<dyn Clock>,
    scheduler: Arc<dyn Scheduler>,
    hurry: Box<dyn Fn() -> Hurry>,
    /// The result of the last check.
    pace: Pace,
    /// The time at the last check, and the thread's processor time by then.
    looked: (Duration, Duration),
}

impl GivingWay {
    /// `None` where the clock cannot measure processor time.
    fn look(clock: &dyn Clock) -> Option<(Duration, Duration)> {
        clock.thread_cpu().map(|cpu| (clock.monotonic(), cpu))
    }

    fn give_way(&mut self) {
        let Some(now) = GivingWay::look(&*self.clock) else { return };
        let (passed, worked) = (now.0.saturating_sub(self.looked.0), now.1.saturating_sub(self.looked.1));
        if worked < WORK_MIN {
            return;
        }
        let mut pause = pause(passed, worked);
        while !pause.is_zero() && matches!((self.hurry)(), Hurry::No | Hurry::Pressed) {
            let nap = pause.min(NAP);
            self.scheduler.pause(nap);
            pause -= nap;
        }
        self.looked = GivingWay::look(&*self.clock).unwrap_or(now);
        self.pace = if matches!((self.hurry)(), Hurry::Pressed | Hurry::Late) { Pace::Fast } else { Pace::Thorough };
    }
}

/// Runs a thread's work, which yields where `give_way` is called, unless `hurry` says that a session waits for it.
pub fn giving_way(
    clock: Arc<dyn Clock>,
    scheduler: Arc<dyn Scheduler>,
    hurry: impl Fn() -> Hurry + 'static,
    body: impl FnOnce(),
) {
    let looked = GivingWay::look(&*clock);
    let pace = Pace::Thorough;
    GIVING_WAY.set(looked.map(|looked| GivingWay { clock, scheduler, hurry: Box::new(hurry), pace, looked }));
    body();
    GIVING_WAY.set(None);
}

/// Pauses where others want the processors; called between pieces of work. Does nothing in threads that do not yield.
pub fn give_way() -> Pace {
    GIVING_WAY.with_borrow_mut(|giving| match giving {
        Some(giving) => {
            giving.give_way();
            giving.pace
        }
        None => Pace::Thorough,
    })
}

/// How long a thread pauses that has worked for a part of the time that has passed.
fn pause(passed: Duration, worked: Duration) -> Duration {
    let kept = passed.saturating_sub(worked);
    if kept * 100 <= passed * KEPT_PERCENT { Duration::ZERO } else { (worked * PAUSE_TIMES).min(PAUSE_MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_is_kept_from_a_processor_pauses() {
        let ms = Duration::from_millis;
        assert_eq!(pause(ms(10), ms(10)), Duration::ZERO);
        assert_eq!(pause(ms(100), ms(95)), Duration::ZERO, "what runs now and then");
        assert_eq!(pause(ms(15), ms(10)), ms(30));
        assert_eq!(pause(ms(2000), ms(1000)), PAUSE_MAX);
        assert_eq!(pause(ms(10), ms(11)), Duration::ZERO, "clocks that differ");
    }
}
