//! A folder whose syncs can be switched off (the setting `fsync`), for files that a crash may lose.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Directory, File};

/// Whether syncs reach the disk; clones are one switch.
#[derive(Clone, Debug)]
pub struct SyncSwitch(Arc<AtomicBool>);

impl SyncSwitch {
    pub fn new(on: bool) -> SyncSwitch {
        SyncSwitch(Arc::new(AtomicBool::new(on)))
    }

    #[inline]
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Returns the state before. Data written while it was off is durable only after a `sync_all`.
    pub fn set(&self, on: bool) -> bool {
        self.0.swap(on, Ordering::AcqRel)
    }
}

impl Default for SyncSwitch {
    fn default() -> SyncSwitch {
        SyncSwitch::new(true)
    }
}

/// A folder in which `sync` and `sync_names` do nothing while the switch is off.
pub struct SwitchedDirectory {
    inner: Arc<dyn Directory>,
    switch: SyncSwitch,
}

impl SwitchedDirectory {
    pub fn new(inner: Arc<dyn Directory>, switch: SyncSwitch) -> SwitchedDirectory {
        SwitchedDirectory { inner, switch }
    }

    fn file(&self, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(SwitchedFile { inner, switch: self.switch.clone() })
    }
}

struct SwitchedFile {
    inner: Arc<dyn File>,
    switch: SyncSwitch,
}

impl File for SwitchedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.inner.read_at(buffer, offset)
    }

    fn expect(&self, range: Range<u64>) {
        self.inner.expect(range);
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.inner.write_at(data, offset)
    }

    fn sync(&self) -> io::Result<()> {
        if self.switch.is_on() { self.inner.sync() } else { Ok(()) }
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn write_back(&self, offset: u64, len: u64) -> io::Result<()> {
        if self.switch.is_on() { self.inner.write_back(offset, len) } else { Ok(()) }
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.inner.allocate(len)
    }
}

impl Directory for SwitchedDirectory {
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.file(self.inner.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.file(self.inner.open(name)?))
    }

    fn open_on_demand(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.file(self.inner.open_on_demand(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn modified(&self, name: &str) -> io::Result<i64> {
        self.inner.modified(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        if self.switch.is_on() { self.inner.sync_names() } else { Ok(()) }
    }

    fn subdirectory(&self, name: &str) -> io::Result<Arc<dyn Directory>> {
        let inner = self.inner.subdirectory(name)?;
        Ok(Arc::new(SwitchedDirectory { inner, switch: self.switch.clone() }))
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>> {
        self.inner.lock(name)
    }
}

/// Makes all files of a folder durable, whichever code wrote them; those that disappear meanwhile need not be.
pub fn sync_all(directory: &dyn Directory) -> io::Result<()> {
    for name in directory.list()? {
        match directory.open(&name) {
            Ok(file) => file.sync()?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    directory.sync_names()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDirectory;

    #[test]
    fn a_switched_off_sync_leaves_data_to_chance_until_all_is_synced() {
        let disk = MemoryDirectory::new();
        let switch = SyncSwitch::new(false);
        let directory = SwitchedDirectory::new(Arc::clone(&disk) as Arc<dyn Directory>, switch.clone());
        let file = directory.create("a").expect("creates");
        file.write_at(b"data", 0).expect("writes");
        file.sync().expect("does nothing");
        directory.sync_names().expect("does nothing");
        assert_eq!(disk.syncs(), 0);
        assert!(disk.after_power_cut(&mut || false).list().expect("lists").is_empty());
        assert!(!switch.set(true));
        sync_all(&directory).expect("syncs");
        let after = disk.after_power_cut(&mut || false);
        assert_eq!(after.open("a").expect("there").len().expect("has a length"), 4);
    }
}
