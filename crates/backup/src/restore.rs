//! A data directory, made from a backup.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;
use melba_dump::Progress;
use melba_engine::{EngineError, ManifestState};
use melba_types::Lsn;
use melba_vfs::{Directory, OsDirectory};

use crate::record::{Backup, Content, LogPiece, Part};
use crate::repository::Repository;
use crate::{Result, lsn, shown};

/// Which state of a database is wanted.
#[derive(Args, Debug, Default)]
pub struct Point {
    /// Of a backup: the commits up to this position in the log, as pg_current_wal_lsn() printed it
    #[arg(long, value_name = "LSN", value_parser = lsn, conflicts_with = "to_time")]
    to_lsn: Option<u64>,
    /// Of a backup that was followed: the state at this time, such as 2026-11-25T14:30:00Z
    #[arg(long, value_name = "TIME")]
    to_time: Option<Timestamp>,
    /// Which backup, as `melba backup list` names it; without it the newest that fits
    #[arg(long, value_name = "BACKUP")]
    backup: Option<String>,
}

/// Makes a new data directory `to` of a backup that is kept at `place`.
pub fn restore(place: &str, to: &Path, point: &Point) -> Result<()> {
    let repository = Repository::open(place)?;
    if std::fs::read_dir(to).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(format!("{} is not empty", to.display()));
    }
    let chosen = Chosen::find(&repository, place, point)?;
    let failed = |e: std::io::Error| format!("{}: {e}", to.display());
    std::fs::create_dir_all(to).map_err(failed)?;
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o700)).map_err(failed)?;
    let directory: Arc<dyn Directory> = Arc::new(OsDirectory::open(to).map_err(failed)?);
    chosen.segments(&repository, &directory)?;
    let end = chosen.log_and_manifest(&repository, &directory, point.to_lsn)?;
    for (name, text) in &chosen.backup.configuration {
        std::fs::write(to.join(name), text).map_err(failed)?;
    }
    println!("{}: the database of backup {} up to {}", to.display(), chosen.time, shown(end));
    Ok(())
}

/// A backup, and the wanted part of its later additions.
struct Chosen {
    database: String,
    time: String,
    backup: Backup,
    parts: Vec<Part>,
}

impl Chosen {
    fn find(repository: &Repository, place: &str, point: &Point) -> Result<Chosen> {
        let wanted = |time: &str| point.backup.as_ref().is_none_or(|name| name == time);
        let is_early = |backup: &Backup| {
            let at: Option<Timestamp> = backup.part.at.parse().ok();
            point.to_lsn.is_none_or(|to| backup.part.to <= to) && point.to_time.is_none_or(|to| at.is_some_and(|at| at <= to))
        };
        let fits = |(_, time, backup): &(String, String, Backup)| wanted(time) && is_early(backup);
        let Some((database, time, backup)) = repository.backups()?.into_iter().rfind(fits) else {
            return Err(format!("{place} has no backup that fits: `melba backup list --in {place}` shows what there is"));
        };
        let mut parts: Vec<Part> = Vec::new();
        for (_, part) in repository.parts(&database, &time)? {
            let begins = parts.last().map_or(backup.part.to, |last| last.to);
            let is_late = point.to_time.is_some_and(|to| part.at.parse::<Timestamp>().is_ok_and(|at| at > to));
            // The last one may be wanted in part.
            if part.from != begins || is_late || point.to_lsn.is_some_and(|to| begins >= to) {
                break;
            }
            parts.push(part);
        }
        Ok(Chosen { database, time, backup, parts })
    }

    fn all(&self) -> impl Iterator<Item = &Part> {
        std::iter::once(&self.backup.part).chain(&self.parts)
    }

    fn segments(&self, repository: &Repository, directory: &Arc<dyn Directory>) -> Result<()> {
        let folder = directory.subdirectory("segments").map_err(|e| format!("segments: {e}"))?;
        let segments = || self.all().flat_map(|part| &part.segments);
        let progress = Progress::new("segments", segments().map(|s| s.content.bytes).sum());
        for segment in segments() {
            let name = format!("{:016x}.seg", segment.file);
            let failed = |e: std::io::Error| format!("{name}: {e}");
            let file = folder.create(&name).map_err(failed)?;
            let mut offset = 0;
            let key = format!("{}/{}", self.database, segment.key());
            let is = repository.get_pieces(&key, &mut |piece| {
                file.write_at(piece, offset).map_err(failed)?;
                offset += piece.len() as u64;
                progress.add(piece.len());
                Ok(())
            })?;
            if is != segment.content {
                return Err(format!("{key} is damaged: it has another checksum than what was backed up"));
            }
            file.sync().map_err(failed)?;
        }
        folder.sync_names().map_err(|e| format!("segments: {e}"))
    }

    fn log_and_manifest(&self, repository: &Repository, directory: &Arc<dyn Directory>, until: Option<u64>) -> Result<u64> {
        let key = format!("{}/backups/{}.manifest", self.database, self.time);
        let manifest = checked(repository, &key, self.backup.manifest)?;
        let state = ManifestState::from_bytes(&manifest).map_err(|e| format!("{key}: {e}"))?;
        let read = |piece: &LogPiece| {
            let key = format!("{}/{}", self.database, piece.key());
            checked(repository, &key, piece.content).map_err(|what| EngineError::Corrupt { what })
        };
        let mut log = self.all().flat_map(|part| &part.log).map(read);
        let least = Lsn(self.backup.part.to);
        let number = Timestamp::now().as_microsecond() as u64;
        let restored = melba_engine::restore(directory, state, &mut log, (least, until.map(Lsn)), number);
        restored.map(|restored| restored.end.0).map_err(|e| e.to_string())
    }
}

/// An object that is as it was written.
pub fn checked(repository: &Repository, key: &str, content: Content) -> Result<Vec<u8>> {
    let bytes = repository.get(key)?;
    match Content::of(&bytes) == content {
        true => Ok(bytes),
        false => Err(format!("{key} is damaged: it has another checksum than what was backed up")),
    }
}
