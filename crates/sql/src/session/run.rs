//! Runs one statement: analysis, execution by the session itself or through `pipeline`, and sending its result.

use std::sync::Arc;

use melba_protocol::Format;
use melba_protocol::backend::Field;
use melba_types::{DbError, Oid, Result, SqlState};
use pg_query::NodeEnum;

use melba_parse::Statement;

use super::Session;
use super::client::Client;
use super::command;
use super::encode::RowEncoder;
use super::lent;
use super::outcome::{CopyIn, CopyOut, Outcome, ResultColumn, RowSource, Tag};
use super::pipeline;
use super::planned::Compiled;
use super::portal::{PortalRows, Rewind};
use super::prepared::{Bound, Prepared, nested};
use super::routine;
use super::session_statement;
use super::transaction::{Block, aborted};
use super::value_io::ValueIo;
use melba_parse::command::{Allowed, allowed, is_session_statement};

impl Session {
    /// In a failed block only the statements that end it may run.
    pub(super) fn check_block(&self, statement: &Statement) -> Result<()> {
        if self.block != Block::Failed || allowed(&statement.node) == Allowed::FailedBlock { Ok(()) } else { Err(aborted()) }
    }

    /// Analyzes a statement. `parameter_types` as declared, 0 for "find out".
    pub(super) fn prepare(&mut self, statement: Option<Arc<Statement>>, parameter_types: &[Oid]) -> Result<Prepared> {
        let mut prepared = Prepared {
            statement: None,
            parameter_types: parameter_types.to_vec(),
            columns: None,
            compiled: Compiled::default(),
            from_sql: false,
            prepared_at: self.statement_start,
            executions: Default::default(),
        };
        let Some(statement) = statement else { return Ok(prepared) };
        if let NodeEnum::DeclareCursorStmt(declare) = &statement.node {
            // Its parameters are those of its query.
            let query = nested(declare.query.as_deref().and_then(|q| q.node.as_ref()), &statement)?;
            prepared.parameter_types = self.prepare(Some(query), parameter_types)?.parameter_types;
        } else if is_session_statement(&statement.node) {
            session_statement::refuse_parameters(&statement)?;
            prepared.columns = self.utility_columns(&statement)?;
        } else {
            if let Some(transaction) = &mut self.transaction {
                transaction.used = true;
            }
            let analyzed = pipeline::analyze(self.context(), &statement, parameter_types)?;
            prepared.parameter_types = analyzed.parameter_types;
            prepared.columns = analyzed.columns;
            prepared.compiled = analyzed.compiled;
        }
        prepared.statement = Some(statement);
        Ok(prepared)
    }

    /// Runs a statement up to its first row, or to its end when it has none.
    pub(super) fn start(&mut self, bound: Bound) -> Result<Outcome> {
        let Some(statement) = &bound.prepared.statement else {
            return Err(DbError::internal("an empty query cannot be started"));
        };
        self.check_block(statement)?;
        bound.prepared.count_execution();
        self.note_command(statement);
        let read_only = self.transaction.as_ref().is_some_and(|t| t.modes.read_only);
        command::check(&statement.node, self.block, read_only)?;
        if is_session_statement(&statement.node) {
            return self.run_utility(statement, &bound.prepared.parameter_types, &bound.parameters);
        }
        if let Some(transaction) = &mut self.transaction {
            transaction.used = true;
        }
        let context = self.context().clone();
        match &statement.node {
            NodeEnum::CallStmt(s) => {
                let types = &bound.prepared.parameter_types;
                routine::run_call(&context, s, None, (types, &bound.parameters), self.transaction_control())
            }
            NodeEnum::DoStmt(s) => {
                routine::run_do(&context, s, statement, self.transaction_control())?;
                Ok(Outcome::Done { tag: "DO".into() })
            }
            _ => pipeline::execute(&context, statement, &bound.prepared, bound.parameters),
        }
    }

    /// Runs what may raise notices, which go to the client at once (`lent`).
    pub(super) fn lend<R>(&mut self, client: &mut dyn Client, run: impl FnOnce(&mut Session) -> R) -> R {
        self.send_notices(client);
        if self.is_committing() {
            // Nothing may reach the client yet.
            return run(self);
        }
        let (state, source) = (self.state.clone(), self.source.clone());
        lent::lend(client, &state.notices, &source, || run(self))
    }

    /// The same for what leaves the session alone.
    pub(super) fn lend_for<R>(&self, client: &mut dyn Client, run: impl FnOnce() -> R) -> R {
        self.send_notices(client);
        if self.is_committing() { run() } else { lent::lend(client, &self.state.notices, &self.source, run) }
    }

