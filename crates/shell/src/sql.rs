//! `melba sql`: options, and which statements are run.

use std::fs::File;
use std::io::{IsTerminal as _, Result as IoResult, stdin, stdout};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::command::files;
use crate::editor::Terminal;
use crate::format::{Expanded, Format, Style};
use crate::input::{Input, Line, Prompt, Stream};
use crate::interrupts::{Ends, Interrupts};
use crate::output::Output;
use crate::shell::{Ended, Shell};
use crate::{Result, Serve, terminal};
use melba_client::target::Target;

#[derive(Debug, Args)]
pub struct SqlOptions {
    /// A server's database: postgres://USER@HOST:PORT/DATABASE, libpq's keywords, or a name [default: PGHOST etc., 127.0.0.1:5432]
    #[arg(value_name = "URL", conflicts_with = "data")]
    target: Option<String>,
    /// A data directory that no server uses, served to this shell alone; made if it is missing
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The database of a data directory
    #[arg(short, long, value_name = "NAME", default_value = "postgres", requires = "data")]
    database: String,
    /// Run this, SQL or one backslash command, and end; may be given several times
    #[arg(short, long = "command", value_name = "TEXT", conflicts_with = "files")]
    commands: Vec<String>,
    /// Run a file's statements and end; - is standard input; may be given several times
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// All of it is one transaction
    #[arg(short = '1', long)]
    single_transaction: bool,
    /// Set a variable; ON_ERROR_STOP=1 ends a script at its first error
    #[arg(short = 'v', long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    variables: Vec<(String, String)>,
    /// How results are written
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Short for --format csv
    #[arg(long)]
    csv: bool,
    /// Short for --format unaligned
    #[arg(short = 'A', long)]
    no_align: bool,
    /// Rows only, neither head nor foot
    #[arg(short, long)]
    tuples_only: bool,
    /// A line for each value
    #[arg(short = 'x', long)]
    expanded: bool,
    /// The separator of unaligned values
    #[arg(short = 'F', long, value_name = "TEXT", default_value = "|")]
    field_separator: String,
    /// The text for null in tables
    #[arg(long, value_name = "TEXT", default_value = "")]
    null: String,
    /// Writes results to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,
    /// Results alone, no messages
    #[arg(short, long)]
    quiet: bool,
    /// Everything on the screen at once, however long it is
    #[arg(long)]
    no_pager: bool,
}

fn assignment(text: &str) -> Result<(String, String)> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE is expected")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Runs the shell; returns its exit code: 0, 1 a failure of its own or of a given command, 2 the connection was lost, 3 a
/// script's statement failed.
///
/// # Errors
/// There is no connection, or the data directory cannot be served.
pub fn sql(options: &SqlOptions, serve: &Serve) -> Result<u8> {
    let Some(data) = &options.data else {
        let target = Target::parse(options.target.as_deref().unwrap_or(""))?;
        return Ok(run(options, target, Ends::ThisShell)? as u8);
    };
    let mut ended = Ended::Well;
    serve(data, &mut |server| {
        let mut target = Target::parse(server)?;
        options.database.clone_into(&mut target.database);
        ended = run(options, target, Ends::ItsServer)?;
        Ok(())
    })?;
    Ok(ended as u8)
}

fn run(options: &SqlOptions, target: Target, ends: Ends) -> Result<Ended> {
    let is_script = !options.commands.is_empty() || !options.files.is_empty();
    let is_interactive = !is_script && stdin().is_terminal();
    terminal::save();
    let connection = match melba_client::open(&target, &mut terminal::password) {
        Ok(connection) => connection,
        // As in psql, whose callers distinguish it from a statement's failure.
        Err(e) if ends == Ends::ThisShell => {
            eprintln!("melba: {e}");
            return Ok(Ended::Lost);
        }
        Err(e) => return Err(e.to_string()),
    };
    let interrupts = Interrupts::watch(ends, is_interactive)?;
    let mut shell = Shell::new(target, connection, style(options), interrupts);
    shell.variables = options.variables.iter().cloned().collect();
    shell.is_interactive = is_interactive;
    shell.is_quiet = options.quiet;
    shell.uses_pager = is_interactive && stdout().is_terminal() && !options.no_pager;
    if let Some(path) = &options.output {
        shell.output = Output::open(path)?;
    }
    let ended = if is_interactive { interactive(&mut shell)? } else { script(&mut shell, options) };
    let output = std::mem::replace(&mut shell.output, Output::Standard);
    output.close().map_err(|e| format!("the results cannot be written: {e}"))?;
    Ok(ended)
}

