//! The thread that writes.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use melba_vfs::Clock;

use crate::LogRecord;
use crate::configuration::Configuration;
use crate::entry::Entry;
use crate::files::{LogFiles, without_number};
use crate::level::Level;
use crate::policy::Verbosity;
use crate::queue::{Destination, Queue, Work};
use crate::source::Source;
use crate::syslog::Connection;
use crate::time::Stamp;

/// The writer looks up this often, in case the clock was set.
const LOOK_EVERY: Duration = Duration::from_secs(60);

struct Writer {
    queue: Arc<Queue>,
    clock: Arc<dyn Clock>,
    configuration: Arc<Configuration>,
    /// `None`: standard error.
    files: Option<LogFiles>,
    syslog: Connection,
    source: Source,
    /// Messages that could not be written, and were not reported.
    lost: u64,
}

/// Opens the files and starts the thread, which lives as long as the process.
pub(crate) fn start(queue: Arc<Queue>, configuration: Arc<Configuration>, clock: Arc<dyn Clock>) -> Result<(), String> {
    let now = clock.now_micros();
    let files = match &configuration.files {
        Some(settings) => Some(LogFiles::open(&configuration, settings, now)?),
        None => None,
    };
    let source = Source::server("logger", std::process::id() as i32, now);
    let mut writer = Writer { queue, clock, configuration, files, syslog: Connection::default(), source, lost: 0 };
    let run = move || {
        loop {
            let patience = writer.patience();
            let work = writer.queue.take(patience);
            writer.serve(work);
        }
    };
    std::thread::Builder::new().name("logger".into()).spawn(run).map(drop).map_err(|e| format!("could not start a thread: {e}"))
}

impl Writer {
    fn patience(&self) -> Duration {
        let due = self.files.as_ref().and_then(LogFiles::due);
        let left = due.map(|due| Duration::from_micros((due - self.clock.now_micros()).max(0) as u64));
        left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY))
    }

    fn serve(&mut self, work: Work) {
        let now = self.clock.now_micros();
        if let Some(configuration) = work.configuration {
            self.configuration = Arc::clone(&configuration);
            if let (Some(files), Some(settings)) = (&mut self.files, &configuration.files) {
                let result = files.reconfigure(&configuration, settings, now);
                self.report(result);
            }
        }
        if let Some(files) = self.files.as_mut().filter(|_| work.rotate) {
            let result = files.request(now);
            self.report(result);
        }
        self.look(now);
        self.lost += work.lost;
        for (destination, piece) in work.pieces {
            self.write(destination, &piece);
            self.look(now);
        }
    }

    fn look(&mut self, now: i64) {
        if let Some(files) = &mut self.files {
            let result = files.look(now);
            self.report(result);
        }
    }

    fn write(&mut self, destination: Destination, piece: &[u8]) {
        if self.lost > 0 {
            let lost = self.lost;
            // It is lost again if this one is.
            self.lost = 0;
            self.say(Level::Warning, &format!("{lost} messages could not be written to the server log"));
            if self.lost > 0 {
                self.lost += lost;
                return;
            }
        }
        if let Err(e) = self.put(destination, piece) {
            if self.files.is_some() && self.lost == 0 {
                let _ = writeln!(std::io::stderr(), "could not write to log file: {}", without_number(&e));
            }
            self.lost += 1;
        }
    }

    fn put(&mut self, destination: Destination, piece: &[u8]) -> std::io::Result<()> {
        match &mut self.files {
            _ if destination == Destination::Syslog => self.syslog.send(piece),
            Some(files) => files.write(destination, piece),
            None => std::io::stderr().write_all(piece),
        }
    }

    fn report(&mut self, result: Result<(), String>) {
        if let Err(message) = result {
            self.say(Level::Log, &message);
            self.say(Level::Log, "disabling automatic rotation (use SIGHUP to re-enable)");
        }
    }

    /// Writes a message of the log's own.
    fn say(&mut self, level: Level, message: &str) {
        let zone = &self.configuration.zone;
        let entry = Entry::new(level, message);
        let record = LogRecord {
            source: &self.source,
            entry: &entry,
            verbosity: Verbosity::Default,
            stamp: Stamp::at(self.clock.now_micros(), zone),
            started: Stamp::at(self.source.started, zone),
        };
        let pieces = crate::pieces(&record, &self.configuration);
        for (destination, piece) in pieces {
            if self.put(destination, &piece).is_err() {
                self.lost += 1;
            }
        }
    }
}
