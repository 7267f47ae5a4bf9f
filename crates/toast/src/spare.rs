//! Space behind a vector's bytes for a codec's output: it need not be cleared before.

use std::mem::MaybeUninit;

use crate::CodecError;

/// Lets `write` fill space for `bytes` more bytes, and appends as many as it returns.
///
/// # Errors
/// Those of `write`; nothing is appended then.
///
/// # Safety
/// `write` has written as many of the first bytes as it returns.
pub unsafe fn append(
    out: &mut Vec<u8>,
    bytes: usize,
    write: impl FnOnce(&mut [MaybeUninit<u8>]) -> Result<usize, CodecError>,
) -> Result<usize, CodecError> {
    out.reserve(bytes);
    let written = write(&mut out.spare_capacity_mut()[..bytes])?;
    assert!(written <= bytes, "a codec has written {written} bytes into {bytes}");
    // SAFETY: `bytes` were reserved, and the caller promises that `written` of them were written.
    unsafe { out.set_len(out.len() + written) };
    Ok(written)
}

/// Existing bytes, as space for a codec's output.
pub fn of(target: &mut [u8]) -> &mut [MaybeUninit<u8>] {
    // SAFETY: the layouts are the same, and the codecs of this crate write bytes only.
    unsafe { &mut *(std::ptr::from_mut(target) as *mut [MaybeUninit<u8>]) }
}
