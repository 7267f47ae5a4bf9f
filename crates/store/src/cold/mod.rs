//! Segments whose files are objects of a store elsewhere (docs/design/cold.md): a folder of segments in which a file is local, or a
//! stub that says where its object is.
//!
//! Readers do not know where a file is: it has the same name and the same bytes. `moves` moves files.
//!
//! Invariants:
//! 1. A local file is removed only when the object was read back and has its checksum, and the stub is durable.
//! 2. An object has a stub, or a file that says that it is to be removed: written before the object is.
//! 3. While a file is local it is read there, whether there is a stub or not.
//! 4. An open file stays readable when it moves.
//! 5. The name of an object is never used twice, and no object is written twice.
//! 6. What comes from a store is checked against the stub before anybody reads or caches it.

mod asking;
mod cache;
mod moves;
mod stub;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock, Weak};

use melba_threads::atomic::{AtomicU64, Ordering};
use melba_threads::{Mutex, RwLock, Scheduler};
use melba_vfs::{Directory, File, OF_OBJECT, Objects, Random};

use crate::ids::{segment_name, segment_number};
pub use asking::{Asking, ColdFailure, ColdRequest, ColdSource, store_of};
use cache::ColdCache;
use stub::Stub;

/// The ends of names behind a segment's number: its stub, and a stub whose object is to be removed.
const STUB: &str = ".cold";
const GONE: &str = ".gone";
/// Behind any name: a file that is being written.
const NEW: &str = ".new";
/// Bytes that a request asks for at most, unless a single part is longer.
const AHEAD_BYTES_MAX: u64 = 8 << 20;
/// The size of the cache until it is set.
const CACHE_BYTES: u64 = 1 << 30;

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColdCounts {
    /// Reads that the cache answered.
    pub hits: u64,
    /// Requests that readers made, and the bytes that came.
    pub reads: u64,
    pub read_bytes: u64,
    /// Requests of readers that failed.
    pub failures: u64,
    pub cache_bytes: u64,
    pub cache_bytes_max: u64,
}

/// Where a segment's file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColdPlace {
    Local,
    /// Local, and an object too.
    Both {
        url: Arc<str>,
    },
    Cold {
        url: Arc<str>,
        kept_bytes: u64,
    },
}

/// How objects are reached and named.
struct ColdStores {
    objects: Arc<dyn Objects>,
    random: Arc<dyn Random>,
    scheduler: Arc<dyn Scheduler>,
}

/// What all cold files of an engine use.
struct ColdShared {
    stores: OnceLock<ColdStores>,
    cache: ColdCache,
    hits: AtomicU64,
    reads: AtomicU64,
    read_bytes: AtomicU64,
    failures: AtomicU64,
}

impl ColdShared {
    fn stores(&self) -> io::Result<&ColdStores> {
        self.stores.get().ok_or_else(|| io::Error::other("object stores are not available here"))
    }

    fn objects(&self) -> io::Result<&dyn Objects> {
        let stores = self.stores()?;
        stores.scheduler.before_wait();
        Ok(&*stores.objects)
    }
}

fn other_bytes(url: &str) -> io::Error {
    io::Error::new(OF_OBJECT, format!("the object \"{url}\" is not the segment that was written to it"))
}

/// What a stub says, in short.
#[derive(Clone)]
struct StubSummary {
    url: Arc<str>,
    kept_bytes: u64,
}

impl StubSummary {
    fn of(stub: &Stub) -> StubSummary {
        let kept_bytes = stub.layout.kept.iter().map(|range| range.end - range.start).sum();
        StubSummary { url: stub.url.as_str().into(), kept_bytes }
    }
}

/// See the module.
pub struct ColdDirectory {
    inner: Arc<dyn Directory>,
    shared: Arc<ColdShared>,
    places: Mutex<HashMap<String, Weak<MovableFile>>>,
    /// The segments that have stubs, and what they say where that was asked.
    stubs: Mutex<BTreeMap<u64, Option<StubSummary>>>,
    /// Files that merges need, and since when (the clock's microseconds; 0: nobody has looked).
    wanted: Mutex<BTreeMap<u64, i64>>,
    /// Files that a merge reads. They change together with the places of files (`places`).
    pinned: Mutex<Vec<u64>>,
    /// The last file of each store whose object could not be removed.
    refused: Mutex<HashMap<String, u64>>,
}

