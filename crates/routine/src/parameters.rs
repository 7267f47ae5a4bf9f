//! The parameters of CREATE FUNCTION: types, modes, names, defaults.

use std::sync::Arc;

use melba_analyze::{Expected, ExprKind};
use melba_catalog::{Function, ObjectAddress};
use melba_definition::context::Ddl;
use melba_parse::nodes::inner;
use melba_types::{DbError, Oid, Result, SqlState, bail, err, oids};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{FunctionParameter, FunctionParameterMode as Mode, Node, TypeName};

use super::find::argument_type;
use super::shell::{shell_argument, shell_result};

const ARGUMENTS_MAX: usize = 100;

/// The parsed parameter list.
#[derive(Default)]
pub struct Parameters {
    pub arg_types: Vec<Oid>,
    all_types: Vec<Oid>,
    modes: Vec<u8>,
    names: Vec<Arc<str>>,
    pub defaults: Vec<Arc<str>>,
    pub variadic: Oid,
    pub depends_on: Vec<ObjectAddress>,
    /// The result type by the output parameters.
    pub result: Option<Oid>,
    outputs: usize,
}

impl Parameters {
    /// Fills in a function's row.
    pub fn describe(&self, function: &mut Function) {
        function.arg_types = self.arg_types.clone();
        if self.modes.iter().any(|m| *m != b'i') {
            function.all_arg_types = self.all_types.clone();
            function.arg_modes = self.modes.clone();
        }
        if self.names.iter().any(|n| !n.is_empty()) {
            function.arg_names = self.names.clone();
        }
        function.arg_defaults = self.defaults.clone();
        function.variadic = self.variadic;
    }
}

fn wrong(message: impl std::fmt::Display) -> DbError {
    err!(INVALID_FUNCTION_DEFINITION, "{message}")
}

/// `language`: that of a function or procedure; `None`: it is an aggregate.
pub fn routine_parameters(ddl: &Ddl<'_>, nodes: &[Node], procedure: bool, language: Option<Oid>) -> Result<Parameters> {
    let mut all = Parameters::default();
    for node in nodes {
        let N::FunctionParameter(p) = inner(node)? else { continue };
        routine_parameter(ddl, p, procedure, language, &mut all)?;
    }
    if all.arg_types.len() > ARGUMENTS_MAX {
        bail!(TOO_MANY_ARGUMENTS, "functions cannot have more than {ARGUMENTS_MAX} arguments");
    }
    if all.outputs > 1 || procedure && all.outputs > 0 {
        all.result = Some(oids::RECORD);
    }
    Ok(all)
}

fn routine_parameter(
    ddl: &Ddl<'_>,
    p: &FunctionParameter,
    procedure: bool,
    language: Option<Oid>,
    all: &mut Parameters,
) -> Result<()> {
    let name = p.arg_type.as_ref().ok_or_else(|| DbError::internal("parameter without a type"))?;
    if name.setof {
        let what = if procedure { "procedures" } else { "functions" };
        return Err(wrong(format!("{what} cannot accept set arguments")).at(p.location));
    }
    let shell = shell_argument(ddl, name, language)?;
    let (ty, _) = shell.map_or_else(|| ddl.usable_type(name), |ty| Ok((ty, -1))).map_err(|mut e| {
        // PostgreSQL names a parameter's type without quotes.
        if e.sqlstate() == SqlState::UNDEFINED_OBJECT {
            e.fields_mut().message = e.message().replace('"', "");
        }
        e
    })?;
    let mode = Mode::try_from(p.mode).unwrap_or(Mode::FuncParamDefault);
    let letter = match mode {
        Mode::FuncParamOut => b'o',
        Mode::FuncParamInout => b'b',
        Mode::FuncParamVariadic => b'v',
        Mode::FuncParamTable => b't',
        _ => b'i',
    };
    let is_input = !matches!(letter, b'o' | b't');
    if all.variadic.is_valid() && (is_input || procedure) {
        let last = if procedure { "last parameter" } else { "last input parameter" };
        return Err(wrong(format!("VARIADIC parameter must be the {last}")).at(p.location));
    }
    if is_input {
        all.arg_types.push(ty);
    }
    if matches!(letter, b'o' | b'b' | b't') {
        all.outputs += 1;
        all.result.get_or_insert(ty);
    }
    if letter == b'v' {
        all.variadic = variadic_element(ddl, ty).map_err(|e| e.at(p.location))?;
    }
    parameter_name(p, letter, all)?;
    parameter_default(ddl, p, ty, letter, procedure, all)?;
    all.all_types.push(ty);
    all.modes.push(letter);
    Ok(())
}

