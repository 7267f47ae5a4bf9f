//! Function calls: plain, aggregate, window, casts and fields written as calls.

use melba_catalog::{FunctionKind, classes};
use melba_types::{DbError, Oid, Result, err, oids};
use pg_query::{NodeEnum, protobuf as pb};

use super::analyzer::Analyzer;
use super::call_syntax::CallSyntax;
use super::coerce::{CoercionContext, How};
use super::context::Context;
use super::functions::{FunctionCandidate, Resolved, WantedFunction, call_error};
use super::scope::ExprKind;
use super::{aggregate, coerce, field, nodes, operators, polymorphic, row, window};
use melba_tree::*;

const ARGUMENTS_MAX: usize = 100;

pub fn function_call<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::FuncCall) -> Result<Expr> {
    if row::is_named_row(analyzer.cx(), n) {
        return row::named_row(analyzer, n);
    }
    routine_call(analyzer, n, false)
}

/// A call as a function, or as a procedure by CALL.
pub fn routine_call<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::FuncCall, procedure: bool) -> Result<Expr> {
    let mut args = Vec::with_capacity(n.args.len());
    let mut names: Vec<&'p str> = Vec::new();
    let srf_before = analyzer.level().last_srf;
    for arg in &n.args {
        match &arg.node {
            Some(NodeEnum::NamedArgExpr(named)) => {
                if names.contains(&named.name.as_str()) {
                    let name = &named.name;
                    return Err(err!(SYNTAX_ERROR, "argument name \"{name}\" used more than once").at(named.location));
                }
                names.push(&named.name);
                args.push(analyzer.boxed(&named.arg)?);
            }
            _ if !names.is_empty() => {
                return Err(err!(SYNTAX_ERROR, "positional argument cannot follow named argument").at(nodes::location(arg)));
            }
            _ => args.push(analyzer.expr(arg)?),
        }
    }
    if n.agg_within_group {
        for order in &n.agg_order {
            let Some(NodeEnum::SortBy(sort)) = &order.node else { continue };
            let node = sort.node.as_deref().ok_or_else(|| DbError::internal("ORDER BY without an expression"))?;
            args.push(analyzer.expression(node, ExprKind::OrderBy)?);
        }
    }
    let filter = match &n.agg_filter {
        Some(node) => {
            let e = analyzer.expression(node, ExprKind::Filter)?;
            Some(coerce::to_boolean(analyzer, e, "FILTER")?)
        }
        None => None,
    };
    call(analyzer, &CallSyntax { node: n, filter }, args, &names, srf_before, procedure)
}

fn split_name<'n>(cx: &Context<'_>, names: &'n [pb::Node], location: i32) -> Result<(Option<&'n str>, &'n str)> {
    let strings = nodes::strings(names);
    match strings[..] {
        [name] => Ok((None, name)),
        [schema, name] => Ok((Some(schema), name)),
        [database, schema, name] => {
            cx.check_database(database, &strings).map_err(|e| e.at(location))?;
            Ok((Some(schema), name))
        }
        _ => {
            let shown = strings.join(".");
            Err(err!(SYNTAX_ERROR, "improper qualified name (too many dotted names): {shown}").at(location))
        }
    }
}

