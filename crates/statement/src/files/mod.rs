//! Files as tables: read_parquet, read_csv, read_json, and foreign tables.

#![expect(clippy::disallowed_methods, reason = "server-side files, which the role may read")]

mod foreign;
mod text;

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use melba_catalog::privileges::RoleUse;
use melba_copy::StoredObject;
use melba_fmgr::{FileRequest, FileRows, NamedFiles, RowColumn, Session};
use melba_objects::ObjectReader;
use melba_parquet::{ColumnLimits, ColumnMatch, FileBytes, FileReader, Scan, SourceFile, Wanted, match_columns};
use melba_types::{Batch, Datum, DbError, Oid, Result, err, limits};

use super::context::StatementContext;
use super::copy::file_error;
use super::server_files;

pub(super) use foreign::{file_validator, libpq_validator};

const READ_SERVER_FILES: Oid = Oid(4569);
/// Files of one pattern at most.
const FILES_MAX: usize = 100_000;

/// The columns of the first file that the arguments name.
///
/// # Errors
/// 42501 for a role that may read no file of the server, 58P01 when there is none, and those of a file.
pub(super) fn columns(context: &StatementContext, source: &str, args: &[Datum]) -> Result<Vec<RowColumn>> {
    check_role(context, source)?;
    if source != "read_parquet" {
        return text::columns(context, source, args);
    }
    let pattern = pattern(args)?;
    let names = expand(context, pattern)?;
    let Some(first) = names.front() else { return Err(no_file(pattern)) };
    let file = open_file(context, first)?;
    let noted = file.noted_types();
    let mut columns = Vec::with_capacity(noted.len());
    for (at, noted) in noted.into_iter().enumerate() {
        let (ty, typmod, is_list) = file.natural(at)?;
        let natural = if is_list { (context.catalog.array_of(ty).unwrap_or(ty), typmod) } else { (ty, typmod) };
        // A type that was noted may be none here, or no longer what the column is.
        let noted = noted.and_then(|text| {
            let name = melba_parse::parse_type_name(&text).ok()?;
            super::planning::analysis(context).transform_type_name(&name).ok()
        });
        let name: Arc<str> = file.columns()[at].name.as_str().into();
        let fits =
            |(ty, typmod): &(Oid, i32)| file.fits(context, &Wanted { at, name: Arc::clone(&name), ty: *ty, typmod: *typmod });
        let (ty, typmod) = noted.filter(fits).unwrap_or(natural);
        columns.push(RowColumn { name, ty, typmod });
    }
    Ok(columns)
}

fn check_role(session: &dyn Session, source: &str) -> Result<()> {
    if session.catalog().has_role(session.user(), READ_SERVER_FILES, RoleUse::Inherit) {
        return Ok(());
    }
    Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied for function {source}"))
}

/// The rows of all files.
///
/// # Errors
/// Those of `columns`; a foreign table may be read by everybody who may select from it.
pub(super) fn open(context: Arc<StatementContext>, request: FileRequest) -> Result<Box<dyn FileRows>> {
    let (source, args) = match &request.files {
        NamedFiles::Table(table) => {
            let table = Arc::clone(table);
            return foreign::open(context, &table, request);
        }
        NamedFiles::Function { source, args } => (source, args),
    };
    check_role(&*context, source)?;
    let pattern = pattern(args)?;
    let names = expand_some(&*context, pattern)?;
    let session: Arc<dyn Session> = context;
    match source.as_str() {
        "read_parquet" => open_parquet(session, names, request, ColumnMatch::NameOrPosition),
        _ => text::open(session, text::dialects(source, args)?, names, request),
    }
}

fn open_parquet(
    session: Arc<dyn Session>,
    names: VecDeque<String>,
    request: FileRequest,
    how: ColumnMatch,
) -> Result<Box<dyn FileRows>> {
    let wanted = |c: &RowColumn| Wanted { at: 0, name: Arc::clone(&c.name), ty: c.ty, typmod: c.typmod };
    let wanted = request.columns.iter().map(wanted).collect();
    Ok(Box::new(ParquetRows { session, names, wanted, how, request, scan: None }))
}

/// The files that a pattern names.
///
/// # Errors
/// 58P01 when there is none.
fn expand_some(session: &dyn Session, pattern: &str) -> Result<VecDeque<String>> {
    let names = expand(session, pattern)?;
    if names.is_empty() { Err(no_file(pattern)) } else { Ok(names) }
}

