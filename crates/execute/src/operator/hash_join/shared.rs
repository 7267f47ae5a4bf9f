//! The table of a hash join that the members of a team read.

use std::sync::Arc;

use melba_types::Bitmap;
use parking_lot::Mutex;

use super::table::Built;

pub(super) struct Shared {
    pub built: Arc<Built>,
    ended: Mutex<Ended>,
}

/// The partners that members have found in the parts that they have ended.
struct Ended {
    parts: usize,
    /// Rows of the table that have found a partner.
    matched: Bitmap,
}

impl Shared {
    pub fn new(built: Arc<Built>, unmatched: Bitmap) -> Shared {
        Shared { built, ended: Mutex::new(Ended { parts: 0, matched: unmatched }) }
    }

    /// A member has ended a part, and has found partners for `matched`. After the last of `count` parts: the union of all members.
    pub fn end_part(&self, matched: &Bitmap, count: usize) -> Option<Bitmap> {
        let mut ended = self.ended.lock();
        ended.matched.unite(matched);
        ended.parts += 1;
        (ended.parts == count).then(|| std::mem::take(&mut ended.matched))
    }
}
