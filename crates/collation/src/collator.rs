//! The order and the letters' case of one locale.

use std::cmp::Ordering;

use icu_casemap::options::TitlecaseOptions;
use icu_casemap::{CaseMapper, TitlecaseMapper};
use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, Strength};
use icu_collator::{CollatorBorrowed, CollatorPreferences};
use icu_locale_core::extensions::unicode::{Key, Value};
use icu_locale_core::{LanguageIdentifier, Locale};
use melba_types::collate::Collate;
use unicode_segmentation::UnicodeSegmentation;

use crate::locale::{LocaleError, parse};

/// A locale with the properties of a row of pg_collation.
#[derive(Debug)]
pub struct Collator {
    order: CollatorBorrowed<'static>,
    language: LanguageIdentifier,
    deterministic: bool,
}

/// Orders of whole languages that are not in the data: a fallback to the language's usual one would be another order.
const MISSING_ORDERS: &[&str] = &["search", "searchjl", "gb2312", "big5han"];
/// Keywords of ICU whose effect is not known here. Those of `kk` decide how fast ICU is, not how it orders.
const MISSING_KEYWORDS: &[&str] = &["kb", "kh", "kr", "vt"];

impl Collator {
    /// `deterministic`: texts that the locale has equal are ordered by their bytes.
    ///
    /// # Errors
    /// Values that a keyword of the tag does not have, keywords that are not supported. A tag that is none has the root order, as in ICU.
    pub fn new(tag: &str, deterministic: bool) -> Result<Collator, LocaleError> {
        let locale = parse(tag).unwrap_or(Locale::UNKNOWN);
        let options = options(&locale)?;
        let order = CollatorBorrowed::try_new(CollatorPreferences::from(&locale), options).map_err(|_| LocaleError::Illegal)?;
        Ok(Collator { order, language: locale.id, deterministic })
    }

    pub fn lower(&self, text: &str) -> String {
        CaseMapper::new().lowercase_to_string(text, &self.language).into_owned()
    }

    pub fn upper(&self, text: &str) -> String {
        CaseMapper::new().uppercase_to_string(text, &self.language).into_owned()
    }

    /// A capital at the begin of each word, by the boundaries of Unicode's annex 29.
    pub fn initcap(&self, text: &str) -> String {
        let mapper = TitlecaseMapper::new();
        let title = |word| mapper.titlecase_segment_to_string(word, &self.language, TitlecaseOptions::default());
        text.split_word_bounds().map(title).collect()
    }

    pub fn casefold(&self, text: &str) -> String {
        let is_turkic = matches!(self.language.language.as_str(), "tr" | "az");
        let mapper = CaseMapper::new();
        let folded = if is_turkic { mapper.fold_turkic_string(text) } else { mapper.fold_string(text) };
        folded.into_owned()
    }
}

impl Collate for Collator {
    fn is_deterministic(&self) -> bool {
        self.deterministic
    }

    fn compare(&self, a: &str, b: &str) -> Ordering {
        let order = self.order.compare(a, b);
        if self.deterministic { order.then_with(|| a.as_bytes().cmp(b.as_bytes())) } else { order }
    }

    fn sort_key(&self, text: &str, out: &mut Vec<u8>) {
        let Ok(()) = self.order.write_sort_key_to(text, out);
    }
}