/// The first argument.
fn pattern(args: &[Datum]) -> Result<&str> {
    match args.first() {
        Some(Datum::Text(pattern)) => Ok(pattern),
        _ => Err(err!(NULL_VALUE_NOT_ALLOWED, "the name of a file must not be null")),
    }
}

fn no_file(pattern: &str) -> DbError {
    err!(UNDEFINED_FILE, "no file matches \"{pattern}\"")
}

/// Rows of Parquet files, one after the other.
struct ParquetRows {
    session: Arc<dyn Session>,
    /// Files to come.
    names: VecDeque<String>,
    wanted: Vec<Wanted>,
    /// How the columns of the next file are found.
    how: ColumnMatch,
    request: FileRequest,
    scan: Option<(String, Scan)>,
}

impl ParquetRows {
    fn begin(&mut self, name: &str) -> Result<Scan> {
        let file = open_file(&*self.session, name)?;
        let mut wanted = self.wanted.clone();
        self.how = match_columns(&file, &mut wanted, self.how).map_err(|e| within(e, name))?;
        let needed: Vec<Wanted> = self.request.needed.iter().map(|at| wanted[*at].clone()).collect();
        let limits = self.request.bounds.iter().filter_map(|bound| {
            // The bounds are of the columns' types, whose values are the file's only where they are the natural ones: a type modifier
            // rounds.
            let wanted = &wanted[bound.column];
            let natural = file.natural(wanted.at);
            let same = natural.is_ok_and(|(ty, typmod, _)| ty == wanted.ty && (wanted.typmod < 0 || wanted.typmod == typmod));
            let column = self.request.needed.iter().position(|at| *at == bound.column).filter(|_| same)?;
            Some(ColumnLimits { column, least: bound.least.clone(), greatest: bound.greatest.clone() })
        });
        let scan = file.scan(Arc::clone(&self.session), &needed).map_err(|e| within(e, name))?;
        Ok(scan.within(limits.collect()))
    }
}

impl FileRows for ParquetRows {
    fn next(&mut self, limit: usize) -> Result<Option<Batch>> {
        loop {
            if let Some((name, scan)) = &mut self.scan {
                if let Some((rows, columns)) = scan.next(limit).map_err(|e| within(e, name))? {
                    return Ok(Some(Batch::new(columns, rows)));
                }
                self.scan = None;
            }
            let Some(name) = self.names.pop_front() else { return Ok(None) };
            let scan = self.begin(&name)?;
            self.scan = Some((name, scan));
        }
    }

    fn memory_bytes(&self) -> usize {
        self.scan.as_ref().map_or(0, |(_, scan)| scan.memory_bytes())
    }
}

/// An error of a file, with its name.
fn within(error: DbError, name: &str) -> DbError {
    error.within(format!("file \"{name}\""))
}

fn open_file(session: &dyn Session, name: &str) -> Result<FileReader> {
    FileReader::open(open_bytes(session, name)?).map_err(|e| within(e, name))
}

fn open_bytes(session: &dyn Session, name: &str) -> Result<Arc<dyn FileBytes>> {
    if melba_objects::is_url(name) {
        return Ok(Arc::new(StoredObject(ObjectReader::open(name)?)));
    }
    // To open a FIFO would wait for its writer.
    let mut options = fs::OpenOptions::new();
    options.read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
    let file = options.open(server_files::resolve(session, name));
    let file = file.map_err(|e| file_error(name, "reading", &e))?;
    let metadata = file.metadata().map_err(|e| file_error(name, "reading", &e))?;
    if metadata.is_dir() {
        return Err(err!(WRONG_OBJECT_TYPE, "\"{name}\" is a directory"));
    }
    if !metadata.is_file() && !metadata.file_type().is_char_device() {
        return Err(err!(WRONG_OBJECT_TYPE, "\"{name}\" is not a regular file"));
    }
    Ok(Arc::new(SourceFile { file, bytes: metadata.len() }))
}

