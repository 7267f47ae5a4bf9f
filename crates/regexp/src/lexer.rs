//! Tokens of regular expressions.

use melba_types::Result;

use crate::error::invalid;
use crate::flags::{Flags, Flavor};
use crate::parse::Preference;

#[derive(Clone, Debug, PartialEq)]
pub enum RegexpToken {
    End,
    Or,
    Open {
        captures: bool,
    },
    Close,
    Look {
        behind: bool,
        negative: bool,
    },
    /// One character of a set, in the syntax of the `regex` crate.
    Set(String),
    Place(&'static str),
    Back(usize),
    Repeat {
        min: u32,
        max: Option<u32>,
        prefers: Option<Preference>,
    },
}

const REPETITIONS_MAX: u32 = 255;
const BAD_ESCAPE: &str = "invalid escape \\ sequence";
const BAD_BOUND: &str = "invalid repetition count(s)";
const BAD_RANGE: &str = "invalid character range";
const OPEN_BRACKET: &str = "brackets [] not balanced";
const WORD: &str = "\\p{Alphabetic}0-9_";
const WORD_START: &str = "\\b{start}";
const WORD_END: &str = "\\b{end}";

pub struct Lexer {
    chars: Vec<char>,
    at: usize,
    flags: Flags,
    /// In basic expressions some characters are special only at a start: of the whole, or of a group.
    starts: bool,
    /// The same, after `^`.
    follows_anchor: bool,
}

/// The meaning of an escape.
enum Escape {
    Char(char),
    Class { name: &'static str, negated: bool },
    Place(&'static str),
    Back(usize),
}

impl Lexer {
    pub fn new(pattern: &str, flags: Flags) -> Lexer {
        Lexer { chars: pattern.chars().collect(), at: 0, flags, starts: true, follows_anchor: false }
    }

    pub fn flavor(&self) -> Flavor {
        self.flags.flavor
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek();
        self.at += usize::from(c.is_some());
        c
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = text.chars().enumerate().all(|(i, c)| self.chars.get(self.at + i) == Some(&c));
        if found {
            self.at += text.chars().count();
        }
        found
    }

    /// White space and comments, where the expanded syntax ignores them.
    fn skip(&mut self) {
        while self.flags.expanded {
            match self.peek() {
                Some(c) if c.is_whitespace() => self.at += 1,
                Some('#') => while self.peek().is_some_and(|c| c != '\n') && self.take().is_some() {},
                _ => return,
            }
        }
    }

    /// The next token; `groups` have been opened so far.
    pub fn next(&mut self, groups: usize) -> Result<RegexpToken> {
        self.skip();
        if self.flags.flavor == Flavor::Advanced {
            while self.eat("(?#") {
                while self.take().is_some_and(|c| c != ')') {}
                self.skip();
            }
        }
        let (starts, follows_anchor) = (self.starts, self.follows_anchor);
        (self.starts, self.follows_anchor) = (false, false);
        let Some(c) = self.take() else { return Ok(RegexpToken::End) };
        match c {
            '[' => return self.bracket(groups),
            '.' => return Ok(RegexpToken::Set(if self.flags.newline_excluded { "(?-s:.)" } else { "(?s:.)" }.to_owned())),
            _ => {}
        }
        if self.flags.flavor == Flavor::Basic { self.basic(c, starts, follows_anchor) } else { self.extended(c, groups) }
    }

    fn line_start(&self) -> RegexpToken {
        RegexpToken::Place(if self.flags.newline_anchors { "(?m:^)" } else { "\\A" })
    }

    fn line_end(&self) -> RegexpToken {
        RegexpToken::Place(if self.flags.newline_anchors { "(?m:$)" } else { "\\z" })
    }

    fn extended(&mut self, c: char, groups: usize) -> Result<RegexpToken> {
        Ok(match c {
            '|' => RegexpToken::Or,
            ')' => RegexpToken::Close,
            '(' if self.flags.flavor == Flavor::Advanced && self.eat("?") => return self.special_group(),
            '(' => RegexpToken::Open { captures: true },
            '^' => self.line_start(),
            '$' => self.line_end(),
            '*' => self.repeat(0, None),
            '+' => self.repeat(1, None),
            '?' => self.repeat(0, Some(1)),
            '{' => {
                self.skip();
                if !self.peek().is_some_and(|c| c.is_ascii_digit()) {
                    return Ok(one('{'));
                }
                return self.bound();
            }
            '\\' if self.flags.flavor == Flavor::Extended => one(self.take().ok_or_else(|| invalid(BAD_ESCAPE))?),
            '\\' => match self.escape(groups)? {
                Escape::Char(c) => one(c),
                Escape::Class { name, negated } => Lexer::class(name, negated),
                Escape::Place(place) => RegexpToken::Place(place),
                Escape::Back(number) => RegexpToken::Back(number),
            },
            c => one(c),
        })
    }

    /// After `(?`.
    fn special_group(&mut self) -> Result<RegexpToken> {
        const FORMS: [(&str, RegexpToken); 5] = [
            (":", RegexpToken::Open { captures: false }),
            ("=", RegexpToken::Look { behind: false, negative: false }),
            ("!", RegexpToken::Look { behind: false, negative: true }),
            ("<=", RegexpToken::Look { behind: true, negative: false }),
            ("<!", RegexpToken::Look { behind: true, negative: true }),
        ];
        let form = FORMS.into_iter().find(|(text, _)| self.eat(text));
        form.map(|(_, token)| token).ok_or_else(|| invalid("quantifier operand invalid"))
    }

    fn basic(&mut self, c: char, starts: bool, follows_anchor: bool) -> Result<RegexpToken> {
        Ok(match c {
            '*' if !starts && !follows_anchor => self.repeat(0, None),
            '^' if starts => {
                self.follows_anchor = true;
                self.line_start()
            }
            '$' => {
                self.skip();
                let ends = self.peek().is_none() || self.chars[self.at..].starts_with(&['\\', ')']);
                if ends { self.line_end() } else { one('$') }
            }
            '\\' => match self.take().ok_or_else(|| invalid(BAD_ESCAPE))? {
                '{' => return self.bound(),
                '(' => {
                    self.starts = true;
                    RegexpToken::Open { captures: true }
                }
                ')' => RegexpToken::Close,
                '<' => RegexpToken::Place(WORD_START),
                '>' => RegexpToken::Place(WORD_END),
                c @ '1'..='9' => RegexpToken::Back(c as usize - '0' as usize),
                c => one(c),
            },
            c => one(c),
        })
    }

    /// A quantifier; in advanced expressions a question mark makes it prefer the shortest match.
    fn repeat(&mut self, min: u32, max: Option<u32>) -> RegexpToken {
        let shortest = self.flags.flavor == Flavor::Advanced && self.eat("?");
        let prefers = Some(if shortest { Preference::Shortest } else { Preference::Longest });
        RegexpToken::Repeat { min, max, prefers }
    }

    /// `m}`, `m,}` or `m,n}`; the brace is escaped in basic expressions.
    fn bound(&mut self) -> Result<RegexpToken> {
        let min = self.number()?;
        let mut max = Some(min);
        let is_exact = !self.eat(",");
        if !is_exact {
            self.skip();
            max = if self.peek().is_some_and(|c| c.is_ascii_digit()) { Some(self.number()?) } else { None };
            if max.is_some_and(|max| max < min) {
                return Err(invalid(BAD_BOUND));
            }
        }
        if self.peek().is_none() {
            return Err(invalid("braces {} not balanced"));
        }
        if !self.eat(if self.flags.flavor == Flavor::Basic { "\\}" } else { "}" }) {
            return Err(invalid(BAD_BOUND));
        }
        // {m} leaves the preference to the repeated part; {m,m} does not, and nor does a question mark.
        Ok(match self.repeat(min, max) {
            RegexpToken::Repeat { min, max, .. } if is_exact => RegexpToken::Repeat { min, max, prefers: None },
            token => token,
        })
    }

    fn number(&mut self) -> Result<u32> {
        let mut n = 0;
        self.skip();
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            n = n * 10 + digit;
            if n > REPETITIONS_MAX {
                return Err(invalid(BAD_BOUND));
            }
            self.at += 1;
            self.skip();
        }
        Ok(n)
    }

    /// A class by its name, outside of brackets.
    fn class(name: &str, negated: bool) -> RegexpToken {
        let set = named_class(name).unwrap_or_default();
        // Those that are negated match a newline in every mode.
        RegexpToken::Set(format!("[{}{set}]", if negated { "^" } else { "" }))
    }

    fn escape(&mut self, groups: usize) -> Result<Escape> {
        let bad = || invalid(BAD_ESCAPE);
        let c = self.take().ok_or_else(bad)?;
        let class = |name, negated| Ok(Escape::Class { name, negated });
        let code = match c {
            'd' | 'D' => return class("digit", c == 'D'),
            's' | 'S' => return class("space", c == 'S'),
            'w' | 'W' => return class("word", c == 'W'),
            'A' => return Ok(Escape::Place("\\A")),
            'Z' => return Ok(Escape::Place("\\z")),
            'm' => return Ok(Escape::Place(WORD_START)),
            'M' => return Ok(Escape::Place(WORD_END)),
            'y' => return Ok(Escape::Place("\\b")),
            'Y' => return Ok(Escape::Place("\\B")),
            'a' => 7,
            'b' => 8,
            'B' => '\\' as u32,
            'c' => self.take().ok_or_else(bad)? as u32 & 0x1f,
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
                match self.back_reference(groups) {
                    Some(number) => return Ok(Escape::Back(number)),
                    None => self.octal()?,
                }
            }
            c if c.is_ascii_alphabetic() => return Err(bad()),
            c => c as u32,
        };
        char::from_u32(code).map(Escape::Char).ok_or_else(bad)
    }

