//! Type coercion: which casts exist, and the expressions that perform them.

use melba_catalog::TypeKind;
use melba_types::{Datum, DbError, Oid, Result, err, oids};

use super::analyzer::Analyzer;
use super::context::Context;
use super::{field, polymorphic};
use melba_tree::*;

/// How a cast comes about; ordered from the most to the least restricted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CoercionContext {
    Implicit,
    Assignment,
    Explicit,
}

/// How a value of one type becomes one of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pathway {
    Relabel,
    Function(Oid),
    Array,
    ViaIo,
}

impl Context<'_> {
    /// The cast from `source` to `target` that `context` allows.
    pub fn coercion_pathway(&self, target: Oid, source: Oid, context: CoercionContext) -> Option<Pathway> {
        let source = self.base_type(source);
        let target = self.base_type(target);
        if source == target {
            return Some(Pathway::Relabel);
        }
        if let Some(cast) = self.catalog.cast(source, target) {
            let needed = match cast.context {
                b'i' => CoercionContext::Implicit,
                b'a' => CoercionContext::Assignment,
                _ => CoercionContext::Explicit,
            };
            if context < needed {
                return None;
            }
            return Some(match cast.method {
                b'f' => Pathway::Function(cast.function),
                b'i' => Pathway::ViaIo,
                _ => Pathway::Relabel,
            });
        }
        if target != oids::OIDVECTOR
            && target != oids::INT2VECTOR
            && let (Some(t), Some(s)) = (self.catalog.array_element(target), self.catalog.array_element(source))
            && self.coercion_pathway(t, s, context).is_some()
        {
            return Some(Pathway::Array);
        }
        if context >= CoercionContext::Assignment && self.category(target).0 == b'S' {
            return Some(Pathway::ViaIo);
        }
        if context >= CoercionContext::Explicit && self.category(source).0 == b'S' {
            return Some(Pathway::ViaIo);
        }
        None
    }

    /// Whether values of all `inputs` can be passed as `targets`.
    pub fn can_coerce(&self, inputs: &[Oid], targets: &[Oid], context: CoercionContext) -> bool {
        let mut generics = false;
        for (&input, &target) in inputs.iter().zip(targets) {
            if input == target || target == oids::ANY {
                continue;
            }
            if polymorphic::is_polymorphic(target) {
                generics = true;
                continue;
            }
            if input == oids::UNKNOWN || self.coercion_pathway(target, input, context).is_some() {
                continue;
            }
            if input == oids::RECORD && self.is_complex(target) || target == oids::RECORD && self.is_complex(input) {
                continue;
            }
            if target == oids::RECORD_ARRAY && self.catalog.array_element(input).is_some_and(|e| self.is_complex(e)) {
                continue;
            }
            if self.inherits_from(input, target) {
                continue;
            }
            return false;
        }
        !generics || polymorphic::check_generic_consistency(self, inputs, targets)
    }

    fn inherits_from(&self, input: Oid, target: Oid) -> bool {
        let (Some(child), Some(parent)) = (self.row_relation(input), self.row_relation(target)) else { return false };
        let mut pending = child.parents.clone();
        while let Some(next) = pending.pop() {
            if next == parent.oid {
                return true;
            }
            if let Some(r) = self.catalog.relation(next) {
                pending.extend(&r.parents);
            }
        }
        false
    }

    pub fn can_coerce_one(&self, input: Oid, target: Oid, context: CoercionContext) -> bool {
        self.can_coerce(&[input], &[target], context)
    }

    /// The function that applies a type modifier: `Some(Array)` for arrays of such a type.
    fn typmod_pathway(&self, ty: Oid) -> Option<Pathway> {
        let (ty, array) = match self.catalog.array_element(ty) {
            Some(element) => (element, true),
            None => (ty, false),
        };
        let cast = self.catalog.cast(ty, ty)?;
        if !cast.function.is_valid() {
            return None;
        }
        Some(if array { Pathway::Array } else { Pathway::Function(cast.function) })
    }

    /// The type that all of `types` are converted to (UNION, CASE, ...); `Err` names the two that do not match.
    pub fn common_type(&self, types: &[Oid]) -> Result<Oid, (Oid, Oid)> {
        let Some(&first) = types.first() else { return Ok(oids::TEXT) };
        if first != oids::UNKNOWN && types.iter().all(|t| *t == first) {
            return Ok(first);
        }
        let mut chosen = self.base_type(first);
        let (mut category, mut preferred) = self.category(chosen);
        for &next in &types[1..] {
            let next = self.base_type(next);
            if next == oids::UNKNOWN || next == chosen {
                continue;
            }
            let (next_category, next_preferred) = self.category(next);
            if chosen == oids::UNKNOWN {
                (chosen, category, preferred) = (next, next_category, next_preferred);
            } else if next_category != category {
                return Err((chosen, next));
            } else if !preferred
                && self.can_coerce_one(chosen, next, CoercionContext::Implicit)
                && !self.can_coerce_one(next, chosen, CoercionContext::Implicit)
            {
                (chosen, preferred) = (next, next_preferred);
            }
        }
        Ok(if chosen == oids::UNKNOWN { oids::TEXT } else { chosen })
    }
}

