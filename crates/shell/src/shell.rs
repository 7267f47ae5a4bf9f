//! A shell: a connection, the format of results, and the loop that reads statements and commands.

use std::sync::Arc;
use std::time::Instant;

use crate::complete::Names;
use crate::format::Style;
use crate::input::{Input, Line, Prompt};
use crate::interrupts::Interrupts;
use crate::output::Output;
use crate::scan::{Item, Scanner};
use crate::terminal;
use crate::variables::{Variables, switch};
use melba_client::escape;
use melba_client::target::Target;
use melba_client::{Connection, Failure, Report};

/// How a shell ended; the numbers are psql's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Well = 0,
    /// An error of the shell itself, or of the one given statement.
    Failed = 1,
    /// The connection was lost, and could not be made again.
    Lost = 2,
    /// A statement of a script failed, or was interrupted.
    InScript = 3,
}

/// Whether to continue after a statement.
pub type Flow = std::result::Result<(), Ended>;

pub struct Shell {
    pub target: Target,
    pub connection: Option<Connection>,
    pub style: Style,
    pub variables: Variables,
    pub output: Output,
    pub interrupts: Arc<Interrupts>,
    pub is_interactive: bool,
    /// Prints neither command tags nor messages about changes.
    pub is_quiet: bool,
    pub is_timing: bool,
    pub uses_pager: bool,
    /// The file that is read, for messages.
    pub file: Option<String>,
    /// The last statement, for `\g` and `\e`.
    pub last_statement: String,
    pub last_error: Option<(Report, String)>,
    /// The names for Tab may be outdated.
    pub names_are_old: bool,
    pub files_deep: usize,
    /// Something has failed, which may not have ended anything.
    pub has_failed: bool,
}

impl Shell {
    pub fn new(target: Target, connection: Connection, style: Style, interrupts: Arc<Interrupts>) -> Shell {
        Shell {
            target,
            connection: Some(connection),
            style,
            variables: Variables::new(),
            output: Output::Standard,
            interrupts,
            is_interactive: false,
            is_quiet: false,
            is_timing: false,
            uses_pager: false,
            file: None,
            last_statement: String::new(),
            last_error: None,
            names_are_old: true,
            files_deep: 0,
            has_failed: false,
        }
    }

    /// Whether a variable is on, by psql's words.
    pub fn is_on(&self, name: &str) -> bool {
        self.variables.get(name).is_some_and(|value| switch(value).unwrap_or(true))
    }

    /// Reads and runs until the input's end.
    pub fn run(&mut self, input: &mut dyn Input) -> Ended {
        let mut scanner = Scanner::default();
        loop {
            if input.completes()
                && let Some(names) = self.names()
            {
                input.set_names(names);
            }
            let line = {
                let connection = self.connection.as_ref();
                scanner.plain_backslashes = connection.and_then(|c| c.parameter("standard_conforming_strings")) != Some("off");
                let prompt = Prompt {
                    database: connection.map(|_| self.target.database.as_str()),
                    is_superuser: connection.and_then(|c| c.parameter("is_superuser")) == Some("on"),
                    transaction: connection.map_or(b'I', |c| c.transaction),
                    scanner: &scanner,
                    variables: &self.variables,
                };
                input.line(&prompt)
            };
            let flow = match line {
                Ok(Line::Text(line)) => {
                    scanner.push(&line);
                    self.run_line(&mut scanner, input)
                }
                Ok(Line::End) => return self.end_of_input(&mut scanner, input),
                Ok(Line::Interrupted) => {
                    scanner.take_pending();
                    Ok(())
                }
                Err(e) => {
                    self.complain(&format!("the input cannot be read: {e}"), input.number());
                    return Ended::Failed;
                }
            };
            if let Err(ended) = flow {
                return ended;
            }
        }
    }

