//! Utility statements in a function's body.

use std::sync::Arc;

use melba_analyze::analyze_with_variables;
use melba_parse::Statement;
use melba_parse::command::{is_query, is_session_statement};
use melba_plpgsql::tree::Expression;
use melba_statement::control::Control;
use melba_statement::cursor::declare_cursor;
use melba_statement::execution::Parameters;
use melba_statement::named_statements::{discard_in_routine, prepare_in_routine};
use melba_statement::outcome::Outcome;
use melba_statement::planning::analysis;
use melba_statement::set::{run_show, set_in_routine};
use melba_statement::{command, explain, prepared_query, routine, utility};
use melba_tree::{CoercionForm, Expr, ParamKind};
use melba_types::{Datum, DbError, Oid, Result, bail, err};
use pg_query::NodeEnum;
use pg_query::protobuf::{DiscardMode, ObjectType};

use super::expression::{self, VariableNames};
use super::frame::Frame;
use super::misuse::misuse;

/// A statement of the function's text that is no query. The variables in its query become parameters.
pub fn run_static_utility(frame: &mut Frame<'_>, piece: &Expression, statement: &Arc<Statement>) -> Result<Outcome> {
    match with_variables(frame, piece, statement)? {
        Some((statement, types, values)) => run_utility(frame, &statement, (&types, &values)),
        None => run_utility(frame, statement, (&[], &Arc::from([]))),
    }
}

/// A statement whose query has parameters, their types and values.
type WithParameters = (Arc<Statement>, Vec<Oid>, Arc<[Datum]>);

/// The statement with parameters in the places of variables: its query is analyzed, and printed as a view's would be. `None` if it
/// has no query, or one without variables.
fn with_variables(frame: &Frame<'_>, piece: &Expression, statement: &Arc<Statement>) -> Result<Option<WithParameters>> {
    let mut node = statement.node.clone();
    let Some(query) = inner_query(&mut node) else { return Ok(None) };
    let names = VariableNames::at(frame, piece);
    let mut analyzed = analyze_with_variables(&analysis(&frame.context), query, &names)?;
    let sources = names.into_sources();
    if sources.is_empty() {
        return Ok(None);
    }
    if matches!(&statement.node, NodeEnum::CreateTableAsStmt(s) if s.objtype() == ObjectType::ObjectMatview) {
        bail!(FEATURE_NOT_SUPPORTED, "materialized views may not be defined using bound parameters");
    }
    // A parameter has no modifier and no collation by itself.
    let cx = analysis(&frame.context);
    analyzed.visit_mut(0, &mut |e, _| {
        let Expr::Param(p) = &*e else { return true };
        let (ty, typmod, collation) = (p.ty, p.typmod, p.collation);
        if p.kind != ParamKind::External {
            return true;
        }
        if typmod >= 0 {
            *e = Expr::Relabel { arg: Box::new(e.clone()), ty, typmod, collation, form: CoercionForm::ExplicitCast };
        }
        if collation != cx.collation_of_type(ty) {
            *e = Expr::Collate { arg: Box::new(e.clone()), collation };
        }
        false
    });
    let text = melba_deparse::stored_query(&analysis(&frame.context), &analyzed);
    let parsed = melba_parse::parse(&text)?.statements.pop();
    *query = parsed.ok_or_else(|| DbError::internal("a query without a text"))?.node.clone();
    let types = sources.iter().map(|source| expression::source_type(frame, *source)).collect();
    let values = sources.iter().map(|source| expression::source_value(frame, *source)).collect();
    Ok(Some((Arc::new(Statement { node, ..Statement::clone(statement) }), types, values)))
}

/// The query of a statement that runs or explains one.
fn inner_query(node: &mut NodeEnum) -> Option<&mut NodeEnum> {
    let query = match node {
        NodeEnum::CreateTableAsStmt(s) => &mut s.query,
        NodeEnum::DeclareCursorStmt(s) => &mut s.query,
        NodeEnum::ExplainStmt(s) => &mut s.query,
        node => return is_query(node).then_some(node),
    };
    inner_query(query.as_deref_mut()?.node.as_mut()?)
}

/// A statement that is no query.
pub fn run_utility(frame: &mut Frame<'_>, statement: &Arc<Statement>, parameters: Parameters<'_>) -> Result<Outcome> {
    if matches!(statement.node, NodeEnum::TransactionStmt(_)) {
        return Err(misuse(err!(FEATURE_NOT_SUPPORTED, "unsupported transaction command in PL/pgSQL")));
    }
    command::check_in_function(&statement.node, frame.program.shares_view, &frame.context.session)?;
    command::check_in_routine(&statement.node)?;
    match &statement.node {
        NodeEnum::CopyStmt(s) if s.filename.is_empty() => {
            Err(misuse(err!(FEATURE_NOT_SUPPORTED, "cannot COPY to/from client in PL/pgSQL")))
        }
        NodeEnum::CallStmt(call) => routine::run_call(&frame.context, call, None, (&[], &Arc::from([])), Control::NONE),
        NodeEnum::ExplainStmt(s) => explain::run(&frame.context, &frame.tx, s, parameters.0, parameters.1),
        NodeEnum::DoStmt(block) => {
            routine::run_do(&frame.context, block, statement, Control::NONE)?;
            Ok(Outcome::Done { tag: "DO".into() })
        }
        node if is_session_statement(node) => session_statement(frame, statement, parameters),
        _ => {
            note_use(frame);
            frame.refresh();
            utility::execute(&frame.context, &frame.tx, statement, parameters)
        }
    }
}

fn session_statement(frame: &mut Frame<'_>, statement: &Arc<Statement>, parameters: Parameters<'_>) -> Result<Outcome> {
    let context = frame.context.clone();
    match &statement.node {
        NodeEnum::VariableSetStmt(set) => {
            match frame.control.session() {
                Some(session) => {
                    session.set(set)?;
                    frame.follow_transaction()?;
                }
                None => set_in_routine(&context, set)?,
            }
            Ok(Outcome::Done { tag: "SET".into() })
        }
        NodeEnum::VariableShowStmt(show) => run_show(&context, show),
        NodeEnum::DeclareCursorStmt(s) => declare_cursor(&context, s, statement, parameters.0, parameters.1),
        NodeEnum::FetchStmt(s) => context.session.run_fetch(s),
        NodeEnum::ClosePortalStmt(s) => context.session.run_close(&s.portalname),
        NodeEnum::PrepareStmt(s) => prepare_in_routine(&context, s, statement),
        NodeEnum::ExecuteStmt(s) => prepared_query::execute_prepared(&context, &frame.tx, s),
        NodeEnum::DeallocateStmt(s) => context.session.run_deallocate(s),
        NodeEnum::DiscardStmt(s) => discard_in_routine(&context, DiscardMode::try_from(s.target).unwrap_or_default()),
        _ => Err(DbError::unsupported("a statement about the session in a function")),
    }
}

/// The transaction's modes are fixed from now on.
pub fn note_use(frame: &mut Frame<'_>) {
    if let Some(session) = frame.control.session() {
        session.note_use();
    }
}
