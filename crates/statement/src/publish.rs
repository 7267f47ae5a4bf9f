//! melba_publish writes the next snapshot of a publication's tables, as of one commit.
//!
//! The tables are locked ACCESS SHARE, so that no definition changes; writers do not wait. The state of the tables on the store is kept
//! between snapshots, and read again after an error.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use melba_catalog::privileges::RoleUse;
use melba_catalog::publications::{publication_by_name, publications, published_tables};
use melba_catalog::{Catalog, Publication, Relation, Storage};
use melba_encoding::UTF8;
use melba_engine::{Isolation, LockTag, RelationLockMode, Wait};
use melba_expression::{Evaluation, NoSubPlans};
use melba_fmgr::{DateOrder, DateStyle, FormatSettings, IntervalStyle, Session};
use melba_iceberg::{Announce, Committed, IcebergTable, Lineage, Moment, Published, PublishedColumn, Schema};
use melba_transaction::Tx;
use melba_types::datetime::UNIX_EPOCH_MICROS;
use melba_types::{Array, ArrayDim, Batch, Csn, Datum, DbError, Oid, Result, bail, err, oids};
use parking_lot::Mutex;

use super::context::StatementContext;
use super::names::SearchPath;
use super::publishing::{KEEP, SnapshotReport, Work, span};

/// How often a wait for another snapshot of the publication looks for a cancel request.
const LOOK: Duration = Duration::from_millis(50);

/// melba_publish: writes a snapshot, and returns the CSN that the publication's tables have now.
///
/// # Errors
/// 42704 for no publication, 0A000 for one without a format, 42501 for a user who does not own it and for an owner who may not write to
/// stores, 25001 in a transaction block, and in a transaction that has changed something or keeps its snapshot; those of the store, and
/// of values that the format cannot hold.
pub(super) fn publish(context: &StatementContext, name: &str) -> Result<Datum> {
    let tx = context.tx.as_ref().ok_or_else(|| DbError::internal("a statement without a transaction"))?;
    if context.session.in_block.load(Ordering::Relaxed) {
        bail!(ACTIVE_SQL_TRANSACTION, "melba_publish cannot run inside a transaction block");
    }
    if tx.engine.isolation() != Isolation::ReadCommitted || tx.engine.has_writes() || tx.has_catalog_changes() {
        bail!(ACTIVE_SQL_TRANSACTION, "melba_publish needs a READ COMMITTED transaction that has not written");
    }
    let context = &with_fixed_settings(context);
    let oid = find(context, tx, name, None)?.oid;
    let instance = &context.session.instance;
    let slot = instance.publishing.slot(context.session.database_oid, oid);
    // No lock is waited for while the slot is held: the detection of deadlocks does not know it.
    let mut locked: Vec<Oid> = Vec::new();
    let (publication, catalog, tables, mut work) = loop {
        let wanted = find(context, tx, name, Some(oid))?;
        lock_tables(tx, &wanted, &mut locked)?;
        let work = loop {
            match slot.work.try_lock_for(LOOK) {
                Some(work) => break work,
                None => context.check_interrupt()?,
            }
        };
        // What it is of may have changed meanwhile.
        let publication = find(context, tx, name, Some(oid))?;
        let catalog = tx.catalog();
        let tables = published_tables(&catalog, &publication);
        if tables.iter().all(|table| locked.contains(&table.oid)) {
            break (publication, catalog, tables, work);
        }
    };
    let clock = &instance.cluster.clock;
    let begun = clock.now_micros();
    {
        let mut report = slot.report.lock();
        (report.begun, report.is_running) = (Some(begun), true);
    }
    let allowed = check_location(context, &publication);
    let done = allowed.and_then(|()| Publisher { context, tx, publication: &publication }.publish(&mut work, &catalog, &tables));
    let now = clock.now_micros();
    let mut report = slot.report.lock();
    report.is_running = false;
    match done {
        Ok(snapshot) => {
            (report.failures, report.error) = (0, None);
            report.last = Some(SnapshotReport { took: now - begun, ..snapshot });
            Ok(Datum::Int8(snapshot.csn as i64))
        }
        Err(e) => {
            // What is on the store may differ from what is remembered.
            *work = None;
            report.failures += 1;
            let detail = e.fields().detail.as_deref().map_or_else(String::new, |detail| format!(" ({detail})"));
            report.error = Some((format!("{}{detail}", e.message()), now));
            Err(e)
        }
    }
}

