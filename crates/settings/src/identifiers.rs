//! Lists of names, as in search_path.

/// The longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 63;

/// What a text that is too long for a name is cut to.
pub fn cut_to_name(text: &str) -> &str {
    &text[..text.floor_char_boundary(NAME_BYTES_MAX)]
}

/// The names of a comma-separated list, case folded unless they are in double quotes.
pub fn split_identifiers(list: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut chars = list.chars().peekable();
    while chars.peek().is_some() {
        while chars.next_if(|c| c.is_whitespace() || *c == ',').is_some() {}
        let mut name = String::new();
        if chars.next_if_eq(&'"').is_some() {
            while let Some(c) = chars.next() {
                if c != '"' {
                    name.push(c);
                } else if chars.next_if_eq(&'"').is_some() {
                    name.push('"');
                } else {
                    break;
                }
            }
            while chars.next_if(|c| *c != ',').is_some() {}
        } else {
            while let Some(c) = chars.next_if(|c| *c != ',') {
                name.extend(c.to_lowercase());
            }
            name.truncate(name.trim_end().len());
        }
        if !name.is_empty() {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_identifiers() {
        assert_eq!(split_identifiers("\"$user\", Public ,\"A\"\"b\""), ["$user", "public", "A\"b"]);
        assert!(split_identifiers("  ").is_empty());
    }
}
