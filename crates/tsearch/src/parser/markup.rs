//! Tags, comments and entities of XML and HTML.

use super::{Char, Found, Parser, TokenType};

fn is_in_tag_name(c: Char) -> bool {
    c.is_alphanumeric() || matches!(c.c, ':' | '_' | '.' | '-')
}

fn is_in_tag(c: Char) -> bool {
    c.is_ascii_letter() || c.is_digit() || matches!(c.c, '=' | '-' | '_' | '#' | '/' | ':' | '.' | '&' | '?' | '%' | '~')
}

impl Parser<'_> {
    /// Behind `<`.
    pub(super) fn tag(&mut self, at: usize) -> Option<Found> {
        let c = self.at(at)?;
        match c.c {
            '/' => self.holds(at + 1, Char::is_ascii_letter).then(|| self.tag_name(at + 2))?,
            '!' => match self.at(at + 1)?.c {
                '-' if self.holds(at + 2, |c| c.is('-')) => self.comment(at + 3),
                'D' | 'd' => self.in_tag(at + 2),
                _ => None,
            },
            '?' => self.holds(at + 1, |c| c.is('x')).then(|| self.in_tag(at + 2))?,
            _ if c.is_ascii_letter() || c.is(':') || c.is('_') => self.tag_name(at + 1),
            _ => None,
        }
    }

    fn tag_name(&mut self, at: usize) -> Option<Found> {
        let end = self.skip(at, is_in_tag_name);
        let c = self.at(end)?;
        if c.is('/') {
            return self.holds(end + 1, |c| c.is('>')).then(|| Found::new(TokenType::Tag, end + 2));
        }
        if c.is('>') {
            self.note_tag(end);
            return Some(Found::new(TokenType::Tag, end + 1));
        }
        if c.is_space() {
            self.note_tag(end);
            return self.in_tag(end + c.bytes);
        }
        None
    }

    /// Behind the name of a tag.
    fn in_tag(&mut self, mut at: usize) -> Option<Found> {
        loop {
            let c = self.at(at)?;
            match c.c {
                '>' => {
                    self.note_tag(at);
                    return Some(Found::new(TokenType::Tag, at + 1));
                }
                '\'' | '"' => at = self.quoted(at + 1, c)?,
                _ if c.is_space() => {
                    self.note_tag(at);
                    at += c.bytes;
                }
                _ if is_in_tag(c) => at += c.bytes,
                _ => return None,
            }
        }
    }

    /// Behind a quote: behind the next one without a backslash.
    fn quoted(&self, mut at: usize, quote: Char) -> Option<usize> {
        loop {
            let c = self.at(at)?;
            at += c.bytes;
            if c.is(quote.c) {
                return Some(at);
            }
            if c.is('\\') {
                at += self.at(at)?.bytes;
            }
        }
    }

    fn comment(&self, at: usize) -> Option<Found> {
        self.text[at..].find("-->").map(|found| Found::new(TokenType::Tag, at + found + 3))
    }

    /// Scripts and styles begin and end with their tags.
    fn note_tag(&mut self, end: usize) {
        let tag = &self.text[self.start..end];
        if ["<script", "<style"].iter().any(|name| tag.eq_ignore_ascii_case(name)) {
            self.ignores = true;
        } else if ["</script", "</style"].iter().any(|name| tag.eq_ignore_ascii_case(name)) {
            self.ignores = false;
        }
    }

    /// Behind `&`.
    pub(super) fn entity(&self, at: usize) -> Option<Found> {
        let c = self.at(at)?;
        let end = match c.c {
            '#' => {
                let is_hexadecimal = self.holds(at + 1, |c| c.is('x') || c.is('X'));
                let start = at + 1 + usize::from(is_hexadecimal);
                let end = self.skip(start, |c| if is_hexadecimal { c.c.is_ascii_hexdigit() } else { c.is_digit() });
                if end == start {
                    return None;
                }
                end
            }
            _ if c.is_ascii_letter() || c.is(':') || c.is('_') => self.skip(at + 1, is_in_tag_name),
            _ => return None,
        };
        self.holds(end, |c| c.is(';')).then(|| Found::new(TokenType::Entity, end + 1))
    }
}
