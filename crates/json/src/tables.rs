//! All tables of this crate, by module.

use melba_fmgr::Tables;

pub static TABLES: Tables = Tables {
    scalars: &[
        &[crate::access::FUNCTIONS, crate::access::COMPARISONS, crate::build::FUNCTIONS, crate::cast::FUNCTIONS],
        &[crate::edit::FUNCTIONS, crate::populate::FUNCTIONS, crate::subscript::FUNCTIONS, crate::text::FUNCTIONS],
        &[crate::jsonpath::FUNCTIONS, crate::jsonpath::QUERY_FUNCTIONS, crate::construct::FUNCTIONS],
    ],
    sets: &[crate::expand::SETS, crate::populate::SETS, crate::jsonpath::SETS],
    aggregates: &[&[crate::aggregates::AGGREGATES]],
    types: &[crate::TYPES, crate::jsonpath::TYPES],
    gin: &[crate::gin::CLASSES],
    ..Tables::NONE
};
