//! A folder in memory whose power can be cut: unsynced data is lost, in part or altogether.
//!
//! A sector that was written since the file's last sync holds its durable content or any written to it since, independently of
//! all others; an unsynced change of a name has happened or not, independently of all others. A sector and a change of a name are
//! atomic.

use std::collections::{BTreeMap, HashMap};
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
    /// Sectors written since the last sync, each with its contents between those writes, oldest first.
    dirty: HashMap<usize, Vec<Vec<u8>>>,
}

type Inode = Arc<Mutex<Content>>;

#[derive(Default)]
struct Power {
    /// Syncs (of files and of names) so far.
    syncs: u64,
    /// The sync that fails, and everything after it.
    cut_at_sync: Option<u64>,
    off: bool,
    bytes_written: u64,
}

/// A change of a folder that is not durable yet.
enum NameChange {
    Create(String, Inode),
    Rename(String, String, Inode),
    Remove(String),
    Folder(String),
}

#[derive(Default)]
struct Names {
    current: BTreeMap<String, Inode>,
    durable: BTreeMap<String, Inode>,
    /// The changes that `current` has and `durable` lacks, in order.
    changes: Vec<NameChange>,
    folders: BTreeMap<String, Arc<MemoryDirectory>>,
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

/// The guard is held while an operation runs, so that a cut comes before or after it.
fn operate(power: &Mutex<Power>) -> io::Result<MutexGuard<'_, Power>> {
    let power = power.lock();
    if power.off { Err(power_is_off()) } else { Ok(power) }
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

    /// Syncs so far.
    pub fn syncs(&self) -> u64 {
        self.power.lock().syncs
    }

    /// Bytes written so far.
    pub fn bytes_written(&self) -> u64 {
        self.power.lock().bytes_written
    }

    /// Whether the power has been cut.
    pub fn is_off(&self) -> bool {
        self.power.lock().off
    }

    /// The state when the power comes back: everything synced, and of the rest the changes that `keep` lets through. It is
    /// called, in order, for each change of a name, which may be lost or not independently of those before it, and for each
    /// content of an unsynced sector, newest first, until one is kept.
    pub fn after_power_cut(&self, keep: &mut dyn FnMut() -> bool) -> Arc<MemoryDirectory> {
        self.survive(keep, Arc::default())
    }

