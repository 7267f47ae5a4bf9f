//! The fast path of the text and CSV formats: many lines at a time, then column by column.
//!
//! It takes lines from the start of the input up to the first one that is not a row of literal values: one with a backslash
//! (except the null marker) or, in CSV, a quote inside of a value, with a carriage return, a zero byte, bytes that are not UTF-8, or
//! another number of fields. The general path decides the meaning or the error of such a line.

use std::ops::Range;

use memchr::{memchr, memchr2, memchr3_iter};

/// Bytes of the input that are scanned for one batch.
const WINDOW_BYTES: usize = 1 << 20;
/// Beside the end of a field: quotes stand around it.
const QUOTED: u32 = 1 << 31;

/// Finds the fields of lines.
pub(super) struct PlainLines {
    delimiter: u8,
    /// The byte that makes a line special: a backslash or a quote.
    special: u8,
    null: Vec<u8>,
    /// The null marker begins with the only backslash that it has.
    null_is_escape: bool,
    /// Values may be quoted; inside of quotes this byte is special, too.
    escape: Option<u8>,
    fields: usize,
    /// End of each field of the lines found, one line after the other, and whether it is `QUOTED`.
    ends: Vec<u32>,
}

impl PlainLines {
    /// Of the text format. `fields`: of each line, at least one.
    pub fn of_text(delimiter: u8, null: &str, fields: usize) -> PlainLines {
        let null = null.as_bytes().to_vec();
        let null_is_escape = matches!(&null[..], [b'\\', rest @ ..] if !rest.is_empty() && !rest.contains(&b'\\'));
        PlainLines { delimiter, special: b'\\', null, null_is_escape, escape: None, fields, ends: Vec::new() }
    }

    /// Of CSV.
    pub fn of_csv(delimiter: u8, (quote, escape): (u8, u8), null: &str, fields: usize) -> PlainLines {
        let null = null.as_bytes().to_vec();
        PlainLines { delimiter, special: quote, null, null_is_escape: false, escape: Some(escape), fields, ends: Vec::new() }
    }

    /// Finds whole lines, at most `rows_max`, and returns how many there are.
    pub fn find(&mut self, input: &[u8], rows_max: usize) -> usize {
        self.ends.clear();
        let window = &input[..input.len().min(WINDOW_BYTES)];
        let (mut rows, mut in_row, mut start) = (0, 0, 0);
        // Where the quotes around the present field end.
        let (mut unquoted_from, mut quoted) = (0, 0);
        for at in memchr3_iter(self.delimiter, b'\n', self.special, window) {
            if at < unquoted_from {
                continue;
            }
            if window[at] == self.special {
                if at == start && self.is_null_at(window, at) {
                    continue;
                }
                let Some(end) = self.closing_quote(window, at).filter(|_| at == start) else { break };
                (unquoted_from, quoted) = (end + 1, QUOTED);
                continue;
            }
            let last = in_row + 1 == self.fields;
            let ends_quoted = quoted == 0 || at == unquoted_from;
            if last != (window[at] == b'\n') || !ends_quoted {
                break;
            }
            self.ends.push(at as u32 | std::mem::take(&mut quoted));
            start = at + 1;
            in_row += 1;
            if last {
                in_row = 0;
                rows += 1;
                if rows == rows_max {
                    break;
                }
            }
        }
        self.ends.truncate(rows * self.fields);
        // Of the lines found only: the window may be long, and its first line not a plain one.
        let lines = &window[..self.bytes(rows)];
        let lines = &lines[..memchr2(b'\r', 0, lines).unwrap_or(lines.len())];
        let valid = std::str::from_utf8(lines).map_or_else(|e| e.valid_up_to(), str::len);
        match valid == self.bytes(rows) {
            true => rows,
            false => (0..rows).take_while(|row| self.bytes(row + 1) <= valid).count(),
        }
    }

    /// Where a quoted value ends that begins here, if it is literal and on one line.
    fn closing_quote(&self, window: &[u8], at: usize) -> Option<usize> {
        let escape = self.escape?;
        let end = at + 1 + memchr(self.special, &window[at + 1..])?;
        let value = &window[at + 1..end];
        memchr2(b'\n', if escape == self.special { b'\n' } else { escape }, value).is_none().then_some(end)
    }

    fn is_null_at(&self, window: &[u8], at: usize) -> bool {
        let after = window.get(at + self.null.len());
        self.null_is_escape && window[at..].starts_with(&self.null) && after.is_some_and(|c| *c == self.delimiter || *c == b'\n')
    }

