//! melba.conf with its included files, and postgresql.auto.conf's counterpart melba.auto.conf, which ALTER SYSTEM writes.

mod parse;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use melba_settings::configuration::{Assignment, Configured, FileError, Place};
use melba_statement::context::Configuration;
use melba_types::{DbError, SqlState};

use crate::memory;
use parse::{ConfigLine, Malformed};

pub const MAIN: &str = "melba.conf";
const AUTO: &str = "melba.auto.conf";
/// Files that include each other.
const DEPTH_MAX: usize = 10;

/// The content of a new data directory's melba.conf.
pub const DEFAULT: &str = "\
# Settings of this Melba server, one `name = value` a line.
# A line that starts with # is a comment; the values shown are the defaults. `SHOW ALL` lists every setting.
# The server reads the file again on SIGHUP and pg_reload_conf(); memory and connections need a new start.
# `melba serve -c name=value` overrides this file. `include 'FILE'`, `include_if_exists` and `include_dir` read others.

#listen_addresses = '127.0.0.1'      # where clients of other machines come in, several with commas; '*': everywhere
#port = 5432
#max_connections = 100
#unix_socket_directories = '/tmp'   # where clients of this machine find the socket .s.PGSQL.PORT; '': no socket
#memory = 0                         # memory of the whole server, 256MB say; 0: a quarter of the machine's
                                    # (shared_buffers, for rows not flushed yet and cached blocks, is 3/8 of it unless set)
#work_mem = 4MB                     # memory of one sort, twice as much of a hash table; beyond it they use temporary files
                                    # (1/16 of memory, 4MB to 256MB, unless set)
#fsync = on                         # off: a crash of the machine may lose anything
#synchronous_commit = on            # off: a crash may lose the last moments, never the order
#wal_writer_delay = 200ms           # how long those moments are
#wal_writer_flush_after = 1MB       # and how much of the log
#commit_delay = 0                   # microseconds that a commit waits for others to share its sync
#default_toast_compression = 'pglz'  # pglz, lz4, zstd, dense
#statement_timeout = 0              # in milliseconds, 0: none
#logging_collector = off             # on: the server log goes to files in log_directory, not to standard error
#log_directory = 'log'
#log_min_duration_statement = -1     # in milliseconds: statements that take longer are logged; 0: all, -1: none
#TimeZone = 'UTC'
#DateStyle = 'ISO, MDY'
";

/// The configuration files of a data directory, and the settings of the command line above them.
#[derive(Debug)]
pub struct ConfigFiles {
    /// The data directory, from the root.
    pub data: PathBuf,
    pub overrides: Vec<(String, String)>,
}

impl ConfigFiles {
    /// # Errors
    /// The current directory is unknown.
    pub fn new(data: &Path, overrides: Vec<(String, String)>) -> Result<ConfigFiles, String> {
        let data = std::path::absolute(data).map_err(|e| format!("{}: {e}", data.display()))?;
        Ok(ConfigFiles { data, overrides })
    }

    /// All assignments, and the errors in the files. A new data directory gets its melba.conf first.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn configured(&self) -> Result<Configured, String> {
        let main = self.data.join(MAIN);
        if !main.exists() {
            replace(&main, DEFAULT).map_err(|e| format!("could not write {}: {e}", main.display()))?;
        }
        Ok(self.read_all())
    }

    fn read_all(&self) -> Configured {
        let mut reader = ConfigReader::default();
        reader.file(&self.data.join(MAIN), true, None);
        reader.file(&self.data.join(AUTO), false, None);
        let mut configured = reader.configured;
        for name in ["data_directory", "config_file"] {
            if let Some(at) = configured.assignments.iter().position(|a| a.name.eq_ignore_ascii_case(name)) {
                let assignment = configured.assignments.remove(at);
                configured.errors.push(misplaced(&assignment));
            }
        }
        let of_command_line = Configured::of(&self.overrides, &Place::CommandLine);
        configured.assignments.extend(of_command_line.assignments);
        // The base of relative names of server-side files.
        let data = self.data.display().to_string();
        configured.assignments.push(Assignment::new("data_directory", &data, Place::Derived));
        memory::add_defaults(&mut configured.assignments);
        configured
    }

    fn replace_auto(&self, assignments: &[(String, String)]) -> std::io::Result<()> {
        let mut text = "# Written by ALTER SYSTEM: do not edit.\n".to_owned();
        for (name, value) in assignments {
            let value = value.replace('\\', "\\\\").replace('\'', "''").replace('\n', "\\n");
            text += &format!("{name} = '{value}'\n");
        }
        replace(&self.data.join(AUTO), &text)
    }
}

