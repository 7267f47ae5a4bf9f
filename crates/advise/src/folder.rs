//! The files below a folder as rows: their path, and what is in them.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::sample::{Column, Sample, Storage, hexadecimal, is_in_stretch};

/// Stretches of neighbouring files, of so many bytes, about.
pub fn sample(folder: &Path, bytes_max: u64) -> Result<Sample> {
    let mut files = Vec::new();
    collect(folder, &mut files).map_err(|e| format!("{}: {e}", folder.display()))?;
    files.sort();
    if files.is_empty() {
        return Err(format!("{}: no files", folder.display()));
    }
    let total: u64 = files.iter().map(|(_, bytes)| bytes).sum();
    let (mut contents, mut ends, mut stretches) = (Vec::new(), Vec::new(), Vec::new());
    let (mut at, mut taken) = (0, 0);
    for (path, bytes) in &files {
        if let Some(stretch) = is_in_stretch(at, total, bytes_max) {
            if stretches.last().is_some_and(|last| *last != stretch) {
                ends.push(contents.len());
            }
            stretches.push(stretch);
            taken += bytes;
            contents.push((path, std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?));
        }
        at += bytes;
    }
    ends.push(contents.len());
    let is_text = contents.iter().all(|(_, content)| std::str::from_utf8(content).is_ok_and(|text| !text.contains('\0')));
    let storage = if is_text { Storage::Text } else { Storage::Bytes };
    let column = |name: &str, type_name: &str, storage, in_primary_key| Column {
        name: name.to_owned(),
        type_name: type_name.to_owned(),
        storage,
        in_primary_key,
    };
    let row = |(path, content): (&PathBuf, Vec<u8>)| {
        let path = path.strip_prefix(folder).unwrap_or(path).to_string_lossy().into_owned().into_bytes();
        let body = if is_text { content } else { hexadecimal(&content) };
        vec![Some(path.into_boxed_slice()), Some(body.into_boxed_slice())]
    };
    Ok(Sample {
        name: "files".to_owned(),
        columns: vec![
            column("path", "text", Storage::Text, true),
            column("body", if is_text { "text" } else { "bytea" }, storage, false),
        ],
        rows_total: files.len() as f64,
        scale: (total as f64 / taken.max(1) as f64).max(1.0),
        rows: contents.into_iter().map(row).collect(),
        ends,
        notes: Vec::new(),
        exists: false,
    })
}

fn collect(folder: &Path, out: &mut Vec<(PathBuf, u64)>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.symlink_metadata()?.is_dir() {
            collect(&path, out)?;
        } else if let Ok(metadata) = path.metadata()
            && metadata.is_file()
        {
            out.push((path, metadata.len()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_of_files_are_taken() {
        let folder = tempfile::tempdir().unwrap();
        for n in 0..32 {
            std::fs::write(folder.path().join(format!("{n:02}")), vec![b'a' + n; 100]).unwrap();
        }
        let whole = sample(folder.path(), 5000).unwrap();
        assert_eq!((whole.rows.len(), whole.rows_total, whole.half().len()), (32, 32.0, 16));
        // Two of each four.
        let part = sample(folder.path(), 1600).unwrap();
        assert_eq!((part.rows.len(), part.rows_total, part.scale), (16, 32.0, 2.0));
        assert_eq!(part.rows[2][0].as_deref(), Some(b"04".as_slice()));
        assert_eq!((part.ends.clone(), part.half()), (vec![2, 4, 6, 8, 10, 12, 14, 16], vec![0, 2, 4, 6, 8, 10, 12, 14]));
        std::fs::write(folder.path().join("x"), [0xff, 1]).unwrap();
        let bytes = sample(folder.path(), 5000).unwrap();
        assert_eq!((bytes.columns[1].storage, bytes.rows[32][1].as_deref()), (Storage::Bytes, Some(b"\\xff01".as_slice())));
    }
}
