//! Statements typed at a terminal: edited as a whole over several lines, kept in a history, completed by Tab.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::{OpenOptions, create_dir_all};
use std::io::Result;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use rustyline::completion::{Completer, Pair};
use rustyline::config::BellStyle;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use crate::complete::{self, Names};
use crate::input::{Input, Line, Prompt};
use crate::scan::{Item, Scanner};
use crate::variables::Variables;

const HISTORY_LINES: usize = 10_000;

pub struct Terminal {
    editor: Editor<Aid, FileHistory>,
    /// Lines that were typed or pasted with others.
    waiting: VecDeque<String>,
    history: Option<PathBuf>,
    number: u64,
}

/// The editor's helper while it edits.
struct Aid {
    names: Names,
    /// The text typed before.
    scanner: Scanner,
    variables: Variables,
    /// Data of a COPY, which are no statements.
    takes_data: bool,
}

impl Terminal {
    pub fn new() -> std::result::Result<Terminal, String> {
        let failed = |e: ReadlineError| format!("the terminal cannot be used: {e}");
        let config = Config::builder()
            .max_history_size(HISTORY_LINES)
            .and_then(|config| config.history_ignore_dups(true))
            .map_err(failed)?
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            .bell_style(BellStyle::None)
            .build();
        let mut editor = Editor::with_config(config).map_err(failed)?;
        editor.set_helper(Some(Aid {
            names: Names::default(),
            scanner: Scanner::default(),
            variables: Variables::new(),
            takes_data: false,
        }));
        let history = history_file();
        if let Some(path) = &history {
            // The first time there is none.
            let _ = editor.load_history(path);
        }
        Ok(Terminal { editor, waiting: VecDeque::new(), history, number: 0 })
    }

    fn read(&mut self, prompt: &str) -> Result<Option<Line>> {
        if let Some(line) = self.waiting.pop_front() {
            return Ok(Some(Line::Text(line)));
        }
        match self.editor.readline(prompt) {
            Ok(text) => {
                self.waiting.extend(text.split('\n').map(str::to_owned));
                self.number += self.waiting.len() as u64;
                self.remember(&text);
                Ok(self.waiting.pop_front().map(Line::Text))
            }
            Err(ReadlineError::Interrupted) => Ok(Some(Line::Interrupted)),
            Err(ReadlineError::Eof) => Ok(Some(Line::End)),
            Err(ReadlineError::Io(e)) => Err(e),
            // The terminal's size has changed: the line is drawn again.
            Err(ReadlineError::Signal(_)) => Ok(None),
            Err(e) => Err(std::io::Error::other(e.to_string())),
        }
    }

    /// Statements with passwords are not written down, nor are data.
    fn remember(&mut self, text: &str) {
        let is_data = self.editor.helper().is_some_and(|aid| aid.takes_data);
        if is_data || text.trim().is_empty() || text.to_lowercase().contains("password") {
            return;
        }
        let added = self.editor.add_history_entry(text).unwrap_or(false);
        if let Some(path) = self.history.as_ref().filter(|_| added) {
            // A history that cannot be written is no reason for a message after each line.
            let _ = self.editor.append_history(path);
        }
    }
}

/// `~/.local/state/melba/history`, or the file that MELBA_HISTORY names. Only its owner may read it.
fn history_file() -> Option<PathBuf> {
    let named = std::env::var_os("MELBA_HISTORY").map(PathBuf::from);
    let state = std::env::var_os("XDG_STATE_HOME").filter(|state| !state.is_empty()).map(PathBuf::from);
    let default = || Some(state.or_else(|| Some(std::env::home_dir()?.join(".local/state")))?.join("melba/history"));
    let path = named.or_else(default)?;
    create_dir_all(path.parent()?).ok()?;
    OpenOptions::new().append(true).create(true).mode(0o600).open(&path).ok()?;
    Some(path)
}

impl Input for Terminal {
    fn set_names(&mut self, names: Names) {
        if let Some(aid) = self.editor.helper_mut() {
            aid.names = names;
        }
    }

    fn completes(&self) -> bool {
        self.waiting.is_empty()
    }

    fn line(&mut self, prompt: &Prompt) -> Result<Line> {
        if let Some(aid) = self.editor.helper_mut() {
            aid.scanner = prompt.scanner.clone();
            aid.variables.clone_from(prompt.variables);
            aid.takes_data = false;
        }
        loop {
            if let Some(line) = self.read(&prompt.text())? {
                return Ok(line);
            }
        }
    }

    fn data(&mut self, line: &mut Vec<u8>) -> Result<bool> {
        line.clear();
        if let Some(aid) = self.editor.helper_mut() {
            aid.takes_data = true;
        }
        loop {
            match self.read(">> ")? {
                Some(Line::Text(text)) => {
                    line.extend_from_slice(text.as_bytes());
                    line.push(b'\n');
                    return Ok(true);
                }
                Some(Line::End) => return Ok(false),
                Some(Line::Interrupted) => return Err(std::io::ErrorKind::Interrupted.into()),
                None => {}
            }
        }
    }

    fn number(&self) -> u64 {
        self.number
    }
}

impl Helper for Aid {}
impl Highlighter for Aid {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        Cow::Borrowed(prompt)
    }
}

impl Hinter for Aid {
    type Hint = String;
}

impl Validator for Aid {
    /// Enter ends the input where a statement or a command ends.
    fn validate(&self, context: &mut ValidationContext) -> rustyline::Result<ValidationResult> {
        let is_whole = self.takes_data || is_whole(&self.scanner, context.input(), &self.variables);
        Ok(if is_whole { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

fn is_whole(scanner: &Scanner, text: &str, variables: &Variables) -> bool {
    let mut scanner = scanner.clone();
    let mut has_command = false;
    for line in text.split('\n') {
        scanner.push(line);
        has_command = false;
        while let Some(item) = scanner.next(variables) {
            has_command = matches!(item, Item::Command { .. });
        }
    }
    has_command || scanner.prompt() == '='
}

impl Completer for Aid {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        if self.takes_data {
            return Ok((pos, Vec::new()));
        }
        let (start, found) = complete::complete(&self.names, &line[..pos]);
        let pair = |text: String| Pair { display: text.clone(), replacement: text };
        Ok((start, found.into_iter().map(pair).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enter_ends_whole_statements_and_commands() {
        let whole = |text: &str| is_whole(&Scanner::default(), text, &Variables::new());
        assert!(whole("select 1;") && whole("\\d t") && whole("") && whole("select 1 \\g") && whole("-- nothing"));
        assert!(!whole("select 1") && !whole("select 'a;\n\\d") && !whole("select 1 \\g\nselect 2"));
    }
}
