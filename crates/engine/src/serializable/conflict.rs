//! Finds conflicts, and decides which transaction fails.

use melba_store::Result;

use super::{Entry, Id, Read, Safety, Serializable, SerializableState, Write, check_doomed, failure};

impl Serializable {
    /// Announces reads of `id` and finds the writers of the same data.
    pub fn read<'a>(&self, id: Id, reads: impl Iterator<Item = Read<'a>>) -> Result<Safety> {
        let mut state = self.state.lock();
        let me = state.get(id);
        if me.safety == Safety::Safe {
            return Ok(Safety::Safe);
        }
        check_doomed(me, "during conflict out checking")?;
        for read in reads {
            let tree = read.tree();
            let first = !state.get(id).reads.has_tree(tree);
            let Some(read) = state.get_mut(id).reads.add(read) else { continue };
            if first {
                state.trees.entry(tree).or_default().readers.push(id);
            }
            for writer in state.users(tree, |u| &u.writers).into_iter().chain(state.anywhere(|e| e.writes.anything)) {
                if writer != id && state.get(writer).writes.meets(read) {
                    state.conflict_out(id, writer)?;
                }
            }
            state.summarised_writer(id, tree)?;
        }
        Ok(Safety::Unknown)
    }

    /// Announces a write of `id` and finds the readers of the same data.
    pub fn write(&self, id: Id, write: Write<'_>) -> Result<()> {
        let mut state = self.state.lock();
        check_doomed(state.get(id), "during conflict in checking")?;
        let tree = write.tree();
        let me = state.get_mut(id);
        me.wrote = true;
        let first = !me.writes.has_tree(tree);
        let Some(write) = me.writes.add(write) else { return Ok(()) };
        if first {
            state.trees.entry(tree).or_default().writers.push(id);
        }
        state.meet_readers(id, write)
    }

    /// For a write that fails because a unique key exists: fails if the write would have caused a serialization failure.
    pub fn attempt(&self, id: Id, write: Write<'_>) -> Result<()> {
        let mut state = self.state.lock();
        check_doomed(state.get(id), "during conflict in checking")?;
        state.meet_readers(id, write)
    }
}

impl SerializableState {
    /// Those of whom a dropped tree has left nothing exact.
    fn anywhere(&self, test: impl Fn(&Entry) -> bool) -> Vec<Id> {
        self.finished.iter().copied().filter(|id| test(self.get(*id))).collect()
    }

    fn meet_readers(&mut self, me: Id, write: Write<'_>) -> Result<()> {
        let tree = write.tree();
        for reader in self.users(tree, |u| &u.readers).into_iter().chain(self.anywhere(|e| e.reads.anything)) {
            let entry = self.get(reader);
            let concurrent = !entry.is_committed() || entry.committed > self.get(me).begun;
            if reader != me && concurrent && !entry.doomed && entry.reads.meets(write, entry.snapshot) {
                self.add_conflict(me, reader, me)?;
            }
        }
        self.summarised_reader(me, tree)
    }

    /// `me` has read a version that `writer` replaced.
    fn conflict_out(&mut self, me: Id, writer: Id) -> Result<()> {
        let (own, other) = (self.get(me), self.get(writer));
        // A write in the snapshot is no conflict; of a commit that is just being published this is not known yet.
        if other.doomed || other.csn <= own.snapshot {
            return Ok(());
        }
        // To a reader that writes nothing, a committed writer is no danger unless it is itself a pivot whose conflict out
        // committed before the reader began.
        if own.read_only && other.is_committed() && other.earliest_out >= own.horizon() {
            return Ok(());
        }
        self.add_conflict(me, me, writer)
    }

    /// Notes the conflict reader -> writer, of which `me` is one, unless it completes a dangerous structure that `me` must
    /// fail for.
    fn add_conflict(&mut self, me: Id, reader: Id, writer: Id) -> Result<()> {
        if self.get(reader).conflicts_out.contains(&writer) {
            return Ok(());
        }
        if self.writer_is_pivot(self.get(reader).horizon(), writer) || self.reader_is_pivot(reader, writer) {
            self.fail_one(me, writer)?;
        }
        self.get_mut(reader).conflicts_out.push(writer);
        self.get_mut(writer).conflicts_in.push(reader);
        Ok(())
    }

    /// The preferred victim is the pivot, the writer; when it can no longer fail, the transaction that just read must. `me` is
    /// one of the two.
    pub(super) fn fail_one(&mut self, me: Id, writer: Id) -> Result<()> {
        if me == writer {
            return Err(failure("Canceled on identification as a pivot, during write."));
        }
        let other = self.get_mut(writer);
        if other.is_prepared() {
            return Err(failure(format!("Canceled on conflict out to pivot {}, during read.", other.txn)));
        }
        other.doomed = true;
        Ok(())
    }

    /// T1 -> writer -> T3, with T3 the first to commit. `horizon` is T1's.
    pub(super) fn writer_is_pivot(&self, horizon: u64, writer: Id) -> bool {
        let w = self.get(writer);
        let before = horizon.min(w.committed);
        w.earliest_out < before || w.conflicts_out.iter().any(|t3| self.get(*t3).prepared < before)
    }

    /// T1 -> reader -> writer, with the writer the first to commit.
    fn reader_is_pivot(&self, reader: Id, writer: Id) -> bool {
        let (r, w) = (self.get(reader), self.get(writer));
        w.is_prepared() && !r.read_only && self.has_conflict_in(r, w.prepared)
    }

    /// Whether some T1 -> `entry` is such that a T3 prepared at `prepared` may have committed before T1.
    pub(super) fn has_conflict_in(&self, entry: &Entry, prepared: u64) -> bool {
        entry.latest_in > prepared
            || entry.conflicts_in.iter().map(|t1| self.get(*t1)).any(|t1| !t1.doomed && prepared < t1.horizon())
    }
}
