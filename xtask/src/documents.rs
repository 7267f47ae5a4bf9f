//! `cargo xtask documents`: replaces every document of a table, one per transaction, round after round, at full speed. Measures
//! the largest size of the files, in ratio to the size of the same documents when loaded.
//!
//! A single UPDATE of all of them holds two versions of each until it commits, here as in PostgreSQL; this is about the space of
//! versions that are no longer needed.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::melba::{Melba, postgres_program, run};
use crate::root;
use crate::space::{Bench, Watch, strewing_step};

/// The largest size of the files, in percent of the size after loading.
const MOST_PERCENT: u64 = 160;
/// Documents are 32 characters repeated this many times, kept uncompressed.
const REPEATED: u64 = 3200;

pub struct Options {
    pub rows: u64,
    pub rounds: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { rows: 10_000, rounds: 10 }
    }
}

pub fn documents(options: &Options) -> Result<(), String> {
    let Some(pgbench) = postgres_program("pgbench") else {
        println!("skipped documents: pgbench is not installed");
        return Ok(());
    };
    let melba = Melba::fresh("documents")?;
    let bench = Bench::new(pgbench, &melba, root().join("target/documents-logs"))?;
    let rows = options.rows;
    let load = format!("insert into d select id, repeat(md5(id::text), {REPEATED}) from generate_series(1, {rows}) id");
    let statements =
        ["create table d (id int primary key, body text)", "alter table d alter column body set storage external", &load];
    for statement in statements {
        run(melba.address.psql().args(["-Xqc", statement]), "psql")?;
    }
    let watch = Watch::start(melba.data());
    let live = watch.settled(Duration::from_secs(60));
    println!("{rows} documents, {} MB of files after loading", live >> 20);
    let percent = |bytes: u64| bytes * 100 / live.max(1);
    let step = strewing_step(rows);
    let replace = format!(
        "\\set n :n + 1\n\\set id (:n * {step}) % {rows} + 1\n\
         update d set body = repeat(md5(:n::text || ' ' || :id), {REPEATED}) where id = :id;\n"
    );
    let mut most = 0;
    for round in 1..=options.rounds {
        watch.most.store(0, Ordering::SeqCst);
        let began = Instant::now();
        bench.finish(bench.start("replacements", &replace, 1, Some(rows))?)?;
        let taken = percent(watch.most.load(Ordering::SeqCst));
        most = most.max(taken);
        println!("round {round}: {:.0} s, at most {taken} %", began.elapsed().as_secs_f64());
    }
    println!("replacing: {}", bench.pauses("replacements")?);
    println!("files took at most {most} % of the live data (bar: {MOST_PERCENT} %)");
    drop(watch);
    melba.stop()?;
    if most >= MOST_PERCENT { Err("documents: the bar was missed".to_owned()) } else { Ok(()) }
}
