//! A line for each value, below the number of its row.

use std::io::{Result, Write};

use unicode_width::UnicodeWidthStr as _;

use super::aligned;
use super::sheet::Sheet;
use melba_client::escape;

pub fn write(sheet: &Sheet, heads: &[String], rows: &[&[&str]], first: u64, out: &mut dyn Write) -> Result<()> {
    if let Some(title) = sheet.title.as_deref().filter(|_| first == 1 && !sheet.style.tuples_only) {
        writeln!(out, "{}", escape::text(title))?;
    }
    let heads: Vec<String> = heads.iter().map(|head| head.replace('\n', " ")).collect();
    let head_width = heads.iter().map(|head| head.width()).max().unwrap_or(0);
    let texts = || rows.iter().flat_map(|row| row.iter());
    let last = first + rows.len() as u64;
    let mut value_width = texts().map(|text| aligned::lines_width(text)).max().unwrap_or(0);
    // As wide as the longest number of a row, and the sign of a continued value.
    let label_width = format!("-[ RECORD {last} ]").len();
    let others = head_width + 3 + usize::from(texts().any(|text| text.contains('\n')));
    value_width = value_width.max(label_width.saturating_sub(others));
    for (row, number) in rows.iter().zip(first..) {
        if !sheet.style.tuples_only {
            writeln!(out, "{}", rule(&format!("-[ RECORD {number} ]"), head_width, value_width))?;
        } else if number > 1 {
            writeln!(out, "{}", rule("", head_width, value_width))?;
        }
        for (head, text) in heads.iter().zip(*row) {
            write_value(head, text, head_width, value_width, out)?;
        }
    }
    Ok(())
}

fn rule(label: &str, head_width: usize, value_width: usize) -> String {
    let mut rule = label.to_owned();
    while rule.len() < head_width + 3 + value_width {
        rule.push(if rule.len() == head_width + 1 { '+' } else { '-' });
    }
    rule
}

fn write_value(head: &str, text: &str, head_width: usize, value_width: usize, out: &mut dyn Write) -> Result<()> {
    let lines: Vec<&str> = text.split('\n').collect();
    for (at, line) in lines.iter().enumerate() {
        let head = if at == 0 { head } else { "" };
        let pad = " ".repeat(head_width - head.width());
        if at + 1 < lines.len() {
            writeln!(out, "{head}{pad} | {line}{}+", " ".repeat(value_width - line.width()))?;
        } else {
            writeln!(out, "{head}{pad} | {line}")?;
        }
    }
    Ok(())
}
