//! Configurations: the dictionaries that each type of token is given to.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use melba_catalog::Catalog;
use melba_catalog::classes::{FIRST_USER_OID, PG_CATALOG};
use melba_fmgr::Session;
use melba_functions::regs::object_named;
use melba_types::{DbError, Oid, Result, oids};
use parking_lot::RwLock;

use crate::dictionary::Dictionary;
use crate::parser::{TOKEN_TYPES, TokenType};

/// A configuration with its dictionaries.
#[derive(Debug)]
pub struct Config {
    /// By the number of a token type, less one; a type without dictionaries is ignored.
    dictionaries: [Vec<Dictionary>; TOKEN_TYPES.len()],
}

impl Config {
    /// # Errors
    /// XX000 for an OID that nothing has, those of `Dictionary::new`.
    pub fn of_oid(catalog: &Catalog, oid: Oid) -> Result<Arc<Config>> {
        static BUILT_IN: LazyLock<RwLock<HashMap<Oid, Arc<Config>>>> = LazyLock::new(RwLock::default);
        if let Some(config) = BUILT_IN.read().get(&oid) {
            return Ok(config.clone());
        }
        let config = Arc::new(Config::new(catalog, oid)?);
        // Those of users may change.
        if oid.0 < FIRST_USER_OID {
            BUILT_IN.write().insert(oid, config.clone());
        }
        Ok(config)
    }

    fn new(catalog: &Catalog, oid: Oid) -> Result<Config> {
        let config = catalog.text_search_config(oid);
        let config = config.ok_or_else(|| lookup_failed("configuration", oid))?;
        let mut dictionaries = [const { Vec::new() }; TOKEN_TYPES.len()];
        for mapping in &config.map {
            let Some(place) = dictionaries.get_mut(mapping.token_type as usize - 1) else { continue };
            *place = mapping.dictionaries.iter().map(|oid| dictionary(catalog, *oid)).collect::<Result<_>>()?;
        }
        Ok(Config { dictionaries })
    }

    pub fn dictionaries(&self, ty: TokenType) -> &[Dictionary] {
        &self.dictionaries[ty as usize - 1]
    }
}

fn lookup_failed(what: &str, oid: Oid) -> DbError {
    DbError::internal(format!("cache lookup failed for text search {what} {oid}"))
}

/// A dictionary by its OID.
///
/// # Errors
/// XX000 for an OID that nothing has, those of `Dictionary::new`.
pub fn dictionary(catalog: &Catalog, oid: Oid) -> Result<Dictionary> {
    let found = catalog.text_search_dictionary(oid);
    Dictionary::new(found.ok_or_else(|| lookup_failed("dictionary", oid))?)
}

/// The configuration that default_text_search_config names.
///
/// # Errors
/// 42704 for a name that nothing has.
pub fn current(session: &dyn Session) -> Result<Oid> {
    let name = session.setting("default_text_search_config").unwrap_or_default();
    let built_in = name.strip_prefix("pg_catalog.");
    let found = built_in.and_then(|name| session.catalog().text_search_config_by_name(PG_CATALOG, name));
    match found {
        Some(config) => Ok(config.oid),
        None => object_named(session, oids::REGCONFIG, &name),
    }
}
