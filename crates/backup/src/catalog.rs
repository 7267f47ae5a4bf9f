//! Lists the backups, verifies them, and expires old ones.

use std::collections::HashSet;
use std::time::Duration;

use clap::Subcommand;
use jiff::Timestamp;

use crate::record::{Content, Part};
use crate::repository::Repository;
use crate::{Result, duration, shown};

#[derive(Subcommand, Debug)]
pub enum Look {
    /// Prints the backups, oldest first
    List {
        /// Where they are kept
        #[arg(long = "in", value_name = "PLACE")]
        place: String,
    },
    /// Reads everything that the backups consist of, and compares it with its checksums
    Verify {
        /// Where they are kept
        #[arg(long = "in", value_name = "PLACE")]
        place: String,
    },
    /// Removes backups that are older than this, but never a database's newest one
    Expire {
        /// Where they are kept
        #[arg(long = "in", value_name = "PLACE")]
        place: String,
        /// How old they may be: 12h, 7d
        #[arg(long, value_name = "TIME", value_parser = duration)]
        keep: Duration,
    },
}

pub fn look(look: &Look) -> Result<()> {
    match look {
        Look::List { place } => list(&Repository::open(place)?),
        Look::Verify { place } => verify(&Repository::open(place)?),
        Look::Expire { place, keep } => expire(&Repository::open(place)?, *keep),
    }
}

fn list(repository: &Repository) -> Result<()> {
    let backups = repository.backups()?;
    println!("{:19} {:16} {:>10} {:>8} {:>14} {:>14}  kept until", "backup", "database", "MB", "segments", "from", "to");
    for (database, time, backup) in backups {
        let parts = repository.parts(&database, &time)?;
        let last = parts.last().map_or(&backup.part, |(_, part)| part);
        let bytes: u64 = backup.part.segments.iter().map(|s| s.content.bytes).sum();
        let (megabytes, segments) = (bytes as f64 / 1e6, backup.part.segments.len());
        let (from, to) = (shown(backup.part.to), shown(last.to));
        println!("{time:19} {database:16} {megabytes:10.1} {segments:8} {from:>14} {to:>14}  {}", last.at);
    }
    Ok(())
}

/// The objects that a part of a backup names.
fn objects<'a>(database: &'a str, part: &'a Part) -> impl Iterator<Item = (String, Content)> + 'a {
    let segments = part.segments.iter().map(move |s| (format!("{database}/{}", s.key()), s.content));
    segments.chain(part.log.iter().map(move |l| (format!("{database}/{}", l.key()), l.content)))
}

fn verify(repository: &Repository) -> Result<()> {
    let (mut seen, mut damaged) = (HashSet::new(), 0);
    for (database, time, backup) in repository.backups()? {
        let parts = repository.parts(&database, &time)?;
        let manifest = (format!("{database}/backups/{time}.manifest"), backup.manifest);
        let all = backup.with(&parts).flat_map(|part| objects(&database, part)).chain([manifest]);
        for (key, content) in all.filter(|(key, _)| seen.insert(key.clone())) {
            let problem = match repository.get_pieces(&key, &mut |_| Ok(())) {
                Ok(is) if is == content => continue,
                Ok(_) => format!("{key} is damaged: it has another checksum than what was backed up"),
                Err(e) => e,
            };
            damaged += 1;
            println!("{time}: {problem}");
        }
    }
    match damaged {
        0 => {
            println!("{} objects are whole", seen.len());
            Ok(())
        }
        n => Err(format!("{n} of {} objects are damaged or missing", seen.len())),
    }
}

/// Removes older backups, and objects that no other backup names.
pub fn expire(repository: &Repository, keep: Duration) -> Result<()> {
    let all = repository.backups()?;
    let since = Timestamp::now().checked_sub(keep).map_err(|e| e.to_string())?;
    let is_newest = |at: usize| all[at + 1..].iter().all(|(database, ..)| *database != all[at].0);
    let is_old = |at: usize| all[at].2.ended.parse::<Timestamp>().is_ok_and(|ended| ended < since) && !is_newest(at);
    let (old, kept): (Vec<usize>, Vec<usize>) = (0..all.len()).partition(|at| is_old(*at));
    if old.is_empty() {
        return Ok(());
    }
    let named = |list: &[usize]| -> Result<HashSet<String>> {
        let mut keys = HashSet::new();
        for (database, time, backup) in list.iter().map(|at| &all[*at]) {
            let parts = repository.parts(database, time)?;
            keys.extend(backup.with(&parts).flat_map(|part| objects(database, part)).map(|(key, _)| key));
        }
        Ok(keys)
    };
    let (gone, needed) = (named(&old)?, named(&kept)?);
    for (database, time, _) in old.iter().map(|at| &all[*at]) {
        // First the object that makes it a backup: a partly removed one is no backup.
        repository.delete(&format!("{database}/backups/{time}.json"))?;
        for (key, _) in repository.parts(database, time)? {
            repository.delete(&key)?;
        }
        repository.delete(&format!("{database}/backups/{time}.manifest"))?;
        println!("{time}: removed");
    }
    gone.difference(&needed).try_for_each(|key| repository.delete(key))
}
