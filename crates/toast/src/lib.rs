//! Codecs for large values: they compress one value, one block or many values together (`dense`), and predict when trying is
//! useless.
//!
//! Invariants:
//! 1. Every decoder writes at most its caller's buffer and reads at most its input, whatever the input is.
//! 2. Contexts are reused per thread: neither compressing nor decompressing allocates in the steady state.

pub mod ahead;
pub mod dense;
pub mod frame;
pub mod lz4;
pub mod pglz;
mod sample;
mod spare;
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
    /// Together with other values, when a merge reads it (`dense`); until then by lz4.
    Dense = 4,
}

/// The level of zstd when a column does not say.
pub const ZSTD_LEVEL: i32 = 3;

/// The properties of a compression method, besides its code.
struct Traits {
    /// In COMPRESSION clauses and settings.
    name: &'static str,
    /// pg_attribute.attcompression.
    letter: u8,
    /// In the first word of a chunked value: PostgreSQL's number, or one that it does not use.
    toast_id: u32,
}

impl Method {
    /// In the order of their codes.
    pub const ALL: [Method; 4] = [Method::Pglz, Method::Lz4, Method::Zstd, Method::Dense];

    fn traits(self) -> Traits {
        match self {
            Method::Pglz => Traits { name: "pglz", letter: b'p', toast_id: 0 },
            Method::Lz4 => Traits { name: "lz4", letter: b'l', toast_id: 1 },
            Method::Zstd => Traits { name: "zstd", letter: b'z', toast_id: 2 },
            Method::Dense => Traits { name: "dense", letter: b'd', toast_id: 3 },
        }
    }

    pub fn from_u8(code: u8) -> Option<Method> {
        Method::ALL.into_iter().find(|method| *method as u8 == code)
    }

    /// The name that COMPRESSION clauses use.
    pub fn name(self) -> &'static str {
        self.traits().name
    }

    pub fn from_name(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Its letter in pg_attribute.attcompression.
    pub fn letter(self) -> u8 {
        self.traits().letter
    }

    pub fn from_letter(letter: u8) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.letter() == letter)
    }

    /// The number in the two highest bits of a compressed value's first word (`varattrib_4b`): PostgreSQL has 0 and 1.
    pub fn toast_id(self) -> u32 {
        self.traits().toast_id
    }
}

/// Appends the compressed form of a value; false, with `out` as it was, when the method refuses: pglz below a quarter saved,
/// the others when nothing is. `level` is zstd's.
#[must_use]
pub fn compress(method: Method, level: i32, source: &[u8], out: &mut Vec<u8>) -> bool {
    // A result as long as the value is of no use, so it need not fit.
    let bytes_max = source.len().saturating_sub(1);
    let written = match method {
        Method::Pglz => return pglz::compress(source, out),
        // SAFETY: the library returns how many bytes it has written.
        Method::Lz4 | Method::Dense => unsafe { spare::append(out, bytes_max, |spare| lz4::compress_into(source, spare)) },
        // SAFETY: as above.
        Method::Zstd => unsafe { spare::append(out, bytes_max, |spare| zstd::compress_into(source, spare, level)) },
    };
    written.is_ok()
}

/// Appends a value of `raw_bytes` bytes.
///
/// # Errors
/// `Malformed` when the stream has another length or is invalid; `out` has the same bytes as before.
pub fn decompress_onto(method: Method, stream: &[u8], raw_bytes: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
    let start = out.len();
    let result = match method {
        Method::Pglz => {
            out.resize(start + raw_bytes, 0);
            pglz::decompress(stream, &mut out[start..])
        }
        // SAFETY: the library returns how many bytes it has written.
        Method::Lz4 | Method::Dense => unsafe { spare::append(out, raw_bytes, |spare| lz4::decompress_into(stream, spare)) },
        // SAFETY: as above.
        Method::Zstd => unsafe { spare::append(out, raw_bytes, |spare| zstd::decompress_into(stream, spare)) },
    };
    if result == Ok(raw_bytes) {
        return Ok(());
    }
    out.truncate(start);
    Err(CodecError::Malformed)
}

/// Decompresses into `target`, which is as long as the value was, or shorter: then pglz and lz4 return the value's first bytes.
///
/// # Errors
/// `Malformed` when the stream does not fill the target.
pub fn decompress(method: Method, stream: &[u8], target: &mut [u8]) -> Result<(), CodecError> {
    let written = match method {
        Method::Pglz => pglz::decompress(stream, target)?,
        Method::Lz4 | Method::Dense => lz4::decompress_prefix(stream, target)?,
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
