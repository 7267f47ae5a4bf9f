//! A folder whose operations fail by plan: the n-th read, write, sync or rename, or any that exceeds the disk's space.
//!
//! A failed write has written a part. A file whose sync has failed is never durable again through the same handle, though its
//! later syncs succeed: operating systems behave so, and for that reason a failed sync must not be tried again.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::{Directory, File};

/// The operations that may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOperation {
    Create,
    Open,
    Read,
    Write,
    /// Of a file.
    Sync,
    /// Of a folder.
    SyncNames,
    /// Setting, reserving or asking for a file's length.
    Length,
    Rename,
    Remove,
    List,
}

impl FileOperation {
    pub const ALL: &[FileOperation] = &[
        FileOperation::Create,
        FileOperation::Open,
        FileOperation::Read,
        FileOperation::Write,
        FileOperation::Sync,
        FileOperation::SyncNames,
        FileOperation::Length,
        FileOperation::Rename,
        FileOperation::Remove,
        FileOperation::List,
    ];
    /// Those that change the disk, or make a change durable.
    pub const CHANGES: &[FileOperation] = &[
        FileOperation::Create,
        FileOperation::Write,
        FileOperation::Sync,
        FileOperation::SyncNames,
        FileOperation::Rename,
        FileOperation::Remove,
    ];
}

struct Plan {
    which: &'static [FileOperation],
    /// How many of them still succeed.
    left: u64,
    /// Whether all after the first failing one fail too.
    lasting: bool,
}

#[derive(Default)]
struct FaultyState {
    operations: u64,
    failures: u64,
    plan: Option<Plan>,
    /// Bytes by which files may still grow.
    free: Option<u64>,
}

/// The planned failures, shared by a folder, its files and the folders below it.
#[derive(Default)]
pub struct Faults(Mutex<FaultyState>);

impl Faults {
    /// Nothing fails yet.
    pub fn new() -> Arc<Faults> {
        Arc::default()
    }

    /// Makes one later operation of these fail: the next one for 0. Replaces an earlier plan.
    pub fn fail_once(&self, which: &'static [FileOperation], n: u64) {
        self.0.lock().plan = Some(Plan { which, left: n, lasting: false });
    }

    /// Makes one later operation of these and all that follow it fail.
    pub fn fail_from(&self, which: &'static [FileOperation], n: u64) {
        self.0.lock().plan = Some(Plan { which, left: n, lasting: true });
    }

    /// Cancels all planned failures, except for lack of space.
    pub fn heal(&self) {
        self.0.lock().plan = None;
    }

    /// The bytes by which files may grow from now on; `None`: as far as they like.
    pub fn set_free(&self, free: Option<u64>) {
        self.0.lock().free = free;
    }

    /// Operations so far.
    pub fn operations(&self) -> u64 {
        self.0.lock().operations
    }

    /// Operations so far that were made to fail.
    pub fn failures(&self) -> u64 {
        self.0.lock().failures
    }

    fn step(&self, operation: FileOperation) -> io::Result<()> {
        let mut state = self.0.lock();
        state.operations += 1;
        let Some(plan) = state.plan.as_mut().filter(|p| p.which.contains(&operation)) else { return Ok(()) };
        if plan.left > 0 {
            plan.left -= 1;
            return Ok(());
        }
        if !plan.lasting {
            state.plan = None;
        }
        state.failures += 1;
        Err(io::Error::other("injected failure"))
    }

    /// Takes space for a file's growth: how much of it there is.
    fn take_space(&self, growth: u64) -> u64 {
        let mut state = self.0.lock();
        let Some(free) = &mut state.free else { return growth };
        let taken = growth.min(*free);
        *free -= taken;
        state.failures += u64::from(taken < growth);
        taken
    }

    fn give_space(&self, bytes: u64) {
        if let Some(free) = &mut self.0.lock().free {
            *free += bytes;
        }
    }
}

/// A folder over another one.
pub struct FaultyDirectory {
    inner: Arc<dyn Directory>,
    faults: Arc<Faults>,
}

struct FaultyFile {
    inner: Arc<dyn File>,
    faults: Arc<Faults>,
    /// A sync has failed.
    lost: AtomicBool,
}

impl FaultyDirectory {
    pub fn new(inner: Arc<dyn Directory>, faults: Arc<Faults>) -> Arc<FaultyDirectory> {
        Arc::new(FaultyDirectory { inner, faults })
    }

    fn file(&self, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(FaultyFile { inner, faults: Arc::clone(&self.faults), lost: false.into() })
    }

    /// The length of a file before its removal; 0 when there is none.
    fn length(&self, name: &str) -> u64 {
        self.inner.open(name).and_then(|f| f.len()).unwrap_or(0)
    }
}

