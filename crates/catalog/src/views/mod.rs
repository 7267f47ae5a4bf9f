//! The queries of the built-in views.

use melba_types::Oid;

/// The SELECT of a built-in view.
pub(crate) fn query(_namespace: Oid, _name: &str) -> Option<&'static str> {
    None
}
