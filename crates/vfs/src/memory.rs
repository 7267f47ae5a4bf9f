//! A folder in memory whose power can be cut: what was not synced is lost, in part or altogether.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::{Directory, File};

/// Unsynced writes reach the disk in units of this, in any order.
const SECTOR_BYTES: usize = 512;

/// A file's content, as the running system sees it and as the disk has it.
#[derive(Default)]
struct Content {
    current: Vec<u8>,
    durable: Vec<u8>,
    /// Sectors written since the last sync.
    dirty: HashSet<usize>,
}

type Inode = Arc<Mutex<Content>>;

#[derive(Default)]
struct Power {
    /// Syncs (of files and of names) so far.
    syncs: u64,
    /// The sync that fails, and everything after it.
    cut_at_sync: Option<u64>,
    off: bool,
    /// The operation (write, sync, create, rename, remove) that fails once, counted down.
    fail_in: Option<u64>,
    bytes_written: u64,
}

#[derive(Default)]
struct Names {
    current: BTreeMap<String, Inode>,
    durable: BTreeMap<String, Inode>,
    folders: BTreeMap<String, Arc<MemoryDirectory>>,
    locked: HashSet<String>,
}

/// A folder in memory. Cloned handles (`Arc`) see the same files.
pub struct MemoryDirectory {
    names: Mutex<Names>,
    power: Arc<Mutex<Power>>,
}

struct MemoryFile {
    content: Inode,
    power: Arc<Mutex<Power>>,
}

fn power_is_off() -> io::Error {
    io::Error::other("the power is off")
}

/// Counts a modifying operation and fails it when it is the one to fail. The guard is held while the operation runs, so that a
/// cut comes before or after it.
fn operate(power: &Mutex<Power>) -> io::Result<MutexGuard<'_, Power>> {
    let mut power = power.lock();
    if power.off {
        return Err(power_is_off());
    }
    match &mut power.fail_in {
        Some(0) => {
            power.fail_in = None;
            Err(io::Error::other("injected failure"))
        }
        Some(n) => {
            *n -= 1;
            Ok(power)
        }
        None => Ok(power),
    }
}

fn sync_point(power: &Mutex<Power>) -> io::Result<MutexGuard<'_, Power>> {
    let mut power = operate(power)?;
    if power.cut_at_sync == Some(power.syncs) {
        power.off = true;
        return Err(power_is_off());
    }
    power.syncs += 1;
    Ok(power)
}

impl MemoryDirectory {
    /// An empty folder.
    pub fn new() -> Arc<MemoryDirectory> {
        Arc::new(MemoryDirectory { names: Mutex::default(), power: Arc::default() })
    }

    /// Cuts the power at the n-th sync from the beginning (0: the first): it and everything later fails.
    pub fn cut_power_at_sync(&self, n: u64) {
        self.power.lock().cut_at_sync = Some(n);
    }

    /// Cuts the power now.
    pub fn cut_power(&self) {
        self.power.lock().off = true;
    }

    /// Makes one later modifying operation fail: the next for 0.
    pub fn fail_operation(&self, n: u64) {
        self.power.lock().fail_in = Some(n);
    }

    /// Syncs so far.
    pub fn syncs(&self) -> u64 {
        self.power.lock().syncs
    }

    /// Bytes written so far.
    pub fn bytes_written(&self) -> u64 {
        self.power.lock().bytes_written
    }

    /// What is found when the power comes back: everything synced, and of the rest what `keep` (called for each unsynced
    /// sector, in order) lets through.
    pub fn after_power_cut(&self, keep: &mut dyn FnMut() -> bool) -> Arc<MemoryDirectory> {
        let names = self.names.lock();
        let after = MemoryDirectory::new();
        {
            let mut fresh = after.names.lock();
            for (name, inode) in &names.durable {
                let content = Arc::new(Mutex::new(inode.lock().survive(keep)));
                fresh.current.insert(name.clone(), Arc::clone(&content));
                fresh.durable.insert(name.clone(), content);
            }
            for (name, folder) in &names.folders {
                fresh.folders.insert(name.clone(), folder.after_power_cut(keep));
            }
        }
        after
    }

    /// Flips one bit of a file.
    pub fn flip_bit(&self, name: &str, bit: u64) -> io::Result<()> {
        let names = self.names.lock();
        let inode = names.current.get(name).ok_or(io::ErrorKind::NotFound)?;
        let mut content = inode.lock();
        let byte = content.current.get_mut((bit / 8) as usize).ok_or(io::ErrorKind::UnexpectedEof)?;
        *byte ^= 1 << (bit % 8);
        Ok(())
    }

