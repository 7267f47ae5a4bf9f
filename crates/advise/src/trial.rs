//! A sample loaded into a Melba server, once by each method: sizes, and what a read and a write take.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};

use crate::Result;
use crate::database::{number, quoted, shown};
use crate::sample::{Sample, write_field};

/// Trials of a column beside those of each read budget: lz4, zstd, dense of the first half.
pub const STEPS: usize = 3;
const TABLE: &str = "melba_advise_trial";
/// Single reads of a trial, after some that fill the caches.
const READS: u64 = 300;
const READS_BEFORE: u64 = 50;
/// A table has settled when its size stayed the same for so many looks.
const SETTLED_LOOKS: usize = 4;
const SETTLED_WITHIN: usize = 300;
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What a column took by one method, without its keys.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    pub method: &'static str,
    /// Of dense: milliseconds that a read may take.
    pub budget: Option<f64>,
    /// Of the sample.
    pub bytes: f64,
    pub read_p50_us: f64,
    pub read_p99_us: f64,
    pub write_us: f64,
}

#[derive(Debug, Default)]
pub struct ColumnTrials {
    pub column: usize,
    pub trials: Vec<Trial>,
    /// Of half of the sample, dense, by the first budget.
    pub half_bytes: f64,
}

/// All trials of a sample.
#[derive(Debug)]
pub struct Trials {
    pub columns: Vec<ColumnTrials>,
    /// Bytes of the columns that no method is tried on, with the primary key; `None`: not tried yet.
    pub rest_bytes: Option<f64>,
    /// Bytes of lz4 that a dense section takes in, as the server's memory has it.
    pub section_lz4_bytes: f64,
    /// Bytes of the trials' own keys.
    key_bytes: f64,
}

/// A dense section's values, compressed by lz4, take a share of the server's memory, and at most so many bytes.
const SECTION_SHARE: f64 = 16.0;
const SECTION_LZ4_BYTES_MAX: f64 = (64 << 20) as f64;

pub fn connect(address: SocketAddr) -> Result<Client> {
    let mut config = postgres::Config::new();
    config.host(&address.ip().to_string()).port(address.port()).user("postgres").dbname("postgres");
    config.connect(NoTls).map_err(|e| shown(&e))
}

impl Trials {
    pub fn new(sample: &Sample) -> Trials {
        let columns = sample.candidates().into_iter().map(|column| ColumnTrials { column, ..ColumnTrials::default() }).collect();
        Trials { columns, rest_bytes: None, section_lz4_bytes: SECTION_LZ4_BYTES_MAX, key_bytes: 0.0 }
    }

    /// What can be tried on a server with this read budget; on the first one everything else, too.
    pub fn run(&mut self, client: &mut Client, sample: &Sample, budget: f64, step: &mut dyn FnMut()) -> Result<()> {
        let is_first = self.rest_bytes.is_none();
        let all: Vec<usize> = (0..sample.rows.len()).collect();
        if is_first {
            let buffers = number(client, "SELECT setting::bigint * 8192 FROM pg_settings WHERE name = 'shared_buffers'")?;
            self.section_lz4_bytes = (buffers / SECTION_SHARE).clamp(1.0, SECTION_LZ4_BYTES_MAX);
            self.rest_bytes = Some(self.try_rest(client, sample)?);
            step();
        }
        for at in 0..self.columns.len() {
            let column = self.columns[at].column;
            let mut methods = vec![("dense", Some(budget))];
            if is_first {
                methods.splice(0..0, [("lz4", None), ("zstd", None)]);
                let half = load(client, sample, Some(column), "dense", &sample.half())?;
                self.columns[at].half_bytes = (half.bytes - self.key_bytes / 2.0).max(1.0);
                step();
            }
            for (method, budget) in methods {
                let loaded = load(client, sample, Some(column), method, &all)?;
                let (read_p50_us, read_p99_us) = read(client, sample.rows.len() as u64)?;
                let bytes = (loaded.bytes - self.key_bytes).max(1.0);
                self.columns[at].trials.push(Trial {
                    method,
                    budget,
                    bytes,
                    read_p50_us,
                    read_p99_us,
                    write_us: loaded.write_us,
                });
                step();
            }
        }
        execute(client, &format!("DROP TABLE IF EXISTS {TABLE}"))
    }

