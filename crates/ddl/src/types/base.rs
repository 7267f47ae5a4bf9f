//! CREATE TYPE of shell types and base types, and ALTER TYPE ... SET.
//!
//! There is no code that could be loaded, so that the functions of a base type are those of a built-in type by other names: functions
//! LANGUAGE internal. Values of the type are held, read and written as those of the built-in type.

use std::sync::Arc;

use melba_catalog::default_privileges::initial_acl;
use melba_catalog::privileges::AclKind;
use melba_catalog::{BaseInfo, Function, Object, Type, TypeKind, classes};
use melba_definition::context::Ddl;
use melba_fmgr::registry;
use melba_parse::nodes::{option_bool, option_text, options, strings};
use melba_routine::aggregate::{option_name, type_name};
use melba_routine::array::{bare_type, free_type_name, put_array_type};
use melba_routine::internal::require_fitting_source;
use melba_routine::shell::{own_shell, put_shell};
use melba_types::{DbError, Kind, Oid, Result, SqlState, bail, err, oids};
use pg_query::protobuf::{AlterTypeStmt, DefElem, DefineStmt};

use crate::types::named::{open_type_named, require_defined};

/// The attributes of CREATE TYPE.
const ATTRIBUTES: [&str; 18] = [
    "like",
    "internallength",
    "input",
    "output",
    "receive",
    "send",
    "typmod_in",
    "typmod_out",
    "analyze",
    "subscript",
    "category",
    "preferred",
    "delimiter",
    "element",
    "default",
    "passedbyvalue",
    "alignment",
    "storage",
];
const COLLATABLE: &str = "collatable";

/// A function of a type, as messages call it, by its arguments and result.
struct TypeFunction {
    attribute: &'static str,
    what: &'static str,
    /// Its argument types; `INVALID` is the type itself.
    args: &'static [Oid],
    /// It may have these arguments instead.
    longer: Option<&'static [Oid]>,
    result: Oid,
}

const OWN: Oid = Oid::INVALID;
const INPUT: TypeFunction = TypeFunction {
    attribute: "input",
    what: "type input",
    args: &[oids::CSTRING],
    longer: Some(&[oids::CSTRING, oids::OID, oids::INT4]),
    result: OWN,
};
const OUTPUT: TypeFunction =
    TypeFunction { attribute: "output", what: "type output", args: &[OWN], longer: None, result: oids::CSTRING };
const RECEIVE: TypeFunction = TypeFunction {
    attribute: "receive",
    what: "type receive",
    args: &[oids::INTERNAL],
    longer: Some(&[oids::INTERNAL, oids::OID, oids::INT4]),
    result: OWN,
};
const SEND: TypeFunction = TypeFunction { attribute: "send", what: "type send", args: &[OWN], longer: None, result: oids::BYTEA };
const TYPMOD_IN: TypeFunction = TypeFunction {
    attribute: "typmod_in",
    what: "type modifier input",
    args: &[oids::CSTRING_ARRAY],
    longer: None,
    result: oids::INT4,
};
const TYPMOD_OUT: TypeFunction = TypeFunction {
    attribute: "typmod_out",
    what: "type modifier output",
    args: &[oids::INT4],
    longer: None,
    result: oids::CSTRING,
};
const ANALYZE: TypeFunction =
    TypeFunction { attribute: "analyze", what: "type analyze", args: &[oids::INTERNAL], longer: None, result: oids::BOOL };
const SUBSCRIPT: TypeFunction = TypeFunction {
    attribute: "subscript",
    what: "type subscripting",
    args: &[oids::INTERNAL],
    longer: None,
    result: oids::INTERNAL,
};

fn wrong(message: impl std::fmt::Display) -> DbError {
    err!(INVALID_OBJECT_DEFINITION, "{message}")
}

