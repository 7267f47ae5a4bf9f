//! Removes passwords from the log.
//!
//! CREATE ROLE, ALTER ROLE and CREATE USER MAPPING have passwords in their text, which PostgreSQL logs unchanged. Here the
//! literal behind the word PASSWORD is replaced, whether the text is a statement, a part of one or invalid: no grammar is used.

use std::borrow::Cow;

/// Printed in place of a password.
const INSTEAD: &str = "'<redacted>'";
const WORD: &[u8] = b"password";

/// The text with all literals that follow the word PASSWORD replaced.
pub fn without_passwords(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(word) = find_word(bytes, at) {
        at = word + WORD.len();
        let Some((from, to)) = literal(bytes, at) else { continue };
        out.push_str(&text[copied..from]);
        out.push_str(INSTEAD);
        (copied, at) = (to, to);
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Where the word begins next; it may be the end of a longer one, as in a key word that was misspelt.
fn find_word(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(WORD.len()).position(|window| window.eq_ignore_ascii_case(WORD)).map(|at| from + at)
}

/// The range of the literal that follows the word, after spaces, comments and a quote that ends the word.
fn literal(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    at = skip_blank(bytes, at);
    let from = at;
    // E'...', U&'...', B'...', N'...'.
    match bytes.get(at)? {
        b'e' | b'E' | b'n' | b'N' | b'b' | b'B' | b'x' | b'X' if bytes.get(at + 1) == Some(&b'\'') => at += 1,
        b'u' | b'U' if bytes.get(at + 1..at + 3) == Some(b"&'") => at += 2,
        _ => {}
    }
    match bytes.get(at)? {
        b'\'' => Some((from, end_of_quoted(bytes, at))),
        b'$' => dollar_quoted(bytes, at).map(|end| (from, end)),
        _ => None,
    }
}

fn skip_blank(bytes: &[u8], mut at: usize) -> usize {
    loop {
        match bytes.get(at) {
            // `=` and `:` as in options and connection strings.
            Some(b' ' | b'\t' | b'\n' | b'\r' | b'\x0c' | b'"' | b'=' | b':') => at += 1,
            Some(b'-') if bytes.get(at + 1) == Some(&b'-') => {
                at = bytes[at..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |n| at + n);
            }
            Some(b'/') if bytes.get(at + 1) == Some(&b'*') => {
                let end = bytes[at + 2..].windows(2).position(|w| w == b"*/");
                at = end.map_or(bytes.len(), |n| at + n + 4);
            }
            _ => return at,
        }
    }
}

/// The end of text that begins with a run of quotes: within a literal of a literal (EXECUTE in a function) they are doubled.
/// Where the end is unclear, more is replaced rather than less.
fn end_of_quoted(bytes: &[u8], from: usize) -> usize {
    let run = |at: usize| bytes[at..].iter().take_while(|b| **b == b'\'').count();
    let width = run(from);
    let mut at = from + width;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'\'' => {
                let quotes = run(at);
                // An odd run of single quotes ends the literal; doubled ones are part of it.
                if quotes >= width && (width > 1 || quotes % 2 == 1) {
                    return at + if width > 1 { width } else { quotes };
                }
                at += quotes;
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of `$tag$...$tag$`; all the rest when it does not end.
fn dollar_quoted(bytes: &[u8], from: usize) -> Option<usize> {
    let tag = bytes[from + 1..].iter().position(|b| *b == b'$')?;
    let tag = &bytes[from..from + tag + 2];
    if !tag[1..tag.len() - 1].iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_' || *b >= 128) {
        return None;
    }
    if tag.len() > 2 && tag[1].is_ascii_digit() {
        return None;
    }
    let start = from + tag.len();
    let end = bytes[start..].windows(tag.len()).position(|w| w == tag);
    Some(end.map_or(bytes.len(), |n| start + n + tag.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_form_of_a_password_is_left() {
        for text in [
            "ALTER ROLE ann PASSWORD 'hunter2'",
            "create role ann login password'hunter2' valid until 'infinity'",
            "CREATE ROLE ann ENCRYPTED PASSWORD E'hunter2'",
            "ALTER USER ann PASSWORD U&'hunter2'",
            "ALTER USER ann PASSWORD $$hunter2$$",
            "ALTER USER ann PASSWORD $x$hunter2$x$ LOGIN",
            "ALTER USER ann PASSWORD /* c */ -- d\n 'hunter2'",
            "ALTER USER ann PASSWORD 'it''s hunter2'",
            "ALTER USER ann PASSWORD 'hunter2",
            "ALTRE USER ann PASSWORDD PASSWORD 'hunter2' garbage",
            "DO $$ BEGIN EXECUTE 'ALTER ROLE ann PASSWORD ''hunter2'' LOGIN'; END $$",
            "CREATE USER MAPPING FOR ann SERVER s OPTIONS (user 'ann', password 'hunter2')",
            "SQL statement \"ALTER ROLE ann PASSWORD 'hunter2'\"",
            "ALTER USER a PASSWORD 'hunter2'; ALTER USER b PASSWORD 'hunter2'",
        ] {
            let clean = without_passwords(text);
            assert!(!clean.contains("hunter2"), "{clean}");
            assert!(clean.contains(INSTEAD), "{clean}");
        }
        assert_eq!(without_passwords("ALTER ROLE ann PASSWORD 'x' LOGIN").as_ref(), "ALTER ROLE ann PASSWORD '<redacted>' LOGIN");
    }

    #[test]
    fn other_texts_stay() {
        for text in ["SELECT password FROM users", "SELECT 1", "ALTER ROLE a PASSWORD NULL", "password", "select $1 as password"]
        {
            assert!(matches!(without_passwords(text), Cow::Borrowed(_)), "{text}");
        }
    }
}
