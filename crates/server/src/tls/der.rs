//! The bytes of a certificate (DER, X.690), as far as names and algorithms need them. Malformed bytes are `None`.

/// Bytes that were not read yet.
#[derive(Clone, Copy)]
pub(super) struct Der<'a>(pub &'a [u8]);

/// An element: its tag, with class and form, and its content.
#[derive(Clone, Copy)]
pub(super) struct Element<'a> {
    pub tag: u8,
    pub content: &'a [u8],
}

pub(super) const INTEGER: u8 = 0x02;
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// The tag of field `number` whose element stands within it.
pub(super) const fn explicit(number: u8) -> u8 {
    0xa0 | number
}

impl<'a> Der<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next element. Tags of more than one byte are not in certificates.
    pub fn next(&mut self) -> Option<Element<'a>> {
        let (&[tag, first], rest) = self.0.split_first_chunk()?;
        if tag & 0x1f == 0x1f {
            return None;
        }
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (digits.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(Element { tag, content })
    }

    /// The content of the next element, which must have this tag.
    pub fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|element| element.tag == tag).map(|element| element.content)
    }

    /// The elements within the next one.
    pub fn enter(&mut self, tag: u8) -> Option<Der<'a>> {
        self.expect(tag).map(Der)
    }

    /// The elements within the next one, if it has this tag; it is left otherwise.
    pub fn enter_if(&mut self, tag: u8) -> Option<Der<'a>> {
        let mut ahead = *self;
        let inside = ahead.enter(tag)?;
        *self = ahead;
        Some(inside)
    }
}

/// An object identifier in dots.
pub(super) fn dotted(oid: &[u8]) -> Option<String> {
    let mut numbers: Vec<u64> = Vec::new();
    let mut number = 0u64;
    for byte in oid {
        number = number.checked_mul(128)? + u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            numbers.push(number);
            number = 0;
        }
    }
    // The first two are one: 40 times the first, which is 0, 1 or 2, and the second.
    let first = numbers.first_mut()?;
    let root = (*first / 40).min(2);
    *first -= 40 * root;
    let rest = numbers.iter().map(|n| format!(".{n}"));
    Some(rest.fold(root.to_string(), |text, number| text + &number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_cut_by_their_lengths() {
        let mut der = Der(&[0x30, 3, 2, 1, 5, 4, 0x81, 1, 9]);
        assert_eq!(der.enter_if(SET).map(|_| ()), None);
        assert_eq!(der.enter(SEQUENCE).and_then(|mut inside| inside.expect(INTEGER)), Some(&[5][..]));
        assert_eq!(der.next().map(|e| (e.tag, e.content)), Some((4, &[9][..])));
        assert!(der.is_empty());
        for malformed in
            [&[][..], &[0x30], &[0x30, 1], &[0x30, 0x80], &[0x30, 0x82, 1], &[0x30, 0x85, 0, 0, 0, 0, 0], &[0x1f, 0, 0]]
        {
            assert!(Der(malformed).next().is_none(), "{malformed:?}");
        }
    }

    #[test]
    fn identifiers_are_numbers_in_dots() {
        assert_eq!(dotted(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11]).as_deref(), Some("1.2.840.113549.1.1.11"));
        assert_eq!(dotted(&[0x55, 4, 3]).as_deref(), Some("2.5.4.3"));
        assert_eq!(dotted(&[0x88, 0x37]).as_deref(), Some("2.999"));
        assert_eq!(dotted(&[]), None);
        assert_eq!(dotted(&[0xff; 12]), None, "too long a number");
    }
}
