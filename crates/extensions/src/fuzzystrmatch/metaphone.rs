//! Metaphone: the consonants of an English word as they sound. `X` stands for sh, `0` for th.

use melba_types::{Datum, Result, bail};

/// Bytes of a text, and of a code, at most.
const BYTES_MAX: usize = 255;

/// The code of a text in at most `length` characters.
///
/// # Errors
/// 22023 when one of them is too long, 2200F for no characters.
pub fn metaphone(text: &str, length: &Datum) -> Result<Datum> {
    let length = if let Datum::Int4(length) = length { *length } else { 0 };
    if text.is_empty() {
        return Ok(Datum::text(""));
    }
    if text.len() > BYTES_MAX {
        bail!(INVALID_PARAMETER_VALUE, "argument exceeds the maximum length of {BYTES_MAX} bytes");
    }
    if length > BYTES_MAX as i32 {
        bail!(INVALID_PARAMETER_VALUE, "output exceeds the maximum length of {BYTES_MAX} bytes");
    }
    if length <= 0 {
        bail!(ZERO_LENGTH_CHARACTER_STRING, "output cannot be empty string");
    }
    Ok(Datum::text(code(text, length as usize)))
}

fn code(text: &str, length: usize) -> String {
    let text = text.to_ascii_uppercase().into_bytes();
    let Some(first) = text.iter().position(u8::is_ascii_uppercase) else { return String::new() };
    let mut word = SoundedWord { text, at: first };
    let mut out = word.first();
    while out.len() < length && word.at < word.text.len() {
        let letter = word.letter(0);
        // Of two equal letters one sounds, but for C.
        let sounds = letter.is_ascii_uppercase() && (letter == b'C' || letter != word.letter(-1));
        let (sound, skipped) = if sounds { word.sound(letter) } else { ("", 0) };
        out.push_str(sound);
        word.at += 1 + skipped;
    }
    out.truncate(length);
    out
}

struct SoundedWord {
    /// In upper case.
    text: Vec<u8>,
    at: usize,
}

fn is_vowel(letter: u8) -> bool {
    b"AEIOU".contains(&letter)
}

/// Letters before which C and G are soft.
fn is_softening(letter: u8) -> bool {
    b"EIY".contains(&letter)
}

impl SoundedWord {
    /// The letter at an offset; 0 beyond the ends.
    fn letter(&self, offset: isize) -> u8 {
        self.at.checked_add_signed(offset).and_then(|at| self.text.get(at)).copied().unwrap_or(0)
    }

    /// The sound of the beginning, where vowels are kept and some letters are silent.
    fn first(&mut self) -> String {
        let (letter, next) = (self.letter(0), self.letter(1));
        let (sound, taken) = match (letter, next) {
            (b'A', b'E') => (b'E', 2),
            (b'G' | b'K' | b'P', b'N') => (b'N', 2),
            (b'W', b'H' | b'R') => (next, 2),
            (b'W', next) if is_vowel(next) => (b'W', 2),
            (b'X', _) => (b'S', 1),
            (vowel, _) if is_vowel(vowel) => (vowel, 1),
            _ => return String::new(),
        };
        self.at += taken;
        char::from(sound).to_string()
    }

    /// The sound of a letter with its neighbours, and how many more letters it takes.
    fn sound(&self, letter: u8) -> (&'static str, usize) {
        let (before, next, after) = (self.letter(-1), self.letter(1), self.letter(2));
        let ends_in_tion = next == b'I' && matches!(after, b'O' | b'A');
        let plain = |sound| (sound, 0);
        match letter {
            b'B' => plain(if before == b'M' { "" } else { "B" }),
            b'C' => self.sound_of_c(),
            b'D' if next == b'G' && is_softening(after) => ("J", 1),
            b'D' => plain("T"),
            b'G' => self.sound_of_g(),
            b'H' => plain(if is_vowel(next) && !b"CGPST".contains(&before) { "H" } else { "" }),
            b'K' => plain(if before == b'C' { "" } else { "K" }),
            b'P' => plain(if next == b'H' { "F" } else { "P" }),
            b'Q' => plain("K"),
            b'S' | b'T' if ends_in_tion => plain("X"),
            b'S' if next == b'H' => ("X", 1),
            b'S' if next == b'C' && after == b'H' && self.letter(3) == b'W' => ("X", 2),
            b'T' if next == b'H' => ("0", 1),
            b'T' => plain("T"),
            b'V' | b'F' => plain("F"),
            b'W' => plain(if is_vowel(next) { "W" } else { "" }),
            b'X' => plain("KS"),
            b'Y' => plain(if is_vowel(next) { "Y" } else { "" }),
            b'S' | b'Z' => plain("S"),
            b'J' => plain("J"),
            b'L' => plain("L"),
            b'M' => plain("M"),
            b'N' => plain("N"),
            b'R' => plain("R"),
            _ => plain(""),
        }
    }

    fn sound_of_c(&self) -> (&'static str, usize) {
        let (before, next, after) = (self.letter(-1), self.letter(1), self.letter(2));
        match next {
            b'I' if after == b'A' => ("X", 0),
            next if is_softening(next) => (if before == b'S' { "" } else { "S" }, 0),
            // Christ, school.
            b'H' if after == b'R' || before == b'S' => ("K", 1),
            b'H' => ("X", 1),
            _ => ("K", 0),
        }
    }

    fn sound_of_g(&self) -> (&'static str, usize) {
        let (next, after) = (self.letter(1), self.letter(2));
        match next {
            // Silent in bough and daughter.
            b'H' if b"BDH".contains(&self.letter(-3)) || self.letter(-4) == b'H' => ("", 0),
            b'H' => ("F", 1),
            // Silent in sign and signed.
            b'N' if !after.is_ascii_uppercase() || after == b'E' && self.letter(3) == b'D' => ("", 0),
            b'N' => ("K", 0),
            next if is_softening(next) && self.letter(-1) != b'G' => ("J", 0),
            _ => ("K", 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::code;

    #[test]
    fn words_are_coded_by_their_sound() {
        let words =
            ["Thompson", "Knight", "Wright", "schoolwork", "Xavier", "rough", "signed", "", "12", "Aether", "fox", "nation"];
        let codes = ["0MPSN", "NFT", "RFT", "SKLWRK", "SFR", "RF", "SNT", "", "", "E0R", "FKS", "NXN"];
        for (word, expected) in words.into_iter().zip(codes) {
            assert_eq!(code(word, 10), expected, "{word}");
        }
        assert_eq!(code("fox", 2), "FK");
    }
}
