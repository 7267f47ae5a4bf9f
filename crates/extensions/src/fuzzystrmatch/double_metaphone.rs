//! Double Metaphone (Lawrence Philips): two codes for a word, as it sounds in English, and as it may sound by its origin.

/// Characters of a code.
const LENGTH: usize = 4;

/// The primary code and the alternative one.
pub fn double_metaphone(text: &str) -> (String, String) {
    let length = text.len();
    // Rules look beyond the end.
    let letters = [text.to_ascii_uppercase().as_bytes(), b"     "].concat();
    let is_foreign = [&b"W"[..], b"K", b"CZ"].iter().any(|part| letters.windows(part.len()).any(|found| found == *part));
    let mut word = SpelledWord { letters, length, at: 0, is_foreign, primary: String::new(), other: String::new() };
    if word.is_any(0, &["GN", "KN", "PN", "WR", "PS"]) {
        word.at = 1;
    }
    if word.letters[0] == b'X' {
        word.sounds("S");
        word.at += 1;
    }
    while word.at < length && (word.primary.len() < LENGTH || word.other.len() < LENGTH) {
        word.at += word.letter();
    }
    word.primary.truncate(LENGTH);
    word.other.truncate(LENGTH);
    (word.primary, word.other)
}

struct SpelledWord {
    /// In upper case, with spaces behind.
    letters: Vec<u8>,
    length: usize,
    at: usize,
    /// It seems Slavic or Germanic.
    is_foreign: bool,
    primary: String,
    other: String,
}

impl SpelledWord {
    /// The letter at an offset; 0 beyond the ends.
    fn get(&self, offset: isize) -> u8 {
        self.at.checked_add_signed(offset).and_then(|at| self.letters.get(at)).copied().unwrap_or(0)
    }

    /// Whether one of these begins at a place from the word's beginning.
    fn starts_at(&self, at: usize, any: &[&str]) -> bool {
        any.iter().any(|part| self.letters.get(at..).is_some_and(|rest| rest.starts_with(part.as_bytes())))
    }

    /// The same from the letter at hand.
    fn is_any(&self, offset: isize, any: &[&str]) -> bool {
        self.at.checked_add_signed(offset).is_some_and(|at| self.starts_at(at, any))
    }

    fn is_vowel(&self, offset: isize) -> bool {
        b"AEIOUY".contains(&self.get(offset))
    }

    fn is_first(&self) -> bool {
        self.at == 0
    }

    fn is_last(&self) -> bool {
        self.at + 1 == self.length
    }

    fn is_germanic(&self) -> bool {
        self.starts_at(0, &["VAN ", "VON ", "SCH"])
    }

    fn sounds(&mut self, sound: &str) {
        self.sounds_or(sound, sound);
    }

    fn sounds_or(&mut self, primary: &str, other: &str) {
        self.primary.push_str(primary);
        self.other.push_str(other);
    }

    /// One letter, or two of the same.
    fn doubled(&self) -> usize {
        1 + usize::from(self.get(1) == self.get(0))
    }

    /// One letter, or two when another that sounds like it follows.
    fn absorbing(&self, followers: &[&str]) -> usize {
        1 + usize::from(self.is_any(1, followers))
    }

    /// Adds the sound of the letter at hand; returns the letters that it takes.
    fn letter(&mut self) -> usize {
        let letter = self.get(0);
        match letter {
            b'A' | b'E' | b'I' | b'O' | b'U' | b'Y' => {
                if self.is_first() {
                    self.sounds("A");
                }
                1
            }
            b'C' => self.c(),
            b'D' => self.d(),
            b'G' => self.g(),
            b'H' => self.h(),
            b'J' => self.j(),
            b'L' => self.l(),
            b'M' => self.m(),
            b'P' => self.p(),
            b'R' => self.r(),
            b'S' => self.s(),
            b'T' => self.t(),
            b'W' => self.w(),
            b'X' => self.x(),
            b'Z' => self.z(),
            // Bytes of C with cedilla and N with tilde in Latin-1.
            0xc7 => self.plain("S", 1),
            0xd1 => self.plain("N", 1),
            b'B' => self.plain("P", self.doubled()),
            b'F' | b'V' => self.plain("F", self.doubled()),
            b'K' | b'Q' => self.plain("K", self.doubled()),
            b'N' => self.plain("N", self.doubled()),
            _ => 1,
        }
    }

