//! The settings of one session, and how transactions undo changes to them.
//!
//! Invariants:
//! 1. `current` holds the value in force; `session` holds the value that `current` gets when the transaction commits. They differ
//!    only while a SET LOCAL is in force.
//! 2. Each level (the outermost, which is the transaction; each savepoint) remembers both as they were when the level first
//!    changed the setting, so that rolling back a level restores them.
//! 3. A value that SET has given stays; one that is the default follows it, wherever it is held: in a slot or in a level.

pub mod check;
pub mod configuration;
mod flags;
pub mod identifiers;
#[cfg(test)]
mod reference;
mod slots;
pub mod socket_options;
pub mod table;
#[cfg(test)]
mod tests;
pub mod value;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use melba_types::{DbError, Result, bail, err};

use crate::configuration::{Assignment, Configured, Place};
use crate::table::{Class, Context, Definition, REPORTED, table};
use crate::value::Value;
pub use identifiers::split_identifiers;
use slots::{Held, Slot, Slots};
use socket_options::SocketOptions;

/// A setting: its place in the table, or behind the table for settings that clients defined (`name.name`).
pub type SettingId = usize;

/// Where a value comes from, as pg_settings has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingSource {
    pub name: &'static str,
    /// File and line.
    pub file: Option<(Arc<str>, u32)>,
}

impl SettingSource {
    const fn named(name: &'static str) -> SettingSource {
        SettingSource { name, file: None }
    }

    fn of(place: &Place) -> SettingSource {
        let file = match place {
            Place::File(file, line) => Some((Arc::clone(file), *line)),
            _ => None,
        };
        SettingSource { name: place.source(), file }
    }
}

/// The result of reloading a server's settings.
pub struct Reconfigured {
    pub settings: Settings,
    /// The changes, in the log's wording.
    pub changes: Vec<String>,
    /// Assignments, by their place in the list, that could not be applied.
    pub problems: Vec<(usize, DbError)>,
}

/// How long a change lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Session,
    /// SET LOCAL: to the end of the transaction.
    Transaction,
}

#[derive(Debug, Default)]
struct Level {
    /// `current` and `session` before the level's first change.
    saved: Vec<(SettingId, Held, Held)>,
}

#[derive(Debug)]
pub struct Settings {
    slots: Slots,
    custom_names: Vec<Arc<str>>,
    levels: Vec<Level>,
    /// Counts changes, so that users of settings know when to read them again, without taking their lock.
    version: Arc<AtomicU64>,
    /// The client's present values of the settings that are reported to it.
    reported: Vec<(SettingId, String)>,
    /// Reported settings in the order of their first change since the last report.
    changed: Vec<SettingId>,
    superuser: bool,
    /// Settings of superusers that the session's user was granted.
    granted: Vec<Arc<str>>,
    /// The client's, for settings that are options of it.
    socket: Option<Arc<dyn SocketOptions>>,
}

impl Settings {
    /// The server's settings: table defaults overridden by `changes`.
    ///
    /// # Errors
    /// The first change that is wrong.
    pub fn server(changes: &[(String, String)]) -> Result<Settings> {
        let (settings, problems) = Settings::configured(&Configured::of(changes, &Place::CommandLine));
        problems.into_iter().next().map_or(Ok(settings), |(_, problem)| Err(problem))
    }

    /// The server's settings as they are configured, and the assignments, by their place in the list, that are wrong.
    pub fn configured(configured: &Configured) -> (Settings, Vec<(usize, DbError)>) {
        let mut settings = Settings::defaults();
        let in_force = configured.in_force(|name| settings.find(name));
        let mut problems = Vec::new();
        for (at, assignment) in configured.assignments.iter().enumerate() {
            if let Err(problem) = settings.configure(assignment, in_force[at]) {
                problems.push((at, problem));
            }
        }
        (settings, problems)
    }

    /// Takes over an assignment; one that another overrides is only checked.
    fn configure(&mut self, assignment: &Assignment, in_force: bool) -> Result<()> {
        let Assignment { name, value, place } = assignment;
        let id = self.find_or_create(name)?;
        if self.definition(id).is_some_and(|d| d.context == Context::Internal || d.class == Class::Fixed) {
            bail!(CANT_CHANGE_RUNTIME_PARAM, "parameter \"{name}\" cannot be changed");
        }
        let value = self.check(id, value)?;
        if in_force {
            self.slots.configure(id, Slot::configured(value, place));
        }
        Ok(())
    }

