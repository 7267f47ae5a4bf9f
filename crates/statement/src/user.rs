//! The roles of a session: the role that logged in, the session's role, and the current one.

use std::sync::Arc;

use melba_catalog::Catalog;
use melba_catalog::privileges::RoleUse;
use melba_types::{Oid, Result, bail, err};

use melba_settings::Settings;

/// The roles that statements run with.
#[derive(Clone, Debug)]
pub struct User {
    /// current_user: whose privileges count.
    pub oid: Oid,
    pub name: Arc<str>,
    /// session_user, which RESET ROLE restores.
    pub session_oid: Oid,
    pub session_name: Arc<str>,
    pub superuser: bool,
    /// The running code belongs to another role than the one that called it: it may not change roles or leave temporary objects.
    pub restricted: bool,
    /// It is not the session's: a function runs with its owner's privileges.
    pub acting: bool,
}

impl User {
    /// `role` as the current user, if there is such a role.
    pub fn acting_as(&self, catalog: &Catalog, role: Oid) -> User {
        let Some(role) = catalog.role(role) else { return self.clone() };
        User { oid: role.oid, name: role.name.clone(), superuser: role.superuser, acting: true, ..self.clone() }
    }

    /// The roles that SET SESSION AUTHORIZATION and SET ROLE have left. A role that was dropped meanwhile counts as never set.
    /// `login` is whom the session was let in as.
    pub fn of(login: (Oid, &Arc<str>), settings: &Settings, catalog: &Catalog) -> User {
        let find = |setting: &str| catalog.role_by_name(settings.get(setting).as_text()).map(|r| (r.oid, r.name.clone()));
        let (session_oid, session_name) = find("session_authorization").unwrap_or((login.0, login.1.clone()));
        let (oid, name) = find("role").unwrap_or((session_oid, session_name.clone()));
        User { superuser: catalog.is_superuser(oid), oid, name, session_oid, session_name, restricted: false, acting: false }
    }
}

/// Whether a session may become `role` by SET ROLE or SET SESSION AUTHORIZATION (`setting`).
///
/// # Errors
/// 22023 when there is no such role, 42501 when this one may not be taken.
pub fn check_switch(login: Oid, catalog: &Catalog, session_user: Oid, setting: &str, role: &str) -> Result<()> {
    let Some(target) = catalog.role_by_name(role) else {
        bail!(INVALID_PARAMETER_VALUE, "role \"{role}\" does not exist");
    };
    if setting == "role" {
        if !catalog.has_role(session_user, target.oid, RoleUse::Set) {
            bail!(INSUFFICIENT_PRIVILEGE, "permission denied to set role \"{role}\"");
        }
    } else if target.oid != login && !catalog.is_superuser(login) {
        return Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to set session authorization \"{role}\""));
    }
    Ok(())
}

/// Settings that only superusers and members of pg_read_all_settings see, as PostgreSQL 18's pg_settings hides them.
const CONFIDENTIAL: [&str; 27] = [
    "config_file",
    "data_directory",
    "dynamic_library_path",
    "extension_control_path",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "jit_provider",
    "krb_server_keyfile",
    "log_directory",
    "log_filename",
    "metrics_token_file",
    "oauth_validator_libraries",
    "output_plugin_libraries",
    "primary_conninfo",
    "session_preload_libraries",
    "shared_preload_libraries",
    "ssl_ciphers",
    "ssl_dh_params_file",
    "ssl_groups",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "ssl_passphrase_command",
    "ssl_tls13_ciphers",
    "traces_endpoint",
    "traces_headers_file",
    "unix_socket_directories",
];

/// Whether a role may see a setting's value.
pub(super) fn sees_setting(catalog: &Catalog, role: Oid, name: &str) -> bool {
    const READ_ALL_SETTINGS: Oid = Oid(3374);
    !CONFIDENTIAL.contains(&name) || catalog.has_role(role, READ_ALL_SETTINGS, RoleUse::Inherit)
}

/// Whether a role may see what the sessions of another one do.
pub(super) fn sees_activity_of(catalog: &Catalog, role: Oid, other: Oid) -> bool {
    const READ_ALL_STATS: Oid = Oid(3375);
    [other, READ_ALL_STATS].iter().any(|wanted| catalog.has_role(role, *wanted, RoleUse::Inherit))
}

/// # Errors
/// 42501 when the role may not see the setting's value.
pub(super) fn check_sees_setting(catalog: &Catalog, role: Oid, name: &str) -> Result<()> {
    if sees_setting(catalog, role, name) {
        return Ok(());
    }
    let detail = "Only roles with privileges of the \"pg_read_all_settings\" role may examine this parameter.";
    Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to examine \"{name}\"").detail(detail))
}