    fn plain(&mut self, sound: &str, taken: usize) -> usize {
        self.sounds(sound);
        taken
    }

    fn either(&mut self, primary: &str, other: &str, taken: usize) -> usize {
        self.sounds_or(primary, other);
        taken
    }

    fn c(&mut self) -> usize {
        let after = self.get(2);
        let is_bach = self.at > 1 && !self.is_vowel(-2) && self.is_any(-1, &["ACH"]);
        if is_bach && after != b'I' && (after != b'E' || self.is_any(-2, &["BACHER", "MACHER"])) {
            return self.plain("K", 2);
        }
        if self.is_first() && self.is_any(0, &["CAESAR"]) {
            return self.plain("S", 2);
        }
        if self.is_any(0, &["CHIA"]) {
            return self.plain("K", 2);
        }
        if self.is_any(0, &["CH"]) {
            return self.ch();
        }
        if self.is_any(0, &["CZ"]) && !self.is_any(-2, &["WICZ"]) {
            return self.either("S", "X", 2);
        }
        if self.is_any(1, &["CIA"]) {
            return self.plain("X", 3);
        }
        if self.is_any(0, &["CC"]) && !(self.at == 1 && self.letters[0] == b'M') {
            return self.cc();
        }
        if self.is_any(0, &["CK", "CG", "CQ"]) {
            return self.plain("K", 2);
        }
        if self.is_any(0, &["CIO", "CIE", "CIA"]) {
            return self.either("S", "X", 2);
        }
        if self.is_any(0, &["CI", "CE", "CY"]) {
            return self.plain("S", 2);
        }
        self.sounds("K");
        // Mac Gregor.
        if self.is_any(1, &[" C", " Q", " G"]) {
            return 3;
        }
        if self.is_any(1, &["CE", "CI"]) { 1 } else { self.absorbing(&["C", "K", "Q"]) }
    }

    fn ch(&mut self) -> usize {
        if self.at > 0 && self.is_any(0, &["CHAE"]) {
            return self.either("K", "X", 2);
        }
        let is_greek = self.is_any(1, &["HARAC", "HARIS", "HOR", "HYM", "HIA", "HEM"]) && !self.starts_at(0, &["CHORE"]);
        if self.is_first() && is_greek {
            return self.plain("K", 2);
        }
        // Wachtler, but not Tichner.
        let is_hard = (self.is_first() || self.is_any(-1, &["A", "O", "U", "E"]))
            && self.is_any(2, &["L", "R", "N", "M", "B", "H", "F", "V", "W", " "]);
        if self.is_germanic() || self.is_any(-2, &["ORCHES", "ARCHIT", "ORCHID"]) || self.is_any(2, &["T", "S"]) || is_hard {
            return self.plain("K", 2);
        }
        match self.at {
            0 => self.plain("X", 2),
            _ if self.starts_at(0, &["MC"]) => self.plain("K", 2),
            _ => self.either("X", "K", 2),
        }
    }

    fn cc(&mut self) -> usize {
        if !self.is_any(2, &["I", "E", "H"]) || self.is_any(2, &["HU"]) {
            return self.plain("K", 2);
        }
        // Accident, succeed; not bacci.
        let is_hard = self.at == 1 && self.get(-1) == b'A' || self.is_any(-1, &["UCCEE", "UCCES"]);
        self.plain(if is_hard { "KS" } else { "X" }, 3)
    }

    fn d(&mut self) -> usize {
        match self.get(1) {
            b'G' if self.is_any(2, &["I", "E", "Y"]) => self.plain("J", 3),
            b'G' => self.plain("TK", 2),
            b'T' | b'D' => self.plain("T", 2),
            _ => self.plain("T", 1),
        }
    }

    fn g(&mut self) -> usize {
        let next = self.get(1);
        if next == b'H' {
            return self.gh();
        }
        if next == b'N' {
            return self.gn();
        }
        if self.is_any(1, &["LI"]) && !self.is_foreign {
            return self.either("KL", "L", 2);
        }
        let begins = ["Y", "ES", "EP", "EB", "EL", "EY", "IB", "IL", "IN", "IE", "EI", "ER"];
        if self.is_first() && self.is_any(1, &begins) {
            return self.either("K", "J", 2);
        }
        let is_excepted = self.starts_at(0, &["DANGER", "RANGER", "MANGER"])
            || self.is_any(-1, &["E", "I"])
            || self.is_any(-1, &["RGY", "OGY"]);
        if self.is_any(1, &["ER", "Y"]) && !is_excepted {
            return self.either("K", "J", 2);
        }
        // Biaggi.
        if self.is_any(1, &["E", "I", "Y"]) || self.is_any(-1, &["AGGI", "OGGI"]) {
            return if self.is_germanic() || self.is_any(1, &["ET"]) {
                self.plain("K", 2)
            } else if self.is_any(1, &["IER "]) {
                self.plain("J", 2)
            } else {
                self.either("J", "K", 2)
            };
        }
        self.plain("K", self.doubled())
    }

