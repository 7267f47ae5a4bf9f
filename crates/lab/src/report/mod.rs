//! The results of an experiment: lines with a value per target, and the comparison with published claims. One structure, three forms.

mod collector;
#[cfg(test)]
mod figure;
mod html;
mod markdown;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::{Common, Result, Target};

pub use collector::{Collector, Key};

/// A finished experiment.
#[derive(Debug, Serialize)]
pub struct Report {
    pub title: String,
    pub machine: String,
    pub targets: Vec<Described>,
    /// The experiment's options as it ran, by name.
    pub parameters: Vec<(String, String)>,
    pub sections: Vec<Section>,
    pub claims: Vec<Claim>,
    /// Notes that a reader needs to judge the numbers.
    pub notes: Vec<String>,
    #[serde(skip)]
    layout: Layout,
}

/// The kind of comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// The columns with the first one, line by line.
    Targets,
    /// The lines of a section with each other.
    Forms,
}

/// A target with its reported version.
#[derive(Debug, Serialize)]
pub struct Described {
    pub name: String,
    pub url: String,
    pub version: String,
}

/// Lines that belong together: one table and one chart.
#[derive(Debug, Default, Serialize)]
pub struct Section {
    pub title: String,
    pub lines: Vec<Line>,
}

/// One thing measured on every target.
#[derive(Debug, Serialize)]
pub struct Line {
    pub name: String,
    pub unit: &'static str,
    pub better: Better,
    /// By target; `None` where it could not be measured.
    pub values: Vec<Option<f64>>,
}

/// Which values are good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Better {
    Higher,
    Lower,
}

/// A line of the published experiment and each target's result.
#[derive(Debug, Serialize)]
pub struct Claim {
    pub published: String,
    pub findings: Vec<Finding>,
}

#[derive(Debug, Serialize)]
pub struct Finding {
    pub target: String,
    pub measured: String,
    pub holds: bool,
}

impl Report {
    /// An empty report over the targets, whose versions are queried.
    pub fn new(title: &str, common: &Common, parameters: Vec<(&str, String)>) -> Result<Report> {
        let describe = |t: &Target| Ok(Described { name: t.name.clone(), url: t.url(), version: t.version()? });
        let targets = common.targets.iter().map(describe).collect::<Result<_>>()?;
        let rounds = ("rounds", common.rounds.to_string());
        Ok(Report::of_targets(title, targets, parameters.into_iter().chain([rounds]).collect()))
    }

    /// An empty report over targets with known versions.
    pub fn of_targets(title: &str, targets: Vec<Described>, parameters: Vec<(&str, String)>) -> Report {
        Report::empty(title, targets, parameters, Layout::Targets)
    }

    /// An empty report whose lines are forms of storage, with a column for each source of documents.
    pub fn of_forms(title: &str, sources: Vec<Described>, parameters: Vec<(&str, String)>) -> Report {
        Report::empty(title, sources, parameters, Layout::Forms)
    }

    fn empty(title: &str, targets: Vec<Described>, parameters: Vec<(&str, String)>, layout: Layout) -> Report {
        Report {
            title: title.to_owned(),
            machine: machine(),
            targets,
            parameters: parameters.into_iter().map(|(n, v)| (n.to_owned(), v)).collect(),
            sections: Vec::new(),
            claims: Vec::new(),
            notes: Vec::new(),
            layout,
        }
    }

    /// Columns that are compared with the first one.
    fn compared(&self) -> std::ops::Range<usize> {
        match self.layout {
            Layout::Targets => 1..self.targets.len(),
            Layout::Forms => 0..0,
        }
    }

    /// Takes in the measurements. Claims without measurements are left out.
    pub fn finish(&mut self, collector: &Collector, claims: Vec<Claim>) {
        self.sections = collector.sections();
        self.claims = claims.into_iter().filter(|c| !c.findings.is_empty()).collect();
    }

    /// Writes results.json, results.md and results.html.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let json = serde_json::to_string_pretty(self).map_err(|e| e.to_string())?;
        let forms = [("results.json", json), ("results.md", self.markdown()), ("results.html", html::page(self))];
        forms
            .into_iter()
            .map(|(name, text)| {
                let path = folder.join(name);
                std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
                Ok(path)
            })
            .collect()
    }

    pub fn markdown(&self) -> String {
        markdown::text(self)
    }

    /// The heads of a section's table: a column a target, then how later targets compare with the first.
    fn heads(&self) -> Vec<String> {
        let first = self.targets.first().map_or("", |t| &t.name);
        let names = self.targets.iter().map(|t| t.name.clone());
        let comparisons = self.compared().map(|t| format!("{} : {first}, times better", self.targets[t].name));
        [String::new(), "unit".to_owned()].into_iter().chain(names).chain(comparisons).collect()
    }

    /// A line's cells, below [`Report::heads`].
    fn cells(&self, line: &Line) -> Vec<String> {
        let values = line.values.iter().map(|v| shown(*v));
        let times = self.compared().map(|t| shown(line.times_better(t)));
        [line.name.clone(), line.unit.to_owned()].into_iter().chain(values).chain(times).collect()
    }
}

