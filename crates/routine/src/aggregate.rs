//! CREATE AGGREGATE.

use std::sync::Arc;

use melba_analyze::{exact_operator, is_polymorphic, support_function, undetermined_result};
use melba_catalog::default_privileges::initial_acl;
use melba_catalog::privileges::AclKind;
use melba_catalog::{AggregateInfo, Function, FunctionKind, MovingAggregate, Object, ObjectAddress, TypeKind, classes};
use melba_definition::context::Ddl;
use melba_parse::nodes::{inner, option_bool, option_int, option_text, options, strings};
use melba_types::{DbError, Oid, Result, SqlState, bail, err, oids};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{DefElem, DefineStmt, TypeName};

use super::create::{check_replacement, lock_routine_name};
use super::parameters::{Parameters, routine_parameters};
use super::plain::plain_function;

const UNUSED_SOURCE: &str = "aggregate_dummy";

/// The definition of one way to compute an aggregate: by whole frames, or by moving frames.
#[derive(Default)]
struct AggregateMode<'s> {
    transition: Option<Vec<&'s str>>,
    inverse: Option<Vec<&'s str>>,
    last: Option<Vec<&'s str>>,
    extra: bool,
    modify: Option<u8>,
    state: Option<TypeName>,
    space: i32,
    initial: Option<String>,
}

#[derive(Default)]
struct Clauses<'s> {
    plain: AggregateMode<'s>,
    moving: AggregateMode<'s>,
    combine: Option<Vec<&'s str>>,
    serial: Option<Vec<&'s str>>,
    deserial: Option<Vec<&'s str>>,
    sort_operator: Option<Vec<&'s str>>,
    base: Option<TypeName>,
    hypothetical: bool,
    parallel: u8,
}

/// The types of an aggregate's arguments.
#[derive(Clone, Copy)]
struct AggregateSignature<'a> {
    args: &'a [Oid],
    /// How many of them are direct arguments of an ordered-set aggregate.
    direct: Option<usize>,
}

/// A way with its functions found.
struct ResolvedAggregate {
    transition: Arc<Function>,
    last: Option<Arc<Function>>,
    result: Oid,
}

fn wrong(message: impl std::fmt::Display) -> DbError {
    err!(INVALID_FUNCTION_DEFINITION, "{message}")
}

pub fn create_aggregate(ddl: &Ddl<'_>, s: &DefineStmt) -> Result<()> {
    let names = strings(&s.defnames);
    let (schema, name) = ddl.qualified(&names)?;
    let namespace = ddl.namespace_for_creation(schema)?;
    let direct = direct_arguments(s)?;
    let clauses = aggregate_clauses(ddl, s)?;
    clauses.check(direct.is_some())?;
    let parameters = aggregate_parameters(ddl, s, &clauses)?;
    let args = &parameters.arg_types;
    let signature = AggregateSignature { args, direct };
    signature.check(&clauses, parameters.variadic)?;
    let state = state_type(ddl, clauses.plain.state.as_ref(), args)?;
    let plain = resolve_way(ddl, &clauses.plain, state, signature)?;
    let mut functions = vec![plain.transition.oid];
    functions.extend(plain.last.iter().map(|f| f.oid));
    let [combine, serial, deserial] = other_functions(ddl, &clauses, state, &mut functions)?;
    if let Some(detail) = undetermined_result(plain.result, args) {
        return Err(err!(DATATYPE_MISMATCH, "cannot determine result data type").detail(detail));
    }
    if plain.result == oids::INTERNAL && !args.contains(&oids::INTERNAL) {
        let detail = "A result of type internal requires at least one input of type internal.";
        return Err(wrong("unsafe use of pseudo-type \"internal\"").detail(detail));
    }
    let moving = moving_way(ddl, &clauses.moving, signature, plain.result, &mut functions)?;
    let sort_operator = sort_operator(ddl, &clauses, args)?;
    let info = AggregateInfo {
        kind: signature.kind(&clauses),
        direct_args: direct.unwrap_or(0) as i16,
        transition: plain.transition.oid,
        final_function: plain.last.map_or(Oid::INVALID, |f| f.oid),
        combine,
        transition_type: state,
        initial_value: clauses.plain.initial.as_deref().map(Arc::from),
        sort_operator,
        final_extra: clauses.plain.extra,
        final_modify: clauses.plain.modify.unwrap_or(signature.default_modify()),
        space: clauses.plain.space,
        serial,
        deserial,
        moving,
    };
    if let (Some(text), false) = (&info.initial_value, is_pseudo(ddl, state)) {
        // PostgreSQL checks that it is a value of the type, too.
        melba_fmgr::io::text_in(ddl.session(), state, -1, text)?;
    }
    let depends_on = uses(functions, &info);
    let mut function = Function {
        return_type: plain.result,
        parallel: clauses.parallel,
        aggregate: Some(Arc::new(info)),
        depends_on,
        ..bare(name, namespace, ddl.user())
    };
    parameters.describe(&mut function);
    put_aggregate(ddl, function, s.replace)
}

