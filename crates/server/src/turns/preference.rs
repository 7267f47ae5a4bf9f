//! Which group would serve a connection best.

/// What is known of that.
#[derive(Default)]
pub(super) struct Preference {
    /// Turns until that is looked at again.
    until_look: u32,
    /// The answer of the last look: another group than its own.
    other: Option<usize>,
}

/// Turns of a connection between two looks at which group would serve it best; few where a model's clients are to be moved.
const LOOK_TURNS: u32 = if cfg!(test) { 1 } else { 32 };

impl Preference {
    /// Counts a turn; true when it is time to look.
    pub fn is_due(&mut self) -> bool {
        let due = self.until_look == 0;
        self.until_look = if due { LOOK_TURNS } else { self.until_look - 1 };
        due
    }

    /// The group to move to, if two looks agree on it.
    pub fn agree(&mut self, other: Option<usize>) -> Option<usize> {
        let agreed = std::mem::replace(&mut self.other, other) == other;
        other.filter(|_| agreed)
    }
}
