//! CREATE, ALTER and DROP OPERATOR.
//!
//! A commutator or negator that does not exist yet becomes a shell: an operator with nothing but its name and operand types,
//! which a later CREATE OPERATOR fills in.

use std::sync::Arc;

use melba_analyze::{exact_operator, operator_signature};
use melba_catalog::privileges::AclKind;
use melba_catalog::{Object, ObjectAddress, Operator, acl, classes};
use melba_definition::context::Ddl;
use melba_parse::nodes::{inner, option_bool, options, strings};
use melba_types::{DbError, Oid, Result, SqlState, bail, err, oids};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{AlterOperatorStmt, DefElem, DefineStmt, Node, TypeName};

use super::aggregate::{option_name, type_name};

/// The attributes of an operator in a definition, beside its function and operands.
#[derive(Default)]
struct OperatorAttributes<'s> {
    commutator: Option<Vec<&'s str>>,
    negator: Option<Vec<&'s str>>,
    /// `Some(None)`: none.
    restrict: Option<Option<Vec<&'s str>>>,
    join: Option<Option<Vec<&'s str>>>,
    hashes: Option<bool>,
    merges: Option<bool>,
}

fn wrong(message: &str) -> DbError {
    err!(INVALID_FUNCTION_DEFINITION, "{message}")
}

pub fn create_operator(ddl: &Ddl<'_>, s: &DefineStmt) -> Result<()> {
    let names = strings(&s.defnames);
    let (schema, name) = ddl.qualified(&names)?;
    let namespace = ddl.namespace_for_creation(schema)?;
    let mut attributes = OperatorAttributes::default();
    let (mut function, mut left, mut right) = (None, None, None);
    for def in options(&s.definition) {
        match def.defname.as_str() {
            "leftarg" => left = type_name(def)?,
            "rightarg" => right = type_name(def)?,
            "function" | "procedure" => function = option_name(def)?,
            "sort1" | "sort2" | "ltcmp" | "gtcmp" => attributes.merges = Some(true),
            _ if attributes.read(def)? => {}
            other => ddl.warning(SqlState::SYNTAX_ERROR, format!("operator attribute \"{other}\" not recognized")),
        }
    }
    if left.iter().chain(&right).any(|ty| ty.setof) {
        return Err(wrong("SETOF type not allowed for operator argument"));
    }
    let function = function.ok_or_else(|| wrong("operator function must be specified"))?;
    let operand = |name: &Option<TypeName>| match name {
        Some(name) => ddl.usable_type(name).map(|(ty, _)| ty).map_err(DbError::without_position),
        None => Ok(Oid::INVALID),
    };
    let (left, right) = (operand(&left)?, operand(&right)?);
    if !right.is_valid() {
        let missing = if left.is_valid() { "operator right argument type" } else { "operator argument types" };
        let error = wrong(&format!("{missing} must be specified"));
        let is_postfix = left.is_valid();
        return Err(if is_postfix { error.detail("Postfix operators are not supported.") } else { error });
    }
    let (function, result) = operator_function(ddl, &function, left, right)?;
    let old = operator_in(ddl, namespace, name, left, right);
    if let Some(old) = old.as_ref().filter(|o| o.function.is_valid()) {
        let shown = ddl.with_context(|c| Ok(operator_signature(c, old)))?;
        bail!(DUPLICATE_FUNCTION, "operator {shown} already exists");
    }
    if let Some(shell) = &old {
        ddl.require_owner(shell.owner, "operator", name)?;
    }
    let fresh = shell(ddl, namespace, name, left, right);
    let mut operator = Operator { function, result, ..old.map_or(fresh, |shell| (*shell).clone()) };
    apply(ddl, &mut operator, &attributes)?;
    link(ddl, operator, &attributes)
}

