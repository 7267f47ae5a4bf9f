//! Values as clients send and read them.

use melba_fmgr::Session as _;
use melba_fmgr::{FormatSettings, io};
use melba_types::{Datum, DbError, Oid, Result, err};

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

/// `$1 = 'x', $2 = NULL`, each of at most `max` bytes.
pub fn parameter_list(context: &StatementContext, types: &[Oid], values: &[Datum], max: Option<usize>) -> String {
    let io = ValueIo::new(context);
    let types = types.iter().chain(std::iter::repeat(&Oid::INVALID));
    let shown = values.iter().zip(types).enumerate().map(|(i, (value, ty))| {
        let mut text = Vec::new();
        match value {
            Datum::Null => format!("${} = NULL", i + 1),
            value if io.output(*ty, value, &mut text).is_ok() => {
                format!("${} = {}", i + 1, quoted(&String::from_utf8_lossy(&text), max))
            }
            _ => format!("${} = ...", i + 1),
        }
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// In quotes; text beyond `max` bytes is replaced by three points.
fn quoted(text: &str, max: Option<usize>) -> String {
    let cut = max.filter(|max| text.len() > *max).map(|max| (0..=max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0));
    let shown = &text[..cut.unwrap_or(text.len())];
    let dots = if cut.is_some() { "..." } else { "" };
    format!("'{}{dots}'", shown.replace('\'', "''"))
}

/// An error of a binary value; extra bytes behind the value are reported with the value's place.
pub fn too_long(mut error: DbError, place: &str) -> DbError {
    if error.message() == "incorrect binary data format" {
        error.fields_mut().message.push_str(&format!(" in {place}"));
    }
    error
}

/// The error for a format code that does not exist.
pub fn unknown_format(code: i16) -> DbError {
    err!(INVALID_PARAMETER_VALUE, "unsupported format code: {code}")
}
