//! `melba salvage` of a data directory with a damaged segment: the copy is sound and lacks what the damage hit, the rest is there.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use melba_engine::{Durability, Engine, EngineOptions, Isolation, Persistence};
use melba_transaction::cluster::Cluster;
use melba_types::row::RowLayout;
use melba_types::{Datum, Kind, TreeId};
use melba_vfs::{OsClock, OsDirectory, OsRandom};

const ROWS: usize = 100_000;

fn open(data: &Path) -> Arc<Engine> {
    let directory = Arc::new(OsDirectory::open(data).expect("the directory opens"));
    let options = EngineOptions { fsync: false, ..EngineOptions::default() };
    Engine::open(options, directory, Arc::new(OsClock::new())).expect("opens")
}

/// A stopped database with a table of many rows.
fn fill(data: &Path) -> TreeId {
    let cluster = Cluster::open(open(data), Arc::new(OsClock::new()), Arc::new(OsRandom)).expect("the catalog opens");
    let txn = cluster.engine.begin(Isolation::ReadCommitted).expect("begins");
    let tree = txn.create_table_tree(&[Kind::Text], Persistence::Logged).expect("a new tree");
    let layout = RowLayout::new(vec![Kind::Text]);
    for i in 0..ROWS {
        txn.insert(tree, &layout.encode_row(&[Datum::text(format!("row {i} {}", i * 7919 % 10007))])).expect("inserts");
    }
    txn.commit(Durability::Sync).expect("commits");
    cluster.engine.shutdown().expect("stops");
    tree
}

fn melba(arguments: &[&Path]) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_melba")).args(arguments).output().expect("melba runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output, text)
}

#[test]
fn the_salvaged_copy_lacks_damaged_rows_only() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let (from, to) = (data.path().join("damaged"), data.path().join("salvaged"));
    std::fs::create_dir(&from).expect("creates");
    let tree = fill(&from);
    let files = std::fs::read_dir(from.join("segments")).expect("segments");
    let sizes = files.map(|f| f.expect("a file")).map(|f| (f.metadata().expect("a size").len(), f.path()));
    let (_, largest) = sizes.max().expect("a segment");
    let mut bytes = std::fs::read(&largest).expect("readable");
    let middle = bytes.len() / 3;
    bytes[middle] ^= 1;
    std::fs::write(&largest, &bytes).expect("writable");

    let (output, text) = melba(&[Path::new("salvage"), &from, &to]);
    assert!(output.status.success(), "{output:?}");
    let file = largest.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(text.contains(&file) && text.contains("of rows") && text.contains("1 loss(es)"), "{text}");
    assert_eq!(std::fs::read(&largest).expect("readable"), bytes, "the damaged file stays as it is");
    let (output, _) = melba(&[Path::new("check"), Path::new("--data"), &to]);
    assert!(output.status.success(), "{output:?}");
    let engine = open(&to);
    let txn = engine.begin(Isolation::ReadCommitted).expect("begins");
    let mut scan = txn.scan(txn.statement_view(), tree, &[0], &[], &[], None).expect("opens");
    let mut rows = 0;
    while let Some(batch) = scan.next().expect("scans") {
        rows += batch.row_ids.len();
    }
    assert!((ROWS / 4..ROWS).contains(&rows), "{rows}");

    let (output, _) = melba(&[Path::new("salvage"), &from, &to]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not empty"), "{output:?}");
}
