//! Files: when nothing is in progress, the folder holds the files that the manifest names, whole, and no others.

use std::sync::Arc;

use melba_engine::Engine;
use melba_vfs::Directory;

use super::Check;
use crate::ensure;

/// Log files beside those that hold records after the last checkpoint: the current one and spares.
const LOG_FILES_MAX: usize = 8;

/// To be called after a checkpoint and all merges, without open transactions.
pub fn check(directory: &Arc<dyn Directory>) -> Check {
    let list = |folder: &str| directory.subdirectory(folder).and_then(|d| d.list()).map_err(|e| format!("listing {folder}: {e}"));
    let segments = list("segments")?;
    let (named, problems) = Engine::verify(directory).map_err(|e| format!("verify: {e}"))?;
    ensure!(problems.is_empty(), "verify found {}", problems.join("; "));
    ensure!(segments.len() == named, "the manifest names {named} files, there are {}", segments.join(", "));
    let log = list("wal")?;
    ensure!(log.len() <= LOG_FILES_MAX, "log files pile up: {}", log.join(", "));
    let root = directory.list().map_err(|e| e.to_string())?;
    ensure!(root.iter().all(|n| ["MANIFEST", "reserve"].contains(&n.as_str())), "files are left: {}", root.join(", "));
    Ok(())
}
