//! What a language keeps for a session between calls: compiled bodies, frames. Only the language's own modules know what that is.

use std::any::Any;
use std::sync::OnceLock;

/// Of one language, made when it is first asked for.
#[derive(Default)]
pub(super) struct LanguageState(OnceLock<Box<dyn Any + Send + Sync>>);

impl LanguageState {
    /// A language asks for one type only.
    pub fn get<T: Default + Send + Sync + 'static>(&self) -> &T {
        self.0.get_or_init(|| Box::new(T::default())).downcast_ref().expect("a language asks for one type only")
    }

    /// The same, `None` when the session has not used the language yet.
    pub fn used<T: 'static>(&self) -> Option<&T> {
        self.0.get()?.downcast_ref()
    }
}
