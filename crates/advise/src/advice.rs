//! The findings and the advice. One structure, three forms.

use std::fmt::Write as _;

use melba_toast::Method;
use serde::Serialize;

use crate::database::quoted;
use crate::growth::Growth;
use crate::postgres_size::postgres_size;
use crate::sample::{Column, Sample};
use crate::trial::{ColumnTrials, Together, Trial, Trials};
use crate::units::{bytes, count};

/// Another method, or another read budget, is recommended when it takes at most this share.
const WORTH: f64 = 0.95;
/// The default read budget of a server, in milliseconds.
const DEFAULT_BUDGET: f64 = 0.2;
/// Memory of a reader of a dense section, at most: its reference, and a block.
const REFERENCE_BYTES_MAX: f64 = (8 << 20) as f64;
/// Bytes that a millisecond of the read budget allows a block.
const BUDGET_BYTES: f64 = 1.28e6;
/// A frame of a value that is compressed alone.
const FRAME_BYTES: f64 = 262144.0;

#[derive(Debug, Serialize)]
pub struct Advice {
    pub source: String,
    pub tables: Vec<TableAdvice>,
    /// Of all tables, with the methods that are advised.
    pub melba_bytes: f64,
    pub postgres_pglz_bytes: f64,
    pub postgres_lz4_bytes: f64,
    pub raw_bytes: f64,
    pub space_bytes: f64,
    /// Rows that fit into the space: in PostgreSQL by pglz and by lz4, in Melba.
    pub rows_that_fit: [f64; 3],
    /// How many days the space lasts, in the same order.
    pub days: Option<[f64; 3]>,
    /// The statements to type.
    pub statements: Vec<String>,
    /// The sizes of the whole data, where that was tried.
    pub verdicts: Vec<Verdict>,
}

#[derive(Debug, Serialize)]
pub struct TableAdvice {
    pub name: String,
    pub rows: f64,
    pub rows_tried: usize,
    pub raw_bytes: f64,
    pub postgres_pglz_bytes: f64,
    pub postgres_lz4_bytes: f64,
    /// Columns without a method, and the primary key, in the order of the columns' methods.
    pub rests: Vec<RestAdvice>,
    pub columns: Vec<ColumnAdvice>,
    pub notes: Vec<String>,
    /// The table's columns, where it is to be created.
    #[serde(skip)]
    pub created: Option<Vec<Column>>,
}

/// A table's size beside its columns when they are stored by some method: the columns share rows and the primary key.
#[derive(Clone, Debug, Serialize)]
pub struct RestAdvice {
    pub method: &'static str,
    pub budget: Option<f64>,
    pub bytes: f64,
}

impl RestAdvice {
    pub fn name(&self) -> String {
        name(self.method, self.budget)
    }
}

fn name(method: &str, budget: Option<f64>) -> String {
    budget.map_or_else(|| method.to_owned(), |budget| format!("dense, {budget} ms"))
}

#[derive(Debug, Serialize)]
pub struct ColumnAdvice {
    pub name: String,
    pub type_name: String,
    pub raw_bytes: f64,
    pub postgres_pglz_bytes: f64,
    pub postgres_lz4_bytes: f64,
    pub methods: Vec<MethodAdvice>,
    /// The advised one of them.
    pub advised: usize,
}

#[derive(Debug, Serialize)]
pub struct MethodAdvice {
    pub method: &'static str,
    /// Milliseconds that a read may take, of dense.
    pub budget: Option<f64>,
    pub bytes: f64,
    pub read_p50_us: f64,
    pub read_p99_us: f64,
    pub write_us: f64,
    /// At most, for reads that are fast.
    pub memory_bytes: f64,
}

impl MethodAdvice {
    pub fn name(&self) -> String {
        name(self.method, self.budget)
    }
}

/// Where verdicts are shown.
pub const VERDICTS: &str = "What all of it took";
pub const VERDICT_HEADS: [&str; 5] = ["table", "method", "predicted", "took", "off by"];

/// A table's predicted size with one method for all its long columns, and its measured size.
#[derive(Debug, Serialize)]
pub struct Verdict {
    pub table: String,
    pub method: String,
    pub predicted_bytes: f64,
    pub took_bytes: f64,
}

