//! The log under a model checker for threads: `cargo test -p melba-wal --features shuttle,planted interleavings`.
//!
//! Disk operations take time here: other threads run before each call.

use std::io;
use std::sync::Arc;

use melba_threads::checker::{check, check_finds, choose, join, spawn};
use melba_threads::planted::Plant;
use melba_types::{Csn, Lsn};
use melba_vfs::{Directory, Faults, FaultyDirectory, File, FileOperation, MemoryDirectory};

use crate::*;

/// A folder, or a file, that lets other threads run before each call.
struct Slow<T: ?Sized>(Arc<T>);

fn pass() {
    shuttle::thread::yield_now();
}

impl File for Slow<dyn File> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        pass();
        self.0.write_at(data, offset)
    }

    fn sync(&self) -> io::Result<()> {
        pass();
        self.0.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn write_back(&self, offset: u64, len: u64) -> io::Result<()> {
        self.0.write_back(offset, len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.0.allocate(len)
    }
}

impl Directory for Slow<dyn Directory> {
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        pass();
        Ok(Arc::new(Slow(self.0.create(name)?)))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(Slow(self.0.open(name)?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        pass();
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        pass();
        self.0.remove(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }

    fn sync_names(&self) -> io::Result<()> {
        pass();
        self.0.sync_names()
    }

    fn subdirectory(&self, name: &str) -> io::Result<Arc<dyn Directory>> {
        self.0.subdirectory(name)
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>> {
        self.0.lock(name)
    }
}

/// Three records fill a file.
const PAYLOAD_BYTES: usize = 100;
const FILE_BYTES: u64 = 512;

struct Fixture {
    disk: Arc<MemoryDirectory>,
    faults: Arc<Faults>,
    folder: Arc<FaultyDirectory>,
    wal: Wal,
}

impl Fixture {
    fn new() -> Arc<Fixture> {
        let (disk, faults) = (MemoryDirectory::new(), Faults::new());
        let folder = FaultyDirectory::new(Arc::clone(&disk) as Arc<dyn Directory>, Arc::clone(&faults));
        let options = WalOptions { file_bytes: FILE_BYTES, ..WalOptions::default() };
        let wal = Wal::new(Arc::new(Slow(Arc::clone(&folder) as Arc<dyn Directory>)), options);
        wal.begin(Lsn(0)).expect("begins");
        Arc::new(Fixture { disk, faults, folder, wal })
    }

    /// Appends a record, for which space is reserved, and waits until it is durable.
    fn append_and_flush(&self, n: u64) -> Result<()> {
        let mut payload = vec![n as u8; PAYLOAD_BYTES];
        let crc = payload_crc(&payload);
        let (_, end) = self.wal.append(Csn(n), &mut payload, crc);
        self.wal.flush(WrittenBy::Client)?;
        assert!(self.wal.durable() >= end, "flushed to {:?}, durable to {:?}", end, self.wal.durable());
        Ok(())
    }

    fn commit(&self, n: u64) -> Result<()> {
        self.wal.reserve(PAYLOAD_BYTES)?;
        self.append_and_flush(n)
    }

    /// The records that are found after a power cut, and where they end.
    fn after_power_cut(&self, from: Lsn) -> (Vec<u64>, Lsn) {
        let disk = self.disk.after_power_cut(&mut || choose(&[false, true]));
        let mut found = Vec::new();
        let each = |r: WalRecord<'_>| {
            assert_eq!(r.payload, [r.csn.0 as u8; PAYLOAD_BYTES]);
            found.push(r.csn.0);
            Ok::<(), WalError>(())
        };
        let end = replay(&*disk, from, Belongs::default(), None, each).expect("reads");
        (found, end)
    }
}

/// Records of several threads, over two files and more, beside one that prepares files.
fn durable_records_are_found() {
    let f = Fixture::new();
    let committers = [[1, 2], [3, 4]].map(|numbers| {
        let f = Arc::clone(&f);
        spawn(move || numbers.iter().for_each(|n| f.commit(*n).expect("commits")))
    });
    let background = spawn({
        let f = Arc::clone(&f);
        move || {
            for _ in 0..2 {
                f.wal.prepare_spare().expect("prepares");
                f.wal.flush(WrittenBy::Background).expect("flushes");
            }
        }
    });
    for _ in 0..3 {
        let durable = f.wal.durable();
        let (found, end) = f.after_power_cut(Lsn(0));
        assert!(end >= durable, "durable to {durable:?}, found to {end:?}: {found:?}");
    }
    join(committers);
    join([background]);
    let (mut found, end) = f.after_power_cut(Lsn(0));
    found.sort_unstable();
    assert_eq!((found, end), (vec![1, 2, 3, 4], f.wal.end()));
    assert_eq!(f.wal.statistics().records, 4);
}

#[test]
fn durable_records_survive_with_any_writer() {
    check(durable_records_are_found);
}

#[test]
fn a_log_that_is_called_durable_too_early_is_found() {
    check_finds(Plant::DurableEarly, durable_records_are_found);
}

/// One sync fails: records reported as durable are found after a crash, all other writers get the error, and no record follows.
fn a_sync_fails() {
    let f = Fixture::new();
    f.faults.fail_once(&[FileOperation::Sync], choose(&[0, 1, 2, 3]));
    let committers = [[1, 2], [3, 4], [5, 6]].map(|numbers| {
        let f = Arc::clone(&f);
        spawn(move || numbers.map(|n| (n, f.commit(n).is_ok())))
    });
    let outcomes: Vec<(u64, bool)> = join(committers).into_iter().flatten().collect();
    let (found, end) = f.after_power_cut(Lsn(0));
    assert!(f.wal.durable() <= end);
    for (n, acknowledged) in &outcomes {
        assert!(!acknowledged || found.contains(n), "{n} was acknowledged, {found:?} is there");
    }
    assert!(f.faults.failures() == 0 || f.commit(7).is_err(), "nothing is acknowledged after a failure");
}

#[test]
fn all_who_flush_hear_of_a_failed_sync() {
    check(a_sync_fails);
}

#[test]
fn a_failed_flush_that_is_forgotten_is_found() {
    check_finds(Plant::ForgetFailedFlush, a_sync_fails);
}

/// The disk is nearly full, and another writer takes the released space: records whose space was reserved are written.
fn log_reservations_are_kept() {
    let f = Fixture::new();
    f.commit(0).expect("commits");
    f.faults.set_free(Some(choose(&[0, 300, FILE_BYTES, 2 * FILE_BYTES])));
    let committers = [[1, 2], [3, 4]].map(|numbers| {
        let f = Arc::clone(&f);
        spawn(move || {
            let reserve = |n: &u64| match f.wal.reserve(PAYLOAD_BYTES) {
                Ok(()) => Some(*n),
                Err(WalError::Io { source, .. }) if source.kind() == io::ErrorKind::StorageFull => None,
                Err(e) => panic!("{e:?}"),
            };
            let promised: Vec<u64> = numbers.iter().filter_map(reserve).collect();
            for n in promised {
                match choose(&[false, false, true]) {
                    true => f.wal.unreserve(PAYLOAD_BYTES),
                    false => f.append_and_flush(n).expect("there is room"),
                }
            }
        })
    });
    let background = spawn({
        let f = Arc::clone(&f);
        move || {
            for _ in 0..3 {
                let _full = f.wal.prepare_spare();
                f.wal.release_before(f.wal.durable()).expect("releases");
                f.wal.remove_spares().expect("removes");
            }
        }
    });
    let other = spawn({
        let f = Arc::clone(&f);
        move || {
            let file = f.folder.create("other").expect("creates");
            for _ in 0..6 {
                pass();
                // As much of it as there is space for.
                let _full = file.write_at(&[1; 4 * FILE_BYTES as usize], file.len().expect("answers"));
            }
        }
    });
    join(committers);
    join([background, other]);
    assert_eq!(f.wal.durable(), f.wal.end());
}

#[test]
fn reserved_records_are_written_on_a_full_disk() {
    check(log_reservations_are_kept);
}

#[test]
fn promises_that_are_forgotten_are_found() {
    check_finds(Plant::ForgetPromises, log_reservations_are_kept);
}
