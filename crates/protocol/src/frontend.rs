//! Messages of the client after startup.

use melba_types::{DbError, Oid, Result, bail};

use crate::backend::Format;
use crate::body::{Body, utf8};

/// A message of the client.
#[derive(Debug, Clone, PartialEq)]
pub enum Frontend<'a> {
    Query(&'a str),
    Parse {
        name: &'a str,
        text: &'a str,
        parameter_types: Oids<'a>,
    },
    Bind(Bind<'a>),
    Describe(Target<'a>),
    /// `max_rows` of 0 or less: all rows.
    Execute {
        portal: &'a str,
        max_rows: i32,
    },
    Close(Target<'a>),
    Sync,
    Flush,
    CopyData(&'a [u8]),
    CopyDone,
    CopyFail(&'a str),
    FunctionCall(FunctionCall<'a>),
    /// The answer to an authentication request: PasswordMessage, SASLInitialResponse, SASLResponse.
    Password(&'a [u8]),
    Terminate,
}

/// The object that Describe and Close name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target<'a> {
    Statement(&'a str),
    Portal(&'a str),
}

/// A list of type OIDs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Oids<'a>(&'a [u8]);

impl<'a> Oids<'a> {
    pub fn iter(self) -> impl ExactSizeIterator<Item = Oid> + 'a {
        self.0.as_chunks::<4>().0.iter().map(|c| Oid(u32::from_be_bytes(*c)))
    }
}

/// A list of format codes in Bind and FunctionCall: none stands for text for all, one is the format of all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Formats<'a>(&'a [u8]);

impl<'a> Formats<'a> {
    pub(crate) fn decode(body: &mut Body<'a>) -> Result<Formats<'a>> {
        let count = body.count()?;
        Ok(Formats(body.take(count * 2)?))
    }

    pub fn len(&self) -> usize {
        self.0.len() / 2
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The format of item `i`.
    pub fn get(&self, i: usize) -> Format {
        let at = if self.len() == 1 { 0 } else { i };
        self.0.as_chunks::<2>().0.get(at).map_or(Format::Text, |code| Format::of_code(i16::from_be_bytes(*code)))
    }

    /// The formats of `count` items; `None` when the list has another length than 0, 1 and `count`.
    pub fn expand(&self, count: usize) -> Option<Vec<Format>> {
        (self.len() <= 1 || self.len() == count).then(|| (0..count).map(|i| self.get(i)).collect())
    }
}

/// A list of values, checked to be whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Values<'a> {
    bytes: &'a [u8],
    count: usize,
}

impl<'a> Values<'a> {
    fn decode(body: &mut Body<'a>) -> Result<Values<'a>> {
        Values::decode_of(body, |_, error| error)
    }

    /// `at`: adds to an error which value it is about, counted from 0.
    fn decode_of(body: &mut Body<'a>, at: impl Fn(usize, DbError) -> DbError) -> Result<Values<'a>> {
        let count = body.count()?;
        let start = *body;
        let mut bytes = 0;
        for i in 0..count {
            bytes += 4 + body.value().map_err(|e| at(i, e))?.map_or(0, <[u8]>::len);
        }
        let mut start = start;
        Ok(Values { bytes: start.take(bytes)?, count })
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn iter(self) -> impl Iterator<Item = Option<&'a [u8]>> {
        let mut body = Body::new(self.bytes);
        (0..self.count).map(move |_| body.value().expect("checked when the message was decoded"))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Bind<'a> {
    pub portal: &'a str,
    pub statement: &'a str,
    pub parameter_formats: Formats<'a>,
    pub parameters: Values<'a>,
    pub result_formats: Formats<'a>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct FunctionCall<'a> {
    pub function: Oid,
    pub argument_formats: Formats<'a>,
    pub arguments: Values<'a>,
    pub result_format: Format,
}

impl<'a> Frontend<'a> {
    /// Decodes the body of a frame whose tag `next_frame` let pass.
    pub fn decode(tag: u8, body: &'a [u8]) -> Result<Frontend<'a>> {
        let mut body = Body::new(body);
        let message = match tag {
            b'Q' => Frontend::Query(body.string()?),
            b'P' => {
                let (name, text) = (body.string()?, body.string()?);
                let count = body.count()?;
                Frontend::Parse { name, text, parameter_types: Oids(body.take(count * 4)?) }
            }
            b'B' => Frontend::Bind(decode_bind(&mut body)?),
            b'D' => Frontend::Describe(decode_target(&mut body, "DESCRIBE")?),
            b'E' => Frontend::Execute { portal: body.string()?, max_rows: body.i32()? },
            b'C' => Frontend::Close(decode_target(&mut body, "CLOSE")?),
            b'S' => Frontend::Sync,
            b'H' => Frontend::Flush,
            b'd' => Frontend::CopyData(body.rest()),
            b'c' => Frontend::CopyDone,
            b'f' => Frontend::CopyFail(body.string()?),
            b'F' => Frontend::FunctionCall(decode_function_call(&mut body)?),
            b'p' => Frontend::Password(body.rest()),
            b'X' => {
                // Terminate ends the session, whatever its body has.
                body.rest();
                Frontend::Terminate
            }
            _ => bail!(PROTOCOL_VIOLATION, "invalid frontend message type {tag}"),
        };
        body.end()?;
        Ok(message)
    }
}

fn decode_target<'a>(body: &mut Body<'a>, message: &str) -> Result<Target<'a>> {
    match body.u8()? {
        b'S' => Ok(Target::Statement(body.string()?)),
        b'P' => Ok(Target::Portal(body.string()?)),
        other => bail!(PROTOCOL_VIOLATION, "invalid {message} message subtype {other}"),
    }
}

/// How an error's context names a parameter, counted from 0.
pub fn parameter_place(portal: &str, i: usize) -> String {
    let name = if portal.is_empty() { "unnamed portal".to_owned() } else { format!("portal \"{portal}\"") };
    format!("{name} parameter ${}", i + 1)
}

fn decode_bind<'a>(body: &mut Body<'a>) -> Result<Bind<'a>> {
    let (portal, statement) = (body.string()?, body.string()?);
    let parameter_formats = Formats::decode(body)?;
    let parameters = Values::decode_of(body, |i, error| error.context(parameter_place(portal, i)))?;
    Ok(Bind { portal, statement, parameter_formats, parameters, result_formats: Formats::decode(body)? })
}

fn decode_function_call<'a>(body: &mut Body<'a>) -> Result<FunctionCall<'a>> {
    let function = Oid(body.u32()?);
    let argument_formats = Formats::decode(body)?;
    let arguments = Values::decode(body)?;
    let result_format = Format::of_code(body.i16()?);
    Ok(FunctionCall { function, argument_formats, arguments, result_format })
}

/// SASLInitialResponse: the chosen mechanism and its first data, inside a `Password` message.
pub fn decode_sasl_initial(body: &[u8]) -> Result<(&str, Option<&[u8]>)> {
    let mut body = Body::new(body);
    let mechanism = utf8(body.string_bytes()?)?;
    let data = body.value()?;
    body.end()?;
    Ok((mechanism, data))
}
