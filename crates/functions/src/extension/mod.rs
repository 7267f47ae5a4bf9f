//! What the functions of extensions do (`melba_catalog::available_extensions`): found by pg_proc.prosrc like built-in ones.

mod citext;
mod uuid_ossp;

use melba_types::Oid;

use crate::io::TypeIo;
use crate::{ScalarFn, SetFn};

pub const TABLES: &[&[(&str, ScalarFn)]] = &[citext::FUNCTIONS, uuid_ossp::FUNCTIONS];

pub const SETS: &[(&str, SetFn)] = citext::SETS;

pub const TYPES: &[(Oid, TypeIo)] = citext::TYPES;
