//! A function's text, parsed, with the state that its calls share.

use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;
use melba_analyze::{Context, RoutineResult, RoutineScope};
use melba_catalog::{Catalog, Function, FunctionKind, Relation, TypeKind};
use melba_expression::Expression;
use melba_fmgr::{RoutineCall, Session as _, TriggerCall};
use melba_parse::{Statement, Strings};
use melba_plpgsql::tree::{self, Target, VariableType};
use melba_plpgsql::{Parameter, Returns, Signature, Types};
use melba_statement::context::StatementContext;
use melba_statement::language::Within;
use melba_statement::planned::Planned;
use melba_statement::planning::analysis;
use melba_statement::routine::scope_and_result;
use melba_tree::OutputColumn;
use melba_tree::permissions::Permissions;
use melba_types::{DbError, Oid, Result, Severity, bail, err, oids};
use parking_lot::Mutex;

use super::{extra_checks, trigger};

/// A value's type with its modifier, and those of its target.
type Cast = (Oid, i32, Oid, i32);

pub struct Program {
    /// Its name in messages.
    pub name: Arc<str>,
    pub oid: Oid,
    pub tree: tree::Function,
    /// The argument types of the call, and the wanted result type.
    pub arg_types: Box<[Oid]>,
    pub return_type: Oid,
    /// Of the call, 0 when none.
    pub collation: Oid,
    pub result: RoutineResult,
    pub returns: Returns,
    pub returns_set: bool,
    /// Variables of the input arguments, in their order.
    pub inputs: Vec<usize>,
    pub output: Option<Target>,
    /// Its statements use the calling statement's view, and change nothing.
    pub shares_view: bool,
    /// Of a trigger function: its text may name the variables that tell about the trigger (`TG_...`).
    pub names_trigger: bool,
    /// Once it was asked (`purity`).
    pub is_pure: OnceLock<bool>,
    /// By the expression's number.
    pub prepared: Mutex<Vec<Option<Arc<PreparedPiece>>>>,
    pub casts: Mutex<HashMap<Cast, Arc<Expression>>>,
    pub strings: Strings,
    pub catalog: Arc<Catalog>,
    pub path: Arc<[Oid]>,
}

/// Where a parameter's value is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterSource {
    Variable(usize),
    /// A field, by its place in the record's values.
    Field {
        record: usize,
        field: usize,
    },
}

/// A piece of SQL, analyzed.
pub struct PreparedPiece {
    pub catalog: Arc<Catalog>,
    pub path: Arc<[Oid]>,
    /// The records whose fields it reads, with the shape that they had.
    pub shapes: Vec<(usize, RecordFields)>,
    /// By parameter.
    pub sources: Vec<ParameterSource>,
    pub kind: PieceKind,
}

/// A record's type, and its fields.
pub struct RecordFields {
    pub ty: Oid,
    pub types: Arc<[Oid]>,
    pub names: Option<Arc<[Arc<str>]>>,
    /// `None`: those of the types.
    pub collations: Option<Arc<[Oid]>>,
}

pub enum PieceKind {
    /// One value, over the frame's variables as the input row.
    Simple(Simple),
    Query(Box<Planned>),
    /// Neither analyzed nor planned.
    Utility(Arc<Statement>),
}

pub struct Simple {
    pub expression: Expression,
    /// Of the column.
    pub name: Arc<str>,
    pub typmod: i32,
    /// It may read tables, with the frame's current view.
    pub reads: bool,
    /// It reads none, and its type is no domain, which might refuse NULL.
    pub is_plain: bool,
    /// The variable whose array it is, but for one element.
    pub changes: Option<usize>,
    pub permissions: Option<Permissions>,
}

/// Types of variables by the catalog.
pub(super) struct CatalogTypes<'a> {
    pub cx: Context<'a>,
    /// Of the function's call, which takes the place of the types' own; 0 when none.
    pub collation: Oid,
}

