//! Prometheus' text format, version 0.0.4: each metric with its help and type, and all of its samples together.

use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    Counter,
    Gauge,
}

struct Metric {
    help: String,
    kind: MetricKind,
    samples: Vec<String>,
}

/// Metrics by their names.
#[derive(Default)]
pub struct Exposition {
    metrics: BTreeMap<String, Metric>,
}

impl Exposition {
    pub fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.sample(name, help, MetricKind::Gauge, &[], value);
    }

    pub fn counter(&mut self, name: &str, help: &str, value: f64) {
        self.sample(name, help, MetricKind::Counter, &[], value);
    }

    /// Names are ASCII letters, digits and underscores; the values of labels anything.
    pub fn sample(&mut self, name: &str, help: &str, kind: MetricKind, labels: &[(&str, &str)], value: f64) {
        let label = |(name, value): &(&str, &str)| format!("{name}=\"{}\"", escaped(value, true));
        let labels = labels.iter().map(label).collect::<Vec<_>>().join(",");
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let new = || Metric { help: help.to_owned(), kind, samples: Vec::new() };
        let metric = self.metrics.entry(name.to_owned()).or_insert_with(new);
        metric.samples.push(format!("{name}{labels} {}\n", number(value)));
    }

    pub fn text(&self) -> String {
        let mut out = String::new();
        for (name, Metric { help, kind, samples }) in &self.metrics {
            let kind = if *kind == MetricKind::Counter { "counter" } else { "gauge" };
            out.push_str(&format!("# HELP {name} {}\n# TYPE {name} {kind}\n", escaped(help, false)));
            samples.iter().for_each(|sample| out.push_str(sample));
        }
        out
    }
}

fn escaped(text: &str, quotes: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quotes { text.replace('"', "\\\"") } else { text }
}

fn number(value: f64) -> String {
    match value {
        v if v.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        v => format!("{v}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_metric_stand_together_under_its_type() {
        let mut out = Exposition::default();
        out.sample("b_total", "Two\nlines.", MetricKind::Counter, &[("db", "a\"b\\c\nd")], 1.0);
        out.gauge("a", "One.", 0.5);
        out.sample("b_total", "ignored", MetricKind::Counter, &[("db", "x"), ("y", "")], f64::NAN);
        let expected = "# HELP a One.\n# TYPE a gauge\na 0.5\n# HELP b_total Two\\nlines.\n# TYPE b_total counter\n\
                        b_total{db=\"a\\\"b\\\\c\\nd\"} 1\nb_total{db=\"x\",y=\"\"} NaN\n";
        assert_eq!(out.text(), expected);
    }
}
