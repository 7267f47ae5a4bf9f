//! The folder of a publication: which tables it has, and where. The file that says so is the folder's first, and marks it as ours.
//!
//! ```text
//! melba-publication.json      {"format": 1, "checksum": CRC-32C of the body's text, "body": {...}}
//! SCHEMA/TABLE/...            a table
//! ```
//!
//! The file is replaced when a table is added, before its files are written, and after each snapshot. Then all its tables are as of one
//! commit: that is what the REST catalog serves.

use std::sync::Arc;

use melba_objects::Folder;
use melba_types::{Oid, Result, bail, err};
use serde_json::{Value, json};

use crate::names;

const NAME: &str = "melba-publication.json";
const FORMAT: u64 = 1;

/// A table of a publication.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedTable {
    pub table: Oid,
    pub schema: String,
    pub name: String,
    /// Its place in the folder.
    pub directory: String,
    /// The URL of its metadata; none before its first snapshot.
    pub metadata: Option<String>,
    /// Whether it still belongs to the publication. Its files stay.
    pub is_published: bool,
}

/// See the module.
pub struct Published {
    pub folder: Arc<Folder>,
    /// The publication.
    owner: String,
    pub csn: u64,
    pub commit_time: String,
    pub tables: Vec<PublishedTable>,
}

impl Published {
    /// Opens the folder of a publication, or takes an empty one. `owner`: what no other publication has.
    ///
    /// # Errors
    /// 55000 for a folder with other files, or of another publication.
    pub fn open(url: &str, owner: &str) -> Result<Published> {
        let folder = Arc::new(Folder::open(url)?);
        if let Some(published) = Published::read(&folder)? {
            if published.owner != owner {
                return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "\"{url}\" has the tables of another publication")
                    .detail(format!("It belongs to {}, this is {owner}.", published.owner))
                    .hint("Set another location."));
            }
            return Ok(published);
        }
        if !folder.names("")?.is_empty() {
            return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "\"{url}\" has files that are not of a publication")
                .hint("Set a location where nothing is."));
        }
        let (owner, commit_time) = (owner.to_owned(), String::new());
        let published = Published { folder, owner, csn: 0, commit_time, tables: Vec::new() };
        if !published.folder.create(NAME, published.bytes())? {
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "\"{url}\" has just become the place of another publication");
        }
        Ok(published)
    }

    /// What the folder of a publication has, for its readers; `None`: nothing yet.
    ///
    /// # Errors
    /// Those of the store.
    pub fn find(url: &str) -> Result<Option<Published>> {
        Published::read(&Arc::new(Folder::open(url)?))
    }

    /// The metadata of a table; `None`: it has none.
    ///
    /// # Errors
    /// Those of the store; XX001 for what is no metadata.
    pub fn metadata(&self, table: &PublishedTable) -> Result<Option<Value>> {
        let name = table.metadata.as_ref().and_then(|url| url.strip_prefix(&self.folder.url("")));
        let Some(name) = name else { return Ok(None) };
        let Some(bytes) = self.folder.read(name)? else { return Ok(None) };
        let metadata = serde_json::from_slice(&bytes);
        metadata.map(Some).map_err(|e| err!(DATA_CORRUPTED, "\"{}\" is damaged: {e}", self.folder.url(name)))
    }

    /// What a folder has; `None`: it is no publication's.
    ///
    /// # Errors
    /// XX001 for a damaged file; those of the store.
    pub fn read(folder: &Arc<Folder>) -> Result<Option<Published>> {
        let Some(bytes) = folder.read(NAME)? else { return Ok(None) };
        let damaged = || err!(DATA_CORRUPTED, "\"{}\" is damaged", folder.url(NAME));
        let value: Value = serde_json::from_slice(&bytes).map_err(|_| damaged())?;
        let body = &value["body"];
        if value["format"] != FORMAT {
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "\"{}\" has another format", folder.url(NAME));
        }
        if value["checksum"] != crc32c::crc32c(body.to_string().as_bytes()) {
            return Err(damaged());
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let table = |t: &Value| {
            Some(PublishedTable {
                table: Oid(u32::try_from(t["oid"].as_u64()?).ok()?),
                schema: text(&t["schema"])?,
                name: text(&t["name"])?,
                directory: text(&t["directory"])?,
                metadata: text(&t["metadata"]),
                is_published: t["published"].as_bool()?,
            })
        };
        let tables: Option<Vec<PublishedTable>> = body["tables"].as_array().and_then(|all| all.iter().map(table).collect());
        let read = || {
            Some(Published {
                folder: Arc::clone(folder),
                owner: text(&body["publication"])?,
                csn: body["csn"].as_u64()?,
                commit_time: text(&body["commit-time"])?,
                tables: tables?,
            })
        };
        read().map(Some).ok_or_else(damaged)
    }

    fn bytes(&self) -> Vec<u8> {
        let table = |t: &PublishedTable| {
            json!({"oid": t.table.0, "schema": t.schema, "name": t.name, "directory": t.directory, "metadata": t.metadata,
                "published": t.is_published})
        };
        let tables: Vec<Value> = self.tables.iter().map(table).collect();
        let body = json!({"publication": self.owner, "csn": self.csn, "commit-time": self.commit_time, "tables": tables});
        let checksum = crc32c::crc32c(body.to_string().as_bytes());
        json!({"format": FORMAT, "checksum": checksum, "body": body}).to_string().into_bytes()
    }

    /// # Errors
    /// Those of the store.
    pub fn save(&self) -> Result<()> {
        self.folder.write(NAME, self.bytes())
    }

    /// Makes the tables of the publication these: OID, schema and name. Returns whether any has changed.
    pub fn set_tables(&mut self, now: &[(Oid, String, String)]) -> bool {
        let before = self.tables.clone();
        self.tables.iter_mut().for_each(|known| known.is_published = false);
        for (table, schema, name) in now {
            if let Some(known) = self.tables.iter_mut().find(|known| known.table == *table) {
                (known.is_published, known.schema, known.name) = (true, schema.clone(), name.clone());
                continue;
            }
            let plain = format!("{}/{}", names::folder(schema, *table), names::folder(name, *table));
            let is_taken = self.tables.iter().any(|other| other.directory == plain);
            let directory = if is_taken { format!("{plain}_{table}") } else { plain };
            let (schema, name) = (schema.clone(), name.clone());
            let new = PublishedTable { table: *table, schema, name, directory, metadata: None, is_published: true };
            self.tables.push(new);
        }
        self.tables != before
    }
}
