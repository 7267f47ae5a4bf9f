//! `cargo xtask bulk`: rows of (bigint, text phone, text nickname) loaded by COPY, indexed and copied, by turns on PostgreSQL and on
//! Melba, on the same machine in the same run. Melba should be a release build: MELBA=target/release/melba.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::compare::{Postgres, reference_for};
use crate::melba::{Address, Melba, ask};
use crate::root;

pub struct Options {
    pub rows: u64,
    pub rounds: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { rows: 20_000_000, rounds: 1 }
    }
}

/// The measured steps, in order: a name, the preparation, and the statement itself, which reads the rows when it is a COPY.
const STEPS: &[(&str, &str, &str)] = &[
    ("copy", "drop table if exists t; create table t (id bigint, phone text, nickname text)", "copy t from stdin"),
    ("index on phone", "", "create index on t (phone)"),
    ("primary key", "", "alter table t add primary key (id)"),
    ("create table as", "drop table if exists c", "create table c as select * from t"),
    ("insert select", "truncate c", "insert into c select * from t"),
    (
        "copy, primary key",
        "drop table c; drop table if exists p; create table p (id bigint primary key, phone text, nickname text)",
        "copy p from stdin",
    ),
];
/// Steps that read the rows from the client.
const FROM_CLIENT: &str = "copy ";
/// Sizes are asked for after this step.
const SIZED_AFTER: &str = "primary key";
const SIZES: &[(&str, &str)] =
    &[("table, MB", "select pg_table_size('t')"), ("with indexes, MB", "select pg_total_relation_size('t')")];

const COUNTRIES: &[&str] = &["1", "7", "33", "34", "44", "48", "49", "55", "81", "86", "90", "91"];
const FIRST: &[&str] = &[
    "red", "blue", "happy", "lazy", "quick", "silent", "brave", "cool", "dark", "wild", "tiny", "big", "mad", "sunny", "lucky",
    "old", "young", "super", "mega", "ultra", "crazy", "sweet", "iron", "magic", "royal", "fuzzy", "icy", "rusty", "gold",
    "neon",
];
const SECOND: &[&str] = &[
    "fox", "wolf", "cat", "dog", "bear", "lion", "tiger", "panda", "eagle", "shark", "rider", "ninja", "wizard", "king", "queen",
    "gamer", "hunter", "dragon", "ghost", "pirate", "robot", "star", "moon", "storm", "river", "stone", "falcon", "raven",
    "snake", "viper", "otter", "badger", "anna", "maria", "alex", "john", "peter", "sara", "lena", "max",
];

/// One step on one server: the best of all rounds.
#[derive(Clone, Copy)]
struct Best {
    wall: Duration,
    /// Of the client, when it sent rows.
    client: Duration,
}

pub fn bulk(options: &Options, reference: Option<Address>) -> Result<(), String> {
    let mut postgres: Option<Postgres> = None;
    let Some(reference) = reference_for("bulk", reference, &mut postgres)? else { return Ok(()) };
    let melba = Melba::fresh("bulk")?;
    let input = root().join("target").join(format!("bulk-{}.tsv", options.rows));
    generate(&input, options.rows)?;
    let servers = [("Melba", &melba.address), ("PostgreSQL", &reference)];
    let mut best = vec![[None::<Best>; 2]; STEPS.len()];
    let mut sizes = [[0u64; 2]; SIZES.len()];
    for _ in 0..options.rounds.max(1) {
        for (step, (name, before, statement)) in STEPS.iter().enumerate() {
            for (server, (_, address)) in servers.iter().enumerate() {
                for statement in before.split("; ").filter(|s| !s.is_empty()) {
                    ask(address, statement)?;
                }
                let took = measure(address, statement, &input).map_err(|e| format!("{name}: {e}"))?;
                let known = &mut best[step][server];
                if known.is_none_or(|known| took.wall < known.wall) {
                    *known = Some(took);
                }
                if *name == SIZED_AFTER {
                    for (size, (_, query)) in sizes.iter_mut().zip(SIZES) {
                        size[server] = ask(address, query)?.parse().map_err(|e| format!("{query}: {e}"))?;
                    }
                }
            }
        }
        for (_, address) in &servers {
            ask(address, "drop table t, p")?;
        }
    }
    print!("{}", report(options.rows, &best, &sizes));
    std::fs::remove_file(&input).map_err(|e| format!("{}: {e}", input.display()))?;
    melba.stop()
}

