//! Background work in steps: the engine's threads run them in a loop, and writers run them where there are no threads.

use std::sync::Arc;
use std::time::Duration;

use melba_store::{EngineError, Hurry, Result, Store, giving_way};
use melba_threads::atomic::{AtomicBool, Ordering};
use melba_threads::planted::{Plant, is_planted};
use melba_threads::{Mutex, WaitQueue};
use melba_vfs::counts::{self, IoCounts};
use melba_wal::WrittenBy;

use crate::commit::{Pipeline, WAIT_MIN, merges_lag};
use crate::events::BackgroundEvent;
use crate::flush::Flusher;
use crate::merge::{Eagerness, Merger};
use crate::options::EngineOptions;
use crate::runtime::Runtime;

/// A failed step is tried again after this long.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// A background thread checks for work this often.
const IDLE: Duration = Duration::from_millis(20);
/// A writer that waits for the row store checks it this often.
const LOOK: Duration = Duration::from_millis(10);

/// Kinds of background steps; each thread of `start_background` repeats one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackgroundStep {
    /// Writes and syncs the log records that wait in memory.
    Log,
    /// Prepares the log's next file.
    LogFile,
    /// One step of a flush that is due or in progress.
    Flush,
    /// One slice of a merge that pays, and the removal of unused files.
    Merge,
}

impl BackgroundStep {
    pub const ALL: [BackgroundStep; 4] =
        [BackgroundStep::Log, BackgroundStep::LogFile, BackgroundStep::Flush, BackgroundStep::Merge];
}

/// A thread of background work as others see it.
#[derive(Clone, Copy, Debug)]
pub struct BackgroundWorker {
    pub step: BackgroundStep,
    /// It does not wait for work.
    pub is_working: bool,
    /// What all its steps have read and written, the log's files apart.
    pub io: IoCounts,
}

/// The same while it changes.
#[derive(Default)]
struct Worker {
    is_working: AtomicBool,
    io: Mutex<IoCounts>,
}

/// See the module.
pub(crate) struct Background {
    options: Arc<EngineOptions>,
    runtime: Arc<Runtime>,
    store: Arc<Store>,
    pipeline: Arc<Pipeline>,
    flusher: Arc<Flusher>,
    merger: Arc<Merger>,
    log_file: Mutex<Retry>,
    flush: Mutex<Retry>,
    merge: Mutex<Retry>,
    /// By the step's number.
    workers: [Worker; BackgroundStep::ALL.len()],
    /// track_io_timing.
    measures_times: AtomicBool,
    /// Where threads wait for work, and writers for space in the row store. Notified after a flush.
    flushed: WaitQueue,
}

/// When a step failed last, and how.
#[derive(Default)]
struct Retry {
    failed_at: Option<Duration>,
    failure: Option<EngineError>,
    /// The last failure that was reported.
    told: Option<String>,
}

impl Retry {
    /// The step's answer, unless it fails, or failed lately.
    fn run(&mut self, runtime: &Runtime, name: &'static str, step: impl FnOnce() -> Result<bool>) -> Option<bool> {
        let now = runtime.clock.monotonic();
        if self.failed_at.is_some_and(|at| now < at + RETRY_AFTER) {
            return None;
        }
        let result = step();
        self.failure = result.as_ref().err().cloned();
        self.failed_at = result.is_err().then_some(now);
        let failure = self.failure.as_ref().map(EngineError::to_string);
        if failure != self.told {
            failure.iter().for_each(|error| {
                runtime.events.tell(|| BackgroundEvent::Failed { step: name, error: error.clone() });
            });
            self.told = failure;
        }
        result.ok()
    }
}

impl Background {
    pub fn new(
        options: &Arc<EngineOptions>,
        runtime: &Arc<Runtime>,
        store: &Arc<Store>,
        pipeline: &Arc<Pipeline>,
        flusher: &Arc<Flusher>,
        merger: &Arc<Merger>,
    ) -> Background {
        Background {
            options: Arc::clone(options),
            runtime: Arc::clone(runtime),
            store: Arc::clone(store),
            pipeline: Arc::clone(pipeline),
            flusher: Arc::clone(flusher),
            merger: Arc::clone(merger),
            log_file: Mutex::default(),
            flush: Mutex::default(),
            merge: Mutex::default(),
            workers: Default::default(),
            measures_times: AtomicBool::new(options.measure_times),
            flushed: WaitQueue::default(),
        }
    }

    /// One step of any kind; a flush in progress comes before merges.
    pub fn run_once(&self) -> bool {
        let log = || self.pipeline.log.is_writer_due() && self.run_log_step();
        log() || self.run_log_file_step() || self.run_flush_step() || self.run_merge_step()
    }

    pub fn run_step(&self, step: BackgroundStep) -> bool {
        match step {
            BackgroundStep::Log => self.run_log_step(),
            BackgroundStep::LogFile => self.run_log_file_step(),
            BackgroundStep::Flush => self.run_flush_step(),
            BackgroundStep::Merge => self.run_merge_step(),
        }
    }

    /// The kinds of background work.
    pub fn workers(&self) -> Vec<BackgroundWorker> {
        let worker = |(step, worker): (&BackgroundStep, &Worker)| BackgroundWorker {
            step: *step,
            is_working: worker.is_working.load(Ordering::Relaxed),
            io: *worker.io.lock(),
        };
        BackgroundStep::ALL.iter().zip(&self.workers).map(worker).collect()
    }

