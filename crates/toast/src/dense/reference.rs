//! The choice of the reference: content that the most values share.
//!
//! Values are cut into pieces of neighbouring chunks. A piece is worth the bytes that its chunks would save in other values;
//! chunks that the reference already has are worth nothing. The best pieces are taken until the reference is full or nothing
//! pays. (The greedy cover of Liao, Petri, Moffat, Wirth: "Effective construction of relative Lempel-Ziv dictionaries", 2016,
//! with content-defined chunks for their samples.)

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use super::chunks::ContentChunk;

/// A piece must save this many thousandths of its length.
const WORTH_MIN: u64 = 300;
/// Bytes of a piece, at least: shorter ones do not justify the distances to them.
const PIECE_BYTES_MIN: u32 = 512;
/// Pieces grow with samples of less than one chunk in `1 << PIECE_SAMPLED`.
const PIECE_SAMPLED: u32 = 1;
/// The same for sections of short values, in shares of a value's average.
const VALUE_SHARE: u32 = 8;

/// A run of bytes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Piece {
    pub value: u32,
    pub from: u32,
    pub to: u32,
    /// The first chunk, among all.
    first: u32,
}

/// Chunks of all values, end to end: all that there are, or a sample of them. A chunk is in the sample by its hash, so wherever its
/// content occurs.
#[derive(Default)]
pub struct AllChunks {
    pub chunks: Vec<ContentChunk>,
    /// Where each value's end.
    pub ends: Vec<u32>,
    /// One chunk in `1 << sampled` is in the sample.
    pub sampled: u32,
}

impl AllChunks {
    /// Takes the chunks of the next value.
    pub fn append(&mut self, chunks: &[ContentChunk]) {
        let mask = (1 << self.sampled) - 1;
        self.chunks.extend(chunks.iter().filter(|chunk| chunk.hash & mask == 0));
        self.ends.push(self.chunks.len() as u32);
    }

    pub fn of(&self, value: usize) -> &[ContentChunk] {
        let start = if value == 0 { 0 } else { self.ends[value - 1] as usize };
        &self.chunks[start..self.ends[value] as usize]
    }

    /// In how many values each hash occurs.
    fn occurrences(&self) -> HashMap<u64, u32> {
        let mut found: HashMap<u64, (u32, u32)> = HashMap::with_capacity(self.chunks.len() / 4);
        for value in 0..self.ends.len() {
            for chunk in self.of(value) {
                let (count, last) = found.entry(chunk.hash).or_insert((0, u32::MAX));
                if *last != value as u32 {
                    (*count, *last) = (*count + 1, value as u32);
                }
            }
        }
        found.into_iter().map(|(hash, (count, _))| (hash, count)).collect()
    }

    fn pieces(&self) -> Vec<Piece> {
        let bytes: u64 = (0..self.ends.len()).filter_map(|v| self.of(v).last()).map(|c| u64::from(c.end)).sum();
        let average = (bytes / self.ends.len().max(1) as u64) as u32;
        // A few sampled chunks are enough to value a piece.
        let least = (PIECE_BYTES_MIN << self.sampled.saturating_sub(PIECE_SAMPLED)).min(average / VALUE_SHARE);
        let mut pieces = Vec::new();
        let mut first = 0;
        for value in 0..self.ends.len() {
            let chunks = self.of(value);
            let (mut from, mut begun) = (0, first);
            for (at, chunk) in chunks.iter().enumerate() {
                if chunk.end - from >= least || at + 1 == chunks.len() {
                    pieces.push(Piece { value: value as u32, from, to: chunk.end, first: begun });
                    (from, begun) = (chunk.end, first + at as u32 + 1);
                }
            }
            first += chunks.len() as u32;
        }
        pieces
    }
}

/// What a section's values share.
pub struct Coverage {
    all: AllChunks,
    occurrences: HashMap<u64, u32>,
    pieces: Vec<Piece>,
}

impl Coverage {
    pub fn new(all: AllChunks) -> Coverage {
        Coverage { occurrences: all.occurrences(), pieces: all.pieces(), all }
    }

    /// Pieces of at most `bytes_max` that a reference which has the `taken` hashes lacks, in the order of their values, so that
    /// neighbours stay neighbours.
    pub fn choose(&self, bytes_max: usize, mut taken: HashSet<u64>) -> Vec<Piece> {
        let mut heap: BinaryHeap<(u64, Reverse<u32>)> =
            self.pieces.iter().enumerate().map(|(at, piece)| (self.worth(piece, &taken), Reverse(at as u32))).collect();
        let mut chosen = Vec::new();
        let mut bytes = 0;
        while let Some((before, at)) = heap.pop() {
            let piece = &self.pieces[at.0 as usize];
            if before < WORTH_MIN || bytes + (piece.to - piece.from) as usize > bytes_max {
                break;
            }
            // Pieces taken since may have reduced its worth.
            let now = self.worth(piece, &taken);
            if now < before {
                heap.push((now, at));
                continue;
            }
            taken.extend(self.chunks(piece).map(|chunk| chunk.hash));
            bytes += (piece.to - piece.from) as usize;
            chosen.push(*piece);
        }
        chosen.sort_unstable();
        chosen
    }

    /// Thousandths of a piece's length that its chunks save in other values, as far as they are not taken.
    fn worth(&self, piece: &Piece, taken: &HashSet<u64>) -> u64 {
        let (mut looked_at, mut saved) = (0, 0);
        for chunk in self.chunks(piece) {
            if !taken.contains(&chunk.hash) {
                saved += u64::from(self.occurrences[&chunk.hash] - 1) * u64::from(chunk.bytes);
            }
            looked_at += u64::from(chunk.bytes);
        }
        saved * 1000 / looked_at.max(1)
    }

    fn chunks(&self, piece: &Piece) -> impl Iterator<Item = &ContentChunk> {
        let mut is_last = false;
        let to = piece.to;
        self.all.chunks[piece.first as usize..].iter().take_while(move |chunk| {
            let is_in = !is_last;
            is_last |= chunk.end >= to;
            is_in
        })
    }
}
