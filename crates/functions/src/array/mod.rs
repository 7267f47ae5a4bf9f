//! Arrays.

pub mod functions;
pub mod gin;
pub mod io;
