//! A sample loaded into a Melba server, once by each method: sizes, and the time of a read and a write.

use std::io::Write as _;
use std::time::{Duration, Instant};

use postgres::{Client, CopyInWriter, NoTls};

use crate::Result;
use crate::database::{number, quoted, shown};
use crate::sample::{Column, Row, Sample, write_field};

/// Steps for a column beside a trial by each read budget: lz4, zstd, and its sections. A table takes as many, but one.
pub const STEPS: usize = 3;
const TABLE: &str = "melba_advise_trial";
/// Single reads of a trial, after some that fill the caches.
const READS: u64 = 300;
const READS_BEFORE: u64 = 50;
/// A table is steady when its size stayed the same for this many checks.
const SETTLED_LOOKS: usize = 4;
const SETTLED_WITHIN: usize = 1500;
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A column's size by one method, without its keys.
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
}

/// The sample's size with all of its columns, those on which methods are tried by one of them, and the primary key.
#[derive(Clone, Copy, Debug)]
pub struct Together {
    pub method: &'static str,
    pub budget: Option<f64>,
    pub bytes: f64,
}

/// All trials of a sample.
#[derive(Debug)]
pub struct Trials {
    pub columns: Vec<ColumnTrials>,
    pub together: Vec<Together>,
    /// The server's memory for rows and blocks, by which sections are made.
    pub memory_bytes: u64,
    /// Bytes of the trials' own keys.
    key_bytes: f64,
}

/// `server`: libpq's keywords without the database.
pub fn connect(server: &str) -> Result<Client> {
    let mut config: postgres::Config = server.parse().map_err(|e| shown(&e))?;
    config.dbname("postgres");
    config.connect(NoTls).map_err(|e| shown(&e))
}

impl Trials {
    pub fn new(sample: &Sample) -> Trials {
        let columns = sample.candidates().into_iter().map(|column| ColumnTrials { column, ..ColumnTrials::default() }).collect();
        Trials { columns, together: Vec::new(), memory_bytes: 0, key_bytes: 0.0 }
    }

