//! Expressions: one function per kind of parse node.

use melba_types::{Datum, DbError, Oid, Result, bail, err, oids};
use pg_query::{NodeEnum, protobuf as pb};

use super::analyzer::Analyzer;
use super::coerce::{CoercionContext, How, common_typmod};
use super::context::Context;
use super::operators::OperatorName;
use super::scope::{ExprKind, system_var};
use super::{aggregate, call, coerce, columns, json_expression, nodes, operators, routine_names, row, sublink, subscript};
use melba_tree::*;

pub fn expr_inner<'p>(analyzer: &mut Analyzer<'_, 'p>, node: &'p pb::Node) -> Result<Expr> {
    let Some(node) = &node.node else { return Err(DbError::internal("empty parse node")) };
    match node {
        NodeEnum::ColumnRef(n) => columns::column_reference(analyzer, n),
        NodeEnum::ParamRef(n) => {
            routine_names::variable_argument(analyzer, n).unwrap_or_else(|| parameter_reference(analyzer, n))
        }
        NodeEnum::AConst(n) => constant(analyzer, n),
        NodeEnum::AIndirection(n) => subscript::indirection(analyzer, n),
        NodeEnum::AArrayExpr(n) => array_expression(analyzer, n, None),
        NodeEnum::TypeCast(n) => type_cast(analyzer, n),
        NodeEnum::CollateClause(n) => collate_clause(analyzer, n),
        NodeEnum::AExpr(n) => operator_expression(analyzer, n),
        NodeEnum::BoolExpr(n) => boolean_expression(analyzer, n),
        NodeEnum::FuncCall(n) => call::function_call(analyzer, n),
        NodeEnum::SubLink(n) => sublink::sublink_expression(analyzer, n),
        NodeEnum::CaseExpr(n) => case(analyzer, n),
        NodeEnum::RowExpr(n) => row::row_expression(analyzer, n, false),
        NodeEnum::CoalesceExpr(n) => coalesce(analyzer, n),
        NodeEnum::MinMaxExpr(n) => min_max(analyzer, n),
        NodeEnum::SqlvalueFunction(n) => sql_value(analyzer.cx(), n),
        NodeEnum::NullTest(n) => {
            let arg = analyzer.boxed(&n.arg)?;
            let row = arg.ty() == oids::RECORD || analyzer.cx().is_complex(arg.ty());
            Ok(Expr::NullTest { arg: Box::new(arg), is_null: n.nulltesttype == pb::NullTestType::IsNull as i32, row })
        }
        NodeEnum::BooleanTest(n) => boolean_test(analyzer, n),
        NodeEnum::GroupingFunc(n) => aggregate::grouping_function(analyzer, n),
        NodeEnum::CurrentOfExpr(n) => {
            if analyzer.level().view_target.is_some() {
                bail!(FEATURE_NOT_SUPPORTED, "WHERE CURRENT OF on a view is not implemented");
            }
            let entry = analyzer.target_entry().unwrap_or(0);
            let variable =
                routine_names::variable_reference(analyzer, &[&n.cursor_name], -1)?.filter(|v| v.ty() == oids::REFCURSOR);
            let name = || Expr::text(&n.cursor_name);
            let cursor = variable.unwrap_or_else(name);
            Ok(Expr::CurrentOf { args: vec![cursor, system_var(entry, -1, oids::TID), system_var(entry, -6, oids::OID)] })
        }
        NodeEnum::SetToDefault(n) => Err(err!(SYNTAX_ERROR, "DEFAULT is not allowed in this context").at(n.location)),
        NodeEnum::MergeSupportFunc(n) => merge_support(analyzer, n),
        NodeEnum::NamedArgExpr(n) => analyzer.boxed(&n.arg),
        NodeEnum::MultiAssignRef(n) => sublink::multi_assign(analyzer, n),
        NodeEnum::JsonFuncExpr(_)
        | NodeEnum::JsonObjectConstructor(_)
        | NodeEnum::JsonArrayConstructor(_)
        | NodeEnum::JsonArrayQueryConstructor(_)
        | NodeEnum::JsonObjectAgg(_)
        | NodeEnum::JsonArrayAgg(_)
        | NodeEnum::JsonParseExpr(_)
        | NodeEnum::JsonScalarExpr(_)
        | NodeEnum::JsonSerializeExpr(_)
        | NodeEnum::JsonIsPredicate(_) => json_expression::json_expression(analyzer, node),
        NodeEnum::XmlExpr(_) | NodeEnum::XmlSerialize(_) => Err(DbError::unsupported("XML").at(nodes::location_of(node))),
        other => Err(DbError::internal(format!("unrecognized expression node: {other:?}"))),
    }
}

