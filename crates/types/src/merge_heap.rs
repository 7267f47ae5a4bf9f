//! Finds the next of several sorted inputs.

/// Inputs by the keys that they are at, the least first; of equal keys, that of the input with the lower number.
///
/// Keys stay with the inputs: each change gets the function that finds them. Most comparisons are decided by eight bytes kept here.
#[derive(Default)]
pub struct MergeHeap(Vec<Top>);

/// An input's place in the heap.
#[derive(Clone, Copy)]
struct Top {
    /// Bytes of its key, of which equal ones say nothing.
    head: u64,
    input: u32,
}

/// Eight bytes of a key from `from` on, big-endian; zeros where the key has ended.
#[inline]
pub fn head(key: &[u8], from: usize) -> u64 {
    let rest = key.get(from..).unwrap_or_default();
    match rest.first_chunk::<8>() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut padded = [0; 8];
            padded[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(padded)
        }
    }
}

impl MergeHeap {
    /// All inputs by number, each with eight bytes of its key, big-endian, from where the keys of all may begin to differ; zeros
    /// where the key has ended.
    pub fn new<'a>(heads: impl Iterator<Item = (u32, u64)>, key: impl Fn(u32) -> &'a [u8]) -> MergeHeap {
        let mut heap = MergeHeap(heads.map(|(input, head)| Top { head, input }).collect());
        for at in (0..heap.0.len() / 2).rev() {
            heap.sift_down(at, &key);
        }
        heap
    }

    /// The input with the least key.
    #[inline]
    pub fn least(&self) -> Option<u32> {
        self.0.first().map(|top| top.input)
    }

    /// The input with the least key has moved to another key.
    #[inline]
    pub fn advance<'a>(&mut self, head: u64, key: impl Fn(u32) -> &'a [u8]) {
        if let Some(top) = self.0.first_mut() {
            top.head = head;
            self.sift_down(0, &key);
        }
    }

    /// The input with the least key has ended.
    pub fn remove<'a>(&mut self, key: impl Fn(u32) -> &'a [u8]) {
        if !self.0.is_empty() {
            self.0.swap_remove(0);
            self.sift_down(0, &key);
        }
    }

    /// The inputs that have not ended.
    pub fn inputs(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().map(|top| top.input)
    }

    fn sift_down<'a>(&mut self, mut at: usize, key: &impl Fn(u32) -> &'a [u8]) {
        let less =
            |a: Top, b: Top| a.head.cmp(&b.head).then_with(|| key(a.input).cmp(key(b.input))).then(a.input.cmp(&b.input)).is_lt();
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.0.len() && less(self.0[child], self.0[least]) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.0.swap(at, least);
            at = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_in_order_and_equal_ones_in_that_of_their_inputs() {
        let inputs = [vec!["b", "b", "d"], vec!["a", "abcdefghz", "b"], vec![], vec!["abcdefghi", "c"]];
        let mut at = [0; 4];
        let head = |key: &str| u64::from_be_bytes(std::array::from_fn(|i| key.as_bytes().get(i).copied().unwrap_or(0)));
        let key = |at: &[usize; 4], input: u32| inputs[input as usize][at[input as usize]].as_bytes();
        let heads = inputs.iter().enumerate().filter_map(|(i, keys)| Some((i as u32, head(keys.first()?))));
        let mut heap = MergeHeap::new(heads, |input| key(&at, input));
        let mut found = Vec::new();
        while let Some(input) = heap.least() {
            let keys = &inputs[input as usize];
            found.push((keys[at[input as usize]], input));
            at[input as usize] += 1;
            match keys.get(at[input as usize]) {
                Some(next) => heap.advance(head(next), |input| key(&at, input)),
                None => heap.remove(|input| key(&at, input)),
            }
        }
        let expected = [("a", 1), ("abcdefghi", 3), ("abcdefghz", 1), ("b", 0), ("b", 0), ("b", 1), ("c", 3), ("d", 0)];
        assert_eq!(found, expected);
        assert_eq!(heap.inputs().count(), 0);
    }
}
