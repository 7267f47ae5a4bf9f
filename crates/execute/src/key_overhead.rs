//! The size of a kept key beside its bytes.

/// About the size of a key in a set or map, beside the key's bytes.
pub(crate) const KEY_OVERHEAD_BYTES: usize = 56;
