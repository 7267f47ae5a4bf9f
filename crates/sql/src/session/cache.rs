//! Query strings seen before: parsed, and analyzed if that did not depend on the session.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::parse::Parsed;

use super::prepared::Prepared;

/// Strings longer than this are not worth their memory.
const TEXT_BYTES_MAX: usize = 16 << 10;
const ENTRIES_MAX: usize = 512;
const TEXT_BYTES_TOTAL_MAX: usize = 1 << 20;

/// One query string.
#[derive(Clone, Debug)]
pub(super) struct CachedQuery {
    pub parsed: Arc<Parsed>,
    /// When it is a single statement that went through analysis.
    pub prepared: Option<Arc<Prepared>>,
}

/// When it is full it starts anew: the strings that come all the time are back at once.
#[derive(Debug, Default)]
pub(super) struct StatementCache {
    queries: HashMap<Arc<str>, CachedQuery>,
    text_bytes: usize,
}

impl StatementCache {
    pub fn get(&self, text: &str) -> Option<&CachedQuery> {
        self.queries.get(text)
    }

    pub fn put(&mut self, query: CachedQuery) {
        let text = query.parsed.text.clone();
        if text.len() > TEXT_BYTES_MAX {
            return;
        }
        if self.queries.len() >= ENTRIES_MAX || self.text_bytes > TEXT_BYTES_TOTAL_MAX {
            self.clear();
        }
        self.text_bytes += text.len();
        if self.queries.insert(text.clone(), query).is_some() {
            self.text_bytes -= text.len();
        }
    }

    pub fn clear(&mut self) {
        self.queries.clear();
        self.text_bytes = 0;
    }
}