/// The publication of a name, for its owner. `oid`: it has to be this one.
fn find(context: &StatementContext, tx: &Tx, name: &str, oid: Option<Oid>) -> Result<Arc<Publication>> {
    let publication = publication_by_name(&tx.catalog(), name).cloned();
    let publication = publication.filter(|found| oid.is_none_or(|oid| found.oid == oid));
    let publication = publication.ok_or_else(|| err!(UNDEFINED_OBJECT, "publication \"{name}\" does not exist"))?;
    if !tx.catalog().has_role(context.user.oid, publication.owner, RoleUse::Inherit) {
        bail!(INSUFFICIENT_PRIVILEGE, "must be owner of publication {name}");
    }
    if publication.option("format").is_none() {
        return Err(DbError::unsupported("publishing for subscribers, which a publication without a format is for"));
    }
    Ok(publication)
}

/// What is written as text does not depend on the settings of who publishes.
fn with_fixed_settings(context: &StatementContext) -> StatementContext {
    let format = FormatSettings {
        date_style: DateStyle::Iso,
        date_order: DateOrder::Mdy,
        interval_style: IntervalStyle::Postgres,
        time_zone: "UTC".into(),
        extra_float_digits: 1,
        bytea_hex: true,
        xml_document: false,
        client_encoding: UTF8,
    };
    let path = SearchPath::new("pg_catalog", &context.catalog, &context.user, Oid::INVALID);
    StatementContext { format: Arc::new(format), path: Arc::new(path), ..context.clone() }
}

/// Locks the tables of a publication against changes of their definitions.
fn lock_tables(tx: &Tx, publication: &Publication, locked: &mut Vec<Oid>) -> Result<()> {
    loop {
        let tables = published_tables(&tx.catalog(), publication);
        let Some(table) = tables.iter().find(|table| !locked.contains(&table.oid)) else { return Ok(()) };
        let tag = LockTag::Relation { database: tx.database.0, relation: table.oid.0 };
        tx.engine.lock_relation(tag, RelationLockMode::AccessShare, Wait::Block)?;
        locked.push(table.oid);
    }
}

/// Whether the owner may still write to stores, and none of the server's own files is at stake.
fn check_location(context: &StatementContext, publication: &Publication) -> Result<()> {
    let (name, role) = (&publication.name, "pg_write_server_files");
    let writers = context.catalog.role_by_name(role);
    if !writers.is_some_and(|role| context.catalog.has_role(publication.owner, role.oid, RoleUse::Inherit)) {
        return Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to publish to a file or an object store")
            .detail(format!("The owner of publication \"{name}\" needs the privileges of the \"{role}\" role.")));
    }
    let location = publication.option("location").unwrap_or_default();
    let data = context.session.settings.lock().get("data_directory").as_text().to_owned();
    if !data.is_empty() && melba_objects::is_within(location, Path::new(&data)) {
        bail!(INVALID_PARAMETER_VALUE, "location \"{location}\" of publication \"{name}\" is in the data directory");
    }
    Ok(())
}

/// One snapshot of a publication's tables.
struct Publisher<'a> {
    context: &'a StatementContext,
    tx: &'a Arc<Tx>,
    publication: &'a Publication,
}

