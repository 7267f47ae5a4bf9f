//! Names of locales: ICU's old form (`de_DE@collation=phonebook`) and language tags (`de-DE-u-co-phonebk`).

use std::fmt;

use icu_locale_core::Locale;

/// Why a locale is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocaleError {
    /// No language tag, or a value that its keyword does not have: U_ILLEGAL_ARGUMENT_ERROR of ICU.
    Illegal,
    /// A keyword that ICU knows and these orders do not.
    Unsupported(String),
}

impl fmt::Display for LocaleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LocaleError::Illegal => f.write_str("U_ILLEGAL_ARGUMENT_ERROR"),
            LocaleError::Unsupported(keyword) => write!(f, "keyword \"{keyword}\" is not supported"),
        }
    }
}

/// A keyword of the old form, its key in language tags, and the values whose names differ.
type Keyword = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const KEYWORDS: &[Keyword] = &[
    ("collation", "co", &[("phonebook", "phonebk"), ("traditional", "trad"), ("dictionary", "dict"), ("gb2312han", "gb2312")]),
    (
        "colstrength",
        "ks",
        &[
            ("primary", "level1"),
            ("secondary", "level2"),
            ("tertiary", "level3"),
            ("quaternary", "level4"),
            ("identical", "identic"),
        ],
    ),
    ("colcaselevel", "kc", &[("yes", "true"), ("no", "false")]),
    ("colbackwards", "kb", &[("yes", "true"), ("no", "false")]),
    ("colcasefirst", "kf", &[("no", "false")]),
    ("colalternate", "ka", &[("non-ignorable", "noignore")]),
    ("colnumeric", "kn", &[("yes", "true"), ("no", "false")]),
    ("colnormalization", "kk", &[("yes", "true"), ("no", "false")]),
    ("colreorder", "kr", &[]),
    ("colhiraganaquaternary", "kh", &[("yes", "true"), ("no", "false")]),
];

/// Languages whose codes have changed.
const REPLACED_LANGUAGES: &[(&str, &str)] = &[("iw", "he"), ("in", "id"), ("ji", "yi"), ("jw", "jv")];

/// The language tag of a locale in either form, as uloc_toLanguageTag writes it.
pub fn language_tag(locale: &str) -> Result<String, LocaleError> {
    let (base, keywords) = locale.split_once('@').unwrap_or((locale, ""));
    let base = base.split('.').next().unwrap_or_default();
    let mut tag = match base {
        "" | "root" => "und".to_owned(),
        base if base.contains("__") => return Err(LocaleError::Illegal),
        base => base.replace('_', "-"),
    };
    let mut extension = String::new();
    for keyword in keywords.split(';').filter(|k| !k.trim().is_empty()) {
        let (name, value) = keyword.split_once('=').ok_or(LocaleError::Illegal)?;
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().to_ascii_lowercase());
        let (_, key, values) = KEYWORDS.iter().find(|(old, ..)| *old == name).ok_or(LocaleError::Illegal)?;
        let value = values.iter().find(|(old, _)| *old == value).map_or(&*value, |(_, new)| *new);
        extension.push_str(&format!("-{key}-{value}"));
    }
    if !extension.is_empty() {
        tag.push_str("-u");
        tag.push_str(&extension);
    }
    let parsed = canonical(&tag)?;
    let language = parsed.split('-').next().unwrap_or_default();
    Ok(match REPLACED_LANGUAGES.iter().find(|(old, _)| *old == language) {
        Some((_, new)) => format!("{new}{}", &parsed[language.len()..]),
        None => parsed,
    })
}

/// A language tag in its usual writing. Languages of five to eight letters, which none has, are as good as any for ICU.
fn canonical(tag: &str) -> Result<String, LocaleError> {
    let (language, rest) = tag.split_once('-').map_or((tag, None), |(language, rest)| (language, Some(rest)));
    if !(5..=8).contains(&language.len()) || !language.bytes().all(|b| b.is_ascii_alphabetic()) {
        return Ok(parse(tag)?.to_string());
    }
    let language = language.to_ascii_lowercase();
    Ok(match rest {
        None => language,
        Some(rest) => parse(&format!("und-{rest}"))?.to_string().replacen("und", &language, 1),
    })
}

/// The language of a locale in either form, in lower case; of some that is none, its first part.
pub fn language_of(locale: &str) -> String {
    locale.split(['-', '_', '@']).next().unwrap_or_default().to_ascii_lowercase()
}

pub(crate) fn parse(tag: &str) -> Result<Locale, LocaleError> {
    Locale::try_from_str(tag).map_err(|_| LocaleError::Illegal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_those_of_icu() {
        for (locale, tag) in [
            ("", "und"),
            ("root", "und"),
            ("POSIX", "posix"),
            ("EN-us", "en-US"),
            ("de_DE.utf8", "de-DE"),
            ("iw", "he"),
            ("@colNumeric=yes", "und-u-kn"),
            ("und-u-kn-true", "und-u-kn"),
            ("@colNumeric=lower", "und-u-kn-lower"),
            ("@colStrength=primary;colCaseLevel=yes", "und-u-kc-ks-level1"),
            ("de@collation=phonebook", "de-u-co-phonebk"),
        ] {
            assert_eq!(language_tag(locale).as_deref(), Ok(tag), "{locale}");
        }
        for locale in ["C", "x!y", "de__phonebook", "@colStrength=primary;nonsense=yes"] {
            assert_eq!(language_tag(locale), Err(LocaleError::Illegal), "{locale}");
        }
    }
}
