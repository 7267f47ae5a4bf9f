//! melba.conf, and melba.auto.conf which ALTER SYSTEM writes: one `name = value` a line, as in postgresql.conf.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use melba_sql::session::context::Configuration;
use melba_types::{DbError, SqlState};

use crate::memory;

const MAIN: &str = "melba.conf";
const AUTO: &str = "melba.auto.conf";

/// What a new data directory's melba.conf holds.
pub const DEFAULT: &str = "\
# Settings of this Melba server, one `name = value` a line.
# A line that starts with # is a comment; the values shown are the defaults. `SHOW ALL` lists every setting.
# The server reads the file again on SIGHUP and pg_reload_conf(); memory and connections need a new start.
# `melba serve -c name=value` overrides this file.

#max_connections = 100
#unix_socket_directories = '/tmp'   # where clients of this machine find the socket .s.PGSQL.PORT; '': no socket
#memory = 0                         # memory of the whole server, 256MB say; 0: a quarter of the machine's
                                    # (shared_buffers, for rows not flushed yet and cached blocks, is 3/8 of it unless set)
#work_mem = 4MB                     # memory of one sort, twice as much of a hash table; beyond it they use temporary files
                                    # (1/64 of memory, 4MB to 256MB, unless set)
#fsync = on                         # off: a crash of the machine may lose anything
#synchronous_commit = on            # off: a crash may lose the last moments, never the order
#wal_writer_delay = 200ms           # how long those moments are
#wal_writer_flush_after = 1MB       # and how much of the log
#commit_delay = 0                   # microseconds that a commit waits for others to share its sync
#default_toast_compression = 'pglz'  # pglz, lz4, zstd, dense
#statement_timeout = 0              # in milliseconds, 0: none
#TimeZone = 'UTC'
#DateStyle = 'ISO, MDY'
";

/// The configuration files of a data directory, and what the command line sets above them.
#[derive(Debug)]
pub struct Files {
    pub data: PathBuf,
    pub overrides: Vec<(String, String)>,
}

impl Files {
    /// All assignments, later ones override earlier ones.
    pub fn assignments(&self) -> Result<Vec<(String, String)>, String> {
        let mut all = read_or_create(&self.data.join(MAIN))?;
        all.extend(read(&self.data.join(AUTO))?.unwrap_or_default());
        all.extend(self.overrides.iter().cloned());
        // What relative names of server-side files count from.
        let data = std::path::absolute(&self.data).map_err(|e| format!("{}: {e}", self.data.display()))?;
        all.push(("data_directory".into(), data.display().to_string()));
        Ok(memory::with_defaults(all))
    }

    fn replace_auto(&self, assignments: &[(String, String)]) -> std::io::Result<()> {
        let mut text = "# Written by ALTER SYSTEM: do not edit.\n".to_owned();
        for (name, value) in assignments {
            text += &format!("{name} = '{}'\n", value.replace('\\', "\\\\").replace('\'', "''"));
        }
        replace(&self.data.join(AUTO), &text)
    }
}

/// Gives a file its content so that a crash leaves the old file or the whole new one.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let new = path.with_extension("conf.new");
    let mut file = std::fs::File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    std::fs::File::open(path.parent().unwrap_or(path))?.sync_all()
}

impl Configuration for Files {
    fn read(&self) -> melba_types::Result<Vec<(String, String)>> {
        self.assignments().map_err(config_error)
    }

    fn read_auto(&self) -> melba_types::Result<Vec<(String, String)>> {
        Ok(read(&self.data.join(AUTO)).map_err(config_error)?.unwrap_or_default())
    }

    fn write_auto(&self, assignments: &[(String, String)]) -> melba_types::Result<()> {
        self.replace_auto(assignments).map_err(|e| DbError::new(SqlState::IO_ERROR, format!("could not write \"{AUTO}\": {e}")))
    }
}

fn config_error(message: String) -> DbError {
    DbError::new(SqlState::CONFIG_FILE_ERROR, message)
}

