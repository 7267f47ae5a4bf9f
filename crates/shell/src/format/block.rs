//! Rows that wait in memory until the widths of their columns are known.

use std::io::{Result, Write};

use super::sheet::{Expanded, Sheet, Values};
use super::{aligned, expanded};
use melba_client::escape;

/// Further rows of larger results form a separate block.
const BLOCK_BYTES: usize = 64 << 20;

pub struct Block {
    /// Row by row, as a terminal can show them.
    cells: Vec<Option<Box<str>>>,
    bytes: usize,
    pub widths: Vec<usize>,
    /// Of the first row.
    pub first: u64,
    /// How it is drawn, once that is decided.
    is_expanded: Option<bool>,
}

/// A row of a block: its values' texts.
pub type Cells<'a> = Vec<&'a str>;

impl Block {
    pub fn new(columns: usize) -> Block {
        Block { cells: Vec::new(), bytes: 0, widths: vec![0; columns], first: 1, is_expanded: None }
    }

    /// Whether the last output had a line for each value.
    pub fn is_expanded(&self) -> bool {
        self.is_expanded == Some(true)
    }

    pub fn row(&mut self, sheet: &Sheet, values: &Values, out: &mut dyn Write) -> Result<()> {
        for value in values {
            let text: Option<Box<str>> = value.map(|value| escape::cell(&String::from_utf8_lossy(value)).into());
            self.bytes += 24 + text.as_ref().map_or(0, |t| t.len());
            self.cells.push(text);
        }
        if self.bytes > BLOCK_BYTES { self.write(sheet, out) } else { Ok(()) }
    }

    /// Writes the waiting rows.
    pub fn end(&mut self, sheet: &Sheet, out: &mut dyn Write) -> Result<()> {
        let is_first = self.is_expanded.is_none();
        if is_first || !self.cells.is_empty() { self.write(sheet, out) } else { Ok(()) }
    }

    fn write(&mut self, sheet: &Sheet, out: &mut dyn Write) -> Result<()> {
        let heads: Vec<String> = sheet.columns.iter().map(|c| escape::cell(&c.name).into_owned()).collect();
        let cells = std::mem::take(&mut self.cells);
        let texts: Cells = cells.iter().map(|cell| cell.as_deref().unwrap_or(&sheet.style.null)).collect();
        let rows: Vec<&[&str]> = texts.chunks(sheet.columns.len().max(1)).collect();
        let is_first = self.is_expanded.is_none();
        let mut widths = std::mem::take(&mut self.widths);
        // Also of a head that is not shown, as in psql.
        heads.iter().zip(&mut widths).for_each(|(head, width)| *width = (*width).max(aligned::lines_width(head)));
        for row in &rows {
            row.iter().zip(&mut widths).for_each(|(text, width)| *width = (*width).max(aligned::lines_width(text)));
        }
        let is_wide = || sheet.style.width.is_some_and(|columns| aligned::total_width(&widths) > columns) && !rows.is_empty();
        let is_expanded = self.is_expanded.unwrap_or_else(|| match sheet.style.expanded {
            Expanded::Off => false,
            // Without rows there is only a head.
            Expanded::On => !rows.is_empty() || sheet.columns.is_empty(),
            Expanded::Auto => is_wide(),
        });
        if is_expanded {
            expanded::write(sheet, &heads, &rows, self.first, out)?;
        } else if sheet.style.expanded != Expanded::On {
            aligned::write(sheet, &heads, &widths, &rows, is_first, out)?;
        }
        self.first += rows.len() as u64;
        (self.widths, self.bytes, self.is_expanded) = (widths, 0, Some(is_expanded));
        Ok(())
    }
}
