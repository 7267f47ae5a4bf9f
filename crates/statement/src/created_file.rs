//! Files that the server creates at paths chosen by users: COPY TO, lo_export.

#![expect(clippy::disallowed_methods, reason = "server-side files, whose name was checked before")]

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Creates a file for users, or truncates an existing one. Others may read a new one, unlike the database's own files, for which
/// the process has its umask.
pub(super) fn create(path: &Path) -> io::Result<fs::File> {
    match fs::OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => {
            file.set_permissions(fs::Permissions::from_mode(0o644))?;
            Ok(file)
        }
        Err(e) if e.kind() == ErrorKind::AlreadyExists => fs::OpenOptions::new().write(true).truncate(true).open(path),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_files_can_be_read_by_others_and_old_ones_stay_as_they_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let mode = || fs::metadata(&path).expect("it is there").permissions().mode() & 0o777;
        create(&path).expect("a new file");
        assert_eq!(mode(), 0o644);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
        fs::write(&path, "old").expect("it can be written");
        create(&path).expect("the same file");
        assert_eq!((mode(), fs::metadata(&path).expect("it is there").len()), (0o600, 0));
    }
}
