//! Requests to stores, in turns: what fails is asked for nothing more, and no store is waited for longer than its turn, so that
//! the others get theirs.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use melba_types::TreeId;
use melba_vfs::{Clock, OF_OBJECT};

use crate::error::EngineError;

/// How long a store is waited for in a turn: the request that is under way then is the last one.
const TURN: Duration = Duration::from_secs(4);

/// What is asked, and rests after a failure.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ColdSource {
    /// A store, as of `store_of`.
    Store(String),
    /// Removals of a store's objects: it may refuse these and do the rest.
    Removals(String),
    /// One object, by its URL: it may be lost or damaged in a store that works.
    Object(String),
}

impl ColdSource {
    /// For the log: what has failures of its own.
    pub fn kind(&self) -> String {
        match self {
            ColdSource::Store(store) => store.clone(),
            ColdSource::Removals(store) => format!("removals {store}"),
            ColdSource::Object(url) => format!("objects {}", store_of(url)),
        }
    }
}

/// A request, by the URL of its object.
#[derive(Clone, Copy)]
pub enum ColdRequest<'a> {
    Read(&'a str),
    /// Of a new object; its folder's URL.
    Write(&'a str),
    Remove(&'a str),
}

impl ColdRequest<'_> {
    fn store(&self) -> &str {
        let (ColdRequest::Read(url) | ColdRequest::Write(url) | ColdRequest::Remove(url)) = self;
        store_of(url)
    }

    /// None of these may rest.
    fn sources(&self) -> Vec<ColdSource> {
        let store = ColdSource::Store(self.store().to_owned());
        match self {
            ColdRequest::Read(url) => vec![store, ColdSource::Object((*url).to_owned())],
            ColdRequest::Write(_) => vec![store],
            ColdRequest::Remove(_) => vec![store, ColdSource::Removals(self.store().to_owned())],
        }
    }

    /// What is to rest after a failure.
    fn failed(&self, kind: io::ErrorKind) -> ColdSource {
        match self {
            // Damage of the stub, or of the file beside it, is of this object only, too.
            ColdRequest::Read(url) if [OF_OBJECT, io::ErrorKind::InvalidData].contains(&kind) => {
                ColdSource::Object((*url).to_owned())
            }
            ColdRequest::Remove(_) => ColdSource::Removals(self.store().to_owned()),
            // A store that has other bytes than were just written will do so with the next object.
            _ => ColdSource::Store(self.store().to_owned()),
        }
    }
}

/// A failure.
#[derive(Debug)]
pub struct ColdFailure {
    /// What is to rest; none when no store was asked.
    pub source: Option<ColdSource>,
    /// The table that waits for it, if one does.
    pub table: Option<TreeId>,
    pub error: EngineError,
}

impl ColdFailure {
    /// Of what asked no store.
    pub fn local(error: EngineError) -> ColdFailure {
        ColdFailure { source: None, table: None, error }
    }
}

/// See the module.
pub struct Asking<'a> {
    may_ask: &'a dyn Fn(&ColdSource) -> bool,
    clock: &'a dyn Clock,
    /// How long each store was waited for.
    waited: HashMap<String, Duration>,
    pub failures: Vec<ColdFailure>,
    /// The first that `may_ask` said no to.
    pub waits_for: Option<ColdSource>,
}

