//! SQL under simulation: several sessions of `sql` over the simulated disk, on one thread, chosen by a seed, with crashes and
//! failing disks; `melba_workload` checks what remains of their transactions. docs/design/simulation.md says what is simulated.

#![allow(clippy::disallowed_methods, reason = "the seeds and the length of a run may come from real time")]

mod client;
mod trace;
mod world;

use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use world::{Run, run};

const USAGE: &str = "usage: cargo xtask simsql [option]...

  --seeds N      how many seeds, from a fresh one on (100)
  --from SEED    the first of them
  --seed SEED    this one only, with all events printed
  --seconds N    as many seeds as fit
  --plant no-fsync    commits do not wait for the disk, which must be found";

/// The bug on purpose.
const NO_FSYNC: &str = "no-fsync";

struct Options {
    from: u64,
    seeds: u64,
    only: Option<u64>,
    time: Option<Duration>,
    plant: Option<String>,
}

fn options() -> Result<Options, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut options = Options { from: now, seeds: 100, only: None, time: None, plant: None };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        let number = || value.parse::<u64>().map_err(|_| format!("{name}: {value} is no number"));
        match name.as_str() {
            "--from" => options.from = number()?,
            "--seeds" => options.seeds = number()?,
            "--seed" => options.only = Some(number()?),
            "--seconds" => (options.time, options.seeds) = (Some(Duration::from_secs(number()?)), u64::MAX),
            "--plant" => {
                options.plant = (value == NO_FSYNC).then_some(value);
                options.plant.as_ref().ok_or(USAGE)?;
            }
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(options)
}

/// A seed in a thread with the stack that sessions want.
fn run_seed(seed: u64, verbose: bool, fsync: bool) -> Run {
    let thread = std::thread::Builder::new().stack_size(melba_sql::session::STACK_BYTES).spawn(move || run(seed, verbose, fsync));
    thread.map_err(|e| e.to_string()).and_then(|t| t.join().map_err(|_| "a panic".to_owned())).unwrap_or_else(Run::failed)
}

fn main() -> ExitCode {
    match options().and_then(|options| all(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn all(options: &Options) -> Result<(), String> {
    let plant = options.plant.as_ref().map(|name| format!(" --plant {name}")).unwrap_or_default();
    let described =
        |seed: u64, message: &str| format!("seed {seed} failed: {message}\n  again: cargo xtask simsql --seed {seed}{plant}");
    if let Some(seed) = options.only {
        let run = run_seed(seed, true, options.plant.is_none());
        println!("trace {:016x}", run.hash);
        return run.failure.map_or(Ok(()), |message| Err(described(seed, &message)));
    }
    println!("seeds from {}", options.from);
    let start = Instant::now();
    let mut total = world::Stats::default();
    let mut seeds = 0;
    while seeds < options.seeds && options.time.is_none_or(|time| start.elapsed() < time) {
        let seed = options.from.wrapping_add(seeds);
        let run = run_seed(seed, false, options.plant.is_none());
        seeds += 1;
        total.add(&run.stats);
        match (run.failure, &options.plant) {
            (None, _) => {}
            (Some(message), None) => return Err(described(seed, &message)),
            (Some(message), Some(name)) => {
                let message = message.lines().next().unwrap_or_default().to_owned();
                println!("{name} was found by seed {seed} after {seeds} seeds: {message}");
                return Ok(());
            }
        }
    }
    println!("{seeds} seeds in {} s: {total}", start.elapsed().as_secs());
    options.plant.as_ref().map_or(Ok(()), |name| Err(format!("{name} was not found")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_run() {
        for seed in 1..3 {
            let (one, other) = (run_seed(seed, false, true), run_seed(seed, false, true));
            assert!(one.failure.is_none(), "seed {seed}: {}", one.failure.unwrap_or_default());
            assert_eq!(one.hash, other.hash, "seed {seed}");
        }
    }
}
