//! Asks a server to cancel a statement, by a separate connection.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use bytes::BytesMut;
use postgres::config::Host;
use postgres_protocol::message::frontend;

use crate::socket;
use crate::target::Target;

/// Identifies a session to its server; cheap to clone, for another thread.
#[derive(Clone)]
pub struct CancelKey {
    place: Arc<((Host, u16), Target)>,
    process_id: i32,
    secret: i32,
}

impl CancelKey {
    pub(crate) fn new(place: (Host, u16), target: Target) -> CancelKey {
        CancelKey { place: Arc::new((place, target)), process_id: 0, secret: 0 }
    }

    pub(crate) fn set(&mut self, process_id: i32, secret: i32) {
        (self.process_id, self.secret) = (process_id, secret);
    }

    /// Sends the request, and waits until the server has received it. Whether that ends anything shows on the session's own connection.
    pub fn cancel(&self) -> Result<(), String> {
        let ((host, port), target) = &*self.place;
        let mut stream = socket::encrypted(host, *port, target).map_err(|e| e.to_string())?;
        let mut request = BytesMut::new();
        frontend::cancel_request(self.process_id, self.secret, &mut request);
        stream.write_all(&request).and_then(|()| stream.flush()).map_err(|e| e.to_string())?;
        // The server closes it; how, does not matter.
        let _ = stream.read(&mut [0]);
        Ok(())
    }
}