    /// The trials that a server with this read budget allows; on the first server all others, too.
    pub fn run(&mut self, client: &mut Client, sample: &Sample, budget: f64, step: &mut dyn FnMut()) -> Result<()> {
        let is_first = self.together.is_empty();
        let mut methods = vec![("dense", Some(budget))];
        if is_first {
            let buffers = number(client, "SELECT setting::bigint * 8192 FROM pg_settings WHERE name = 'shared_buffers'")?;
            self.memory_bytes = buffers as u64;
            self.key_bytes = load(client, sample, None, "")?.bytes;
            methods.splice(0..0, [("lz4", None), ("zstd", None)]);
        }
        for at in 0..self.columns.len() {
            let column = self.columns[at].column;
            for &(method, budget) in &methods {
                let loaded = load(client, sample, Some(column), method)?;
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
        for (method, budget) in methods {
            let bytes = load_together(client, sample, method, |each| sample.rows.iter().try_for_each(each))?;
            self.together.push(Together { method, budget, bytes });
            step();
        }
        drop_table(client)
    }

    /// The sample's size by a method beside the sizes of its columns alone. It has other columns, the primary key, and the effect
    /// that long rows move values out that short ones keep.
    pub fn rest_bytes(&self, method: &str, budget: Option<f64>) -> f64 {
        let is_same = |other: &str, own: Option<f64>| other == method && own == budget;
        let together = self.together.iter().find(|t| is_same(t.method, t.budget)).map_or(0.0, |t| t.bytes);
        let trials = self.columns.iter().flat_map(|column| &column.trials);
        together - trials.filter(|t| is_same(t.method, t.budget)).map(|t| t.bytes).sum::<f64>()
    }
}

struct Loaded {
    /// Without indexes.
    bytes: f64,
    write_us: f64,
}

/// Loads one column beside a key of numbers; without a column, the key alone.
fn load(client: &mut Client, sample: &Sample, column: Option<usize>, method: &str) -> Result<Loaded> {
    let value = column.map(|at| format!(", v {} COMPRESSION {method}", sample.columns[at].type_name));
    create(client, &format!("id bigint PRIMARY KEY{}", value.unwrap_or_default()))?;
    fill(client, sample, |row, id, out| {
        // Writing into memory does not fail.
        let _ = write!(out, "{id}");
        if let Some(at) = column {
            out.push(b'\t');
            write_field(row[at].as_deref(), out);
        }
    })
}

fn drop_table(client: &mut Client) -> Result<()> {
    execute(client, &format!("DROP TABLE IF EXISTS {TABLE}"))
}

/// The table's primary key, as CREATE TABLE takes it.
fn primary_key(sample: &Sample) -> Option<String> {
    let key: Vec<String> = sample.columns.iter().filter(|c| c.in_primary_key).map(|c| quoted(&c.name)).collect();
    (!key.is_empty()).then(|| format!("PRIMARY KEY ({})", key.join(", ")))
}

fn create(client: &mut Client, columns: &str) -> Result<()> {
    drop_table(client)?;
    execute(client, &format!("CREATE TABLE {TABLE} ({columns})"))
}

/// Copies rows into the table and lets the background work end.
fn fill(client: &mut Client, sample: &Sample, line: impl Fn(&Row, usize, &mut Vec<u8>)) -> Result<Loaded> {
    let started = Instant::now();
    let mut loading = Loading::start(client)?;
    sample.rows.iter().enumerate().try_for_each(|(id, row)| loading.line(|out| line(row, id, out)))?;
    loading.finish()?;
    let write_us = started.elapsed().as_secs_f64() * 1e6 / sample.rows.len().max(1) as f64;
    steady_bytes(client)?;
    Ok(Loaded { bytes: number(client, &format!("SELECT pg_table_size('{TABLE}')"))?, write_us })
}

/// Loads rows of all columns, those on which methods are tried by one, and returns their size with the primary key.
pub fn load_together(
    client: &mut Client,
    sample: &Sample,
    method: &str,
    rows: impl FnOnce(&mut dyn FnMut(&Row) -> Result<()>) -> Result<()>,
) -> Result<f64> {
    let candidates = sample.candidates();
    let definition = |(at, column): (usize, &Column)| {
        let method = if candidates.contains(&at) { format!(" COMPRESSION {method}") } else { String::new() };
        format!("{} {}{method}", quoted(&column.name), column.type_name)
    };
    let mut parts: Vec<String> = sample.columns.iter().enumerate().map(definition).collect();
    parts.extend(primary_key(sample));
    create(client, &parts.join(", "))?;
    let mut loading = Loading::start(client)?;
    rows(&mut |row| {
        loading.line(|out| {
            for (at, value) in row.iter().enumerate() {
                if at > 0 {
                    out.push(b'\t');
                }
                write_field(value.as_deref(), out);
            }
        })
    })?;
    loading.finish()?;
    let bytes = steady_bytes(client)?;
    drop_table(client)?;
    Ok(bytes)
}

/// Lines of COPY on their way into the table.
struct Loading<'a> {
    writer: CopyInWriter<'a>,
    data: Vec<u8>,
}

impl Loading<'_> {
    fn start(client: &mut Client) -> Result<Loading<'_>> {
        let writer = client.copy_in(&format!("COPY {TABLE} FROM STDIN")).map_err(|e| shown(&e))?;
        Ok(Loading { writer, data: Vec::new() })
    }

    /// Sends a line that is appended without its end.
    fn line(&mut self, append: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        append(&mut self.data);
        self.data.push(b'\n');
        if self.data.len() > 1 << 20 { self.send() } else { Ok(()) }
    }

    fn send(&mut self) -> Result<()> {
        self.writer.write_all(&self.data).map_err(|e| e.to_string())?;
        self.data.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.send()?;
        self.writer.finish().map(drop).map_err(|e| shown(&e))
    }
}

/// The table's size when background work on it has ended.
fn steady_bytes(client: &mut Client) -> Result<f64> {
    // Rows still in memory have another size.
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
    Ok(bytes)
}

/// Microseconds of single reads by key, cached: the median and the 99th percentile.
fn read(client: &mut Client, rows: u64) -> Result<(f64, f64)> {
    let statement = client.prepare(&format!("SELECT v FROM {TABLE} WHERE id = $1")).map_err(|e| shown(&e))?;
    let mut times = Vec::new();
    for n in 0..READS_BEFORE + READS {
        // Steps of a prime visit all rows; the first reads are repeated.
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