fn style(options: &SqlOptions) -> Style {
    let format = match options {
        SqlOptions { csv: true, .. } => Format::Csv,
        SqlOptions { no_align: true, .. } => Format::Unaligned,
        options => options.format,
    };
    let mut style = Style::new(format);
    style.expanded = if options.expanded { Expanded::On } else { Expanded::Off };
    style.tuples_only = options.tuples_only;
    options.null.clone_into(&mut style.null);
    options.field_separator.clone_into(&mut style.separator);
    style
}

/// A person's shell: lines are edited, wide rows are turned, words greet.
fn interactive(shell: &mut Shell) -> Result<Ended> {
    if shell.style.expanded == Expanded::Off {
        shell.style.expanded = Expanded::Auto;
    }
    if !shell.is_quiet {
        let version = shell.connection.as_ref().and_then(|c| c.parameter("server_version")).unwrap_or("unknown").to_owned();
        println!("melba sql, server version {version}. \\? for help, \\q to quit.");
    }
    Ok(shell.run(&mut Terminal::new()?))
}

fn script(shell: &mut Shell, options: &SqlOptions) -> Ended {
    if !options.single_transaction {
        return actions(shell, options);
    }
    if !quietly(shell, "BEGIN") {
        return Ended::Failed;
    }
    let ended = match actions(shell, options) {
        // It could not be committed, whatever came after the error.
        Ended::Well if shell.has_failed => Ended::InScript,
        ended => ended,
    };
    match ended {
        Ended::Lost => ended,
        Ended::Well if quietly(shell, "COMMIT") => ended,
        Ended::Well => Ended::Failed,
        _ => {
            quietly(shell, "ROLLBACK");
            ended
        }
    }
}

/// Runs an internal statement.
fn quietly(shell: &mut Shell, sql: &str) -> bool {
    let is_quiet = std::mem::replace(&mut shell.is_quiet, true);
    let is_well = shell.query(sql, &mut Nothing);
    shell.is_quiet = is_quiet;
    is_well
}

fn actions(shell: &mut Shell, options: &SqlOptions) -> Ended {
    for command in &options.commands {
        let ended = match command.trim_start().starts_with('\\') {
            true => match shell.run(&mut Stream::new(command.as_bytes())) {
                Ended::Well if shell.has_failed => Ended::Failed,
                ended => ended,
            },
            // As it is, in one piece: the server takes several statements as one transaction.
            false => match shell.query(command, &mut Stream::new(stdin().lock())) {
                true => Ended::Well,
                false if shell.connection.as_ref().is_some_and(|c| c.is_lost) => Ended::Lost,
                false => Ended::Failed,
            },
        };
        // The rest is not run.
        if ended != Ended::Well {
            return ended;
        }
    }
    for path in &options.files {
        let ended = file(shell, path);
        if ended != Ended::Well {
            return ended;
        }
    }
    match options.commands.is_empty() && options.files.is_empty() {
        true => shell.run(&mut Stream::new(stdin().lock())),
        false => Ended::Well,
    }
}

fn file(shell: &mut Shell, path: &Path) -> Ended {
    if path.as_os_str() == "-" {
        shell.file = Some("<stdin>".to_owned());
        return shell.run(&mut Stream::new(stdin().lock()));
    }
    match File::open(path) {
        Ok(opened) => files::run_file(shell, opened, path),
        Err(e) => {
            eprintln!("melba: {}: {e}", path.display());
            Ended::Failed
        }
    }
}

/// For internal statements, which read nothing.
struct Nothing;

impl Input for Nothing {
    fn line(&mut self, _: &Prompt) -> IoResult<Line> {
        Ok(Line::End)
    }

    fn data(&mut self, _: &mut Vec<u8>) -> IoResult<bool> {
        Ok(false)
    }

    fn number(&self) -> u64 {
        0
    }
}