    fn defaults() -> Settings {
        Settings {
            slots: Slots::new(table().defaults.iter().cloned().map(Slot::default).collect()),
            custom_names: Vec::new(),
            levels: vec![Level::default()],
            version: Arc::new(AtomicU64::new(1)),
            reported: Vec::new(),
            changed: Vec::new(),
            superuser: true,
            granted: Vec::new(),
            socket: None,
        }
    }

    /// The settings of a new session of this server.
    pub fn for_session(&self, superuser: bool) -> Settings {
        Settings {
            slots: self.slots.clone(),
            custom_names: self.custom_names.clone(),
            levels: vec![Level::default()],
            version: Arc::new(AtomicU64::new(1)),
            reported: Vec::new(),
            changed: Vec::new(),
            superuser,
            granted: Vec::new(),
            socket: None,
        }
    }

    /// The server's settings after the configuration files were read again. Settings that need a restart keep their value, and so
    /// do invalid ones.
    pub fn reconfigured(&self, configured: &Configured) -> Reconfigured {
        let (mut settings, problems) = Settings::configured(configured);
        let is_wrong = |id| problems.iter().any(|(at, _)| settings_id(configured, *at) == Some(id));
        let mut changes = Vec::new();
        for (id, definition) in table().definitions.iter().enumerate() {
            let (old, new) = (&self.slots[id], &settings.slots[id]);
            let name = definition.name;
            let mut kept = old.clone();
            if matches!(definition.context, Context::Postmaster | Context::Internal) {
                kept.pending_restart = new.reset != old.based_on;
                if kept.pending_restart && !old.pending_restart {
                    changes.push(format!("parameter \"{name}\" cannot be changed without restarting the server"));
                }
                settings.slots.configure(id, kept);
            } else if is_wrong(id) {
                settings.slots.configure(id, kept);
            } else if new.reset != old.reset {
                changes.push(match new.source.name {
                    "default" => format!("parameter \"{name}\" removed from configuration file, reset to default"),
                    _ => format!("parameter \"{name}\" changed to \"{}\"", value::show(definition, &new.reset)),
                });
            }
        }
        Reconfigured { settings, changes, problems }
    }

    /// Where the value comes from.
    pub fn source(&self, id: SettingId) -> SettingSource {
        let slot = &self.slots[id];
        if slot.current.is_set { SettingSource::named("session") } else { slot.source.clone() }
    }

    /// Whether it was set explicitly: it is neither a default nor derived from other settings.
    pub fn is_given(&self, id: SettingId) -> bool {
        !matches!(self.source(id).name, "default" | "override")
    }

    /// The files have another value, which needs a restart.
    pub fn is_pending_restart(&self, id: SettingId) -> bool {
        self.slots[id].pending_restart
    }

    /// Takes over the server's settings as they are now, where the session has none of its own.
    pub fn rebase(&mut self, server: &Settings) {
        let before = self.slots.share(&server.slots);
        for (id, before) in before.iter().enumerate() {
            let new = &server.slots[id];
            let has_changed = before.based_on != new.reset;
            match self.context(id) {
                // They keep the value that the session began with.
                Context::Internal | Context::Postmaster | Context::Backend | Context::SuperuserBackend => {
                    if has_changed && self.slots.is_shared(id) {
                        self.slots.own(id, before.clone());
                    }
                    if !self.slots.is_shared(id) {
                        self.slots[id].pending_restart = new.pending_restart;
                    }
                }
                _ if self.slots.is_shared(id) => {
                    if has_changed {
                        self.note_change(id);
                    }
                }
                _ => self.follow(id, new),
            }
        }
        for name in &server.custom_names {
            // Their names were checked when they were configured.
            let _ = self.find_or_create(name);
        }
        for id in table().definitions.len()..self.slots.len() {
            match server.find(self.name(id)) {
                Some(of_server) => self.follow(id, &server.slots[of_server]),
                None => self.follow(id, &Slot::custom()),
            }
        }
    }