impl<'a> CatalogTypes<'a> {
    fn relation(&self, names: &[&str]) -> Result<&'a Arc<Relation>> {
        let (schema, name) = match names {
            [name] => (None, *name),
            [schema, name] => (Some(*schema), *name),
            [database, schema, name] if *database == self.cx.database => (Some(*schema), *name),
            [_, _, _] => {
                bail!(FEATURE_NOT_SUPPORTED, "cross-database references are not implemented: \"{}\"", names.join("."))
            }
            _ => bail!(SYNTAX_ERROR, "improper qualified name (too many dotted names): {}", names.join(".")),
        };
        if let Some(schema) = schema
            && self.cx.catalog.namespace_by_name(schema).is_none()
        {
            bail!(UNDEFINED_SCHEMA, "schema \"{schema}\" does not exist");
        }
        let relation = self.cx.find_relation(schema, name);
        relation.ok_or_else(|| err!(UNDEFINED_TABLE, "relation \"{}\" does not exist", names.join(".")))
    }

    pub fn of(&self, oid: Oid, typmod: i32) -> VariableType {
        let base = self.cx.catalog.base_type(oid);
        let is_composite = self.cx.catalog.type_(base).is_some_and(|t| t.type_kind == TypeKind::Composite);
        let own = self.cx.collation_of_type(oid);
        let collation = if own.is_valid() && self.collation.is_valid() { self.collation } else { own };
        VariableType { oid, typmod, collation, is_record: oid == oids::RECORD || is_composite }
    }
}

impl Types for CatalogTypes<'_> {
    fn named(&self, text: &str) -> Result<VariableType> {
        let name = melba_parse::parse_type_name(text)?;
        if name.setof {
            bail!(SYNTAX_ERROR, "invalid type name \"{text}\"");
        }
        let (oid, typmod) = self.cx.transform_type_name(&name).map_err(|mut e| {
            // The name's place is one in a statement around it.
            let start = name.location.max(0) as u32;
            e.fields_mut().position = e.fields().position.map(|at| at.saturating_sub(start).max(1));
            e
        })?;
        Ok(self.of(oid, typmod))
    }

    fn pseudo_type(&self, ty: VariableType) -> Option<String> {
        let is_pseudo = self.cx.catalog.type_(ty.oid).is_some_and(|t| t.type_kind == TypeKind::Pseudo);
        (is_pseudo && ty.oid != oids::RECORD).then(|| self.cx.catalog.type_name(ty.oid, self.cx.search_path))
    }

    fn of_column(&self, names: &[&str]) -> Result<VariableType> {
        let [table @ .., column] = names else { return Err(DbError::internal("%TYPE without a name")) };
        if table.is_empty() {
            bail!(UNDEFINED_OBJECT, "variable \"{column}\" does not exist");
        }
        let relation = self.relation(table)?;
        let found = relation.columns.iter().find(|c| !c.dropped && *c.name == **column);
        let found = found
            .ok_or_else(|| err!(UNDEFINED_COLUMN, "column \"{column}\" of relation \"{}\" does not exist", relation.name))?;
        Ok(VariableType { collation: found.collation, ..self.of(found.ty, found.typmod) })
    }

    fn of_row(&self, names: &[&str]) -> Result<VariableType> {
        let relation = self.relation(names)?;
        if !relation.row_type.is_valid() {
            bail!(WRONG_OBJECT_TYPE, "relation \"{}\" does not have a composite type", relation.name);
        }
        Ok(self.of(relation.row_type, -1))
    }

    fn array_of(&self, ty: VariableType) -> Result<VariableType> {
        if self.element_of(ty).is_some() {
            return Ok(ty);
        }
        let array = self.cx.catalog.type_(ty.oid).map(|t| t.array).filter(|a| a.is_valid());
        let array = array.ok_or_else(|| {
            let shown = self.cx.catalog.type_name(ty.oid, self.cx.search_path);
            err!(UNDEFINED_OBJECT, "could not find array type for data type {shown}")
        })?;
        Ok(VariableType { collation: ty.collation, ..self.of(array, ty.typmod) })
    }

    fn element_of(&self, ty: VariableType) -> Option<VariableType> {
        let (base, typmod) = self.cx.catalog.base_type_and_typmod(ty.oid, ty.typmod);
        let t = self.cx.catalog.type_(base)?;
        (t.element.is_valid() && t.kind == melba_types::Kind::Array).then(|| self.of(t.element, typmod))
    }

    fn by_oid(&self, oid: Oid, typmod: i32) -> VariableType {
        self.of(oid, typmod)
    }

    fn collation(&self, names: &[&str]) -> Result<Oid> {
        self.cx.find_collation(names, -1).map(|c| c.oid)
    }

    fn of_field(&self, record: VariableType, field: &str) -> Option<VariableType> {
        let relation = self.cx.row_relation(record.oid)?;
        let column = relation.columns.iter().find(|c| !c.dropped && *c.name == *field)?;
        Some(VariableType { collation: column.collation, ..self.of(column.ty, column.typmod) })
    }
}

