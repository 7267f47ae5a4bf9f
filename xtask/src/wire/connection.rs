//! A connection of a conversation: sends bytes, and reads until the server is silent.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use super::answer::{self, Reading};
use super::message;
use super::script::{Line, Token};
use crate::melba::Address;

/// The interval of checks of a silent socket.
const LOOK: Duration = Duration::from_millis(2);

pub struct Connection {
    stream: TcpStream,
    pub closed: bool,
    /// The server's process id and secret, as CancelRequest wants them.
    key: Vec<u8>,
    pub reading: Reading,
}

/// When an answer is all there.
pub enum Until<'a> {
    /// No bytes have come for this long.
    Silence(Duration),
    /// It is this one; or it is not, and no bytes have come for this long.
    Answer(&'a [String], Duration),
}

impl Connection {
    pub fn open(address: &Address, routines: bool) -> Result<Connection, String> {
        let port = address.port.parse().map_err(|_| format!("{} is no port", address.port))?;
        let failed = |e: std::io::Error| format!("{}:{port}: {e}", address.host);
        let stream = TcpStream::connect((address.host.as_str(), port)).map_err(failed)?;
        stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(LOOK))).map_err(failed)?;
        Ok(Connection { stream, closed: false, key: Vec::new(), reading: Reading { bare_bytes: 0, routines } })
    }

    /// The startup of conversations with another subject.
    pub fn start(&mut self, database: &str) -> Result<(), String> {
        const SETTINGS: &str = r#""client_encoding" "UTF8" "DateStyle" "ISO, MDY" "TimeZone" "UTC" "search_path" "wire, public""#;
        let line = format!(r#"Startup 3.0 "user" "postgres" "database" "{database}" "application_name" "wire" {SETTINGS}"#);
        self.write(&message::encode(&super::script::tokens(&line)?)?);
        self.wait_ready().map(drop)
    }

    /// Runs statements, of which none may fail.
    pub fn run(&mut self, statements: &str) -> Result<(), String> {
        let mut tokens = vec![Token::Word("Query".to_owned())];
        tokens.push(Token::Bytes(statements.as_bytes().to_vec()));
        self.write(&message::encode(&tokens)?);
        let answer = self.wait_ready()?;
        match answer.iter().find(|line| line.starts_with("ErrorResponse")) {
            Some(error) => Err(format!("{statements}: {error}")),
            None => Ok(()),
        }
    }

    fn wait_ready(&mut self) -> Result<Vec<String>, String> {
        let mut received = Vec::new();
        let began = Instant::now();
        loop {
            self.read(&mut received);
            let lines = answer::print(&received, self.reading);
            if lines.last().is_some_and(|l| l.starts_with("ReadyForQuery")) {
                if let Some(key) = answer::backend_key(&received) {
                    self.key = key;
                }
                return Ok(lines);
            }
            if self.closed || began.elapsed() > Duration::from_secs(30) {
                return Err(format!("not ready: {lines:?}"));
            }
        }
    }

    /// Performs the actions of lines, in one write where they are messages.
    pub fn send(&mut self, lines: &[Line], address: &Address) -> Result<(), String> {
        let mut bytes = Vec::new();
        for line in lines {
            for _ in 0..line.repeat {
                match &line.tokens[..] {
                    [Token::Word(word)] if word == "HangUp" => {
                        self.write(&std::mem::take(&mut bytes));
                        let _ = self.stream.shutdown(Shutdown::Write);
                    }
                    [Token::Word(word)] if word == "Cancel" => {
                        self.write(&std::mem::take(&mut bytes));
                        self.cancel(address)?;
                    }
                    [Token::Word(word), Token::Word(milliseconds)] if word == "Wait" => {
                        self.write(&std::mem::take(&mut bytes));
                        let time = milliseconds.parse().map_err(|_| format!("{milliseconds} is no time"))?;
                        std::thread::sleep(Duration::from_millis(time));
                    }
                    tokens => {
                        if matches!(&tokens[0], Token::Word(w) if w == "SSLRequest" || w == "GSSENCRequest") {
                            self.reading.bare_bytes += 1;
                        }
                        bytes.extend(message::encode(tokens)?);
                    }
                }
            }
        }
        self.write(&bytes);
        Ok(())
    }

    /// Sends a CancelRequest for this connection by another one.
    fn cancel(&self, address: &Address) -> Result<(), String> {
        let mut other = Connection::open(address, false)?;
        let length = self.key.len() as u32 + 8;
        other.write(&[&length.to_be_bytes()[..], &[4, 0xd2, 0x16, 0x2e], &self.key].concat());
        other.receive(&Until::Silence(Duration::from_millis(500)));
        Ok(())
    }

    /// A server that closes its end while we write is no failure: its messages before count.
    fn write(&mut self, bytes: &[u8]) {
        let _ = (&self.stream).write_all(bytes);
    }

    fn read(&mut self, received: &mut Vec<u8>) -> bool {
        let mut buffer = [0; 64 << 10];
        match (&self.stream).read(&mut buffer) {
            Ok(0) => self.closed = true,
            Ok(n) => {
                received.extend_from_slice(&buffer[..n]);
                return true;
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
            Err(_) => self.closed = true,
        }
        false
    }

    /// The lines that the server sends now.
    pub fn receive(&mut self, until: &Until<'_>) -> Vec<String> {
        let mut received = Vec::new();
        let mut last = Instant::now();
        loop {
            if self.read(&mut received) {
                last = Instant::now();
                continue;
            }
            let silent = match until {
                // A server that is ready sends no more; any other may only be slow.
                Until::Silence(silence) if is_ready(&received) => last.elapsed() >= *silence / 8,
                Until::Silence(silence) => last.elapsed() >= *silence,
                Until::Answer(expected, silence) => {
                    last.elapsed() >= *silence || self.lines(&received) == *expected && last.elapsed() >= quiet(expected)
                }
            };
            if silent || self.closed {
                let lines = self.lines(&received);
                self.reading.bare_bytes = self.reading.bare_bytes.saturating_sub(received.len());
                if let Some(key) = answer::backend_key(&received) {
                    self.key = key;
                }
                return lines;
            }
        }
    }

    fn lines(&self, received: &[u8]) -> Vec<String> {
        let mut lines = answer::print(received, self.reading);
        if self.closed {
            lines.push("closed".to_owned());
        }
        if lines.is_empty() {
            lines.push("(nothing)".to_owned());
        }
        lines
    }
}

fn is_ready(received: &[u8]) -> bool {
    received.len() >= 6 && received[received.len() - 6..].starts_with(b"Z\0\0\0\x05")
}

/// How long nothing more may come behind an answer that is as expected.
fn quiet(expected: &[String]) -> Duration {
    Duration::from_millis(if expected == ["(nothing)"] { 40 } else { 0 })
}
