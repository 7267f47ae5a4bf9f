//! Walking a key segment in both directions.
//!
//! A cursor decodes a restart interval into buffers that it keeps, and forward only as far as needed: steps allocate nothing, a
//! lookup decodes half an interval, and a step back costs the same as one forward.

use std::sync::Arc;

use melba_types::Csn;

use super::block::RestartInterval;
use super::reader::KeySegmentReader;
use crate::block::Block;
use crate::error::Result;
use crate::layout::words::partition_point;

/// A position in a key segment, at an entry or (`is_valid` false) beyond either end.
///
/// After an error the cursor is not positioned.
pub struct KeyCursor {
    segment: Arc<KeySegmentReader>,
    block: Option<Arc<Block>>,
    block_index: usize,
    intervals: usize,
    /// The CSN of all its entries.
    uniform: Option<Csn>,
    interval_index: usize,
    interval: RestartInterval,
    at: usize,
    valid: bool,
    /// It has stepped forward since its seek: the rest of an interval is decoded at once.
    steps: bool,
}

impl KeyCursor {
    pub(super) fn new(segment: Arc<KeySegmentReader>) -> KeyCursor {
        KeyCursor {
            segment,
            block: None,
            block_index: 0,
            intervals: 0,
            uniform: None,
            interval_index: 0,
            interval: RestartInterval::default(),
            at: 0,
            valid: false,
            steps: false,
        }
    }

    /// Whether it walks this segment.
    pub fn is_of(&self, segment: &Arc<KeySegmentReader>) -> bool {
        Arc::ptr_eq(&self.segment, segment)
    }

    pub fn is_valid(&self) -> bool {
        self.valid
    }

    /// The entry's key, row id included.
    ///
    /// # Panics
    /// When not positioned, as do the next two.
    #[inline]
    pub fn key(&self) -> &[u8] {
        assert!(self.valid, "cursor at an entry");
        self.interval.key(self.at)
    }

    #[inline]
    pub fn csn(&self) -> Csn {
        assert!(self.valid, "cursor at an entry");
        match self.interval.version(self.at).0 {
            Csn(0) => self.segment.assigned(),
            csn => csn,
        }
    }

    #[inline]
    pub fn tombstone(&self) -> bool {
        assert!(self.valid, "cursor at an entry");
        self.interval.version(self.at).1
    }

    /// Whether the entries of the block it stands in are the only versions of their keys, all live and seen by `csn_max`.
    #[inline]
    pub fn is_all_visible(&self, csn_max: Csn) -> bool {
        self.valid && self.uniform.is_some_and(|csn| csn <= csn_max)
    }

