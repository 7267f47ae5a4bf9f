//! Commands that read statements from files, and send results to them.

use std::fs::File;
use std::io::{BufReader, Write as _};
use std::path::{Path, PathBuf};

use super::arguments;
use crate::Result;
use crate::format::Expanded;
use crate::input::{Input, Stream};
use crate::output::{Output, Results};
use crate::progress::Running;
use crate::scan::Scanner;
use crate::shell::{Ended, Flow, Shell};

/// A file may run itself.
const FILES_DEEP_MAX: usize = 64;

/// `\i`, and `\ir`, whose names count from the folder of the file that it stands in.
pub fn include(shell: &mut Shell, name: &str, rest: &str, input: &mut dyn Input) -> Flow {
    let path = arguments::split(rest, &shell.variables).and_then(|arguments| match arguments.first() {
        Some(path) => Ok(PathBuf::from(path)),
        None => Err(format!("\\{name}: missing required argument")),
    });
    let opened = path.and_then(|path| {
        let folder = shell.file.as_deref().and_then(|file| Path::new(file).parent()).filter(|_| name.starts_with("ir"));
        let path = if name == "ir" || name == "include_relative" {
            folder.map_or(path.clone(), |folder| folder.join(&path))
        } else {
            path
        };
        Ok((File::open(&path).map_err(|e| format!("{}: {e}", path.display()))?, path))
    });
    match opened {
        Ok(_) if shell.files_deep >= FILES_DEEP_MAX => {
            shell.judge_done(Err("\\i: too many files run each other".to_owned()), input)
        }
        Ok((file, path)) => match run_file(shell, file, &path) {
            Ended::Well => Ok(()),
            _ if shell.is_interactive => Ok(()),
            ended => Err(ended),
        },
        Err(e) => shell.judge_done(Err(e), input),
    }
}

/// Runs the statements of a file to its end.
pub fn run_file(shell: &mut Shell, file: File, path: &Path) -> Ended {
    let outer = shell.file.replace(path.display().to_string());
    let is_interactive = std::mem::replace(&mut shell.is_interactive, false);
    shell.files_deep += 1;
    let ended = shell.run(&mut Stream::new(BufReader::new(file)));
    shell.files_deep -= 1;
    (shell.file, shell.is_interactive) = (outer, is_interactive);
    ended
}

/// `\o`: a file, `|` and a command, or nothing.
pub(super) fn send_results_to(shell: &mut Shell, rest: &str) -> Result<()> {
    let place = match rest.strip_prefix('|') {
        Some(_) => rest.to_owned(),
        None => arguments::split(rest, &shell.variables)?.into_iter().next().unwrap_or_default(),
    };
    let before = std::mem::replace(&mut shell.output, Output::open(&place)?);
    before.close().map_err(|e| e.to_string())
}

/// The pending text, or else the last statement.
pub(super) fn pending_or_last(shell: &Shell, scanner: &mut Scanner) -> String {
    let pending = scanner.take_pending();
    if pending.trim().is_empty() { shell.last_statement.clone() } else { pending }
}

/// `\g` and `\gx`.
pub(super) fn run_pending(shell: &mut Shell, name: &str, rest: &str, scanner: &mut Scanner, input: &mut dyn Input) -> Flow {
    let sql = pending_or_last(shell, scanner);
    if sql.trim().is_empty() {
        return Ok(());
    }
    let place = if rest.is_empty() { None } else { Some(Output::open(rest)) };
    let before = match place {
        Some(Err(e)) => return shell.judge_done(Err(e), input),
        Some(Ok(place)) => Some(std::mem::replace(&mut shell.output, place)),
        None => None,
    };
    let expanded = shell.style.expanded;
    if name == "gx" {
        shell.style.expanded = Expanded::On;
    }
    let flow = shell.statement(&sql, input);
    shell.style.expanded = expanded;
    let closed = before.map(|before| std::mem::replace(&mut shell.output, before).close());
    match closed {
        Some(Err(e)) => shell.judge_done(Err(format!("{rest}: {e}")), input),
        _ => flow,
    }
}

/// `\e`: edits the pending text, the last statement, or a file; the result is then read as if it were typed.
pub(super) fn edit(shell: &mut Shell, rest: &str, scanner: &mut Scanner) -> Result<()> {
    let (path, _temporary) = match rest {
        "" => {
            let file = tempfile::Builder::new().prefix("melba-").suffix(".sql").tempfile().map_err(|e| e.to_string())?;
            std::fs::write(file.path(), pending_or_last(shell, scanner)).map_err(|e| e.to_string())?;
            (file.path().to_owned(), Some(file))
        }
        name => (PathBuf::from(name), None),
    };
    let chosen = ["PSQL_EDITOR", "EDITOR", "VISUAL"].iter().find_map(|name| std::env::var(name).ok());
    let editor = chosen.unwrap_or_else(|| "vi".to_owned());
    let status = crate::output::shell(&format!("exec {editor} \"$0\"")).arg(&path).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(format!("{editor}: {status}")),
        Err(e) => return Err(format!("{editor}: {e}")),
    }
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    scanner.replace_pending(text.trim_end());
    Ok(())
}

/// Writes text to the output of results.
pub fn write_result(shell: &mut Shell, text: &str) -> Result<()> {
    let running = Running::silent();
    let (is_terminal, uses_pager) = (shell.output.is_terminal(), shell.uses_pager);
    let mut results = Results::new(&mut shell.output, uses_pager && is_terminal, &running);
    let text = melba_client::escape::if_terminal(text, is_terminal);
    results.write_all(text.as_bytes()).and_then(|()| results.finish()).map_err(|e| e.to_string())
}
