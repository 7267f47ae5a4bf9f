//! Finds functions and procedures by the name and argument types in a statement.

use std::sync::Arc;

use melba_catalog::{Function, FunctionKind};
use melba_definition::context::Ddl;
use melba_parse::nodes::{inner, strings};
use melba_types::{DbError, Oid, Result, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{FunctionParameterMode as Mode, Node, ObjectType, ObjectWithArgs, TypeName};

use super::shell::named_shell;

/// A function or procedure as a statement names it.
pub struct RoutineName<'s> {
    pub kind: ObjectType,
    object: &'s ObjectWithArgs,
}

fn kind_word(kind: ObjectType) -> &'static str {
    match kind {
        ObjectType::ObjectProcedure => "procedure",
        ObjectType::ObjectRoutine => "routine",
        ObjectType::ObjectAggregate => "aggregate",
        _ => "function",
    }
}

impl<'s> RoutineName<'s> {
    /// `None`: the node names another kind of object.
    pub fn of(kind: ObjectType, node: Option<&'s Node>) -> Option<RoutineName<'s>> {
        match node?.node.as_ref()? {
            N::ObjectWithArgs(object) => Some(RoutineName { kind, object }),
            _ => None,
        }
    }

    pub fn is_routine(kind: ObjectType) -> bool {
        matches!(
            kind,
            ObjectType::ObjectFunction | ObjectType::ObjectProcedure | ObjectType::ObjectRoutine | ObjectType::ObjectAggregate
        )
    }

    pub fn dotted(&self) -> String {
        strings(&self.object.objname).join(".")
    }

    /// The types as they were written, for notices.
    pub fn as_written(&self) -> String {
        let name = |node: &Node| match node.node.as_ref() {
            Some(N::TypeName(t)) => {
                let brackets = if t.array_bounds.is_empty() { "" } else { "[]" };
                format!("{}{brackets}", strings(&t.names).join("."))
            }
            _ => String::new(),
        };
        let types: Vec<String> = self.object.objargs.iter().map(name).collect();
        format!("{} {}({})", kind_word(self.kind), self.dotted(), types.join(","))
    }

    fn fits_kind(&self, f: &Function) -> bool {
        match self.kind {
            ObjectType::ObjectProcedure => f.kind == FunctionKind::Procedure,
            ObjectType::ObjectAggregate => f.kind == FunctionKind::Aggregate,
            ObjectType::ObjectFunction => {
                matches!(f.kind, FunctionKind::Function | FunctionKind::Window | FunctionKind::Aggregate)
            }
            _ => true,
        }
    }
}

/// The function or procedure that a statement names.
///
/// # Errors
/// 42883 when there is none, 42725 when there are several, 42809 when it is of another kind.
pub fn find_routine(ddl: &Ddl<'_>, wanted: &RoutineName<'_>) -> Result<Arc<Function>> {
    let names = strings(&wanted.object.objname);
    let (schema, name) = ddl.qualified(&names)?;
    let catalog = ddl.catalog();
    let schemas = ddl.searched_schemas(schema)?;
    let candidates: Vec<&Arc<Function>> = catalog.find_functions(&schemas, name).collect();
    let (shown, word) = (wanted.dotted(), kind_word(wanted.kind));
    let article = if word.starts_with('a') { "an" } else { "a" };
    if wanted.object.args_unspecified {
        let fitting: Vec<_> = candidates.iter().filter(|f| wanted.fits_kind(f)).collect();
        return match fitting[..] {
            [one] => Ok((*one).clone()),
            [] if word == "routine" => Err(err!(UNDEFINED_FUNCTION, "could not find a function named \"{shown}\"")),
            [] => Err(err!(UNDEFINED_FUNCTION, "could not find {article} {word} named \"{shown}\"")),
            _ => Err(err!(AMBIGUOUS_FUNCTION, "{word} name \"{shown}\" is not unique")
                .hint(format!("Specify the argument list to select the {word} unambiguously."))),
        };
    }
    let types = types_named(ddl, &wanted.object.objargs)?;
    let mut found = candidates.iter().find(|f| f.arg_types == types);
    if matches!(wanted.kind, ObjectType::ObjectProcedure | ObjectType::ObjectRoutine) {
        // A procedure may be named with its output arguments.
        let all = all_types_named(ddl, wanted.object)?;
        let with_output = |f: &&&Arc<Function>| f.kind == FunctionKind::Procedure && f.all_arg_types == all;
        let other = candidates.iter().find(with_output);
        match (found, other) {
            (Some(one), Some(other)) if one.oid != other.oid => {
                return Err(err!(AMBIGUOUS_FUNCTION, "{word} name \"{shown}\" is not unique"));
            }
            _ => found = found.or(other),
        }
    }
    let signature = || {
        let types: Vec<String> = types.iter().map(|t| catalog.type_name(*t, ddl.path())).collect();
        let of_any = types.is_empty() && wanted.kind == ObjectType::ObjectAggregate;
        format!("{shown}({})", if of_any { "*".to_owned() } else { types.join(", ") })
    };
    match found {
        Some(f) if wanted.fits_kind(f) => Ok((*f).clone()),
        Some(_) => {
            let what = if word == "aggregate" { "function " } else { "" };
            Err(err!(WRONG_OBJECT_TYPE, "{what}{} is not {article} {word}", signature()))
        }
        None if word == "routine" => Err(err!(UNDEFINED_FUNCTION, "function {} does not exist", signature())),
        None => Err(err!(UNDEFINED_FUNCTION, "{word} {} does not exist", signature())),
    }
}

fn types_named(ddl: &Ddl<'_>, nodes: &[Node]) -> Result<Vec<Oid>> {
    let one = |node: &Node| match inner(node)? {
        N::TypeName(name) => argument_type(ddl, name),
        _ => Err(DbError::internal("argument without a type")),
    };
    nodes.iter().map(one).collect()
}

fn all_types_named(ddl: &Ddl<'_>, object: &ObjectWithArgs) -> Result<Vec<Oid>> {
    let mut out = Vec::new();
    for node in &object.objfuncargs {
        if let N::FunctionParameter(p) = inner(node)?
            && p.mode() != Mode::FuncParamTable
            && let Some(name) = &p.arg_type
        {
            out.push(argument_type(ddl, name)?);
        }
    }
    Ok(out)
}

/// The type of a name, which may be a shell; errors have no position.
pub fn argument_type(ddl: &Ddl<'_>, name: &TypeName) -> Result<Oid> {
    if let Some(shell) = named_shell(ddl, name)? {
        return Ok(shell);
    }
    ddl.type_from_name(name).map(|(ty, _)| ty).map_err(DbError::without_position)
}

/// # Errors
/// 42501 unless the user owns the function, which the message calls `name`.
pub fn require_routine_owner(ddl: &Ddl<'_>, f: &Function, name: &str) -> Result<()> {
    let what = match f.kind {
        FunctionKind::Procedure => "procedure",
        FunctionKind::Aggregate => "aggregate",
        _ => "function",
    };
    ddl.require_owner(f.owner, what, name)
}