    fn gh(&mut self) -> usize {
        if self.at > 0 && !self.is_vowel(-1) {
            return self.plain("K", 2);
        }
        if self.is_first() {
            return self.plain(if self.get(2) == b'I' { "J" } else { "K" }, 2);
        }
        // Hugh, bough, Broughton.
        let is_silent = self.at > 1 && self.is_any(-2, &["B", "H", "D"])
            || self.at > 2 && self.is_any(-3, &["B", "H", "D"])
            || self.at > 3 && self.is_any(-4, &["B", "H"]);
        if is_silent {
            return 2;
        }
        if self.at > 2 && self.get(-1) == b'U' && self.is_any(-3, &["C", "G", "L", "R", "T"]) {
            self.plain("F", 2)
        } else if self.get(-1) != b'I' {
            self.plain("K", 2)
        } else {
            2
        }
    }

    fn gn(&mut self) -> usize {
        let begins = self.at == 1 && b"AEIOUY".contains(&self.letters[0]);
        if begins && !self.is_foreign {
            self.either("KN", "N", 2)
        } else if !self.is_any(2, &["EY"]) && !self.is_foreign {
            self.either("N", "KN", 2)
        } else {
            self.plain("KN", 2)
        }
    }

    fn h(&mut self) -> usize {
        if (self.is_first() || self.is_vowel(-1)) && self.is_vowel(1) { self.plain("H", 2) } else { 1 }
    }

    fn j(&mut self) -> usize {
        let is_san = self.starts_at(0, &["SAN "]);
        let is_jose = self.is_any(0, &["JOSE"]);
        if is_jose || is_san {
            let is_spanish = self.is_first() && self.get(4) == b' ' || is_san;
            return self.either(if is_spanish { "H" } else { "J" }, "H", 1);
        }
        if self.is_first() {
            self.sounds_or("J", "A");
        } else if self.is_vowel(-1) && !self.is_foreign && matches!(self.get(1), b'A' | b'O') {
            self.sounds_or("J", "H");
        } else if self.is_last() {
            self.sounds_or("J", "");
        } else if !self.is_any(1, &["L", "T", "K", "S", "N", "M", "B", "Z"]) && !self.is_any(-1, &["S", "K", "L"]) {
            self.sounds("J");
        }
        self.doubled()
    }

    fn l(&mut self) -> usize {
        let ends = |any: &[&str], length: usize| self.length.checked_sub(length).is_some_and(|at| self.starts_at(at, any));
        // Cabrillo, gallegos.
        let is_spanish = self.get(1) == b'L'
            && (self.at + 3 == self.length && self.is_any(-1, &["ILLO", "ILLA", "ALLE"])
                || (ends(&["AS", "OS"], 2) || ends(&["A", "O"], 1)) && self.is_any(-1, &["ALLE"]));
        if is_spanish { self.either("L", "", 2) } else { self.plain("L", self.doubled()) }
    }

    fn m(&mut self) -> usize {
        // Dumb, plumber.
        let is_silent_b = self.is_any(-1, &["UMB"]) && (self.at + 2 == self.length || self.is_any(2, &["ER"]));
        self.plain("M", if is_silent_b { 2 } else { self.doubled() })
    }

    fn p(&mut self) -> usize {
        if self.get(1) == b'H' { self.plain("F", 2) } else { self.plain("P", self.absorbing(&["P", "B"])) }
    }

    fn r(&mut self) -> usize {
        let is_french = self.is_last() && !self.is_foreign && self.is_any(-2, &["IE"]) && !self.is_any(-4, &["ME", "MA"]);
        self.either(if is_french { "" } else { "R" }, "R", self.doubled())
    }

