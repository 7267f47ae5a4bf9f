//! Manifests: lists of files, and lists of those lists, as Avro.

use melba_types::Result;
use serde_json::{Value, json};

use crate::avro::{self, Decoder, Encoder};

/// What the files of a manifest hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    Data,
    /// Of position deletes.
    Deletes,
}

/// The state of a file in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Existing = 0,
    Added = 1,
    Deleted = 2,
}

/// A file, and since when it belongs to the table.
#[derive(Clone, Debug, PartialEq)]
pub struct FileEntry {
    /// Its URL.
    pub path: String,
    pub rows: u64,
    pub bytes: u64,
    /// The snapshot that has added it, and that one's sequence number.
    pub snapshot: i64,
    pub sequence: i64,
}

/// A manifest as a list of manifests has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    pub path: String,
    pub bytes: u64,
    pub content: Content,
    /// That of the snapshot which has added it, and the least of its files'.
    pub sequence: i64,
    pub sequence_min: i64,
    pub snapshot: i64,
    /// Files and rows by `Status`.
    pub files: [u64; 3],
    pub rows: [u64; 3],
}

fn optional(name: &str, ty: Value, id: i32) -> Value {
    json!({"name": name, "type": ["null", ty], "default": null, "field-id": id})
}

/// A map from field ids, as Avro has it.
fn map(name: &str, ids: [i32; 3], value: &str) -> Value {
    let [id, key, of_value] = ids;
    let pair = json!({"type": "record", "name": format!("k{key}_v{of_value}"), "fields": [
        {"name": "key", "type": "int", "field-id": key}, {"name": "value", "type": value, "field-id": of_value}]});
    optional(name, json!({"type": "array", "logicalType": "map", "items": pair}), id)
}

/// Names of fields that are never set, in their place between those that are.
const UNSET: usize = 10;

fn entry_schema() -> Value {
    let file = json!({"type": "record", "name": "r2", "fields": [
        {"name": "content", "type": "int", "field-id": 134},
        {"name": "file_path", "type": "string", "field-id": 100},
        {"name": "file_format", "type": "string", "field-id": 101},
        {"name": "partition", "type": {"type": "record", "name": "r102", "fields": []}, "field-id": 102},
        {"name": "record_count", "type": "long", "field-id": 103},
        {"name": "file_size_in_bytes", "type": "long", "field-id": 104},
        map("column_sizes", [108, 117, 118], "long"),
        map("value_counts", [109, 119, 120], "long"),
        map("null_value_counts", [110, 121, 122], "long"),
        map("nan_value_counts", [137, 138, 139], "long"),
        map("lower_bounds", [125, 126, 127], "bytes"),
        map("upper_bounds", [128, 129, 130], "bytes"),
        optional("key_metadata", json!("bytes"), 131),
        optional("split_offsets", json!({"type": "array", "items": "long", "element-id": 133}), 132),
        optional("equality_ids", json!({"type": "array", "items": "int", "element-id": 136}), 135),
        optional("sort_order_id", json!("int"), 140),
    ]});
    json!({"type": "record", "name": "manifest_entry", "fields": [
        {"name": "status", "type": "int", "field-id": 0},
        optional("snapshot_id", json!("long"), 1),
        optional("sequence_number", json!("long"), 3),
        optional("file_sequence_number", json!("long"), 4),
        {"name": "data_file", "type": file, "field-id": 2},
    ]})
}

fn list_schema() -> Value {
    let long = |name: &str, id: i32| json!({"name": name, "type": "long", "field-id": id});
    let int = |name: &str, id: i32| json!({"name": name, "type": "int", "field-id": id});
    let summary = json!({"type": "record", "name": "r508", "fields": [
        {"name": "contains_null", "type": "boolean", "field-id": 509},
        optional("contains_nan", json!("boolean"), 518),
        optional("lower_bound", json!("bytes"), 510),
        optional("upper_bound", json!("bytes"), 511),
    ]});
    json!({"type": "record", "name": "manifest_file", "fields": [
        {"name": "manifest_path", "type": "string", "field-id": 500},
        long("manifest_length", 501),
        int("partition_spec_id", 502),
        int("content", 517),
        long("sequence_number", 515),
        long("min_sequence_number", 516),
        long("added_snapshot_id", 503),
        int("added_files_count", 504),
        int("existing_files_count", 505),
        int("deleted_files_count", 506),
        long("added_rows_count", 512),
        long("existing_rows_count", 513),
        long("deleted_rows_count", 514),
        optional("partitions", json!({"type": "array", "items": summary, "element-id": 508}), 507),
        optional("key_metadata", json!("bytes"), 519),
    ]})
}

/// A marker between blocks, different in different files.
fn marker(name: &str) -> [u8; 16] {
    let mut marker = *b"melba's manifest";
    name.bytes().enumerate().for_each(|(at, byte)| marker[at % 16] = marker[at % 16].rotate_left(3) ^ byte);
    marker
}