fn parameter_reference(analyzer: &mut Analyzer<'_, '_>, n: &pb::ParamRef) -> Result<Expr> {
    // A client (pgjdbc) calls an output argument void, and need not know whether it calls a function or a procedure.
    if analyzer.level().kind.0 == ExprKind::CallArgument {
        analyzer.params().infer_void(n.number);
    }
    analyzer.parameter(n.number, n.location)
}

fn constant(analyzer: &mut Analyzer<'_, '_>, n: &pb::AConst) -> Result<Expr> {
    use pb::a_const::Val;
    if let Some(number) = analyzer.literals().parameter(n) {
        return analyzer.parameter(number, n.location);
    }
    let literal =
        |value: Datum, ty: Oid| Ok(Expr::Const(Const { value, ty, typmod: -1, collation: Oid::INVALID, location: n.location }));
    if n.isnull {
        return literal(Datum::Null, oids::UNKNOWN);
    }
    match &n.val {
        None => literal(Datum::Null, oids::UNKNOWN),
        Some(Val::Ival(i)) => literal(Datum::Int4(i.ival), oids::INT4),
        Some(Val::Boolval(b)) => literal(Datum::Bool(b.boolval), oids::BOOL),
        Some(Val::Sval(s)) => literal(Datum::text(s.sval.as_str()), oids::UNKNOWN),
        Some(Val::Fval(f)) => {
            match int8_literal(&f.fval) {
                // The least int4, which the grammar parses as a minus sign and an int8.
                Some(least @ -0x8000_0000) => return literal(Datum::Int4(least as i32), oids::INT4),
                Some(integer) => return literal(Datum::Int8(integer), oids::INT8),
                None => {}
            }
            let value = analyzer.cx().input(oids::NUMERIC, -1, &f.fval).map_err(|e| e.at(n.location))?;
            literal(value, oids::NUMERIC)
        }
        Some(Val::Bsval(b)) => {
            let value = analyzer.cx().input(oids::BIT, -1, &b.bsval).map_err(|e| e.at(n.location))?;
            literal(value, oids::BIT)
        }
    }
}

fn type_cast<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::TypeCast) -> Result<Expr> {
    let name = n.type_name.as_ref().ok_or_else(|| DbError::internal("cast without a type"))?;
    let (target, typmod) = analyzer.cx().transform_type_name(name)?;
    let arg = match n.arg.as_deref().and_then(|a| a.node.as_ref()) {
        Some(NodeEnum::AArrayExpr(array)) => {
            let (base, base_typmod) = analyzer.cx().catalog.base_type_and_typmod(target, typmod);
            match analyzer.cx().catalog.array_element(base) {
                Some(element) => array_expression(analyzer, array, Some((base, element, base_typmod)))?,
                None => array_expression(analyzer, array, None)?,
            }
        }
        _ => analyzer.boxed(&n.arg)?,
    };
    let location = if n.location >= 0 { n.location } else { name.location };
    let from = arg.ty();
    let how = How { context: CoercionContext::Explicit, form: CoercionForm::ExplicitCast, location };
    match coerce::to_target(analyzer, arg, target, typmod, how)? {
        Some(e) => Ok(e),
        None => {
            let (from, to) = (analyzer.cx().type_name(from), analyzer.cx().type_name(target));
            Err(err!(CANNOT_COERCE, "cannot cast type {from} to {to}").at(location))
        }
    }
}

