//! Reports the engine's background work to the server log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use melba_engine::{BackgroundEvent, Engine};
use melba_server::Work;
use melba_serverlog::{Level, ServerLog};
use melba_statement::context::Instance;

/// Has background work counted and remembered, flushes and merges logged if log_checkpoints wants it, and failures always.
pub fn watch(engine: &Engine, instance: &Arc<Instance>, log: &Arc<ServerLog>, work: &Arc<Work>) {
    let (instance, log, work) = (Arc::downgrade(instance), Arc::clone(log), Arc::clone(work));
    engine.set_event_watch(Box::new(move |event| {
        let instance = instance.upgrade();
        if let Some(instance) = &instance {
            instance.background_work.note(event, instance.cluster.clock.now_micros());
        }
        let is_wanted = || instance.as_ref().is_some_and(|i| i.settings().get("log_checkpoints").as_bool());
        let seconds = Duration::as_secs_f64;
        count(&work, event);
        match event {
            BackgroundEvent::Flushed { trees, segments, bytes, took } if is_wanted() => {
                let message = format!(
                    "flush complete: wrote {segments} segments of {trees} trees, {} kB; total={:.3} s",
                    bytes.div_ceil(1024),
                    seconds(took)
                );
                log.background("flush", Level::Log, &message);
            }
            BackgroundEvent::Merged { tree, inputs, outputs, bytes_before, bytes_after, took } if is_wanted() => {
                let message = format!(
                    "merge complete: tree {tree}, {inputs} segments of {} kB became {outputs} of {} kB; total={:.3} s",
                    bytes_before.div_ceil(1024),
                    bytes_after.div_ceil(1024),
                    seconds(took)
                );
                log.background("merge", Level::Log, &message);
            }
            BackgroundEvent::Flushed { .. } | BackgroundEvent::Merged { .. } => {}
            BackgroundEvent::Failed { step, error } => {
                log.background("background", Level::Error, &format!("{step} failed and is tried again: {error}"));
            }
            BackgroundEvent::Poisoned { cause } => {
                log.background("background", Level::Panic, &format!("no more work is accepted: {cause}"));
            }
        }
    }));
}

/// For metrics.
fn count(work: &Work, event: &BackgroundEvent) {
    let add = |counter: &AtomicU64, n: u64| {
        counter.fetch_add(n, Ordering::Relaxed);
    };
    match event {
        BackgroundEvent::Flushed { bytes, .. } => {
            add(&work.flushes, 1);
            add(&work.flushed_bytes, *bytes);
        }
        BackgroundEvent::Merged { bytes_before, bytes_after, .. } => {
            add(&work.merges, 1);
            add(&work.merged_bytes_read, *bytes_before);
            add(&work.merged_bytes_written, *bytes_after);
        }
        BackgroundEvent::Failed { .. } => add(&work.failures, 1),
        BackgroundEvent::Poisoned { .. } => {}
    }
}
