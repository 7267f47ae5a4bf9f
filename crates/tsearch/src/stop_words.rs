//! Lists of stop words, by the names that dictionaries give (stopwords/README.md).

use std::collections::HashSet;
use std::sync::OnceLock;

use melba_types::case::lower;

/// Words that a dictionary takes out of documents.
#[derive(Debug)]
pub struct StopWords {
    words: HashSet<String>,
    bytes_max: usize,
}

impl StopWords {
    fn new(text: &str) -> StopWords {
        let words: HashSet<String> = text.lines().filter_map(|line| line.split_whitespace().next()).map(lower).collect();
        StopWords { bytes_max: words.iter().map(String::len).max().unwrap_or(0), words }
    }

    pub fn contains(&self, word: &str) -> bool {
        word.len() <= self.bytes_max && self.words.contains(word)
    }
}

macro_rules! lists {
    ($($name:literal),+) => {
        /// The list of a name.
        pub fn of_name(name: &str) -> Option<&'static StopWords> {
            match name {
                $($name => {
                    static WORDS: OnceLock<StopWords> = OnceLock::new();
                    Some(WORDS.get_or_init(|| StopWords::new(include_str!(concat!("../stopwords/", $name, ".stop")))))
                })+
                _ => None,
            }
        }
    };
}

lists!(
    "danish",
    "dutch",
    "english",
    "finnish",
    "french",
    "german",
    "hungarian",
    "italian",
    "nepali",
    "norwegian",
    "portuguese",
    "russian",
    "spanish",
    "swedish",
    "turkish"
);