    /// Takes over the server's default, unless the session has its own.
    fn follow(&mut self, id: SettingId, new: &Slot) {
        let slot = &mut self.slots[id];
        slot.based_on = new.reset.clone();
        if slot.of_session {
            return;
        }
        let has_changed = slot.reset != new.reset;
        slot.source = new.source.clone();
        if !has_changed {
            return;
        }
        slot.reset = new.reset.clone();
        slot.current.follow(&new.reset);
        slot.session.follow(&new.reset);
        let saved = self.levels.iter_mut().flat_map(|level| &mut level.saved);
        for (_, current, session) in saved.filter(|(saved, ..)| *saved == id) {
            current.follow(&new.reset);
            session.follow(&new.reset);
        }
        self.note_change(id);
    }

    /// The settings of superusers that the session's user may change now.
    pub fn set_granted(&mut self, granted: Vec<Arc<str>>) {
        self.granted = granted;
    }

    /// Whether the session's user is a superuser now.
    pub fn set_superuser(&mut self, superuser: bool) {
        self.superuser = superuser;
        self.set_internal("is_superuser", Value::Bool(superuser));
    }

    /// Sets `role` or `session_authorization`, which resets the role; the caller has checked permission.
    pub fn set_user(&mut self, name: &str, role: Option<&str>, scope: Scope) -> Result<()> {
        let authorization = name != "role";
        let id = self.get_id("role")?;
        let value = match role {
            Some(role) if !authorization => Value::Text(role.into()),
            _ if authorization => Value::Text("none".into()),
            _ => self.slots[id].reset.clone(),
        };
        self.assign(id, Held::set(value), scope);
        if authorization {
            let id = self.get_id("session_authorization")?;
            let value = role.map_or_else(|| self.slots[id].reset.clone(), |r| Value::Text(r.into()));
            self.assign(id, Held::set(value), scope);
        }
        Ok(())
    }