impl Verdict {
    /// How far the prediction was off, in shares of the truth: above zero when it was too high.
    pub fn off_by(&self) -> f64 {
        self.predicted_bytes / self.took_bytes.max(1.0) - 1.0
    }

    /// The cells under `VERDICT_HEADS`.
    pub fn line(&self) -> [String; 5] {
        let off_by = format!("{:.1} %", self.off_by() * 100.0);
        [self.table.clone(), self.method.clone(), bytes(self.predicted_bytes), bytes(self.took_bytes), off_by]
    }
}

impl TableAdvice {
    /// Of a table that has been surveyed with a read budget.
    pub fn of(sample: &Sample, trials: &Trials, growths: &[Growth], budget: f64) -> TableAdvice {
        let scale = sample.scale;
        let rows_scale = sample.rows_total / sample.rows.len().max(1) as f64;
        let [pglz, lz4] = [Method::Pglz, Method::Lz4].map(|method| postgres_size(sample, method));
        let column = |(tried, growth): (&ColumnTrials, &Growth)| {
            let raw_bytes = growth.table.raw_bytes;
            let methods = tried.trials.iter().map(|trial| method(trial, tried, growth, budget)).collect();
            ColumnAdvice {
                name: sample.columns[tried.column].name.clone(),
                type_name: sample.columns[tried.column].type_name.clone(),
                raw_bytes,
                postgres_pglz_bytes: pglz.columns[tried.column],
                postgres_lz4_bytes: lz4.columns[tried.column],
                methods,
                advised: 0,
            }
        };
        let rest = |together: &Together| {
            let Together { method, budget, .. } = *together;
            RestAdvice { method, budget, bytes: trials.rest_bytes(method, budget) * rows_scale }
        };
        TableAdvice {
            name: sample.name.clone(),
            rows: sample.rows_total,
            rows_tried: sample.rows.len(),
            raw_bytes: (0..sample.columns.len()).map(|at| sample.raw_bytes(at) as f64).sum::<f64>() * scale,
            postgres_pglz_bytes: pglz.total,
            postgres_lz4_bytes: lz4.total,
            rests: trials.together.iter().map(rest).collect(),
            columns: trials.columns.iter().zip(growths).map(column).collect(),
            notes: sample.notes.clone(),
            created: (!sample.exists).then(|| sample.columns.clone()),
        }
    }

    /// The size in Melba with the advised methods.
    pub fn melba_bytes(&self) -> f64 {
        self.melba_bytes_with(|column| column.advised)
    }

    /// The size in Melba with some methods of its columns. The largest column's method decides for the rest.
    pub fn melba_bytes_with(&self, method: impl Fn(&ColumnAdvice) -> usize) -> f64 {
        let columns: f64 = self.columns.iter().map(|column| column.methods[method(column)].bytes).sum();
        (self.rest_with(&method) + columns).max(0.0)
    }

    fn rest_with(&self, method: impl Fn(&ColumnAdvice) -> usize) -> f64 {
        let largest = self.columns.iter().max_by(|a, b| a.raw_bytes.total_cmp(&b.raw_bytes));
        self.rests.get(largest.map_or(0, method)).map_or(0.0, |rest| rest.bytes)
    }
}

/// A trial, for the whole table, whose sections were computed with a read budget: with other budgets they grow by the same factor.
fn method(trial: &Trial, tried: &ColumnTrials, growth: &Growth, surveyed: f64) -> MethodAdvice {
    let like_surveyed = tried.trials.iter().find(|t| t.budget == Some(surveyed)).map_or(trial.bytes, |t| t.bytes);
    let (bytes, memory_bytes) = match trial.budget {
        None => (growth.alone(trial.bytes), FRAME_BYTES),
        Some(budget) => {
            let sections = growth.table.sections.max(1.0);
            let reference = REFERENCE_BYTES_MAX.min(growth.table.raw_bytes / sections / 2.0);
            (growth.dense(like_surveyed) * trial.bytes / like_surveyed, sections * reference + budget * BUDGET_BYTES)
        }
    };
    let Trial { method, budget, read_p50_us, read_p99_us, write_us, .. } = *trial;
    MethodAdvice { method, budget, bytes, read_p50_us, read_p99_us, write_us, memory_bytes }
}

