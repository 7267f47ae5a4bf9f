//! The collector's files: their names, when a new one begins, and current_logfiles, which says where they are.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Result, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use melba_types::timezone::Zone;

use crate::configuration::{Configuration, Destinations, Files};
use crate::queue::Destination;
use crate::time::{next_rotation, strftime};

/// The file that names the current ones, in the data directory.
const CURRENT: &str = "current_logfiles";

/// A file that is written.
struct Open {
    file: File,
    /// As the settings make it: relative to the data directory if log_directory is.
    path: String,
    bytes: u64,
}

/// The files of a server.
pub(crate) struct LogFiles {
    settings: Files,
    destinations: Destinations,
    zone: Zone,
    open: [Option<Open>; 3],
    /// When files of log_rotation_age end, in microseconds since 2000.
    rotation_due: Option<i64>,
    /// A new file could not be opened: no more are tried before the settings are read again.
    is_disabled: bool,
}

/// Why files are rotated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    Age,
    Size(Destination),
    Request,
}

const ALL: [Destination; 3] = [Destination::Stderr, Destination::Csv, Destination::Json];

impl LogFiles {
    /// # Errors
    /// The first file could not be opened.
    pub fn open(configuration: &Configuration, settings: &Files, now: i64) -> std::result::Result<LogFiles, String> {
        let mut files = LogFiles {
            settings: settings.clone(),
            destinations: configuration.destinations,
            zone: configuration.zone.clone(),
            open: [None, None, None],
            rotation_due: None,
            is_disabled: false,
        };
        // Opening the file reports the error, because it cannot be created either.
        let directory = settings.resolve(Path::new(&settings.directory));
        let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        files.rotate(Reason::Request, now, now)?;
        Ok(files)
    }

    /// Takes over new settings; files with other names begin at once.
    pub fn reconfigure(&mut self, configuration: &Configuration, settings: &Files, now: i64) -> std::result::Result<(), String> {
        let moved = (&settings.directory, &settings.pattern) != (&self.settings.directory, &self.settings.pattern);
        self.settings = settings.clone();
        self.destinations = configuration.destinations;
        self.zone = configuration.zone.clone();
        let is_missing = ALL.iter().any(|d| self.is_wanted(*d) != self.open[*d as usize].is_some());
        let was_disabled = std::mem::take(&mut self.is_disabled);
        self.plan(now);
        let directory = settings.resolve(Path::new(&settings.directory));
        let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        if moved || is_missing || was_disabled { self.rotate(Reason::Request, now, now) } else { Ok(()) }
    }

    /// stderr's file always exists, for messages without another place.
    fn is_wanted(&self, destination: Destination) -> bool {
        match destination {
            Destination::Stderr => true,
            Destination::Csv => self.destinations.csv,
            Destination::Json => self.destinations.json,
            Destination::Syslog => false,
        }
    }

    fn plan(&mut self, now: i64) {
        let age = self.settings.rotation_age;
        self.rotation_due = (age > 0).then(|| next_rotation(now, age, &self.zone));
    }

    /// When there is work to do without a new message.
    pub fn due(&self) -> Option<i64> {
        self.rotation_due.filter(|_| !self.is_disabled)
    }

    /// Begins new files where it is time to.
    pub fn look(&mut self, now: i64) -> std::result::Result<(), String> {
        if self.is_disabled {
            return Ok(());
        }
        if let Some(due) = self.rotation_due.filter(|due| *due <= now) {
            return self.rotate(Reason::Age, due, now);
        }
        let limit = self.settings.rotation_size;
        let is_full = |open: &Option<Open>| limit > 0 && open.as_ref().is_some_and(|open| open.bytes >= limit);
        match ALL.into_iter().find(|d| is_full(&self.open[*d as usize])) {
            Some(destination) => self.rotate(Reason::Size(destination), now, now),
            None => Ok(()),
        }
    }

    pub fn request(&mut self, now: i64) -> std::result::Result<(), String> {
        self.rotate(Reason::Request, now, now)
    }

