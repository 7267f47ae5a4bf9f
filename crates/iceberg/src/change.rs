//! The next snapshot of a table: the rows that are new in it, and those that are gone.
//!
//! A row is written again when its version is newer than the last snapshot's commit, or when the files that are kept do not have it. A row
//! of these files that is not there any more, or was written again, is deleted by its position. So files are rewritten by leaving them out.

use std::collections::HashSet;
use std::sync::Arc;

use melba_fmgr::Session;
use melba_types::datetime::{DATE_INFINITY, DATE_NEGATIVE_INFINITY, TIMESTAMP_INFINITY, TIMESTAMP_NEGATIVE_INFINITY};
use melba_types::{Batch, Column, ColumnData, Datum, Result, RowId, bail, err, limits};
use serde_json::json;

use crate::manifest::{self, Content, FileEntry, Manifest, Status};
use crate::metadata::{Lineage, Metadata, NewSnapshot};
use crate::names::time_text;
use crate::row_set::{RowSet, bits, mask};
use crate::schema::Schema;
use crate::stored::{Announce, FileOut, write_deletes};
use crate::table::{DataFile, DeleteFile, IcebergTable};

/// Bytes after which a data file ends.
const FILE_BYTES_MAX: u64 = 128 << 20;
/// A smaller file is written again with others, when there are so many.
const SMALL_FILE_BYTES: u64 = 16 << 20;
const SMALL_FILES_MAX: usize = 16;
/// A file of which more than this part is deleted is written again.
const DELETED_SHARE: u64 = 3;
/// Files of deletes that are put together, and manifests.
const DELETE_FILES_MAX: usize = 8;
const MANIFESTS_MAX: usize = 16;

/// The commit that a snapshot shows.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub csn: u64,
    /// When the newest of its commits was visible. Microseconds since 1970.
    pub time: i64,
}

impl Moment {
    /// The time as text, in UTC.
    pub fn time_text(&self) -> String {
        time_text(self.time)
    }
}

/// A table's next snapshot in the making. Nothing is visible before `commit`.
pub struct Change<'a> {
    table: &'a mut IcebergTable,
    session: Arc<dyn Session>,
    announce: Announce,
    schema: Schema,
    origin: Lineage,
    id: i64,
    /// Rows with newer versions are written; `None`: all are.
    since: Option<u64>,
    /// By data file.
    is_dropped: Vec<bool>,
    /// The rows of the files that are kept.
    published: RowSet,
    live: RowSet,
    appended: RowSet,
    out: Option<(FileOut, DataFile)>,
    added: Vec<DataFile>,
}

/// What a snapshot has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Committed {
    pub rows_added: u64,
    pub rows_deleted: u64,
    pub bytes_added: u64,
}

impl IcebergTable {
    /// Begins a snapshot with a random id.
    ///
    /// # Errors
    /// 55000 when the folder has another table.
    pub fn change(
        &mut self,
        session: &Arc<dyn Session>,
        schema: Schema,
        origin: Lineage,
        csn: u64,
        id: u64,
        announce: Announce,
    ) -> Result<Change<'_>> {
        let before = self.metadata.as_ref().and_then(Metadata::origin);
        if let Some(before) = &before
            && (before.database, before.table) != (origin.database, origin.table)
        {
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "\"{}\" has another table", self.folder.url(&self.directory));
        }
        let reads = |known: &Metadata| known.schema().is_some_and(|s| schema.reads_files_of(s, known.last_column()));
        let fits = self.metadata.as_ref().is_some_and(reads);
        let since = (before.as_ref() == Some(&origin) && fits && self.csn <= csn).then_some(self.csn);
        let mut is_dropped: Vec<bool> = self.data.iter().map(|f| since.is_none() || is_holey(f)).collect();
        let small = |f: &DataFile| f.entry.bytes < SMALL_FILE_BYTES;
        if self.data.iter().filter(|f| small(f)).count() >= SMALL_FILES_MAX {
            is_dropped.iter_mut().zip(&self.data).for_each(|(dropped, file)| *dropped |= small(file));
        }
        let mut published = if since.is_some() { self.published.clone() } else { RowSet::default() };
        if since.is_some() {
            let dropped = self.data.iter().zip(&is_dropped).filter(|(_, dropped)| **dropped);
            dropped.for_each(|(file, _)| file.change(&mut published, RowSet::remove_run));
        }
        Ok(Change {
            table: self,
            session: Arc::clone(session),
            announce,
            schema,
            origin,
            id: (id >> 1).max(1) as i64,
            since,
            is_dropped,
            published,
            live: RowSet::default(),
            appended: RowSet::default(),
            out: None,
            added: Vec::new(),
        })
    }
}