    /// Bytes that the first lines take, with their newlines.
    pub fn bytes(&self, rows: usize) -> usize {
        if rows == 0 { 0 } else { self.end(rows * self.fields - 1) + 1 }
    }

    fn end(&self, at: usize) -> usize {
        (self.ends[at] & !QUOTED) as usize
    }

    /// The position of field `i` of a line; `None` when it is null. `input` is the text in which the lines were found.
    #[inline]
    pub fn field(&self, input: &[u8], row: usize, i: usize) -> Option<Range<usize>> {
        let at = row * self.fields + i;
        let start = if at == 0 { 0 } else { self.end(at - 1) + 1 };
        if self.ends[at] & QUOTED != 0 {
            return Some(start + 1..self.end(at) - 1);
        }
        let field = start..self.ends[at] as usize;
        if field.len() == self.null.len() && input[field.clone()] == self.null { None } else { Some(field) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lines: &mut PlainLines, input: &[u8]) -> Vec<Vec<Option<String>>> {
        let rows = lines.find(input, 10);
        let text = |f: Option<Range<usize>>| f.map(|f| String::from_utf8_lossy(&input[f]).into_owned());
        (0..rows).map(|row| (0..lines.fields).map(|i| text(lines.field(input, row, i))).collect()).collect()
    }

    fn row(values: &[Option<&str>]) -> Vec<Option<String>> {
        values.iter().map(|v| v.map(str::to_owned)).collect()
    }

    #[test]
    fn whole_plain_lines_are_found() {
        let mut two = PlainLines::of_text(b'\t', "\\N", 2);
        let first = row(&[Some("1"), Some("a")]);
        assert_eq!(found(&mut two, b"1\ta\n\t\\N\n3\tc"), [first.clone(), row(&[Some(""), None])]);
        assert_eq!(two.bytes(2), 8);
        // Conditions that end the fast path: escapes, other newlines, another number of fields, invalid UTF-8.
        for rest in
            [&b"2\t\\\\N\n"[..], b"2\t\\Nx\n", b"\\.\n", b"2\tb\r\n", b"2\n", b"2\tb\tc\n", b"2\t\xff\n", b"2\tb", b"\\N\t\\"]
        {
            let input = [b"1\ta\n", rest].concat();
            assert_eq!(found(&mut two, &input), std::slice::from_ref(&first), "{:?}", String::from_utf8_lossy(rest));
        }
        assert_eq!(found(&mut two, b""), Vec::<Vec<Option<String>>>::new());
    }

    #[test]
    fn csv_lines_without_quotes_in_values_are_found() {
        let mut two = PlainLines::of_csv(b',', (b'"', b'"'), "", 2);
        let expected = [row(&[Some("1"), Some("a\\b")]), row(&[None, Some("\\.")])];
        for rest in [
            &b"2,\"b\"\"\"\n"[..],
            b"2,b\"\"\n",
            b"2,b\r\n",
            b"2,\0\n",
            b"2\n",
            b"2,b,c\n",
            b"2,b",
            b"2,\"b\nb\"\n3,c\n",
            b"2,\"b\"c\n",
            b"2, \"b\"\n",
            b"2,\"b\n",
            b"\"2\",\"b\"",
            b"\"2,b\"\n",
            b"2,\"\xff\"\n",
        ] {
            let input = [b"1,a\\b\n,\\.\n", rest].concat();
            assert_eq!(found(&mut two, &input), expected, "{:?}", String::from_utf8_lossy(rest));
        }
    }

    #[test]
    fn quotes_around_values_are_not_part_of_them() {
        let mut two = PlainLines::of_csv(b',', (b'"', b'"'), "nil", 2);
        let expected = [row(&[Some("1,2"), Some("")]), row(&[Some("nil"), None]), row(&[Some("\\"), Some("a")])];
        assert_eq!(found(&mut two, b"\"1,2\",\"\"\n\"nil\",nil\n\"\\\",a\n"), expected);
        let mut escaped = PlainLines::of_csv(b',', (b'"', b'\\'), "", 2);
        assert_eq!(found(&mut escaped, b"\"1\",\"a\"\n2,\"\\\"\"\n"), [row(&[Some("1"), Some("a")])]);
    }

    #[test]
    fn a_null_marker_may_be_anything() {
        assert_eq!(found(&mut PlainLines::of_text(b'\t', "", 2), b"\t\n"), [row(&[None, None])]);
        assert_eq!(found(&mut PlainLines::of_text(b'\t', "nil", 1), b"nil\nnile\n"), [row(&[None]), row(&[Some("nile")])]);
    }
}
