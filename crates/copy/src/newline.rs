//! How lines end: all as the first one does, as in PostgreSQL.

use melba_types::{Result, err};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Newline {
    Lf,
    Cr,
    CrLf,
}

/// The newlines of an input.
pub(super) struct Newlines {
    known: Option<Newline>,
    is_csv: bool,
}

impl Newlines {
    pub fn of_text() -> Newlines {
        Newlines { known: None, is_csv: false }
    }

    pub fn of_csv() -> Newlines {
        Newlines { known: None, is_csv: true }
    }

    /// Bytes of the newline at a place; `None` when the byte after it must be known first.
    ///
    /// # Errors
    /// 22P04 when earlier lines ended differently.
    pub fn width(&mut self, buffer: &[u8], at: usize, at_end: bool) -> Result<Option<usize>> {
        let seen = match (buffer[at], buffer.get(at + 1)) {
            (b'\n', _) => Newline::Lf,
            // A carriage return has ended a line before: a newline after it is in the next line.
            _ if self.known == Some(Newline::Cr) => Newline::Cr,
            (_, None) if !at_end => return Ok(None),
            (_, Some(b'\n')) => Newline::CrLf,
            _ => Newline::Cr,
        };
        self.accept(seen)?;
        Ok(Some(if seen == Newline::CrLf { 2 } else { 1 }))
    }

    /// Notes that lines were taken that end in a newline alone.
    ///
    /// # Errors
    /// 22P04 when others ended differently.
    pub fn take_plain(&mut self) -> Result<()> {
        self.accept(Newline::Lf)
    }

    fn accept(&mut self, seen: Newline) -> Result<()> {
        if *self.known.get_or_insert(seen) == seen {
            return Ok(());
        }
        let (name, escape) = if seen == Newline::Lf { ("newline", "\\n") } else { ("carriage return", "\\r") };
        Err(match self.is_csv {
            true => err!(BAD_COPY_FILE_FORMAT, "unquoted {name} found in data")
                .hint(format!("Use quoted CSV field to represent {name}.")),
            false => {
                err!(BAD_COPY_FILE_FORMAT, "literal {name} found in data").hint(format!("Use \"{escape}\" to represent {name}."))
            }
        })
    }
}
