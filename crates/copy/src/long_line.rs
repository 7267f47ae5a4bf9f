//! A line that is longer than the pieces of the input.

use melba_encoding::utf8_start;
use melba_types::{Result, limits};

/// How far a line was checked whose end is not read yet.
#[derive(Default)]
pub(super) struct LongLine {
    checked: usize,
}

impl LongLine {
    /// Checks what there is of a line, before more of it is read. After another line, `checked` begins again with a new value.
    ///
    /// # Errors
    /// 54000 when it is too long, 53200 when memory is short, 22021 for bytes that are no character, and those of `limits::check`.
    pub fn check(&mut self, line: &[u8]) -> Result<()> {
        limits::check_length(line.len())?;
        self.checked += utf8_start(&line[self.checked..])?;
        Ok(())
    }
}
