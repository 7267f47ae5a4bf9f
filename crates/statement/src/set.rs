//! SET, RESET and SHOW, as far as they need a statement's context only.

use std::sync::Arc;

use melba_functions::regs::object_named;
use melba_parse::notices::truncation;
use melba_settings::Scope;
use melba_settings::identifiers::NAME_BYTES_MAX;
use melba_settings::table::is_hidden;
use melba_settings::value::Value;
use melba_types::{DbError, Result, bail, err, oids};
use pg_query::NodeEnum;
use pg_query::protobuf::{Node, VariableSetKind, VariableSetStmt, VariableShowStmt};

use super::context::StatementContext;
use super::outcome::{self, Outcome, ResultColumn, StoredRows, Tag};
use super::setting_text::{argument_text, constant_text};
use super::transaction::{IsolationLevel, Modes};
use super::user;

/// The lines of SHOW: name, value, description; one of them except for SHOW ALL.
fn show_lines(context: &StatementContext, name: &str) -> Result<Vec<(String, String, &'static str)>> {
    let settings = context.session.settings.lock();
    if !name.eq_ignore_ascii_case("all") {
        let id = settings.get_id(name)?;
        user::check_sees_setting(&context.catalog, context.user.oid, settings.name(id))?;
        return Ok(vec![(settings.name(id).to_owned(), settings.show(id), "")]);
    }
    let is_shown = |name: &str| !is_hidden(name) && user::sees_setting(&context.catalog, context.user.oid, name);
    // Those that clients have defined are not listed.
    let lines = settings.ids().filter_map(|id| Some((id, settings.definition(id)?))).filter(|(_, d)| is_shown(d.name));
    Ok(lines.map(|(id, d)| (d.name.to_owned(), settings.show(id), d.description)).collect())
}

/// The columns of SHOW.
pub fn show_columns(context: &StatementContext, show: &VariableShowStmt) -> Result<Arc<[ResultColumn]>> {
    let text = |name: &str| ResultColumn::new(name, oids::TEXT, &context.catalog);
    if show.name.eq_ignore_ascii_case("all") {
        return Ok(Arc::new([text("name"), text("setting"), text("description")]));
    }
    let settings = context.session.settings.lock();
    let id = settings.get_id(&show.name)?;
    Ok(Arc::new([text(settings.name(id))]))
}

/// SHOW.
pub fn run_show(context: &StatementContext, show: &VariableShowStmt) -> Result<Outcome> {
    let columns = show_columns(context, show)?;
    let lines = show_lines(context, &show.name)?;
    let batch = if columns.len() == 1 {
        outcome::text_rows(vec![lines.into_iter().map(|(_, value, _)| value).collect()])
    } else {
        let mut table = vec![Vec::new(), Vec::new(), Vec::new()];
        for (name, value, description) in lines {
            table[0].push(name);
            table[1].push(value);
            table[2].push(description.to_owned());
        }
        outcome::text_rows(table)
    };
    let source = Box::new(StoredRows(vec![batch].into_iter()));
    Ok(Outcome::Rows { columns, source, tag: Tag::Fixed("SHOW".to_owned()), formats: Vec::new() })
}

/// SET of a setting that is no mode of the transaction.
pub fn set_text(context: &StatementContext, name: &str, text: &str, scope: Scope) -> Result<()> {
    match name.to_ascii_lowercase().as_str() {
        lower @ ("role" | "session_authorization") => set_user_setting(context, lower, Some(text), scope),
        "seed" => {
            let mut settings = context.session.settings.lock();
            settings.set(name, text, scope)?;
            *context.session.random.lock() = Some(settings.get("seed").as_real().to_bits());
            Ok(())
        }
        TEXT_SEARCH_CONFIG => {
            let canonical = text_search_config(context, text)?;
            context.session.settings.lock().set(name, &canonical, scope)
        }
        lower => {
            if let Some(notice) = cut_notice(lower, text) {
                context.session.notice(notice);
            }
            context.session.settings.lock().set(name, text, scope)
        }
    }
}

/// The notice that a setting which is kept as names are is cut to the length of one.
pub fn cut_notice(name: &str, text: &str) -> Option<DbError> {
    (name == "application_name" && text.len() > NAME_BYTES_MAX).then(|| truncation(text))
}

/// The setting that names the configuration of functions without one.
pub(super) const TEXT_SEARCH_CONFIG: &str = "default_text_search_config";

/// The qualified name of a text search configuration, as `TEXT_SEARCH_CONFIG` has it.
pub(super) fn text_search_config(context: &StatementContext, name: &str) -> Result<String> {
    let invalid = || err!(INVALID_PARAMETER_VALUE, "invalid value for parameter \"{TEXT_SEARCH_CONFIG}\": \"{name}\"");
    let oid = object_named(context, oids::REGCONFIG, name).map_err(|_| invalid())?;
    let config = context.catalog.text_search_config(oid).ok_or_else(invalid)?;
    Ok(context.catalog.qualified(false, config.namespace, &config.name))
}

