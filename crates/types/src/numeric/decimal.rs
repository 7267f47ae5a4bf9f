//! Finite decimals of any size: the working form of `Numeric`.

use std::borrow::Cow;
use std::cell::RefCell;
use std::cmp::Ordering;

use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer;

/// `mantissa / 10^scale`.
#[derive(Clone, Debug)]
pub struct Decimal {
    pub mantissa: BigInt,
    pub scale: u32,
}

/// The effect of the digits that a rounding drops.
#[derive(Clone, Copy, PartialEq)]
pub enum Rounding {
    /// To the nearest, halves away from zero.
    Nearest,
    Truncate,
}

/// 10^n for n up to 38.
#[inline]
pub fn pow10_i128(n: u16) -> i128 {
    const TABLE: [i128; 39] = {
        let mut table = [1i128; 39];
        let mut i = 1;
        while i < 39 {
            table[i] = table[i - 1] * 10;
            i += 1;
        }
        table
    };
    TABLE[n as usize]
}

pub fn pow10(n: u32) -> BigInt {
    if n <= 38 { BigInt::from(pow10_i128(n as u16)) } else { BigInt::from(10).pow(n) }
}

/// Bits from which on a search for a power of ten in a number pays, before its digits are computed one by one, which takes time
/// quadratic in their number.
const LONG_BITS: u64 = 2048;

/// A number without zeros at its end, and how many were taken: all of them or, when that is not found at once, none.
pub fn without_zeros(n: &BigUint) -> (Cow<'_, BigUint>, u32) {
    thread_local! {
        /// The power of ten used last.
        static POWER: RefCell<(u32, BigUint)> = RefCell::default();
    }
    // 10^k has k factors of two; a digit before the zeros has three more at most.
    let twos = n.trailing_zeros().and_then(|twos| u32::try_from(twos).ok()).unwrap_or(0);
    if n.bits() < LONG_BITS || u64::from(twos) < n.bits() / 8 {
        return (Cow::Borrowed(n), 0);
    }
    POWER.with_borrow_mut(|(exponent, power)| {
        if !(twos - 3..=twos).contains(exponent) {
            *exponent = twos;
            *power = BigUint::from(10u32).pow(twos);
        }
        for less in 0..=3 {
            if *exponent > twos - less {
                (*exponent, *power) = (twos - less, &*power / 10u32);
            } else if *exponent < twos - less {
                continue;
            }
            let (quotient, remainder) = n.div_rem(power);
            if remainder == BigUint::ZERO {
                return (Cow::Owned(quotient), *exponent);
            }
        }
        (Cow::Borrowed(n), 0)
    })
}

/// `n / d`, rounded. `d` is not zero.
pub fn divide(n: &BigInt, d: &BigInt, rounding: Rounding) -> BigInt {
    let (quotient, remainder) = n.div_rem(d);
    if rounding == Rounding::Truncate || remainder.sign() == Sign::NoSign {
        return quotient;
    }
    if (remainder.magnitude() << 1u32) < *d.magnitude() {
        return quotient;
    }
    if (n.sign() == Sign::Minus) == (d.sign() == Sign::Minus) { quotient + 1 } else { quotient - 1 }
}

/// A count of bits is up to one more than a logarithm; a product of these sizes has its error far behind the point.
const SIZE_ERROR: f64 = 1.001;

impl Decimal {
    pub fn new(mantissa: BigInt, scale: u32) -> Decimal {
        Decimal { mantissa, scale }
    }

    pub fn integer(v: impl Into<BigInt>) -> Decimal {
        Decimal::new(v.into(), 0)
    }

    pub fn is_zero(&self) -> bool {
        self.mantissa.sign() == Sign::NoSign
    }

    pub fn is_negative(&self) -> bool {
        self.mantissa.sign() == Sign::Minus
    }

    pub fn abs(&self) -> Decimal {
        Decimal::new(BigInt::from(self.mantissa.magnitude().clone()), self.scale)
    }

    /// Decimal digits of the mantissa; 1 for zero.
    pub fn digits(&self) -> i64 {
        digit_count(&self.mantissa)
    }

