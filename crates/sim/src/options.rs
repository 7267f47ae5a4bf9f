//! The command line.

use std::time::Duration;

use melba_engine::planted::Plant;

const USAGE: &str = "usage: cargo xtask sim [option]...

  --seeds N      how many seeds, from a fresh one on (1000)
  --from SEED    the first of them
  --seed SEED    this one only, with all events printed
  --minutes N    as many seeds as fit
  --past         the seeds of past failures instead (crates/sim/seeds.txt)
  --jobs N       seeds run at a time (2)
  --plant BUG    with a bug on purpose, which must be found: skip-fsync, publish-early, drop-index-entry
                 or, with --serializable, forget-prepared
  --serializable judges SERIALIZABLE transactions, too";

pub struct Options {
    pub from: Option<u64>,
    pub seeds: u64,
    pub only: Option<u64>,
    pub time: Option<Duration>,
    pub past: bool,
    pub serializable: bool,
    pub jobs: usize,
    pub plant: Option<(Plant, String)>,
}

impl Options {
    pub fn parse(arguments: &[String]) -> Result<Options, String> {
        let mut options =
            Options { from: None, seeds: 1000, only: None, time: None, past: false, serializable: false, jobs: 2, plant: None };
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            if name == "--past" {
                options.past = true;
                continue;
            }
            if name == "--serializable" {
                options.serializable = true;
                continue;
            }
            let value = rest.next().ok_or(USAGE)?;
            let number = || value.parse::<u64>().map_err(|_| format!("{name}: {value} is no number"));
            match name.as_str() {
                "--seeds" => options.seeds = number()?,
                "--from" => options.from = Some(number()?),
                "--seed" => options.only = Some(number()?),
                "--minutes" => options.time = Some(Duration::from_secs(60 * number()?)),
                "--jobs" => options.jobs = number()?.max(1) as usize,
                "--plant" => options.plant = Some((Plant::parse(value).ok_or(USAGE)?, value.clone())),
                _ => return Err(USAGE.to_owned()),
            }
        }
        Ok(options)
    }
}
