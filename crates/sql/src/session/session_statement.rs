//! Statements that the session runs itself, because they are about the session: transactions, settings, prepared statements, cursors.

use std::sync::Arc;

use melba_types::{Datum, DbError, Oid, Result, bail, err, oids};
use pg_query::NodeEnum;
use pg_query::protobuf::{
    DeallocateStmt, DeclareCursorStmt, DiscardMode, ExecuteStmt, FetchStmt, PrepareStmt, TransactionStmt, TransactionStmtKind,
    VariableShowStmt,
};

use melba_parse::Statement;
use melba_parse::command::is_session_statement;

use super::Session;
use super::context::{SessionState, StatementContext};
use super::outcome::{Outcome, ResultColumn, StoredRows, Tag};
use super::portal::{Portal, PortalRows, PortalState, Rewind};
use super::portals::no_cursor;
use super::prepared::{Bound, Prepared, nested};
use super::set::modes_of;
use super::transaction::{Block, require_block};
use super::{command, outcome, pipeline, planning, values};

fn done(tag: &str) -> Result<Outcome> {
    Ok(Outcome::Done { tag: tag.to_owned() })
}

impl Session {
    /// Columns of a session statement's result.
    pub(super) fn utility_columns(&self, statement: &Statement) -> Result<Option<Arc<[ResultColumn]>>> {
        match &statement.node {
            NodeEnum::VariableShowStmt(show) => self.context.show_columns(show).map(Some),
            // A missing object is reported when the statement runs.
            NodeEnum::ExecuteStmt(execute) => Ok(self.prepared.get(&execute.name).and_then(|p| p.columns.clone())),
            NodeEnum::FetchStmt(fetch) if !fetch.ismove => {
                Ok(self.state.portals.shape(&fetch.portalname).and_then(|(columns, _)| columns))
            }
            _ => Ok(None),
        }
    }

    pub(super) fn run_utility(&mut self, statement: &Statement, types: &[Oid], parameters: &Arc<[Datum]>) -> Result<Outcome> {
        match &statement.node {
            NodeEnum::TransactionStmt(t) => self.run_transaction_statement(t),
            NodeEnum::VariableSetStmt(set) => {
                self.run_set(set)?;
                done(if set.kind >= pg_query::protobuf::VariableSetKind::VarReset as i32 { "RESET" } else { "SET" })
            }
            NodeEnum::VariableShowStmt(show) => self.context().run_show(show),
            NodeEnum::AlterSystemStmt(s) => self.run_alter_system(s),
            NodeEnum::PrepareStmt(prepare) => self.run_prepare(prepare, statement),
            NodeEnum::ExecuteStmt(execute) => self.run_execute(execute),
            NodeEnum::DeallocateStmt(deallocate) => self.state.run_deallocate(deallocate),
            NodeEnum::DiscardStmt(discard) => self.run_discard(DiscardMode::try_from(discard.target).unwrap_or_default()),
            NodeEnum::DeclareCursorStmt(declare) => self.run_declare(declare, statement, types, parameters),
            NodeEnum::FetchStmt(fetch) => self.run_fetch(fetch),
            NodeEnum::ClosePortalStmt(close) => self.state.run_close(&close.portalname),
            _ => Err(DbError::internal("not a session statement")),
        }
    }

    fn run_transaction_statement(&mut self, t: &TransactionStmt) -> Result<Outcome> {
        use TransactionStmtKind as Kind;
        match Kind::try_from(t.kind).unwrap_or(Kind::Undefined) {
            kind @ (Kind::TransStmtBegin | Kind::TransStmtStart) => {
                let change = modes_of(&t.options)?;
                self.set_modes(change)?;
                match self.block {
                    Block::None | Block::Implicit => self.block = Block::Explicit,
                    _ => self.state.warning(err!(ACTIVE_SQL_TRANSACTION, "there is already a transaction in progress")),
                }
                done(if kind == Kind::TransStmtBegin { "BEGIN" } else { "START TRANSACTION" })
            }
            Kind::TransStmtCommit => self.run_commit(t.chain),
            Kind::TransStmtRollback => self.run_rollback(t.chain),
            Kind::TransStmtSavepoint => {
                require_block(self.block, "SAVEPOINT")?;
                self.define_savepoint(&t.savepoint_name)?;
                done("SAVEPOINT")
            }
            Kind::TransStmtRelease => {
                require_block(self.block, "RELEASE SAVEPOINT")?;
                self.release_savepoint(&t.savepoint_name)?;
                done("RELEASE")
            }
            Kind::TransStmtRollbackTo => {
                if self.block != Block::Failed {
                    require_block(self.block, "ROLLBACK TO SAVEPOINT")?;
                }
                let depth = self.find_savepoint(&t.savepoint_name)?;
                self.undo_to_savepoint(depth)?;
                self.block = Block::Explicit;
                done("ROLLBACK")
            }
            Kind::TransStmtPrepare => self.run_prepare_transaction(&t.gid),
            Kind::TransStmtCommitPrepared => self.run_commit_prepared(&t.gid),
            Kind::TransStmtRollbackPrepared => self.run_rollback_prepared(&t.gid),
            _ => Err(DbError::internal("not a transaction statement")),
        }
    }