impl PreparedPiece {
    /// Its expression, if that has a type and reads no records.
    #[inline]
    pub fn plain_of(&self, ty: VariableType) -> Option<&Expression> {
        match &self.kind {
            PieceKind::Simple(simple) if simple.is_plain && simple.expression.ty == ty.oid && self.shapes.is_empty() => {
                (ty.typmod < 0).then_some(&simple.expression)
            }
            _ => None,
        }
    }
}

impl Program {
    /// The function that a call runs.
    pub fn new(context: &StatementContext, function: &Arc<Function>, call: &RoutineCall<'_>) -> Result<Program> {
        trigger::refuse_call(function).map_err(|e| within_compilation(e, &function.name, 1))?;
        let (scope, result) = scope_and_result(context, function, call)?;
        let mut program = Program::parse(context, function, &scope, result, oids::RECORD)?;
        (program.arg_types, program.return_type) = (Box::from(call.arg_types), call.return_type);
        Ok(program)
    }

    /// The function that a trigger runs.
    pub fn of_trigger(context: &StatementContext, function: &Arc<Function>, call: &TriggerCall<'_>) -> Result<Program> {
        let scope = RoutineScope::of(function, &[], Oid::INVALID);
        Program::parse(context, function, &scope, trigger_result(context, call), call.table.row_type)
    }

    /// The function that an event trigger runs.
    pub fn of_event_trigger(context: &StatementContext, function: &Arc<Function>) -> Result<Program> {
        let scope = RoutineScope::of(function, &[], Oid::INVALID);
        let result = RoutineResult { ty: oids::EVENT_TRIGGER, columns: None, always_row: false };
        Program::parse(context, function, &scope, result, oids::RECORD)
    }

    /// `row`: of a trigger function, the type of the table's rows; `record` while there is no table.
    fn parse(
        context: &StatementContext,
        function: &Arc<Function>,
        scope: &RoutineScope,
        result: RoutineResult,
        row: Oid,
    ) -> Result<Program> {
        let types = CatalogTypes { cx: analysis(context), collation: scope.collation };
        let (parameters, inputs, output) = match result.ty {
            oids::TRIGGER if !function.arg_types.is_empty() => {
                let e = err!(INVALID_FUNCTION_DEFINITION, "trigger functions cannot have declared arguments")
                    .hint("The arguments of the trigger can be accessed through TG_NARGS and TG_ARGV instead.");
                return Err(within_compilation(e, &function.name, 1));
            }
            oids::EVENT_TRIGGER if !function.arg_types.is_empty() => {
                let e = err!(INVALID_FUNCTION_DEFINITION, "event trigger functions cannot have declared arguments");
                return Err(within_compilation(e, &function.name, 1));
            }
            oids::TRIGGER => (trigger::parameters(&types, row), Vec::new(), None),
            oids::EVENT_TRIGGER => (trigger::event_parameters(&types), Vec::new(), None),
            _ => parameters(&types, function, scope, &result),
        };
        let is_procedure = function.kind == FunctionKind::Procedure;
        let returns = match result.ty {
            _ if function.returns_set => Returns::Set,
            oids::VOID | oids::EVENT_TRIGGER => Returns::Void,
            oids::TRIGGER => Returns::Trigger,
            ty => Returns::Value { record: types.by_oid(ty, -1).is_record },
        };
        let signature =
            Signature { name: &function.name, parameters: &parameters, output: output.clone(), returns, is_procedure };
        let strings = Strings::of(context);
        let tree = melba_plpgsql::parse(&function.source, strings, &signature, &types)?;
        Ok(Program {
            name: context.catalog.function_signature(function, &context.path.path).into(),
            oid: function.oid,
            prepared: Mutex::new(vec![None; tree.expressions]),
            casts: Mutex::default(),
            tree,
            arg_types: Box::default(),
            return_type: result.ty,
            collation: scope.collation,
            result,
            returns,
            returns_set: function.returns_set,
            inputs,
            output,
            shares_view: function.volatility != b'v',
            names_trigger: trigger::may_be_named(&function.source),
            is_pure: OnceLock::new(),
            strings,
            catalog: context.catalog.clone(),
            path: context.path.path.clone(),
        })
    }

