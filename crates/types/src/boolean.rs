//! Booleans as PostgreSQL spells them.

/// The value of on, off, 1, 0, or a unique prefix of true, false, yes, no, off; in any case. PostgreSQL's `parse_bool`: a caller
/// that allows blanks around it trims.
pub fn parse(text: &str) -> Option<bool> {
    let text = text.to_ascii_lowercase();
    let is_prefix = |word: &str, at_least: usize| text.len() >= at_least && word.starts_with(&text);
    if is_prefix("true", 1) || is_prefix("yes", 1) || text == "on" || text == "1" {
        return Some(true);
    }
    if is_prefix("false", 1) || is_prefix("no", 1) || is_prefix("off", 2) || text == "0" {
        return Some(false);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn unique_prefixes_are_accepted_and_others_refused() {
        for text in ["t", "TRUE", "ye", "on", "1"] {
            assert_eq!(parse(text), Some(true), "{text}");
        }
        for text in ["f", "False", "n", "of", "OFF", "0"] {
            assert_eq!(parse(text), Some(false), "{text}");
        }
        for text in ["", "o", "onn", "truest", " true", "10"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
