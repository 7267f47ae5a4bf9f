//! Where implementations are found by name.
//!
//! Every module of built-ins contributes constant tables; the maps are built from them at first use. To add a function,
//! add a row to the table of its module; to add a module, add its tables to the lists below.

use std::collections::HashMap;
use std::sync::OnceLock;

use melba_types::Oid;

use crate::window::WindowFn;
use crate::{AggregateFn, ScalarFn, SetFn, TypeIo, VectorFn};

/// Tables of scalar functions by module, keyed by pg_proc.prosrc.
const SCALARS: &[&[&[(&str, ScalarFn)]]] = &[
    &[crate::bool::FUNCTIONS, crate::bool::COMPARISONS],
    &[crate::any::FUNCTIONS],
    &[crate::array::functions::FUNCTIONS],
    crate::bytea::TABLES,
    crate::catalog::TABLES,
    &[crate::enums::FUNCTIONS, crate::record::FUNCTIONS, crate::regs::FUNCTIONS],
    crate::datetime::TABLES,
    &[crate::format::FUNCTIONS],
    crate::float::TABLES,
    &[crate::hash::FUNCTIONS],
    crate::int::TABLES,
    crate::json::TABLES,
    &[crate::jsonpath::FUNCTIONS],
    &[crate::bits::FUNCTIONS, crate::bits::COMPARISONS, crate::inet::FUNCTIONS, crate::inet::COMPARISONS],
    crate::range::TABLES,
    &[crate::uuid::FUNCTIONS, crate::uuid::COMPARISONS],
    &[crate::math::FUNCTIONS],
    &[crate::money::FUNCTIONS, crate::money::COMPARISONS],
    crate::numeric::TABLES,
    &[crate::oid::FUNCTIONS, crate::oid::COMPARISONS],
    crate::text::TABLES,
    &[crate::type_functions::FUNCTIONS, crate::varlena::FUNCTIONS],
];

/// Tables of vector functions, keyed like the scalar function each equals.
const VECTORS: &[&[&[(&str, VectorFn)]]] = &[&[crate::datetime::VECTORS], crate::vector::TABLES];

/// Tables of set-returning functions, keyed by pg_proc.prosrc.
const SETS: &[&[(&str, SetFn)]] = &[
    crate::oid::SETS,
    crate::catalog::SETS,
    crate::setreturning::SETS,
    crate::text::regexp::SETS,
    crate::datetime::SETS,
    crate::json::SETS,
    crate::jsonpath::SETS,
    crate::range::SETS,
    crate::json::RECORD_SETS,
    crate::system::SETS,
];

/// Tables of window functions, keyed by pg_proc.prosrc.
const WINDOWS: &[&[(&str, WindowFn)]] = &[crate::window::FUNCTIONS];

/// Tables of aggregates, keyed by the sources of the transition and the final function ("" when there is none).
/// Transition function, final function, implementation.
type AggregateEntry = (&'static str, &'static str, AggregateFn);

const AGGREGATES: &[&[&[AggregateEntry]]] = &[crate::aggregate::TABLES, &[crate::json::AGGREGATES, crate::range::AGGREGATES]];

/// Tables of type input and output. Type families that users extend are keyed by their pseudo-type: ANYARRAY, ANYENUM,
/// ANYRANGE, ANYMULTIRANGE, RECORD.
const TYPES: &[&[(Oid, TypeIo)]] = &[
    crate::array::io::TYPES,
    crate::bool::TYPES,
    crate::bytea::TYPES,
    crate::catalog::TYPES,
    crate::datetime::TYPES,
    crate::float::TYPES,
    crate::int::TYPES,
    crate::enums::TYPES,
    crate::record::TYPES,
    crate::regs::TYPES,
    crate::json::TYPES,
    crate::bits::TYPES,
    crate::inet::TYPES,
    crate::jsonpath::TYPES,
    crate::range::TYPES,
    crate::uuid::TYPES,
    crate::money::TYPES,
    crate::numeric::TYPES,
    crate::oid::TYPES,
    crate::text::io::TYPES,
];

/// What an extension implements, keyed as above. Extensions are a crate above this one.
pub struct ExtensionTables {
    pub functions: &'static [(&'static str, ScalarFn)],
    pub sets: &'static [(&'static str, SetFn)],
    pub types: &'static [(Oid, TypeIo)],
}

static EXTENSIONS: OnceLock<&'static [ExtensionTables]> = OnceLock::new();

