//! The metadata of a table: JSON, as Iceberg's version 2 has it.

use melba_types::{Oid, Result, bail, err};
use serde_json::{Value, json};

use crate::schema::Schema;

/// Fields of `last-partition-id` begin behind it.
const PARTITION_ID: i32 = 999;
/// Files of earlier metadata that are kept.
pub const OLD_METADATA: usize = 10;

/// Where the rows of a table come from. Row ids and CSNs of other origins mean nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Lineage {
    /// The number of the data directory's database, which a restored one does not have.
    pub history: u64,
    /// The database's OID.
    pub database: Oid,
    pub table: Oid,
    /// The tree that has the rows: another one when the table was written again.
    pub tree: u64,
}

/// A table's metadata.
#[derive(Clone, Debug)]
pub struct Metadata {
    value: Value,
}

/// A snapshot to be added.
pub struct NewSnapshot<'a> {
    pub id: i64,
    pub sequence: i64,
    /// Milliseconds since 1970.
    pub time: i64,
    pub list: String,
    pub operation: &'a str,
    pub summary: Value,
}

impl Metadata {
    pub fn new(location: &str, uuid: &str) -> Metadata {
        Metadata {
            value: json!({
                "format-version": 2, "table-uuid": uuid, "location": location, "last-sequence-number": 0, "last-updated-ms": 0,
                "last-column-id": 0, "current-schema-id": -1, "schemas": [], "default-spec-id": 0,
                "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": PARTITION_ID, "default-sort-order-id": 0,
                "sort-orders": [{"order-id": 0, "fields": []}], "properties": {}, "current-snapshot-id": -1, "refs": {},
                "snapshots": [], "snapshot-log": [], "metadata-log": []
            }),
        }
    }

