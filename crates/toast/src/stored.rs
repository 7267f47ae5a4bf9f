//! The stored form of a value: the bytes in a row for a value that is compressed, or stored elsewhere.
//!
//! ```text
//! inline     method u8 (1 pglz, 2 lz4, 3 zstd, 4 dense: by lz4) | raw length varint | characters varint | stream
//! external   0x80 | method u8, 0 none | tree u64 | first row u64 | raw length u32 | stored length u32 | characters u32
//! ```
//!
//! Numbers are little-endian. `characters` is the result of length(): 0 stands for the number of bytes, which is right for
//! everything except text beyond ASCII. An external value is cut into frames of `frame::FRAME_BYTES`, each a row of the tree,
//! numbered on from the first; text beyond ASCII is followed by one more row, `Characters`.

use melba_types::bytes::put_varint;
use melba_types::{RowId, TreeId};

use crate::frame::{FRAME_BYTES, take_u8, take_varint};
use crate::{CodecError, Method};

const EXTERNAL: u8 = 0x80;
const EXTERNAL_BYTES: usize = 30;

/// A stored form, parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored<'a> {
    Inline(Inline<'a>),
    External(External),
}

/// A compressed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inline<'a> {
    pub method: Method,
    pub raw_bytes: u32,
    /// 0: as many as bytes.
    pub characters: u32,
    pub stream: &'a [u8],
}

/// Where a value is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct External {
    pub method: Option<Method>,
    /// The toast tree.
    pub tree: TreeId,
    /// Of the first frame.
    pub first: RowId,
    pub raw_bytes: u32,
    /// Of the frames' streams together.
    pub stored_bytes: u32,
    /// 0: as many as bytes.
    pub characters: u32,
}

impl Stored<'_> {
    /// # Errors
    /// `Malformed` when the bytes are no stored form.
    pub fn parse(bytes: &[u8]) -> Result<Stored<'_>, CodecError> {
        let mut rest = bytes;
        let first = take_u8(&mut rest)?;
        if first == EXTERNAL {
            return External::parse(bytes).map(Stored::External);
        }
        let method = Method::from_u8(first).ok_or(CodecError::Malformed)?;
        let mut number = || u32::try_from(take_varint(&mut rest)?).map_err(|_| CodecError::Malformed);
        let (raw_bytes, characters) = (number()?, number()?);
        Ok(Stored::Inline(Inline { method, raw_bytes, characters, stream: rest }))
    }

    pub fn method(&self) -> Option<Method> {
        match self {
            Stored::Inline(inline) => Some(inline.method),
            Stored::External(external) => external.method,
        }
    }

    /// Bytes of the value itself.
    pub fn raw_bytes(&self) -> usize {
        match self {
            Stored::Inline(inline) => inline.raw_bytes as usize,
            Stored::External(external) => external.raw_bytes as usize,
        }
    }

    /// Characters of the value, when it is text.
    pub fn characters(&self) -> usize {
        let characters = match self {
            Stored::Inline(inline) => inline.characters,
            Stored::External(external) => external.characters,
        };
        if characters == 0 { self.raw_bytes() } else { characters as usize }
    }
}

impl Inline<'_> {
    /// Appends the start of a stored form; the stream follows.
    pub fn begin(method: Method, raw_bytes: u32, characters: u32, out: &mut Vec<u8>) {
        out.push(method as u8);
        put_varint(raw_bytes.into(), out);
        put_varint(characters.into(), out);
    }
}

impl External {
    fn parse(bytes: &[u8]) -> Result<External, CodecError> {
        let bytes: &[u8; EXTERNAL_BYTES] = bytes.try_into().map_err(|_| CodecError::Malformed)?;
        let method = match bytes[1] {
            0 => None,
            code => Some(Method::from_u8(code).ok_or(CodecError::Malformed)?),
        };
        let u64_at = |at: usize| u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32;
        Ok(External {
            method,
            tree: TreeId(u64_at(2)),
            first: RowId(u64_at(10)),
            raw_bytes: u32_at(bytes, 18),
            stored_bytes: u32_at(bytes, 22),
            characters: u32_at(bytes, 26),
        })
    }

    pub fn encode(&self) -> [u8; EXTERNAL_BYTES] {
        let mut out = [0; EXTERNAL_BYTES];
        out[0] = EXTERNAL;
        out[1] = self.method.map_or(0, |m| m as u8);
        out[2..10].copy_from_slice(&self.tree.0.to_le_bytes());
        out[10..18].copy_from_slice(&self.first.0.to_le_bytes());
        out[18..22].copy_from_slice(&self.raw_bytes.to_le_bytes());
        out[22..26].copy_from_slice(&self.stored_bytes.to_le_bytes());
        out[26..30].copy_from_slice(&self.characters.to_le_bytes());
        out
    }

