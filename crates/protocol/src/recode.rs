//! Messages of clients with an encoding other than UTF8: their texts are converted to UTF-8 before they are decoded.

use melba_encoding::Encoding;
use melba_types::Result;

use crate::backend::Format;
use crate::body::Body;
use crate::frontend::{Formats, Frontend, parameter_place};

impl<'a> Frontend<'a> {
    /// Decodes a message of a client with some encoding. `recoded`: where its body is kept in UTF-8, should that be another.
    #[inline]
    pub fn decode_from(encoding: Encoding, tag: u8, body: &'a [u8], recoded: &'a mut Vec<u8>) -> Result<Frontend<'a>> {
        if encoding.is_plain() {
            return Frontend::decode(tag, body);
        }
        let mut recoder = Recoder { encoding, body: Body::new(body), out: recoded };
        recoder.message(tag)?;
        Frontend::decode(tag, recoded)
    }
}

struct Recoder<'a, 'o> {
    encoding: Encoding,
    body: Body<'a>,
    out: &'o mut Vec<u8>,
}

impl<'a> Recoder<'a, '_> {
    /// A truncated message is copied as far as it goes: its decoder reports the error.
    fn message(&mut self, tag: u8) -> Result<()> {
        match tag {
            b'Q' | b'E' | b'f' => self.string()?,
            b'P' => {
                self.string()?;
                self.string()?;
            }
            b'D' | b'C' => {
                self.copy(1)?;
                self.string()?;
            }
            b'B' => self.bind()?,
            b'F' => {
                self.copy(4)?;
                let formats = self.formats()?;
                self.values(formats, None)?;
            }
            _ => {}
        }
        self.out.extend_from_slice(self.body.rest());
        Ok(())
    }

    fn bind(&mut self) -> Result<()> {
        let portal = self.encoding.decode(self.body.clone().string_bytes()?)?;
        self.string()?;
        self.string()?;
        let formats = self.formats()?;
        self.values(formats, Some(&portal))
    }

    fn copy(&mut self, bytes: usize) -> Result<()> {
        self.out.extend_from_slice(self.body.take(bytes)?);
        Ok(())
    }

    fn string(&mut self) -> Result<()> {
        let text = self.encoding.decode(self.body.string_bytes()?)?;
        self.out.extend_from_slice(text.as_bytes());
        self.out.push(0);
        Ok(())
    }

    fn formats(&mut self) -> Result<Formats<'a>> {
        let formats = Formats::decode(&mut self.body.clone())?;
        self.copy(2 + 2 * formats.len())?;
        Ok(formats)
    }

    /// Values in text format; the texts in a binary value are known by its type.
    fn values(&mut self, formats: Formats<'_>, portal: Option<&str>) -> Result<()> {
        let count = self.body.clone().count()?;
        self.copy(2)?;
        for i in 0..count {
            let Some(value) = self.body.value()? else {
                self.out.extend_from_slice(&(-1i32).to_be_bytes());
                continue;
            };
            let place = |e: melba_types::DbError| match portal {
                Some(portal) => e.context(parameter_place(portal, i)),
                None => e,
            };
            let text = if formats.get(i) == Format::Text { Some(self.encoding.decode(value).map_err(place)?) } else { None };
            let value = text.as_ref().map_or(value, |text| text.as_bytes());
            self.out.extend_from_slice(&(value.len() as i32).to_be_bytes());
            self.out.extend_from_slice(value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latin1() -> Encoding {
        Encoding::by_name("LATIN1").expect("an encoding")
    }

    #[test]
    fn texts_of_messages_become_utf8() {
        let mut recoded = Vec::new();
        let message = Frontend::decode_from(latin1(), b'Q', b"select '\xe9'\0", &mut recoded).expect("a query");
        assert_eq!(message, Frontend::Query("select 'é'"));
        // Portal, statement, formats (text, binary), values, result formats.
        let bind = b"\xe9\0s\0\0\x02\0\0\0\x01\0\x02\0\0\0\x01\xe9\0\0\0\x01\xe9\0\0";
        let mut recoded = Vec::new();
        let Frontend::Bind(bind) = Frontend::decode_from(latin1(), b'B', bind, &mut recoded).expect("a bind") else {
            panic!("not a bind")
        };
        let values: Vec<_> = bind.parameters.iter().collect();
        assert_eq!((bind.portal, values), ("é", vec![Some("é".as_bytes()), Some(&b"\xe9"[..])]));
    }

    #[test]
    fn a_message_that_breaks_off_is_an_error() {
        let whole = b"p\0s\0\0\x01\0\0\0\x01\0\0\0\x01\xe9\0\0";
        for end in 0..whole.len() {
            let mut recoded = Vec::new();
            assert!(Frontend::decode_from(latin1(), b'B', &whole[..end], &mut recoded).is_err(), "{end} bytes");
        }
    }
}
