//! The checkers. Each is a separate file; docs/design/simulation.md numbers them.

pub mod durability;
pub mod files;
pub mod sequences;
pub mod serializable;
pub mod state;
pub mod views;

/// Nothing, or the problem.
pub type Check = Result<(), String>;

/// Fails with a message unless a condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($message:tt)*) => {
        if !$condition {
            return Err(format!($($message)*).into());
        }
    };
}
