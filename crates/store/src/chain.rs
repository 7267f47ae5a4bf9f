//! The committed versions of one key, newest first.

use melba_types::Csn;

use crate::RowBytes;

/// The content of a version: a row's bytes, an index entry's presence, or a deletion.
pub trait Payload: Clone + Send + Sync {
    /// False: a tombstone.
    fn is_live(&self) -> bool;
    /// Bytes beyond the value itself.
    fn heap_bytes(&self) -> usize;
}

impl Payload for Option<RowBytes> {
    fn is_live(&self) -> bool {
        self.is_some()
    }

    fn heap_bytes(&self) -> usize {
        // An `Arc<[u8]>` has two counters before its bytes.
        self.as_ref().map_or(0, |row| row.len() + 16)
    }
}

impl Payload for bool {
    fn is_live(&self) -> bool {
        *self
    }

    fn heap_bytes(&self) -> usize {
        0
    }
}

/// A version and the ones it replaced.
pub struct Chain<V> {
    pub csn: Csn,
    pub value: V,
    pub older: Option<Box<Chain<V>>>,
}

impl<V: Payload> Chain<V> {
    pub fn new(csn: Csn, value: V) -> Chain<V> {
        Chain { csn, value, older: None }
    }

    /// The version that a snapshot at `csn` sees.
    #[inline]
    pub fn visible(&self, csn: Csn) -> Option<&Chain<V>> {
        let mut version = self;
        while version.csn > csn {
            steps::note();
            version = version.older.as_deref()?;
        }
        Some(version)
    }

    /// Puts a newer version in front.
    ///
    /// A version of the same CSN is replaced: recovery may replay a commit whose changes are already in the chain.
    pub fn push(&mut self, csn: Csn, value: V) {
        if self.csn == csn {
            self.value = value;
            return;
        }
        let older = Chain { csn: self.csn, value: std::mem::replace(&mut self.value, value), older: self.older.take() };
        self.csn = csn;
        self.older = Some(Box::new(older));
    }

    /// Drops the versions that no snapshot at `oldest` or later can see; returns the bytes freed.
    pub fn prune(&mut self, oldest: Csn) -> usize {
        let mut version = self;
        while version.csn > oldest {
            steps::note();
            match version.older.as_deref_mut() {
                Some(older) => version = older,
                None => return 0,
            }
        }
        let mut bytes = 0;
        let mut dead = version.older.take();
        while let Some(mut v) = dead {
            bytes += size_of::<Chain<V>>() + v.value.heap_bytes();
            dead = v.older.take();
        }
        bytes
    }

    /// Keeps the newest version, for each snapshot (ascending) the one it sees, and all newer than all of them: the last snapshot
    /// is the visible CSN, and any of those will be the next. Returns the bytes freed.
    pub fn prune_between(&mut self, snapshots: &[Csn]) -> usize {
        let mut bytes = 0;
        let mut version = self;
        while let Some(newest) = snapshots.last()
            && version.csn > *newest
            && version.older.as_ref().is_some_and(|older| older.csn > *newest)
        {
            steps::note();
            version = version.older.as_deref_mut().expect("just seen");
        }
        loop {
            steps::note();
            // The next version to keep is the one that the newest snapshot below this version sees.
            let below = snapshots.partition_point(|s| *s < version.csn);
            let Some(target) = below.checked_sub(1).map(|i| snapshots[i]) else {
                return bytes + version.prune(version.csn);
            };
            let mut next = version.older.take();
            while let Some(v) = &mut next
                && v.csn > target
            {
                bytes += size_of::<Chain<V>>() + v.value.heap_bytes();
                next = v.older.take();
            }
            version.older = next;
            match version.older.as_deref_mut() {
                Some(older) => version = older,
                None => return bytes,
            }
        }
    }

    /// Versions in the chain, counted up to `limit`.
    pub fn len_up_to(&self, limit: usize) -> usize {
        std::iter::successors(Some(self), |v| v.older.as_deref()).take(limit).inspect(|_| steps::note()).count()
    }
}

/// Versions that walks along chains came by, counted in tests: the work for a version must not grow with the number of versions.
pub mod steps {
    #[cfg(any(test, feature = "testing"))]
    thread_local! {
        static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }

    #[inline]
    pub(super) fn note() {
        #[cfg(any(test, feature = "testing"))]
        STEPS.with(|steps| steps.set(steps.get() + 1));
    }

    /// Those of this thread so far.
    #[cfg(any(test, feature = "testing"))]
    pub fn taken() -> u64 {
        STEPS.with(|steps| steps.get())
    }
}

impl<V> Drop for Chain<V> {
    // Dropping boxes recursively would overflow the stack on a row that was updated a million times under an old snapshot.
    fn drop(&mut self) {
        let mut next = self.older.take();
        while let Some(mut v) = next {
            next = v.older.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(csns: &[u64]) -> Chain<bool> {
        let mut chain = Chain::new(Csn(csns[0]), true);
        for c in &csns[1..] {
            chain.push(Csn(*c), true);
        }
        chain
    }

    fn csns(chain: &Chain<bool>) -> Vec<u64> {
        std::iter::successors(Some(chain), |v| v.older.as_deref()).map(|v| v.csn.0).collect()
    }

    #[test]
    fn pruning_keeps_versions_that_snapshots_see() {
        let mut c = chain(&[1, 3, 5, 7, 9]);
        assert_eq!(c.visible(Csn(6)).map(|v| v.csn), Some(Csn(5)));
        assert!(c.visible(Csn(0)).is_none());
        assert!(c.prune(Csn(4)) > 0);
        assert_eq!(csns(&c), [9, 7, 5, 3]);
        assert_eq!(c.prune(Csn(2)), 0);

        let mut c = chain(&[1, 3, 5, 7, 9]);
        c.prune_between(&[Csn(4), Csn(8)]);
        assert_eq!(csns(&c), [9, 7, 3]);
        c.push(Csn(10), true);
        c.push(Csn(11), true);
        c.prune_between(&[Csn(4), Csn(9)]);
        assert_eq!(csns(&c), [11, 10, 9, 3], "versions that will be visible stay");
        let mut c = chain(&[3, 5]);
        c.prune_between(&[Csn(1), Csn(7)]);
        assert_eq!(csns(&c), [5], "versions nobody sees go, also when a snapshot is older than all");
    }

    #[test]
    fn a_long_chain_is_dropped_without_recursion() {
        let mut c = Chain::new(Csn(0), true);
        for i in 1..300_000 {
            c.push(Csn(i), true);
        }
        drop(c);
    }
}
