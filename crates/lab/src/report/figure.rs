//! README's pictures: bars of tables in docs/measurements, drawn as a report's charts are. A test holds the pictures to the tables;
//! `UPDATE=1 cargo test -p melba-lab figures` draws them.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::html::{bars, bars_height, colour, escape};
use super::{Better, Line};

const MARGIN: usize = 16;
const HEAD: usize = 52;
const FOOT: usize = 40;
const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#222}.title{font-size:15px;font-weight:600}.source{fill:#666}";

/// A picture of some columns of one table.
struct Figure {
    file: &'static str,
    title: &'static str,
    /// The page of docs/measurements, the heading of the section, and what was measured when.
    page: &'static str,
    heading: &'static str,
    conditions: &'static str,
    unit: &'static str,
    better: Better,
    /// Names of the bars of a line, and how a row's cells give them.
    bars: &'static [(&'static str, Cell)],
    /// Beginnings of the rows' names, in the picture's order.
    rows: &'static [&'static str],
}

/// Where a value stands: the column's head, and its place among values that ` / ` separates.
type Cell = (&'static str, usize);

const FIGURES: &[Figure] = &[
    Figure {
        file: "density.svg",
        title: "Stored size of near-copies, MB: shorter is better",
        page: "dense.md",
        heading: "## Beside PostgreSQL 18 with lz4",
        conditions: "compression dense, in turns on 2 busy cores, 2026-11-25",
        unit: "MB",
        better: Better::Lower,
        bars: &[("PostgreSQL 18, lz4", ("stored MB", 0)), ("Melba", ("stored MB", 1))],
        rows: &["PostgreSQL's manual", "versions of source files", "crawl history"],
    },
    Figure {
        file: "transactions.svg",
        title: "pgbench, 16 clients, transactions a second: longer is better",
        page: "transactions.md",
        heading: "## A virtual machine with slow system calls",
        conditions: "scale 20, in turns on 2 quiet cores, 2026-11-26",
        unit: "/s",
        better: Better::Higher,
        bars: &[("PostgreSQL 18", ("PostgreSQL", 0)), ("Melba", ("Melba", 0))],
        rows: &["TPC-B prepared, synchronous", "TPC-B prepared, asynchronous", "TPC-B extended, synchronous"],
    },
    Figure {
        file: "scans.svg",
        title: "LIKE over all documents, ms: shorter is better",
        page: "dense.md",
        heading: "## Beside PostgreSQL 18 with lz4",
        conditions: "the best of three, in turns on 2 busy cores, 2026-11-25",
        unit: "ms",
        better: Better::Lower,
        bars: &[("PostgreSQL 18, lz4", ("LIKE ms", 0)), ("Melba, dense", ("LIKE ms", 1))],
        rows: &["PostgreSQL's manual", "versions of source files", "crawl history"],
    },
];

impl Figure {
    /// The rows of the first table below the heading, as lines of a chart.
    fn lines(&self, page: &str) -> Vec<Line> {
        let section = page.lines().skip_while(|l| *l != self.heading).skip(1);
        let mut table = section.skip_while(|l| !l.starts_with('|')).take_while(|l| l.starts_with('|')).map(cells);
        let heads = table.next().expect("the section has a table");
        let rows: Vec<Vec<&str>> = table.collect();
        let line = |name: &&str| {
            let row = rows.iter().find(|r| r[0].starts_with(*name)).unwrap_or_else(|| panic!("{}: no row {name}", self.page));
            let value = |(_, (head, place)): &(&str, Cell)| {
                let column = heads.iter().position(|h| h == head).unwrap_or_else(|| panic!("{}: no column {head}", self.page));
                row[column].split(" / ").nth(*place).and_then(|v| v.replace(',', "").parse().ok())
            };
            Line { name: row[0].to_owned(), unit: self.unit, better: self.better, values: self.bars.iter().map(value).collect() }
        };
        self.rows.iter().map(line).collect()
    }

    fn svg(&self, page: &str) -> String {
        let lines = self.lines(page);
        let (inner, width) = (bars_height(&lines), super::html::WIDTH + 2 * MARGIN);
        let height = HEAD + inner + FOOT;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
             aria-label=\"{title}\">\n<style>{STYLE}</style>\n<rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#fff\"/>\n\
             <text class=\"title\" x=\"{MARGIN}\" y=\"24\">{title}</text>\n",
            title = escape(self.title),
        );
        let mut x = MARGIN;
        for (i, (name, _)) in self.bars.iter().enumerate() {
            let _ = writeln!(out, "<rect x=\"{x}\" y=\"34\" width=\"10\" height=\"10\" fill=\"{}\"/>", colour(i));
            let _ = writeln!(out, "<text x=\"{}\" y=\"43\">{}</text>", x + 15, escape(name));
            x += 40 + 7 * name.len();
        }
        let _ = writeln!(out, "<g transform=\"translate({MARGIN},{HEAD})\">");
        for line in &lines {
            assert!(line.values.iter().all(Option::is_some), "{}: a value of {} is missing", self.page, line.name);
        }
        bars(&lines, |line| std::slice::from_ref(line), &mut out);
        let _ = writeln!(out, "</g>");
        let source = escape(&format!("{}; docs/measurements/{}", self.conditions, self.page));
        let _ = writeln!(out, "<text class=\"source\" x=\"{MARGIN}\" y=\"{}\">{source}</text>\n</svg>", height - 14);
        out
    }
}

fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(str::trim).collect()
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

#[test]
fn figures_show_what_was_measured() {
    for figure in FIGURES {
        let page = std::fs::read_to_string(docs().join("measurements").join(figure.page)).unwrap();
        let (svg, path) = (figure.svg(&page), docs().join("handbook/pictures").join(figure.file));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &svg).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == svg, "{} differs from its table: UPDATE=1 cargo test -p melba-lab figures", figure.file);
    }
}