fn collate_clause<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::CollateClause) -> Result<Expr> {
    let arg = analyzer.boxed(&n.arg)?;
    let ty = arg.ty();
    if ty != oids::UNKNOWN && !analyzer.cx().collation_of_type(ty).is_valid() {
        let name = analyzer.cx().type_name(ty);
        return Err(err!(DATATYPE_MISMATCH, "collations are not supported by type {name}").at(n.location));
    }
    let collation = analyzer.cx().find_collation(&nodes::strings(&n.collname), n.location)?.oid;
    Ok(Expr::Collate { arg: Box::new(arg), collation })
}

fn boolean_expression<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::BoolExpr) -> Result<Expr> {
    let name = match n.boolop {
        x if x == pb::BoolExprType::AndExpr as i32 => "AND",
        x if x == pb::BoolExprType::OrExpr as i32 => "OR",
        _ => "NOT",
    };
    let mut args = Vec::with_capacity(n.args.len());
    for arg in &n.args {
        let e = analyzer.expr(arg)?;
        args.push(coerce::to_boolean(analyzer, e, name)?);
    }
    Ok(match name {
        "AND" => Expr::And(args),
        "OR" => Expr::Or(args),
        _ => Expr::Not(Box::new(args.pop().ok_or_else(|| DbError::internal("NOT without an argument"))?)),
    })
}

fn operator_expression<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::AExpr) -> Result<Expr> {
    use pb::AExprKind as K;
    let kind = K::try_from(n.kind).unwrap_or(K::Undefined);
    let name = OperatorName::from_nodes(&n.name);
    match kind {
        K::AexprOp | K::AexprLike | K::AexprIlike | K::AexprSimilar => {
            let right = n.rexpr.as_deref().ok_or_else(|| DbError::internal("operator without an operand"))?;
            match n.lexpr.as_deref() {
                Some(left) => compare(analyzer, name, left, right, &n.name, n.location),
                None => {
                    let right = analyzer.expr(right)?;
                    operators::make_operator(analyzer, name, None, right, n.location)
                }
            }
        }
        K::AexprOpAny | K::AexprOpAll => {
            let left = analyzer.boxed(&n.lexpr)?;
            let right = analyzer.boxed(&n.rexpr)?;
            operators::make_scalar_array(analyzer, name, kind == K::AexprOpAny, left, right, n.location)
        }
        K::AexprDistinct | K::AexprNotDistinct => distinct(analyzer, n, kind == K::AexprNotDistinct),
        K::AexprNullif => {
            let left = analyzer.boxed(&n.lexpr)?;
            let right = analyzer.boxed(&n.rexpr)?;
            let mut call = operators::make_distinct(analyzer, left, right, n.location)?;
            if call.ty != oids::BOOL {
                return Err(err!(DATATYPE_MISMATCH, "NULLIF requires = operator to yield boolean").at(n.location));
            }
            if call.returns_set {
                return Err(err!(DATATYPE_MISMATCH, "NULLIF must not return a set").at(n.location));
            }
            call.ty = call.args[0].ty();
            Ok(Expr::NullIf(Box::new(call)))
        }
        K::AexprIn => in_list(analyzer, n),
        K::AexprBetween | K::AexprNotBetween | K::AexprBetweenSym | K::AexprNotBetweenSym => between(analyzer, n, kind),
        K::Undefined => Err(DbError::internal("unrecognized operator kind")),
    }
}