/// CREATE TYPE, with a name alone or with attributes in parentheses.
pub fn create_base(ddl: &Ddl<'_>, s: &DefineStmt) -> Result<()> {
    if !ddl.is_superuser() {
        bail!(INSUFFICIENT_PRIVILEGE, "must be superuser to create a base type");
    }
    let (schema, name) = ddl.qualified(&strings(&s.defnames))?;
    let namespace = ddl.namespace_for_creation(schema)?;
    let catalog = ddl.catalog();
    let shell = catalog.type_by_name(namespace, name).filter(|ty| !ty.defined);
    let is_taken = shell.is_none() && !free_type_name(ddl, namespace, name)?;
    if is_taken || shell.is_some() && s.definition.is_empty() {
        bail!(DUPLICATE_OBJECT, "type \"{name}\" already exists");
    }
    if s.definition.is_empty() {
        put_shell(ddl, namespace, name);
        return Ok(());
    }
    let Some(shell) = shell else {
        return Err(err!(DUPLICATE_OBJECT, "type \"{name}\" does not exist")
            .hint("Create the type as a shell type, then create its I/O functions, then do a full CREATE TYPE."));
    };
    let attributes = BaseAttributes::read(ddl, s)?;
    let form = Form::read(ddl, &attributes)?;
    let ty = base_type(ddl, shell, &attributes, form)?;
    own_shell(ddl, namespace, name)?;
    let array = put_array_type(ddl, name, namespace, ty.oid, if ty.align == b'd' { b'd' } else { b'i' })?;
    if let Some(row) = ddl.catalog().type_(array) {
        let row = Type { delimiter: ty.delimiter, collation: ty.collation, ..(**row).clone() };
        ddl.tx().put(Object::Type(Arc::new(row)));
    }
    let oid = ty.oid;
    ddl.tx().put(Object::Type(Arc::new(Type { array, ..ty })));
    // Now it is known how its values are held.
    let catalog = ddl.catalog();
    let uses =
        |f: &&Arc<Function>| f.language == classes::INTERNAL_LANGUAGE && (f.return_type == oid || f.arg_types.contains(&oid));
    catalog.functions().filter(uses).try_for_each(|f| require_fitting_source(&catalog, f))
}

struct BaseAttributes<'s>(Vec<&'s DefElem>);

impl<'s> BaseAttributes<'s> {
    fn read(ddl: &Ddl<'_>, s: &'s DefineStmt) -> Result<BaseAttributes<'s>> {
        let mut all: Vec<&DefElem> = Vec::new();
        for def in options(&s.definition) {
            let name = canonical(&def.defname);
            if name != COLLATABLE && !ATTRIBUTES.contains(&name) {
                let warning = err!(SYNTAX_ERROR, "type attribute \"{}\" not recognized", def.defname).at(def.location);
                ddl.session().notice(warning.severity(melba_types::Severity::Warning));
                continue;
            }
            if all.iter().any(|other| canonical(&other.defname) == name) {
                return Err(err!(SYNTAX_ERROR, "conflicting or redundant options").at(def.location));
            }
            all.push(def);
        }
        Ok(BaseAttributes(all))
    }

    fn get(&self, name: &str) -> Option<&'s DefElem> {
        self.0.iter().copied().find(|def| canonical(&def.defname) == name)
    }

    fn text(&self, name: &str) -> Result<Option<String>> {
        self.get(name).map(text).transpose()
    }

    fn boolean(&self, name: &str) -> Result<Option<bool>> {
        self.get(name).map(option_bool).transpose()
    }
}

fn canonical(name: &str) -> &str {
    if name == "analyse" { "analyze" } else { name }
}

fn text(def: &DefElem) -> Result<String> {
    option_text(def).ok_or_else(|| err!(SYNTAX_ERROR, "{} requires a parameter", def.defname))
}

/// The name of a function.
fn function_name(def: &DefElem) -> Result<Option<Vec<&str>>> {
    text(def)?;
    option_name(def)
}

/// How values are stored, as the attributes say.
struct Form {
    length: i16,
    by_value: bool,
    align: u8,
    storage: u8,
}

