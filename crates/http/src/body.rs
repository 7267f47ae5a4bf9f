//! Bodies that pass through: of a request, as it comes, and of an answer in pieces.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use crate::response::{end, send};
use crate::{PATIENCE, Request, Response};

/// Bytes of an answer in pieces that are sent together.
const PIECE_BYTES: usize = 64 << 10;

/// The body of a request. Reading fails when the client sends nothing for `PATIENCE`, or ends too early.
pub struct RequestBody<'a> {
    stream: &'a TcpStream,
    begun: std::io::Cursor<Vec<u8>>,
    left: u64,
}

impl<'a> RequestBody<'a> {
    pub fn new(request: &mut Request, stream: &'a TcpStream) -> RequestBody<'a> {
        RequestBody { stream, begun: std::io::Cursor::new(std::mem::take(&mut request.begun)), left: request.body_bytes }
    }

    /// All of it.
    ///
    /// # Errors
    /// The response to a body of more than `bytes_max` bytes, or to one that does not come.
    pub fn whole(mut self, bytes_max: u64) -> Result<Vec<u8>, Response> {
        if self.left > bytes_max {
            return Err(Response::text(413, "the body is too long\n"));
        }
        let mut all = Vec::new();
        match self.read_to_end(&mut all) {
            Ok(_) => Ok(all),
            Err(_) => Err(Response::text(408, "the request took too long\n")),
        }
    }
}

impl Read for RequestBody<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let wanted = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if wanted == 0 {
            return Ok(0);
        }
        let mut read = self.begun.read(&mut buffer[..wanted])?;
        while read == 0 {
            self.stream.set_read_timeout(Some(PATIENCE))?;
            read = match (&*self.stream).read(&mut buffer[..wanted]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            };
        }
        self.left -= read as u64;
        Ok(read)
    }
}

/// An answer whose body is written in pieces. Without `finish` the client sees that it is not whole.
pub struct Pieces<'a> {
    stream: &'a TcpStream,
    waiting: Vec<u8>,
}

impl<'a> Pieces<'a> {
    /// Sends the head.
    pub fn begin(stream: &'a TcpStream, response: &Response) -> std::io::Result<Pieces<'a>> {
        send(stream, response.head(None).as_bytes())?;
        Ok(Pieces { stream, waiting: Vec::new() })
    }

    pub fn finish(mut self) -> std::io::Result<()> {
        self.flush()?;
        send(self.stream, b"0\r\n\r\n")?;
        end(self.stream);
        Ok(())
    }
}

impl Write for Pieces<'_> {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        self.waiting.extend_from_slice(data);
        if self.waiting.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut piece = format!("{:x}\r\n", self.waiting.len()).into_bytes();
        piece.append(&mut self.waiting);
        piece.extend_from_slice(b"\r\n");
        send(self.stream, &piece)
    }
}