impl File for FaultyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.faults.step(FileOperation::Read)?;
        self.inner.read_at(buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        if let Err(error) = self.faults.step(FileOperation::Write) {
            let part = data.len() / 2;
            if self.faults.take_space((offset + part as u64).saturating_sub(self.inner.len()?)) > 0 {
                self.inner.write_at(&data[..part], offset)?;
            }
            return Err(error);
        }
        let growth = (offset + data.len() as u64).saturating_sub(self.inner.len()?);
        let missing = growth - self.faults.take_space(growth);
        self.inner.write_at(&data[..data.len().saturating_sub(missing as usize)], offset)?;
        if missing > 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn sync(&self) -> io::Result<()> {
        let planned = self.faults.step(FileOperation::Sync);
        if planned.is_err() {
            self.lost.store(true, Ordering::SeqCst);
        }
        if self.lost.load(Ordering::SeqCst) { planned } else { self.inner.sync() }
    }

    fn len(&self) -> io::Result<u64> {
        self.faults.step(FileOperation::Length)?;
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.faults.step(FileOperation::Length)?;
        let now = self.inner.len()?;
        let growth = len.saturating_sub(now);
        let taken = self.faults.take_space(growth);
        if taken < growth {
            self.faults.give_space(taken);
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.faults.give_space(now.saturating_sub(len));
        self.inner.set_len(len)
    }

    fn write_back(&self, offset: u64, len: u64) -> io::Result<()> {
        self.inner.write_back(offset, len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.faults.step(FileOperation::Length)?;
        self.inner.allocate(len)
    }
}

impl Directory for FaultyDirectory {
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.faults.step(FileOperation::Create)?;
        Ok(self.file(self.inner.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.faults.step(FileOperation::Open)?;
        Ok(self.file(self.inner.open(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.faults.step(FileOperation::Rename)?;
        let replaced = self.length(to);
        self.inner.rename(from, to)?;
        self.faults.give_space(replaced);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.faults.step(FileOperation::Remove)?;
        let removed = self.length(name);
        self.inner.remove(name)?;
        self.faults.give_space(removed);
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.faults.step(FileOperation::List)?;
        self.inner.list()
    }

    fn sync_names(&self) -> io::Result<()> {
        self.faults.step(FileOperation::SyncNames)?;
        self.inner.sync_names()
    }

    fn subdirectory(&self, name: &str) -> io::Result<Arc<dyn Directory>> {
        Ok(FaultyDirectory::new(self.inner.subdirectory(name)?, Arc::clone(&self.faults)))
    }

    fn existing_subdirectory(&self, name: &str) -> io::Result<Option<Arc<dyn Directory>>> {
        let folder = self.inner.existing_subdirectory(name)?;
        Ok(folder.map(|folder| FaultyDirectory::new(folder, Arc::clone(&self.faults)) as Arc<dyn Directory>))
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>> {
        self.inner.lock(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDirectory;

    fn folder() -> (Arc<MemoryDirectory>, Arc<Faults>, Arc<FaultyDirectory>) {
        let (memory, faults) = (MemoryDirectory::new(), Faults::new());
        let faulty = FaultyDirectory::new(Arc::clone(&memory) as Arc<dyn Directory>, Arc::clone(&faults));
        (memory, faults, faulty)
    }

    #[test]
    fn what_is_planned_fails_and_nothing_else() {
        let (_, faults, d) = folder();
        faults.fail_once(&[FileOperation::Write], 1);
        let f = d.create("a").expect("creates");
        f.write_at(b"one", 0).expect("the first write");
        assert!(f.write_at(b"more", 3).is_err());
        assert_eq!(f.len().expect("answers"), 5, "a part was written");
        f.write_at(b"more", 3).expect("only once");
        faults.fail_from(&[FileOperation::Rename, FileOperation::Remove], 1);
        d.rename("a", "b").expect("the first");
        assert!(d.rename("b", "c").is_err() && d.remove("b").is_err());
        faults.heal();
        d.remove("b").expect("healed");
        assert_eq!(faults.failures(), 3);
    }

    #[test]
    fn data_lost_by_a_failed_sync_stays_lost() {
        let (memory, faults, d) = folder();
        let f = d.create("a").expect("creates");
        d.sync_names().expect("syncs");
        f.write_at(b"x", 0).expect("writes");
        faults.fail_once(&[FileOperation::Sync], 0);
        assert!(f.sync().is_err());
        f.sync().expect("as operating systems answer");
        let after = memory.after_power_cut(&mut || false);
        assert_eq!(after.open("a").and_then(|f| f.len()).expect("there"), 0);
    }

    #[test]
    fn a_full_disk_refuses_growth_until_space_returns() {
        let (_, faults, d) = folder();
        let a = d.create("a").expect("creates");
        a.write_at(&[1; 60], 0).expect("no limit yet");
        faults.set_free(Some(50));
        let b = d.create("b").expect("creates");
        b.write_at(&[1; 40], 0).expect("fits");
        let full = b.write_at(&[1; 40], 20).expect_err("does not fit");
        assert_eq!((full.kind(), b.len().expect("answers")), (io::ErrorKind::StorageFull, 50));
        a.write_at(&[2; 60], 0).expect("no growth");
        d.remove("a").expect("removes");
        b.write_at(&[1; 60], 50).expect("there is space again");
        assert!(b.write_at(&[1], 110).is_err());
    }
}
