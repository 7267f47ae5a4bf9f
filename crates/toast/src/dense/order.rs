//! Similar values side by side: the order of values in blocks.
//!
//! Values are sketched by MinHash (Broder, "On the resemblance and containment of documents", 1997) over the hashes of their chunks: two
//! sketches agree in about the share of places that the values share of their chunks. A chain is built from each value to the
//! most similar one that is left.

use std::collections::HashMap;

use super::chunks::{ContentChunk, mix};

/// Numbers of a sketch.
const SKETCH: usize = 8;
/// Values considered for each number of a sketch.
const LOOKED_AT_MAX: usize = 32;

type Sketch = [u64; SKETCH];

/// The least hash of a value's chunks, by each of several hash functions.
pub fn sketch(chunks: &[ContentChunk]) -> Sketch {
    let mut sketch = [u64::MAX; SKETCH];
    for chunk in chunks {
        for (which, least) in sketch.iter_mut().enumerate() {
            *least = (*least).min(mix(chunk.hash ^ (which as u64) << 56));
        }
    }
    sketch
}

/// The numbers of the values in an order in which similar ones are near each other.
pub fn by_similarity(sketches: &[Sketch]) -> Vec<u32> {
    let mut alike: Vec<HashMap<u64, Vec<u32>>> = vec![HashMap::new(); SKETCH];
    // Backwards, so that the first ones are at the lists' ends, where they are taken from.
    for (value, sketch) in sketches.iter().enumerate().rev() {
        for (alike, number) in alike.iter_mut().zip(sketch) {
            alike.entry(*number).or_default().push(value as u32);
        }
    }
    let mut is_placed = vec![false; sketches.len()];
    let mut order = Vec::with_capacity(sketches.len());
    let mut first_left = 0;
    let mut votes: HashMap<u32, u32> = HashMap::new();
    let mut current: Option<usize> = None;
    while order.len() < sketches.len() {
        votes.clear();
        for (alike, number) in alike.iter_mut().zip(current.iter().flat_map(|at| &sketches[*at])) {
            let Some(list) = alike.get_mut(number) else { continue };
            while list.last().is_some_and(|value| is_placed[*value as usize]) {
                list.pop();
            }
            let left = list.iter().rev().filter(|value| !is_placed[**value as usize]);
            left.take(LOOKED_AT_MAX).for_each(|value| *votes.entry(*value).or_default() += 1);
        }
        let most_similar = votes.iter().max_by_key(|(value, votes)| (**votes, std::cmp::Reverse(**value)));
        let next = most_similar.map_or_else(
            || {
                first_left += is_placed[first_left..].iter().position(|placed| !placed).unwrap_or(0);
                first_left
            },
            |(value, _)| *value as usize,
        );
        is_placed[next] = true;
        order.push(next as u32);
        current = Some(next);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_values_are_neighbours() {
        // Three families that come in turns; a member shares nine tenths of its chunks with its family.
        let chunk = |hash: u64| ContentChunk { end: 0, bytes: 0, hash: mix(hash) };
        let value = |n: u64| (0..100).map(|i| chunk(if i < 90 { n % 3 * 1000 + i } else { n * 10_000 + i })).collect::<Vec<_>>();
        let sketches: Vec<Sketch> = (0..60).map(|n| sketch(&value(n))).collect();
        let order = by_similarity(&sketches);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..60).collect::<Vec<_>>());
        let breaks = order.windows(2).filter(|pair| pair[0] % 3 != pair[1] % 3).count();
        assert!(breaks <= 4, "{breaks}");
        assert!(by_similarity(&[]).is_empty());
    }
}
