//! The comments on built-in objects that snapshots begin with.

use std::sync::Arc;

use crate::classes;
use crate::objects::{Description, ObjectAddress};
use crate::radix::RadixMap;

/// The comment on a built-in object that pg_dump compares with the expected one.
const PUBLIC_COMMENT: &str = "standard public schema";

/// The comments that every database has.
pub(crate) fn builtin_descriptions() -> RadixMap<Vec<Arc<Description>>> {
    let address = ObjectAddress { class: classes::PG_NAMESPACE, object: classes::PUBLIC, sub: 0 };
    let mut descriptions = RadixMap::default();
    let comment = Description { address, text: PUBLIC_COMMENT.into() };
    descriptions.entry(classes::PUBLIC.0, Vec::new).push(Arc::new(comment));
    descriptions
}

/// Whether a comment is one of those.
pub(crate) fn is_builtin(comment: &Description) -> bool {
    comment.address.object == classes::PUBLIC && *comment.text == *PUBLIC_COMMENT
}
