//! TLS (rustls, ring): the server's configuration, a channel over a socket, and the content of certificates.
//!
//! Invariants:
//! 1. Decrypted bytes are handed over at once, whole: as long as a channel has nothing for its connection, only news of the
//!    socket can change that. So watchers of sockets need not know of TLS (`channel`).
//! 2. Bytes that were encrypted are sent, in order, or the connection ends: they cannot be taken back (`channel`).
//! 3. The configuration changes as a whole; connections keep the one they began with (`configuration`).

mod certificate;
mod channel;
mod ciphers;
mod configuration;
mod der;

pub(crate) use channel::{Channel, SEALED_BYTES_MAX};
pub(crate) use configuration::TlsConfiguration;