/// Resolves and builds a call (PostgreSQL's ParseFuncOrColumn). `procedure`: called by CALL.
pub fn call<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    syntax: &CallSyntax<'p>,
    args: Vec<Expr>,
    names: &[&'p str],
    srf_before: i32,
    procedure: bool,
) -> Result<Expr> {
    let n = syntax.node;
    let location = n.location;
    if args.len() > ARGUMENTS_MAX {
        return Err(err!(TOO_MANY_ARGUMENTS, "cannot pass more than {ARGUMENTS_MAX} arguments to a function").at(location));
    }
    let (schema, name) = split_name(analyzer.cx(), &n.funcname, location)?;
    let mut args = args;
    if !n.agg_within_group {
        // A void parameter is an OUT placeholder.
        args.retain(|a| !(a.ty() == oids::VOID && matches!(a, Expr::Param(_))));
    }
    let types: Vec<Oid> = args.iter().map(Expr::ty).collect();
    let projection = args.len() == 1
        && schema.is_none()
        && names.is_empty()
        && !n.func_variadic
        && !procedure
        && !syntax.decorated()
        && n.funcformat == pb::CoercionForm::CoerceExplicitCall as i32
        && (types[0] == oids::RECORD || analyzer.cx().is_complex(types[0]));
    let wanted = WantedFunction {
        schema,
        name,
        args: &types,
        arg_names: names,
        expand_variadic: !n.func_variadic,
        expand_defaults: true,
        include_out: procedure,
    };
    let resolved = analyzer.cx().resolve_function(&wanted, args.first()).map_err(|e| e.at(location))?;
    let shown = nodes::dotted(&n.funcname);
    match resolved {
        Resolved::Function(candidate) => build_call(analyzer, syntax, candidate, args, &types, names, srf_before, procedure),
        Resolved::Coercion(target) => {
            if let Some(text) = decoration_error(syntax) {
                return Err(err!(WRONG_OBJECT_TYPE, "{}", text.replace("%s", &shown)).at(location));
            }
            let how = How { context: CoercionContext::Explicit, form: CoercionForm::Call, location };
            let arg = args.into_iter().next().ok_or_else(|| DbError::internal("cast without an argument"))?;
            coerce::to_type(analyzer, arg, target, -1, how)
        }
        Resolved::Multiple => {
            let signature = analyzer.cx().function_signature(&shown, &types, names);
            Err(call_error(&signature, procedure, true, location))
        }
        Resolved::NotFound => {
            if projection && let Some(e) = field::project_field(analyzer, &args[0], name)? {
                return Ok(e);
            }
            let signature = analyzer.cx().function_signature(&shown, &types, names);
            if n.agg_order.len() > 1 && !n.agg_within_group {
                return Err(err!(UNDEFINED_FUNCTION, "function {signature} does not exist")
                    .hint(
                        "No aggregate function matches the given name and argument types. Perhaps you misplaced \
                             ORDER BY; ORDER BY must appear after all regular arguments of the aggregate.",
                    )
                    .at(location));
            }
            Err(call_error(&signature, procedure, false, location))
        }
    }
}

/// The syntax that is not allowed in a call of a function that is no aggregate.
fn decoration_error<'p>(syntax: &CallSyntax<'p>) -> Option<&'static str> {
    let n = syntax.node;
    if n.agg_star {
        Some("%s(*) specified, but %s is not an aggregate function")
    } else if n.agg_distinct {
        Some("DISTINCT specified, but %s is not an aggregate function")
    } else if n.agg_within_group {
        Some("WITHIN GROUP specified, but %s is not an aggregate function")
    } else if !n.agg_order.is_empty() {
        Some("ORDER BY specified, but %s is not an aggregate function")
    } else if syntax.filter.is_some() {
        Some("FILTER specified, but %s is not an aggregate function")
    } else if n.over.is_some() {
        Some("OVER specified, but %s is not a window function nor an aggregate function")
    } else {
        None
    }
}

/// Values of a shell have no form yet.
fn refuse_shell(cx: &Context<'_>, ty: Oid) -> Result<()> {
    match ty >= Oid(classes::FIRST_USER_OID) && cx.catalog.type_(ty).is_some_and(|t| !t.defined) {
        true => Err(err!(UNDEFINED_OBJECT, "type {} is only a shell", cx.type_name(ty))),
        false => Ok(()),
    }
}

