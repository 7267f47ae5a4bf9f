//! Codecs for large values: what compresses one value or one block, and what says beforehand that trying is useless.
//!
//! Invariants:
//! 1. Every decoder writes at most what its caller's buffer holds and reads at most its input, whatever the input is.
//! 2. Contexts are reused per thread: neither compressing nor decompressing allocates in the steady state.

pub mod lz4;
pub mod pglz;
mod sample;
pub mod zstd;

pub use sample::is_incompressible;

/// Why a codec call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodecError {
    /// The output buffer is too small for the result.
    OutputFull,
    /// The input is no stream of this codec.
    Malformed,
}

impl std::fmt::Display for CodecError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            CodecError::OutputFull => "compressed data does not fit the output buffer",
            CodecError::Malformed => "compressed data is corrupt",
        })
    }
}

impl std::error::Error for CodecError {}
