//! How a pattern is to be read: the flags argument of the regexp functions, and the options at a pattern's start.

use melba_types::{Result, err};

use crate::error::invalid;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Flavor {
    #[default]
    Advanced,
    Extended,
    Basic,
    Literal,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    pub flavor: Flavor,
    pub ignore_case: bool,
    /// `.` and negated brackets do not match a newline.
    pub newline_excluded: bool,
    /// `^` and `$` match at newlines.
    pub newline_anchors: bool,
    pub expanded: bool,
    pub global: bool,
}

impl Flags {
    /// Takes an option letter; false when there is no such option.
    fn set(&mut self, option: char) -> bool {
        match option {
            'i' => self.ignore_case = true,
            'c' => self.ignore_case = false,
            'n' | 'm' => (self.newline_excluded, self.newline_anchors) = (true, true),
            's' => (self.newline_excluded, self.newline_anchors) = (false, false),
            'p' => (self.newline_excluded, self.newline_anchors) = (true, false),
            'w' => (self.newline_excluded, self.newline_anchors) = (false, true),
            'x' => self.expanded = true,
            't' => self.expanded = false,
            'q' => self.flavor = Flavor::Literal,
            'b' => self.flavor = Flavor::Basic,
            'e' => self.flavor = Flavor::Extended,
            _ => return false,
        }
        true
    }

    /// The flags argument of the regexp functions.
    pub fn parse(options: &str) -> Result<Flags> {
        let mut flags = Flags::default();
        for c in options.chars() {
            if c == 'g' {
                flags.global = true;
            } else if c == 'e' {
                // PostgreSQL's functions clear the extended flag right after they set it.
                flags.flavor = Flavor::Basic;
            } else if !flags.set(c) {
                return Err(err!(INVALID_PARAMETER_VALUE, "invalid regular expression option: \"{c}\""));
            }
        }
        Ok(flags)
    }

    fn literal(self) -> Flags {
        Flags { flavor: Flavor::Literal, expanded: false, newline_excluded: false, newline_anchors: false, ..self }
    }

    /// Takes the options at a pattern's start: `***=`, `***:`, `(?letters)`. Returns the flags and the rest.
    ///
    /// # Errors
    /// 2201B for unknown options, or incompatible ones.
    pub fn of_pattern(self, pattern: &str) -> Result<(Flags, &str)> {
        let mut flags = self;
        if flags.flavor == Flavor::Literal {
            if flags.expanded || flags.newline_excluded || flags.newline_anchors {
                return Err(invalid("invalid argument to regex function"));
            }
            return Ok((flags, pattern));
        }
        let mut body = pattern;
        if let Some(rest) = pattern.strip_prefix("***")
            && let Some(director) = rest.chars().next()
        {
            match director {
                '=' => return Ok((flags.literal(), &rest[1..])),
                ':' => (flags.flavor, body) = (Flavor::Advanced, &rest[1..]),
                '?' => return Err(invalid("invalid regexp (reg version 0.8)")),
                _ => return Err(invalid("quantifier operand invalid")),
            }
        }
        if flags.flavor == Flavor::Advanced
            && let Some(options) = body.strip_prefix("(?")
            && options.starts_with(|c: char| c.is_ascii_alphabetic())
        {
            let end = options.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(options.len());
            if !options[end..].starts_with(')') || !options[..end].chars().all(|c| flags.set(c)) {
                return Err(invalid("invalid embedded option"));
            }
            body = &options[end + 1..];
            if flags.flavor == Flavor::Literal {
                flags = flags.literal();
            }
        }
        Ok((flags, body))
    }
}