pub fn alter_operator(ddl: &Ddl<'_>, s: &AlterOperatorStmt) -> Result<()> {
    let object = s.opername.as_ref().ok_or_else(|| DbError::internal("ALTER OPERATOR without a name"))?;
    let node = Node { node: Some(N::ObjectWithArgs(object.clone())) };
    let old = named_operator(ddl, Some(&node))?;
    let mut attributes = OperatorAttributes::default();
    for def in options(&s.options) {
        match def.defname.as_str() {
            name @ ("leftarg" | "rightarg" | "function" | "procedure") => {
                bail!(SYNTAX_ERROR, "operator attribute \"{name}\" cannot be changed")
            }
            _ if attributes.read(def)? => {}
            name => bail!(SYNTAX_ERROR, "operator attribute \"{name}\" not recognized"),
        }
    }
    ddl.require_owner(old.owner, "operator", &old.name)?;
    let mut operator = (*old).clone();
    let kept = [(old.can_merge, attributes.merges, "merges"), (old.can_hash, attributes.hashes, "hashes")];
    if let Some((_, _, name)) = kept.into_iter().find(|(was, now, _)| *was && *now == Some(false)) {
        return Err(already_set(name));
    }
    apply(ddl, &mut operator, &attributes)?;
    link(ddl, operator, &attributes)
}

/// Takes over a definition's attributes, except other operators.
fn apply(ddl: &Ddl<'_>, operator: &mut Operator, a: &OperatorAttributes<'_>) -> Result<()> {
    if !operator.left.is_valid() {
        let only = |what| Err(wrong(&format!("only binary operators can {what}")));
        match a {
            OperatorAttributes { commutator: Some(_), .. } => return only("have commutators"),
            OperatorAttributes { join: Some(Some(_)), .. } => return only("have join selectivity"),
            OperatorAttributes { merges: Some(true), .. } => return only("merge join"),
            OperatorAttributes { hashes: Some(true), .. } => return only("hash"),
            _ => {}
        }
    }
    if operator.result != oids::BOOL {
        let only = |what| Err(wrong(&format!("only boolean operators can {what}")));
        match a {
            OperatorAttributes { negator: Some(_), .. } => return only("have negators"),
            OperatorAttributes { restrict: Some(Some(_)), .. } => return only("have restriction selectivity"),
            OperatorAttributes { join: Some(Some(_)), .. } => return only("have join selectivity"),
            OperatorAttributes { merges: Some(true), .. } => return only("merge join"),
            OperatorAttributes { hashes: Some(true), .. } => return only("hash"),
            _ => {}
        }
    }
    if let Some(restrict) = &a.restrict {
        let args = [oids::INTERNAL, oids::OID, oids::INTERNAL, oids::INT4];
        operator.restrict = estimator(ddl, restrict.as_deref(), &args, "restriction")?;
    }
    if let Some(join) = &a.join {
        let args = [oids::INTERNAL, oids::OID, oids::INTERNAL, oids::INT2, oids::INTERNAL];
        operator.join = estimator(ddl, join.as_deref(), &args, "join")?;
    }
    operator.can_hash = a.hashes.unwrap_or(operator.can_hash);
    operator.can_merge = a.merges.unwrap_or(operator.can_merge);
    Ok(())
}

/// Stores an operator, and its links with its commutator and negator.
fn link(ddl: &Ddl<'_>, mut operator: Operator, a: &OperatorAttributes<'_>) -> Result<()> {
    if let Some(names) = &a.commutator {
        let other = other_operator(ddl, names, operator.right, operator.left, &operator)?;
        if operator.commutator.is_valid() && operator.commutator != other {
            return Err(already_set("commutator"));
        }
        operator.commutator = other;
    }
    if let Some(names) = &a.negator {
        let other = other_operator(ddl, names, operator.left, operator.right, &operator)?;
        if other == operator.oid {
            return Err(wrong("operator cannot be its own negator"));
        }
        if operator.negator.is_valid() && operator.negator != other {
            return Err(already_set("negator"));
        }
        operator.negator = other;
    }
    if !operator.oid.is_valid() {
        operator.oid = ddl.tx().new_oid();
        // Its own commutator was found before it was anything.
        if a.commutator.is_some() && !operator.commutator.is_valid() {
            operator.commutator = operator.oid;
        }
    }
    let (oid, commutator, negator) = (operator.oid, operator.commutator, operator.negator);
    ddl.tx().put(Object::Operator(Arc::new(operator)));
    let catalog = ddl.catalog();
    let others = [(commutator, "commutator"), (negator, "negator")];
    for (other, role) in others.into_iter().filter(|(other, _)| other.is_valid() && *other != oid) {
        let Some(row) = catalog.operator(other) else { continue };
        let mut row = (**row).clone();
        let known = if role == "commutator" { &mut row.commutator } else { &mut row.negator };
        if known.is_valid() && *known != oid {
            let third = catalog.operator(*known).map_or("", |o| &o.name);
            bail!(INVALID_FUNCTION_DEFINITION, "{role} operator {} is already the {role} of operator {third}", row.name);
        }
        *known = oid;
        ddl.tx().put(Object::Operator(Arc::new(row)));
    }
    Ok(())
}