/// `name=value` of the command line.
pub fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// Reads the file; writes the default one first when there is none.
pub fn read_or_create(path: &Path) -> Result<Vec<(String, String)>, String> {
    if let Some(assignments) = read(path)? {
        return Ok(assignments);
    }
    replace(path, DEFAULT).map_err(|e| format!("could not write {}: {e}", path.display()))?;
    Ok(Vec::new())
}

/// The assignments of a file; `None` when there is none.
fn read(path: &Path) -> Result<Option<Vec<(String, String)>>, String> {
    let shown = path.display();
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text).map(Some).map_err(|(line, what)| format!("{shown}, line {line}: {what}")),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(format!("could not read {shown}: {e}")),
    }
}

/// The assignments of a file, or the number of the line that is none and why.
fn parse(text: &str) -> Result<Vec<(String, String)>, (usize, String)> {
    let mut settings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what: &str| (number + 1, what.to_owned());
        let end = line.find(|c: char| c == '=' || c.is_whitespace()).ok_or_else(|| wrong("expected name = value"))?;
        let (name, rest) = line.split_at(end);
        let rest = rest.trim_start();
        let value = value(rest.strip_prefix('=').unwrap_or(rest).trim()).ok_or_else(|| wrong("the value is malformed"))?;
        settings.push((name.to_owned(), value));
    }
    Ok(settings)
}

/// A bare word, or text in single quotes with '' for one; a comment may follow.
fn value(text: &str) -> Option<String> {
    let Some(quoted) = text.strip_prefix('\'') else {
        let bare = text.split('#').next().unwrap_or("").trim();
        return (!bare.is_empty() && !bare.contains(char::is_whitespace)).then(|| bare.to_owned());
    };
    let mut out = String::new();
    let mut chars = quoted.chars().peekable();
    loop {
        match chars.next()? {
            '\'' if chars.peek() == Some(&'\'') => {
                chars.next();
                out.push('\'');
            }
            '\'' => break,
            '\\' => out.push(chars.next()?),
            c => out.push(c),
        }
    }
    let rest: String = chars.collect();
    let rest = rest.trim();
    (rest.is_empty() || rest.starts_with('#')).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_read() {
        let text = "# c\n\n a = 1 # one\nb 'it''s' # two\nc='x#y'\n";
        let expected = [("a", "1"), ("b", "it's"), ("c", "x#y")];
        assert_eq!(parse(text).unwrap(), expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
        for (line, bad) in [(1, "word"), (2, "\na ="), (1, "a = 'x"), (1, "a = 1 2"), (1, "a = 'x' y")] {
            assert_eq!(parse(bad).unwrap_err().0, line, "{bad:?}");
        }
    }

    #[test]
    fn what_alter_system_writes_is_read_back() {
        let data = tempfile::tempdir().unwrap();
        let files = Files { data: data.path().to_owned(), overrides: vec![("c".into(), "3".into())] };
        assert_eq!(files.read_auto().unwrap(), []);
        let written = [("a".to_owned(), r"it's \ 'x'".to_owned()), ("b".to_owned(), String::new())];
        files.write_auto(&written).unwrap();
        assert_eq!(files.read_auto().unwrap(), written);
        assert!(files.assignments().unwrap().contains(&("c".to_owned(), "3".to_owned())));
    }

    #[test]
    fn the_default_file_names_real_settings_with_their_defaults() {
        let text: String =
            DEFAULT.lines().filter(|l| l.starts_with('#') && !l.starts_with("# ")).map(|l| format!("{}\n", &l[1..])).collect();
        let settings = parse(&text).unwrap();
        assert!(settings.len() > 5);
        let with = melba_sql::session::settings::Settings::server(&settings).unwrap();
        let without = melba_sql::session::settings::Settings::server(&[]).unwrap();
        for (name, _) in settings {
            assert_eq!(with.get(&name), without.get(&name), "{name}");
        }
    }
}
