//! text, varchar, bpchar, name and "char".

pub mod io;

use crate::ScalarFn;

pub const TABLES: &[&[(&str, ScalarFn)]] = &[io::FUNCTIONS];