    /// With the context renewed.
    pub(super) fn send_row_description(
        &self,
        columns: &[ResultColumn],
        formats: &[Format],
        client: &mut dyn Client,
    ) -> Result<()> {
        let encoding = self.client_encoding();
        if !encoding.is_plain() {
            columns.iter().try_for_each(|c| encoding.encode(&c.name).map(drop))?;
        }
        client.output().set_encoding(encoding);
        let catalog = &self.context.catalog;
        client.output().row_description(columns.iter().enumerate().map(|(i, c)| {
            // Clients get the types under domains.
            let (type_oid, type_modifier) = catalog.base_type_and_typmod(c.ty, c.typmod);
            Field {
                name: &c.name,
                table: c.table,
                attribute: c.attribute,
                type_oid,
                type_size: c.size,
                type_modifier,
                format: formats.get(i).copied().unwrap_or(Format::Text),
            }
        }));
        Ok(())
    }

    /// Sends up to `count` rows. Returns how many were sent, and whether some may be left.
    pub(super) fn send_rows(
        &mut self,
        rows: &mut PortalRows,
        columns: &[ResultColumn],
        formats: &[Format],
        count: u64,
        client: &mut dyn Client,
    ) -> Result<(u64, bool)> {
        self.renew_context();
        let this = &*self;
        let io = ValueIo::new(&this.context);
        let encoder = RowEncoder::new(columns, formats, &io)?;
        let mut sent = 0;
        while sent < count {
            if !this.lend_for(client, || rows.read(count - sent))? {
                return Ok((sent, false));
            }
            this.state.interrupt.check()?;
            this.send_notices(client);
            sent += rows.take_read(count - sent, |batch, range| encoder.send(batch, range, client))?;
        }
        Ok((sent, true))
    }

    /// Sends a whole result and returns its command tag.
    pub(super) fn send_result(
        &mut self,
        columns: &[ResultColumn],
        source: Box<dyn RowSource>,
        tag: &Tag,
        formats: &[Format],
        client: &mut dyn Client,
    ) -> Result<String> {
        let mut rows = PortalRows::new(source, Rewind::Never);
        let (sent, _) = self.send_rows(&mut rows, columns, formats, u64::MAX, client)?;
        Ok(tag.text(sent))
    }

    /// COPY FROM STDIN: feeds the client's data.
    pub(super) fn copy_in(
        &mut self,
        format: Format,
        columns: usize,
        mut copy: Box<dyn CopyIn>,
        client: &mut dyn Client,
    ) -> Result<String> {
        /// What a trigger has to tell of a longer piece of data waits for the next one.
        const LENT_BYTES_MAX: usize = 1 << 20;
        self.send_notices(client);
        client.output().copy_in_response(format, columns);
        client.flush()?;
        let mut piece = Vec::new();
        loop {
            if client.copy_stalls()? {
                self.lend(client, |_| copy.catch_up())?;
            }
            let data = match client.copy_read() {
                Ok(Some(data)) => data,
                Ok(None) => break,
                Err(error) => {
                    // A session that must end is woken by closing the reading side, so reads end.
                    if let Some(ends) = self.state.interrupt.must_end() {
                        return Err(ends.context(copy.place()));
                    }
                    self.lost_sync = error.sqlstate() != SqlState::QUERY_CANCELED;
                    return Err(error.context(copy.place()));
                }
            };
            self.state.interrupt.check()?;
            if data.len() > LENT_BYTES_MAX {
                copy.feed(data)?;
                continue;
            }
            // The client cannot be lent as long as what it has sent is looked at where it lies.
            piece.clear();
            piece.extend_from_slice(data);
            self.lend(client, |_| copy.feed(&piece))?;
        }
        let rows = self.lend(client, |_| copy.finish())?;
        Ok(format!("COPY {rows}"))
    }

    /// COPY TO STDOUT: one CopyData per row, as clients that read rows expect.
    pub(super) fn copy_out(
        &mut self,
        format: Format,
        columns: usize,
        mut copy: Box<dyn CopyOut>,
        client: &mut dyn Client,
    ) -> Result<String> {
        client.output().copy_out_response(format, columns);
        let mut row = Vec::new();
        while self.lend(client, |_| copy.next(&mut row))? {
            self.state.interrupt.check()?;
            client.output().copy_data(&row);
            client.flush_when_large()?;
            row.clear();
        }
        client.output().copy_done();
        Ok(format!("COPY {}", copy.rows()))
    }
}
