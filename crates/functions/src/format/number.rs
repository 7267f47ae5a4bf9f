//! A number template, checked: digits before and after the point, signs, fill mode.

use melba_types::{DbError, Result, err};

use super::template::{FormatNode, NumberKey, number_template};

/// Where an S pattern puts the sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignPlace {
    Before,
    After,
}

/// A number template.
#[derive(Clone, Debug)]
pub struct NumberFormat {
    pub nodes: Vec<FormatNode<NumberKey>>,
    /// Digit positions before and after the point.
    pub before: usize,
    pub after: usize,
    /// Digit position (0-based) of the first 0, and 1-based of the last.
    pub zero_start: Option<usize>,
    pub zero_end: usize,
    /// Digits after V.
    pub shift: usize,
    pub has_shift: bool,
    pub decimal: bool,
    pub fill: bool,
    pub blank: bool,
    pub sign: Option<SignPlace>,
    /// Digit positions before the S.
    pub before_sign: usize,
    pub minus: bool,
    pub plus: bool,
    pub bracket: bool,
    pub roman: bool,
    pub exponent: bool,
}

fn syntax(message: &str) -> DbError {
    err!(SYNTAX_ERROR, "{message}")
}

impl NumberFormat {
    pub fn parse(template: &str) -> Result<NumberFormat> {
        let nodes = number_template(template)?;
        let mut format = NumberFormat {
            nodes: Vec::new(),
            before: 0,
            after: 0,
            zero_start: None,
            zero_end: 0,
            shift: 0,
            has_shift: false,
            decimal: false,
            fill: false,
            blank: false,
            sign: None,
            before_sign: 0,
            minus: false,
            plus: false,
            bracket: false,
            roman: false,
            exponent: false,
        };
        for node in &nodes {
            if let FormatNode::Key(pattern) = node {
                format.add(pattern.key)?;
            }
        }
        format.nodes = nodes;
        Ok(format)
    }

    fn add(&mut self, key: NumberKey) -> Result<()> {
        if self.exponent && key != NumberKey::Exponent {
            return Err(syntax("\"EEEE\" must be the last pattern used"));
        }
        match key {
            NumberKey::Nine | NumberKey::Zero => self.digit(key)?,
            NumberKey::Blank if self.before == 0 && self.after == 0 && self.zero_start.is_none() => self.blank = true,
            NumberKey::LocalePoint | NumberKey::Point => {
                if self.decimal {
                    return Err(syntax("multiple decimal points"));
                }
                if self.has_shift {
                    return Err(syntax("cannot use \"V\" and decimal point together"));
                }
                self.decimal = true;
            }
            NumberKey::Fill => self.fill = true,
            NumberKey::Sign | NumberKey::Minus | NumberKey::Plus | NumberKey::SignEither | NumberKey::Bracket => {
                self.signs(key)?;
            }
            NumberKey::Roman => {
                if self.roman {
                    return Err(syntax("cannot use \"RN\" twice"));
                }
                self.roman = true;
            }
            NumberKey::Shift => {
                if self.decimal {
                    return Err(syntax("cannot use \"V\" and decimal point together"));
                }
                self.has_shift = true;
            }
            NumberKey::Exponent => self.exponent()?,
            _ => {}
        }
        let others = self.zero_start.is_some()
            || self.blank
            || self.decimal
            || self.has_shift
            || self.sign.is_some()
            || self.minus
            || self.plus
            || self.bracket
            || self.exponent;
        if self.roman && others {
            return Err(
                syntax("\"RN\" is incompatible with other formats").detail("\"RN\" may only be used together with \"FM\".")
            );
        }
        Ok(())
    }

    fn digit(&mut self, key: NumberKey) -> Result<()> {
        if self.bracket {
            let digit = if key == NumberKey::Nine { "9" } else { "0" };
            return Err(syntax(&format!("\"{digit}\" must be ahead of \"PR\"")));
        }
        if key == NumberKey::Zero {
            if self.zero_start.is_none() && !self.decimal {
                self.zero_start = Some(self.before);
            }
            if self.decimal {
                self.after += 1;
            } else {
                self.before += 1;
            }
            self.zero_end = self.before + self.after;
        } else if self.has_shift {
            self.shift += 1;
        } else if self.decimal {
            self.after += 1;
        } else {
            self.before += 1;
        }
        Ok(())
    }

    fn signs(&mut self, key: NumberKey) -> Result<()> {
        let name = match key {
            NumberKey::Minus => "MI",
            NumberKey::Plus => "PL",
            _ => "SG",
        };
        match key {
            NumberKey::Sign => {
                if self.sign.is_some() {
                    return Err(syntax("cannot use \"S\" twice"));
                }
                if self.plus || self.minus || self.bracket {
                    return Err(syntax("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together"));
                }
                self.sign = Some(if self.decimal { SignPlace::After } else { SignPlace::Before });
                self.before_sign = self.before;
            }
            NumberKey::Bracket => {
                if self.sign.is_some() || self.plus || self.minus {
                    return Err(syntax("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
                }
                self.bracket = true;
            }
            _ => {
                if self.sign.is_some() {
                    return Err(syntax(&format!("cannot use \"S\" and \"{name}\" together")));
                }
                self.minus |= key != NumberKey::Plus;
                self.plus |= key != NumberKey::Minus;
            }
        }
        Ok(())
    }

    fn exponent(&mut self) -> Result<()> {
        if self.exponent {
            return Err(syntax("cannot use \"EEEE\" twice"));
        }
        let others = self.blank
            || self.fill
            || self.sign.is_some()
            || self.bracket
            || self.minus
            || self.plus
            || self.roman
            || self.has_shift;
        if others {
            return Err(syntax("\"EEEE\" is incompatible with other formats")
                .detail("\"EEEE\" may only be used together with digit and decimal point patterns."));
        }
        self.exponent = true;
        Ok(())
    }
}

const ROMAN: [(i32, &str); 13] = [
    (1000, "M"),
    (900, "CM"),
    (500, "D"),
    (400, "CD"),
    (100, "C"),
    (90, "XC"),
    (50, "L"),
    (40, "XL"),
    (10, "X"),
    (9, "IX"),
    (5, "V"),
    (4, "IV"),
    (1, "I"),
];

/// Longest Roman numeral.
pub const ROMAN_LENGTH_MAX: usize = 15;

/// A Roman numeral, of 1 to 3999.
pub fn roman(mut value: i32) -> Option<String> {
    if !(1..=3999).contains(&value) {
        return None;
    }
    let mut out = String::new();
    for (unit, letters) in ROMAN {
        while value >= unit {
            out.push_str(letters);
            value -= unit;
        }
    }
    Some(out)
}
