//! The laboratory: reruns published experiments on any number of servers side by side in one run, and reports its measurements as
//! JSON, Markdown and a self-contained HTML page.
//!
//! 1. Every line is measured on every target before the next line begins, so that a busy machine affects all targets; with
//!    several rounds, the reported value is the median.
//! 2. Values read are compared with the values written; a target that answers wrongly fails the experiment.
//! 3. It talks to its targets as any client does and knows nothing of Melba's internals: only the binary depends on it.

#![allow(clippy::disallowed_methods, reason = "a client: its clock and files are not the database's")]

mod documents;
mod lake;
mod large_objects;
mod olap;
mod pgbench;
mod process;
mod progress;
mod python;
mod random;
mod report;
mod server;
mod slow_disk;
mod statistics;
mod sysbench;
mod target;
mod toast;
mod tool;
mod tpcb;

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub use server::while_postgresql;
pub use target::Target;

/// A failure in words for the person at the terminal.
pub type Result<T> = std::result::Result<T, String>;

/// An experiment with its options.
#[derive(Debug, Subcommand)]
pub enum Experiment {
    /// TOAST: size, INSERT, SELECT and string functions of large values by compression method
    Toast(toast::ToastOptions),
    /// pgbench's TPC-B with each kind of durability: synchronous, asynchronous, unlogged, memory
    Tpcb(tpcb::TpcbOptions),
    /// sysbench's workloads, also against MySQL
    Sysbench(sysbench::SysbenchOptions),
    /// Dump and restore of many large objects by pg_dump and by melba dump
    LargeObjects(large_objects::LargeObjectOptions),
    /// Near-copies as files, in row stores, column stores and archives: size, reads, changes of each form
    Documents(Box<documents::DocumentOptions>),
    /// Ranges, prefixes, groups and orders over one large table, then short and long statements over accounts and records, also
    /// on DuckDB and ClickHouse
    Olap(Box<olap::OlapOptions>),
    /// Rows for an engine elsewhere: published as Iceberg, and read by ranges of ctid on one snapshot
    Lake(lake::LakeOptions),
}

/// Options of every experiment.
#[derive(Debug, Args)]
pub struct Common {
    /// A server: NAME=postgres://USER[:PASSWORD]@HOST[:PORT]/DATABASE, for sysbench also mysql://; may be given several times.
    /// Ratios are to the first. The experiment makes and drops tables of its own in that database
    #[arg(long = "target", value_name = "NAME=URL", required = true, value_parser = Target::parse)]
    targets: Vec<Target>,
    /// Where results.json, results.md and results.html are written
    #[arg(long = "out", value_name = "DIR", default_value = "./melba-lab")]
    out: PathBuf,
    /// How often each line is measured; the median is reported
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

/// Runs an experiment, writes its report and prints the Markdown form.
pub fn run(experiment: Experiment) -> Result<()> {
    let (report, out) = match experiment {
        Experiment::Toast(options) => (toast::run(&options)?, options.common.out),
        Experiment::Tpcb(options) => (tpcb::run(&options)?, options.common.out),
        Experiment::Sysbench(options) => (sysbench::run(&options)?, options.common.out),
        Experiment::LargeObjects(options) => (large_objects::run(&options)?, options.common.out),
        Experiment::Documents(options) => (documents::run(&options)?, options.out),
        Experiment::Olap(options) => (olap::run(&options)?, options.out),
        Experiment::Lake(options) => (lake::run(&options)?, options.common.out),
    };
    let written = report.write(&out)?;
    println!("{}", report.markdown());
    println!("Written to {}", written.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Subcommand as _;

    #[test]
    fn the_options_of_experiments_do_not_collide() {
        super::Experiment::augment_subcommands(clap::Command::new("lab")).debug_assert();
    }
}
