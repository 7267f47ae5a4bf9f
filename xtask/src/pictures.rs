//! `cargo xtask pictures`: draws the handbook's diagrams, docs/handbook/pictures/NAME.svg, from NAME.txt beside them. `cargo xtask tidy`
//! checks that they are current.
//!
//! ```text
//! A title
//! row: id = a box | other = *an important one / its second line | -
//! id -> other: a label
//! other --> id: a dashed arrow
//! ```
//!
//! Boxes of a row share its width; `-` is an empty place. Arrows lead along a row or between rows.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const WIDTH: f64 = 780.0;
const MARGIN: f64 = 20.0;
const HEAD: f64 = 46.0;
const BOX_HEIGHT: f64 = 50.0;
const ROW_GAP: f64 = 46.0;
/// Between boxes of a row without an arrow between them.
const GAP: f64 = 24.0;
/// Of a character of a label, and of a box's text.
const LABEL_CHARACTER: f64 = 6.2;
const CHARACTER: f64 = 7.0;
const LINE_HEIGHT: f64 = 17.0;

const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#222;text-anchor:middle}.title{font-size:15px;font-weight:600;\
text-anchor:start}.label{font-size:12px;fill:#444;paint-order:stroke;stroke:#fff;stroke-width:4px}\
rect.box{fill:#eef3f8;stroke:#4c78a8}rect.main{fill:#fdeedd;stroke:#f58518}path{stroke:#666;fill:none;marker-end:url(#tip)}";

/// A box: its lines, where it lies (row, left, width), and whether it is emphasized.
#[derive(Debug)]
struct Node {
    lines: Vec<String>,
    is_main: bool,
    row: usize,
    left: f64,
    width: f64,
}

struct Arrow {
    from: String,
    to: String,
    label: String,
    is_dashed: bool,
}

/// Writes all pictures.
pub fn write(root: &Path) -> Result<(), String> {
    for (path, svg) in drawn(root)? {
        std::fs::write(&path, svg).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

/// Checks that the pictures are what their texts draw.
pub fn check(root: &Path, problems: &mut Vec<String>) -> Result<(), String> {
    for (path, svg) in drawn(root)? {
        if std::fs::read_to_string(&path).unwrap_or_default() != svg {
            let name = path.strip_prefix(root).unwrap_or(&path).display();
            problems.push(format!("{name}: differs from its text; `cargo xtask pictures` draws it"));
        }
    }
    Ok(())
}

fn drawn(root: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let folder = root.join("docs/handbook/pictures");
    let entries = folder.read_dir().map_err(|e| format!("{}: {e}", folder.display()))?;
    let texts = entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "txt"));
    let draw = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let svg = svg(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok((path.with_extension("svg"), svg))
    };
    texts.map(draw).collect()
}

fn svg(text: &str) -> Result<String, String> {
    let mut lines = text.lines().filter(|l| !l.trim().is_empty());
    let title = lines.next().ok_or("it has no title")?;
    let (rows, arrows): (Vec<&str>, Vec<&str>) = lines.partition(|l| l.starts_with("row:"));
    let arrows = arrows.into_iter().map(arrow).collect::<Result<Vec<_>, _>>()?;
    let mut nodes = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        lay_out(at, row, &arrows, &mut nodes)?;
    }
    let height = HEAD + rows.len() as f64 * (BOX_HEIGHT + ROW_GAP) - ROW_GAP + MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" \
         aria-label=\"{title}\">\n<style>{STYLE}</style>\n<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" \
         markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" style=\"fill:#666;stroke:none;marker-end:none\"/>\
         </marker></defs>\n<rect width=\"{WIDTH}\" height=\"{height}\" rx=\"8\" fill=\"#fff\"/>\n\
         <text class=\"title\" x=\"{MARGIN}\" y=\"27\">{title}</text>\n",
        title = escape(title),
    );
    for node in nodes.values() {
        draw_box(node, &mut out);
    }
    for arrow in &arrows {
        draw_arrow(arrow, &nodes, &mut out)?;
    }
    out.push_str("</svg>\n");
    Ok(out)
}

fn arrow(line: &str) -> Result<Arrow, String> {
    let (ends, label) = line.split_once(':').unwrap_or((line, ""));
    let is_dashed = ends.contains("-->");
    let (from, to) =
        ends.split_once(if is_dashed { "-->" } else { "->" }).ok_or_else(|| format!("neither row nor arrow: {line}"))?;
    let [from, to, label] = [from, to, label].map(|part| part.trim().to_owned());
    Ok(Arrow { from, to, label, is_dashed })
}