/// Those that combine states, write them and read them.
fn other_functions(ddl: &Ddl<'_>, clauses: &Clauses<'_>, state: Oid, functions: &mut Vec<Oid>) -> Result<[Oid; 3]> {
    if clauses.serial.is_some() != clauses.deserial.is_some() {
        return Err(wrong("must specify both or neither of serialization and deserialization functions"));
    }
    if clauses.serial.is_some() && state != oids::INTERNAL {
        let message = "serialization functions may be specified only when the aggregate transition data type is internal";
        return Err(wrong(message));
    }
    let mut named = |names: &Option<Vec<&str>>, args: &[Oid], returns: Oid, what: &str| match names {
        None => Ok(Oid::INVALID),
        Some(names) => {
            let function = returning(ddl, names, args, returns, what)?;
            if what == "combine" && state == oids::INTERNAL && function.strict {
                return Err(wrong("combine function with transition type internal must not be declared STRICT"));
            }
            functions.push(function.oid);
            Ok(function.oid)
        }
    };
    let combine = named(&clauses.combine, &[state, state], state, "combine")?;
    let serial = named(&clauses.serial, &[oids::INTERNAL], oids::BYTEA, "serialization")?;
    let deserial = named(&clauses.deserial, &[oids::BYTEA, oids::INTERNAL], oids::INTERNAL, "deserialization")?;
    Ok([combine, serial, deserial])
}

fn put_aggregate(ddl: &Ddl<'_>, mut function: Function, replace: bool) -> Result<()> {
    let (namespace, name) = (function.namespace, function.name.clone());
    lock_routine_name(ddl, namespace, &name)?;
    let catalog = ddl.catalog();
    match catalog.functions_by_name(namespace, &name).find(|f| f.arg_types == function.arg_types) {
        Some(old) => {
            check_replacement(ddl, replace, old, &function)?;
            if let (Some(old), Some(new)) = (&old.aggregate, &function.aggregate) {
                check_kind(&name, old, new)?;
            }
            (function.oid, function.owner, function.acl) = (old.oid, old.owner, old.acl.clone());
        }
        None => {
            function.oid = ddl.tx().new_oid();
            function.acl = initial_acl(&catalog, AclKind::Function, ddl.user(), namespace);
        }
    }
    ddl.tx().put(Object::Function(Arc::new(function)));
    Ok(())
}

/// # Errors
/// 42809 and 42P13 where calls would have another form.
fn check_kind(name: &str, old: &AggregateInfo, new: &AggregateInfo) -> Result<()> {
    if old.kind != new.kind {
        let kind = match old.kind {
            b'o' => "an ordered-set aggregate",
            b'h' => "a hypothetical-set aggregate",
            _ => "an ordinary aggregate function",
        };
        return Err(err!(WRONG_OBJECT_TYPE, "cannot change routine kind").detail(format!("\"{name}\" is {kind}.")));
    }
    if old.direct_args != new.direct_args {
        return Err(wrong("cannot change number of direct arguments of an aggregate function"));
    }
    Ok(())
}

