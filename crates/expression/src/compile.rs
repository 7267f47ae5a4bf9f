//! From `melba_tree::Expr` to `Expression`: functions and types are looked up, variables placed, constants folded.

mod json;

use std::sync::Arc;

use melba_catalog::{Catalog, Function, Type, classes};
use melba_fmgr::{CallInfo, Session, registry};
use melba_types::collate::Collate;
use melba_types::{Datum, DbError, Kind, Oid, Result, bail, limits, oids};

use super::members::Members;
use super::scalar_array;
use super::stored::StoredFunction;
use super::{
    Call, CallTarget, Case, Expression, MinMax, Node, Routine, RowCompare, RowComparePair, ScalarArray, Subscript,
    SubscriptScheme, array, condition, is_routine, row,
};
use melba_tree::{Expr, Sublink, Var};

/// pg_language OIDs.
const LANGUAGE_INTERNAL: Oid = Oid(12);
const LANGUAGE_C: Oid = Oid(13);
const LANGUAGE_SQL: Oid = Oid(14);

/// textanycat and anytextcat: || of text and anything else.
const TEXT_ANY_CAT: Oid = Oid(2003);
const ANY_TEXT_CAT: Oid = Oid(2004);

/// Longer values are recomputed.
const CONSTANT_BYTES_MAX: usize = 64 << 10;

/// Where a variable's value is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolved {
    Column(usize),
    Executor(usize),
}

/// The scope of an expression: its columns, parameters and functions.
pub trait Scope {
    fn var(&mut self, var: &Var) -> Result<Resolved>;
    /// Executor parameter that a tree parameter (a sub-query's output column in its test) stands for.
    fn executor(&mut self, number: usize) -> Result<usize> {
        Err(DbError::internal(format!("executor parameter {number} outside a subquery's test")))
    }
    fn sublink(&mut self, _sublink: &Sublink) -> Result<Expression> {
        bail!(FEATURE_NOT_SUPPORTED, "cannot use subquery in this context")
    }
    /// A call with fixed operands raises an error. It stays a call: it may never be reached.
    fn constant_fails(&mut self, _error: DbError) {}
    /// A volatile function of a user is called, which may read and change any table. `None`: by an operator or a cast.
    fn calls_routine(&mut self, _routine: Option<&Routine>) {}
}

/// The columns of one table: attribute number n is column n - 1.
pub struct TableScope;

impl Scope for TableScope {
    fn var(&mut self, var: &Var) -> Result<Resolved> {
        match usize::try_from(var.column) {
            Ok(n) if n > 0 && var.levels_up == 0 => Ok(Resolved::Column(n - 1)),
            _ => Err(DbError::unsupported("a whole-row or system column here")),
        }
    }
}

/// Compiles an expression over the columns of one table (checks, defaults, generated columns, index expressions).
pub fn compile_for_table(catalog: &Catalog, session: Option<&dyn Session>, expr: &Expr) -> Result<Expression> {
    Compiler::new(catalog, session, &mut TableScope).compile(expr)
}

/// Whether the text of values of one type, and the values of another that it stands for, depend on nothing else.
pub fn is_io_immutable(catalog: &Catalog, from: Oid, to: Oid) -> bool {
    let immutable = |ty: &Type, name: &str| catalog.type_function(ty, name).is_some_and(|f| f.volatility == b'i');
    let output = catalog.type_(from).is_some_and(|t| immutable(t, &t.output));
    output && catalog.type_(to).is_some_and(|t| immutable(t, &t.input))
}

/// Compiles a domain's check: VALUE is the innermost local (`Evaluation::with_local`).
pub fn compile_domain_check(catalog: &Catalog, session: Option<&dyn Session>, expr: &Expr, base: Oid) -> Result<Expression> {
    let mut scope = TableScope;
    let mut compiler = Compiler::new(catalog, session, &mut scope);
    let value = compiler.expression(Node::Column(0), base);
    compiler.locals.push(Local::Inline(value));
    compiler.compile(expr)
}

