//! A block of key entries, prefix-compressed with restarts.
//!
//! ```text
//! tag u8 (4) | flags u8 (1: versions stored) | csn base varint | entries varint | restart offset u32 ... | entry ...
//! entry    shared varint | rest varint | rest of the key | [(csn - base) << 1 | tombstone  varint]
//! ```
//!
//! Every `RESTART_INTERVAL`-th entry shares nothing; offsets count from the first entry. Without stored versions every entry has the base as its CSN
//! and none is a tombstone.

use melba_types::Csn;
use melba_types::bytes::{ByteReader, put_varint};

use super::heads::Heads;

const TAG_KEYS: u8 = 4;
const FLAG_VERSIONS: u8 = 1;
/// Entries from one restart to the next: the most that a seek decodes.
pub(crate) const RESTART_INTERVAL: usize = 16;
/// The key size for which capacity is reserved.
const KEY_BYTES_TYPICAL: usize = 24;

/// Collects a block.
#[derive(Default)]
pub(crate) struct KeyBlockBuilder {
    /// All keys end to end.
    keys: Vec<u8>,
    entries: Vec<BuilderEntry>,
    /// Encoded bytes, about.
    bytes: usize,
}

/// An entry of a builder.
struct BuilderEntry {
    end: usize,
    /// The length that its key shares with the one before.
    shared: usize,
    csn: Csn,
    tombstone: bool,
}

impl KeyBlockBuilder {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn key(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.entries[i - 1].end };
        &self.keys[start..self.entries[i].end]
    }

    /// Adds an entry whose key has its first `shared` bytes in common with the one before.
    pub fn push(&mut self, key: &[u8], shared: usize, csn: Csn, tombstone: bool) {
        let shared = if self.is_empty() { 0 } else { shared };
        self.bytes += key.len() - shared + 3;
        self.keys.extend_from_slice(key);
        self.entries.push(BuilderEntry { end: self.keys.len(), shared, csn, tombstone });
    }

    /// Appends the block's content and empties the builder.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let base = self.entries.iter().map(|e| e.csn).min().unwrap_or_default();
        let versions = self.entries.iter().any(|e| e.csn != base || e.tombstone);
        out.extend_from_slice(&[TAG_KEYS, if versions { FLAG_VERSIONS } else { 0 }]);
        put_varint(base.0, out);
        put_varint(self.entries.len() as u64, out);
        let restarts_at = out.len();
        out.resize(restarts_at + self.entries.len().div_ceil(RESTART_INTERVAL) * 4, 0);
        let start = out.len();
        for (i, entry) in self.entries.iter().enumerate() {
            let key = self.key(i);
            let shared = if i % RESTART_INTERVAL == 0 { 0 } else { entry.shared };
            if i % RESTART_INTERVAL == 0 {
                let at = restarts_at + i / RESTART_INTERVAL * 4;
                let offset = (out.len() - start) as u32;
                out[at..at + 4].copy_from_slice(&offset.to_le_bytes());
            }
            put_varint(shared as u64, out);
            put_varint((key.len() - shared) as u64, out);
            out.extend_from_slice(&key[shared..]);
            if versions {
                put_varint((entry.csn.0 - base.0) << 1 | u64::from(entry.tombstone), out);
            }
        }
        self.keys.clear();
        self.entries.clear();
        self.bytes = 0;
    }
}

/// Length of the common prefix.
#[inline]
pub(crate) fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    let (words_a, words_b) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    let mut at = 0;
    for (a, b) in words_a.iter().zip(words_b) {
        let different = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if different != 0 {
            return at + different.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + a[at..].iter().zip(&b[at..]).take_while(|(a, b)| a == b).count()
}

/// A parsed block. Entries are checked as they are decoded.
#[derive(Debug)]
pub(crate) struct KeyBlock {
    bytes: Vec<u8>,
    versions: bool,
    base: Csn,
    entries: usize,
    restarts_at: usize,
    entries_at: usize,
    /// Of the restarts' keys.
    heads: Heads,
}

/// The entries of one restart interval that were decoded so far; reused, so that steps of a cursor do not allocate.
#[derive(Default)]
pub(crate) struct RestartInterval {
    keys: Vec<u8>,
    entries: Vec<IntervalEntry>,
    /// Entries not decoded yet, and where the next one begins in the block.
    left: usize,
    next_at: usize,
}

#[derive(Clone, Copy)]
struct IntervalEntry {
    end: usize,
    csn: Csn,
    tombstone: bool,
}

impl RestartInterval {
    /// Entries decoded so far.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_whole(&self) -> bool {
        self.left == 0
    }

    #[inline]
    pub fn key(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.entries[i - 1].end };
        &self.keys[start..self.entries[i].end]
    }

    #[inline]
    pub fn version(&self, i: usize) -> (Csn, bool) {
        (self.entries[i].csn, self.entries[i].tombstone)
    }
}