impl Form {
    fn read(ddl: &Ddl<'_>, attributes: &BaseAttributes<'_>) -> Result<Form> {
        let mut form = Form { length: -1, by_value: false, align: b'i', storage: b'p' };
        if let Some(name) = attributes.get("like").map(type_name).transpose()?.flatten() {
            let (oid, _) = ddl.type_from_name(&name)?;
            if let Some(like) = ddl.catalog().type_(oid) {
                form = Form { length: like.length, by_value: like.by_value, align: like.align, storage: like.storage };
            }
        }
        if let Some(length) = attributes.text("internallength")? {
            form.length = match length.as_str() {
                "variable" => -1,
                number => {
                    let number = number.parse::<i16>();
                    number.map_err(|_| err!(SYNTAX_ERROR, "invalid argument for internallength: \"{length}\""))?
                }
            };
        }
        if let Some(by_value) = attributes.boolean("passedbyvalue")? {
            form.by_value = by_value;
        }
        if let Some(align) = attributes.text("alignment")? {
            form.align = match align.to_ascii_lowercase().as_str() {
                "double" | "float8" => b'd',
                "int4" => b'i',
                "int2" => b's',
                "char" | "bpchar" => b'c',
                _ => bail!(INVALID_PARAMETER_VALUE, "alignment \"{align}\" not recognized"),
            };
        }
        if let Some(storage) = attributes.text("storage")? {
            form.storage = storage_letter(&storage)?;
        }
        Ok(form)
    }

    fn check(&self) -> Result<()> {
        let Form { length, by_value, align, storage } = *self;
        if length < -2 || length == 0 {
            return Err(wrong(format!("invalid type internal size {length}")));
        }
        let letter = char::from(align);
        if by_value {
            let right = match length {
                1 => b'c',
                2 => b's',
                4 => b'i',
                8 => b'd',
                _ => return Err(wrong(format!("internal size {length} is invalid for passed-by-value type"))),
            };
            if align != right {
                let message = format!("alignment \"{letter}\" is invalid for passed-by-value type of size {length}");
                return Err(wrong(message));
            }
        } else if length == -1 && !matches!(align, b'i' | b'd') || length == -2 && align != b'c' {
            return Err(wrong(format!("alignment \"{letter}\" is invalid for variable-length type")));
        }
        if storage != b'p' && length != -1 {
            return Err(wrong("fixed-size types must have storage PLAIN"));
        }
        Ok(())
    }
}

fn storage_letter(word: &str) -> Result<u8> {
    Ok(match word.to_ascii_lowercase().as_str() {
        "plain" => b'p',
        "external" => b'e',
        "extended" => b'x',
        "main" => b'm',
        _ => bail!(INVALID_PARAMETER_VALUE, "storage \"{word}\" not recognized"),
    })
}

/// The row of the type, without its array type.
fn base_type(ddl: &Ddl<'_>, shell: &Type, attributes: &BaseAttributes<'_>, form: Form) -> Result<Type> {
    let category = match attributes.text("category")? {
        None => b'U',
        Some(text) => match text.bytes().next() {
            Some(letter @ 32..=126) => letter,
            _ => bail!(INVALID_PARAMETER_VALUE, "invalid type category \"{text}\": must be simple ASCII"),
        },
    };
    let preferred = attributes.boolean("preferred")?.unwrap_or(false);
    let delimiter = attributes.text("delimiter")?.and_then(|text| text.bytes().next()).unwrap_or(b',');
    let default = attributes.text("default")?.map(Arc::from);
    let is_collatable = attributes.boolean(COLLATABLE)?.unwrap_or(false);
    let functions = Functions::find(ddl, shell.oid, attributes)?;
    let subscript = attributes.get("subscript").map(|def| subscript_function(ddl, def)).transpose()?.flatten();
    match attributes.get("element") {
        Some(_) if subscript.is_some() => return Err(DbError::unsupported("a base type with elements")),
        Some(_) => bail!(INVALID_PARAMETER_VALUE, "element type cannot be specified without a subscripting function"),
        None => {}
    }
    form.check()?;
    let held_as = functions.held_as(ddl)?;
    let source = |f: &Option<Arc<Function>>| f.as_ref().map_or_else(|| "-".into(), |f| f.source.clone());
    Ok(Type {
        oid: shell.oid,
        name: shell.name.clone(),
        category,
        preferred,
        length: form.length,
        by_value: form.by_value,
        align: form.align,
        storage: form.storage,
        delimiter,
        collation: if is_collatable { classes::DEFAULT_COLLATION } else { Oid::INVALID },
        input: held_as.input.clone(),
        output: held_as.output.clone(),
        receive: source(&functions.receive),
        send: source(&functions.send),
        typmod_in: source(&functions.typmod_in),
        typmod_out: source(&functions.typmod_out),
        subscript: subscript.unwrap_or_else(|| "-".into()),
        kind: held_as.kind,
        acl: initial_acl(&ddl.catalog(), AclKind::Type, ddl.user(), shell.namespace),
        base: Some(Arc::new(functions.info(held_as.oid, default))),
        ..bare_type(ddl, shell.namespace)
    })
}

