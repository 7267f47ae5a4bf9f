//! Blocks compressed against a reference: zstd frames with the reference as raw dictionary.
//!
//! The library recognises dictionaries of its format by a magic number: so a reference never begins with that format's magic
//! number. Its first byte is always 0.

use std::cell::RefCell;

use zstd_safe::{CCtx, CParameter, DCtx, DictAttachPref};

use crate::zstd::with_output;
use crate::{CodecError, spare};

/// The least reference that zstd takes for one.
pub const REFERENCE_BYTES_MIN: usize = 8;
/// From this level on zstd keeps the positions of the reference in a binary tree, whose size it does not fit to the reference.
const LEVEL_TREES: i32 = 13;
/// A tree takes two links per position; it has at most 2^TREE_LOG_MAX links.
const TREE_LOG_MAX: u32 = 25;

thread_local! {
    // A separate context: a context keeps the size that it was used for.
    static DECOMPRESSION: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

/// Compresses blocks against a reference, whose tables are built once, with the first block.
pub struct BlockEncoder {
    context: CCtx<'static>,
    level: i32,
}

impl BlockEncoder {
    /// An encoder for blocks that share a reference, of a level of zstd; without one when that is too short.
    ///
    /// # Panics
    /// When the reference does not begin with 0: a bug of ours.
    pub fn new(reference: &[u8], level: i32) -> BlockEncoder {
        let mut context = CCtx::create();
        let mut set = |parameter| context.set_parameter(parameter).expect("parameters are within their bounds");
        set(CParameter::CompressionLevel(level));
        if reference.len() >= REFERENCE_BYTES_MIN {
            assert!(reference[0] == 0, "a reference begins with 0");
            // Else its tables, of tens of megabytes, would be copied for each block.
            set(CParameter::ForceAttachDict(DictAttachPref::ForceAttach));
            if level >= LEVEL_TREES {
                set(CParameter::ChainLog((reference.len().ilog2() + 2).min(TREE_LOG_MAX)));
            }
            context.load_dictionary(reference).expect("memory for a reference");
        }
        BlockEncoder { context, level }
    }

    /// zstd's level.
    pub fn level(&self) -> i32 {
        self.level
    }

    /// Appends the compressed content; false, with `out` as it was, when that would not be at most `most` bytes.
    #[must_use]
    pub fn encode(&mut self, content: &[u8], most: usize, out: &mut Vec<u8>) -> bool {
        // SAFETY: the library returns how many bytes it has written.
        let written =
            unsafe { spare::append(out, most, |spare| with_output(spare, |spare| self.context.compress2(spare, content))) };
        written.is_ok()
    }
}

/// Decompresses a block into `target`, which is as long as its content.
///
/// # Errors
/// `Malformed` when the stream does not fill the target.
pub fn decode_block(reference: &[u8], stream: &[u8], target: &mut [u8]) -> Result<(), CodecError> {
    let bytes = target.len();
    let written = DECOMPRESSION.with_borrow_mut(|context| {
        with_output(spare::of(target), |spare| context.decompress_using_dict(spare, stream, reference))
    });
    if written == Ok(bytes) { Ok(()) } else { Err(CodecError::Malformed) }
}
