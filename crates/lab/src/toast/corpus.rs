//! The values of an experiment: the files of a folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;

pub struct Corpus {
    pub name: &'static str,
    pub values: Vec<Vec<u8>>,
    is_text: bool,
}

impl Corpus {
    /// The HTML files of a folder, as text.
    pub fn text(name: &'static str, folder: &Path) -> Result<Corpus> {
        let is_html = |p: &Path| p.extension().is_some_and(|e| e == "html");
        let values = files(folder, is_html)?;
        match values.iter().all(|v| std::str::from_utf8(v).is_ok_and(|t| !t.contains('\0'))) {
            true => Ok(Corpus { name, values, is_text: true }),
            false => Err(format!("{}: not all files are UTF-8 text", folder.display())),
        }
    }

    /// All files of a folder, as bytea; .xz ones unpacked.
    pub fn bytes(name: &'static str, folder: &Path) -> Result<Corpus> {
        Ok(Corpus { name, values: files(folder, |_| true)?, is_text: false })
    }

    pub fn type_name(&self) -> &'static str {
        if self.is_text { "text" } else { "bytea" }
    }

    pub fn raw_bytes(&self) -> u64 {
        self.values.iter().map(|v| v.len() as u64).sum()
    }

    pub fn largest(&self) -> usize {
        self.values.iter().map(Vec::len).max().unwrap_or(0)
    }
}

/// Where packages have their documents.
const DOCUMENTS: &str = "/usr/share/doc";

/// The newest manual that Debian's packages have put on this machine.
pub fn installed_manual() -> Result<PathBuf> {
    newest_manual(Path::new(DOCUMENTS)).ok_or_else(|| {
        "no manual of PostgreSQL on this machine: install one (apt-get install postgresql-doc, or postgresql-doc-NN), \
         or give the folder of its HTML files by --manual"
            .to_owned()
    })
}

fn newest_manual(documents: &Path) -> Option<PathBuf> {
    let version = |path: &Path| path.file_name()?.to_str()?.strip_prefix("postgresql-doc-")?.parse::<u32>().ok();
    let folders = std::fs::read_dir(documents).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let manuals = folders.filter_map(|folder| Some((version(&folder)?, folder.join("html"))));
    manuals.filter(|(_, html)| html.is_dir()).max().map(|(_, html)| html)
}

/// The files' contents in the order of their names.
fn files(folder: &Path, wanted: impl Fn(&Path) -> bool) -> Result<Vec<Vec<u8>>> {
    let shown = |e: std::io::Error| format!("{}: {e}", folder.display());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(shown)? {
        let path = entry.map_err(shown)?.path();
        // `metadata` follows links: Debian's manual may be one.
        if path.metadata().is_ok_and(|m| m.is_file()) && wanted(&path) {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(format!("{}: no files to insert", folder.display()));
    }
    paths.iter().map(|p| contents(p)).collect()
}

fn contents(path: &Path) -> Result<Vec<u8>> {
    let shown = |e: std::io::Error| format!("{}: {e}", path.display());
    if path.extension().is_none_or(|e| e != "xz") {
        return std::fs::read(path).map_err(shown);
    }
    let output = Command::new("xz").arg("-dc").arg(path).output().map_err(|e| format!("xz: {e}"))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(format!("{}: {}", path.display(), String::from_utf8_lossy(&output.stderr).trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_manual_is_found() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(newest_manual(folder.path()), None);
        for html in ["postgresql-doc-9/html", "postgresql-doc-15/html", "postgresql-doc-16", "postgresql-common/html"] {
            std::fs::create_dir_all(folder.path().join(html)).unwrap();
        }
        assert_eq!(newest_manual(folder.path()), Some(folder.path().join("postgresql-doc-15/html")));
    }

    #[test]
    fn folders_are_read_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("b.html", "two"), ("a.html", "one"), ("c.css", "no")] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let corpus = Corpus::text("t", folder.path()).unwrap();
        assert_eq!(corpus.values, [b"one", b"two"]);
        assert_eq!((corpus.raw_bytes(), corpus.largest(), corpus.type_name()), (6, 3, "text"));
        std::fs::write(folder.path().join("d.html"), [0xff]).unwrap();
        assert!(Corpus::text("t", folder.path()).is_err());
        assert_eq!(Corpus::bytes("b", folder.path()).unwrap().values.len(), 4);
    }
}