    fn run_line(&mut self, scanner: &mut Scanner, input: &mut dyn Input) -> Flow {
        loop {
            let variables = std::mem::take(&mut self.variables);
            let item = scanner.next(&variables);
            self.variables = variables;
            match item {
                None => return Ok(()),
                Some(Item::Statement(sql)) => self.statement(&sql, input)?,
                Some(Item::Command { name, rest }) => self.command(&name, &rest, scanner, input)?,
            }
        }
    }

    /// A rest without a semicolon is a statement in a script, and discarded at a terminal.
    fn end_of_input(&mut self, scanner: &mut Scanner, input: &mut dyn Input) -> Ended {
        if self.is_interactive {
            println!("\\q");
            return Ended::Well;
        }
        let rest = scanner.take_pending();
        match rest.trim().is_empty() {
            true => Ended::Well,
            false => self.statement(&rest, input).err().unwrap_or(Ended::Well),
        }
    }

    /// Runs a statement and shows its results.
    pub fn statement(&mut self, sql: &str, input: &mut dyn Input) -> Flow {
        sql.clone_into(&mut self.last_statement);
        let begun = Instant::now();
        let is_well = self.query(sql, input);
        if self.is_timing {
            println!("{}", time(begun.elapsed().as_secs_f64() * 1000.0));
        }
        self.judge(is_well)
    }

    /// Whether to continue after a success or a failure.
    pub fn judge(&mut self, is_well: bool) -> Flow {
        if self.connection.as_ref().is_some_and(|c| c.is_lost) {
            return self.reconnect();
        }
        self.has_failed |= !is_well;
        match is_well {
            true => Ok(()),
            false if self.is_interactive => Ok(()),
            false if self.interrupts.is_pressed() || self.is_on("ON_ERROR_STOP") => Err(Ended::InScript),
            false => Ok(()),
        }
    }

    fn reconnect(&mut self) -> Flow {
        self.connection = None;
        if !self.is_interactive {
            return Err(Ended::Lost);
        }
        eprint!("The connection to the server was lost. Attempting reset: ");
        match melba_client::open(&self.target, &mut terminal::password) {
            Ok(connection) => {
                eprintln!("Succeeded.");
                self.connection = Some(connection);
            }
            Err(_) => eprintln!("Failed."),
        }
        Ok(())
    }

    /// Connects to another place; the old connection stays if that fails.
    pub fn connect(&mut self, target: Target) -> std::result::Result<(), Failure> {
        let connection = melba_client::open(&target, &mut terminal::password)?;
        (self.connection, self.target, self.names_are_old) = (Some(connection), target, true);
        Ok(())
    }

    /// A message, with the place in the script that it belongs to.
    pub fn complain(&self, message: &str, line: u64) {
        let message = escape::text(message);
        match &self.file {
            Some(file) => eprintln!("melba:{}:{line}: {message}", escape::text(file)),
            None => eprintln!("{message}"),
        }
    }

    /// The names of the database, when those that Tab has may be old. Not within a transaction, which they would be a part of.
    pub fn names(&mut self) -> Option<Names> {
        let connection = self.connection.as_mut().filter(|c| c.transaction == b'I')?;
        if !std::mem::take(&mut self.names_are_old) {
            return None;
        }
        Names::of(connection).ok()
    }
}

/// As psql has it: `Time: 61234.567 ms (01:01.235)`.
pub fn time(milliseconds: f64) -> String {
    let seconds = milliseconds / 1000.0;
    let (minutes, hours) = ((seconds / 60.0).floor(), (seconds / 3600.0).floor());
    let long = match seconds {
        ..1.0 => String::new(),
        ..3600.0 => format!(" ({minutes:02}:{:06.3})", seconds - minutes * 60.0),
        _ => format!(" ({hours:02}:{:02}:{:06.3})", minutes - hours * 60.0, seconds - minutes * 60.0),
    };
    format!("Time: {milliseconds:.3} ms{long}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_psql_writes_them() {
        assert_eq!(time(3.2), "Time: 3.200 ms");
        assert_eq!(time(61_234.567), "Time: 61234.567 ms (01:01.235)");
        assert_eq!(time(3_723_004.0), "Time: 3723004.000 ms (01:02:03.004)");
    }
}
