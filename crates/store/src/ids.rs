//! Numbers of the store's objects, beside those of `melba_types`.

/// A sequence's storage; never reused. RESTART and ALTER create a new one, as PostgreSQL gives it a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceId(pub u64);

/// The name of a segment file.
pub fn segment_name(file: u64) -> String {
    format!("{file:016x}.seg")
}

/// The number of a segment file; `None` for other names.
pub fn segment_number(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_suffix(".seg")?, 16).ok()
}
