//! SQL queries from within the server, by a session that no view shows and no counter counts.

use std::sync::Arc;

use melba_catalog::{Catalog, classes};
use melba_protocol::{Frontend, Output};
use melba_settings::value::Value;
use melba_sql::session::Session;
use melba_statement::client::Client;
use melba_statement::context::{Instance, Login, SessionState};
use melba_types::{DbError, Result, err};

/// How long it waits for locks, in milliseconds. Its questions are asked again.
const LOCK_PATIENCE: i64 = 5000;

/// A row of an answer as text.
pub type Row = Vec<Option<String>>;

/// The session's output.
#[derive(Default)]
struct Answers(Output);

impl Client for Answers {
    fn output(&mut self) -> &mut Output {
        &mut self.0
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn flush_around(&mut self, _values: &[(usize, &[u8])]) -> Result<()> {
        Err(DbError::unsupported("a value so long among metrics"))
    }

    fn copy_read(&mut self) -> Result<Option<&[u8]>> {
        Ok(None)
    }
}

/// A session of the first superuser in a database.
pub struct Questions {
    session: Session,
    answers: Answers,
}

impl Questions {
    pub fn new(instance: &Arc<Instance>, catalog: &Catalog, database: &str) -> Result<Questions> {
        let login = Login {
            user: "postgres".into(),
            user_oid: classes::POSTGRES_ROLE,
            database: database.into(),
            database_oid: catalog.database_oid(),
            pid: std::process::id() as i32,
        };
        let engine = instance.cluster.engine.session().map_err(|e| err!(IO_ERROR, "no session: {e}"))?;
        let mut settings = instance.settings().for_session(true);
        let text = |text: &str| Value::Text(text.into());
        settings.set_internal("pg_stat_statements.track", text("none"));
        settings.set_internal("search_path", text("pg_catalog"));
        // What the server's configuration sets for users is not for these.
        settings.set_internal("DateStyle", text("ISO, MDY"));
        settings.set_internal("IntervalStyle", text("postgres"));
        settings.set_internal("default_transaction_isolation", text("read committed"));
        settings.set_internal("client_encoding", text("UTF8"));
        settings.set_internal("bytea_output", text("hex"));
        settings.set_internal("extra_float_digits", Value::Integer(1));
        settings.set_internal("standard_conforming_strings", Value::Bool(true));
        for name in ["default_transaction_read_only", "default_transaction_deferrable"] {
            settings.set_internal(name, Value::Bool(false));
        }
        for name in ["statement_timeout", "transaction_timeout", "idle_session_timeout", "idle_in_transaction_session_timeout"] {
            settings.set_internal(name, Value::Integer(0));
        }
        settings.set_internal("lock_timeout", Value::Integer(LOCK_PATIENCE));
        let state = SessionState::new(instance, login, engine, settings);
        let mut questions = Questions { session: Session::new(Arc::new(state)), answers: Answers::default() };
        questions.session.greet(&[0; 4], &mut questions.answers);
        questions.answers.0.clear();
        Ok(questions)
    }

    /// The session, which can be interrupted.
    pub fn state(&self) -> &Arc<SessionState> {
        self.session.state()
    }

    pub fn ask(&mut self, sql: &str) -> Result<Vec<Row>> {
        let flow = self.session.handle(Frontend::Query(sql), &mut self.answers);
        let answer = rows(self.answers.0.bytes());
        self.answers.0.clear();
        flow.and(answer)
    }
}

impl Drop for Questions {
    fn drop(&mut self) {
        self.session.close_all();
    }
}

/// The rows of an answer, or its error.
fn rows(mut bytes: &[u8]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    while let Some((tag, rest)) = bytes.split_first() {
        let (length, _) = rest.split_first_chunk::<4>().ok_or_else(garbled)?;
        let (message, next) = rest.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(garbled)?;
        let body = message.get(4..).ok_or_else(garbled)?;
        bytes = next;
        match tag {
            b'D' => rows.push(row(body).ok_or_else(garbled)?),
            b'E' => {
                let message = body.split(|b| *b == 0).find_map(|field| field.strip_prefix(b"M")).unwrap_or_default();
                return Err(DbError::internal(String::from_utf8_lossy(message).into_owned()));
            }
            _ => {}
        }
    }
    Ok(rows)
}

/// An error of a query.
fn garbled() -> DbError {
    DbError::internal("an answer is garbled")
}

fn row(body: &[u8]) -> Option<Row> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let mut row = Row::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, next) = rest.split_first_chunk::<4>()?;
        let length = i32::from_be_bytes(*length);
        let (value, next) = next.split_at_checked(usize::try_from(length).unwrap_or(0))?;
        row.push((length >= 0).then(|| String::from_utf8_lossy(value).into_owned()));
        rest = next;
    }
    Some(row)
}
