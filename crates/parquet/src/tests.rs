//! Files of every type, written and read; and files with wrong bytes.

use std::sync::Arc;

use parking_lot::Mutex;

use melba_builtins::test_session;
use melba_fmgr::{Session, io};
use melba_types::numeric::convert::typmod;
use melba_types::{Batch, Column, DbError, Kind, Oid, Result, SqlState, oids};

use crate::{Compression, FileReader, FileWriter, Wanted, Written};

/// Where a writer's bytes go.
#[derive(Clone, Default)]
struct Out(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Out {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Table {
    session: Arc<dyn Session>,
    columns: Vec<Written>,
    batches: Vec<Batch>,
}

impl Table {
    fn new(columns: &[(Oid, i32)]) -> Table {
        let column = |(i, (ty, typmod)): (usize, &(Oid, i32))| Written { name: format!("c{i}").into(), ty: *ty, typmod: *typmod };
        Table {
            session: Arc::new(test_session()),
            columns: columns.iter().enumerate().map(column).collect(),
            batches: Vec::new(),
        }
    }

    /// A batch of rows as text; `None` is NULL.
    fn rows(mut self, rows: &[&[Option<&str>]]) -> Table {
        let column = |(i, c): (usize, &Written)| {
            let mut out = Column::with_capacity(self.session.catalog().kind_of(c.ty).unwrap_or(Kind::Text), rows.len());
            for row in rows {
                match row[i] {
                    Some(text) => out.push(io::text_in(&*self.session, c.ty, c.typmod, text).unwrap()),
                    None => out.push_null(),
                }
            }
            out
        };
        let columns = self.columns.iter().enumerate().map(column).collect();
        self.batches.push(Batch::new(columns, rows.len()));
        self
    }

    fn write(&self, compression: Compression, row_group_rows: usize) -> Result<Vec<u8>> {
        let out = Out::default();
        let announce = Box::new(|_| Ok(()));
        let mut writer = FileWriter::new(Arc::clone(&self.session), self.columns.clone(), out.clone(), announce)
            .compression(compression)
            .row_group_rows(row_group_rows);
        self.batches.iter().cloned().try_for_each(|batch| writer.push(batch))?;
        writer.finish()?;
        let bytes = out.0.lock().clone();
        Ok(bytes)
    }

    /// The rows of a file as text, read as these types.
    fn read(&self, file: Vec<u8>, types: &[(Oid, i32)]) -> Result<Vec<Vec<Option<String>>>> {
        let file = FileReader::open(Arc::new(file))?;
        let wanted: Vec<Wanted> = types
            .iter()
            .enumerate()
            .map(|(at, (ty, typmod))| Wanted { at, name: format!("t{at}").into(), ty: *ty, typmod: *typmod })
            .collect();
        let mut scan = file.scan(Arc::clone(&self.session), &wanted)?;
        let mut rows = Vec::new();
        while let Some((count, columns)) = scan.next(3)? {
            for row in 0..count {
                let shown = |(column, (ty, _)): (&Column, &(Oid, i32))| match column.is_null(row) {
                    true => None,
                    false => Some(io::text_of(&*self.session, *ty, &column.get(row)).unwrap()),
                };
                rows.push(columns.iter().zip(types).map(shown).collect());
            }
        }
        Ok(rows)
    }

    fn types(&self) -> Vec<(Oid, i32)> {
        self.columns.iter().map(|c| (c.ty, c.typmod)).collect()
    }

    fn shown(&self) -> Vec<Vec<Option<String>>> {
        let text = |c: &Written, column: &Column, row: usize| {
            (!column.is_null(row)).then(|| io::text_of(&*self.session, c.ty, &column.get(row)).unwrap())
        };
        let rows = |batch: &Batch| {
            let row = |row| self.columns.iter().zip(&batch.columns).map(|(c, column)| text(c, column, row)).collect();
            (0..batch.rows).map(row).collect::<Vec<_>>()
        };
        self.batches.iter().flat_map(rows).collect()
    }
}

/// One column of every type, with values at the ends of its range.
fn every_type() -> Table {
    type Values = [&'static str; 3];
    let columns: Vec<((Oid, i32), Values)> = vec![
        ((oids::BOOL, -1), ["t", "f", "t"]),
        ((oids::INT2, -1), ["-32768", "32767", "0"]),
        ((oids::INT4, -1), ["-2147483648", "2147483647", "0"]),
        ((oids::INT8, -1), ["-9223372036854775808", "9223372036854775807", "0"]),
        ((oids::OID, -1), ["0", "4294967295", "7"]),
        ((oids::FLOAT4, -1), ["NaN", "-Infinity", "1.17549435e-38"]),
        ((oids::FLOAT8, -1), ["NaN", "Infinity", "-0"]),
        ((oids::NUMERIC, typmod(9, 2)), ["9999999.99", "-9999999.99", "0.00"]),
        ((oids::NUMERIC, typmod(18, 3)), ["999999999999999.999", "-0.001", "0.000"]),
        ((oids::NUMERIC, typmod(38, 10)), ["9999999999999999999999999999.9999999999", "-1.0000000000", "0.0000000000"]),
        ((oids::NUMERIC, typmod(3, -2)), ["99900", "-100", "0"]),
        ((oids::NUMERIC, typmod(3, 5)), ["0.00999", "-0.00001", "0.00000"]),
        ((oids::NUMERIC, typmod(60, 0)), ["123456789012345678901234567890123456789012345678901234567890", "-1", "NaN"]),
        ((oids::NUMERIC, -1), ["1.50", "NaN", "-Infinity"]),
        ((oids::TEXT, -1), ["", "ä€𝄞", "a\nb"]),
        ((oids::VARCHAR, 14), ["x", "0123456789", ""]),
        ((oids::BPCHAR, 7), ["a  ", "abc", "   "]),
        ((oids::NAME, -1), ["n", "", "m"]),
        ((oids::CHAR, -1), ["a", "\\200", ""]),
        ((oids::BYTEA, -1), ["\\x", "\\x00ff", "\\x61"]),
        ((oids::DATE, -1), ["4714-11-24 BC", "infinity", "-infinity"]),
        ((oids::TIME, -1), ["00:00:00", "24:00:00", "12:34:56.789012"]),
        ((oids::TIMETZ, -1), ["00:00:00+15:59", "23:59:59.999999-08", "12:00:00+00"]),
        ((oids::TIMESTAMP, -1), ["4714-11-24 00:00:00 BC", "infinity", "1969-12-31 23:59:59.999999"]),
        ((oids::TIMESTAMPTZ, -1), ["2000-01-01 00:00:00+00", "-infinity", "infinity"]),
        ((oids::INTERVAL, -1), ["-1 years -2 mons +3 days -04:05:06.789", "infinity", "00:00:00.000001"]),
        (
            (oids::UUID, -1),
            [
                "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
                "00000000-0000-0000-0000-000000000000",
                "ffffffff-ffff-ffff-ffff-ffffffffffff",
            ],
        ),
        ((oids::JSON, -1), ["{\"a\" :  1, \"a\": 2}", "null", "[1]"]),
        ((oids::JSONB, -1), ["{\"a\": [1.50, null]}", "null", "\"x\""]),
        ((oids::INET, -1), ["10.0.0.0/8", "::1", "1.2.3.4"]),
        ((oids::MONEY, -1), ["$1.00", "-$0.01", "$0.00"]),
        ((oids::VARBIT, -1), ["", "101", "1"]),
        ((oids::INT4RANGE, -1), ["[1,5)", "empty", "(,)"]),
        ((oids::TSVECTOR, -1), ["'a':1 'b':2", "", "'c'"]),
        ((oids::INT4_ARRAY, -1), ["{1,NULL,3}", "{}", "{NULL}"]),
        ((oids::TEXT_ARRAY, -1), ["{{a,b},{NULL,\"\"}}", "{}", "{{x,y},{z,\"null\"}}"]),
        ((oids::NUMERIC_ARRAY, typmod(10, 2)), ["{1.50,NULL}", "{}", "{0.00}"]),
        ((oids::TIMESTAMPTZ_ARRAY, -1), ["{\"2000-01-01 00:00:00+00\",infinity}", "{NULL,NULL}", "{}"]),
        ((oids::JSONB_ARRAY, -1), ["{\"{\\\"a\\\": 1}\"}", "{}", "{NULL}"]),
        ((oids::INT2VECTOR, -1), ["1 2", "", "3"]),
    ];
    let types: Vec<(Oid, i32)> = columns.iter().map(|(ty, _)| *ty).collect();
    let row = |row: usize| columns.iter().map(|(_, values)| Some(values[row])).collect::<Vec<_>>();
    let nulls = vec![None; columns.len()];
    let (first, second, third) = (row(0), row(1), row(2));
    Table::new(&types).rows(&[&first, &nulls, &second]).rows(&[&nulls, &third])
}

#[test]
fn every_type_comes_back_as_it_was() {
    let table = every_type();
    for (compression, rows) in [(Compression::Snappy, 100), (Compression::Zstd, 2), (Compression::Lz4, 1), (Compression::None, 3)]
    {
        let file = table.write(compression, rows).unwrap();
        assert_eq!(table.read(file, &table.types()).unwrap(), table.shown(), "{compression:?}, {rows} rows a group");
    }
}

#[test]
fn the_types_are_noted() {
    let table = every_type();
    let file = FileReader::open(Arc::new(table.write(Compression::Snappy, 100).unwrap())).unwrap();
    let noted: Vec<String> = file.noted_types().into_iter().flatten().collect();
    for (at, ty) in [(7, "numeric(9,2)"), (15, "character varying(10)"), (35, "text[]"), (36, "numeric(10,2)[]"), (28, "jsonb")] {
        assert_eq!(noted[at], ty);
    }
    assert_eq!((noted.len(), file.rows()), (table.columns.len(), 5));
}

#[test]
fn files_without_rows_have_their_columns() {
    let table = Table::new(&[(oids::INT4, -1), (oids::TEXT_ARRAY, -1)]);
    let file = table.write(Compression::Snappy, 10).unwrap();
    assert!(table.read(file, &table.types()).unwrap().is_empty());
}

fn failure(result: Result<Vec<Vec<Option<String>>>>) -> (SqlState, String, String) {
    let error: DbError = result.unwrap_err();
    (error.sqlstate(), error.message().to_owned(), error.fields().context.clone().unwrap_or_default())
}

#[test]
fn values_fit_other_types_or_name_their_row() {
    let table = Table::new(&[(oids::INT8, -1)]).rows(&[&[Some("1")], &[None], &[Some("3000000000")]]);
    let file = table.write(Compression::Snappy, 2).unwrap();
    let read = |ty| table.read(file.clone(), &[(ty, -1)]);
    let shown = |v: &[Option<&str>]| v.iter().map(|v| vec![v.map(str::to_owned)]).collect::<Vec<_>>();
    assert_eq!(read(oids::NUMERIC).unwrap(), shown(&[Some("1"), None, Some("3000000000")]));
    assert_eq!(read(oids::TEXT).unwrap(), shown(&[Some("1"), None, Some("3000000000")]));
    let (state, message, context) = failure(read(oids::INT4));
    assert_eq!(state, SqlState::NUMERIC_VALUE_OUT_OF_RANGE);
    assert_eq!((&*message, &*context), ("value \"3000000000\" is out of range for type integer", "row 3, column t0"));
    let (state, message, _) = failure(read(oids::DATE));
    assert_eq!((state.as_str(), &*message), ("42804", "column \"t0\" is of type date but the file's column is of type bigint"));
    assert_eq!(failure(read(oids::INT8_ARRAY)).0, SqlState::DATATYPE_MISMATCH);
}

#[test]
fn values_without_a_form_in_the_file_are_refused() {
    let failed = |ty, values: &[&str]| {
        let rows: Vec<[Option<&str>; 1]> = values.iter().map(|v| [Some(*v)]).collect();
        let rows: Vec<&[Option<&str>]> = rows.iter().map(|row| &row[..]).collect();
        let error = Table::new(&[ty]).rows(&rows).write(Compression::Snappy, 10).unwrap_err();
        (error.sqlstate().as_str().to_owned(), error.fields().context.clone().unwrap_or_default())
    };
    let expected = |state: &str, row: u32| (state.to_owned(), format!("row {row}, column c0"));
    assert_eq!(failed((oids::NUMERIC, typmod(5, 2)), &["1", "NaN"]), expected("22003", 2));
    assert_eq!(failed((oids::TIMESTAMP, -1), &["294276-12-31 23:59:59"]), expected("22008", 1));
    assert_eq!(failed((oids::INT4_ARRAY, -1), &["{1}", "{{1,2}}"]), expected("0A000", 2));
    assert_eq!(failed((oids::INT4_ARRAY, -1), &["[0:1]={1,2}"]), expected("0A000", 1));
}

#[test]
fn row_groups_without_a_row_within_the_limits_are_left_out() {
    let types = [(oids::INT8, -1), (oids::NUMERIC, typmod(30, 1)), (oids::TEXT, -1), (oids::FLOAT8, -1), (oids::DATE, -1)];
    let mut table = Table::new(&types);
    for group in ["1", "2", "3"] {
        let row = [Some(group), Some(group), Some(group), Some(if group == "1" { "NaN" } else { group }), Some("2024-01-01")];
        table = table.rows(&[&row, &[None; 5]]);
    }
    let file = FileReader::open(Arc::new(table.write(Compression::Snappy, 2).unwrap())).unwrap();
    let rows = |column: usize, least: Option<&str>, greatest: Option<&str>| {
        let name = Arc::from("t");
        let wanted = [Wanted { at: column, name, ty: types[column].0, typmod: types[column].1 }];
        let value = |text: Option<&str>| text.map(|t| io::text_in(&*table.session, types[column].0, -1, t).unwrap());
        let limits = vec![crate::ColumnLimits { column: 0, least: value(least), greatest: value(greatest) }];
        let mut scan = file.scan(Arc::clone(&table.session), &wanted).unwrap().within(limits);
        let mut count = 0;
        while let Some((rows, _)) = scan.next(100).unwrap() {
            count += rows;
        }
        count
    };
    for column in 0..3 {
        assert_eq!(rows(column, Some("2"), Some("2")), 2, "column {column}");
        assert_eq!((rows(column, Some("2"), None), rows(column, None, Some("1")), rows(column, Some("4"), None)), (4, 2, 0));
    }
    // NaN is greater than all.
    assert_eq!((rows(3, Some("4"), None), rows(4, Some("2024-01-02"), None), rows(4, None, Some("2024-01-01"))), (6, 0, 6));
}

/// Whatever the bytes are, reading ends with rows or with an error that blames the file or a value.
#[test]
fn wrong_bytes_are_errors() {
    std::panic::set_hook(Box::new(|_| {}));
    let types =
        [(oids::INT8, -1), (oids::TEXT, -1), (oids::NUMERIC, typmod(30, 2)), (oids::INT4_ARRAY, -1), (oids::TIMESTAMP, -1)];
    let row = [Some("17"), Some("some text"), Some("1234.50"), Some("{1,2,NULL}"), Some("2020-02-03 04:05:06")];
    let rows: Vec<&[Option<&str>]> = vec![&row, &[None; 5], &row, &row];
    let table = Table::new(&types).rows(&rows);
    for compression in [Compression::Snappy, Compression::Zstd, Compression::Lz4, Compression::None] {
        let file = table.write(compression, 2).unwrap();
        let check = |file: Vec<u8>, what: &str| {
            if let Err(error) = table.read(file, &types) {
                let state = error.sqlstate();
                let class = &state.as_str()[..2];
                assert!(matches!(class, "22" | "42" | "0A" | "58" | "54"), "{what}: {} {}", error.sqlstate(), error.message());
            }
        };
        for length in 0..file.len() {
            let error = table.read(file[..length].to_vec(), &types).unwrap_err();
            assert_eq!(error.sqlstate(), SqlState::BAD_COPY_FILE_FORMAT, "{length} bytes");
        }
        for at in 0..file.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut damaged = file.clone();
                damaged[at] ^= change;
                check(damaged, &format!("byte {at} of {compression:?}"));
            }
        }
        for at in (0..file.len()).step_by(7) {
            let mut damaged = file.clone();
            let end = damaged.len().min(at + 16);
            damaged[at..end].fill(0);
            check(damaged, &format!("zeros at {at} of {compression:?}"));
        }
    }
    let _ = std::panic::take_hook();
}

/// A dictionary of one long string makes a small file of many bytes: batches have fewer rows then, all of them have the same rows.
#[test]
fn long_strings_make_short_batches() {
    let long = "x".repeat(1 << 20);
    let numbers: Vec<String> = (0..300).map(|number| number.to_string()).collect();
    let rows: Vec<[Option<&str>; 2]> = numbers.iter().map(|number| [Some(&**number), Some(&*long)]).collect();
    let rows: Vec<&[Option<&str>]> = rows.iter().map(|row| &row[..]).collect();
    let table = Table::new(&[(oids::INT4, -1), (oids::TEXT, -1)]).rows(&rows);
    let bytes = table.write(Compression::Zstd, 1000).unwrap();
    assert!(bytes.len() < 100_000, "{} bytes", bytes.len());
    let file = FileReader::open(Arc::new(bytes)).unwrap();
    let wanted = [0, 1].map(|at| Wanted { at, name: "t".into(), ty: table.columns[at].ty, typmod: -1 });
    let mut scan = file.scan(Arc::clone(&table.session), &wanted).unwrap();
    let mut next = 0;
    while let Some((count, columns)) = scan.next(2047).unwrap() {
        assert!(count <= 32 && columns.iter().all(|column| column.len() == count), "{count} rows");
        for row in 0..count {
            let text = io::text_of(&*table.session, oids::TEXT, &columns[1].get(row)).unwrap();
            assert_eq!((columns[0].get(row).as_i32(), text.len()), (next, long.len()));
            next += 1;
        }
    }
    assert_eq!(next, 300);
}

#[test]
fn lists_go_on_in_the_next_page() {
    let rows = vec![&[Some("{1,2}")][..]; 45_000];
    let table = Table::new(&[(oids::INT4_ARRAY, -1)]).rows(&rows);
    let read = table.read(table.write(Compression::Snappy, 100_000).unwrap(), &table.types()).unwrap();
    assert!(read.len() == rows.len() && read.iter().all(|row| row[0].as_deref() == Some("{1,2}")));
}

#[test]
fn what_is_no_json_is_refused() {
    // The bytes of a text column that a damaged file calls json.
    let table = Table::new(&[(oids::JSON, -1)]).rows(&[&[Some("{\"a\":1}")]]);
    let mut file = table.write(Compression::None, 10).unwrap();
    let at = file.windows(7).position(|bytes| bytes == b"{\"a\":1}").unwrap();
    file[at + 6] = b' ';
    assert_eq!(failure(table.read(file, &table.types())).0, SqlState::INVALID_TEXT_REPRESENTATION);
}

#[test]
fn floats_do_not_depend_on_settings() {
    let table = Table::new(&[(oids::FLOAT8, -1)]).rows(&[&[Some("1234567890123456768")], &[Some("0.1")]]);
    let file = table.write(Compression::None, 10).unwrap();
    let read = table.read(file, &[(oids::NUMERIC, -1)]).unwrap();
    assert_eq!(read, [[Some("1234567890123456800".to_owned())], [Some("0.1".to_owned())]]);
}

#[test]
fn files_that_could_not_be_read_again_are_refused() {
    let table = Table::new(&[(oids::INT4, -1), (oids::INT4, -1)]);
    let written = |table: &Table| table.write(Compression::None, 10).map(drop).map_err(|e| e.sqlstate());
    assert_eq!(written(&table), Ok(()));
    let mut twice = Table::new(&[(oids::INT4, -1), (oids::INT4, -1)]);
    twice.columns[1].name = twice.columns[0].name.clone();
    assert_eq!(written(&twice), Err(SqlState::DUPLICATE_COLUMN));
    assert_eq!(written(&Table::new(&[])), Err(SqlState::FEATURE_NOT_SUPPORTED));
}
