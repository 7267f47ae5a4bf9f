//! The files below a folder as rows: their path and content.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::sample::{Column, Row, Sample, Storage, Window, hexadecimal, is_in_stretch};

/// Stretches of neighbouring files, of about this many bytes in all.
pub fn sample(folder: &Path, bytes_max: u64) -> Result<Sample> {
    let mut files = Vec::new();
    collect(folder, &mut files).map_err(|e| format!("{}: {e}", folder.display()))?;
    files.sort();
    if files.is_empty() {
        return Err(format!("{}: no files", folder.display()));
    }
    let total: u64 = files.iter().map(|(_, bytes)| bytes).sum();
    let mut contents = Vec::new();
    let (mut at, mut taken) = (0, 0);
    for (path, bytes) in &files {
        if is_in_stretch(at, total, bytes_max).is_some() {
            taken += bytes;
            contents.push((path, std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?));
        }
        at += bytes;
    }
    let is_text = contents.iter().all(|(_, content)| std::str::from_utf8(content).is_ok_and(|text| !text.contains('\0')));
    let storage = if is_text { Storage::Text } else { Storage::Bytes };
    let column = |name: &str, type_name: &str, storage, in_primary_key| Column {
        name: name.to_owned(),
        type_name: type_name.to_owned(),
        storage,
        in_primary_key,
    };
    let (rows_total, scale) = (files.len() as f64, (total as f64 / taken.max(1) as f64).max(1.0));
    let rows = contents.into_iter().map(|(path, content)| row(folder, path, content, is_text)).collect();
    let whole = folder.to_owned();
    let scan = move |window: &Window, each: &mut dyn FnMut(&Row) -> Result<()>| {
        let mut at = 0;
        for (path, bytes) in &files {
            if window.contains(&(at as f64 / total.max(1) as f64)) {
                let content = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
                each(&row(&whole, path, content, is_text))?;
            }
            at += bytes;
        }
        Ok(())
    };
    Ok(Sample {
        name: "files".to_owned(),
        columns: vec![
            column("path", "text", Storage::Text, true),
            column("body", if is_text { "text" } else { "bytea" }, storage, false),
        ],
        rows_total,
        scale,
        rows,
        notes: Vec::new(),
        exists: false,
        scan: Box::new(scan),
    })
}

fn row(folder: &Path, path: &Path, content: Vec<u8>, is_text: bool) -> Row {
    let path = path.strip_prefix(folder).unwrap_or(path).to_string_lossy().into_owned().into_bytes();
    let body = if is_text { content } else { hexadecimal(&content) };
    vec![Some(path.into_boxed_slice()), Some(body.into_boxed_slice())]
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
        assert_eq!((whole.rows.len(), whole.rows_total), (32, 32.0));
        // Two of each four.
        let part = sample(folder.path(), 1600).unwrap();
        assert_eq!((part.rows.len(), part.rows_total, part.scale), (16, 32.0, 2.0));
        assert_eq!(part.rows[2][0].as_deref(), Some(b"04".as_slice()));
        let mut second_half = Vec::new();
        (part.scan)(&(0.5..1.0), &mut |row| {
            second_half.extend(row[1].clone());
            Ok(())
        })
        .unwrap();
        assert_eq!((second_half.len(), second_half[0][0]), (16, b'a' + 16));
        std::fs::write(folder.path().join("x"), [0xff, 1]).unwrap();
        let bytes = sample(folder.path(), 5000).unwrap();
        assert_eq!((bytes.columns[1].storage, bytes.rows[32][1].as_deref()), (Storage::Bytes, Some(b"\\xff01".as_slice())));
    }
}
