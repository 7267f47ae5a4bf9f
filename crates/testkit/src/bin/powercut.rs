//! Cuts the power of a real server, and lets its disk fail, while sessions with known transactions work on it; judges the data
//! that a server finds afterwards. `cargo xtask powercut` starts it.

#![allow(clippy::disallowed_methods, reason = "it tests a server from outside, by real time")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use melba_testkit::powercut::{Client, Disk, EntryKind, Journal, Server, Sessions};
use melba_vfs::{Random, SeededRandom};
use melba_workload::{Connection, Failure, Found, Operation, Session, judge, read, schema};

const USAGE: &str = "usage: powercut BINARY LIBRARY FOLDER [--rounds N] [--cuts N] [--faults N] [--millis N] [--seed N] [--lie PATH] \
     [--fault OPERATION:FIRST:TIMES:ERRNO]";

const SESSIONS: u32 = 6;
/// Percentages of the changes not yet durable that a cut keeps.
const KEPT: [usize; 5] = [0, 10, 50, 90, 100];

struct Options {
    binary: PathBuf,
    library: PathBuf,
    folder: PathBuf,
    /// Lives of the server, each on the data that the last cut of the one before has left.
    rounds: u64,
    /// Cuts of each life.
    cuts: u64,
    /// Lives in which the disk fails.
    faults: u64,
    /// How long sessions work in each life.
    millis: u64,
    seed: u64,
    lie: Option<String>,
    fault: Option<String>,
}