    /// A number that is a back reference: it has one digit, or there are as many groups.
    fn back_reference(&mut self, groups: usize) -> Option<usize> {
        let digits: String = self.chars[self.at..].iter().take_while(|c| c.is_ascii_digit()).collect();
        let number: usize = digits.parse().unwrap_or(usize::MAX);
        let refers = !digits.starts_with('0') && (digits.len() == 1 || (1..=groups).contains(&number));
        self.at += if refers { digits.len() } else { 0 };
        refers.then_some(number)
    }

    /// Up to three digits, two where three are more than a byte.
    fn octal(&mut self) -> Result<u32> {
        let code = self.digits(8, 1, 3)?;
        if code <= 0xff {
            return Ok(code);
        }
        self.at -= 1;
        Ok(code >> 3)
    }

    fn digits(&mut self, radix: u32, least: usize, most: usize) -> Result<u32> {
        let mut value = 0u32;
        let mut count = 0;
        while count < most
            && let Some(digit) = self.peek().and_then(|c| c.to_digit(radix))
        {
            // Beyond 32 bits the value wraps, as PostgreSQL's does.
            value = value.wrapping_mul(radix).wrapping_add(digit);
            self.at += 1;
            count += 1;
        }
        if count < least { Err(invalid(BAD_ESCAPE)) } else { Ok(value) }
    }

