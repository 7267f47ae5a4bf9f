//! The segment files of an engine: their names and numbers, opening them, and when they are removed.

use std::sync::Arc;

use melba_segment::{BlockCache, KeySegmentReader, TableSegmentReader};
use melba_threads::Mutex;
use melba_threads::atomic::{AtomicBool, AtomicU64, Ordering};
use melba_types::{Csn, TreeId};
use melba_vfs::{Directory, SwitchedDirectory, SyncSwitch};

use crate::cold::ColdDirectory;
use crate::error::{EngineError, Result};
use crate::ids::segment_name;

/// A segment of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentFile {
    pub file: u64,
    /// The meaning of CSN 0 in the file: the CSN of the commit that linked it.
    pub assigned: Csn,
    /// The checksum of its footer, by which it is known from every other file; 0 when it is not known yet.
    pub footer_crc: u32,
}

impl SegmentFile {
    /// One that has not been opened yet.
    pub fn unknown(file: u64, assigned: Csn) -> SegmentFile {
        SegmentFile { file, assigned, footer_crc: 0 }
    }

    /// The same with the checksum that was found; an error when it is another file's.
    pub fn recognised(self, footer_crc: u32) -> Result<SegmentFile> {
        if self.footer_crc != 0 && self.footer_crc != footer_crc {
            let name = segment_name(self.file);
            let what = format!("invalid footer in file \"{name}\": it is not the file that was written under this name");
            return Err(EngineError::Corrupt { what });
        }
        Ok(SegmentFile { footer_crc, ..self })
    }
}

/// Files that no tree needs any more.
#[derive(Default)]
pub struct Trash {
    pub files: Mutex<Vec<SegmentFile>>,
    /// As long as there are any, files stay: backups copy them.
    holds: AtomicU64,
}

impl Trash {
    /// Files that exist from now on, and are named by the state then in force, stay until `release`.
    pub fn hold(&self) {
        self.holds.fetch_add(1, Ordering::SeqCst);
    }

    pub fn release(&self) {
        self.holds.fetch_sub(1, Ordering::SeqCst);
    }

    /// The files that may be deleted now.
    pub fn take(&self) -> Vec<SegmentFile> {
        let mut files = self.files.lock();
        if self.holds.load(Ordering::SeqCst) > 0 { Vec::new() } else { std::mem::take(&mut *files) }
    }
}

/// Limits of the sizes of files.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub cache_bytes: usize,
    /// See `Files::segment_bytes`.
    pub segment_bytes: usize,
}

/// The segment files of an engine.
pub struct Files {
    /// Below the other two.
    pub cold: Arc<ColdDirectory>,
    pub directory: Arc<dyn Directory>,
    /// The same, for files that a crash may take.
    pub unsynced: Arc<dyn Directory>,
    pub cache: Arc<BlockCache>,
    pub trash: Arc<Trash>,
    /// The number of the next file; never used before.
    pub next: AtomicU64,
    /// Raw bytes after which another segment is begun, at most: a merge rewrites about so much at a time.
    pub segment_bytes: usize,
}

/// The segments of a flush are this many times smaller than a full one, so that merges can be done with them one by one.
const PIECES: usize = 8;

impl Files {
    /// Of the folder of segments, in which `sync` says whether anything is made durable.
    pub fn new(segments: &Arc<ColdDirectory>, sync: &SyncSwitch, sizes: Sizes, next: u64) -> Files {
        let folder = || Arc::clone(segments) as Arc<dyn Directory>;
        let switched = |sync: SyncSwitch| Arc::new(SwitchedDirectory::new(folder(), sync)) as Arc<dyn Directory>;
        Files {
            cold: Arc::clone(segments),
            directory: switched(sync.clone()),
            unsynced: switched(SyncSwitch::new(false)),
            cache: BlockCache::new(sizes.cache_bytes),
            trash: Arc::default(),
            next: AtomicU64::new(next),
            segment_bytes: sizes.segment_bytes,
        }
    }

    /// Where to write a segment that is durable when finished, or need not be.
    pub fn writable(&self, synced: bool) -> &dyn Directory {
        if synced { &*self.directory } else { &*self.unsynced }
    }

    pub fn next_file(&self) -> u64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    /// Raw bytes of a segment that a flush writes, about.
    pub fn piece_bytes(&self) -> usize {
        (self.segment_bytes / PIECES).max(1)
    }