/// How a coercion is done and shown.
#[derive(Clone, Copy)]
pub struct How {
    pub context: CoercionContext,
    pub form: CoercionForm,
    pub location: i32,
}

impl How {
    pub fn implicit() -> How {
        How { context: CoercionContext::Implicit, form: CoercionForm::ImplicitCast, location: -1 }
    }

    pub fn assignment() -> How {
        How { context: CoercionContext::Assignment, form: CoercionForm::ImplicitCast, location: -1 }
    }
}

/// Converts `expr` to a type and modifier; none when there is no such cast.
pub fn to_target(analyzer: &mut Analyzer<'_, '_>, expr: Expr, target: Oid, typmod: i32, how: How) -> Result<Option<Expr>> {
    if !analyzer.cx().can_coerce_one(expr.ty(), target, how.context) {
        return Ok(None);
    }
    let (expr, collation) = match expr {
        Expr::Collate { arg, collation } => (*arg, Some(collation)),
        other => (other, None),
    };
    let (from, was) = (expr.ty(), expr.typmod());
    let result = to_type(analyzer, expr, target, typmod, how)?;
    let changed = from != target || result.typmod() != was;
    let hide = changed && !matches!(result, Expr::Const(_));
    let result = to_typmod(analyzer, result, target, typmod, how, hide)?;
    Ok(Some(match collation {
        Some(collation) if analyzer.cx().collation_of_type(target).is_valid() => {
            Expr::Collate { arg: Box::new(result), collation }
        }
        _ => result,
    }))
}

