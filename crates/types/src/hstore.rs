//! hstore: texts, or NULLs, by keys.
//!
//! ```text
//! u32 number of pairs; of each the key and the value, as u32 length and bytes, a NULL as length 0xffff_ffff (big-endian)
//! ```
//!
//! Pairs are in the order of their keys (`jsonb::compare_keys`: shorter first, then by bytes), each key once. PostgreSQL's binary
//! form is the same. These bytes are stored: the form must not change.

use crate::jsonb::compare_keys;
use crate::key::bytes::encode_bytes;
use crate::{Result, limits, sort_by};

/// A key and its value.
pub type Pair<'a> = (&'a str, Option<&'a str>);

const NULL: u32 = u32::MAX;

/// The value with these pairs, given in any order; the first of equal keys counts.
///
/// # Errors
/// Those of `limits::check_request`, when it is too large.
pub fn encode(mut pairs: Vec<Pair<'_>>) -> Result<Vec<u8>> {
    sort_by(&mut pairs, |a, b| compare_keys(a.0, b.0))?;
    pairs.dedup_by_key(|pair| pair.0);
    let bytes = pairs.iter().map(|(key, value)| 8 + key.len() + value.map_or(0, str::len)).sum::<usize>();
    limits::check_request(4 + bytes)?;
    let mut out = Vec::with_capacity(4 + bytes);
    out.extend_from_slice(&(pairs.len() as u32).to_be_bytes());
    for (key, value) in pairs {
        for part in [Some(key), value] {
            out.extend_from_slice(&part.map_or(NULL, |part| part.len() as u32).to_be_bytes());
            out.extend_from_slice(part.unwrap_or_default().as_bytes());
        }
    }
    Ok(out)
}

/// The pairs of a value in their order. Those behind a place that is damaged are missing.
pub fn pairs(bytes: &[u8]) -> impl Iterator<Item = Pair<'_>> {
    let mut rest = bytes.get(4..).unwrap_or_default();
    std::iter::from_fn(move || Some((part(&mut rest)??, part(&mut rest)?)))
}

/// Takes a length and as many bytes.
fn part<'a>(rest: &mut &'a [u8]) -> Option<Option<&'a str>> {
    let (length, behind) = rest.split_first_chunk::<4>()?;
    let length = u32::from_be_bytes(*length);
    let (text, behind) = behind.split_at_checked(if length == NULL { 0 } else { length as usize })?;
    *rest = behind;
    Some(if length == NULL { None } else { Some(std::str::from_utf8(text).ok()?) })
}

/// The sort key of a value, in the order of PostgreSQL's hstore_cmp: empty ones first; then by all keys and values behind each
/// other, the number of pairs, and the end of each part, parts that are not NULL first.
pub fn sort_key(bytes: &[u8], out: &mut Vec<u8>) {
    let (mut texts, mut ends, mut count) = (Vec::new(), Vec::new(), 0u32);
    for (key, value) in pairs(bytes) {
        for part in [Some(key), value] {
            texts.extend_from_slice(part.unwrap_or_default().as_bytes());
            ends.extend_from_slice(&(texts.len() as u32).to_be_bytes());
            ends.push(u8::from(part.is_none()));
        }
        count += 1;
    }
    if count == 0 {
        return;
    }
    encode_bytes(&texts, out);
    out.extend_from_slice(&count.to_be_bytes());
    out.extend_from_slice(&ends);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_sorted_and_the_first_of_equal_keys_is_kept() {
        let bytes = encode(vec![("bb", Some("1")), ("c", None), ("a", Some("")), ("c", Some("2"))]).unwrap();
        assert_eq!(pairs(&bytes).collect::<Vec<_>>(), [("a", Some("")), ("c", None), ("bb", Some("1"))]);
    }

    /// The bytes are on disk.
    #[test]
    fn form_of_bytes() {
        let bytes = encode(vec![("k", Some("val")), ("n", None)]).unwrap();
        assert_eq!(bytes, b"\0\0\0\x02\0\0\0\x01k\0\0\0\x03val\0\0\0\x01n\xff\xff\xff\xff");
        assert_eq!(encode(Vec::new()).unwrap(), [0; 4]);
    }

    #[test]
    fn damaged_bytes_have_fewer_pairs() {
        let bytes = encode(vec![("k", Some("val")), ("n", None)]).unwrap();
        for end in 0..bytes.len() {
            assert!(pairs(&bytes[..end]).count() < 2);
        }
    }

    #[test]
    fn order_is_that_of_the_texts_behind_each_other() {
        let ascending: [Vec<Pair<'_>>; 6] = [
            vec![],
            vec![("", Some(""))],
            vec![("a", Some("b"))],
            vec![("ab", Some(""))],
            vec![("ab", None)],
            vec![("a", Some("b")), ("c", Some(""))],
        ];
        let keys = ascending.map(|pairs| {
            let mut key = Vec::new();
            sort_key(&encode(pairs).unwrap(), &mut key);
            key
        });
        assert!(keys.is_sorted_by(|a, b| a < b));
    }
}