impl<'a> Asking<'a> {
    /// One turn of each store.
    pub fn new(may_ask: &'a dyn Fn(&ColdSource) -> bool, clock: &'a dyn Clock) -> Asking<'a> {
        Asking { may_ask, clock, waited: HashMap::new(), failures: Vec::new(), waits_for: None }
    }

    /// Makes a request, unless it is to wait; whether it was made and went well.
    pub fn ask(&mut self, request: ColdRequest<'_>, doing: &'static str, ask: impl FnOnce() -> io::Result<()>) -> bool {
        let sources = request.sources();
        if self.failures.iter().any(|failure| failure.source.as_ref().is_some_and(|failed| sources.contains(failed))) {
            return false;
        }
        if let Some(rests) = sources.into_iter().find(|source| !(self.may_ask)(source)) {
            self.waits_for.get_or_insert(rests);
            return false;
        }
        let waited = self.waited.entry(request.store().to_owned()).or_default();
        if *waited >= TURN {
            return false;
        }
        let start = self.clock.monotonic();
        let done = ask();
        *waited += self.clock.monotonic().saturating_sub(start);
        if let Err(e) = done {
            let source = Some(request.failed(e.kind()));
            self.failures.push(ColdFailure { source, table: None, error: EngineError::io(doing, e) });
            return false;
        }
        true
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
    use melba_vfs::ManualClock;

    #[test]
    fn stores_are_buckets_or_folders() {
        assert_eq!((store_of("s3://b/f/1/2-3.seg"), store_of("s3://b"), store_of("gs://b/f")), ("s3://b", "s3://b", "gs://b"));
        assert_eq!((store_of("file:///a/b/1/2-3.seg"), store_of("file:///a/b")), ("file:///a/b", "file:///a/b"));
    }

    #[test]
    fn a_store_that_fails_is_asked_once() {
        let (clock, may_ask) = (ManualClock::new(), |source: &ColdSource| *source != ColdSource::Store("s3://rests".into()));
        let mut asking = Asking::new(&may_ask, &clock);
        let mut asked = Vec::new();
        for url in ["s3://dead/1", "s3://dead/2", "s3://rests/3", "s3://works/4", "s3://works/5"] {
            asking.ask(ColdRequest::Read(url), "ask", || {
                asked.push(url);
                if url.starts_with("s3://dead/") { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
            });
        }
        assert_eq!(asked, ["s3://dead/1", "s3://works/4", "s3://works/5"]);
        let store = |name: &str| Some(ColdSource::Store(name.into()));
        assert_eq!((asking.failures.len(), &asking.failures[0].source), (1, &store("s3://dead")));
        assert_eq!(asking.waits_for, store("s3://rests"));
    }

    #[test]
    fn objects_and_removals_fail_without_their_store() {
        let (clock, may_ask) = (ManualClock::new(), |_: &ColdSource| true);
        let mut asking = Asking::new(&may_ask, &clock);
        assert!(!asking.ask(ColdRequest::Read("s3://b/1"), "ask", || Err(OF_OBJECT.into())));
        assert!(!asking.ask(ColdRequest::Read("s3://b/1"), "ask", || Ok(())), "rests");
        assert!(!asking.ask(ColdRequest::Remove("s3://b/2"), "ask", || Err(io::ErrorKind::PermissionDenied.into())));
        assert!(!asking.ask(ColdRequest::Remove("s3://b/3"), "ask", || Ok(())), "rests");
        assert!(asking.ask(ColdRequest::Remove("s3://other/3"), "ask", || Ok(())));
        assert!(asking.ask(ColdRequest::Read("s3://b/2"), "ask", || Ok(())));
        assert!(asking.ask(ColdRequest::Write("s3://b"), "ask", || Ok(())));
        let sources: Vec<_> = asking.failures.iter().filter_map(|failure| failure.source.clone()).collect();
        assert_eq!(sources, [ColdSource::Object("s3://b/1".into()), ColdSource::Removals("s3://b".into())]);
        // What was just written is not what the store has.
        asking.ask(ColdRequest::Write("s3://b"), "ask", || Err(OF_OBJECT.into()));
        assert!(!asking.ask(ColdRequest::Remove("s3://b/4"), "ask", || Ok(())) && asking.failures.len() == 3);
    }

    #[test]
    fn a_slow_store_has_a_turn_as_others_have() {
        let (clock, may_ask) = (ManualClock::new(), |_: &ColdSource| true);
        let mut asking = Asking::new(&may_ask, &clock);
        let mut ask = |url: &'static str, time| {
            asking.ask(ColdRequest::Read(url), "ask", || {
                clock.advance(time);
                Ok(())
            })
        };
        assert!(ask("s3://slow/1", TURN * 10) && !ask("s3://slow/2", TURN) && ask("s3://fast/1", TURN / 2));
        assert!(ask("s3://fast/2", TURN / 2) && !ask("s3://fast/3", TURN / 2));
        assert!(asking.failures.is_empty() && asking.waits_for.is_none());
    }
}
