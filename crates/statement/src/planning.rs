//! Analysis and planning of a statement in its session's context.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use melba_analyze::{LiteralUse, Rewritten, RuleAction};
use melba_catalog::Catalog;
use melba_engine::Engine;
use melba_expression::{Evaluation, NoSubPlans};
use melba_fmgr::Session as _;
use melba_parse::Statement;
use melba_parse::command::is_query;
use melba_plan::{Plan, PlanInputs, PlanStep, PlanSteps, Statistics, plan_of_steps};
use melba_tree::permissions::Permissions;
use melba_tree::{Command, Query, Target};
use melba_types::{DbError, Oid, Result, bail};
use pg_query::{Node, NodeEnum};

use super::context::StatementContext;
use super::literal_operations::literal_operations;
use super::outcome::ResultColumn;
use super::planned::{Compiled, Planned};
use super::positioned::{add_positions, is_simple_scan};
use super::prepared::shape_changed;
use super::statement_counts::identity::Identity;

/// The analysis context of the statement's session.
pub fn analysis<'a>(context: &'a StatementContext) -> melba_analyze::Context<'a> {
    melba_analyze::Context {
        catalog: &context.catalog,
        session: context,
        search_path: &context.path.path,
        temp_namespace: context.path.temporary,
        database: &context.session.database,
        user: context.user.oid,
    }
}

impl Planned {
    pub fn is_current(&self, context: &StatementContext) -> bool {
        Arc::ptr_eq(&self.catalog, &context.catalog)
            && (Arc::ptr_eq(&self.path, &context.path) || self.path.path == context.path.path)
            && self.is_of_user(context)
            && self.has_wanted_texts(context)
    }

    /// It can be logged, if auto_explain may want that.
    pub fn has_wanted_texts(&self, context: &StatementContext) -> bool {
        let auto = &context.session.auto_explain;
        !auto.is_on() || self.has_texts && (self.has_verbose_texts || !auto.is_verbose())
    }

    /// The policies in it are those that hold for the user.
    pub fn is_of_user(&self, context: &StatementContext) -> bool {
        self.row_security.is_none_or(|on| self.user == context.user.oid && on == row_security(context))
    }
}

impl Compiled {
    /// Nothing it was analyzed against has changed.
    pub fn is_current(&self, context: &StatementContext) -> bool {
        self.planned.as_ref().is_none_or(|p| p.is_current(context))
    }

    /// Whether analysis of the same text would give the same result now: names in schemas are looked up with the user's privileges.
    /// The settings that constants depend on are the cache's to watch.
    pub fn is_for(&self, context: &StatementContext) -> bool {
        self.is_current(context) && self.planned.as_ref().is_none_or(|p| p.user == context.user.oid && !p.has_time)
    }
}

fn row_security(context: &StatementContext) -> bool {
    context.setting("row_security").as_deref() != Some("off")
}

/// The query that a statement is or holds; its parameters are the statement's.
pub fn query_within(node: &NodeEnum) -> Option<&NodeEnum> {
    let query = match node {
        NodeEnum::DeclareCursorStmt(s) => s.query.as_deref().and_then(|q| q.node.as_ref()),
        NodeEnum::CreateTableAsStmt(s) => s.query.as_deref().and_then(|q| q.node.as_ref()),
        node => Some(node),
    };
    query.filter(|query| is_query(query))
}

/// Raises 42P02 for the first parameter of a statement that may have none.
pub fn refuse_parameters(context: &StatementContext, statement: &Statement) -> Result<()> {
    if let Some(query) = query_within(&statement.node) {
        melba_analyze::analyze(&analysis(context), query, None)?;
    }
    Ok(())
}

/// A query failed before its first row; whether PostgreSQL would have raised the error before it began.
pub fn fails_when_planned(context: &StatementContext, statement: &Statement) -> bool {
    is_query(&statement.node)
        && melba_analyze::analyze(&analysis(context), &statement.node, Some(&[]))
            .is_ok_and(|analyzed| melba_plan::constant::fails(&analyzed.query, &plan_inputs(context, Purpose::Run)))
}

pub(super) fn plan_query(
    context: &StatementContext,
    node: &NodeEnum,
    parameter_types: &[Oid],
    purpose: Purpose,
) -> Result<Planned> {
    let analyzed = melba_analyze::analyze(&analysis(context), node, Some(parameter_types))?;
    plan_analyzed(context, analyzed, Vec::new(), purpose)
}

