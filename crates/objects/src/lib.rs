//! Objects of object stores, by URL: `s3://bucket/key`, `gs://`, `az://`, `abfss://`, and `file:///path`.
//!
//! The options of a store come from the environment of the process, as its tools have them: AWS_REGION, AWS_ACCESS_KEY_ID,
//! AWS_ENDPOINT, AWS_ALLOW_HTTP, GOOGLE_SERVICE_ACCOUNT, AZURE_STORAGE_ACCOUNT_NAME and so on.
//!
//! Invariants:
//! 1. An object is written as a whole or not at all.
//! 2. A wait for a store looks for a cancelled statement meanwhile (`melba_types::limits`).
//! 3. What was written as a file of this machine is durable, with all folders above it.
//! 4. A URL has no query and no fragment: two URLs that differ are two objects.
//!
//! `copy` and the session read and write objects as COPY's files. `backup` makes its store by `open_store`.

use std::collections::HashMap;
use std::future::Future;
use std::ops::Range;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::local::LocalFileSystem;
use object_store::{ObjectStore, PutMode, WriteMultipart};
use tokio::runtime::Runtime;

use melba_types::{DbError, Result, err, limits};
use parking_lot::Mutex;

pub use object_store::path::Path;

/// An object that is larger is sent in parts of this; so much is read at once.
const PART_BYTES: usize = 8 << 20;
/// Parts on their way at a time.
const PARTS_MAX: usize = 2;
/// How often a wait looks for a cancel request.
const LOOK: Duration = Duration::from_millis(50);

/// How long an unfinished object is cleaned up.
const ABORT: Duration = Duration::from_secs(5);

const SCHEMES: [&str; 9] = ["s3", "s3a", "gs", "az", "adl", "abfs", "abfss", "file", "https"];

/// The stores that keep cold data.
const FOLDER_SCHEMES: [&str; 4] = ["s3", "gs", "az", "file"];

/// Whether a file's name is the URL of an object.
pub fn is_url(name: &str) -> bool {
    name.contains("://")
}

/// The store of a URL, and the place in it.
///
/// # Errors
/// In words: the URL is none, or of a store that is not known.
pub fn open_store(url: &str) -> std::result::Result<(Arc<dyn ObjectStore>, Path), String> {
    let parsed = url::Url::parse(url).map_err(|e| e.to_string())?;
    if !SCHEMES.contains(&parsed.scheme()) {
        return Err(format!("no store has URLs of {}://", parsed.scheme()));
    }
    check_plain(&parsed)?;
    let environment = std::env::vars().map(|(name, value)| (name.to_ascii_lowercase(), value));
    let (store, path) = object_store::parse_url_opts(&parsed, environment).map_err(|e| e.to_string())?;
    Ok((store.into(), path))
}

/// A question mark ends the path of a URL, and all that follows would be nobody's.
fn check_plain(url: &url::Url) -> std::result::Result<(), String> {
    match url.query().or(url.fragment()) {
        Some(_) => Err("an object's URL has no query and no fragment (? is written %3F, and # is written %23)".to_owned()),
        None => Ok(()),
    }
}

/// Whether a URL is of a folder that can keep cold data: a name that is appended to it is an object of its own.
///
/// # Errors
/// In words: why it is none.
pub fn check_folder(url: &str) -> std::result::Result<(), String> {
    let url = url.trim_end_matches('/');
    let parsed = url::Url::parse(url).map_err(|e| e.to_string())?;
    let scheme = parsed.scheme();
    if !FOLDER_SCHEMES.contains(&scheme) || !url.starts_with(&format!("{scheme}://")) {
        return Err("only URLs of s3://, gs://, az:// and file:// are of such stores".to_owned());
    }
    check_plain(&parsed)?;
    if !parsed.username().is_empty() || parsed.password().is_some() || parsed.port().is_some() {
        return Err("it must have no user, no password and no port".to_owned());
    }
    if url.contains(|c: char| c.is_control() || c == '\\') {
        return Err("it has a control character or a backslash".to_owned());
    }
    store_and_path(&parsed).map(drop)
}

