//! LZ4 blocks (no frame): fast both ways.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::os::raw::{c_char, c_int, c_void};

use crate::{CodecError, spare};

/// The largest input of one block, LZ4's own limit.
pub const INPUT_BYTES_MAX: usize = 0x7E00_0000;

/// LZ4's compression state, opaque and 8-byte aligned.
struct StreamState(Vec<u64>);

impl StreamState {
    fn new() -> StreamState {
        // SAFETY: takes no arguments and returns a constant of the library.
        let bytes = unsafe { LZ4_sizeofState() } as usize;
        StreamState(vec![0; bytes.div_ceil(8)])
    }
}

// Part of the library that `lz4_sys` builds, without a declaration there.
unsafe extern "C" {
    fn LZ4_sizeofState() -> c_int;
    fn LZ4_compress_fast_extState(
        state: *mut c_void,
        source: *const c_char,
        target: *mut c_char,
        source_bytes: c_int,
        target_bytes: c_int,
        acceleration: c_int,
    ) -> c_int;
    fn LZ4_decompress_safe_partial(
        source: *const c_char,
        target: *mut c_char,
        source_bytes: c_int,
        wanted_bytes: c_int,
        target_bytes: c_int,
    ) -> c_int;
}

thread_local! {
    static STATE: RefCell<StreamState> = RefCell::new(StreamState::new());
}

/// The most that `source_bytes` can become.
pub fn compress_bound(source_bytes: usize) -> usize {
    source_bytes + source_bytes / 255 + 16
}

/// Compresses `source` into `target`, returning the bytes written; `OutputFull` when they do not fit, so that a
/// target of the size one is willing to pay doubles as the "is it worth it" test.
pub fn compress(source: &[u8], target: &mut [u8]) -> Result<usize, CodecError> {
    compress_into(source, spare::of(target))
}

pub(crate) fn compress_into(source: &[u8], target: &mut [MaybeUninit<u8>]) -> Result<usize, CodecError> {
    if source.len() > INPUT_BYTES_MAX {
        return Err(CodecError::OutputFull);
    }
    let target_bytes = target.len().min(c_int::MAX as usize) as c_int;
    let written = STATE.with_borrow_mut(|state| {
        // SAFETY: the state is at least LZ4_sizeofState bytes and 8-byte aligned; both buffers are valid for the
        // lengths passed, which fit in an int; the call initialises the state itself.
        unsafe {
            LZ4_compress_fast_extState(
                state.0.as_mut_ptr().cast(),
                source.as_ptr().cast(),
                target.as_mut_ptr().cast(),
                source.len() as c_int,
                target_bytes,
                1,
            )
        }
    });
    if written > 0 { Ok(written as usize) } else { Err(CodecError::OutputFull) }
}

/// Decompresses `source` into `target`, returning the bytes written.
pub fn decompress(source: &[u8], target: &mut [u8]) -> Result<usize, CodecError> {
    decompress_into(source, spare::of(target))
}

pub(crate) fn decompress_into(source: &[u8], target: &mut [MaybeUninit<u8>]) -> Result<usize, CodecError> {
    if source.len() > c_int::MAX as usize {
        return Err(CodecError::Malformed);
    }
    let target_bytes = target.len().min(c_int::MAX as usize) as c_int;
    // SAFETY: both buffers are valid for the lengths passed; LZ4_decompress_safe stays within them for any input.
    let written = unsafe {
        lz4_sys::LZ4_decompress_safe(source.as_ptr().cast(), target.as_mut_ptr().cast(), source.len() as c_int, target_bytes)
    };
    if written >= 0 { Ok(written as usize) } else { Err(CodecError::Malformed) }
}

/// Decompresses the first bytes of `source`'s value into `target`, as many as it holds; returns the bytes written.
pub fn decompress_prefix(source: &[u8], target: &mut [u8]) -> Result<usize, CodecError> {
    if source.len() > c_int::MAX as usize || target.len() > c_int::MAX as usize {
        return Err(CodecError::Malformed);
    }
    let target_bytes = target.len() as c_int;
    // SAFETY: both buffers are valid for the lengths passed; LZ4_decompress_safe_partial stays within them for any input.
    let written = unsafe {
        LZ4_decompress_safe_partial(
            source.as_ptr().cast(),
            target.as_mut_ptr().cast(),
            source.len() as c_int,
            target_bytes,
            target_bytes,
        )
    };
    if written >= 0 { Ok(written as usize) } else { Err(CodecError::Malformed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_bounds() {
        let source = b"melba toast, sliced thin; ".repeat(100);
        let mut packed = vec![0; compress_bound(source.len())];
        let n = compress(&source, &mut packed).unwrap();
        assert!(n < source.len() / 10);
        let mut back = vec![0; source.len()];
        assert_eq!(decompress(&packed[..n], &mut back), Ok(source.len()));
        assert_eq!(back, source);
        assert_eq!(decompress(&packed[..n], &mut back[..100]), Err(CodecError::Malformed));
        assert_eq!(decompress(&packed[..n - 1], &mut vec![0; source.len()]), Err(CodecError::Malformed));
        assert_eq!(compress(&source, &mut [0; 8]), Err(CodecError::OutputFull));
    }
}
