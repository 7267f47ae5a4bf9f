//! The SET clauses of functions.

use std::sync::Arc;

use melba_catalog::Function;
use melba_settings::{Scope, SettingId};
use melba_types::Result;

use super::context::{SessionState, StatementContext};

/// The settings of a function's SET clauses; put back when it is dropped.
pub struct LocalSettings {
    session: Arc<SessionState>,
    clauses: Vec<SettingId>,
}

impl LocalSettings {
    pub fn set(context: &StatementContext, function: &Function) -> Result<LocalSettings> {
        context.session.settings.lock().push_level();
        let mut guard = LocalSettings { session: context.session.clone(), clauses: Vec::with_capacity(function.config.len()) };
        for item in &function.config {
            let (name, value) = item.split_once('=').unwrap_or((item, ""));
            let mut settings = guard.session.settings.lock();
            settings.set(name, value, Scope::Transaction)?;
            guard.clauses.extend(settings.find(name));
        }
        Ok(guard)
    }
}

impl Drop for LocalSettings {
    fn drop(&mut self) {
        self.session.settings.lock().end_local_level(&self.clauses);
    }
}
