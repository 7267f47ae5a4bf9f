//! One of the two servers: a session that runs a statement by either protocol and returns the answer.

use std::error::Error;
use std::time::{Duration, Instant};

use postgres::types::private::BytesMut;
use postgres::types::{Format, FromSql, IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Config, NoTls, SimpleQueryMessage};

use super::tree::Literal;

/// How long a server that has crashed may take until it accepts sessions again.
const RECOVERY: Duration = Duration::from_secs(120);

/// A server's answer to a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Rows(Rows),
    Error {
        state: String,
        message: String,
    },
    /// The connection was closed.
    Lost(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Rows {
    /// Names and, in the extended protocol, type OIDs.
    pub columns: Vec<(String, u32)>,
    pub rows: Vec<Row>,
    /// Of the command tag.
    pub affected: u64,
}

pub type Row = Vec<Option<Vec<u8>>>;

pub struct TestedServer {
    config: Config,
    client: Client,
    /// Statements that make a fresh session like the old one.
    settings: String,
}

/// Bytes as they come.
struct Raw(Vec<u8>);

impl<'a> FromSql<'a> for Raw {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Raw, Box<dyn Error + Sync + Send>> {
        Ok(Raw(raw.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A parameter sent as text, for any type.
#[derive(Debug)]
struct Parameter(Option<String>);

impl ToSql for Parameter {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        Ok(match &self.0 {
            None => IsNull::Yes,
            Some(text) => {
                out.extend_from_slice(text.as_bytes());
                IsNull::No
            }
        })
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

impl TestedServer {
    /// `address` is HOST:PORT[/DATABASE].
    pub fn connect(address: &str, settings: String) -> Result<TestedServer, String> {
        let (host_port, database) = address.split_once('/').unwrap_or((address, "postgres"));
        let (host, port) = host_port.rsplit_once(':').ok_or_else(|| format!("{address} is not HOST:PORT[/DATABASE]"))?;
        let mut config = Config::new();
        config.host(host).port(port.parse().map_err(|_| format!("{port} is no port"))?);
        config.user("postgres").dbname(database).application_name("differential");
        let client = config.connect(NoTls).map_err(|e| format!("{address}: {e}"))?;
        let mut server = TestedServer { config, client, settings };
        server.set()?;
        Ok(server)
    }

    fn set(&mut self) -> Result<(), String> {
        self.client.batch_execute(&self.settings).map_err(|e| format!("{}: {e}", self.settings))
    }

    /// A session in place of one that was lost, as soon as the server has recovered.
    pub fn again(&mut self) -> Result<(), String> {
        let end = Instant::now() + RECOVERY;
        self.client = loop {
            match self.config.connect(NoTls) {
                Ok(client) => break client,
                Err(error) if Instant::now() > end => return Err(format!("the server is gone: {error}")),
                Err(_) => std::thread::sleep(Duration::from_millis(200)),
            }
        };
        self.set()
    }

    pub fn version(&mut self) -> Result<String, String> {
        let row = self.client.query_one("select version()", &[]).map_err(|e| e.to_string())?;
        Ok(row.get(0))
    }

    /// By the simple protocol; the answer of the last statement with rows or a tag.
    pub fn simple(&mut self, sql: &str) -> Answer {
        let messages = match self.client.simple_query(sql) {
            Ok(messages) => messages,
            Err(error) => return failed(&error),
        };
        let mut answer = Rows::default();
        for message in messages {
            match message {
                SimpleQueryMessage::RowDescription(columns) => {
                    answer.columns = columns.iter().map(|c| (c.name().to_owned(), 0)).collect();
                }
                SimpleQueryMessage::Row(row) => {
                    answer.rows.push((0..row.len()).map(|i| row.get(i).map(|v| v.as_bytes().to_vec())).collect());
                }
                SimpleQueryMessage::CommandComplete(count) => answer.affected = count,
                _ => {}
            }
        }
        Answer::Rows(answer)
    }

    /// By the extended protocol, prepared once and executed with `parameters`, and where there are any, then with the values
    /// after theirs: parameters as text, results in binary. The rows of both.
    pub fn extended(&mut self, sql: &str, parameters: &[Literal]) -> Answer {
        let statement = match self.client.prepare(sql) {
            Ok(statement) => statement,
            Err(error) => return failed(&error),
        };
        if parameters.len() != statement.params().len() {
            return Answer::Error { state: "params".to_owned(), message: format!("{} parameters", statement.params().len()) };
        }
        let others: Vec<Literal> = parameters.iter().map(Literal::following).collect();
        let first = self.execute(&statement, parameters);
        if parameters.is_empty() {
            return first;
        }
        match (first, self.execute(&statement, &others)) {
            (Answer::Rows(mut first), Answer::Rows(second)) => {
                // Each execution has its own order.
                first.rows.extend(second.rows);
                Answer::Rows(first)
            }
            (Answer::Rows(_), other) | (other, _) => other,
        }
    }

    fn execute(&mut self, statement: &postgres::Statement, parameters: &[Literal]) -> Answer {
        let values: Vec<Parameter> = parameters.iter().map(|p| Parameter(p.text.clone())).collect();
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|v| v as &(dyn ToSql + Sync)).collect();
        let columns: Vec<(String, u32)> =
            statement.columns().iter().map(|c| (c.name().to_owned(), comparable(c.type_().oid()))).collect();
        match self.client.query(statement, &values) {
            Err(error) => failed(&error),
            Ok(rows) => {
                let value = |row: &postgres::Row, i: usize| {
                    let value = row.get::<_, Option<Raw>>(i).map(|v| v.0);
                    if columns[i].1 == 0 { value.map(without_element_type) } else { value }
                };
                let rows = rows.iter().map(|row| (0..row.len()).map(|i| value(row, i)).collect()).collect();
                Answer::Rows(Rows { columns, rows, affected: 0 })
            }
        }
    }
}

/// Types that a schema creates have other OIDs on each server.
fn comparable(oid: u32) -> u32 {
    if oid < 16_384 { oid } else { 0 }
}

/// An array names the type of its elements, which has another OID on each server where the schema made it.
fn without_element_type(mut value: Vec<u8>) -> Vec<u8> {
    if let Some(ty) = value.get_mut(8..12)
        && ty.try_into().is_ok_and(|b: [u8; 4]| u32::from_be_bytes(b) >= 16_384)
    {
        ty.fill(0);
    }
    value
}

fn failed(error: &postgres::Error) -> Answer {
    match error.as_db_error() {
        Some(error) if error.code().code() != "57P01" => {
            Answer::Error { state: error.code().code().to_owned(), message: error.message().to_owned() }
        }
        _ => Answer::Lost(error.to_string()),
    }
}
