//! Content-defined chunks: a value is cut where the hash of its last bytes says so, so that content that two values share is cut in the
//! same places in both, whatever precedes it. The rolling hash is Gear (Xia et al., "Ddelta: A deduplication-inspired fast delta
//! compression approach", 2014): one shift, one addition and one look-up a byte.

/// A piece of content: where it ends in its value, how long it is, and the hash of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentChunk {
    pub end: u32,
    pub bytes: u32,
    pub hash: u64,
}

/// A random number for each byte.
const GEAR: [u64; 256] = gear();

const fn gear() -> [u64; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        table[at] = mix(at as u64 + 1);
        at += 1;
    }
    table
}

/// Spreads a number over all bits (the finalizer of SplitMix64).
pub const fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Appends the chunks of a value, of about `1 << bits` bytes each, at least a quarter and at most four times as many.
pub fn cut(value: &[u8], bits: u32, out: &mut Vec<ContentChunk>) {
    let (least, most) = (1 << (bits - 2), 4 << bits);
    // The highest bits depend on the most bytes.
    let mask = ((1u64 << bits) - 1) << (u64::BITS - bits);
    let (mut rolling, mut content, mut start) = (0u64, 0u64, 0);
    for (at, &byte) in value.iter().enumerate() {
        let random = GEAR[usize::from(byte)];
        rolling = (rolling << 1).wrapping_add(random);
        content = content.wrapping_add(random).wrapping_mul(0x0100_0000_01B3);
        let bytes = at + 1 - start;
        if (bytes >= least && rolling & mask == 0) || bytes == most {
            out.push(ContentChunk { end: at as u32 + 1, bytes: bytes as u32, hash: mix(content) });
            (content, start) = (0, at + 1);
        }
    }
    if start < value.len() {
        out.push(ContentChunk { end: value.len() as u32, bytes: (value.len() - start) as u32, hash: mix(content) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_content_is_cut_alike_wherever_it_lies() {
        let shared: Vec<u8> = (0..20_000u64).map(|i| mix(i) as u8).collect();
        let hashes = |value: &[u8]| -> Vec<u64> {
            let mut chunks = Vec::new();
            cut(value, 6, &mut chunks);
            assert_eq!(chunks.last().map_or(0, |c| c.end as usize), value.len());
            chunks.iter().map(|c| c.hash).collect()
        };
        let (a, b) = (hashes(&shared), hashes(&[b"something before ", &shared[..]].concat()));
        let common = a.iter().filter(|hash| b.contains(hash)).count();
        assert!(common + 2 >= a.len(), "{common} of {} chunks", a.len());
        assert!((100..1300).contains(&a.len()));
        assert!(hashes(b"").is_empty());
    }
}
