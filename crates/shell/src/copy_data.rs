//! The data of COPY FROM STDIN: from a reader, or the lines after the statement.

use std::io::{ErrorKind, Read};

use crate::Result;
use crate::input::Input;
use crate::interrupts::Interrupts;
use melba_client::Connection;

/// Lines after which the server is listened to.
const LOOK_EVERY: u64 = 100;
const PIECE_BYTES: usize = 64 << 10;
/// The end of the data among statements.
const END: &[u8] = b"\\.";

/// Sends the data of a COPY: a reader's, or the lines of the input up to `\.`.
///
/// # Errors
/// The connection is lost. Errors of the data are sent to the server, whose error reports them.
pub fn send(
    connection: &mut Connection,
    interrupts: &Interrupts,
    from: Option<&mut dyn Read>,
    input: &mut dyn Input,
) -> Result<()> {
    let sent = match from {
        Some(from) => send_all(connection, interrupts, from)?,
        None => send_lines(connection, input)?,
    };
    match sent {
        Ok(()) => connection.copy_done(),
        Err(reason) => connection.copy_fail(&reason),
    }
}

/// The inner error is why the data are not all there.
fn send_all(connection: &mut Connection, interrupts: &Interrupts, from: &mut dyn Read) -> Result<Result<()>> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        // The server accepts no more of it.
        if connection.is_refused()? {
            return Ok(Ok(()));
        }
        if interrupts.is_pressed() {
            return Ok(Err("canceled by user".to_owned()));
        }
        match from.read(&mut piece) {
            Ok(0) => return Ok(Ok(())),
            Ok(read) => connection.copy_data(&piece[..read])?,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Ok(Err(format!("could not read from COPY file: {e}"))),
        }
    }
}

fn send_lines(connection: &mut Connection, input: &mut dyn Input) -> Result<Result<()>> {
    let mut line = Vec::new();
    let (mut is_wanted, mut lines) = (true, 0_u64);
    loop {
        match input.data(&mut line) {
            Ok(true) if line.trim_ascii_end() == END => return Ok(Ok(())),
            Ok(true) => {
                // Lines that the server does not want are no statements either.
                lines += 1;
                is_wanted = is_wanted && (lines % LOOK_EVERY != 0 || !connection.is_refused()?);
                if is_wanted {
                    connection.copy_data(&line)?;
                }
            }
            Ok(false) => return Ok(Ok(())),
            Err(e) if e.kind() == ErrorKind::Interrupted => return Ok(Err("canceled by user".to_owned())),
            Err(e) => return Ok(Err(format!("could not read COPY data: {e}"))),
        }
    }
}
