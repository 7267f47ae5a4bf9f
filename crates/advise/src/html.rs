//! Advice as one self-contained HTML page with charts drawn as SVG.

use std::fmt::Write as _;

use crate::advice::{Advice, ColumnAdvice, HEADS, NOTES, VERDICT_HEADS, VERDICTS, Verdict};
use crate::units::bytes;

const BAR_HEIGHT: usize = 18;
const LABEL_WIDTH: usize = 180;
const BARS_WIDTH: usize = 480;
const RAW: &str = "#bab0ac";
const POSTGRESQL: &str = "#4c78a8";
const MELBA: &str = "#f58518";
const ADVISED: &str = "#54a24b";

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}\
table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #ccc;padding:.2em .6em;text-align:right}\
td:nth-child(-n+2),th:nth-child(-n+2){text-align:left}svg{display:block;margin:1em 0}svg text{font:12px system-ui,sans-serif}";

pub fn page(advice: &Advice) -> String {
    let title = escape(&format!("What {} would take", advice.source));
    // Writing into a string does not fail.
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style>\n<h1>{title}</h1>\n<ul>\n"
    );
    advice.summary().iter().for_each(|line| out.push_str(&format!("<li>{}</li>\n", escape(line))));
    out.push_str("</ul>\n");
    let all = [
        ("raw", RAW, advice.raw_bytes),
        ("PostgreSQL pglz", POSTGRESQL, advice.postgres_pglz_bytes),
        ("PostgreSQL lz4", POSTGRESQL, advice.postgres_lz4_bytes),
        ("Melba, as advised", ADVISED, advice.melba_bytes),
    ];
    chart("In all", &all.map(|(name, colour, value)| (name.to_owned(), colour, value)), &mut out);
    for table in &advice.tables {
        let _ = writeln!(out, "<h2>{}</h2>\n<p>{}</p>", escape(&table.name), escape(&table.describe()));
        table.columns.iter().for_each(|column| chart(&column.name, &bars(column), &mut out));
        rows(&HEADS, &table.lines(), &mut out);
        table.notes.iter().for_each(|note| out.push_str(&format!("<p>{}</p>\n", escape(note))));
    }
    if !advice.verdicts.is_empty() {
        let _ = writeln!(out, "<h2>{VERDICTS}</h2>");
        let lines: Vec<[String; 5]> = advice.verdicts.iter().map(Verdict::line).collect();
        rows(&VERDICT_HEADS, &lines, &mut out);
    }
    let _ = writeln!(out, "<h2>What to type</h2>\n<pre>{}</pre>", escape(&advice.statements.join("\n")));
    NOTES.iter().for_each(|note| out.push_str(&format!("<p>{}</p>\n", escape(note))));
    out.push_str("</html>\n");
    out
}

type Bar = (String, &'static str, f64);

fn bars(column: &ColumnAdvice) -> Vec<Bar> {
    let mut bars = vec![
        ("raw".to_owned(), RAW, column.raw_bytes),
        ("PostgreSQL pglz".to_owned(), POSTGRESQL, column.postgres_pglz_bytes),
        ("PostgreSQL lz4".to_owned(), POSTGRESQL, column.postgres_lz4_bytes),
    ];
    let colour = |at: usize| if at == column.advised { ADVISED } else { MELBA };
    bars.extend(column.methods.iter().enumerate().map(|(at, method)| (method.name(), colour(at), method.bytes)));
    bars
}

fn chart(title: &str, bars: &[Bar], out: &mut String) {
    let largest = bars.iter().map(|(_, _, value)| *value).fold(1.0, f64::max);
    let (width, height) = (LABEL_WIDTH + BARS_WIDTH + 90, bars.len() * BAR_HEIGHT);
    let title = escape(title);
    let _ = writeln!(out, "<h3>{title}</h3>\n<svg width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{title}\">");
    for (at, (name, colour, value)) in bars.iter().enumerate() {
        let (top, length) = (at * BAR_HEIGHT, value / largest * BARS_WIDTH as f64);
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><rect x=\"{LABEL_WIDTH}\" y=\"{top}\" width=\"{length:.1}\" height=\"{}\" \
             fill=\"{colour}\"/><text x=\"{:.1}\" y=\"{}\">{}</text>",
            LABEL_WIDTH - 8,
            top + BAR_HEIGHT - 5,
            escape(name),
            BAR_HEIGHT - 4,
            LABEL_WIDTH as f64 + length + 6.0,
            top + BAR_HEIGHT - 5,
            bytes(*value)
        );
    }
    out.push_str("</svg>\n");
}

/// A table with a head.
fn rows(heads: &[&str], lines: &[impl AsRef<[String]>], out: &mut String) {
    out.push_str("<table>\n");
    row("th", heads, out);
    lines.iter().for_each(|line| row("td", line.as_ref(), out));
    out.push_str("</table>\n");
}

fn row(element: &str, cells: &[impl AsRef<str>], out: &mut String) {
    out.push_str("<tr>");
    cells.iter().for_each(|cell| out.push_str(&format!("<{element}>{}</{element}>", escape(cell.as_ref()))));
    out.push_str("</tr>\n");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
