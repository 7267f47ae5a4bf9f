//! Reports of `melba lab` and `melba advise` in a folder, shown as they are: pages with styles and pictures of their own.
//!
//! A report is shown in a sandbox: its policy lets it run no script, load nothing, and belong to no origin, so that it can neither read the
//! console nor act in its name.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use melba_http::Response;
use serde::Serialize;

/// Reports that are listed, the newest.
const REPORTS_MAX: usize = 500;
/// Of one report.
const REPORT_BYTES_MAX: u64 = 32 << 20;
const POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// `FILE.html` or `FOLDER/FILE.html`.
    name: String,
    /// Seconds since 1970.
    written: u64,
    bytes: u64,
}

/// The pages in a folder and in the folders directly below it, the newest first.
///
/// # Errors
/// The folder cannot be read.
pub fn list(folder: &Path) -> Result<Vec<Listed>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut found = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            let below = std::fs::read_dir(&path).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
            found.extend(below.filter_map(|path| listed(folder, &path)));
        } else {
            found.extend(listed(folder, &path));
        }
    }
    found.sort_by(|a, b| (b.written, &a.name).cmp(&(a.written, &b.name)));
    found.truncate(REPORTS_MAX);
    Ok(found)
}

/// A page that is a file, not a link to one, with a name that stands in an address as it is.
fn listed(folder: &Path, path: &Path) -> Option<Listed> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let name = path.strip_prefix(folder).ok()?.to_str()?.to_owned();
    let file = std::fs::symlink_metadata(path).ok()?;
    let is_report = file.is_file() && name.ends_with(".html") && name.chars().all(is_plain);
    let written = file.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_secs();
    is_report.then_some(Listed { name, written, bytes: file.len() })
}

/// A report of the list, with the headers that bind the browser.
pub fn show(folder: Option<&PathBuf>, name: &str) -> Response {
    let missing = || Response::text(404, "there is no such report\n");
    let Some(folder) = folder else { return missing() };
    let known = list(folder).unwrap_or_default();
    let Some(report) = known.iter().find(|report| report.name == name && report.bytes <= REPORT_BYTES_MAX) else {
        return missing();
    };
    match std::fs::read(folder.join(&report.name)) {
        Ok(content) => Response::new(200, "text/html; charset=utf-8", content)
            .with_header("Content-Security-Policy", POLICY)
            .with_header("Referrer-Policy", "no-referrer")
            .with_header("Cross-Origin-Opener-Policy", "same-origin")
            .with_header("Cross-Origin-Resource-Policy", "same-origin"),
        Err(_) => missing(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_folder_are_listed_and_nothing_else_is_shown() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let reports = folder.path().join("reports");
        std::fs::create_dir_all(reports.join("tpcb").join("deep")).expect("folders");
        for name in ["tpcb/results.html", "one.html", "one.json", "a\"b.html", "tpcb/deep/two.html", "../secret.html"] {
            std::fs::write(reports.join(name), format!("<p>{name}</p>")).expect("a file");
        }
        std::os::unix::fs::symlink(folder.path().join("secret.html"), reports.join("link.html")).expect("a link");
        let mut names: Vec<String> = list(&reports).expect("a folder").into_iter().map(|report| report.name).collect();
        names.sort_unstable();
        assert_eq!(names, ["one.html", "tpcb/results.html"]);
        let shown = |name: &str| format!("{:?}", show(Some(&reports), name));
        assert!(shown("tpcb/results.html").contains("sandbox; default-src 'none'"));
        for name in ["../secret.html", "link.html", "one.json", "tpcb/../../secret.html", "tpcb", ""] {
            assert!(shown(name).contains("404"), "{name}");
        }
        assert!(format!("{:?}", show(None, "one.html")).contains("404"));
        assert!(list(&reports.join("nowhere")).is_err());
    }
}
