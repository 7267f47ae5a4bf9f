//! The COPY statement: turns its parse tree into a transfer that the session drives.

#![expect(clippy::disallowed_methods, reason = "COPY names server-side files")]

use std::fs;
use std::io::{BufWriter, Read, Write};
use std::sync::Arc;

use melba_analyze::ExprKind;
use melba_catalog::foreign::require_handler;
use melba_catalog::{Catalog, Relation, RelationKind, Storage, quote_ident, trigger_events};
use melba_copy::{CopiedColumn, CopyFormat, CopyFrom, CopyOptions, CopyTo, StoredObject};
use melba_definition::lookup::Lookup;
use melba_expression::{Evaluation, Expression, NoSubPlans, compile_for_table};
use melba_fmgr::Session;
use melba_objects::{ObjectReader, ObjectWriter};
use melba_parquet::SourceFile;
use melba_parse::nodes::strings;
use melba_protocol::Format;
use melba_table::{TableTarget, TableWriter, TargetBuilder};
use melba_transaction::Tx;
use melba_tree::{Privileges, permissions};
use melba_types::{BATCH_ROWS, DbError, Oid, Result, bail, err};
use pg_query::protobuf::{CopyStmt, node::Node as N};

use super::activity::Activity;
use super::created_file;
use super::outcome::{CopyIn, CopyOut, Outcome};
use super::program::{PipedProgram, Wait};
use super::progress::{ProgressCommand, Running};
use super::server_files;

/// Bytes read from a file at a time.
const FILE_CHUNK_BYTES: usize = 256 << 10;

/// Figures of pg_stat_progress_copy, by their numbers.
const BYTES_PROCESSED: usize = 1;
const BYTES_TOTAL: usize = 2;
const TUPLES_PROCESSED: usize = 3;
const COMMAND: usize = 5;
const TYPE: usize = 6;
const TUPLES_SKIPPED: usize = 7;

/// A COPY that others see the progress of.
struct Watched<C> {
    copy: C,
    running: Running,
}

impl<C> Watched<C> {
    fn new(cx: &CopyEnvironment<'_>, copy: C, relation: Oid, s: &CopyStmt) -> Watched<C> {
        let running = Running::begin(cx.activity, ProgressCommand::Copy, relation);
        running.set(COMMAND, if s.is_from { 1 } else { 2 });
        // A file, a program, or the client.
        running.set(
            TYPE,
            if s.is_program {
                2
            } else if s.filename.is_empty() {
                3
            } else {
                1
            },
        );
        Watched { copy, running }
    }
}

impl CopyIn for Watched<CopyFrom> {
    fn feed(&mut self, data: &[u8]) -> Result<()> {
        self.running.add(BYTES_PROCESSED, data.len() as i64);
        self.copy.feed(data)?;
        self.running.set(TUPLES_PROCESSED, self.copy.rows() as i64);
        self.running.set(TUPLES_SKIPPED, self.copy.skipped() as i64);
        Ok(())
    }

    fn catch_up(&mut self) -> Result<()> {
        self.copy.catch_up()
    }

    fn place(&self) -> String {
        self.copy.place()
    }

    fn finish(mut self: Box<Self>) -> Result<u64> {
        self.copy.finish()
    }
}

impl CopyOut for Watched<CopyTo> {
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let before = out.len();
        let is_more = self.copy.next(out)?;
        self.running.add(BYTES_PROCESSED, (out.len() - before) as i64);
        self.running.set(TUPLES_PROCESSED, self.copy.rows() as i64);
        Ok(is_more)
    }

    fn rows(&self) -> u64 {
        self.copy.rows()
    }
}

/// The context of COPY.
pub struct CopyEnvironment<'a> {
    pub lookup: &'a Lookup<'a>,
    pub tx: &'a Arc<Tx>,
    /// A context to evaluate and write with.
    pub exec: &'a dyn Fn() -> Evaluation<NoSubPlans>,
    /// Runs a query for COPY TO.
    pub query: &'a dyn Fn(&N) -> Result<Outcome>,
    /// Cursors are open.
    pub has_portals: bool,
    /// Is called again and again while a program is waited for; its error ends the statement.
    pub wait: Wait<'a>,
    /// Of the session.
    pub activity: &'a Arc<Activity>,
}

