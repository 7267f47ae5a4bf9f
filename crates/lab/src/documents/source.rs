//! The sources of documents: a folder's files, or the generators.

use std::path::{Path, PathBuf};

use super::crawl::{DOCUMENTS, Generator, Shape};
use crate::Result;

/// Rows of documents that can be generated repeatedly.
#[derive(Debug)]
pub struct Source {
    /// Of its column in the report.
    pub name: String,
    pub origin: String,
    /// Documents of a row.
    pub documents: usize,
    pub rows: u64,
    kind: SourceKind,
}

#[derive(Debug)]
enum SourceKind {
    Files(Vec<PathBuf>),
    Generated(Generator),
}

impl Source {
    pub fn generated(shape: Shape, seed: u64, rows: u64) -> Source {
        let name = match shape {
            Shape::Crawl => "crawl history",
            Shape::Pages => "pages",
            Shape::Events => "events",
        };
        let kind = SourceKind::Generated(Generator { shape, seed, rows });
        Source { name: name.to_owned(), origin: format!("generated, seed {seed}"), documents: DOCUMENTS, rows, kind }
    }

    /// The text files below a folder, in the order of their paths, `documents` per row and at most `rows_max` rows.
    pub fn folder(folder: &Path, documents: usize, rows_max: u64, wanted: impl Fn(&Path) -> bool) -> Result<Source> {
        let mut paths = Vec::new();
        collect(folder, &mut paths).map_err(|e| format!("{}: {e}", folder.display()))?;
        paths.retain(|path| wanted(path) && std::fs::read(path).is_ok_and(|bytes| is_text(&bytes)));
        paths.sort();
        let rows = rows_max.min((paths.len() / documents) as u64);
        if rows == 0 {
            return Err(format!("{}: fewer than {documents} files of text", folder.display()));
        }
        let name = folder.file_name().map_or_else(|| folder.display().to_string(), |n| n.to_string_lossy().into_owned());
        Ok(Source { name, origin: folder.display().to_string(), documents, rows, kind: SourceKind::Files(paths) })
    }

    /// A documentation package of Debian: its pages in HTML.
    pub fn package(name: &str, documents: usize, rows_max: u64) -> Result<Source> {
        let folder = Path::new("/usr/share/doc").join(name);
        if !folder.is_dir() {
            return Err(format!("no documents of package {name} on this machine: apt-get install {name}"));
        }
        let is_page = |path: &Path| path.extension().is_some_and(|e| e == "html" || e == "htm");
        Source::folder(&folder, documents, rows_max, is_page)
    }

    pub fn row(&self, row: u64) -> Result<Vec<Vec<u8>>> {
        match &self.kind {
            SourceKind::Generated(generator) => Ok(generator.row(row)),
            SourceKind::Files(paths) => {
                let first = row as usize * self.documents;
                let read = |path: &PathBuf| std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
                paths[first..first + self.documents].iter().map(read).collect()
            }
        }
    }

    /// The replacement of a row: its documents with a few new words at three places each.
    pub fn replacement(&self, row: u64) -> Result<Vec<Vec<u8>>> {
        let edit = |(at, document): (usize, Vec<u8>)| {
            let text = String::from_utf8(document).map_err(|e| e.to_string())?;
            let cuts = [text.len() / 4, text.len() / 2, text.len() * 3 / 4].map(|cut| text.floor_char_boundary(cut));
            let parts = [&text[..cuts[0]], &text[cuts[0]..cuts[1]], &text[cuts[1]..cuts[2]], &text[cuts[2]..]];
            let mut random = crate::random::Random::new(&[row, at as u64]);
            let joints: Vec<String> = (0..3).map(|_| format!(" revised {:08x} ", random.number() as u32)).collect();
            let mut out = parts[0].to_owned();
            joints.iter().zip(&parts[1..]).for_each(|(joint, part)| out.extend([joint.as_str(), part]));
            Ok(out.into_bytes())
        };
        self.row(row)?.into_iter().enumerate().map(edit).collect()
    }
}

fn is_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0'))
}

/// The files below a folder; links to folders are not followed, except the first, which Debian may make one.
fn collect(folder: &Path, out: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        match path.symlink_metadata()?.is_dir() {
            true => collect(&path, out)?,
            false if path.is_file() => out.push(path),
            false => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_become_rows_and_replacements_differ_a_little() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("b")).unwrap();
        for name in ["b/2", "b/3", "a", "c", "d"] {
            std::fs::write(folder.path().join(name), format!("{name} ä").repeat(100)).unwrap();
        }
        std::fs::write(folder.path().join("0"), [0xff]).unwrap();
        let source = Source::folder(folder.path(), 2, 100, |_| true).unwrap();
        assert_eq!((source.rows, source.documents), (2, 2), "a file that is no text and one too many are left out");
        let row = source.row(1).unwrap();
        assert!(row[0].starts_with(b"b/3") && row[1].starts_with(b"c"));
        let replaced = source.replacement(1).unwrap();
        assert!(replaced.iter().zip(&row).all(|(new, old)| new != old && new.len() < old.len() + 100));
        assert_eq!(replaced, source.replacement(1).unwrap());
        assert!(Source::folder(folder.path(), 20, 100, |_| true).is_err());
        assert!(Source::package("no-such-package", 5, 10).unwrap_err().contains("apt-get install"));
    }
}
