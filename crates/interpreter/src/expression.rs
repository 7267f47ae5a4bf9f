//! Pieces of SQL: analyzed over the frame's variables, evaluated or run.

use std::cell::RefCell;
use std::sync::Arc;

use melba_analyze::{
    NameConflict, Variable, VariableField, Variables, analyze_part_assignment, analyze_with_variables, coerce_for_variable,
    inline_routines,
};
use melba_execute::Execution;
use melba_expression::compile::{Compiler, Resolved as Place, Scope};
use melba_expression::{Expression as Compiled, Node};
use melba_parse::command::is_query;
use melba_plpgsql::tree::{self, Conflict, Expression, Form, Target, VariableType};
use melba_statement::planned::Planned;
use melba_statement::planning::analysis;
use melba_statement::{execution, planning};
use melba_tree::permissions::Permissions;
use melba_tree::{Command, Distinct, Expr, ParamKind, Query, Var};
use melba_types::{Datum, DbError, Oid, Result, SqlState, bail, err, oids};
use pg_query::NodeEnum;

use super::field;
use super::field::Field;
use super::frame::{Frame, Typed};
use super::misuse::{is_misuse, misuse};
use super::program::{ParameterSource, PieceKind, PreparedPiece, RecordFields, Simple};

/// The frame's variables as names of a piece of SQL.
pub(super) struct VariableNames<'a> {
    frame: &'a Frame<'a>,
    scope: Option<usize>,
    sources: RefCell<Vec<ParameterSource>>,
    shapes: RefCell<Vec<usize>>,
}

impl<'a> VariableNames<'a> {
    pub fn at(frame: &'a Frame<'a>, piece: &Expression) -> VariableNames<'a> {
        VariableNames { frame, scope: piece.scope, sources: RefCell::default(), shapes: RefCell::default() }
    }

    pub fn into_sources(self) -> Vec<ParameterSource> {
        self.sources.into_inner()
    }

    fn resolve(&self, names: &[&str]) -> Option<tree::Resolved> {
        let function = &self.frame.program.tree;
        tree::resolve(&function.names, &function.variables, self.scope, names, false)
    }

    fn number(&self, source: ParameterSource) -> usize {
        let mut sources = self.sources.borrow_mut();
        match sources.iter().position(|s| *s == source) {
            Some(at) => at + 1,
            None => {
                sources.push(source);
                sources.len()
            }
        }
    }

    fn whole(&self, variable: usize) -> Variable {
        let ty = self.frame.types[variable];
        if ty.oid == oids::RECORD {
            self.note_shape(variable);
        }
        Variable {
            number: self.number(ParameterSource::Variable(variable)),
            ty: type_of_variable(self.frame, variable),
            typmod: ty.typmod,
            collation: ty.collation,
        }
    }

    fn note_shape(&self, variable: usize) {
        let mut shapes = self.shapes.borrow_mut();
        if !shapes.contains(&variable) {
            shapes.push(variable);
        }
    }

    fn field(&self, variable: usize, field: usize, (ty, typmod): (Oid, i32)) -> Variable {
        let collation = field::collation_of_field(self.frame, variable, field, ty);
        Variable { number: self.number(ParameterSource::Field { record: variable, field }), ty, typmod, collation }
    }
}

impl Variables for VariableNames<'_> {
    fn find(&self, names: &[&str]) -> Result<Option<Variable>> {
        let Some(found) = self.resolve(names) else { return Ok(None) };
        match names.get(found.names_used..) {
            None | Some([]) => Ok(Some(self.whole(found.variable))),
            Some([field]) if self.frame.types[found.variable].is_record => {
                if self.frame.types[found.variable].oid == oids::RECORD {
                    self.note_shape(found.variable);
                }
                let fields = field::fields_of(self.frame, found.variable)?;
                match fields.iter().position(|(name, _)| **name == **field) {
                    Some(place) => Ok(Some(self.field(found.variable, place, fields[place].1))),
                    None => {
                        let name = &self.frame.program.tree.variables[found.variable].name;
                        Err(err!(UNDEFINED_COLUMN, "record \"{name}\" has no field \"{field}\""))
                    }
                }
            }
            Some(_) => Ok(None),
        }
    }

    fn fields(&self, names: &[&str]) -> Result<Option<Vec<VariableField>>> {
        let Some(found) = self.resolve(names).filter(|f| f.names_used == names.len()) else { return Ok(None) };
        if !self.frame.types[found.variable].is_record {
            return Ok(None);
        }
        self.note_shape(found.variable);
        let fields = field::fields_of(self.frame, found.variable)?;
        let field = |(i, (name, ty)): (usize, Field)| (self.field(found.variable, i, ty), name);
        Ok(Some(fields.into_iter().enumerate().map(field).collect()))
    }

    fn argument(&self, number: i32) -> Option<Variable> {
        let name = format!("${number}");
        let found = self.resolve(&[&name])?;
        Some(self.whole(found.variable))
    }

    fn conflict(&self) -> NameConflict {
        let own = self.frame.program.tree.conflict;
        let setting = || melba_fmgr::Session::setting(&*self.frame.context, "plpgsql.variable_conflict");
        match own {
            Some(Conflict::Error) => NameConflict::Error,
            Some(Conflict::Variable) => NameConflict::Variable,
            Some(Conflict::Column) => NameConflict::Column,
            None => match setting().as_deref() {
                Some("use_variable") => NameConflict::Variable,
                Some("use_column") => NameConflict::Column,
                _ => NameConflict::Error,
            },
        }
    }
}