/// Runs COPY; transfers with a file are done when this returns.
///
/// # Errors
/// As PostgreSQL's.
pub fn run(cx: &CopyEnvironment<'_>, s: &CopyStmt) -> Result<Outcome> {
    let options = CopyOptions::parse(&s.options, s.is_from)?;
    if !s.filename.is_empty() {
        require_server_access(cx, s)?;
    }
    if s.is_from { copy_from(cx, s, options) } else { copy_to(cx, s, options) }
}

fn wire_format(options: &CopyOptions) -> Format {
    if matches!(options.format, CopyFormat::Binary | CopyFormat::Parquet) { Format::Binary } else { Format::Text }
}

fn require_server_access(cx: &CopyEnvironment<'_>, s: &CopyStmt) -> Result<()> {
    let (role, act) = match (s.is_program, s.is_from) {
        (true, _) => ("pg_execute_server_program", "COPY to or from an external program"),
        (false, true) => ("pg_read_server_files", "COPY from a file"),
        (false, false) => ("pg_write_server_files", "COPY to a file"),
    };
    let catalog = cx.lookup.catalog();
    if catalog.role_by_name(role).is_some_and(|r| cx.lookup.has_privileges_of(r.oid)) {
        return Ok(());
    }
    Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to {act}")
        .detail(format!("Only roles with privileges of the \"{role}\" role may {act}."))
        .hint("Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone."))
}

/// Positions of the columns that a COPY lists, or of all that it may.
fn copied_columns(relation: &Relation, names: &[&str]) -> Result<Vec<usize>> {
    if names.is_empty() {
        let live = relation.columns.iter().enumerate().filter(|(_, c)| !c.dropped && c.generated == 0);
        return Ok(live.map(|(at, _)| at).collect());
    }
    let mut out = Vec::with_capacity(names.len());
    for name in names {
        let found = relation.columns.iter().position(|c| !c.dropped && *c.name == **name);
        let at =
            found.ok_or_else(|| err!(UNDEFINED_COLUMN, "column \"{name}\" of relation \"{}\" does not exist", relation.name))?;
        if relation.columns[at].generated != 0 {
            return Err(err!(INVALID_COLUMN_REFERENCE, "column \"{name}\" is a generated column")
                .detail("Generated columns cannot be used in COPY."));
        }
        if out.contains(&at) {
            bail!(DUPLICATE_COLUMN, "column \"{name}\" specified more than once");
        }
        out.push(at);
    }
    Ok(out)
}

/// FREEZE promises that no other session can see the table without the rows. There is nothing to freeze here; only the promise is checked.
fn check_freezable(cx: &CopyEnvironment<'_>, relation: &Relation) -> Result<()> {
    if relation.is_partitioned() {
        bail!(FEATURE_NOT_SUPPORTED, "cannot perform COPY FREEZE on a partitioned table");
    }
    if cx.has_portals {
        bail!(INVALID_TRANSACTION_STATE, "cannot perform COPY FREEZE because of prior transaction activity");
    }
    if !cx.tx.has_new_storage(relation.oid) {
        bail!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "cannot perform COPY FREEZE because the table was not created or truncated in the current subtransaction"
        );
    }
    Ok(())
}

/// Only tables take rows themselves.
fn check_target(catalog: &Catalog, relation: &Relation) -> Result<()> {
    if let Some(foreign) = &relation.foreign {
        require_handler(catalog, foreign.server)?;
    }
    let what = match relation.kind {
        RelationKind::Table | RelationKind::PartitionedTable => return Ok(()),
        RelationKind::View => "view",
        RelationKind::MaterializedView => "materialized view",
        RelationKind::Sequence => "sequence",
        RelationKind::ForeignTable => bail!(FEATURE_NOT_SUPPORTED, "cannot insert into foreign table \"{}\"", relation.name),
        _ => "non-table relation",
    };
    let error = err!(WRONG_OBJECT_TYPE, "cannot copy to {what} \"{}\"", relation.name);
    Err(if what == "view" { error.hint("To enable copying to a view, provide an INSTEAD OF INSERT trigger.") } else { error })
}

