//! A thread that encodes row groups and writes them, while the rows of the next ones are collected.
//!
//! The owner of a file collects rows and hands over each full group. When the thread has enough to do, the owner encodes the group
//! instead of waiting, so both are busy however the work is divided between collecting and encoding. Groups enter their file in order.
//!
//! Invariants:
//! 1. A file's groups are numbered; group `n` is written after group `n - 1`, by one thread at a time.
//! 2. At most `JOBS_MAX` groups wait for the thread, and `ENCODED_MAX` encoded ones of a file for their turn.
//! 3. No bytes are written to an abandoned file.
//! 4. A finished file holds no buffers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use melba_threads::{Running, Scheduler};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::chunk::ChunkCarryover;
use super::directory::Group;
use super::encoder::RawGroup;
use super::writer::SegmentEnd;
use super::{SegmentMeta, TableOptions};
use crate::error::Result;
use crate::frame::{FrameBuffer, FrameWriter};

/// Groups that wait for the thread.
const JOBS_MAX: usize = 1;
/// Encoded groups of one file that wait for those before them.
const ENCODED_MAX: usize = 4;

/// Encodes the row groups of several segments, written one after the other.
pub struct EncoderPool {
    shared: Arc<PoolShared>,
    scheduler: Arc<dyn Scheduler>,
    thread: Mutex<Option<Running<()>>>,
}

struct PoolShared {
    options: TableOptions,
    state: Mutex<PoolState>,
    changed: Condvar,
}

#[derive(Default)]
struct PoolState {
    jobs: VecDeque<Job>,
    /// Emptied groups, for their buffers.
    spare: Vec<RawGroup>,
    /// Choices made for chunks: one for each thread that encodes.
    carryover: Vec<ChunkCarryover>,
    closing: bool,
    /// The thread has panicked: its groups are lost.
    panicked: bool,
}

struct Job {
    file: Arc<PooledFile>,
    work: PoolWork,
}

enum PoolWork {
    /// Encode a group, given its number.
    Group(u64, RawGroup),
    /// See whether the file can be finished.
    End,
}

/// A segment's file, of which groups come from several threads.
pub(super) struct PooledFile(Mutex<FileState>);

struct FileState {
    /// Absent while a thread writes, and once the file is finished.
    out: Option<(FrameWriter, Vec<Group>)>,
    encoded: BTreeMap<u64, (FrameBuffer, Group)>,
    /// Blocks that were written, for their buffers.
    spare: Vec<FrameBuffer>,
    written: u64,
    /// The footer comes after this number of groups.
    end: Option<(u64, SegmentEnd)>,
    result: Option<Result<SegmentMeta>>,
    given_up: bool,
}

impl PooledFile {
    pub fn new(frames: FrameWriter) -> Arc<PooledFile> {
        Arc::new(PooledFile(Mutex::new(FileState {
            out: Some((frames, Vec::new())),
            encoded: BTreeMap::new(),
            spare: Vec::new(),
            written: 0,
            end: None,
            result: None,
            given_up: false,
        })))
    }

    /// Buffers that wait to be used or written.
    #[cfg(test)]
    pub fn buffers(&self) -> usize {
        let state = self.0.lock();
        state.spare.len() + state.encoded.len()
    }

    /// Nothing more is written.
    pub fn give_up(&self) {
        self.0.lock().given_up = true;
    }

    /// Writes the groups whose turn it is, unless another thread is doing that.
    fn write(&self) {
        let mut state = self.0.lock();
        while let Some((mut frames, mut groups)) = state.out.take() {
            if state.given_up {
                return;
            }
            let number = state.written;
            if let Some((blocks, group)) = state.encoded.remove(&number) {
                let written = MutexGuard::unlocked(&mut state, || {
                    let group = group.moved(frames.next_block(), frames.offset());
                    frames.append(&blocks).map(|()| groups.push(group))
                });
                match written {
                    Ok(()) => {
                        state.written += 1;
                        state.spare.push(blocks);
                        state.out = Some((frames, groups));
                    }
                    Err(error) => state.result = Some(Err(error)),
                }
            } else if state.end.as_ref().is_some_and(|(groups, _)| *groups == number) {
                let Some((_, end)) = state.end.take() else { return };
                // The file may stay long after its end: a statement waits for all its segments together.
                state.spare = Vec::new();
                let finished = MutexGuard::unlocked(&mut state, || end.write(frames, groups, Vec::new()));
                state.result = Some(finished);
            } else {
                state.out = Some((frames, groups));
                return;
            }
        }
    }
}