/// What precedes an object's path in its URL, and the path.
fn store_and_path(url: &url::Url) -> std::result::Result<(String, Path), String> {
    check_plain(url)?;
    let (_, path) = object_store::ObjectStoreScheme::parse(url).map_err(|e| e.to_string())?;
    let whole = Path::from_url_path(url.path()).map_err(|e| e.to_string())?;
    let before = whole.as_ref().strip_suffix(path.as_ref()).unwrap_or_default();
    Ok((format!("{}://{}/{before}", url.scheme(), url.authority()), path))
}

/// Makes a file durable, and the folders above it.
#[expect(
    clippy::disallowed_methods,
    reason = "objects that are files of this machine are written by object_store, which syncs nothing"
)]
fn sync_file(file: &std::path::Path) -> std::io::Result<()> {
    std::fs::File::open(file)?.sync_all()?;
    for folder in file.ancestors().skip(1) {
        match std::fs::File::open(folder).and_then(|folder| folder.sync_all()) {
            // A folder that this user may not read is none that was made for the file. Some file systems sync no folders.
            Err(e) if matches!(e.kind(), std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::InvalidInput) => {}
            synced => synced?,
        }
    }
    Ok(())
}

fn is_local(url: &str) -> bool {
    url::Url::parse(url).is_ok_and(|url| url.scheme() == "file")
}

/// The file of a local object.
fn file_of(path: &Path) -> Option<PathBuf> {
    LocalFileSystem::new().path_to_filesystem(path).ok()
}

/// Whether a URL is of a place in a directory of this machine, by symbolic links too.
pub fn is_within(url: &str, directory: &std::path::Path) -> bool {
    let file = if is_local(url) { open_store(url).ok().and_then(|(_, path)| file_of(&path)) } else { None };
    let (Some(file), Ok(directory)) = (file, directory.canonicalize()) else { return false };
    // The place need not be there yet.
    let there = file.ancestors().find_map(|place| place.canonicalize().ok());
    there.is_some_and(|there| there.starts_with(directory))
}

/// A store, and how its answers are waited for.
struct Connected {
    store: Arc<dyn ObjectStore>,
    path: Path,
    runtime: Arc<Runtime>,
    url: String,
    /// Its objects are files of this machine.
    is_local: bool,
    /// How long a wait takes at most.
    patience: Option<Duration>,
}

