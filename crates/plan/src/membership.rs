//! Equalities that partly imply each other.

/// The role of an equality in its class of columns that are all equal (`equivalence`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClassMembership {
    /// Number of the class.
    pub class: usize,
    /// Both columns are equal to one value, each by a separate condition: this one rejects nothing.
    pub is_decided: bool,
}