/// The operator that another names as its commutator or negator: itself, an existing one, or a new shell.
fn other_operator(ddl: &Ddl<'_>, names: &[&str], left: Oid, right: Oid, of: &Operator) -> Result<Oid> {
    let found = ddl.with_context(|c| exact_operator(c, names, left, right))?;
    if found.is_valid() {
        return Ok(found);
    }
    let (schema, name) = ddl.qualified(names)?;
    let namespace = match schema {
        Some(_) => ddl.namespace_for_creation(schema)?,
        None => of.namespace,
    };
    if (namespace, name, left, right) == (of.namespace, &*of.name, of.left, of.right) {
        return Ok(of.oid);
    }
    let shell = Operator { oid: ddl.tx().new_oid(), ..shell(ddl, namespace, name, left, right) };
    let oid = shell.oid;
    ddl.tx().put(Object::Operator(Arc::new(shell)));
    Ok(oid)
}

fn shell(ddl: &Ddl<'_>, namespace: Oid, name: &str, left: Oid, right: Oid) -> Operator {
    Operator {
        oid: Oid::INVALID,
        name: name.into(),
        namespace,
        owner: ddl.user(),
        left,
        right,
        result: Oid::INVALID,
        function: Oid::INVALID,
        commutator: Oid::INVALID,
        negator: Oid::INVALID,
        can_merge: false,
        can_hash: false,
        restrict: "-".into(),
        join: "-".into(),
    }
}

pub fn operator_in(ddl: &Ddl<'_>, namespace: Oid, name: &str, left: Oid, right: Oid) -> Option<Arc<Operator>> {
    let catalog = ddl.catalog();
    let mut named = catalog.operators_by_name(namespace, name);
    named.find(|o| o.left == left && o.right == right).cloned()
}

/// The function of exactly these operands, and its result type.
fn operator_function(ddl: &Ddl<'_>, names: &[&str], left: Oid, right: Oid) -> Result<(Oid, Oid)> {
    let args: Vec<Oid> = [left, right].into_iter().filter(|ty| ty.is_valid()).collect();
    let function = function_of(ddl, names, &args)?;
    ddl.require_type(function.return_type)?;
    Ok((function.oid, function.return_type))
}

fn function_of(ddl: &Ddl<'_>, names: &[&str], args: &[Oid]) -> Result<Arc<melba_catalog::Function>> {
    let (schema, name) = ddl.qualified(names)?;
    let catalog = ddl.catalog();
    let schemas = ddl.searched_schemas(schema)?;
    let Some(function) = catalog.find_functions(&schemas, name).find(|f| f.arg_types == args) else {
        let types: Vec<String> = args.iter().map(|ty| catalog.type_name(*ty, ddl.path())).collect();
        bail!(UNDEFINED_FUNCTION, "function {}({}) does not exist", names.join("."), types.join(", "));
    };
    if !catalog.has_privileges(ddl.user(), AclKind::Function, function.owner, &function.acl, acl::EXECUTE) {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied for function {}", names.join("."));
    }
    Ok(function.clone())
}