/// The function that subscripts values of a type. The only one to be had works with the type's elements, of which it has none.
fn subscript_function(ddl: &Ddl<'_>, def: &DefElem) -> Result<Option<Arc<str>>> {
    if def.arg.is_none() {
        return Ok(None);
    }
    let Some(names) = option_name(def)? else { return Ok(None) };
    let found = SUBSCRIPT.find(ddl, &names, Oid::INVALID)?;
    match &*found.source {
        "array_subscript_handler" => {
            Err(wrong(format!("user-defined types cannot use subscripting function {}", names.join("."))))
        }
        "raw_array_subscript_handler" if found.oid.0 < classes::FIRST_USER_OID => Ok(Some(found.source.clone())),
        _ => Err(DbError::unsupported("a base type with this subscripting function")),
    }
}

/// The functions of a base type.
struct Functions {
    input: Arc<Function>,
    output: Arc<Function>,
    receive: Option<Arc<Function>>,
    send: Option<Arc<Function>>,
    typmod_in: Option<Arc<Function>>,
    typmod_out: Option<Arc<Function>>,
    analyze: Option<Arc<Function>>,
}

impl Functions {
    fn find(ddl: &Ddl<'_>, ty: Oid, attributes: &BaseAttributes<'_>) -> Result<Functions> {
        let named = |role: &TypeFunction| attributes.get(role.attribute).map(function_name).transpose().map(Option::flatten);
        let names = [named(&INPUT)?, named(&OUTPUT)?];
        let [Some(input), Some(output)] = names else {
            let missing = if names[0].is_none() { "input" } else { "output" };
            return Err(wrong(format!("type {missing} function must be specified")));
        };
        if named(&TYPMOD_IN)?.is_none() && named(&TYPMOD_OUT)?.is_some() {
            return Err(wrong("type modifier output function is useless without a type modifier input function"));
        }
        let optional = |role: &TypeFunction| named(role)?.map(|names| role.find(ddl, &names, ty)).transpose();
        Ok(Functions {
            input: INPUT.find(ddl, &input, ty)?,
            output: OUTPUT.find(ddl, &output, ty)?,
            receive: optional(&RECEIVE)?,
            send: optional(&SEND)?,
            typmod_in: optional(&TYPMOD_IN)?,
            typmod_out: optional(&TYPMOD_OUT)?,
            analyze: optional(&ANALYZE)?,
        })
    }