/// Converts `expr`, known to be convertible, to a type; the modifier is only used where the conversion needs it.
pub fn to_type(analyzer: &mut Analyzer<'_, '_>, expr: Expr, target: Oid, typmod: i32, how: How) -> Result<Expr> {
    let from = expr.ty();
    if from == target {
        return Ok(expr);
    }
    match target {
        oids::ANY | oids::ANYELEMENT | oids::ANYNONARRAY | oids::ANYCOMPATIBLE | oids::ANYCOMPATIBLENONARRAY => {
            return Ok(expr);
        }
        _ if polymorphic::is_polymorphic(target) && from != oids::UNKNOWN => {
            let base = analyzer.cx().base_type(from);
            return Ok(if base == from { expr } else { relabel(expr, base, -1, CoercionForm::ImplicitCast) });
        }
        _ => {}
    }
    let expr = match expr {
        Expr::Const(c) if from == oids::UNKNOWN => return coerce_literal(analyzer, c, target, typmod, how),
        Expr::Param(p) if from == oids::UNKNOWN && p.kind == ParamKind::External => {
            // A constant's input would be read by the modifier.
            if typmod >= 0 && analyzer.cx().base_type(target) == oids::INTERVAL {
                analyzer.literals().refuse();
            }
            return coerce_param(analyzer, p, target, how);
        }
        Expr::Collate { arg, collation } => {
            let inner = to_type(analyzer, *arg, target, typmod, how)?;
            if !analyzer.cx().collation_of_type(target).is_valid() {
                return Ok(inner);
            }
            return Ok(Expr::Collate { arg: Box::new(inner), collation });
        }
        other => other,
    };
    match analyzer.cx().coercion_pathway(target, from, how.context) {
        Some(Pathway::Relabel) => {
            let base = analyzer.cx().base_type(target);
            if base != target {
                return coerce_to_domain(analyzer, expr, target, how, false);
            }
            return Ok(relabel(expr, target, -1, how.form));
        }
        Some(path) => {
            let (base, base_typmod) = analyzer.cx().catalog.base_type_and_typmod(target, typmod);
            let result = coerce_by(analyzer, expr, path, base, base_typmod, how)?;
            if base != target {
                return coerce_to_domain(analyzer, result, target, how, true);
            }
            return Ok(result);
        }
        None => {}
    }
    if from == oids::RECORD && analyzer.cx().is_complex(target) {
        return coerce_record(analyzer, expr, target, how);
    }
    if target == oids::RECORD && analyzer.cx().is_complex(from) || target == oids::RECORD_ARRAY {
        return Ok(expr);
    }
    if analyzer.cx().inherits_from(from, target) {
        return Ok(Expr::ConvertRowtype { arg: Box::new(expr), ty: target, form: how.form });
    }
    let (from, to) = (analyzer.cx().type_name(from), analyzer.cx().type_name(target));
    Err(DbError::internal(format!("failed to find conversion function from {from} to {to}")))
}

fn coerce_literal(analyzer: &mut Analyzer<'_, '_>, c: Const, target: Oid, typmod: i32, how: How) -> Result<Expr> {
    let (base, base_typmod) = analyzer.cx().catalog.base_type_and_typmod(target, typmod);
    let input_typmod = if base == oids::INTERVAL { base_typmod } else { -1 };
    let value = match &c.value {
        Datum::Text(text) => analyzer.cx().input(base, input_typmod, text).map_err(|e| e.at(c.location))?,
        _ => Datum::Null,
    };
    let location = c.location;
    let literal =
        Expr::Const(Const { value, ty: base, typmod: input_typmod, collation: analyzer.cx().collation_of_type(base), location });
    if base == target {
        return Ok(literal);
    }
    coerce_to_domain(analyzer, literal, target, how, false)
}

fn coerce_param(analyzer: &mut Analyzer<'_, '_>, mut p: Param, target: Oid, _how: How) -> Result<Expr> {
    let cx = analyzer.cx();
    if !analyzer.params().infers() {
        // The value of a routine's variable: only its text is known.
        let collation = cx.collation_of_type(target);
        return Ok(Expr::CoerceViaIo { arg: Box::new(Expr::Param(p)), ty: target, collation, form: CoercionForm::ImplicitCast });
    }
    analyzer.params().resolve(cx, p.number, target, p.location)?;
    p.ty = target;
    p.typmod = -1;
    p.collation = analyzer.cx().collation_of_type(target);
    Ok(Expr::Param(p))
}

/// Applies a domain over its base type (to which `expr` must have been brought).
fn coerce_to_domain(analyzer: &mut Analyzer<'_, '_>, expr: Expr, domain: Oid, how: How, hide: bool) -> Result<Expr> {
    let (base, base_typmod) = analyzer.cx().catalog.base_type_and_typmod(domain, -1);
    let mut expr = expr;
    if hide {
        hide_coercion(&mut expr);
    }
    let inner = How { form: CoercionForm::ImplicitCast, ..how };
    let arg = to_typmod(analyzer, expr, base, base_typmod, inner, false)?;
    let collation = analyzer.cx().collation_of_type(domain);
    Ok(Expr::CoerceToDomain { arg: Box::new(arg), ty: domain, typmod: -1, collation, form: how.form })
}

