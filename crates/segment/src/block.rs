//! Blocks as readers hold them: verified, decompressed, their layout parsed and bounds-checked once.

use melba_types::bytes::ByteReader;
use sha2::{Digest, Sha256};

use crate::key::block::KeyBlock;
use crate::layout::digits::DigitPattern;
use crate::layout::strings::StringBlock;
use crate::layout::symbols::SymbolTable;
use crate::layout::words::WordBlock;

/// A block's content.
#[derive(Debug)]
pub(crate) enum Block {
    Words(WordBlock),
    Strings(StringBlock),
    Symbols(Box<SymbolTable>),
    Digits(DigitPattern),
    Keys(KeyBlock),
    Filter(Vec<u8>),
    /// The bytes against which the blocks of a dense section are compressed.
    Reference(Vec<u8>),
}

/// The name of a reference, by its content: references of one name are equal, in whatever segment they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReferenceName(pub [u8; REFERENCE_NAME_BYTES]);

/// Half of a SHA-256 digest: nobody can make two references of one name, which would give readers the wrong one.
pub(crate) const REFERENCE_NAME_BYTES: usize = 16;

impl ReferenceName {
    pub fn of(content: &[u8]) -> ReferenceName {
        let mut name = [0; REFERENCE_NAME_BYTES];
        name.copy_from_slice(&Sha256::digest(content)[..REFERENCE_NAME_BYTES]);
        ReferenceName(name)
    }
}

/// The kind of a block according to the directory; checked against the content's own tag where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Words,
    Strings,
    Symbols,
    Digits,
    Keys,
    Filter,
}

impl Block {
    /// Parses content; `None` when it is not of this kind.
    pub fn parse(kind: BlockKind, content: Vec<u8>) -> Option<Block> {
        Some(match kind {
            BlockKind::Words => Block::Words(WordBlock::parse(content)?),
            BlockKind::Strings => Block::Strings(StringBlock::parse(content)?),
            BlockKind::Symbols => Block::Symbols(Box::new(SymbolTable::parse(&content)?)),
            BlockKind::Digits => Block::Digits(DigitPattern::parse(&content)?),
            BlockKind::Keys => Block::Keys(KeyBlock::parse(content)?),
            BlockKind::Filter => Block::Filter(content),
        })
    }

    pub fn memory_bytes(&self) -> usize {
        match self {
            Block::Words(block) => block.memory_bytes(),
            Block::Strings(block) => block.memory_bytes(),
            Block::Symbols(block) => block.memory_bytes(),
            Block::Digits(pattern) => pattern.memory_bytes(),
            Block::Keys(block) => block.memory_bytes(),
            Block::Filter(bytes) | Block::Reference(bytes) => bytes.capacity(),
        }
    }
}

/// The rows that a block says it holds, refused when beyond any row group's.
pub(crate) fn parse_rows(reader: &mut ByteReader<'_>) -> Option<usize> {
    reader.length().filter(|&rows| rows <= u32::MAX as usize)
}
