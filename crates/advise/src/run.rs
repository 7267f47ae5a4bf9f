//! The command: samples, trials, and the files with the results.

use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use crate::advice::{self, Advice, TableAdvice};
use crate::sample::Sample;
use crate::sections::SectionRules;
use crate::trial::{self, Trials};
use crate::{Result, csv, database, folder, growth, html, units, verify};

/// How far a prediction may be off.
const OFF_BY_MAX: f64 = 0.1;

/// Serves a new database with settings while a function runs, which gets the connection parameters as libpq's keywords.
pub type Serve<'a> = dyn Fn(Vec<(String, String)>, &mut dyn FnMut(&str) -> Result<()>) -> Result<()> + 'a;

#[derive(Debug, Args)]
pub struct Options {
    /// The data to sample: postgres://USER@HOST:PORT/DATABASE of any PostgreSQL or Melba, a folder of files, or a CSV file with a head
    from: String,
    /// Only this table of a database; may be given several times
    #[arg(long = "table", value_name = "NAME")]
    tables: Vec<String>,
    /// Bytes of each table that are loaded and tried
    #[arg(long, value_name = "SIZE", default_value = "64MB", value_parser = units::parse_bytes)]
    sample: u64,
    /// Bytes of each table that are read to compute the size of dense sections: of larger tables three parts
    #[arg(long, value_name = "SIZE", default_value = "2GB", value_parser = units::parse_bytes)]
    scan: u64,
    /// The room that rows are counted for
    #[arg(long, value_name = "SIZE", default_value = "25GB", value_parser = units::parse_bytes)]
    space: u64,
    /// How many rows come a day
    #[arg(long, value_name = "N")]
    rows_per_day: Option<f64>,
    /// Memory of the server that is to hold the data [default: as for this machine]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Milliseconds that reading a dense value may take: dense is tried with each
    #[arg(long, value_delimiter = ',', default_values_t = [0.05, 0.2, 1.0])]
    budgets: Vec<f64>,
    /// Load all of it by lz4, zstd and dense, too, and fail if a prediction was off by more than a tenth
    #[arg(long)]
    verify: bool,
    /// Where advice.json, advice.md and advice.html are written
    #[arg(long, value_name = "DIR", default_value = "./melba-advice")]
    out: PathBuf,
}

/// Samples, tries, and reports the results.
pub fn advise(options: &Options, serve: &Serve) -> Result<()> {
    let mut samples = samples(options)?;
    let steps: usize = samples.iter().map(|s| (s.candidates().len() + 1) * (trial::STEPS + options.budgets.len()) - 1).sum();
    let progress = ProgressBar::new(steps as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} (left {eta}) {msg}") {
        progress.set_style(style);
    }
    let mut trials: Vec<Trials> = samples.iter().map(Trials::new).collect();
    let settings = |budget: f64| {
        let memory = options.memory.iter().map(|memory| ("memory".to_owned(), memory.clone()));
        memory.chain([("dense_read_budget".to_owned(), budget.to_string())]).collect()
    };
    for budget in &options.budgets {
        serve(settings(*budget), &mut |server| {
            let mut client = trial::connect(server)?;
            let each = samples.iter().zip(&mut trials);
            each.into_iter().try_for_each(|(sample, trials)| {
                progress.set_message(sample.name.clone());
                trials.run(&mut client, sample, *budget, &mut || progress.inc(1))
            })
        })?;
    }
    let budget = advice::default_budget(&options.budgets);
    let mut tables = Vec::new();
    for (sample, trials) in samples.iter_mut().zip(&trials) {
        progress.set_message(format!("{}, all of it", sample.name));
        let rules = SectionRules::of(trials.memory_bytes, budget);
        let growths = growth::survey(sample, rules, options.scan, &mut || progress.inc(1))?;
        tables.push(TableAdvice::of(sample, trials, &growths, budget));
    }
    progress.finish_and_clear();
    let mut advice = Advice::new(&options.from, tables, options.space, options.rows_per_day);
    if options.verify {
        serve(settings(budget), &mut |server| {
            let mut client = trial::connect(server)?;
            for (sample, table) in samples.iter().zip(&advice.tables) {
                advice.verdicts.extend(verify::verify(&mut client, sample, table, budget)?);
            }
            Ok(())
        })?;
    }
    let written = write(&advice, &options.out)?;
    println!("{}", advice.markdown());
    println!("Written to {}", written.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", "));
    match advice.verdicts.iter().find(|verdict| verdict.off_by().abs() > OFF_BY_MAX) {
        Some(wrong) => Err(format!("{}, {}: off by {:.1} %", wrong.table, wrong.method, wrong.off_by() * 100.0)),
        None => Ok(()),
    }
}

fn samples(options: &Options) -> Result<Vec<Sample>> {
    let path = Path::new(&options.from);
    let samples = match options.from.contains("://") {
        true => database::samples(&options.from, &options.tables, options.sample)?,
        false if path.is_dir() => vec![folder::sample(path, options.sample)?],
        false => vec![csv::sample(path, options.sample)?],
    };
    if samples.is_empty() { Err(format!("{}: no tables with rows", options.from)) } else { Ok(samples) }
}

/// Writes advice.json, advice.md and advice.html.
fn write(advice: &Advice, folder: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let json = serde_json::to_string_pretty(advice).map_err(|e| e.to_string())?;
    let forms = [("advice.json", json), ("advice.md", advice.markdown()), ("advice.html", html::page(advice))];
    let write = |(name, text): (&str, String)| {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(path)
    };
    forms.into_iter().map(write).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::tests::table;
    use crate::advice::{VERDICTS, Verdict};

    #[test]
    fn the_three_forms_say_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let mut advice =
            Advice::new("postgres://me:secret@h/d", vec![table([3e8, 2e8, 6e7, 4.9e7, 4.9e7])], 25_000_000_000, Some(100.0));
        let verdict = |method: &str, took_bytes| Verdict {
            table: "docs <x>".to_owned(),
            method: method.to_owned(),
            predicted_bytes: 5e7,
            took_bytes,
        };
        advice.verdicts = vec![verdict("lz4", 4e7), verdict("dense, 0.2 ms", 5e7)];
        let paths = write(&advice, folder.path()).unwrap();
        let [json, markdown, html] = [0, 1, 2].map(|at| std::fs::read_to_string(&paths[at]).unwrap());
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((value["melba_bytes"].as_f64(), value["rows_that_fit"][2].as_f64()), (Some(5e7), Some(500_000.0)));
        assert!(
            markdown.contains("Into 25.0 GB go 500,000 rows in Melba") && markdown.contains("lasts 5,000 days"),
            "{markdown}"
        );
        assert!(markdown.contains("| body <x> | dense, 0.2 ms (advised) | 49.0 MB | 20.4 |"), "{markdown}");
        assert!(markdown.contains("| docs <x> | lz4 | 50.0 MB | 40.0 MB | 25.0 % |"), "{markdown}");
        let cells = "<td>docs &lt;x&gt;</td><td>dense, 0.2 ms</td><td>50.0 MB</td><td>50.0 MB</td><td>0.0 %</td>";
        assert!(html.contains(VERDICTS) && html.contains(cells), "{html}");
        assert!(html.contains("body &lt;x&gt;") && html.contains("<svg") && !html.contains("http"), "{html}");
        assert!(!json.contains("secret") && !markdown.contains("secret") && !html.contains("secret"));
    }
}