/// The read budget that sections are computed with: a server's own, or the nearest to it.
pub fn default_budget(budgets: &[f64]) -> f64 {
    let distance = |budget: &f64| (budget / DEFAULT_BUDGET).ln().abs();
    budgets.iter().copied().min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(DEFAULT_BUDGET)
}

impl Advice {
    pub fn new(source: &str, mut tables: Vec<TableAdvice>, space: u64, rows_per_day: Option<f64>) -> Advice {
        let budget = choose(&mut tables);
        let sum = |of: &dyn Fn(&TableAdvice) -> f64| tables.iter().map(of).sum::<f64>();
        let (rows, melba_bytes) = (sum(&|t| t.rows), sum(&TableAdvice::melba_bytes));
        let (pglz, lz4) = (sum(&|t| t.postgres_pglz_bytes), sum(&|t| t.postgres_lz4_bytes));
        let rows_that_fit = [pglz, lz4, melba_bytes].map(|bytes| (space as f64 / (bytes / rows.max(1.0))).floor());
        Advice {
            source: source.split_once('@').map_or(source, |(_, rest)| rest).to_owned(),
            melba_bytes,
            postgres_pglz_bytes: pglz,
            postgres_lz4_bytes: lz4,
            raw_bytes: sum(&|t| t.raw_bytes),
            space_bytes: space as f64,
            rows_that_fit,
            days: rows_per_day.map(|rows| rows_that_fit.map(|fit| fit / rows.max(1e-9))),
            statements: statements(&tables, budget),
            verdicts: Vec::new(),
            tables,
        }
    }

    pub fn markdown(&self) -> String {
        // Writing into a string does not fail.
        let mut out = format!("# What {} would take\n\n", self.source);
        for line in self.summary() {
            let _ = writeln!(out, "- {line}");
        }
        for table in &self.tables {
            let _ = writeln!(out, "\n## {}\n\n{}\n", table.name, table.describe());
            let _ = writeln!(out, "| {} |\n|---|---|{}", HEADS.join(" | "), "---:|".repeat(HEADS.len() - 2));
            table.lines().iter().for_each(|line| out.push_str(&format!("| {} |\n", line.join(" | "))));
            table.notes.iter().for_each(|note| out.push_str(&format!("\n- {note}\n")));
        }
        if !self.verdicts.is_empty() {
            let _ = writeln!(out, "\n## {VERDICTS}\n\n| {} |\n|---|---|---:|---:|---:|", VERDICT_HEADS.join(" | "));
        }
        self.verdicts.iter().for_each(|verdict| out.push_str(&format!("| {} |\n", verdict.line().join(" | "))));
        let _ = writeln!(out, "\n## What to type\n\n```\n{}\n```\n", self.statements.join("\n"));
        NOTES.iter().for_each(|note| out.push_str(&format!("- {note}\n")));
        out
    }

    /// Findings for all tables, one sentence each.
    pub fn summary(&self) -> Vec<String> {
        let times = self.postgres_lz4_bytes / self.melba_bytes.max(1.0);
        let [pglz, lz4, melba] = self.rows_that_fit.map(count);
        let mut out = vec![
            format!(
                "{} of values take {} in Melba with the methods below, {} in PostgreSQL by lz4 ({times:.1} times as much), {} by pglz",
                bytes(self.raw_bytes),
                bytes(self.melba_bytes),
                bytes(self.postgres_lz4_bytes),
                bytes(self.postgres_pglz_bytes)
            ),
            format!("Into {} go {melba} rows in Melba, {lz4} in PostgreSQL by lz4, {pglz} by pglz", bytes(self.space_bytes)),
        ];
        if let Some(days) = self.days {
            let [pglz, lz4, melba] = days.map(count);
            out.push(format!("That lasts {melba} days in Melba, {lz4} in PostgreSQL by lz4, {pglz} by pglz"));
        }
        out
    }
}

pub const HEADS: [&str; 8] = ["column", "method", "size", "ratio", "read p50 us", "read p99 us", "write us", "memory"];

