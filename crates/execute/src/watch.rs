//! Watches over executions (auto_explain): their time from the first row to the end, and what they measured.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use melba_engine::{IoCounts, io_counts};
use melba_fmgr::Session;
use melba_plan::{NodeTiming, Plan};
use melba_types::{Batch, Datum, Result};

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// How many watched executions this thread is within.
pub fn watched_depth() -> u32 {
    DEPTH.get()
}

/// Learns of an execution that has ended without an error.
pub trait ExecutionWatch: Send {
    fn ended(&mut self, ended: &EndedExecution<'_>);
}

/// See `ExecutionWatch`.
pub struct EndedExecution<'a> {
    pub plan: &'a Plan,
    /// By plan node, if the execution was measured.
    pub timings: Vec<NodeTiming>,
    /// Of the calls for rows.
    pub time: Duration,
    pub parameters: &'a Arc<[Datum]>,
}

/// An execution's watch.
pub(crate) struct Watched {
    watch: Box<dyn ExecutionWatch>,
    time: Duration,
    io: IoCounts,
    rows: u64,
    failed: bool,
}

struct Within;

impl Within {
    fn new() -> Within {
        DEPTH.set(DEPTH.get() + 1);
        Within
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

impl Watched {
    pub fn new(watch: Box<dyn ExecutionWatch>) -> Watched {
        Watched { watch, time: Duration::ZERO, io: IoCounts::default(), rows: 0, failed: false }
    }

    /// Runs a call for rows.
    pub fn run(&mut self, session: &dyn Session, call: impl FnOnce() -> Result<Option<Batch>>) -> Result<Option<Batch>> {
        let (_within, io, started) = (Within::new(), io_counts::counted(), session.monotonic());
        let result = call();
        self.time += session.monotonic().saturating_sub(started);
        self.io.add(&io_counts::counted().since(&io));
        match &result {
            Ok(batch) => self.rows += batch.as_ref().map_or(0, |batch| batch.rows as u64),
            Err(_) => self.failed = true,
        }
        result
    }

    /// The execution has ended.
    pub fn end(mut self, plan: &Plan, mut timings: Vec<NodeTiming>, parameters: &Arc<[Datum]>) {
        if self.failed {
            return;
        }
        complete(&mut timings, plan, self.rows, self.time, &self.io);
        self.watch.ended(&EndedExecution { plan, timings, time: self.time, parameters });
    }
}

/// A change is not measured where it is made: adds what the whole execution took, if it was measured.
pub fn complete(timings: &mut Vec<NodeTiming>, plan: &Plan, rows: u64, total: Duration, io: &IoCounts) {
    let root = plan.root.id;
    timings.resize_with(timings.len().max(root + 1), NodeTiming::default);
    if timings[root].loops == 0 {
        timings[root] = NodeTiming { loops: 1, rows, startup: total, total, io: *io, ..NodeTiming::default() };
    }
}
