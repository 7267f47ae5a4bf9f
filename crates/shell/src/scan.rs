//! Finds the end of a statement: splits the input, line by line, into statements and backslash commands by the rules of psql's lexer.
//!
//! A semicolon ends a statement unless it stands in a string, a quoted name, a comment, parentheses or the body of a function
//! (BEGIN ATOMIC ... END). A backslash outside of strings, quoted names and comments begins a command, up to the end of its line or to `\\`.

use crate::variables::Variables;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// With its semicolon; never empty.
    Statement(String),
    /// A command without its backslash, and the rest of its line.
    Command { name: String, rest: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Plain,
    /// `'...'`; in `E'...'` a backslash takes the next character's meaning.
    String {
        has_escapes: bool,
    },
    Name,
    /// `$tag$...$tag$`, with the tag and its dollars.
    Dollar(String),
    Comment {
        depth: u32,
    },
}

/// Input that has been read and is not run yet.
#[derive(Clone, Debug)]
pub struct Scanner {
    state: State,
    parentheses: u32,
    /// BEGIN and CASE that wait for their END, in the body of a function.
    blocks: u32,
    /// The first words of the statement, in lower case.
    words: Vec<String>,
    /// The statement so far.
    buffer: String,
    /// The current line, and how much of it has been read.
    line: String,
    at: usize,
    /// Up to here the line is a variable's value, in which no other variables are replaced.
    is_value_until: usize,
    /// Of `standard_conforming_strings`.
    pub plain_backslashes: bool,
}

impl Default for Scanner {
    fn default() -> Scanner {
        Scanner {
            state: State::Plain,
            parentheses: 0,
            blocks: 0,
            words: Vec::new(),
            buffer: String::new(),
            line: String::new(),
            at: 0,
            is_value_until: 0,
            plain_backslashes: true,
        }
    }
}

/// As many as CREATE OR REPLACE FUNCTION takes.
const WORDS: usize = 4;

impl Scanner {
    /// A line, without its end; the line before has been read.
    pub fn push(&mut self, line: &str) {
        if !self.buffer.is_empty() {
            self.buffer.push('\n');
        }
        self.line.clear();
        self.line.push_str(line);
        (self.at, self.is_value_until) = (0, 0);
    }

    /// The next item of the line; `None` when another line is needed.
    pub fn next(&mut self, variables: &Variables) -> Option<Item> {
        while let Some(c) = self.peek() {
            match &self.state {
                State::Plain => {
                    if let Some(item) = self.plain(c, variables) {
                        return Some(item);
                    }
                }
                State::String { has_escapes } => self.in_string(c, *has_escapes),
                State::Name => {
                    self.take(c.len_utf8());
                    if c == '"' {
                        self.state = State::Plain;
                    }
                }
                State::Dollar(tag) => match self.line[self.at..].find(tag.as_str()) {
                    Some(length) => {
                        let length = length + tag.len();
                        self.take(length);
                        self.state = State::Plain;
                    }
                    None => self.take(self.line.len() - self.at),
                },
                State::Comment { depth } => self.in_comment(c, *depth),
            }
        }
        None
    }

    /// The statement so far.
    pub fn pending(&self) -> &str {
        &self.buffer
    }

    /// Discards it, or takes it unchanged, at the end of the input.
    pub fn take_pending(&mut self) -> String {
        self.state = State::Plain;
        (self.parentheses, self.blocks) = (0, 0);
        self.words.clear();
        std::mem::take(&mut self.buffer)
    }

    /// Replaces the pending text by text that was edited elsewhere.
    pub fn replace_pending(&mut self, text: &str) {
        let rest = self.line[self.at..].to_owned();
        self.take_pending();
        self.push(&format!("{text}{rest}"));
    }

    /// The unfinished part: `=` nothing, `-` a statement, or the opening of a string, name, comment or parenthesis.
    pub fn prompt(&self) -> char {
        match &self.state {
            State::String { .. } => '\'',
            State::Name => '"',
            State::Dollar(_) => '$',
            State::Comment { .. } => '*',
            State::Plain if self.parentheses > 0 => '(',
            State::Plain if self.buffer.trim().is_empty() => '=',
            State::Plain => '-',
        }
    }

