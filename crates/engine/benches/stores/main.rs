//! The engine beside other embedded stores, in the manner of db_bench:
//! `cargo bench -p melba-engine --bench stores [-- ENTRIES [STORE ...]]`.
//!
//! Keys of 16 bytes, values of 100 that compress to half, as db_bench has them. Each workload runs on every store in turn, so
//! that a slow minute of the machine meets all of them. Prints a Markdown table: thousands of operations per second.
//! With few entries it runs within `cargo test --benches`.

#![allow(clippy::disallowed_methods, reason = "a benchmark by real time")]

mod fjall;
mod melba;
mod redb;
mod store;

use std::path::Path;
use std::time::Instant;

use store::{Key, Open, Store, Sync, VALUE_BYTES, Value};

/// The allocator of the `melba` binary, for all of them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const STORES: [(&str, Open); 3] = [("melba", melba::open), ("fjall", fjall::open), ("redb", redb::open)];
const BATCH: u64 = 1000;
/// Of the transactions that wait for the disk each.
const SYNCED_MAX: u64 = 2000;

/// A bijection of 0..n: every key once, in no order.
struct Shuffle {
    n: u64,
    step: u64,
}

impl Shuffle {
    fn of(n: u64) -> Shuffle {
        let gcd = |mut a: u64, mut b: u64| {
            while b != 0 {
                (a, b) = (b, a % b);
            }
            a
        };
        let mut step = n * 618 / 1000 + 1;
        while gcd(step, n) != 1 {
            step += 1;
        }
        Shuffle { n, step }
    }

    fn at(&self, i: u64) -> u64 {
        (u128::from(i) * u128::from(self.step) % u128::from(self.n)) as u64
    }
}

fn key(i: u64) -> Key {
    let mut key = Key::default();
    key.copy_from_slice(format!("{i:016}").as_bytes());
    key
}

/// Half noise, half its repetition.
fn value(seed: u64) -> Value {
    let mut random = Random(seed + 1);
    let mut value = [0; VALUE_BYTES];
    let (noise, copy) = value.split_at_mut(VALUE_BYTES / 2);
    noise.iter_mut().for_each(|byte| *byte = random.next() as u8);
    copy.copy_from_slice(noise);
    value
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^ (z >> 29)
    }
}

/// The table under construction: a line a workload, a column a store.
#[derive(Default)]
struct Table(Vec<(String, Vec<f64>)>);

impl Table {
    /// Runs one workload on one store; it returns how many operations it did.
    fn time(&mut self, workload: &str, run: impl FnOnce() -> u64) {
        let start = Instant::now();
        let operations = run();
        self.add(workload, operations as f64 / start.elapsed().as_secs_f64() / 1e3);
    }

    fn add(&mut self, line: &str, figure: f64) {
        match self.0.iter_mut().find(|(name, _)| name == line) {
            Some((_, figures)) => figures.push(figure),
            None => self.0.push((line.to_owned(), vec![figure])),
        }
    }

    fn print(&self, stores: &[(&str, Open)]) {
        let names: Vec<&str> = stores.iter().map(|(name, _)| *name).collect();
        println!("| thousands/s | {} |\n|---|{}", names.join(" | "), "---:|".repeat(names.len()));
        for (line, figures) in &self.0 {
            let figures: Vec<String> = figures.iter().map(|f| format!("{f:.1}")).collect();
            println!("| {line} | {} |", figures.join(" | "));
        }
    }
}

/// Fills a store: `order` says which key comes when.
fn fill(store: &dyn Store, n: u64, batch: u64, sync: Sync, order: impl Fn(u64) -> u64) -> u64 {
    let mut client = store.client();
    let mut entries = Vec::new();
    for first in (0..n).step_by(batch as usize) {
        entries.clear();
        entries.extend((first..n.min(first + batch)).map(|i| (key(order(i)), value(order(i)))));
        client.put(&entries, sync);
    }
    n
}

/// Looks up keys and returns how many; those from `n` on are not there.
fn read(store: &dyn Store, n: u64, keys: impl Iterator<Item = u64>) -> u64 {
    let mut client = store.client();
    let mut count = 0;
    for i in keys {
        let mut bytes = 0;
        let found = client.get(&key(i), &mut |value| bytes = value.len());
        assert_eq!((found, bytes), if i < n { (true, VALUE_BYTES) } else { (false, 0) });
        count += 1;
    }
    count
}

/// Two threads, each of which reads and overwrites in turn.
fn mixed(store: &dyn Store, n: u64) -> u64 {
    std::thread::scope(|scope| {
        for thread in 0..2 {
            scope.spawn(move || {
                let mut client = store.client();
                let mut random = Random(thread);
                for i in 0..n / 4 {
                    // Keys of this thread's own, so that stores without row locks do the same work.
                    let i_key = key(random.next() % (n / 2) * 2 + thread);
                    if i % 2 == 0 {
                        assert!(client.get(&i_key, &mut |_| {}));
                    } else {
                        client.put(&[(i_key, value(i))], Sync::Later);
                    }
                }
            });
        }
    });
    n / 4 * 2
}

fn folder_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(m) if m.is_dir() => folder_bytes(&entry.path()),
            Ok(m) => m.len(),
            Err(_) => 0,
        })
        .sum()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let n: u64 = arguments.first().and_then(|a| a.parse().ok()).unwrap_or(1000);
    let named = |name: &str| arguments.iter().any(|a| a == name);
    let mut stores = STORES.to_vec();
    if STORES.iter().any(|(name, _)| named(name)) {
        stores.retain(|(name, _)| named(name));
    }
    let shuffle = Shuffle::of(n);
    let mut table = Table::default();
    let in_turn = |table: &mut Table, name: &str, run: &dyn Fn(&mut Table, Open, &Path)| {
        for (store, open) in &stores {
            eprintln!("{store}: {name}");
            let folder = tempfile::tempdir().expect("a temporary folder");
            run(table, *open, folder.path());
        }
    };
    in_turn(&mut table, "sequential", &|table, open, folder| {
        let store = open(folder);
        table.time("fill sequential", || fill(&*store, n, 1, Sync::Later, |i| i));
    });
    in_turn(&mut table, "synced", &|table, open, folder| {
        let store = open(folder);
        table.time("fill, each commit synced", || fill(&*store, n.min(SYNCED_MAX), 1, Sync::Now, |i| i));
    });
    in_turn(&mut table, "batches", &|table, open, folder| {
        let store = open(folder);
        table.time("fill random, 1000 a synced commit", || fill(&*store, n, BATCH, Sync::Now, |i| shuffle.at(i)));
    });
    in_turn(&mut table, "random", &|table, open, folder| {
        let store = open(folder);
        table.time("fill random", || fill(&*store, n, 1, Sync::Later, |i| shuffle.at(i)));
        table.time("overwrite random", || fill(&*store, n, 1, Sync::Later, |i| shuffle.at(i) / 2));
        store.wait_until_idle();
        table.time("read random", || read(&*store, n, (0..n).map(|i| shuffle.at(i))));
        table.time("read missing", || read(&*store, n, n..n * 2));
        table.time("scan in the order of keys", || {
            let mut count = 0;
            store.client().scan(&mut |_| count += 1);
            assert_eq!(count, n);
            n
        });
        table.time("mixed, 2 threads", || mixed(&*store, n));
        store.wait_until_idle();
        drop(store);
        table.add("megabytes on disk afterwards", folder_bytes(folder) as f64 / 1e6);
    });
    table.print(&stores);
}