fn copy_from(cx: &CopyEnvironment<'_>, s: &CopyStmt, options: CopyOptions) -> Result<Outcome> {
    let name = s.relation.as_ref().ok_or_else(|| DbError::internal("COPY FROM without a table"))?;
    let relation = cx.lookup.open_target(name)?;
    let by_trigger = cx.lookup.catalog().has_instead_trigger(&relation, trigger_events::INSERT);
    if !by_trigger {
        check_target(&cx.lookup.catalog(), &relation)?;
    }
    if matches!(relation.storage, Storage::System(_)) {
        return Err(DbError::unsupported(format!("COPY into system catalog \"{}\"", relation.name)));
    }
    if options.freeze {
        check_freezable(cx, &relation)?;
    }
    let columns = copied_columns(&relation, &strings(&s.attlist))?;
    let copied: Vec<Arc<str>> = columns.iter().map(|at| relation.columns[*at].name.clone()).collect();
    options.check_columns(Some(&*relation), &copied)?;
    let inserted: Vec<i16> = columns.iter().map(|at| *at as i16 + 1).collect();
    let required = Privileges { insert: true, inserted: inserted.clone(), ..Privileges::default() };
    permissions::require(&cx.lookup.catalog(), cx.lookup.user(), &relation, &required)?;
    if cx.lookup.with_context(|c| melba_analyze::is_restricted(c, &relation, cx.lookup.user()))? {
        return Err(
            err!(FEATURE_NOT_SUPPORTED, "COPY FROM not supported with row-level security").hint("Use INSERT statements instead.")
        );
    }
    let exec = (cx.exec)();
    let catalog = exec.catalog().clone();
    let builder = TargetBuilder { catalog: &catalog, session: &*exec.session };
    let target = Arc::new(TableTarget { written: inserted, ..builder.table(relation.oid)? });
    let defaults = column_defaults(cx, &relation)?;
    let filter = match s.where_clause.as_deref() {
        Some(node) => Some(cx.lookup.with_context(|c| {
            let expr = melba_analyze::analyze_expression(c, node, Some(&relation), ExprKind::CopyWhere, None)?;
            compile_for_table(&catalog, Some(cx.lookup.session()), &expr)
        })?),
        None => None,
    };
    let width = columns.len();
    let (format, is_parquet) = (wire_format(&options), options.format == CopyFormat::Parquet);
    let writer = TableWriter::new(target, cx.tx.engine.clone());
    let session = exec.session.clone();
    let mut copy = CopyFrom::new(exec, cx.tx.clone(), writer, columns, defaults, filter, options);
    copy.all_columns = s.attlist.is_empty();
    let mut copy = Watched::new(cx, copy, relation.oid, s);
    if s.filename.is_empty() {
        return Ok(Outcome::CopyIn { format, columns: width, copy: Box::new(copy) });
    }
    if s.is_program {
        let mut program = PipedProgram::start(&s.filename, true)?;
        feed_all(&mut copy, |chunk| program.read(chunk, cx.wait))?;
        program.finish(cx.wait)?;
        return Ok(Outcome::Done { tag: format!("COPY {}", copy.copy.finish()?) });
    }
    if melba_objects::is_url(&s.filename) {
        copy_from_object(&mut copy, &s.filename, is_parquet)?;
        return Ok(Outcome::Done { tag: format!("COPY {}", copy.copy.finish()?) });
    }
    copy_from_file(&mut copy, &*session, &s.filename, is_parquet)?;
    Ok(Outcome::Done { tag: format!("COPY {}", copy.copy.finish()?) })
}