/// Parameters are the frame's variables, and errors of constants are the expression's.
#[derive(Default)]
struct FrameScope {
    failed: Option<DbError>,
}

impl Scope for FrameScope {
    fn var(&mut self, var: &Var) -> Result<Place> {
        Ok(Place::Column(var.column as usize))
    }

    fn constant_fails(&mut self, error: DbError) {
        self.failed.get_or_insert(error);
    }
}

const HEAD: &str = "SELECT ";

/// How a piece is analyzed.
#[derive(Clone, Copy)]
pub(super) enum PieceUse<'a> {
    /// As it is.
    Any,
    /// A query to whose rows statements may refer by WHERE CURRENT OF.
    Cursor,
    /// As a value of the type.
    Type(VariableType),
    /// As the whole new value of a variable of which a part is assigned to.
    Part { variable: usize, path: &'a str },
}

fn shape(frame: &Frame<'_>, variable: usize) -> Option<RecordFields> {
    match &frame.values[variable] {
        Datum::Record(record) => Some(RecordFields {
            ty: record.type_oid,
            types: record.field_types.clone(),
            names: record.field_names.clone(),
            collations: field::own_collations(frame, variable).cloned(),
        }),
        _ => None,
    }
}

fn is_current(frame: &Frame<'_>, prepared: &PreparedPiece) -> bool {
    Arc::ptr_eq(&prepared.catalog, &frame.context.catalog)
        && (Arc::ptr_eq(&prepared.path, &frame.context.path.path) || prepared.path == frame.context.path.path)
        && !matches!(&prepared.kind, PieceKind::Query(planned) if !planned.is_of_user(&frame.context) || !planned.has_wanted_texts(&frame.context))
        && fits_records(frame, prepared)
}

/// Whether the records that a piece reads have the shapes that they had when it was analyzed.
fn fits_records(frame: &Frame<'_>, prepared: &PreparedPiece) -> bool {
    prepared.shapes.iter().all(|(variable, shape)| match &frame.values[*variable] {
        Datum::Record(record) => {
            let same_types = Arc::ptr_eq(&record.field_types, &shape.types) || record.field_types == shape.types;
            record.type_oid == shape.ty
                && same_types
                && record.field_names == shape.names
                && field::own_collations(frame, *variable) == shape.collations.as_ref()
        }
        _ => false,
    })
}

/// The piece, analyzed against the catalog and the records as they are now. The relations of a query are locked.
pub fn prepare(frame: &mut Frame<'_>, e: &Expression, wanted: PieceUse<'_>) -> Result<Arc<PreparedPiece>> {
    loop {
        let prepared = prepare_now(frame, e, wanted)?;
        match &prepared.kind {
            PieceKind::Query(planned) => {
                if !execution::is_outdated(&frame.context, &frame.tx, planned).map_err(|error| of_piece(e, error))? {
                    return Ok(prepared);
                }
                frame.refresh();
            }
            PieceKind::Simple(_) | PieceKind::Utility(_) => return Ok(prepared),
        }
    }
}

