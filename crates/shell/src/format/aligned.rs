//! Tables: columns below each other.

use std::io::{Result, Write};

use unicode_width::UnicodeWidthStr as _;

use super::sheet::{Sheet, ValueKind};
use melba_client::escape;

/// Of a line of the table.
pub fn total_width(widths: &[usize]) -> usize {
    widths.iter().map(|width| width + 3).sum::<usize>().saturating_sub(1)
}

/// The head, unless it has been written, and rows.
pub fn write(
    sheet: &Sheet,
    heads: &[String],
    widths: &[usize],
    rows: &[&[&str]],
    is_first: bool,
    out: &mut dyn Write,
) -> Result<()> {
    if is_first && !sheet.style.tuples_only {
        write_head(sheet.title.as_deref(), heads, widths, out)?;
    }
    rows.iter().try_for_each(|row| write_row(sheet, row, widths, out))
}

/// A row takes as many lines as its value with the most.
fn write_row(sheet: &Sheet, cells: &[&str], widths: &[usize], out: &mut dyn Write) -> Result<()> {
    let cells: Vec<Vec<&str>> = cells.iter().map(|cell| cell.split('\n').collect()).collect();
    let lines = cells.iter().map(Vec::len).max().unwrap_or(1);
    let mut text = String::new();
    for line in 0..lines {
        text.clear();
        for (at, cell) in cells.iter().enumerate() {
            let value = cell.get(line).copied().unwrap_or("");
            let pad = " ".repeat(widths[at].saturating_sub(value.width()));
            let (is_last, goes_on) = (at + 1 == cells.len(), line + 1 < cell.len());
            text.push(' ');
            match ValueKind::is_right(sheet.columns[at].type_oid) {
                true => text.extend([pad.as_str(), value]),
                // Nothing follows that would need the space.
                false if is_last && !goes_on => text.push_str(value),
                false => text.extend([value, pad.as_str()]),
            }
            match (goes_on, is_last) {
                (true, _) => text.push('+'),
                (false, false) => text.push(' '),
                (false, true) => {}
            }
            if !is_last {
                text.push('|');
            }
        }
        writeln!(out, "{text}")?;
    }
    Ok(())
}

fn write_head(title: Option<&str>, heads: &[String], widths: &[usize], out: &mut dyn Write) -> Result<()> {
    if let Some(title) = title {
        let title = escape::text(title);
        writeln!(out, "{}{title}", " ".repeat(total_width(widths).saturating_sub(title.width()) / 2))?;
    }
    if heads.is_empty() {
        return writeln!(out, "--");
    }
    let heads: Vec<Vec<&str>> = heads.iter().map(|head| head.split('\n').collect()).collect();
    let lines = heads.iter().map(Vec::len).max().unwrap_or(1);
    for line in 0..lines {
        let centered = heads.iter().zip(widths).map(|(head, width)| {
            let text = head.get(line).copied().unwrap_or("");
            let free = width.saturating_sub(text.width());
            let goes_on = if line + 1 < head.len() { '+' } else { ' ' };
            format!(" {}{text}{}{goes_on}", " ".repeat(free / 2), " ".repeat(free - free / 2))
        });
        writeln!(out, "{}", centered.collect::<Vec<_>>().join("|"))?;
    }
    let rules: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
    writeln!(out, "{}", rules.join("+"))
}

/// The widest of its lines.
pub fn lines_width(text: &str) -> usize {
    text.split('\n').map(str::width).max().unwrap_or(0)
}
