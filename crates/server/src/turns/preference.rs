//! Chooses the group that would serve a connection best.

/// The data for that choice.
#[derive(Default)]
pub(super) struct GroupPreference {
    /// Turns until the next check.
    until_look: u32,
    /// The answer of the last look: another group than its own.
    other: Option<usize>,
}

impl GroupPreference {
    /// Counts a turn; true when a check is due, with `look_turns` turns between two.
    pub fn is_due(&mut self, look_turns: u32) -> bool {
        let due = self.until_look == 0;
        self.until_look = if due { look_turns } else { self.until_look - 1 };
        due
    }

    /// The group to move to, if two looks agree on it.
    pub fn agree(&mut self, other: Option<usize>) -> Option<usize> {
        let agreed = std::mem::replace(&mut self.other, other) == other;
        other.filter(|_| agreed)
    }
}