impl Connected {
    fn open(url: &str) -> Result<Connected> {
        let invalid = |e: &dyn std::fmt::Display| err!(INVALID_PARAMETER_VALUE, "could not open \"{url}\": {e}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| invalid(&e))?;
        let (store, path) = open_store(url).map_err(|e| invalid(&e))?;
        Ok(Connected { store, path, runtime: Arc::new(runtime), url: url.to_owned(), is_local: is_local(url), patience: None })
    }

    /// A place in the same store.
    fn with_path(&self, path: Path, url: String) -> Connected {
        let Connected { store, runtime, is_local, patience, .. } = self;
        let (store, runtime) = (Arc::clone(store), Arc::clone(runtime));
        Connected { store, path, runtime, url, is_local: *is_local, patience: *patience }
    }

    /// Makes an object that was written durable, if it is a file of this machine.
    fn sync(&self) -> Result<()> {
        let Some(file) = file_of(&self.path).filter(|_| self.is_local) else { return Ok(()) };
        sync_file(&file).map_err(|e| err!(IO_ERROR, "could not sync \"{}\"", self.url).detail(format!("{e}.")))
    }

    /// What is no regular file, a pipe for example, could keep a reader waiting for ever.
    fn check_readable(&self) -> Result<()> {
        let found = if self.is_local { file_of(&self.path).and_then(|file| file.metadata().ok()) } else { None };
        match found.is_none_or(|found| found.is_file() || found.is_dir()) {
            true => Ok(()),
            false => Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is not a regular file", self.url)),
        }
    }

    fn wait<T>(&self, doing: &str, future: impl Future<Output = object_store::Result<T>>) -> Result<T> {
        let waited = self.runtime.block_on(async {
            let mut future = pin!(future);
            let mut waited = Duration::ZERO;
            loop {
                match tokio::time::timeout(LOOK, &mut future).await {
                    Ok(done) => return Ok(done),
                    Err(_) => limits::check_interrupt()?,
                }
                waited += LOOK;
                if let Some(patience) = self.patience.filter(|patience| waited >= *patience) {
                    return Err(err!(IO_ERROR, "could not open \"{}\": the store does not answer", self.url)
                        .detail(format!("It was waited for {} s.", patience.as_secs())));
                }
            }
        });
        waited?.map_err(|e| self.failed(doing, &e))
    }

    fn failed(&self, doing: &str, error: &object_store::Error) -> DbError {
        let url = &self.url;
        match error {
            object_store::Error::NotFound { .. } => {
                err!(UNDEFINED_FILE, "could not open \"{url}\" for {doing}: there is no such object")
            }
            object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
                err!(INSUFFICIENT_PRIVILEGE, "could not open \"{url}\" for {doing}: the store refuses it")
                    .detail(format!("{error}."))
            }
            object_store::Error::AlreadyExists { .. } => {
                err!(IO_ERROR, "could not open \"{url}\" for {doing}: there is such an object already")
            }
            _ => err!(IO_ERROR, "could not open \"{url}\" for {doing}").detail(format!("{error}.")),
        }
    }
}

/// An object to be read.
pub struct ObjectReader {
    connected: Connected,
    bytes: u64,
}

impl ObjectReader {
    /// # Errors
    /// 58P01 when there is none, 42501 when the store refuses it, 22023 for a URL of no store, 58030 otherwise; 57014 when the statement
    /// is cancelled meanwhile.
    pub fn open(url: &str) -> Result<ObjectReader> {
        ObjectReader::new(Connected::open(url)?)
    }

    fn new(connected: Connected) -> Result<ObjectReader> {
        connected.check_readable()?;
        let head = connected.wait("reading", connected.store.head(&connected.path))?;
        Ok(ObjectReader { bytes: head.size, connected })
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The bytes of a range, which must be within the object.
    pub fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.connected.wait("reading", self.connected.store.get_range(&self.connected.path, range))
    }

    /// Passes all bytes on, in order.
    pub fn read_all(&self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut at = 0;
        while at < self.bytes {
            let end = self.bytes.min(at + PART_BYTES as u64);
            let piece = self.read(at..end)?;
            if piece.is_empty() {
                return Err(err!(IO_ERROR, "could not read \"{}\": it has become shorter", self.connected.url));
            }
            at += piece.len() as u64;
            each(&piece)?;
        }
        Ok(())
    }
}

/// An object being written.
pub struct ObjectWriter {
    connected: Connected,
    /// `None` once it is finished or given up.
    upload: Option<WriteMultipart>,
}

impl ObjectWriter {
    /// # Errors
    /// As for reading.
    pub fn create(url: &str) -> Result<ObjectWriter> {
        ObjectWriter::new(Connected::open(url)?)
    }

    fn new(connected: Connected) -> Result<ObjectWriter> {
        let upload = connected.wait("writing", connected.store.put_multipart(&connected.path))?;
        Ok(ObjectWriter { upload: Some(WriteMultipart::new_with_chunk_size(upload, PART_BYTES)), connected })
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(upload) = &mut self.upload else { return Err(DbError::internal("a finished object is written to")) };
        let connected = &self.connected;
        // Parts are sent by tasks of the runtime, which only runs meanwhile.
        connected.wait("writing", async {
            upload.wait_for_capacity(PARTS_MAX).await?;
            upload.write(bytes);
            Ok(())
        })
    }