    /// Goes to the first entry whose key is not below `key`; false when there is none.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.valid = false;
        self.steps = false;
        if self.segment.blocks() == 0 {
            return Ok(false);
        }
        self.enter_block(self.segment.block_of(key))?;
        let interval = self.keys().map_or(0, |keys| keys.seek_interval(key));
        self.enter_interval(interval)?;
        self.at = partition_point(self.interval.len(), |i| self.interval.key(i) < key);
        while self.at == self.interval.len() {
            if self.interval.is_whole() {
                self.at -= 1;
                self.valid = true;
                return self.next();
            }
            self.decode_more(false)?;
            self.at += usize::from(self.interval.key(self.at) < key);
        }
        self.valid = true;
        Ok(true)
    }

    /// Goes to the last entry whose key is below `key`; false when there is none.
    pub fn seek_before(&mut self, key: &[u8]) -> Result<bool> {
        if self.seek(key)? { self.prev() } else { self.seek_last() }
    }

    pub fn seek_first(&mut self) -> Result<bool> {
        self.valid = false;
        if self.segment.blocks() == 0 {
            return Ok(false);
        }
        self.enter_block(0)?;
        self.enter_interval(0)?;
        self.decode_first()?;
        self.at = 0;
        self.valid = true;
        Ok(true)
    }

    pub fn seek_last(&mut self) -> Result<bool> {
        self.valid = false;
        if self.segment.blocks() == 0 {
            return Ok(false);
        }
        self.enter_block(self.segment.blocks() - 1)?;
        self.enter_last_interval()
    }

    /// Goes to the next entry; false at the end (and when not positioned).
    #[expect(clippy::should_implement_trait, reason = "a cursor lends its entry; an iterator would have to copy it")]
    pub fn next(&mut self) -> Result<bool> {
        if !self.valid || self.at + 1 < self.interval.len() {
            self.at += usize::from(self.valid);
            return Ok(self.valid);
        }
        self.valid = false;
        if !self.interval.is_whole() {
            let all = std::mem::replace(&mut self.steps, true);
            self.decode_more(all)?;
            self.at += 1;
            self.valid = true;
            return Ok(true);
        }
        if self.interval_index + 1 < self.intervals {
            self.enter_interval(self.interval_index + 1)?;
        } else if self.block_index + 1 < self.segment.blocks() {
            self.enter_block(self.block_index + 1)?;
            self.enter_interval(0)?;
        } else {
            return Ok(false);
        }
        self.decode_first()?;
        self.at = 0;
        self.valid = true;
        Ok(true)
    }

    /// Goes to the entry before; false at the start (and when not positioned).
    pub fn prev(&mut self) -> Result<bool> {
        if !self.valid || self.at > 0 {
            self.at -= usize::from(self.valid);
            return Ok(self.valid);
        }
        self.valid = false;
        if self.interval_index > 0 {
            self.enter_interval(self.interval_index - 1)?;
            self.decode_more(true)?;
            self.at = self.interval.len() - 1;
            self.valid = true;
            Ok(true)
        } else if self.block_index > 0 {
            self.enter_block(self.block_index - 1)?;
            self.enter_last_interval()
        } else {
            Ok(false)
        }
    }

    fn enter_last_interval(&mut self) -> Result<bool> {
        self.enter_interval(self.intervals - 1)?;
        self.decode_more(true)?;
        self.at = self.interval.len() - 1;
        self.valid = true;
        Ok(true)
    }

    fn keys(&self) -> Option<&super::block::KeyBlock> {
        match self.block.as_deref() {
            Some(Block::Keys(keys)) => Some(keys),
            _ => None,
        }
    }

    fn enter_block(&mut self, index: usize) -> Result<()> {
        if self.block.is_none() || self.block_index != index {
            self.block = Some(self.segment.block(index)?.into_arc());
            self.block_index = index;
            self.intervals = self.keys().map_or(0, |keys| keys.intervals());
            let assigned = |csn: Csn| if csn.0 == 0 { self.segment.assigned() } else { csn };
            self.uniform = self.keys().and_then(|keys| keys.uniform()).map(assigned);
            // No interval of this block is decoded yet.
            self.interval_index = usize::MAX;
        }
        Ok(())
    }

    /// Makes an interval the current one; entries of it that were decoded before stay.
    fn enter_interval(&mut self, index: usize) -> Result<()> {
        if self.interval_index == index {
            return Ok(());
        }
        self.interval_index = usize::MAX;
        let entered = match self.block.as_deref() {
            Some(Block::Keys(keys)) => keys.enter(index, &mut self.interval),
            _ => None,
        };
        entered.ok_or_else(|| self.segment.damaged(self.block_index, "entries do not decode"))?;
        self.interval_index = index;
        Ok(())
    }

    fn decode_first(&mut self) -> Result<()> {
        if self.interval.len() == 0 { self.decode_more(false) } else { Ok(()) }
    }

    /// Decodes the next entry of the interval, or all that are left.
    fn decode_more(&mut self, all: bool) -> Result<()> {
        let decoded = match self.block.as_deref() {
            Some(Block::Keys(keys)) if all => keys.decode_rest(&mut self.interval),
            Some(Block::Keys(keys)) => keys.decode_next(&mut self.interval),
            _ => None,
        };
        if decoded.is_none() {
            self.interval_index = usize::MAX;
            return Err(self.segment.damaged(self.block_index, "entries do not decode"));
        }
        Ok(())
    }
}