impl KeyBlock {
    pub fn parse(bytes: Vec<u8>) -> Option<KeyBlock> {
        let mut reader = ByteReader::new(&bytes);
        if reader.u8()? != TAG_KEYS {
            return None;
        }
        let versions = match reader.u8()? {
            0 => false,
            FLAG_VERSIONS => true,
            _ => return None,
        };
        let base = Csn(reader.varint()?);
        let entries = reader.length().filter(|&entries| entries > 0)?;
        let restarts_at = reader.position();
        reader.take(entries.div_ceil(RESTART_INTERVAL).checked_mul(4)?)?;
        let entries_at = reader.position();
        let mut block = KeyBlock { bytes, versions, base, entries, restarts_at, entries_at, heads: Heads::default() };
        let restarts = (0..block.intervals()).map(|i| block.restart_key(i)).collect::<Option<Vec<_>>>()?;
        let heads = Heads::new(restarts.len(), |i| restarts[i]);
        block.heads = heads;
        Some(block)
    }

    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.heads.memory_bytes() + size_of::<KeyBlock>()
    }

    pub fn entries(&self) -> usize {
        self.entries
    }

    pub fn intervals(&self) -> usize {
        self.entries.div_ceil(RESTART_INTERVAL)
    }

    /// Where an interval's first entry begins.
    fn start(&self, interval: usize) -> Option<usize> {
        let at = self.restarts_at + interval * 4;
        let offset = u32::from_le_bytes(self.bytes.get(at..at + 4)?.try_into().ok()?) as usize;
        self.entries_at.checked_add(offset)
    }

    pub(super) fn reader(&self, interval: usize) -> Option<ByteReader<'_>> {
        Some(ByteReader::new(self.bytes.get(self.start(interval)?..)?))
    }

    /// The first key of an interval.
    fn restart_key(&self, interval: usize) -> Option<&[u8]> {
        let mut reader = self.reader(interval)?;
        if reader.varint()? != 0 {
            return None;
        }
        reader.bytes()
    }

    /// The interval in which the first key not below `key` is, or the one before it.
    pub fn seek_interval(&self, key: &[u8]) -> usize {
        let below = |i: usize| self.restart_key(i).is_some_and(|restart| restart < key);
        self.heads.partition_point(key, below).saturating_sub(1)
    }

    /// Goes to the start of an interval, nothing of it being decoded.
    pub fn enter(&self, interval: usize, out: &mut RestartInterval) -> Option<()> {
        out.keys.clear();
        out.entries.clear();
        out.keys.reserve(KEY_BYTES_TYPICAL * RESTART_INTERVAL);
        out.entries.reserve(RESTART_INTERVAL);
        out.left = (self.entries - interval * RESTART_INTERVAL).min(RESTART_INTERVAL);
        out.next_at = self.start(interval)?;
        Some(())
    }

    /// Decodes the interval's next entry, which exists; `None` when the bytes are no entry.
    pub fn decode_next(&self, out: &mut RestartInterval) -> Option<()> {
        let mut reader = ByteReader::new(self.bytes.get(out.next_at..)?);
        let decoded = out.entries.len();
        let last = if decoded < 2 { 0 } else { out.entries[decoded - 2].end };
        let start = out.keys.len();
        let shared = reader.length().filter(|&shared| shared <= start - last)?;
        let rest = reader.bytes()?;
        out.keys.extend_from_within(last..last + shared);
        out.keys.extend_from_slice(rest);
        let (csn, tombstone) = self.version(&mut reader)?;
        out.entries.push(IntervalEntry { end: out.keys.len(), csn, tombstone });
        out.next_at += reader.position();
        out.left -= 1;
        Some(())
    }

    /// The CSN of all entries, if it is one and none is a tombstone: each is then the only version of its key.
    pub fn uniform(&self) -> Option<Csn> {
        (!self.versions).then_some(self.base)
    }

    /// CSN and tombstone of an entry, which follow its key.
    #[inline]
    pub(super) fn version(&self, reader: &mut ByteReader<'_>) -> Option<(Csn, bool)> {
        if !self.versions {
            return Some((self.base, false));
        }
        let version = reader.varint()?;
        Some((Csn(self.base.0.checked_add(version >> 1)?), version & 1 != 0))
    }

    /// Decodes the rest of an interval.
    pub fn decode_rest(&self, out: &mut RestartInterval) -> Option<()> {
        while out.left > 0 {
            self.decode_next(out)?;
        }
        Some(())
    }
}
