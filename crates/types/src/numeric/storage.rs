//! Bytes of numerics: the storage format and PostgreSQL's binary wire format.
//!
//! ```text
//! u8 tag 0..=18: scale      | mantissa, little-endian two's complement in as few bytes as it needs (zero: none)
//! u8 tag 0x40               | u16 scale | mantissa as above, any length
//! u8 tag 0x80, 0x81, 0x82   NaN, Infinity, -Infinity
//! ```

use std::sync::Arc;

use num_bigint::BigInt;

use super::decimal::{self, Decimal};
use super::{Numeric, Repr, SCALE_MAX, SMALL_SCALE_MAX};
use crate::{DbError, Result, err};

const TAG_BIG: u8 = 0x40;
const TAG_NAN: u8 = 0x80;
const TAG_INFINITY: u8 = 0x81;
const TAG_NEGATIVE_INFINITY: u8 = 0x82;

const WIRE_POSITIVE: u16 = 0x0000;
const WIRE_NEGATIVE: u16 = 0x4000;
const WIRE_NAN: u16 = 0xc000;
const WIRE_INFINITY: u16 = 0xd000;
const WIRE_NEGATIVE_INFINITY: u16 = 0xf000;

impl Numeric {
    /// Appends the storage format.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::Small { mantissa, scale } => {
                out.push(*scale as u8);
                // Bytes above the last one that differs from the sign are left out.
                let significant_bits = 64 - (mantissa ^ (mantissa >> 63)).leading_zeros();
                let bytes = if *mantissa == 0 { 0 } else { significant_bits as usize / 8 + 1 };
                out.extend_from_slice(&mantissa.to_le_bytes()[..bytes]);
            }
            Repr::Big(d) => {
                out.push(TAG_BIG);
                out.extend_from_slice(&(d.scale as u16).to_le_bytes());
                out.extend_from_slice(&d.mantissa.to_signed_bytes_le());
            }
            Repr::NaN => out.push(TAG_NAN),
            Repr::PositiveInfinity => out.push(TAG_INFINITY),
            Repr::NegativeInfinity => out.push(TAG_NEGATIVE_INFINITY),
        }
    }

    /// Reads the storage format; `None` for bytes that no `encode` wrote.
    pub fn decode(bytes: &[u8]) -> Option<Numeric> {
        let (&tag, rest) = bytes.split_first()?;
        match tag {
            TAG_NAN => Some(Numeric::NAN),
            TAG_INFINITY => Some(Numeric::INFINITY),
            TAG_NEGATIVE_INFINITY => Some(Numeric::NEGATIVE_INFINITY),
            TAG_BIG => {
                let (scale, mantissa) = rest.split_first_chunk::<2>()?;
                let scale = u32::from(u16::from_le_bytes(*scale));
                let d = Decimal::new(BigInt::from_signed_bytes_le(mantissa), scale);
                (scale <= SCALE_MAX).then(|| Numeric(Repr::Big(Arc::new(d))))
            }
            scale if u16::from(scale) <= SMALL_SCALE_MAX => {
                let negative = rest.last().is_some_and(|b| b & 0x80 != 0);
                let mut word = [if negative { 0xff } else { 0 }; 8];
                word.get_mut(..rest.len())?.copy_from_slice(rest);
                Some(Numeric::small(i64::from_le_bytes(word), u16::from(scale)))
            }
            _ => None,
        }
    }

    /// Bytes of PostgreSQL's own form of a finite value: lengths, a header that is short for most, groups of four digits.
    pub fn postgres_bytes(&self) -> usize {
        let Some(d) = self.decimal() else { return 6 };
        let (weight, groups) = d.groups();
        let header = if d.scale <= 63 && (-64..=63).contains(&weight) { 2 } else { 4 };
        4 + header + 2 * groups.len()
    }

    /// Appends the binary wire format: counts, weight, sign, scale, groups of four digits.
    pub fn write_wire(&self, out: &mut Vec<u8>) {
        let (sign, scale, weight, groups) = match self.decimal() {
            Some(d) => {
                let (weight, groups) = d.groups();
                (if d.is_negative() { WIRE_NEGATIVE } else { WIRE_POSITIVE }, d.scale as u16, weight as i16, groups)
            }
            None => {
                // PostgreSQL sends a scale with the infinities, which no reader uses.
                let (sign, scale) = match self.0 {
                    Repr::NaN => (WIRE_NAN, 0),
                    Repr::PositiveInfinity => (WIRE_INFINITY, 0x20),
                    _ => (WIRE_NEGATIVE_INFINITY, 0x20),
                };
                (sign, scale, 0, Vec::new())
            }
        };
        out.extend_from_slice(&(groups.len() as u16).to_be_bytes());
        out.extend_from_slice(&weight.to_be_bytes());
        out.extend_from_slice(&sign.to_be_bytes());
        out.extend_from_slice(&scale.to_be_bytes());
        for group in groups {
            out.extend_from_slice(&group.to_be_bytes());
        }
    }

    /// Reads the binary wire format.
    pub fn read_wire(bytes: &[u8]) -> Result<Numeric> {
        let short = || err!(PROTOCOL_VIOLATION, "insufficient data left in message");
        let invalid =
            |what: &str| -> DbError { err!(INVALID_BINARY_REPRESENTATION, "invalid {what} in external \"numeric\" value") };
        let word = |at: usize| bytes.get(at..at + 2).map(|b| u16::from_be_bytes([b[0], b[1]])).ok_or_else(short);
        let (count, weight, sign, scale) = (word(0)? as usize, word(2)? as i16, word(4)?, word(6)?);
        let special = match sign {
            WIRE_POSITIVE | WIRE_NEGATIVE => None,
            WIRE_NAN => Some(Numeric::NAN),
            WIRE_INFINITY => Some(Numeric::INFINITY),
            WIRE_NEGATIVE_INFINITY => Some(Numeric::NEGATIVE_INFINITY),
            _ => return Err(invalid("sign")),
        };
        if u32::from(scale) > SCALE_MAX {
            return Err(invalid("scale"));
        }
        let groups = (0..count).map(|i| word(8 + 2 * i)).collect::<Result<Vec<u16>>>()?;
        if groups.iter().any(|&g| g >= 10_000) {
            return Err(invalid("digit"));
        }
        if bytes.len() != 8 + 2 * count {
            return Err(err!(INVALID_BINARY_REPRESENTATION, "incorrect binary data format"));
        }
        // The digits of special values are read, and ignored.
        if let Some(special) = special {
            return Ok(special);
        }
        let negative = sign == WIRE_NEGATIVE;
        Numeric::from_decimal(Decimal::from_groups(negative, i32::from(weight), &groups, u32::from(scale)))
    }

    /// The digits of a value in order-preserving form: power of ten of the number `0.digits`, and the digits (0 to 9)
    /// without zeros at the end. `None` for zero and the special values.
    pub fn scientific(&self) -> Option<(i32, Vec<u8>)> {
        let d = self.decimal().filter(|d| !d.is_zero())?;
        let (magnitude, zeros) = decimal::without_zeros(d.mantissa.magnitude());
        let mut digits = magnitude.to_radix_be(10);
        let exponent = digits.len() as i64 + i64::from(zeros) - i64::from(d.scale);
        while digits.last() == Some(&0) {
            digits.pop();
        }
        Some((exponent as i32, digits))
    }

    /// The inverse of `scientific`, at the least scale; `None` beyond the format.
    pub fn from_scientific(negative: bool, exponent: i32, digits: &[u8]) -> Option<Numeric> {
        let mantissa =
            BigInt::from_radix_be(if negative { num_bigint::Sign::Minus } else { num_bigint::Sign::Plus }, digits, 10)?;
        let scale = digits.len() as i64 - i64::from(exponent);
        let d = if scale >= 0 {
            Decimal::new(mantissa, scale as u32)
        } else if -scale <= super::INTEGER_DIGITS_MAX {
            Decimal::integer(mantissa * super::decimal::pow10(-scale as u32))
        } else {
            return None;
        };
        Numeric::from_decimal(d).ok()
    }
}