/// Makes the value conform to a type modifier.
pub fn to_typmod(analyzer: &mut Analyzer<'_, '_>, expr: Expr, target: Oid, typmod: i32, how: How, hide: bool) -> Result<Expr> {
    if expr.typmod() == typmod {
        return Ok(expr);
    }
    let mut expr = expr;
    if hide {
        hide_coercion(&mut expr);
    }
    let path = if typmod < 0 { None } else { analyzer.cx().typmod_pathway(target) };
    match path {
        Some(path) => coerce_by(analyzer, expr, path, target, typmod, how),
        None => Ok(apply_relabel(expr, target, typmod, how.form)),
    }
}

fn coerce_by(analyzer: &mut Analyzer<'_, '_>, expr: Expr, path: Pathway, target: Oid, typmod: i32, how: How) -> Result<Expr> {
    match path {
        Pathway::Relabel => Ok(relabel(expr, target, typmod, how.form)),
        Pathway::Function(function) => {
            let arity = analyzer.cx().function(function)?.arg_types.len();
            let mut args = Vec::with_capacity(arity);
            args.push(expr);
            if arity >= 2 {
                args.push(int4(typmod));
            }
            if arity >= 3 {
                args.push(boolean(how.context == CoercionContext::Explicit));
            }
            Ok(Expr::Function(Box::new(FunctionCall {
                function,
                args,
                defaulted: 0,
                ty: target,
                collation: analyzer.cx().collation_of_type(target),
                input_collation: Oid::INVALID,
                returns_set: false,
                variadic: false,
                form: how.form,
                typmod: if arity >= 2 { typmod } else { -1 },
                location: how.location,
            })))
        }
        Pathway::ViaIo => Ok(Expr::CoerceViaIo {
            arg: Box::new(expr),
            ty: target,
            collation: analyzer.cx().collation_of_type(target),
            form: how.form,
        }),
        Pathway::Array => coerce_array(analyzer, expr, target, typmod, how),
    }
}

fn coerce_array(analyzer: &mut Analyzer<'_, '_>, expr: Expr, target: Oid, typmod: i32, how: How) -> Result<Expr> {
    let failed = || DbError::internal("failed to coerce array element type as expected");
    let (source, source_typmod) = analyzer.cx().catalog.base_type_and_typmod(expr.ty(), expr.typmod());
    let from = analyzer.cx().catalog.array_element(source).ok_or_else(failed)?;
    let to = analyzer.cx().catalog.array_element(target).ok_or_else(failed)?;
    let test = Expr::CaseTest { ty: from, typmod: source_typmod, collation: analyzer.cx().collation_of_type(from) };
    let element = to_target(analyzer, test, to, typmod, how)?.ok_or_else(failed)?;
    Ok(Expr::ArrayCoerce {
        arg: Box::new(expr),
        typmod: element.typmod(),
        element: Box::new(element),
        ty: target,
        collation: analyzer.cx().collation_of_type(target),
        form: how.form,
    })
}

