//! Finds implementations by name.
//!
//! The tables of all crates of functions are installed once per process; the maps are built from them at first use.

use std::collections::HashMap;
use std::sync::OnceLock;

use melba_types::Oid;

use crate::gin::GinSupport;
use crate::{AggregateFn, QuickFn, ScalarFn, SetFn, Tables, TypeIo, VectorFn, WindowFn, type_functions};

static INSTALLED: OnceLock<&'static [&'static Tables]> = OnceLock::new();

/// Lets the functions and types of the tables be found. The first call counts: a process has one set of tables.
pub fn install(tables: &'static [&'static Tables]) {
    INSTALLED.get_or_init(|| tables);
}

fn installed() -> impl Iterator<Item = &'static Tables> {
    INSTALLED.get().expect("the tables of functions are installed before a function is called").iter().copied()
}

type Part<F> = &'static [(&'static str, F)];

/// The functions of all crates by their names.
fn by_name<F: Copy + 'static, I: Iterator<Item = &'static Part<F>>>(
    parts: impl Fn(&'static Tables) -> I,
) -> HashMap<&'static str, F> {
    installed().flat_map(parts).flat_map(|part| part.iter().copied()).collect()
}

fn types() -> impl Iterator<Item = &'static (Oid, TypeIo)> {
    installed().flat_map(|tables| tables.types).flat_map(|part| part.iter())
}

/// The scalar function that pg_proc.prosrc names.
pub fn scalar(source: &str) -> Option<ScalarFn> {
    static MAP: OnceLock<HashMap<&str, ScalarFn>> = OnceLock::new();
    let build = || {
        // Functions in the tables take precedence over the general ones of types.
        let types: Vec<Oid> = types().map(|(oid, _)| *oid).collect();
        let mut map: HashMap<&str, ScalarFn> = type_functions::of_types(&types).into_iter().collect();
        map.extend(by_name(|tables| tables.scalars.iter().copied().flatten()));
        map
    };
    MAP.get_or_init(build).get(source).copied()
}

/// The vector form of a scalar function, when it has one.
pub fn vector(source: &str) -> Option<VectorFn> {
    static MAP: OnceLock<HashMap<&str, VectorFn>> = OnceLock::new();
    MAP.get_or_init(|| by_name(|tables| tables.vectors.iter().copied().flatten())).get(source).copied()
}

/// The form of a function of two numbers that needs no call's surroundings, when it has one.
pub fn quick(source: &str) -> Option<QuickFn> {
    static MAP: OnceLock<HashMap<&str, QuickFn>> = OnceLock::new();
    MAP.get_or_init(|| by_name(|tables| tables.quick.iter())).get(source).copied()
}

/// The set-returning function that pg_proc.prosrc names.
pub fn set_returning(source: &str) -> Option<SetFn> {
    static MAP: OnceLock<HashMap<&str, SetFn>> = OnceLock::new();
    MAP.get_or_init(|| by_name(|tables| tables.sets.iter())).get(source).copied()
}

/// The window function that pg_proc.prosrc names.
pub fn window(source: &str) -> Option<WindowFn> {
    static MAP: OnceLock<HashMap<&str, WindowFn>> = OnceLock::new();
    MAP.get_or_init(|| by_name(|tables| tables.windows.iter())).get(source).copied()
}

/// The built-in aggregate with these transition and final functions (by pg_proc.prosrc; "" when pg_aggregate has no
/// final function).
pub fn aggregate(transition: &str, final_function: &str) -> Option<AggregateFn> {
    static MAP: OnceLock<HashMap<(&str, &str), AggregateFn>> = OnceLock::new();
    let build = || {
        let rows = installed().flat_map(|tables| tables.aggregates.iter().copied().flatten()).flat_map(|part| part.iter());
        rows.map(|&(transition, final_function, make)| ((transition, final_function), make)).collect()
    };
    MAP.get_or_init(build).get(&(transition, final_function)).copied()
}

/// The operator class of GIN whose function extractValue has this pg_proc.prosrc.
pub fn gin(source: &str) -> Option<GinSupport> {
    static MAP: OnceLock<HashMap<&str, GinSupport>> = OnceLock::new();
    MAP.get_or_init(|| by_name(|tables| tables.gin.iter())).get(source).copied()
}

/// Input and output of a built-in type (or of a family, by its pseudo-type), or of a type of an extension.
#[inline]
pub fn type_io(ty: Oid) -> Option<&'static TypeIo> {
    // By OID: every row that is sent to a client looks up each of its columns.
    static BUILT_IN: OnceLock<Vec<Option<&'static TypeIo>>> = OnceLock::new();
    let is_built_in = |ty: Oid| ty.0 < melba_catalog::classes::FIRST_EXTENSION_OID;
    let build = || {
        let all = || types().filter(|(oid, _)| is_built_in(*oid));
        let mut by_oid = vec![None; all().map(|(oid, _)| oid.0 as usize + 1).max().unwrap_or(0)];
        for (oid, io) in all() {
            by_oid[oid.0 as usize] = Some(io);
        }
        by_oid
    };
    if !is_built_in(ty) {
        return of_extensions(ty);
    }
    BUILT_IN.get_or_init(build).get(ty.0 as usize).copied().flatten()
}

fn of_extensions(ty: Oid) -> Option<&'static TypeIo> {
    static MAP: OnceLock<HashMap<Oid, &'static TypeIo>> = OnceLock::new();
    MAP.get_or_init(|| types().map(|(oid, io)| (*oid, io)).collect()).get(&ty).copied()
}