    /// The mantissa at a scale that is not less than its own.
    pub fn mantissa_at(&self, scale: u32) -> BigInt {
        if scale == self.scale { self.mantissa.clone() } else { &self.mantissa * pow10(scale - self.scale) }
    }

    pub fn compare(&self, other: &Decimal) -> Ordering {
        if self.scale == other.scale {
            return self.mantissa.cmp(&other.mantissa);
        }
        let by_sign = self.mantissa.sign().cmp(&other.mantissa.sign());
        if by_sign.is_ne() || self.is_zero() {
            return by_sign;
        }
        // Numbers that differ much in size need not be brought to one scale, where one may have a hundred thousand digits.
        let (size, other_size) = (self.size(), other.size());
        if (size - other_size).abs() > SIZE_ERROR {
            let larger = size.total_cmp(&other_size);
            return if self.mantissa.sign() == Sign::Minus { larger.reverse() } else { larger };
        }
        let scale = self.scale.max(other.scale);
        self.mantissa_at(scale).cmp(&other.mantissa_at(scale))
    }

    /// The binary logarithm of a magnitude that is not zero, too large by less than `SIZE_ERROR`.
    fn size(&self) -> f64 {
        self.mantissa.bits() as f64 - f64::from(self.scale) * std::f64::consts::LOG2_10
    }

    /// Rounded to `scale` digits after the point; a negative scale rounds before it. The result has that scale (or 0).
    pub fn round(&self, scale: i64, rounding: Rounding) -> Decimal {
        let shown = scale.max(0) as u32;
        if scale >= i64::from(self.scale) {
            return Decimal::new(self.mantissa_at(shown), shown);
        }
        let dropped = i64::from(self.scale) - scale;
        // Nothing remains of a number that is shorter than the dropped digits.
        if dropped > self.digits() {
            return Decimal::new(BigInt::from(0), shown);
        }
        let kept = divide(&self.mantissa, &pow10(dropped as u32), rounding);
        if scale >= 0 { Decimal::new(kept, shown) } else { Decimal::new(kept * pow10(scale.unsigned_abs() as u32), 0) }
    }

    pub fn add(&self, other: &Decimal) -> Decimal {
        let scale = self.scale.max(other.scale);
        Decimal::new(self.mantissa_at(scale) + other.mantissa_at(scale), scale)
    }

    pub fn sub(&self, other: &Decimal) -> Decimal {
        let scale = self.scale.max(other.scale);
        Decimal::new(self.mantissa_at(scale) - other.mantissa_at(scale), scale)
    }

    pub fn mul(&self, other: &Decimal) -> Decimal {
        Decimal::new(&self.mantissa * &other.mantissa, self.scale + other.scale)
    }

    /// The product rounded to a scale.
    pub fn mul_rounded(&self, other: &Decimal, scale: i64) -> Decimal {
        self.mul(other).round(scale, Rounding::Nearest)
    }

    /// The quotient at a scale. `other` is not zero.
    pub fn div(&self, other: &Decimal, scale: u32, rounding: Rounding) -> Decimal {
        let shift = i64::from(scale) + i64::from(other.scale) - i64::from(self.scale);
        let quotient = if shift >= 0 {
            divide(&(&self.mantissa * pow10(shift as u32)), &other.mantissa, rounding)
        } else {
            divide(&self.mantissa, &(&other.mantissa * pow10(shift.unsigned_abs() as u32)), rounding)
        };
        Decimal::new(quotient, scale)
    }

    /// Without trailing zeros after the point, down to a scale.
    pub fn trimmed(&self, least: u32) -> Decimal {
        if self.is_zero() {
            return Decimal::new(BigInt::from(0), least.min(self.scale));
        }
        let mut d = self.clone();
        while d.scale > least {
            let step = if d.scale - least >= 9 { 9 } else { 1 };
            let (q, r) = d.mantissa.div_rem(&pow10(step));
            if r.sign() != Sign::NoSign {
                if step == 1 {
                    break;
                }
                // Fewer than nine zeros: one by one.
                let (q, r) = d.mantissa.div_rem(&pow10(1));
                if r.sign() != Sign::NoSign {
                    break;
                }
                d = Decimal::new(q, d.scale - 1);
                continue;
            }
            d = Decimal::new(q, d.scale - step);
        }
        d
    }