    /// # Errors
    /// XX001 for bytes that are no metadata of ours.
    pub fn parse(bytes: &[u8], name: &str) -> Result<Metadata> {
        let value: Value = serde_json::from_slice(bytes).map_err(|e| err!(DATA_CORRUPTED, "\"{name}\" is damaged: {e}"))?;
        let metadata = Metadata { value };
        if metadata.value["format-version"] != 2 || metadata.csn().is_none() {
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "\"{name}\" was not written by Melba");
        }
        Ok(metadata)
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.value.to_string().into_bytes()
    }

    fn property(&self, name: &str) -> Option<u64> {
        self.value["properties"][name].as_str()?.parse().ok()
    }

    /// The commit up to which the table has the rows.
    pub fn csn(&self) -> Option<u64> {
        self.property("melba.csn")
    }

    pub fn origin(&self) -> Option<Lineage> {
        let oid = |name| self.property(name).and_then(|n| u32::try_from(n).ok()).map(Oid);
        Some(Lineage {
            history: self.property("melba.history")?,
            database: oid("melba.database-oid")?,
            table: oid("melba.table-oid")?,
            tree: self.property("melba.tree")?,
        })
    }

    pub fn sequence(&self) -> i64 {
        self.value["last-sequence-number"].as_i64().unwrap_or(0)
    }

    pub fn current(&self) -> Option<i64> {
        self.value["current-snapshot-id"].as_i64().filter(|id| *id >= 0)
    }

    /// The lists of manifests of all snapshots, with their ids and sequence numbers.
    pub fn lists(&self) -> Vec<(i64, i64, String)> {
        let list = |s: &Value| {
            let (id, sequence) = (s["snapshot-id"].as_i64()?, s["sequence-number"].as_i64()?);
            Some((id, sequence, s["manifest-list"].as_str()?.to_owned()))
        };
        self.value["snapshots"].as_array().into_iter().flatten().filter_map(list).collect()
    }

    /// The schema of the rows.
    pub fn schema(&self) -> Option<&Value> {
        let id = &self.value["current-schema-id"];
        self.value["schemas"].as_array()?.iter().find(|schema| schema["schema-id"] == *id)
    }

    /// The greatest number of a column in any schema.
    pub fn last_column(&self) -> i64 {
        let schemas = self.value["schemas"].as_array().into_iter().flatten();
        let fields = schemas.filter_map(|schema| schema["fields"].as_array()).flatten();
        fields.filter_map(|field| field["id"].as_i64()).max().unwrap_or(0)
    }

    /// Makes a schema the present one.
    pub fn set_schema(&mut self, schema: &Schema) {
        let schemas = self.value["schemas"].as_array().map_or(&[][..], Vec::as_slice);
        let id = match schemas.iter().find(|known| schema.is(known)) {
            Some(known) => known["schema-id"].clone(),
            None => {
                let id = schemas.len() as i64;
                let described = schema.described(id);
                if let Some(schemas) = self.value["schemas"].as_array_mut() {
                    schemas.push(described);
                }
                id.into()
            }
        };
        self.value["current-schema-id"] = id;
        let last = self.value["last-column-id"].as_i64().unwrap_or(0).max(i64::from(schema.last_column_id()));
        self.value["last-column-id"] = last.into();
    }

    pub fn set_lineage(&mut self, origin: &Lineage, csn: u64, commit_time: &str) {
        let Lineage { history, database, table, tree } = origin;
        self.value["properties"] = json!({
            "melba.history": history.to_string(), "melba.database-oid": database.0.to_string(), "melba.table-oid": table.0.to_string(),
            "melba.tree": tree.to_string(), "melba.csn": csn.to_string(), "melba.commit-time": commit_time,
            "write.format.default": "parquet"
        });
    }

    pub fn add(&mut self, snapshot: NewSnapshot<'_>) {
        let NewSnapshot { id, sequence, time, list, operation, mut summary } = snapshot;
        summary["operation"] = operation.into();
        // Readers want times that do not go back.
        let time = time.max(self.value["last-updated-ms"].as_i64().unwrap_or(0));
        let mut described = json!({"snapshot-id": id, "sequence-number": sequence, "timestamp-ms": time, "manifest-list": list,
            "summary": summary, "schema-id": self.value["current-schema-id"]});
        if let Some(parent) = self.current() {
            described["parent-snapshot-id"] = parent.into();
        }
        push(&mut self.value["snapshots"], described);
        push(&mut self.value["snapshot-log"], json!({"timestamp-ms": time, "snapshot-id": id}));
        self.value["current-snapshot-id"] = id.into();
        self.value["refs"] = json!({"main": {"snapshot-id": id, "type": "branch"}});
        self.value["last-sequence-number"] = sequence.into();
        self.value["last-updated-ms"] = time.into();
    }

    /// Notes the metadata before, and returns the files of metadata that are named no more.
    pub fn succeed(&mut self, before: &str, time: i64) -> Vec<String> {
        push(&mut self.value["metadata-log"], json!({"timestamp-ms": time, "metadata-file": before}));
        let Some(log) = self.value["metadata-log"].as_array_mut() else { return Vec::new() };
        let old = log.drain(..log.len().saturating_sub(OLD_METADATA));
        old.filter_map(|entry| entry["metadata-file"].as_str().map(str::to_owned)).collect()
    }

    /// Forgets snapshots before a time, except the present one. Returns the ids and the lists of those forgotten.
    pub fn expire(&mut self, before: i64) -> Vec<(i64, String)> {
        let current = self.current();
        let Some(snapshots) = self.value["snapshots"].as_array_mut() else { return Vec::new() };
        let is_old =
            |s: &Value| s["timestamp-ms"].as_i64().is_some_and(|time| time < before) && s["snapshot-id"].as_i64() != current;
        let (old, kept): (Vec<Value>, Vec<Value>) = std::mem::take(snapshots).into_iter().partition(is_old);
        *snapshots = kept;
        let gone = |s: &Value| Some((s["snapshot-id"].as_i64()?, s["manifest-list"].as_str()?.to_owned()));
        let gone: Vec<_> = old.iter().filter_map(gone).collect();
        if let Some(log) = self.value["snapshot-log"].as_array_mut() {
            log.retain(|entry| !gone.iter().any(|(id, _)| entry["snapshot-id"].as_i64() == Some(*id)));
        }
        gone
    }

    /// The sequence number of the oldest snapshot.
    pub fn oldest_sequence(&self) -> i64 {
        self.lists().iter().map(|(_, sequence, _)| *sequence).min().unwrap_or(0)
    }
}

fn push(list: &mut Value, item: Value) {
    if let Some(list) = list.as_array_mut() {
        list.push(item);
    }
}
