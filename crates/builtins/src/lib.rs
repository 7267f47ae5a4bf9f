//! Gathers the tables of all function crates and installs them where `melba_fmgr::registry` finds them.
//!
//! Only crates that start sessions, and tests, depend on this crate. Crates that plan, execute or store call functions through
//! `melba_fmgr` and are not recompiled when a function changes.

use melba_fmgr::testing::FixedSession;
use melba_fmgr::{Tables, registry};

/// To add a crate of functions, add its tables here.
static ALL: &[&Tables] = &[&melba_functions::TABLES, &melba_json::TABLES, &melba_tsearch::TABLES, &melba_extensions::TABLES];

/// Lets the functions and types of all crates be found in this process. May be called any number of times.
pub fn install() {
    registry::install(ALL);
}

/// A session for tests that has all functions.
pub fn test_session() -> FixedSession {
    install();
    FixedSession::default()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use melba_catalog::FunctionKind;

    use melba_fmgr::registry::{aggregate, scalar, set_returning, window};

    use super::*;

    /// Rows of pg_proc, by kind, that have an implementation. The SQL layer implements further ones
    /// (`Session::system_function`). The numbers may only grow.
    #[test]
    fn most_of_pg_proc_is_implemented() {
        install();
        let catalog = melba_catalog::Catalog::default();
        let source = |oid| catalog.function(oid).map_or("", |f| &f.source);
        let mut implemented = [0; 4];
        for function in catalog.functions() {
            let sql_defined = format!("{}_{}", function.name, function.oid);
            let (place, found) = match function.kind {
                FunctionKind::Window => (0, window(&function.source).is_some()),
                FunctionKind::Aggregate => {
                    let info = function.aggregate.as_ref();
                    (1, info.is_some_and(|a| aggregate(source(a.transition), source(a.final_function)).is_some()))
                }
                _ if function.returns_set => (2, set_returning(&function.source).is_some()),
                _ => (3, scalar(&function.source).or_else(|| scalar(&sql_defined)).is_some()),
            };
            implemented[place] += usize::from(found);
        }
        println!("window functions, aggregates, set-returning functions, others: {implemented:?}");
        let least = [15, 140, 35, 1400];
        assert!(implemented.iter().zip(least).all(|(n, least)| *n >= least), "{implemented:?}");
    }

    #[test]
    fn no_function_is_registered_twice() {
        install();
        let mut seen = HashSet::new();
        for (name, _) in ALL.iter().flat_map(|tables| tables.scalars.iter().copied().flatten()).flat_map(|t| t.iter()) {
            assert!(seen.insert(*name), "{name} is registered twice");
        }
        assert!(scalar("int4pl").is_some());
        assert!(scalar("no_such_function").is_none());
    }
}
