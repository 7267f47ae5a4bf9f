//! `cargo xtask soak`: all kinds of requests, by many connections at once, while other programs keep the processors busy; each
//! answer is counted, and none may take longer than 30 seconds.
//!
//! Every fourth connection is encrypted, if there is an `openssl` for that and the server is ours.
//!
//! Threads of an overloaded machine are preempted anywhere, which produces orders of events that a quiet machine never shows.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::melba::{Address, Melba};
use crate::messages::Wire;

pub struct Options {
    pub connections: u32,
    pub seconds: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { connections: 64, seconds: 40 }
    }
}

/// One connection in this many uses TLS.
const ENCRYPTED_SHARE: u64 = 4;
/// Busy processes for each processor.
const BUSY: usize = 4;
const PATIENCE: Duration = Duration::from_secs(30);
const HOT_ROWS: u64 = 4;

/// A kind of request: its name, and the function that sends one and checks the answer.
type Mode = (&'static str, fn(&mut Client) -> Result<(), String>);

const MODES: [Mode; 16] = [
    ("simple", simple),
    ("several in one", several),
    ("many rows", many_rows),
    ("update", update),
    ("block", block),
    ("rollback", rollback),
    ("error", error),
    ("savepoint", savepoint),
    ("extended", extended),
    ("prepared", prepared),
    ("pipeline", pipeline),
    ("pipeline with error", pipeline_with_error),
    ("flush", flush),
    ("copy", copy),
    ("lock", lock),
    ("cancel", cancel),
];

struct Client {
    wire: Wire,
    number: u64,
    random: u64,
}

/// Processes that do nothing, as fast as they can; killed when dropped.
struct Busy(Vec<Child>);

impl Busy {
    fn start() -> Result<Busy, String> {
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
        let mut busy = Busy(Vec::new());
        for _ in 0..BUSY * processors {
            let mut command = Command::new("sh");
            command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
            busy.0.push(command.spawn().map_err(|e| format!("sh: {e}"))?);
        }
        Ok(busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub fn soak(options: &Options, server: Option<Address>) -> Result<(), String> {
    let melba = if server.is_none() { Some(Melba::fresh_with("soak", &["--tls-self-signed"])?) } else { None };
    let encrypts = melba.is_some() && has_openssl();
    let address = server.or_else(|| melba.as_ref().map(|m| m.address.clone())).ok_or("no server")?;
    prepare(&address, options.connections)?;
    let busy = Busy::start()?;
    let counts: Arc<[AtomicU64; MODES.len()]> = Arc::new(Default::default());
    let until = Instant::now() + Duration::from_secs(options.seconds.into());
    let clients: Vec<_> = (0..options.connections.into())
        .map(|number| {
            let (address, counts) = (address.clone(), Arc::clone(&counts));
            let encrypt = encrypts && number % ENCRYPTED_SHARE == 1;
            std::thread::spawn(move || run_client(&address, number, encrypt, &counts, until))
        })
        .collect();
    let (mut longest, mut received, mut failures) = (Duration::ZERO, 0, Vec::new());
    for client in clients {
        match client.join().map_err(|_| "a client panicked")? {
            Ok(wire) => (longest, received) = (longest.max(wire.longest), received + wire.received),
            Err(e) => failures.push(e),
        }
    }
    drop(busy);
    if !failures.is_empty() {
        return Err(format!("soak: {} of {} connections failed\n{}", failures.len(), options.connections, failures.join("\n")));
    }
    let of_modes: Vec<String> =
        MODES.iter().zip(&*counts).map(|((name, _), n)| format!("{name} {}", n.load(Ordering::Relaxed))).collect();
    let asked: u64 = counts.iter().map(|n| n.load(Ordering::Relaxed)).sum();
    println!("ok      soak: {asked} exchanges, {received} messages, the latest after {:.1} s", longest.as_secs_f64());
    println!("        {}", of_modes.join(", "));
    if !encrypts {
        println!("skipped soak over TLS: it needs openssl and a server of its own");
    }
    if let Some((name, _)) = MODES.iter().zip(&*counts).find(|(_, n)| n.load(Ordering::Relaxed) == 0).map(|(mode, _)| mode) {
        return Err(format!("soak: nothing was asked by \"{name}\""));
    }
    melba.map_or(Ok(()), Melba::stop)
}

fn prepare(address: &Address, connections: u32) -> Result<(), String> {
    let mut wire = Wire::connect(address, PATIENCE)?;
    wire.query(&format!(
        "drop table if exists soak, soak_copy; create table soak (id int primary key, n int not null); \
         insert into soak select i, 0 from generate_series(0, {}) i; create table soak_copy (id int, t text)",
        u64::from(connections) + HOT_ROWS - 1
    ));
    wire.send()?;
    match wire.until(b'Z')?.trim_start_matches('N') {
        "CCCCZ" => Ok(()),
        other => Err(format!("soak: the tables could not be made: {other}")),
    }
}

fn has_openssl() -> bool {
    let mut command = Command::new("openssl");
    command.arg("version").stdout(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn run_client(
    address: &Address,
    number: u64,
    encrypt: bool,
    counts: &[AtomicU64; MODES.len()],
    until: Instant,
) -> Result<Wire, String> {
    let wire = if encrypt { Wire::connect_encrypted(address, PATIENCE) } else { Wire::connect(address, PATIENCE) };
    let wire = wire.map_err(|e| format!("connection {number}: {e}"))?;
    let mut client = Client { wire, number, random: number * 2 + 1 };
    client.set_up().map_err(|e| format!("connection {number}: {e}"))?;
    let mut asked = 0u64;
    while Instant::now() < until {
        let mode = client.below(MODES.len() as u64) as usize;
        let (name, ask) = MODES[mode];
        ask(&mut client).map_err(|e| format!("connection {number}, {name}, after {asked} exchanges: {e}"))?;
        counts[mode].fetch_add(1, Ordering::Relaxed);
        asked += 1;
    }
    client.wire.put(b'X', &[]);
    client.wire.send()?;
    Ok(client.wire)
}

impl Client {
    /// Half of the connections commit asynchronously.
    fn set_up(&mut self) -> Result<(), String> {
        let commit = if self.number.is_multiple_of(2) { "on" } else { "off" };
        self.ask(&format!("set synchronous_commit = {commit}"), &["CSZ", "CZ"])?;
        self.wire.parse("by_id", "select n from soak where id = $1");
        self.wire.parse("add", "update soak set n = n + 1 where id = $1");
        self.wire.sync();
        self.answer(&["11Z"])
    }

    /// A number below `limit` (xorshift).
    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % limit
    }

    /// The row that no other connection changes.
    fn own_row(&self) -> u64 {
        HOT_ROWS + self.number
    }

    fn ask(&mut self, text: &str, expected: &[&str]) -> Result<(), String> {
        self.wire.query(text);
        self.answer(expected).map_err(|e| format!("{text}: {e}"))
    }

    /// Sends the put messages, and reads one answer up to ReadyForQuery.
    fn answer(&mut self, expected: &[&str]) -> Result<(), String> {
        self.wire.send()?;
        self.expect(b'Z', expected)
    }

    fn expect(&mut self, last: u8, expected: &[&str]) -> Result<(), String> {
        let answer = self.wire.until(last)?;
        if expected.contains(&answer.as_str()) { Ok(()) } else { Err(format!("{answer} instead of {}", expected.join(" or "))) }
    }
}

fn simple(c: &mut Client) -> Result<(), String> {
    c.ask("select 1", &["TDCZ"])
}

fn several(c: &mut Client) -> Result<(), String> {
    let row = c.own_row();
    c.ask(&format!("select 1; update soak set n = n + 1 where id = {row}; select 2"), &["TDCCTDCZ"])
}

fn many_rows(c: &mut Client) -> Result<(), String> {
    c.ask("select i, repeat('x', 100) from generate_series(1, 1000) i", &["TDCZ"])?;
    c.ask("select sum(n), count(*) from soak", &["TDCZ"])
}

fn update(c: &mut Client) -> Result<(), String> {
    let row = c.own_row();
    c.ask(&format!("update soak set n = n + 1 where id = {row}"), &["CZ"])
}

fn block(c: &mut Client) -> Result<(), String> {
    let row = c.own_row();
    c.ask("begin", &["CZ"])?;
    c.ask(&format!("update soak set n = n + 1 where id = {row}"), &["CZ"])?;
    c.ask(&format!("select n from soak where id = {row}"), &["TDCZ"])?;
    c.ask("commit", &["CZ"])
}

fn rollback(c: &mut Client) -> Result<(), String> {
    let row = c.own_row();
    c.ask(&format!("begin; update soak set n = n + 1 where id = {row}"), &["CCZ"])?;
    c.ask("rollback", &["CZ"])
}

fn error(c: &mut Client) -> Result<(), String> {
    c.ask("select 1 / 0", &["TE[22012]Z", "E[22012]Z"])?;
    c.ask("begin; select no_such_column", &["CE[42703]Z"])?;
    c.ask("select 1", &["E[25P02]Z"])?;
    c.ask("commit", &["CZ"])
}

fn savepoint(c: &mut Client) -> Result<(), String> {
    let row = c.own_row();
    c.ask("begin; savepoint s", &["CCZ"])?;
    c.ask(&format!("update soak set n = n / 0 where id = {row}"), &["E[22012]Z"])?;
    c.ask("rollback to s", &["CZ"])?;
    c.ask("commit", &["CZ"])
}

fn extended(c: &mut Client) -> Result<(), String> {
    let row = c.own_row().to_string();
    c.wire.parse("", "select n, $1::text from soak where id = $2::int");
    c.wire.bind("", &["text", &row]);
    c.wire.put(b'D', &[b"P\0"]);
    c.wire.execute();
    c.wire.sync();
    c.answer(&["12TDCZ"])
}

fn prepared(c: &mut Client) -> Result<(), String> {
    let row = c.own_row().to_string();
    for (name, expected) in [("by_id", "2DCZ"), ("add", "2CZ")] {
        c.wire.bind(name, &[&row]);
        c.wire.execute();
        c.wire.sync();
        c.answer(&[expected])?;
    }
    Ok(())
}

/// Several statements for each Sync, several of those in one send.
fn pipeline(c: &mut Client) -> Result<(), String> {
    let row = c.own_row().to_string();
    for _ in 0..4 {
        for name in ["by_id", "add", "by_id"] {
            c.wire.bind(name, &[&row]);
            c.wire.execute();
        }
        c.wire.sync();
    }
    c.wire.send()?;
    (0..4).try_for_each(|_| c.expect(b'Z', &["2DC2C2DCZ"]))
}

/// Messages after an error are skipped up to the next Sync.
fn pipeline_with_error(c: &mut Client) -> Result<(), String> {
    let row = c.own_row().to_string();
    c.wire.bind("add", &[&row]);
    c.wire.execute();
    c.wire.bind("by_id", &["no number"]);
    c.wire.execute();
    c.wire.bind("add", &[&row]);
    c.wire.execute();
    c.wire.sync();
    c.wire.bind("by_id", &[&row]);
    c.wire.execute();
    c.wire.sync();
    c.answer(&["2CE[22P02]Z"])?;
    c.expect(b'Z', &["2DCZ"])
}

/// Flush instead of Sync: the answer comes, the transaction stays open.
fn flush(c: &mut Client) -> Result<(), String> {
    let row = c.own_row().to_string();
    c.wire.bind("add", &[&row]);
    c.wire.execute();
    c.wire.put(b'H', &[]);
    c.wire.send()?;
    c.expect(b'C', &["2C"])?;
    c.wire.bind("by_id", &[&row]);
    c.wire.execute();
    c.wire.put(b'H', &[]);
    c.wire.send()?;
    c.expect(b'C', &["2DC"])?;
    c.wire.sync();
    c.answer(&["Z"])
}

fn copy(c: &mut Client) -> Result<(), String> {
    let number = c.number;
    c.wire.query("copy soak_copy from stdin");
    c.wire.send()?;
    c.expect(b'G', &["G"])?;
    for n in 0..50 {
        c.wire.put(b'd', &[format!("{number}\ttext {n}\n").as_bytes()]);
        if n == 25 {
            c.wire.send()?;
        }
    }
    if c.below(4) == 0 {
        c.wire.put(b'f', &[b"enough\0"]);
        return c.answer(&["E[57014]Z"]);
    }
    c.wire.put(b'c', &[]);
    c.answer(&["CZ"])?;
    c.ask(&format!("copy (select * from soak_copy where id = {number}) to stdout"), &["HdcCZ"])?;
    c.ask(&format!("delete from soak_copy where id = {number}"), &["CZ"])
}

/// Rows and advisory locks that all connections want.
fn lock(c: &mut Client) -> Result<(), String> {
    let row = c.below(HOT_ROWS);
    c.ask(&format!("update soak set n = n + 1 where id = {row}"), &["CZ"])?;
    c.ask(&format!("begin; select n from soak where id = {row} for update"), &["CTDCZ"])?;
    c.ask(&format!("update soak set n = n - 1 where id = {row}"), &["CZ"])?;
    c.ask("commit", &["CZ"])?;
    c.ask(&format!("select pg_advisory_lock({row})"), &["TDCZ"])?;
    // The commit's answer, and the unlock behind it, in one send.
    let own = c.own_row();
    c.wire.query(&format!("update soak set n = n + 1 where id = {own}"));
    c.wire.query(&format!("select pg_advisory_unlock({row})"));
    c.answer(&["CZ"])?;
    c.expect(b'Z', &["TDCZ"])
}

fn cancel(c: &mut Client) -> Result<(), String> {
    let canceller = c.wire.canceller()?;
    let text = match c.below(3) {
        0 => "select pg_sleep(0.1)",
        1 => "select count(*) from generate_series(1, 50000)",
        _ => "update soak set n = n where id < 2",
    };
    c.wire.query(text);
    c.wire.send()?;
    let thread = std::thread::spawn(canceller);
    let answer = c.expect(b'Z', &["TDCZ", "CZ", "E[57014]Z", "TE[57014]Z"]).map_err(|e| format!("{text}: {e}"));
    // The next statement is not to be cancelled instead.
    thread.join().map_err(|_| "the canceller panicked")??;
    answer
}
