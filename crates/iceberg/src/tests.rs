//! Tables that are published, changed and read again, without an engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use melba_fmgr::Session;
use melba_objects::Folder;
use melba_types::{Batch, Column, ColumnData, Oid, RowId, SqlState, oids};

use crate::change::{Committed, Moment};
use crate::metadata::Lineage;
use crate::publication::Published;
use crate::schema::{PublishedColumn, Schema};
use crate::stored::Announce;
use crate::table::IcebergTable;

fn session() -> Arc<dyn Session> {
    Arc::new(melba_builtins::test_session())
}

fn column(number: i32, name: &str, ty: Oid) -> PublishedColumn {
    PublishedColumn { number, name: name.into(), ty, typmod: -1, has_missing_value: false }
}

/// A table in memory: values by row id, with the CSN of each version.
#[derive(Default)]
struct Rows {
    rows: BTreeMap<u64, (u64, i32)>,
    csn: u64,
    published: u64,
}

/// Microseconds.
const KEEP: i64 = 3_000_000;

impl Rows {
    fn put(&mut self, rows: impl IntoIterator<Item = u64>, value: i32) {
        self.csn += 1;
        self.rows.extend(rows.into_iter().map(|row| (row, (self.csn, value))));
    }

    fn remove(&mut self, rows: impl IntoIterator<Item = u64>) {
        self.csn += 1;
        let gone: Vec<u64> = rows.into_iter().collect();
        self.rows.retain(|row, _| !gone.contains(row));
    }

    fn publish(&mut self, table: &mut IcebergTable, columns: &[PublishedColumn], tree: u64) -> Option<Committed> {
        let session = session();
        self.published += 1;
        let origin = Lineage { history: 1, database: Oid(5), table: Oid(16384), tree };
        let schema = Schema::new(&*session, columns.to_vec());
        let announce: Announce = Arc::new(|_| Ok(()));
        let mut change = table.change(&session, schema, origin, self.csn, self.published * 1000, announce).unwrap();
        let all: Vec<(u64, (u64, i32))> = self.rows.iter().map(|(id, row)| (*id, *row)).collect();
        for some in all.chunks(100) {
            let ids: Vec<RowId> = some.iter().map(|(id, _)| RowId(*id)).collect();
            let newer = |(_, (_, (csn, _))): &(usize, &(u64, (u64, i32)))| change.since().is_none_or(|since| *csn > since);
            let newer: Vec<u32> = some.iter().enumerate().filter(newer).map(|(at, _)| at as u32).collect();
            let wanted = change.note(&ids, &newer);
            let ids: Vec<RowId> = wanted.iter().map(|at| ids[*at as usize]).collect();
            let values: Vec<i32> = wanted.iter().map(|at| some[*at as usize].1.1).collect();
            let columns = columns.iter().map(|_| Column::new(ColumnData::Int4(values.clone()))).collect();
            change.append(&ids, Batch::new(columns, ids.len())).unwrap();
        }
        let moment = Moment { csn: self.csn, time: self.published as i64 * 1_000_000 };
        change.commit(&moment, KEEP).unwrap()
    }

    fn check(&self, table: &IcebergTable) {
        let expected: BTreeMap<u64, usize> = self.rows.keys().map(|id| (*id, 1)).collect();
        assert!(table.rows() == expected, "the files have the table's rows, each once");
    }
}

fn folder() -> (tempfile::TempDir, Arc<Folder>) {
    let directory = tempfile::tempdir().unwrap();
    let folder = Folder::open(&format!("file://{}", directory.path().display())).unwrap();
    (directory, Arc::new(folder))
}

#[test]
fn snapshots_have_what_has_changed() {
    let (_directory, folder) = folder();
    let open = || IcebergTable::open(&folder, "public/t", &session()).unwrap();
    let columns = [column(1, "a", oids::INT4)];
    let (mut table, mut rows) = (open(), Rows::default());
    rows.put(1..=1000, 0);
    let first = rows.publish(&mut table, &columns, 7).unwrap();
    assert_eq!((first.rows_added, first.rows_deleted), (1000, 0));
    assert!(rows.publish(&mut table, &columns, 7).is_none(), "nothing is written for nothing");
    rows.put([3, 500, 1001], 1);
    rows.remove(10..20);
    let second = rows.publish(&mut table, &columns, 7).unwrap();
    assert_eq!((second.rows_added, second.rows_deleted), (3, 12));
    rows.check(&table);
    // What was written is read again, and the next snapshot goes on from there.
    let mut table = open();
    rows.check(&table);
    assert_eq!(table.csn, rows.csn);
    rows.put([500], 2);
    let third = rows.publish(&mut table, &columns, 7).unwrap();
    assert_eq!((third.rows_added, third.rows_deleted), (1, 1));
    rows.check(&table);
    rows.check(&open());
    // A file of which much is deleted is written again.
    rows.remove(100..600);
    rows.publish(&mut table, &columns, 7).unwrap();
    let fourth = rows.publish(&mut table, &columns, 7).unwrap();
    assert!(fourth.rows_added > 400, "{fourth:?}");
    rows.check(&table);
    rows.check(&open());
}

