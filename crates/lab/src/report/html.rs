//! A report as one self-contained HTML page with bar charts drawn as SVG.

use std::fmt::Write as _;

use super::markdown::verdict;
use super::{Layout, Line, Report, Section, shown};

/// A colour a target, in turn.
const COLOURS: [&str; 6] = ["#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2"];
const BAR_HEIGHT: usize = 14;
const LABEL_WIDTH: usize = 320;
const BARS_WIDTH: usize = 420;
pub(super) const WIDTH: usize = LABEL_WIDTH + BARS_WIDTH + 120;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}\
table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #ccc;padding:.2em .6em;text-align:right}\
td:first-child,th:first-child{text-align:left}.differs{color:#b00}.holds{color:#070}svg{display:block;margin:1em 0}\
svg text{font:12px system-ui,sans-serif}.key{display:inline-block;width:.8em;height:.8em;margin:0 .4em 0 1em}";

pub fn page(report: &Report) -> String {
    let title = escape(&report.title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style>\n\
         <h1>{title}</h1>\n<p>{}</p>\n<ul>\n",
        escape(&report.machine)
    );
    for (i, target) in report.targets.iter().enumerate() {
        let _ = writeln!(
            out,
            "<li><span class=\"key\" style=\"background:{}\"></span><b>{}</b>: {}, {}</li>",
            colour(i),
            escape(&target.name),
            escape(&target.url),
            escape(&target.version)
        );
    }
    let parameters: Vec<String> = report.parameters.iter().map(|(n, v)| format!("{n} {v}")).collect();
    let _ = writeln!(out, "</ul>\n<p>Parameters: {}</p>", escape(&parameters.join(", ")));
    for part in &report.sections {
        let _ = writeln!(out, "<h2>{}</h2>", escape(&part.title));
        chart(report, part, &mut out);
        table(report, part, &mut out);
    }
    claims(report, &mut out);
    for note in &report.notes {
        let _ = writeln!(out, "<p>{}</p>", escape(note));
    }
    out.push_str("</html>\n");
    out
}

/// A group of bars a line; where columns are compared each group has its own scale, as lines may have different units.
fn chart(report: &Report, section: &Section, out: &mut String) {
    let height = bars_height(&section.lines);
    let _ = writeln!(out, "<svg width=\"{WIDTH}\" height=\"{height}\" role=\"img\" aria-label=\"{}\">", escape(&section.title));
    let is_one_scale = report.layout == Layout::Forms;
    bars(&section.lines, |line| if is_one_scale { &section.lines } else { std::slice::from_ref(line) }, out);
    out.push_str("</svg>\n");
}

/// Pixels that the groups of bars take.
pub(super) fn bars_height(lines: &[Line]) -> usize {
    lines.iter().map(group_height).sum()
}

fn group_height(line: &Line) -> usize {
    line.values.len() * BAR_HEIGHT + 10
}

/// Draws a group of bars for each line, with its name at the left; `scale` gives the lines whose largest value fills the width.
pub(super) fn bars<'a>(lines: &'a [Line], scale: impl Fn(&'a Line) -> &'a [Line], out: &mut String) {
    let mut y = 0;
    for line in lines {
        let largest = scale(line).iter().flat_map(|line| line.values.iter().flatten()).copied().fold(0.0, f64::max);
        let label_y = y + line.values.len() * BAR_HEIGHT / 2 + 4;
        let label = escape(&format!("{} ({})", line.name, line.unit));
        let _ = writeln!(out, "<text x=\"{}\" y=\"{label_y}\" text-anchor=\"end\">{label}</text>", LABEL_WIDTH - 8);
        for (i, value) in line.values.iter().enumerate() {
            let Some(value) = value else { continue };
            let (top, colour) = (y + i * BAR_HEIGHT, colour(i));
            let length = if largest > 0.0 { value / largest * BARS_WIDTH as f64 } else { 0.0 };
            let _ = writeln!(
                out,
                "<rect x=\"{LABEL_WIDTH}\" y=\"{top}\" width=\"{length:.1}\" height=\"{}\" fill=\"{colour}\"/>\
                 <text x=\"{:.1}\" y=\"{}\">{}</text>",
                BAR_HEIGHT - 2,
                LABEL_WIDTH as f64 + length + 5.0,
                top + BAR_HEIGHT - 4,
                shown(Some(*value))
            );
        }
        y += group_height(line);
    }
}

fn table(report: &Report, section: &Section, out: &mut String) {
    out.push_str("<table>\n");
    row("th", "", &report.heads(), out);
    for line in &section.lines {
        row("td", "", &report.cells(line), out);
    }
    out.push_str("</table>\n");
}

fn claims(report: &Report, out: &mut String) {
    if report.claims.is_empty() {
        return;
    }
    out.push_str("<h2>Published, and what was measured here</h2>\n<table>\n");
    row("th", "", &["published", "target", "here", ""].map(str::to_owned), out);
    for claim in &report.claims {
        for finding in &claim.findings {
            let verdict = verdict(finding.holds);
            let cells = [claim.published.clone(), finding.target.clone(), finding.measured.clone(), verdict.to_owned()];
            row("td", verdict, &cells, out);
        }
    }
    out.push_str("</table>\n");
}

fn row(element: &str, class: &str, cells: &[String], out: &mut String) {
    let _ = write!(out, "<tr class=\"{class}\">");
    for cell in cells {
        let _ = write!(out, "<{element}>{}</{element}>", escape(cell));
    }
    out.push_str("</tr>\n");
}

pub(super) fn colour(target: usize) -> &'static str {
    COLOURS[target % COLOURS.len()]
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
