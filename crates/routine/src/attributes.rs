//! The clauses of CREATE and ALTER FUNCTION beside names and types: volatility, strictness, cost, settings.

use std::sync::Arc;

use melba_catalog::plain::transform_name;
use melba_catalog::{Function, classes};
use melba_parse::nodes::{option_bool, option_text, options, strings};
use melba_settings::table;
use melba_types::{DbError, Oid, Result, bail, err, oids};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{DefElem, Node, VariableSetKind, VariableSetStmt};

use melba_definition::context::Ddl;
use melba_definition::kept_setting::setting_text;

/// The options of a statement, each at most once.
#[derive(Default)]
pub struct Attributes<'s> {
    pub language: Option<String>,
    /// The strings of AS.
    pub body: Option<Vec<&'s str>>,
    volatility: Option<u8>,
    parallel: Option<u8>,
    strict: Option<bool>,
    security_definer: Option<bool>,
    leakproof: Option<bool>,
    cost: Option<f32>,
    rows: Option<f32>,
    sets: Vec<&'s VariableSetStmt>,
    /// The name of SUPPORT, and the types of TRANSFORM.
    support: Option<Vec<&'s str>>,
    transforms: Option<&'s [Node]>,
}

fn conflicting(option: &DefElem) -> DbError {
    err!(SYNTAX_ERROR, "conflicting or redundant options").at(option.location)
}

fn put<T>(slot: &mut Option<T>, option: &DefElem, value: T) -> Result<()> {
    if slot.is_some() {
        return Err(conflicting(option));
    }
    *slot = Some(value);
    Ok(())
}

fn number(option: &DefElem) -> Result<f32> {
    let text = option_text(option).unwrap_or_default();
    text.parse().map_err(|_| err!(SYNTAX_ERROR, "{} requires a numeric value", option.defname))
}

