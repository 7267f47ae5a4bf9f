//! Lock modes and which of them conflict (PostgreSQL 18, "Explicit Locking", tables 13.2 and 13.3).

/// The eight modes of relation, object and advisory locks. Advisory locks use `Share` and `Exclusive`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RelationLockMode {
    AccessShare = 0,
    RowShare = 1,
    RowExclusive = 2,
    ShareUpdateExclusive = 3,
    Share = 4,
    ShareRowExclusive = 5,
    Exclusive = 6,
    AccessExclusive = 7,
}

impl RelationLockMode {
    /// The name as pg_locks and deadlock messages show it.
    pub fn name(self) -> &'static str {
        Mode::from(self).name()
    }
}

/// The four modes of row locks, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RowLockMode {
    ForKeyShare = 8,
    ForShare = 9,
    ForNoKeyUpdate = 10,
    ForUpdate = 11,
}

/// A mode of either family; which one is known from the lock's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mode(u8);

/// The row locks of sessions that change the row, distinguished from those that only lock it: a session that waits for a change needs this.
const CHANGE_NO_KEY: u8 = 12;
const CHANGE: u8 = 13;
/// Waits for changes, and is released at once.
const AWAIT_CHANGE: u8 = 14;
const MODES: usize = 15;

/// A set of modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModeSet(u16);

/// Bit j of entry i: mode i conflicts with mode j. No session waits for `AWAIT_CHANGE`, which is never held for long.
const CONFLICTS: [u16; MODES] = [
    0b1000_0000,
    0b1100_0000,
    0b1111_0000,
    0b1111_1000,
    0b1110_1100,
    0b1111_1100,
    0b1111_1110,
    0b1111_1111,
    0b10_1000 << 8,
    0b11_1100 << 8,
    0b11_1110 << 8,
    0b11_1111 << 8,
    0b11_1110 << 8,
    0b11_1111 << 8,
    0b11_0000 << 8,
];

impl From<RelationLockMode> for Mode {
    fn from(mode: RelationLockMode) -> Mode {
        Mode(mode as u8)
    }
}

impl From<RowLockMode> for Mode {
    fn from(mode: RowLockMode) -> Mode {
        Mode(mode as u8)
    }
}

impl Mode {
    /// A lock on one value of a unique key.
    pub const KEY: Mode = Mode(RelationLockMode::Exclusive as u8);

    /// Waits for the sessions that change a row.
    pub const AWAIT_CHANGE: Mode = Mode(AWAIT_CHANGE);

    /// The lock of a session that is about to change a row.
    pub fn of_change(mode: RowLockMode) -> Mode {
        Mode(if mode == RowLockMode::ForUpdate { CHANGE } else { CHANGE_NO_KEY })
    }

    /// The lock of a session that only locks a row, for that of one that is about to change it.
    pub(crate) fn without_change(self) -> Option<Mode> {
        match self.0 {
            CHANGE => Some(RowLockMode::ForUpdate.into()),
            CHANGE_NO_KEY => Some(RowLockMode::ForNoKeyUpdate.into()),
            _ => None,
        }
    }

    /// Its number, which never changes.
    pub fn number(self) -> u8 {
        self.0
    }

    /// The mode with a number.
    pub fn of_number(number: u8) -> Option<Mode> {
        (usize::from(number) < MODES).then_some(Mode(number))
    }

    /// The modes that do not conflict with each other; every statement takes one of them.
    #[inline]
    pub fn is_weak(self) -> bool {
        self.0 <= RelationLockMode::RowExclusive as u8
    }

    /// Whether a holder of a weak mode could stand in this one's way.
    #[inline]
    pub fn conflicts_with_weak(self) -> bool {
        self.0 >= RelationLockMode::Share as u8
    }

    #[inline]
    pub fn conflicts(self) -> ModeSet {
        ModeSet(CONFLICTS[self.0 as usize])
    }

