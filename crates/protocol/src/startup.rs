//! The first packet of a connection, which has no type byte: StartupMessage, SSLRequest, GSSENCRequest, CancelRequest.

use melba_types::{DbError, Result, err};

use crate::body::{Body, utf8};
use crate::frame::fatal;

/// Version 3.0 for every client since 2003, 3.2 (PostgreSQL 18) for those that request it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProtocolVersion {
    pub major: u16,
    pub minor: u16,
}

impl ProtocolVersion {
    pub const V3_0: ProtocolVersion = ProtocolVersion { major: 3, minor: 0 };
    /// The newest version spoken here.
    pub const V3_2: ProtocolVersion = ProtocolVersion { major: 3, minor: 2 };

    /// SSLRequest and GSSENCRequest, read as a version.
    pub const SSL_REQUEST: ProtocolVersion = ProtocolVersion { major: 1234, minor: 5679 };
    pub const GSSENC_REQUEST: ProtocolVersion = ProtocolVersion { major: 1234, minor: 5680 };

    pub fn code(self) -> u32 {
        u32::from(self.major) << 16 | u32::from(self.minor)
    }
}

const CANCEL_REQUEST: u32 = 1234 << 16 | 5678;
const SSL_REQUEST: u32 = 1234 << 16 | 5679;
const GSSENC_REQUEST: u32 = 1234 << 16 | 5680;
const STARTUP_BYTES_MAX: usize = 10_000;

#[derive(Debug, PartialEq)]
pub enum Startup<'a> {
    Message(StartupMessage<'a>),
    Ssl,
    Gssenc,
    Cancel {
        pid: i32,
        secret: &'a [u8],
    },
    /// Such a client does not understand an ErrorResponse.
    Outdated(ProtocolVersion),
}

#[derive(Debug, PartialEq)]
pub struct StartupMessage<'a> {
    /// The client's requested version; the caller uses the lower of this and `ProtocolVersion::V3_2`.
    pub requested: ProtocolVersion,
    parameters: &'a [u8],
}

impl<'a> StartupMessage<'a> {
    /// Name and value pairs, in the client's order.
    pub fn parameters(&self) -> impl Iterator<Item = Result<(&'a str, &'a str)>> + use<'a> {
        let mut body = Body::new(self.parameters);
        std::iter::from_fn(move || (!body.is_empty()).then(|| Ok((utf8(body.string_bytes()?)?, utf8(body.string_bytes()?)?))))
    }

    /// The common version, and the names of protocol options (`_pq_.*`) that the server does not know. When either differs from
    /// the request, NegotiateProtocolVersion must be sent.
    pub fn negotiate(&self) -> Result<(ProtocolVersion, Vec<&'a str>)> {
        let mut unknown = Vec::new();
        for pair in self.parameters() {
            let (name, _) = pair?;
            if name.starts_with("_pq_.") {
                unknown.push(name);
            }
        }
        Ok((self.requested.min(ProtocolVersion::V3_2), unknown))
    }
}

/// The packet that `next_startup` found, with its size in bytes.
#[derive(Debug, PartialEq)]
pub enum NextStartup<'a> {
    Packet(Startup<'a>, usize),
    Need(usize),
    /// These bytes are of no client that could be answered: the connection ends without a word.
    NoPacket,
}

/// The first packet of `buffer`. Every error is FATAL.
pub fn next_startup(buffer: &[u8]) -> Result<NextStartup<'_>> {
    let Some(length) = buffer.get(..4) else { return Ok(NextStartup::Need(4)) };
    let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
    if !(8..=STARTUP_BYTES_MAX).contains(&length) {
        return Ok(NextStartup::NoPacket);
    }
    match buffer.get(4..length) {
        None => Ok(NextStartup::Need(length)),
        Some(body) => Ok(decode(body).map_err(fatal)?.map_or(NextStartup::NoPacket, |p| NextStartup::Packet(p, length))),
    }
}

/// The error for an unsupported version, also for a misplaced request to encrypt.
pub fn unsupported_version(version: ProtocolVersion) -> DbError {
    let ProtocolVersion { major, minor } = version;
    fatal(err!(FEATURE_NOT_SUPPORTED, "unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.2"))
}

fn decode(body: &[u8]) -> Result<Option<Startup<'_>>> {
    let mut body = Body::new(body);
    let code = body.u32()?;
    match code {
        SSL_REQUEST | GSSENC_REQUEST => {
            body.end()?;
            Ok(Some(if code == SSL_REQUEST { Startup::Ssl } else { Startup::Gssenc }))
        }
        CANCEL_REQUEST => {
            let pid = body.i32()?;
            let secret = body.rest();
            Ok((1..=256).contains(&secret.len()).then_some(Startup::Cancel { pid, secret }))
        }
        _ => decode_message(code, body).map(Some),
    }
}

fn decode_message(code: u32, mut body: Body<'_>) -> Result<Startup<'_>> {
    let requested = ProtocolVersion { major: (code >> 16) as u16, minor: (code & 0xffff) as u16 };
    if requested.major < 3 {
        return Ok(Startup::Outdated(requested));
    }
    if requested.major > 3 {
        return Err(unsupported_version(requested));
    }
    let layout = || err!(PROTOCOL_VIOLATION, "invalid startup packet layout: expected terminator as last byte");
    let bytes = body.rest();
    let Some((0, parameters)) = bytes.split_last().map(|(last, rest)| (*last, rest)) else { return Err(layout()) };
    let mut pairs = Body::new(parameters);
    while !pairs.is_empty() {
        pairs.string_bytes().and_then(|_| pairs.string_bytes()).map_err(|_| layout())?;
    }
    Ok(Startup::Message(StartupMessage { requested, parameters }))
}