/// Of dates and timestamps.
fn is_infinite(value: &Datum) -> bool {
    match value {
        Datum::Int4(date) => matches!(*date, DATE_INFINITY | DATE_NEGATIVE_INFINITY),
        Datum::Int8(time) => matches!(*time, TIMESTAMP_INFINITY | TIMESTAMP_NEGATIVE_INFINITY),
        Datum::Array(array) => array.elements.iter().any(is_infinite),
        _ => false,
    }
}

fn is_holey(file: &DataFile) -> bool {
    file.deleted.rows() * DELETED_SHARE > file.entry.rows
}

impl Change<'_> {
    /// The commit of which the versions of rows are to be newer; `None`: all rows are to be written.
    pub fn since(&self) -> Option<u64> {
        self.since
    }

    /// Whether there is nothing to be done when no row has changed.
    pub fn is_idle(&self) -> bool {
        self.since.is_some() && self.has_known_schema() && !self.is_dropped.contains(&true)
    }

    fn has_known_schema(&self) -> bool {
        self.table.metadata.as_ref().is_some_and(|m| m.schema().is_some_and(|known| self.schema.is(known)))
    }

    /// What the caller has seen when it published last.
    pub fn seen(&self) -> Option<&[u64]> {
        self.table.seen()
    }

    /// No row has changed up to a commit.
    pub fn keep(self, csn: u64) {
        self.table.csn = csn;
    }

    /// Takes note of rows of the table, with the positions of those whose versions are newer than `since`. Returns the positions of the
    /// rows that are to be appended.
    pub fn note(&mut self, row_ids: &[RowId], newer: &[u32]) -> Vec<u32> {
        let mut wanted = Vec::with_capacity(newer.len());
        let mut newer = newer.iter().copied().peekable();
        let mut at = 0;
        while at < row_ids.len() {
            let first = row_ids[at].0;
            // To the end of a word, as far as the ids follow each other.
            let most = (64 - first % 64).min((row_ids.len() - at) as u64);
            let rows = (1..most).find(|i| row_ids[at + *i as usize].0 != first + i).unwrap_or(most);
            self.live.insert_run(first, rows);
            let mut missing = mask(first, rows) & !self.published.word(first);
            while let Some(position) = newer.next_if(|position| (*position as usize) < at + rows as usize) {
                missing |= mask(first + (position as usize - at) as u64, 1);
            }
            wanted.extend(bits(missing).map(|bit| at as u32 + (bit - first % 64) as u32));
            at += rows as usize;
        }
        wanted
    }

    /// Rows to be written: their ids, and the columns of the schema.
    ///
    /// # Errors
    /// Those of the store, and of values that the file's types cannot hold.
    pub fn append(&mut self, row_ids: &[RowId], mut batch: Batch) -> Result<()> {
        if row_ids.is_empty() {
            return Ok(());
        }
        self.check_finite(&batch)?;
        if self.out.is_none() {
            let name = format!("{}/data/{}-{}.parquet", self.table.directory, self.id, self.added.len());
            let (columns, ids) = self.schema.written();
            let out = FileOut::create(&self.table.folder, &name, &self.session, columns, ids, &self.announce)?;
            let sequence = self.sequence();
            let entry = FileEntry { path: self.table.folder.url(&name), rows: 0, bytes: 0, snapshot: self.id, sequence };
            self.out = Some((out, DataFile { entry, runs: Vec::new(), deleted: RowSet::default() }));
        }
        let Some((out, file)) = &mut self.out else { return Ok(()) };
        batch.columns.push(Column::new(ColumnData::Int8(row_ids.iter().map(|id| id.0 as i64).collect())));
        out.push(batch)?;
        for id in row_ids {
            file.push(id.0);
            self.appended.insert(id.0);
        }
        if out.bytes() >= FILE_BYTES_MAX { self.end_file() } else { Ok(()) }
    }

    /// Readers know no infinite dates and timestamps.
    fn check_finite(&self, batch: &Batch) -> Result<()> {
        for (column, values) in self.schema.columns.iter().zip(&batch.columns) {
            let (ty, _) = melba_parquet::iceberg_type(&*self.session, column.ty, column.typmod);
            if matches!(ty.as_str(), "date" | "timestamp" | "timestamptz")
                && (0..batch.rows).any(|row| is_infinite(&values.get(row)))
            {
                let name = &column.name;
                return Err(err!(DATETIME_FIELD_OVERFLOW, "column \"{name}\" has an infinite value")
                    .detail("Iceberg has no infinite dates and timestamps."));
            }
        }
        Ok(())
    }

    fn end_file(&mut self) -> Result<()> {
        if let Some((out, mut file)) = self.out.take() {
            file.entry.bytes = out.finish()?;
            self.added.push(file);
        }
        Ok(())
    }

    /// The sequence number of the snapshot.
    fn sequence(&self) -> i64 {
        self.table.metadata.as_ref().map_or(0, Metadata::sequence) + 1
    }

    /// Bytes that it holds, beside those of the writer of files.
    pub fn memory_bytes(&self) -> usize {
        self.table.memory_bytes() + self.published.memory_bytes() + self.live.memory_bytes() + self.appended.memory_bytes()
    }

    /// The positions of a file whose rows are gone, or were written again.
    fn gone(&self, file: &DataFile) -> Vec<u64> {
        let mut gone = Vec::new();
        for run in &file.runs {
            let (mut row, end) = (run.row, run.row + run.rows);
            while row < end {
                let rows = (64 - row % 64).min(end - row);
                let dead = mask(row, rows) & (!self.live.word(row) | self.appended.word(row));
                let positions = bits(dead).map(|bit| run.position + (row - row % 64 + bit - run.row));
                gone.extend(positions.filter(|position| !file.deleted.contains(*position)));
                row += rows;
            }
        }
        gone
    }

    /// Writes the snapshot, and forgets those older than `keep` (microseconds). `None`: there is nothing new, and none is written.
    ///
    /// # Errors
    /// 55000 when something else writes into the folder; those of the store.
    pub fn commit(mut self, moment: &Moment, keep: i64) -> Result<Option<Committed>> {
        self.end_file()?;
        let mut gone = Vec::new();
        for (at, file) in self.table.data.iter().enumerate().filter(|(at, _)| !self.is_dropped[*at]) {
            limits::check()?;
            let positions = self.gone(file);
            if !positions.is_empty() {
                gone.push((at, positions));
            }
        }
        if self.is_idle() && self.added.is_empty() && gone.is_empty() {
            self.table.csn = moment.csn;
            return Ok(None);
        }
        let summary = Committed {
            rows_added: self.added.iter().map(|f| f.entry.rows).sum(),
            rows_deleted: gone.iter().map(|(_, positions)| positions.len() as u64).sum(),
            bytes_added: self.added.iter().map(|f| f.entry.bytes).sum(),
        };
        let next = self.next_state(gone)?;
        self.write_metadata(next, moment, keep, summary)?;
        Ok(Some(summary))
    }

    /// The files of the next snapshot; those of deletes are written.
    fn next_state(&mut self, gone: Vec<(usize, Vec<u64>)>) -> Result<NextState> {
        let sequence = self.sequence();
        let table = &self.table;
        let mut data: Vec<Option<DataFile>> =
            table.data.iter().zip(&self.is_dropped).map(|(file, dropped)| (!dropped).then(|| file.clone())).collect();
        for (at, positions) in &gone {
            if let Some(file) = &mut data[*at] {
                positions.iter().for_each(|position| file.deleted.insert(*position));
            }
        }
        let mut removed: Vec<(Content, FileEntry)> = Vec::new();
        let dropped = table.data.iter().zip(&self.is_dropped).filter(|(_, dropped)| **dropped);
        removed.extend(dropped.map(|(file, _)| (Content::Data, file.entry.clone())));
        let kept: HashSet<String> = data.iter().flatten().map(|file| file.entry.path.clone()).collect();
        let (mut deletes, dangling): (Vec<DeleteFile>, Vec<DeleteFile>) =
            table.deletes.iter().cloned().partition(|delete| delete.of.iter().any(|path| kept.contains(path)));
        removed.extend(dangling.into_iter().map(|delete| (Content::Deletes, delete.entry)));
        let mut positions: Vec<(&str, Vec<u64>)> = Vec::new();
        if deletes.len() >= DELETE_FILES_MAX {
            // All of them at once.
            removed.extend(deletes.drain(..).map(|delete| (Content::Deletes, delete.entry)));
            let with = data.iter().flatten().filter(|file| file.deleted.rows() > 0);
            positions.extend(with.map(|file| (file.entry.path.as_str(), file.deleted.iter().collect())));
        } else {
            positions.extend(gone.into_iter().map(|(at, positions)| (table.data[at].entry.path.as_str(), positions)));
        }
        positions.sort_by(|a, b| a.0.cmp(b.0));
        let mut added: Vec<(Content, FileEntry)> = self.added.iter().map(|f| (Content::Data, f.entry.clone())).collect();
        if !positions.is_empty() {
            let name = format!("{}/data/{}-deletes.parquet", table.directory, self.id);
            let bytes = write_deletes(&table.folder, &name, &self.session, &positions, &self.announce)?;
            let rows = positions.iter().map(|(_, positions)| positions.len() as u64).sum();
            let entry = FileEntry { path: table.folder.url(&name), rows, bytes, snapshot: self.id, sequence };
            added.push((Content::Deletes, entry.clone()));
            deletes.push(DeleteFile { entry, of: positions.iter().map(|(path, _)| (*path).to_owned()).collect() });
        }
        let data = data.into_iter().flatten().chain(self.added.drain(..)).collect();
        Ok(NextState { data, deletes, added, removed })
    }

    fn write_metadata(self, next: NextState, moment: &Moment, keep: i64, summary: Committed) -> Result<()> {
        let (id, sequence) = (self.id, self.sequence());
        let Change { table, schema, origin, live, .. } = self;
        let milliseconds = moment.time.div_euclid(1000);
        let mut metadata = match &table.metadata {
            Some(metadata) => metadata.clone(),
            None => Metadata::new(&table.folder.url(&table.directory), &crate::names::uuid(id as u64, moment.time as u64)),
        };
        metadata.set_schema(&schema);
        metadata.set_lineage(&origin, moment.csn, &moment.time_text());
        let manifests = table.write_manifests(&next, &metadata, (id, sequence))?;
        let list = format!("{}/metadata/snap-{id}.avro", table.directory);
        table.folder.write(&list, manifest::encode_list(id, metadata.current(), sequence, &manifests))?;
        let only_added = next.removed.is_empty() && next.added.iter().all(|(content, _)| *content == Content::Data);
        metadata.add(NewSnapshot {
            id,
            sequence,
            time: milliseconds,
            list: table.folder.url(&list),
            operation: if only_added { "append" } else { "overwrite" },
            summary: next.summary(moment, summary, live.rows()),
        });
        let forgotten = metadata.expire(milliseconds - keep.div_euclid(1000));
        let mut old = Vec::new();
        if let Some(before) = table.metadata_url() {
            old = metadata.succeed(&before, milliseconds);
        }
        let name = table.metadata_name(table.version + 1);
        if !table.folder.create(&name, metadata.bytes())? {
            return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "\"{}\" exists", table.folder.url(&name))
                .detail("Another server publishes into the same folder."));
        }
        table.version += 1;
        table.write_hint()?;
        table.retired.extend(next.removed.iter().map(|(_, entry)| (sequence, entry.path.clone())));
        let gone = table.manifests.iter().filter(|m| !manifests.contains(m)).map(|m| (sequence, m.path.clone()));
        table.retired.extend(gone.collect::<Vec<_>>());
        old.extend(forgotten.into_iter().map(|(_, list)| list));
        let oldest = metadata.oldest_sequence();
        (table.data, table.deletes, table.manifests, table.published) = (next.data, next.deletes, manifests, live);
        (table.metadata, table.csn) = (Some(metadata), moment.csn);
        table.remove_retired(oldest, old)
    }
}