/// `left op right`, rows and row subqueries included.
fn compare<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    name: OperatorName<'p>,
    left: &'p pb::Node,
    right: &'p pb::Node,
    names: &'p [pb::Node],
    location: i32,
) -> Result<Expr> {
    match (&left.node, &right.node) {
        (Some(NodeEnum::RowExpr(_)), Some(NodeEnum::SubLink(s))) if s.sub_link_type == pb::SubLinkType::ExprSublink as i32 => {
            sublink::row_comparison(analyzer, left, s, names, location)
        }
        (Some(NodeEnum::RowExpr(l)), Some(NodeEnum::RowExpr(r))) => {
            let left = fields(analyzer, &l.args)?;
            let right = fields(analyzer, &r.args)?;
            operators::make_row_comparison(analyzer, name, left, right, location)
        }
        _ => {
            let left = analyzer.expr(left)?;
            let right = analyzer.expr(right)?;
            operators::make_operator(analyzer, name, Some(left), right, location)
        }
    }
}

fn fields<'p>(analyzer: &mut Analyzer<'_, 'p>, args: &'p [pb::Node]) -> Result<Vec<Expr>> {
    analyzer.expression_list(args)
}

fn distinct<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::AExpr, negated: bool) -> Result<Expr> {
    let (Some(l), Some(r)) = (n.lexpr.as_deref(), n.rexpr.as_deref()) else {
        return Err(DbError::internal("IS DISTINCT FROM without an operand"));
    };
    // Against a bare NULL it is a null test.
    for (null, other) in [(r, l), (l, r)] {
        if matches!(&null.node, Some(NodeEnum::AConst(c)) if c.isnull) {
            let arg = analyzer.expr(other)?;
            return Ok(Expr::NullTest { arg: Box::new(arg), is_null: negated, row: false });
        }
    }
    let result = match (&l.node, &r.node) {
        (Some(NodeEnum::RowExpr(l)), Some(NodeEnum::RowExpr(r))) => {
            let left = fields(analyzer, &l.args)?;
            let right = fields(analyzer, &r.args)?;
            if left.len() != right.len() {
                return Err(err!(SYNTAX_ERROR, "unequal number of entries in row expressions").at(n.location));
            }
            let mut parts = Vec::with_capacity(left.len());
            for (l, r) in left.into_iter().zip(right) {
                parts.push(Expr::Distinct(Box::new(distinct_call(analyzer, l, r, n.location)?)));
            }
            match parts.len() {
                0 => super::coerce::boolean(false),
                1 => parts.remove(0),
                _ => Expr::Or(parts),
            }
        }
        _ => {
            let left = analyzer.expr(l)?;
            let right = analyzer.expr(r)?;
            Expr::Distinct(Box::new(distinct_call(analyzer, left, right, n.location)?))
        }
    };
    Ok(if negated { Expr::Not(Box::new(result)) } else { result })
}

fn distinct_call(analyzer: &mut Analyzer<'_, '_>, left: Expr, right: Expr, location: i32) -> Result<OperatorCall> {
    let call = operators::make_distinct(analyzer, left, right, location)?;
    if call.ty != oids::BOOL {
        return Err(err!(DATATYPE_MISMATCH, "IS DISTINCT FROM requires = operator to yield boolean").at(location));
    }
    if call.returns_set {
        return Err(err!(DATATYPE_MISMATCH, "IS DISTINCT FROM must not return a set").at(location));
    }
    Ok(call)
}

