//! Arrays.

pub mod io;
