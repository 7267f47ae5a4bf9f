//! The hash of filters and distinct estimates. Part of the on-disk format: a test holds it to known values.

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
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    fold(state ^ u64::from_le_bytes(last), K1 ^ K0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_a_format() {
        assert_eq!(hash_bytes(b""), 1_233_057_930_238_600_590);
        assert_eq!(hash_bytes(b"melba toast, sliced thin"), 0x2B2C865AA0A0FA7B);
        assert_eq!(hash_word(1), 0x38F94C439AC36242);
    }
}