/// Lets functions and types of extensions be found. The first call counts: every process has the same ones.
pub fn install_extensions(tables: &'static [ExtensionTables]) {
    EXTENSIONS.get_or_init(|| tables);
}

fn extensions() -> &'static [ExtensionTables] {
    EXTENSIONS.get().copied().unwrap_or_default()
}

fn of_extensions<F: Copy + 'static>(
    source: &str,
    table: impl Fn(&'static ExtensionTables) -> &'static [(&'static str, F)],
) -> Option<F> {
    extensions().iter().flat_map(table).find(|(name, _)| *name == source).map(|(_, function)| *function)
}

fn merged<K: std::hash::Hash + Eq + Copy, V: Copy>(tables: &[&[(K, V)]]) -> HashMap<K, V> {
    tables.iter().flat_map(|table| table.iter().copied()).collect()
}

/// The scalar function that pg_proc.prosrc names.
pub fn scalar(source: &str) -> Option<ScalarFn> {
    static MAP: OnceLock<HashMap<&str, ScalarFn>> = OnceLock::new();
    let build = || {
        // Functions in the tables take precedence over the general ones of types.
        let mut map: HashMap<&str, ScalarFn> = crate::type_functions::of_builtin_types().into_iter().collect();
        map.extend(SCALARS.iter().flat_map(|tables| merged(tables)));
        map
    };
    MAP.get_or_init(build).get(source).copied().or_else(|| of_extensions(source, |e| e.functions))
}

/// The vector form of a scalar function, when it has one.
pub fn vector(source: &str) -> Option<VectorFn> {
    static MAP: OnceLock<HashMap<&str, VectorFn>> = OnceLock::new();
    MAP.get_or_init(|| VECTORS.iter().flat_map(|tables| merged(tables)).collect()).get(source).copied()
}

/// The set-returning function that pg_proc.prosrc names.
pub fn set_returning(source: &str) -> Option<SetFn> {
    static MAP: OnceLock<HashMap<&str, SetFn>> = OnceLock::new();
    MAP.get_or_init(|| merged(SETS)).get(source).copied().or_else(|| of_extensions(source, |e| e.sets))
}

/// The window function that pg_proc.prosrc names.
pub fn window(source: &str) -> Option<WindowFn> {
    static MAP: OnceLock<HashMap<&str, WindowFn>> = OnceLock::new();
    MAP.get_or_init(|| merged(WINDOWS)).get(source).copied()
}

/// The built-in aggregate with these transition and final functions (by pg_proc.prosrc; "" when pg_aggregate has no
/// final function).
pub fn aggregate(transition: &str, final_function: &str) -> Option<AggregateFn> {
    static MAP: OnceLock<HashMap<(&str, &str), AggregateFn>> = OnceLock::new();
    let map = MAP.get_or_init(|| {
        AGGREGATES
            .iter()
            .flat_map(|tables| tables.iter())
            .flat_map(|table| table.iter().map(|&(t, f, make)| ((t, f), make)))
            .collect()
    });
    map.get(&(transition, final_function)).copied()
}

/// Input and output of a built-in type (or of a family, by its pseudo-type).
#[inline]
pub fn type_io(ty: Oid) -> Option<&'static TypeIo> {
    // By OID: every row that goes to a client asks for each of its columns.
    static TABLE: OnceLock<Vec<Option<&'static TypeIo>>> = OnceLock::new();
    let build = || {
        let all = || TYPES.iter().flat_map(|table| table.iter());
        let mut by_oid = vec![None; all().map(|(oid, _)| oid.0 as usize + 1).max().unwrap_or(0)];
        for (oid, io) in all() {
            by_oid[oid.0 as usize] = Some(io);
        }
        by_oid
    };
    if ty.0 >= melba_catalog::classes::FIRST_EXTENSION_OID {
        return extensions().iter().flat_map(|e| e.types).find(|(oid, _)| *oid == ty).map(|(_, io)| io);
    }
    TABLE.get_or_init(build).get(ty.0 as usize).copied().flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use melba_catalog::FunctionKind;

    use super::*;

    /// Rows of pg_proc, by kind, that have an implementation here. The SQL layer implements further ones
    /// (`Session::system_function`). The numbers may only grow.
    #[test]
    fn most_of_pg_proc_is_implemented() {
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
        let mut seen = HashSet::new();
        for (name, _) in SCALARS.iter().flat_map(|tables| tables.iter()).flat_map(|t| t.iter()) {
            assert!(seen.insert(*name), "{name} is registered twice");
        }
        assert!(scalar("int4pl").is_some());
        assert!(scalar("no_such_function").is_none());
    }
}