    /// Everything was written: the object is there.
    pub fn finish(mut self) -> Result<()> {
        let Some(upload) = self.upload.take() else { return Ok(()) };
        self.connected.wait("writing", upload.finish())?;
        self.connected.sync()
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        if let Some(upload) = self.upload.take() {
            // Of a statement that fails: the parts are of no use. A store that does not answer keeps them.
            let _ = self.connected.runtime.block_on(async { tokio::time::timeout(ABORT, upload.abort()).await });
        }
    }
}

/// Objects by their whole URLs. Connections to stores are kept; no wait of a call takes longer than the patience that it is given.
#[derive(Default)]
pub struct Stores {
    /// By what precedes the path of a URL.
    connected: Mutex<HashMap<String, Arc<Connected>>>,
}

impl Stores {
    /// A place in a store.
    fn at(&self, url: &str, patience: Duration) -> Result<Connected> {
        let invalid = |e: &dyn std::fmt::Display| err!(INVALID_PARAMETER_VALUE, "could not open \"{url}\": {e}");
        let parsed = url::Url::parse(url).map_err(|e| invalid(&e))?;
        let (store, path) = store_and_path(&parsed).map_err(|e| invalid(&e))?;
        let known = self.connected.lock().get(&store).cloned();
        let known = match known {
            Some(known) => known,
            None => {
                let opened = Arc::new(Connected::open(url)?);
                Arc::clone(self.connected.lock().entry(store).or_insert(opened))
            }
        };
        Ok(Connected { patience: Some(patience), ..known.with_path(path, url.to_owned()) })
    }

    /// The bytes of a range of an object.
    ///
    /// # Errors
    /// As of `ObjectReader::open`; 58030 when there is no answer within `patience`.
    pub fn read(&self, url: &str, range: Range<u64>, patience: Duration) -> Result<Bytes> {
        let at = self.at(url, patience)?;
        at.check_readable()?;
        at.wait("reading", at.store.get_range(&at.path, range))
    }

    /// Writes an object that does not exist, of the pieces that `read` gives until there is none. An object of several pieces is
    /// sent in parts, and no store says whether there was one: its name must be a new one. A file is durable then.
    ///
    /// # Errors
    /// As of `ObjectWriter::create`; those of `read`; 58030 when there is such an object, or a piece does not go out within `patience`.
    pub fn write(&self, url: &str, patience: Duration, read: &mut dyn FnMut() -> Result<Option<Vec<u8>>>) -> Result<()> {
        let at = self.at(url, patience)?;
        let first = read()?.unwrap_or_default();
        let Some(second) = read()? else { return put_new(&at, first.into()) };
        if at.is_local && file_of(&at.path).is_some_and(|file| file.symlink_metadata().is_ok()) {
            return Err(err!(IO_ERROR, "could not open \"{url}\" for writing: there is such an object already"));
        }
        let mut writer = ObjectWriter::new(at)?;
        writer.write(&first)?;
        writer.write(&second)?;
        while let Some(piece) = read()? {
            writer.write(&piece)?;
        }
        writer.finish()
    }

    /// Removes an object, if there is one.
    ///
    /// # Errors
    /// As of `ObjectWriter::create`; 58030 when there is no answer within `patience`.
    pub fn remove(&self, url: &str, patience: Duration) -> Result<()> {
        let at = self.at(url, patience)?;
        let removed = async {
            match at.store.delete(&at.path).await {
                Err(object_store::Error::NotFound { .. }) | Ok(()) => Ok(()),
                Err(e) => Err(e),
            }
        };
        at.wait("writing", removed)
    }
}

/// Writes a whole object where there is none.
fn put_new(at: &Connected, content: Bytes) -> Result<()> {
    let written = async {
        match at.store.put_opts(&at.path, content.clone().into(), PutMode::Create.into()).await {
            // A store that knows no conditions.
            Err(object_store::Error::NotImplemented) => at.store.put(&at.path, content.into()).await,
            written => written,
        }
    };
    at.wait("writing", written)?;
    at.sync()
}

/// The objects below a URL, by their names there.
pub struct Folder {
    connected: Connected,
}

