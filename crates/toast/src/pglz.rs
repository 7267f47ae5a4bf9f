//! PostgreSQL's own compression method, byte for byte.
//!
//! The stream, as PostgreSQL documents it:
//!
//! ```text
//! control byte   8 flags, lowest bit first, one an item that follows
//! item, flag 0   one literal byte
//! item, flag 1   oooollll oooooooo [eeeeeeee]
//!                offset back (12 bits), length - 3; a length nibble of 15 adds one byte: length - 18
//! ```
//!
//! The compressor reproduces the choices of PostgreSQL's default strategy (which match is taken, when it gives up), so that sizes
//! shown to users are the same.

mod decoder;
mod encoder;

pub use decoder::decompress;
pub use encoder::{compress, compress_always};

const MATCH_MIN: usize = 3;

#[cfg(test)]
mod tests;