    /// A DO block.
    pub fn of_block(context: &StatementContext, text: &str) -> Result<Program> {
        let types = CatalogTypes { cx: analysis(context), collation: Oid::INVALID };
        let signature =
            Signature { name: "inline_code_block", parameters: &[], output: None, returns: Returns::Void, is_procedure: false };
        let strings = Strings::of(context);
        let tree = melba_plpgsql::parse(text, strings, &signature, &types)?;
        Ok(Program {
            name: "inline_code_block".into(),
            oid: Oid::INVALID,
            prepared: Mutex::new(vec![None; tree.expressions]),
            casts: Mutex::default(),
            tree,
            arg_types: Box::default(),
            return_type: oids::VOID,
            collation: Oid::INVALID,
            result: RoutineResult { ty: oids::VOID, columns: None, always_row: false },
            returns: Returns::Void,
            returns_set: false,
            inputs: Vec::new(),
            output: None,
            shares_view: false,
            names_trigger: false,
            is_pure: OnceLock::new(),
            strings,
            catalog: context.catalog.clone(),
            path: context.path.path.clone(),
        })
    }
}

/// The variables of all parameters, which of them are input, and the result type of the output ones.
fn parameters(
    types: &CatalogTypes<'_>,
    function: &Function,
    scope: &RoutineScope,
    result: &RoutineResult,
) -> (Vec<Parameter>, Vec<usize>, Option<Target>) {
    let declared = if function.all_arg_types.is_empty() { &function.arg_types } else { &function.all_arg_types };
    let mut given = scope.arg_types.iter();
    let mut results = result.columns.iter().flatten();
    let outputs = function.arg_modes.iter().filter(|m| matches!(m, b'o' | b'b' | b't')).count();
    let (mut all, mut inputs, mut output) = (Vec::new(), Vec::new(), Vec::new());
    for (i, ty) in declared.iter().enumerate() {
        let mode = function.arg_modes.get(i).copied().unwrap_or(b'i');
        let mut ty = *ty;
        if matches!(mode, b'o' | b'b' | b't') {
            // The actual type of a polymorphic one.
            let column = results.next().map(|c| c.ty);
            let is_value = outputs == 1 && function.kind == FunctionKind::Function;
            ty = if is_value { result.ty } else { column.unwrap_or(ty) };
            output.push((i, function.arg_names.get(i).cloned().unwrap_or_default()));
        }
        if matches!(mode, b'i' | b'b' | b'v') {
            ty = given.next().copied().unwrap_or(ty);
            inputs.push(i);
        }
        let mut names: Vec<Arc<str>> = vec![format!("${}", i + 1).into()];
        names.extend(function.arg_names.get(i).filter(|n| !n.is_empty()).cloned());
        all.push(Parameter { names, ty: types.by_oid(ty, -1), constant: false });
    }
    let output = match (output.len(), function.kind) {
        (0, _) => None,
        (1, FunctionKind::Function) => Some(Target::Variable(output[0].0)),
        _ => Some(Target::Row(output.iter().map(|(i, _)| Target::Variable(*i)).collect())),
    };
    (all, inputs, output)
}

