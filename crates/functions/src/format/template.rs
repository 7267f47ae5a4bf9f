//! Splits templates into nodes.

use melba_types::Result;
use melba_types::limits::Ticker;

/// The next element is searched among this many keys.
const KEY_STEPS: usize = 16;

/// A part of a template.
#[derive(Clone, Debug, PartialEq)]
pub enum FormatNode<K> {
    Key(TemplatePattern<K>),
    /// Punctuation.
    Separator(char),
    Space(char),
    /// Other characters, and everything in double quotes.
    Text(char),
}

/// A template pattern with its modifiers.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplatePattern<K> {
    pub key: K,
    /// As written, for messages.
    pub name: String,
    pub case: Case,
    /// FM: no padding.
    pub fill: bool,
    /// TM: localized names (always English, for any lc_time).
    pub translated: bool,
    /// TH or th: an ordinal suffix, and its case.
    pub ordinal: Option<Case>,
}

/// How a pattern was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    Upper,
    Lower,
    /// Month, Mon, Day, Dy.
    Title,
}

/// Date and time patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateKey {
    /// A.M., P.M.
    MeridiemDots,
    Meridiem,
    /// A.D., B.C.
    EraDots,
    Era,
    Century,
    Day,
    ShortDay,
    DayOfYear,
    DayOfMonth,
    DayOfWeek,
    /// FF1 to FF6.
    Fraction(u8),
    Exact,
    Hour24,
    Hour12,
    IsoDayOfYear,
    IsoDayOfWeek,
    IsoWeek,
    /// IYYY, IYY, IY, I.
    IsoYear(u8),
    Julian,
    Minute,
    MonthNumber,
    Month,
    ShortMonth,
    Millisecond,
    Microsecond,
    Offset,
    Quarter,
    RomanMonth,
    SecondsOfDay,
    Second,
    ZoneHour,
    ZoneMinute,
    Zone,
    WeekOfYear,
    WeekOfMonth,
    /// Y,YYY
    YearComma,
    /// YYYY, YYY, YY, Y.
    Year(u8),
}

/// A longer pattern comes before its prefixes.
const DATE_KEYS: &[(&str, DateKey)] = &[
    ("A.D.", DateKey::EraDots),
    ("A.M.", DateKey::MeridiemDots),
    ("AD", DateKey::Era),
    ("AM", DateKey::Meridiem),
    ("B.C.", DateKey::EraDots),
    ("BC", DateKey::Era),
    ("CC", DateKey::Century),
    ("DAY", DateKey::Day),
    ("DDD", DateKey::DayOfYear),
    ("DD", DateKey::DayOfMonth),
    ("DY", DateKey::ShortDay),
    ("D", DateKey::DayOfWeek),
    ("FF1", DateKey::Fraction(1)),
    ("FF2", DateKey::Fraction(2)),
    ("FF3", DateKey::Fraction(3)),
    ("FF4", DateKey::Fraction(4)),
    ("FF5", DateKey::Fraction(5)),
    ("FF6", DateKey::Fraction(6)),
    ("FX", DateKey::Exact),
    ("HH24", DateKey::Hour24),
    ("HH12", DateKey::Hour12),
    ("HH", DateKey::Hour12),
    ("IDDD", DateKey::IsoDayOfYear),
    ("ID", DateKey::IsoDayOfWeek),
    ("IW", DateKey::IsoWeek),
    ("IYYY", DateKey::IsoYear(4)),
    ("IYY", DateKey::IsoYear(3)),
    ("IY", DateKey::IsoYear(2)),
    ("I", DateKey::IsoYear(1)),
    ("J", DateKey::Julian),
    ("MI", DateKey::Minute),
    ("MM", DateKey::MonthNumber),
    ("MONTH", DateKey::Month),
    ("MON", DateKey::ShortMonth),
    ("MS", DateKey::Millisecond),
    ("OF", DateKey::Offset),
    ("P.M.", DateKey::MeridiemDots),
    ("PM", DateKey::Meridiem),
    ("Q", DateKey::Quarter),
    ("RM", DateKey::RomanMonth),
    ("SSSSS", DateKey::SecondsOfDay),
    ("SSSS", DateKey::SecondsOfDay),
    ("SS", DateKey::Second),
    ("TZH", DateKey::ZoneHour),
    ("TZM", DateKey::ZoneMinute),
    ("TZ", DateKey::Zone),
    ("US", DateKey::Microsecond),
    ("WW", DateKey::WeekOfYear),
    ("W", DateKey::WeekOfMonth),
    ("Y,YYY", DateKey::YearComma),
    ("YYYY", DateKey::Year(4)),
    ("YYY", DateKey::Year(3)),
    ("YY", DateKey::Year(2)),
    ("Y", DateKey::Year(1)),
];

