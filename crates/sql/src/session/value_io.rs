//! Values as clients send and read them.

use melba_fmgr::Session as _;
use melba_fmgr::{FormatSettings, io};
use melba_types::{Datum, Oid, Result};

use super::context::StatementContext;

/// Input and output of values for the wire.
pub struct ValueIo<'a> {
    context: &'a StatementContext,
}

impl<'a> ValueIo<'a> {
    pub fn new(context: &'a StatementContext) -> ValueIo<'a> {
        ValueIo { context }
    }

    pub fn format(&self) -> &FormatSettings {
        self.context.format()
    }

    /// Appends the text form, in the client's encoding.
    pub fn output(&self, ty: Oid, datum: &Datum, out: &mut Vec<u8>) -> Result<()> {
        let encoding = self.format().client_encoding;
        if encoding.is_plain() {
            return io::text_out(self.context, ty, datum, out);
        }
        out.extend_from_slice(&encoding.encode(&io::text_of(self.context, ty, datum)?)?);
        Ok(())
    }

    /// Appends the binary form.
    pub fn send(&self, ty: Oid, datum: &Datum, out: &mut Vec<u8>) -> Result<()> {
        io::binary_out(self.context, ty, datum, out)
    }

    /// Reads the text form.
    pub fn input(&self, ty: Oid, text: &str) -> Result<Datum> {
        io::text_in(self.context, ty, -1, text)
    }

    /// Reads the binary form.
    pub fn receive(&self, ty: Oid, bytes: &[u8]) -> Result<Datum> {
        io::binary_in(self.context, ty, -1, bytes)
    }
}
