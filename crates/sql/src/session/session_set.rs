//! SET and RESET of a session, which may change its transaction's modes and its user.

use melba_settings::Scope;
use melba_statement::set::{MODES, mode_arguments, mode_change, modes_of, set_text, set_user_setting};
use melba_statement::setting_text::{argument_text, constant_text};
use melba_types::{Result, bail};
use pg_query::protobuf::{Node, VariableSetKind, VariableSetStmt};

use super::Session;

pub(super) fn run_set(session: &mut Session, set: &VariableSetStmt) -> Result<()> {
    let kind = VariableSetKind::try_from(set.kind).unwrap_or(VariableSetKind::Undefined);
    let scope = if set.is_local { Scope::Transaction } else { Scope::Session };
    match (kind, set.name.as_str()) {
        (VariableSetKind::VarSetMulti, "TRANSACTION") => {
            let change = modes_of(&set.args)?;
            session.set_modes(change)?;
        }
        (VariableSetKind::VarSetMulti, "SESSION CHARACTERISTICS") => set_characteristics(session, &set.args)?,
        (VariableSetKind::VarSetMulti, _) => {
            let name = set.args.first().and_then(|a| constant_text(a.node.as_ref()?)).unwrap_or_default();
            session.adopt_snapshot(&name)?;
        }
        (VariableSetKind::VarSetDefault | VariableSetKind::VarReset, "role" | "session_authorization") => {
            switch_user(session, &set.name, None, scope)?;
        }
        (VariableSetKind::VarSetDefault | VariableSetKind::VarReset, "transaction_isolation") => {
            if kind == VariableSetKind::VarSetDefault {
                bail!(FEATURE_NOT_SUPPORTED, "parameter \"{}\" cannot be set", set.name);
            }
            session.state.settings.lock().reset(&set.name, scope)?;
        }
        (VariableSetKind::VarSetDefault | VariableSetKind::VarReset, name) => {
            session.state.settings.lock().reset(name, scope)?;
        }
        (VariableSetKind::VarResetAll, _) => session.state.settings.lock().reset_all(),
        // SET x FROM CURRENT exists only in CREATE FUNCTION.
        (VariableSetKind::VarSetValue, name) => {
            let text = argument_text(&session.state.settings.lock(), name, &set.args)?;
            set_text_or_mode(session, name, &text, scope)?;
        }
        _ => bail!(SYNTAX_ERROR, "SET has no such form"),
    }
    session.refresh();
    Ok(())
}

fn set_text_or_mode(session: &mut Session, name: &str, text: &str, scope: Scope) -> Result<()> {
    let lower = name.to_ascii_lowercase();
    if !MODES.contains(&&*lower) {
        session.refresh();
        return set_text(session.context(), name, text, scope);
    }
    let settings = session.state.settings.lock();
    let value = settings.check(settings.get_id(&lower)?, text)?;
    drop(settings);
    let change = mode_change(&lower, &value);
    session.set_modes(change)
}

pub(super) fn switch_user(session: &mut Session, name: &str, role: Option<&str>, scope: Scope) -> Result<()> {
    session.refresh();
    set_user_setting(session.context(), name, role, scope)
}

pub(super) fn switch_user_to_default(session: &mut Session) -> Result<()> {
    switch_user(session, "session_authorization", None, Scope::Session)
}

fn set_characteristics(session: &mut Session, args: &[Node]) -> Result<()> {
    let mut settings = session.state.settings.lock();
    for (name, text) in mode_arguments(args) {
        settings.set(&format!("default_{name}"), &text, Scope::Session)?;
    }
    Ok(())
}
