//! The published comparison of durabilities: pgbench's TPC-B on tables that are logged and committed synchronously, logged and
//! committed asynchronously, unlogged, and in memory; also on disks that are slowed.

use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::pgbench::{self, Load, Outcome};
use crate::process::Usage;
use crate::progress::Progress;
use crate::report::{Claim, Collector, Finding, Key, Report};
use crate::slow_disk::SlowDisk;
use crate::{Common, Result, Target};

#[derive(Debug, Args)]
pub struct TpcbOptions {
    #[command(flatten)]
    pub common: Common,
    #[command(flatten)]
    disk: SlowDisk,
    /// pgbench's transaction: tpcb-like or simple-update
    #[arg(long, default_value = "tpcb-like", value_parser = ["tpcb-like", "simple-update"])]
    script: String,
    /// 100,000 accounts each
    #[arg(long, default_value_t = 20)]
    scale: u32,
    #[arg(long, default_value_t = 16)]
    clients: u32,
    /// Threads of pgbench
    #[arg(long, default_value_t = 2)]
    threads: u32,
    /// Duration of each run
    #[arg(long, default_value_t = 30)]
    seconds: u32,
    /// simple, extended or prepared
    #[arg(long, default_value = "prepared")]
    protocol: String,
    /// Durabilities to compare
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Mode::On, Mode::Off, Mode::Unlogged, Mode::Memory])]
    modes: Vec<Mode>,
}

/// The guarantees of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Logged tables, synchronous_commit on
    On,
    /// Logged tables, synchronous_commit off
    Off,
    /// UNLOGGED tables
    Unlogged,
    /// Tables that are never on disk, where the target has them
    Memory,
}

impl Mode {
    fn title(self) -> &'static str {
        match self {
            Mode::On => "logged, synchronous_commit on",
            Mode::Off => "logged, synchronous_commit off",
            Mode::Unlogged => "unlogged",
            Mode::Memory => "memory",
        }
    }

    /// Arguments of the initialisation, and settings of it and of the run.
    fn initialization(self) -> (&'static [&'static str], &'static str) {
        match self {
            Mode::On | Mode::Off => (&[], ""),
            Mode::Unlogged => (&["--unlogged-tables"], ""),
            Mode::Memory => (&[], "-c default_table_access_method=memory"),
        }
    }

    fn connection(self) -> &'static str {
        match self {
            Mode::Off => "-c synchronous_commit=off",
            _ => "-c synchronous_commit=on",
        }
    }
}

const TPS: &str = "transactions";

pub fn run(options: &TpcbOptions) -> Result<Report> {
    let common = &options.common;
    let parameters = vec![
        ("scale", options.scale.to_string()),
        ("clients", options.clients.to_string()),
        ("threads", options.threads.to_string()),
        ("seconds", options.seconds.to_string()),
        ("protocol", options.protocol.clone()),
        ("script", options.script.clone()),
    ];
    let parameters = parameters.into_iter().chain(options.disk.parameters()).collect();
    let mut report = Report::new("TPC-B by durability", common, parameters)?;
    let mut collector = Collector::new(common.targets.len());
    let delays = options.disk.delays();
    let lines = common.rounds as usize * delays.len() * options.modes.len();
    let progress = Progress::new(lines * common.targets.len());
    for round in 1..=common.rounds {
        for (delay, mode) in delays.iter().flat_map(|delay| options.modes.iter().map(move |mode| (*delay, *mode))) {
            for (index, target) in common.targets.iter().enumerate() {
                let section = SlowDisk::section(mode.title(), delay);
                progress.step(format_args!("round {round}: {section}, {}", target.name));
                if mode != Mode::Memory || has_memory_tables(target)? {
                    measure(options, (mode, delay), target, index, &mut collector)?;
                }
            }
        }
    }
    options.disk.set(Some(Duration::ZERO))?;
    report.finish(&collector, order(common, &collector, &options.modes));
    report.notes.push("Each run begins with fresh tables; its four sums are compared at its end.".to_owned());
    report.notes.push("CPU and bytes written are the server's, from /proc; log bytes are from pg_stat_wal.".to_owned());
    Ok(report)
}

fn has_memory_tables(target: &Target) -> Result<bool> {
    let mut client = target.connect()?;
    Ok(target.number(&mut client, "SELECT count(*) FROM pg_am WHERE amname = 'memory'")? > 0.0)
}

