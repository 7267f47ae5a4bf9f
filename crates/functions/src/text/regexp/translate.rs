//! PostgreSQL's regular expressions in the syntax of the `regex` and `fancy-regex` crates.
//!
//! Advanced regular expressions (and extended ones, their subset) are parsed and written anew: bracket expressions with
//! their classes, escapes such as `\y` and `\m`, bounds, embedded options, comments. Back references and lookaround need
//! `fancy-regex`. Basic regular expressions are refused.

use melba_types::{DbError, Result, err};

/// How a pattern is to be read: flags such as 'i', and what a pattern's own prefix says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    pub ignore_case: bool,
    /// `.` and negated brackets do not match a newline.
    pub newline_excluded: bool,
    /// `^` and `$` match at newlines.
    pub newline_anchors: bool,
    pub expanded: bool,
    pub literal: bool,
    pub basic: bool,
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
            'q' => (self.literal, self.basic) = (true, false),
            'b' => (self.basic, self.literal) = (true, false),
            'e' => (self.basic, self.literal) = (false, false),
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
            } else if !flags.set(c) {
                return Err(err!(INVALID_PARAMETER_VALUE, "invalid regular expression option: \"{c}\""));
            }
        }
        Ok(flags)
    }
}

/// A translated pattern.
#[derive(Debug, PartialEq)]
pub struct Translation {
    pub pattern: String,
    /// Needs back references or lookaround.
    pub fancy: bool,
    /// Leftmost-first matching might not find the match that PostgreSQL's rules want.
    pub ambiguous: bool,
    /// The whole prefers the shortest match.
    pub shortest: bool,
    pub groups: usize,
}

pub fn invalid(reason: &str) -> DbError {
    err!(INVALID_REGULAR_EXPRESSION, "invalid regular expression: {reason}")
}

/// Translates a pattern.
///
/// # Errors
/// 2201B with PostgreSQL's reason for a pattern that is none.
pub fn translate(pattern: &str, mut flags: Flags) -> Result<Translation> {
    let mut body = pattern;
    if let Some(rest) = body.strip_prefix("***=") {
        (flags.literal, body) = (true, rest);
    } else if let Some(rest) = body.strip_prefix("***:") {
        (flags.basic, body) = (false, rest);
    } else if body.starts_with("***") {
        return Err(invalid("quantifier operand invalid"));
    }
    if flags.literal {
        let prefix = if flags.ignore_case { "(?i)" } else { "" };
        let pattern = format!("{prefix}{}", regex::escape(body));
        return Ok(Translation { pattern, fancy: false, ambiguous: false, shortest: false, groups: 0 });
    }
    // (?letters) at the very start.
    if let Some(options) = body.strip_prefix("(?")
        && options.starts_with(|c: char| c.is_ascii_alphabetic())
    {
        let end = options.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(options.len());
        if !options[end..].starts_with(')') || !options[..end].chars().all(|c| flags.set(c)) {
            return Err(invalid("invalid embedded option"));
        }
        body = &options[end + 1..];
    }
    if flags.basic {
        return Err(DbError::unsupported("basic regular expression syntax"));
    }
    let first = Translator::new(body, flags, false).run()?;
    if !first.fancy {
        return Ok(first);
    }
    Translator::new(body, flags, true).run()
}

/// Which match an expression prefers, known once something in it is quantified.
#[derive(Clone, Copy, PartialEq)]
enum Preference {
    Longest,
    Shortest,
}

struct Translator {
    chars: Vec<char>,
    at: usize,
    flags: Flags,
    out: String,
    groups: usize,
    for_fancy: bool,
    fancy: bool,
    alternation: bool,
    lazy: bool,
    quantified_group: bool,
    /// Inside of a group that is to match as little as it can, whatever its own quantifiers prefer.
    shortest: bool,
    depth: usize,
    /// Atoms, each as often as it is repeated.
    weight: usize,
}

/// What an atom was, for what may follow it.
#[derive(PartialEq)]
enum Atom {
    Quantifiable(Option<Preference>),
    Group(Option<Preference>),
    /// Anchors, lookaround: no quantifier may follow.
    Constraint,
}

