//! to_number: reads a number by a template.

use melba_fmgr::type_io::is_space;
use melba_types::limits::ticked;
use melba_types::{Numeric, Result, err};

use super::number::{NumberFormat, ROMAN_LENGTH_MAX, roman};
use super::number_out::power_of_ten;
use super::template::{FormatNode, NumberKey};

pub fn to_number(text: &str, template: &str) -> Result<Numeric> {
    let format = NumberFormat::parse(template)?;
    if format.exponent {
        return Err(err!(FEATURE_NOT_SUPPORTED, "\"EEEE\" not supported for input"));
    }
    let mut reader = NumberReader {
        format: &format,
        text: text.as_bytes(),
        at: 0,
        sign: None,
        number: String::new(),
        digits_before: 0,
        digits_after: 0,
        point: false,
        precision_before: format.before,
    };
    reader.run()?;
    let mut number = std::mem::take(&mut reader.number);
    if number.ends_with('.') {
        number.pop();
    }
    if let Some(sign) = reader.sign {
        number.insert(0, sign);
    }
    let value: Numeric = match Numeric::parse(&number) {
        Ok(value) => value,
        Err(_) => {
            return Err(err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type numeric: \"{}\"", {
                if reader.sign.is_some() { number } else { format!(" {number}") }
            }));
        }
    };
    let scale = reader.digits_after;
    let precision = reader.precision_before + format.shift + scale;
    let value = value.apply_typmod((precision << 16 | scale) as i32 + 4)?;
    if !format.has_shift {
        return Ok(value);
    }
    // The factor has the decimals of power()'s result.
    let shift = format.shift as i32;
    value.mul(&power_of_ten(-shift)?.round(16 + shift)?)
}

struct NumberReader<'a> {
    format: &'a NumberFormat,
    text: &'a [u8],
    at: usize,
    sign: Option<char>,
    number: String,
    digits_before: usize,
    digits_after: usize,
    point: bool,
    precision_before: usize,
}

impl NumberReader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn run(&mut self) -> Result<()> {
        let format = self.format;
        for node in ticked(&format.nodes) {
            if self.peek().is_none() {
                break;
            }
            match node? {
                FormatNode::Separator(_) | FormatNode::Space(_) | FormatNode::Text(_) => self.skip_char(),
                FormatNode::Key(p) => self.pattern(p.key)?,
            }
        }
        Ok(())
    }

    fn skip_char(&mut self) {
        self.at += 1;
        while self.peek().is_some_and(|c| c & 0xc0 == 0x80) {
            self.at += 1;
        }
    }

    /// Skips characters that cannot be part of a number.
    fn skip_others(&mut self, count: usize) {
        for _ in 0..count {
            match self.peek() {
                None => break,
                Some(c) if b"0123456789.,+-".contains(&c) => break,
                Some(_) => self.skip_char(),
            }
        }
    }

    fn pattern(&mut self, key: NumberKey) -> Result<()> {
        match key {
            NumberKey::Nine | NumberKey::Zero | NumberKey::Point | NumberKey::LocalePoint => {
                self.digit(key);
                self.at += 1;
            }
            // Only a number in progress has separators with FM; nothing ever marks one in progress when reading.
            NumberKey::Comma | NumberKey::Group if !self.format.fill && self.peek() == Some(b',') => {
                self.at += 1;
            }
            NumberKey::Currency => self.skip_others(1),
            NumberKey::Roman => self.roman()?,
            NumberKey::Ordinal if !self.format.decimal => self.skip_others(2),
            NumberKey::Minus | NumberKey::Plus | NumberKey::SignEither => {
                let wanted: &[u8] = match key {
                    NumberKey::Minus => b"-",
                    NumberKey::Plus => b"+",
                    _ => b"+-",
                };
                match self.peek() {
                    Some(c) if wanted.contains(&c) => {
                        self.sign = Some(char::from(c));
                        self.at += 1;
                    }
                    _ => self.skip_others(1),
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn roman(&mut self) -> Result<()> {
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
        let letters: String = self.text[self.at..]
            .iter()
            .take(ROMAN_LENGTH_MAX)
            .map(|c| c.to_ascii_uppercase() as char)
            .take_while(|c| "IVXLCDM".contains(*c))
            .collect();
        let value = (1..4000).find(|value| roman(*value).is_some_and(|r| r == letters));
        let value = value.ok_or_else(|| err!(INVALID_TEXT_REPRESENTATION, "invalid Roman numeral"))?;
        self.at += letters.len();
        self.number = value.to_string();
        self.precision_before = self.number.len();
        Ok(())
    }

    /// Reads a digit, the point, or a sign next to one. The caller moves on by one character.
    fn digit(&mut self, key: NumberKey) {
        if self.peek() == Some(b' ') {
            self.at += 1;
        }
        let none_read = self.digits_before + self.digits_after == 0;
        if self.sign.is_none() && matches!(key, NumberKey::Nine | NumberKey::Zero) && none_read {
            self.leading_sign();
        }
        let Some(c) = self.peek() else { return };
        let mut read = false;
        if c.is_ascii_digit() {
            if self.point && self.digits_after == self.format.after {
                return;
            }
            self.number.push(char::from(c));
            if self.point {
                self.digits_after += 1;
            } else {
                self.digits_before += 1;
            }
            read = true;
        } else if self.format.decimal && !self.point && c == b'.' {
            self.number.push('.');
            self.point = true;
            read = true;
        }
        if self.sign.is_none() && self.digits_before + self.digits_after > 0 {
            self.trailing_sign(read);
        }
    }

    fn leading_sign(&mut self) {
        match self.peek() {
            Some(c @ (b'-' | b'+')) => {
                self.sign = Some(char::from(c));
                self.at += 1;
            }
            Some(b'<') if self.format.bracket => {
                self.sign = Some('-');
                self.at += 1;
            }
            _ => {}
        }
    }

    fn trailing_sign(&mut self, read: bool) {
        if self.format.sign.is_some() && read {
            // Right behind the number.
            if let Some(c @ (b'-' | b'+')) = self.text.get(self.at + 1) {
                self.sign = Some(char::from(*c));
                self.at += 1;
            }
        } else if !read
            && self.format.sign.is_none()
            && (self.format.plus || self.format.minus)
            && let Some(c @ (b'-' | b'+')) = self.peek()
        {
            self.sign = Some(char::from(c));
        }
    }
}