#[test]
fn small_files_are_put_together_and_old_ones_removed() {
    let (_directory, folder) = folder();
    let columns = [column(1, "a", oids::INT4)];
    let (mut table, mut rows) = (IcebergTable::open(&folder, "public/t", &session()).unwrap(), Rows::default());
    rows.put(0..50, 0);
    for round in 0..60u64 {
        rows.put([round % 50, 100 + round], round as i32);
        rows.remove([round / 2]);
        rows.publish(&mut table, &columns, 7).unwrap();
        rows.check(&table);
        if round % 7 == 0 {
            table = IcebergTable::open(&folder, "public/t", &session()).unwrap();
            rows.check(&table);
        }
    }
    assert!(table.data.len() <= 17 && table.deletes.len() <= 9 && table.manifests.len() <= 40);
    let names = folder.names("").unwrap();
    let count = |ending: &str| names.iter().filter(|name| name.ends_with(ending)).count();
    assert!(count(".parquet") <= 17 + 9 + 30 && count(".metadata.json") <= 12, "{} files", names.len());
    let lists = names.iter().filter(|name| name.contains("/snap-")).count();
    assert_eq!(lists, table.metadata.as_ref().unwrap().lists().len());
}

#[test]
fn another_tree_or_type_replaces_all_files() {
    let (_directory, folder) = folder();
    let (mut table, mut rows) = (IcebergTable::open(&folder, "public/t", &session()).unwrap(), Rows::default());
    let columns = [column(1, "a", oids::INT4)];
    rows.put(0..50, 0);
    rows.publish(&mut table, &columns, 7).unwrap();
    // A table that was written again has other rows by the same ids.
    assert_eq!(rows.publish(&mut table, &columns, 8).unwrap().rows_added, 50);
    // A new column that is null in old rows needs no other files, another does.
    let wider = [column(1, "renamed", oids::INT4), column(2, "b", oids::INT4)];
    let added = rows.publish(&mut table, &wider, 8).unwrap();
    assert_eq!((added.rows_added, added.rows_deleted), (0, 0));
    let with_default = PublishedColumn { has_missing_value: true, ..column(3, "c", oids::INT4) };
    assert_eq!(rows.publish(&mut table, &[wider[0].clone(), wider[1].clone(), with_default], 8).unwrap().rows_added, 50);
    rows.check(&IcebergTable::open(&folder, "public/t", &session()).unwrap());
}

#[test]
fn a_snapshot_that_was_not_finished_is_none() {
    let (_directory, folder) = folder();
    let columns = [column(1, "a", oids::INT4)];
    let (mut table, mut rows) = (IcebergTable::open(&folder, "public/t", &session()).unwrap(), Rows::default());
    rows.put(0..50, 0);
    rows.publish(&mut table, &columns, 7).unwrap();
    let before = folder.names("").unwrap();
    for orphan in ["data/999-0.parquet", "metadata/snap-999.avro", "metadata/999-data.avro"] {
        folder.write(&format!("public/t/{orphan}"), b"half".to_vec()).unwrap();
    }
    folder.write("public/t/data/notes.txt", b"a user's".to_vec()).unwrap();
    // The hint is older than the metadata.
    folder.write("public/t/metadata/version-hint.text", b"0".to_vec()).unwrap();
    let mut table = IcebergTable::open(&folder, "public/t", &session()).unwrap();
    rows.check(&table);
    let mut after = folder.names("").unwrap();
    after.retain(|name| name != "public/t/data/notes.txt");
    assert_eq!(after, before);
    // Another server has been here meanwhile.
    folder.write("public/t/metadata/v2.metadata.json", b"{}".to_vec()).unwrap();
    rows.put([1], 1);
    let session = session();
    let origin = Lineage { history: 1, database: Oid(5), table: Oid(16384), tree: 7 };
    let change = table.change(&session, Schema::new(&*session, columns.to_vec()), origin, 9, 9, Arc::new(|_| Ok(()))).unwrap();
    let refused = change.commit(&Moment { csn: 9, time: 9 }, KEEP).unwrap_err();
    assert_eq!(refused.sqlstate(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
}

#[test]
fn a_folder_belongs_to_one_publication() {
    let (directory, folder) = folder();
    let url = format!("file://{}", directory.path().display());
    let mut published = Published::open(&url, "one").unwrap();
    let tables = |names: &[(u32, &str)]| -> Vec<_> {
        names.iter().map(|(oid, name)| (Oid(*oid), "public".to_owned(), (*name).to_owned())).collect()
    };
    assert!(published.set_tables(&tables(&[(1, "a"), (2, "b")])));
    published.save().unwrap();
    let mut again = Published::open(&url, "one").unwrap();
    assert!(again.tables == published.tables && !again.set_tables(&tables(&[(1, "a"), (2, "b")])));
    // A table that was made again does not take over the files of the one before.
    assert!(again.set_tables(&tables(&[(3, "a"), (2, "renamed")])));
    let places: Vec<_> = again.tables.iter().map(|t| (t.directory.as_str(), t.is_published)).collect();
    assert_eq!(places, [("public/a", false), ("public/b", true), ("public/a_3", true)]);
    assert!(Published::open(&url, "two").is_err_and(|e| e.message().contains("another publication")));
    folder.write("melba-publication.json", b"{\"format\":1,\"checksum\":1,\"body\":{}}".to_vec()).unwrap();
    assert!(Published::open(&url, "one").is_err_and(|e| e.sqlstate() == SqlState::DATA_CORRUPTED));
    folder.remove("melba-publication.json").unwrap();
    folder.write("x", b"foreign".to_vec()).unwrap();
    assert!(Published::open(&url, "one").is_err_and(|e| e.message().contains("files that are not of a publication")));
}
