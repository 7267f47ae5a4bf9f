//! Index entries: memcomparable key bytes followed by the row id, big-endian.

use std::borrow::Borrow;
use std::cmp::Ordering;

use melba_types::RowId;

/// Bytes of the row id at the end of an index entry.
pub const ROW_ID_BYTES: usize = 8;

const INLINE_BYTES: usize = 22;

/// Bytes that `head` returns.
pub const HEAD_BYTES: usize = 8;

/// The eight bytes of an entry from `at` on, zeros where it has ended.
#[inline]
pub fn head(entry: &[u8], at: usize) -> u64 {
    let rest = entry.get(at..).unwrap_or_default();
    match rest.first_chunk::<HEAD_BYTES>() {
        Some(head) => u64::from_be_bytes(*head),
        None => rest.iter().enumerate().fold(0, |head, (i, byte)| head | u64::from(*byte) << (56 - 8 * i)),
    }
}

/// An index entry, ordered by its bytes. Short ones (a bigint key) need no allocation.
#[derive(Clone)]
pub enum KeyBytes {
    Inline(u8, [u8; INLINE_BYTES]),
    Heap(Box<[u8]>),
}

impl KeyBytes {
    pub fn new(bytes: &[u8]) -> KeyBytes {
        if bytes.len() <= INLINE_BYTES {
            let mut data = [0; INLINE_BYTES];
            data[..bytes.len()].copy_from_slice(bytes);
            KeyBytes::Inline(bytes.len() as u8, data)
        } else {
            KeyBytes::Heap(bytes.into())
        }
    }

    /// The entry of `row` under `key`.
    pub fn entry(key: &[u8], row: RowId) -> KeyBytes {
        let len = key.len() + ROW_ID_BYTES;
        let row = row.0.to_be_bytes();
        if len <= INLINE_BYTES {
            let mut data = [0; INLINE_BYTES];
            data[..key.len()].copy_from_slice(key);
            data[key.len()..len].copy_from_slice(&row);
            KeyBytes::Inline(len as u8, data)
        } else {
            let mut data = Vec::with_capacity(len);
            data.extend_from_slice(key);
            data.extend_from_slice(&row);
            KeyBytes::Heap(data.into())
        }
    }

    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        match self {
            KeyBytes::Inline(len, data) => &data[..*len as usize],
            KeyBytes::Heap(data) => data,
        }
    }

    /// Bytes beyond the value itself.
    pub fn heap_bytes(&self) -> usize {
        match self {
            KeyBytes::Inline(..) => 0,
            KeyBytes::Heap(data) => data.len(),
        }
    }
}

/// Splits an entry into key and row id; `None` when it is too short to be one.
#[inline]
pub fn split_entry(entry: &[u8]) -> Option<(&[u8], RowId)> {
    let (key, row) = entry.split_last_chunk::<ROW_ID_BYTES>()?;
    Some((key, RowId(u64::from_be_bytes(*row))))
}

impl Borrow<[u8]> for KeyBytes {
    fn borrow(&self) -> &[u8] {
        self.as_slice()
    }
}

impl PartialEq for KeyBytes {
    fn eq(&self, other: &KeyBytes) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for KeyBytes {}

impl PartialOrd for KeyBytes {
    fn partial_cmp(&self, other: &KeyBytes) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KeyBytes {
    #[inline]
    fn cmp(&self, other: &KeyBytes) -> Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl std::fmt::Debug for KeyBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:02x?}", self.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_order_by_key_then_row_in_any_representation() {
        assert_eq!(std::mem::size_of::<KeyBytes>(), 24);
        let long = [b'k'; 40];
        let entries = [
            KeyBytes::entry(b"a", RowId(9)),
            KeyBytes::entry(b"b", RowId(1)),
            KeyBytes::entry(b"b", RowId(300)),
            KeyBytes::entry(&long, RowId(1)),
            KeyBytes::entry(&long, RowId(2)),
        ];
        assert!(entries.is_sorted());
        for entry in &entries {
            let (key, row) = split_entry(entry.as_slice()).expect("an entry");
            assert_eq!(&KeyBytes::entry(key, row), entry);
            assert_eq!(&KeyBytes::new(entry.as_slice()), entry);
        }
        assert!(split_entry(b"short").is_none());
    }
}