fn variadic_element(ddl: &Ddl<'_>, ty: Oid) -> Result<Oid> {
    Ok(match ty {
        oids::ANY => oids::ANY,
        oids::ANYARRAY => oids::ANYELEMENT,
        oids::ANYCOMPATIBLEARRAY => oids::ANYCOMPATIBLE,
        _ => ddl.catalog().array_element(ty).ok_or_else(|| wrong("VARIADIC parameter must be an array"))?,
    })
}

/// Inputs among each other, and outputs among each other, must not share a name.
fn parameter_name(p: &FunctionParameter, letter: u8, all: &mut Parameters) -> Result<()> {
    let only_in = |m: u8| matches!(m, b'i' | b'v');
    let only_out = |m: u8| matches!(m, b'o' | b't');
    let apart = |other: u8| only_in(letter) && only_out(other) || only_out(letter) && only_in(other);
    let mut others = all.names.iter().zip(&all.modes);
    if !p.name.is_empty() && others.any(|(name, mode)| **name == *p.name && !apart(*mode)) {
        return Err(wrong(format!("parameter name \"{}\" used more than once", p.name)).at(p.location));
    }
    all.names.push(p.name.as_str().into());
    Ok(())
}

fn parameter_default(
    ddl: &Ddl<'_>,
    p: &FunctionParameter,
    ty: Oid,
    letter: u8,
    procedure: bool,
    all: &mut Parameters,
) -> Result<()> {
    let is_input = matches!(letter, b'i' | b'b' | b'v');
    let Some(node) = p.defexpr.as_deref() else {
        if is_input && !all.defaults.is_empty() {
            return Err(wrong("input parameters after one with a default value must also have defaults").at(p.location));
        }
        if procedure && !is_input && !all.defaults.is_empty() {
            return Err(wrong("procedure OUT parameters cannot appear after one with a default value").at(p.location));
        }
        return Ok(());
    };
    if !is_input {
        return Err(wrong("only input parameters can have default values").at(p.location));
    }
    let expected = Expected { ty, typmod: -1, column: &p.name };
    let expected = (!melba_analyze::is_polymorphic(ty)).then_some(expected);
    let (text, depends_on) = ddl.with_context(|c| {
        let e = melba_analyze::analyze_expression(c, node, None, ExprKind::FunctionDefault, expected)?;
        if e.has_vars() {
            bail!(INVALID_COLUMN_REFERENCE, "cannot use table references in parameter default value");
        }
        Ok((melba_deparse::expression(c, &e, None), ddl.usable(e.dependencies())?))
    })?;
    all.defaults.push(text.into());
    all.depends_on.extend(depends_on);
    Ok(())
}

/// A function's result type, and whether it returns a set.
///
/// `language` is the function's.
pub fn routine_return_type(
    ddl: &Ddl<'_>,
    name: Option<&TypeName>,
    parameters: &Parameters,
    language: Oid,
) -> Result<(Oid, bool)> {
    let Some(name) = name else {
        return parameters.result.map(|ty| (ty, false)).ok_or_else(|| wrong("function result type must be specified"));
    };
    let ty = match shell_result(ddl, name, language)? {
        Some(shell) => shell,
        None => argument_type(ddl, name)?,
    };
    ddl.require_type(ty)?;
    if let Some(result) = parameters.result
        && result != ty
    {
        let shown = ddl.catalog().type_name(result, ddl.path());
        return Err(wrong(format!("function result type must be {shown} because of OUT parameters")));
    }
    Ok((ty, name.setof))
}