    /// The magnitude in groups of four decimal digits around the point, as PostgreSQL stores it: the weight of the first
    /// group (a power of 10000) and the groups, without zero groups at either end. No groups, weight 0: zero.
    pub fn groups(&self) -> (i32, Vec<u16>) {
        if self.is_zero() {
            return (0, Vec::new());
        }
        let text = self.mantissa.magnitude().to_str_radix(10);
        let before_point = text.len() as i64 - i64::from(self.scale);
        let weight = (before_point - 1).div_euclid(4);
        let first = ((before_point - 1).rem_euclid(4) + 1) as usize;
        let value = |digits: &[u8]| digits.iter().fold(0u16, |v, d| v * 10 + u16::from(d - b'0'));
        let bytes = text.as_bytes();
        let (head, rest) = bytes.split_at(first.min(bytes.len()));
        let pad = |digits: &[u8], width: usize| value(digits) * 10u16.pow((width - digits.len()) as u32);
        let mut groups = vec![pad(head, first)];
        groups.extend(rest.chunks(4).map(|chunk| pad(chunk, 4)));
        while groups.last() == Some(&0) {
            groups.pop();
        }
        (weight as i32, groups)
    }

    /// Weight and value of the first group, see `groups`.
    pub fn leading(&self) -> (i32, u16) {
        let (weight, groups) = self.groups();
        (weight, groups.first().copied().unwrap_or(0))
    }

    pub fn weight(&self) -> i32 {
        if self.is_zero() { 0 } else { (self.digits() - 1 - i64::from(self.scale)).div_euclid(4) as i32 }
    }

    /// The value from groups of four digits, at a display scale; digits beyond the scale are cut off.
    pub fn from_groups(negative: bool, weight: i32, groups: &[u16], scale: u32) -> Decimal {
        let mut mantissa = BigInt::from(0);
        for &group in groups {
            mantissa = mantissa * 10_000 + group;
        }
        if negative {
            mantissa = -mantissa;
        }
        // Digits after the point in `mantissa`; negative: zeros are missing before it.
        let digits_after = 4 * (groups.len() as i64 - 1 - i64::from(weight));
        let d = if digits_after >= 0 {
            Decimal::new(mantissa, digits_after as u32)
        } else {
            Decimal::integer(mantissa * pow10(digits_after.unsigned_abs() as u32))
        };
        d.round(i64::from(scale), Rounding::Truncate)
    }

    /// Nearest double; infinite beyond the doubles.
    pub fn to_f64(&self) -> f64 {
        let mut out = Vec::new();
        super::text::write_decimal(self, &mut out);
        std::str::from_utf8(&out).ok().and_then(|s| s.parse().ok()).unwrap_or(f64::NAN)
    }
}

/// Decimal digits of a whole number; 1 for zero.
fn digit_count(v: &BigInt) -> i64 {
    let bits = v.bits();
    if bits <= 64 {
        return u64::try_from(v.magnitude()).ok().and_then(u64::checked_ilog10).map_or(1, |n| i64::from(n) + 1);
    }
    // 2^(bits-1) <= v, so v has at least `least` digits, and at most one more.
    let least = ((bits - 1) as f64 * std::f64::consts::LOG10_2) as i64 + 1;
    if *v.magnitude() >= *pow10(least as u32).magnitude() { least + 1 } else { least }
}

/// The square root rounded to a scale.
pub fn square_root(d: &Decimal, scale: u32) -> Decimal {
    // One digit more than requested decides the rounding: the truncated rest cannot make up a whole unit.
    let wanted = scale.max(d.scale.div_ceil(2)) + 1;
    let root = (&d.mantissa * pow10(2 * wanted - d.scale)).sqrt();
    Decimal::new(root, wanted).round(i64::from(scale), Rounding::Nearest)
}