/// The command line says where the data is.
fn misplaced(assignment: &Assignment) -> FileError {
    let Place::File(file, line) = &assignment.place else { unreachable!("it was read from a file") };
    let what = format!("parameter \"{}\" cannot be set in a file", assignment.name);
    FileError {
        file: Arc::clone(file),
        line: *line,
        message: format!("{what}: file \"{file}\" line {line}"),
        what,
        name: Some((assignment.name.clone(), assignment.value.clone())),
    }
}

/// Reads files and their included files.
#[derive(Default)]
struct ConfigReader {
    configured: Configured,
    /// The files that are being read.
    open: Vec<PathBuf>,
}

impl ConfigReader {
    /// `from`: where it is included.
    fn file(&mut self, path: &Path, must_exist: bool, from: Option<(&Arc<str>, u32)>) {
        let shown: Arc<str> = path.display().to_string().into();
        let could_not_open = |why: &str| format!("could not open configuration file \"{shown}\": {why}");
        let failure = if self.open.iter().any(|open| open == path) {
            Some(format!("configuration file recursion in \"{shown}\""))
        } else if self.open.len() > DEPTH_MAX {
            Some(could_not_open("maximum nesting depth exceeded"))
        } else {
            None
        };
        if let Some(failure) = failure {
            return self.fail(from, &shown, failure);
        }
        match std::fs::read_to_string(path) {
            Ok(text) => {
                self.open.push(path.to_owned());
                self.text(&text, path, &shown);
                self.open.pop();
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && !must_exist => {}
            Err(e) => {
                let why = e.to_string();
                let why = why.split(" (os error").next().unwrap_or(&why);
                self.fail(from, &shown, could_not_open(why));
            }
        }
    }

    fn text(&mut self, text: &str, path: &Path, shown: &Arc<str>) {
        let beside = |name: &str| path.parent().unwrap_or(Path::new("")).join(name);
        for (number, line) in parse::lines(text) {
            let place = Some((shown, number));
            match line {
                Ok(ConfigLine::Setting { name, value }) => {
                    self.configured.assignments.push(Assignment::new(&name, &value, Place::File(Arc::clone(shown), number)));
                }
                Ok(ConfigLine::Include(name)) => self.file(&beside(&name), true, place),
                Ok(ConfigLine::IncludeIfExists(name)) => self.file(&beside(&name), false, place),
                Ok(ConfigLine::IncludeDirectory(name)) => self.directory(&beside(&name), place),
                Err(Malformed { near }) => {
                    let near = near.map_or("near end of line".to_owned(), |token| format!("near token \"{token}\""));
                    let message = format!("syntax error in file \"{shown}\" line {number}, {near}");
                    let what = "syntax error".to_owned();
                    let error = FileError { file: Arc::clone(shown), line: number, what, message, name: None };
                    self.configured.errors.push(error);
                }
            }
        }
    }

    /// Its files whose names end in .conf, by name.
    fn directory(&mut self, path: &Path, from: Option<(&Arc<str>, u32)>) {
        let entries = match std::fs::read_dir(path) {
            Ok(entries) => entries,
            Err(e) => {
                let why = e.to_string();
                let why = why.split(" (os error").next().unwrap_or(&why);
                return self.fail(from, "", format!("could not open configuration directory \"{}\": {why}", path.display()));
            }
        };
        let is_read = |path: &PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            name.ends_with(".conf") && !name.starts_with('.') && !path.is_dir()
        };
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_read).collect();
        files.sort();
        for file in files {
            self.file(&file, true, from);
        }
    }

    fn fail(&mut self, from: Option<(&Arc<str>, u32)>, file: &str, what: String) {
        let (file, line) = from.map_or_else(|| (file.into(), 0), |(file, line)| (Arc::clone(file), line));
        let message = match line {
            0 => what.clone(),
            line => format!("{what}, included from file \"{file}\" line {line}"),
        };
        self.configured.errors.push(FileError { file, line, what, message, name: None });
    }
}

/// Replaces a file's content so that a crash leaves the old file or the whole new one.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let new = path.with_extension("conf.new");
    let mut file = std::fs::File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    std::fs::File::open(path.parent().unwrap_or(path))?.sync_all()
}

impl Configuration for ConfigFiles {
    fn read(&self) -> Configured {
        self.read_all()
    }

    fn main_file(&self) -> String {
        self.data.join(MAIN).display().to_string()
    }

