//! `cargo xtask recovery`: the time until a killed server is ready again, with the same changes since its last flush in a
//! database of some size and in one of ten times that size. It is about the same: recovery reads the log, not the tables.

use std::time::{Duration, Instant};

use crate::melba::{Melba, ask, run};

pub struct Options {
    pub rows: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { rows: 200_000 }
    }
}

/// Rows changed after the last flush: about 10 MB of log.
const CHANGED: u64 = 40_000;
/// Kills of which the shortest recovery counts.
const TRIES: u32 = 5;
/// The ten times larger database may take this many times as long, and some time for opening its files.
const RATIO_MAX: f64 = 1.5;
const SLACK: Duration = Duration::from_millis(100);

pub fn recovery(options: &Options) -> Result<(), String> {
    let mut times = Vec::new();
    for rows in [options.rows, options.rows * 10] {
        let mut melba = Melba::fresh("recovery")?;
        let create = "create table t (id bigint primary key, v text)".to_owned();
        let load = format!("insert into t select id, md5(id::text) || md5((id + 1)::text) from generate_series(1, {rows}) id");
        for statement in [&create, &load, &"checkpoint".to_owned()] {
            run(melba.address.psql().args(["-Xqc", statement]), "psql")?;
        }
        let mut best = Duration::MAX;
        for round in 0..TRIES {
            // Spread over the table, so that recovery would read all of it if it read the table.
            let step = rows / CHANGED;
            let update =
                format!("update t set v = repeat('{round} ', 100) from generate_series(1, {CHANGED}) g where id = g * {step}");
            run(melba.address.psql().args(["-Xqc", &update]), "psql")?;
            let began = Instant::now();
            melba = melba.crash_and_restart()?;
            best = best.min(began.elapsed());
            let found = ask(&melba.address, &format!("select count(*) from t where v = repeat('{round} ', 100)"))?;
            if found != CHANGED.to_string() {
                return Err(format!("recovery: {found} of {CHANGED} changed rows are there"));
            }
            run(melba.address.psql().args(["-Xqc", "checkpoint"]), "psql")?;
        }
        println!("{rows} rows, {CHANGED} changed since the last flush: ready after {:.0} ms", best.as_secs_f64() * 1e3);
        times.push(best);
        melba.stop()?;
    }
    if times[1] > times[0].mul_f64(RATIO_MAX) + SLACK {
        return Err("recovery: the time grew with the database".to_owned());
    }
    Ok(())
}