/// The files of the next snapshot, and what differs from the last one.
struct NextState {
    data: Vec<DataFile>,
    deletes: Vec<DeleteFile>,
    added: Vec<(Content, FileEntry)>,
    removed: Vec<(Content, FileEntry)>,
}

impl NextState {
    /// `rows`: those of the table. The positions in files of deletes are more than what is deleted, when a data file of theirs is gone.
    fn summary(&self, moment: &Moment, changed: Committed, rows: u64) -> serde_json::Value {
        let added_deletes = self.added.iter().filter(|(content, _)| *content == Content::Deletes);
        let total_deletes: u64 = self.deletes.iter().map(|delete| delete.entry.rows).sum();
        let text = |number: u64| number.to_string();
        json!({
            "melba.csn": text(moment.csn), "melba.commit-time": moment.time_text(), "melba.rows": text(rows),
            "added-data-files": text(self.added.iter().filter(|(content, _)| *content == Content::Data).count() as u64),
            "added-records": text(changed.rows_added), "added-files-size": text(changed.bytes_added),
            "added-position-deletes": text(added_deletes.map(|(_, entry)| entry.rows).sum()),
            "deleted-data-files": text(self.removed.iter().filter(|(content, _)| *content == Content::Data).count() as u64),
            "total-data-files": text(self.data.len() as u64), "total-delete-files": text(self.deletes.len() as u64),
            "total-records": text(self.data.iter().map(|file| file.entry.rows).sum()),
            "total-position-deletes": text(total_deletes), "total-equality-deletes": "0",
            "total-files-size": text(self.data.iter().map(|file| file.entry.bytes).sum()),
        })
    }