/// The files that a pattern names, in order: a name without `*` and `?` is itself.
fn expand(session: &dyn Session, pattern: &str) -> Result<VecDeque<String>> {
    let Some(wild) = pattern.find(['*', '?']) else { return Ok(VecDeque::from([pattern.to_owned()])) };
    let folder = pattern[..wild].rfind('/').map_or("", |end| &pattern[..=end]);
    let rest = &pattern[folder.len()..];
    let mut names: Vec<String> = if melba_objects::is_url(pattern) {
        let below = |url: &String| url.strip_prefix(folder).is_some_and(|path| path_matches(rest, path));
        melba_objects::list(folder)?.into_iter().filter(below).collect()
    } else {
        let mut walk = Walk { found: Vec::new(), above: Vec::new() };
        let folder = server_files::resolve(session, folder);
        walk.enter(if folder.as_os_str().is_empty() { Path::new(".") } else { &folder }, rest)?;
        walk.found.into_iter().map(|path| path.display().to_string()).collect()
    };
    if names.len() > FILES_MAX {
        return Err(too_many_files());
    }
    names.sort();
    Ok(names.into())
}

fn too_many_files() -> DbError {
    err!(PROGRAM_LIMIT_EXCEEDED, "a pattern names more than {FILES_MAX} files")
}

/// Files whose paths match a pattern.
struct Walk {
    found: Vec<PathBuf>,
    /// The folders on the way to the present one, by device and number.
    above: Vec<(u64, u64)>,
}

impl Walk {
    /// Adds the files below a folder that match.
    fn enter(&mut self, folder: &Path, pattern: &str) -> Result<()> {
        let failed = |e: std::io::Error| file_error(&folder.display().to_string(), "reading", &e);
        let metadata = fs::metadata(folder).map_err(failed)?;
        self.above.push((metadata.dev(), metadata.ino()));
        let (part, rest) = pattern.split_once('/').map_or((pattern, None), |(part, rest)| (part, Some(rest)));
        for entry in fs::read_dir(folder).map_err(failed)? {
            limits::check_interrupt()?;
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if !name.to_str().is_some_and(|name| name_matches(part.as_bytes(), name.as_bytes())) {
                continue;
            }
            // Links are followed. One that is gone is no file.
            let Ok(metadata) = fs::metadata(entry.path()) else { continue };
            match rest {
                // A link to a folder above leads round in circles, unless the pattern names it.
                Some(_) if part.contains(['*', '?']) && self.above.contains(&(metadata.dev(), metadata.ino())) => {}
                Some(rest) if metadata.is_dir() => self.enter(&entry.path(), rest)?,
                None if metadata.is_file() => self.found.push(entry.path()),
                _ => {}
            }
            if self.found.len() > FILES_MAX {
                return Err(too_many_files());
            }
        }
        self.above.pop();
        Ok(())
    }
}

fn path_matches(pattern: &str, path: &str) -> bool {
    let (mut parts, mut names) = (pattern.split('/'), path.split('/'));
    loop {
        match (parts.next(), names.next()) {
            (None, None) => return true,
            (Some(part), Some(name)) if name_matches(part.as_bytes(), name.as_bytes()) => {}
            _ => return false,
        }
    }
}

/// `*` stands for any bytes, `?` for one; neither for a point at the beginning.
fn name_matches(pattern: &[u8], name: &[u8]) -> bool {
    fn rest(pattern: &[u8], name: &[u8]) -> bool {
        // The last star takes as little as it can, and more when what follows does not match.
        let (mut p, mut n, mut star) = (0, 0, None);
        while n < name.len() {
            match pattern.get(p) {
                Some(b'*') => {
                    star = Some((p, n));
                    p += 1;
                }
                Some(b'?') => (p, n) = (p + 1, n + 1),
                Some(byte) if *byte == name[n] => (p, n) = (p + 1, n + 1),
                _ => match star {
                    Some((at, taken)) => {
                        star = Some((at, taken + 1));
                        (p, n) = (at + 1, taken + 1);
                    }
                    None => return false,
                },
            }
        }
        pattern[p..].iter().all(|byte| *byte == b'*')
    }
    (name.first() != Some(&b'.') || pattern.first() == Some(&b'.')) && rest(pattern, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_and_paths() {
        let matches = |pattern: &str, name: &str| name_matches(pattern.as_bytes(), name.as_bytes());
        assert!(matches("*.parquet", "a.parquet") && matches("a*b*c", "axbxbxc") && matches("?", "x") && matches("*", "x"));
        assert!(!matches("*.parquet", "a.csv") && !matches("?", "xy") && !matches("*", ".hidden") && !matches("a*b", "ab c"));
        assert!(path_matches("y=*/*.parquet", "y=1/a.parquet") && !path_matches("*", "a/b") && !path_matches("*/b", "b"));
    }
}
