//! Gathers measurements of several rounds, in the order in which lines first appear, and takes their medians.

use super::{Better, Line, Section};
use crate::statistics::median;

/// A line without its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub section: String,
    pub line: String,
    pub unit: &'static str,
    pub better: Better,
}

impl Key {
    /// A line of which less is better: times, bytes.
    pub fn lower(section: impl Into<String>, line: impl Into<String>, unit: &'static str) -> Key {
        Key { section: section.into(), line: line.into(), unit, better: Better::Lower }
    }

    /// A line of which more is better: rates, ratios.
    pub fn higher(section: impl Into<String>, line: impl Into<String>, unit: &'static str) -> Key {
        Key { section: section.into(), line: line.into(), unit, better: Better::Higher }
    }
}

/// Measurements of a fixed number of targets.
#[derive(Debug)]
pub struct Collector {
    targets: usize,
    /// Per line, per target, a value a round.
    lines: Vec<(Key, Vec<Vec<f64>>)>,
}

impl Collector {
    pub fn new(targets: usize) -> Collector {
        Collector { targets, lines: Vec::new() }
    }

    pub fn add(&mut self, key: Key, target: usize, value: f64) {
        let at = self.lines.iter().position(|(k, _)| *k == key).unwrap_or_else(|| {
            self.lines.push((key, vec![Vec::new(); self.targets]));
            self.lines.len() - 1
        });
        self.lines[at].1[target].push(value);
    }

    /// The median so far.
    pub fn value(&self, section: &str, line: &str, target: usize) -> Option<f64> {
        let (_, values) = self.lines.iter().find(|(k, _)| k.section == section && k.line == line)?;
        of(&values[target])
    }

    pub fn sections(&self) -> Vec<Section> {
        let mut sections: Vec<Section> = Vec::new();
        for (key, values) in &self.lines {
            let at = sections.iter().position(|s| s.title == key.section).unwrap_or_else(|| {
                sections.push(Section { title: key.section.clone(), lines: Vec::new() });
                sections.len() - 1
            });
            let values = values.iter().map(|rounds| of(rounds)).collect();
            sections[at].lines.push(Line { name: key.line.clone(), unit: key.unit, better: key.better, values });
        }
        sections
    }
}

fn of(rounds: &[f64]) -> Option<f64> {
    (!rounds.is_empty()).then(|| median(&mut rounds.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_in_order_of_appearance() {
        let mut collector = Collector::new(2);
        for value in [3.0, 1.0, 2.0] {
            collector.add(Key::lower("b", "x", "s"), 1, value);
        }
        collector.add(Key::higher("a", "y", "1/s"), 0, 7.0);
        let sections = collector.sections();
        assert_eq!(sections.iter().map(|s| s.title.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(sections[0].lines[0].values, [None, Some(2.0)]);
        assert_eq!((collector.value("b", "x", 1), collector.value("b", "x", 0)), (Some(2.0), None));
    }
}