/// The same without locks: a query is not to be run then.
pub fn prepare_now(frame: &mut Frame<'_>, e: &Expression, wanted: PieceUse<'_>) -> Result<Arc<PreparedPiece>> {
    if let Some(known) = &frame.prepared[e.number]
        && fits_records(frame, known)
    {
        return Ok(known.clone());
    }
    let shared = frame.program.prepared.lock()[e.number].clone();
    let prepared = match shared.filter(|known| is_current(frame, known)) {
        Some(known) => known,
        None => {
            let made = Arc::new(prepare_anew(frame, e, wanted).map_err(|error| of_piece(e, error))?);
            frame.program.prepared.lock()[e.number] = Some(made.clone());
            made
        }
    };
    frame.prepared[e.number] = Some(prepared.clone());
    Ok(prepared)
}

fn prepare_anew(frame: &Frame<'_>, e: &Expression, wanted: PieceUse<'_>) -> Result<PreparedPiece> {
    let text = match e.form {
        Form::Statement => e.text.to_string(),
        Form::Expression | Form::Assignment => format!("{HEAD}{}", e.text),
    };
    let mut statements = melba_parse::parse_as(&text, frame.program.strings)?.statements;
    let (Some(statement), true) = (statements.pop(), statements.is_empty()) else {
        bail!(SYNTAX_ERROR, "syntax error");
    };
    let names = VariableNames::at(frame, e);
    let kind = match is_query(&statement.node) {
        false => PieceKind::Utility(statement),
        true => analyzed(frame, e, &statement.node, &names, wanted)?,
    };
    let mut shapes = Vec::new();
    for variable in names.shapes.into_inner() {
        if let Some(shape) = shape(frame, variable) {
            shapes.push((variable, shape));
        }
    }
    Ok(PreparedPiece {
        catalog: frame.context.catalog.clone(),
        path: frame.context.path.path.clone(),
        shapes,
        sources: names.sources.into_inner(),
        kind,
    })
}

fn analyzed(
    frame: &Frame<'_>,
    e: &Expression,
    node: &NodeEnum,
    names: &VariableNames<'_>,
    wanted: PieceUse<'_>,
) -> Result<PieceKind> {
    let cx = analysis(&frame.context);
    let mut query = match wanted {
        PieceUse::Part { variable, path } => {
            let path = part_of(path)?;
            let name = e.shown.split(['.', '[', ' ', ':']).next().unwrap_or_default();
            let mut target = (names.whole(variable), name);
            let mut rest = &path[..];
            if let (true, Some(NodeEnum::String(field))) =
                (frame.types[variable].is_record, path.first().and_then(|n| n.node.as_ref()))
            {
                let (place, ty) = field::place_of_field(frame, variable, &field.sval)?;
                // A record has no type of its own: the new value is that of its field.
                if frame.types[variable].oid == oids::RECORD {
                    target = (names.field(variable, place, ty), &field.sval);
                    rest = &path[1..];
                }
            }
            // The path's own expressions live as long as the analysis.
            analyze_part_assignment(&cx, node, target, rest, names).map_err(at_target)?
        }
        PieceUse::Any | PieceUse::Cursor | PieceUse::Type(_) => analyze_with_variables(&cx, node, names)?,
    };
    let columns = query.output().iter().filter(|t| !t.junk).count();
    if e.form == Form::Assignment && columns != 1 {
        let plural = if columns == 1 { "" } else { "s" };
        bail!(SYNTAX_ERROR, "assignment source returned {columns} column{plural}");
    }
    if let (PieceUse::Type(ty), Some(_)) = (&wanted, simple_target(&query)) {
        let target = query.targets.remove(0);
        let from = target.expr.ty();
        let is_same = from == ty.oid && (ty.typmod < 0 || target.expr.typmod() == ty.typmod);
        // A value that becomes a record is converted field by field.
        let expr = match is_same || ty.is_record {
            true => target.expr,
            false => {
                let mut coerced = coerce_for_variable(&cx, target.expr, ty.oid, ty.typmod)?;
                melba_analyze::assign_collations(&cx, &mut coerced)?;
                coerced
            }
        };
        query.targets.insert(0, melba_tree::Target { expr, ..target });
    }
    if simple_target(&query).is_some() {
        return simple(frame, query, names);
    }
    let planned = match wanted {
        PieceUse::Cursor => planning::plan_cursor_in_routine(&frame.context, query)?,
        _ => planning::plan_within(&frame.context, query)?,
    };
    Ok(PieceKind::Query(Box::new(planned)))
}

