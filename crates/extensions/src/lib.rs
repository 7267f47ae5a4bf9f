//! What the functions of extensions do (`melba_catalog::available_extensions`): found by pg_proc.prosrc like built-in ones, which
//! `install` lets `melba_functions::registry` do.

mod citext;
mod hstore;
mod pgcrypto;
mod unaccent;
mod uuid_ossp;

use melba_functions::registry::{self, ExtensionTables};

static TABLES: &[ExtensionTables] = &[
    ExtensionTables { functions: citext::FUNCTIONS, sets: citext::SETS, types: citext::TYPES },
    ExtensionTables { functions: hstore::FUNCTIONS, sets: hstore::SETS, types: hstore::TYPES },
    ExtensionTables { functions: hstore::COMPARISONS, sets: &[], types: &[] },
    ExtensionTables { functions: hstore::CONVERSIONS, sets: &[], types: &[] },
    ExtensionTables { functions: hstore::RECORDS, sets: &[], types: &[] },
    ExtensionTables { functions: pgcrypto::FUNCTIONS, sets: &[], types: &[] },
    ExtensionTables { functions: pgcrypto::CRYPT_FUNCTIONS, sets: &[], types: &[] },
    ExtensionTables { functions: pgcrypto::ARMOR_FUNCTIONS, sets: pgcrypto::ARMOR_SETS, types: &[] },
    ExtensionTables { functions: unaccent::FUNCTIONS, sets: &[], types: &[] },
    ExtensionTables { functions: uuid_ossp::FUNCTIONS, sets: &[], types: &[] },
];

/// Makes the functions and types of extensions known to this process. May be called any number of times.
pub fn install() {
    registry::install_extensions(TABLES);
}

#[cfg(test)]
mod tests {
    use melba_catalog::{Object, available_extensions};

    /// pgp_ needs a key format and a packet format of their own; COMPATIBILITY.md says that they are refused.
    #[test]
    fn functions_of_extensions_are_implemented() {
        super::install();
        for object in available_extensions().iter().flat_map(|e| &e.objects) {
            let Object::Function(f) = object else { continue };
            let source = &*f.source;
            let refused = ["pgp_sym_", "pgp_pub_", "pgp_key_"].iter().any(|p| source.starts_with(p));
            let found = super::registry::scalar(source).is_some() || super::registry::set_returning(source).is_some();
            let elsewhere =
                f.aggregate.is_some() || ["citextin", "citextout", "citextrecv", "citextsend", "hstore_recv"].contains(&&*f.name);
            assert!(found != refused || elsewhere, "{source}");
        }
    }
}