    fn run_commit(&mut self, chain: bool) -> Result<Outcome> {
        let modes = self.transaction.as_ref().map(|t| t.modes);
        match self.block {
            Block::None | Block::Implicit => {
                if chain {
                    require_block(Block::None, "COMMIT AND CHAIN")?;
                }
                self.state.warning(err!(NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress"));
                self.block = Block::None;
                self.commit_transaction()?;
                done("COMMIT")
            }
            Block::Explicit => {
                // The block ends, whatever the result.
                self.block = Block::None;
                self.commit_transaction()?;
                self.chain(chain, modes)?;
                done("COMMIT")
            }
            Block::Failed => {
                self.block = Block::None;
                let modes = modes.or(self.failed_modes);
                self.roll_back_transaction();
                self.chain(chain, modes)?;
                done("ROLLBACK")
            }
        }
    }

    fn run_rollback(&mut self, chain: bool) -> Result<Outcome> {
        if matches!(self.block, Block::None | Block::Implicit) {
            if chain {
                require_block(Block::None, "ROLLBACK AND CHAIN")?;
            }
            self.state.warning(err!(NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress"));
        }
        let modes = self.transaction.as_ref().map(|t| t.modes).or(self.failed_modes);
        self.block = Block::None;
        self.roll_back_transaction();
        self.chain(chain, modes)?;
        done("ROLLBACK")
    }

    fn chain(&mut self, chain: bool, modes: Option<super::transaction::Modes>) -> Result<()> {
        if chain {
            self.begin_transaction(modes.unwrap_or(self.derived.default_modes))?;
            self.block = Block::Explicit;
        }
        Ok(())
    }

    fn run_prepare(&mut self, prepare: &PrepareStmt, statement: &Statement) -> Result<Outcome> {
        let inner = self.context().check_prepare(prepare, statement)?;
        let context = self.context();
        let types = prepare.argtypes.iter().map(|t| planning::resolve_type(context, t)).collect::<Result<Vec<Oid>>>()?;
        let mut prepared = self.prepare(Some(inner), &types)?;
        prepared.from_sql = true;
        self.prepared.insert(&prepare.name, Arc::new(prepared));
        done("PREPARE")
    }

    fn run_execute(&mut self, execute: &ExecuteStmt) -> Result<Outcome> {
        let prepared = self.find_prepared(&execute.name)?;
        let prepared = self.revalidate(&execute.name, prepared)?;
        let (expected, given) = (prepared.parameter_types.len(), execute.params.len());
        if expected != given {
            return Err(err!(SYNTAX_ERROR, "wrong number of parameters for prepared statement \"{}\"", execute.name)
                .detail(format!("Expected {expected} parameters but got {given}.")));
        }
        let parameters = values::evaluate(self.context(), &execute.params, &prepared.parameter_types)?;
        // Positions of errors refer to the prepared text, which the client did not just send.
        self.set_source_of(&prepared);
        self.start(Bound { prepared, parameters: parameters.into() })
    }

    fn run_discard(&mut self, mode: DiscardMode) -> Result<Outcome> {
        match mode {
            DiscardMode::DiscardAll => {
                self.state.portals.clear();
                self.set_user_setting_to_default()?;
                self.state.settings.lock().reset_all();
                self.prepared.clear();
                if let Some(transaction) = &self.transaction {
                    transaction.tx.unlisten(&self.state.listener, None);
                }
                self.refresh();
                pipeline::discard(self.context(), mode)?;
                done("DISCARD ALL")
            }
            DiscardMode::DiscardPlans => {
                self.cache.clear();
                done("DISCARD PLANS")
            }
            DiscardMode::DiscardSequences => {
                pipeline::discard(self.context(), mode)?;
                done("DISCARD SEQUENCES")
            }
            _ => {
                pipeline::discard(self.context(), mode)?;
                done("DISCARD TEMP")
            }
        }
    }
}

impl SessionState {
    pub(super) fn run_deallocate(&self, deallocate: &DeallocateStmt) -> Result<Outcome> {
        if deallocate.isall {
            self.prepared.lock().clear();
            return done("DEALLOCATE ALL");
        }
        match self.prepared.lock().remove(&deallocate.name) {
            Some(_) => done("DEALLOCATE"),
            None => bail!(UNDEFINED_PSTATEMENT, "prepared statement \"{}\" does not exist", deallocate.name),
        }
    }
}

impl StatementContext {
    /// The statement that PREPARE names.
    fn check_prepare(&self, prepare: &PrepareStmt, statement: &Statement) -> Result<Arc<Statement>> {
        if prepare.name.is_empty() {
            bail!(INVALID_PSTATEMENT_DEFINITION, "invalid statement name: must not be empty");
        }
        if self.session.prepared.lock().contains_key(&prepare.name) {
            bail!(DUPLICATE_PSTATEMENT, "prepared statement \"{}\" already exists", prepare.name);
        }
        nested(prepare.query.as_deref().and_then(|q| q.node.as_ref()), statement)
    }

    /// PREPARE in a function.
    pub(super) fn prepare_in_routine(&self, prepare: &PrepareStmt, statement: &Statement) -> Result<Outcome> {
        let inner = self.check_prepare(prepare, statement)?;
        if is_session_statement(&inner.node) {
            return Err(DbError::unsupported("PREPARE of a statement about the session in a function"));
        }
        let types = prepare.argtypes.iter().map(|t| planning::resolve_type(self, t)).collect::<Result<Vec<Oid>>>()?;
        let analyzed = pipeline::analyze(self, &inner, &types)?;
        let prepared = Prepared::new(inner, analyzed, self.statement_start);
        self.session.prepared.lock().insert(prepare.name.clone(), Arc::new(Prepared { from_sql: true, ..prepared }));
        done("PREPARE")
    }

    /// DISCARD in a function.
    pub(super) fn discard_in_routine(&self, mode: DiscardMode) -> Result<Outcome> {
        pipeline::discard(self, mode)?;
        done("DISCARD")
    }

    fn show_columns(&self, show: &VariableShowStmt) -> Result<Arc<[ResultColumn]>> {
        let text = |name: &str| ResultColumn::new(name, oids::TEXT, &self.catalog);
        if show.name.eq_ignore_ascii_case("all") {
            return Ok(Arc::new([text("name"), text("setting"), text("description")]));
        }
        let settings = self.session.settings.lock();
        let id = settings.get_id(&show.name)?;
        Ok(Arc::new([text(settings.name(id))]))
    }

    pub(super) fn run_show(&self, show: &VariableShowStmt) -> Result<Outcome> {
        let columns = self.show_columns(show)?;
        let lines = self.show_lines(&show.name)?;
        let batch = if columns.len() == 1 {
            outcome::text_rows(vec![lines.into_iter().map(|(_, value, _)| value).collect()])
        } else {
            let mut table = vec![Vec::new(), Vec::new(), Vec::new()];
            for (name, value, description) in lines {
                table[0].push(name);
                table[1].push(value);
                table[2].push(description.to_owned());
            }
            outcome::text_rows(table)
        };
        let source = Box::new(StoredRows(vec![batch].into_iter()));
        Ok(Outcome::Rows { columns, source, tag: Tag::Fixed("SHOW".to_owned()), formats: Vec::new() })
    }
}

/// The grammar takes a parameter where PostgreSQL's does not.
pub(super) fn refuse_parameters(statement: &Statement) -> Result<()> {
    let NodeEnum::VariableSetStmt(set) = &statement.node else { return Ok(()) };
    match set.args.iter().find_map(|arg| if let Some(NodeEnum::ParamRef(p)) = &arg.node { Some(p) } else { None }) {
        Some(p) => Err(err!(SYNTAX_ERROR, "syntax error at or near \"${}\"", p.number).at(p.location)),
        None => Ok(()),
    }
}

impl Session {
    /// The types and values of the parameters of its query, which keeps them as long as it is open.
    pub(super) fn run_declare(
        &mut self,
        declare: &DeclareCursorStmt,
        statement: &Statement,
        types: &[Oid],
        parameters: &Arc<[Datum]>,
    ) -> Result<Outcome> {
        let read_only = match &mut self.transaction {
            Some(transaction) => {
                transaction.used = true;
                transaction.modes.read_only
            }
            None => false,
        };
        if let Some(query) = declare.query.as_deref().and_then(|q| q.node.as_ref()) {
            command::check(query, self.block, read_only)?;
        }
        self.context().clone().declare_cursor(declare, statement, types, parameters)
    }

    /// FETCH and MOVE, from a portal that was only bound too.
    pub(super) fn run_fetch(&mut self, fetch: &FetchStmt) -> Result<Outcome> {
        let name = &fetch.portalname;
        let mut portal = self.state.portals.take(name).ok_or_else(|| no_cursor(name))?;
        let begun = self.begin_bound(&mut portal, name);
        if begun.is_err() {
            portal.state = PortalState::Failed;
        }
        self.state.portals.put_back(name.clone(), portal);
        begun?;
        self.state.run_fetch(fetch)
    }

    fn begin_bound(&mut self, portal: &mut Portal, name: &str) -> Result<()> {
        if let PortalState::Ready(bound) = &portal.state {
            let Outcome::Rows { source, tag, .. } = self.start(bound.clone())? else {
                bail!(INVALID_CURSOR_STATE, "portal \"{name}\" does not return rows");
            };
            portal.state = PortalState::Open(PortalRows::new(source, Rewind::Never), tag);
        }
        Ok(())
    }
}
