//! Analysis of a statement that was parsed.

use std::sync::Arc;

use melba_parse::Statement;
use melba_parse::command::{Allowed, allowed, is_session_statement};
use melba_statement::outcome::ResultColumn;
use melba_statement::pipeline;
use melba_statement::planned::Compiled;
use melba_statement::prepared::{Prepared, nested};
use melba_statement::set::show_columns;
use melba_statement::transaction::{Block, aborted};
use melba_types::{Oid, Result, err};
use pg_query::NodeEnum;

use super::Session;

/// In a failed block only the statements that end it may run.
pub(super) fn check_block(session: &Session, statement: &Statement) -> Result<()> {
    if session.block != Block::Failed || allowed(&statement.node) == Allowed::FailedBlock { Ok(()) } else { Err(aborted()) }
}

/// Analyzes a statement. `parameter_types` as declared, 0 for "find out".
pub(super) fn prepare_statement(
    session: &mut Session,
    statement: Option<Arc<Statement>>,
    parameter_types: &[Oid],
) -> Result<Prepared> {
    let mut prepared = Prepared {
        statement: None,
        parameter_types: parameter_types.to_vec(),
        columns: None,
        compiled: Compiled::default(),
        from_sql: false,
        prepared_at: session.statement_start,
        executions: Default::default(),
    };
    let Some(statement) = statement else { return Ok(prepared) };
    if let NodeEnum::DeclareCursorStmt(declare) = &statement.node {
        // Its parameters are those of its query.
        let query = nested(declare.query.as_deref().and_then(|q| q.node.as_ref()), &statement)?;
        prepared.parameter_types = prepare_statement(session, Some(query), parameter_types)?.parameter_types;
    } else if is_session_statement(&statement.node) {
        refuse_parameters(&statement)?;
        prepared.columns = utility_columns(session, &statement)?;
    } else {
        if let Some(transaction) = &mut session.transaction {
            transaction.used = true;
        }
        let analyzed = pipeline::analyze(session.context(), &statement, parameter_types)?;
        prepared.parameter_types = analyzed.parameter_types;
        prepared.columns = analyzed.columns;
        prepared.compiled = analyzed.compiled;
    }
    prepared.statement = Some(statement);
    Ok(prepared)
}

/// Columns of a session statement's result.
pub(super) fn utility_columns(session: &Session, statement: &Statement) -> Result<Option<Arc<[ResultColumn]>>> {
    match &statement.node {
        NodeEnum::VariableShowStmt(show) => show_columns(&session.context, show).map(Some),
        // A missing object is reported when the statement runs.
        NodeEnum::ExecuteStmt(execute) => Ok(session.prepared.get(&execute.name).and_then(|p| p.columns.clone())),
        NodeEnum::FetchStmt(fetch) if !fetch.ismove => {
            Ok(session.state.portals.shape(&fetch.portalname).and_then(|(columns, _)| columns))
        }
        _ => Ok(None),
    }
}

/// The grammar takes a parameter where PostgreSQL's does not.
fn refuse_parameters(statement: &Statement) -> Result<()> {
    let NodeEnum::VariableSetStmt(set) = &statement.node else { return Ok(()) };
    match set.args.iter().find_map(|arg| if let Some(NodeEnum::ParamRef(p)) = &arg.node { Some(p) } else { None }) {
        Some(p) => Err(err!(SYNTAX_ERROR, "syntax error at or near \"${}\"", p.number).at(p.location)),
        None => Ok(()),
    }
}
