//! The extended query protocol: Parse, Bind, Describe, Execute, Close.

use std::sync::Arc;

use melba_fmgr::Session as _;
use melba_protocol::frontend::{Oids, parameter_place};
use melba_protocol::{Bind, Format, Target};
use melba_types::{Datum, DbError, Oid, Result, bail, err};
use pg_query::NodeEnum;

use melba_parse::command::{Allowed, allowed};
use melba_types::BATCH_ROWS;

use super::Session;
use super::cache::{self, Cached};
use super::client::Client;
use super::outcome::{Outcome, ResultColumn, StoredRows};
use super::portal::{Portal, PortalRows, PortalState, Rewind};
use super::prepared::{Bound, BoundName, Prepared, shape_changed};
use super::statement_counts::measure::{Measured, rows_of};
use super::transaction::{Block, aborted};
use super::value_io::ValueIo;

impl Session {
    pub(super) fn parse(&mut self, name: &str, text: &str, types: Oids<'_>, client: &mut dyn Client) -> Result<()> {
        self.begin_logging();
        self.set_source(&text.into());
        self.start_command()?;
        if name.is_empty() {
            // The old one is dropped even if this one fails.
            self.prepared.remove("");
        }
        self.warn_of_escapes(text);
        let mut key = std::mem::take(&mut self.normalized.key);
        cache::parse_key(text, types.iter(), &mut key);
        let result = self.parse_known(&key, name, text, types);
        self.normalized.key = key;
        result?;
        self.send_notices(client);
        self.end_logged_parse(name);
        client.output().parse_complete();
        Ok(())
    }

    /// Parse, with the cache entry of its key.
    fn parse_known(&mut self, key: &[u8], name: &str, text: &str, types: Oids<'_>) -> Result<()> {
        let (parsed, known) = match self.cache.get(key) {
            Some(Cached::Query { parsed, prepared }) => (parsed.clone(), prepared.clone()),
            _ => (Arc::new(self.parse_text(text)?), None),
        };
        if parsed.statements.len() > 1 {
            bail!(SYNTAX_ERROR, "cannot insert multiple commands into a prepared statement");
        }
        let statement = parsed.statements.first();
        if let Some(statement) = statement {
            self.check_block(statement)?;
        }
        // Named statements are shown with their own time and counts.
        let known = known.filter(|p| name.is_empty() && p.compiled.is_for(self.context()));
        let prepared = match known {
            Some(prepared) => prepared,
            None => {
                let types: Vec<Oid> = types.iter().collect();
                let catalog = self.current_catalog();
                if let Some(ty) = types.iter().find(|ty| ty.is_valid() && catalog.type_(**ty).is_none()) {
                    bail!(INTERNAL_ERROR, "cache lookup failed for type {ty}");
                }
                let prepared = Arc::new(self.prepare(statement.cloned(), &types)?);
                let reusable = prepared.compiled.is_reusable() && name.is_empty();
                self.cache.put(key, Cached::Query { parsed, prepared: reusable.then(|| prepared.clone()) });
                prepared
            }
        };
        if !name.is_empty() && self.prepared.get(name).is_some() {
            bail!(DUPLICATE_PSTATEMENT, "prepared statement \"{name}\" already exists");
        }
        self.prepared.insert(name, prepared);
        Ok(())
    }

    pub(super) fn find_prepared(&self, name: &str) -> Result<Arc<Prepared>> {
        match self.prepared.get(name) {
            Some(prepared) => Ok(prepared),
            None if name.is_empty() => Err(err!(UNDEFINED_PSTATEMENT, "unnamed prepared statement does not exist")),
            None => {
                let error = err!(UNDEFINED_PSTATEMENT, "prepared statement \"{name}\" does not exist");
                // Clients prepare again when they see it.
                Err(error.routine("FetchPreparedStatement"))
            }
        }
    }

