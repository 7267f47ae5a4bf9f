//! Random rows, versions and options against a sorted list: a failure names its seed.

use std::sync::Arc;

use melba_types::oids::INT4;
use melba_types::{Array, ArrayDim, Batch, Bitmap, Column, Csn, Datum, Kind, Numeric, RowId};
use melba_vfs::OsDirectory;

use super::*;
use crate::BlockCache;

const KINDS: [Kind; 6] = [Kind::Int2, Kind::Float8, Kind::Text, Kind::Array, Kind::Oid, Kind::Numeric];

/// A small generator, so that a seed has the same values everywhere (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }
}

fn datum(kind: Kind, spread: u64, dice: &mut Dice) -> Datum {
    if dice.roll(6) == 0 {
        return Datum::Null;
    }
    let value = dice.roll(spread);
    match kind {
        Kind::Int2 => Datum::Int2(value as i16),
        Kind::Float8 => Datum::Float8([f64::NAN, -0.0, f64::INFINITY, value as f64 / 8.0][dice.roll(4) as usize]),
        Kind::Text => Datum::text(format!("{value:x}").repeat(dice.roll(12) as usize)),
        Kind::Oid => Datum::Oid(value as u32),
        Kind::Numeric => Datum::Numeric(match dice.roll(400) {
            0 => Numeric::NAN,
            1 => Numeric::from_parts(i128::from(value) << 64, 2),
            2 => Numeric::from_parts(value.into(), 1),
            _ => Numeric::from_parts(i128::from(value) - 500, 2),
        }),
        _ => {
            let elements: Vec<Datum> = (0..=dice.roll(3)).map(|i| Datum::Int4((value + i) as i32)).collect();
            let dims = vec![ArrayDim { length: elements.len() as i32, lower_bound: 1 }];
            Datum::Array(Arc::new(Array { element_type: INT4, dims, elements }))
        }
    }
}

struct Version {
    row_id: RowId,
    csn: Csn,
    tombstone: bool,
    values: Vec<Datum>,
}

fn versions(dice: &mut Dice) -> Vec<Version> {
    let spread = [2, 30, 1000, 1 << 40][dice.roll(4) as usize];
    let (gap, most) = (dice.roll(5) + 1, dice.roll(4) + 1);
    let mut out = Vec::new();
    let mut row_id = dice.roll(1 << 50);
    for _ in 0..dice.roll(1200) + 1 {
        row_id += dice.roll(gap) + 1;
        let count = dice.roll(most) + 1;
        for version in (1..=count).rev() {
            let values = KINDS.iter().map(|&kind| datum(kind, spread, dice)).collect();
            out.push(Version { row_id: RowId(row_id), csn: Csn(version * 10), tombstone: dice.roll(9) == 0, values });
        }
    }
    out
}

fn write(directory: &OsDirectory, versions: &[Version], dice: &mut Dice) {
    let options = TableOptions {
        dense: None,
        dense_columns: 0,
        codec: [Codec::None, Codec::Lz4, Codec::Zstd(1)][dice.roll(3) as usize],
        group_rows: dice.roll(900) as usize + 1,
        group_bytes: 1 << (dice.roll(10) + 8),
        block_bytes: 1 << (dice.roll(8) + 5),
        give_way: || melba_toast::dense::Pace::Thorough,
    };
    let mut writer = TableSegmentWriter::create(directory, "t", &KINDS, &options).unwrap();
    let mut rest = versions;
    while !rest.is_empty() {
        let (now, later) = rest.split_at((dice.roll(300) as usize + 1).min(rest.len()));
        let mut columns: Vec<Column> = KINDS.iter().map(|&kind| Column::with_capacity(kind, now.len())).collect();
        let mut deleted = Bitmap::default();
        for version in now {
            deleted.push(version.tombstone);
            columns.iter_mut().zip(&version.values).for_each(|(column, value)| column.push(value.clone()));
        }
        let ids: Vec<RowId> = now.iter().map(|v| v.row_id).collect();
        let csns: Vec<Csn> = now.iter().map(|v| v.csn).collect();
        writer.append(&ids, &csns, Some(&deleted), &Batch::new(columns, now.len())).unwrap();
        rest = later;
    }
    assert_eq!(writer.finish().unwrap().rows, versions.len() as u64);
}

fn check_scan(segment: &Arc<TableSegmentReader>, versions: &[Version], dice: &mut Dice) {
    let mut expected = versions.iter();
    for group in 0..segment.row_groups().len() {
        let mut reader = segment.group(group, &[0, 1, 2, 3, 4, 5]);
        let mut at = 0;
        while at < reader.rows() {
            let end = (at + dice.roll(400) as usize + 1).min(reader.rows());
            let data = reader.read(at..end).unwrap();
            for i in 0..end - at {
                let version = expected.next().unwrap();
                assert_eq!((data.row_ids[i], data.csns.get(i)), (version.row_id, version.csn));
                assert_eq!(data.tombstones.as_ref().is_some_and(|t| t.get(i)), version.tombstone);
                for (column, value) in data.columns.iter().flatten().zip(&version.values) {
                    assert_eq!(format!("{:?}", column.get(i)), format!("{value:?}"));
                }
            }
            at = end;
        }
    }
    assert!(expected.next().is_none());
}

fn check_finds(segment: &TableSegmentReader, versions: &[Version], dice: &mut Dice) {
    for _ in 0..200 {
        let near = versions[dice.roll(versions.len() as u64) as usize].row_id;
        let (row_id, csn) = (RowId(near.0 + dice.roll(2)), Csn(dice.roll(50)));
        let expected = versions.iter().find(|v| v.row_id == row_id && v.csn <= csn);
        let found = segment.find(row_id, csn).unwrap();
        assert_eq!(found.map(|f| (f.csn, f.tombstone)), expected.map(|v| (v.csn, v.tombstone)));
        if let Some((found, expected)) = found.zip(expected) {
            let mut out: Vec<Column> = KINDS.iter().map(|&kind| Column::with_capacity(kind, 1)).collect();
            segment.read_row(found.position, &[0, 1, 2, 3, 4, 5], &mut out).unwrap();
            for (column, value) in out.iter().zip(&expected.values) {
                assert_eq!(format!("{:?}", column.get(0)), format!("{value:?}"));
            }
        }
    }
}

#[test]
fn random_segments_read_as_they_were_written() {
    for seed in 0..60 {
        let outcome = std::panic::catch_unwind(|| {
            let mut dice = Dice(seed);
            let folder = tempfile::tempdir().unwrap();
            let directory = OsDirectory::open(folder.path()).unwrap();
            let versions = versions(&mut dice);
            write(&directory, &versions, &mut dice);
            let cache = BlockCache::new([0, 1 << 14, 1 << 22][dice.roll(3) as usize]);
            let segment = TableSegmentReader::open(&directory, "t", &cache).unwrap();
            segment.verify().unwrap();
            check_scan(&segment, &versions, &mut dice);
            check_finds(&segment, &versions, &mut dice);
        });
        assert!(outcome.is_ok(), "seed {seed}");
    }
}