fn copy_from_file(copy: &mut Watched<CopyFrom>, session: &dyn Session, name: &str, is_parquet: bool) -> Result<()> {
    let failed = |e: std::io::Error| file_error(name, "reading", &e);
    // The user names a file of the server's machine, not one of the database.
    let mut file = fs::File::open(server_files::resolve(session, name)).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        bail!(WRONG_OBJECT_TYPE, "\"{name}\" is a directory");
    }
    let bytes = metadata.len();
    copy.running.set(BYTES_TOTAL, bytes as i64);
    if !is_parquet {
        return feed_all(copy, |chunk| file.read(chunk).map_err(failed));
    }
    copy.copy.load(Arc::new(SourceFile { file, bytes }))?;
    copy.running.set(BYTES_PROCESSED, bytes as i64);
    Ok(())
}

fn copy_from_object(copy: &mut Watched<CopyFrom>, url: &str, is_parquet: bool) -> Result<()> {
    let object = ObjectReader::open(url)?;
    let bytes = object.bytes();
    copy.running.set(BYTES_TOTAL, bytes as i64);
    if !is_parquet {
        return object.read_all(&mut |piece| copy.feed(piece));
    }
    copy.copy.load(Arc::new(StoredObject(object)))?;
    copy.running.set(BYTES_PROCESSED, bytes as i64);
    Ok(())
}

/// Feeds everything that `read` puts into chunks, until it has nothing more.
fn feed_all(copy: &mut Watched<CopyFrom>, mut read: impl FnMut(&mut [u8]) -> Result<usize>) -> Result<()> {
    let mut chunk = vec![0; FILE_CHUNK_BYTES];
    loop {
        match read(&mut chunk)? {
            0 => return Ok(()),
            bytes => copy.feed(&chunk[..bytes])?,
        }
    }
}

/// For every column, the value it gets when the input lacks it.
fn column_defaults(cx: &CopyEnvironment<'_>, relation: &Arc<Relation>) -> Result<Vec<Option<Expression>>> {
    let catalog = cx.lookup.catalog();
    (0..relation.columns.len())
        .map(|at| {
            let default = cx.lookup.with_context(|c| melba_analyze::column_default(c, relation, at))?;
            default.map(|e| compile_for_table(&catalog, Some(cx.lookup.session()), &e)).transpose()
        })
        .collect()
}

fn copy_to(cx: &CopyEnvironment<'_>, s: &CopyStmt, options: CopyOptions) -> Result<Outcome> {
    let mut relation_oid = Oid::INVALID;
    let outcome = match (&s.relation, s.query.as_deref()) {
        (Some(name), _) => {
            let relation = cx.lookup.open_target(name)?;
            let what = match relation.kind {
                RelationKind::Table => None,
                RelationKind::MaterializedView if relation.populated => None,
                RelationKind::View => Some("view"),
                RelationKind::MaterializedView => Some("unpopulated materialized view"),
                RelationKind::Sequence => Some("sequence"),
                RelationKind::PartitionedTable => Some("partitioned table"),
                RelationKind::ForeignTable => Some("foreign table"),
                _ => Some("non-table relation"),
            };
            if let Some(what) = what {
                let error = err!(WRONG_OBJECT_TYPE, "cannot copy from {what} \"{}\"", relation.name);
                return Err(if what == "sequence" || what == "non-table relation" {
                    error
                } else {
                    error.hint("Try the COPY (SELECT ...) TO variant.")
                });
            }
            relation_oid = relation.oid;
            let columns = copied_columns(&relation, &strings(&s.attlist))?;
            let list: Vec<String> = columns.iter().map(|at| quote_ident(&relation.columns[*at].name).into_owned()).collect();
            let text = format!("SELECT {} FROM ONLY {}", list.join(", "), cx.lookup.qualified_name(&relation));
            let parsed = melba_parse::parse(&text)?;
            let statement = parsed.statements.first().ok_or_else(|| DbError::internal("COPY's query is empty"))?;
            (cx.query)(&statement.node)?
        }
        (None, Some(query)) => (cx.query)(melba_parse::nodes::inner(query)?)?,
        _ => return Err(DbError::internal("COPY TO without a source")),
    };
    let Outcome::Rows { columns, mut source, .. } = outcome else {
        bail!(FEATURE_NOT_SUPPORTED, "COPY query must have a RETURNING clause");
    };
    let width = columns.len();
    let format = wire_format(&options);
    let names: Vec<Arc<str>> = columns.iter().map(|c| c.name.clone()).collect();
    options.check_columns(None, &names)?;
    let columns = columns.iter().map(|c| CopiedColumn { name: c.name.clone(), ty: c.ty, typmod: c.typmod }).collect();
    let exec = (cx.exec)();
    let copy =
        CopyTo::new(exec.session.clone(), Box::new(move || source.next(BATCH_ROWS)), columns, options, exec.resources().held());
    let mut copy = Watched::new(cx, copy, relation_oid, s);
    if s.filename.is_empty() {
        return Ok(Outcome::CopyOut { format, columns: width, copy: Box::new(copy) });
    }
    if s.is_program {
        return copy_to_program(cx, s, copy);
    }
    if melba_objects::is_url(&s.filename) {
        return copy_to_object(&s.filename, copy);
    }
    if !s.filename.starts_with('/') {
        bail!(INVALID_NAME, "relative path not allowed for COPY to file");
    }
    let file = created_file::create(s.filename.as_ref()).map_err(|e| file_error(&s.filename, "writing", &e))?;
    let mut file = BufWriter::new(file);
    let mut row = Vec::new();
    while copy.next(&mut row)? {
        file.write_all(&row).map_err(|e| file_error(&s.filename, "writing", &e))?;
        row.clear();
    }
    file.flush().map_err(|e| file_error(&s.filename, "writing", &e))?;
    Ok(Outcome::Done { tag: format!("COPY {}", copy.rows()) })
}