    /// Frames of the value.
    pub fn frames(&self) -> u64 {
        u64::from(self.raw_bytes).div_ceil(FRAME_BYTES as u64)
    }

    /// Rows of the tree that belong to the value.
    pub fn rows(&self) -> u64 {
        self.frames() + u64::from(self.characters != 0)
    }
}

fn u32_at(bytes: &[u8; EXTERNAL_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Characters of each frame of a text, those counted in whose frame they begin: u32 each, little-endian.
pub struct Characters<'a>(pub &'a [u8]);

impl Characters<'_> {
    /// Appends the row for a text, and counts all of its characters.
    pub fn encode(text: &[u8], out: &mut Vec<u8>) -> u32 {
        text.chunks(FRAME_BYTES).fold(0, |characters, frame| {
            let of_frame = count(frame);
            out.extend_from_slice(&of_frame.to_le_bytes());
            characters + of_frame
        })
    }

    /// The frame in which character `n` (from 0) begins, and how many begin in the frames before it; past the end: the number
    /// of frames and of characters.
    pub fn find(&self, n: usize) -> (usize, usize) {
        let mut before = 0;
        for (frame, count) in self.0.chunks_exact(4).enumerate() {
            let count = u32::from_le_bytes([count[0], count[1], count[2], count[3]]) as usize;
            if before + count > n {
                return (frame, before);
            }
            before += count;
        }
        (self.0.len() / 4, before)
    }
}

/// Characters that begin in some bytes of valid UTF-8.
pub fn count(text: &[u8]) -> u32 {
    /// A sum that a byte holds: the compiler counts in vector registers then, a byte a lane. Whole registers of any width.
    const PIECE_BYTES: usize = 192;
    let of_piece = |piece: &[u8]| piece.iter().fold(0, |sum, byte| sum + u8::from(*byte as i8 >= -0x40));
    text.chunks(PIECE_BYTES).map(|piece| u32::from(of_piece(piece))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_come_back() {
        let mut bytes = Vec::new();
        Inline::begin(Method::Lz4, 3000, 0, &mut bytes);
        bytes.extend_from_slice(b"stream");
        let inline = Stored::parse(&bytes).unwrap();
        assert_eq!(inline, Stored::Inline(Inline { method: Method::Lz4, raw_bytes: 3000, characters: 0, stream: b"stream" }));
        assert_eq!((inline.raw_bytes(), inline.characters()), (3000, 3000));
        let external = External {
            method: None,
            tree: TreeId(7).toast(),
            first: RowId(1 << 40),
            raw_bytes: 600_000,
            stored_bytes: 600_000,
            characters: 500_000,
        };
        assert_eq!(Stored::parse(&external.encode()), Ok(Stored::External(external)));
        assert_eq!((external.frames(), external.rows()), (3, 4));
        for cut in 0..EXTERNAL_BYTES {
            assert_eq!(Stored::parse(&external.encode()[..cut]), Err(CodecError::Malformed));
        }
    }

    #[test]
    fn the_document_has_the_bytes() {
        const DOCUMENT: &str = include_str!("../../../docs/design/toast.md");
        let source = include_str!("stored.rs");
        let forms = source
            .lines()
            .filter_map(|l| l.strip_prefix("//! "))
            .filter(|l| l.starts_with("inline ") || l.starts_with("external "));
        let frame = include_str!("frame.rs").lines().filter_map(|l| l.strip_prefix("//! ")).filter_map(|l| {
            let (name, layout) = l.split_at_checked(8)?;
            matches!(name.trim(), "frame" | "waiting" | "dense").then(|| format!("{name:<11}{layout}"))
        });
        let lines: Vec<String> = forms.map(str::to_owned).chain(frame).collect();
        assert_eq!(lines.len(), 5);
        for line in lines.iter().chain([&format!("frames of {FRAME_BYTES} raw bytes")]) {
            assert!(DOCUMENT.contains(line.as_str()), "the document lacks: {line}");
        }
    }

    #[test]
    fn characters_are_found_in_their_frames() {
        // Two bytes each, one at an odd place: the 131072nd character straddles the frames.
        let text = format!("a{}", "é".repeat(200_000));
        let mut row = Vec::new();
        assert_eq!(Characters::encode(text.as_bytes(), &mut row), 200_001);
        let table = Characters(&row);
        assert_eq!(count(text.as_bytes()), 200_001);
        for n in [0, 1, 131_071, 131_072, 131_073, 200_000] {
            let (frame, before) = table.find(n);
            let at = text.char_indices().nth(n).unwrap().0;
            assert_eq!(frame, at / FRAME_BYTES, "character {n}");
            assert_eq!(before, count(&text.as_bytes()[..frame * FRAME_BYTES]) as usize);
        }
        assert_eq!(table.find(200_001), (2, 200_001));
    }
}