pub const NOTES: [&str; 4] = [
    "Melba's sizes are those of the sample in a server of its own, brought to the whole table by what all of its values, or long parts of it, take.",
    "PostgreSQL's sizes are computed: TOAST's rule for each row, its codecs, its pages, the primary key; no other indexes.",
    "A read is one value by its key through a client, cached; a write is a row's share of COPY.",
    "Memory is what fast reads keep at most: of dense a reference for each section and a block, else a frame.",
];

impl TableAdvice {
    pub fn describe(&self) -> String {
        format!(
            "{} rows, {} of values; tried with {} of them. Melba: {}. PostgreSQL: {} by lz4, {} by pglz.",
            count(self.rows),
            bytes(self.raw_bytes),
            count(self.rows_tried as f64),
            bytes(self.melba_bytes()),
            bytes(self.postgres_lz4_bytes),
            bytes(self.postgres_pglz_bytes)
        )
    }

    /// The cells below [`HEADS`].
    pub fn lines(&self) -> Vec<[String; 8]> {
        let mut out = Vec::new();
        for column in &self.columns {
            let line = |method: String, size: f64, rest: [String; 4]| {
                let [p50, p99, write, memory] = rest;
                [
                    column.name.clone(),
                    method,
                    bytes(size),
                    format!("{:.1}", column.raw_bytes / size.max(1.0)),
                    p50,
                    p99,
                    write,
                    memory,
                ]
            };
            let none = || ["", "", "", ""].map(str::to_owned);
            out.push(line("raw".to_owned(), column.raw_bytes, none()));
            out.push(line("PostgreSQL pglz".to_owned(), column.postgres_pglz_bytes, none()));
            out.push(line("PostgreSQL lz4".to_owned(), column.postgres_lz4_bytes, none()));
            for (at, method) in column.methods.iter().enumerate() {
                let times = [method.read_p50_us, method.read_p99_us, method.write_us].map(|us| format!("{us:.0}"));
                let [p50, p99, write] = times;
                let mark = if at == column.advised { " (advised)" } else { "" };
                out.push(line(format!("{}{mark}", method.name()), method.bytes, [p50, p99, write, bytes(method.memory_bytes)]));
            }
        }
        let rest =
            ["other columns, primary key", "", &bytes(self.rest_with(|column| column.advised).max(0.0)), "", "", "", "", ""]
                .map(str::to_owned);
        out.push(rest);
        out
    }
}

/// Chooses a method for each column, and the read budget, which all share.
fn choose(tables: &mut [TableAdvice]) -> f64 {
    let mut budgets: Vec<f64> =
        tables.iter().flat_map(|t| &t.columns).flat_map(|c| &c.methods).filter_map(|m| m.budget).collect();
    budgets.sort_by(|a, b| (a != &DEFAULT_BUDGET).cmp(&(b != &DEFAULT_BUDGET)).then(a.total_cmp(b)));
    budgets.dedup();
    let mut best: Option<(f64, f64)> = None;
    for budget in budgets {
        tables.iter_mut().flat_map(|t| &mut t.columns).for_each(|column| column.advised = cheapest(&column.methods, budget));
        let total: f64 = tables.iter().map(TableAdvice::melba_bytes).sum();
        if best.is_none_or(|(_, least)| total < least * WORTH) {
            best = Some((budget, total));
        }
    }
    let budget = best.map_or(DEFAULT_BUDGET, |(budget, _)| budget);
    tables.iter_mut().flat_map(|t| &mut t.columns).for_each(|column| column.advised = cheapest(&column.methods, budget));
    budget
}

/// The least of lz4, zstd and dense by one budget; a slower one only where it pays.
fn cheapest(methods: &[MethodAdvice], budget: f64) -> usize {
    let may = |method: &MethodAdvice| method.budget.is_none_or(|own| own == budget);
    (0..methods.len()).filter(|at| may(&methods[*at])).fold(0, |best, at| match methods[at].bytes < methods[best].bytes * WORTH {
        true => at,
        false => best,
    })
}

