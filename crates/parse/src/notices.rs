//! What PostgreSQL's lexer tells about a text while it reads it: escapes in plain strings (escape_string_warning), names that are cut.
//!
//! Not told: names `U&"..."`, which are cut in silence.

use melba_types::{DbError, Severity, SqlState};

use super::Strings;
use super::escapes::warning_of;
use super::lexer::{LexemeKind, Lexer};

/// Longest name, in bytes (NAMEDATALEN - 1).
const NAME_BYTES_MAX: usize = 63;

/// A warning or notice, and the place of the token that it is about.
#[derive(Debug)]
pub struct LexicalNotice {
    pub at: usize,
    pub notice: DbError,
}

/// The notices about a text, in its order. Those about escapes have a byte position.
pub fn notices(text: &str, strings: Strings) -> Vec<LexicalNotice> {
    let escapes = !strings.conforming && strings.warn && text.as_bytes().contains(&b'\\');
    if !escapes && !may_have_long_name(text.as_bytes()) {
        return Vec::new();
    }
    let mut out = Vec::new();
    let mut lexer = Lexer::new(text, strings);
    let mut at = 0;
    while let Some(kind) = lexer.next() {
        let notice = match kind {
            LexemeKind::String | LexemeKind::National | LexemeKind::Joined { plain: true } if escapes => {
                warning_of(text, at, lexer.at)
            }
            LexemeKind::Word | LexemeKind::QuotedName if lexer.at - at > NAME_BYTES_MAX => cut_name(&text[at..lexer.at]),
            _ => None,
        };
        out.extend(notice.map(|notice| LexicalNotice { at, notice }));
        at = lexer.at;
    }
    out
}

/// Whether `notices` makes it.
pub fn is_lexical(notice: &DbError) -> bool {
    matches!(notice.sqlstate(), SqlState::NONSTANDARD_USE_OF_ESCAPE_CHARACTER | SqlState::NAME_TOO_LONG)
}

/// Cheap, since every text is asked: whether some letters without a gap, or what stands between two quotes, are too long.
fn may_have_long_name(text: &[u8]) -> bool {
    if text.len() <= NAME_BYTES_MAX {
        return false;
    }
    let is_letter = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$') || *b >= 0x80;
    // A long word has one of every NAME_BYTES_MAX + 1 places.
    let long_word = (NAME_BYTES_MAX..text.len()).step_by(NAME_BYTES_MAX + 1).any(|at| {
        let before = text[..at].iter().rev().take(NAME_BYTES_MAX + 1).take_while(|b| is_letter(b)).count();
        let behind = text[at..].iter().take(NAME_BYTES_MAX + 1).take_while(|b| is_letter(b)).count();
        behind > 0 && before + behind > NAME_BYTES_MAX
    });
    let is_quote = |b: &u8| *b == b'"';
    let long_quoted = || text.split(is_quote).skip(1).any(|between| between.len() > NAME_BYTES_MAX);
    // A quote within a name divides it.
    let doubled = || text.contains(&b'"') && text.windows(2).any(|pair| pair == b"\"\"");
    long_word || long_quoted() || doubled()
}

/// The notice about a name, as it is written, if it is too long.
fn cut_name(written: &str) -> Option<DbError> {
    let name = match written.strip_prefix('"') {
        Some(rest) => rest[..rest.len() - 1].replace("\"\"", "\""),
        None if written.contains('"') => return None,
        None => written.to_ascii_lowercase(),
    };
    (name.len() > NAME_BYTES_MAX).then(|| truncation(&name))
}

/// The notice that a name is too long, and what is left of it.
pub fn truncation(name: &str) -> DbError {
    let kept = &name[..name.floor_char_boundary(NAME_BYTES_MAX)];
    DbError::new(SqlState::NAME_TOO_LONG, format!("identifier \"{name}\" will be truncated to \"{kept}\""))
        .severity(Severity::Notice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, strings: Strings) -> Vec<(String, Option<u32>)> {
        notices(text, strings).iter().map(|n| (n.notice.message().to_owned(), n.notice.fields().position)).collect()
    }

    #[test]
    fn each_string_is_warned_of_once() {
        let escaping = Strings { conforming: false, ..Strings::default() };
        let warned = |what: &str, position| (format!("nonstandard use of {what} in a string literal"), Some(position));
        let text = r"select '\'', E'\'', N'\\\n', $$\$$, B'1', 'a' -- b
            '\n\'', '\u0041'";
        let expected = [warned(r"\'", 8), warned(r"\\", 22), warned("escape", 43), warned("escape", 72)];
        assert_eq!(shown(text, escaping), expected);
        assert!(shown(text, Strings { warn: false, ..escaping }).is_empty());
        assert!(shown(text, Strings::default()).is_empty());
    }

    #[test]
    fn names_that_are_cut_are_told_as_they_are_read() {
        let told = |name: &str, kept: &str| (format!("identifier \"{name}\" will be truncated to \"{kept}\""), None);
        for lead in 0..70 {
            let lead = " ".repeat(lead);
            let (word, fits) = ("Ab".repeat(32), "c".repeat(63));
            let lower = "ab".repeat(32);
            let text = format!("{lead}select {fits} as {word}, '{word}', 1 as \"{fits}\"");
            assert_eq!(shown(&text, Strings::default()), [told(&lower, &lower[..63])], "{lead:?}");
        }
        // A character is not cut in its middle, a quote in a name counts once.
        let quoted = format!("a\"{} \u{e4}", "b".repeat(59));
        let text = format!("select 1 as \"{}\"", quoted.replace('"', "\"\""));
        assert_eq!(quoted.len(), 64);
        assert_eq!(shown(&text, Strings::default()), [told(&quoted, &quoted[..62])]);
        assert!(shown(&format!("select 1 as \"{}\"", "\"\"".repeat(63)), Strings::default()).is_empty());
        assert!(shown(&format!("select $${}$$ -- {}", "x".repeat(80), "y".repeat(80)), Strings::default()).is_empty());
    }
}
