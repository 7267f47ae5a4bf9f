//! Fixed prefixes of LIKE patterns and regular expressions.

/// The text that everything matching a LIKE pattern starts with.
pub fn like_prefix(pattern: &str) -> String {
    like_start(pattern).0
}

/// The only text that matches a LIKE pattern.
pub fn like_exact(pattern: &str) -> Option<String> {
    let (text, is_all) = like_start(pattern);
    is_all.then_some(text)
}

/// The prefix that a LIKE pattern demands, if it demands nothing else.
pub fn like_only_prefix(pattern: &str) -> Option<String> {
    let start = pattern.trim_end_matches('%');
    // An escaped wildcard at the end is part of the text.
    start.len().lt(&pattern.len()).then(|| like_exact(start)).flatten()
}

/// The text before a pattern's first wildcard, and whether the pattern ends there.
fn like_start(pattern: &str) -> (String, bool) {
    let mut out = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' | '_' => return (out, false),
            '\\' => match chars.next() {
                Some(escaped) => out.push(escaped),
                None => return (out, false),
            },
            c => out.push(c),
        }
    }
    (out, true)
}

/// The beginning of every match of an anchored regular expression; empty when there is none.
pub fn regex_prefix(pattern: &str) -> String {
    regex_start(pattern).0
}

/// The only text that matches a regular expression.
pub fn regex_exact(pattern: &str) -> Option<String> {
    let (text, rest) = regex_start(pattern);
    (rest == "$").then_some(text)
}

/// The text with which an anchored regular expression starts, and the rest.
fn regex_start(pattern: &str) -> (String, String) {
    let Some(rest) = pattern.strip_prefix('^').filter(|rest| !rest.contains('|')) else { return Default::default() };
    // psql writes ^(name)$.
    let unwrapped = rest.strip_prefix('(').and_then(|r| r.strip_suffix(")$")).filter(|inner| !inner.contains(['(', ')']));
    let chars: Vec<char> = unwrapped.map_or_else(|| rest.chars().collect(), |inner| inner.chars().chain(['$']).collect());
    let mut out = String::new();
    for (i, c) in chars.iter().enumerate() {
        let plain = c.is_alphanumeric() || matches!(c, '_' | ' ' | '-' | '/' | ':' | ',');
        // A quantifier makes the character before it optional.
        let optional = matches!(chars.get(i + 1), Some('*' | '?' | '{'));
        if !plain || optional {
            break;
        }
        out.push(*c);
    }
    let rest = chars.into_iter().skip(out.chars().count()).collect();
    (out, rest)
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
        assert_eq!(regex_prefix("^(ab)c$"), "");
    }

    #[test]
    fn some_patterns_demand_a_prefix_only() {
        for (pattern, prefix) in [
            ("ab%", Some("ab")),
            ("a\\%b%%", Some("a%b")),
            ("%", Some("")),
            ("ab", None),
            ("a_%", None),
            ("a%b%", None),
            ("a\\%", None),
        ] {
            assert_eq!(like_only_prefix(pattern).as_deref(), prefix, "{pattern}");
        }
    }

    #[test]
    fn a_pattern_without_wildcards_matches_one_text() {
        assert_eq!(like_exact("pg\\_class").as_deref(), Some("pg_class"));
        assert_eq!(like_exact("pg_class"), None);
        assert_eq!(like_exact("pg\\"), None);
        for (pattern, text) in [("^(t1)$", Some("t1")), ("^t1$", Some("t1")), ("^$", Some("")), ("^t1", None), ("t1$", None)] {
            assert_eq!(regex_exact(pattern).as_deref(), text, "{pattern}");
        }
        for pattern in ["^(t1)", "^t.$", "^t1*$", "^t1+$", "^(a|b)$", "^a|b$", "^a$b$", "^((t1))$"] {
            assert_eq!(regex_exact(pattern), None, "{pattern}");
        }
    }
}