const TITLE_KEYS: &[(&str, DateKey)] =
    &[("Day", DateKey::Day), ("Dy", DateKey::ShortDay), ("Month", DateKey::Month), ("Mon", DateKey::ShortMonth)];

/// The part of a date to which a pattern belongs, which decides the type of SQL/JSON's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatePart {
    Date,
    Time,
    Zone,
}

impl DateKey {
    pub fn part(self) -> Option<DatePart> {
        Some(match self {
            DateKey::Exact => return None,
            DateKey::MeridiemDots
            | DateKey::Meridiem
            | DateKey::Hour12
            | DateKey::Hour24
            | DateKey::Minute
            | DateKey::Second
            | DateKey::SecondsOfDay
            | DateKey::Millisecond
            | DateKey::Microsecond
            | DateKey::Fraction(_) => DatePart::Time,
            DateKey::Zone | DateKey::Offset | DateKey::ZoneHour | DateKey::ZoneMinute => DatePart::Zone,
            _ => DatePart::Date,
        })
    }

    /// Whether the pattern reads digits, so that a number before it must have its exact width.
    pub fn is_digits(self) -> bool {
        !matches!(
            self,
            DateKey::MeridiemDots
                | DateKey::Meridiem
                | DateKey::EraDots
                | DateKey::Era
                | DateKey::Day
                | DateKey::ShortDay
                | DateKey::Exact
                | DateKey::Month
                | DateKey::ShortMonth
                | DateKey::Offset
                | DateKey::RomanMonth
                | DateKey::ZoneHour
                | DateKey::Zone
        )
    }
}

/// Number patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberKey {
    Comma,
    Point,
    Zero,
    Nine,
    Blank,
    /// C, SP: accepted and ignored.
    Nothing,
    LocalePoint,
    Exponent,
    Fill,
    Group,
    Currency,
    Minus,
    Plus,
    Bracket,
    Roman,
    SignEither,
    Sign,
    Ordinal,
    Shift,
}

const NUMBER_KEYS: &[(&str, NumberKey)] = &[
    (",", NumberKey::Comma),
    (".", NumberKey::Point),
    ("0", NumberKey::Zero),
    ("9", NumberKey::Nine),
    ("B", NumberKey::Blank),
    ("C", NumberKey::Nothing),
    ("D", NumberKey::LocalePoint),
    ("EEEE", NumberKey::Exponent),
    ("FM", NumberKey::Fill),
    ("G", NumberKey::Group),
    ("L", NumberKey::Currency),
    ("MI", NumberKey::Minus),
    ("PL", NumberKey::Plus),
    ("PR", NumberKey::Bracket),
    ("RN", NumberKey::Roman),
    ("SG", NumberKey::SignEither),
    ("SP", NumberKey::Nothing),
    ("S", NumberKey::Sign),
    ("TH", NumberKey::Ordinal),
    ("V", NumberKey::Shift),
];