fn in_list<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::AExpr) -> Result<Expr> {
    let name = OperatorName::from_nodes(&n.name);
    let any = name.name == "=";
    let Some(left_node) = n.lexpr.as_deref() else { return Err(DbError::internal("IN without an operand")) };
    let items = n.rexpr.as_deref().map_or(&[][..], nodes::list);
    let left = analyzer.expr(left_node)?;
    let (mut with_vars, mut without) = (Vec::new(), Vec::new());
    for item in items {
        let e = analyzer.expr(item)?;
        if e.has_vars() { with_vars.push(e) } else { without.push(e) }
    }
    let mut parts = Vec::new();
    if without.len() > 1 {
        let mut all: Vec<&Expr> = vec![&left];
        all.extend(&without);
        let types: Vec<Oid> = all.iter().map(|e| e.ty()).collect();
        let is_row = all.iter().any(|e| matches!(e, Expr::Row(_)));
        let scalar = analyzer.cx().common_type(&types).ok().filter(|t| *t != oids::RECORD && !is_row);
        let fits = |a: &Analyzer<'_, 'p>, scalar: Oid| {
            types.iter().all(|t| a.cx().can_coerce_one(*t, scalar, CoercionContext::Implicit))
        };
        if let Some(scalar) = scalar
            && fits(analyzer, scalar)
            && let Some(array) = analyzer.cx().catalog.array_of(scalar)
        {
            let mut elements = Vec::with_capacity(without.len());
            for e in without.drain(..) {
                elements.push(coerce::to_common(analyzer, e, scalar, "IN")?);
            }
            let array = ArrayExpr {
                elements,
                element_type: scalar,
                ty: array,
                collation: Oid::INVALID,
                multidimensional: false,
                location: -1,
            };
            let array = Expr::Array(Box::new(array));
            parts.push(operators::make_scalar_array(analyzer, name, any, left.clone(), array, n.location)?);
        }
    }
    without.append(&mut with_vars);
    for right in without {
        let comparison = match (&left, right) {
            (Expr::Row(l), Expr::Row(r)) => {
                operators::make_row_comparison(analyzer, name, l.fields.clone(), r.fields, n.location)?
            }
            (_, right) => operators::make_operator(analyzer, name, Some(left.clone()), right, n.location)?,
        };
        parts.push(coerce::to_boolean(analyzer, comparison, "IN")?);
    }
    Ok(match parts.len() {
        1 => parts.remove(0),
        _ if any => Expr::Or(parts),
        _ => Expr::And(parts),
    })
}

fn between<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::AExpr, kind: pb::AExprKind) -> Result<Expr> {
    use pb::AExprKind as K;
    let (Some(value), Some(bounds)) = (n.lexpr.as_deref(), n.rexpr.as_deref()) else {
        return Err(DbError::internal("BETWEEN without an operand"));
    };
    let [low, high] = nodes::list(bounds) else { return Err(DbError::internal("BETWEEN without bounds")) };
    let negated = matches!(kind, K::AexprNotBetween | K::AexprNotBetweenSym);
    let (below, above) = if negated { ("<", ">") } else { (">=", "<=") };
    let range = |a: &mut Analyzer<'_, 'p>, low: &'p pb::Node, high: &'p pb::Node| -> Result<Expr> {
        let parts = vec![
            compare(a, OperatorName::plain(below), value, low, &[], n.location)?,
            compare(a, OperatorName::plain(above), value, high, &[], n.location)?,
        ];
        let name = if negated { "OR" } else { "AND" };
        let mut bools = Vec::with_capacity(2);
        for part in parts {
            bools.push(coerce::to_boolean(a, part, name)?);
        }
        Ok(if negated { Expr::Or(bools) } else { Expr::And(bools) })
    };
    match kind {
        K::AexprBetween | K::AexprNotBetween => range(analyzer, low, high),
        _ => {
            let (one, other) = (range(analyzer, low, high)?, range(analyzer, high, low)?);
            Ok(if negated { Expr::And(vec![one, other]) } else { Expr::Or(vec![one, other]) })
        }
    }
}