/// A manifest's bytes, and what a list says of it. `schema`: the table's.
pub fn encode(
    path: String,
    content: Content,
    snapshot: (i64, i64),
    schema: &Value,
    entries: &[(Status, FileEntry)],
) -> (Vec<u8>, Manifest) {
    let (snapshot, sequence) = snapshot;
    let mut out = Encoder::default();
    let mut manifest =
        Manifest { path, bytes: 0, content, sequence, sequence_min: sequence, snapshot, files: [0; 3], rows: [0; 3] };
    for (status, entry) in entries {
        out.long(*status as i64);
        // A file that is removed names the snapshot which has removed it.
        out.optional_long(Some(if *status == Status::Deleted { snapshot } else { entry.snapshot }));
        out.optional_long(Some(entry.sequence));
        out.optional_long(Some(entry.sequence));
        out.long(i64::from(content == Content::Deletes));
        out.bytes(entry.path.as_bytes());
        out.bytes(b"PARQUET");
        out.long(entry.rows as i64);
        out.long(entry.bytes as i64);
        (0..UNSET).for_each(|_| out.null());
        manifest.files[*status as usize] += 1;
        manifest.rows[*status as usize] += entry.rows;
        if *status != Status::Deleted {
            manifest.sequence_min = manifest.sequence_min.min(entry.sequence);
        }
    }
    let (schema_text, schema_id, entry_schema) =
        (schema.to_string(), schema["schema-id"].to_string(), entry_schema().to_string());
    let metadata = [
        ("avro.schema", entry_schema.as_str()),
        ("avro.codec", "null"),
        ("schema", &schema_text),
        ("schema-id", &schema_id),
        ("partition-spec", "[]"),
        ("partition-spec-id", "0"),
        ("format-version", "2"),
        ("content", if content == Content::Data { "data" } else { "deletes" }),
    ];
    let bytes = avro::file(&metadata, marker(&manifest.path), entries.len(), out);
    manifest.bytes = bytes.len() as u64;
    (bytes, manifest)
}

/// The files of a manifest.
///
/// # Errors
/// XX001 for bytes that `encode` has not made.
pub fn decode(bytes: &[u8]) -> Result<Vec<(Status, FileEntry)>> {
    avro::records(bytes, |r| {
        let status = match r.long()? {
            0 => Status::Existing,
            1 => Status::Added,
            _ => Status::Deleted,
        };
        let (snapshot, sequence) = (r.optional_long()?.unwrap_or(0), r.optional_long()?.unwrap_or(0));
        r.optional_long()?;
        r.long()?;
        let path = r.text()?;
        r.text()?;
        let (rows, bytes) = (r.long()? as u64, r.long()? as u64);
        for _ in 0..UNSET {
            refuse_set(r)?;
        }
        Ok((status, FileEntry { path, rows, bytes, snapshot, sequence }))
    })
}

/// Fields that are never written.
fn refuse_set(r: &mut Decoder<'_>) -> Result<()> {
    if r.is_some()? { Err(melba_types::err!(DATA_CORRUPTED, "a manifest was written by another program")) } else { Ok(()) }
}

/// The list of a snapshot's manifests.
pub fn encode_list(snapshot: i64, parent: Option<i64>, sequence: i64, manifests: &[Manifest]) -> Vec<u8> {
    let mut out = Encoder::default();
    for m in manifests {
        out.bytes(m.path.as_bytes());
        out.long(m.bytes as i64);
        out.long(0);
        out.long(i64::from(m.content == Content::Deletes));
        out.long(m.sequence);
        out.long(m.sequence_min);
        out.long(m.snapshot);
        let in_order = [Status::Added, Status::Existing, Status::Deleted].map(|status| status as usize);
        in_order.iter().for_each(|status| out.long(m.files[*status] as i64));
        in_order.iter().for_each(|status| out.long(m.rows[*status] as i64));
        out.null();
        out.null();
    }
    let numbers = [snapshot.to_string(), parent.map_or_else(|| "null".to_owned(), |id| id.to_string()), sequence.to_string()];
    let schema = list_schema().to_string();
    let metadata = [
        ("avro.schema", schema.as_str()),
        ("avro.codec", "null"),
        ("snapshot-id", &numbers[0]),
        ("parent-snapshot-id", &numbers[1]),
        ("sequence-number", &numbers[2]),
        ("format-version", "2"),
    ];
    avro::file(&metadata, marker(&numbers[0]), manifests.len(), out)
}

/// The manifests of a list.
///
/// # Errors
/// XX001 for bytes that `encode_list` has not made.
pub fn decode_list(bytes: &[u8]) -> Result<Vec<Manifest>> {
    avro::records(bytes, |r| {
        let (path, bytes) = (r.text()?, r.long()? as u64);
        r.long()?;
        let content = if r.long()? == 0 { Content::Data } else { Content::Deletes };
        let (sequence, sequence_min, snapshot) = (r.long()?, r.long()?, r.long()?);
        let mut counts = [0u64; 6];
        for count in &mut counts {
            *count = r.long()? as u64;
        }
        refuse_set(r)?;
        refuse_set(r)?;
        let [added, existing, deleted, added_rows, existing_rows, deleted_rows] = counts;
        let (files, rows) = ([existing, added, deleted], [existing_rows, added_rows, deleted_rows]);
        Ok(Manifest { path, bytes, content, sequence, sequence_min, snapshot, files, rows })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_and_their_lists_come_back() {
        let file = |n: u64| FileEntry {
            path: format!("file:///lake/{n}.parquet"),
            rows: 10 * n,
            bytes: 1000 + n,
            snapshot: n as i64,
            sequence: n as i64,
        };
        let entries = [(Status::Existing, file(1)), (Status::Deleted, file(2)), (Status::Added, file(3))];
        let schema = json!({"type": "struct", "schema-id": 0, "fields": []});
        let (bytes, manifest) = encode("m".to_owned(), Content::Data, (3, 3), &schema, &entries);
        let mut expected = entries.clone();
        expected[1].1.snapshot = 3;
        assert_eq!(decode(&bytes).unwrap(), expected);
        assert_eq!((manifest.sequence_min, manifest.files, manifest.rows), (1, [1, 1, 1], [10, 30, 20]));
        let (_, deletes) = encode("d".to_owned(), Content::Deletes, (3, 3), &schema, &entries[2..]);
        let list = [manifest, deletes];
        assert_eq!(decode_list(&encode_list(3, None, 3, &list)).unwrap(), list);
    }
}