fn simple(frame: &Frame<'_>, mut query: Query, names: &VariableNames<'_>) -> Result<PieceKind> {
    let catalog = &frame.context.catalog;
    let permissions = Permissions::of(&query, catalog);
    let cx = analysis(&frame.context);
    if catalog.has_user_functions() && inline_routines(&cx, &mut query)? && simple_target(&query).is_none() {
        return Ok(PieceKind::Query(Box::new(planning::plan_within(&frame.context, query)?)));
    }
    let Some(target) = simple_target(&query) else { return Err(DbError::internal("the value is gone")) };
    let typmod = target.typmod();
    let mut expr = target.clone();
    place_variables(&mut expr, &names.sources.borrow());
    let mut scope = FrameScope::default();
    let expression = Compiler::new(catalog, Some(&*frame.context), &mut scope).compile(&expr)?;
    if let Some(error) = scope.failed {
        return Err(error);
    }
    let calls = expression.any(&mut |e| matches!(&e.node, Node::Routine(_)));
    let reads = calls || expression.any(&mut |e| matches!(&e.node, Node::Call(call) if call.volatile || !call.parallel_safe));
    let is_plain = !reads && !frame.is_domain(expression.ty);
    let changes = expression.changed_array().filter(|_| !frame.is_domain(expression.ty));
    Ok(PieceKind::Simple(Simple {
        expression,
        is_plain,
        changes,
        name: query.targets[0].name.clone(),
        typmod,
        reads,
        permissions: calls.then_some(permissions),
    }))
}

/// The value of a simple expression.
pub fn eval_simple(frame: &Frame<'_>, simple: &Simple) -> Result<Datum> {
    with_surroundings(frame, simple, || simple.expression.eval_row(&frame.evaluation, &frame.values))
}

/// Evaluates a simple expression, or what a change needs of it.
fn with_surroundings<T>(frame: &Frame<'_>, simple: &Simple, evaluate: impl FnOnce() -> Result<T>) -> Result<T> {
    let _entered = simple.permissions.is_some().then(|| frame.enter(None));
    begin_simple(frame, simple)?;
    evaluate()
}

/// The same, within a statement that has entered already.
pub fn eval_entered(frame: &Frame<'_>, simple: &Simple) -> Result<Datum> {
    begin_simple(frame, simple)?;
    simple.expression.eval_row(&frame.evaluation, &frame.values)
}

fn begin_simple(frame: &Frame<'_>, simple: &Simple) -> Result<()> {
    if let Some(permissions) = &simple.permissions {
        permissions.check(&frame.context.catalog, frame.context.user.oid)?;
    }
    if simple.reads {
        frame.renew_view();
    }
    Ok(())
}

/// Puts an element into the variable's array, if the piece's value is that array but for one element and this call has already evaluated
/// it. False where the value is to be evaluated.
pub fn change_array(frame: &mut Frame<'_>, variable: usize, e: &Expression) -> Result<bool> {
    let Some(simple) = known(frame, e).filter(|simple| simple.changes == Some(variable)) else { return Ok(false) };
    if simple.expression.ty != frame.types[variable].oid {
        return Ok(false);
    }
    let reads = simple.reads;
    let change = with_surroundings(frame, simple, || simple.expression.array_change(&frame.evaluation, &frame.values));
    if reads {
        frame.refresh();
    }
    let Some(change) = change? else { return Ok(false) };
    change.apply(&mut frame.values[variable])?;
    Ok(true)
}

/// A piece that this call has already evaluated as one expression; `None` when it must be prepared.
#[inline]
fn known<'f>(frame: &'f Frame<'_>, e: &Expression) -> Option<&'f Simple> {
    let prepared = frame.prepared[e.number].as_ref()?;
    match &prepared.kind {
        PieceKind::Simple(simple) if fits_records(frame, prepared) => Some(simple),
        _ => None,
    }
}

/// A plain piece of the type that this call has already evaluated; `None` for others.
#[inline]
pub fn known_plain<'f>(frame: &'f Frame<'_>, e: &Expression, ty: Oid) -> Option<&'f Compiled> {
    let simple = known(frame, e).filter(|simple| simple.is_plain && simple.expression.ty == ty)?;
    Some(&simple.expression)
}

/// An expression's value, with its type.
pub fn evaluate(frame: &mut Frame<'_>, e: &Expression, wanted: PieceUse<'_>) -> Result<Typed> {
    if let Some(simple) = known(frame, e) {
        let (reads, ty, typmod) = (simple.reads, simple.expression.ty, simple.typmod);
        let value = eval_simple(frame, simple);
        if reads {
            frame.refresh();
        }
        return Ok(Typed { value: value?, ty, typmod });
    }
    let prepared = prepare(frame, e, wanted)?;
    match &prepared.kind {
        PieceKind::Simple(simple) => {
            let value = eval_simple(frame, simple)?;
            if simple.reads {
                frame.refresh();
            }
            Ok(Typed { value, ty: simple.expression.ty, typmod: simple.typmod })
        }
        PieceKind::Query(planned) => only_value(frame, e, &prepared, planned),
        PieceKind::Utility(_) => Err(DbError::internal("an expression that is no query")),
    }
}

