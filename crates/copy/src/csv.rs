//! The CSV format: quotes around fields, doubled inside them; a quoted field may hold newlines.

use melba_types::{Result, bail};

use super::newline::Newlines;
use super::options::CopyOptions;
use super::text::Line;
use super::{FieldKind, Fields};

/// Finds records in input that comes in pieces.
pub(super) struct Records {
    newlines: Newlines,
    /// How far the buffer was searched, and the state there.
    searched: usize,
    quoted: bool,
    /// The byte before was an escape inside quotes.
    escaped: bool,
}

impl Records {
    pub fn new() -> Records {
        Records { newlines: Newlines::of_csv(), searched: 0, quoted: false, escaped: false }
    }

    /// Whether the next record begins where the buffer does: lines that were found in another way may be taken.
    pub fn is_at_start(&self) -> bool {
        self.searched == 0 && !self.quoted && !self.escaped
    }

    /// Notes that lines were taken that end in a newline alone.
    ///
    /// # Errors
    /// 22P04 when others ended differently.
    pub fn take_plain(&mut self) -> Result<()> {
        self.newlines.take_plain()
    }

    /// The first whole record of `buffer`; at the end of the input, the rest.
    ///
    /// # Errors
    /// 22P04 when the input ends inside quotes, and for a newline unlike the first.
    pub fn next(&mut self, buffer: &[u8], options: &CopyOptions, at_end: bool) -> Result<Option<Line>> {
        let (quote, escape) = (options.quote, options.escape);
        let mut at = self.searched;
        while at < buffer.len() {
            let c = buffer[at];
            if self.escaped {
                self.escaped = false;
            } else if self.quoted && c == escape && escape != quote {
                self.escaped = true;
            } else if c == quote {
                // A doubled quote closes and opens again: the same in the end.
                self.quoted = !self.quoted;
            } else if !self.quoted && (c == b'\n' || c == b'\r') {
                let Some(width) = self.newlines.width(buffer, at, at_end)? else {
                    self.searched = at;
                    return Ok(None);
                };
                self.searched = 0;
                return Ok(Some(Line { len: at, taken: at + width }));
            }
            at += 1;
        }
        self.searched = at;
        if !at_end || buffer.is_empty() {
            return Ok(None);
        }
        if self.quoted {
            bail!(BAD_COPY_FILE_FORMAT, "unterminated CSV quoted field");
        }
        self.searched = 0;
        Ok(Some(Line { len: buffer.len(), taken: buffer.len() }))
    }
}

/// Splits one record into fields. `keeps_null`: whether a quoted null string is null too (FORCE_NULL), `never_null`:
/// whether even an unquoted one is a value (FORCE_NOT_NULL), by position.
pub(super) fn split(
    record: &[u8],
    options: &CopyOptions,
    keeps_null: &[bool],
    never_null: &[bool],
    out: &mut Fields,
) -> Result<()> {
    out.clear();
    let mut at = 0;
    loop {
        let field_at = out.bytes.len();
        let (mut was_quoted, mut quoted) = (false, false);
        while let Some(&c) = record.get(at) {
            if quoted {
                if c == options.escape && matches!(record.get(at + 1), Some(n) if *n == options.quote || *n == options.escape) {
                    out.bytes.push(record[at + 1]);
                    at += 2;
                    continue;
                }
                if c == options.quote {
                    quoted = false;
                } else {
                    out.bytes.push(c);
                }
            } else if c == options.delimiter {
                break;
            } else if c == options.quote {
                quoted = true;
                was_quoted = true;
            } else {
                out.bytes.push(c);
            }
            at += 1;
        }
        if quoted {
            bail!(BAD_COPY_FILE_FORMAT, "unterminated CSV quoted field");
        }
        let i = out.len();
        let flag = |flags: &[bool]| flags.get(i).copied().unwrap_or(false);
        let text = &out.bytes[field_at..];
        let kind = if text == options.null.as_bytes() && (!was_quoted && !flag(never_null) || was_quoted && flag(keeps_null)) {
            FieldKind::Null
        } else if !was_quoted && options.default.as_deref().map(str::as_bytes) == Some(text) {
            FieldKind::Default
        } else {
            FieldKind::Value
        };
        out.end(kind);
        if at >= record.len() {
            return Ok(());
        }
        at += 1;
    }
}
