//! Bodies that were parsed and planned, kept by the session for the next call.

use std::sync::Arc;

use hashbrown::HashMap;
use melba_analyze::{ResultForm, RoutineResult, RoutineScope, analyze_in_routine, check_routine_statement, routine_statements};
use melba_catalog::{Catalog, Function};
use melba_fmgr::{RoutineCall, RowColumn};
use melba_parse::Statement;
use melba_tree::OutputColumn;
use melba_types::{Oid, Result};
use parking_lot::Mutex;

use super::super::context::StatementContext;
use super::super::planned::Planned;
use super::super::planning::{self, analysis};

/// Bodies that are kept; beyond them the cache is cleared.
const BODIES_MAX: usize = 256;

/// By function, types of arguments and result, and collation.
type BodyCache = Mutex<HashMap<(Oid, Box<[Oid]>, Oid, Oid), Arc<RoutineBody>>>;

/// The names that a function's body knows in a call, and what the call is to return.
///
/// # Errors
/// Those of types that do not fit the function.
pub fn scope_and_result(
    context: &StatementContext,
    function: &Function,
    call: &RoutineCall<'_>,
) -> Result<(RoutineScope, RoutineResult)> {
    let cx = analysis(context);
    let scope = RoutineScope::of(function, call.arg_types, call.collation);
    let column =
        |c: &RowColumn| OutputColumn { name: c.name.clone(), ty: c.ty, typmod: c.typmod, collation: cx.collation_of_type(c.ty) };
    let columns = call.columns.map(|columns| columns.iter().map(column).collect());
    let result = melba_analyze::routine_result(&cx, function, &scope.arg_types, call.return_type, columns)?;
    Ok((scope, result))
}

/// A function's body for arguments of certain types.
pub struct RoutineBody {
    pub function: Arc<Function>,
    pub scope: RoutineScope,
    pub result: RoutineResult,
    pub statements: Vec<Arc<Statement>>,
    /// By statement.
    planned: Mutex<Vec<Option<Arc<PlannedStatement>>>>,
    /// The catalog in which types and names were looked up.
    catalog: Arc<Catalog>,
    path: Arc<[Oid]>,
}

pub(super) struct PlannedStatement {
    pub planned: Planned,
    /// Of the last one: the form of its rows.
    pub form: ResultForm,
}

impl std::fmt::Debug for RoutineBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Body({})", self.function.name)
    }
}

impl RoutineBody {
    /// The body that a call runs.
    pub fn of(context: &StatementContext, function: &Arc<Function>, call: &RoutineCall<'_>) -> Result<Arc<RoutineBody>> {
        // Column definition lists differ from call to call.
        if call.columns.is_some() {
            return RoutineBody::new(context, function, call).map(Arc::new);
        }
        let key = (function.oid, Box::from(call.arg_types), call.return_type, call.collation);
        if let Some(known) = context.session.language_sql.get::<BodyCache>().lock().get(&key)
            && Arc::ptr_eq(&known.catalog, &context.catalog)
            && known.path == context.path.path
        {
            return Ok(known.clone());
        }
        let body = Arc::new(RoutineBody::new(context, function, call)?);
        let mut cache = context.session.language_sql.get::<BodyCache>().lock();
        if cache.len() >= BODIES_MAX {
            cache.clear();
        }
        cache.insert(key, body.clone());
        Ok(body)
    }

    fn new(context: &StatementContext, function: &Arc<Function>, call: &RoutineCall<'_>) -> Result<RoutineBody> {
        let (scope, result) = scope_and_result(context, function, call)?;
        let statements = routine_statements(function, context)?;
        for statement in &statements {
            check_routine_statement(&statement.node)?;
        }
        Ok(RoutineBody {
            planned: Mutex::new(statements.iter().map(|_| None).collect()),
            function: function.clone(),
            scope,
            result,
            statements,
            catalog: context.catalog.clone(),
            path: context.path.path.clone(),
        })
    }

    /// A query of the body, planned against the present catalog.
    pub(super) fn planned(&self, at: usize, context: &StatementContext) -> Result<Arc<PlannedStatement>> {
        if let Some(known) = &self.planned.lock()[at]
            && known.planned.is_current(context)
        {
            return Ok(known.clone());
        }
        let cx = analysis(context).of_body(&self.function);
        let mut query = analyze_in_routine(&cx, &self.statements[at].node, &self.scope)?;
        let is_last = at + 1 == self.statements.len();
        let form = if is_last { melba_analyze::fit_routine_result(&cx, &mut query, &self.result)? } else { ResultForm::Void };
        let planned = Arc::new(PlannedStatement { planned: planning::plan_within(context, query)?, form });
        self.planned.lock()[at] = Some(planned.clone());
        Ok(planned)
    }
}