    fn entries(&self, content: Content) -> Vec<&FileEntry> {
        match content {
            Content::Data => self.data.iter().map(|file| &file.entry).collect(),
            Content::Deletes => self.deletes.iter().map(|file| &file.entry).collect(),
        }
    }
}

impl IcebergTable {
    /// The manifests of the next snapshot: those that are there and one for what was added; or, when something was removed or they are
    /// many, one with everything.
    fn write_manifests(&self, next: &NextState, metadata: &Metadata, (id, sequence): (i64, i64)) -> Result<Vec<Manifest>> {
        let schema = metadata.schema().cloned().unwrap_or_default();
        let mut manifests = Vec::new();
        for content in [Content::Data, Content::Deletes] {
            let of = |list: &[(Content, FileEntry)]| -> Vec<FileEntry> {
                list.iter().filter(|(of, _)| *of == content).map(|(_, entry)| entry.clone()).collect()
            };
            let (added, removed) = (of(&next.added), of(&next.removed));
            let before: Vec<&Manifest> = self.manifests.iter().filter(|m| m.content == content).collect();
            let is_whole = !removed.is_empty() || before.len() >= MANIFESTS_MAX;
            let mut entries: Vec<(Status, FileEntry)> = Vec::new();
            if is_whole {
                let kept = next.entries(content).into_iter().filter(|entry| entry.snapshot != id);
                entries.extend(kept.map(|entry| (Status::Existing, entry.clone())));
                entries.extend(removed.into_iter().map(|entry| (Status::Deleted, entry)));
            } else {
                // Those that have only what an earlier snapshot removed say nothing any more.
                let live =
                    before.into_iter().filter(|m| m.files[Status::Added as usize] + m.files[Status::Existing as usize] > 0);
                manifests.extend(live.cloned());
            }
            entries.extend(added.into_iter().map(|entry| (Status::Added, entry)));
            if entries.is_empty() {
                continue;
            }
            let name =
                format!("{}/metadata/{id}-{}.avro", self.directory, if content == Content::Data { "data" } else { "deletes" });
            let (bytes, manifest) = manifest::encode(self.folder.url(&name), content, (id, sequence), &schema, &entries);
            self.folder.write(&name, bytes)?;
            manifests.push(manifest);
        }
        Ok(manifests)
    }

    /// Removes files that no snapshot from the oldest on has, and some others.
    fn remove_retired(&mut self, oldest: i64, others: Vec<String>) -> Result<()> {
        let (gone, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.retired).into_iter().partition(|(until, _)| *until <= oldest);
        self.retired = kept;
        for url in gone.iter().map(|(_, url)| url).chain(&others) {
            if let Some(name) = self.name_of(url) {
                self.folder.remove(name)?;
            }
        }
        Ok(())
    }
}
