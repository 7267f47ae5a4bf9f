//! The system's log: messages in the stderr format, cut into lines, as datagrams to the socket of its daemon.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use melba_settings::Settings;

use crate::level::Level;
use crate::time::Stamp;

/// The daemon's socket, on every Unix.
const SOCKET: &str = "/dev/log";
/// How long a daemon that reads nothing is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest piece of a message that is split, in bytes.
const PIECE_BYTES_MAX: usize = 900;

/// The settings syslog_*.
#[derive(Clone, Debug, Default)]
pub(crate) struct SystemLog {
    /// The number of RFC 3164; local0 to local7 are 16 to 23.
    facility: u32,
    ident: String,
    sequence_numbers: bool,
    split_messages: bool,
}

impl SystemLog {
    pub fn of(settings: &Settings) -> SystemLog {
        let facility = settings.get("syslog_facility").as_text();
        SystemLog {
            facility: 16 + facility.strip_prefix("local").and_then(|n| n.parse::<u32>().ok()).unwrap_or(0).min(7),
            ident: settings.get("syslog_ident").as_text().to_owned(),
            sequence_numbers: settings.get("syslog_sequence_numbers").as_bool(),
            split_messages: settings.get("syslog_split_messages").as_bool(),
        }
    }

    /// The datagrams of a message; `sequence` counts messages.
    pub fn datagrams(&self, level: Level, pid: i32, sequence: u64, stamp: &Stamp, text: &str) -> Vec<Vec<u8>> {
        let priority = self.facility * 8 + severity(level);
        let head = format!("<{priority}>{} {}[{pid}]: ", stamp.month_day_time(), self.ident);
        let is_split = self.split_messages && (text.len() > PIECE_BYTES_MAX || text.trim_end_matches('\n').contains('\n'));
        if !is_split {
            let number = if self.sequence_numbers { format!("[{sequence}] ") } else { String::new() };
            return vec![format!("{head}{number}{}", text.trim_end_matches('\n')).into_bytes()];
        }
        let number = |n: usize| if self.sequence_numbers { format!("[{sequence}-{n}] ") } else { String::new() };
        let pieces = text.split('\n').flat_map(pieces);
        pieces.enumerate().map(|(i, piece)| format!("{head}{}{piece}", number(i + 1)).into_bytes()).collect()
    }
}

/// A line in pieces that are short enough, cut between words where there are any.
fn pieces(mut line: &str) -> Vec<&str> {
    let mut out = Vec::new();
    while line.len() > PIECE_BYTES_MAX {
        let end = line.floor_char_boundary(PIECE_BYTES_MAX);
        let ends_word = line[end..].starts_with(|c: char| c.is_ascii_whitespace());
        let space = line[..end].rfind(|c: char| c.is_ascii_whitespace()).filter(|at| *at > 0 && !ends_word);
        let (piece, rest) = line.split_at(space.unwrap_or(end));
        out.push(piece);
        line = rest;
    }
    if !line.is_empty() {
        out.push(line);
    }
    out
}

/// As PostgreSQL maps its levels to those of RFC 3164.
fn severity(level: Level) -> u32 {
    match level {
        Level::Debug5 | Level::Debug4 | Level::Debug3 | Level::Debug2 | Level::Debug1 => 7,
        Level::Info | Level::Log => 6,
        Level::Notice | Level::Warning => 5,
        Level::Error => 4,
        Level::Fatal => 3,
        Level::Panic => 2,
    }
}

/// A connection to the daemon, made when it is first needed and again when it was lost.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    socket: Option<UnixDatagram>,
}

impl Connection {
    pub fn send(&mut self, datagram: &[u8]) -> std::io::Result<()> {
        self.send_to(Path::new(SOCKET), datagram)
    }

    fn send_to(&mut self, path: &Path, datagram: &[u8]) -> std::io::Result<()> {
        // The daemon may have been started anew since the last message.
        if let Some(socket) = self.socket.take()
            && socket.send(datagram).is_ok()
        {
            self.socket = Some(socket);
            return Ok(());
        }
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.connect(path)?;
        socket.send(datagram)?;
        self.socket = Some(socket);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use melba_types::timezone::Zone;

    use super::*;

    fn log() -> SystemLog {
        SystemLog { facility: 17, ident: "melba".into(), sequence_numbers: true, split_messages: true }
    }

    fn shown(log: &SystemLog, level: Level, text: &str) -> Vec<String> {
        // 2026-07-01 12:34:56.789 UTC.
        let stamp = Stamp::at(836_224_496_789_000, &Zone::utc());
        let datagrams = log.datagrams(level, 42, 7, &stamp, text);
        datagrams.into_iter().map(|d| String::from_utf8(d).expect("UTF-8")).collect()
    }

    #[test]
    fn lines_are_datagrams_with_their_number() {
        assert_eq!(shown(&log(), Level::Log, "LOG:  ready\n"), ["<142>Jul  1 12:34:56 melba[42]: [7] LOG:  ready"]);
        let two = shown(&log(), Level::Error, "ERROR:  no\nSTATEMENT:  select\n\t1\n");
        let head = "<140>Jul  1 12:34:56 melba[42]: ";
        assert_eq!(
            two,
            [format!("{head}[7-1] ERROR:  no"), format!("{head}[7-2] STATEMENT:  select"), format!("{head}[7-3] \t1")]
        );
        let plain = SystemLog { sequence_numbers: false, split_messages: false, ..log() };
        assert_eq!(shown(&plain, Level::Fatal, "FATAL:  a\n\tb\n"), ["<139>Jul  1 12:34:56 melba[42]: FATAL:  a\n\tb"]);
    }

    #[test]
    fn long_lines_are_cut_between_words_and_characters() {
        let words = "word ".repeat(400);
        let cut = pieces(&words);
        assert!(cut.iter().all(|piece| piece.len() <= PIECE_BYTES_MAX), "{cut:?}");
        assert!(cut.len() == 3 && cut[0].ends_with("word") && cut.concat() == words);
        let one = "\u{e4}".repeat(1000) + "x";
        assert_eq!(pieces(&one).concat(), one);
    }

    #[test]
    fn a_daemon_that_was_started_anew_is_found_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let mut connection = Connection::default();
        assert!(connection.send_to(&path, b"nobody listens").is_err());
        for _ in 0..2 {
            let daemon = UnixDatagram::bind(&path).expect("bound");
            connection.send_to(&path, b"hello").expect("sent");
            let mut buffer = [0; 16];
            let length = daemon.recv(&mut buffer).expect("received");
            assert_eq!(&buffer[..length], b"hello");
            std::fs::remove_file(&path).expect("removed");
        }
    }
}
