//! What a step of moves asks of stores: one that fails is asked for nothing more.

use std::io;

use melba_vfs::OF_OBJECT;

use crate::error::EngineError;

/// Objects that are asked for at most: then what merges wait for comes first again.
const ASKED_MAX: usize = 500;

/// What failed: a store, if it is one's work.
#[derive(Debug)]
pub struct ColdFailure {
    /// As of `store_of`.
    pub store: Option<String>,
    pub error: EngineError,
}

impl ColdFailure {
    pub(super) fn local(doing: &'static str, error: io::Error) -> ColdFailure {
        ColdFailure { store: None, error: EngineError::io(doing, error) }
    }

    /// Of what asked a store, or none. What is wrong with one object is no failure of its store.
    pub fn of(store: Option<String>, error: EngineError) -> ColdFailure {
        let is_of_object = matches!(&error, EngineError::Io { source, .. } if source.kind() == OF_OBJECT);
        ColdFailure { store: store.filter(|_| !is_of_object), error }
    }
}

/// See the module.
pub struct Asking<'a> {
    /// Whether a store may be asked at all.
    may_ask: &'a dyn Fn(&str) -> bool,
    asked: usize,
    pub failures: Vec<ColdFailure>,
}

impl<'a> Asking<'a> {
    pub fn new(may_ask: &'a dyn Fn(&str) -> bool) -> Asking<'a> {
        Asking { may_ask, asked: 0, failures: Vec::new() }
    }

    /// Does what asks the store of an object, unless that failed.
    pub(super) fn ask(&mut self, url: &str, doing: &'static str, ask: impl FnOnce() -> io::Result<()>) {
        let store = store_of(url);
        let has_failed = self.failures.iter().any(|failure| failure.store.as_deref() == Some(store));
        if has_failed || self.asked >= ASKED_MAX || !(self.may_ask)(store) {
            return;
        }
        self.asked += 1;
        if let Err(e) = ask() {
            self.failures.push(ColdFailure::of(Some(store.to_owned()), EngineError::io(doing, e)));
        }
    }
}

/// What fails as a whole: the bucket of an object; of one that is a file, the folder of its table, because folders may be on disks of
/// their own. `url` is an object's or a folder's.
pub fn store_of(url: &str) -> &str {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    match (scheme, rest.find('/')) {
        // Below it are the database's number and the segment's name.
        ("file", _) => url.strip_suffix(".seg").and_then(|url| url.rsplitn(3, '/').nth(2)).unwrap_or(url),
        (_, Some(slash)) => &url[..url.len() - rest.len() + slash],
        (_, None) => url,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_fails_is_asked_once() {
        assert_eq!((store_of("s3://b/f/1/2-3.seg"), store_of("s3://b"), store_of("gs://b/f")), ("s3://b", "s3://b", "gs://b"));
        assert_eq!((store_of("file:///a/b/1/2-3.seg"), store_of("file:///a/b")), ("file:///a/b", "file:///a/b"));
        let may_ask = |store: &str| store != "s3://rests";
        let mut asking = Asking::new(&may_ask);
        let mut asked = Vec::new();
        for url in ["s3://dead/1", "s3://dead/2", "s3://rests/3", "s3://works/4", "s3://works/5"] {
            asking.ask(url, "ask", || {
                asked.push(url);
                if url.starts_with("s3://dead/") { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
            });
        }
        assert_eq!(asked, ["s3://dead/1", "s3://works/4", "s3://works/5"]);
        assert_eq!((asking.failures.len(), asking.failures[0].store.as_deref()), (1, Some("s3://dead")));
        asking.ask("s3://works/6", "ask", || Err(OF_OBJECT.into()));
        let mut is_asked = false;
        asking.ask("s3://works/7", "ask", || {
            is_asked = true;
            Ok(())
        });
        assert!(is_asked && asking.failures[1].store.is_none(), "one object");
    }
}