fn options() -> Result<Options, String> {
    let mut arguments = std::env::args().skip(1);
    let mut path = || arguments.next().map(PathBuf::from).ok_or(USAGE);
    let (binary, library, folder) = (path()?, path()?, path()?);
    let mut options =
        Options { binary, library, folder, rounds: 3, cuts: 5, faults: 8, millis: 1500, seed: 1, lie: None, fault: None };
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        let number = || value.parse().map_err(|_| format!("{name}: {value} is no number"));
        match name.as_str() {
            "--rounds" => options.rounds = number()?,
            "--cuts" => options.cuts = number()?,
            "--faults" => options.faults = number()?,
            "--millis" => options.millis = number()?,
            "--seed" => options.seed = number()?,
            "--lie" => options.lie = Some(value),
            "--fault" => options.fault = Some(value),
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(options)
}

fn main() -> Result<(), String> {
    let run = PowercutRun { options: options()? };
    std::fs::create_dir_all(&run.options.folder).map_err(|e| format!("{}: {e}", run.options.folder.display()))?;
    run.power_cuts()?;
    run.failing_disks()?;
    std::fs::remove_dir_all(&run.options.folder).map_err(|e| format!("{}: {e}", run.options.folder.display()))
}

struct PowercutRun {
    options: Options,
}

/// One life of a server: its initial disk, its operations on it, and the answers to its sessions.
struct Life {
    disk: Disk,
    journal: Journal,
    sessions: Vec<Session>,
    /// From here on the disk has the tables.
    tables: u64,
    /// It ended by a clean stop, after which unlogged rows are whole.
    stopped: bool,
}

impl PowercutRun {
    fn path(&self, name: &str) -> PathBuf {
        self.options.folder.join(name)
    }

    fn start(&self, data: &Path, environment: &[(&str, String)]) -> Result<Server, String> {
        Server::start(&self.options.binary, data, &self.path("log"), environment)
    }

    /// A server with the library before it.
    fn start_observed(&self, fault: Option<&str>) -> Result<Server, String> {
        let text = |path: &Path| path.display().to_string();
        let mut environment = vec![
            ("LD_PRELOAD", text(&self.options.library)),
            ("POWERCUT_FOLDER", text(&self.path("data"))),
            ("POWERCUT_JOURNAL", text(&self.path("journal"))),
        ];
        environment.extend(fault.map(|fault| ("POWERCUT_FAULT", fault.to_owned())));
        self.start(&self.path("data"), &environment)
    }

    fn power_cuts(&self) -> Result<(), String> {
        let mut disk = Disk::default();
        let mut sessions: Vec<Session> = (0..SESSIONS).map(Session::new).collect();
        for round in 0..self.options.rounds {
            let seed = self.options.seed.wrapping_mul(10_000) + round;
            let life = self.live(disk, sessions, round == 0, seed, None)?.ok_or("a life without trouble ended early")?;
            let random = SeededRandom::new(seed);
            let mut last = None;
            let mut lost = 0;
            for cut in 0..self.options.cuts {
                // The next life needs the tables.
                let place = place(&life, &random, cut + 1 == self.options.cuts);
                let (found, left) = self.judged(&life, place, &random)?;
                lost += life.sessions.iter().map(|s| s.attempts.len()).sum::<usize>() - left.iter().sum::<usize>();
                last = Some((found, left));
            }
            let (after, left) = last.ok_or(USAGE)?;
            let tried: usize = life.sessions.iter().map(|s| s.attempts.len()).sum();
            println!(
                "ok      powercut {}: {} operations on files, {tried} transactions, {} cuts, {lost} transactions without an \
                 acknowledgement that binds lost",
                round + 1,
                life.journal.records.len(),
                self.options.cuts
            );
            sessions = life.sessions;
            sessions.iter_mut().zip(left).for_each(|(session, left)| session.rebase(left));
            disk = after;
        }
        Ok(())
    }

    /// Lives of one fault each.
    fn failing_disks(&self) -> Result<(), String> {
        for number in 0..if self.options.fault.is_some() { 1 } else { self.options.faults } {
            let seed = self.options.seed.wrapping_mul(10_000) + 1000 + number;
            let random = SeededRandom::new(seed);
            let fault = self.options.fault.clone().unwrap_or_else(|| random_fault(&random));
            let sessions = (0..SESSIONS).map(Session::new).collect();
            let failed = |e: String| format!("{e}\nthe fault was {fault}");
            match self.live(Disk::default(), sessions, true, seed, Some(&fault)).map_err(failed)? {
                None => println!("ok      powercut fault {fault}: the server refused to start"),
                Some(life) => {
                    let end = life.journal.records.last().map_or(0, |r| r.end);
                    for place in [place(&life, &random, false), end] {
                        self.judged(&life, place, &random).map_err(failed)?;
                    }
                    let tried: usize = life.sessions.iter().map(|s| s.attempts.len()).sum();
                    println!("ok      powercut fault {fault}: {tried} transactions");
                }
            }
        }
        Ok(())
    }

    /// Lets a server live on a disk until it is killed. `None`: a fault ended it before it had its tables.
    fn live(
        &self,
        disk: Disk,
        sessions: Vec<Session>,
        create: bool,
        seed: u64,
        fault: Option<&str>,
    ) -> Result<Option<Life>, String> {
        let io = |e: std::io::Error| format!("the disk: {e}");
        let _ = std::fs::remove_file(self.path("journal"));
        disk.write_to(&self.path("data")).map_err(io)?;
        let mut server = match self.start_observed(fault) {
            Err(e) if fault.is_some() && !e.contains("hangs") => return Ok(None),
            started => started?,
        };
        let journal = self.path("journal");
        if create {
            match create_tables(server.port) {
                Err(e) if fault.is_some() && e.state != "42P07" => return Ok(None),
                created => created.map_err(|e| format!("the tables: {} {}", e.state, e.message))?,
            }
        }
        let tables = if create { std::fs::metadata(&journal).map_err(io)?.len() } else { 0 };
        let working = Sessions::begin(sessions, server.port, journal.clone(), seed, fault.is_some());
        std::thread::sleep(Duration::from_millis(self.options.millis));
        let mut stopped = false;
        let sessions = if fault.is_some() {
            // After any failure there are answers, or the server has ended.
            let sessions = working.end()?;
            if server.is_running() {
                answers(server.port)?;
                if random_half(seed) {
                    stopped = server.stop()?;
                }
            }
            server.kill();
            sessions
        } else {
            server.kill();
            working.end()?
        };
        let journal = Journal::read(&journal)?;
        Ok(Some(Life { disk, journal, sessions, tables, stopped }))
    }

    /// Cuts the power at a place, and judges the data that a server finds then; returns the disk, and the remaining attempts of
    /// each session.
    fn judged(&self, life: &Life, place: u64, random: &SeededRandom) -> Result<(Disk, Vec<usize>), String> {
        let kept = KEPT[random.below(KEPT.len())];
        let lie = self.options.lie.as_deref();
        let disk = life.disk.cut(&life.journal, place, lie, random, kept).map_err(|e| format!("the disk: {e}"))?;
        let data = self.path("cut");
        let failed = |e: String| {
            format!("after a cut at {place} that kept {kept} of 100 unsynced changes: {e}; the disk is {}", data.display())
        };
        disk.write_to(&data).map_err(|e| format!("the disk: {e}"))?;
        let mut server = self.start(&data, &[]).map_err(failed)?;
        let left = if place < life.tables {
            vec![0; life.sessions.len()]
        } else {
            let found = look(server.port).map_err(failed)?;
            let left = judge(&found, &life.sessions, place).map_err(|problems| failed(problems.join("\n")))?;
            if found.scratch != 0 && !(life.stopped && found.scratch == scratch_rows(&life.sessions, &left)) {
                return Err(failed(format!("the unlogged table has rows: {}", found.scratch)));
            }
            if found.scratch == 0 && random.chance(30) {
                server = self.cleanly(server, life, &left, &data).map_err(failed)?;
            }
            left
        };
        if !server.stop()? {
            return Err(failed("the server did not stop cleanly".to_owned()));
        }
        self.check(&data).map_err(failed)?;
        Ok((disk, left))
    }

    /// After a clean stop everything exists, the unlogged table's rows, too.
    fn cleanly(&self, mut server: Server, life: &Life, left: &[usize], data: &Path) -> Result<Server, String> {
        let text = |e: Failure| format!("{} {}", e.state, e.message);
        Client::connect(server.port).and_then(|mut c| c.ask("insert into scratch values (1, 1), (1, 2)")).map_err(text)?;
        if !server.stop()? {
            return Err("the server did not stop cleanly".to_owned());
        }
        let server = self.start(data, &[])?;
        let found = look(server.port)?;
        match judge(&found, &life.sessions, 0) {
            Ok(again) if again == left && found.scratch == 2 => Ok(server),
            Ok(again) => {
                Err(format!("after a clean stop {again:?} transactions, {left:?} before; {} rows unlogged", found.scratch))
            }
            Err(problems) => Err(format!("after a clean stop: {}", problems.join("\n"))),
        }
    }

    fn check(&self, data: &Path) -> Result<(), String> {
        let check = Command::new(&self.options.binary).arg("check").arg("--data").arg(data).output();
        let check = check.map_err(|e| format!("melba check: {e}"))?;
        if check.status.success() {
            Ok(())
        } else {
            Err(format!("melba check: {}", String::from_utf8_lossy(&check.stderr).trim()))
        }
    }
}

/// The rows of the unlogged table that transactions inserted.
fn scratch_rows(sessions: &[Session], left: &[usize]) -> u64 {
    let survivors = sessions.iter().zip(left).flat_map(|(s, left)| &s.attempts[..*left]);
    survivors.flat_map(|a| &a.transaction.operations).filter(|o| matches!(o, Operation::Scratch(_))).count() as u64
}

fn random_half(seed: u64) -> bool {
    SeededRandom::new(seed.wrapping_add(77)).chance(50)
}

fn create_tables(port: u16) -> Result<(), Failure> {
    let mut client = Client::connect(port)?;
    schema().iter().try_for_each(|statement| client.ask(statement).map(drop))
}

fn look(port: u16) -> Result<Found, String> {
    let mut client = Client::connect(port).map_err(|e| format!("connecting: {} {}", e.state, e.message))?;
    read(&mut client)
}

/// A server in trouble still answers, at least with errors.
fn answers(port: u16) -> Result<(), String> {
    let (sender, answer) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _ = Client::connect(port).and_then(|mut c| c.ask("select 1"));
        let _ = sender.send(());
    });
    answer.recv_timeout(Duration::from_secs(20)).map_err(|_| "the server hangs: a new session has no answer".to_owned())
}