    pub(super) fn bind(&mut self, bind: &Bind<'_>, client: &mut dyn Client) -> Result<()> {
        self.begin_logging();
        let mut prepared = self.find_prepared(bind.statement)?;
        self.set_source_of(&prepared);
        self.start_command()?;
        if bind.parameter_formats.len() > 1 && bind.parameter_formats.len() != bind.parameters.len() {
            bail!(
                PROTOCOL_VIOLATION,
                "bind message has {} parameter formats but {} parameters",
                bind.parameter_formats.len(),
                bind.parameters.len()
            );
        }
        if bind.parameters.len() != prepared.parameter_types.len() {
            bail!(
                PROTOCOL_VIOLATION,
                "bind message supplies {} parameters, but prepared statement \"{}\" requires {}",
                bind.parameters.len(),
                bind.statement,
                prepared.parameter_types.len()
            );
        }
        let ends_block = prepared.statement.as_ref().is_some_and(|s| allowed(&s.node) == Allowed::FailedBlock);
        if self.block == Block::Failed && !(ends_block && prepared.parameter_types.is_empty()) {
            return Err(aborted());
        }
        if !bind.portal.is_empty() && self.state.portals.contains(bind.portal) {
            bail!(DUPLICATE_CURSOR, "cursor \"{}\" already exists", bind.portal);
        }
        // Domains read the transaction, and 'now' its start.
        self.renew_context();
        let parameters = self.lend(client, |session| session.read_parameters(bind, &prepared.parameter_types))?;
        prepared = self.lend(client, |session| session.revalidate(bind.statement, prepared))?;
        prepared.compiled.check_constants()?;
        // The columns of FETCH and EXECUTE are known by now, if they were not at Parse.
        let columns = match &prepared.statement {
            Some(statement) if matches!(statement.node, NodeEnum::FetchStmt(_) | NodeEnum::ExecuteStmt(_)) => {
                self.utility_columns(statement)?
            }
            _ => prepared.columns.clone(),
        };
        let formats = match columns.as_ref().map(|c| (c.len(), bind.result_formats.expand(c.len()))) {
            None => Vec::new(),
            Some((_, Some(formats))) => formats,
            Some((count, None)) => bail!(
                PROTOCOL_VIOLATION,
                "bind message has {} result formats but query has {count} columns",
                bind.result_formats.len()
            ),
        };
        let parameters: Arc<[Datum]> = parameters.into();
        let bound = BoundName::of(&self.derived.log, bind.statement, &prepared, &parameters);
        self.end_logged_bind(bind.portal, bound.as_deref());
        let portal = Portal {
            bound,
            columns,
            formats,
            state: PortalState::Ready(Bound { prepared, parameters }),
            hold: false,
            declared: None,
            held: false,
            positions: Arc::from([]),
            pinned: false,
            number: 0,
            counted: None,
        };
        self.state.portals.insert(bind.portal.to_owned(), portal);
        client.output().bind_complete();
        Ok(())
    }

    fn read_parameters(&self, bind: &Bind<'_>, types: &[Oid]) -> Result<Vec<Datum>> {
        let io = ValueIo::new(&self.context);
        let mut out = Vec::with_capacity(types.len());
        for (i, (value, ty)) in bind.parameters.iter().zip(types).enumerate() {
            let place = |shown: &str| parameter_place(bind.portal, i) + shown;
            let datum = match (value, bind.parameter_formats.get(i)) {
                (_, Format::Unknown(code)) => Err(unknown_format(code).context(place(""))),
                (None, _) => melba_fmgr::io::check_domain(&*self.context, *ty, Datum::Null).map_err(|e| e.context(place(""))),
                (Some(bytes), Format::Text) => {
                    let text = melba_protocol::body::utf8(bytes).map_err(|e| e.context(place("")))?;
                    // log_parameter_max_length_on_error is 0: not a character of it.
                    io.input(*ty, text).map_err(|e| e.context(place(" = '...'")))
                }
                (Some(bytes), Format::Binary) => {
                    let received = io.receive(*ty, bytes);
                    received.map_err(|e| too_long(e, &format!("bind parameter {}", i + 1)).context(place("")))
                }
            };
            out.push(datum?);
        }
        Ok(out)
    }

