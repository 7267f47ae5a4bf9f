//! 2201B: the errors of a regular expression.

use melba_types::{DbError, err};

pub fn invalid(reason: &str) -> DbError {
    err!(INVALID_REGULAR_EXPRESSION, "invalid regular expression: {reason}")
}

pub fn too_complex(e: impl std::fmt::Display) -> DbError {
    invalid("regular expression is too complex").detail(e.to_string())
}