/// Plans a query that has a parameter for each of the types, and no others.
pub fn plan_text(context: &StatementContext, node: &NodeEnum, parameter_types: &[Oid]) -> Result<Planned> {
    let types = (!parameter_types.is_empty()).then_some(parameter_types);
    let analyzed = melba_analyze::analyze(&analysis(context), node, types)?;
    if analyzed.params.len() > parameter_types.len() {
        bail!(UNDEFINED_PARAMETER, "there is no parameter ${}", parameter_types.len() + 1);
    }
    plan_analyzed(context, analyzed, Vec::new(), Purpose::Run)
}

/// Plans a statement, with its literals as parameters if it has any marked.
pub(super) fn plan_statement(context: &StatementContext, statement: &Statement, parameter_types: &[Oid]) -> Result<Planned> {
    if statement.literals.is_empty() {
        return plan_query(context, &statement.node, parameter_types, Purpose::Run);
    }
    match melba_analyze::analyze_with_literals(&analysis(context), &statement.node, &statement.literals) {
        Some((analyzed, literals)) => {
            let row_literals = statement.row_literals;
            // A rule may need the rows at several places.
            if row_literals > 0 && melba_analyze::apply_rules(&analysis(context), &analyzed.query)?.is_some() {
                return Err(shape_changed());
            }
            plan_analyzed(context, analyzed, literals, Purpose::Run).map(|planned| Planned { row_literals, ..planned })
        }
        None => Err(shape_changed()),
    }
}

/// Plans a query that is run as a part of another, for example in a function's body.
pub fn plan_within(context: &StatementContext, query: Query) -> Result<Planned> {
    plan_analyzed(context, melba_analyze::Analyzed { query, params: Vec::new() }, Vec::new(), Purpose::Within)
}

/// Plans a cursor's query.
pub fn plan_cursor(context: &StatementContext, node: &NodeEnum, parameter_types: &[Oid]) -> Result<Planned> {
    let analyzed = melba_analyze::analyze(&analysis(context), node, Some(parameter_types))?;
    plan_analyzed(context, analyzed, Vec::new(), Purpose::Cursor)
}

/// The same in a function's body.
pub fn plan_cursor_in_routine(context: &StatementContext, query: Query) -> Result<Planned> {
    plan_analyzed(context, melba_analyze::Analyzed { query, params: Vec::new() }, Vec::new(), Purpose::Cursor)
}

/// The purpose of a plan.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Run,
    /// It is shown, with the columns of its nodes if `verbose`.
    Explain {
        verbose: bool,
    },
    /// It is run as a part of another.
    Within,
    /// Its rows include the places of the table rows that they are made of.
    Cursor,
}

pub(super) fn plan_analyzed(
    context: &StatementContext,
    mut analyzed: melba_analyze::Analyzed,
    literals: Vec<LiteralUse>,
    purpose: Purpose,
) -> Result<Planned> {
    let started = context.monotonic();
    let identity = match purpose {
        Purpose::Run | Purpose::Explain { .. } => Some(Identity::of(&analysis(context), &analyzed.query, !literals.is_empty())),
        Purpose::Within | Purpose::Cursor => None,
    };
    let mut permissions = Permissions::of(&analyzed.query, &context.catalog);
    let columns = result_columns(&analyzed.query, &context.catalog);
    let locks_rows = analyzed.query.locking.first().map(|l| l.strength);
    let inputs = plan_inputs(context, purpose);
    let (mut positions, mut operations) = (Vec::new(), Vec::new());
    let (plan, secured) = match melba_analyze::apply_rules(&analysis(context), &analyzed.query)? {
        Some(rewritten) => plan_rewritten(context, analyzed.query.command, rewritten, &inputs, &mut permissions)?,
        None => {
            let secured = complete(context, &mut analyzed.query, &mut permissions)?;
            if !literals.is_empty() {
                operations = literal_operations(context, &analyzed.query)?;
            }
            if purpose == Purpose::Cursor {
                positions = add_positions(&mut analyzed.query, &context.catalog);
            }
            (melba_plan::plan(&analyzed.query, &inputs)?, secured)
        }
    };
    if !is_simple_scan(&plan.root) {
        positions.retain(|p| p.locked);
    }
    Ok(Planned {
        literals,
        literal_operations: operations,
        row_literals: 0,
        positions: positions.into(),
        locks_rows,
        plan,
        has_time: false,
        has_texts: inputs.explain,
        has_verbose_texts: inputs.verbose,
        permissions,
        catalog: context.catalog.clone(),
        path: context.path.clone(),
        user: context.user.oid,
        row_security: secured,
        parameter_types: analyzed.params,
        columns,
        identity: identity.map(Arc::new),
        planning: AtomicU64::new(context.monotonic().saturating_sub(started).as_nanos() as u64),
    })
}

