//! What a kept key takes beside its bytes.

/// About what a set or map of keys takes for each, beside the key's bytes.
pub(crate) const KEY_OVERHEAD_BYTES: usize = 56;