/// ROW(...) or a record-typed whole row to a named composite type, field by field.
fn coerce_record(analyzer: &mut Analyzer<'_, '_>, expr: Expr, target: Oid, how: How) -> Result<Expr> {
    let cannot = |a: &Analyzer<'_, '_>, location: i32| {
        let to = a.cx().type_name(target);
        err!(CANNOT_COERCE, "cannot cast type record to {to}").at(if location < 0 { how.location } else { location })
    };
    let row = match expr {
        Expr::Row(row) => row,
        Expr::Var(v) if v.column == 0 => field::expand_whole_row(analyzer, &v)?,
        other => return Err(cannot(analyzer, other.location())),
    };
    let relation = analyzer.cx().row_relation(target).ok_or_else(|| cannot(analyzer, -1))?;
    let columns = relation.columns.clone();
    let mut fields = Vec::with_capacity(columns.len());
    let mut names = Vec::with_capacity(columns.len());
    let mut given = row.fields.into_iter();
    let mut place = 0;
    // Values have no places for dropped columns.
    for column in columns.iter().filter(|c| !c.dropped) {
        names.push(column.name.clone());
        let Some(field) = given.next() else {
            return Err(cannot(analyzer, -1).detail("Input has too few columns."));
        };
        place += 1;
        let (from, location) = (field.ty(), field.location());
        match to_target(analyzer, field, column.ty, column.typmod, How { form: CoercionForm::ImplicitCast, ..how })? {
            Some(e) => fields.push(e),
            None => {
                let (from, to) = (analyzer.cx().type_name(from), analyzer.cx().type_name(column.ty));
                return Err(cannot(analyzer, location).detail(format!("Cannot cast type {from} to {to} in column {place}.")));
            }
        }
    }
    if given.next().is_some() {
        return Err(cannot(analyzer, -1).detail("Input has too many columns."));
    }
    let base = analyzer.cx().base_type(target);
    let result = Expr::Row(Box::new(RowExpr { fields, names, ty: base, explicit: row.explicit, location: row.location }));
    if base == target { Ok(result) } else { coerce_to_domain(analyzer, result, target, how, false) }
}

/// A condition: 42804 unless it is boolean.
pub fn to_boolean(analyzer: &mut Analyzer<'_, '_>, expr: Expr, construct: &str) -> Result<Expr> {
    to_specific(analyzer, expr, oids::BOOL, construct)
}

pub fn to_specific(analyzer: &mut Analyzer<'_, '_>, expr: Expr, target: Oid, construct: &str) -> Result<Expr> {
    let (from, location) = (expr.ty(), expr.location());
    let expr = if from == target {
        expr
    } else {
        match to_target(analyzer, expr, target, -1, How::assignment())? {
            Some(e) => e,
            None => {
                let (to, from) = (analyzer.cx().type_name(target), analyzer.cx().type_name(from));
                return Err(err!(DATATYPE_MISMATCH, "argument of {construct} must be type {to}, not type {from}").at(location));
            }
        }
    };
    if returns_set(&expr) {
        return Err(err!(DATATYPE_MISMATCH, "argument of {construct} must not return a set").at(location));
    }
    Ok(expr)
}

/// The common type of expressions; 42804 naming `construct` when there is none.
pub fn select_common_type(cx: &Context<'_>, exprs: &[&Expr], construct: &str) -> Result<Oid> {
    let types: Vec<Oid> = exprs.iter().map(|e| e.ty()).collect();
    cx.common_type(&types).map_err(|(a, b)| {
        let offender = exprs.iter().find(|e| cx.base_type(e.ty()) == b);
        let (a, b) = (cx.type_name(a), cx.type_name(b));
        err!(DATATYPE_MISMATCH, "{construct} types {a} and {b} cannot be matched").at(offender.map_or(-1, |e| e.location()))
    })
}

/// Converts to the type that `select_common_type` chose.
pub fn to_common(analyzer: &mut Analyzer<'_, '_>, expr: Expr, target: Oid, construct: &str) -> Result<Expr> {
    let from = expr.ty();
    if from == target {
        return Ok(expr);
    }
    if !analyzer.cx().can_coerce_one(from, target, CoercionContext::Implicit) {
        let (from, to) = (analyzer.cx().type_name(from), analyzer.cx().type_name(target));
        return Err(err!(CANNOT_COERCE, "{construct} could not convert type {from} to {to}").at(expr.location()));
    }
    to_type(analyzer, expr, target, -1, How::implicit())
}