    fn survive(&self, keep: &mut dyn FnMut() -> bool, power: Arc<Mutex<Power>>) -> Arc<MemoryDirectory> {
        let names = self.names.lock();
        let mut found = names.durable.clone();
        let mut lost_folders = Vec::new();
        for change in &names.changes {
            match (keep(), change) {
                (false, NameChange::Folder(name)) => lost_folders.push(name),
                (true, NameChange::Create(name, inode)) => drop(found.insert(name.clone(), Arc::clone(inode))),
                (true, NameChange::Remove(name)) => drop(found.remove(name)),
                (true, NameChange::Rename(from, to, inode)) => {
                    found.remove(from);
                    found.insert(to.clone(), Arc::clone(inode));
                }
                _ => {}
            }
        }
        let found: BTreeMap<String, Inode> =
            found.into_iter().map(|(name, inode)| (name, Arc::new(Mutex::new(inode.lock().survive(keep))))).collect();
        let folders = names.folders.iter().filter(|(name, _)| !lost_folders.contains(name));
        let folders = folders.map(|(name, folder)| (name.clone(), folder.survive(keep, Arc::clone(&power)))).collect();
        let names = Names { current: found.clone(), durable: found, changes: Vec::new(), folders };
        Arc::new(MemoryDirectory { names: Mutex::new(names), power })
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

/// The range of a sector in a content of `len` bytes.
fn sector_range(sector: usize, len: usize) -> std::ops::Range<usize> {
    (sector * SECTOR_BYTES).min(len)..((sector + 1) * SECTOR_BYTES).min(len)
}

impl Content {
    fn write(&mut self, data: &[u8], offset: usize) {
        let end = offset + data.len();
        let Content { current, dirty, .. } = self;
        for sector in offset / SECTOR_BYTES..=(end - 1) / SECTOR_BYTES {
            let range = sector_range(sector, current.len());
            dirty.entry(sector).and_modify(|earlier| earlier.push(current[range].to_vec())).or_default();
        }
        if current.len() < end {
            current.resize(end, 0);
        }
        current[offset..end].copy_from_slice(data);
    }

    fn survive(&self, keep: &mut dyn FnMut() -> bool) -> Content {
        let mut data = self.durable.clone();
        let mut dirty: Vec<_> = self.dirty.iter().collect();
        dirty.sort_unstable_by_key(|(sector, _)| **sector);
        for (sector, earlier) in dirty {
            let newest = &self.current[sector_range(*sector, self.current.len())];
            let contents = std::iter::once(newest).chain(earlier.iter().rev().map(Vec::as_slice));
            let Some(kept) = contents.into_iter().find(|_| keep()) else { continue };
            let from = sector * SECTOR_BYTES;
            if !kept.is_empty() {
                data.resize(data.len().max(from + kept.len()), 0);
                data[from..from + kept.len()].copy_from_slice(kept);
            }
        }
        Content { durable: data.clone(), current: data, dirty: HashMap::new() }
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
        self.content.lock().write(data, offset as usize);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let _power = sync_point(&self.power)?;
        let mut content = self.content.lock();
        let Content { current, durable, dirty } = &mut *content;
        durable.resize(current.len(), 0);
        for (sector, _) in dirty.drain() {
            let range = sector_range(sector, current.len());
            durable[range.clone()].copy_from_slice(&current[range]);
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

    /// A crash loses a random part in either case.
    fn write_back(&self, _offset: u64, _len: u64) -> io::Result<()> {
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
        names.changes.push(NameChange::Create(name.to_owned(), Arc::clone(&content)));
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
        names.current.insert(to.to_owned(), Arc::clone(&content));
        names.changes.push(NameChange::Rename(from.to_owned(), to.to_owned(), content));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let _power = operate(&self.power)?;
        let mut names = self.names.lock();
        names.current.remove(name).ok_or(io::ErrorKind::NotFound)?;
        names.changes.push(NameChange::Remove(name.to_owned()));
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.names.lock().current.keys().cloned().collect())
    }

    fn sync_names(&self) -> io::Result<()> {
        let _power = sync_point(&self.power)?;
        let mut names = self.names.lock();
        names.durable = names.current.clone();
        names.changes.clear();
        Ok(())
    }

    fn subdirectory(&self, name: &str) -> io::Result<Arc<dyn Directory>> {
        let mut names = self.names.lock();
        if let Some(folder) = names.folders.get(name) {
            return Ok(Arc::clone(folder) as Arc<dyn Directory>);
        }
        let folder = Arc::new(MemoryDirectory { names: Mutex::default(), power: Arc::clone(&self.power) });
        names.folders.insert(name.to_owned(), Arc::clone(&folder));
        names.changes.push(NameChange::Folder(name.to_owned()));
        Ok(folder)
    }

    fn existing_subdirectory(&self, name: &str) -> io::Result<Option<Arc<dyn Directory>>> {
        Ok(self.names.lock().folders.get(name).map(|folder| Arc::clone(folder) as Arc<dyn Directory>))
    }

    fn lock(&self, _name: &str) -> io::Result<Box<dyn Send + Sync>> {
        // Locks die with the process, and a test's process is the engine value; a second open in one test is its own doing.
        Ok(Box::new(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_cut_loses_unsynced_data_only() {
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
    fn names(d: &MemoryDirectory) -> Vec<String> {
        d.list().expect("lists")
    }

    #[test]
    fn unsynced_names_survive_or_not_each_by_itself() {
        let d = MemoryDirectory::new();
        for name in ["a", "b"] {
            d.create(name).expect("creates");
        }
        d.sync_names().expect("syncs");
        d.rename("a", "c").expect("renames");
        d.remove("b").expect("removes");
        d.create("d").expect("creates");
        assert_eq!(names(&d.after_power_cut(&mut || false)), ["a", "b"]);
        assert_eq!(names(&d.after_power_cut(&mut || true)), ["c", "d"]);
        let mut answers = [false, true, false].into_iter();
        assert_eq!(names(&d.after_power_cut(&mut || answers.next().expect("one for each change"))), ["a"]);
    }

    #[test]
    fn an_unsynced_sector_may_have_any_content_that_it_had() {
        let d = MemoryDirectory::new();
        let f = d.create("a").expect("creates");
        d.sync_names().expect("syncs");
        for byte in 1..=3u8 {
            f.write_at(&[byte; 2 * SECTOR_BYTES], 0).expect("writes");
        }
        let found = |answers: &[bool]| {
            let mut answers = answers.iter();
            let after = d.after_power_cut(&mut || *answers.next().expect("one for each content"));
            let file = after.open("a").expect("there");
            let mut bytes = vec![0; file.len().expect("answers") as usize];
            file.read_at(&mut bytes, 0).expect("reads");
            bytes.chunks(SECTOR_BYTES).map(|sector| sector[0]).collect::<Vec<u8>>()
        };
        assert_eq!(found(&[true, false, true]), [3, 2]);
        assert_eq!(found(&[false, false, true, false, false, false]), [1]);
        assert_eq!(found(&[false, false, false, true]), [0, 3], "what lies before a kept sector reads as zeros");
    }

    #[test]
    fn folders_share_their_power() {
        let d = MemoryDirectory::new();
        d.subdirectory("below").expect("creates");
        assert!(d.after_power_cut(&mut || false).names.lock().folders.is_empty());
        d.sync_names().expect("syncs");
        let after = d.after_power_cut(&mut || false);
        let below = after.subdirectory("below").expect("there");
        after.cut_power();
        assert!(below.create("x").is_err() && after.is_off());
    }
}