/// The name of a selectivity estimator, as pg_operator has it.
fn estimator(ddl: &Ddl<'_>, names: Option<&[&str]>, args: &[Oid], what: &str) -> Result<Arc<str>> {
    let Some(names) = names else { return Ok("-".into()) };
    let function = match function_of(ddl, names, args) {
        // An older form of estimators of joins.
        Err(_) if what == "join" && function_of(ddl, names, &args[..4]).is_ok() => function_of(ddl, names, &args[..4])?,
        found => found?,
    };
    if function.return_type != oids::FLOAT8 {
        let name = names.join(".");
        bail!(INVALID_OBJECT_DEFINITION, "{what} estimator function {name} must return type float8");
    }
    if function.oid.0 >= classes::FIRST_USER_OID {
        return Err(DbError::unsupported("a selectivity estimator that is not built in"));
    }
    Ok(function.name.clone())
}

/// The operator that a statement names with its operand types.
pub fn named_operator(ddl: &Ddl<'_>, node: Option<&Node>) -> Result<Arc<Operator>> {
    let Some(N::ObjectWithArgs(object)) = node.map(inner).transpose()? else {
        return Err(DbError::internal("an operator without a name"));
    };
    let names = strings(&object.objname);
    let mut operands = Vec::with_capacity(2);
    for arg in &object.objargs {
        operands.push(match &arg.node {
            Some(N::TypeName(name)) => ddl.type_from_name(name).map_err(DbError::without_position)?.0,
            _ => Oid::INVALID,
        });
    }
    let [left, right] = operands[..] else { bail!(SYNTAX_ERROR, "missing argument") };
    if !right.is_valid() {
        return Err(err!(SYNTAX_ERROR, "postfix operators are not supported"));
    }
    let found = ddl.with_context(|c| exact_operator(c, &names, left, right))?;
    if let Some(operator) = ddl.catalog().operator(found) {
        return Ok(operator.clone());
    }
    let catalog = ddl.catalog();
    let operand = |ty: Oid| if ty.is_valid() { format!("{} ", catalog.type_name(ty, ddl.path())) } else { String::new() };
    let shown = format!("{}{} {}", operand(left), names.join("."), operand(right).trim_end());
    bail!(UNDEFINED_FUNCTION, "operator does not exist: {shown}")
}

pub fn find_operator(ddl: &Ddl<'_>, node: &Node, missing_ok: bool) -> Result<Option<ObjectAddress>> {
    match named_operator(ddl, Some(node)) {
        Ok(operator) => {
            ddl.require_owner(operator.owner, "operator", &operator.name)?;
            Ok(Some(ObjectAddress { class: classes::PG_OPERATOR, object: operator.oid, sub: 0 }))
        }
        Err(e) if missing_ok && matches!(e.sqlstate(), SqlState::UNDEFINED_OBJECT | SqlState::INVALID_SCHEMA_NAME) => {
            ddl.notice(format!("{}, skipping", e.message()));
            Ok(None)
        }
        Err(e) if missing_ok => {
            let missing = e.message().strip_prefix("operator does not exist: ");
            let Some(shown) = missing else { return Err(e) };
            let name = shown.split(' ').find(|word| !word.starts_with(|c: char| c.is_alphanumeric())).unwrap_or(shown);
            ddl.notice(format!("operator {name} does not exist, skipping"));
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

pub fn give_operator(ddl: &Ddl<'_>, operator: &Operator, owner: Oid) -> Result<()> {
    ddl.check_new_owner(operator.owner, owner, Some(operator.namespace))?;
    ddl.tx().put(Object::Operator(Arc::new(Operator { owner, ..operator.clone() })));
    Ok(())
}

impl<'s> OperatorAttributes<'s> {
    /// Reads an attribute; false: it is another one.
    fn read(&mut self, def: &'s DefElem) -> Result<bool> {
        match def.defname.as_str() {
            "commutator" => self.commutator = option_name(def)?,
            "negator" => self.negator = option_name(def)?,
            "restrict" => self.restrict = Some(if def.arg.is_none() { None } else { option_name(def)? }),
            "join" => self.join = Some(if def.arg.is_none() { None } else { option_name(def)? }),
            "hashes" => self.hashes = Some(option_bool(def)?),
            "merges" => self.merges = Some(option_bool(def)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn already_set(name: &str) -> DbError {
    err!(INVALID_FUNCTION_DEFINITION, "operator attribute \"{name}\" cannot be changed if it has already been set")
}