fn aggregate_clauses<'s>(ddl: &Ddl<'_>, s: &'s DefineStmt) -> Result<Clauses<'s>> {
    let mut all = Clauses { parallel: b'u', ..Clauses::default() };
    for def in options(&s.definition) {
        match def.defname.as_str() {
            "sfunc" | "sfunc1" => all.plain.transition = option_name(def)?,
            "finalfunc" => all.plain.last = option_name(def)?,
            "combinefunc" => all.combine = option_name(def)?,
            "serialfunc" => all.serial = option_name(def)?,
            "deserialfunc" => all.deserial = option_name(def)?,
            "msfunc" => all.moving.transition = option_name(def)?,
            "minvfunc" => all.moving.inverse = option_name(def)?,
            "mfinalfunc" => all.moving.last = option_name(def)?,
            "finalfunc_extra" => all.plain.extra = option_bool(def)?,
            "mfinalfunc_extra" => all.moving.extra = option_bool(def)?,
            "finalfunc_modify" => all.plain.modify = Some(modify(def)?),
            "mfinalfunc_modify" => all.moving.modify = Some(modify(def)?),
            "sortop" => all.sort_operator = option_name(def)?,
            "basetype" => all.base = type_name(def)?,
            "stype" | "stype1" => all.plain.state = type_name(def)?,
            "mstype" => all.moving.state = type_name(def)?,
            "sspace" => all.plain.space = option_int(def)? as i32,
            "msspace" => all.moving.space = option_int(def)? as i32,
            "initcond" | "initcond1" => all.plain.initial = option_text(def),
            "minitcond" => all.moving.initial = option_text(def),
            "hypothetical" => all.hypothetical = option_bool(def)?,
            "parallel" => {
                all.parallel = match option_text(def).unwrap_or_default().to_lowercase().as_str() {
                    "safe" => b's',
                    "restricted" => b'r',
                    "unsafe" => b'u',
                    _ => bail!(SYNTAX_ERROR, "parameter \"parallel\" must be SAFE, RESTRICTED, or UNSAFE"),
                }
            }
            name => ddl.warning(SqlState::SYNTAX_ERROR, format!("aggregate attribute \"{name}\" not recognized")),
        }
    }
    Ok(all)
}

fn aggregate_parameters(ddl: &Ddl<'_>, s: &DefineStmt, clauses: &Clauses<'_>) -> Result<Parameters> {
    if !s.oldstyle {
        if clauses.base.is_some() {
            return Err(wrong("basetype is redundant with aggregate input type specification"));
        }
        let list = match s.args.first().and_then(|list| list.node.as_ref()) {
            Some(N::List(list)) => &list.items[..],
            _ => &[],
        };
        return routine_parameters(ddl, list, false, None);
    }
    let base = clauses.base.as_ref().ok_or_else(|| wrong("aggregate input type must be specified"))?;
    let mut parameters = Parameters::default();
    if !strings(&base.names).last().is_some_and(|name| name.eq_ignore_ascii_case("any")) {
        parameters.arg_types.push(ddl.usable_type(base).map_err(DbError::without_position)?.0);
    }
    Ok(parameters)
}

/// The type of the state.
fn state_type(ddl: &Ddl<'_>, name: Option<&TypeName>, args: &[Oid]) -> Result<Oid> {
    let name = name.ok_or_else(|| wrong("aggregate stype must be specified"))?;
    let (ty, _) = ddl.usable_type(name).map_err(DbError::without_position)?;
    if is_pseudo(ddl, ty) && !is_polymorphic(ty) && !(ty == oids::INTERNAL && ddl.is_superuser()) {
        let shown = ddl.catalog().type_name(ty, ddl.path());
        return Err(wrong(format!("aggregate transition data type cannot be {shown}")));
    }
    match undetermined_result(ty, args) {
        Some(detail) => Err(wrong("cannot determine transition data type").detail(detail)),
        None => Ok(ty),
    }
}

fn resolve_way(
    ddl: &Ddl<'_>,
    way: &AggregateMode<'_>,
    state: Oid,
    signature: AggregateSignature<'_>,
) -> Result<ResolvedAggregate> {
    let args = signature.args;
    let all = [&[state], signature.aggregated()].concat();
    let names = way.transition.as_deref().unwrap_or_default();
    let transition = returning(ddl, names, &all, state, "transition")?;
    let catalog = ddl.catalog();
    let first_fits = args.first().is_some_and(|first| catalog.is_binary_coercible(*first, state));
    if transition.strict && way.initial.is_none() && !first_fits {
        return Err(wrong(
            "must not omit initial value when transition function is strict and transition type is not compatible with \
             input type",
        ));
    }
    let Some(names) = &way.last else { return Ok(ResolvedAggregate { transition, last: None, result: state }) };
    let given = if way.extra { args } else { &args[..signature.direct.unwrap_or(0)] };
    let (last, result) = ddl.with_context(|c| support_function(c, names, &[&[state], given].concat()))?;
    if way.extra && last.strict {
        return Err(wrong("final function with extra arguments must not be declared STRICT"));
    }
    Ok(ResolvedAggregate { transition, last: Some(last), result })
}

