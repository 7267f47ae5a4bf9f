//! Lower case by Unicode's simple mapping, one character for another, as PostgreSQL's builtin provider has it.

pub fn lower_char(c: char) -> char {
    let mut mapped = c.to_lowercase();
    match (c, mapped.next(), mapped.next()) {
        // Fully two characters, simply one.
        ('\u{130}', ..) => 'i',
        (_, Some(mapped), None) => mapped,
        _ => c,
    }
}

pub fn lower(s: &str) -> String {
    if s.is_ascii() { s.to_ascii_lowercase() } else { s.chars().map(lower_char).collect() }
}

/// The sort key of a case-insensitive text (citext).
pub(crate) fn sort_key(text: &[u8], out: &mut Vec<u8>) {
    match std::str::from_utf8(text) {
        Ok(text) if !text.is_ascii() => out.extend_from_slice(lower(text).as_bytes()),
        _ => out.extend(text.iter().map(u8::to_ascii_lowercase)),
    }
}
