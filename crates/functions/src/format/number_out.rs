//! to_char of numbers.

use melba_types::{Datum, Numeric, Result, err};

use super::number::{NumberFormat, ROMAN_LENGTH_MAX, SignPlace, roman};
use super::template::{Case, FormatNode, NumberKey, ordinal_suffix};

/// to_char(integer or bigint, template).
pub fn integer(value: i64, narrow: bool, template: &str) -> Result<Datum> {
    let mut format = NumberFormat::parse(template)?;
    if template.is_empty() {
        return Ok(Datum::text(""));
    }
    if format.roman {
        return Ok(write_roman(&format, i32::try_from(value).ok()));
    }
    if format.exponent {
        let text = scientific(&Numeric::from_parts(i128::from(value), 0), format.after)?;
        return Ok(Datum::text(text));
    }
    let mut value = value;
    if format.has_shift {
        let factor = 10i64.checked_pow(format.shift as u32);
        value = match (narrow, factor) {
            (true, factor) => i64::from((value as i32).wrapping_mul(factor.unwrap_or(i64::MAX) as i32)),
            (false, Some(factor)) => {
                value.checked_mul(factor).ok_or_else(|| err!(NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range"))?
            }
            (false, None) => return Err(err!(NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range")),
        };
        format.before += format.shift;
    }
    let mut digits = value.unsigned_abs().to_string();
    if format.after > 0 {
        digits.push('.');
        digits.extend(std::iter::repeat_n('0', format.after));
    }
    write(format, value < 0, digits)
}

/// to_char(real or double precision, template); `precision`: decimal digits that the type holds.
pub fn double(value: f64, precision: usize, template: &str) -> Result<Datum> {
    let mut format = NumberFormat::parse(template)?;
    if template.is_empty() {
        return Ok(Datum::text(""));
    }
    if format.roman {
        let rounded = value.round_ties_even();
        let fits = (-2_147_483_648.0..2_147_483_648.0).contains(&rounded);
        return Ok(write_roman(&format, fits.then_some(rounded as i32)));
    }
    if format.exponent {
        if !value.is_finite() {
            return Ok(Datum::text(overflowed_exponent(&format)));
        }
        return Ok(Datum::text(scientific_double(value, format.after)));
    }
    let mut value = value;
    if format.has_shift {
        value *= 10f64.powi(format.shift as i32);
        if precision == f32::DIGITS as usize {
            value = f64::from(value as f32);
        }
        format.before += format.shift;
    }
    let whole = fixed(value.abs(), 0).len();
    if whole >= precision {
        format.after = 0;
    } else if whole + format.after > precision {
        format.after = precision - whole;
    }
    let text = fixed(value, format.after);
    let negative = text.starts_with('-');
    write(format, negative, text.trim_start_matches('-').to_string())
}

/// As C's `%.*f`.
fn fixed(value: f64, decimals: usize) -> String {
    match value {
        _ if value.is_nan() => "NaN".into(),
        _ if value.is_infinite() => if value > 0.0 { "Infinity" } else { "-Infinity" }.into(),
        _ => format!("{value:.decimals$}"),
    }
}

/// to_char(numeric, template).
pub fn numeric(value: &Numeric, template: &str) -> Result<Datum> {
    let mut format = NumberFormat::parse(template)?;
    if template.is_empty() {
        return Ok(Datum::text(""));
    }
    if format.roman {
        return Ok(write_roman(&format, value.to_i32().ok()));
    }
    if format.exponent {
        if !value.is_finite() {
            return Ok(Datum::text(overflowed_exponent(&format)));
        }
        return Ok(Datum::text(scientific(value, format.after)?));
    }
    let mut scaled = value.clone();
    if format.has_shift {
        scaled = scaled.mul(&power_of_ten(format.shift as i32)?)?;
        format.before += format.shift;
    }
    let text = scaled.round(format.after as i32)?.to_string();
    let negative = text.starts_with('-');
    write(format, negative, text.trim_start_matches('-').to_string())
}

/// 10 to the `exponent`, exact.
pub fn power_of_ten(exponent: i32) -> Result<Numeric> {
    let zeros = "0".repeat(exponent.unsigned_abs() as usize);
    let text = match exponent {
        0.. => format!("1{zeros}"),
        _ => format!("0.{}1", &zeros[1..]),
    };
    Numeric::parse(&text).map_err(|_| melba_types::DbError::internal("a power of ten is a number"))
}

fn overflowed_exponent(format: &NumberFormat) -> String {
    let mut text: Vec<u8> = vec![b'#'; format.before + format.after + 6];
    text[0] = b' ';
    if let Some(point) = text.get_mut(format.before + 1) {
        *point = b'.';
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// As C's `%+.*e`, with a space for the plus.
fn scientific_double(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let sign = if exponent.starts_with('-') { '-' } else { '+' };
    let lead = if mantissa.starts_with('-') { "" } else { " " };
    format!("{lead}{mantissa}e{sign}{:0>2}", exponent.trim_start_matches('-'))
}

/// A numeric in scientific notation; a mantissa rounded up to 10 stays so, as PostgreSQL has it.
fn scientific(value: &Numeric, decimals: usize) -> Result<String> {
    let text = value.to_string();
    let digits = text.trim_start_matches('-');
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let exponent = if value.is_zero() {
        0
    } else if whole != "0" {
        whole.len() as i32 - 1
    } else {
        -(part.bytes().take_while(|d| *d == b'0').count() as i32) - 1
    };
    let mantissa = value.mul(&power_of_ten(-exponent)?)?.round(decimals as i32)?.to_string();
    let lead = if mantissa.starts_with('-') { "" } else { " " };
    let sign = if exponent < 0 { '-' } else { '+' };
    Ok(format!("{lead}{mantissa}e{sign}{:02}", exponent.abs()))
}

fn write_roman(format: &NumberFormat, value: Option<i32>) -> Datum {
    let roman = value.and_then(roman).unwrap_or_else(|| "#".repeat(ROMAN_LENGTH_MAX));
    let mut out = String::new();
    for node in &format.nodes {
        match node {
            FormatNode::Key(p) if p.key == NumberKey::Roman => {
                let roman = if p.case == Case::Lower { roman.to_lowercase() } else { roman.clone() };
                if format.fill {
                    out.push_str(&roman);
                } else {
                    out.push_str(&format!("{roman:>ROMAN_LENGTH_MAX$}"));
                }
            }
            FormatNode::Key(p) => {
                // Only fill mode combines with RN; commas and similar elements print as blanks.
                let blank = match p.key {
                    NumberKey::Comma | NumberKey::Group => !format.fill,
                    key => key == NumberKey::Currency,
                };
                if blank {
                    out.push(' ');
                }
            }
            FormatNode::Separator(c) | FormatNode::Space(c) | FormatNode::Text(c) => out.push(*c),
        }
    }
    Datum::text(out)
}

/// Prints `digits` (an unsigned decimal number, rounded to the format's decimals) by the format.
fn write(mut format: NumberFormat, negative: bool, digits: String) -> Result<Datum> {
    let whole = digits.find('.').unwrap_or(digits.len());
    let (digits, blanks) = if whole > format.before {
        // Does not fit: number signs.
        let mut text = vec![b'#'; format.before + format.after + 1];
        text[format.before] = b'.';
        (String::from_utf8_lossy(&text).into_owned(), 0)
    } else {
        (digits, format.before - whole)
    };
    if !negative && format.fill && !(format.plus || format.minus) {
        format.bracket = false;
    }
    Writer::new(&mut format, negative, digits.into_bytes(), blanks).run()
}

struct Writer<'a> {
    format: &'a NumberFormat,
    negative: bool,
    digits: Vec<u8>,
    /// Digit positions before the first digit.
    blanks: usize,
    /// The next digit.
    next: usize,
    /// The next position of the template.
    position: usize,
    positions: usize,
    sign_place: Option<SignPlace>,
    sign_written: bool,
    /// A digit has been written, so that a group separator makes sense.
    in_number: bool,
    /// With FM: the last digit that is printed.
    last_relevant: Option<usize>,
    out: String,
    /// Where the text ends, even if the template continues.
    end: Option<usize>,
}

impl<'a> Writer<'a> {
    fn new(format: &'a mut NumberFormat, negative: bool, digits: Vec<u8>, blanks: usize) -> Writer<'a> {
        let separate_sign = format.plus || format.minus;
        let sign_written = if separate_sign { format.minus } else { !negative && format.fill && format.sign.is_none() };
        let mut sign_place = format.sign;
        if !separate_sign && sign_place == Some(SignPlace::Before) && format.before == format.before_sign {
            sign_place = Some(SignPlace::After);
        }
        let mut positions = (format.before + format.after) as isize - 1;
        if !sign_written && blanks == 0 {
            positions += 1;
        }
        let last_relevant = (format.fill && format.decimal).then(|| last_relevant(&digits, format, blanks)).flatten();
        Writer {
            format,
            negative,
            digits,
            blanks,
            next: 0,
            position: 0,
            positions: positions.max(0) as usize,
            sign_place,
            sign_written,
            in_number: false,
            last_relevant,
            out: String::new(),
            end: None,
        }
    }

    fn run(mut self) -> Result<Datum> {
        for node in &self.format.nodes {
            match node {
                FormatNode::Separator(c) | FormatNode::Space(c) | FormatNode::Text(c) => self.out.push(*c),
                FormatNode::Key(p) => match p.key {
                    NumberKey::Nine | NumberKey::Zero | NumberKey::Point | NumberKey::LocalePoint => self.digit(p.key),
                    NumberKey::Comma | NumberKey::Group if self.in_number => self.out.push(','),
                    NumberKey::Comma | NumberKey::Group => self.blank(),
                    NumberKey::Currency => self.out.push(' '),
                    NumberKey::Ordinal => self.ordinal(p.case)?,
                    NumberKey::Minus if self.negative => self.out.push('-'),
                    NumberKey::Plus if !self.negative => self.out.push('+'),
                    NumberKey::Minus | NumberKey::Plus => self.blank(),
                    NumberKey::SignEither => self.out.push(if self.negative { '-' } else { '+' }),
                    _ => {}
                },
            }
        }
        self.out.truncate(self.end.unwrap_or(usize::MAX));
        Ok(Datum::text(self.out))
    }

    fn blank(&mut self) {
        if !self.format.fill {
            self.out.push(' ');
        }
    }

    fn ordinal(&mut self, case: Case) -> Result<()> {
        if self.digits.first() == Some(&b'#') || self.negative || self.format.decimal {
            return Ok(());
        }
        let digits = String::from_utf8_lossy(&self.digits);
        if !digits.ends_with(|c: char| c.is_ascii_digit()) {
            return Err(err!(INVALID_TEXT_REPRESENTATION, "\"{digits}\" is not a number"));
        }
        self.out.push_str(ordinal_suffix(&digits, case));
        Ok(())
    }

    fn sign_symbol(&self) -> char {
        if self.negative { '-' } else { '+' }
    }

    fn relevant_is_point(&self) -> bool {
        self.last_relevant.is_some_and(|at| self.digits.get(at) == Some(&b'.'))
    }

    /// The 0 before the point of `0.1` is blank in `9.9`.
    fn is_blank_zero(&self) -> bool {
        self.format.zero_start.is_none() && self.next == 0 && self.digits.first() == Some(&b'0') && self.format.after != 0
    }

    fn write_sign(&mut self) {
        let at_zero = self.format.zero_start == Some(self.position);
        let due = self.position >= self.blanks || at_zero;
        if self.sign_written || !due || (self.is_blank_zero() && !self.relevant_is_point()) {
            return;
        }
        if self.sign_place.is_some() {
            if self.sign_place == Some(SignPlace::Before) {
                self.out.push(self.sign_symbol());
                self.sign_written = true;
            }
            return;
        }
        if self.format.bracket {
            self.out.push(if self.negative { '<' } else { ' ' });
        } else if self.negative {
            self.out.push('-');
        } else if !self.format.fill {
            self.out.push(' ');
        }
        self.sign_written = true;
    }

    fn digit(&mut self, key: NumberKey) {
        self.in_number = false;
        self.write_sign();
        let before_first = self.position < self.blanks;
        let zero_from = self.format.zero_start.is_some_and(|start| start <= self.position);
        if before_first && !zero_from {
            self.blank();
        } else if before_first {
            self.out.push('0');
            self.in_number = true;
        } else {
            self.take_digit(key);
        }
        let mut end = self.positions + usize::from(self.blanks > 0) + usize::from(self.format.decimal);
        if self.last_relevant == Some(self.next) && self.last_relevant.is_some() {
            end = self.position;
        }
        if self.position + 1 == end {
            if self.sign_written && self.format.bracket {
                self.out.push(if self.negative { '>' } else { ' ' });
            } else if self.sign_place == Some(SignPlace::After) {
                self.out.push(self.sign_symbol());
            }
        }
        self.position += 1;
    }

    fn take_digit(&mut self, key: NumberKey) {
        match self.digits.get(self.next) {
            Some(b'.') => {
                if !self.relevant_is_point() || self.format.fill {
                    self.out.push('.');
                }
            }
            digit => {
                let beyond = self.last_relevant.is_some_and(|last| self.next > last) && key != NumberKey::Zero;
                if beyond {
                    // Trailing zeros are not shown.
                } else if self.is_blank_zero() {
                    if !self.format.fill {
                        self.out.push(' ');
                    } else if self.relevant_is_point() {
                        self.out.push('0');
                    }
                } else if let Some(digit) = digit {
                    self.out.push(char::from(*digit));
                    self.in_number = true;
                } else {
                    // PostgreSQL's text ends where it runs out of digits.
                    self.end.get_or_insert(self.out.len());
                }
            }
        }
        if self.next < self.digits.len() {
            self.next += 1;
        }
    }
}

/// The last digit after the point that is not 0, or the point itself; no further left than the template's last 0.
fn last_relevant(digits: &[u8], format: &NumberFormat, blanks: usize) -> Option<usize> {
    let point = digits.iter().position(|d| *d == b'.')?;
    let mut last = point;
    for (at, digit) in digits.iter().enumerate().skip(point + 1) {
        if *digit != b'0' {
            last = at;
        }
    }
    if format.zero_end > blanks {
        last = last.max((digits.len() - 1).min(format.zero_end - blanks));
    }
    Some(last)
}
