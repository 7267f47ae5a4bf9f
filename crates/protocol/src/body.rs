//! Reading the fields of a message body.

pub use melba_encoding::utf8;
use melba_types::{DbError, Result, SqlState};

/// A cursor over a message body.
#[derive(Clone, Copy)]
pub struct Body<'a>(&'a [u8]);

fn violation(message: &str) -> DbError {
    DbError::new(SqlState::PROTOCOL_VIOLATION, message)
}

impl<'a> Body<'a> {
    pub fn new(bytes: &'a [u8]) -> Body<'a> {
        Body(bytes)
    }

    pub fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n).ok_or_else(|| violation("insufficient data left in message"))?;
        self.0 = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    pub fn u8(&mut self) -> Result<u8> {
        self.take(1).map(|byte| byte[0]).map_err(|_| violation("no data left in message"))
    }

    pub fn i16(&mut self) -> Result<i16> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    pub fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// A 16-bit count; the wire type is treated as unsigned so that 65535 parameters can be counted.
    pub fn count(&mut self) -> Result<usize> {
        Ok(usize::from(u16::from_be_bytes(self.array()?)))
    }

    /// A string up to its zero byte, not yet checked to be UTF-8.
    pub fn string_bytes(&mut self) -> Result<&'a [u8]> {
        let end = self.0.iter().position(|&b| b == 0).ok_or_else(|| violation("invalid string in message"))?;
        let (text, rest) = self.0.split_at(end);
        self.0 = &rest[1..];
        Ok(text)
    }

    pub fn string(&mut self) -> Result<&'a str> {
        utf8(self.string_bytes()?)
    }

    /// A value: an `Int32` length (-1: null) and that many bytes.
    pub fn value(&mut self) -> Result<Option<&'a [u8]>> {
        match self.i32()? {
            -1 => Ok(None),
            n => {
                let n = usize::try_from(n).map_err(|_| violation("insufficient data left in message"))?;
                self.take(n).map(Some)
            }
        }
    }

    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every message must be read to its end.
    pub fn end(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(violation("invalid message format")) }
    }
}
