//! Takes a backup, and follows the server after it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use clap::Args;
use jiff::Timestamp;
use melba_dump::Progress;

use crate::catalog::expire;
use crate::record::{Backup, Content, FORMAT, LogPiece, Part, Segment, segment_key};
use crate::repository::Repository;
use crate::server::{BackupFile, Server};
use crate::{Result, duration, shown};

/// The files of the data directory that people write.
const CONFIGURATION: [&str; 4] = ["melba.conf", "melba.auto.conf", "pg_hba.conf", "pg_ident.conf"];
/// An object of the log is about as large.
const LOG_BYTES: u64 = 16 << 20;

#[derive(Args, Debug)]
pub struct Options {
    /// The server: postgres://USER@HOST:PORT/DATABASE, as a superuser
    #[arg(long = "from", value_name = "URL", default_value = "postgres://postgres@127.0.0.1:5432/postgres")]
    from: String,
    /// Where backups are kept: a folder, or s3://BUCKET/FOLDER, gs://, azure:// (with AWS_REGION, AWS_ENDPOINT and their kin)
    #[arg(long, value_name = "PLACE")]
    to: String,
    /// Removes backups that are older, but never the newest one
    #[arg(long, value_name = "TIME", value_parser = duration)]
    keep: Option<Duration>,
    /// Sends no more than this many megabytes a second
    #[arg(long, value_name = "MB/s")]
    rate: Option<u32>,
    /// Goes on: adds what was committed every so often, until it is interrupted
    #[arg(long, value_name = "TIME", value_parser = duration)]
    follow: Option<Duration>,
    /// While following: another backup every so often, which gives space back to the server
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1h", requires = "follow")]
    renew: Duration,
}

/// Takes a backup; prints its properties.
pub fn backup(options: &Options) -> Result<()> {
    let repository = Repository::open(&options.to)?;
    let mut made = Taken::take(options, &repository)?;
    made.tell();
    remove_old(options, &repository)?;
    let Some(every) = options.follow else { return Ok(()) };
    let mut since = Instant::now();
    loop {
        std::thread::sleep(every);
        if since.elapsed() >= options.renew {
            // The one before holds its files until there is another.
            made = Taken::take(options, &repository)?;
            made.tell();
            remove_old(options, &repository)?;
            since = Instant::now();
        } else {
            made.follow(&repository)?;
        }
    }
}

fn remove_old(options: &Options, repository: &Repository) -> Result<()> {
    match options.keep {
        Some(keep) => expire(repository, keep),
        None => Ok(()),
    }
}

/// A backup, and the session that continues it.
struct Taken {
    server: Server,
    sender: Sender,
    time: String,
    ends_at: u64,
    /// Bytes of the database, and of them those that were sent.
    bytes: u64,
}

/// The state of sending.
struct Sender {
    /// The folder of the database.
    database: String,
    /// Segments that the repository has, with their checksums.
    known: HashMap<String, Content>,
    throttle: Throttle,
    sent_bytes: u64,
}

impl Taken {
    fn take(options: &Options, repository: &Repository) -> Result<Taken> {
        let began = Timestamp::now();
        let mut server = Server::begin(&options.from)?;
        let database = format!("{:016x}", server.database);
        let time = began.strftime("%Y%m%dT%H%M%S%3fZ").to_string();
        let known = known_segments(repository, &database)?;
        let mut sender = Sender { database, known, throttle: Throttle::new(options.rate), sent_bytes: 0 };
        let files = server.files()?;
        let bytes = files.iter().map(|f| f.bytes).sum();
        let segments = sender.segments(&mut server, repository, &files)?;
        let (from, to) = (server.replay, server.stop);
        let log = sender.log(&mut server, repository, from, to)?;
        let mut configuration = Vec::new();
        for name in CONFIGURATION {
            configuration.extend(server.configuration(name)?.map(|text| (name.to_owned(), text)));
        }
        let key = |kind: &str| format!("{}/backups/{time}.{kind}", sender.database);
        let manifest = repository.put(&key("manifest"), server.manifest.clone())?;
        let part = Part { at: began.to_string(), from, to, log, segments };
        let (began, ended) = (began.to_string(), Timestamp::now().to_string());
        let version = server.version.clone();
        let record = Backup { format: FORMAT, server: version, began, ended, manifest, replay: from, part, configuration };
        repository.put_json(&key("json"), &record)?;
        Ok(Taken { server, sender, time, ends_at: to, bytes })
    }

    fn tell(&self) {
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let (all, sent) = (megabytes(self.bytes), megabytes(self.sender.sent_bytes));
        println!("{}: {all:.1} MB, of which {sent:.1} MB were sent; up to {}", self.time, shown(self.ends_at));
    }

