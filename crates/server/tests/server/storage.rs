//! What clients see when the disk is damaged or full.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::running::{Peer, Running};

/// Flips a bit in the middle of the largest segment.
fn damage(data: &Path) {
    let files = std::fs::read_dir(data.join("segments")).expect("segments").map(|f| f.expect("a file").path());
    let largest = files.max_by_key(|f| f.metadata().expect("a size").len()).expect("a segment");
    let mut bytes = std::fs::read(&largest).expect("readable");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&largest, &bytes).expect("writable");
}

#[test]
fn a_flipped_bit_is_reported_and_other_work_continues() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let server = Running::over(folder.path(), &[]);
    let mut peer = server.log_in();
    for statement in [
        "create table small as select g id from generate_series(1, 100) g",
        "create table large (id int primary key, v text)",
        "insert into large select g, md5(g::text) || md5((g + 1)::text) from generate_series(1, 5000) g",
    ] {
        assert_eq!(peer.query(statement), "CZ", "{statement}");
    }
    drop(peer);
    server.shut_down();
    damage(folder.path());
    let server = Running::over(folder.path(), &[]);
    let mut peer = server.log_in();
    assert_eq!(peer.query("select id, v from large").trim_start_matches(['T', 'D']), "E[ERROR XX001]Z");
    assert_eq!(peer.query("select count(*) from small"), "TDCZ");
    assert_eq!(peer.query("insert into small values (101)"), "CZ");
    assert_eq!(peer.query("drop table large"), "CZ");
}

/// A file system of some megabytes of its own; `None` when it may not be mounted.
struct SmallDisk(PathBuf, #[expect(dead_code, reason = "removed when dropped")] tempfile::TempDir);

impl SmallDisk {
    fn mount(megabytes: u32) -> Option<SmallDisk> {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("disk");
        std::fs::create_dir(&path).expect("creates");
        let size = format!("size={megabytes}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&path).output();
        mounted.ok().filter(|o| o.status.success()).map(|_| SmallDisk(path, folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

/// Inserts until the disk is full; returns how many rows were acknowledged.
fn insert_until_full(peer: &mut Peer) -> u64 {
    for batch in 0..2000 {
        let insert =
            format!("insert into t select g, md5(g::text) from generate_series({}, {}) g", batch * 1000 + 1, batch * 1000 + 1000);
        match peer.query(&insert).as_str() {
            "CZ" => {}
            refused => {
                assert_eq!(refused, "E[ERROR 53100]Z");
                return batch * 1000;
            }
        }
    }
    panic!("the disk never became full");
}

#[test]
fn a_full_disk_refuses_and_the_service_resumes() {
    let Some(disk) = SmallDisk::mount(40) else {
        println!("skipped: a tmpfs cannot be mounted here");
        return;
    };
    let data = disk.0.join("data");
    let server = Running::over(&data, &[]);
    let mut peer = server.log_in();
    assert_eq!(peer.query("create table t (id int, v text)"), "CZ");
    let filler = disk.0.join("filler");
    // Fails when there is no room for more, which is what is wanted.
    let _ = std::fs::write(&filler, vec![1; 64 << 20]);
    let rows = insert_until_full(&mut peer);
    assert_eq!(peer.query("select count(*) from t"), "TDCZ");
    assert_eq!(peer.query("select 1 / (count(*) - 1) from t"), "TDCZ", "nothing is poisoned");
    std::fs::remove_file(&filler).expect("removes");
    assert_eq!(peer.query("insert into t select g, '' from generate_series(1, 1000) g"), "CZ");
    // A division by zero tells that the count is right.
    assert_eq!(peer.query(&format!("select 1 / (count(*) - {}) from t", rows + 1000)), "TE[ERROR 22012]Z");
    drop(peer);
    server.shut_down();
    let server = Running::over(&data, &[]);
    let mut peer = server.log_in();
    assert_eq!(peer.query(&format!("select 1 / (count(*) - {}) from t", rows + 1000)), "TE[ERROR 22012]Z");
}
