//! text, varchar, bpchar, name and "char".

pub mod case;
pub mod collation;
mod compare;
pub mod encoding;
mod format;
pub mod functions;
pub mod io;
pub mod like;
pub mod regexp;

use melba_fmgr::ScalarFn;

pub const TABLES: &[&[(&str, ScalarFn)]] = &[
    case::FUNCTIONS,
    compare::COLLATED,
    compare::COMPARISONS,
    compare::FUNCTIONS,
    encoding::FUNCTIONS,
    format::FUNCTIONS,
    functions::FUNCTIONS,
    io::FUNCTIONS,
    like::FUNCTIONS,
    regexp::FUNCTIONS,
];
