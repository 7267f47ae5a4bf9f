//! Fixed prefixes of LIKE patterns and regular expressions.

/// The text that everything matching a LIKE pattern starts with.
pub fn like_prefix(pattern: &str) -> String {
    let mut out = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' | '_' => break,
            '\\' => match chars.next() {
                Some(escaped) => out.push(escaped),
                None => break,
            },
            c => out.push(c),
        }
    }
    out
}

/// The text that everything matching an anchored regular expression starts with; empty when there is none.
pub fn regex_prefix(pattern: &str) -> String {
    let Some(rest) = pattern.strip_prefix('^') else { return String::new() };
    if rest.contains('|') {
        return String::new();
    }
    // psql writes ^(name)$.
    let rest = match rest.strip_prefix('(').and_then(|r| r.strip_suffix(")$")) {
        Some(inner) if !inner.contains(['(', ')']) => inner,
        _ => rest,
    };
    let mut out = String::new();
    let chars: Vec<char> = rest.chars().collect();
    for (i, c) in chars.iter().enumerate() {
        let plain = c.is_alphanumeric() || matches!(c, '_' | ' ' | '-' | '/' | ':' | ',');
        // A quantifier makes the character before it optional.
        let optional = matches!(chars.get(i + 1), Some('*' | '?' | '{'));
        if !plain || optional {
            break;
        }
        out.push(*c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_at_the_first_wildcard() {
        assert_eq!(like_prefix("ab\\%c_d%"), "ab%c");
        assert_eq!(like_prefix("%x"), "");
        assert_eq!(regex_prefix("^(pg_class)$"), "pg_class");
        assert_eq!(regex_prefix("^abc*"), "ab");
        assert_eq!(regex_prefix("abc"), "");
        assert_eq!(regex_prefix("^a|b"), "");
    }
}
