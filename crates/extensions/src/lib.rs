//! The implementations of the functions of extensions (`melba_catalog::available_extensions`), found by pg_proc.prosrc like built-in ones.

mod citext;
mod fuzzystrmatch;
mod hstore;
mod intarray;
mod pg_stat_statements;
mod pg_trgm;
mod pgcrypto;
mod unaccent;
mod uuid_ossp;

use melba_fmgr::Tables;

/// The tables of all extensions.
pub static TABLES: Tables = Tables {
    scalars: &[
        &[citext::FUNCTIONS],
        &[hstore::FUNCTIONS, hstore::COMPARISONS, hstore::CONVERSIONS, hstore::RECORDS],
        &[pgcrypto::FUNCTIONS, pgcrypto::CRYPT_FUNCTIONS, pgcrypto::ARMOR_FUNCTIONS],
        &[unaccent::FUNCTIONS, uuid_ossp::FUNCTIONS, pg_stat_statements::FUNCTIONS, pg_trgm::FUNCTIONS],
        &[fuzzystrmatch::FUNCTIONS, intarray::FUNCTIONS],
    ],
    sets: &[citext::SETS, hstore::SETS, pgcrypto::ARMOR_SETS, pg_stat_statements::SETS],
    types: &[citext::TYPES, hstore::TYPES, intarray::TYPES],
    gin: &[hstore::GIN_CLASSES, pg_trgm::GIN_CLASSES, intarray::GIN_CLASSES],
    ..Tables::NONE
};

#[cfg(test)]
mod tests {
    use melba_catalog::{Object, available_extensions};

    /// pgp_ functions need separate key and packet formats; COMPATIBILITY.md says that they are refused.
    #[test]
    fn functions_of_extensions_are_implemented() {
        static ALL: &[&melba_fmgr::Tables] = &[&melba_functions::TABLES, &melba_json::TABLES, &super::TABLES];
        melba_fmgr::registry::install(ALL);
        for object in available_extensions().iter().flat_map(|e| &e.objects) {
            let Object::Function(f) = object else { continue };
            let source = &*f.source;
            let refused = ["pgp_sym_", "pgp_pub_", "pgp_key_"].iter().any(|p| source.starts_with(p));
            let found = melba_fmgr::registry::scalar(source).is_some() || melba_fmgr::registry::set_returning(source).is_some();
            let elsewhere = f.aggregate.is_some()
                    // Functions of operator classes are not called by SQL.
                    || source.starts_with("gin") || source == "gtrgm_compress"
                    // They are told from the files that a role may read, by the statement.
                    || source.starts_with("file_fdw")
                    || ["citextin", "citextout", "citextrecv", "citextsend", "hstore_recv"].contains(&&*f.name);
            assert!(found != refused || elsewhere, "{source}");
        }
    }
}