const TOO_COMPLEX: &str = "regular expression is too complex";
/// Compiled, an atom takes some hundred bytes. PostgreSQL's limit of states lets about as much pass where a repetition is inside
/// of another one.
const WEIGHT_MAX: usize = 30_000;
const NOT_BALANCED: &str = "parentheses () not balanced";
const WORD: &str = "\\p{Alphabetic}0-9_";

impl Translator {
    fn new(body: &str, flags: Flags, for_fancy: bool) -> Translator {
        Translator {
            chars: body.chars().collect(),
            at: 0,
            flags,
            out: String::new(),
            groups: 0,
            for_fancy,
            fancy: false,
            alternation: false,
            lazy: false,
            quantified_group: false,
            shortest: false,
            depth: 0,
            weight: 0,
        }
    }

    fn run(mut self) -> Result<Translation> {
        if self.flags.ignore_case {
            self.out.push_str("(?i)");
        }
        let preference = self.alternation()?;
        if self.at < self.chars.len() {
            return Err(invalid(NOT_BALANCED));
        }
        Ok(Translation {
            pattern: self.out,
            fancy: self.fancy,
            ambiguous: self.alternation || self.lazy || self.quantified_group,
            shortest: preference == Some(Preference::Shortest),
            groups: self.groups,
        })
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn peek_at(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek();
        self.at += usize::from(c.is_some());
        c
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = text.chars().enumerate().all(|(i, c)| self.peek_at(i) == Some(c));
        if found {
            self.at += text.chars().count();
        }
        found
    }

    fn literal(&mut self, c: char) {
        self.out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
    }

    /// Branches up to a closing parenthesis or the end. Several branches together prefer the longest match.
    fn alternation(&mut self) -> Result<Option<Preference>> {
        self.depth += 1;
        if self.depth > 250 {
            return Err(invalid(TOO_COMPLEX));
        }
        let mut preference = self.branch()?;
        while self.peek() == Some('|') {
            self.at += 1;
            self.out.push('|');
            self.alternation = true;
            self.branch()?;
            preference = Some(Preference::Longest);
        }
        self.depth -= 1;
        Ok(preference)
    }

    fn branch(&mut self) -> Result<Option<Preference>> {
        let mut preference = None;
        loop {
            self.skip_expanded()?;
            match self.peek() {
                None | Some('|') => return Ok(preference),
                Some(')') if self.depth > 1 => return Ok(preference),
                Some(')') => return Err(invalid(NOT_BALANCED)),
                Some(_) => {}
            }
            let (from, start, groups, weight) = (self.at, self.out.len(), self.groups, self.weight);
            let atom = self.atom()?;
            if matches!(atom, Atom::Group(_)) && !self.shortest && self.eat_shortest() {
                let end = self.at;
                self.out.truncate(start);
                (self.at, self.groups, self.weight, self.shortest) = (from, groups, weight, true);
                self.atom()?;
                (self.at, self.shortest, self.lazy) = (end, false, true);
                preference = preference.or(Some(Preference::Shortest));
                continue;
            }
            let quantified = self.quantifier(start, weight, &atom)?;
            let own = match atom {
                Atom::Quantifiable(p) | Atom::Group(p) => quantified.or(p),
                Atom::Constraint => None,
            };
            preference = preference.or(own);
        }
    }

    /// Comments, and white space where the expanded syntax ignores it.
    fn skip_expanded(&mut self) -> Result<()> {
        loop {
            if self.eat("(?#") {
                while self.next().ok_or_else(|| invalid(NOT_BALANCED))? != ')' {}
                continue;
            }
            if !self.flags.expanded {
                return Ok(());
            }
            match self.peek() {
                Some(c) if c.is_ascii_whitespace() || c == '\x0b' => self.at += 1,
                Some('#') => while self.next().is_some_and(|c| c != '\n') {},
                _ => return Ok(()),
            }
        }
    }

    fn atom(&mut self) -> Result<Atom> {
        let Some(c) = self.next() else { return Err(invalid("invalid regular expression")) };
        self.weight += 1;
        match c {
            '.' => self.out.push_str(if self.flags.newline_excluded { "(?-s:.)" } else { "(?s:.)" }),
            '^' => {
                self.out.push_str(if self.flags.newline_anchors { "(?m:^)" } else { "\\A" });
                return Ok(Atom::Constraint);
            }
            '$' => {
                self.out.push_str(if self.flags.newline_anchors { "(?m:$)" } else { "\\z" });
                return Ok(Atom::Constraint);
            }
            '(' => return self.group(),
            '[' => return self.bracket(),
            '\\' => return self.escape(),
            '*' | '+' | '?' => return Err(invalid("quantifier operand invalid")),
            '{' if self.peek().is_some_and(|c| c.is_ascii_digit()) => return Err(invalid("quantifier operand invalid")),
            c => self.literal(c),
        }
        Ok(Atom::Quantifiable(None))
    }

    fn group(&mut self) -> Result<Atom> {
        let constraint = ["?=", "?!", "?<=", "?<!"].into_iter().find(|c| self.eat(c));
        if let Some(constraint) = constraint {
            self.fancy = true;
            self.out.push('(');
            self.out.push_str(constraint);
        } else if self.eat("?:") {
            self.out.push_str("(?:");
        } else if self.peek() == Some('?') {
            return Err(invalid("quantifier operand invalid"));
        } else {
            self.groups += 1;
            self.out.push('(');
        }
        let preference = self.alternation()?;
        if self.next() != Some(')') {
            return Err(invalid(NOT_BALANCED));
        }
        self.out.push(')');
        Ok(if constraint.is_some() { Atom::Constraint } else { Atom::Group(preference) })
    }

    /// The quantifier that changes nothing of a group but its preference.
    fn eat_shortest(&mut self) -> bool {
        self.eat("{1,1}?") || self.eat("{1}?")
    }

    /// A quantifier of what was written from `start` on and has made the whole heavier than `weight`, when there is one; answers
    /// the preference it gives.
    fn quantifier(&mut self, start: usize, weight: usize, atom: &Atom) -> Result<Option<Preference>> {
        self.skip_expanded()?;
        let mut is_exact = false;
        let (minimum, maximum) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') if self.peek_at(1).is_some_and(|c| c.is_ascii_digit()) => {
                self.at += 1;
                let minimum = self.bound()?;
                let maximum = if self.peek() == Some(',') {
                    self.at += 1;
                    if self.peek().is_some_and(|c| c.is_ascii_digit()) { Some(self.bound()?) } else { None }
                } else {
                    is_exact = true;
                    Some(minimum)
                };
                if self.peek() != Some('}') {
                    return Err(invalid(if self.peek().is_none() {
                        "braces {} not balanced"
                    } else {
                        "invalid repetition count(s)"
                    }));
                }
                if maximum.is_some_and(|maximum| maximum < minimum) {
                    return Err(invalid("invalid repetition count(s)"));
                }
                (minimum, maximum)
            }
            _ => return Ok(None),
        };
        self.at += 1;
        if *atom == Atom::Constraint {
            return Err(invalid("quantifier operand invalid"));
        }
        let lazy = self.peek() == Some('?');
        if lazy {
            self.at += 1;
            self.lazy = true;
        }
        if matches!(self.peek(), Some('*' | '+' | '?')) {
            return Err(invalid("quantifier operand invalid"));
        }
        // Repetitions are copies in what is compiled.
        let copies = maximum.unwrap_or(minimum).max(1) as usize;
        self.weight = weight + (self.weight - weight).saturating_mul(copies);
        if self.weight > WEIGHT_MAX {
            return Err(invalid(TOO_COMPLEX));
        }
        self.quantified_group |= matches!(atom, Atom::Group(_)) && maximum != Some(1);
        // An escaped or multi-character atom is one unit only in a group of its own.
        let unit = self.out.split_off(start);
        self.out.push_str(&format!("(?:{unit})"));
        self.out.push_str(&match (minimum, maximum) {
            (0, None) => "*".to_string(),
            (1, None) => "+".to_string(),
            (0, Some(1)) => "?".to_string(),
            (minimum, None) => format!("{{{minimum},}}"),
            (minimum, Some(maximum)) => format!("{{{minimum},{maximum}}}"),
        });
        if lazy || self.shortest {
            self.out.push('?');
        }
        // {m} without a question mark leaves the preference to the atom; {m,m} does not.
        if is_exact && !lazy && minimum != 0 {
            return Ok(None);
        }
        Ok(Some(if lazy { Preference::Shortest } else { Preference::Longest }))
    }

    fn bound(&mut self) -> Result<u32> {
        let mut n = 0;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            n = n * 10 + digit;
            if n > 255 {
                return Err(invalid("invalid repetition count(s)"));
            }
            self.at += 1;
        }
        Ok(n)
    }

    /// An escape outside brackets.
    fn escape(&mut self) -> Result<Atom> {
        let Some(&c) = self.chars.get(self.at) else { return Err(invalid("invalid escape \\ sequence")) };
        let constraint = match c {
            'A' => "\\A",
            'Z' => "\\z",
            'y' => "\\b",
            'Y' => "\\B",
            'm' if self.for_fancy => "\\b(?=\\w)",
            'm' => "\\b{start}",
            'M' if self.for_fancy => "\\b(?<=\\w)",
            'M' => "\\b{end}",
            _ => "",
        };
        if !constraint.is_empty() {
            self.at += 1;
            self.out.push_str(constraint);
            return Ok(Atom::Constraint);
        }
        let class = match c {
            'd' => "[0-9]".to_string(),
            'D' => "[^0-9]".to_string(),
            's' => "\\s".to_string(),
            'S' => "\\S".to_string(),
            'w' => format!("[{WORD}]"),
            'W' => format!("[^{WORD}]"),
            _ => String::new(),
        };
        if !class.is_empty() {
            self.at += 1;
            self.out.push_str(&class);
            return Ok(Atom::Quantifiable(None));
        }
        if c.is_ascii_digit() && c != '0' {
            // A reference when one digit, or as many groups exist; else octal.
            let digits: String = self.chars[self.at..].iter().take_while(|c| c.is_ascii_digit()).collect();
            let number: usize = digits.parse().unwrap_or(usize::MAX);
            if digits.len() == 1 || number <= self.groups {
                if number > self.groups {
                    return Err(invalid("invalid backreference number"));
                }
                self.at += digits.len();
                self.fancy = true;
                self.out.push_str(&format!("\\{number}"));
                return Ok(Atom::Quantifiable(None));
            }
        }
        let c = self.character_escape()?;
        self.literal(c);
        Ok(Atom::Quantifiable(None))
    }

    /// An escape that stands for one character.
    fn character_escape(&mut self) -> Result<char> {
        let invalid_escape = || invalid("invalid escape \\ sequence");
        let c = self.next().ok_or_else(invalid_escape)?;
        let code = match c {
            'a' => 7,
            'b' => 8,
            'B' => return Ok('\\'),
            'c' => self.next().ok_or_else(invalid_escape)? as u32 & 0x1f,
            'e' => 27,
            'f' => 12,
            'n' => 10,
            'r' => 13,
            't' => 9,
            'v' => 11,
            'u' => self.digits(16, 4, 4)?,
            'U' => self.digits(16, 8, 8)?,
            'x' => self.digits(16, 1, 255)?,
            '0'..='9' => {
                self.at -= 1;
                self.digits(8, 1, 3)?
            }
            c if c.is_ascii_alphanumeric() => return Err(invalid_escape()),
            c => return Ok(c),
        };
        char::from_u32(code).ok_or_else(invalid_escape)
    }

    fn digits(&mut self, radix: u32, least: usize, most: usize) -> Result<u32> {
        let mut value = 0u32;
        let mut count = 0;
        while count < most
            && let Some(digit) = self.peek().and_then(|c| c.to_digit(radix))
        {
            value = value
                .checked_mul(radix)
                .and_then(|v| v.checked_add(digit))
                .ok_or_else(|| invalid("invalid escape \\ sequence"))?;
            self.at += 1;
            count += 1;
        }
        if count < least { Err(invalid("invalid escape \\ sequence")) } else { Ok(value) }
    }

    fn bracket(&mut self) -> Result<Atom> {
        // [[:<:]] and [[:>:]] are word boundaries.
        for (text, constraint) in [("[:<:]]", 'm'), ("[:>:]]", 'M')] {
            if self.eat(text) {
                self.chars.insert(self.at, constraint);
                return self.escape();
            }
        }
        let negated = self.eat("^");
        let mut class = String::from(if negated { "[^" } else { "[" });
        if negated && self.flags.newline_excluded {
            class.push_str("\\n");
        }
        let mut first = true;
        loop {
            match self.peek() {
                None => return Err(invalid("brackets [] not balanced")),
                Some(']') if !first => break,
                Some(_) => self.bracket_item(&mut class)?,
            }
            first = false;
        }
        self.at += 1;
        class.push(']');
        self.out.push_str(&class);
        Ok(Atom::Quantifiable(None))
    }

    fn bracket_item(&mut self, class: &mut String) -> Result<()> {
        if self.eat("[:") {
            let name = self.until(":]")?;
            class.push_str(named_class(&name).ok_or_else(|| invalid("invalid character class"))?);
            return Ok(());
        }
        if self.peek() == Some('\\')
            && let Some(c) = self.peek_at(1)
            && "dDsSwW".contains(c)
        {
            self.at += 2;
            class.push_str(match c {
                'd' => "0-9",
                'D' => "[^0-9]",
                's' => "\\s",
                'S' => "\\S",
                'w' => WORD,
                _ => "[^\\p{Alphabetic}0-9_]",
            });
            return Ok(());
        }
        let low = self.bracket_char()?;
        // A hyphen makes a range, unless it is the last character.
        if self.peek() == Some('-') && self.peek_at(1).is_some_and(|c| c != ']') {
            self.at += 1;
            let high = self.bracket_char()?;
            if high < low {
                return Err(invalid("invalid character range"));
            }
            push_class_char(class, low);
            class.push('-');
            push_class_char(class, high);
        } else {
            push_class_char(class, low);
        }
        Ok(())
    }

    fn bracket_char(&mut self) -> Result<char> {
        for (open, close) in [("[.", ".]"), ("[=", "=]")] {
            if self.eat(open) {
                let name = self.until(close)?;
                let mut chars = name.chars();
                return match (chars.next(), chars.next()) {
                    (Some(c), None) => Ok(c),
                    _ => Err(invalid("invalid collating element")),
                };
            }
        }
        match self.next() {
            Some('\\') => self.character_escape(),
            Some(c) => Ok(c),
            None => Err(invalid("brackets [] not balanced")),
        }
    }

    fn until(&mut self, close: &str) -> Result<String> {
        let mut name = String::new();
        while !self.eat(close) {
            name.push(self.next().ok_or_else(|| invalid("brackets [] not balanced"))?);
        }
        Ok(name)
    }
}

fn push_class_char(class: &mut String, c: char) {
    if c.is_ascii_punctuation() {
        class.push('\\');
    }
    class.push(c);
}

fn named_class(name: &str) -> Option<&'static str> {
    Some(match name {
        "alpha" => "\\p{Alphabetic}",
        "digit" => "0-9",
        "alnum" => "\\p{Alphabetic}0-9",
        "upper" => "\\p{Uppercase}",
        "lower" => "\\p{Lowercase}",
        "space" => "\\s",
        "blank" => " \\t",
        "punct" => "\\p{P}\\p{S}",
        "cntrl" => "\\p{Cc}",
        "graph" => "[^\\s\\p{Cc}]",
        "print" => "[^\\p{Cc}]",
        "xdigit" => "0-9A-Fa-f",
        "ascii" => "\\x00-\\x7f",
        "word" => WORD,
        _ => return None,
    })
}
