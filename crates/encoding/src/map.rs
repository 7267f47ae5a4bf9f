//! The mapping of an encoding, made when it is first used: about 0.3 MB for the largest.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use encoding_rs::Encoding as Base;

use crate::forms::Forms;
use crate::names::Encoding;

/// Where PostgreSQL's mapping is not the one that the rules below make of encoding_rs's: encoding, bytes, code point, direction; no
/// code point or no bytes (`-`): no equivalent.
const DIFFERENCES: &str = include_str!("../data/differences.tsv");

/// Both directions, by a sequence's bytes as a number and by code point.
pub(crate) struct Map {
    to_unicode: Vec<(u32, u32)>,
    from_unicode: Vec<(u32, u32)>,
    /// GB18030 has a sequence of four bytes for everything else.
    rest: Option<&'static Base>,
}

/// `None`: there is no conversion.
pub(crate) fn of(encoding: Encoding) -> Option<&'static Map> {
    static MAPS: [OnceLock<Map>; Encoding::COUNT] = [const { OnceLock::new() }; Encoding::COUNT];
    let base = encoding.base()?;
    Some(MAPS[encoding.index()].get_or_init(|| Map::new(encoding, base)))
}

fn number(sequence: &[u8]) -> u32 {
    sequence.iter().fold(0, |n, b| n << 8 | u32::from(*b))
}

fn find(pairs: &[(u32, u32)], key: u32) -> Option<u32> {
    pairs.binary_search_by_key(&key, |(k, _)| *k).ok().map(|at| pairs[at].1)
}

impl Map {
    fn new(encoding: Encoding, base: &'static Base) -> Map {
        let mut decode: BTreeMap<u32, u32> = sequences(encoding.forms()).filter_map(|s| pair(encoding, base, &s)).collect();
        let mut encode = HashMap::new();
        let differences = DIFFERENCES.lines().filter_map(difference).filter(|d| d.encoding == encoding.name());
        let (decoding, encoding_only): (Vec<_>, Vec<_>) = differences.partition(|d| d.direction != "encode");
        for d in decoding {
            match (d.sequence, d.code) {
                (Some(sequence), Some(code)) => drop(decode.insert(sequence, code)),
                (Some(sequence), None) => drop(decode.remove(&sequence)),
                _ => {}
            }
        }
        // Of several sequences for a character the first is sent, of SJIS the last: IBM's extensions rather than NEC's.
        for (sequence, code) in &decode {
            if encoding.name() == "SJIS" {
                encode.insert(*code, *sequence);
            } else {
                encode.entry(*code).or_insert(*sequence);
            }
        }
        for d in encoding_only {
            match (d.sequence, d.code) {
                (Some(sequence), Some(code)) => drop(encode.insert(code, sequence)),
                (None, Some(code)) => drop(encode.remove(&code)),
                _ => {}
            }
        }
        let mut from_unicode: Vec<_> = encode.into_iter().collect();
        from_unicode.sort_unstable();
        let rest = (encoding.forms() == Forms::Gb18030).then_some(base);
        Map { to_unicode: decode.into_iter().collect(), from_unicode, rest }
    }

    pub fn decode(&self, sequence: &[u8]) -> Option<char> {
        if let Some(code) = find(&self.to_unicode, number(sequence)) {
            return char::from_u32(code);
        }
        single(self.rest.filter(|_| sequence.len() == 4)?, sequence)
    }

    /// Appends a character; false if the encoding lacks it.
    pub fn encode(&self, c: char, out: &mut Vec<u8>) -> bool {
        if let Some(sequence) = find(&self.from_unicode, c as u32) {
            let bytes = sequence.to_be_bytes();
            out.extend_from_slice(&bytes[(sequence.leading_zeros() / 8) as usize..]);
            return true;
        }
        let Some(base) = self.rest else { return false };
        let text = c.to_string();
        let (bytes, _, unmapped) = base.encode(&text);
        out.extend_from_slice(&bytes);
        !unmapped
    }
}

/// Sequences that may have a separate entry: all but GB18030's of four bytes.
fn sequences(forms: Forms) -> impl Iterator<Item = Vec<u8>> {
    let singles = (0x80..=0xff).map(|a| vec![a]);
    let doubles = (0x80..=0xff).flat_map(|a| (0x30..=0xff).map(move |b| vec![a, b]));
    let triples = (0xa1..=0xfe).flat_map(|a| (0xa1..=0xfe).map(move |b| vec![0x8f, a, b]));
    let valid = move |s: &Vec<u8>| forms.character(s) == Some(s.len());
    let (wide, japanese) = (forms != Forms::Single, forms == Forms::EucJp);
    singles.chain(doubles.filter(move |_| wide)).chain(triples.filter(move |_| japanese)).filter(valid)
}

fn single(base: &'static Base, sequence: &[u8]) -> Option<char> {
    let text = base.decode_without_bom_handling_and_without_replacement(sequence)?;
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none())
}

/// A sequence with its character. encoding_rs follows the web, which reads more than PostgreSQL does.
fn pair(encoding: Encoding, base: &'static Base, sequence: &[u8]) -> Option<(u32, u32)> {
    let number = number(sequence);
    let is_private = |code: &u32| (0xe000..=0xf8ff).contains(code);
    let code = single(base, sequence).map(|c| c as u32);
    let code = match (encoding.name(), sequence) {
        // ISO 8859 has control characters where Windows has characters.
        ("LATIN1" | "LATIN5", _) => Some(number),
        (name, _) if name.starts_with("WIN") && name != "WIN866" => code.filter(|code| !(0x80..=0x9f).contains(code)),
        ("SJIS", _) => code.filter(|code| !is_private(code) && *code != 0x80),
        ("GBK" | "EUC_CN", _) => code.filter(|code| !is_private(code) && sequence.len() == 2),
        ("EUC_JP", [0xf9..=0xff, _]) | ("BIG5", [0..0xa1 | 0xfa..=0xff, _]) | ("GB18030", [_]) => None,
        ("BIG5", [0xc6, 0xa1..=0xff] | [0xc7..0xc9, _]) => None,
        ("UHC", [0xc9, b @ 0xa1..=0xfe]) => Some(0xe000 + u32::from(b - 0xa1)),
        ("UHC", [0xfe, b @ 0xa1..=0xfe]) => Some(0xe05e + u32::from(b - 0xa1)),
        _ => code,
    };
    Some((number, code?))
}

struct Difference {
    encoding: &'static str,
    sequence: Option<u32>,
    code: Option<u32>,
    direction: &'static str,
}

fn difference(line: &'static str) -> Option<Difference> {
    let mut fields = line.split('\t');
    let hex = |text: &str| u32::from_str_radix(text, 16).ok();
    Some(Difference {
        encoding: fields.next()?,
        sequence: hex(fields.next()?),
        code: hex(fields.next()?),
        direction: fields.next()?,
    })
}
