//! The hash of filters and distinct estimates. Part of the on-disk format: a test checks it against known values.

const K0: u64 = 0xA076_1D64_78BD_642F;
const K1: u64 = 0xE703_7ED1_A0B4_28DB;

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[inline]
pub(crate) fn hash_word(value: u64) -> u64 {
    fold(value ^ K0, K1)
}

#[inline]
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut state = K0 ^ bytes.len() as u64;
    let (words, rest) = bytes.as_chunks::<8>();
    for &word in words {
        state = fold(state ^ u64::from_le_bytes(word), K1);
    }
    // The bytes after the last whole word, the lowest first: the end of a word that overlaps the one before, where there is one.
    let last = match (bytes.last_chunk::<8>(), rest.len()) {
        (_, 0) => 0,
        (Some(word), n) => u64::from_le_bytes(*word) >> (64 - 8 * n),
        (None, _) => load_short(rest),
    };
    fold(state ^ last, K1 ^ K0)
}

/// Less than eight bytes as a word, the first lowest.
#[inline]
pub(crate) fn load_short(bytes: &[u8]) -> u64 {
    let end = bytes.len();
    match *bytes {
        [] => 0,
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c] => u64::from(u32::from_le_bytes([a, b, c, 0])),
        [a, b, c, d, ..] => {
            let (low, high) =
                (u32::from_le_bytes([a, b, c, d]), [bytes[end - 4], bytes[end - 3], bytes[end - 2], bytes[end - 1]]);
            u64::from(low) | u64::from(u32::from_le_bytes(high)) << (8 * (end - 4))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_a_format() {
        assert_eq!(hash_bytes(b""), 1_233_057_930_238_600_590);
        assert_eq!(hash_bytes(b"melba toast, sliced thin"), 0x2B2C865AA0A0FA7B);
        assert_eq!(hash_word(1), 0x38F94C439AC36242);
        let bytes: Vec<u8> = (1..=40).collect();
        for n in 0..=bytes.len() {
            let mut padded = bytes[n / 8 * 8..n].to_vec();
            padded.resize(8, 0);
            let last = padded.first_chunk().map_or(0, |c| u64::from_le_bytes(*c));
            let words = bytes[..n / 8 * 8].as_chunks::<8>().0.iter();
            let state = words.fold(K0 ^ n as u64, |state, word| fold(state ^ u64::from_le_bytes(*word), K1));
            assert_eq!(hash_bytes(&bytes[..n]), fold(state ^ last, K1 ^ K0), "{n} bytes");
        }
    }
}
