//! The output of results: standard output, through a pager when they do not fit on the screen; a file, or a program.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, IsTerminal as _, Result, Write, stdout};
use std::process::{Child, Command, Stdio};

use unicode_width::UnicodeWidthStr as _;

use crate::progress::Running;
use crate::terminal;

/// Lines that are left for the prompt.
const LINES_BELOW: usize = 2;
/// The options for `less` in LESS: we print no colours, long lines are cut.
const LESS: &str = "-SFX";

/// The choice of `\o`.
pub enum Output {
    Standard,
    File(BufWriter<File>),
    Program(Child),
}

impl Output {
    /// Of `\o NAME` and `\g NAME`: nothing, a file's name, or `|` and a program's command.
    ///
    /// # Errors
    /// The system's, with the name.
    pub fn open(text: &str) -> std::result::Result<Output, String> {
        let failed = |e: std::io::Error| format!("{text}: {e}");
        match text.strip_prefix('|') {
            _ if text.is_empty() => Ok(Output::Standard),
            Some(command) => shell(command).stdin(Stdio::piped()).spawn().map(Output::Program).map_err(failed),
            None => File::create(text).map(|file| Output::File(BufWriter::new(file))).map_err(failed),
        }
    }

    pub fn is_terminal(&self) -> bool {
        matches!(self, Output::Standard) && stdout().is_terminal()
    }

    /// Columns of the terminal that it is.
    pub fn width(&self) -> Option<usize> {
        self.is_terminal().then(|| terminal::size(stdout())).flatten().map(|(columns, _)| columns)
    }

    /// Ends it, and waits for the program.
    pub fn close(self) -> Result<()> {
        match self {
            Output::Standard => Ok(()),
            Output::File(mut file) => file.flush(),
            Output::Program(mut child) => {
                drop(child.stdin.take());
                child.wait().map(drop)
            }
        }
    }
}

/// A command for the system's shell.
pub fn shell(command: &str) -> Command {
    let mut program = Command::new("/bin/sh");
    program.arg("-c").arg(command);
    program
}

/// A statement's results on their way.
pub struct Results<'a> {
    to: To<'a>,
    /// The progress message, which must be removed before results are shown.
    running: &'a Running,
}

enum To<'a> {
    Standard(BufWriter<std::io::Stdout>),
    Screen(Screen),
    Other(&'a mut dyn Write),
}

/// Keeps the text that fits on the screen, and passes the rest to a pager.
struct Screen {
    kept: Vec<u8>,
    /// Columns and lines of the terminal.
    size: (usize, usize),
    pager: Option<Child>,
}

impl<'a> Results<'a> {
    pub fn new(output: &'a mut Output, uses_pager: bool, running: &'a Running) -> Results<'a> {
        let to = match output {
            Output::File(file) => To::Other(file),
            Output::Program(child) => match &mut child.stdin {
                Some(stdin) => To::Other(stdin),
                None => To::Standard(BufWriter::new(stdout())),
            },
            Output::Standard => match terminal::size(stdout()).filter(|_| uses_pager) {
                Some(size) => To::Screen(Screen { kept: Vec::new(), size, pager: None }),
                None => To::Standard(BufWriter::with_capacity(64 << 10, stdout())),
            },
        };
        Results { to, running }
    }

    /// Shows the kept text, and waits until the pager has ended.
    pub fn finish(self) -> Result<()> {
        self.running.clear();
        match self.to {
            To::Standard(mut standard) => standard.flush(),
            To::Other(other) => other.flush(),
            To::Screen(screen) => screen.finish(),
        }
    }
}

impl Write for Results<'_> {
    fn write(&mut self, data: &[u8]) -> Result<usize> {
        self.running.clear();
        match &mut self.to {
            To::Standard(standard) => standard.write(data),
            To::Other(other) => other.write(data),
            To::Screen(screen) => screen.write(data),
        }
    }

    fn flush(&mut self) -> Result<()> {
        match &mut self.to {
            To::Standard(standard) => standard.flush(),
            To::Other(other) => other.flush(),
            To::Screen(_) => Ok(()),
        }
    }
}

impl Screen {
    fn write(&mut self, data: &[u8]) -> Result<usize> {
        if let Some(stdin) = self.pager.as_mut().and_then(|pager| pager.stdin.as_mut()) {
            return stdin.write(data);
        }
        self.kept.extend_from_slice(data);
        if self.is_full() {
            self.page()?;
        }
        Ok(data.len())
    }

    fn is_full(&self) -> bool {
        let (columns, lines) = self.size;
        let ends = self.kept.iter().filter(|byte| **byte == b'\n').count();
        // Of little text each line is measured; of much it is enough that it is much.
        ends + LINES_BELOW > lines
            || self.kept.len() > columns * lines * 4
            || String::from_utf8_lossy(&self.kept).lines().any(|line| line.width() > columns)
    }

    /// Starts the pager; without one everything is written to the screen.
    fn page(&mut self) -> Result<()> {
        let chosen = ["PSQL_PAGER", "PAGER"].iter().find_map(|name| std::env::var(name).ok());
        let Some(chosen) = chosen.or_else(|| ["less", "more"].into_iter().find(|name| is_program(name)).map(str::to_owned))
        else {
            let kept = std::mem::take(&mut self.kept);
            return stdout().write_all(&kept);
        };
        let mut command = shell(&chosen);
        if std::env::var_os("LESS").is_none() {
            command.env("LESS", LESS);
        }
        self.pager = command.stdin(Stdio::piped()).spawn().ok();
        if let Some(stdin) = self.pager.as_mut().and_then(|pager| pager.stdin.as_mut()) {
            let kept = std::mem::take(&mut self.kept);
            stdin.write_all(&kept)?;
        }
        Ok(())
    }

    fn finish(self) -> Result<()> {
        let Some(mut pager) = self.pager else {
            return stdout().write_all(&self.kept).and_then(|()| stdout().flush());
        };
        drop(pager.stdin.take());
        pager.wait().map(drop)
    }
}

fn is_program(name: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()))
}

/// The reader of the results has closed them.
pub fn is_enough(e: &std::io::Error) -> bool {
    e.kind() == ErrorKind::BrokenPipe
}
