//! Results as text: tables as psql draws them, and machine-readable forms.
//!
//! Rows are written as they come, except for tables, whose columns are as wide as the widest value of a block of rows.

mod aligned;
mod block;
mod expanded;
mod json;
mod plain;
mod sheet;

use std::io::{Result, Write};

use block::Block;
use melba_client::ResultColumn;
use melba_client::escape;
use sheet::Sheet;

pub use sheet::{Expanded, Format, Style, Values};

/// A result on its way out.
pub struct Printer {
    sheet: Sheet,
    /// Of a table: rows that wait for the width of their columns.
    block: Block,
}

impl Printer {
    pub fn new(style: &Style, columns: Vec<ResultColumn>) -> Printer {
        let block = Block::new(columns.len());
        Printer { sheet: Sheet { style: style.clone(), columns, title: None, footers: None, rows: 0 }, block }
    }

    /// For tables only.
    pub fn with_texts(mut self, title: String, footers: Option<Vec<String>>) -> Printer {
        self.sheet.title = Some(title).filter(|title| !title.is_empty());
        self.sheet.footers = footers;
        self
    }

    /// The text above the rows.
    pub fn begin(&mut self, out: &mut dyn Write) -> Result<()> {
        match self.sheet.style.format {
            Format::Unaligned if self.sheet.style.expanded != Expanded::On => plain::unaligned_head(&self.sheet, out),
            Format::Table | Format::Unaligned | Format::JsonLines => Ok(()),
            Format::Csv => plain::csv_head(&self.sheet, out),
            Format::Json => out.write_all(b"["),
            Format::Markdown => plain::markdown_head(&self.sheet, out),
        }
    }

    pub fn row(&mut self, values: &Values, out: &mut dyn Write) -> Result<()> {
        self.sheet.rows += 1;
        match self.sheet.style.format {
            Format::Table => self.block.row(&self.sheet, values, out),
            Format::Unaligned if self.sheet.style.expanded == Expanded::On => {
                plain::unaligned_expanded_row(&self.sheet, values, out)
            }
            Format::Unaligned => plain::unaligned_row(&self.sheet, values, out),
            Format::Csv => plain::csv_row(&self.sheet, values, out),
            Format::Json | Format::JsonLines => json::row(&self.sheet, values, out),
            Format::Markdown => plain::markdown_row(&self.sheet, values, out),
        }
    }

    pub fn end(&mut self, out: &mut dyn Write) -> Result<()> {
        let is_expanded = self.sheet.style.expanded == Expanded::On;
        match self.sheet.style.format {
            Format::Json => out.write_all(if self.sheet.rows == 0 { b"]\n" } else { b"\n]\n" }),
            Format::Csv | Format::JsonLines => Ok(()),
            Format::Markdown => out.write_all(b"\n"),
            Format::Table => self.end_block(out),
            Format::Unaligned if self.sheet.style.tuples_only || (is_expanded && self.sheet.rows > 0) => Ok(()),
            Format::Unaligned => self.foot(out),
        }
    }

    fn end_block(&mut self, out: &mut dyn Write) -> Result<()> {
        self.block.end(&self.sheet, out)?;
        let is_expanded = self.block.is_expanded() && self.sheet.rows > 0;
        if !self.sheet.style.tuples_only && (!is_expanded || self.sheet.footers.is_some()) {
            self.foot(out)?;
        }
        writeln!(out)
    }

    /// Footers, or how many rows there were.
    fn foot(&self, out: &mut dyn Write) -> Result<()> {
        match &self.sheet.footers {
            None if self.sheet.rows == 1 => writeln!(out, "(1 row)"),
            None => writeln!(out, "({} rows)", self.sheet.rows),
            Some(footers) => footers.iter().try_for_each(|footer| writeln!(out, "{}", escape::text(footer))),
        }
    }
}

#[cfg(test)]
mod tests;
