//! CALL.

use std::sync::Arc;

use melba_analyze::{AnalyzedCall, CallPlace, RoutineScope, analyze_call};
use melba_catalog::acl;
use melba_catalog::privileges::AclKind;
use melba_fmgr::RoutineCall;
use melba_tree::FunctionCall;
use melba_types::{Batch, Column, Datum, DbError, Kind, Oid, Result, err, oids};
use pg_query::protobuf::CallStmt;

use super::super::context::StatementContext;
use super::super::control::Control;
use super::super::outcome::{Outcome, ResultColumn, StoredRows, Tag};
use super::super::planning::analysis;
use super::super::values::value_of;
use super::procedure_value;

/// The types of CALL's parameters, and the columns of its result.
type CallShape = (Vec<Oid>, Option<Arc<[ResultColumn]>>);

/// The shape of CALL before it runs: its result has the procedure's output arguments.
pub fn call_columns(context: &StatementContext, s: &CallStmt, parameters: &[Oid]) -> Result<CallShape> {
    let called = analyzed(context, s, CallPlace::Client(parameters))?;
    Ok((called.parameter_types, output(context, &called.call)?.map(|columns| columns.into())))
}

/// CALL's call, analyzed where it stands.
pub fn analyzed(context: &StatementContext, s: &CallStmt, place: CallPlace<'_>) -> Result<AnalyzedCall> {
    let node = s.funccall.as_deref().ok_or_else(|| DbError::internal("CALL without a call"))?;
    analyze_call(&analysis(context), node, place)
}

/// The columns of a procedure's output arguments.
pub fn output(context: &StatementContext, call: &FunctionCall) -> Result<Option<Vec<ResultColumn>>> {
    if call.ty == oids::VOID {
        return Ok(None);
    }
    let cx = analysis(context);
    let function = cx.function(call.function)?;
    let types: Vec<Oid> = call.args.iter().map(|a| a.ty()).collect();
    let columns = melba_analyze::routine_result(&cx, function, &types, call.ty, None)?.columns.unwrap_or_default();
    Ok(Some(columns.iter().map(|c| ResultColumn::new(&c.name, c.ty, &context.catalog)).collect()))
}

/// Runs CALL. `scope`: the function in whose body it stands.
pub fn run_call(
    context: &Arc<StatementContext>,
    s: &CallStmt,
    scope: Option<&RoutineScope>,
    (types, parameters): (&[Oid], &Arc<[Datum]>),
    control: Control<'_>,
) -> Result<Outcome> {
    let call = analyzed(context, s, scope.map_or(CallPlace::Client(types), CallPlace::Body))?.call;
    if scope.is_some() && call.ty != oids::VOID {
        return Err(err!(FEATURE_NOT_SUPPORTED, "calling procedures with output arguments is not supported in SQL functions"));
    }
    let Some((value, columns)) = run_called(context, call, parameters, control)? else {
        return Ok(Outcome::Done { tag: "CALL".into() });
    };
    let fields = match value {
        Datum::Record(record) => record.fields.clone(),
        _ => vec![Datum::Null; columns.len()],
    };
    let column = |(column, value): (&ResultColumn, Datum)| {
        let kind = context.catalog.kind_of(column.ty).unwrap_or(Kind::Text);
        let mut out = Column::with_capacity(kind, 1);
        out.push(value);
        out
    };
    let batch = Batch::new(columns.iter().zip(fields).map(column).collect(), 1);
    Ok(Outcome::Rows {
        columns: columns.into(),
        source: Box::new(StoredRows(vec![batch].into_iter())),
        tag: Tag::Fixed("CALL".into()),
        formats: Vec::new(),
    })
}

/// Runs a procedure: returns its output arguments as a row, and their columns; `None` when it has none.
pub fn run_called(
    context: &Arc<StatementContext>,
    call: FunctionCall,
    parameters: &Arc<[Datum]>,
    control: Control<'_>,
) -> Result<Option<(Datum, Vec<ResultColumn>)>> {
    let catalog = &context.catalog;
    let procedure = analysis(context).function(call.function)?.clone();
    if !catalog.has_privileges(context.user.oid, AclKind::Function, procedure.owner, &procedure.acl, acl::EXECUTE) {
        return Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied for procedure {}", procedure.name));
    }
    let columns = output(context, &call)?;
    let arg_types: Vec<Oid> = call.args.iter().map(|a| a.ty()).collect();
    let args = call.args.into_iter().map(|arg| value_of(context, arg, parameters)).collect::<Result<Vec<_>>>()?;
    let tx = context.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
    let view = tx.engine.active_view();
    let call = RoutineCall {
        function: procedure.oid,
        args: &args,
        arg_types: &arg_types,
        return_type: call.ty,
        collation: call.input_collation,
        columns: None,
        view: (view.csn, view.command),
    };
    let value = procedure_value(context, &call, control)?;
    Ok(columns.map(|columns| (value, columns)))
}
