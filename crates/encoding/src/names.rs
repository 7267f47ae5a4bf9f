//! PostgreSQL's encodings: their numbers, names and aliases, and the sources of their mappings.

use encoding_rs::{self as rs, Encoding as Base};

use crate::forms::Forms;

/// One of PostgreSQL's encodings, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Encoding(u8);

pub const SQL_ASCII: Encoding = Encoding(0);
pub const UTF8: Encoding = Encoding(6);

pub(crate) struct Entry {
    name: &'static str,
    /// Further names, as compared: lower case, without punctuation.
    aliases: &'static [&'static str],
    forms: Forms,
    /// The source of the mapping; none for those that cannot be converted.
    base: Option<&'static Base>,
}

const fn entry(name: &'static str, aliases: &'static [&'static str], forms: Forms, base: Option<&'static Base>) -> Entry {
    Entry { name, aliases, forms, base }
}

/// In the order of their numbers (pg_enc).
static ENCODINGS: [Entry; 42] = [
    entry("SQL_ASCII", &[], Forms::Single, None),
    entry("EUC_JP", &[], Forms::EucJp, Some(rs::EUC_JP)),
    entry("EUC_CN", &[], Forms::Euc, Some(rs::GBK)),
    entry("EUC_KR", &[], Forms::Euc, Some(rs::EUC_KR)),
    entry("EUC_TW", &[], Forms::Euc, None),
    entry("EUC_JIS_2004", &[], Forms::EucJp, None),
    entry("UTF8", &["unicode"], Forms::Utf8, None),
    entry("MULE_INTERNAL", &[], Forms::Single, None),
    entry("LATIN1", &["iso88591"], Forms::Single, Some(rs::WINDOWS_1252)),
    entry("LATIN2", &["iso88592"], Forms::Single, Some(rs::ISO_8859_2)),
    entry("LATIN3", &["iso88593"], Forms::Single, Some(rs::ISO_8859_3)),
    entry("LATIN4", &["iso88594"], Forms::Single, Some(rs::ISO_8859_4)),
    entry("LATIN5", &["iso88599"], Forms::Single, Some(rs::WINDOWS_1254)),
    entry("LATIN6", &["iso885910"], Forms::Single, Some(rs::ISO_8859_10)),
    entry("LATIN7", &["iso885913"], Forms::Single, Some(rs::ISO_8859_13)),
    entry("LATIN8", &["iso885914"], Forms::Single, Some(rs::ISO_8859_14)),
    entry("LATIN9", &["iso885915"], Forms::Single, Some(rs::ISO_8859_15)),
    entry("LATIN10", &["iso885916"], Forms::Single, Some(rs::ISO_8859_16)),
    entry("WIN1256", &["windows1256"], Forms::Single, Some(rs::WINDOWS_1256)),
    entry("WIN1258", &["abc", "tcvn", "tcvn5712", "vscii", "windows1258"], Forms::Single, Some(rs::WINDOWS_1258)),
    entry("WIN866", &["alt", "windows866"], Forms::Single, Some(rs::IBM866)),
    entry("WIN874", &["windows874"], Forms::Single, Some(rs::WINDOWS_874)),
    entry("KOI8R", &["koi8"], Forms::Single, Some(rs::KOI8_R)),
    entry("WIN1251", &["win", "windows1251"], Forms::Single, Some(rs::WINDOWS_1251)),
    entry("WIN1252", &["windows1252"], Forms::Single, Some(rs::WINDOWS_1252)),
    entry("ISO_8859_5", &[], Forms::Single, Some(rs::ISO_8859_5)),
    entry("ISO_8859_6", &[], Forms::Single, Some(rs::ISO_8859_6)),
    entry("ISO_8859_7", &[], Forms::Single, Some(rs::ISO_8859_7)),
    entry("ISO_8859_8", &[], Forms::Single, Some(rs::ISO_8859_8)),
    entry("WIN1250", &["windows1250"], Forms::Single, Some(rs::WINDOWS_1250)),
    entry("WIN1253", &["windows1253"], Forms::Single, Some(rs::WINDOWS_1253)),
    entry("WIN1254", &["windows1254"], Forms::Single, Some(rs::WINDOWS_1254)),
    entry("WIN1255", &["windows1255"], Forms::Single, Some(rs::WINDOWS_1255)),
    entry("WIN1257", &["windows1257"], Forms::Single, Some(rs::WINDOWS_1257)),
    entry("KOI8U", &[], Forms::Single, Some(rs::KOI8_U)),
    entry("SJIS", &["mskanji", "shiftjis", "win932", "windows932"], Forms::Sjis, Some(rs::SHIFT_JIS)),
    entry("BIG5", &["win950", "windows950"], Forms::Double, Some(rs::BIG5)),
    entry("GBK", &["win936", "windows936"], Forms::Double, Some(rs::GBK)),
    entry("UHC", &["win949", "windows949"], Forms::Double, Some(rs::EUC_KR)),
    entry("GB18030", &[], Forms::Gb18030, Some(rs::GB18030)),
    entry("JOHAB", &[], Forms::Euc, None),
    entry("SHIFT_JIS_2004", &[], Forms::Sjis, None),
];

/// Pairs that PostgreSQL converts without UTF8 between them.
const DIRECT: [&[&str]; 3] = [&["KOI8R", "WIN1251", "WIN866", "ISO_8859_5"], &["LATIN2", "WIN1250"], &["EUC_JP", "SJIS"]];

impl Encoding {
    /// By a name as users write it: case and punctuation do not count.
    pub fn by_name(name: &str) -> Option<Encoding> {
        let plain = |s: &str| s.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect::<String>();
        let wanted = plain(name);
        let has_name = |e: &Entry| plain(e.name) == wanted || e.aliases.contains(&&*wanted);
        ENCODINGS.iter().position(has_name).map(|at| Encoding(at as u8))
    }

    pub fn by_number(number: i32) -> Option<Encoding> {
        u8::try_from(number).ok().filter(|n| usize::from(*n) < ENCODINGS.len()).map(Encoding)
    }

    pub fn number(self) -> i32 {
        i32::from(self.0)
    }

    pub fn name(self) -> &'static str {
        self.entry().name
    }

    pub(crate) fn forms(self) -> Forms {
        self.entry().forms
    }

    pub(crate) fn base(self) -> Option<&'static Base> {
        self.entry().base
    }

    /// For tables that have an entry for each encoding.
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    pub(crate) const COUNT: usize = ENCODINGS.len();

    fn entry(self) -> &'static Entry {
        &ENCODINGS[usize::from(self.0)]
    }
}

pub(crate) fn has_conversion(from: Encoding, to: Encoding) -> bool {
    if from == UTF8 || to == UTF8 {
        let other = if from == UTF8 { to } else { from };
        return other.name() != "MULE_INTERNAL";
    }
    DIRECT.iter().any(|group| group.contains(&from.name()) && group.contains(&to.name()))
}