    fn bracket(&mut self, groups: usize) -> Result<RegexpToken> {
        for (text, place) in [("[:<:]]", WORD_START), ("[:>:]]", WORD_END)] {
            if self.eat(text) {
                return Ok(RegexpToken::Place(place));
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
                None => return Err(invalid(OPEN_BRACKET)),
                Some(']') if !first => break,
                Some(_) => self.bracket_item(&mut class, first, groups)?,
            }
            first = false;
        }
        self.at += 1;
        class.push(']');
        Ok(RegexpToken::Set(class))
    }

    fn bracket_item(&mut self, class: &mut String, first: bool, groups: usize) -> Result<()> {
        if self.eat("[:") {
            let name = self.until(":]")?;
            class.push_str(named_class(&name).ok_or_else(|| invalid("invalid character class"))?);
            return Ok(());
        }
        if self.eat("[=") {
            let c = element(&self.until("=]")?)?;
            push_class_char(class, c);
            return Ok(());
        }
        if !first && self.peek() == Some('-') && self.chars.get(self.at + 1) != Some(&']') {
            return Err(invalid(BAD_RANGE));
        }
        let low = match self.bracket_char(groups)? {
            Escape::Char(c) => c,
            Escape::Class { name, negated } => {
                let set = named_class(name).unwrap_or_default();
                class.push_str(&if negated { format!("[^{set}]") } else { set.to_owned() });
                return Ok(());
            }
            _ => return Err(invalid(BAD_ESCAPE)),
        };
        // A hyphen makes a range, unless it is the last character.
        let is_range = self.peek() == Some('-') && self.chars.get(self.at + 1) != Some(&']');
        push_class_char(class, low);
        if is_range {
            self.at += 1;
            if ["[:", "[="].iter().any(|open| self.eat(open)) {
                return Err(invalid(BAD_RANGE));
            }
            let high = match self.bracket_char(groups)? {
                Escape::Char(c) => c,
                Escape::Class { .. } => return Err(invalid(BAD_RANGE)),
                _ => return Err(invalid(BAD_ESCAPE)),
            };
            if high < low {
                return Err(invalid(BAD_RANGE));
            }
            class.push('-');
            push_class_char(class, high);
        }
        Ok(())
    }

