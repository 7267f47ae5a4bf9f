//! The data directory's owner and permissions, by PostgreSQL's rules and in its wording.
//!
//! Files are their owner's alone (0600), or may be read by the directory's group as well (0640) when the directory may be (0750):
//! the process's umask enforces that for every file that the server creates.

use std::fs::{DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// Rights that others may not have: the group may read, others may do nothing.
const FORBIDDEN: u32 = 0o027;
const OWNER: u32 = 0o700;
const OWNER_AND_GROUP: u32 = 0o750;

/// Creates the directory, or checks an existing one; returns its mode. Files of this process get permissions accordingly from now on.
///
/// # Errors
/// It belongs to another account, or others may access it.
pub fn prepare(data: &Path) -> Result<u32, String> {
    set_umask(!OWNER);
    let shown = data.display();
    let unreadable = |e: std::io::Error| format!("could not read permissions of directory \"{shown}\": {e}");
    match std::fs::metadata(data) {
        Ok(_) => {}
        Err(e) if e.kind() == ErrorKind::NotFound => {
            // A path that is mistyped would become an empty database.
            let parent = data.parent().filter(|parent| !parent.as_os_str().is_empty()).filter(|parent| !parent.is_dir());
            if let Some(parent) = parent {
                return Err(format!(
                    "could not create directory \"{shown}\": there is no directory \"{}\"\n  \
                     hint: Make it first, if the path is what you mean.",
                    parent.display()
                ));
            }
            let made = DirBuilder::new().mode(OWNER).create(data);
            made.map_err(|e| format!("could not create directory \"{shown}\": {e}"))?;
        }
        Err(e) => return Err(unreadable(e)),
    }
    let found = std::fs::metadata(data).map_err(unreadable)?;
    if !found.is_dir() {
        return Err(format!("specified data directory \"{shown}\" is not a directory"));
    }
    if found.uid() != own_account() {
        return Err(format!(
            "data directory \"{shown}\" has wrong ownership\n  hint: The server must be started by the user that owns the data directory."
        ));
    }
    if let Some(refusal) = check_is_ours(data).map_err(unreadable)? {
        return Err(refusal);
    }
    let mut mode = found.mode() & 0o777;
    if mode & FORBIDDEN != 0 {
        // An empty one was created for us, and has had nothing that others could have read.
        if !is_empty(data).map_err(unreadable)? {
            return Err(format!(
                "data directory \"{shown}\" has invalid permissions\n  \
                 detail: Permissions should be u=rwx (0700) or u=rwx,g=rx (0750)."
            ));
        }
        let failed = |e| format!("could not change permissions of directory \"{shown}\": {e}");
        std::fs::set_permissions(data, Permissions::from_mode(OWNER)).map_err(failed)?;
        mode = OWNER;
    }
    if mode & OWNER_AND_GROUP == OWNER_AND_GROUP {
        set_umask(!OWNER_AND_GROUP);
        return Ok(OWNER_AND_GROUP);
    }
    Ok(OWNER)
}

/// A file that a data directory has from its first start on.
const MANIFEST: &str = "MANIFEST";
/// Files that may exist before the first start.
const PREPARED: [&str; 6] = ["conf", "crt", "key", "pem", "crl", "lock"];

/// Why a directory is not to be filled with a database; `None`: it has one, or nothing but configuration.
fn check_is_ours(data: &Path) -> std::io::Result<Option<String>> {
    if data.join(MANIFEST).exists() {
        return Ok(None);
    }
    let shown = data.display();
    if data.join("PG_VERSION").exists() {
        return Ok(Some(format!(
            "directory \"{shown}\" holds a database cluster of PostgreSQL\n  \
             hint: Choose another directory, and load a dump of it: pg_dumpall | psql -h 127.0.0.1 -U postgres."
        )));
    }
    for entry in std::fs::read_dir(data)? {
        let entry = entry?;
        let name = entry.file_name();
        // Files that a first start which was cut short had not renamed yet.
        let renamed = Path::new(&name).file_stem().filter(|_| Path::new(&name).extension().is_some_and(|e| e == "new"));
        let name = renamed.unwrap_or(&name);
        let extension = Path::new(name).extension().map(|e| e.to_string_lossy().into_owned()).unwrap_or_default();
        let is_of_start =
            matches!(name.to_str(), Some(MANIFEST | "wal" | "segments" | "temp" | "log" | "reserve" | "authentication.secret"));
        if !is_of_start && name != "lost+found" && !PREPARED.contains(&extension.as_str()) {
            return Ok(Some(format!(
                "directory \"{shown}\" is not empty, and holds no database of Melba: there is \"{}\"\n  \
                 hint: Choose an empty directory, or one that does not exist yet.",
                entry.file_name().to_string_lossy()
            )));
        }
    }
    Ok(None)
}

fn is_empty(directory: &Path) -> std::io::Result<bool> {
    Ok(std::fs::read_dir(directory)?.next().is_none())
}

fn set_umask(mask: u32) {
    // SAFETY: the call only sets a number of the process.
    unsafe { libc::umask(mask & 0o777) };
}

fn own_account() -> u32 {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_start_that_was_cut_short_leaves_nothing_foreign() {
        let data = tempfile::tempdir().expect("a temporary directory");
        for name in ["melba.conf.new", "server.lock", "MANIFEST.new", "authentication.secret.new"] {
            std::fs::write(data.path().join(name), "").expect("a file");
        }
        assert_eq!(check_is_ours(data.path()).expect("it is read"), None);
        std::fs::write(data.path().join("letter.new"), "").expect("a file");
        let refusal = check_is_ours(data.path()).expect("it is read");
        assert!(refusal.is_some_and(|text| text.contains("there is \"letter.new\"")));
    }
}