#[allow(clippy::too_many_arguments)]
fn build_call<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    syntax: &CallSyntax<'p>,
    candidate: FunctionCandidate<'_>,
    args: Vec<Expr>,
    types: &[Oid],
    names: &[&str],
    srf_before: i32,
    procedure: bool,
) -> Result<Expr> {
    let n = syntax.node;
    let function = candidate.function;
    let shown = nodes::dotted(&n.funcname);
    check_call_kind(analyzer.cx(), syntax, &candidate, (types, names), &shown, procedure)?;
    let mut types = types.to_vec();
    let mut declared = candidate.args.clone();
    let mut args = args;
    let written = args.len();
    let mut defaulted = 0;
    if candidate.defaults > 0 || candidate.order.is_some() {
        (args, declared) = arrange_arguments(analyzer.cx(), &candidate, args, procedure)?;
        types = args.iter().map(Expr::ty).collect();
        let last = candidate.order.as_ref().map_or(written, |o| o[..written].iter().map(|at| at + 1).max().unwrap_or(0));
        defaulted = args.len() - last;
    }
    let aggregate = function.aggregate.as_ref();
    if aggregate.is_some_and(|a| a.kind == b'h') {
        let direct = args.len() - n.agg_order.len();
        unify_hypothetical(analyzer, &mut args, &mut types, &mut declared, direct)?;
    }
    let ty = polymorphic::enforce_generic_consistency(analyzer.cx(), &types, &mut declared, function.return_type)?;
    refuse_shell(analyzer.cx(), ty)?;
    let mut args = operators::coerce_arguments(analyzer, args, &declared)?;
    let variadic = pass_variadic(analyzer.cx(), n, &candidate, &mut args)?;
    if function.returns_set {
        note_set_returning(analyzer, n, srf_before)?;
    }
    let call = FunctionCall {
        function: function.oid,
        args,
        defaulted,
        ty,
        collation: Oid::INVALID,
        input_collation: Oid::INVALID,
        returns_set: function.returns_set,
        variadic,
        form: if n.funcformat == pb::CoercionForm::CoerceSqlSyntax as i32 { CoercionForm::SqlSyntax } else { CoercionForm::Call },
        typmod: -1,
        location: n.location,
    };
    match function.kind {
        FunctionKind::Aggregate if n.over.is_none() => {
            let filter = syntax.filter.clone();
            aggregate::aggregate_call(analyzer, syntax, function, call, filter, &shown, names)
        }
        FunctionKind::Aggregate | FunctionKind::Window => {
            window::window_call(analyzer, syntax, function, call, &shown, srf_before)
        }
        _ => Ok(Expr::Function(Box::new(call))),
    }
}

/// Collects the arguments of VARIADIC's array; whether the last argument is such an array.
fn pass_variadic(cx: &Context<'_>, n: &pb::FuncCall, candidate: &FunctionCandidate<'_>, args: &mut Vec<Expr>) -> Result<bool> {
    let of_any = candidate.function.variadic == oids::ANY;
    if n.func_variadic && of_any {
        let last = args.last().map_or(oids::UNKNOWN, Expr::ty);
        if cx.catalog.array_element(last).is_none() {
            let location = args.last().map_or(-1, Expr::location);
            return Err(err!(DATATYPE_MISMATCH, "VARIADIC argument must be an array").at(location));
        }
    }
    if candidate.variadic == 0 || of_any {
        return Ok(n.func_variadic);
    }
    let elements = args.split_off(args.len() - candidate.variadic);
    args.push(variadic_array(cx, elements, n.location)?);
    Ok(true)
}