fn case<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::CaseExpr) -> Result<Expr> {
    let srf_before = analyzer.level().last_srf;
    let mut arg = match &n.arg {
        Some(node) => Some(analyzer.expr(node)?),
        None => None,
    };
    if let Some(e) = arg.take() {
        // An untyped literal under test is text.
        let e = if e.ty() == oids::UNKNOWN { coerce::to_common(analyzer, e, oids::TEXT, "CASE")? } else { e };
        let mut e = e;
        super::collate::assign(analyzer.cx(), &mut e)?;
        arg = Some(e);
    }
    let mut conditions = Vec::with_capacity(n.args.len());
    let mut results = Vec::with_capacity(n.args.len() + 1);
    for when in &n.args {
        let Some(NodeEnum::CaseWhen(when)) = &when.node else { continue };
        let mut condition = analyzer.boxed(&when.expr)?;
        if let Some(arg) = &arg {
            let test = Expr::CaseTest { ty: arg.ty(), typmod: arg.typmod(), collation: arg.collation() };
            condition = operators::make_operator(analyzer, OperatorName::plain("="), Some(test), condition, when.location)?;
        }
        conditions.push(coerce::to_boolean(analyzer, condition, "CASE/WHEN")?);
        results.push(analyzer.boxed(&when.result)?);
    }
    let default = match &n.defresult {
        Some(node) => analyzer.expr(node)?,
        None => Expr::null(oids::UNKNOWN, -1, Oid::INVALID),
    };
    let mut all: Vec<&Expr> = vec![&default];
    all.extend(&results);
    let ty = coerce::select_common_type(analyzer.cx(), &all, "CASE")?;
    let default = coerce::to_common(analyzer, default, ty, "CASE/ELSE")?;
    let mut coerced = Vec::with_capacity(results.len());
    for e in results {
        coerced.push(coerce::to_common(analyzer, e, ty, "CASE/WHEN")?);
    }
    refuse_inner_srf(analyzer, srf_before, "CASE")?;
    let mut all = vec![default];
    all.append(&mut coerced);
    let typmod = common_typmod(&all, ty);
    let mut all = all.into_iter();
    let default = all.next().unwrap_or_else(|| Expr::null(ty, -1, Oid::INVALID));
    let whens = conditions.into_iter().zip(all).collect();
    Ok(Expr::Case(Box::new(CaseExpr { arg, whens, default, ty, typmod, collation: Oid::INVALID, location: n.location })))
}

/// Set-returning functions are not allowed in conditionally evaluated constructs.
fn refuse_inner_srf(analyzer: &Analyzer<'_, '_>, before: i32, construct: &str) -> Result<()> {
    let last = analyzer.level().last_srf;
    if last != before {
        return Err(err!(FEATURE_NOT_SUPPORTED, "set-returning functions are not allowed in {construct}")
            .hint("You might be able to move the set-returning function into a LATERAL FROM item.")
            .at(last));
    }
    Ok(())
}

fn coalesce<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::CoalesceExpr) -> Result<Expr> {
    let before = analyzer.level().last_srf;
    let (args, ty) = common_args(analyzer, &n.args, "COALESCE")?;
    refuse_inner_srf(analyzer, before, "COALESCE")?;
    Ok(Expr::Coalesce { args, ty, collation: Oid::INVALID, location: n.location })
}

fn min_max<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::MinMaxExpr) -> Result<Expr> {
    let greatest = n.op == pb::MinMaxOp::IsGreatest as i32;
    let name = if greatest { "GREATEST" } else { "LEAST" };
    let (args, ty) = common_args(analyzer, &n.args, name)?;
    let operator = analyzer.cx().catalog.type_operators(ty).less;
    if !operator.is_valid() {
        let ty = analyzer.cx().type_name(ty);
        return Err(err!(UNDEFINED_FUNCTION, "could not identify a comparison function for type {ty}"));
    }
    Ok(Expr::MinMax { greatest, args, ty, operator, collation: Oid::INVALID })
}

fn common_args<'p>(analyzer: &mut Analyzer<'_, 'p>, args: &'p [pb::Node], construct: &str) -> Result<(Vec<Expr>, Oid)> {
    let mut exprs = Vec::with_capacity(args.len());
    for arg in args {
        exprs.push(analyzer.expr(arg)?);
    }
    let ty = coerce::select_common_type(analyzer.cx(), &exprs.iter().collect::<Vec<_>>(), construct)?;
    let mut coerced = Vec::with_capacity(exprs.len());
    for e in exprs {
        coerced.push(coerce::to_common(analyzer, e, ty, construct)?);
    }
    Ok((coerced, ty))
}

