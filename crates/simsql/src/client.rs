//! A session of the server under test, driven by messages without a socket.

use std::sync::Arc;

use melba_protocol::{Frontend, Output};
use melba_settings::value::Value;
use melba_sql::session::Session;
use melba_statement::client::Client;
use melba_statement::context::{Instance, Login, SessionState};
use melba_types::{DbError, Result};
use melba_workload::{Connection, Failure, Row};

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

    fn flush_around(&mut self, values: &[(usize, &[u8])]) -> Result<()> {
        if values.is_empty() { Ok(()) } else { Err(DbError::unsupported("a value so long in the simulation")) }
    }

    fn copy_read(&mut self) -> Result<Option<&[u8]>> {
        Ok(None)
    }
}

/// One session.
pub struct SimClient {
    session: Session,
    answers: Answers,
}

impl SimClient {
    /// # Errors
    /// The engine has no session for us.
    pub fn connect(instance: &Arc<Instance>) -> std::result::Result<SimClient, String> {
        let catalog = instance.cluster.catalog_by_name("postgres").ok_or("there is no database")?;
        let login = Login {
            user: "postgres".into(),
            user_oid: melba_catalog::classes::POSTGRES_ROLE,
            database: "postgres".into(),
            database_oid: catalog.database_oid(),
            pid: 1,
        };
        let engine = instance.cluster.engine.session().map_err(|e| format!("no session: {e}"))?;
        let mut settings = instance.settings().for_session(true);
        settings.set_internal("session_authorization", Value::Text("postgres".into()));
        let state = SessionState::new(instance, login, engine, settings);
        let mut client = SimClient { session: Session::new(Arc::new(state)), answers: Answers::default() };
        client.session.greet(&[0; 4], &mut client.answers);
        client.answers.0.clear();
        // A wait is an error: no other session runs meanwhile.
        client.ask("set lock_timeout = 1").map_err(|e| format!("{} {}", e.state, e.message))?;
        Ok(client)
    }

    /// Rolls back an open transaction.
    pub fn close(mut self) {
        self.session.close_all();
    }
}

impl Connection for SimClient {
    fn ask(&mut self, statement: &str) -> std::result::Result<Vec<Row>, Failure> {
        let flow = self.session.handle(Frontend::Query(statement), &mut self.answers);
        let answer = decode(self.answers.0.bytes());
        self.answers.0.clear();
        match flow {
            Ok(_) => answer,
            Err(e) => Err(Failure { state: String::new(), message: e.message().to_string() }),
        }
    }
}

/// The rows of an answer, or its first error.
fn decode(mut bytes: &[u8]) -> std::result::Result<Vec<Row>, Failure> {
    let garbled = || Failure { state: "08P01".to_owned(), message: "the answer is garbled".to_owned() };
    let mut rows = Vec::new();
    while let Some((tag, rest)) = bytes.split_first() {
        let (length, _) = rest.split_first_chunk::<4>().ok_or_else(garbled)?;
        let (message, next) = rest.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(garbled)?;
        bytes = next;
        match tag {
            b'D' => rows.push(row(&message[4..]).ok_or_else(garbled)?),
            b'E' => {
                let field = |name: u8| message[4..].split(|b| *b == 0).find_map(|f| f.strip_prefix(&[name])).unwrap_or_default();
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                return Err(Failure { state: text(field(b'C')), message: text(field(b'M')) });
            }
            _ => {}
        }
    }
    Ok(rows)
}

fn row(message: &[u8]) -> Option<Row> {
    let (count, mut rest) = message.split_first_chunk::<2>()?;
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