/// Where the power fails: at any record, half of the time right after a sync has ended or begun.
fn place(life: &Life, random: &SeededRandom, with_tables: bool) -> u64 {
    let first = if with_tables { life.journal.records.partition_point(|r| r.end <= life.tables) } else { 0 };
    let records = &life.journal.records[first..];
    let Some(last) = records.len().checked_sub(1) else { return life.tables };
    let at = random.below(last + 1);
    let near_sync = |r: &&melba_testkit::powercut::JournalEntry| {
        matches!(r.kind, EntryKind::SyncBegin | EntryKind::SyncEnd | EntryKind::Rename | EntryKind::Remove)
    };
    let record = if random.chance(50) { records[at..].iter().find(near_sync) } else { None };
    record.unwrap_or(&records[at]).end
}

/// Operations that fail: how late at most, how often, and how.
const FAULTS: [(&str, usize, &[u64], &[i32]); 9] = [
    ("sync", 400, &[1, 1000], &[5]),
    ("write", 1500, &[1, 30, 100_000], &[5, 28, 0]),
    ("allocate", 30, &[1, 30], &[28]),
    ("open", 100, &[1, 5], &[5, 24, 28]),
    ("rename", 20, &[1, 3], &[5]),
    ("remove", 20, &[1, 3], &[5]),
    ("read", 300, &[1, 10], &[5]),
    ("length", 10, &[1], &[5]),
    ("write-back", 10, &[1], &[5]),
];

fn random_fault(random: &SeededRandom) -> String {
    let (name, latest, times, errors) = FAULTS[random.below(FAULTS.len())];
    let first = random.next_u64() % latest as u64;
    format!("{name}:{first}:{}:{}", times[random.below(times.len())], errors[random.below(errors.len())])
}
