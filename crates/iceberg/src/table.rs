//! A published table: its files, and which rows they have.
//!
//! ```text
//! metadata/version-hint.text     the number of the newest metadata, for readers
//! metadata/vN.metadata.json      the table as of its N-th change; what exists is in force
//! metadata/snap-S.avro           the manifests of snapshot S
//! metadata/S-M.avro              a manifest
//! data/S-N.parquet               rows, with their ids in a column that the table's schema does not have
//! data/S-deletes.parquet         positions of rows that are deleted
//! ```

#[cfg(test)]
use std::collections::BTreeMap;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use melba_fmgr::Session;
use melba_objects::Folder;
use melba_types::{Result, err, limits};

use crate::manifest::{self, Content, FileEntry, Manifest, Status};
use crate::metadata::Metadata;
use crate::row_set::RowSet;
use crate::stored::{read_deletes, read_row_ids};

/// Rows of a file whose ids and positions follow each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub row: u64,
    pub position: u64,
    pub rows: u64,
}

/// A data file.
#[derive(Clone)]
pub(crate) struct DataFile {
    pub entry: FileEntry,
    /// Ascending positions.
    pub runs: Vec<Run>,
    /// Positions.
    pub deleted: RowSet,
}

impl DataFile {
    /// The row behind those that it has.
    pub fn push(&mut self, row: u64) {
        let position = self.entry.rows;
        match self.runs.last_mut() {
            Some(last) if last.row + last.rows == row => last.rows += 1,
            _ => self.runs.push(Run { row, position, rows: 1 }),
        }
        self.entry.rows += 1;
    }

    #[cfg(test)]
    fn row_at(&self, position: u64) -> Option<u64> {
        let at = self.runs.partition_point(|run| run.position <= position).checked_sub(1)?;
        let run = self.runs[at];
        (position < run.position + run.rows).then(|| run.row + position - run.position)
    }

    /// Puts the rows that are not deleted into a set, or takes them out.
    pub fn change(&self, set: &mut RowSet, change: impl Fn(&mut RowSet, u64, u64)) {
        if self.deleted.rows() == 0 {
            self.runs.iter().for_each(|run| change(set, run.row, run.rows));
            return;
        }
        for run in &self.runs {
            for i in (0..run.rows).filter(|i| !self.deleted.contains(run.position + i)) {
                change(set, run.row + i, 1);
            }
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.runs.len() * size_of::<Run>() + self.deleted.memory_bytes()
    }
}

/// A file of position deletes.
#[derive(Clone)]
pub(crate) struct DeleteFile {
    pub entry: FileEntry,
    /// The paths of the data files.
    pub of: HashSet<String>,
}

/// A table on its store. After an error it must be opened again.
pub struct IcebergTable {
    pub(crate) folder: Arc<Folder>,
    /// Its place in the folder.
    pub(crate) directory: String,
    pub(crate) metadata: Option<Metadata>,
    /// The number of the metadata; 0: there is none.
    pub(crate) version: u64,
    /// The commit up to which nothing is missing.
    pub(crate) csn: u64,
    pub(crate) data: Vec<DataFile>,
    pub(crate) deletes: Vec<DeleteFile>,
    pub(crate) manifests: Vec<Manifest>,
    /// The rows of the data files that are not deleted.
    pub(crate) published: RowSet,
    /// What the caller remembers of the rows' storage at `csn`; `None`: nothing.
    seen: Option<Vec<u64>>,
    /// Files of earlier snapshots, and the sequence number of the first snapshot without them.
    pub(crate) retired: Vec<(i64, String)>,
}

impl IcebergTable {
    /// Reads the state of a table; one that is not there has no rows.
    ///
    /// # Errors
    /// XX001 for damaged files; 55000 for those of another program; those of the store.
    pub fn open(folder: &Arc<Folder>, directory: &str, session: &Arc<dyn Session>) -> Result<IcebergTable> {
        let mut table = IcebergTable {
            folder: Arc::clone(folder),
            directory: directory.to_owned(),
            metadata: None,
            version: 0,
            csn: 0,
            data: Vec::new(),
            deletes: Vec::new(),
            manifests: Vec::new(),
            published: RowSet::default(),
            seen: None,
            retired: Vec::new(),
        };
        table.find_version()?;
        let name = table.metadata_name(table.version);
        let content = if table.version > 0 { folder.read(&name)? } else { None };
        let Some(content) = content else {
            table.remove_unreferenced(&HashSet::new())?;
            return Ok(table);
        };
        let metadata = Metadata::parse(&content, &folder.url(&name))?;
        table.csn = metadata.csn().unwrap_or(0);
        let mut read = HashMap::new();
        let mut referenced = HashSet::new();
        for (id, _, list) in metadata.lists() {
            limits::check()?;
            let manifests = manifest::decode_list(&table.read_named(&list)?)?;
            referenced.insert(list);
            for manifest in &manifests {
                if !read.contains_key(&manifest.path) {
                    let entries = manifest::decode(&table.read_named(&manifest.path)?)?;
                    let live = entries.into_iter().filter(|(status, _)| *status != Status::Deleted).map(|(_, entry)| entry);
                    let live: Vec<FileEntry> = live.collect();
                    referenced.extend(live.iter().map(|entry| entry.path.clone()));
                    referenced.insert(manifest.path.clone());
                    read.insert(manifest.path.clone(), live);
                }
            }
            if metadata.current() == Some(id) {
                table.manifests = manifests;
            }
        }
        table.read_files(&read, session)?;
        table.retire_others(&referenced, &read);
        table.metadata = Some(metadata);
        table.remove_unreferenced(&referenced)?;
        table.write_hint()?;
        Ok(table)
    }