impl Folder {
    /// # Errors
    /// 22023 for a URL of no store.
    pub fn open(url: &str) -> Result<Folder> {
        Ok(Folder { connected: Connected::open(url.trim_end_matches('/'))? })
    }

    /// The URL of an object.
    pub fn url(&self, name: &str) -> String {
        format!("{}/{name}", self.connected.url)
    }

    fn at(&self, name: &str) -> Connected {
        let path =
            name.split('/').filter(|part| !part.is_empty()).fold(self.connected.path.clone(), |path, part| path.child(part));
        self.connected.with_path(path, self.url(name))
    }

    /// The content of an object; `None`: there is none.
    ///
    /// # Errors
    /// As of `ObjectReader::open`.
    pub fn read(&self, name: &str) -> Result<Option<Bytes>> {
        let at = self.at(name);
        at.check_readable()?;
        at.wait("reading", async {
            match at.store.get(&at.path).await {
                Ok(found) => found.bytes().await.map(Some),
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                Err(e) => Err(e),
            }
        })
    }

    /// Writes an object, or replaces it.
    ///
    /// # Errors
    /// As of `ObjectWriter::create`.
    pub fn write(&self, name: &str, content: Vec<u8>) -> Result<()> {
        let at = self.at(name);
        at.wait("writing", at.store.put(&at.path, content.into()))?;
        at.sync()
    }

    /// Writes an object that does not exist; false if it does.
    ///
    /// # Errors
    /// As of `ObjectWriter::create`.
    pub fn create(&self, name: &str, content: Vec<u8>) -> Result<bool> {
        let at = self.at(name);
        let created = at.wait("writing", async {
            match at.store.put_opts(&at.path, content.into(), PutMode::Create.into()).await {
                Ok(_) => Ok(true),
                Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
                Err(e) => Err(e),
            }
        })?;
        if created {
            at.sync()?;
        }
        Ok(created)
    }

    /// # Errors
    /// As of `ObjectWriter::create`.
    pub fn writer(&self, name: &str) -> Result<ObjectWriter> {
        ObjectWriter::new(self.at(name))
    }

    /// # Errors
    /// As of `ObjectReader::open`.
    pub fn reader(&self, name: &str) -> Result<ObjectReader> {
        ObjectReader::new(self.at(name))
    }

    /// The names of the objects below one, in order.
    ///
    /// # Errors
    /// As of `ObjectReader::open`.
    pub fn names(&self, below: &str) -> Result<Vec<String>> {
        let at = self.at(below);
        let listed = at.wait("reading", at.store.list(Some(&at.path)).try_collect::<Vec<_>>())?;
        let root = self.connected.path.parts().count();
        let name = |path: &Path| {
            let parts = path.parts().skip(root).map(|part| Path::from_iter([part]).to_string());
            parts.collect::<Vec<_>>().join("/")
        };
        let mut names: Vec<String> = listed.iter().map(|object| name(&object.location)).collect();
        names.sort();
        Ok(names)
    }

    /// Removes an object, if there is one.
    ///
    /// # Errors
    /// As of `ObjectWriter::create`.
    pub fn remove(&self, name: &str) -> Result<()> {
        let at = self.at(name);
        at.wait("writing", async {
            match at.store.delete(&at.path).await {
                Err(object_store::Error::NotFound { .. }) | Ok(()) => Ok(()),
                Err(e) => Err(e),
            }
        })
    }
}

