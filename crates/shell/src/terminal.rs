//! The terminal: its size, its state, passwords typed at it.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd;
use std::sync::OnceLock;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// As it was when the shell began: an editor of lines changes it.
static BEFORE: OnceLock<Termios> = OnceLock::new();

/// Remembers the terminal's state, for `restore`.
pub fn save() {
    if let Ok(state) = tcgetattr(std::io::stdin()) {
        BEFORE.get_or_init(|| state);
    }
}

/// Restores the terminal's state, if a shell has changed it.
pub fn restore() {
    if let Some(state) = BEFORE.get() {
        // It may be closed, and no one waits for it then.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, state);
    }
}

/// Columns and lines.
pub fn size(terminal: impl AsFd) -> Option<(usize, usize)> {
    let size = tcgetwinsize(terminal).ok()?;
    Some((size.ws_col.into(), size.ws_row.into())).filter(|(columns, lines)| *columns > 0 && *lines > 0)
}

/// Asks at the terminal, whatever the standard input is. `None` without a terminal, or when nothing is typed.
pub fn password(prompt: &str) -> Option<String> {
    let mut terminal = File::options().read(true).write(true).open("/dev/tty").ok()?;
    let before = tcgetattr(&terminal).ok()?;
    let mut silent = before.clone();
    silent.local_modes -= LocalModes::ECHO;
    write!(terminal, "{prompt}").ok()?;
    tcsetattr(&terminal, OptionalActions::Flush, &silent).ok()?;
    let mut line = String::new();
    let read = BufReader::new(&terminal).read_line(&mut line);
    tcsetattr(&terminal, OptionalActions::Flush, &before).ok()?;
    writeln!(terminal).ok()?;
    read.ok().filter(|read| *read > 0).map(|_| line.trim_end_matches(['\r', '\n']).to_owned())
}
