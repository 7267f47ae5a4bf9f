//! `melba check` on a whole data directory, and on one with a flipped bit.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use melba_engine::{Durability, Engine, EngineOptions, Isolation, Persistence};
use melba_transaction::cluster::Cluster;
use melba_types::row::RowLayout;
use melba_types::{Datum, Kind};
use melba_vfs::{OsClock, OsDirectory, OsRandom};

/// One test at a time: a process that another one starts has the lock of an open directory, too, until it runs its own program.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A stopped database with a table of some rows in a segment.
fn fill(data: &Path) {
    let clock = Arc::new(OsClock::new());
    let directory = Arc::new(OsDirectory::open(data).expect("the directory opens"));
    let options = EngineOptions { fsync: false, ..EngineOptions::default() };
    let engine = Engine::open(options, directory, clock.clone()).expect("an empty engine opens");
    let cluster = Cluster::open(engine, clock, Arc::new(OsRandom)).expect("the catalog opens");
    let txn = cluster.engine.begin(Isolation::ReadCommitted).expect("begins");
    let tree = txn.create_table_tree(&[Kind::Text], Persistence::Logged).expect("a new tree");
    let layout = RowLayout::new(vec![Kind::Text]);
    for i in 0..1000 {
        txn.insert(tree, &layout.encode_row(&[Datum::text(format!("row {i}"))])).expect("inserts");
    }
    txn.commit(Durability::Sync).expect("commits");
    cluster.engine.shutdown().expect("stops");
}

fn check(data: &Path) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_melba")).arg("check").arg("--data").arg(data).output().expect("melba runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output, text)
}

#[test]
fn a_flipped_bit_is_found() {
    let _alone = alone();
    let data = tempfile::tempdir().expect("a temporary directory");
    fill(data.path());
    let (output, text) = check(data.path());
    assert!(output.status.success() && text.contains("no errors found"), "{output:?}");

    let files = std::fs::read_dir(data.path().join("segments")).expect("segments");
    let sizes = files.map(|f| f.expect("a file")).map(|f| (f.metadata().expect("a size").len(), f.path()));
    let (_, largest) = sizes.max().expect("a segment");
    let mut bytes = std::fs::read(&largest).expect("readable");
    let middle = bytes.len() / 3;
    bytes[middle] ^= 1;
    std::fs::write(&largest, &bytes).expect("writable");
    let (output, text) = check(data.path());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("tree"), "{text}");
}

/// Every file below a folder, with its content.
fn content(folder: &Path) -> std::collections::BTreeMap<std::path::PathBuf, Vec<u8>> {
    let mut files = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a file").path();
        match path.is_dir() {
            true => files.extend(content(&path)),
            false => drop(files.insert(path.clone(), std::fs::read(&path).expect("readable"))),
        }
    }
    files
}

#[test]
fn nothing_is_written_and_what_the_log_has_is_checked() {
    let _alone = alone();
    let data = tempfile::tempdir().expect("a temporary directory");
    fill(data.path());
    // As a crash leaves it: recovery has something to do.
    let directory = Arc::new(OsDirectory::open(data.path()).expect("the directory opens"));
    let engine = Engine::open(EngineOptions::default(), directory, Arc::new(OsClock::new())).expect("opens");
    let txn = engine.begin(Isolation::ReadCommitted).expect("begins");
    txn.create_table_tree(&[Kind::Text], Persistence::Logged).expect("a new tree");
    txn.commit(Durability::Sync).expect("commits");
    drop((txn, engine));
    std::fs::write(data.path().join("server.lock"), "").expect("writes");
    let before = content(data.path());
    let (output, text) = check(data.path());
    assert!(output.status.success() && text.contains("no errors found"), "{output:?}");
    assert!(content(data.path()) == before, "the check has changed a file");
}