    pub(super) fn describe(&mut self, target: Target<'_>, client: &mut dyn Client) -> Result<()> {
        self.continue_command()?;
        self.renew_context();
        match target {
            Target::Statement(name) => {
                let prepared = self.find_prepared(name)?;
                self.check_describable(prepared.columns.as_deref())?;
                client.output().parameter_description(&prepared.parameter_types);
                let prepared = self.revalidate(name, prepared)?;
                self.describe_columns(prepared.columns.as_deref(), &[], client)
            }
            Target::Portal(name) => {
                let (columns, formats) = self.state.portals.shape(name).ok_or_else(|| no_portal(name))?;
                self.check_describable(columns.as_deref())?;
                self.describe_columns(columns.as_deref(), &formats, client)
            }
        }
    }

    /// Describing a result may need the catalogs, which a failed transaction must not read.
    fn check_describable(&self, columns: Option<&[ResultColumn]>) -> Result<()> {
        if self.block == Block::Failed && columns.is_some() { Err(aborted()) } else { Ok(()) }
    }

    fn describe_columns(&self, columns: Option<&[ResultColumn]>, formats: &[Format], client: &mut dyn Client) -> Result<()> {
        match columns {
            Some(columns) => self.send_row_description(columns, formats, client)?,
            None => client.output().no_data(),
        }
        Ok(())
    }

    pub(super) fn execute(&mut self, name: &str, max_rows: i32, client: &mut dyn Client) -> Result<()> {
        self.begin_logging();
        // Out of the map while it runs, so that its statement may use the session.
        let mut portal = self.state.portals.take(name).ok_or_else(|| no_portal(name))?;
        let empty = matches!(&portal.state, PortalState::Ready(bound) if bound.prepared.statement.is_none());
        if empty {
            client.output().empty_query_response();
            self.state.portals.put_back(name.to_owned(), portal);
            return Ok(());
        }
        let (is_fetch, ends_block) = match &portal.state {
            PortalState::Ready(bound) => {
                self.set_source_of(&bound.prepared);
                (false, bound.prepared.statement.as_ref().is_some_and(|s| allowed(&s.node) == Allowed::FailedBlock))
            }
            _ => (true, false),
        };
        if self.block == Block::Failed && !ends_block {
            self.state.portals.put_back(name.to_owned(), portal);
            return Err(aborted());
        }
        let transaction_before = self.transaction.is_some();
        self.start_command()?;
        self.announce();
        if transaction_before && self.executed_in_pipeline {
            self.begin_implicit_block();
        }
        self.state.interrupt.check()?;
        if let Some(bound) = &portal.bound {
            self.log_execution(name, bound, is_fetch);
        }
        let measured = match (&portal.state, &portal.counted) {
            (PortalState::Ready(bound), _) => self.begin_measure(&bound.prepared.clone()),
            (_, Some(counted)) => Some(Measured::resumed(counted, self.context.monotonic())),
            _ => None,
        };
        portal.counted = measured.as_ref().map(|measured| measured.prepared.clone());
        let result = self.execute_portal(name, &mut portal, max_rows, client);
        match &result {
            Ok(Some(tag)) => self.end_measure(measured, rows_of(tag)),
            Ok(None) => self.end_measure(measured, max_rows as u64),
            Err(_) => {}
        }
        let bound = portal.bound.clone();
        let result = result.map_err(|error| self.with_parameters(error, name, bound.as_deref()));
        if result.is_err() {
            portal.state = PortalState::Failed;
        }
        // A transaction statement ended the transaction, and its portals with it.
        if self.transaction.is_some() || portal.hold {
            self.state.portals.put_back(name.to_owned(), portal);
        } else if !name.is_empty() {
            self.state.portals.remove(name);
        }
        let tag = result?;
        self.end_logged_execute(name, bound.as_deref(), is_fetch);
        self.executed_in_pipeline = true;
        self.state.interrupt.end_statement();
        self.send_notices(client);
        match tag {
            Some(tag) => client.output().command_complete(&tag),
            None => client.output().portal_suspended(),
        }
        if self.is_committing() { Ok(()) } else { client.flush_when_large() }
    }

