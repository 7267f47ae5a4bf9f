//! Chooses the versions of a key that a flush or merge writes.

use melba_types::Csn;

/// A flush's or merge's knowledge of the snapshots in use.
pub struct Keep {
    /// Ascending; never empty, the newest visible CSN is among them.
    snapshots: Vec<Csn>,
}

impl Keep {
    pub fn new(snapshots: Vec<Csn>) -> Keep {
        Keep { snapshots }
    }

    /// How many of a key's versions must be written; `dead` says whether each is a tombstone, newest first. Those to write are
    /// moved to the front of `versions`, in order.
    ///
    /// `bottom`: no older level can have the key. Then a tombstone with nothing behind it is nothing.
    pub fn select<T: Copy>(&self, versions: &mut Vec<T>, csn: impl Fn(&T) -> Csn, dead: impl Fn(&T) -> bool, bottom: bool) {
        let mut newer: Option<Csn> = None;
        versions.retain(|version| {
            let c = csn(version);
            let wanted = match newer {
                None => true,
                // Two levels may have the same version after a recovery.
                Some(newer) if newer == c => false,
                // Some snapshot sees this version and not the newer one.
                Some(newer) => self.snapshots.partition_point(|s| *s < newer) > self.snapshots.partition_point(|s| *s < c),
            };
            newer = Some(c);
            wanted
        });
        while bottom && versions.last().is_some_and(&dead) {
            versions.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(snapshots: &[u64], versions: &[(u64, bool)], bottom: bool) -> Vec<u64> {
        let keep = Keep::new(snapshots.iter().map(|s| Csn(*s)).collect());
        let mut versions = versions.to_vec();
        keep.select(&mut versions, |v| Csn(v.0), |v| v.1, bottom);
        versions.iter().map(|v| v.0).collect()
    }

    #[test]
    fn every_snapshot_keeps_the_version_it_sees() {
        let versions = [(9, false), (7, false), (7, false), (5, false), (3, false)];
        assert_eq!(select(&[20], &versions, false), [9]);
        assert_eq!(select(&[8, 20], &versions, false), [9, 7]);
        assert_eq!(select(&[4, 20], &versions, false), [9, 3]);
        assert_eq!(select(&[1, 20], &versions, false), [9]);
        assert_eq!(select(&[5, 6, 20], &versions, false), [9, 5]);
        assert_eq!(select(&[9], &versions, true), [9]);
    }

    #[test]
    fn tombstones_at_the_bottom_go_once_nothing_is_behind_them() {
        assert_eq!(select(&[20], &[(9, true), (7, false)], true), [] as [u64; 0]);
        assert_eq!(select(&[20], &[(9, true), (7, false)], false), [9]);
        assert_eq!(select(&[8, 20], &[(9, true), (7, false)], true), [9, 7]);
    }
}
