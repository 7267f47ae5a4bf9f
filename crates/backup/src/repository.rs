//! The place where backups are kept: a folder, or a bucket of an object store.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, PutPayload, WriteMultipart};
use tokio::runtime::Runtime;

use crate::record::{Backup, Content, FORMAT, Part};
use crate::{Result, server};

/// An object that is larger is sent in parts of this.
const PART_BYTES: usize = 8 << 20;

/// Where backups are kept.
pub struct Repository {
    store: Arc<dyn ObjectStore>,
    runtime: Runtime,
    /// The folder in the bucket.
    prefix: String,
    shown: String,
}

/// Whether a place can hold backups as they are made here, and no dump.
pub fn is_repository(place: &str) -> bool {
    let has_backups = |entry: std::io::Result<std::fs::DirEntry>| entry.is_ok_and(|e| e.path().join("backups").is_dir());
    place.contains("://") || std::fs::read_dir(place).is_ok_and(|mut entries| entries.any(has_backups))
}

impl Repository {
    /// Of a folder, or a URL such as `s3://bucket/folder`; further options of a store come from the environment (AWS_REGION,
    /// AWS_ACCESS_KEY_ID, AWS_ENDPOINT ...).
    pub fn open(place: &str) -> Result<Repository> {
        let failed = |e: &dyn std::fmt::Display| format!("{place}: {e}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| failed(&e))?;
        let (store, prefix): (Arc<dyn ObjectStore>, String) = if place.contains("://") {
            let (store, path) = melba_objects::open_store(place).map_err(|e| failed(&e))?;
            (store, path.to_string())
        } else {
            std::fs::create_dir_all(place).map_err(|e| failed(&e))?;
            (Arc::new(LocalFileSystem::new_with_prefix(place).map_err(|e| failed(&e))?), String::new())
        };
        Ok(Repository { store, runtime, prefix, shown: place.to_owned() })
    }

    fn path(&self, key: &str) -> Path {
        Path::from(format!("{}/{key}", self.prefix))
    }

    fn failed(&self, key: &str, e: &object_store::Error) -> String {
        let separator = if key.is_empty() { "" } else { ": " };
        format!("{}{separator}{key}: {e}", self.shown)
    }

    /// Writes a small object.
    pub fn put(&self, key: &str, content: Vec<u8>) -> Result<Content> {
        let is = Content::of(&content);
        let path = self.path(key);
        self.runtime.block_on(self.store.put(&path, PutPayload::from(content))).map_err(|e| self.failed(key, &e))?;
        Ok(is)
    }

    /// Writes an object that `next` returns in pieces, until it returns none. A failed one leaves nothing under its name.
    pub fn put_pieces(&self, key: &str, next: &mut dyn FnMut() -> Result<Option<Vec<u8>>>) -> Result<Content> {
        let mut is = Content { bytes: 0, crc: 0 };
        let upload = self.runtime.block_on(self.store.put_multipart(&self.path(key))).map_err(|e| self.failed(key, &e))?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
        loop {
            match next() {
                Ok(Some(piece)) => {
                    is = Content { bytes: is.bytes + piece.len() as u64, crc: crc32c::crc32c_append(is.crc, &piece) };
                    let written = self.runtime.block_on(async {
                        upload.wait_for_capacity(2).await?;
                        upload.put(Bytes::from(piece));
                        Ok(())
                    });
                    written.map_err(|e| self.failed(key, &e))?;
                }
                Ok(None) => break,
                Err(e) => {
                    let _ = self.runtime.block_on(upload.abort());
                    return Err(e);
                }
            }
        }
        self.runtime.block_on(upload.finish()).map_err(|e| self.failed(key, &e))?;
        Ok(is)
    }

    pub fn get(&self, key: &str) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.get_pieces(key, &mut |piece| {
            out.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(out)
    }

    /// Passes an object's bytes on; returns its size and checksum.
    pub fn get_pieces(&self, key: &str, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<Content> {
        self.runtime.block_on(async {
            let found = self.store.get(&self.path(key)).await.map_err(|e| self.failed(key, &e))?;
            let (mut stream, mut is) = (found.into_stream(), Content { bytes: 0, crc: 0 });
            while let Some(piece) = stream.next().await {
                let piece = piece.map_err(|e| self.failed(key, &e))?;
                is = Content { bytes: is.bytes + piece.len() as u64, crc: crc32c::crc32c_append(is.crc, &piece) };
                each(&piece)?;
            }
            Ok(is)
        })
    }

    /// The objects whose names begin with a folder, and their sizes.
    pub fn list(&self, folder: &str) -> Result<Vec<(String, u64)>> {
        let prefix = self.path(folder);
        let listed = self.runtime.block_on(self.store.list(Some(&prefix)).try_collect::<Vec<_>>());
        let listed = listed.map_err(|e| self.failed(folder, &e))?;
        let root = Path::from(self.prefix.as_str());
        let key = |path: &Path| {
            let below: Vec<String> =
                path.prefix_match(&root).into_iter().flatten().map(|part| part.as_ref().to_owned()).collect();
            below.join("/")
        };
        Ok(listed.iter().map(|object| (key(&object.location), object.size)).collect())
    }

    pub fn delete(&self, key: &str) -> Result<()> {
        self.runtime.block_on(self.store.delete(&self.path(key))).map_err(|e| self.failed(key, &e))
    }

    /// A file of JSON, as long as this program knows its format.
    pub fn json<T: serde::de::DeserializeOwned>(&self, key: &str) -> Result<T> {
        let bytes = self.get(key)?;
        let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|e| format!("{}: {key}: {e}", self.shown))?;
        match value.get("format").and_then(serde_json::Value::as_u64) {
            Some(format) if format != u64::from(FORMAT) => {
                return Err(format!("{}: {key} has the unknown format {format}", self.shown));
            }
            _ => {}
        }
        serde_json::from_value(value).map_err(|e| format!("{}: {key}: {e}", self.shown))
    }

    /// Writes an object that names other objects, which must already be durable.
    pub fn put_json<T: serde::Serialize>(&self, key: &str, value: &T) -> Result<()> {
        self.sync()?;
        let text = serde_json::to_vec_pretty(value).map_err(|e| e.to_string())?;
        self.put(key, text)?;
        self.sync()
    }

    /// Makes everything written durable: object stores do that themselves.
    fn sync(&self) -> Result<()> {
        if self.shown.contains("://") {
            return Ok(());
        }
        server::sync_file_system(&self.shown)
    }

    /// The folders of databases. Their content, which is most objects, is not listed.
    fn databases(&self) -> Result<Vec<String>> {
        let prefix = self.path("");
        let listed = self.runtime.block_on(self.store.list_with_delimiter(Some(&prefix))).map_err(|e| self.failed("", &e))?;
        Ok(listed.common_prefixes.iter().filter_map(|path| path.filename().map(str::to_owned)).collect())
    }

    /// All backups: database, time and content; oldest first.
    pub fn backups(&self) -> Result<Vec<(String, String, Backup)>> {
        let mut found = Vec::new();
        for database in self.databases()? {
            found.extend(self.backups_of(&database)?.into_iter().map(|(time, backup)| (database.clone(), time, backup)));
        }
        found.sort_by(|a, b| a.1.cmp(&b.1));
        Ok(found)
    }

    /// The backups of a database.
    pub fn backups_of(&self, database: &str) -> Result<Vec<(String, Backup)>> {
        let mut found = Vec::new();
        for (key, _) in self.list(&format!("{database}/backups"))? {
            if let [_, _, name] = key.split('/').collect::<Vec<_>>()[..]
                && let Some(time) = name.strip_suffix(".json")
            {
                found.push((time.to_owned(), self.json(&key)?));
            }
        }
        Ok(found)
    }

    /// The parts that following added to a backup, in order.
    pub fn parts(&self, database: &str, time: &str) -> Result<Vec<(String, Part)>> {
        let mut keys: Vec<String> = self.list(&format!("{database}/backups/{time}"))?.into_iter().map(|(key, _)| key).collect();
        keys.retain(|key| key.ends_with(".json"));
        keys.sort();
        keys.into_iter().map(|key| self.json(&key).map(|part| (key.clone(), part))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Part;

    fn part(from: u64, to: u64) -> Part {
        Part { at: "2026-11-25T00:00:00Z".to_owned(), from, to, log: Vec::new(), segments: Vec::new() }
    }

    fn backup(to: u64) -> Backup {
        Backup {
            format: FORMAT,
            server: "Melba".to_owned(),
            began: "2026-11-25T00:00:00Z".to_owned(),
            ended: "2026-11-25T00:00:01Z".to_owned(),
            manifest: Content::of(b"m"),
            replay: 0,
            part: part(0, to),
            configuration: Vec::new(),
        }
    }

    #[test]
    fn backups_of_all_databases_are_found_with_their_parts() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().to_str().unwrap();
        let repository = Repository::open(place).unwrap();
        assert!(repository.backups().unwrap().is_empty() && !is_repository(place));
        repository.put("00a1/segments/1-2", b"segment".to_vec()).unwrap();
        repository.put_json("00a1/backups/T2.json", &backup(20)).unwrap();
        repository.put_json("00b2/backups/T1.json", &backup(10)).unwrap();
        repository.put_json("00a1/backups/T2/0000000000000028.json", &part(30, 40)).unwrap();
        repository.put_json("00a1/backups/T2/000000000000001e.json", &part(20, 30)).unwrap();
        let found = repository.backups().unwrap();
        let named: Vec<_> = found.iter().map(|(database, time, backup)| (&**database, &**time, backup.part.to)).collect();
        assert_eq!(named, [("00b2", "T1", 10), ("00a1", "T2", 20)]);
        let parts = repository.parts("00a1", "T2").unwrap();
        assert_eq!(found[1].2.with(&parts).map(|part| part.to).collect::<Vec<_>>(), [20, 30, 40]);
        assert!(repository.parts("00b2", "T1").unwrap().is_empty() && is_repository(place));
        assert_eq!(repository.list("00a1/segments").unwrap(), [("00a1/segments/1-2".to_owned(), 7)]);
        repository.put_json("00b2/backups/T3.json", &Backup { format: FORMAT + 1, ..backup(10) }).unwrap();
        assert!(repository.backups().is_err_and(|e| e.contains("unknown format")));
    }
}