fn statements(tables: &[TableAdvice], budget: f64) -> Vec<String> {
    let mut out = Vec::new();
    let mut is_dense = false;
    for table in tables {
        let method = |column: &ColumnAdvice| column.methods[column.advised].method;
        is_dense |= table.columns.iter().any(|column| method(column) == "dense");
        let advised = |name: &str| table.columns.iter().find(|column| column.name == name).map(method);
        match &table.created {
            Some(columns) => out.push(create_table(&table.name, columns, &advised)),
            None => out.extend(table.columns.iter().map(|column| {
                let name = quoted(&column.name);
                format!("ALTER TABLE {} ALTER COLUMN {name} SET COMPRESSION {};", table.name, method(column))
            })),
        }
    }
    if is_dense && budget != DEFAULT_BUDGET {
        out.push(format!("-- in melba.conf: dense_read_budget = {budget}"));
    }
    out
}

fn create_table(name: &str, columns: &[Column], advised: &dyn Fn(&str) -> Option<&'static str>) -> String {
    let definition = |column: &Column| {
        let method = advised(&column.name).map_or_else(String::new, |method| format!(" COMPRESSION {method}"));
        let key = if column.in_primary_key { " PRIMARY KEY" } else { "" };
        format!("{} {}{method}{key}", quoted(&column.name), column.type_name)
    };
    format!("CREATE TABLE {} ({});", quoted(name), columns.iter().map(definition).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn table(sizes: [f64; 5]) -> TableAdvice {
        let method = |(method, budget): (&'static str, Option<f64>), bytes: f64| MethodAdvice {
            method,
            budget,
            bytes,
            read_p50_us: 20.0,
            read_p99_us: 50.0,
            write_us: 9.0,
            memory_bytes: 8e6,
        };
        let kinds = [("lz4", None), ("zstd", None), ("dense", Some(0.05)), ("dense", Some(0.2)), ("dense", Some(1.0))];
        let methods = kinds.into_iter().zip(sizes).map(|(kind, bytes)| method(kind, bytes)).collect();
        TableAdvice {
            name: "public.pages".into(),
            rows: 1000.0,
            rows_tried: 100,
            raw_bytes: 1e9,
            postgres_pglz_bytes: 5e8,
            postgres_lz4_bytes: 4e8,
            rests: vec![RestAdvice { method: "lz4", budget: None, bytes: 1e6 }; 5],
            columns: vec![ColumnAdvice {
                name: "body <x>".into(),
                type_name: "text".into(),
                raw_bytes: 1e9,
                postgres_pglz_bytes: 5e8,
                postgres_lz4_bytes: 4e8,
                methods,
                advised: 0,
            }],
            notes: vec!["a note".into()],
            created: None,
        }
    }

    fn advised(sizes: [f64; 5]) -> (String, Vec<String>) {
        let advice = Advice::new("postgres://me:secret@h/d", vec![table(sizes)], 25_000_000_000, Some(100.0));
        let column = &advice.tables[0].columns[0];
        (column.methods[column.advised].name(), advice.statements)
    }

    #[test]
    fn what_pays_is_advised() {
        assert_eq!(advised([3e8, 2e8, 6e7, 5e7, 4.9e7]).0, "dense, 0.2 ms", "a tenth more room is not worth another budget");
        let (name, statements) = advised([3e8, 2e8, 6e7, 5e7, 3e7]);
        assert_eq!(name, "dense, 1 ms");
        let expected = [
            "ALTER TABLE public.pages ALTER COLUMN \"body <x>\" SET COMPRESSION dense;",
            "-- in melba.conf: dense_read_budget = 1",
        ];
        assert_eq!(statements, expected);
        let column = |name: &str, in_primary_key| Column {
            name: name.into(),
            type_name: "text".into(),
            storage: crate::sample::Storage::Text,
            in_primary_key,
        };
        let created = Some(vec![column("path", true), column("body <x>", false)]);
        let new = TableAdvice { created, name: "files".into(), ..table([3e8, 2e8, 6e7, 5e7, 4.9e7]) };
        let expected = ["CREATE TABLE \"files\" (\"path\" text PRIMARY KEY, \"body <x>\" text COMPRESSION dense);"];
        assert_eq!(Advice::new("./pages", vec![new], 1, None).statements, expected);
        assert_eq!(advised([1e8, 0.99e8, 0.98e8, 0.97e8, 0.96e8]).0, "lz4");
    }
}