impl ColdDirectory {
    /// Over a folder of segments; the cache is below `root`.
    pub fn new(inner: Arc<dyn Directory>, root: Arc<dyn Directory>) -> Arc<ColdDirectory> {
        let shared = ColdShared {
            stores: OnceLock::new(),
            cache: ColdCache::new(root, CACHE_BYTES),
            hits: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        };
        Arc::new(ColdDirectory {
            inner,
            shared: Arc::new(shared),
            places: Mutex::default(),
            stubs: Mutex::default(),
            wanted: Mutex::default(),
            pinned: Mutex::default(),
            refused: Mutex::default(),
        })
    }

    /// Says how objects are reached, and what makes their names; `scheduler` is told before a thread waits for one. The first call counts.
    pub fn set_objects(&self, objects: Arc<dyn Objects>, random: Arc<dyn Random>, scheduler: Arc<dyn Scheduler>) {
        let _ = self.shared.stores.set(ColdStores { objects, random, scheduler });
    }

    pub fn set_cache_bytes(&self, bytes: u64) {
        self.shared.cache.set_capacity(bytes);
    }

    pub fn counts(&self) -> ColdCounts {
        let ColdShared { cache, hits, reads, read_bytes, failures, .. } = &*self.shared;
        ColdCounts {
            hits: hits.load(Ordering::Relaxed),
            reads: reads.load(Ordering::Relaxed),
            read_bytes: read_bytes.load(Ordering::Relaxed),
            failures: failures.load(Ordering::Relaxed),
            cache_bytes: cache.bytes(),
            cache_bytes_max: cache.capacity(),
        }
    }

    /// Whether any segment has a stub.
    pub fn is_used(&self) -> bool {
        !self.stubs.lock().is_empty()
    }

    /// Where a segment is.
    pub fn place(&self, file: u64) -> io::Result<ColdPlace> {
        let known = self.stubs.lock().get(&file).cloned();
        let Some(known) = known else { return Ok(ColdPlace::Local) };
        let StubSummary { url, kept_bytes } = match known {
            Some(known) => known,
            None => {
                let known = StubSummary::of(&Stub::read(&*self.inner.open_on_demand(&stub_name(file))?)?.0);
                self.stubs.lock().insert(file, Some(known.clone()));
                known
            }
        };
        Ok(if self.has_local(file)? { ColdPlace::Both { url } } else { ColdPlace::Cold { url, kept_bytes } })
    }

    fn has_stub(&self, file: u64) -> bool {
        self.stubs.lock().contains_key(&file)
    }

    fn has_local(&self, file: u64) -> io::Result<bool> {
        match self.inner.open_on_demand(&segment_name(file)) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Whether a segment is a stub only.
    pub fn is_cold(&self, file: u64) -> bool {
        self.has_stub(file) && !self.has_local(file).unwrap_or(true)
    }

    /// Whether all of some files are local, which they then stay until `unpin`; those that are not are asked for.
    pub fn pin(&self, files: Vec<u64>) -> bool {
        let _places = self.places.lock();
        let cold: Vec<u64> = files.iter().copied().filter(|file| self.is_cold(*file)).collect();
        let mut wanted = self.wanted.lock();
        for file in &cold {
            wanted.entry(*file).or_insert(0);
        }
        let is_local = cold.is_empty();
        if is_local {
            *self.pinned.lock() = files;
        }
        is_local
    }

    /// A merge is over.
    pub fn unpin(&self) {
        self.pinned.lock().clear();
    }

    fn open_place(&self, name: &str) -> io::Result<Arc<MovableFile>> {
        let mut places = self.places.lock();
        if let Some(place) = places.get(name).and_then(Weak::upgrade) {
            return Ok(place);
        }
        let content = match self.inner.open_on_demand(name) {
            Ok(file) => Content::Local(file),
            Err(e) if e.kind() == io::ErrorKind::NotFound => match segment_number(name) {
                Some(file) => Content::Cold(Arc::new(self.open_cold(file).map_err(|cold| match cold.kind() {
                    io::ErrorKind::NotFound => e,
                    _ => cold,
                })?)),
                None => return Err(e),
            },
            Err(e) => return Err(e),
        };
        let place = Arc::new(MovableFile { content: RwLock::new(content) });
        places.insert(name.to_owned(), Arc::downgrade(&place));
        Ok(place)
    }

    fn open_cold(&self, file: u64) -> io::Result<ColdFile> {
        let stub_file = self.inner.open_on_demand(&stub_name(file))?;
        let (stub, data) = Stub::read(&*stub_file)?;
        self.stubs.lock().insert(file, Some(StubSummary::of(&stub)));
        let next = |at: &mut u64, range: &Range<u64>| Some(std::mem::replace(at, *at + range.end - range.start));
        let kept_at = stub.layout.kept.iter().scan(data, next).collect();
        Ok(ColdFile { file, stub, kept_at, stub_file, shared: Arc::clone(&self.shared), ahead: Mutex::default() })
    }
}

fn stub_name(file: u64) -> String {
    format!("{file:016x}{STUB}")
}

fn gone_name(file: u64) -> String {
    format!("{file:016x}{GONE}")
}

/// The segment that a stub stands for.
fn stub_number(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_suffix(STUB)?, 16).ok()
}