impl Line {
    /// How many times better each target is than the first; `None` where there is nothing to compare.
    fn times_better(&self, target: usize) -> Option<f64> {
        let (first, this) = (self.values.first().copied().flatten()?, self.values.get(target).copied().flatten()?);
        let ratio = match self.better {
            Better::Higher => this / first,
            Better::Lower => first / this,
        };
        ratio.is_finite().then_some(ratio)
    }
}

/// A value with its significant digits, and thousands separated.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 100.0 || v == 0.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        v if v >= 0.01 => 4,
        _ => 6,
    };
    let text = format!("{value:.digits$}");
    let text = if digits >= 4 { text.trim_end_matches('0') } else { &text };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |w| ("-", w));
    let mut grouped = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if fraction.is_empty() { format!("{sign}{grouped}") } else { format!("{sign}{grouped}.{fraction}") }
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), number)
}

/// Cores, memory and kernel.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let cpu = read("/proc/cpuinfo");
    let model = cpu
        .lines()
        .find_map(|l| l.strip_prefix("model name"))
        .unwrap_or_default()
        .trim_start_matches([' ', '\t', ':'])
        .to_owned();
    let memory = read("/proc/meminfo");
    let kilobytes: f64 = memory
        .lines()
        .find_map(|l| l.strip_prefix("MemTotal:"))
        .and_then(|v| v.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0.0);
    format!("{cores} cores ({model}), {:.0} GiB, Linux {}", kilobytes / 1048576.0, read("/proc/sys/kernel/osrelease").trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let line = |name: &str, better, values| Line { name: name.into(), unit: "s", better, values };
        let described = |name: &str| Described { name: name.into(), url: "postgres://h/d".into(), version: "18 <x>".into() };
        Report {
            title: "T".into(),
            machine: "m".into(),
            targets: vec![described("pg"), described("melba")],
            parameters: vec![("scale".into(), "20".into())],
            sections: vec![Section {
                title: "S".into(),
                lines: vec![
                    line("lower", Better::Lower, vec![Some(2.0), Some(1.0)]),
                    line("missing", Better::Higher, vec![None, Some(12345.6)]),
                ],
            }],
            claims: vec![Claim {
                published: "p".into(),
                findings: vec![Finding { target: "pg".into(), measured: "3 %".into(), holds: false }],
            }],
            notes: vec!["n".into()],
            layout: Layout::Targets,
        }
    }

    #[test]
    fn numbers_are_readable() {
        let expected = [
            (0.0, "0"),
            (1234567.0, "1,234,567"),
            (-1234.5, "-1,234"),
            (12.34, "12.3"),
            (1.5, "1.50"),
            (0.37, "0.37"),
            (0.0123, "0.0123"),
        ];
        for (value, text) in expected {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn forms_are_compared_with_each_other() {
        let mut forms = Report { layout: Layout::Forms, ..report() };
        forms.sections[0].lines[0].values = vec![Some(100.0), Some(50.0)];
        forms.sections[0].lines[1].values = vec![None, Some(25.0)];
        assert!(forms.markdown().contains("| lower | s | 100 | 50.0 |\n"), "{}", forms.markdown());
        let html = html::page(&forms);
        let widths: Vec<&str> = html.split("width=\"").skip(2).filter_map(|part| part.split('"').next()).collect();
        assert_eq!(widths, ["420.0", "210.0", "105.0"], "one scale for the section");
    }

    #[test]
    fn the_three_forms_say_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let paths = report().write(folder.path()).unwrap();
        let [json, markdown, html] = [0, 1, 2].map(|i| std::fs::read_to_string(&paths[i]).unwrap());
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["sections"][0]["lines"][0]["values"][1], 1.0);
        assert!(markdown.contains("| lower | s | 2.00 | 1.00 | 2.00 |"), "{markdown}");
        assert!(markdown.contains("| missing | s | - | 12,346 | - |"), "{markdown}");
        assert!(markdown.contains("differs"), "{markdown}");
        assert!(html.contains("18 &lt;x&gt;") && html.contains("12,346") && html.contains("<svg"), "{html}");
        assert!(!html.contains("http://") && !html.contains("https://"), "self-contained");
    }
}
