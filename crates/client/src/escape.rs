//! Arbitrary text, in a form that a terminal can show.

use std::borrow::Cow;

/// Characters that would move the cursor, change colours, or reverse the direction of the text after them.
pub fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// A value in lines: control characters as psql writes them (`\r`, `\x1B`), tabs as spaces, ends of lines stay.
pub fn cell(text: &str) -> Cow<'_, str> {
    escaped(text, true)
}

/// Text with its ends of lines and tabs; other control characters are written.
pub fn text(text: &str) -> Cow<'_, str> {
    escaped(text, false)
}

/// Output to a terminal is escaped, output to a program is not.
pub fn if_terminal(value: &str, is_terminal: bool) -> Cow<'_, str> {
    if is_terminal { text(value) } else { Cow::Borrowed(value) }
}

fn escaped(text: &str, expand_tabs: bool) -> Cow<'_, str> {
    let is_plain = |c: char| !is_control(c) || c == '\n' || (c == '\t' && !expand_tabs);
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut column = 0;
    for c in text.chars() {
        let before = out.len();
        match c {
            '\n' => {
                out.push(c);
                column = 0;
                continue;
            }
            '\t' if expand_tabs => out.extend(std::iter::repeat_n(' ', 8 - column % 8)),
            '\r' => out.push_str("\\r"),
            c if is_plain(c) => out.push(c),
            c if (c as u32) < 0x80 => out.push_str(&format!("\\x{:02X}", c as u32)),
            c => out.push_str(&format!("\\u{:04X}", c as u32)),
        }
        column += unicode_width::UnicodeWidthStr::width(&out[before..]);
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_controls_the_terminal() {
        assert_eq!(cell("a\x1b[31mb\r\x07"), "a\\x1B[31mb\\r\\x07");
        assert_eq!(cell("a\tb\n\tc"), "a       b\n        c");
        assert_eq!(cell("\u{9b}1m \u{202e}x"), "\\u009B1m \\u202Ex");
        assert_eq!(text("a\tb\x00\n"), "a\tb\\x00\n");
        assert!(matches!(cell("plain ü 漢"), Cow::Borrowed(_)));
        assert_eq!(if_terminal("\x1b", false), "\x1b");
    }
}