impl EncoderPool {
    /// `scheduler` is notified of the waits of the pool's users.
    pub fn new(options: TableOptions, scheduler: Arc<dyn Scheduler>) -> Arc<EncoderPool> {
        let shared = Arc::new(PoolShared { options, state: Mutex::default(), changed: Condvar::new() });
        Arc::new(EncoderPool { shared, scheduler, thread: Mutex::new(None) })
    }

    pub(super) fn options(&self) -> &TableOptions {
        &self.shared.options
    }

    /// Starts the thread with the first group. Without one the owner encodes everything.
    fn start(&self) -> bool {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            *thread = self.scheduler.spawn("encoder", move || shared.work()).ok();
        }
        thread.is_some()
    }

    /// Hands over a full group, and returns an empty one, if there is one, for the next.
    ///
    /// # Errors
    /// Of the file's writing, also of groups before.
    pub(super) fn push(&self, file: &Arc<PooledFile>, number: u64, group: RawGroup) -> Result<Option<RawGroup>> {
        let started = self.start();
        let mut state = self.shared.state.lock();
        let job = Job { file: Arc::clone(file), work: PoolWork::Group(number, group) };
        if started && state.jobs.len() < JOBS_MAX {
            state.jobs.push_back(job);
            self.shared.changed.notify_all();
        } else {
            self.shared.run(&mut state, job);
        }
        self.wait_until(&mut state, || {
            let mut file = file.0.lock();
            match file.result.take_if(|result| result.is_err()) {
                Some(Err(error)) => Some(Err(error)),
                _ => (file.encoded.len() < ENCODED_MAX).then_some(Ok(())),
            }
        })?;
        Ok(state.spare.pop())
    }

    /// Says that the file has no more than `groups`; the thread, or a thread that waits, writes its end.
    pub(super) fn end(&self, file: &Arc<PooledFile>, groups: u64, end: SegmentEnd) {
        let mut state = self.shared.state.lock();
        file.0.lock().end = Some((groups, end));
        state.jobs.push_back(Job { file: Arc::clone(file), work: PoolWork::End });
        self.shared.changed.notify_all();
    }

    /// Waits until the file is finished.
    pub(super) fn finish(&self, file: &PooledFile) -> Result<SegmentMeta> {
        let mut state = self.shared.state.lock();
        self.wait_until(&mut state, || file.0.lock().result.take())
    }

    /// Encodes waiting groups, or waits, until `done` has an answer.
    fn wait_until<T>(&self, state: &mut MutexGuard<'_, PoolState>, mut done: impl FnMut() -> Option<T>) -> T {
        loop {
            if let Some(answer) = done() {
                return answer;
            }
            assert!(!state.panicked, "the encoding thread has panicked");
            if let Some(job) = state.jobs.pop_front() {
                self.shared.run(state, job);
            } else if !MutexGuard::unlocked(state, || self.scheduler.before_wait()) {
                if let Some(answer) = done() {
                    return answer;
                }
                self.shared.changed.wait(state);
            }
        }
    }
}

impl Drop for EncoderPool {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.closing = true;
        state.jobs.clear();
        drop(state);
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.lock().take() {
            // Its panic was reported to threads that waited for its work; none are left.
            let _ = thread.join(&*self.scheduler);
        }
    }
}

impl PoolShared {
    /// The thread's life.
    fn work(&self) {
        let panicked = PanicNotice(self);
        let mut state = self.state.lock();
        while !state.closing {
            match state.jobs.pop_front() {
                Some(job) => self.run(&mut state, job),
                None => self.changed.wait(&mut state),
            }
        }
        std::mem::forget(panicked);
    }

    /// Does a job without holding the lock.
    fn run(&self, state: &mut MutexGuard<'_, PoolState>, job: Job) {
        let mut carryover = state.carryover.pop().unwrap_or_default();
        let spare = MutexGuard::unlocked(state, || match job.work {
            PoolWork::Group(number, mut group) => {
                let frames = job.file.0.lock().spare.pop().unwrap_or_default();
                let encoded = group.encode(&mut carryover, frames, &self.options);
                job.file.0.lock().encoded.insert(number, encoded);
                job.file.write();
                Some(group)
            }
            PoolWork::End => {
                job.file.write();
                None
            }
        });
        state.carryover.push(carryover);
        if state.spare.len() < JOBS_MAX {
            state.spare.extend(spare);
        }
        self.changed.notify_all();
    }
}

/// Tells waiting threads, when it is dropped, that no result will come.
struct PanicNotice<'a>(&'a PoolShared);

impl Drop for PanicNotice<'_> {
    fn drop(&mut self) {
        self.0.state.lock().panicked = true;
        self.0.changed.notify_all();
    }
}