impl Publisher<'_> {
    fn publish(&self, work: &mut Option<Work>, catalog: &Arc<Catalog>, tables: &[Arc<Relation>]) -> Result<SnapshotReport> {
        let location = self.publication.option("location").unwrap_or_default();
        if work.as_ref().is_some_and(|work| work.location != location) {
            *work = None;
        }
        let engine = &self.context.session.instance.cluster.engine;
        let (history, database) = (engine.database_number(), self.context.session.database_oid);
        let work = match work {
            Some(work) => work,
            None => {
                let owner = format!("publication {} of database {database} of {history:016x}", self.publication.oid);
                let published = Published::open(location, &owner)?;
                work.insert(Work { location: location.to_owned(), published, tables: HashMap::new() })
            }
        };
        let context = StatementContext { catalog: Arc::clone(catalog), ..self.context.clone() };
        let evaluation = Evaluation::plain(Arc::new(context), &self.tx.engine);
        let csn = evaluation.view().csn;
        let commit_time = self.context.session.instance.cluster.clock.now_micros();
        // A crash must not take back what is published.
        engine.flush_log()?;
        let name = |r: &Arc<Relation>| {
            let schema = catalog.namespace(r.namespace).map_or_else(String::new, |n| n.name.to_string());
            (r.oid, schema, r.name.to_string())
        };
        let names: Vec<_> = tables.iter().map(name).collect();
        let mut has_changed = work.published.set_tables(&names);
        if has_changed {
            work.published.save()?;
        }
        work.tables.retain(|oid, _| tables.iter().any(|table| table.oid == *oid));
        let moment = Moment { csn: csn.0, time: commit_time - UNIX_EPOCH_MICROS };
        let mut changed = Committed::default();
        for relation in tables {
            let committed = self.publish_table(work, relation, &evaluation, &moment, history);
            let committed = committed.map_err(|e| e.context(format!("publication of table {}", relation.name)))?;
            has_changed |= committed.is_some();
            let more = committed.unwrap_or_default();
            changed.rows_added += more.rows_added;
            changed.rows_deleted += more.rows_deleted;
            changed.bytes_added += more.bytes_added;
        }
        if has_changed {
            (work.published.csn, work.published.commit_time) = (csn.0, moment.time_text());
            work.published.save()?;
        }
        Ok(SnapshotReport { csn: csn.0, commit_time, took: 0, tables: tables.len(), changed })
    }

    fn publish_table(
        &self,
        work: &mut Work,
        relation: &Arc<Relation>,
        evaluation: &Evaluation<NoSubPlans>,
        moment: &Moment,
        history: u64,
    ) -> Result<Option<Committed>> {
        let Storage::Tree(tree) = relation.storage else { return Ok(None) };
        let published = &mut work.published;
        let Some(place) = published.tables.iter_mut().find(|t| t.table == relation.oid) else { return Ok(None) };
        let session = &evaluation.session;
        let table = match work.tables.remove(&relation.oid) {
            Some(table) => table,
            None => IcebergTable::open(&published.folder, &place.directory, session)?,
        };
        let table = work.tables.entry(relation.oid).or_insert(table);
        let columns = self.columns(relation);
        let schema = Schema::new(&**session, columns.iter().map(|(_, column)| column.clone()).collect());
        let origin = Lineage { history, database: self.context.session.database_oid, table: relation.oid, tree: tree.0 };
        let id = self.context.session.instance.cluster.random.next_u64();
        let writer = Mutex::new(evaluation.resources().held());
        let announce: Announce = Arc::new(move |bytes| Ok(writer.lock().set(bytes)?));
        let mut held = evaluation.resources().held();
        let mut change = table.change(session, schema, origin, moment.csn, id, announce)?;
        held.set(change.memory_bytes())?;
        let projection: Vec<usize> = columns.iter().map(|(at, _)| *at).collect();
        let kinds: Vec<_> = projection.iter().map(|at| relation.columns[*at].kind).collect();
        let missing: Vec<Datum> = relation.columns.iter().map(|c| c.missing.clone()).collect();
        let mut scan = self.tx.engine.scan(evaluation.view(), tree, &projection, &missing, &[], None)?;
        let storage = scan.storage();
        if let Some(since) = change.since()
            && change.is_idle()
            && change.seen() == Some(&storage[..])
            && !scan.has_newer(Csn(since))
        {
            change.keep(moment.csn);
            return Ok(None);
        }
        // A commit has a CSN above 0.
        let since = Csn(change.since().unwrap_or(0));
        while let Some(mut piece) = scan.next_piece()? {
            evaluation.check_interrupt()?;
            let newer = piece.newer_than(since)?;
            let wanted = change.note(piece.row_ids()?, &newer);
            if wanted.is_empty() {
                continue;
            }
            piece.keep(&wanted);
            let found = piece.finish()?;
            let mut batch = Batch { rows: found.row_ids.len(), columns: found.columns };
            let mut row_ids = &found.row_ids[..];
            while batch.rows > 0 {
                let some = melba_expression::expand::rows_within(&batch, 0);
                let part = if some < batch.rows { batch.slice(0..some, None) } else { batch.clone() };
                change.append(&row_ids[..some], evaluation.expand_batch(part, &kinds)?)?;
                batch = batch.slice(some..batch.rows, None);
                row_ids = &row_ids[some..];
            }
            held.set(change.memory_bytes())?;
        }
        drop(scan);
        let committed = change.commit(moment, span(self.publication, "keep", KEEP))?;
        table.set_seen(storage);
        place.metadata = table.metadata_url();
        Ok(committed)
    }

    /// The columns that are published, with their places: not those that are computed, unless the publication says so.
    fn columns(&self, relation: &Relation) -> Vec<(usize, PublishedColumn)> {
        let is_published = |generated: u8| generated == 0 || (generated == b's' && self.publication.generated == b's');
        let columns = relation.columns.iter().enumerate().filter(|(_, c)| !c.dropped && is_published(c.generated));
        let column = |(at, c): (usize, &melba_catalog::Column)| {
            // A generated column may be published later than its rows were written.
            let has_missing_value = !c.missing.is_null() || c.generated != 0;
            let (name, ty, typmod) = (c.name.clone(), c.ty, c.typmod);
            (at, PublishedColumn { number: at as i32 + 1, name, ty, typmod, has_missing_value })
        };
        columns.map(column).collect()
    }
}

