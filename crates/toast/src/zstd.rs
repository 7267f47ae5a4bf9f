//! Zstandard frames: dense, with levels.

use std::cell::RefCell;
use std::mem::MaybeUninit;

use zstd_safe::{CCtx, DCtx, WriteBuf};

use crate::{CodecError, spare};

/// `ZSTD_error_dstSize_tooSmall`, part of the library's stable interface.
const DESTINATION_TOO_SMALL: usize = 70usize.wrapping_neg();

thread_local! {
    static COMPRESSION: RefCell<CCtx<'static>> = RefCell::new(CCtx::create());
    static DECOMPRESSION: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

/// The most that `source_bytes` can become.
pub fn compress_bound(source_bytes: usize) -> usize {
    zstd_safe::compress_bound(source_bytes)
}

/// Compresses `source` into `target` at `level` (1 to 22; negative ones are faster), returning the bytes written;
/// `OutputFull` when they do not fit.
pub fn compress(source: &[u8], target: &mut [u8], level: i32) -> Result<usize, CodecError> {
    compress_into(source, spare::of(target), level)
}

pub(crate) fn compress_into(source: &[u8], target: &mut [MaybeUninit<u8>], level: i32) -> Result<usize, CodecError> {
    COMPRESSION.with_borrow_mut(|context| context.compress(&mut ZstdOutput(target), source, level)).map_err(error)
}

/// Decompresses `source` into `target`, returning the bytes written.
pub fn decompress(source: &[u8], target: &mut [u8]) -> Result<usize, CodecError> {
    decompress_into(source, spare::of(target))
}

pub(crate) fn decompress_into(source: &[u8], target: &mut [MaybeUninit<u8>]) -> Result<usize, CodecError> {
    DECOMPRESSION.with_borrow_mut(|context| context.decompress(&mut ZstdOutput(target), source)).map_err(error)
}

/// Lets a call of the library write into `target`; its result, or the meaning of its error code.
pub(crate) fn with_output(
    target: &mut [MaybeUninit<u8>],
    call: impl FnOnce(&mut ZstdOutput<'_>) -> zstd_safe::SafeResult,
) -> Result<usize, CodecError> {
    call(&mut ZstdOutput(target)).map_err(error)
}

/// Where the library writes.
pub(crate) struct ZstdOutput<'a>(&'a mut [MaybeUninit<u8>]);

// SAFETY: pointer and capacity are those of the slice; no bytes are claimed to be initialised.
unsafe impl WriteBuf for ZstdOutput<'_> {
    fn as_slice(&self) -> &[u8] {
        &[]
    }

    fn capacity(&self) -> usize {
        self.0.len()
    }

    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }

    unsafe fn filled_until(&mut self, _: usize) {}
}

fn error(code: usize) -> CodecError {
    if code == DESTINATION_TOO_SMALL { CodecError::OutputFull } else { CodecError::Malformed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_bounds() {
        let source = b"melba toast, sliced thin; ".repeat(100);
        let mut packed = vec![0; compress_bound(source.len())];
        let n = compress(&source, &mut packed, 3).unwrap();
        assert!(n < source.len() / 10);
        let mut back = vec![0; source.len()];
        assert_eq!(decompress(&packed[..n], &mut back), Ok(source.len()));
        assert_eq!(back, source);
        assert_eq!(decompress(&packed[..n], &mut back[..100]), Err(CodecError::OutputFull));
        assert_eq!(decompress(&packed[..n - 1], &mut vec![0; source.len()]), Err(CodecError::Malformed));
        assert_eq!(compress(&source, &mut [0; 8], 3), Err(CodecError::OutputFull));
    }
}
