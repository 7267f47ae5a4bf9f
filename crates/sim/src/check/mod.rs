//! What must hold. Each checker is a file of its own; docs/design/simulation.md numbers them.

pub mod durability;
pub mod files;
pub mod sequences;
pub mod serializable;
pub mod state;
pub mod views;

/// Nothing, or what is wrong.
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
