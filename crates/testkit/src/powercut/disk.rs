//! The state of files after a power cut, from the journal of their changes. The rules are `MemoryDirectory`'s: synced data is
//! there, each unsynced sector has old or later content, and each unsynced name changed or did not.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use melba_vfs::{Directory, MemoryDirectory, SeededRandom};

use super::journal::{EntryKind, Journal, JournalEntry};

/// A disk that reports syncs of everything below this path, but does not sync.
pub type Lie<'a> = Option<&'a str>;

/// A disk that is at rest: everything on it is durable.
pub struct Disk {
    files: Arc<MemoryDirectory>,
    folders: BTreeSet<String>,
}

impl Default for Disk {
    fn default() -> Disk {
        Disk { files: MemoryDirectory::new(), folders: BTreeSet::new() }
    }
}

impl Disk {
    /// This disk after a journal's operations up to a place, and a power cut there. `kept` percent of the changes not yet durable
    /// are kept.
    ///
    /// # Errors
    /// An operation that does not fit the disk: the journal is not of this one.
    pub fn cut(&self, journal: &Journal, place: u64, lie: Lie<'_>, random: &SeededRandom, kept: usize) -> io::Result<Disk> {
        let mut running = Disk { files: self.files.after_power_cut(&mut || true), folders: self.folders.clone() };
        let records = &journal.records[..journal.records.partition_point(|r| r.end <= place)];
        let of_kind = |kind| records.iter().filter(move |r| r.kind == kind);
        let succeeded: HashSet<u64> = of_kind(EntryKind::SyncEnd).map(|r| r.number).collect();
        // Data that a failed sync should have kept is lost for later syncs, too.
        let mut failed = HashSet::new();
        for record in records {
            match record.kind {
                EntryKind::SyncFailed => drop(failed.insert(record.path.as_str())),
                EntryKind::SyncBegin => {
                    let believed = lie.is_none_or(|lie| !record.path.starts_with(lie));
                    if believed && succeeded.contains(&record.number) && !failed.contains(record.path.as_str()) {
                        running.sync(&record.path)?;
                    }
                }
                _ => running.operate(journal, record).map_err(|e| at(record, e))?,
            }
        }
        let files = running.files.after_power_cut(&mut || random.chance(kept));
        Ok(Disk { files, folders: running.folders })
    }

    /// The folder and the name of a path.
    fn place<'a>(&self, path: &'a str) -> io::Result<(Arc<dyn Directory>, &'a str)> {
        Ok(match path.split_once('/') {
            Some((folder, name)) => (self.files.subdirectory(folder)?, name),
            None => (Arc::clone(&self.files) as Arc<dyn Directory>, path),
        })
    }

    fn operate(&mut self, journal: &Journal, record: &JournalEntry) -> io::Result<()> {
        let (folder, name) = self.place(&record.path)?;
        match record.kind {
            EntryKind::Create => folder.create(name).map(drop),
            EntryKind::Write => folder.open(name)?.write_at(journal.data(record), record.number),
            EntryKind::SetLength => folder.open(name)?.set_len(record.number),
            EntryKind::Rename => {
                let (other, to) = self.place(&record.second)?;
                if record.path.split_once('/').map(|p| p.0) != record.second.split_once('/').map(|p| p.0) {
                    return Err(io::Error::other("renamed into another folder"));
                }
                other.rename(name, to)
            }
            EntryKind::Remove => folder.remove(name),
            EntryKind::MakeFolder if name.is_empty() => Ok(()),
            EntryKind::MakeFolder => {
                self.folders.insert(name.to_owned());
                folder.subdirectory(name).map(drop)
            }
            EntryKind::SyncBegin | EntryKind::SyncEnd | EntryKind::SyncFailed => Ok(()),
        }
    }

    fn sync(&self, path: &str) -> io::Result<()> {
        if path.is_empty() {
            return self.files.sync_names();
        }
        if let Some(folder) = self.files.existing_subdirectory(path)? {
            return folder.sync_names();
        }
        let (folder, name) = self.place(path)?;
        match folder.open(name) {
            // Removed or renamed meanwhile.
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            file => file?.sync(),
        }
    }

    /// Writes the disk's files below a folder, which is emptied before.
    ///
    /// # Errors
    /// The system's.
    pub fn write_to(&self, path: &Path) -> io::Result<()> {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        match std::fs::remove_dir_all(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let own = |path: &Path| std::fs::DirBuilder::new().mode(0o700).create(path);
        let copy = |from: &dyn Directory, to: &Path| -> io::Result<()> {
            own(to)?;
            for name in from.list()? {
                let file = from.open(&name)?;
                let mut content = vec![0; file.len()? as usize];
                file.read_at(&mut content, 0)?;
                let mut copy = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to.join(&name))?;
                io::Write::write_all(&mut copy, &content)?;
            }
            Ok(())
        };
        copy(&*self.files, path)?;
        for name in &self.folders {
            if let Some(folder) = self.files.existing_subdirectory(name)? {
                copy(&*folder, &path.join(name))?;
            }
        }
        Ok(())
    }
}