fn sql_value(cx: &Context<'_>, n: &pb::SqlValueFunction) -> Result<Expr> {
    use pb::SqlValueFunctionOp as Op;
    let op = Op::try_from(n.op).unwrap_or(Op::SqlvalueFunctionOpUndefined);
    let (function, ty) = match op {
        Op::SvfopCurrentDate => (SqlValueFunction::CurrentDate, oids::DATE),
        Op::SvfopCurrentTime | Op::SvfopCurrentTimeN => (SqlValueFunction::CurrentTime, oids::TIMETZ),
        Op::SvfopCurrentTimestamp | Op::SvfopCurrentTimestampN => (SqlValueFunction::CurrentTimestamp, oids::TIMESTAMPTZ),
        Op::SvfopLocaltime | Op::SvfopLocaltimeN => (SqlValueFunction::LocalTime, oids::TIME),
        Op::SvfopLocaltimestamp | Op::SvfopLocaltimestampN => (SqlValueFunction::LocalTimestamp, oids::TIMESTAMP),
        Op::SvfopCurrentRole => (SqlValueFunction::CurrentRole, oids::NAME),
        Op::SvfopCurrentUser => (SqlValueFunction::CurrentUser, oids::NAME),
        Op::SvfopUser => (SqlValueFunction::User, oids::NAME),
        Op::SvfopSessionUser => (SqlValueFunction::SessionUser, oids::NAME),
        Op::SvfopCurrentCatalog => (SqlValueFunction::CurrentCatalog, oids::NAME),
        Op::SvfopCurrentSchema => (SqlValueFunction::CurrentSchema, oids::NAME),
        Op::SqlvalueFunctionOpUndefined => return Err(DbError::internal("unrecognized SQL value function")),
    };
    let precise =
        matches!(op, Op::SvfopCurrentTimeN | Op::SvfopCurrentTimestampN | Op::SvfopLocaltimeN | Op::SvfopLocaltimestampN);
    let typmod = if precise { n.typmod.min(6) } else { -1 };
    if precise && n.typmod > 6 {
        let name = if matches!(ty, oids::TIME | oids::TIMETZ) { "TIME" } else { "TIMESTAMP" };
        let zone = if matches!(ty, oids::TIMETZ | oids::TIMESTAMPTZ) { " WITH TIME ZONE" } else { "" };
        let warning = err!(INVALID_PARAMETER_VALUE, "{name}({}){zone} precision reduced to maximum allowed, 6", n.typmod);
        cx.session.notice(warning.severity(melba_types::Severity::Warning));
    }
    Ok(Expr::SqlValue { function, ty, typmod })
}

fn boolean_test<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::BooleanTest) -> Result<Expr> {
    use pb::BoolTestType as T;
    let (test, name) = match T::try_from(n.booltesttype).unwrap_or(T::Undefined) {
        T::IsTrue => (BooleanTest::True, "IS TRUE"),
        T::IsNotTrue => (BooleanTest::NotTrue, "IS NOT TRUE"),
        T::IsFalse => (BooleanTest::False, "IS FALSE"),
        T::IsNotFalse => (BooleanTest::NotFalse, "IS NOT FALSE"),
        T::IsUnknown => (BooleanTest::Unknown, "IS UNKNOWN"),
        T::IsNotUnknown => (BooleanTest::NotUnknown, "IS NOT UNKNOWN"),
        T::Undefined => return Err(DbError::internal("unrecognized boolean test")),
    };
    let arg = analyzer.boxed(&n.arg)?;
    let arg = coerce::to_boolean(analyzer, arg, name)?;
    Ok(Expr::BooleanTest { arg: Box::new(arg), test })
}

fn merge_support(analyzer: &mut Analyzer<'_, '_>, n: &pb::MergeSupportFunc) -> Result<Expr> {
    let inside = analyzer.levels().any(|l| l.kind.0 == ExprKind::MergeReturning);
    if !inside {
        return Err(err!(SYNTAX_ERROR, "MERGE_ACTION() can only be used in the RETURNING list of a MERGE command").at(n.location));
    }
    Ok(Expr::MergeAction)
}

