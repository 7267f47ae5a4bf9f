//! How an encoding's characters consist of bytes.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forms {
    Utf8,
    Single,
    /// Two bytes from the upper half each.
    Euc,
    /// The same, with half-width katakana behind 8E and three bytes behind 8F.
    EucJp,
    Sjis,
    /// A byte of the upper half and any other.
    Double,
    Gb18030,
}

fn is_euc(byte: u8) -> bool {
    (0xa1..=0xfe).contains(&byte)
}

impl Forms {
    /// How long the first byte says that the character is (two bytes, where they say it).
    pub fn width(self, bytes: &[u8]) -> usize {
        let high = bytes[0] >= 0x80;
        match (self, bytes[0]) {
            (_, 0..0x80) | (Forms::Single, _) | (Forms::Sjis, 0xa1..=0xdf) => 1,
            (Forms::Utf8, 0xc0..=0xdf) => 2,
            (Forms::Utf8, 0xe0..=0xef) => 3,
            (Forms::Utf8, 0xf0..=0xf7) => 4,
            (Forms::Utf8, _) => 1,
            (Forms::EucJp, 0x8f) | (Forms::Euc, 0x8f) => 3,
            // Whether it is four is known when the second byte has come.
            (Forms::Gb18030, _) if bytes.get(1).is_some_and(u8::is_ascii_digit) => 4,
            _ => 1 + usize::from(high),
        }
    }

    /// The same for a message about bytes that are no character.
    pub fn width_of_start(self, bytes: &[u8]) -> usize {
        self.width(bytes).min(bytes.len())
    }

    /// Length of the character at the start of `bytes`; `None` if there is none.
    pub fn character(self, bytes: &[u8]) -> Option<usize> {
        let width = self.width(bytes);
        let sequence = bytes.get(..width)?;
        let valid = match (self, sequence) {
            (_, [0]) => false,
            (_, [0x01..0x80]) => true,
            (Forms::Single, _) => true,
            (Forms::Utf8, _) => std::str::from_utf8(sequence).is_ok(),
            (Forms::Euc, [a, b]) => is_euc(*a) && is_euc(*b),
            (Forms::EucJp, [0x8e, b]) => (0xa1..=0xdf).contains(b),
            (Forms::EucJp, [0x8f, a, b] | [a, b]) => is_euc(*a) && is_euc(*b),
            (Forms::Sjis, [_]) => true,
            (Forms::Sjis, [a, b]) => matches!(a, 0x81..=0x9f | 0xe0..=0xfc) && matches!(b, 0x40..=0x7e | 0x80..=0xfc),
            (Forms::Double, [a, b]) => *b != 0 && (*a, *b) != (0x8d, b' '),
            (Forms::Gb18030, [a, b]) => matches!(a, 0x81..=0xfe) && matches!(b, 0x40..=0x7e | 0x80..=0xfe),
            (Forms::Gb18030, [a, _, c, d]) => matches!(a, 0x81..=0xfe) && matches!(c, 0x81..=0xfe) && d.is_ascii_digit(),
            _ => false,
        };
        valid.then_some(width)
    }
}
