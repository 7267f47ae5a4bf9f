//! The tokens of a function's text, as far as PL/pgSQL distinguishes them.

use melba_parse::Strings;
use melba_parse::lexer::{LexemeKind, Lexer};
use melba_types::{Result, bail};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A keyword or an identifier without quotes.
    Word,
    QuotedName,
    String,
    Number,
    /// An operator or a punctuation mark.
    Symbol,
    /// `$1`
    Parameter,
    End,
}

/// A token and where it stands in the text, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    pub kind: TokenKind,
    pub start: usize,
    pub end: usize,
}

/// The tokens without white space and comments; the last one is `End`.
///
/// # Errors
/// 42601 for a string, name or comment without an end.
pub fn tokens(text: &str, strings: Strings) -> Result<Vec<Token>> {
    let mut lexer = Lexer::new(text, strings);
    let mut out = Vec::new();
    loop {
        let start = lexer.at;
        let Some(kind) = lexer.next() else { break };
        let kind = match kind {
            LexemeKind::Space | LexemeKind::Comment => continue,
            LexemeKind::Word => TokenKind::Word,
            LexemeKind::QuotedName => TokenKind::QuotedName,
            LexemeKind::Number => {
                // `1..10` is a range.
                if let Some(dots) = text[start..lexer.at].find("..") {
                    lexer.at = start + dots;
                }
                TokenKind::Number
            }
            LexemeKind::String
            | LexemeKind::National
            | LexemeKind::EscapeString
            | LexemeKind::OtherString
            | LexemeKind::Joined { .. }
            | LexemeKind::DollarString => TokenKind::String,
            LexemeKind::Unterminated => bail!(SYNTAX_ERROR, "{} at or near \"{}\"", unterminated(&text[start..]), &text[start..]),
            LexemeKind::Symbol => symbol(text, start, &mut lexer),
        };
        out.push(Token { kind, start, end: lexer.at });
    }
    out.push(Token { kind: TokenKind::End, start: text.len(), end: text.len() });
    Ok(out)
}

fn unterminated(rest: &str) -> &'static str {
    match rest.as_bytes().first() {
        Some(b'/') => "unterminated /* comment",
        Some(b'"') => "unterminated quoted identifier",
        _ => "unterminated quoted string",
    }
}

fn is_operator(b: u8) -> bool {
    b"+-*/<>=~!@#%^&|`?".contains(&b)
}

/// The lexer returns single bytes: this finds the longest operator that begins with this one, by PostgreSQL's rules.
fn symbol(text: &str, start: usize, lexer: &mut Lexer<'_>) -> TokenKind {
    let bytes = &text.as_bytes()[start..];
    let second = bytes.get(1).copied().unwrap_or(0);
    match bytes[0] {
        b'$' if second.is_ascii_digit() => {
            let digits = bytes[1..].iter().take_while(|b| b.is_ascii_digit()).count();
            lexer.at = start + 1 + digits;
            return TokenKind::Parameter;
        }
        b':' if matches!(second, b'=' | b':') => lexer.at = start + 2,
        b'.' if second == b'.' => lexer.at = start + 2,
        b if is_operator(b) => {
            let mut length = 1;
            while bytes.get(length).copied().is_some_and(is_operator)
                && !bytes[length..].starts_with(b"--")
                && !bytes[length..].starts_with(b"/*")
            {
                length += 1;
            }
            let special = bytes[..length].iter().any(|b| b"~!@#%^&|`?".contains(b));
            while length > 1 && !special && matches!(bytes[length - 1], b'+' | b'-') {
                length -= 1;
            }
            lexer.at = start + length;
        }
        _ => {}
    }
    TokenKind::Symbol
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_assignments_and_labels_are_told_apart() {
        let text = "<<l>> x:=-1..10 $2 a=-b -- c\n'it''s'";
        let tokens = tokens(text, Strings::default()).expect("scans");
        let texts: Vec<&str> = tokens.iter().map(|t| &text[t.start..t.end]).collect();
        assert_eq!(texts, ["<<", "l", ">>", "x", ":=", "-", "1", "..", "10", "$2", "a", "=", "-", "b", "'it''s'", ""]);
    }
}