/// The segment that had an object which is to be removed.
pub fn gone_number(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_suffix(GONE)?, 16).ok()
}

impl Directory for ColdDirectory {
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.inner.create(name)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        match self.inner.open(name) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && segment_number(name).is_some() => Ok(self.open_place(name)?),
            opened => opened,
        }
    }

    fn open_on_demand(&self, name: &str) -> io::Result<Arc<dyn File>> {
        if segment_number(name).is_none() {
            return self.inner.open_on_demand(name);
        }
        Ok(self.open_place(name)?)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    /// An object is removed later (`sweep`).
    fn remove(&self, name: &str) -> io::Result<()> {
        let Some(file) = segment_number(name) else { return self.inner.remove(name) };
        self.places.lock().remove(name);
        if !self.has_stub(file) {
            return self.inner.remove(name);
        }
        self.inner.rename(&stub_name(file), &gone_name(file))?;
        self.stubs.lock().remove(&file);
        self.wanted.lock().remove(&file);
        self.shared.cache.forget_file(file);
        match self.inner.remove(name) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    /// With segments that are stubs only.
    fn list(&self) -> io::Result<Vec<String>> {
        let names = self.inner.list()?;
        let stubs: BTreeSet<u64> = names.iter().filter_map(|name| stub_number(name)).collect();
        {
            let mut known = self.stubs.lock();
            for file in &stubs {
                known.entry(*file).or_default();
            }
        }
        let is_own = |name: &String| stub_number(name).is_some() || name.ends_with(NEW);
        let mut out: BTreeSet<String> = names.into_iter().filter(|name| !is_own(name)).collect();
        out.extend(stubs.into_iter().map(segment_name));
        Ok(out.into_iter().collect())
    }

    fn modified(&self, name: &str) -> io::Result<i64> {
        self.inner.modified(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.inner.sync_names()
    }

    fn subdirectory(&self, name: &str) -> io::Result<Arc<dyn Directory>> {
        self.inner.subdirectory(name)
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>> {
        self.inner.lock(name)
    }
}

/// An open segment file, wherever it is.
struct MovableFile {
    content: RwLock<Content>,
}

#[derive(Clone)]
enum Content {
    Local(Arc<dyn File>),
    Cold(Arc<ColdFile>),
}

impl Content {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Content::Local(file) => file.read_at(buffer, offset),
            Content::Cold(file) => file.read_at(buffer, offset),
        }
    }

    fn is_cold(&self) -> bool {
        matches!(self, Content::Cold(_))
    }
}

impl MovableFile {
    fn content(&self) -> Content {
        self.content.read().clone()
    }

    fn local(&self) -> io::Result<Arc<dyn File>> {
        match self.content() {
            Content::Local(file) => Ok(file),
            Content::Cold(_) => Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "a segment in a store is never changed")),
        }
    }
}

