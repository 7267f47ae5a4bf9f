//! Query strings seen before: parsed, and analyzed if that did not depend on the session.
//!
//! Three kinds of keys share one map; a zero byte, which no text holds, keeps them apart:
//! - a text;
//! - a text without its literals, and a zero: texts that differ only in their literals share one plan, in which they are
//!   parameters;
//! - a text, a zero and the declared parameter types, for the extended protocol.

use std::sync::Arc;

use hashbrown::HashMap;
use melba_types::Oid;

use melba_parse::Parsed;

use melba_statement::prepared::Prepared;

/// Strings longer than this are not worth their memory.
const KEY_BYTES_MAX: usize = 16 << 10;
const ENTRIES_MAX: usize = 512;
const KEY_BYTES_TOTAL_MAX: usize = 1 << 20;

/// The cached content of a key.
#[derive(Clone, Debug)]
pub(super) enum Cached {
    Query {
        parsed: Arc<Parsed>,
        /// When it is a single statement that was analyzed.
        prepared: Option<Arc<Prepared>>,
    },
    /// Texts of this form depend on the values of their literals: each stands for itself.
    ByText,
}

/// When it is full it is cleared: frequent strings are back at once.
#[derive(Debug, Default)]
pub(super) struct StatementCache {
    entries: HashMap<Box<[u8]>, Cached>,
    key_bytes: usize,
}

impl StatementCache {
    pub fn get(&self, key: &[u8]) -> Option<&Cached> {
        self.entries.get(key)
    }

    pub fn put(&mut self, key: &[u8], entry: Cached) {
        if key.len() > KEY_BYTES_MAX {
            return;
        }
        if self.entries.len() >= ENTRIES_MAX || self.key_bytes > KEY_BYTES_TOTAL_MAX {
            self.clear();
        }
        if self.entries.insert(key.into(), entry).is_none() {
            self.key_bytes += key.len();
        }
    }

    pub fn clear(&mut self) {
        self.entries.clear();
        self.key_bytes = 0;
    }
}

/// The key of a Parse message.
pub(super) fn parse_key(text: &str, types: impl Iterator<Item = Oid>, key: &mut Vec<u8>) {
    key.clear();
    key.extend_from_slice(text.as_bytes());
    key.push(0);
    for ty in types {
        key.extend_from_slice(&ty.0.to_be_bytes());
    }
}
