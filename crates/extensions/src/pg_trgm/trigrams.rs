//! Trigrams: three characters in a row of a word in lower case, with two spaces before it and one behind.
//!
//! A trigram of one-byte characters is those bytes, any other the first three bytes of a hash.

use std::sync::LazyLock;

use melba_functions::text::case::upper;
use melba_types::case::lower;
use melba_types::{Result, bail, limits};

pub type Trigram = [u8; 3];

/// A trigram of a text.
#[derive(Clone, Copy, Debug)]
pub struct Occurrence {
    pub trigram: Trigram,
    /// It is the first of a word.
    pub starts_word: bool,
    /// It is the last.
    pub ends_word: bool,
}

/// A part of a text of which parts are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextPart {
    Char(char),
    /// Any characters, or none.
    Gap,
    /// The text begins or ends.
    Edge,
}

/// What becomes of a word before it is cut.
pub type Mapping = fn(&str) -> String;

/// One form of all characters that are equal when case is ignored in whatever way: the keys of an index serve `~~*` and `~*` too.
pub fn folded(word: &str) -> String {
    if word.is_ascii() {
        return word.to_ascii_lowercase();
    }
    // Unicode folds these to one, though their capitals are several characters.
    let one = |c| match c {
        '\u{fb05}' => '\u{fb06}',
        '\u{1fd3}' => '\u{390}',
        '\u{1fe3}' => '\u{3b0}',
        c => c,
    };
    lower(&upper(&lower(word))).chars().map(one).collect()
}

/// Letters and decimal digits: what the C library calls alphanumeric.
pub fn is_word_char(c: char) -> bool {
    static RANGES: LazyLock<Vec<(char, char)>> =
        LazyLock::new(|| melba_regexp::characters("[\\p{Alphabetic}\\p{Nd}]").unwrap_or_default());
    if c.is_ascii() {
        return c.is_ascii_alphanumeric();
    }
    let after = RANGES.partition_point(|range| range.0 <= c);
    after > 0 && c <= RANGES[after - 1].1
}

/// Room for `unit` bytes for each of a text's trigrams, of which there is one more than bytes at most.
///
/// # Errors
/// 54000 for a text that is longer than PostgreSQL's array of trigrams allows, and those of `check_request`.
fn check_size(text: &str, unit: usize) -> Result<()> {
    const ALLOCATED_MAX: usize = 0x3fff_ffff;
    if text.len() / 2 >= ALLOCATED_MAX / (3 * size_of::<Trigram>()) {
        bail!(PROGRAM_LIMIT_EXCEEDED, "out of memory");
    }
    limits::check_request((text.len() + 1) * unit)
}

/// The trigrams of a text in their order.
///
/// # Errors
/// 54000 for a text that is too long, and those of `check`.
pub fn occurrences(text: &str) -> Result<Vec<Occurrence>> {
    check_size(text, size_of::<Occurrence>())?;
    let mut all = Vec::with_capacity(text.len() + 1);
    each_word(text, lower, |trigrams| {
        let last = trigrams.len() - 1;
        all.extend(trigrams.iter().enumerate().map(|(at, trigram)| Occurrence {
            trigram: *trigram,
            starts_word: at == 0,
            ends_word: at == last,
        }));
    })?;
    Ok(all)
}

/// The trigrams of a text, each once, in the order of PostgreSQL's sets: bytes are signed there.
///
/// # Errors
/// 54000 for a text that is too long, and those of `check`.
pub fn trigrams(text: &str, mapping: Mapping) -> Result<Vec<Trigram>> {
    check_size(text, size_of::<Trigram>())?;
    let mut all = Vec::with_capacity(text.len() + 1);
    each_word(text, mapping, |trigrams| all.extend_from_slice(trigrams))?;
    Ok(distinct(all))
}

pub fn signed(trigram: Trigram) -> [i8; 3] {
    trigram.map(|byte| byte as i8)
}

fn distinct(mut all: Vec<Trigram>) -> Vec<Trigram> {
    all.sort_unstable_by_key(|trigram| signed(*trigram));
    all.dedup();
    all
}

fn each_word(text: &str, mapping: Mapping, mut each: impl FnMut(&[Trigram])) -> Result<()> {
    let (mut padded, mut found) = (String::new(), Vec::new());
    for word in text.split(|c| !is_word_char(c)).filter(|word| !word.is_empty()) {
        limits::tick()?;
        // Its trigrams, and the word that is mapped.
        limits::check_request(word.len() * (size_of::<Trigram>() + 1))?;
        padded.clear();
        padded.push_str("  ");
        padded.push_str(&mapping(word));
        padded.push(' ');
        found.clear();
        cut(&padded, &mut found);
        each(&found);
    }
    Ok(())
}