/// ARRAY[...]; `target` is the (array, element, typmod) of a cast around it.
pub fn array_expression<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    n: &'p pb::AArrayExpr,
    target: Option<(Oid, Oid, i32)>,
) -> Result<Expr> {
    let mut elements = Vec::with_capacity(n.elements.len());
    let mut multidimensional = false;
    for node in &n.elements {
        let element = match &node.node {
            Some(NodeEnum::AArrayExpr(inner)) => {
                multidimensional = true;
                array_expression(analyzer, inner, target)?
            }
            _ => {
                let e = analyzer.expr(node)?;
                let ty = e.ty();
                let is_array =
                    ty != oids::INT2VECTOR && ty != oids::OIDVECTOR && analyzer.cx().catalog.array_element(ty).is_some();
                multidimensional |= is_array && !super::coerce::is_domain(analyzer.cx(), ty);
                e
            }
        };
        elements.push(element);
    }
    let (ty, element_type, coerce_to, hard) = match target {
        Some((array, element, _)) => (array, element, if multidimensional { array } else { element }, true),
        None => {
            if elements.is_empty() {
                return Err(err!(INDETERMINATE_DATATYPE, "cannot determine type of empty array")
                    .hint("Explicitly cast to the desired type, for example ARRAY[]::integer[].")
                    .at(n.location));
            }
            let common = coerce::select_common_type(analyzer.cx(), &elements.iter().collect::<Vec<_>>(), "ARRAY")?;
            if multidimensional {
                let element =
                    analyzer.cx().catalog.array_element(common).ok_or_else(|| no_element(analyzer.cx(), common, n.location))?;
                (analyzer.cx().base_type(common), element, common, false)
            } else {
                let array = analyzer.cx().catalog.array_of(common).ok_or_else(|| {
                    let name = analyzer.cx().type_name(common);
                    err!(UNDEFINED_OBJECT, "could not find array type for data type {name}").at(n.location)
                })?;
                (array, common, common, false)
            }
        }
    };
    let mut coerced = Vec::with_capacity(elements.len());
    for e in elements {
        coerced.push(match hard {
            true => cast_element(analyzer, e, coerce_to, target.map_or(-1, |t| t.2))?,
            false => coerce::to_common(analyzer, e, coerce_to, "ARRAY")?,
        });
    }
    Ok(Expr::Array(Box::new(ArrayExpr {
        elements: coerced,
        element_type,
        ty,
        collation: Oid::INVALID,
        multidimensional,
        location: n.location,
    })))
}

/// An element of an array under a cast.
fn cast_element(analyzer: &mut Analyzer<'_, '_>, e: Expr, ty: Oid, typmod: i32) -> Result<Expr> {
    let (from, location) = (e.ty(), e.location());
    let how = How { context: CoercionContext::Explicit, form: CoercionForm::ExplicitCast, location: -1 };
    coerce::to_target(analyzer, e, ty, typmod, how)?.ok_or_else(|| {
        let (from, to) = (analyzer.cx().type_name(from), analyzer.cx().type_name(ty));
        err!(CANNOT_COERCE, "cannot cast type {from} to {to}").at(location)
    })
}

fn no_element(cx: &Context<'_>, ty: Oid, location: i32) -> DbError {
    let name = cx.type_name(ty);
    err!(UNDEFINED_OBJECT, "could not find element type for data type {name}").at(location)
}

/// The value of a numeric literal that the grammar kept as text but that fits 64 bits.
fn int8_literal(text: &str) -> Option<i64> {
    let digits = text.replace('_', "");
    let radix = |prefix: &str, radix: u32| {
        let lower = digits.to_ascii_lowercase();
        lower.strip_prefix(prefix).and_then(|d| i64::from_str_radix(d, radix).ok())
    };
    digits.parse().ok().or_else(|| radix("0x", 16)).or_else(|| radix("0o", 8)).or_else(|| radix("0b", 2))
}
