//! The options of ts_headline.

use melba_catalog::text_search_options::parse_options;
use melba_fmgr::integer::int4_in;
use melba_types::{Result, bail, err};

pub(super) struct Options {
    pub words_max: i32,
    pub words_min: i32,
    /// Bytes of words that no headline should end with.
    pub short_word: usize,
    pub fragments_max: i32,
    pub start: String,
    pub stop: String,
    pub delimiter: String,
    /// The whole document is the headline.
    pub shows_all: bool,
}

/// Bytes of a mark at most.
const MARK_BYTES_MAX: usize = 32767;

impl Options {
    pub fn new(text: &str) -> Result<Options> {
        let mut options = Options {
            words_max: 35,
            words_min: 15,
            short_word: 3,
            fragments_max: 0,
            start: "<b>".to_owned(),
            stop: "</b>".to_owned(),
            delimiter: " ... ".to_owned(),
            shows_all: false,
        };
        let mut short_word = 3;
        for option in parse_options(text)? {
            let (name, value) = (option.name, option.value);
            match &*name.to_ascii_lowercase() {
                "maxwords" => options.words_max = int4_in(&value)?,
                "minwords" => options.words_min = int4_in(&value)?,
                "shortword" => short_word = int4_in(&value)?,
                "maxfragments" => options.fragments_max = int4_in(&value)?,
                "startsel" => options.start = value,
                "stopsel" => options.stop = value,
                "fragmentdelimiter" => options.delimiter = value,
                "highlightall" => {
                    let yes = ["1", "on", "true", "t", "y", "yes"];
                    options.shows_all = yes.iter().any(|word| value.eq_ignore_ascii_case(word));
                }
                _ => bail!(INVALID_PARAMETER_VALUE, "unrecognized headline parameter: \"{name}\""),
            }
        }
        if !options.shows_all {
            options.check(short_word)?;
        }
        options.short_word = usize::try_from(short_word).unwrap_or(0);
        Ok(options)
    }

    fn check(&self, short_word: i32) -> Result<()> {
        if self.words_min >= self.words_max {
            bail!(INVALID_PARAMETER_VALUE, "MinWords must be less than MaxWords");
        }
        if self.words_min <= 0 {
            bail!(INVALID_PARAMETER_VALUE, "MinWords must be positive");
        }
        if short_word < 0 {
            bail!(INVALID_PARAMETER_VALUE, "ShortWord must be >= 0");
        }
        if self.fragments_max < 0 {
            bail!(INVALID_PARAMETER_VALUE, "MaxFragments must be >= 0");
        }
        Ok(())
    }

    /// # Errors
    /// 22023 for marks that are too long.
    pub fn check_lengths(&self) -> Result<()> {
        let marks = [("StartSel", &self.start), ("StopSel", &self.stop), ("FragmentDelimiter", &self.delimiter)];
        match marks.iter().find(|(_, value)| value.len() > MARK_BYTES_MAX) {
            Some((name, _)) => Err(err!(INVALID_PARAMETER_VALUE, "value for \"{name}\" is too long")),
            None => Ok(()),
        }
    }
}