    fn peek(&self) -> Option<char> {
        self.line[self.at..].chars().next()
    }

    /// Moves `bytes` bytes of the line into the statement; white space before it is left out.
    fn take(&mut self, bytes: usize) {
        let text = &self.line[self.at..self.at + bytes];
        if !self.buffer.is_empty() || !text.trim().is_empty() {
            self.buffer.push_str(text);
        }
        self.at += bytes;
    }

    fn plain(&mut self, c: char, variables: &Variables) -> Option<Item> {
        let rest = &self.line[self.at..];
        match c {
            // A backslash before them takes their meaning away.
            '\\' if rest[1..].starts_with([';', ':']) => {
                self.at += 1;
                self.take(1);
            }
            '\\' => return Some(self.command()),
            '\'' => self.open(State::String { has_escapes: !self.plain_backslashes }, 1),
            '"' => self.open(State::Name, 1),
            '$' => match dollar_tag(rest) {
                Some(tag) => self.open(State::Dollar(tag.to_owned()), tag.len()),
                None => self.take(1),
            },
            '-' if rest.starts_with("--") => {
                // Before a statement it belongs to none.
                match self.buffer.is_empty() {
                    true => self.at = self.line.len(),
                    false => self.take(rest.len()),
                }
            }
            '/' if rest.starts_with("/*") => self.open(State::Comment { depth: 1 }, 2),
            '(' => {
                self.parentheses += 1;
                self.take(1);
            }
            ')' => {
                self.parentheses = self.parentheses.saturating_sub(1);
                self.take(1);
            }
            ';' => return self.semicolon(),
            ':' if self.at >= self.is_value_until => self.colon(variables),
            c if is_word_start(c) => self.word(),
            c => self.take(c.len_utf8()),
        }
        None
    }

    fn open(&mut self, state: State, bytes: usize) {
        self.take(bytes);
        self.state = state;
    }

    fn semicolon(&mut self) -> Option<Item> {
        let is_within = self.parentheses > 0 || self.blocks > 0;
        // One that ends nothing.
        if !is_within && self.buffer.trim().is_empty() {
            self.at += 1;
            return None;
        }
        self.take(1);
        (!is_within).then(|| Item::Statement(self.take_pending()))
    }

    fn in_string(&mut self, c: char, has_escapes: bool) {
        let escaped = self.line[self.at + c.len_utf8()..].chars().next();
        match (c, escaped) {
            ('\\', Some(next)) if has_escapes => self.take(1 + next.len_utf8()),
            ('\'', _) => {
                self.take(1);
                // Of two quotes the second opens the string again, but its backslashes keep their meaning.
                match escaped {
                    Some('\'') => self.take(1),
                    _ => self.state = State::Plain,
                }
            }
            _ => self.take(c.len_utf8()),
        }
    }

    fn in_comment(&mut self, c: char, depth: u32) {
        let rest = &self.line[self.at..];
        if rest.starts_with("*/") {
            self.take(2);
            self.state = if depth > 1 { State::Comment { depth: depth - 1 } } else { State::Plain };
        } else if rest.starts_with("/*") {
            self.open(State::Comment { depth: depth + 1 }, 2);
        } else {
            self.take(c.len_utf8());
        }
    }

    /// A name or a key word.
    fn word(&mut self) {
        let rest = &self.line[self.at..];
        let length = rest.find(|c| !is_word_start(c) && !c.is_ascii_digit() && c != '$').unwrap_or(rest.len());
        let word = rest[..length].to_lowercase();
        let is_quoted = rest[length..].starts_with('\'');
        self.take(length);
        if word == "e" && is_quoted {
            self.open(State::String { has_escapes: true }, 1);
            return;
        }
        if self.words.len() < WORDS {
            self.words.push(word.clone());
        }
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let is_routine = matches!(
            words[..],
            ["create", "function" | "procedure", ..] | ["create", "or", "replace", "function" | "procedure", ..]
        );
        match word.as_str() {
            _ if !is_routine || self.parentheses > 0 => {}
            "begin" => self.blocks += 1,
            "case" if self.blocks > 0 => self.blocks += 1,
            "end" => self.blocks = self.blocks.saturating_sub(1),
            _ => {}
        }
    }

