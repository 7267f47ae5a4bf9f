//! Codecs for large values: what compresses one value or one block, and what says beforehand that trying is useless.
//!
//! Invariants:
//! 1. Every decoder writes at most what its caller's buffer holds and reads at most its input, whatever the input is.
//! 2. Contexts are reused per thread: neither compressing nor decompressing allocates in the steady state.

pub mod ahead;
pub mod frame;
pub mod lz4;
pub mod pglz;
mod room;
mod sample;
pub mod stored;
pub mod zstd;

pub use sample::is_incompressible;
pub use stored::{External, Inline, Stored};

/// How a value is compressed.
///
/// The discriminants are part of the on-disk format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Method {
    Pglz = 1,
    Lz4 = 2,
    Zstd = 3,
}

/// The level of zstd when a column does not say.
pub const ZSTD_LEVEL: i32 = 3;

impl Method {
    pub fn from_u8(code: u8) -> Option<Method> {
        match code {
            1 => Some(Method::Pglz),
            2 => Some(Method::Lz4),
            3 => Some(Method::Zstd),
            _ => None,
        }
    }

    /// The name that COMPRESSION clauses use.
    pub fn name(self) -> &'static str {
        match self {
            Method::Pglz => "pglz",
            Method::Lz4 => "lz4",
            Method::Zstd => "zstd",
        }
    }

    pub fn from_name(name: &str) -> Option<Method> {
        [Method::Pglz, Method::Lz4, Method::Zstd].into_iter().find(|m| m.name() == name)
    }
}

/// Appends the compressed form of a value; false, with `out` as it was, when the method refuses: pglz below a quarter saved,
/// the others when nothing is. `level` is zstd's.
#[must_use]
pub fn compress(method: Method, level: i32, source: &[u8], out: &mut Vec<u8>) -> bool {
    if method == Method::Pglz {
        return pglz::compress(source, out);
    }
    // A result as long as the value is of no use, so it need not fit.
    let room = source.len().saturating_sub(1);
    // SAFETY: both libraries return how many bytes they have written.
    let written = unsafe {
        room::append(out, room, |room| match method {
            Method::Lz4 => lz4::compress_into(source, room),
            _ => zstd::compress_into(source, room, level),
        })
    };
    written.is_ok()
}

/// Appends a value of so many bytes.
///
/// # Errors
/// `Malformed` when the stream has another length or is none; `out` has the same bytes as before.
pub fn decompress_onto(method: Method, stream: &[u8], raw_bytes: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
    let start = out.len();
    let result = match method {
        Method::Pglz => {
            out.resize(start + raw_bytes, 0);
            pglz::decompress(stream, &mut out[start..])
        }
        // SAFETY: both libraries return how many bytes they have written.
        _ => unsafe {
            room::append(out, raw_bytes, |room| match method {
                Method::Lz4 => lz4::decompress_into(stream, room),
                _ => zstd::decompress_into(stream, room),
            })
        },
    };
    if result == Ok(raw_bytes) {
        return Ok(());
    }
    out.truncate(start);
    Err(CodecError::Malformed)
}

/// Decompresses into `target`, which is as long as the value was, or shorter: then pglz and lz4 give the value's first bytes.
///
/// # Errors
/// `Malformed` when the stream does not fill the target.
pub fn decompress(method: Method, stream: &[u8], target: &mut [u8]) -> Result<(), CodecError> {
    let written = match method {
        Method::Pglz => pglz::decompress(stream, target)?,
        Method::Lz4 => lz4::decompress_prefix(stream, target)?,
        Method::Zstd => zstd::decompress(stream, target)?,
    };
    if written == target.len() { Ok(()) } else { Err(CodecError::Malformed) }
}

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