    /// The built-in type whose functions they are.
    ///
    /// # Errors
    /// 0A000 when they are no built-in type's.
    fn held_as(&self, ddl: &Ddl<'_>) -> Result<Arc<Type>> {
        let catalog = ddl.catalog();
        let is_like = |ty: &&Arc<Type>| {
            let is_plain = ty.type_kind == TypeKind::Base && !matches!(ty.kind, Kind::Array | Kind::Record);
            is_plain && is(&self.input, &ty.input) && is(&self.output, &ty.output) && registry::type_io(ty.oid).is_some()
        };
        let found = catalog.types().take_while(|ty| ty.oid.0 < classes::FIRST_USER_OID).find(is_like);
        let found = found.ok_or_else(|| unsupported("input and output"))?;
        let modifiers = [(&self.typmod_in, &found.typmod_in), (&self.typmod_out, &found.typmod_out)];
        let binary = [(&self.receive, &found.receive), (&self.send, &found.send)];
        let is_other = |(own, of_it): &(&Option<Arc<Function>>, &Arc<str>)| own.as_ref().is_some_and(|f| !is(f, of_it));
        if binary.iter().chain(&modifiers).any(is_other) {
            return Err(unsupported("receive, send or type modifier"));
        }
        Ok(found.clone())
    }

    fn info(&self, held_as: Oid, default: Option<Arc<str>>) -> BaseInfo {
        let oid = |f: &Option<Arc<Function>>| f.as_ref().map_or(Oid::INVALID, |f| f.oid);
        BaseInfo {
            held_as,
            input: self.input.oid,
            output: self.output.oid,
            receive: oid(&self.receive),
            send: oid(&self.send),
            typmod_in: oid(&self.typmod_in),
            typmod_out: oid(&self.typmod_out),
            analyze: oid(&self.analyze),
            default,
        }
    }
}

/// Whether a function is the built-in one of a name.
fn is(f: &Function, source: &str) -> bool {
    f.language == classes::INTERNAL_LANGUAGE && *f.source == *source
}

fn unsupported(which: &str) -> DbError {
    DbError::unsupported(format!("a base type with {which} functions of its own"))
        .detail("They must be those of one built-in type, as functions of language internal.")
}

impl TypeFunction {
    fn find(&self, ddl: &Ddl<'_>, names: &[&str], ty: Oid) -> Result<Arc<Function>> {
        let own = |oid: &Oid| if oid.is_valid() { *oid } else { ty };
        let args: Vec<Oid> = self.args.iter().map(own).collect();
        let (schema, name) = ddl.qualified(names)?;
        let catalog = ddl.catalog();
        let schemas = ddl.searched_schemas(schema)?;
        let exact = |args: &[Oid]| catalog.find_functions(&schemas, name).find(|f| f.arg_types == args).cloned();
        let (dotted, what) = (names.join("."), self.what);
        let found = match (exact(&args), self.longer.and_then(exact)) {
            (Some(_), Some(_)) => bail!(AMBIGUOUS_FUNCTION, "{what} function {dotted} has multiple matches"),
            (Some(f), None) | (None, Some(f)) => f,
            (None, None) => {
                let shown: Vec<String> = args.iter().map(|ty| catalog.type_name(*ty, ddl.path())).collect();
                bail!(UNDEFINED_FUNCTION, "function {dotted}({}) does not exist", shown.join(", "))
            }
        };
        let result = own(&self.result);
        if found.return_type != result {
            let shown = catalog.type_name(result, ddl.path());
            return Err(wrong(format!("{what} function {dotted} must return type {shown}")));
        }
        if found.volatility == b'v' && self.attribute != ANALYZE.attribute {
            ddl.warning(SqlState::INVALID_OBJECT_DEFINITION, format!("{what} function {dotted} should not be volatile"));
        }
        Ok(found)
    }
}