    /// Adds the commits since.
    fn follow(&mut self, repository: &Repository) -> Result<()> {
        let from = self.ends_at;
        let to = self.server.advance()?;
        let at = Timestamp::now().to_string();
        if to == from {
            return Ok(());
        }
        let known = &self.sender.known;
        let is_new = |f: &BackupFile| !known.contains_key(&segment_key(f.number, f.footer));
        let files: Vec<BackupFile> = self.server.files()?.into_iter().filter(is_new).collect();
        let segments = self.sender.segments(&mut self.server, repository, &files)?;
        let log = self.sender.log(&mut self.server, repository, from, to)?;
        let key = format!("{}/backups/{}/{to:016x}.json", self.sender.database, self.time);
        repository.put_json(&key, &Part { at, from, to, log, segments })?;
        self.ends_at = to;
        Ok(())
    }
}

/// The segments of a database's backups that exist with the right size.
fn known_segments(repository: &Repository, database: &str) -> Result<HashMap<String, Content>> {
    let listed: HashMap<String, u64> = repository.list(&format!("{database}/segments"))?.into_iter().collect();
    let mut known = HashMap::new();
    for (time, backup) in repository.backups_of(database)? {
        let parts = repository.parts(database, &time)?;
        for segment in backup.with(&parts).flat_map(|part| &part.segments) {
            let key = segment.key();
            if listed.get(&format!("{database}/{key}")) == Some(&segment.content.bytes) {
                known.insert(key, segment.content);
            }
        }
    }
    Ok(known)
}

impl Sender {
    fn segments(&mut self, server: &mut Server, repository: &Repository, files: &[BackupFile]) -> Result<Vec<Segment>> {
        let missing = |f: &&BackupFile| !self.known.contains_key(&segment_key(f.number, f.footer));
        let progress = Progress::new("segments", files.iter().filter(missing).map(|f| f.bytes).sum());
        let mut segments = Vec::with_capacity(files.len());
        for file in files {
            let key = segment_key(file.number, file.footer);
            let content = match self.known.get(&key) {
                Some(content) => *content,
                None => {
                    let content = self.segment(server, repository, file, &progress)?;
                    self.known.insert(key, content);
                    content
                }
            };
            segments.push(Segment { file: file.number, footer: file.footer, content });
        }
        Ok(segments)
    }

    fn segment(
        &mut self,
        server: &mut Server,
        repository: &Repository,
        file: &BackupFile,
        progress: &Progress,
    ) -> Result<Content> {
        let key = format!("{}/{}", self.database, segment_key(file.number, file.footer));
        let (mut offset, throttle) = (0, &mut self.throttle);
        let content = repository.put_pieces(&key, &mut || {
            let piece = server.file_piece(file.number, offset)?;
            offset += piece.len() as u64;
            throttle.wait_for(piece.len());
            progress.add(piece.len());
            Ok(Some(piece).filter(|piece| !piece.is_empty()))
        })?;
        self.sent_bytes += content.bytes;
        match content.bytes == file.bytes {
            true => Ok(content),
            false => Err(format!("segment {:016x} has {} bytes, and not {}", file.number, content.bytes, file.bytes)),
        }
    }

    fn log(&mut self, server: &mut Server, repository: &Repository, from: u64, to: u64) -> Result<Vec<LogPiece>> {
        let progress = Progress::new("log", to - from);
        let (mut pieces, mut at) = (Vec::new(), from);
        while at < to {
            let mut bytes = Vec::new();
            while at + (bytes.len() as u64) < to && (bytes.len() as u64) < LOG_BYTES {
                let piece = server.log_piece(at + bytes.len() as u64, to)?;
                if piece.is_empty() {
                    return Err(format!("the log ends before {}", shown(to)));
                }
                self.throttle.wait_for(piece.len());
                progress.add(piece.len());
                bytes.extend(piece);
            }
            let mut piece = LogPiece { from: at, to: at + bytes.len() as u64, content: Content::of(&bytes) };
            at = piece.to;
            self.sent_bytes += piece.content.bytes;
            piece.content = repository.put(&format!("{}/{}", self.database, piece.key()), bytes)?;
            pieces.push(piece);
        }
        Ok(pieces)
    }
}

/// Limits the rate to this many bytes a second.
struct Throttle {
    bytes_a_second: Option<f64>,
    since: Instant,
    bytes: f64,
}

impl Throttle {
    fn new(megabytes_a_second: Option<u32>) -> Throttle {
        let bytes_a_second = megabytes_a_second.filter(|rate| *rate > 0).map(|rate| f64::from(rate) * 1e6);
        Throttle { bytes_a_second, since: Instant::now(), bytes: 0.0 }
    }

    fn wait_for(&mut self, bytes: usize) {
        let Some(rate) = self.bytes_a_second else { return };
        self.bytes += bytes as f64;
        let due = Duration::from_secs_f64(self.bytes / rate);
        std::thread::sleep(due.saturating_sub(self.since.elapsed()));
    }
}