/// The value of a query of one column and at most one row.
fn only_value(frame: &mut Frame<'_>, e: &Expression, prepared: &PreparedPiece, planned: &Planned) -> Result<Typed> {
    let of_query = |error: DbError| error.context(format!("query: {}", shown(e)));
    let entered = frame.enter(Some(piece_of(e)));
    let mut execution = execution(frame, e, prepared, planned).map_err(|error| of_piece(e, error))?;
    let columns = execution.plan().columns.clone();
    let [column] = &columns[..] else {
        let plural = if columns.len() == 1 { "" } else { "s" };
        return Err(of_query(err!(SYNTAX_ERROR, "query returned {} column{plural}", columns.len())));
    };
    let mut value = None;
    while let Some(batch) = execution.next_batch(2).map_err(|error| of_piece(e, error))? {
        if batch.rows == 0 {
            continue;
        }
        if value.is_some() || batch.rows > 1 {
            return Err(of_query(err!(CARDINALITY_VIOLATION, "query returned more than one row")));
        }
        value = Some(batch.columns[0].get(0));
    }
    drop(execution);
    drop(entered);
    frame.refresh();
    Ok(Typed { value: value.unwrap_or(Datum::Null), ty: column.ty, typmod: column.typmod })
}

/// A query over the variables as they are now, begun.
pub fn execution(frame: &Frame<'_>, e: &Expression, prepared: &PreparedPiece, planned: &Planned) -> Result<Execution> {
    execution::execution(&frame.context, &frame.tx, planned, &parameters(frame, prepared), (frame.view, &e.text))
}

/// The values of a piece's parameters as they are now.
pub fn parameters(frame: &Frame<'_>, prepared: &PreparedPiece) -> Arc<[Datum]> {
    prepared.sources.iter().map(|s| source_value(frame, *s)).collect()
}

pub fn source_value(frame: &Frame<'_>, source: ParameterSource) -> Datum {
    match source {
        ParameterSource::Variable(variable) => frame.values[variable].clone(),
        ParameterSource::Field { record, field } => match &frame.values[record] {
            Datum::Record(record) => record.fields.get(field).cloned().unwrap_or(Datum::Null),
            _ => Datum::Null,
        },
    }
}

/// The type of the variable or field that a parameter stands for. That of an unassigned record's field is not known.
pub fn source_type(frame: &Frame<'_>, source: ParameterSource) -> Oid {
    match source {
        ParameterSource::Variable(variable) => type_of_variable(frame, variable),
        ParameterSource::Field { record, field } => {
            let fields = field::fields_of(frame, record).unwrap_or_default();
            fields.get(field).map_or(Oid::INVALID, |(_, (ty, _))| *ty)
        }
    }
}

/// A record variable has its value's type.
fn type_of_variable(frame: &Frame<'_>, variable: usize) -> Oid {
    match (frame.types[variable].oid, &frame.values[variable]) {
        (oids::RECORD, Datum::Record(record)) => record.type_oid,
        (ty, _) => ty,
    }
}

/// The variable or field that a parameter stands for, to be assigned to.
///
/// # Errors
/// 22005 for a constant.
pub fn target_of(frame: &Frame<'_>, source: ParameterSource) -> Result<Option<Target>> {
    let (ParameterSource::Variable(variable) | ParameterSource::Field { record: variable, .. }) = source;
    let declared = &frame.program.tree.variables[variable];
    if declared.constant {
        return Err(misuse(err!(ERROR_IN_ASSIGNMENT, "variable \"{}\" is declared CONSTANT", declared.name)));
    }
    Ok(match source {
        ParameterSource::Variable(variable) => Some(Target::Variable(variable)),
        ParameterSource::Field { record, field } => {
            let fields = field::fields_of(frame, record)?;
            fields.get(field).map(|(name, _)| Target::Field { record, name: name.clone() })
        }
    })
}

/// A piece as messages show it.
fn shown(e: &Expression) -> &Arc<str> {
    match e.form {
        Form::Assignment if !e.shown.is_empty() => &e.shown,
        _ => &e.text,
    }
}

