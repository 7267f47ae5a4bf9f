//! Settings that roles, databases and functions keep (ALTER ... SET).

use melba_types::Result;
use pg_query::protobuf::{VariableSetKind, VariableSetStmt};

use crate::context::Ddl;

/// What a role or a database keeps of a SET clause, if the user may; `None` for RESET and DEFAULT.
pub fn kept_setting(ddl: &Ddl<'_>, set: &VariableSetStmt) -> Result<Option<String>> {
    let text = setting_text(ddl, set)?;
    let value = text.as_deref().and_then(|text| text.split_once('=')).map(|(_, value)| value);
    ddl.check_kept_setting(&set.name, value)?;
    Ok(text)
}

/// Whether RESET ALL removes what a role or a database keeps.
pub fn may_reset(ddl: &Ddl<'_>, kept: &str) -> bool {
    kept.split_once('=').is_none_or(|(name, _)| ddl.check_kept_setting(name, None).is_ok())
}

/// `name=value` of a SET clause; `None` for RESET and DEFAULT.
pub fn setting_text(ddl: &Ddl<'_>, set: &VariableSetStmt) -> Result<Option<String>> {
    match set.kind() {
        VariableSetKind::VarSetValue => Ok(Some(format!("{}={}", set.name, ddl.setting_text(&set.name, &set.args)?))),
        VariableSetKind::VarSetCurrent => Ok(ddl.session().setting(&set.name).map(|v| format!("{}={v}", set.name))),
        _ => Ok(None),
    }
}
