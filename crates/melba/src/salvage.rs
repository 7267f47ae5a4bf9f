//! `melba salvage`: copies the readable data of a damaged data directory to a new one. The damaged one is left as it is.

use std::path::Path;
use std::sync::Arc;

use melba_engine::{Engine, RecoveryProgress};
use melba_vfs::{Directory, OverlayDirectory};

use melba_settings::configuration::Configured;

use crate::check::tell_cold;
use crate::serve::{fit_open_files, lock, open_cluster, open_directory, open_engine};

/// Files of a data directory that belong to a running server.
const NOT_COPIED: [&str; 4] = ["engine.lock", "server.lock", "reserve", "MANIFEST.new"];
const FOLDERS: [&str; 2] = ["segments", "wal"];
/// A file is copied in pieces.
const PIECE_BYTES: u64 = 1 << 20;

/// Creates `to`, which is empty or missing, from the readable data of `from`. One line per loss.
pub fn salvage(from: &Path, to: &Path) -> Result<(), String> {
    if !from.is_dir() {
        return Err(format!("{} is no directory", from.display()));
    }
    if std::fs::read_dir(to).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(format!("{} is not empty", to.display()));
    }
    let damaged = open_directory(from)?;
    let _lock = lock(&*damaged, from)?;
    // The directory below it stays unchanged.
    let overlay = OverlayDirectory::new(damaged) as Arc<dyn Directory>;
    tell_cold(&overlay, from)?;
    let mut losses = Engine::salvage(&overlay).map_err(|e| format!("{}: {e}", from.display()))?;
    let (settings, open_files_max) = fit_open_files(&Configured::default())?;
    let engine = open_engine(Arc::clone(&overlay), &settings, open_files_max, &RecoveryProgress::default())?;
    let dangling = engine.drop_dangling_entries().map_err(|e| e.to_string())?;
    if dangling > 0 {
        losses.push(format!("{dangling} index entries of rows that are lost were removed"));
    }
    engine.shutdown().map_err(|e| e.to_string())?;
    drop(engine);
    let copy = open_directory(to)?;
    copy_all(&*overlay, &*copy).map_err(|e| format!("could not copy to {}: {e}", to.display()))?;
    match open_cluster(overlay, &settings, open_files_max, &RecoveryProgress::default()) {
        Ok(cluster) => {
            let incomplete = cluster.check_indexes();
            losses.extend(incomplete.into_iter().map(|problem| format!("{problem}: REINDEX the table")));
        }
        Err(e) => losses.push(format!("the catalogs cannot be read: {e}")),
    }
    for loss in &losses {
        println!("{}: lost: {loss}", from.display());
    }
    println!("{}: what can be read of {} ({} loss(es))", to.display(), from.display(), losses.len());
    Ok(())
}

fn copy_all(from: &dyn Directory, to: &dyn Directory) -> std::io::Result<()> {
    for name in from.list()?.iter().filter(|name| !NOT_COPIED.contains(&name.as_str())) {
        copy(from, to, name)?;
    }
    for folder in FOLDERS {
        let (from, to) = (from.subdirectory(folder)?, to.subdirectory(folder)?);
        for name in from.list()? {
            copy(&*from, &*to, &name)?;
        }
        to.sync_names()?;
    }
    to.sync_names()
}

fn copy(from: &dyn Directory, to: &dyn Directory, name: &str) -> std::io::Result<()> {
    let (source, target) = (from.open(name)?, to.create(name)?);
    let len = source.len()?;
    for at in (0..len).step_by(PIECE_BYTES as usize) {
        let mut piece = vec![0; PIECE_BYTES.min(len - at) as usize];
        source.read_at(&mut piece, at)?;
        target.write_at(&piece, at)?;
    }
    target.sync()
}