/// The result of a trigger function: the columns of the trigger's table.
fn trigger_result(context: &StatementContext, call: &TriggerCall<'_>) -> RoutineResult {
    let cx = analysis(context);
    let column = |c: &melba_catalog::Column| OutputColumn {
        name: c.name.clone(),
        ty: c.ty,
        typmod: c.typmod,
        collation: cx.collation_of_type(c.ty),
    };
    let columns = call.table.columns.iter().filter(|c| !c.dropped).map(column).collect();
    RoutineResult { ty: oids::TRIGGER, columns: Some(columns), always_row: false }
}

/// The check of a new function.
///
/// # Errors
/// 0A000 for types that no function of the language has; those of the parser.
pub fn check(context: &StatementContext, function: &Arc<Function>, within: Within<'_>) -> Result<()> {
    check_types(context, function)?;
    if context.setting("check_function_bodies").as_deref() == Some("off") {
        return Ok(());
    }
    let text = &function.source;
    let located = |e| within.located(e, text).unwrap_or_else(|e| compile_error(e, &function.name, text));
    let program = check_text(context, function).map_err(located)?;
    let Some((_, severity)) = extra_checks::demanded(context, "shadowed_variables") else { return Ok(()) };
    for (name, start) in &program.tree.shadowing {
        let e = err!(DUPLICATE_ALIAS, "variable \"{name}\" shadows a previously defined variable").at(*start as i32);
        match severity {
            Severity::Error => return Err(located(e)),
            _ => context.session.warning(located(e)),
        }
    }
    Ok(())
}

fn check_types(context: &StatementContext, function: &Function) -> Result<()> {
    let catalog = &context.catalog;
    let is_fine = |ty: Oid| {
        let is_pseudo = catalog.type_(ty).is_some_and(|t| t.type_kind == TypeKind::Pseudo);
        !is_pseudo || ty == oids::RECORD || melba_analyze::is_polymorphic(ty)
    };
    let name = |ty: Oid| catalog.type_name(ty, &context.path.path);
    let result = function.return_type;
    if !is_fine(result) && !matches!(result, oids::VOID | oids::TRIGGER | oids::EVENT_TRIGGER) {
        bail!(FEATURE_NOT_SUPPORTED, "PL/pgSQL functions cannot return type {}", name(result));
    }
    match function.arg_types.iter().find(|ty| !is_fine(**ty)) {
        Some(ty) => Err(err!(FEATURE_NOT_SUPPORTED, "PL/pgSQL functions cannot accept type {}", name(*ty))),
        None => Ok(()),
    }
}

fn check_text(context: &StatementContext, function: &Arc<Function>) -> Result<Program> {
    // Polymorphic types are checked as if integers were given.
    let stand_in = |ty: &Oid| match *ty {
        oids::ANYARRAY | oids::ANYCOMPATIBLEARRAY => oids::INT4_ARRAY,
        oids::ANYRANGE | oids::ANYCOMPATIBLERANGE => oids::INT4RANGE,
        oids::ANYMULTIRANGE | oids::ANYCOMPATIBLEMULTIRANGE => oids::INT4MULTIRANGE,
        ty if melba_analyze::is_polymorphic(ty) => oids::INT4,
        ty => ty,
    };
    let mut plain = Function::clone(function);
    plain.arg_types = plain.arg_types.iter().map(stand_in).collect();
    plain.all_arg_types = plain.all_arg_types.iter().map(stand_in).collect();
    plain.return_type = stand_in(&plain.return_type);
    let scope = RoutineScope::of(&plain, &plain.arg_types, Oid::INVALID);
    let result = melba_analyze::routine_result(&analysis(context), &plain, &plain.arg_types, plain.return_type, None)?;
    Program::parse(context, &Arc::new(plain), &scope, result, oids::RECORD)
}

/// An error in a function's text: where the text is not the client's, it is shown with the position.
pub(super) fn compile_error(e: DbError, name: &str, text: &str) -> DbError {
    // Without a position the parser has named the place.
    let Some(position) = e.fields().position else { return e };
    let line = text[..(position as usize - 1).min(text.len())].matches('\n').count() + 1;
    within_compilation(e.in_query(text), name, line)
}

fn within_compilation(e: DbError, name: &str, line: usize) -> DbError {
    e.within(format!("compilation of PL/pgSQL function \"{name}\" near line {line}"))
}