/// Adds the content of functions and policies to a query, and what they need to `permissions`; returns as `secure`.
fn complete(context: &StatementContext, query: &mut Query, permissions: &mut Permissions) -> Result<Option<bool>> {
    // A caller of a function needs the privileges for its content as well, except with SECURITY DEFINER.
    if context.catalog.has_user_functions() && melba_analyze::inline_routines(&analysis(context), query)? {
        permissions.add(Permissions::of(query, &context.catalog));
    }
    secure(context, query, permissions)
}

/// Plans the commands that run instead of a statement.
fn plan_rewritten(
    context: &StatementContext,
    command: Command,
    rewritten: Rewritten,
    inputs: &PlanInputs<'_>,
    permissions: &mut Permissions,
) -> Result<(Arc<Plan>, Option<bool>)> {
    let mut secured = None;
    let mut steps = Vec::with_capacity(rewritten.steps.len());
    for step in rewritten.steps {
        steps.push(match step {
            RuleAction::Query(mut query) => {
                permissions.add(Permissions::of(&query, &context.catalog));
                secured = complete(context, &mut query, permissions)?.or(secured);
                PlanStep::Run(melba_plan::plan(&query, inputs)?)
            }
            RuleAction::Notify { channel, payload } => {
                PlanStep::Notify { channel, payload: payload.unwrap_or_else(|| "".into()) }
            }
        });
    }
    let steps = PlanSteps { steps, counted: rewritten.counted, not_one: rewritten.not_one };
    Ok((Arc::new(plan_of_steps(steps, command.into(), &rewritten.relations)), secured))
}

/// Adds the policies of its tables to a query; returns the setting of row_security used, if another setting or user would give
/// another query.
pub(super) fn secure(context: &StatementContext, query: &mut Query, permissions: &mut Permissions) -> Result<Option<bool>> {
    let is_secured = |oid| context.catalog.relation(oid).is_some_and(|r| r.row_security);
    if !permissions.relations().any(is_secured) {
        return Ok(None);
    }
    let secured = melba_analyze::apply_row_security(&analysis(context), query)?;
    permissions.add(secured.permissions);
    Ok(secured.depends_on_user.then(|| row_security(context)))
}

fn plan_inputs(context: &StatementContext, purpose: Purpose) -> PlanInputs<'_> {
    let auto = &context.session.auto_explain;
    let explain = matches!(purpose, Purpose::Explain { .. }) || auto.is_on();
    let verbose = purpose == Purpose::Explain { verbose: true } || auto.is_verbose();
    PlanInputs { catalog: &context.catalog, session: context, statistics: context, explain, verbose }
}

impl Statistics for StatementContext {
    fn engine(&self) -> &Engine {
        &self.session.instance.cluster.engine
    }

    fn evaluation(&self) -> Option<Evaluation<NoSubPlans>> {
        Arc::new(self.clone()).evaluation_without_rows(Arc::from([]))
    }
}

pub(super) fn result_columns(query: &Query, catalog: &Catalog) -> Option<Arc<[ResultColumn]>> {
    let targets: &[Target] = match query.command {
        melba_tree::Command::Select => &query.targets,
        _ if query.returning.is_empty() => return None,
        _ => &query.returning,
    };
    let column = |target: &Target| {
        let (ty, typmod) = (target.expr.ty(), target.expr.typmod());
        let (collation, described) = (target.expr.collation(), catalog.type_(ty));
        ResultColumn {
            name: target.name.clone(),
            ty,
            typmod,
            collation,
            has_own_collation: described.is_some_and(|t| t.collation != collation),
            table: target.origin.0,
            attribute: target.origin.1,
            size: described.map_or(-1, |t| t.length),
        }
    };
    Some(targets.iter().filter(|t| !t.junk).map(column).collect())
}

/// The type that PREPARE names for a parameter.
pub fn resolve_type(context: &StatementContext, name: &Node) -> Result<Oid> {
    match &name.node {
        Some(NodeEnum::TypeName(name)) => Ok(analysis(context).transform_type_name(name)?.0),
        _ => Err(DbError::internal("PREPARE lists something that is no type")),
    }
}