/// The trigrams that every text has which consists of these parts.
pub fn trigrams_of_parts(parts: impl IntoIterator<Item = TextPart>) -> Vec<Trigram> {
    let (mut all, mut word) = (Vec::new(), String::new());
    // The last part before a word; what is before the parts is unknown.
    let mut before = TextPart::Gap;
    for part in parts.into_iter().chain([TextPart::Gap]) {
        if let TextPart::Char(c) = part
            && is_word_char(c)
        {
            if word.is_empty() && before != TextPart::Gap {
                word.push_str("  ");
            }
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            if part != TextPart::Gap {
                word.push(' ');
            }
            cut(&folded(&word), &mut all);
            word.clear();
        }
        before = part;
    }
    distinct(all)
}

/// Three characters in a row, as often as there are.
fn cut(text: &str, out: &mut Vec<Trigram>) {
    if text.is_ascii() {
        out.extend(text.as_bytes().windows(3).map(|bytes| [bytes[0], bytes[1], bytes[2]]));
        return;
    }
    let starts = text.char_indices().map(|(at, _)| at);
    let ends = text.char_indices().skip(2).map(|(at, c)| at + c.len_utf8());
    out.extend(starts.zip(ends).map(|(start, end)| compact(&text.as_bytes()[start..end])));
}

fn compact(bytes: &[u8]) -> Trigram {
    if let [a, b, c] = bytes {
        return [*a, *b, *c];
    }
    let [a, b, c, _] = legacy_crc32(bytes).to_le_bytes();
    [a, b, c]
}

/// PostgreSQL's checksum of old: it reads the table of the reflected polynomial from the other end.
fn legacy_crc32(bytes: &[u8]) -> u32 {
    static TABLE: LazyLock<[u32; 256]> = LazyLock::new(|| {
        const POLYNOMIAL: u32 = 0xedb8_8320;
        let halved = |value: u32| if value & 1 == 1 { (value >> 1) ^ POLYNOMIAL } else { value >> 1 };
        std::array::from_fn(|at| (0..8).fold(at as u32, |value, _| halved(value)))
    });
    let step = |crc: u32, byte: &u8| TABLE[((crc >> 24) as u8 ^ byte) as usize] ^ (crc << 8);
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(trigrams: &[Trigram]) -> String {
        trigrams.iter().map(|t| String::from_utf8_lossy(t).into_owned()).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn characters_of_several_bytes_are_hashed() {
        assert_eq!(trigrams("éa", lower).unwrap(), [[0xcf, 0x8a, 0x8e], [0xe6, 0x9b, 0x54], [0xee, 0x5d, 0x93]]);
    }

    #[test]
    fn letters_and_decimal_digits_make_words() {
        assert!("aZ09é٣名ⅷ".chars().all(is_word_char));
        assert!(!"_- ²½①".chars().any(is_word_char));
    }

    /// As the keys of an index must be.
    #[test]
    fn characters_that_some_case_mapping_equates_fold_to_one() {
        for (a, b) in [("ſ", "s"), ("\u{212a}", "K"), ("İ", "i"), ("ı", "I"), ("ς", "Σ"), ("Å", "\u{212b}"), ("ẞ", "ß")]
        {
            assert_eq!(folded(a), folded(b), "{a} {b}");
        }
    }

    /// As `~*` ignores it.
    #[test]
    fn characters_that_regular_expressions_equate_fold_to_one() {
        let ranges = |set: &str| melba_regexp::characters(set).unwrap();
        let cased = ranges("[\\p{Cased}\\p{Changes_When_Casemapped}]").into_iter().flat_map(|(first, last)| first..=last);
        let mut several = 0;
        for c in cased {
            let equal = ranges(&format!("(?i:[{c}])")).into_iter().flat_map(|(first, last)| first..=last);
            for other in equal.filter(|other| *other != c) {
                several += 1;
                assert_eq!(folded(&c.to_string()), folded(&other.to_string()), "{c} {other}");
                assert_eq!(is_word_char(c), is_word_char(other), "{c} {other}");
            }
        }
        assert!(several > 2000, "{several}");
    }

    #[test]
    fn words_are_padded_where_they_are_known_to_end() {
        let parts = |text: &str| {
            let part = |c| match c {
                '%' => TextPart::Gap,
                '|' => TextPart::Edge,
                c => TextPart::Char(c),
            };
            shown(&trigrams_of_parts(text.chars().map(part)))
        };
        assert_eq!(parts("abcd"), "abc,bcd");
        assert_eq!(parts("|Ab|"), "  a, ab,ab ");
        assert_eq!(parts("|a%bcd%"), "  a,bcd");
        assert_eq!(parts("b-cd"), "  c, cd");
        assert_eq!(parts("%ab%"), "");
    }
}