impl<'s> Attributes<'s> {
    pub fn read(nodes: &'s [Node], procedure: bool) -> Result<Attributes<'s>> {
        let mut all = Attributes::default();
        for option in options(nodes) {
            let of_functions = matches!(
                option.defname.as_str(),
                "volatility" | "strict" | "leakproof" | "cost" | "rows" | "support" | "parallel" | "window"
            );
            if procedure && of_functions {
                return Err(err!(INVALID_FUNCTION_DEFINITION, "invalid attribute in procedure definition").at(option.location));
            }
            all.one(option)?;
        }
        Ok(all)
    }

    fn one(&mut self, option: &'s DefElem) -> Result<()> {
        let word = || option_text(option).unwrap_or_default();
        match option.defname.as_str() {
            "as" => {
                let Some(N::List(list)) = option.arg.as_deref().and_then(|a| a.node.as_ref()) else { return Ok(()) };
                put(&mut self.body, option, strings(&list.items))
            }
            "language" => put(&mut self.language, option, word()),
            "volatility" => put(&mut self.volatility, option, word().bytes().next().unwrap_or(b'v')),
            "strict" => put(&mut self.strict, option, option_bool(option)?),
            "security" => put(&mut self.security_definer, option, option_bool(option)?),
            "leakproof" => put(&mut self.leakproof, option, option_bool(option)?),
            "cost" => put(&mut self.cost, option, number(option)?),
            "rows" => put(&mut self.rows, option, number(option)?),
            "parallel" => {
                let letter = match word().as_str() {
                    "safe" => b's',
                    "restricted" => b'r',
                    "unsafe" => b'u',
                    _ => bail!(SYNTAX_ERROR, "parameter \"parallel\" must be SAFE, RESTRICTED, or UNSAFE"),
                };
                put(&mut self.parallel, option, letter)
            }
            "set" => {
                if let Some(N::VariableSetStmt(set)) = option.arg.as_deref().and_then(|a| a.node.as_ref()) {
                    self.sets.push(set);
                }
                Ok(())
            }
            "window" => Err(DbError::unsupported("WINDOW functions that users write")),
            "support" => {
                let Some(N::List(list)) = option.arg.as_deref().and_then(|a| a.node.as_ref()) else { return Ok(()) };
                put(&mut self.support, option, strings(&list.items))
            }
            "transform" => {
                let Some(N::List(list)) = option.arg.as_deref().and_then(|a| a.node.as_ref()) else { return Ok(()) };
                put(&mut self.transforms, option, &list.items)
            }
            other => Err(DbError::internal(format!("option \"{other}\" not recognized"))),
        }
    }

    /// Puts the clauses into a function's row.
    pub fn apply(&self, ddl: &Ddl<'_>, f: &mut Function) -> Result<()> {
        f.volatility = self.volatility.unwrap_or(f.volatility);
        f.parallel = self.parallel.unwrap_or(f.parallel);
        f.strict = self.strict.unwrap_or(f.strict);
        f.security_definer = self.security_definer.unwrap_or(f.security_definer);
        f.leakproof = self.leakproof.unwrap_or(f.leakproof);
        if self.leakproof == Some(true) && !ddl.is_superuser() {
            bail!(INSUFFICIENT_PRIVILEGE, "only superuser can define a leakproof function");
        }
        if let Some(cost) = self.cost {
            if cost <= 0.0 {
                bail!(INVALID_PARAMETER_VALUE, "COST must be positive");
            }
            f.cost = cost;
        }
        if let Some(rows) = self.rows {
            if rows <= 0.0 {
                bail!(INVALID_PARAMETER_VALUE, "ROWS must be positive");
            }
            if !f.returns_set {
                bail!(INVALID_PARAMETER_VALUE, "ROWS is not applicable when function does not return a set");
            }
            f.rows = rows;
        }
        for set in &self.sets {
            change_setting(ddl, set, &mut f.config)?;
        }
        self.support.as_ref().map_or(Ok(()), |names| refuse_support(ddl, names))?;
        self.transforms.map_or(Ok(()), |types| refuse_transforms(ddl, types, f.language))
    }
}

/// Support functions are for planners that call them: no other function can take what they get.
fn refuse_support(ddl: &Ddl<'_>, names: &[&str]) -> Result<()> {
    let (schema, name) = ddl.qualified(names)?;
    let schemas = ddl.searched_schemas(schema)?;
    let catalog = ddl.catalog();
    let Some(function) = catalog.find_functions(&schemas, name).find(|f| f.arg_types == [oids::INTERNAL]) else {
        bail!(UNDEFINED_FUNCTION, "function {}(internal) does not exist", names.join("."));
    };
    if function.return_type != oids::INTERNAL {
        bail!(INVALID_OBJECT_DEFINITION, "support function {} must return type internal", names.join("."));
    }
    if !ddl.is_superuser() {
        bail!(INSUFFICIENT_PRIVILEGE, "must be superuser to specify a support function");
    }
    Err(DbError::unsupported("SUPPORT"))
}

fn refuse_transforms(ddl: &Ddl<'_>, types: &[Node], language: Oid) -> Result<()> {
    let catalog = ddl.catalog();
    for name in types {
        let Some(N::TypeName(name)) = name.node.as_ref() else { continue };
        let (ty, _) = ddl.type_from_name(name).map_err(DbError::without_position)?;
        if catalog.plain_object_by_name(classes::PG_TRANSFORM, Oid::INVALID, &transform_name(ty, language)).is_none() {
            let (ty, language) = (catalog.type_name(ty, ddl.path()), catalog.language_name(language).unwrap_or_default());
            bail!(UNDEFINED_OBJECT, "transform for type {ty} language \"{language}\" does not exist");
        }
    }
    Err(DbError::unsupported("TRANSFORM"))
}

/// SET and RESET clauses of a function.
fn change_setting(ddl: &Ddl<'_>, set: &VariableSetStmt, config: &mut Vec<Arc<str>>) -> Result<()> {
    if set.kind() == VariableSetKind::VarResetAll {
        config.clear();
        return Ok(());
    }
    let name = set.name.as_str();
    if !name.contains('.') && ddl.session().setting(name).is_none() {
        bail!(UNDEFINED_OBJECT, "unrecognized configuration parameter \"{name}\"");
    }
    if matches!(name.to_ascii_lowercase().as_str(), "role" | "session_authorization") {
        return Err(DbError::unsupported(format!("SET {name} of a function")));
    }
    config.retain(|item| item.split_once('=').is_none_or(|(n, _)| !n.eq_ignore_ascii_case(name)));
    if let Some(text) = setting_text(ddl, set)? {
        let known = table::table().find(name).map(|id| table::table().definitions[id].name);
        let value = text.split_once('=').map_or("", |(_, value)| value);
        config.push(format!("{}={value}", known.unwrap_or(name)).into());
    }
    Ok(())
}