    pub fn name(self) -> &'static str {
        const NAMES: [&str; MODES] = [
            "AccessShareLock",
            "RowShareLock",
            "RowExclusiveLock",
            "ShareUpdateExclusiveLock",
            "ShareLock",
            "ShareRowExclusiveLock",
            "ExclusiveLock",
            "AccessExclusiveLock",
            "RowShareLock",
            "ShareLock",
            "ExclusiveLock",
            "AccessExclusiveLock",
            "ExclusiveLock",
            "AccessExclusiveLock",
            "ShareLock",
        ];
        NAMES[self.0 as usize]
    }
}

impl ModeSet {
    #[inline]
    pub fn of(mode: Mode) -> ModeSet {
        ModeSet(1 << mode.0)
    }

    #[inline]
    pub fn intersects(self, other: ModeSet) -> bool {
        self.0 & other.0 != 0
    }

    #[inline]
    pub fn contains(self, mode: Mode) -> bool {
        self.0 >> mode.0 & 1 != 0
    }

    #[inline]
    pub fn insert(&mut self, mode: Mode) {
        self.0 |= 1 << mode.0;
    }

    pub fn remove(&mut self, mode: Mode) {
        self.0 &= !(1 << mode.0);
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn union(self, other: ModeSet) -> ModeSet {
        ModeSet(self.0 | other.0)
    }

    pub fn iter(self) -> impl Iterator<Item = Mode> {
        (0..MODES as u8).map(Mode).filter(move |m| self.contains(*m))
    }

    /// Whether holding these makes a lock in `mode` superfluous: it is among them or, for rows, a stronger one is.
    #[inline]
    pub fn covers(self, mode: Mode) -> bool {
        let stronger = match mode.0 {
            8 => 0b11_1111 << 8,
            9 => 0b11_1110 << 8,
            10 => 0b11_1100 << 8,
            11 => 0b10_1000 << 8,
            CHANGE_NO_KEY => 0b11_0000 << 8,
            other => 1 << other,
        };
        self.0 & stronger != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RelationLockMode, RowLockMode};

    #[test]
    fn conflicts_are_symmetric_and_as_documented() {
        let mutual = &CONFLICTS[..MODES - 1];
        for (i, row) in mutual.iter().enumerate() {
            for (j, column) in mutual.iter().enumerate() {
                assert_eq!(row >> j & 1, column >> i & 1, "{i} {j}");
            }
        }
        let conflicts = |a: RelationLockMode, b: RelationLockMode| Mode::from(a).conflicts().contains(b.into());
        assert!(!conflicts(RelationLockMode::RowExclusive, RelationLockMode::RowExclusive));
        assert!(conflicts(RelationLockMode::RowExclusive, RelationLockMode::Share));
        assert!(!conflicts(RelationLockMode::Share, RelationLockMode::Share));
        assert!(conflicts(RelationLockMode::ShareUpdateExclusive, RelationLockMode::ShareUpdateExclusive));
        assert!(!conflicts(RelationLockMode::AccessShare, RelationLockMode::Exclusive));
        let rows = |a: RowLockMode, b: RowLockMode| Mode::from(a).conflicts().contains(b.into());
        assert!(!rows(RowLockMode::ForKeyShare, RowLockMode::ForNoKeyUpdate));
        assert!(rows(RowLockMode::ForKeyShare, RowLockMode::ForUpdate));
        assert!(rows(RowLockMode::ForShare, RowLockMode::ForNoKeyUpdate));
        assert!(!rows(RowLockMode::ForShare, RowLockMode::ForShare));
        for mode in [RowLockMode::ForNoKeyUpdate, RowLockMode::ForUpdate] {
            let (lock, change) = (Mode::from(mode), Mode::of_change(mode));
            assert_eq!(lock.conflicts(), change.conflicts(), "who changes a row locks it");
            assert!(ModeSet::of(change).covers(lock) && !ModeSet::of(lock).covers(change));
            assert!(Mode::AWAIT_CHANGE.conflicts().contains(change) && !Mode::AWAIT_CHANGE.conflicts().contains(lock));
        }
    }
}