    /// The columns that no method is tried on, and the primary key; and what the trials' own keys take.
    fn try_rest(&mut self, client: &mut Client, sample: &Sample) -> Result<f64> {
        let all: Vec<usize> = (0..sample.rows.len()).collect();
        self.key_bytes = load(client, sample, None, "", &all)?.bytes;
        let candidates = sample.candidates();
        let rest: Vec<usize> = (0..sample.columns.len()).filter(|at| !candidates.contains(at)).collect();
        if rest.is_empty() {
            return Ok(0.0);
        }
        let definition = |at: &usize| format!("{} {}", quoted(&sample.columns[*at].name), sample.columns[*at].type_name);
        let key: Vec<String> =
            rest.iter().filter(|at| sample.columns[**at].in_primary_key).map(|at| quoted(&sample.columns[*at].name)).collect();
        let mut parts: Vec<String> = rest.iter().map(definition).collect();
        if !key.is_empty() {
            parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
        }
        create(client, &parts.join(", "))?;
        let loaded = fill(client, sample, &all, |row, _, out| {
            for (i, at) in rest.iter().enumerate() {
                if i > 0 {
                    out.push(b'\t');
                }
                write_field(row[*at].as_deref(), out);
            }
        })?;
        Ok(loaded.bytes)
    }
}

struct Loaded {
    bytes: f64,
    write_us: f64,
}

/// Loads one column of some rows beside a key of numbers; without a column, the key alone.
fn load(client: &mut Client, sample: &Sample, column: Option<usize>, method: &str, rows: &[usize]) -> Result<Loaded> {
    let value = column.map(|at| format!(", v {} COMPRESSION {method}", sample.columns[at].type_name));
    create(client, &format!("id bigint PRIMARY KEY{}", value.unwrap_or_default()))?;
    fill(client, sample, rows, |row, id, out| {
        // Writing into memory does not fail.
        let _ = write!(out, "{id}");
        if let Some(at) = column {
            out.push(b'\t');
            write_field(row[at].as_deref(), out);
        }
    })
}

fn create(client: &mut Client, columns: &str) -> Result<()> {
    execute(client, &format!("DROP TABLE IF EXISTS {TABLE}"))?;
    execute(client, &format!("CREATE TABLE {TABLE} ({columns})"))
}

/// Copies rows into the table and lets the background work end.
fn fill(
    client: &mut Client,
    sample: &Sample,
    rows: &[usize],
    line: impl Fn(&crate::sample::Row, usize, &mut Vec<u8>),
) -> Result<Loaded> {
    let sql = format!("COPY {TABLE} FROM STDIN");
    let started = Instant::now();
    let mut writer = client.copy_in(&sql).map_err(|e| shown(&e))?;
    let mut data = Vec::new();
    for (id, row) in rows.iter().enumerate() {
        line(&sample.rows[*row], id, &mut data);
        data.push(b'\n');
        if data.len() > 1 << 20 {
            writer.write_all(&data).map_err(|e| e.to_string())?;
            data.clear();
        }
    }
    writer.write_all(&data).map_err(|e| e.to_string())?;
    writer.finish().map_err(|e| shown(&e))?;
    let write_us = started.elapsed().as_secs_f64() * 1e6 / rows.len().max(1) as f64;
    // Of what is still in memory, the size is another.
    execute(client, "CHECKPOINT")?;
    execute(client, &format!("VACUUM {TABLE}"))?;
    let size = format!("SELECT pg_total_relation_size('{TABLE}')");
    let (mut bytes, mut same) = (number(client, &size)?, 0);
    for _ in 0..SETTLED_WITHIN {
        std::thread::sleep(LOOK_EVERY);
        let now = number(client, &size)?;
        same = if now == bytes { same + 1 } else { 0 };
        bytes = now;
        if same == SETTLED_LOOKS {
            break;
        }
    }
    Ok(Loaded { bytes, write_us })
}

/// Microseconds of single reads by key, cached: the median and the 99th percentile.
fn read(client: &mut Client, rows: u64) -> Result<(f64, f64)> {
    let statement = client.prepare(&format!("SELECT v FROM {TABLE} WHERE id = $1")).map_err(|e| shown(&e))?;
    let mut times = Vec::new();
    for n in 0..READS_BEFORE + READS {
        // Steps of a prime go everywhere; the first reads come again.
        let id = (n % (READS / 2) * 1_000_003 % rows.max(1)) as i64;
        let started = Instant::now();
        client.query_opt(&statement, &[&id]).map_err(|e| shown(&e))?;
        if n >= READS_BEFORE {
            times.push(started.elapsed().as_secs_f64() * 1e6);
        }
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or(f64::NAN);
    Ok((at(0.5), at(0.99)))
}

fn execute(client: &mut Client, sql: &str) -> Result<()> {
    client.batch_execute(sql).map_err(|e| format!("{}, in {sql}", shown(&e)))
}
