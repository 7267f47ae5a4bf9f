//! Text search: parsers, templates, dictionaries and configurations, which map types of tokens to dictionaries.

use std::sync::Arc;

use melba_types::Oid;

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
    /// In the order of types.
    pub map: Vec<TextSearchMapping>,
}

/// The dictionaries that tokens of a type are given to in turn, which are one or more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextSearchMapping {
    pub token_type: i32,
    pub dictionaries: Vec<Oid>,
}

impl TextSearchConfig {
    /// The dictionaries of a type of tokens.
    pub fn dictionaries(&self, token_type: i32) -> &[Oid] {
        self.map.iter().find(|mapping| mapping.token_type == token_type).map_or(&[], |mapping| &mapping.dictionaries)
    }
}

pub(crate) fn built_in_dictionaries() -> Vec<Arc<TextSearchDictionary>> {
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

pub(crate) fn built_in_configs() -> Vec<Arc<TextSearchConfig>> {
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
        let (token_type, dictionary) = (r.number("maptokentype"), r.oid("mapdict"));
        match config.map.last_mut() {
            Some(last) if last.token_type == token_type => last.dictionaries.push(dictionary),
            _ => config.map.push(TextSearchMapping { token_type, dictionaries: vec![dictionary] }),
        }
    }
    configs.into_iter().map(Arc::new).collect()
}
