//! Arrays.

pub mod functions;
pub mod io;
pub mod subscript;
