//! Which group would serve a connection best.

/// What is known of that.
#[derive(Default)]
pub(super) struct Preference {
    /// Turns until that is looked at again.
    until_look: u32,
    /// The answer of the last look: another group than its own.
    other: Option<usize>,
}

impl Preference {
    /// Counts a turn; true when it is time to look, with so many turns between two looks.
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