/// An error of a piece of SQL with the piece.
pub fn of_piece(e: &Expression, error: DbError) -> DbError {
    if is_misuse(&error) {
        return error;
    }
    let shown = shown(e);
    match error.fields().position {
        Some(AT_TARGET) => {
            let mut error = error;
            error.fields_mut().position = Some(1);
            error.in_query(shown)
        }
        Some(position) => {
            let head = if e.form == Form::Statement { 0 } else { HEAD.len() };
            let offset = (position as usize - 1).saturating_sub(head) + (shown.len() - e.text.len());
            let mut error = error;
            error.fields_mut().position = Some(offset as u32 + 1);
            error.in_query(shown)
        }
        None => {
            let (kind, shown) = piece_of(e);
            error.within(format!("{kind} \"{shown}\""))
        }
    }
}

/// A piece in lines of context: its kind and text.
pub fn piece_of(e: &Expression) -> (&'static str, Arc<str>) {
    let kind = match e.form {
        Form::Statement => "SQL statement",
        Form::Expression => "PL/pgSQL expression",
        Form::Assignment => "PL/pgSQL assignment",
    };
    (kind, shown(e).clone())
}

/// The type that a target without parts takes.
pub fn wanted_by<'a>(frame: &Frame<'_>, target: &'a Target) -> PieceUse<'a> {
    match target {
        Target::Variable(variable) => PieceUse::Type(frame.types[*variable]),
        Target::Part { variable, path } => PieceUse::Part { variable: *variable, path },
        Target::Field { .. } | Target::Row(_) => PieceUse::Any,
    }
}

/// The position of an error of an assignment's target, which is no part of the text that is analyzed.
const AT_TARGET: u32 = u32::MAX;

fn at_target(mut e: DbError) -> DbError {
    let about_target = matches!(e.sqlstate(), SqlState::DATATYPE_MISMATCH | SqlState::UNDEFINED_COLUMN);
    if about_target && e.fields().position.is_none() {
        e.fields_mut().position = Some(AT_TARGET);
    }
    e
}

/// The subscripts and fields of an assignment's target.
fn part_of(path: &str) -> Result<Vec<pg_query::Node>> {
    let text = format!("UPDATE t SET v{path} = 0");
    let parsed = melba_parse::parse(&text).map_err(DbError::without_position)?;
    let target = match parsed.statements.first().map(|s| &s.node) {
        Some(NodeEnum::UpdateStmt(update)) => update.target_list.first().and_then(|t| t.node.clone()),
        _ => None,
    };
    match target {
        Some(NodeEnum::ResTarget(target)) => Ok(target.indirection),
        _ => Err(err!(SYNTAX_ERROR, "syntax error at or near \"{path}\"")),
    }
}

/// The single value of a query that reads no table: it can be evaluated without a plan.
fn simple_target(query: &Query) -> Option<&Expr> {
    let [target] = &query.targets[..] else { return None };
    let is_plain = query.command == Command::Select
        && query.ctes.is_empty()
        && query.range_table.is_empty()
        && query.filter.is_none()
        && query.group_by.is_empty()
        && query.grouping_sets.is_none()
        && query.having.is_none()
        && query.windows.is_empty()
        && query.set_operation.is_none()
        && query.limit.is_none()
        && query.offset.is_none()
        && query.order_by.is_empty()
        && matches!(query.distinct, Distinct::None)
        && !query.has_aggregates
        && !query.has_windows
        && !query.has_set_returning;
    (is_plain && !target.expr.any(&mut |e| matches!(e, Expr::Sublink(_)))).then_some(&target.expr)
}

/// Replaces parameters by columns of the frame's row.
fn place_variables(expr: &mut Expr, sources: &[ParameterSource]) {
    expr.visit_mut(0, &mut |e, _| {
        let Expr::Param(p) = e else { return true };
        if p.kind != ParamKind::External {
            return true;
        }
        let column = |variable: usize, ty: Oid| {
            Expr::Var(Var { location: p.location, ..Var::new(0, variable as i16, ty, p.typmod, p.collation) })
        };
        let placed = match sources[p.number - 1] {
            ParameterSource::Variable(variable) => column(variable, p.ty),
            ParameterSource::Field { record, field } => Expr::FieldSelect {
                // Places in the values, whichever columns of the type were dropped.
                arg: Box::new(column(record, oids::RECORD)),
                field: field as i16 + 1,
                ty: p.ty,
                typmod: p.typmod,
                collation: p.collation,
            },
        };
        *e = placed;
        true
    });
}