/// The modifier all of `exprs` share, when they all have the chosen type.
pub fn common_typmod(exprs: &[Expr], ty: Oid) -> i32 {
    let Some(first) = exprs.first() else { return -1 };
    let typmod = first.typmod();
    if exprs.iter().all(|e| e.ty() == ty && e.typmod() == typmod) { typmod } else { -1 }
}

/// A binary-compatible cast.
pub fn relabel(expr: Expr, ty: Oid, typmod: i32, form: CoercionForm) -> Expr {
    Expr::Relabel { arg: Box::new(expr), ty, typmod, collation: Oid::INVALID, form }
}

/// Gives the expression another type modifier: constants are renamed, stacked relabels collapse.
fn apply_relabel(expr: Expr, ty: Oid, typmod: i32, form: CoercionForm) -> Expr {
    let collation = expr.collation();
    let mut expr = expr;
    while let Expr::Relabel { arg, .. } = expr {
        expr = *arg;
    }
    if let Expr::Const(mut c) = expr {
        (c.ty, c.typmod) = (ty, typmod);
        return Expr::Const(c);
    }
    if expr.ty() == ty && expr.typmod() == typmod {
        return expr;
    }
    Expr::Relabel { arg: Box::new(expr), ty, typmod, collation, form }
}

/// Marks an inner coercion as implicit, when an outer one shows the same cast.
fn hide_coercion(expr: &mut Expr) {
    match expr {
        Expr::Function(f) => f.form = CoercionForm::ImplicitCast,
        Expr::Relabel { form, .. }
        | Expr::CoerceViaIo { form, .. }
        | Expr::ArrayCoerce { form, .. }
        | Expr::ConvertRowtype { form, .. }
        | Expr::CoerceToDomain { form, .. } => *form = CoercionForm::ImplicitCast,
        _ => {}
    }
}

pub fn int4(value: i32) -> Expr {
    Expr::Const(Const { value: Datum::Int4(value), ty: oids::INT4, typmod: -1, collation: Oid::INVALID, location: -1 })
}

pub fn boolean(value: bool) -> Expr {
    Expr::Const(Const { value: Datum::Bool(value), ty: oids::BOOL, typmod: -1, collation: Oid::INVALID, location: -1 })
}

/// Whether evaluating the expression can return several rows.
pub fn returns_set(expr: &Expr) -> bool {
    expr.any(&mut |e| match e {
        Expr::Function(f) => f.returns_set,
        Expr::Operator(o) => o.returns_set,
        _ => false,
    })
}

/// Whether a type is a domain.
pub fn is_domain(cx: &Context<'_>, ty: Oid) -> bool {
    cx.catalog.type_(ty).is_some_and(|t| t.type_kind == TypeKind::Domain)
}

/// A literal of unknown type becomes text.
pub fn resolve_unknown(analyzer: &mut Analyzer<'_, '_>, e: Expr) -> Result<Expr> {
    if e.ty() != oids::UNKNOWN {
        return Ok(e);
    }
    let location = e.location();
    let how = super::coerce::How { location, ..super::coerce::How::implicit() };
    to_type(analyzer, e, oids::TEXT, -1, how)
}

/// The expression under implicit casts at its top.
pub fn strip_implicit(e: &Expr) -> &Expr {
    match e {
        Expr::Function(f) if f.form == CoercionForm::ImplicitCast => f.args.first().map_or(e, strip_implicit),
        Expr::Relabel { arg, form, .. }
        | Expr::CoerceViaIo { arg, form, .. }
        | Expr::ArrayCoerce { arg, form, .. }
        | Expr::ConvertRowtype { arg, form, .. }
        | Expr::CoerceToDomain { arg, form, .. }
            if *form == CoercionForm::ImplicitCast =>
        {
            strip_implicit(arg)
        }
        _ => e,
    }
}
