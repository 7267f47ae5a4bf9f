//! `melba check`: checks whether a data directory is sound. Nothing is written, so it works when the disk is full, too.

use std::path::Path;
use std::sync::Arc;

use melba_engine::{Engine, RecoveryProgress};
use melba_settings::configuration::Configured;
use melba_vfs::{Directory, OverlayDirectory};

use crate::serve::{fit_open_files, lock, open_cluster, open_directory};

/// Every checksum of the files, then the catalogs, then indexes against their tables. One line per damage.
pub fn check(data: &Path) -> Result<(), String> {
    if !data.is_dir() {
        return Err(format!("{} is no directory", data.display()));
    }
    let directory = open_directory(data)?;
    let _lock = lock(&*directory, data)?;
    let directory = OverlayDirectory::new(directory) as Arc<dyn Directory>;
    let (segments, mut damages) = Engine::verify(&directory).map_err(|e| format!("{}: {e}", data.display()))?;
    let databases = match damages.is_empty() {
        true => check_content(Arc::clone(&directory), &mut damages).unwrap_or_else(|e| {
            damages.push(format!("the catalogs cannot be read: {e}"));
            0
        }),
        false => 0,
    };
    for damage in &damages {
        println!("{}: {damage}", data.display());
    }
    tell_cold(&directory, data)?;
    match damages.len() {
        0 => {
            println!("{}: {databases} database(s) in {segments} segment(s), no errors found", data.display());
            Ok(())
        }
        n => Err(format!("{n} error(s) found in {}", data.display())),
    }
}

/// Says how much is in stores: whether it is still there nobody knows.
pub(crate) fn tell_cold(directory: &Arc<dyn Directory>, data: &Path) -> Result<(), String> {
    match Engine::count_cold_segments(directory).map_err(|e| format!("{}: {e}", data.display()))? {
        0 => {}
        n => println!("{}: {n} segment(s) are in stores and were not looked at", data.display()),
    }
    Ok(())
}

/// Returns how many databases there are. The log of the last server is recovered in memory.
fn check_content(directory: Arc<dyn Directory>, damages: &mut Vec<String>) -> Result<usize, String> {
    let (settings, open_files_max) = fit_open_files(&Configured::default())?;
    let cluster = open_cluster(directory, &settings, open_files_max, &RecoveryProgress::default())?;
    damages.extend(cluster.check_indexes());
    Ok(cluster.catalogs().databases().count())
}