#[derive(Clone)]
enum Local {
    /// On the context's stack.
    Runtime,
    /// So cheap that it is evaluated again.
    Inline(Expression),
}

pub struct Compiler<'a> {
    catalog: &'a Catalog,
    /// For folding; without one constants stay as they are.
    session: Option<&'a dyn Session>,
    scope: &'a mut dyn Scope,
    locals: Vec<Local>,
}

impl<'a> Compiler<'a> {
    pub fn new(catalog: &'a Catalog, session: Option<&'a dyn Session>, scope: &'a mut dyn Scope) -> Compiler<'a> {
        Compiler { catalog, session, scope, locals: Vec::new() }
    }

    /// How values of a type are held.
    fn kind(&self, ty: Oid) -> Kind {
        // Pseudo-types (void, unknown) never carry values that matter; text holds them.
        Kind::of_builtin(ty).or_else(|| self.catalog.kind_of(ty)).unwrap_or(Kind::Text)
    }

    fn expression(&self, node: Node, ty: Oid) -> Expression {
        Expression::new(node, ty, self.kind(ty))
    }

    fn compile_all(&mut self, exprs: &[Expr]) -> Result<Vec<Expression>> {
        exprs.iter().map(|e| self.compile(e)).collect()
    }

    fn boxed(&mut self, expr: &Expr) -> Result<Box<Expression>> {
        Ok(Box::new(self.compile(expr)?))
    }

    pub fn compile(&mut self, expr: &Expr) -> Result<Expression> {
        limits::check_stack()?;
        limits::check_interrupt()?;
        Ok(match expr {
            Expr::Const(c) => self.expression(Node::Const(c.value.clone()), c.ty),
            Expr::Var(var) => {
                let node = match self.scope.var(var)? {
                    Resolved::Column(i) => Node::Column(i),
                    Resolved::Executor(i) => Node::Executor(i),
                };
                self.expression(node, var.ty)
            }
            Expr::Param(p) => {
                let node = match p.kind {
                    melba_tree::ParamKind::External => Node::Parameter(p.number - 1),
                    melba_tree::ParamKind::Executor => Node::Executor(self.scope.executor(p.number)?),
                };
                self.expression(node, p.ty)
            }
            Expr::Function(call) => return self.function(call),
            Expr::Operator(op) => return self.operator(op),
            Expr::Distinct(op) => return self.distinct(op),
            Expr::NullIf(op) => return self.null_if(op),
            Expr::ScalarArray(s) => return self.scalar_array(s),
            Expr::And(args) => return self.logic(args, true),
            Expr::Or(args) => return self.logic(args, false),
            Expr::Not(arg) => {
                let arg = self.compile(arg)?;
                match arg.as_const() {
                    Some(Datum::Bool(v)) => self.expression(Node::Const(Datum::Bool(!v)), oids::BOOL),
                    Some(Datum::Null) => arg,
                    _ => self.expression(Node::Not(Box::new(arg)), oids::BOOL),
                }
            }
            Expr::Case(case) => return self.case(case),
            Expr::Coalesce { args, ty, .. } => return self.coalesce(args, *ty),
            Expr::MinMax { greatest, args, ty, operator, collation } => {
                let function = self.catalog.operator(*operator).map(|o| o.function).unwrap_or_default();
                let less = self.call(function, args, oids::BOOL, *collation, false, -1)?;
                return self.min_max(MinMax { greatest: *greatest, less }, function, *ty);
            }
            Expr::NullTest { arg, is_null, row } => {
                let test = |value: &Datum| condition::null_test(value, *is_null, *row);
                return self.test(arg, test, |arg| Node::NullTest { arg, is_null: *is_null, row: *row });
            }
            Expr::BooleanTest { arg, test } => {
                return self.test(
                    arg,
                    |value| condition::boolean_test(value, *test),
                    |arg| Node::BooleanTest { arg, test: *test },
                );
            }
            Expr::Relabel { arg, ty, .. } => {
                let arg = self.compile(arg)?;
                self.relabel(arg, *ty)
            }
            Expr::Collate { arg, .. } => return self.compile(arg),
            _ => return self.compile_more(expr),
        })
    }

    /// Where the fields of a table's row type are in that of a table that inherits from it; `None`: in the same places.
    fn parent_fields(&self, child: Oid, parent: Oid) -> Option<Arc<[usize]>> {
        let live = |ty: Oid| {
            let relation = self.catalog.relation(self.catalog.type_(ty)?.relation)?;
            Some(relation.columns.iter().filter(|c| !c.dropped).map(|c| c.name.clone()).collect::<Vec<_>>())
        };
        let (child, parent) = (live(child)?, live(parent)?);
        let places: Option<Vec<usize>> = parent.iter().map(|name| child.iter().position(|c| c == name)).collect();
        places.filter(|_| child != parent).map(Into::into)
    }

    fn compile_more(&mut self, expr: &Expr) -> Result<Expression> {
        let (node, ty) = match expr {
            Expr::CoerceViaIo { arg, ty, .. } => (self.coerce_io(arg, *ty)?, *ty),
            Expr::ArrayCoerce { arg, element, ty, .. } => {
                let arg = self.boxed(arg)?;
                self.locals.push(Local::Runtime);
                let element = self.boxed(element);
                self.locals.pop();
                let element_type = self.catalog.array_element(*ty).unwrap_or_default();
                (Node::ArrayCoerce { arg, element: element?, element_type }, *ty)
            }
            Expr::ConvertRowtype { arg, ty, .. } => {
                (Node::ConvertRow { arg: self.boxed(arg)?, fields: self.parent_fields(arg.ty(), *ty) }, *ty)
            }
            Expr::CoerceToDomain { arg, ty, .. } => (Node::Domain { arg: self.boxed(arg)? }, *ty),
            Expr::CaseTest { ty, .. } => return self.local(self.locals.last(), *ty),
            // The check's value lies below the values under test in it.
            Expr::DomainValue { ty, .. } => return self.local(self.locals.first(), *ty),
            Expr::Array(a) => {
                let elements = self.compile_all(&a.elements)?;
                let values: Option<Vec<Datum>> = elements.iter().map(|e| e.as_const().cloned()).collect();
                let node = match values.map(|values| array::build(values, a.element_type, a.multidimensional)) {
                    Some(Ok(array)) => Node::Const(array),
                    // An error is raised by the execution.
                    _ => Node::Array { elements, element_type: a.element_type, multidimensional: a.multidimensional },
                };
                (node, a.ty)
            }
            Expr::Row(row) => {
                let fields = self.compile_all(&row.fields)?;
                let types = fields.iter().map(|f| f.ty).collect();
                (Node::Row { fields, types, names: row.names.iter().cloned().collect() }, row.ty)
            }
            Expr::RowCompare(compare) => (self.row_compare(compare)?, oids::BOOL),
            Expr::FieldSelect { arg, field, ty, .. } => {
                let field = self.live_field(arg.ty(), (*field as usize).saturating_sub(1));
                (Node::FieldSelect { arg: self.boxed(arg)?, field }, *ty)
            }
            Expr::FieldStore { arg, values, ty } => {
                let arg = self.boxed(arg)?;
                let mut compiled = Vec::with_capacity(values.len());
                for (field, value) in values {
                    compiled.push(((*field as usize).saturating_sub(1), self.compile(value)?));
                }
                (Node::FieldStore { arg, values: compiled, types: self.field_types(*ty) }, *ty)
            }
            Expr::Subscript(s) => return self.subscript(s),
            Expr::Sublink(sublink) => return self.scope.sublink(sublink),
            Expr::SqlValue { function, ty, typmod } => (Node::SqlValue { function: *function, typmod: *typmod }, *ty),
            Expr::MergeAction => (Node::MergeAction, oids::TEXT),
            Expr::NextValue { sequence, ty } => (Node::NextValue { sequence: *sequence }, *ty),
            Expr::Aggregate(_) | Expr::Grouping { .. } | Expr::Window(_) => {
                return Err(DbError::internal("aggregate or window function outside its operator"));
            }
            Expr::Default { .. } => return Err(DbError::internal("DEFAULT was not replaced before planning")),
            Expr::Sampled { system, args } => return self.sampled(*system, args),
            Expr::CurrentOf { args } => (Node::CurrentOf(self.compile_all(args)?), oids::BOOL),
            Expr::JsonValue(value) => return self.json_value(value),
            Expr::JsonConstructor(made) => return self.json_constructor(made),
            Expr::IsJson(test) => return self.is_json(test),
            Expr::Json(query) => return self.json_query(query),
            _ => return Err(DbError::internal("expression kind not compiled")),
        };
        Ok(self.expression(node, ty))
    }

    fn coalesce(&mut self, args: &[Expr], ty: Oid) -> Result<Expression> {
        let mut kept = Vec::with_capacity(args.len());
        for arg in args {
            let arg = self.compile(arg)?;
            let (is_null, is_last) = (arg.is_null_const(), arg.as_const().is_some());
            if !is_null {
                kept.push(arg);
            }
            // Operands after a constant are never evaluated.
            if is_last && !is_null {
                break;
            }
        }
        Ok(match kept.len() {
            0 => self.expression(Node::Const(Datum::Null), ty),
            1 => kept.swap_remove(0),
            _ => self.expression(Node::Coalesce(kept), ty),
        })
    }

    /// A test of an operand, or its answer when that is fixed.
    fn test(
        &mut self,
        arg: &Expr,
        test: impl Fn(&Datum) -> Datum,
        node: impl FnOnce(Box<Expression>) -> Node,
    ) -> Result<Expression> {
        let arg = self.boxed(arg)?;
        let node = match arg.as_const() {
            Some(value) => Node::Const(test(value)),
            None => node(arg),
        };
        Ok(self.expression(node, oids::BOOL))
    }

    /// A cast through text, or its value when that is fixed.
    fn coerce_io(&mut self, arg: &Expr, to: Oid) -> Result<Node> {
        let arg = self.boxed(arg)?;
        let value = self
            .session
            .zip(arg.as_const())
            .filter(|_| is_io_immutable(self.catalog, arg.ty, to))
            .map(|(session, value)| row::coerce_io(session, arg.ty, to, value.clone()));
        Ok(match value {
            Some(Ok(value)) => Node::Const(value),
            Some(Err(error)) => {
                limits::check_interrupt()?;
                self.scope.constant_fails(error);
                Node::CoerceIo(arg)
            }
            None => Node::CoerceIo(arg),
        })
    }

    /// The place of a field in the values of a row type: dropped columns are not in them.
    fn live_field(&self, ty: Oid, field: usize) -> usize {
        let relation = self.catalog.type_(self.catalog.base_type(ty)).and_then(|t| self.catalog.relation(t.relation));
        relation.map_or(field, |r| r.columns.iter().take(field).filter(|c| !c.dropped).count())
    }

    fn field_types(&self, ty: Oid) -> Arc<[Oid]> {
        let relation = self.catalog.type_(self.catalog.base_type(ty)).and_then(|t| self.catalog.relation(t.relation));
        relation.map(|r| r.columns.iter().map(|c| c.ty).collect()).unwrap_or_default()
    }

    fn local(&self, local: Option<&Local>, ty: Oid) -> Result<Expression> {
        match local {
            None => Err(DbError::internal("no value under test")),
            Some(Local::Inline(value)) => Ok(value.clone()),
            Some(Local::Runtime) => Ok(self.expression(Node::Local(0), ty)),
        }
    }

    fn function(&mut self, call: &melba_tree::FunctionCall) -> Result<Expression> {
        if call.returns_set {
            return Err(melba_types::err!(
                FEATURE_NOT_SUPPORTED,
                "set-valued function called in context that cannot accept a set"
            )
            .at(call.location));
        }
        if let Some(function) = Routine::find(self.catalog, call.function) {
            let routine = Routine::new(function, self.compile_all(&call.args)?, call.ty, call.input_collation, None);
            if routine.volatile {
                self.scope.calls_routine(Some(&routine));
            }
            return Ok(self.expression(Node::Routine(Box::new(routine)), call.ty));
        }
        // A cast may use the function that returns a binary-compatible type: smallint to oid is done through integer.
        let own = self.catalog.function(call.function).map_or(call.ty, |f| f.return_type);
        let through = call.form != melba_tree::CoercionForm::Call && self.kind(own) != self.kind(call.ty);
        let ty = if through { own } else { call.ty };
        let compiled = self.call(call.function, &call.args, ty, call.input_collation, call.variadic, call.location)?;
        let value = self.folded(compiled, call.function)?;
        Ok(if through { self.relabel(value, call.ty) } else { value })
    }

    fn relabel(&self, value: Expression, ty: Oid) -> Expression {
        let kind = self.kind(ty);
        match value.node {
            Node::Const(value) => Expression::new(Node::Const(super::row::relabel(value, kind)), ty, kind),
            _ => Expression::new(Node::Relabel(Box::new(value)), ty, kind),
        }
    }

    fn operator(&mut self, op: &melba_tree::OperatorCall) -> Result<Expression> {
        let compiled = self.call(op.function, &op.args, op.ty, op.input_collation, false, op.location)?;
        self.folded(compiled, op.function)
    }

    /// The call, or its value when that is fixed. The scope decides how errors are handled.
    fn folded(&mut self, call: Call, function: Oid) -> Result<Expression> {
        let ty = call.return_type;
        if call.volatile && matches!(call.target, CallTarget::Routine(_)) {
            self.scope.calls_routine(None);
        }
        let immutable = match function {
            // Its effects are not known while the statement is planned.
            _ if matches!(call.target, CallTarget::Routine(_)) => false,
            // In PostgreSQL a function in SQL, which becomes a cast and a concatenation.
            TEXT_ANY_CAT | ANY_TEXT_CAT => call.args.iter().all(|a| is_io_immutable(self.catalog, a.ty, oids::TEXT)),
            _ => self.catalog.function(function).is_some_and(|f| f.volatility == b'i'),
        };
        if immutable && call.strict && call.args.iter().any(Expression::is_null_const) {
            return Ok(self.expression(Node::Const(Datum::Null), ty));
        }
        let value = if immutable { self.value_of_constants(&call, |info, args| call.invoke(info, args))? } else { None };
        Ok(self.expression(value.map_or_else(|| Node::Call(Box::new(call)), Node::Const), ty))
    }

    /// What an operation by an immutable function has for constants.
    fn fixed(
        &mut self,
        call: &Call,
        function: Oid,
        value: impl FnOnce(&CallInfo<'_>, &[Datum]) -> Result<Datum>,
    ) -> Result<Option<Datum>> {
        let is_routine = matches!(call.target, CallTarget::Routine(_));
        let immutable = !is_routine && self.catalog.function(function).is_some_and(|f| f.volatility == b'i');
        if immutable { self.value_of_constants(call, value) } else { Ok(None) }
    }

    /// The value for the arguments of a call, if all are constants, and there is one.
    fn value_of_constants(
        &mut self,
        call: &Call,
        value: impl FnOnce(&CallInfo<'_>, &[Datum]) -> Result<Datum>,
    ) -> Result<Option<Datum>> {
        let values: Option<Vec<Datum>> = call.args.iter().map(|a| a.as_const().cloned()).collect();
        let Some((session, values)) = self.session.zip(values) else { return Ok(None) };
        match value(&call.planned_info(session), &values) {
            // A long value would be repeated for each row of a batch, whereas the expression that makes it is computed for a few rows
            // at a time.
            Ok(value) => Ok(Some(value).filter(|value| value.heap_bytes() <= CONSTANT_BYTES_MAX)),
            Err(error) => {
                // Checks for the end of the statement, which would otherwise be noticed only after the call was made again.
                limits::check_interrupt()?;
                self.scope.constant_fails(error);
                Ok(None)
            }
        }
    }

    /// A call of a function by OID with compiled operands.
    pub fn call(
        &mut self,
        function: Oid,
        args: &[Expr],
        return_type: Oid,
        collation: Oid,
        variadic: bool,
        location: i32,
    ) -> Result<Call> {
        let args = self.compile_all(args)?;
        call_of(self.catalog, function, args, return_type, collation, variadic, location)
    }

    fn distinct(&mut self, op: &melba_tree::OperatorCall) -> Result<Expression> {
        let call = self.call(op.function, &op.args, oids::BOOL, op.input_collation, false, op.location)?;
        let value = self.fixed(&call, op.function, |info, args| call.is_distinct(info, args).map(Datum::Bool))?;
        Ok(self.expression(value.map_or_else(|| Node::Distinct(Box::new(call)), Node::Const), oids::BOOL))
    }

    fn null_if(&mut self, op: &melba_tree::OperatorCall) -> Result<Expression> {
        let call = self.call(op.function, &op.args, oids::BOOL, op.input_collation, false, op.location)?;
        let value = self.fixed(&call, op.function, |info, args| {
            let equal = matches!(call.invoke(info, args)?, Datum::Bool(true));
            Ok(if equal { Datum::Null } else { args[0].clone() })
        })?;
        Ok(self.expression(value.map_or_else(|| Node::NullIf(Box::new(call)), Node::Const), op.ty))
    }

    /// `function`: that of the operator that compares.
    fn min_max(&mut self, compared: MinMax, function: Oid, ty: Oid) -> Result<Expression> {
        let value = self.fixed(&compared.less, function, |info, args| compared.value(info, args))?;
        Ok(self.expression(value.map_or_else(|| Node::MinMax(Box::new(compared)), Node::Const), ty))
    }

    fn scalar_array(&mut self, s: &melba_tree::ScalarArrayExpr) -> Result<Expression> {
        let args = vec![self.compile(&s.scalar)?, self.compile(&s.array)?];
        let call = call_of(self.catalog, s.function, args, oids::BOOL, s.input_collation, false, s.location)?;
        if call.args[1].is_null_const() {
            return Ok(self.expression(Node::Const(Datum::Null), oids::BOOL));
        }
        let equality = if s.any { self.catalog.is_equality(s.operator) } else { self.is_inequality(s.operator) };
        let ty = call.args[0].ty;
        let plain = crate::key::KeyPart::equality(self.catalog, (ty, s.input_collation)).is_plain()
            && !self.catalog.may_be_ordered_by_function(ty);
        let (mut members, mut fixed) = (None, None);
        match call.args[1].as_const() {
            _ if !equality || !plain => {}
            Some(Datum::Array(array)) => {
                members = scalar_array::is_worth_keys(array, &call).then(|| Arc::new(Members::new(&array.elements)));
            }
            Some(_) => {}
            None => fixed = scalar_array::is_fixed(&call.args[1]).then(Arc::default),
        }
        let compared = ScalarArray { call, any: s.any, members, fixed };
        let value = self.fixed(&compared.call, s.function, |info, args| match args {
            [scalar, array] => {
                let compare = |args: &[Datum]| compared.call.invoke(info, args);
                scalar_array::value(&compared, compare, scalar.clone(), array.clone())
            }
            _ => Err(DbError::internal("a comparison with an array that has no array")),
        })?;
        Ok(self.expression(value.map_or_else(|| Node::ScalarArray(Box::new(compared)), Node::Const), oids::BOOL))
    }

    fn is_inequality(&self, operator: Oid) -> bool {
        self.catalog.operator(operator).is_some_and(|o| self.catalog.is_equality(o.negator))
    }

    /// AND and OR without the operands that do not matter.
    fn logic(&mut self, args: &[Expr], and: bool) -> Result<Expression> {
        let mut compiled = Vec::with_capacity(args.len());
        let mut null = None;
        for arg in args {
            let arg = self.compile(arg)?;
            match arg.as_const() {
                Some(Datum::Bool(v)) if *v == and => {}
                Some(Datum::Bool(_)) => return Ok(arg),
                // Of several one is enough.
                Some(Datum::Null) => null = Some(arg),
                _ => compiled.push(arg),
            }
        }
        compiled.extend(null);
        Ok(match compiled.len() {
            0 => self.expression(Node::Const(Datum::Bool(and)), oids::BOOL),
            1 => compiled.swap_remove(0),
            _ => self.expression(if and { Node::And(compiled) } else { Node::Or(compiled) }, oids::BOOL),
        })
    }

    fn case(&mut self, case: &melba_tree::CaseExpr) -> Result<Expression> {
        let mut arg = case.arg.as_ref().map(|a| self.compile(a)).transpose()?;
        let local = match arg.take() {
            None => None,
            Some(e) if matches!(e.node, Node::Column(_) | Node::Const(_) | Node::Parameter(_) | Node::Executor(_)) => {
                Some(Local::Inline(e))
            }
            Some(e) => {
                arg = Some(e);
                Some(Local::Runtime)
            }
        };
        let mut kept = Vec::with_capacity(case.whens.len());
        let mut last = &case.default;
        for (when, then) in &case.whens {
            let pushed = local.is_some();
            self.locals.extend(local.clone());
            let when = self.compile(when);
            if pushed {
                self.locals.pop();
            }
            let when = when?;
            match when.as_const() {
                // Arms that follow are never evaluated.
                Some(Datum::Bool(true)) => {
                    last = then;
                    break;
                }
                Some(_) => {}
                None => kept.push((when, self.compile(then)?)),
            }
        }
        let default = self.compile(last)?;
        if kept.is_empty() {
            return Ok(default);
        }
        Ok(self.expression(Node::Case(Box::new(Case { arg, whens: kept, default })), case.ty))
    }

    fn row_compare(&mut self, compare: &melba_tree::RowCompareExpr) -> Result<Node> {
        let mut pairs = Vec::with_capacity(compare.operators.len());
        for (i, operator) in compare.operators.iter().enumerate() {
            let order_function = self.catalog.operator(*operator).map(|o| o.function).unwrap_or_default();
            let args = vec![self.compile(&compare.left[i])?, self.compile(&compare.right[i])?];
            let equal = self.equality_beside(*operator)?;
            let collation = compare.input_collations.get(i).copied().unwrap_or_default();
            pairs.push(RowComparePair {
                equal: call_of(self.catalog, equal, args.clone(), oids::BOOL, collation, false, -1)?,
                order: call_of(self.catalog, order_function, args, oids::BOOL, collation, false, -1)?,
            });
        }
        Ok(Node::RowCompare(Box::new(RowCompare { comparison: compare.comparison, pairs })))
    }

    /// The function of the equality operator in the family of an ordering operator.
    fn equality_beside(&self, operator: Oid) -> Result<Oid> {
        const EQUAL: i16 = 3;
        let op = self.catalog.operator(operator);
        let found = op.and_then(|op| {
            let mut of_btree =
                self.catalog.all_operator_members(operator).iter().filter(|m| m.method == classes::BTREE && !m.ordering);
            let own = self.catalog.btree_strategy(operator).map(|(family, _)| family);
            let family = own.or_else(|| of_btree.next().map(|m| m.family))?;
            let equal = self.catalog.access_methods().operator(family, op.left, op.right, EQUAL)?;
            self.catalog.operator(equal).map(|o| o.function)
        });
        found.ok_or_else(|| DbError::internal("row comparison operator has no equality beside it"))
    }

    fn subscript(&mut self, s: &melba_tree::SubscriptExpr) -> Result<Expression> {
        let container = self.compile(&s.container)?;
        let mut bounds = |list: &[Option<Expr>]| -> Result<Vec<Option<Expression>>> {
            list.iter().map(|b| b.as_ref().map(|b| self.compile(b)).transpose()).collect()
        };
        let lower = bounds(&s.lower)?;
        let upper = bounds(&s.upper)?;
        self.locals.push(Local::Runtime);
        let assign = s.assign.as_ref().map(|a| self.compile(a)).transpose();
        self.locals.pop();
        let base = self.catalog.base_type(s.container_type);
        let scheme = SubscriptScheme::of(base);
        let element_type = self.catalog.type_(base).map(|t| t.element).unwrap_or_default();
        let node = Node::Subscript(Box::new(Subscript {
            container,
            container_type: s.container_type,
            element_type,
            slice: s.slice,
            lower,
            upper,
            assign: assign?,
            scheme,
        }));
        let letters = base == oids::NAME && !s.slice && s.assign.is_none();
        if scheme == SubscriptScheme::Array && !letters && self.kind(s.container_type) != Kind::Array {
            return Err(DbError::unsupported("subscripting of this type"));
        }
        Ok(self.expression(node, s.ty))
    }
}

/// The implementation of a row of pg_proc.
pub fn target_of(function: &Function) -> CallTarget {
    let registered = match function.language {
        LANGUAGE_INTERNAL | LANGUAGE_C => registry::scalar(&function.source),
        LANGUAGE_SQL => registry::scalar(&format!("{}_{}", function.name, function.oid)),
        _ => None,
    };
    match registered {
        Some(implementation) => CallTarget::Scalar(implementation),
        None if matches!(function.language, LANGUAGE_INTERNAL | LANGUAGE_C) => CallTarget::System(function.source.clone()),
        None if is_routine(function) => CallTarget::Routine(function.oid),
        None => CallTarget::System(format!("function:{}", function.oid).into()),
    }
}

/// Whether the special forms of a function, which know no collations, may run a call by one. Only the general form refuses a call that has
/// texts and no collation.
fn compares_bytes(catalog: &Catalog, function: &Function, args: &[Expression], collation: Oid) -> bool {
    const BY_EQUALITY: &[&str] = &["texteq", "textne", "bpchareq", "bpcharne", "textlike", "textnlike", "text_starts_with"];
    match catalog.collator(collation) {
        None => collation.is_valid() || !args.iter().any(|a| matches!(a.ty, oids::TEXT | oids::VARCHAR | oids::BPCHAR)),
        Some(collator) => collator.is_deterministic() && BY_EQUALITY.contains(&&*function.source),
    }
}

/// A call with compiled operands.
pub fn call_of(
    catalog: &Catalog,
    function: Oid,
    args: Vec<Expression>,
    return_type: Oid,
    collation: Oid,
    variadic: bool,
    location: i32,
) -> Result<Call> {
    let Some(f) = catalog.function(function) else {
        bail!(UNDEFINED_FUNCTION, "function with OID {function} does not exist");
    };
    let is_internal = f.language == LANGUAGE_INTERNAL;
    let has_forms = is_internal && compares_bytes(catalog, f, &args, collation);
    let vector = if has_forms { registry::vector(&f.source) } else { None };
    let stored = if has_forms { StoredFunction::of(&f.source, &args) } else { None };
    let quick = if has_forms && args.len() == 2 { registry::quick(&f.source) } else { None };
    let of_user = collation.0 >= classes::FIRST_USER_OID && is_internal && catalog.collator(collation).is_none();
    let own = if of_user { catalog.collation(collation) } else { None };
    let collation = own.map_or(collation, |c| c.casing());
    Ok(Call {
        quick,
        vector,
        stored,
        appends: is_internal && &*f.source == "array_append",
        strict: f.strict,
        volatile: f.volatility == b'v',
        parallel_safe: f.parallel == b's' && !is_routine(f),
        collation,
        variadic,
        ..Call::plain(target_of(f), args, return_type, location)
    })
}
