//! Searching sorted keys by eight bytes of each, side by side: a search touches few cache lines, and whole keys only where these
//! are equal.

use std::cmp::Ordering;

use super::block::shared_prefix;

/// The first eight bytes of each key after the common beginning, as numbers of the same order.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    common: Box<[u8]>,
    words: Box<[u64]>,
}

impl Heads {
    /// Of the keys `get(0..count)`, in ascending order.
    pub fn new<'a>(count: usize, get: impl Fn(usize) -> &'a [u8]) -> Heads {
        if count == 0 {
            return Heads::default();
        }
        let (first, last) = (get(0), get(count - 1));
        let common = &first[..shared_prefix(first, last)];
        // Damaged keys may be out of order: then the search finds a wrong place, as it would in any case.
        let words = (0..count).map(|i| head(get(i).get(common.len()..).unwrap_or_default())).collect();
        Heads { common: common.into(), words }
    }

    /// The first index for which `before` is false, where `before(i)` says whether key `i` sorts before `key` (or is equal to it, if the
    /// caller counts that as before).
    pub fn partition_point(&self, key: &[u8], before: impl Fn(usize) -> bool) -> usize {
        match key.get(..self.common.len()).unwrap_or(key).cmp(&self.common) {
            Ordering::Less => 0,
            Ordering::Greater => self.words.len(),
            Ordering::Equal => {
                let head = head(&key[self.common.len()..]);
                let low = self.words.partition_point(|&word| word < head);
                let equal = self.words[low..].partition_point(|&word| word == head);
                low + crate::layout::words::partition_point(equal, |i| before(low + i))
            }
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.common.len() + self.words.len() * 8
    }
}

/// The first eight bytes as a number of the same order, short ones filled with zeros.
fn head(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    let length = bytes.len().min(8);
    word[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_search_finds_the_entries_of_a_full_key_search() {
        let sets: [&[&str]; 4] = [
            &["customer/a", "customer/a\0", "customer/aaaaaaaa", "customer/aaaaaaaab", "customer/b", "customer/bb"],
            &["", "a", "ab"],
            &["only"],
            &[],
        ];
        for keys in sets {
            let heads = Heads::new(keys.len(), |i| keys[i].as_bytes());
            for key in sets.concat().into_iter().chain(["cust", "customer/", "customer/aa", "d", "\0"]) {
                for equal_is_before in [false, true] {
                    let before = |i: usize| keys[i] < key || (equal_is_before && keys[i] == key);
                    let expected = (0..keys.len()).filter(|&i| before(i)).count();
                    assert_eq!(heads.partition_point(key.as_bytes(), before), expected, "{key} in {keys:?}");
                }
            }
        }
    }
}