    /// The newest metadata: the hint may be older.
    fn find_version(&mut self) -> Result<()> {
        let hint = self.folder.read(&format!("{}/metadata/version-hint.text", self.directory))?;
        let hint = hint.and_then(|text| std::str::from_utf8(&text).ok()?.trim().parse::<u64>().ok());
        self.version = hint.unwrap_or(0);
        while self.folder.read(&self.metadata_name(self.version + 1))?.is_some() {
            self.version += 1;
        }
        Ok(())
    }

    pub(crate) fn write_hint(&self) -> Result<()> {
        self.folder.write(&format!("{}/metadata/version-hint.text", self.directory), self.version.to_string().into_bytes())
    }

    pub(crate) fn metadata_name(&self, version: u64) -> String {
        format!("{}/metadata/v{version}.metadata.json", self.directory)
    }

    /// The URL of the newest metadata.
    pub fn metadata_url(&self) -> Option<String> {
        self.metadata.as_ref().map(|_| self.folder.url(&self.metadata_name(self.version)))
    }

    /// The name of a file in the folder, by the URL that metadata has.
    pub(crate) fn name_of<'a>(&self, url: &'a str) -> Option<&'a str> {
        url.strip_prefix(&self.folder.url("")).filter(|name| name.starts_with(&self.directory))
    }

    fn read_named(&self, url: &str) -> Result<Vec<u8>> {
        let missing = || err!(DATA_CORRUPTED, "file \"{url}\" of an Iceberg table is missing");
        let name = self.name_of(url).ok_or_else(missing)?;
        Ok(self.folder.read(name)?.ok_or_else(missing)?.to_vec())
    }

    /// The files of the present snapshot, with their rows.
    fn read_files(&mut self, read: &HashMap<String, Vec<FileEntry>>, session: &Arc<dyn Session>) -> Result<()> {
        let missing = |url: &str| err!(DATA_CORRUPTED, "file \"{url}\" is outside of its Iceberg table");
        let mut places = HashMap::new();
        for content in [Content::Data, Content::Deletes] {
            let manifests = self.manifests.iter().filter(|m| m.content == content);
            let entries: Vec<FileEntry> = manifests.filter_map(|m| read.get(&m.path)).flatten().cloned().collect();
            for entry in entries {
                limits::check()?;
                let name = self.name_of(&entry.path).ok_or_else(|| missing(&entry.path))?.to_owned();
                if content == Content::Data {
                    let rows = entry.rows;
                    places.insert(entry.path.clone(), self.data.len());
                    let mut file =
                        DataFile { entry: FileEntry { rows: 0, ..entry }, runs: Vec::new(), deleted: RowSet::default() };
                    read_row_ids(&self.folder, &name, session, |row| file.push(row))?;
                    if file.entry.rows != rows {
                        return Err(err!(
                            DATA_CORRUPTED,
                            "\"{}\" does not have as many rows as its manifest says",
                            file.entry.path
                        ));
                    }
                    self.data.push(file);
                    continue;
                }
                let mut of = HashSet::new();
                read_deletes(&self.folder, &name, session, |path, position| {
                    if let Some(at) = places.get(path) {
                        self.data[*at].deleted.insert(position);
                        if !of.contains(path) {
                            of.insert(path.to_owned());
                        }
                    }
                })?;
                self.deletes.push(DeleteFile { entry, of });
            }
        }
        let mut published = RowSet::default();
        self.data.iter().for_each(|file| file.change(&mut published, RowSet::insert_run));
        self.published = published;
        Ok(())
    }

    /// Files that only earlier snapshots have are removed when the last of these is. Which that is, is not known: the newest.
    fn retire_others(&mut self, referenced: &HashSet<String>, read: &HashMap<String, Vec<FileEntry>>) {
        let mut present: HashSet<&String> = self.manifests.iter().map(|m| &m.path).collect();
        present.extend(self.manifests.iter().filter_map(|m| read.get(&m.path)).flatten().map(|entry| &entry.path));
        let sequence = self.manifests.iter().map(|m| m.sequence).max().unwrap_or(0);
        let is_list = |url: &&String| url.rsplit('/').next().is_some_and(|name| name.starts_with("snap-"));
        let others = referenced.iter().filter(|url| !present.contains(url) && !is_list(url));
        self.retired = others.map(|url| (sequence, url.clone())).collect();
    }

    /// Removes the files of snapshots that were never finished, or are forgotten.
    fn remove_unreferenced(&self, referenced: &HashSet<String>) -> Result<()> {
        for name in self.folder.names(&self.directory)? {
            if !referenced.contains(&self.folder.url(&name)) && self.is_file_of_snapshot(&name) {
                self.folder.remove(&name)?;
            }
        }
        Ok(())
    }

    /// Whether the name is one that this crate gives to files which snapshots have.
    fn is_file_of_snapshot(&self, name: &str) -> bool {
        let Some((folder, name)) = name.strip_prefix(&format!("{}/", self.directory)).and_then(|n| n.split_once('/')) else {
            return false;
        };
        let (ending, prefix) = if folder == "data" { (".parquet", "") } else { (".avro", "snap-") };
        let stem = name.strip_suffix(ending).map(|stem| stem.strip_prefix(prefix).unwrap_or(stem));
        matches!(folder, "data" | "metadata") && stem.is_some_and(|stem| stem.starts_with(|c: char| c.is_ascii_digit()))
    }

    /// What the caller has seen of the rows' storage when it published last.
    pub fn seen(&self) -> Option<&[u64]> {
        self.seen.as_deref()
    }

    pub fn set_seen(&mut self, seen: Vec<u64>) {
        self.seen = Some(seen);
    }

    /// Bytes that it holds.
    pub fn memory_bytes(&self) -> usize {
        self.published.memory_bytes() + self.data.iter().map(DataFile::memory_bytes).sum::<usize>()
    }

    /// The ids of the rows that it has, ascending, each with how often: for tests.
    #[cfg(test)]
    pub(crate) fn rows(&self) -> BTreeMap<u64, usize> {
        let mut rows = BTreeMap::new();
        for file in &self.data {
            for run in &file.runs {
                for i in (0..run.rows).filter(|i| !file.deleted.contains(run.position + i)) {
                    assert_eq!(file.row_at(run.position + i), Some(run.row + i));
                    *rows.entry(run.row + i).or_default() += 1;
                }
            }
        }
        rows
    }
}
