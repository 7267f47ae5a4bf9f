//! The SET clauses of functions.

use std::sync::Arc;

use melba_catalog::Function;
use melba_settings::Scope;
use melba_types::Result;

use super::context::{SessionState, StatementContext};

/// The settings of a function's SET clauses; put back when it is dropped.
pub(super) struct LocalSettings {
    session: Arc<SessionState>,
}

impl LocalSettings {
    pub fn set(context: &StatementContext, function: &Function) -> Result<LocalSettings> {
        context.session.settings.lock().push_level();
        let guard = LocalSettings { session: context.session.clone() };
        for item in &function.config {
            let (name, value) = item.split_once('=').unwrap_or((item, ""));
            guard.session.settings.lock().set(name, value, Scope::Transaction)?;
        }
        Ok(guard)
    }
}

impl Drop for LocalSettings {
    fn drop(&mut self) {
        self.session.settings.lock().end_local_level();
    }
}