    pub fn measure_times(&self, on: bool) {
        self.measures_times.store(on, Ordering::Relaxed);
    }

    /// Runs a step, whose reads and writes are the worker's, also when a session's thread does its work.
    fn counted(&self, step: BackgroundStep, run: impl FnOnce() -> bool) -> bool {
        let worker = &self.workers[step as usize];
        let measured = counts::measures_times();
        counts::measure_times(self.measures_times.load(Ordering::Relaxed));
        worker.is_working.store(true, Ordering::Relaxed);
        let (worked, counted) = counts::apart(|| self.runtime.guarded(run));
        worker.is_working.store(false, Ordering::Relaxed);
        counts::measure_times(measured);
        if counted.all != IoCounts::default() {
            worker.io.lock().add(&counted.all);
        }
        worked
    }

    /// The body of a thread that repeats one kind of step. Making values dense yields to other work for the processors, unless a
    /// statement waits for it, or writers wait for merges that come after it.
    pub fn work_until_stopped(self: &Arc<Self>, step: BackgroundStep) {
        if step != BackgroundStep::Merge {
            return self.repeat_until_stopped(step);
        }
        let background = Arc::clone(self);
        let hurry = move || {
            if background.runtime.is_stopping() || merges_lag(&background.store, background.options.row_store_bytes()) {
                Hurry::Late
            } else if background.merger.is_awaited() {
                Hurry::Awaited
            } else if background.merger.is_pressed() {
                Hurry::Pressed
            } else {
                Hurry::No
            }
        };
        let Runtime { clock, scheduler, .. } = &*self.runtime;
        giving_way(Arc::clone(clock), Arc::clone(scheduler), hurry, || self.repeat_until_stopped(step));
    }

    fn repeat_until_stopped(&self, step: BackgroundStep) {
        while !self.runtime.is_stopping() {
            if step == BackgroundStep::Log {
                self.pipeline.log.await_writer();
                self.run_log_step();
            } else if !self.run_step(step) {
                self.flushed.wait_for(&*self.runtime.scheduler, IDLE);
            }
        }
    }

    /// Flushes the log if anything waits.
    fn run_log_step(&self) -> bool {
        let pipeline = &self.pipeline;
        self.counted(BackgroundStep::Log, || pipeline.log.has_work() && pipeline.flush_log(WrittenBy::Background).is_ok())
    }

    fn run_log_file_step(&self) -> bool {
        self.counted(BackgroundStep::LogFile, || {
            let wal = &self.pipeline.log.wal;
            let step = || Ok(wal.prepare_spare()? || self.pipeline.is_idle() && wal.remove_spares()?);
            let worked = self.log_file.lock().run(&self.runtime, "preparing a log file", step);
            // Last, and only where a step had nothing else to do.
            worked.is_some_and(|worked| worked || self.store.reserve.prepare(self.runtime.clock.monotonic()))
        })
    }

    fn run_flush_step(&self) -> bool {
        let worked = self.counted(BackgroundStep::Flush, || {
            let now = self.runtime.clock.monotonic();
            let step = || self.store.reserve.with(now, || self.flusher.step());
            self.flush.lock().run(&self.runtime, "flush", step).unwrap_or(false)
        });
        if worked {
            self.flushed.notify_all();
        }
        worked
    }

    fn run_merge_step(&self) -> bool {
        self.counted(BackgroundStep::Merge, || {
            let now = self.runtime.clock.monotonic();
            let steps: &[Eagerness] =
                if self.pipeline.is_idle() { &[Eagerness::Idle, Eagerness::Cold] } else { &[Eagerness::Busy] };
            let any = || steps.iter().map(|eagerness| self.merger.step(*eagerness)).find(|done| !matches!(done, Ok(false)));
            let step = || self.store.reserve.with(now, || any().unwrap_or(Ok(false)));
            self.merge.lock().run(&self.runtime, "merge", step).unwrap_or(false) | self.store.remove_trash()
        })
    }

    /// Waits, or works, while the row store is over its limit: a write stall.
    pub fn stall(&self) -> Result<()> {
        let limit = self.options.row_store_bytes() * 2;
        while self.store.row_store_bytes() > limit {
            self.runtime.check_poison()?;
            // The disk is full, say: better an error now than a wait without end.
            if let Some(e) = self.flush.try_lock().and_then(|retry| retry.failure.clone())
                && !is_planted(Plant::WaitForFailed)
            {
                return Err(e);
            }
            if self.runtime.has_threads() {
                self.flushed.wait_for(&*self.runtime.scheduler, LOOK);
            } else if !self.run_once() {
                // Nothing can be flushed now (another commit is in flight, the disk is full): memory is exceeded rather than
                // a deadlock risked.
                return Ok(());
            }
        }
        Ok(())
    }

    /// Lets a writer wait, or do the work itself if there are no threads for it.
    pub fn throttle(&self, wait: Duration) {
        if wait < WAIT_MIN || self.runtime.is_poisoned() {
            return;
        }
        if self.runtime.has_threads() {
            self.runtime.scheduler.sleep(wait);
        } else if !self.run_step(BackgroundStep::Flush) {
            self.run_step(BackgroundStep::Merge);
        }
    }
}