    /// Runs a portal or continues it; `None` when rows are left.
    fn execute_portal(
        &mut self,
        name: &str,
        portal: &mut Portal,
        max_rows: i32,
        client: &mut dyn Client,
    ) -> Result<Option<String>> {
        if matches!(portal.state, PortalState::Ready(_))
            && let PortalState::Ready(bound) = std::mem::replace(&mut portal.state, PortalState::Failed)
            && let Some(tag) = self.start_portal(portal, bound, client)?
        {
            return Ok(Some(tag));
        }
        let columns = portal.columns.as_deref().unwrap_or_default();
        let count = if max_rows > 0 { max_rows as u64 } else { u64::MAX };
        match &mut portal.state {
            PortalState::Open(rows, tag) => {
                let (sent, more) = self.send_rows(rows, columns, &portal.formats, count, client)?;
                let tag = tag.clone();
                if more && sent == count {
                    return Ok(None);
                }
                if !portal.hold && portal.declared.is_none() {
                    portal.state = PortalState::Finished { had_rows: true, tag: tag.clone() };
                }
                Ok(Some(tag.text(sent)))
            }
            // Running a finished result again returns no rows.
            PortalState::Finished { had_rows: true, tag } => Ok(Some(tag.text(0))),
            PortalState::Finished { .. } | PortalState::Failed | PortalState::Ready(_) => {
                Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "portal \"{name}\" cannot be run"))
            }
        }
    }

    /// Starts a bound statement. Returns the tag when it ran to its end.
    fn start_portal(&mut self, portal: &mut Portal, bound: Bound, client: &mut dyn Client) -> Result<Option<String>> {
        let tag = match self.lend(client, |session| session.start(bound))? {
            Outcome::Rows { mut source, tag, .. } => {
                // A statement with effects runs to its end although only part of its result may be fetched.
                if tag != super::outcome::Tag::Counted("SELECT") {
                    let mut batches = Vec::new();
                    while let Some(batch) = self.lend(client, |_| source.next(BATCH_ROWS))? {
                        batches.push(batch);
                    }
                    source = Box::new(StoredRows(batches.into_iter()));
                }
                portal.state = PortalState::Open(PortalRows::new(source, Rewind::Never), tag);
                return Ok(None);
            }
            Outcome::Done { tag } => tag,
            Outcome::CopyIn { format, columns, copy } => self.copy_in(format, columns, copy, client)?,
            Outcome::CopyOut { format, columns, copy } => self.copy_out(format, columns, copy, client)?,
        };
        portal.state = PortalState::Finished { had_rows: false, tag: super::outcome::Tag::Fixed(tag.clone()) };
        Ok(Some(tag))
    }

    pub(super) fn close(&mut self, target: Target<'_>, client: &mut dyn Client) {
        match target {
            Target::Statement(name) => {
                self.prepared.remove(name);
            }
            Target::Portal(name) => {
                self.state.portals.remove(name);
            }
        }
        client.output().close_complete();
    }

    /// Analyzes a prepared statement again when the catalog changed under it. Its result must keep its shape.
    pub(super) fn revalidate(&mut self, name: &str, prepared: Arc<Prepared>) -> Result<Arc<Prepared>> {
        if self.block == Block::Failed || prepared.compiled.is_current(self.context()) {
            return Ok(prepared);
        }
        let mut fresh = self.prepare(prepared.statement.clone(), &prepared.parameter_types)?;
        if !fresh.has_shape_of(&prepared) {
            return Err(shape_changed());
        }
        (fresh.from_sql, fresh.prepared_at) = (prepared.from_sql, prepared.prepared_at);
        let fresh = Arc::new(fresh);
        self.prepared.insert(name, fresh.clone());
        Ok(fresh)
    }
}

/// An error of a binary value; extra bytes behind the value are reported with the value's place.
pub(super) fn too_long(mut error: DbError, place: &str) -> DbError {
    if error.message() == "incorrect binary data format" {
        error.fields_mut().message.push_str(&format!(" in {place}"));
    }
    error
}

/// The error for a format code that does not exist.
pub(super) fn unknown_format(code: i16) -> DbError {
    err!(INVALID_PARAMETER_VALUE, "unsupported format code: {code}")
}

fn no_portal(name: &str) -> DbError {
    err!(UNDEFINED_CURSOR, "portal \"{name}\" does not exist")
}
