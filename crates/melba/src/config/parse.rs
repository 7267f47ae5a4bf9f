//! The lines of a configuration file, as in PostgreSQL's postgresql.conf: `name = value`, `name value`, comments, and include
//! lines.

/// The content of a line.
#[derive(Debug, PartialEq, Eq)]
pub enum ConfigLine {
    Setting { name: String, value: String },
    Include(String),
    IncludeIfExists(String),
    IncludeDirectory(String),
}

/// A malformed line: the token at which that is noticed, `None` at the line's end.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed {
    pub near: Option<String>,
}

/// The lines of a text with content, each with its number, or its error.
pub fn lines(text: &str) -> Vec<(u32, Result<ConfigLine, Malformed>)> {
    let numbered = text.lines().zip(1..);
    numbered.filter_map(|(line, number)| Some((number, parse(line).transpose()?))).collect()
}

fn parse(line: &str) -> Result<Option<ConfigLine>, Malformed> {
    let mut rest = Rest(line);
    let Some(name) = rest.token()? else { return Ok(None) };
    if !is_name(&name) {
        return Err(Malformed { near: Some(name.text) });
    }
    rest.skip_sign();
    let Some(value) = rest.token()? else { return Err(Malformed { near: None }) };
    if !value.quoted && !is_bare_value(&value.text) {
        return Err(Malformed { near: Some(value.text) });
    }
    if let Some(more) = rest.token()? {
        return Err(Malformed { near: Some(more.text) });
    }
    let value = value.text;
    Ok(Some(match name.text.to_ascii_lowercase().as_str() {
        "include" => ConfigLine::Include(value),
        "include_if_exists" => ConfigLine::IncludeIfExists(value),
        "include_dir" => ConfigLine::IncludeDirectory(value),
        _ => ConfigLine::Setting { name: name.text, value },
    }))
}

struct Token {
    text: String,
    quoted: bool,
}

fn is_name(token: &Token) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    let is_part =
        |part: &str| part.starts_with(is_letter) && part.chars().all(|c| is_letter(c) || c.is_ascii_digit() || c == '$');
    !token.quoted && token.text.split('.').all(is_part)
}

/// Numbers with units, and words.
fn is_bare_value(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "_.:/+-".contains(c) || !c.is_ascii())
}

/// The rest of a line.
struct Rest<'a>(&'a str);

impl Rest<'_> {
    /// The next word or quoted text; `None` at the end or a comment.
    fn token(&mut self) -> Result<Option<Token>, Malformed> {
        self.0 = self.0.trim_start();
        if self.0.is_empty() || self.0.starts_with('#') {
            return Ok(None);
        }
        if self.0.starts_with('\'') {
            return self.quoted().map(Some);
        }
        let end = self.0.find(|c: char| c.is_whitespace() || c == '#' || c == '=' || c == '\'').unwrap_or(self.0.len()).max(1);
        let (text, rest) = self.0.split_at(end);
        self.0 = rest;
        Ok(Some(Token { text: text.to_owned(), quoted: false }))
    }

    fn skip_sign(&mut self) {
        self.0 = self.0.trim_start();
        self.0 = self.0.strip_prefix('=').unwrap_or(self.0);
    }

    fn quoted(&mut self) -> Result<Token, Malformed> {
        let all = self.0;
        let unended = || Malformed { near: Some(all.to_owned()) };
        let mut chars = all[1..].char_indices().peekable();
        let mut text = String::new();
        loop {
            match chars.next().ok_or_else(unended)? {
                (_, '\'') if chars.next_if(|(_, c)| *c == '\'').is_some() => text.push('\''),
                (at, '\'') => {
                    self.0 = &all[at + 2..];
                    return Ok(Token { text, quoted: true });
                }
                (_, '\\') => match chars.next().ok_or_else(unended)?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    'b' => text.push('\u{8}'),
                    'f' => text.push('\u{c}'),
                    digit @ '0'..='7' => {
                        let mut code = digit as u32 - '0' as u32;
                        for _ in 0..2 {
                            if let Some((_, digit)) = chars.next_if(|(_, c)| ('0'..='7').contains(c)) {
                                code = code * 8 + (digit as u32 - '0' as u32);
                            }
                        }
                        text.push(char::from_u32(code & 0xff).unwrap_or('?'));
                    }
                    other => text.push(other),
                },
                (_, c) => text.push(c),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(name: &str, value: &str) -> Result<ConfigLine, Malformed> {
        Ok(ConfigLine::Setting { name: name.to_owned(), value: value.to_owned() })
    }

    #[test]
    fn lines_are_read_as_postgresql_does() {
        let text =
            "# c\n\n a = 1 # one\nb 'it''s' # two\nc='x#y'\nd.e 8MB\nf=-1\ninclude 'x.conf'\ninclude_dir='d'\ng = 'a\\'b\\\\c'\n";
        let expected = vec![
            (3, setting("a", "1")),
            (4, setting("b", "it's")),
            (5, setting("c", "x#y")),
            (6, setting("d.e", "8MB")),
            (7, setting("f", "-1")),
            (8, Ok(ConfigLine::Include("x.conf".to_owned()))),
            (9, Ok(ConfigLine::IncludeDirectory("d".to_owned()))),
            (10, setting("g", "a'b\\c")),
        ];
        assert_eq!(lines(text), expected);
    }

    #[test]
    fn malformed_lines_name_the_token() {
        for (text, near) in [
            ("word", None),
            ("a =", None),
            ("a = 'x", Some("'x")),
            ("a = 1 2", Some("2")),
            ("a = 'x' y", Some("y")),
            ("a = x*y", Some("x*y")),
            ("1a = 2", Some("1a")),
        ] {
            assert_eq!(lines(text), [(1, Err(Malformed { near: near.map(str::to_owned) }))], "{text}");
        }
    }
}
