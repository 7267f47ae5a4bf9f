//! Qualified names in text: `a."B c".d`.

use melba_types::{Result, bail};

/// Splits a qualified name; unquoted parts are folded to lower case.
///
/// # Errors
/// 42602 when the text is no name.
pub fn parse_qualified_name(text: &str) -> Result<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = text.trim_matches(is_space);
    loop {
        let (part, after) = parse_part(rest)?;
        parts.push(part);
        rest = after.trim_start_matches(is_space);
        match rest.strip_prefix('.') {
            Some(after) => rest = after.trim_start_matches(is_space),
            None if rest.is_empty() => return Ok(parts),
            None => bail!(INVALID_NAME, "invalid name syntax"),
        }
    }
}

/// White space by SQL's scanner.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

fn parse_part(text: &str) -> Result<(String, &str)> {
    if let Some(mut rest) = text.strip_prefix('"') {
        let mut part = String::new();
        loop {
            let Some((before, after)) = rest.split_once('"') else { bail!(INVALID_NAME, "invalid name syntax") };
            part.push_str(before);
            match after.strip_prefix('"') {
                Some(after) => {
                    part.push('"');
                    rest = after;
                }
                None if part.is_empty() => bail!(INVALID_NAME, "invalid name syntax"),
                None => return Ok((truncate(part), after)),
            }
        }
    }
    let end = text.find(|c| c == '.' || is_space(c)).unwrap_or(text.len());
    if end == 0 || text[..end].contains('"') {
        bail!(INVALID_NAME, "invalid name syntax");
    }
    Ok((truncate(text[..end].to_ascii_lowercase()), &text[end..]))
}

/// Cuts an identifier to the length names have (63 bytes), at a character.
pub fn truncate(mut name: String) -> String {
    const NAME_BYTES_MAX: usize = 63;
    if name.len() > NAME_BYTES_MAX {
        let mut end = NAME_BYTES_MAX;
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        name.truncate(end);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_and_folded() {
        assert_eq!(parse_qualified_name(" Public . \"T \"\"1\" ").expect("a name"), ["public", "T \"1"]);
        for bad in ["", "a..b", "a b", "\"", "\"\"", "a.", "a\"b\""] {
            assert!(parse_qualified_name(bad).is_err(), "{bad}");
        }
    }
}
