//! The text format: backslash escapes, one row a line.

use melba_types::Result;

use super::newline::Newlines;
use super::{FieldKind, Fields};

/// Splits one line (without its newline) into fields.
///
/// # Errors
/// None: every line is some row; the columns interpret its fields.
pub(super) fn split(line: &[u8], delimiter: u8, null: &[u8], default: Option<&[u8]>, out: &mut Fields) {
    out.clear();
    let mut at = 0;
    loop {
        let start = at;
        let field_at = out.bytes.len();
        let mut escaped = false;
        loop {
            // Bytes up to the next special one are copied as they are.
            let rest = &line[at..];
            let plain = memchr::memchr2(delimiter, b'\\', rest).unwrap_or(rest.len());
            out.bytes.extend_from_slice(&rest[..plain]);
            at += plain;
            if line.get(at) != Some(&b'\\') {
                break;
            }
            escaped = true;
            out.escaped = true;
            at = unescape(line, at + 1, &mut out.bytes);
        }
        let raw = &line[start..at];
        let kind = if raw == null {
            FieldKind::Null
        } else if default == Some(raw) {
            FieldKind::Default
        } else {
            FieldKind::Value
        };
        if kind != FieldKind::Value && (escaped || !raw.is_empty()) {
            out.bytes.truncate(field_at);
        }
        out.end(kind);
        if at >= line.len() {
            return;
        }
        at += 1;
    }
}

/// Appends the value of the escape after a backslash at `at - 1`; returns the position after it.
fn unescape(line: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    let Some(&c) = line.get(at) else {
        out.push(b'\\');
        return at;
    };
    let digits = |from: usize, max: usize, radix: u32| {
        let n = line[from..].iter().take(max).take_while(|c| (**c as char).is_digit(radix)).count();
        let value = line[from..from + n].iter().fold(0u32, |v, c| v * radix + (*c as char).to_digit(radix).unwrap_or(0));
        (n, value as u8)
    };
    match c {
        b'b' => out.push(8),
        b'f' => out.push(12),
        b'n' => out.push(b'\n'),
        b'r' => out.push(b'\r'),
        b't' => out.push(b'\t'),
        b'v' => out.push(11),
        b'0'..=b'7' => {
            let (n, value) = digits(at, 3, 8);
            out.push(value);
            return at + n;
        }
        b'x' => {
            let (n, value) = digits(at + 1, 2, 16);
            if n == 0 {
                out.push(b'x');
                return at + 1;
            }
            out.push(value);
            return at + 1 + n;
        }
        other => out.push(other),
    }
    at + 1
}

/// Finds lines in input that comes in pieces.
pub(super) struct Lines {
    newlines: Newlines,
    /// How far the buffer was searched.
    searched: usize,
}

/// A line found: its length, and the bytes it takes with its newline.
pub(super) struct Line {
    pub len: usize,
    pub taken: usize,
}

impl Lines {
    pub fn new() -> Lines {
        Lines { newlines: Newlines::of_text(), searched: 0 }
    }

    /// The first whole line of `buffer`; at the end of the input, the rest.
    ///
    /// # Errors
    /// 22P04 for a newline unlike the first.
    pub fn next(&mut self, buffer: &[u8], at_end: bool) -> Result<Option<Line>> {
        let mut from = self.searched;
        while let Some(found) = memchr::memchr2(b'\n', b'\r', &buffer[from..]) {
            let at = from + found;
            // A newline after an odd number of backslashes is data.
            let backslashes = buffer[..at].iter().rev().take_while(|c| **c == b'\\').count();
            if backslashes % 2 == 1 {
                from = at + 1;
                continue;
            }
            let Some(width) = self.newlines.width(buffer, at, at_end)? else {
                self.searched = at;
                return Ok(None);
            };
            self.searched = 0;
            return Ok(Some(Line { len: at, taken: at + width }));
        }
        if at_end && !buffer.is_empty() {
            self.searched = 0;
            return Ok(Some(Line { len: buffer.len(), taken: buffer.len() }));
        }
        // An escape may straddle the pieces.
        self.searched = buffer.len();
        Ok(None)
    }

    /// Notes that lines were taken that end in a newline alone.
    ///
    /// # Errors
    /// 22P04 when others ended differently.
    pub fn take_plain(&mut self) -> Result<()> {
        self.newlines.take_plain()?;
        self.searched = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(line: &[u8]) -> Vec<Option<String>> {
        let mut out = Fields::default();
        split(line, b'\t', b"\\N", None, &mut out);
        (0..out.len())
            .map(|i| match out.get(i) {
                (FieldKind::Null, _) => None,
                (_, bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            })
            .collect()
    }

    #[test]
    fn escapes_and_nulls_are_told_apart() {
        let some = |s: &str| Some(s.to_owned());
        assert_eq!(fields(b"a\t\\N\t"), [some("a"), None, some("")]);
        assert_eq!(fields(b"\\\\N\t\\t\\x41\\101\\q"), [some("\\N"), some("\tAAq")]);
        assert_eq!(fields(b""), [some("")]);
    }

    #[test]
    fn lines_are_found_in_pieces_of_any_size() {
        let input = b"a\\\nb\nc\n\nd";
        for cut in 0..=input.len() {
            let mut lines = Lines::new();
            let mut buffer = input[..cut].to_vec();
            let mut found = Vec::new();
            for last in [false, true] {
                while let Some(line) = lines.next(&buffer, last).expect("plain newlines") {
                    found.push(String::from_utf8_lossy(&buffer[..line.len]).into_owned());
                    buffer.drain(..line.taken);
                }
                if !last {
                    buffer.extend_from_slice(&input[cut..]);
                }
            }
            assert_eq!(found, ["a\\\nb", "c", "", "d"], "cut at {cut}");
        }
    }
}
