//! Parts of cold segments on the local disk: a file each, in a folder that its first use after a start empties.
//!
//! Invariants:
//! 1. The files have at most `capacity` bytes together, but for the one being written.
//! 2. What is read is checked against checksums in memory: a part whose file is damaged or gone is fetched again.
//! 3. No lock is held while a file is read or written. File names are never used twice.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use melba_threads::Mutex;
use melba_threads::atomic::{AtomicU64, Ordering};
use melba_vfs::Directory;

/// The folder, below the data directory.
const FOLDER: &str = "cold";
/// Bytes under one checksum: what a read of less reads.
const PIECE_BYTES: usize = 32 << 10;

/// A part of a file: the file's number, and the part's.
pub type PartName = (u64, usize);

struct CachedPart {
    file: String,
    bytes: u64,
    crcs: Arc<[u32]>,
    /// Since the clock's hand last passed.
    is_used: bool,
}

#[derive(Default)]
struct CacheState {
    parts: HashMap<PartName, CachedPart>,
    clock: VecDeque<PartName>,
    bytes: u64,
}

/// See the module.
pub struct ColdCache {
    root: Arc<dyn Directory>,
    folder: OnceLock<Option<Arc<dyn Directory>>>,
    capacity: AtomicU64,
    next: AtomicU64,
    state: Mutex<CacheState>,
}

impl ColdCache {
    /// In a folder of `root`, which is made when it is needed.
    pub fn new(root: Arc<dyn Directory>, capacity: u64) -> ColdCache {
        ColdCache {
            root,
            folder: OnceLock::new(),
            capacity: AtomicU64::new(capacity),
            next: AtomicU64::new(1),
            state: Mutex::default(),
        }
    }

    pub fn set_capacity(&self, bytes: u64) {
        self.capacity.store(bytes, Ordering::Relaxed);
    }

    pub fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Relaxed)
    }

    pub fn bytes(&self) -> u64 {
        self.state.lock().bytes
    }

    /// The folder, emptied by its first use; none where it cannot be made: then nothing is cached.
    fn folder(&self) -> Option<&Arc<dyn Directory>> {
        let make = || {
            let folder = self.root.subdirectory(FOLDER).ok()?;
            folder.list().ok()?.iter().for_each(|name| drop(folder.remove(name)));
            Some(folder)
        };
        self.folder.get_or_init(make).as_ref()
    }

    /// Fills `out` with the bytes of a part from `from` on; false when the part is not there.
    pub fn read(&self, name: PartName, from: usize, out: &mut [u8]) -> bool {
        let (file, bytes, crcs) = {
            let mut state = self.state.lock();
            let Some(part) = state.parts.get_mut(&name) else { return false };
            part.is_used = true;
            (part.file.clone(), part.bytes as usize, Arc::clone(&part.crcs))
        };
        let first = from / PIECE_BYTES;
        let (start, end) = (first * PIECE_BYTES, (from + out.len()).next_multiple_of(PIECE_BYTES).min(bytes));
        let read = || {
            let mut content = vec![0; end.checked_sub(start)?];
            self.folder()?.open_on_demand(&file).ok()?.read_at(&mut content, start as u64).ok()?;
            let mut pieces = content.chunks(PIECE_BYTES).zip(crcs.get(first..)?);
            pieces.all(|(piece, crc)| crc32c::crc32c(piece) == *crc).then_some(content)
        };
        let content = read();
        match content.as_deref().and_then(|content| content.get(from - start..from - start + out.len())) {
            Some(found) => {
                out.copy_from_slice(found);
                true
            }
            None => {
                self.forget(|other| *other == name);
                false
            }
        }
    }

    /// Keeps a part, and drops others that were not used of late.
    pub fn insert(&self, name: PartName, content: &[u8]) {
        let (bytes, capacity) = (content.len() as u64, self.capacity());
        if bytes > capacity || self.state.lock().parts.contains_key(&name) {
            return;
        }
        let Some(folder) = self.folder() else { return };
        let file = format!("{:016x}.part", self.next.fetch_add(1, Ordering::Relaxed));
        let written = folder.create(&file).and_then(|created| created.write_at(content, 0));
        if written.is_err() {
            // A full disk, say: the part is fetched again when it is needed.
            let _ = folder.remove(&file);
            return;
        }
        let crcs = content.chunks(PIECE_BYTES).map(crc32c::crc32c).collect();
        let mut gone = Vec::new();
        {
            let mut state = self.state.lock();
            if state.parts.contains_key(&name) {
                gone.push(file);
            } else {
                state.make_room(capacity - bytes, &mut gone);
                state.bytes += bytes;
                state.clock.push_back(name);
                state.parts.insert(name, CachedPart { file, bytes, crcs, is_used: false });
            }
        }
        gone.iter().for_each(|file| drop(folder.remove(file)));
    }

    /// Forgets all parts of a file.
    pub fn forget_file(&self, file: u64) {
        self.forget(|name| name.0 == file);
    }

    fn forget(&self, which: impl Fn(&PartName) -> bool) {
        let mut gone = Vec::new();
        {
            let mut state = self.state.lock();
            let names: Vec<PartName> = state.parts.keys().filter(|name| which(name)).copied().collect();
            names.iter().for_each(|name| gone.extend(state.remove(name)));
            state.clock.retain(|name| !which(name));
        }
        if let Some(Some(folder)) = self.folder.get() {
            gone.iter().for_each(|file| drop(folder.remove(file)));
        }
    }
}

impl CacheState {
    fn remove(&mut self, name: &PartName) -> Option<String> {
        let part = self.parts.remove(name)?;
        self.bytes -= part.bytes;
        Some(part.file)
    }

    /// Drops parts until the others have at most `bytes`.
    fn make_room(&mut self, bytes: u64, gone: &mut Vec<String>) {
        while self.bytes > bytes {
            let Some(name) = self.clock.pop_front() else { break };
            match self.parts.get_mut(&name) {
                Some(part) if part.is_used => {
                    part.is_used = false;
                    self.clock.push_back(name);
                }
                _ => gone.extend(self.remove(&name)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use melba_vfs::MemoryDirectory;

    #[test]
    fn parts_are_found_until_others_take_their_place_and_damage_is_a_miss() {
        let root = MemoryDirectory::new();
        let left = root.subdirectory(FOLDER).expect("makes");
        left.create("left by a crash").expect("creates");
        let cache = ColdCache::new(Arc::clone(&root) as Arc<dyn Directory>, 300_000);
        let content: Vec<u8> = (0..100_000u32).map(|i| (i % 251) as u8).collect();
        let mut out = [0; 1000];
        for part in 0..10 {
            cache.insert((1, part), &content);
            assert!(cache.bytes() <= 300_000 && cache.read((1, part), 65_000, &mut out) && out[..] == content[65_000..66_000]);
        }
        assert_eq!(left.list().expect("lists").len(), 3);
        cache.insert((2, 0), &vec![0; 400_000]);
        assert!(!cache.read((2, 0), 0, &mut out), "more than all");
        assert!(cache.read((1, 9), 0, &mut out));
        let files = left.list().expect("lists");
        files.iter().for_each(|file| {
            let file = left.open(file).expect("there");
            file.write_at(&[9, 9, 9], 40_000).expect("writes");
        });
        assert!(!cache.read((1, 9), 39_000, &mut out) && !cache.read((1, 9), 0, &mut out), "damaged, and forgotten");
        cache.forget_file(1);
        assert_eq!((cache.bytes(), left.list().expect("lists").len()), (0, 0));
    }
}