fn report(rows: u64, best: &[[Option<Best>; 2]], sizes: &[[u64; 2]]) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{:24} {:>12} {:>12} {:>8}", format!("{rows} rows"), "Melba", "PostgreSQL", "ratio");
    for ((name, _, statement), best) in STEPS.iter().zip(best) {
        let [Some(melba), Some(postgres)] = best else { continue };
        let speed = |best: &Best| rows as f64 / best.wall.as_secs_f64();
        let (melba_speed, postgres_speed) = (speed(melba), speed(postgres));
        let ratio = melba_speed / postgres_speed;
        let _ = writeln!(out, "{:24} {melba_speed:12.0} {postgres_speed:12.0} {ratio:8.2}", format!("{name}, rows/s"));
        if statement.starts_with(FROM_CLIENT) {
            let (melba, postgres) = (melba.client.as_secs_f64(), postgres.client.as_secs_f64());
            let _ = writeln!(out, "{:24} {melba:12.2} {postgres:12.2}", "  psql's CPU, s");
        }
    }
    for ((name, _), [melba, postgres]) in SIZES.iter().zip(sizes) {
        let ratio = *melba as f64 / *postgres as f64;
        let _ = writeln!(out, "{name:24} {:12} {:12} {ratio:8.2}", melba >> 20, postgres >> 20);
    }
    out
}

/// Runs a statement by psql, which gets the rows when it is a COPY.
fn measure(address: &Address, statement: &str, input: &Path) -> Result<Best, String> {
    let mut psql: Command = address.psql();
    psql.args(["-Xq", "-v", "ON_ERROR_STOP=1", "-c", statement]);
    if statement.starts_with(FROM_CLIENT) {
        psql.stdin(File::open(input).map_err(|e| format!("{}: {e}", input.display()))?);
    } else {
        psql.stdin(Stdio::null());
    }
    let began = Instant::now();
    let mut child = psql.spawn().map_err(|e| format!("psql: {e}"))?;
    let client = cpu_until_end(&child);
    let wall = began.elapsed();
    let status = child.wait().map_err(|e| format!("psql: {e}"))?;
    if status.success() { Ok(Best { wall, client }) } else { Err(format!("{statement}: {status}")) }
}

/// Waits until a child has ended, and returns its CPU time: /proc has it until the child is waited for.
fn cpu_until_end(child: &Child) -> Duration {
    const TICK: Duration = Duration::from_millis(10);
    let path = format!("/proc/{}/stat", child.id());
    loop {
        let stat = std::fs::read_to_string(&path).unwrap_or_default();
        let Some((_, fields)) = stat.rsplit_once(") ") else { return Duration::ZERO };
        let fields: Vec<&str> = fields.split(' ').collect();
        if fields[0] == "Z" {
            // Counted in hundredths of a second.
            let ticks = |at: usize| fields.get(at).and_then(|f| f.parse::<u32>().ok()).unwrap_or(0);
            return TICK * (ticks(11) + ticks(12));
        }
        std::thread::sleep(TICK);
    }
}

/// The rows: numbers in order, random telephone numbers, names of a few words and a number.
fn generate(path: &PathBuf, rows: u64) -> Result<(), String> {
    let error = |e: std::io::Error| format!("{}: {e}", path.display());
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path).map_err(error)?);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let pick = |words: &[&'static str], random: u64| words[random as usize % words.len()];
    for id in 1..=rows {
        let (phone, name) = (next(), next());
        let (country, first, second) = (pick(COUNTRIES, phone), pick(FIRST, name), pick(SECOND, name >> 8));
        let joint = if name >> 40 & 1 == 0 { "_" } else { "" };
        let number = (phone >> 8) % 1_000_000_000;
        writeln!(out, "{id}\t+{country}{number:09}\t{first}{joint}{second}{}", (name >> 16) % 10_000).map_err(error)?;
    }
    out.flush().map_err(error)
}