fn copy_to_program(cx: &CopyEnvironment<'_>, s: &CopyStmt, mut copy: Watched<CopyTo>) -> Result<Outcome> {
    let mut program = PipedProgram::start(&s.filename, false)?;
    let mut rows = Vec::new();
    while copy.next(&mut rows)? {
        if rows.len() >= FILE_CHUNK_BYTES {
            program.write(&rows, false, cx.wait)?;
            rows.clear();
        }
    }
    program.write(&rows, true, cx.wait)?;
    program.finish(cx.wait)?;
    Ok(Outcome::Done { tag: format!("COPY {}", copy.rows()) })
}

fn copy_to_object(url: &str, mut copy: Watched<CopyTo>) -> Result<Outcome> {
    let mut object = ObjectWriter::create(url)?;
    let mut rows = Vec::new();
    while copy.next(&mut rows)? {
        if rows.len() >= FILE_CHUNK_BYTES {
            object.write(&rows)?;
            rows.clear();
        }
    }
    object.write(&rows)?;
    object.finish()?;
    Ok(Outcome::Done { tag: format!("COPY {}", copy.rows()) })
}

pub(super) fn file_error(name: &str, doing: &str, error: &std::io::Error) -> DbError {
    let reason = match error.kind() {
        std::io::ErrorKind::NotFound => "No such file or directory".to_owned(),
        std::io::ErrorKind::PermissionDenied => "Permission denied".to_owned(),
        std::io::ErrorKind::StorageFull => return err!(DISK_FULL, "could not write to file \"{name}\": No space left on device"),
        _ => error.to_string(),
    };
    let message = format!("could not open file \"{name}\" for {doing}: {reason}");
    let error = match error.kind() {
        std::io::ErrorKind::NotFound => err!(UNDEFINED_FILE, "{message}"),
        std::io::ErrorKind::PermissionDenied => err!(INSUFFICIENT_PRIVILEGE, "{message}"),
        _ => err!(IO_ERROR, "{message}"),
    };
    let (verb, command) = if doing == "reading" { ("read", "COPY FROM") } else { ("write", "COPY TO") };
    error.hint(format!(
        "{command} instructs the PostgreSQL server process to {verb} a file. You may want a client-side facility such as \
         psql's \\copy."
    ))
}
