//! The sessions of logged-in browsers, and the connections to the database that they hold.
//!
//! 1. A session's id and token come from the system's randomness; the id is in a cookie that scripts cannot read, the token only in
//!    the page. Both are needed, because a browser sends cookies to every port of a host.
//! 2. Sessions are bounded in number, idle time and age; with a session its connections end, and the statements that they run.
//! 3. A password is kept in memory as long as its session, for the connections that are opened later.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use melba_client::target::Target;
use melba_client::{CancelKey, Failure};
use parking_lot::{Mutex, MutexGuard};

use crate::query::Open;

const SESSIONS_MAX: usize = 32;
/// Without a request, except those that a page sends on its own.
const IDLE_MAX: Duration = Duration::from_secs(30 * 60);
const AGE_MAX: Duration = Duration::from_secs(12 * 3600);
/// How long rows that were not fetched hold their transaction open.
const HELD_MAX: Duration = Duration::from_secs(120);
/// How long a request waits for the one before it on the same connection.
const TURN_PATIENCE: Duration = Duration::from_secs(10);
/// Downloads that were asked for and not begun.
const EXPORTS_MAX: usize = 8;

/// What a connection is for, so that a long statement in the editor does not keep the rest of the page waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Use {
    /// Statements of the user, with their transaction, settings and temporary tables.
    Editor,
    /// The views of the page.
    Page,
    /// What the page asks by itself, every few seconds.
    Monitor,
}

const USES: usize = 3;

/// A download, as it was asked for.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct Export {
    pub connection: Use,
    pub sql: String,
    #[serde(default)]
    pub parameters: Vec<Option<String>>,
    pub format: Download,
    /// Without its ending.
    #[serde(default)]
    pub name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Download {
    Csv,
    Json,
}

pub struct Session {
    pub token: String,
    target: Target,
    /// The server may trust the account of this process, instead of asking for a password.
    may_lend_account: bool,
    connections: [Mutex<Option<Open>>; USES],
    cancel_keys: Mutex<[Option<CancelKey>; USES]>,
    exports: Mutex<HashMap<String, Export>>,
    began: Instant,
    used: Mutex<Instant>,
}

/// Why a connection cannot be used.
pub enum Unavailable {
    /// The statement before has not ended.
    Busy,
    Failed(Failure),
}

impl Session {
    /// Connects, which checks role and password.
    ///
    /// # Errors
    /// The server refuses, or would admit anybody who reaches the console.
    pub fn open(target: Target, may_lend_account: bool, now: Instant) -> Result<Session, Failure> {
        let session = Session {
            token: random_text().map_err(Failure::Other)?,
            target,
            may_lend_account,
            connections: Default::default(),
            cancel_keys: Mutex::default(),
            exports: Mutex::default(),
            began: now,
            used: Mutex::new(now),
        };
        let first = session.connect(Use::Editor)?;
        *session.connections[Use::Editor as usize].lock() = Some(first);
        Ok(session)
    }

    fn connect(&self, for_use: Use) -> Result<Open, Failure> {
        let mut target = self.target.clone();
        let password = target.password.take();
        let mut is_asked = false;
        let mut connection = melba_client::open(&target, &mut |_| {
            is_asked = true;
            // An empty one is sent, so that the server says what is wrong with it.
            Some(password.clone().unwrap_or_default())
        })?;
        if !is_asked && !self.may_lend_account {
            let reason =
                "the server admits the console's account without a password, so only a browser of that account may log in";
            return Err(Failure::Other(reason.to_owned()));
        }
        connection.execute("SET client_min_messages = notice").map_err(Failure::Other)?;
        self.cancel_keys.lock()[for_use as usize] = Some(connection.cancel_key.clone());
        Ok(Open { connection, held: None })
    }

    /// Runs something on a connection, which is opened when there is none, or when it is lost.
    pub fn with<T>(&self, for_use: Use, run: impl FnOnce(&mut Open) -> T) -> Result<T, Unavailable> {
        let mut place = self.connections[for_use as usize].try_lock_for(TURN_PATIENCE).ok_or(Unavailable::Busy)?;
        if place.as_ref().is_none_or(|open| open.connection.is_lost) {
            *place = None;
            *place = Some(self.connect(for_use).map_err(Unavailable::Failed)?);
        }
        let open: &mut MutexGuard<'_, Option<Open>> = &mut place;
        Ok(run(open.as_mut().expect("it was opened above")))
    }

    /// Cancels what runs on a connection.
    pub fn cancel(&self, for_use: Use) -> Result<(), String> {
        let key = self.cancel_keys.lock()[for_use as usize].clone();
        key.map_or(Ok(()), |key| key.cancel())
    }

    fn cancel_all(&self) {
        for key in self.cancel_keys.lock().iter().flatten() {
            // The server may be gone.
            let _ = key.cancel();
        }
    }

