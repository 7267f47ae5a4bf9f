//! Data directories that builds have left, of most versions of segments from 2 on (tests/kept/make.sh): they are opened, checked,
//! changed, and become directories of today's version. The first has the oldest versions of manifest, log and catalog that are read, too.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::shell::{melba, said};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kept");

/// The versions of the formats of segments, manifest and log that a kept directory has.
struct Kept {
    name: &'static str,
    segment: u32,
    manifest_and_log: u32,
    /// It has what more.sql makes.
    has_more: bool,
}

impl Kept {
    const fn new(name: &'static str, segment: u32, has_more: bool) -> Kept {
        Kept { name, segment, manifest_and_log: 3, has_more }
    }

    /// The scripts whose answers are known.
    fn looks(&self) -> &'static [&'static str] {
        if self.has_more { &["look", "look_more"] } else { &["look"] }
    }
}

/// A new version of a format raises these, after a directory of the version before was kept.
const WRITTEN: Kept = Kept::new("segment-8", 8, false);

const KEPT: &[Kept] = &[
    Kept { manifest_and_log: 2, ..Kept::new("segment-2", 2, true) },
    Kept::new("segment-5", 5, true),
    Kept::new("segment-6", 6, false),
    Kept::new("segment-7", 7, false),
    WRITTEN,
];

/// Every row is written again.
const CHANGE: &str = "update shop.orders set total = total + 1; update shop.pages set body = body || '.';
    update shop.pages set body = rtrim(body, '.'); update shop.orders set total = total - 1;
    insert into shop.customers (name) values ('a new one')";
const CHANGE_OF_MORE: &str = "update kinds.everything set small = small + 1; update kinds.everything set small = small - 1;
    update kinds.by_pglz set body = body || '.'; update kinds.by_pglz set body = rtrim(body, '.');
    update kinds.by_lz4 set body = body || '.'; update kinds.by_lz4 set body = rtrim(body, '.');
    update kinds.by_zstd set body = body || '.'; update kinds.by_zstd set body = rtrim(body, '.');
    update kinds.by_dense set body = body || '.'; update kinds.by_dense set body = rtrim(body, '.')";

fn unpack(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let archive = Path::new(FOLDER).join(name).with_extension("tar.gz");
    let status = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(folder.path()).status();
    assert!(status.expect("tar runs").success(), "{}", archive.display());
    let data = folder.path().join("data");
    // Builds of segments' version 2 left the mode to the umask, and a directory that others may read is refused.
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o700)).expect("a mode");
    (folder, data)
}

/// Standard output of a command that succeeds.
fn run(arguments: &[&str], data: &Path) -> String {
    let (code, out, error) = said(&melba(arguments).arg("--data").arg(data).output().expect("it runs"));
    assert_eq!((code, error.as_str()), (Some(0), ""), "{arguments:?}");
    out
}

/// The format versions in the heads of files: 8 bytes of magic, then the version.
fn versions(folder: &Path, ending: &str) -> Vec<u32> {
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    // A spare file of the log has no head yet.
    let files = files.filter(|path| path.to_string_lossy().ends_with(ending) && !path.to_string_lossy().contains("spare"));
    let mut found: Vec<u32> = files.map(|path| version(&std::fs::read(path).expect("it is read"), 8)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn version(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Behind length, checksum and the edit's number in the first record of the manifest.
fn manifest_version(data: &Path) -> u32 {
    version(&std::fs::read(data.join("MANIFEST")).expect("a manifest"), 9)
}

/// Checks the directory, and that its answers are those of all versions.
fn check_content(kept: &Kept, data: &Path, when: &str) {
    let sound = run(&["check"], data);
    assert!(sound.contains("no errors found"), "{} {when}: {sound}", kept.name);
    for look in kept.looks() {
        let expected = std::fs::read_to_string(format!("{FOLDER}/{look}.out")).expect("expected answers");
        assert_eq!(run(&["sql", "-A", "-f", &format!("{FOLDER}/{look}.sql")], data), expected, "{} {when}", kept.name);
    }
}

#[test]
fn directories_of_earlier_versions_become_directories_of_this_one() {
    for kept in KEPT {
        let Kept { name, segment, manifest_and_log, has_more } = kept;
        let (_folder, data) = unpack(name);
        let segments = data.join("segments");
        assert_eq!(versions(&segments, ".seg"), [*segment], "{name}");
        assert_eq!(versions(&data.join("wal"), ".wal"), [*manifest_and_log], "{name}");
        assert_eq!(manifest_version(&data), *manifest_and_log, "{name}");
        check_content(kept, &data, "as it was kept");
        // Rows by an update, and the merges that VACUUM waits for.
        let more = if *has_more { CHANGE_OF_MORE } else { "select 1" };
        run(&["sql", "-q", "-c", CHANGE, "-c", more, "-c", "checkpoint", "-c", "vacuum", "-c", "checkpoint"], &data);
        check_content(kept, &data, "after changes");
        assert_eq!(run(&["sql", "-A", "-t", "-c", "select count(*) from shop.customers"], &data), "52\n", "{name}");
        assert_eq!(versions(&segments, ".seg").last(), Some(&WRITTEN.segment), "{name}");
        assert_eq!(versions(&data.join("wal"), ".wal"), [WRITTEN.manifest_and_log], "{name}");
        assert_eq!(manifest_version(&data), WRITTEN.manifest_and_log, "{name}");
    }
}

/// Of a version to come, or of one that is read no more.
#[test]
fn a_directory_of_an_unknown_version_is_refused() {
    let (_folder, data) = unpack(KEPT[0].name);
    let file = std::fs::read_dir(data.join("wal")).expect("a folder").next().expect("a file").expect("an entry").path();
    let mut bytes = std::fs::read(&file).expect("it is read");
    for version in [1_u32, 99] {
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        std::fs::write(&file, &bytes).expect("it is written");
        let output = melba(&["sql", "-c", "select 1", "--data"]).arg(&data).output().expect("it runs");
        let (code, _, error) = said(&output);
        assert!(code == Some(1) && error.contains(&format!("has unknown format version {version}")), "{code:?} {error}");
    }
}

#[test]
fn the_handbook_has_the_versions_that_are_written() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/handbook/upgrade.md")).expect("the page");
    let Kept { segment, manifest_and_log, .. } = WRITTEN;
    for (part, version) in [("MANIFEST", manifest_and_log), ("log", manifest_and_log), ("segments", segment)] {
        let row = page.lines().find(|line| line.starts_with(&format!("| {part} (["))).expect("a row");
        assert!(row.contains(&format!(" | {version} | 2 to {version} | ")), "{row}");
    }
}