/// The URLs of the objects below a URL that ends in a folder, in order.
pub fn list(folder: &str) -> Result<Vec<String>> {
    let connected = Connected::open(folder)?;
    let listed = connected.wait("reading", connected.store.list(Some(&connected.path)).try_collect::<Vec<_>>())?;
    let (whole, path) = (folder.strip_suffix('/').unwrap_or(folder), connected.path.as_ref());
    let root = whole.strip_suffix(path).unwrap_or(whole);
    // A bucket without a folder has lost its slash.
    let slash = if path.is_empty() { "/" } else { "" };
    let mut urls: Vec<String> = listed.iter().map(|object| format!("{root}{slash}{}", object.location)).collect();
    urls.sort();
    Ok(urls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_a_folder_are_created_once_replaced_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let folder = Folder::open(&format!("file://{}/lake/", directory.path().display())).unwrap();
        assert!(folder.read("a/b c").unwrap().is_none() && folder.names("").unwrap().is_empty());
        assert!(folder.create("a/b c", b"1".to_vec()).unwrap() && !folder.create("a/b c", b"2".to_vec()).unwrap());
        assert_eq!(folder.read("a/b c").unwrap().as_deref(), Some(&b"1"[..]));
        folder.write("a/b c", b"3".to_vec()).unwrap();
        let mut writer = folder.writer("a/d").unwrap();
        writer.write(b"45").unwrap();
        writer.finish().unwrap();
        assert_eq!(
            (folder.names("a").unwrap(), folder.reader("a/d").unwrap().bytes()),
            (vec!["a/b c".to_owned(), "a/d".to_owned()], 2)
        );
        assert!(folder.url("a/d").starts_with("file:///") && folder.url("a/d").ends_with("/lake/a/d"));
        folder.remove("a/b c").unwrap();
        folder.remove("a/b c").unwrap();
        assert_eq!(folder.names("").unwrap(), ["a/d"]);
    }

    #[test]
    fn pipes_are_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let (pipe, link) = (directory.path().join("pipe"), directory.path().join("link"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::os::unix::fs::symlink(&pipe, link).unwrap();
        let folder = Folder::open(&format!("file://{}", directory.path().display())).unwrap();
        for name in ["pipe", "link"] {
            assert_eq!(folder.read(name).unwrap_err().sqlstate(), melba_types::SqlState::WRONG_OBJECT_TYPE);
            assert!(folder.reader(name).is_err());
        }
    }

    #[test]
    fn places_are_within_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        let data = tempfile::Builder::new().prefix("data").rand_bytes(0).tempdir_in(directory.path()).unwrap();
        let inner = data.path();
        std::os::unix::fs::symlink(inner, directory.path().join("link")).unwrap();
        let within = |name: &str| is_within(&format!("file://{}/{name}", directory.path().display()), inner);
        assert!(within("data") && within("data/new/lake") && within("link/lake") && within("x/../data"));
        assert!(!within("other") && !within("database") && !is_within("s3://data/x", inner));
    }

    #[test]
    fn folders_of_cold_data_have_nothing_but_a_place() {
        for url in ["s3://b", "s3://b/", "s3://b/f/g", "gs://b/f", "az://c/f", "file:///f/g", "s3://b/a%3Fb"] {
            assert_eq!(check_folder(url), Ok(()), "{url}");
        }
        let others = [
            "https://s3.eu-1.amazonaws.com/b",
            "http://h/x",
            "memory:///x",
            "bla://b/f",
            "file:/f",
            "/f",
            "s3:b/f",
            "abfss://c@a/f",
        ];
        let unclear = ["s3://b/f?x=1", "s3://b/f#x", "s3://b/f?", "s3://b/f#", "s3://b/?", "file:///f?x", "file:///f#x"];
        let more = [
            "s3://u:p@b/f",
            "s3://u@b/f",
            "s3://:p@b/f",
            "s3://b:80/f",
            "s3:///f",
            "s3://",
            "file:///",
            "file://host/f",
            "s3://b//f",
            "s3://b/f\n",
        ];
        for url in others.iter().chain(&unclear).chain(&more) {
            assert!(check_folder(url).is_err(), "{url}");
        }
    }

    #[test]
    fn stores_are_known_by_all_that_precedes_a_path() {
        let known = |url: &str| store_and_path(&url::Url::parse(url).unwrap()).unwrap();
        let (one, path) = known("https://s3.eu-1.amazonaws.com/one/a/b");
        assert_eq!((one.as_str(), path.as_ref()), ("https://s3.eu-1.amazonaws.com/one/", "a/b"));
        assert_ne!(one, known("https://s3.eu-1.amazonaws.com/two/a/b").0);
        assert_eq!(one, known("https://s3.eu-1.amazonaws.com/one/c").0);
        assert_eq!(known("s3://b/a/a").0, "s3://b/");
        assert_eq!(known("s3://b/a%20/a").0, "s3://b/");
        assert_ne!(known("az://c/one/a").0, known("az://c/two/a").0);
        assert_eq!(known("file:///a/b"), ("file:///".to_owned(), Path::from("a/b")));
    }

    #[test]
    fn objects_of_stores_are_never_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let (stores, patience) = (Stores::default(), Duration::from_secs(20));
        for pieces in [1, 3] {
            let url = format!("file://{}/new/{pieces}/object", directory.path().display());
            let write = |byte: u8| {
                let mut left = pieces;
                stores.write(&url, patience, &mut || {
                    left -= 1;
                    Ok((left >= 0).then(|| vec![byte; PART_BYTES]))
                })
            };
            write(1).unwrap();
            assert_eq!(write(2).unwrap_err().sqlstate(), melba_types::SqlState::IO_ERROR);
            assert_eq!(stores.read(&url, 7..9, patience).unwrap()[..], [1, 1]);
            stores.remove(&url, patience).unwrap();
            stores.remove(&url, patience).unwrap();
        }
    }

    #[test]
    fn waits_end() {
        let directory = tempfile::tempdir().unwrap();
        let at = Connected::open(&format!("file://{}", directory.path().display())).unwrap();
        let at = Connected { patience: Some(2 * LOOK), ..at };
        let error = at.wait("writing", std::future::pending::<object_store::Result<()>>()).unwrap_err();
        assert_eq!(error.sqlstate(), melba_types::SqlState::IO_ERROR);
    }

    #[test]
    fn files_and_their_folders_are_synced() {
        let file = tempfile::NamedTempFile::new().unwrap();
        sync_file(file.path()).unwrap();
        assert!(sync_file(&file.path().join("none")).is_err());
    }

    #[test]
    fn only_urls_of_stores_are_opened() {
        let unclear = ["file:///x?y", "file:///x#y", "s3://b/x?"];
        for url in ["memory:///x", "http://169.254.169.254/latest", "ftp://host/x", "://x"].iter().chain(&unclear) {
            assert!(open_store(url).is_err(), "{url}");
        }
    }

    #[test]
    fn objects_are_there_when_they_are_finished() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("file://{}/a/b", folder.path().display());
        assert_eq!(ObjectReader::open(&url).err().map(|e| e.sqlstate()), Some(melba_types::SqlState::UNDEFINED_FILE));
        let mut given_up = ObjectWriter::create(&url).unwrap();
        given_up.write(b"no").unwrap();
        drop(given_up);
        assert!(ObjectReader::open(&url).is_err());
        let content: Vec<u8> = (0..3 * PART_BYTES as u32 / 4 + 5).flat_map(u32::to_le_bytes).collect();
        let mut writer = ObjectWriter::create(&url).unwrap();
        content.chunks(1 << 20).for_each(|piece| writer.write(piece).unwrap());
        writer.finish().unwrap();
        let reader = ObjectReader::open(&url).unwrap();
        let mut read = Vec::new();
        let mut each = |piece: &[u8]| {
            read.extend_from_slice(piece);
            Ok(())
        };
        reader.read_all(&mut each).unwrap();
        assert!(read == content && reader.read(4..8).unwrap() == 1u32.to_le_bytes()[..]);
        let below = |path: &str| list(&format!("file://{}/{path}", folder.path().display())).unwrap();
        assert_eq!((below("a/"), below("")), (vec![url.clone()], vec![url.clone()]));
        assert!(ObjectReader::open("s4://x/y").is_err_and(|e| e.sqlstate() == melba_types::SqlState::INVALID_PARAMETER_VALUE));
    }
}
