//! Descriptors: an object opened by `lo_open`, with a position, until it is closed or its transaction ends.

use melba_engine::{ReadView, ViewPin};
use melba_types::{Oid, Result, err};

use super::access::Sight;
use super::extent::Extent;
use super::{LargeObjects, SIZE_MAX};

/// An open object.
pub struct Descriptor {
    pub oid: Oid,
    pub position: i64,
    /// Opened for writing: reads and writes the newest state. Others read with the view of the statement that opened them.
    pub writable: bool,
    /// Counted over the transaction.
    pub(super) number: u64,
    view: Option<(ReadView, ViewPin)>,
    /// The extent that was read last, for readers of a snapshot: it never changes.
    pub(super) last_read: Option<(u64, Option<Extent>)>,
}

impl Descriptor {
    pub fn sight(&self) -> Sight {
        self.view.as_ref().map_or(Sight::Newest, |(view, _)| Sight::Snapshot(*view))
    }

    /// Moves the position; `size` is called when it counts from the end.
    ///
    /// # Errors
    /// 22023 for an unknown `whence` and for a target outside of an object's limits.
    pub fn seek(position: i64, offset: i64, whence: i32, size: impl FnOnce() -> Result<i64>) -> Result<i64> {
        let base = match whence {
            0 => 0,
            1 => position,
            2 => size()?,
            _ => return Err(err!(INVALID_PARAMETER_VALUE, "invalid whence setting: {whence}")),
        };
        let target = base.wrapping_add(offset);
        if !(0..=SIZE_MAX).contains(&target) {
            return Err(err!(INVALID_PARAMETER_VALUE, "invalid large object seek target: {target}"));
        }
        Ok(target)
    }
}

impl LargeObjects {
    /// Opens an object: the lowest free number.
    pub fn open(&mut self, oid: Oid, view: Option<(ReadView, ViewPin)>) -> i32 {
        let descriptor = Descriptor { oid, position: 0, writable: view.is_none(), number: self.opened, view, last_read: None };
        self.opened += 1;
        let at = self.descriptors.iter().position(Option::is_none).unwrap_or_else(|| {
            self.descriptors.push(None);
            self.descriptors.len() - 1
        });
        self.descriptors[at] = Some(descriptor);
        at as i32
    }

    /// # Errors
    /// 42704 when there is none of this number.
    pub fn descriptor(&mut self, number: i32) -> Result<&mut Descriptor> {
        let slot = usize::try_from(number).ok().and_then(|at| self.descriptors.get_mut(at));
        slot.and_then(Option::as_mut).ok_or_else(|| err!(UNDEFINED_OBJECT, "invalid large-object descriptor: {number}"))
    }

    /// # Errors
    /// 42704 when there is none of this number.
    pub fn close(&mut self, number: i32) -> Result<()> {
        self.descriptor(number)?;
        self.descriptors[number as usize] = None;
        Ok(())
    }

    /// Closes every descriptor of an object that is removed.
    pub fn close_all_of(&mut self, oid: Oid) {
        for slot in &mut self.descriptors {
            if slot.as_ref().is_some_and(|d| d.oid == oid) {
                *slot = None;
            }
        }
    }
}