    fn read_auto(&self) -> melba_types::Result<Vec<(String, String)>> {
        let mut reader = ConfigReader::default();
        reader.file(&self.data.join(AUTO), false, None);
        let Configured { assignments, errors } = reader.configured;
        match errors.into_iter().next() {
            Some(error) => {
                let error = DbError::new(SqlState::CONFIG_FILE_ERROR, format!("could not parse contents of file \"{AUTO}\""))
                    .detail(error.message);
                Err(error)
            }
            None => Ok(assignments.into_iter().map(|a| (a.name, a.value)).collect()),
        }
    }

    fn write_auto(&self, assignments: &[(String, String)]) -> melba_types::Result<()> {
        self.replace_auto(assignments).map_err(|e| DbError::new(SqlState::IO_ERROR, format!("could not write \"{AUTO}\": {e}")))
    }
}

/// `name=value` of the command line.
pub fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, ConfigFiles) {
        let data = tempfile::tempdir().unwrap();
        let files = ConfigFiles { data: data.path().to_owned(), overrides: vec![("c".into(), "3".into())] };
        (data, files)
    }

    #[test]
    fn alter_system_settings_are_read_back() {
        let (_data, files) = folder();
        assert_eq!(files.read_auto().unwrap(), []);
        let written = [("a".to_owned(), "it's \\ 'x'\nand".to_owned()), ("b".to_owned(), String::new())];
        files.write_auto(&written).unwrap();
        assert_eq!(files.read_auto().unwrap(), written);
        let all = files.configured().unwrap();
        assert!(all.assignments.contains(&Assignment::new("c", "3", Place::CommandLine)));
    }

    #[test]
    fn included_files_are_read_in_place() {
        let (data, files) = folder();
        let write = |name: &str, text: &str| std::fs::write(data.path().join(name), text).unwrap();
        std::fs::create_dir(data.path().join("d")).unwrap();
        write("melba.conf", "work_mem = 1MB\ninclude 'more.conf'\ninclude_if_exists 'none.conf'\ninclude_dir = 'd'\nport=1\n");
        write("more.conf", "work_mem = 2MB\n");
        write("d/2.conf", "two = 2\n");
        write("d/1.conf", "one = 1\n");
        write("d/.hidden.conf", "hidden = 1\n");
        let read = files.read_all();
        assert_eq!(read.errors, []);
        let names: Vec<(&str, u32)> = read
            .assignments
            .iter()
            .filter_map(|a| match &a.place {
                Place::File(_, line) => Some((a.name.as_str(), *line)),
                _ => None,
            })
            .collect();
        assert_eq!(names, [("work_mem", 1), ("work_mem", 1), ("one", 1), ("two", 1), ("port", 5)]);
    }

    #[test]
    fn errors_have_file_and_line() {
        let (data, files) = folder();
        let write = |name: &str, text: &str| std::fs::write(data.path().join(name), text).unwrap();
        write("melba.conf", "work_mem 1 2\n\ninclude 'none.conf'\ninclude 'melba.conf'\ndata_directory = '/x'\n");
        let errors = files.read_all().errors;
        let main = data.path().join("melba.conf").display().to_string();
        let found: Vec<(u32, &str)> = errors.iter().map(|e| (e.line, e.message.as_str())).collect();
        assert_eq!(found[0], (1, format!("syntax error in file \"{main}\" line 1, near token \"2\"").as_str()));
        assert_eq!(found[1].0, 3);
        assert!(found[1].1.contains("none.conf\": No such file or directory"), "{}", found[1].1);
        assert_eq!(found[2].0, 4);
        assert!(found[2].1.starts_with("configuration file recursion"), "{}", found[2].1);
        assert_eq!(found[3].0, 5);
    }

    #[test]
    fn the_default_file_names_real_settings_with_their_defaults() {
        let text: String =
            DEFAULT.lines().filter(|l| l.starts_with('#') && !l.starts_with("# ")).map(|l| format!("{}\n", &l[1..])).collect();
        let read = parse::lines(&text).into_iter().map(|(_, line)| match line {
            Ok(ConfigLine::Setting { name, value }) => (name, value),
            other => panic!("{other:?}"),
        });
        let settings: Vec<(String, String)> = read.collect();
        assert!(settings.len() > 5);
        let with = melba_settings::Settings::server(&settings).unwrap();
        let without = melba_settings::Settings::server(&[]).unwrap();
        for (name, _) in settings {
            assert_eq!(with.get(&name), without.get(&name), "{name}");
        }
    }
}