/// The definition for moving frames, which is kept for dumps: rows that leave a frame are never subtracted from a state.
fn moving_way(
    ddl: &Ddl<'_>,
    way: &AggregateMode<'_>,
    signature: AggregateSignature<'_>,
    result: Oid,
    functions: &mut Vec<Oid>,
) -> Result<Option<Arc<MovingAggregate>>> {
    if way.state.is_none() {
        return Ok(None);
    }
    let state = state_type(ddl, way.state.as_ref(), signature.args)?;
    let found = resolve_way(ddl, way, state, signature)?;
    let names = way.inverse.as_deref().unwrap_or_default();
    let inverse = returning(ddl, names, &[&[state], signature.aggregated()].concat(), state, "inverse transition")?;
    if inverse.strict != found.transition.strict {
        return Err(wrong("strictness of aggregate's forward and inverse transition functions must match"));
    }
    if found.result != result {
        let catalog = ddl.catalog();
        let name = |ty| catalog.type_name(ty, ddl.path());
        return Err(wrong(format!(
            "moving-aggregate implementation returns type {}, but plain implementation returns type {}",
            name(found.result),
            name(result)
        )));
    }
    functions.extend([found.transition.oid, inverse.oid]);
    functions.extend(found.last.iter().map(|f| f.oid));
    Ok(Some(Arc::new(MovingAggregate {
        transition: found.transition.oid,
        inverse: inverse.oid,
        final_function: found.last.map_or(Oid::INVALID, |f| f.oid),
        final_extra: way.extra,
        final_modify: way.modify.unwrap_or(signature.default_modify()),
        transition_type: state,
        space: way.space,
        initial_value: way.initial.as_deref().map(Arc::from),
    })))
}

/// The function of this name for these arguments, which must return exactly this type.
fn returning(ddl: &Ddl<'_>, names: &[&str], args: &[Oid], returns: Oid, what: &str) -> Result<Arc<Function>> {
    let (function, returned) = ddl.with_context(|c| support_function(c, names, args))?;
    if returned == returns {
        return Ok(function);
    }
    let shown = ddl.catalog().type_name(returns, ddl.path());
    Err(err!(DATATYPE_MISMATCH, "return type of {what} function {} is not {shown}", names.join(".")))
}

fn sort_operator(ddl: &Ddl<'_>, clauses: &Clauses<'_>, args: &[Oid]) -> Result<Oid> {
    let Some(names) = &clauses.sort_operator else { return Ok(Oid::INVALID) };
    let [ty] = args else {
        return Err(wrong("sort operator can only be specified for single-argument aggregates"));
    };
    let found = ddl.with_context(|c| exact_operator(c, names, *ty, *ty))?;
    if found.is_valid() {
        return Ok(found);
    }
    let (catalog, name) = (ddl.catalog(), names.join("."));
    let shown = catalog.type_name(*ty, ddl.path());
    bail!(UNDEFINED_FUNCTION, "operator does not exist: {shown} {name} {shown}")
}

impl Clauses<'_> {
    /// Checks which options must and must not appear together.
    fn check(&self, is_ordered_set: bool) -> Result<()> {
        if self.hypothetical && !is_ordered_set {
            return Err(wrong("only ordered-set aggregates can be hypothetical"));
        }
        if self.plain.state.is_none() {
            return Err(wrong("aggregate stype must be specified"));
        }
        if self.plain.transition.is_none() {
            return Err(wrong("aggregate sfunc must be specified"));
        }
        let moving = &self.moving;
        if moving.state.is_some() {
            let missing = [(moving.transition.is_none(), "msfunc"), (moving.inverse.is_none(), "minvfunc")];
            return match missing.into_iter().find(|(is_missing, _)| *is_missing) {
                Some((_, name)) => Err(wrong(format!("aggregate {name} must be specified when mstype is specified"))),
                None => Ok(()),
            };
        }
        let without = [
            (moving.transition.is_some(), "msfunc"),
            (moving.inverse.is_some(), "minvfunc"),
            (moving.last.is_some(), "mfinalfunc"),
            (moving.space != 0, "msspace"),
            (moving.initial.is_some(), "minitcond"),
        ];
        match without.into_iter().find(|(is_there, _)| *is_there) {
            Some((_, name)) => Err(wrong(format!("aggregate {name} must not be specified without mstype"))),
            None => Ok(()),
        }
    }
}