    /// A value of ALTER ROLE or ALTER DATABASE ... SET: permission was checked when it was stored. `source`: `database`, `user`
    /// or `database user`.
    pub fn set_stored(&mut self, name: &str, text: &str, source: &'static str) -> Result<()> {
        let superuser = std::mem::replace(&mut self.superuser, true);
        let result = self.set_first(name, text, source);
        self.superuser = superuser;
        result
    }

    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Where `version` comes from.
    pub fn version_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.version)
    }

    fn note_change(&mut self, id: SettingId) {
        self.version.fetch_add(1, Ordering::Release);
        if !self.changed.contains(&id) && self.definition(id).is_some_and(Definition::reported) {
            self.changed.push(id);
        }
    }

    /// None for a setting that a client defined.
    pub fn definition(&self, id: SettingId) -> Option<&'static Definition> {
        table().definitions.get(id)
    }

    fn context(&self, id: SettingId) -> Context {
        self.definition(id).map_or(Context::User, |d| d.context)
    }

    pub fn name(&self, id: SettingId) -> &str {
        match self.definition(id) {
            Some(d) => d.name,
            None => &self.custom_names[id - table().definitions.len()],
        }
    }

    /// All settings in pg_settings' order, the made-up ones last.
    pub fn ids(&self) -> std::ops::Range<SettingId> {
        0..self.slots.len()
    }

    pub fn find(&self, name: &str) -> Option<SettingId> {
        table().find(name).or_else(|| {
            let at = self.custom_names.iter().position(|n| n.eq_ignore_ascii_case(name))?;
            Some(table().definitions.len() + at)
        })
    }

    /// Like `find`, with PostgreSQL's error.
    pub fn get_id(&self, name: &str) -> Result<SettingId> {
        self.find(name).ok_or_else(|| err!(UNDEFINED_OBJECT, "unrecognized configuration parameter \"{name}\""))
    }

    fn find_or_create(&mut self, name: &str) -> Result<SettingId> {
        if let Some(id) = self.find(name) {
            return Ok(id);
        }
        require_custom_name(name)?;
        self.custom_names.push(name.into());
        Ok(self.slots.push(Slot::custom()))
    }

    pub fn value(&self, id: SettingId) -> &Value {
        &self.slots[id].current.value
    }

    pub fn reset_value(&self, id: SettingId) -> &Value {
        &self.slots[id].reset
    }

    /// The value of a built-in setting.
    pub fn get(&self, name: &str) -> &Value {
        match self.find(name) {
            Some(id) => self.value(id),
            None => panic!("no setting is called {name}"),
        }
    }

    /// The value as SHOW prints it.
    pub fn show(&self, id: SettingId) -> String {
        match self.definition(id) {
            Some(d) if d.name == "seed" => "unavailable".to_owned(),
            Some(d) => match self.of_socket(d.name) {
                Some(value) => value.to_string(),
                None => value::show(d, self.value(id)),
            },
            None => value::plain(self.value(id)),
        }
    }

    /// The value as pg_settings.setting has it, of a setting of the table.
    pub fn setting(&self, definition: &Definition, value: &Value) -> String {
        match self.of_socket(definition.name) {
            Some(value) => value.to_string(),
            None => value::setting(definition, value),
        }
    }

    /// The client's socket has the options that these settings say from now on.
    pub fn set_socket(&mut self, socket: Arc<dyn SocketOptions>) {
        self.socket = Some(socket);
        self.apply_to_socket();
    }

    /// The connection ends, and its socket is not kept open by this.
    pub fn forget_socket(&mut self) {
        self.socket = None;
    }

    /// To be called when settings have changed.
    pub fn apply_to_socket(&self) {
        let Some(socket) = &self.socket else { return };
        for (name, option) in socket_options::SETTINGS {
            socket.set(option, self.get(name).as_integer());
        }
    }

    /// The value in force of a setting that is an option of the client's socket.
    fn of_socket(&self, name: &str) -> Option<i64> {
        let (_, option) = socket_options::SETTINGS.into_iter().find(|(setting, _)| *setting == name)?;
        let socket = self.socket.as_ref()?;
        self.apply_to_socket();
        Some(socket.get(option))
    }

    /// Reads and checks a value, without setting it.
    pub fn check(&self, id: SettingId, text: &str) -> Result<Value> {
        match self.definition(id) {
            Some(d) => {
                let slot = &self.slots[id];
                let value = check::check(d, value::parse(d, text)?, &slot.current.value, &slot.reset)?;
                d.check_supported(&value, &table().defaults[id])?;
                Ok(value)
            }
            None => Ok(Value::Text(text.into())),
        }
    }

    /// May this session change the setting now?
    fn permit(&self, id: SettingId) -> Result<()> {
        let name = self.name(id);
        match self.context(id) {
            Context::User => Ok(()),
            Context::Superuser if self.superuser || self.granted.iter().any(|g| g.eq_ignore_ascii_case(name)) => Ok(()),
            Context::Superuser => Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to set parameter \"{name}\"")),
            Context::Internal => Err(err!(CANT_CHANGE_RUNTIME_PARAM, "parameter \"{name}\" cannot be changed")),
            Context::Postmaster => {
                Err(err!(CANT_CHANGE_RUNTIME_PARAM, "parameter \"{name}\" cannot be changed without restarting the server"))
            }
            Context::Sighup => Err(err!(CANT_CHANGE_RUNTIME_PARAM, "parameter \"{name}\" cannot be changed now")),
            Context::Backend | Context::SuperuserBackend => {
                Err(err!(CANT_CHANGE_RUNTIME_PARAM, "parameter \"{name}\" cannot be set after connection start"))
            }
        }
    }

    /// Whether a value may be kept for later sessions, by ALTER ROLE or DATABASE ... SET; `None`: whether one that was kept may be removed. What
    /// no module has defined yet may turn out to be for superusers: only they may keep it.
    ///
    /// # Errors
    /// Those of SET.
    pub fn check_kept(&self, name: &str, text: Option<&str>) -> Result<()> {
        let Some(id) = table().find(name) else {
            require_custom_name(name)?;
            return match self.superuser {
                true => Ok(()),
                false => Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to set parameter \"{name}\"")),
            };
        };
        self.permit(id)?;
        text.map_or(Ok(()), |text| self.check(id, text).map(drop))
    }

    /// Whether ALTER SYSTEM may write a value for later sessions, or, `None`, take one back.
    ///
    /// # Errors
    /// PostgreSQL's.
    pub fn check_configured(&self, name: &str, text: Option<&str>) -> Result<()> {
        let Some(id) = table().find(name) else { return require_custom_name(name) };
        if table().definitions[id].is_refused_by_alter_system() {
            bail!(CANT_CHANGE_RUNTIME_PARAM, "parameter \"{name}\" cannot be changed");
        }
        text.map_or(Ok(()), |text| self.check(id, text).map(drop))
    }

    /// SET name = text.
    pub fn set(&mut self, name: &str, text: &str, scope: Scope) -> Result<()> {
        let id = self.find_or_create(name)?;
        self.permit(id)?;
        let value = self.check(id, text)?;
        self.assign(id, Held::set(value), scope);
        Ok(())
    }

    /// SET name TO DEFAULT, RESET name.
    pub fn reset(&mut self, name: &str, scope: Scope) -> Result<()> {
        let id = self.find_or_create(name)?;
        self.permit(id)?;
        if matches!(self.name(id), "transaction_isolation" | "transaction_read_only" | "transaction_deferrable" | "seed") {
            bail!(FEATURE_NOT_SUPPORTED, "parameter \"{}\" cannot be reset", self.name(id));
        }
        let value = self.slots[id].reset.clone();
        self.assign(id, Held::default(value), scope);
        Ok(())
    }

    pub fn reset_all(&mut self) {
        for id in self.ids() {
            let fixed = matches!(
                self.name(id),
                "transaction_isolation"
                    | "transaction_read_only"
                    | "transaction_deferrable"
                    | "role"
                    | "session_authorization"
                    | "is_superuser"
                    | "seed"
            );
            let slot = &self.slots[id];
            if !fixed && self.permit(id).is_ok() && (slot.current.is_set || slot.session.is_set) {
                self.assign(id, Held::default(slot.reset.clone()), Scope::Session);
            }
        }
    }

    /// A value given at connection start: RESET comes back to it.
    pub fn set_at_start(&mut self, name: &str, text: &str) -> Result<()> {
        self.set_first(name, text, "client")
    }

    fn set_first(&mut self, name: &str, text: &str, source: &'static str) -> Result<()> {
        let id = self.find_or_create(name)?;
        if !matches!(self.context(id), Context::Backend | Context::SuperuserBackend) {
            self.permit(id)?;
        }
        let value = self.check(id, text)?;
        self.put(id, value, source);
        Ok(())
    }

    /// Sets a value that the server itself determines (the user, the transaction's modes): without a permission check or undo.
    pub fn set_internal(&mut self, name: &str, value: Value) {
        let id = self.find(name).expect("a setting of the table");
        if self.slots[id].current.value != value {
            self.put(id, value, "override");
        }
    }

    fn put(&mut self, id: SettingId, value: Value, source: &'static str) {
        let Slot { based_on, pending_restart, .. } = &self.slots[id];
        let (based_on, pending_restart) = (based_on.clone(), *pending_restart);
        let slot = Slot::new(value, SettingSource::named(source));
        self.slots[id] = Slot { of_session: true, based_on, pending_restart, ..slot };
        self.note_change(id);
    }

    fn assign(&mut self, id: SettingId, held: Held, scope: Scope) {
        let slot = &mut self.slots[id];
        if let Some(level) = self.levels.last_mut()
            && !level.saved.iter().any(|(saved, ..)| *saved == id)
        {
            level.saved.push((id, slot.current.clone(), slot.session.clone()));
        }
        if scope == Scope::Session {
            slot.session = held.clone();
        }
        slot.current = held;
        self.note_change(id);
    }

    /// A savepoint begins.
    pub fn push_level(&mut self) {
        self.levels.push(Level::default());
    }

    /// The transaction ends well, and the next one begins.
    pub fn commit(&mut self) {
        while !self.levels.is_empty() {
            self.commit_level();
        }
        self.push_level();
    }

    /// The transaction is undone, and the next one begins.
    pub fn rollback(&mut self) {
        while !self.levels.is_empty() {
            self.rollback_level();
        }
        self.push_level();
    }

    /// The innermost level ends well.
    pub fn commit_level(&mut self) {
        let Some(level) = self.levels.pop() else { return };
        match self.levels.last_mut() {
            Some(outer) => {
                for saved in level.saved {
                    if !outer.saved.iter().any(|(id, ..)| *id == saved.0) {
                        outer.saved.push(saved);
                    }
                }
            }
            None => {
                for (id, ..) in level.saved {
                    let slot = &mut self.slots[id];
                    slot.current = slot.session.clone();
                    self.note_change(id);
                }
            }
        }
    }

    /// A function with SET clauses ends: the settings of its clauses are restored, unless it has set them for the session. Others
    /// stay as it has set them.
    pub fn end_local_level(&mut self, clauses: &[SettingId]) {
        let Some(level) = self.levels.pop() else { return };
        for (id, current, session) in level.saved {
            let slot = &mut self.slots[id];
            if clauses.contains(&id) {
                slot.current = if slot.session == session { current.clone() } else { slot.session.clone() };
            }
            if (slot.current != current || slot.session != session)
                && let Some(outer) = self.levels.last_mut()
                && !outer.saved.iter().any(|(saved, ..)| *saved == id)
            {
                outer.saved.push((id, current, session));
            }
            self.note_change(id);
        }
    }

    pub fn rollback_level(&mut self) {
        let Some(level) = self.levels.pop() else { return };
        for (id, current, session) in level.saved {
            let slot = &mut self.slots[id];
            (slot.current, slot.session) = (current, session);
            self.note_change(id);
        }
    }

    /// Calls `report` for each reported setting whose value the client does not know yet, those changed last first.
    pub fn report_changes(&mut self, mut report: impl FnMut(&str, &str)) {
        let mut changed = std::mem::take(&mut self.changed);
        if self.reported.is_empty() {
            self.reported = REPORTED.iter().filter_map(|n| Some((self.find(n)?, "\0".to_owned()))).collect();
            changed = self.reported.iter().rev().map(|(id, _)| *id).collect();
        }
        let mut reported = std::mem::take(&mut self.reported);
        for id in changed.into_iter().rev() {
            let now = self.show(id);
            if let Some((_, known)) = reported.iter_mut().find(|(reported, _)| *reported == id)
                && *known != now
            {
                report(self.name(id), &now);
                *known = now;
            }
        }
        self.reported = reported;
    }
}

