//! Dictionaries: what they make of tokens. The templates are PostgreSQL's simple and snowball.

use std::borrow::Cow;

use melba_catalog::TextSearchDictionary;
use melba_catalog::text_search_options::{TextSearchOption, parse_options};
use melba_fmgr::ScalarFn;
use melba_types::boolean;
use melba_types::case::lower;
use melba_types::{Datum, DbError, Result, bail, err};
use waken_snowball::Algorithm;

use crate::stop_words::{self, StopWords};

/// pg_ts_template.
const SIMPLE: u32 = 3727;
const SNOWBALL: u32 = 13269;

/// The functions that check the options of a dictionary, by their names in pg_ts_template.
pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("dsimple_init", |_, a| Dictionary::simple(&parse_options(a[0].as_str())?).map(|_| Datum::Null)),
    ("dsnowball_init", |_, a| Dictionary::snowball(&parse_options(a[0].as_str())?).map(|_| Datum::Null)),
];

/// Longer tokens are no words: they are not stemmed, as in PostgreSQL.
const STEMMED_BYTES_MAX: usize = 1000;

/// A dictionary with its options read.
#[derive(Clone, Copy, Debug)]
pub struct Dictionary {
    stop_words: Option<&'static StopWords>,
    kind: DictionaryKind,
}

#[derive(Clone, Copy, Debug)]
enum DictionaryKind {
    /// Words become lower case; `accepts`: others than stop words are known.
    Simple {
        accepts: bool,
    },
    Snowball(Algorithm),
}

/// What a dictionary makes of a token.
#[derive(Debug, PartialEq, Eq)]
pub enum Lexized<'a> {
    Unknown,
    StopWord,
    Lexeme(Cow<'a, str>),
}

impl Dictionary {
    /// # Errors
    /// 0A000 for a template that is not supported; 22023 for options that it has not, F0000 without the list of stop words.
    pub fn new(dictionary: &TextSearchDictionary) -> Result<Dictionary> {
        let options = parse_options(dictionary.options.as_deref().unwrap_or(""))?;
        match dictionary.template.0 {
            SIMPLE => Dictionary::simple(&options),
            SNOWBALL => Dictionary::snowball(&options),
            _ => Err(DbError::unsupported("text search dictionaries of this template")),
        }
    }

    fn simple(options: &[TextSearchOption]) -> Result<Dictionary> {
        let (mut stop_words, mut accepts) = (None, None);
        for TextSearchOption { name, value, .. } in options {
            match &**name {
                "stopwords" => once(&mut stop_words, "StopWords", words(value)?)?,
                "accept" => once(&mut accepts, "Accept", boolean(name, value)?)?,
                _ => bail!(INVALID_PARAMETER_VALUE, "unrecognized simple dictionary parameter: \"{name}\""),
            }
        }
        Ok(Dictionary { stop_words: stop_words.flatten(), kind: DictionaryKind::Simple { accepts: accepts.unwrap_or(true) } })
    }

    fn snowball(options: &[TextSearchOption]) -> Result<Dictionary> {
        let (mut stop_words, mut language) = (None, None);
        for TextSearchOption { name, value, .. } in options {
            match &**name {
                "stopwords" => once(&mut stop_words, "StopWords", words(value)?)?,
                "language" => once(&mut language, "Language", algorithm(value)?)?,
                _ => bail!(INVALID_PARAMETER_VALUE, "unrecognized Snowball parameter: \"{name}\""),
            }
        }
        let language = language.ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "missing Language parameter"))?;
        Ok(Dictionary { stop_words: stop_words.flatten(), kind: DictionaryKind::Snowball(language) })
    }

    pub fn lexize<'a>(&self, token: &'a str) -> Lexized<'a> {
        let word = lower_case(token);
        if matches!(self.kind, DictionaryKind::Snowball(_)) && token.len() > STEMMED_BYTES_MAX {
            return Lexized::Lexeme(word);
        }
        if word.is_empty() || self.stop_words.is_some_and(|stop_words| stop_words.contains(&word)) {
            return Lexized::StopWord;
        }
        match self.kind {
            DictionaryKind::Simple { accepts: true } => Lexized::Lexeme(word),
            DictionaryKind::Simple { accepts: false } => Lexized::Unknown,
            DictionaryKind::Snowball(algorithm) => Lexized::Lexeme(stem(algorithm, word)),
        }
    }
}

fn stem(algorithm: Algorithm, word: Cow<'_, str>) -> Cow<'_, str> {
    match word {
        Cow::Borrowed(word) => {
            let stem = waken_snowball::stem(algorithm, word);
            if stem.is_empty() { Cow::Borrowed(word) } else { stem }
        }
        Cow::Owned(word) => {
            let stem = waken_snowball::stem(algorithm, &word).into_owned();
            Cow::Owned(if stem.is_empty() { word } else { stem })
        }
    }
}

fn lower_case(token: &str) -> Cow<'_, str> {
    if token.bytes().all(|b| b.is_ascii() && !b.is_ascii_uppercase()) { Cow::Borrowed(token) } else { Cow::Owned(lower(token)) }
}

/// Keeps an option, which may be given once.
fn once<T>(place: &mut Option<T>, name: &str, value: T) -> Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(err!(INVALID_PARAMETER_VALUE, "multiple {name} parameters")),
    }
}

/// The list of stop words of a name; none for an empty name.
fn words(name: &str) -> Result<Option<&'static StopWords>> {
    if name.is_empty() {
        return Ok(None);
    }
    if !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_') {
        bail!(INVALID_PARAMETER_VALUE, "invalid text search configuration file name \"{name}\"");
    }
    let missing = || err!(CONFIG_FILE_ERROR, "could not open stop-word file \"{name}.stop\": No such file or directory");
    stop_words::of_name(name).map(Some).ok_or_else(missing)
}

fn boolean(name: &str, value: &str) -> Result<bool> {
    boolean::parse(value).ok_or_else(|| err!(SYNTAX_ERROR, "{name} requires a Boolean value"))
}

/// The stemmers that PostgreSQL has. Its Dutch one is called dutch_porter since Snowball 3.0, which has another one, too.
fn algorithm(language: &str) -> Result<Algorithm> {
    let lower = language.to_ascii_lowercase();
    let found = match &*lower {
        "dutch" => Some(Algorithm::DutchPorter),
        "dutch_porter" | "esperanto" | "lovins" => None,
        other => Algorithm::from_str(other),
    };
    let missing = || err!(UNDEFINED_OBJECT, "no Snowball stemmer available for language \"{language}\" and encoding \"UTF8\"");
    found.ok_or_else(missing)
}