fn check_call_kind<'p>(
    cx: &Context<'_>,
    syntax: &CallSyntax<'p>,
    candidate: &FunctionCandidate<'_>,
    (types, names): (&[Oid], &[&str]),
    shown: &str,
    procedure: bool,
) -> Result<()> {
    let n = syntax.node;
    let location = n.location;
    let function = candidate.function;
    let signature = || cx.function_signature(shown, types, names);
    if procedure && function.kind != FunctionKind::Procedure {
        return Err(err!(WRONG_OBJECT_TYPE, "{} is not a procedure", signature())
            .hint("To call a function, use SELECT.")
            .at(location));
    }
    if !procedure && function.kind == FunctionKind::Procedure {
        return Err(err!(WRONG_OBJECT_TYPE, "{} is a procedure", signature())
            .hint("To call a procedure, use CALL.")
            .at(location));
    }
    match function.kind {
        FunctionKind::Function | FunctionKind::Procedure => {
            if let Some(text) = decoration_error(syntax) {
                return Err(err!(WRONG_OBJECT_TYPE, "{}", text.replace("%s", shown)).at(location));
            }
        }
        FunctionKind::Window => {
            if n.over.is_none() {
                return Err(err!(WRONG_OBJECT_TYPE, "window function {shown} requires an OVER clause").at(location));
            }
            if n.agg_within_group {
                return Err(err!(WRONG_OBJECT_TYPE, "window function {shown} cannot have WITHIN GROUP").at(location));
            }
        }
        FunctionKind::Aggregate => {
            let info = function.aggregate.as_ref();
            let kind = info.map_or(b'n', |a| a.kind);
            if kind == b'n' {
                if n.agg_within_group {
                    return Err(err!(
                        WRONG_OBJECT_TYPE,
                        "{shown} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"
                    )
                    .at(location));
                }
                return Ok(());
            }
            if !n.agg_within_group {
                return Err(err!(WRONG_OBJECT_TYPE, "WITHIN GROUP is required for ordered-set aggregate {shown}").at(location));
            }
            if n.over.is_some() {
                return Err(err!(FEATURE_NOT_SUPPORTED, "OVER is not supported for ordered-set aggregate {shown}").at(location));
            }
            if n.agg_distinct {
                return Err(err!(FEATURE_NOT_SUPPORTED, "DISTINCT is not supported for WITHIN GROUP").at(location));
            }
            let wanted = info.map_or(0, |a| a.direct_args) as usize;
            let given = types.len() - n.agg_order.len();
            let fits = if function.variadic.is_valid() {
                given >= wanted.saturating_sub(1) && (kind != b'h' || given == n.agg_order.len())
            } else {
                given == wanted
            };
            if !fits {
                let e = err!(UNDEFINED_FUNCTION, "function {} does not exist", signature()).at(location);
                let plural = if wanted == 1 { "" } else { "s" };
                return Err(if kind == b'h' {
                    let aggregated = n.agg_order.len();
                    e.hint(format!(
                        "To use the hypothetical-set aggregate {shown}, the number of hypothetical direct arguments \
                             (here {given}) must match the number of ordering columns (here {aggregated})."
                    ))
                } else {
                    e.hint(format!(
                        "There is an ordered-set aggregate {shown}, but it requires {wanted} direct argument{plural}, \
                             not {given}."
                    ))
                });
            }
        }
    }
    Ok(())
}

/// Puts named arguments in their places and adds defaults.
fn arrange_arguments(
    cx: &Context<'_>,
    candidate: &FunctionCandidate<'_>,
    args: Vec<Expr>,
    procedure: bool,
) -> Result<(Vec<Expr>, Vec<Oid>)> {
    let function = candidate.function;
    // No argument of a procedure without a default follows one with: the last ones have them also when all are counted.
    let declared = if procedure && !function.all_arg_types.is_empty() { &function.all_arg_types } else { &function.arg_types };
    let arity = declared.len();
    let first_default = arity - function.arg_defaults.len();
    let mut places: Vec<Option<Expr>> = vec![None; arity];
    for (i, arg) in args.into_iter().enumerate() {
        let place = candidate.order.as_ref().map_or(i, |o| o[i]);
        places[place] = Some(arg);
    }
    let mut out = Vec::with_capacity(arity);
    for (i, place) in places.into_iter().enumerate() {
        match place {
            Some(e) => out.push(e),
            None => {
                let text = i.checked_sub(first_default).and_then(|at| function.arg_defaults.get(at));
                let text = text.ok_or_else(|| DbError::internal("not enough default arguments"))?;
                out.push(super::expression::analyze_default_argument(cx, text, declared[i])?);
            }
        }
    }
    Ok((out, declared.clone()))
}