    /// `named_for`: the time in the files' names.
    fn rotate(&mut self, reason: Reason, named_for: i64, now: i64) -> std::result::Result<(), String> {
        for destination in ALL {
            let at = destination as usize;
            if !self.is_wanted(destination) {
                self.open[at] = None;
                continue;
            }
            if matches!(reason, Reason::Size(full) if full != destination) {
                continue;
            }
            let path = self.name(destination, named_for);
            // Only a file that rotation by age has ended is overwritten, and never the file that was written just now.
            let is_other = self.open[at].as_ref().is_some_and(|open| open.path != path);
            let truncate = self.settings.truncate && reason == Reason::Age && is_other;
            match self.open_file(&path, truncate) {
                Ok(open) => self.open[at] = Some(open),
                Err(e) => {
                    self.is_disabled = self.open[at].is_some();
                    let path = self.settings.resolve(Path::new(&path));
                    return Err(format!("could not open log file \"{}\": {}", path.display(), without_number(&e)));
                }
            }
        }
        self.plan(now);
        self.write_current().map_err(|e| format!("could not write file \"{CURRENT}\": {}", without_number(&e)))
    }

    fn name(&self, destination: Destination, time: i64) -> String {
        let mut name = strftime(&self.settings.pattern, time, &self.zone);
        let suffix = match destination {
            Destination::Stderr | Destination::Syslog => "",
            Destination::Csv => ".csv",
            Destination::Json => ".json",
        };
        if !suffix.is_empty() {
            name.truncate(name.strip_suffix(".log").map_or(name.len(), str::len));
            name.push_str(suffix);
        }
        format!("{}/{name}", self.settings.directory)
    }

    fn open_file(&self, path: &str, truncate: bool) -> Result<Open> {
        let mut options = OpenOptions::new();
        options.create(true).mode(self.settings.mode | 0o200);
        if truncate {
            options.write(true).truncate(true)
        } else {
            options.append(true)
        };
        let file = options.open(self.settings.resolve(Path::new(path)))?;
        let bytes = file.metadata()?.len();
        Ok(Open { file, path: path.to_owned(), bytes })
    }

    /// # Errors
    /// The system's, as of a full disk.
    pub fn write(&mut self, destination: Destination, piece: &[u8]) -> Result<()> {
        // A format that was switched off meanwhile has no file any more.
        let Some(open) = &mut self.open[destination as usize] else { return Ok(()) };
        open.file.write_all(piece)?;
        open.bytes += piece.len() as u64;
        Ok(())
    }

    /// Under another name first, so that readers find the old content or the new one.
    fn write_current(&self) -> Result<()> {
        let path = self.settings.data_directory.join(CURRENT);
        let mut text = String::new();
        for (destination, name, is_listed) in [
            (Destination::Stderr, "stderr", self.destinations.stderr),
            (Destination::Csv, "csvlog", true),
            (Destination::Json, "jsonlog", true),
        ] {
            if let Some(open) = self.open[destination as usize].as_ref().filter(|_| is_listed) {
                text.push_str(&format!("{name} {}\n", open.path));
            }
        }
        let new = path.with_extension("tmp");
        std::fs::write(&new, text)?;
        std::fs::rename(new, path)
    }
}

/// The system's text of an error, without Rust's "(os error 28)".
pub(crate) fn without_number(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// No collector: no file is current any more.
pub(crate) fn forget_current(data_directory: &Path) {
    if !data_directory.as_os_str().is_empty() {
        // It is usually missing.
        let _ = std::fs::remove_file(data_directory.join(CURRENT));
    }
}

pub(crate) fn current(data_directory: &Path, format: Option<&str>) -> Result<Option<String>> {
    let path: PathBuf = data_directory.join(CURRENT);
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let found =
        text.lines().filter_map(|line| line.split_once(' ')).find(|(name, _)| format.is_none_or(|wanted| wanted == *name));
    Ok(found.map(|(_, path)| path.to_owned()))
}