fn options(locale: &Locale) -> Result<CollatorOptions, LocaleError> {
    let given = |key: &str| {
        let key = Key::try_from_str(key).ok()?;
        locale.extensions.unicode.keywords.get(&key).map(Value::to_string)
    };
    if let Some(keyword) = MISSING_KEYWORDS.iter().find(|k| given(k).is_some_and(|value| value != "false")) {
        return Err(LocaleError::Unsupported((*keyword).to_owned()));
    }
    match given("co") {
        Some(order) if MISSING_ORDERS.contains(&&*order) => return Err(LocaleError::Unsupported(format!("co-{order}"))),
        _ => {}
    }
    let choice = |key: &str, values: &[&str]| match given(key) {
        None => Ok(None),
        Some(value) => values.iter().position(|v| *v == value).map(Some).ok_or(LocaleError::Illegal),
    };
    const SWITCH: &[&str] = &["", "true", "false"];
    choice("kn", SWITCH)?;
    choice("kk", SWITCH)?;
    choice("kf", &["upper", "lower", "false"])?;
    let mut options = CollatorOptions::default();
    let strengths = [Strength::Primary, Strength::Secondary, Strength::Tertiary, Strength::Quaternary, Strength::Identical];
    options.strength = choice("ks", &["level1", "level2", "level3", "level4", "identic"])?.map(|at| strengths[at]);
    let handling = [AlternateHandling::NonIgnorable, AlternateHandling::Shifted];
    options.alternate_handling = choice("ka", &["noignore", "shifted"])?.map(|at| handling[at]);
    let variable = [MaxVariable::Space, MaxVariable::Punctuation, MaxVariable::Symbol, MaxVariable::Currency];
    options.max_variable = choice("kv", &["space", "punct", "symbol", "currency"])?.map(|at| variable[at]);
    options.case_level = choice("kc", SWITCH)?.map(|at| if at == 2 { CaseLevel::Off } else { CaseLevel::On });
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collator(tag: &str, deterministic: bool) -> Collator {
        Collator::new(tag, deterministic).expect("a locale")
    }

    fn key(collator: &Collator, text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        collator.sort_key(text, &mut out);
        out
    }

    #[test]
    fn keys_have_the_order_of_comparisons() {
        let texts =
            ["", "a", "A", "abc", "ABC", "äbc", "bbc", "coté", "côte", "de-luge", "deanza", "A-21", "A-123", "Z", "z", "ß"];
        for tag in ["und", "de", "sv", "fr-CA", "und-u-ks-level1", "und-u-kn", "und-u-kf-upper", "und-u-ka-shifted", "zh", "ja"] {
            let collator = collator(tag, false);
            for a in texts {
                for b in texts {
                    assert_eq!(collator.compare(a, b), key(&collator, a).cmp(&key(&collator, b)), "{tag}: {a} {b}");
                }
            }
        }
    }

    #[test]
    fn locales_order_by_their_alphabets() {
        let order = |tag, a, b| collator(tag, true).compare(a, b);
        assert_eq!(order("en", "äbc", "bbc"), Ordering::Less);
        assert_eq!(order("sv", "äbc", "bbc"), Ordering::Greater);
        assert_eq!(order("de", "Goldmann", "Götz"), Ordering::Less);
        assert_eq!(order("de-u-co-phonebk", "Goldmann", "Götz"), Ordering::Greater);
        assert_eq!(order("und-u-kn", "A-21", "A-123"), Ordering::Less);
        assert_eq!(order("und-u-kf-upper", "Z", "z"), Ordering::Less);
    }

    #[test]
    fn only_nondeterministic_ones_have_different_texts_equal() {
        let tag = "und-u-ks-level2";
        assert_eq!(collator(tag, false).compare("abc", "ABC"), Ordering::Equal);
        assert_eq!(collator(tag, true).compare("abc", "ABC"), Ordering::Greater);
        assert_eq!(collator("und", false).compare("zy\u{e4}bc", "zya\u{308}bc"), Ordering::Equal);
    }

    #[test]
    fn wrong_values_of_keywords_are_errors() {
        assert_eq!(Collator::new("und-u-kn-lower", true).err(), Some(LocaleError::Illegal));
        assert_eq!(Collator::new("und-u-ks-level9", true).err(), Some(LocaleError::Illegal));
        assert_eq!(Collator::new("und-u-kb", true).err(), Some(LocaleError::Unsupported("kb".into())));
        assert_eq!(Collator::new("und-u-co-search", true).err(), Some(LocaleError::Unsupported("co-search".into())));
    }

    #[test]
    fn letters_have_the_case_of_their_language() {
        let (english, turkish) = (collator("en", true), collator("tr", true));
        assert_eq!((&*english.lower("HIJ"), &*turkish.lower("HIJ")), ("hij", "hıj"));
        assert_eq!((&*english.upper("ß hij"), &*turkish.upper("hij")), ("SS HIJ", "HİJ"));
        assert_eq!(english.initcap("don't stop ab.cd a1b 3rd o_k ǆungla ﬁsh"), "Don't Stop Ab.cd A1b 3rd O_k ǅungla Fish");
        assert_eq!((&*english.casefold("ßI"), &*turkish.casefold("I")), ("ssi", "ı"));
    }
}