/// The setting that an assignment is about.
fn settings_id(configured: &Configured, at: usize) -> Option<SettingId> {
    table().find(&configured.assignments[at].name)
}

/// Whether SET could take the name: that of a setting, or one that any setting of an extension may have.
pub fn is_settable_name(name: &str) -> bool {
    table().find(name).is_some() || require_custom_name(name).is_ok()
}

/// An error unless a setting that is not in the table may have this name.
fn require_custom_name(name: &str) -> Result<()> {
    if !name.contains('.') {
        return Err(err!(UNDEFINED_OBJECT, "unrecognized configuration parameter \"{name}\""));
    }
    if !valid_custom_name(name) {
        return Err(err!(INVALID_NAME, "invalid configuration parameter name \"{name}\"")
            .detail("Custom parameter names must be two or more simple identifiers separated by dots."));
    }
    match reserved_prefix(name) {
        Some(prefix) => Err(err!(INVALID_NAME, "invalid configuration parameter name \"{name}\"")
            .detail(format!("\"{prefix}\" is a reserved prefix."))),
        None => Ok(()),
    }
}

/// The modules that are part of the server have all their settings in the table.
fn reserved_prefix(name: &str) -> Option<&'static str> {
    const RESERVED: [&str; 4] = ["auto_explain", "pg_stat_statements", "pg_trgm", "plpgsql"];
    let (prefix, _) = name.split_once('.')?;
    RESERVED.into_iter().find(|reserved| reserved.eq_ignore_ascii_case(prefix))
}

fn valid_custom_name(name: &str) -> bool {
    name.split('.').all(|part| {
        let mut chars = part.chars();
        chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii())
            && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii())
    })
}