    fn s(&mut self) -> usize {
        // Island, Carlysle.
        if self.is_any(-1, &["ISL", "YSL"]) {
            return 1;
        }
        if self.is_first() && self.is_any(0, &["SUGAR"]) {
            return self.either("X", "S", 1);
        }
        if self.is_any(0, &["SH"]) {
            return self.plain(if self.is_any(1, &["HEIM", "HOEK", "HOLM", "HOLZ"]) { "S" } else { "X" }, 2);
        }
        if self.is_any(0, &["SIO", "SIA"]) {
            return self.either("S", if self.is_foreign { "S" } else { "X" }, 3);
        }
        // Smith and Schmidt.
        if self.is_first() && self.is_any(1, &["M", "N", "L", "W"]) || self.is_any(1, &["Z"]) {
            return self.either("S", "X", self.absorbing(&["Z"]));
        }
        if self.is_any(0, &["SC"]) {
            return self.sc();
        }
        let is_french = self.is_last() && self.is_any(-2, &["AI", "OI"]);
        self.either(if is_french { "" } else { "S" }, "S", self.absorbing(&["S", "Z"]))
    }

    fn sc(&mut self) -> usize {
        match self.get(2) {
            b'H' if self.is_any(3, &["ER", "EN"]) => self.either("X", "SK", 3),
            b'H' if self.is_any(3, &["OO", "UY", "ED", "EM"]) => self.plain("SK", 3),
            b'H' if self.is_first() && !self.is_vowel(3) && self.get(3) != b'W' => self.either("X", "S", 3),
            b'H' => self.plain("X", 3),
            b'I' | b'E' | b'Y' => self.plain("S", 3),
            _ => self.plain("SK", 3),
        }
    }

    fn t(&mut self) -> usize {
        if self.is_any(0, &["TION", "TIA", "TCH"]) {
            return self.plain("X", 3);
        }
        if self.is_any(0, &["TH", "TTH"]) {
            let is_hard = self.is_any(2, &["OM", "AM"]) || self.is_germanic();
            return self.either(if is_hard { "T" } else { "0" }, "T", 2);
        }
        self.plain("T", self.absorbing(&["T", "D"]))
    }

    fn w(&mut self) -> usize {
        if self.is_any(0, &["WR"]) {
            return self.plain("R", 2);
        }
        if self.is_first() && self.is_vowel(1) {
            self.sounds_or("A", "F");
        } else if self.is_first() && self.is_any(0, &["WH"]) {
            self.sounds("A");
        }
        // Arnow and Arnoff.
        let is_polish = self.is_any(-1, &["EWSKI", "EWSKY", "OWSKI", "OWSKY"]);
        if self.is_last() && self.is_vowel(-1) || is_polish || self.starts_at(0, &["SCH"]) {
            return self.either("", "F", 1);
        }
        if self.is_any(0, &["WICZ", "WITZ"]) { self.either("TS", "FX", 4) } else { 1 }
    }

    fn x(&mut self) -> usize {
        let is_french = self.is_last() && (self.is_any(-3, &["IAU", "EAU"]) || self.is_any(-2, &["AU", "OU"]));
        self.plain(if is_french { "" } else { "KS" }, self.absorbing(&["C", "X"]))
    }

    fn z(&mut self) -> usize {
        if self.get(1) == b'H' {
            return self.plain("J", 2);
        }
        let is_slavic = self.is_any(1, &["ZO", "ZI", "ZA"]) || self.is_foreign && self.at > 0 && self.get(-1) != b'T';
        self.either("S", if is_slavic { "TS" } else { "S" }, self.doubled())
    }
}

#[cfg(test)]
mod tests {
    use super::double_metaphone;

    #[test]
    fn words_have_two_codes_where_they_sound_in_two_ways() {
        let cases = [
            ("Smith", "SM0", "XMT"),
            ("Schmidt", "XMT", "SMT"),
            ("Xavier", "SF", "SFR"),
            ("Caesar", "SSR", "SSR"),
            ("McHugh", "MK", "MK"),
            ("Filipowicz", "FLPT", "FLPF"),
            ("Jose", "HS", "HS"),
            ("Michael", "MKL", "MXL"),
            ("Island", "ALNT", "ALNT"),
            ("Bajador", "PJTR", "PHTR"),
            ("", "", ""),
        ];
        for (word, primary, other) in cases {
            assert_eq!(double_metaphone(word), (primary.to_owned(), other.to_owned()), "{word}");
        }
    }
}
