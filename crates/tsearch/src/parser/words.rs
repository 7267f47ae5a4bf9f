//! Words, hyphenated words with their parts, and numbers.

use melba_types::Result;

use super::{Char, Found, Mode, Parser, TokenType};

/// What the parts of a hyphenated word so far are made of.
#[derive(Clone, Copy)]
pub(super) enum Letters {
    Ascii,
    Any,
    WithDigits,
}

fn is_in_word(c: Char) -> bool {
    c.is_letter() || c.is_mark()
}

fn is_in_num_word(c: Char) -> bool {
    c.is_alphanumeric() || c.is_mark()
}

impl Parser<'_> {
    /// Behind ASCII letters.
    pub(super) fn ascii_word(&mut self, at: usize) -> Result<Found> {
        let at = self.skip(at, Char::is_ascii_letter);
        let word = Found::new(TokenType::AsciiWord, at);
        let Some(c) = self.at(at) else { return Ok(word) };
        let behind = at + c.bytes;
        let found = match c.c {
            '.' => self.host_domain(behind)?.or_else(|| self.file_next(behind)),
            '-' => self.host_next(behind)?.or_else(|| self.hyphenated(behind, Letters::Ascii)),
            '_' => self.host_next(behind)?,
            '@' => self.email(behind)?,
            ':' => self.protocol(behind),
            '/' => self.file_behind_slash(behind),
            _ if c.is_digit() => Some(match self.host(behind)? {
                Some(host) => host,
                None => self.num_word(behind)?,
            }),
            _ if is_in_word(c) => Some(self.word_or_number(behind)?),
            _ => None,
        };
        Ok(found.unwrap_or(word))
    }

    fn protocol(&self, at: usize) -> Option<Found> {
        self.text[at..].starts_with("//").then(|| Found::new(TokenType::Protocol, at + 2))
    }

    /// Behind letters, of which one is not ASCII.
    fn word_or_number(&mut self, at: usize) -> Result<Found> {
        let at = self.skip(at, is_in_word);
        if self.holds(at, Char::is_digit) {
            return self.num_word(at + 1);
        }
        Ok(self.hyphenated_or(TokenType::Word, at, Letters::Any))
    }

    pub(super) fn word(&mut self, at: usize) -> Result<Found> {
        self.word_or_number(at)
    }

    /// The word that ends here, unless a hyphen and another part follow.
    fn hyphenated_or(&self, ty: TokenType, at: usize, letters: Letters) -> Found {
        let longer = if self.holds(at, |c| c.is('-')) { self.hyphenated(at + 1, letters) } else { None };
        longer.unwrap_or_else(|| Found::new(ty, at))
    }

    /// Behind letters and digits.
    pub(super) fn num_word(&mut self, at: usize) -> Result<Found> {
        let at = self.skip(at, is_in_num_word);
        let found = match self.at(at).map(|c| c.c) {
            Some('@') => self.email(at + 1)?,
            Some('/') => self.file_behind_slash(at + 1),
            Some('.') => self.file_next(at + 1),
            _ => None,
        };
        Ok(found.unwrap_or_else(|| self.hyphenated_or(TokenType::NumWord, at, Letters::WithDigits)))
    }

    /// Behind a hyphen in a word: more parts, of which at least one must follow.
    fn hyphenated(&self, mut at: usize, mut letters: Letters) -> Option<Found> {
        let mut found = None;
        while let Some((end, widened)) = self.hyphenated_part(at, letters) {
            letters = widened;
            let ty = match letters {
                Letters::Ascii => TokenType::AsciiHyphenated,
                Letters::Any => TokenType::Hyphenated,
                Letters::WithDigits => TokenType::NumHyphenated,
            };
            // The parts are tokens, too.
            found = Some(Found { ty, end, next: self.start, mode: Mode::HyphenParts });
            if !self.holds(end, |c| c.is('-')) {
                break;
            }
            at = end + 1;
        }
        found
    }

    /// A part of a hyphenated word: where it ends, and what the word is then made of. Digits alone are no part.
    fn hyphenated_part(&self, at: usize, letters: Letters) -> Option<(usize, Letters)> {
        let first = self.at(at)?;
        if first.is_digit() {
            let at = self.skip(at, Char::is_digit);
            return self.holds(at, is_in_word).then(|| (self.skip(at, is_in_num_word), Letters::WithDigits));
        }
        if !first.is_letter() {
            return None;
        }
        if matches!(letters, Letters::WithDigits) {
            return Some((self.skip(at, is_in_num_word), letters));
        }
        let ascii_end = if matches!(letters, Letters::Ascii) { self.skip(at, Char::is_ascii_letter) } else { at };
        let end = self.skip(ascii_end, is_in_word);
        if self.holds(end, Char::is_digit) {
            return Some((self.skip(end, is_in_num_word), Letters::WithDigits));
        }
        let is_ascii = matches!(letters, Letters::Ascii) && end == ascii_end;
        Some((end, if is_ascii { Letters::Ascii } else { Letters::Any }))
    }

    /// A part of a hyphenated word as a token of its own, or the hyphen before one.
    pub(super) fn hyphen_part(&self, at: usize) -> Option<Found> {
        let first = self.at(at)?;
        let (end, ty) = if first.is('-') {
            if !self.holds(at + 1, is_in_num_word) {
                return None;
            }
            (at + 1, TokenType::Blank)
        } else if first.is_digit() {
            let digits = self.skip(at, Char::is_digit);
            if !self.holds(digits, is_in_word) {
                return None;
            }
            (self.skip(digits, is_in_num_word), TokenType::HyphenatedNumPart)
        } else if first.is_letter() {
            let ascii_end = self.skip(at, Char::is_ascii_letter);
            let end = self.skip(ascii_end, is_in_word);
            if self.holds(end, Char::is_digit) {
                (self.skip(end, is_in_num_word), TokenType::HyphenatedNumPart)
            } else if end > ascii_end {
                (end, TokenType::HyphenatedPart)
            } else {
                (end, TokenType::HyphenatedAsciiPart)
            }
        } else {
            return None;
        };
        Some(Found { ty, end, next: end, mode: Mode::HyphenParts })
    }

    /// At the first digit of an unsigned number.
    pub(super) fn unsigned(&mut self, at: usize) -> Result<Found> {
        let at = self.skip(at, Char::is_digit);
        let number = Found::new(TokenType::UnsignedInt, at);
        let Some(c) = self.at(at) else { return Ok(number) };
        let behind = at + c.bytes;
        let found = match c.c {
            '.' => self.host_domain(behind)?.or_else(|| self.fraction(behind)),
            'e' | 'E' if self.exponent(behind).is_some() => self.exponent(behind),
            '-' | '_' => self.host_next(behind)?,
            '@' => self.email(behind)?,
            '/' => self.file_behind_slash(behind),
            _ if c.is_ascii_letter() => Some(match self.host(behind)? {
                Some(host) => host,
                None => self.num_word(behind)?,
            }),
            _ if c.is_letter() || c.is_mark() => Some(self.num_word(behind)?),
            _ => None,
        };
        Ok(found.unwrap_or(number))
    }

    /// Behind the point of an unsigned number: a fraction, an exponent, or more of a version.
    fn fraction(&self, at: usize) -> Option<Found> {
        let end = self.digits(at)?;
        Some(
            match self.at(end).map(|c| c.c) {
                Some('.') => self.version(end + 1),
                Some('e' | 'E') => self.exponent(end + 1),
                _ => None,
            }
            .unwrap_or_else(|| Found::new(TokenType::Float, end)),
        )
    }

    fn version(&self, at: usize) -> Option<Found> {
        let mut end = self.digits(at)?;
        while self.holds(end, |c| c.is('.'))
            && let Some(more) = self.digits(end + 1)
        {
            end = more;
        }
        Some(Found::new(TokenType::Version, end))
    }

    /// Behind the letter of an exponent.
    fn exponent(&self, at: usize) -> Option<Found> {
        let sign = usize::from(self.holds(at, |c| c.is('+') || c.is('-')));
        Some(Found::new(TokenType::Scientific, self.digits(at + sign)?))
    }

    /// Behind digits, of which there must be one.
    fn digits(&self, at: usize) -> Option<usize> {
        let end = self.skip(at, Char::is_digit);
        (end > at).then_some(end)
    }

    /// Behind the sign of a number.
    pub(super) fn signed(&self, at: usize) -> Option<Found> {
        let end = self.digits(at)?;
        let integer = Found::new(TokenType::Int, end);
        let longer = match self.at(end).map(|c| c.c) {
            Some('.') => self.signed_fraction(at, end + 1),
            Some('e' | 'E') => self.exponent(end + 1),
            _ => None,
        };
        Some(longer.unwrap_or(integer))
    }

    /// A version has no sign: that is a token of its own.
    fn signed_fraction(&self, integer: usize, at: usize) -> Option<Found> {
        let end = self.digits(at)?;
        let longer = match self.at(end).map(|c| c.c) {
            Some('.') if self.holds(end + 1, Char::is_digit) => {
                Some(Found { ty: TokenType::Blank, end: integer, next: integer, mode: Mode::Unsigned })
            }
            Some('e' | 'E') => self.exponent(end + 1),
            _ => None,
        };
        Some(longer.unwrap_or_else(|| Found::new(TokenType::Float, end)))
    }
}