/// melba_get_publications: pubid, pubname, options, csn, commit_time, duration, tables, rows_added, rows_deleted, bytes_added, error,
/// failed_at.
pub(super) fn publication_rows(context: &StatementContext) -> Vec<Vec<Datum>> {
    let publishing = &context.session.instance.publishing;
    let row = |publication: &Arc<Publication>| {
        let report = publishing.slot(context.session.database_oid, publication.oid).report.lock().clone();
        let options: Vec<Datum> = publication.options.iter().map(|option| Datum::text(option.clone())).collect();
        let mut row = vec![Datum::Oid(publication.oid.0), Datum::text(publication.name.clone()), array(oids::TEXT, 1, options)];
        match report.last {
            Some(last) => row.extend([
                Datum::Int8(last.csn as i64),
                Datum::Int8(last.commit_time),
                Datum::Float8(last.took as f64 / 1000.0),
                Datum::Int8(last.tables as i64),
                Datum::Int8(last.changed.rows_added as i64),
                Datum::Int8(last.changed.rows_deleted as i64),
                Datum::Int8(last.changed.bytes_added as i64),
            ]),
            None => row.extend(vec![Datum::Null; 7]),
        }
        match report.error {
            Some((error, at)) => row.extend([Datum::text(error), Datum::Int8(at)]),
            None => row.extend([Datum::Null, Datum::Null]),
        }
        row
    };
    publications(&context.catalog).filter(|p| p.option("format").is_some()).map(row).collect()
}

/// pg_get_publication_tables: pubid, relid, attrs, qual.
pub(super) fn published_table_rows(context: &StatementContext, args: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    let Datum::Array(names) = &args[0] else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for name in names.elements.iter().filter(|name| !name.is_null()) {
        let name = name.as_str();
        let publication = publication_by_name(&context.catalog, name);
        let publication = publication.ok_or_else(|| err!(UNDEFINED_OBJECT, "publication \"{name}\" does not exist"))?;
        for table in published_tables(&context.catalog, publication) {
            let is_published = |generated: u8| generated == 0 || (generated == b's' && publication.generated == b's');
            let columns = table.columns.iter().enumerate().filter(|(_, c)| !c.dropped && is_published(c.generated));
            let numbers: Vec<Datum> = columns.map(|(at, _)| Datum::Int2(at as i16 + 1)).collect();
            let attributes = array(oids::INT2, 0, numbers);
            rows.push(vec![Datum::Oid(publication.oid.0), Datum::Oid(table.oid.0), attributes, Datum::Null]);
        }
    }
    Ok(rows)
}

fn array(element_type: Oid, lower_bound: i32, elements: Vec<Datum>) -> Datum {
    let dims = vec![ArrayDim { length: elements.len() as i32, lower_bound }];
    Datum::Array(Arc::new(Array { element_type, dims, elements }))
}
