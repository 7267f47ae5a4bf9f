//! Arrays.

pub mod functions;
pub mod io;
