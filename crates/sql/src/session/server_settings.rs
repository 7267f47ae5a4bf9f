//! ALTER SYSTEM: the server's settings, changed in a file.

use melba_catalog::{acl, classes};
use melba_statement::outcome::Outcome;
use melba_statement::setting_text::argument_text;
use melba_types::{DbError, Result, bail};
use pg_query::protobuf::{AlterSystemStmt, VariableSetKind};

use super::Session;

pub(super) fn run_alter_system(session: &mut Session, s: &AlterSystemStmt) -> Result<Outcome> {
    let set = s.setstmt.as_ref().ok_or_else(|| DbError::internal("ALTER SYSTEM without a setting"))?;
    let all = set.kind() == VariableSetKind::VarResetAll;
    session.refresh();
    let (catalog, user) = (session.context().catalog.clone(), session.derived.user.clone());
    let may_alter = || catalog.may_use(user.oid, classes::PG_PARAMETER_ACL, &set.name.to_ascii_lowercase(), acl::ALTER_SYSTEM);
    if !user.superuser && (all || !may_alter()) {
        match all {
            true => bail!(INSUFFICIENT_PRIVILEGE, "permission denied to perform ALTER SYSTEM RESET ALL"),
            false => bail!(INSUFFICIENT_PRIVILEGE, "permission denied to set parameter \"{}\"", set.name),
        }
    }
    if !session.state.instance.settings().get("allow_alter_system").as_bool() {
        bail!(FEATURE_NOT_SUPPORTED, "ALTER SYSTEM is not allowed in this environment");
    }
    let value = new_value(session, set)?;
    let configuration = session.state.instance.configuration()?;
    let mut assignments = configuration.read_auto()?;
    assignments.retain(|(name, _)| !all && !name.eq_ignore_ascii_case(&set.name));
    assignments.extend(value);
    configuration.write_auto(&assignments)?;
    Ok(Outcome::Done { tag: "ALTER SYSTEM".into() })
}

/// The assignment to write; `None` when one is taken back.
fn new_value(session: &Session, set: &pg_query::protobuf::VariableSetStmt) -> Result<Option<(String, String)>> {
    if set.kind() == VariableSetKind::VarResetAll {
        return Ok(None);
    }
    session.state.settings.lock().check_configured(&set.name, None)?;
    if set.kind() != VariableSetKind::VarSetValue {
        return Ok(None);
    }
    let text = argument_text(&session.state.settings.lock(), &set.name, &set.args)?;
    session.state.settings.lock().check_configured(&set.name, Some(&text))?;
    Ok(Some((set.name.clone(), text)))
}