    /// Opens a table's segment; rows with CSN 0 get the CSN that it was assigned. It must be the file that was written under its name.
    pub fn open_table(&self, segment: SegmentFile) -> Result<Arc<TableRun>> {
        let name = segment_name(segment.file);
        let reader = TableSegmentReader::open_assigned(&*self.directory, &name, &self.cache, segment.assigned)?;
        let segment = segment.recognised(reader.meta().footer_crc)?;
        Ok(Run::new(segment, reader, Usage::new(segment.file, &self.trash)))
    }

    /// Opens an index's segment; entries with CSN 0 get the CSN that it was assigned. It must be the file that was written under its name.
    pub fn open_index(&self, segment: SegmentFile) -> Result<Arc<IndexRun>> {
        let name = segment_name(segment.file);
        let reader = KeySegmentReader::open_assigned(&*self.directory, &name, &self.cache, segment.assigned)?;
        let segment = segment.recognised(reader.meta().footer_crc)?;
        Ok(Run::new(segment, reader, Usage::new(segment.file, &self.trash)))
    }

    /// Opens a transaction's table segment for all sessions: its rows get the commit's CSN, `assigned`.
    pub fn link_table(&self, private: &TableRun, assigned: Csn) -> Result<Arc<TableRun>> {
        let segment = SegmentFile { assigned, ..private.segment };
        let reader = TableSegmentReader::open_assigned(&*self.directory, &segment_name(segment.file), &self.cache, assigned)?;
        Ok(Run::new(segment.recognised(reader.meta().footer_crc)?, reader, Arc::clone(&private.usage)))
    }

    /// Opens a transaction's index segment for all sessions: its entries get the commit's CSN, `assigned`.
    pub fn link_index(&self, private: &IndexRun, assigned: Csn) -> Result<Arc<IndexRun>> {
        let segment = SegmentFile { assigned, ..private.segment };
        let reader = KeySegmentReader::open_assigned(&*self.directory, &segment_name(segment.file), &self.cache, assigned)?;
        Ok(Run::new(segment.recognised(reader.meta().footer_crc)?, reader, Arc::clone(&private.usage)))
    }

    /// Makes the names of new files durable.
    pub fn sync_names(&self) -> Result<()> {
        self.directory.sync_names().map_err(|e| EngineError::io("sync the segments' directory", e))
    }

    /// Removes a file that is not needed and that no commit has linked.
    pub fn discard(&self, file: u64) {
        self.trash.files.lock().push(SegmentFile::unknown(file, Csn(0)));
    }
}

/// An open segment of a tree.
pub struct Run<R> {
    pub segment: SegmentFile,
    pub reader: Arc<R>,
    /// Shared by a transaction's own view of a segment and everybody's after its commit.
    usage: Arc<Usage>,
}

impl<R> Run<R> {
    fn new(segment: SegmentFile, reader: Arc<R>, usage: Arc<Usage>) -> Arc<Run<R>> {
        usage.assigned.store(segment.assigned.0, Ordering::Release);
        Arc::new(Run { segment, reader, usage })
    }

    /// Replaced by a merge, dropped, or rolled back: the file is deleted when its last reader is dropped.
    pub fn discard(&self) {
        self.usage.obsolete.store(true, Ordering::Release);
    }
}

impl TableRun {
    /// The same, whose blocks are counted for a tree.
    pub fn of_tree(self: Arc<TableRun>, tree: TreeId) -> Arc<TableRun> {
        self.reader.set_owner(tree.0);
        self
    }
}

impl IndexRun {
    /// The same, whose blocks are counted for a tree.
    pub fn of_tree(self: Arc<IndexRun>, tree: TreeId) -> Arc<IndexRun> {
        self.reader.set_owner(tree.0);
        self
    }
}

/// That a file is read.
struct Usage {
    file: u64,
    /// The CSN of the commit that linked it, or 0.
    assigned: AtomicU64,
    obsolete: AtomicBool,
    trash: Arc<Trash>,
}

impl Usage {
    fn new(file: u64, trash: &Arc<Trash>) -> Arc<Usage> {
        Arc::new(Usage { file, assigned: AtomicU64::new(0), obsolete: false.into(), trash: Arc::clone(trash) })
    }
}

impl Drop for Usage {
    fn drop(&mut self) {
        if *self.obsolete.get_mut() {
            let assigned = Csn(*self.assigned.get_mut());
            self.trash.files.lock().push(SegmentFile::unknown(self.file, assigned));
        }
    }
}

pub type TableRun = Run<TableSegmentReader>;
pub type IndexRun = Run<KeySegmentReader>;