    /// Flips one bit of the n-th file of a folder below this one.
    pub fn flip_bit_in(&self, folder: &str, n: usize, bit: u64) -> io::Result<()> {
        let folder = self.names.lock().folders.get(folder).cloned().ok_or(io::ErrorKind::NotFound)?;
        let name = folder.list()?.into_iter().nth(n).ok_or(io::ErrorKind::NotFound)?;
        folder.flip_bit(&name, bit)
    }

    fn file(&self, content: &Inode) -> Arc<dyn File> {
        Arc::new(MemoryFile { content: Arc::clone(content), power: Arc::clone(&self.power) })
    }
}

impl Content {
    fn survive(&self, keep: &mut dyn FnMut() -> bool) -> Content {
        let mut data = self.durable.clone();
        let mut dirty: Vec<usize> = self.dirty.iter().copied().collect();
        dirty.sort_unstable();
        for sector in dirty {
            if keep() {
                let from = (sector * SECTOR_BYTES).min(self.current.len());
                let to = (from + SECTOR_BYTES).min(self.current.len());
                if data.len() < to {
                    data.resize(to, 0);
                }
                data[from..to].copy_from_slice(&self.current[from..to]);
            }
        }
        Content { durable: data.clone(), current: data, dirty: HashSet::new() }
    }
}

impl File for MemoryFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let content = self.content.lock();
        let from = offset as usize;
        let bytes = content.current.get(from..from + buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let mut power = operate(&self.power)?;
        power.bytes_written += data.len() as u64;
        if data.is_empty() {
            return Ok(());
        }
        let mut content = self.content.lock();
        let (from, to) = (offset as usize, offset as usize + data.len());
        if content.current.len() < to {
            content.current.resize(to, 0);
        }
        content.current[from..to].copy_from_slice(data);
        content.dirty.extend(from / SECTOR_BYTES..=(to - 1) / SECTOR_BYTES);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let _power = sync_point(&self.power)?;
        let mut content = self.content.lock();
        let Content { current, durable, dirty } = &mut *content;
        durable.resize(current.len(), 0);
        for sector in dirty.drain() {
            let from = (sector * SECTOR_BYTES).min(current.len());
            let to = (from + SECTOR_BYTES).min(current.len());
            durable[from..to].copy_from_slice(&current[from..to]);
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.content.lock().current.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let _power = operate(&self.power)?;
        self.content.lock().current.resize(len as usize, 0);
        Ok(())
    }

    fn allocate(&self, _len: u64) -> io::Result<()> {
        operate(&self.power).map(drop)
    }
}

impl Directory for MemoryDirectory {
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let _power = operate(&self.power)?;
        let mut names = self.names.lock();
        if names.current.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let content = Inode::default();
        names.current.insert(name.to_owned(), Arc::clone(&content));
        Ok(self.file(&content))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let names = self.names.lock();
        let content = names.current.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(self.file(content))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let _power = operate(&self.power)?;
        let mut names = self.names.lock();
        let content = names.current.remove(from).ok_or(io::ErrorKind::NotFound)?;
        names.current.insert(to.to_owned(), content);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let _power = operate(&self.power)?;
        self.names.lock().current.remove(name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.names.lock().current.keys().cloned().collect())
    }

    fn sync_names(&self) -> io::Result<()> {
        let _power = sync_point(&self.power)?;
        let mut names = self.names.lock();
        names.durable = names.current.clone();
        Ok(())
    }

    fn subdirectory(&self, name: &str) -> io::Result<Arc<dyn Directory>> {
        let mut names = self.names.lock();
        let folder = names
            .folders
            .entry(name.to_owned())
            .or_insert_with(|| Arc::new(MemoryDirectory { names: Mutex::default(), power: Arc::clone(&self.power) }));
        Ok(Arc::clone(folder) as Arc<dyn Directory>)
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>> {
        // Locks die with the process, and a test's process is the engine value; a second open in one test is its own doing.
        self.names.lock().locked.insert(name.to_owned());
        Ok(Box::new(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_cut_loses_what_was_not_synced_and_nothing_else() {
        let d = MemoryDirectory::new();
        let f = d.create("a").expect("creates");
        f.write_at(b"kept", 0).expect("writes");
        f.sync().expect("syncs");
        d.sync_names().expect("syncs");
        f.write_at(b"lost", 0).expect("writes");
        d.create("b").expect("creates");
        let mut buffer = [0; 4];
        let after = d.after_power_cut(&mut || false);
        assert_eq!(after.list().expect("lists"), ["a"]);
        after.open("a").expect("there").read_at(&mut buffer, 0).expect("reads");
        assert_eq!(&buffer, b"kept");
        let after = d.after_power_cut(&mut || true);
        after.open("a").expect("there").read_at(&mut buffer, 0).expect("reads");
        assert_eq!(&buffer, b"lost");
        d.cut_power_at_sync(2);
        assert!(f.sync().is_err() && f.write_at(b"x", 0).is_err());
    }
}
