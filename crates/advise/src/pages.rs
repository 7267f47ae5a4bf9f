//! PostgreSQL's placement of tuples on pages.

/// A page, its header, a line pointer.
const PAGE_BYTES: u64 = 8192;
const HEADER_BYTES: u64 = 24;
const POINTER_BYTES: u64 = 4;
/// The granularity of the free space map.
const ROOM_BYTES: usize = 32;
const ROOMS: usize = PAGE_BYTES as usize / ROOM_BYTES;
/// A B-tree that grows at its right end leaves its pages nine tenths full; each has a special space and repeats one key.
const LEAF_BYTES: u64 = (PAGE_BYTES - HEADER_BYTES - 16) * 9 / 10;
/// An index tuple's header.
const INDEX_HEADER_BYTES: u64 = 8;

/// Tuples and their line pointers begin at multiples of this.
pub fn aligned(bytes: u64) -> u64 {
    bytes.next_multiple_of(8)
}

/// A heap that is filled from empty.
#[derive(Clone)]
pub struct Heap {
    pages: u64,
    /// Room in the last page.
    room: u64,
    /// Earlier pages, by their free space.
    left: [u32; ROOMS],
}

impl Default for Heap {
    fn default() -> Heap {
        Heap { pages: 0, room: 0, left: [0; ROOMS] }
    }
}

impl Heap {
    /// A tuple of `bytes`, header included. Where it does not fit on the last page, an earlier page takes it if one can, as with
    /// the free space map.
    pub fn push(&mut self, bytes: u64) {
        let needed = aligned(bytes) + POINTER_BYTES;
        if needed > self.room {
            self.left[(self.room as usize / ROOM_BYTES).min(ROOMS - 1)] += 1;
            let first = (needed as usize).div_ceil(ROOM_BYTES);
            match (first..ROOMS).find(|room| self.left[*room] > 0) {
                Some(room) => {
                    self.left[room] -= 1;
                    self.room = (room * ROOM_BYTES) as u64;
                }
                None => {
                    self.pages += 1;
                    self.room = PAGE_BYTES - HEADER_BYTES;
                }
            }
        }
        self.room = self.room.saturating_sub(needed);
    }

    /// Bytes of its pages.
    pub fn bytes(&self) -> u64 {
        self.pages * PAGE_BYTES
    }
}

/// A B-tree of ascending keys of `key_bytes` each.
pub fn btree_bytes(entries: f64, key_bytes: f64) -> f64 {
    let entry = (aligned((INDEX_HEADER_BYTES as f64 + key_bytes).ceil() as u64) + POINTER_BYTES) as f64;
    let leaves = (entries * entry / LEAF_BYTES as f64).ceil();
    // The meta page; inner pages have an entry a leaf.
    let inner = if leaves > 1.0 { (leaves * entry / LEAF_BYTES as f64).ceil() } else { 0.0 };
    (1.0 + leaves + inner) * PAGE_BYTES as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_chunks_fill_a_page_and_small_ones_go_into_gaps() {
        let mut heap = Heap::default();
        (0..40).for_each(|_| heap.push(2032));
        assert_eq!(heap.bytes(), 10 * 8192);
        let mut heap = Heap::default();
        // Two of 3000 leave 2160 bytes, which a tuple of 2000 takes.
        (0..10).for_each(|_| [3000, 3000, 3000, 2000].into_iter().for_each(|bytes| heap.push(bytes)));
        assert!(heap.bytes() <= 17 * 8192, "{}", heap.bytes() / 8192);
    }

    #[test]
    fn a_primary_key_of_bigint_is_as_large_as_in_postgresql() {
        // Measured: 2745 pages for a million rows in order.
        let pages = btree_bytes(1e6, 8.0) / 8192.0;
        assert!((pages / 2745.0 - 1.0).abs() < 0.02, "{pages}");
    }
}