/// ALTER TYPE ... SET (...).
pub fn alter_base(ddl: &Ddl<'_>, s: &AlterTypeStmt) -> Result<()> {
    let ty = open_type_named(ddl, &strings(&s.type_name))?;
    require_defined(ddl, &ty)?;
    let (mut storage, mut subscript) = (None, None);
    let mut functions: Vec<(&TypeFunction, Option<Vec<&str>>)> = Vec::new();
    for def in options(&s.options) {
        let role = [&RECEIVE, &SEND, &TYPMOD_IN, &TYPMOD_OUT, &ANALYZE].into_iter().find(|r| r.attribute == def.defname);
        match (def.defname.as_str(), role) {
            (_, Some(role)) => functions.push((role, def.arg.as_ref().map(|_| option_name(def)).transpose()?.flatten())),
            ("storage", _) => storage = Some(new_storage(&ty, def)?),
            ("subscript", _) => subscript = Some(subscript_function(ddl, def)?),
            (COLLATABLE, _) => bail!(SYNTAX_ERROR, "type attribute \"{COLLATABLE}\" cannot be changed"),
            (name, _) if ATTRIBUTES.contains(&name) => bail!(SYNTAX_ERROR, "type attribute \"{name}\" cannot be changed"),
            (name, _) => bail!(SYNTAX_ERROR, "type attribute \"{name}\" not recognized"),
        }
    }
    let needs_superuser =
        !functions.is_empty() || subscript.is_some() || ty.storage == b'p' && storage.is_some_and(|to| to != b'p');
    if needs_superuser && !ddl.is_superuser() {
        bail!(INSUFFICIENT_PRIVILEGE, "must be superuser to alter a type");
    }
    ddl.require_type_owner(&ty)?;
    let catalog = ddl.catalog();
    if ty.type_kind != TypeKind::Base || catalog.array_element(ty.oid).is_some() {
        bail!(WRONG_OBJECT_TYPE, "{} is not a base type", catalog.type_name(ty.oid, ddl.path()));
    }
    let Some(base) = &ty.base else { return Err(DbError::unsupported("changing a built-in type")) };
    let held_as = catalog.type_(base.held_as).ok_or_else(|| DbError::internal("missing type"))?;
    let mut base = (**base).clone();
    let mut changed = Type { storage: storage.unwrap_or(ty.storage), ..(*ty).clone() };
    if let Some(subscript) = subscript {
        changed.subscript = subscript.unwrap_or_else(|| "-".into());
    }
    for (role, names) in functions {
        let function = names.map(|names| role.find(ddl, &names, ty.oid)).transpose()?;
        let (name, place, of_it) = match role.attribute {
            "receive" => (&mut changed.receive, &mut base.receive, &held_as.receive),
            "send" => (&mut changed.send, &mut base.send, &held_as.send),
            "typmod_in" => (&mut changed.typmod_in, &mut base.typmod_in, &held_as.typmod_in),
            "typmod_out" => (&mut changed.typmod_out, &mut base.typmod_out, &held_as.typmod_out),
            _ => {
                base.analyze = function.map_or(Oid::INVALID, |f| f.oid);
                continue;
            }
        };
        if function.as_ref().is_some_and(|f| !is(f, of_it)) {
            return Err(unsupported("receive, send or type modifier"));
        }
        *name = function.as_ref().map_or_else(|| "-".into(), |f| f.source.clone());
        *place = function.map_or(Oid::INVALID, |f| f.oid);
    }
    changed.base = Some(Arc::new(base));
    store_domains(ddl, ty.oid, changed.storage);
    ddl.tx().put(Object::Type(Arc::new(changed)));
    Ok(())
}

/// Domains over a type are stored as it is.
fn store_domains(ddl: &Ddl<'_>, ty: Oid, storage: u8) {
    let catalog = ddl.catalog();
    let is_over = |t: &&Arc<Type>| t.domain.as_ref().is_some_and(|d| d.base == ty);
    for domain in catalog.types().filter(is_over) {
        ddl.tx().put(Object::Type(Arc::new(Type { storage, ..(**domain).clone() })));
        store_domains(ddl, domain.oid, storage);
    }
}

fn new_storage(ty: &Type, def: &DefElem) -> Result<u8> {
    let storage = storage_letter(&text(def)?)?;
    if storage != b'p' && ty.length != -1 {
        return Err(wrong("fixed-size types must have storage PLAIN"));
    }
    if storage == b'p' && ty.storage != b'p' {
        return Err(wrong("cannot change type's storage to PLAIN"));
    }
    Ok(storage)
}
