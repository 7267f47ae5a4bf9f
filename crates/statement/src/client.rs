//! A session's interface to its connection.

use melba_protocol::Output;
use melba_types::Result;

/// The client's end of the wire. An error of any method means that the connection is closed (FATAL).
pub trait Client {
    /// Messages not sent yet.
    fn output(&mut self) -> &mut Output;

    /// Sends the content of `output`.
    fn flush(&mut self) -> Result<()>;

    /// Sends the content of `output` with long values put in: each with its position, ascending.
    fn flush_around(&mut self, values: &[(usize, &[u8])]) -> Result<()>;

    /// The next piece of COPY data, `None` after CopyDone. CopyFail is an error 57014. Any other message ends the copy with 08P01.
    fn copy_read(&mut self) -> Result<Option<&[u8]>>;

    /// Waits a moment for more COPY data if there is none; true when none has come.
    fn copy_stalls(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// Sends the output when enough of it has gathered; called between rows.
    fn flush_when_large(&mut self) -> Result<()> {
        const LARGE_BYTES: usize = 64 << 10;
        if self.output().len() >= LARGE_BYTES { self.flush() } else { Ok(()) }
    }
}