/// How many arguments stand before ORDER BY; `None`: there is none.
fn direct_arguments(s: &DefineStmt) -> Result<Option<usize>> {
    Ok(match s.args.get(1).map(inner).transpose()? {
        Some(N::Integer(direct)) => usize::try_from(direct.ival).ok(),
        _ => None,
    })
}

impl<'a> AggregateSignature<'a> {
    fn kind(self, clauses: &Clauses<'_>) -> u8 {
        match self.direct {
            None => b'n',
            Some(_) if clauses.hypothetical => b'h',
            Some(_) => b'o',
        }
    }

    /// Whether the final function of an aggregate that does not say so changes the state.
    fn default_modify(self) -> u8 {
        if self.direct.is_some() { b'w' } else { b'r' }
    }

    /// The arguments that the transition function gets: a variadic one at the end may be both direct and aggregated.
    fn aggregated(self) -> &'a [Oid] {
        match self.direct {
            Some(direct) if direct < self.args.len() => &self.args[direct..],
            Some(direct) => &self.args[direct.saturating_sub(1)..],
            None => self.args,
        }
    }

    fn check(self, clauses: &Clauses<'_>, variadic: Oid) -> Result<()> {
        let Some(direct) = self.direct else { return Ok(()) };
        if variadic.is_valid() && variadic != oids::ANY {
            bail!(FEATURE_NOT_SUPPORTED, "a variadic ordered-set aggregate must use VARIADIC type ANY");
        }
        let aggregated = &self.args[direct..];
        if !clauses.hypothetical || aggregated.is_empty() {
            return Ok(());
        }
        if variadic.is_valid() || !self.args[..direct].ends_with(aggregated) {
            return Err(wrong("a hypothetical-set aggregate must have direct arguments matching its aggregated arguments"));
        }
        Ok(())
    }
}

/// The objects without which an aggregate cannot exist.
fn uses(functions: Vec<Oid>, info: &AggregateInfo) -> Vec<ObjectAddress> {
    let at = |class, object| ObjectAddress { class, object, sub: 0 };
    let mut all: Vec<_> = functions.into_iter().map(|f| at(classes::PG_PROC, f)).collect();
    all.extend(info.sort_operator.is_valid().then(|| at(classes::PG_OPERATOR, info.sort_operator)));
    all.push(at(classes::PG_TYPE, info.transition_type));
    all
}

/// An aggregate with default properties.
fn bare(name: &str, namespace: Oid, owner: Oid) -> Function {
    let (kind, volatility, source) = (FunctionKind::Aggregate, b'i', UNUSED_SOURCE.into());
    Function { kind, volatility, source, ..plain_function(name, namespace, owner) }
}

fn is_pseudo(ddl: &Ddl<'_>, ty: Oid) -> bool {
    ddl.catalog().type_(ty).is_some_and(|t| t.type_kind == TypeKind::Pseudo)
}

/// A possibly qualified name.
pub fn option_name(def: &DefElem) -> Result<Option<Vec<&str>>> {
    let node = def.arg.as_deref().and_then(|arg| arg.node.as_ref());
    match node {
        Some(N::List(list)) => Ok(Some(strings(&list.items))),
        Some(N::TypeName(name)) => Ok(Some(strings(&name.names))),
        Some(N::String(name)) => Ok(Some(vec![&name.sval])),
        _ => Err(err!(SYNTAX_ERROR, "argument of {} must be a name", def.defname)),
    }
}

pub fn type_name(def: &DefElem) -> Result<Option<TypeName>> {
    match def.arg.as_deref() {
        Some(arg) => match &arg.node {
            Some(N::TypeName(name)) => Ok(Some(name.clone())),
            Some(N::String(_)) => Ok(Some(TypeName { names: vec![arg.clone()], typemod: -1, ..TypeName::default() })),
            _ => Err(err!(SYNTAX_ERROR, "argument of {} must be a type name", def.defname)),
        },
        None => Err(err!(SYNTAX_ERROR, "{} requires a parameter", def.defname)),
    }
}

fn modify(def: &DefElem) -> Result<u8> {
    match option_text(def).unwrap_or_default().to_lowercase().as_str() {
        "read_only" => Ok(b'r'),
        "shareable" => Ok(b's'),
        "read_write" => Ok(b'w'),
        _ => Err(err!(SYNTAX_ERROR, "parameter \"{}\" must be READ_ONLY, SHAREABLE, or READ_WRITE", def.defname)),
    }
}