/// Gives the boxes of a row their places: gaps as wide as labels want, and the rest in equal parts.
fn lay_out(at: usize, row: &str, arrows: &[Arrow], nodes: &mut BTreeMap<String, Node>) -> Result<(), String> {
    let cells: Vec<&str> = row.trim_start_matches("row:").split('|').map(str::trim).collect();
    let parsed: Vec<Option<(&str, &str)>> =
        cells.iter().map(|c| c.split_once('=').map(|(id, t)| (id.trim(), t.trim()))).collect();
    let id = |i: usize| parsed[i].map_or("", |(id, _)| id);
    let gap = |i: usize| {
        let joins = |a: &&Arrow| (a.from == id(i) && a.to == id(i + 1)) || (a.to == id(i) && a.from == id(i + 1));
        let label = arrows.iter().filter(joins).map(|a| a.label.chars().count() as f64 * LABEL_CHARACTER + 26.0);
        label.fold(GAP, f64::max)
    };
    let gaps: Vec<f64> = (0..cells.len() - 1).map(gap).collect();
    let width = (WIDTH - 2.0 * MARGIN - gaps.iter().sum::<f64>()) / cells.len() as f64;
    let mut left = MARGIN;
    for (i, cell) in parsed.iter().enumerate() {
        if let Some((id, text)) = cell {
            let lines: Vec<String> = text.trim_start_matches('*').split('/').map(|l| l.trim().to_owned()).collect();
            if let Some(long) = lines.iter().find(|l| l.chars().count() as f64 * CHARACTER > width) {
                return Err(format!("\"{long}\" does not fit into its box"));
            }
            let node = Node { lines, is_main: text.starts_with('*'), row: at, left, width };
            if nodes.insert((*id).to_owned(), node).is_some() {
                return Err(format!("there are two boxes {id}"));
            }
        }
        left += width + gaps.get(i).copied().unwrap_or(0.0);
    }
    Ok(())
}

impl Node {
    fn top(&self) -> f64 {
        HEAD + self.row as f64 * (BOX_HEIGHT + ROW_GAP)
    }

    fn middle(&self) -> f64 {
        self.left + self.width / 2.0
    }
}

fn draw_box(node: &Node, out: &mut String) {
    let class = if node.is_main { "main" } else { "box" };
    let (left, top, width) = (node.left, node.top(), node.width);
    let _ = writeln!(
        out,
        "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{BOX_HEIGHT}\" rx=\"6\"/>"
    );
    let first = top + BOX_HEIGHT / 2.0 + 4.5 - (node.lines.len() as f64 - 1.0) * LINE_HEIGHT / 2.0;
    for (i, line) in node.lines.iter().enumerate() {
        let y = first + i as f64 * LINE_HEIGHT;
        let _ = writeln!(out, "<text x=\"{:.1}\" y=\"{y:.1}\">{}</text>", node.middle(), escape(line));
    }
}

fn draw_arrow(arrow: &Arrow, nodes: &BTreeMap<String, Node>, out: &mut String) -> Result<(), String> {
    let node = |id: &String| nodes.get(id).ok_or_else(|| format!("there is no box {id}"));
    let (from, to) = (node(&arrow.from)?, node(&arrow.to)?);
    let (x1, y1, x2, y2, label_up) = if from.row == to.row {
        let y = from.top() + BOX_HEIGHT / 2.0;
        if from.left < to.left {
            (from.left + from.width, y, to.left, y, 6.0)
        } else {
            (from.left, y, to.left + to.width, y, 6.0)
        }
    } else {
        let (start, end) = if from.row < to.row { (BOX_HEIGHT, 0.0) } else { (0.0, BOX_HEIGHT) };
        (from.middle(), from.top() + start, to.middle(), to.top() + end, -4.0)
    };
    let dash = if arrow.is_dashed { " stroke-dasharray=\"5 4\"" } else { "" };
    let _ = writeln!(out, "<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\"{dash}/>");
    if !arrow.label.is_empty() {
        let (x, y) = (f64::midpoint(x1, x2), f64::midpoint(y1, y2) - label_up);
        let _ = writeln!(out, "<text class=\"label\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escape(&arrow.label));
    }
    Ok(())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_boxes_and_arrows() {
        let svg = svg("A & B\nrow: a = one | b = *two / lines\nrow: c = < 3 | -\na -> b: to\nc --> a\n").unwrap();
        assert_eq!((svg.matches("class=\"box\"").count(), svg.matches("class=\"main\"").count()), (2, 1));
        assert_eq!((svg.matches("<path d=\"M").count(), svg.matches("stroke-dasharray").count()), (3, 1));
        assert!(svg.contains("A &amp; B") && svg.contains("&lt; 3") && svg.contains(">to</text>"), "{svg}");
    }

    #[test]
    fn mistakes_are_told() {
        assert!(svg("T\nrow: a = x\na -> b").unwrap_err().contains("no box b"));
        assert!(svg("T\nrow: a = x | a = y").unwrap_err().contains("two boxes a"));
        assert!(svg("T\nrow: a = x\nwords").unwrap_err().contains("neither"));
        let long = "x".repeat(200);
        assert!(svg(&format!("T\nrow: a = {long}")).unwrap_err().contains("does not fit"));
    }
}
