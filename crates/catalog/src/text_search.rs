//! Text search: parsers, templates, dictionaries and configurations, which map types of tokens to dictionaries.

use std::sync::{Arc, OnceLock};

use melba_types::Oid;

use crate::classes::PG_CATALOG;
use crate::seed::seed;

/// The parser "default", the only one.
pub const DEFAULT_PARSER: Oid = Oid(3722);

/// pg_ts_dict: makes lexemes of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextSearchDictionary {
    pub oid: Oid,
    pub name: Arc<str>,
    pub namespace: Oid,
    pub owner: Oid,
    /// pg_ts_template.
    pub template: Oid,
    /// `language = 'danish', stopwords = 'danish'`.
    pub options: Option<Arc<str>>,
}

/// pg_ts_config with its rows of pg_ts_config_map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextSearchConfig {
    pub oid: Oid,
    pub name: Arc<str>,
    pub namespace: Oid,
    pub owner: Oid,
    pub parser: Oid,
    /// The dictionaries that are asked in turn, by the type of a token. In the order of types.
    pub map: Vec<(i32, Vec<Oid>)>,
}

/// The built-in dictionaries and configurations.
struct BuiltIn {
    dictionaries: Vec<Arc<TextSearchDictionary>>,
    configs: Vec<Arc<TextSearchConfig>>,
}

fn built_in() -> &'static BuiltIn {
    static BUILT_IN: OnceLock<BuiltIn> = OnceLock::new();
    BUILT_IN.get_or_init(|| BuiltIn { dictionaries: dictionaries(), configs: configs() })
}

fn dictionaries() -> Vec<Arc<TextSearchDictionary>> {
    let seed = seed!("pg_ts_dict");
    let dictionaries = seed.rows().map(|r| {
        Arc::new(TextSearchDictionary {
            oid: r.oid("oid"),
            name: r.text("dictname"),
            namespace: r.oid("dictnamespace"),
            owner: r.oid("dictowner"),
            template: r.oid("dicttemplate"),
            options: r.optional("dictinitoption").map(Arc::from),
        })
    });
    dictionaries.collect()
}

fn configs() -> Vec<Arc<TextSearchConfig>> {
    let mut configs: Vec<TextSearchConfig> = seed!("pg_ts_config")
        .rows()
        .map(|r| TextSearchConfig {
            oid: r.oid("oid"),
            name: r.text("cfgname"),
            namespace: r.oid("cfgnamespace"),
            owner: r.oid("cfgowner"),
            parser: r.oid("cfgparser"),
            map: Vec::new(),
        })
        .collect();
    // The rows are in the order of configurations, types and numbers.
    for r in seed!("pg_ts_config_map").rows() {
        let Some(config) = configs.iter_mut().find(|config| config.oid == r.oid("mapcfg")) else { continue };
        let (ty, dictionary) = (r.number("maptokentype"), r.oid("mapdict"));
        match config.map.last_mut() {
            Some(last) if last.0 == ty => last.1.push(dictionary),
            _ => config.map.push((ty, vec![dictionary])),
        }
    }
    configs.into_iter().map(Arc::new).collect()
}

impl crate::Catalog {
    pub fn text_search_config(&self, oid: Oid) -> Option<&Arc<TextSearchConfig>> {
        built_in().configs.iter().find(|config| config.oid == oid)
    }

    pub fn text_search_dictionary(&self, oid: Oid) -> Option<&Arc<TextSearchDictionary>> {
        built_in().dictionaries.iter().find(|dictionary| dictionary.oid == oid)
    }

    pub fn text_search_config_by_name(&self, namespace: Oid, name: &str) -> Option<&Arc<TextSearchConfig>> {
        built_in().configs.iter().find(|config| config.namespace == namespace && *config.name == *name)
    }

    pub fn text_search_dictionary_by_name(&self, namespace: Oid, name: &str) -> Option<&Arc<TextSearchDictionary>> {
        built_in().dictionaries.iter().find(|dictionary| dictionary.namespace == namespace && *dictionary.name == *name)
    }

    /// The configuration of a bare name.
    pub fn find_text_search_config(&self, path: &[Oid], name: &str) -> Option<&Arc<TextSearchConfig>> {
        path.iter().find_map(|namespace| self.text_search_config_by_name(*namespace, name))
    }

    /// The dictionary of a bare name.
    pub fn find_text_search_dictionary(&self, path: &[Oid], name: &str) -> Option<&Arc<TextSearchDictionary>> {
        path.iter().find_map(|namespace| self.text_search_dictionary_by_name(*namespace, name))
    }

    /// The parser of a bare name.
    pub fn find_text_search_parser(&self, path: &[Oid], name: &str) -> Option<Oid> {
        (name == "default" && path.contains(&PG_CATALOG)).then_some(DEFAULT_PARSER)
    }

    /// The template of a bare name.
    pub fn find_text_search_template(&self, path: &[Oid], name: &str) -> Option<Oid> {
        let seed = seed!("pg_ts_template");
        let found = seed.rows().find(|r| r.str("tmplname") == name).map(|r| r.oid("oid"));
        found.filter(|_| path.contains(&PG_CATALOG))
    }
}
