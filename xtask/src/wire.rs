//! `cargo xtask wire`: conversations between a client and the server, message by message, as recorded from PostgreSQL 18.
//!
//! The scripts in tests/wire have the client's messages and PostgreSQL's recorded answers (`wire::script`). Melba must answer the
//! same, at the same time: a late answer appears behind a later message than it should. `--record HOST:PORT` plays them on a
//! PostgreSQL 18 and records its answers.

mod answer;
mod connection;
mod message;
mod script;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::melba::{Address, Melba};
use crate::root;
use connection::{Connection, Until};
use script::{Conversation, Exchange, Item};

/// Recording waits this long for more.
const RECORDED_SILENCE: Duration = Duration::from_millis(800);
/// A wrong answer is complete when no bytes have come for this long.
const WRONG_SILENCE: Duration = Duration::from_secs(6);

#[derive(Default)]
pub struct Options {
    /// The PostgreSQL whose answers are written into the scripts.
    pub record: Option<Address>,
}

/// Plays the scripts whose name contains `filter`.
pub fn run(filter: &str, options: &Options, server: Option<Address>) -> Result<(), String> {
    let scripts = scripts(filter)?;
    if let Some(postgres) = &options.record {
        return scripts.iter().try_for_each(|path| record(path, postgres));
    }
    let melba = if server.is_none() { Some(Melba::fresh("wire")?) } else { None };
    let server = server.or_else(|| melba.as_ref().map(|m| m.address.clone())).ok_or("no server")?;
    let (mut held, mut failed) = (0, Vec::new());
    for path in &scripts {
        let name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        let conversations = read(path)?;
        let mut different = 0;
        for conversation in conversations.iter().filter(|c| !c.title.is_empty()) {
            held += 1;
            if let Err(difference) = hold(conversation, &server) {
                println!("FAILED  wire: {name}: {}\n{difference}", conversation.title);
                different += 1;
            }
        }
        if different == 0 {
            println!("ok      wire: {name}");
        } else {
            failed.push(format!("{name} ({different})"));
        }
    }
    println!("{held} conversations");
    if !failed.is_empty() {
        return Err(format!("different from PostgreSQL: {}; `cargo xtask wire NAME` repeats one", failed.join(", ")));
    }
    melba.map_or(Ok(()), Melba::stop)
}

fn scripts(filter: &str) -> Result<Vec<PathBuf>, String> {
    let folder = root().join("tests/wire");
    let entries = folder.read_dir().map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut scripts: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    scripts.retain(|p| p.extension().is_some_and(|e| e == "txt") && p.to_string_lossy().contains(filter));
    scripts.sort();
    if scripts.is_empty() { Err(format!("no script of tests/wire is called {filter}")) } else { Ok(scripts) }
}

fn read(path: &Path) -> Result<Vec<Conversation>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    script::parse(&text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Writes PostgreSQL's answers into a script.
fn record(path: &Path, postgres: &Address) -> Result<(), String> {
    let mut conversations = read(path)?;
    for conversation in conversations.iter_mut().filter(|c| !c.title.is_empty()) {
        let mut parties = Parties::gather(conversation, postgres)?;
        for item in &mut conversation.items {
            if let Item::Exchange(exchange) = item {
                exchange.answers = parties.play(exchange, &Until::Silence(RECORDED_SILENCE))?;
            }
        }
    }
    std::fs::write(path, script::print(&conversations)).map_err(|e| format!("{}: {e}", path.display()))?;
    println!("recorded {}", path.display());
    Ok(())
}

/// Holds a conversation; the first difference.
fn hold(conversation: &Conversation, server: &Address) -> Result<(), String> {
    let mut parties = Parties::gather(conversation, server)?;
    for item in &conversation.items {
        let Item::Exchange(exchange) = item else { continue };
        let answers = parties.play(exchange, &Until::Answer(&exchange.answers, WRONG_SILENCE))?;
        if answers != exchange.answers {
            return Err(difference(exchange, &answers));
        }
    }
    Ok(())
}

fn difference(exchange: &Exchange, answers: &[String]) -> String {
    let same = exchange.answers.iter().zip(answers).take_while(|(a, b)| a == b).count();
    let mut lines = exchange.texts.clone();
    lines.extend(exchange.answers[..same].iter().map(|l| format!("< {l}")));
    lines.extend(exchange.answers[same..].iter().map(|l| format!("PostgreSQL < {l}")));
    lines.extend(answers[same..].iter().map(|l| format!("Melba      < {l}")));
    lines.iter().map(|l| format!("    {l}\n")).collect()
}

/// The connections of a conversation.
struct Parties<'a> {
    conversation: (bool, bool),
    address: &'a Address,
    connections: HashMap<String, Connection>,
}

impl<'a> Parties<'a> {
    fn gather(conversation: &Conversation, address: &'a Address) -> Result<Parties<'a>, String> {
        let mut control = Connection::open(address, false)?;
        control.start(&address.database)?;
        control.run("set client_min_messages to warning; drop schema if exists wire cascade; create schema wire")?;
        conversation.setup.iter().try_for_each(|statements| control.run(statements))?;
        let Conversation { raw, routines, .. } = conversation;
        Ok(Parties { conversation: (*raw, *routines), address, connections: HashMap::new() })
    }

    fn play(&mut self, exchange: &Exchange, until: &Until<'_>) -> Result<Vec<String>, String> {
        let name = &exchange.lines[0].connection;
        let (raw, routines) = self.conversation;
        let connection = match self.connections.get_mut(name) {
            Some(connection) => connection,
            None => {
                let mut connection = Connection::open(self.address, routines)?;
                if !raw {
                    connection.start(&self.address.database)?;
                }
                self.connections.entry(name.clone()).or_insert(connection)
            }
        };
        connection.send(&exchange.lines, self.address)?;
        Ok(connection.receive(until))
    }
}
