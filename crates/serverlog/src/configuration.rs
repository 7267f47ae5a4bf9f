//! The destination of the server's log and the prefix of its lines.

use std::path::{Path, PathBuf};

use melba_settings::Settings;
use melba_types::timezone::Zone;

use crate::level::Level;
use crate::policy::Verbosity;
use crate::syslog::SystemLog;

/// log_destination.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Destinations {
    pub stderr: bool,
    pub csv: bool,
    pub json: bool,
    pub syslog: bool,
}

/// The collector's settings.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub data_directory: PathBuf,
    /// log_directory as it was written.
    pub directory: String,
    pub pattern: String,
    pub mode: u32,
    /// Minutes; 0: no limit.
    pub rotation_age: i64,
    /// Bytes; 0: no limit.
    pub rotation_size: u64,
    pub truncate: bool,
}

impl Files {
    /// A path as the log's settings make it, which may count from the data directory.
    pub fn resolve(&self, path: &Path) -> PathBuf {
        self.data_directory.join(path)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Configuration {
    pub destinations: Destinations,
    pub prefix: String,
    pub zone: Zone,
    pub min_messages: Level,
    pub verbosity: Verbosity,
    pub syslog: SystemLog,
    /// `None`: no collector, everything is written to standard error.
    pub files: Option<Files>,
}

impl Default for Configuration {
    fn default() -> Configuration {
        Configuration {
            destinations: Destinations { stderr: true, ..Destinations::default() },
            prefix: String::new(),
            zone: Zone::utc(),
            min_messages: Level::default(),
            verbosity: Verbosity::default(),
            syslog: SystemLog::default(),
            files: None,
        }
    }
}

impl Configuration {
    pub fn of(settings: &Settings) -> Configuration {
        let destination = settings.get("log_destination").as_text().to_ascii_lowercase();
        let has = |name: &str| destination.split(',').any(|word| word.trim().trim_matches('"') == name);
        let number = |name| settings.get(name).as_integer().max(0);
        let data_directory = PathBuf::from(settings.get("data_directory").as_text());
        let collects = settings.get("logging_collector").as_bool() && !data_directory.as_os_str().is_empty();
        Configuration {
            destinations: Destinations { stderr: has("stderr"), csv: has("csvlog"), json: has("jsonlog"), syslog: has("syslog") },
            prefix: settings.get("log_line_prefix").as_text().to_owned(),
            zone: Zone::lookup(settings.get("log_timezone").as_text()).unwrap_or_else(Zone::utc),
            min_messages: Level::by_name(settings.get("log_min_messages").as_text()).unwrap_or_default(),
            verbosity: Verbosity::of(settings),
            syslog: SystemLog::of(settings),
            files: collects.then(|| Files {
                data_directory,
                directory: settings.get("log_directory").as_text().to_owned(),
                pattern: settings.get("log_filename").as_text().to_owned(),
                mode: number("log_file_mode") as u32 & 0o777,
                rotation_age: number("log_rotation_age"),
                rotation_size: (number("log_rotation_size") as u64) << 10,
                truncate: settings.get("log_truncate_on_rotation").as_bool(),
            }),
        }
    }
}
