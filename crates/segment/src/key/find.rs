//! Finds the entries of one key without a cursor: nothing is allocated, and of the entries before the key only lengths and a few
//! bytes are read.

use std::ops::ControlFlow;

use melba_types::{Csn, RowId};

use super::ROW_ID_BYTES;
use super::block::{KeyBlock, RESTART_INTERVAL, shared_prefix};
use super::reader::KeySegmentReader;
use crate::block::Block;
use crate::error::Result;

/// How the last entry compares with the searched key.
struct Place<'a> {
    key: &'a [u8],
    /// Bytes that it has in common with the key.
    matched: usize,
    /// The bytes that follow the key when the entry begins with it: the first ones, and how many there are in all.
    tail: [u8; ROW_ID_BYTES],
    tail_bytes: usize,
}

enum Order {
    Below,
    Equal(RowId),
    /// It begins with the key and has more than a row id behind it, or less.
    Longer,
    Above,
}

impl Place<'_> {
    /// Goes to the entry that has its first `shared` bytes in common with the last one, `rest` being the others; `None` when it
    /// cannot be one.
    fn step(&mut self, shared: usize, rest: &[u8]) -> Option<Order> {
        let mut rest = rest;
        let mut behind = shared.saturating_sub(self.key.len());
        if self.matched < self.key.len() {
            if shared > self.matched {
                // It differs from the key where the last one did.
                return Some(Order::Below);
            }
            if shared < self.matched {
                return Some(Order::Above);
            }
            let wanted = &self.key[self.matched..];
            let equal = shared_prefix(rest, wanted);
            self.matched += equal;
            match (rest.get(equal), wanted.get(equal)) {
                (_, None) => rest = &rest[equal..],
                (None, _) => return Some(Order::Below),
                (Some(byte), Some(wanted)) => return Some(if byte < wanted { Order::Below } else { Order::Above }),
            }
            behind = 0;
        } else if shared < self.matched {
            return Some(Order::Above);
        } else if behind > self.tail_bytes {
            return None;
        }
        self.tail_bytes = behind + rest.len();
        if let Some(tail) = self.tail.get_mut(behind..) {
            let known = tail.len().min(rest.len());
            tail[..known].copy_from_slice(&rest[..known]);
        }
        let whole = self.tail_bytes == ROW_ID_BYTES;
        Some(if whole { Order::Equal(RowId(u64::from_be_bytes(self.tail))) } else { Order::Longer })
    }
}

impl KeyBlock {
    /// As `KeySegmentReader::find` for the entries of this block; `None` when they do not decode.
    fn find(&self, key: &[u8], each: &mut impl FnMut(RowId, Csn, bool) -> ControlFlow<()>) -> Option<ControlFlow<()>> {
        let first = self.seek_interval(key);
        let mut reader = self.reader(first)?;
        let mut place = Place { key, matched: 0, tail: [0; ROW_ID_BYTES], tail_bytes: 0 };
        for entry in first * RESTART_INTERVAL..self.entries() {
            let shared = reader.length()?;
            let rest = reader.bytes()?;
            if entry % RESTART_INTERVAL == 0 {
                // Written as if it had nothing in common with the one before.
                place.matched = 0;
            }
            let (csn, tombstone) = self.version(&mut reader)?;
            match place.step(shared, rest)? {
                Order::Below | Order::Longer => {}
                Order::Above => return Some(ControlFlow::Break(())),
                Order::Equal(row) => {
                    if each(row, csn, tombstone).is_break() {
                        return Some(ControlFlow::Break(()));
                    }
                }
            }
        }
        Some(ControlFlow::Continue(()))
    }
}

impl KeySegmentReader {
    /// Calls `each` with row, CSN and tombstone of every version of the entries whose key without its row id is exactly `key`, rows
    /// ascending, the newest version of each first, until it breaks.
    pub fn find(&self, key: &[u8], mut each: impl FnMut(RowId, Csn, bool) -> ControlFlow<()>) -> Result<()> {
        if self.blocks() == 0 || key > self.meta().key_max.as_slice() {
            return Ok(());
        }
        let assigned = self.assigned();
        let mut each = |row, csn: Csn, tombstone| each(row, if csn.0 == 0 { assigned } else { csn }, tombstone);
        let mut index = self.block_of(key);
        loop {
            let block = self.block(index)?;
            let found = match &*block {
                Block::Keys(keys) => keys.find(key, &mut each),
                _ => None,
            };
            let found = found.ok_or_else(|| self.damaged(index, "entries do not decode"))?;
            index += 1;
            // A block that begins above the key has entries of it only if its separator begins with it.
            if found.is_break() || index == self.blocks() || !self.separator(index).starts_with(key) {
                return Ok(());
            }
        }
    }
}