    /// Notes a download that the browser begins next.
    pub fn note_export(&self, export: Export) -> Result<String, String> {
        let mut exports = self.exports.lock();
        if exports.len() >= EXPORTS_MAX {
            exports.clear();
        }
        let ticket = random_text()?;
        exports.insert(ticket.clone(), export);
        Ok(ticket)
    }

    pub fn take_export(&self, ticket: &str) -> Option<Export> {
        self.exports.lock().remove(ticket)
    }

    pub fn use_at(&self, now: Instant) {
        *self.used.lock() = now;
    }

    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(*self.used.lock()) > IDLE_MAX || now.duration_since(self.began) > AGE_MAX
    }

    /// Ends transactions that only rows nobody fetched hold open.
    fn let_go(&self, now: Instant) {
        for place in &self.connections {
            let Some(mut place) = place.try_lock() else { continue };
            if let Some(open) = place.as_mut()
                && open.held.as_ref().is_some_and(|held| now.duration_since(held.used) > HELD_MAX)
            {
                open.end_held();
            }
        }
    }
}

/// All sessions, by their ids.
#[derive(Default)]
pub struct Sessions(Mutex<HashMap<String, Arc<Session>>>);

impl Sessions {
    /// The new session's id.
    ///
    /// # Errors
    /// There are too many.
    pub fn add(&self, session: Session) -> Result<String, String> {
        let id = random_text()?;
        let mut sessions = self.0.lock();
        if sessions.len() >= SESSIONS_MAX {
            return Err("too many browsers are logged in".to_owned());
        }
        sessions.insert(id.clone(), Arc::new(session));
        Ok(id)
    }

    pub fn find(&self, id: &str, now: Instant) -> Option<Arc<Session>> {
        self.0.lock().get(id).filter(|session| !session.is_over(now)).cloned()
    }

    pub fn remove(&self, id: &str) {
        let removed = self.0.lock().remove(id);
        removed.inspect(|session| session.cancel_all());
    }

    /// Ends what has been idle for too long.
    pub fn sweep(&self, now: Instant) {
        let (over, alive): (Vec<_>, Vec<_>) = {
            let mut sessions = self.0.lock();
            let over: Vec<String> = sessions.iter().filter(|(_, s)| s.is_over(now)).map(|(id, _)| id.clone()).collect();
            (over.iter().filter_map(|id| sessions.remove(id)).collect(), sessions.values().cloned().collect())
        };
        over.iter().for_each(|session: &Arc<Session>| session.cancel_all());
        alive.iter().for_each(|session: &Arc<Session>| session.let_go(now));
    }
}

/// 256 random bits, in hexadecimal digits.
fn random_text() -> Result<String, String> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(|e| format!("the system has no random numbers: {e}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(now: Instant) -> Session {
        Session {
            token: "t".to_owned(),
            target: Target::parse("").expect("a target"),
            may_lend_account: false,
            connections: Default::default(),
            cancel_keys: Mutex::default(),
            exports: Mutex::default(),
            began: now,
            used: Mutex::new(now),
        }
    }

    #[test]
    fn sessions_end_when_they_are_idle_and_when_they_are_old() {
        let sessions = Sessions::default();
        let now = Instant::now();
        let id = sessions.add(session(now)).expect("there is room");
        let later = now + IDLE_MAX - Duration::from_secs(1);
        sessions.find(&id, later).expect("it is in use").use_at(later);
        assert!(sessions.find(&id, now + IDLE_MAX + Duration::from_secs(2)).is_some(), "it was used since");
        assert!(sessions.find(&id, later + IDLE_MAX + Duration::from_secs(1)).is_none());
        sessions.find(&id, later).expect("still known").use_at(now + AGE_MAX);
        assert!(sessions.find(&id, now + AGE_MAX + Duration::from_secs(1)).is_none());
        sessions.sweep(now + AGE_MAX + Duration::from_secs(1));
        assert!(sessions.0.lock().is_empty());
    }

    #[test]
    fn sessions_are_bounded_and_their_ids_differ() {
        let sessions = Sessions::default();
        let ids: Vec<String> = (0..SESSIONS_MAX).map(|_| sessions.add(session(Instant::now())).expect("room")).collect();
        assert!(sessions.add(session(Instant::now())).is_err());
        assert!(ids.iter().all(|id| id.len() == 64) && ids[0] != ids[1]);
        sessions.remove(&ids[0]);
        assert!(sessions.add(session(Instant::now())).is_ok());
    }

    #[test]
    fn a_download_begins_once() {
        let session = session(Instant::now());
        let export = Export {
            connection: Use::Editor,
            sql: "SELECT 1".to_owned(),
            parameters: Vec::new(),
            format: Download::Csv,
            name: String::new(),
        };
        let ticket = session.note_export(export).expect("random numbers");
        assert!(session.take_export(&ticket).is_some() && session.take_export(&ticket).is_none());
    }
}