    /// `::`, `:=`, or a variable: `:name`, `:'name'` as a string, `:"name"` as a name, `:{?name}` whether there is one.
    fn colon(&mut self, variables: &Variables) {
        let rest = &self.line[self.at + 1..];
        if rest.starts_with([':', '=']) {
            self.take(2);
            return;
        }
        let (name, length, quote) = match rest.chars().next() {
            Some(quote @ ('\'' | '"')) => match rest[1..].find(quote) {
                Some(length) => (&rest[1..1 + length], length + 2, quote),
                None => return self.take(1),
            },
            Some('{') if rest.starts_with("{?") => match rest.find('}') {
                Some(length) => (&rest[2..length], length + 1, '?'),
                None => return self.take(1),
            },
            _ => {
                let length = rest.find(|c: char| !is_word_start(c) && !c.is_ascii_digit()).unwrap_or(rest.len());
                (&rest[..length], length, ':')
            }
        };
        let value = match (variables.get(name), quote) {
            (value, '?') => if value.is_some() { "TRUE" } else { "FALSE" }.to_owned(),
            (Some(value), '\'') => literal(value),
            (Some(value), '"') => identifier(value),
            (Some(value), _) => value.clone(),
            (None, _) => return self.take(1),
        };
        let after = self.line[self.at + 1 + length..].to_owned();
        self.line.truncate(self.at);
        self.line.push_str(&value);
        self.is_value_until = self.line.len();
        self.line.push_str(&after);
    }

    /// A command, of which the line's rest is.
    fn command(&mut self) -> Item {
        let rest = &self.line[self.at + 1..];
        let length = match rest.chars().next() {
            Some(c) if c.is_ascii_alphabetic() => rest.find(char::is_whitespace).unwrap_or(rest.len()),
            c => c.map_or(0, char::len_utf8),
        };
        // `\d\x` are two commands, but `\i\tmp` is never typed as such.
        let length = rest[..length].char_indices().skip(1).find(|(_, c)| *c == '\\').map_or(length, |(at, _)| at);
        let (name, arguments) = (rest[..length].to_owned(), &rest[length..]);
        let takes_line = matches!(name.as_str(), "copy" | "!");
        let end = if takes_line { arguments.len() } else { end_of_arguments(arguments) };
        let item = Item::Command { name, rest: arguments[..end].trim().to_owned() };
        let after = arguments[end..].strip_prefix("\\\\").map_or(arguments[end..].len(), str::len);
        self.at = self.line.len() - after;
        item
    }
}

/// Where another command begins, after which there is nothing that belongs to this one.
fn end_of_arguments(text: &str) -> usize {
    let (mut quote, mut is_escaped) = (None, false);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if is_escaped => is_escaped = false,
            (Some('\''), '\\') => is_escaped = true,
            (Some(open), c) if open == c => quote = None,
            (None, '\'' | '"' | '`') => quote = Some(c),
            (None, '\\') => return at,
            _ => {}
        }
    }
    text.len()
}

fn is_word_start(c: char) -> bool {
    c.is_alphabetic() || c == '_' || !c.is_ascii()
}

/// `$$` or `$tag$` at the beginning.
fn dollar_tag(text: &str) -> Option<&str> {
    let end = text[1..].find('$')? + 2;
    let tag = &text[1..end - 1];
    let is_tag = tag.chars().all(|c| is_word_start(c) || c.is_ascii_digit()) && !tag.starts_with(|c: char| c.is_ascii_digit());
    is_tag.then(|| &text[..end])
}

/// A string of SQL.
pub fn literal(value: &str) -> String {
    let prefix = if value.contains('\\') { " E" } else { "" };
    format!("{prefix}'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

/// A name of SQL, always in quotes.
pub fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests;
