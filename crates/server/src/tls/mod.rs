//! TLS (rustls, ring): what the server offers, a channel over a socket, and what certificates say.
//!
//! Invariants:
//! 1. What was decrypted is handed over at once, whole: as long as a channel has nothing for its connection, only news of the socket
//!    can change that. So who watches sockets need not know of TLS (`channel`).
//! 2. Bytes that were encrypted are sent, in order, or the connection ends: they cannot be taken back (`channel`).
//! 3. What the server offers changes as a whole; connections keep what they began with (`configuration`).

mod certificate;
mod channel;
mod ciphers;
mod configuration;
mod der;

pub(crate) use channel::{Channel, SEALED_BYTES_MAX};
pub(crate) use configuration::TlsConfiguration;