fn measure(
    options: &TpcbOptions,
    (mode, delay): (Mode, Option<Duration>),
    target: &Target,
    index: usize,
    collector: &mut Collector,
) -> Result<()> {
    let (arguments, settings) = mode.initialization();
    options.disk.set(Some(Duration::ZERO))?;
    pgbench::initialize(target, options.scale, arguments, settings)?;
    let mut client = target.connect()?;
    target.execute(&mut client, "CHECKPOINT")?;
    options.disk.set(delay)?;
    SlowDisk::check(delay, target, index, collector)?;
    let process = target.process();
    let used = || process.map(|p| p.usage());
    let (used_before, log_before) = (used(), log_bytes(target)?);
    let load = Load {
        clients: options.clients,
        threads: options.threads,
        seconds: options.seconds,
        protocol: options.protocol.clone(),
        script: options.script.clone(),
        options: mode.connection().to_owned(),
    };
    let outcome = pgbench::run(target, &load)?;
    let usage = used().zip(used_before).map(|(after, before)| after.since(before));
    let log = log_bytes(target)?.zip(log_before).map(|(after, before)| after - before);
    check_balances(target, &options.script)?;
    let section = SlowDisk::section(mode.title(), delay);
    collect(&section, &outcome, usage, log, index, collector);
    Ok(())
}

fn collect(section: &str, outcome: &Outcome, usage: Option<Usage>, log: Option<f64>, index: usize, collector: &mut Collector) {
    let transactions = outcome.transactions as f64;
    collector.add(Key::higher(section, TPS, "1/s"), index, outcome.tps);
    let mut lower = |line: &str, unit, value| collector.add(Key::lower(section, line, unit), index, value);
    lower("latency, average", "ms", outcome.latency_average);
    lower("latency, standard deviation", "ms", outcome.latency_deviation);
    for (share, latency) in &outcome.percentiles {
        lower(&format!("latency, {} %", share * 100.0), "ms", *latency);
    }
    if let Some(usage) = usage {
        lower("server's CPU a transaction", "us", usage.cpu_seconds * 1e6 / transactions);
        if let Some(bytes) = usage.written_bytes {
            lower("bytes written a transaction", "bytes", bytes as f64 / transactions);
        }
    }
    if let Some(bytes) = log {
        lower("log a transaction", "bytes", bytes / transactions);
    }
    for (statement, latency) in &outcome.statements {
        lower(statement, "ms", *latency);
    }
}

/// Bytes written to the log so far, where the target counts them.
fn log_bytes(target: &Target) -> Result<Option<f64>> {
    let mut client = target.connect()?;
    Ok(target.number(&mut client, "SELECT wal_bytes FROM pg_stat_wal").ok())
}

/// TPC-B's invariant: the sums of accounts, tellers and branches equal the history's. The simple update changes accounts only.
fn check_balances(target: &Target, script: &str) -> Result<()> {
    let sums = match script {
        "simple-update" => {
            "SELECT (SELECT sum(abalance) FROM pgbench_accounts) || ' ' || (SELECT coalesce(sum(delta), 0) FROM pgbench_history)"
        }
        _ => {
            "SELECT (SELECT sum(abalance) FROM pgbench_accounts) || ' ' || (SELECT sum(tbalance) FROM pgbench_tellers) || ' '
                || (SELECT sum(bbalance) FROM pgbench_branches) || ' ' || (SELECT coalesce(sum(delta), 0) FROM pgbench_history)"
        }
    };
    let mut client = target.connect()?;
    let text = target.value(&mut client, sums)?.unwrap_or_default();
    let mut parts = text.split(' ');
    let first = parts.next();
    match first.is_some() && parts.all(|p| Some(p) == first) {
        true => Ok(()),
        false => Err(format!("{}: the balances do not agree: {text}", target.name)),
    }
}

/// Whether a weaker promise was faster.
fn order(common: &Common, collector: &Collector, modes: &[Mode]) -> Vec<Claim> {
    let pairs = [(Mode::Unlogged, Mode::Off), (Mode::Off, Mode::On)];
    let measured = pairs.into_iter().filter(|(a, b)| modes.contains(a) && modes.contains(b));
    measured
        .map(|(faster, slower)| {
            let findings = common.targets.iter().enumerate().filter_map(|(index, target)| {
                let tps = |mode: Mode| collector.value(mode.title(), TPS, index);
                let factor = tps(faster)? / tps(slower)?;
                Some(Finding { target: target.name.clone(), measured: format!("{factor:.2} times as fast"), holds: factor > 1.0 })
            });
            Claim { published: format!("{} is faster than {}", faster.title(), slower.title()), findings: findings.collect() }
        })
        .collect()
}
