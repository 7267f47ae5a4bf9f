//! Many seeds, on several threads, each seed on one.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::options::Options;
use crate::run::{Run, run};
use crate::world::Stats;

/// Seeds that once failed, one per line, with their findings.
const PAST: &str = include_str!("../seeds.txt");

pub fn run_all(options: &Options) -> Result<(), String> {
    if let Some((plant, _)) = &options.plant {
        melba_engine::planted::plant(*plant);
    }
    if let Some(seed) = options.only {
        let run = run(seed, true, options.serializable);
        println!("trace {:016x}", run.hash);
        return run.failure.map_or(Ok(()), |message| Err(describe(seed, &message, options)));
    }
    let seeds: Box<dyn Iterator<Item = u64> + Send> = if options.past {
        Box::new(past().into_iter())
    } else {
        let first = options.from.unwrap_or_else(fresh_seed);
        println!("seeds from {first}");
        let count = if options.time.is_some() { u64::MAX } else { options.seeds };
        Box::new((0..count).map(move |i| first.wrapping_add(i)))
    };
    let (report, failed) = run_seeds(options, seeds);
    report.print();
    match (failed, &options.plant) {
        (None, None) => Ok(()),
        (None, Some((_, name))) => Err(format!("{name} was not found")),
        (Some(run), None) => Err(describe(run.seed, run.failure.as_deref().unwrap_or_default(), options)),
        (Some(run), Some((_, name))) => {
            let message = run.failure.unwrap_or_default();
            println!(
                "{name} was found by seed {} after {} seeds: {}",
                run.seed,
                report.seeds,
                message.lines().next().unwrap_or_default()
            );
            Ok(())
        }
    }
}

/// All seeds, up to the first failure.
fn run_seeds(options: &Options, seeds: Box<dyn Iterator<Item = u64> + Send>) -> (Report, Option<Run>) {
    let start = Instant::now();
    let seeds = Mutex::new(seeds);
    let report = Mutex::new(Report::default());
    let failed: Mutex<Option<Run>> = Mutex::new(None);
    let stop = AtomicBool::new(false);
    let take = || seeds.lock().ok().and_then(|mut s| s.next());
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed)
                    && options.time.is_none_or(|t| start.elapsed() < t)
                    && let Some(seed) = take()
                {
                    let run = run(seed, false, options.serializable);
                    if let Ok(mut report) = report.lock() {
                        report.add(&run);
                    }
                    if run.failure.is_some() {
                        stop.store(true, Ordering::Relaxed);
                        if let Ok(mut failed) = failed.lock() {
                            failed.get_or_insert(run);
                        }
                    }
                }
            });
        }
    });
    (report.into_inner().unwrap_or_default(), failed.into_inner().unwrap_or_default())
}

fn describe(seed: u64, message: &str, options: &Options) -> String {
    let plant = options.plant.as_ref().map(|(_, name)| format!(" --plant {name}")).unwrap_or_default();
    let judged = if options.serializable { " --serializable" } else { "" };
    format!("seed {seed} failed: {message}\n  again: cargo xtask sim --seed {seed}{judged}{plant}")
}

fn past() -> Vec<u64> {
    PAST.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
}

fn fresh_seed() -> u64 {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64;
    (now + CALLS.fetch_add(1, Ordering::Relaxed)) % 1_000_000_000_000
}

/// The totals of all seeds.
#[derive(Default)]
struct Report {
    seeds: u64,
    total: Stats,
}

impl Report {
    fn add(&mut self, run: &Run) {
        self.seeds += 1;
        let (total, one) = (&mut self.total, &run.stats);
        total.steps += one.steps;
        total.actions += one.actions;
        total.commits += one.commits;
        total.background += one.background;
        total.power_cuts += one.power_cuts;
        total.kills += one.kills;
        total.clean_stops += one.clean_stops;
        total.loads += one.loads;
        total.refused_loads += one.refused_loads;
        total.faults += one.faults;
    }

    fn print(&self) {
        let t = &self.total;
        println!(
            "{} seeds, {} steps: {} statements, {} commits, {} background steps; {} power cuts, {} kills, {} clean stops, {} faults",
            self.seeds, t.steps, t.actions, t.commits, t.background, t.power_cuts, t.kills, t.clean_stops, t.faults
        );
        println!("{} loads in bulk, and {} refused because of a number that was taken", t.loads, t.refused_loads);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_runs_the_same_way_each_time() {
        for seed in 0..6 {
            let (a, b) = (run(seed, false, true), run(seed, false, true));
            assert!(a.failure.is_none(), "{}", a.failure.unwrap_or_default());
            assert_eq!(a.hash, b.hash, "seed {seed}");
        }
    }

    #[test]
    fn seeds_that_failed_once_pass() {
        for seed in past() {
            let failure = run(seed, false, true).failure;
            assert!(failure.is_none(), "seed {seed}: {}", failure.unwrap_or_default());
        }
    }
}