impl File for MovableFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let before = self.content();
        let read = before.read_at(buffer, offset);
        let after = self.content();
        // It may have moved meanwhile.
        if read.is_err() && before.is_cold() != after.is_cold() { after.read_at(buffer, offset) } else { read }
    }

    fn expect(&self, range: Range<u64>) {
        if let Content::Cold(cold) = self.content() {
            cold.expect(range);
        }
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.local()?.write_at(data, offset)
    }

    fn sync(&self) -> io::Result<()> {
        // A stub is durable from its beginning.
        self.local().map_or(Ok(()), |file| file.sync())
    }

    fn len(&self) -> io::Result<u64> {
        match self.content() {
            Content::Local(file) => file.len(),
            Content::Cold(cold) => Ok(cold.stub.bytes),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.local()?.set_len(len)
    }

    fn write_back(&self, offset: u64, len: u64) -> io::Result<()> {
        self.local()?.write_back(offset, len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.local()?.allocate(len)
    }
}

/// A segment that is an object.
struct ColdFile {
    file: u64,
    stub: Stub,
    /// Where each kept range begins in the stub's file.
    kept_at: Vec<u64>,
    stub_file: Arc<dyn File>,
    shared: Arc<ColdShared>,
    ahead: Mutex<Ahead>,
}

/// The last request: one that continues it asks for twice as much.
#[derive(Clone, Copy, Default)]
struct Ahead {
    next: u64,
    bytes: u64,
}

impl ColdFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64).filter(|end| *end <= self.stub.bytes);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut at = offset;
        while at < end {
            let out = &mut buffer[(at - offset) as usize..];
            at += match self.read_kept(at, out)? {
                0 => self.fetch(at, out)?,
                read => read,
            };
        }
        Ok(())
    }

    /// The next request for the first of some bytes asks for all of them.
    fn expect(&self, range: Range<u64>) {
        let next = self.part_start(self.stub.layout.ends.partition_point(|end| *end <= range.start));
        *self.ahead.lock() = Ahead { next, bytes: range.end.saturating_sub(next).div_ceil(2) };
    }

    /// Reads bytes that the stub has; how many.
    fn read_kept(&self, at: u64, out: &mut [u8]) -> io::Result<u64> {
        let kept = &self.stub.layout.kept;
        let which = kept.partition_point(|range| range.end <= at);
        let Some(range) = kept.get(which).filter(|range| range.contains(&at)) else { return Ok(0) };
        let bytes = (range.end - at).min(out.len() as u64);
        self.stub_file.read_at(&mut out[..bytes as usize], self.kept_at[which] + at - range.start)?;
        Ok(bytes)
    }

    /// Reads bytes of the cache, or else of the object; how many.
    fn fetch(&self, at: u64, out: &mut [u8]) -> io::Result<u64> {
        let (ends, shared) = (&self.stub.layout.ends, &self.shared);
        let part = ends.partition_point(|end| *end <= at);
        let start = self.part_start(part);
        let Some(end) = ends.get(part) else { return Err(io::ErrorKind::InvalidData.into()) };
        let in_part = (end - at).min(out.len() as u64);
        if shared.cache.read((self.file, part), (at - start) as usize, &mut out[..in_part as usize]) {
            shared.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(in_part);
        }
        let (last, content) = self.get_parts(part, at + out.len() as u64).inspect_err(|_| {
            shared.failures.fetch_add(1, Ordering::Relaxed);
        })?;
        let range = start..ends[last];
        shared.reads.fetch_add(1, Ordering::Relaxed);
        shared.read_bytes.fetch_add(content.len() as u64, Ordering::Relaxed);
        *self.ahead.lock() = Ahead { next: range.end, bytes: range.end - range.start };
        for (part, end) in ends.iter().enumerate().take(last + 1).skip(part) {
            let within = (self.part_start(part) - start) as usize..(end - start) as usize;
            shared.cache.insert((self.file, part), &content[within]);
        }
        let from = (at - start) as usize;
        let read = (content.len() - from).min(out.len());
        out[..read].copy_from_slice(&content[from..from + read]);
        Ok(read as u64)
    }

    /// Gets parts from the object: from one to the one that is returned with them. When what comes is not what was written, the
    /// first of them is asked for once more.
    fn get_parts(&self, part: usize, wanted: u64) -> io::Result<(usize, Vec<u8>)> {
        let (ends, url, start) = (&self.stub.layout.ends, &self.stub.url, self.part_start(part));
        for last in [self.last_part(part, wanted), part] {
            let content = self.shared.objects()?.get(url, start..ends[last])?;
            if self.are_whole(part, last, &content) {
                return Ok((last, content));
            }
        }
        Err(other_bytes(url))
    }

    /// Whether bytes are those of some parts, in order.
    fn are_whole(&self, first: usize, last: usize, mut content: &[u8]) -> bool {
        for part in first..=last {
            let bytes = (self.stub.layout.ends[part] - self.part_start(part)) as usize;
            let Some((own, rest)) = content.split_at_checked(bytes) else { return false };
            if self.stub.part_crcs.get(part) != Some(&crc32c::crc32c(own)) {
                return false;
            }
            content = rest;
        }
        content.is_empty()
    }

    fn part_start(&self, part: usize) -> u64 {
        part.checked_sub(1).map_or(0, |before| self.stub.layout.ends[before])
    }

    /// The last part of a request that begins with one: as far as the reader wants, and further when readers go on and on.
    fn last_part(&self, part: usize, wanted: u64) -> usize {
        let (ends, start) = (&self.stub.layout.ends, self.part_start(part));
        let Ahead { next, bytes } = *self.ahead.lock();
        let ahead = if next == start { start + 2 * bytes } else { start };
        let mut last = part;
        // The last part of all is the footer, which is here.
        while last + 2 < ends.len() && ends[last] < wanted.max(ahead) && ends[last + 1] - start <= AHEAD_BYTES_MAX {
            last += 1;
        }
        last
    }
}

#[cfg(test)]
mod tests;