fn at(record: &JournalEntry, error: io::Error) -> io::Error {
    io::Error::other(format!("{:?} of {} at {}: {error}", record.kind, record.path, record.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record as `crates/powercut` writes it.
    fn record(kind: EntryKind, path: &str, second: &str, number: u64, data: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind as u8 + 1];
        bytes.extend((path.len() as u16).to_le_bytes());
        bytes.extend((second.len() as u16).to_le_bytes());
        bytes.extend(number.to_le_bytes());
        bytes.extend((data.len() as u32).to_le_bytes());
        bytes.extend([path.as_bytes(), second.as_bytes(), data].concat());
        bytes
    }

    fn journal() -> Journal {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal");
        let records = [
            record(EntryKind::MakeFolder, "", "", 0, b""),
            record(EntryKind::MakeFolder, "wal", "", 0, b""),
            record(EntryKind::Create, "wal/new", "", 0, b""),
            record(EntryKind::Write, "wal/new", "", 0, b"before"),
            record(EntryKind::SyncBegin, "wal/new", "", 1, b""),
            record(EntryKind::Write, "wal/new", "", 600, b"within"),
            record(EntryKind::SyncEnd, "wal/new", "", 1, b""),
            record(EntryKind::Rename, "wal/new", "wal/file", 0, b""),
            record(EntryKind::SyncBegin, "wal", "", 2, b""),
            record(EntryKind::SyncBegin, "", "", 3, b""),
            record(EntryKind::SyncEnd, "wal", "", 2, b""),
            record(EntryKind::SyncEnd, "", "", 3, b""),
            b"\x01\x05".to_vec(),
        ];
        std::fs::write(&path, records.concat()).expect("written");
        Journal::read(&path).expect("a journal")
    }

    /// The name and the length of each file in the folder that is left.
    fn left(journal: &Journal, records: usize, lie: Lie<'_>) -> Vec<(String, u64)> {
        let place = journal.records[records - 1].end;
        let disk = Disk::default().cut(journal, place, lie, &SeededRandom::new(1), 0).expect("a disk");
        let Some(folder) = disk.files.existing_subdirectory("wal").expect("answers") else { return Vec::new() };
        let length = |name: &String| folder.open(name).and_then(|file| file.len()).expect("there");
        folder.list().expect("lists").into_iter().map(|name| (name.clone(), length(&name))).collect()
    }

    #[test]
    fn a_finished_sync_keeps_bytes_written_before_its_begin() {
        let journal = journal();
        assert_eq!(journal.records.len(), 12, "the record that was cut short is left out");
        assert_eq!(left(&journal, 12, None), [("file".to_owned(), 6)]);
        assert_eq!(left(&journal, 11, None), [], "the folder's own name is not synced");
        assert_eq!(left(&journal, 12, Some("wal/")), [("file".to_owned(), 0)]);
        assert_eq!(left(&journal, 12, Some("wal")), []);
    }
}
