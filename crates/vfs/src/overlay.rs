//! A folder that is only read: writes are kept in memory, and dropped with it.
//!
//! So a database can be opened, recovered and read without a change on the disk: to be checked, also when the disk is full or must
//! stay as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::{Directory, File};

/// A folder over another one, which it leaves alone.
pub struct OverlayDirectory {
    below: Option<Arc<dyn Directory>>,
    state: Mutex<OverlayState>,
}

#[derive(Default)]
struct OverlayState {
    /// Files that were created or written to.
    files: BTreeMap<String, Arc<OverlayFile>>,
    /// Names of removed files below.
    removed: BTreeSet<String>,
    folders: BTreeMap<String, Arc<OverlayDirectory>>,
}

/// A file's content: below, until it is written to.
struct OverlayFile {
    below: Option<Arc<dyn File>>,
    own: Mutex<Option<Vec<u8>>>,
}

impl OverlayFile {
    /// Copies the file below, and changes the copy.
    fn change(&self, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut own = self.own.lock();
        if own.is_none() {
            let mut bytes = Vec::new();
            if let Some(below) = &self.below {
                bytes.resize(below.len()? as usize, 0);
                below.read_at(&mut bytes, 0)?;
            }
            *own = Some(bytes);
        }
        if let Some(bytes) = own.as_mut() {
            change(bytes);
        }
        Ok(())
    }
}

impl File for OverlayFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match (&*self.own.lock(), &self.below) {
            (Some(bytes), _) => {
                let from = offset as usize;
                let found = bytes.get(from..from + buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
                buffer.copy_from_slice(found);
                Ok(())
            }
            (None, Some(below)) => below.read_at(buffer, offset),
            (None, None) => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.change(|bytes| {
            let (from, to) = (offset as usize, offset as usize + data.len());
            bytes.resize(bytes.len().max(to), 0);
            bytes[from..to].copy_from_slice(data);
        })
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        match (&*self.own.lock(), &self.below) {
            (Some(bytes), _) => Ok(bytes.len() as u64),
            (None, below) => below.as_ref().map_or(Ok(0), |below| below.len()),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(|bytes| bytes.resize(len as usize, 0))
    }

    fn write_back(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn allocate(&self, _len: u64) -> io::Result<()> {
        Ok(())
    }
}

impl OverlayDirectory {
    pub fn new(below: Arc<dyn Directory>) -> Arc<OverlayDirectory> {
        Arc::new(OverlayDirectory { below: Some(below), state: Mutex::default() })
    }

    fn find(&self, state: &OverlayState, name: &str) -> io::Result<Arc<OverlayFile>> {
        if let Some(file) = state.files.get(name) {
            return Ok(Arc::clone(file));
        }
        match &self.below {
            Some(below) if !state.removed.contains(name) => {
                // A handle for each call: segments, which are most of the files, are never written to.
                Ok(Arc::new(OverlayFile { below: Some(below.open(name)?), own: Mutex::new(None) }))
            }
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn exists(&self, state: &OverlayState, name: &str) -> bool {
        self.find(state, name).is_ok()
    }
}

impl Directory for OverlayDirectory {
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut state = self.state.lock();
        if self.exists(&state, name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = Arc::new(OverlayFile { below: None, own: Mutex::new(Some(Vec::new())) });
        state.files.insert(name.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut state = self.state.lock();
        let file = self.find(&state, name)?;
        // All handles see each other's writes.
        state.files.insert(name.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    fn open_on_demand(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let state = self.state.lock();
        match (state.files.get(name), &self.below) {
            (None, Some(below)) if !state.removed.contains(name) => below.open_on_demand(name),
            _ => self.find(&state, name).map(|file| file as Arc<dyn File>),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        let file = self.find(&state, from)?;
        state.files.remove(from);
        state.removed.insert(from.to_owned());
        state.files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        self.find(&state, name)?;
        state.files.remove(name);
        state.removed.insert(name.to_owned());
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let below = self.below.as_ref().map_or(Ok(Vec::new()), |below| below.list())?;
        let state = self.state.lock();
        let mut names: BTreeSet<String> = below.into_iter().filter(|name| !state.removed.contains(name)).collect();
        names.extend(state.files.keys().cloned());
        Ok(names.into_iter().collect())
    }

    fn sync_names(&self) -> io::Result<()> {
        Ok(())
    }

    /// One that is missing below is not made there.
    fn subdirectory(&self, name: &str) -> io::Result<Arc<dyn Directory>> {
        let mut state = self.state.lock();
        if let Some(folder) = state.folders.get(name) {
            return Ok(Arc::clone(folder) as Arc<dyn Directory>);
        }
        let below = self.below.as_ref().map_or(Ok(None), |below| below.existing_subdirectory(name))?;
        let folder = Arc::new(OverlayDirectory { below, state: Mutex::default() });
        state.folders.insert(name.to_owned(), Arc::clone(&folder));
        Ok(folder)
    }

    /// No other process can have data in memory; the caller locks the folder below.
    fn lock(&self, _name: &str) -> io::Result<Box<dyn Send + Sync>> {
        Ok(Box::new(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Faults, FaultyDirectory, FileOperation, MemoryDirectory};

    fn content(directory: &dyn Directory, name: &str) -> Vec<u8> {
        let file = directory.open(name).expect("there");
        let mut bytes = vec![0; file.len().expect("answers") as usize];
        file.read_at(&mut bytes, 0).expect("reads");
        bytes
    }

    #[test]
    fn what_is_written_is_seen_and_nothing_below_changes() {
        let memory = MemoryDirectory::new();
        for name in ["a", "b", "c"] {
            memory.create(name).and_then(|f| f.write_at(name.as_bytes(), 0)).expect("writes");
        }
        let faults = Faults::new();
        let below = FaultyDirectory::new(Arc::clone(&memory) as Arc<dyn Directory>, Arc::clone(&faults));
        // Every change fails.
        faults.fail_from(FileOperation::CHANGES, 0);
        let over = OverlayDirectory::new(below);
        over.open("a").and_then(|f| f.write_at(b"xyz", 1)).expect("writes");
        assert_eq!(content(&*over, "a"), b"axyz");
        over.rename("b", "d").expect("renames");
        over.remove("c").expect("removes");
        assert!(over.open("b").is_err() && over.open("c").is_err() && over.create("a").is_err());
        over.create("c").and_then(|f| f.write_at(b"new", 0)).expect("creates again");
        over.rename("c", "a").expect("replaces");
        assert_eq!((content(&*over, "a"), content(&*over, "d")), (b"new".to_vec(), b"b".to_vec()));
        assert_eq!(over.list().expect("lists"), ["a", "d"]);
        let folder = over.subdirectory("folder").expect("in memory");
        folder.create("e").expect("creates");
        assert_eq!(over.subdirectory("folder").and_then(|f| f.list()).expect("lists"), ["e"]);
        assert_eq!(memory.list().expect("lists"), ["a", "b", "c"]);
        assert_eq!(content(&*memory, "a"), b"a");
        assert!(memory.existing_subdirectory("folder").expect("answers").is_none());
        assert_eq!(faults.failures(), 0);
    }
}