    /// A character, a collating element or an escape within brackets.
    fn bracket_char(&mut self, groups: usize) -> Result<Escape> {
        if self.eat("[.") {
            return element(&self.until(".]")?).map(Escape::Char);
        }
        match self.take() {
            Some('\\') if self.flags.flavor == Flavor::Advanced => self.escape(groups),
            Some(c) => Ok(Escape::Char(c)),
            None => Err(invalid(OPEN_BRACKET)),
        }
    }

    fn until(&mut self, close: &str) -> Result<String> {
        let mut name = String::new();
        while !self.eat(close) {
            name.push(self.take().ok_or_else(|| invalid(OPEN_BRACKET))?);
        }
        Ok(name)
    }
}

fn one(c: char) -> RegexpToken {
    RegexpToken::Set(regex::escape(c.encode_utf8(&mut [0; 4])))
}

/// A collating element: a character, or POSIX's name of one.
fn element(name: &str) -> Result<char> {
    let mut chars = name.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Ok(c),
        (None, _) => Err(invalid("invalid collating element")),
        _ => ELEMENTS
            .iter()
            .position(|names| names.split(' ').any(|n| n == name))
            .and_then(|code| char::from_u32(code as u32))
            .ok_or_else(|| invalid("invalid collating element")),
    }
}

/// POSIX's names of the ASCII characters, by code.
const ELEMENTS: [&str; 128] = [
    "NUL",
    "SOH",
    "STX",
    "ETX",
    "EOT",
    "ENQ",
    "ACK",
    "BEL alert",
    "BS backspace",
    "HT tab",
    "LF newline",
    "VT vertical-tab",
    "FF form-feed",
    "CR carriage-return",
    "SO",
    "SI",
    "DLE",
    "DC1",
    "DC2",
    "DC3",
    "DC4",
    "NAK",
    "SYN",
    "ETB",
    "CAN",
    "EM",
    "SUB",
    "ESC",
    "IS4 FS",
    "IS3 GS",
    "IS2 RS",
    "IS1 US",
    "space",
    "exclamation-mark",
    "quotation-mark",
    "number-sign",
    "dollar-sign",
    "percent-sign",
    "ampersand",
    "apostrophe",
    "left-parenthesis",
    "right-parenthesis",
    "asterisk",
    "plus-sign",
    "comma",
    "hyphen hyphen-minus",
    "period full-stop",
    "slash solidus",
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "colon",
    "semicolon",
    "less-than-sign",
    "equals-sign",
    "greater-than-sign",
    "question-mark",
    "commercial-at",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "left-square-bracket",
    "backslash reverse-solidus",
    "right-square-bracket",
    "circumflex circumflex-accent",
    "underscore low-line",
    "grave-accent",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "left-brace left-curly-bracket",
    "vertical-line",
    "right-brace right-curly-bracket",
    "tilde",
    "DEL",
];

fn push_class_char(class: &mut String, c: char) {
    class.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
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