/// Whether the session may take a role, or go back to its own, by a setting.
///
/// # Errors
/// 42501 where its user may not change, and those of `check_switch`.
pub(super) fn check_user_setting(context: &StatementContext, name: &str, role: Option<&str>) -> Result<()> {
    if context.user.restricted || context.user.acting {
        let place = if context.user.restricted { "security-restricted operation" } else { "security-definer function" };
        bail!(INSUFFICIENT_PRIVILEGE, "cannot set parameter \"{name}\" within {place}");
    }
    match role.filter(|role| !(name == "role" && *role == "none")) {
        Some(role) => user::check_switch(context.session.user_oid, &context.catalog, context.user.session_oid, name, role),
        None => Ok(()),
    }
}

/// SET ROLE, SET SESSION AUTHORIZATION; without a role, back to the session's or to the one that logged in.
pub fn set_user_setting(context: &StatementContext, name: &str, role: Option<&str>, scope: Scope) -> Result<()> {
    check_user_setting(context, name, role)?;
    // SET ROLE NONE is not RESET: the session may have begun with a role.
    context.session.settings.lock().set_user(name, role, scope)
}

/// SET and RESET in the body of a function.
pub fn set_in_routine(context: &StatementContext, set: &VariableSetStmt) -> Result<()> {
    let kind = VariableSetKind::try_from(set.kind).unwrap_or(VariableSetKind::Undefined);
    let name = set.name.to_ascii_lowercase();
    let scope = if set.is_local { Scope::Transaction } else { Scope::Session };
    let resets = matches!(kind, VariableSetKind::VarSetDefault | VariableSetKind::VarReset);
    match name.as_str() {
        "transaction" if kind == VariableSetKind::VarSetMulti => {
            mode_arguments(&set.args).iter().try_for_each(|(name, text)| set_mode_in_routine(context, name, text))
        }
        mode if MODES.contains(&mode) && kind == VariableSetKind::VarSetValue => {
            set_mode_in_routine(context, mode, &argument_text(&context.session.settings.lock(), mode, &set.args)?)
        }
        "role" | "session_authorization" if resets => set_user_setting(context, &name, None, scope),
        _ if kind == VariableSetKind::VarSetValue => {
            let text = argument_text(&context.session.settings.lock(), &set.name, &set.args)?;
            set_text(context, &set.name, &text, scope)
        }
        _ if resets => context.session.settings.lock().reset(&set.name, scope),
        _ if kind == VariableSetKind::VarResetAll => {
            context.session.settings.lock().reset_all();
            Ok(())
        }
        _ => Err(DbError::unsupported("this form of SET in a function")),
    }
}

/// A function runs in a query, after which no mode changes any more, but that the transaction may become read-only.
fn set_mode_in_routine(context: &StatementContext, name: &str, text: &str) -> Result<()> {
    let settings = context.session.settings.lock();
    let value = settings.check(settings.get_id(name)?, text)?;
    if *settings.get(name) == value {
        return Ok(());
    }
    let message = match name {
        "transaction_isolation" => "SET TRANSACTION ISOLATION LEVEL must be called before any query",
        "transaction_read_only" if value.as_bool() => {
            return Err(DbError::unsupported("SET TRANSACTION READ ONLY in a function"));
        }
        "transaction_read_only" => "transaction read-write mode must be set before any query",
        _ => "SET TRANSACTION [NOT] DEFERRABLE must be called before any query",
    };
    Err(err!(ACTIVE_SQL_TRANSACTION, "{message}"))
}

/// Settings that are the transaction's modes.
pub const MODES: [&str; 3] = ["transaction_isolation", "transaction_read_only", "transaction_deferrable"];

/// The modes that BEGIN, START TRANSACTION and SET TRANSACTION name, as pairs of setting and value.
pub fn mode_arguments(args: &[Node]) -> Vec<(String, String)> {
    args.iter()
        .filter_map(|arg| match &arg.node {
            Some(NodeEnum::DefElem(d)) => Some((d.defname.clone(), constant_text(d.arg.as_ref()?.node.as_ref()?)?)),
            _ => None,
        })
        .collect()
}

/// The change that the listed modes make.
pub fn modes_of(args: &[Node]) -> Result<impl FnOnce(&mut Modes) + use<>> {
    let mut changes = Vec::new();
    for (name, text) in mode_arguments(args) {
        let value = match name.as_str() {
            "transaction_isolation" => Value::Text(text.into()),
            _ => Value::Bool(text == "1" || text == "true" || text == "on"),
        };
        changes.push(mode_change(&name, &value));
    }
    Ok(move |modes: &mut Modes| changes.into_iter().for_each(|change| change(modes)))
}

/// The change that a setting makes.
pub fn mode_change(name: &str, value: &Value) -> Box<dyn FnOnce(&mut Modes)> {
    let on = value.as_bool();
    match name {
        "transaction_isolation" => {
            let isolation = IsolationLevel::from_name(value.as_text());
            Box::new(move |m| m.isolation = isolation.unwrap_or(m.isolation))
        }
        "transaction_read_only" => Box::new(move |m| m.read_only = on),
        _ => Box::new(move |m| m.deferrable = on),
    }
}