fn variadic_array(cx: &Context<'_>, elements: Vec<Expr>, location: i32) -> Result<Expr> {
    let element_type = elements.first().map_or(oids::UNKNOWN, Expr::ty);
    let ty = cx.catalog.array_of(element_type).ok_or_else(|| {
        let name = cx.type_name(element_type);
        err!(UNDEFINED_OBJECT, "could not find array type for data type {name}").at(location)
    })?;
    Ok(Expr::Array(Box::new(ArrayExpr {
        elements,
        element_type,
        ty,
        collation: Oid::INVALID,
        multidimensional: false,
        location,
    })))
}

fn unify_hypothetical(
    analyzer: &mut Analyzer<'_, '_>,
    args: &mut [Expr],
    types: &mut [Oid],
    declared: &mut [Oid],
    direct: usize,
) -> Result<()> {
    for i in 0..direct.min(args.len() - direct) {
        let (d, a) = (i, direct + i);
        if declared[d] != oids::ANY {
            continue;
        }
        let ty = coerce::select_common_type(analyzer.cx(), &[&args[a], &args[d]], "WITHIN GROUP")?;
        for place in [d, a] {
            let arg = std::mem::replace(&mut args[place], Expr::MergeAction);
            args[place] = coerce::to_type(analyzer, arg, ty, -1, How::implicit())?;
            types[place] = ty;
        }
    }
    Ok(())
}

fn note_set_returning(analyzer: &mut Analyzer<'_, '_>, n: &pb::FuncCall, srf_before: i32) -> Result<()> {
    operators::check_set_returning(analyzer, n.location)?;
    let level = analyzer.level_mut();
    if level.kind.0 == ExprKind::FromFunction && level.last_srf != srf_before {
        return Err(err!(FEATURE_NOT_SUPPORTED, "set-returning functions must appear at top level of FROM").at(level.last_srf));
    }
    level.last_srf = n.location;
    Ok(())
}

/// `arg.name` and `name(arg)` that may be a field or a function of a composite value.
pub fn functional_notation(analyzer: &mut Analyzer<'_, '_>, name: &str, arg: Expr, location: i32) -> Result<Option<Expr>> {
    let ty = arg.ty();
    if (ty == oids::RECORD || analyzer.cx().is_complex(ty))
        && let Some(e) = field::project_field(analyzer, &arg, name)?
    {
        return Ok(Some(e));
    }
    let types = [ty];
    let wanted = WantedFunction {
        schema: None,
        name,
        args: &types,
        arg_names: &[],
        expand_variadic: true,
        expand_defaults: false,
        include_out: false,
    };
    let Resolved::Function(candidate) = analyzer.cx().resolve_function(&wanted, None)? else { return Ok(None) };
    let function = candidate.function;
    if function.kind != FunctionKind::Function || candidate.variadic > 0 {
        return Ok(None);
    }
    let mut declared = candidate.args.clone();
    let result = polymorphic::enforce_generic_consistency(analyzer.cx(), &types, &mut declared, function.return_type)?;
    let args = operators::coerce_arguments(analyzer, vec![arg], &declared)?;
    if function.returns_set {
        operators::check_set_returning(analyzer, location)?;
        analyzer.level_mut().last_srf = location;
    }
    Ok(Some(Expr::Function(Box::new(FunctionCall {
        function: function.oid,
        args,
        defaulted: 0,
        ty: result,
        collation: Oid::INVALID,
        input_collation: Oid::INVALID,
        returns_set: function.returns_set,
        variadic: false,
        form: CoercionForm::Call,
        typmod: -1,
        location,
    }))))
}