fn find<K: Copy>(text: &str, table: &[(&'static str, K)]) -> Option<(K, usize, Case)> {
    let bytes = text.as_bytes();
    let upper = table.iter().find(|(name, _)| text.starts_with(name)).map(|(name, key)| (*key, name.len(), Case::Upper));
    upper.or_else(|| {
        let lower = |name: &str| bytes.len() >= name.len() && name.bytes().zip(bytes).all(|(n, b)| n.to_ascii_lowercase() == *b);
        table.iter().find(|(name, _)| lower(name)).map(|(name, key)| (*key, name.len(), Case::Lower))
    })
}

/// The nodes of a date and time template.
pub fn date_template(template: &str) -> Result<Vec<FormatNode<DateKey>>> {
    let (mut nodes, mut ticker) = (Vec::new(), Ticker::new());
    let mut rest = template;
    while !rest.is_empty() {
        ticker.work(KEY_STEPS)?;
        let (mut fill, mut translated) = (false, false);
        if let Some(after) = rest.strip_prefix("FM").or_else(|| rest.strip_prefix("fm")) {
            (fill, rest) = (true, after);
        } else if let Some(after) = rest.strip_prefix("TM").or_else(|| rest.strip_prefix("tm")) {
            (translated, rest) = (true, after);
        }
        let title = TITLE_KEYS.iter().find(|(name, _)| rest.starts_with(name));
        let found = title.map(|(name, key)| (*key, name.len(), Case::Title)).or_else(|| find(rest, DATE_KEYS));
        let Some((key, length, case)) = found else {
            rest = literal(rest, true, &mut nodes);
            continue;
        };
        let name = rest[..length].to_string();
        rest = &rest[length..];
        let mut ordinal = None;
        if let Some(after) = rest.strip_prefix("TH") {
            (ordinal, rest) = (Some(Case::Upper), after);
        } else if let Some(after) = rest.strip_prefix("th") {
            (ordinal, rest) = (Some(Case::Lower), after);
        } else if let Some(after) = rest.strip_prefix("SP") {
            rest = after;
        }
        nodes.push(FormatNode::Key(TemplatePattern { key, name, case, fill, translated, ordinal }));
    }
    Ok(nodes)
}

/// The nodes of a number template.
pub fn number_template(template: &str) -> Result<Vec<FormatNode<NumberKey>>> {
    let (mut nodes, mut ticker) = (Vec::new(), Ticker::new());
    let mut rest = template;
    while !rest.is_empty() {
        ticker.work(KEY_STEPS)?;
        match find(rest, NUMBER_KEYS) {
            Some((key, length, case)) => {
                let name = rest[..length].to_string();
                nodes.push(FormatNode::Key(TemplatePattern { key, name, case, fill: false, translated: false, ordinal: None }));
                rest = &rest[length..];
            }
            None => rest = literal(rest, false, &mut nodes),
        }
    }
    Ok(nodes)
}

/// Takes the literal at the start of the template; returns the rest.
fn literal<'a, K>(text: &'a str, separators: bool, nodes: &mut Vec<FormatNode<K>>) -> &'a str {
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return "" };
    if first == '"' {
        while let Some(c) = chars.next() {
            match c {
                '"' => break,
                '\\' => nodes.push(FormatNode::Text(chars.next().unwrap_or('\\'))),
                _ => nodes.push(FormatNode::Text(c)),
            }
        }
        return chars.as_str();
    }
    let mut c = first;
    if c == '\\' && chars.as_str().starts_with('"') {
        c = '"';
        chars.next();
    }
    nodes.push(match c {
        _ if separators && is_separator(c) => FormatNode::Separator(c),
        _ if c.is_ascii() && melba_fmgr::type_io::is_space(c as u8) => FormatNode::Space(c),
        _ => FormatNode::Text(c),
    });
    chars.as_str()
}

/// Punctuation of ASCII.
pub fn is_separator(c: char) -> bool {
    c.is_ascii_punctuation()
}

/// The ordinal suffix of a number as written.
pub fn ordinal_suffix(number: &str, case: Case) -> &'static str {
    let digits: Vec<u8> = number.bytes().rev().filter(u8::is_ascii_digit).take(2).collect();
    let teen = digits.get(1) == Some(&b'1');
    let suffix = match digits.first() {
        Some(b'1') if !teen => ["ST", "st"],
        Some(b'2') if !teen => ["ND", "nd"],
        Some(b'3') if !teen => ["RD", "rd"],
        _ => ["TH", "th"],
    };
    suffix[usize::from(case == Case::Lower)]
}
