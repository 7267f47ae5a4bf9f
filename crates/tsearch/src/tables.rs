//! All tables of this crate, by module.

use melba_fmgr::Tables;

pub static TABLES: Tables = Tables {
    scalars: &[
        &[crate::vector_functions::FUNCTIONS, crate::vector_functions::COMPARISONS],
        &[crate::query_functions::FUNCTIONS, crate::query_functions::COMPARISONS],
        &[crate::conversion::FUNCTIONS, crate::json::FUNCTIONS, crate::headline::FUNCTIONS],
        &[
            crate::rank::FUNCTIONS,
            crate::cover::FUNCTIONS,
            crate::rewrite::FUNCTIONS,
            crate::debug::FUNCTIONS,
            crate::dictionary::FUNCTIONS,
        ],
    ],
    sets: &[crate::vector_functions::SETS, crate::debug::SETS, crate::statistics::SETS],
    gin: &[crate::gin::CLASSES],
    types: &[crate::vector_io::TYPES, crate::query_io::TYPES],
    ..Tables::NONE
};
