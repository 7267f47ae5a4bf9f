//! Programs of the server's machine that COPY and foreign tables read from, and COPY writes to.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use melba_types::{DbError, Result, err};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// How often a wait looks for a cancel request, in nanoseconds.
const PIECE_NANOSECONDS: i64 = 10_000_000;
const COMMAND_NOT_EXECUTABLE: i32 = 126;
const COMMAND_NOT_FOUND: i32 = 127;

/// Is called at the beginning of each piece of a wait; its error ends the wait.
pub(super) type Wait<'a> = &'a dyn Fn() -> Result<()>;

/// A command that the shell runs, with a pipe to or from it. It is ended when this is dropped.
pub(super) struct PipedProgram {
    command: String,
    child: Child,
    output: Option<ChildStdout>,
    input: Option<ChildStdin>,
}

impl PipedProgram {
    /// # Errors
    /// 58030 when the shell cannot be started.
    pub fn start(command: &str, reads: bool) -> Result<PipedProgram> {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(command);
        if reads {
            shell.stdout(Stdio::piped()).stdin(Stdio::null())
        } else {
            shell.stdin(Stdio::piped())
        };
        let failed = |e: std::io::Error| err!(IO_ERROR, "could not execute command \"{command}\": {e}");
        let mut child = shell.spawn().map_err(failed)?;
        let (output, input) = (child.stdout.take(), child.stdin.take());
        let program = PipedProgram { command: command.to_owned(), child, output, input };
        let pipe = program.output.as_ref().map(|p| p.as_fd()).or(program.input.as_ref().map(|p| p.as_fd()));
        if let Some(pipe) = pipe {
            let no_block = fcntl_getfl(pipe).and_then(|flags| fcntl_setfl(pipe, flags | OFlags::NONBLOCK));
            no_block.map_err(|e| failed(e.into()))?;
        }
        Ok(program)
    }

    /// The next bytes of its output; 0 at the end.
    ///
    /// # Errors
    /// 58030 when they cannot be read; those of a wait.
    pub fn read(&mut self, chunk: &mut [u8], wait: Wait<'_>) -> Result<usize> {
        let Some(output) = &mut self.output else { return Ok(0) };
        loop {
            match output.read(chunk) {
                Ok(read) => return Ok(read),
                Err(e) if e.kind() == ErrorKind::WouldBlock => wait_for(output.as_fd(), PollFlags::IN, wait)?,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(err!(IO_ERROR, "could not read from COPY program: {e}")),
            }
        }
    }

    /// Bytes that are the last may reach nobody: the program's status tells whether it minds.
    ///
    /// # Errors
    /// 38000 when the program has failed before, 58030 when the bytes cannot be written; those of a wait.
    pub fn write(&mut self, mut bytes: &[u8], are_last: bool, wait: Wait<'_>) -> Result<()> {
        while let (Some(input), false) = (&mut self.input, bytes.is_empty()) {
            match input.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(e) if e.kind() == ErrorKind::WouldBlock => wait_for(input.as_fd(), PollFlags::OUT, wait)?,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::BrokenPipe && are_last => return Ok(()),
                Err(e) if e.kind() == ErrorKind::BrokenPipe => {
                    self.finish(wait)?;
                    return Err(err!(IO_ERROR, "could not write to COPY program: Broken pipe"));
                }
                Err(e) => return Err(err!(IO_ERROR, "could not write to COPY program: {e}")),
            }
        }
        Ok(())
    }

    /// Closes the pipe and waits for the program's end.
    ///
    /// # Errors
    /// 38000 when it has failed; those of a wait.
    pub fn finish(&mut self, wait: Wait<'_>) -> Result<()> {
        (self.input, self.output) = (None, None);
        let status = loop {
            let ended = self.child.try_wait().map_err(|e| err!(IO_ERROR, "could not wait for COPY program: {e}"))?;
            if let Some(status) = ended {
                break status;
            }
            wait()?;
            // No file is ready: the time passes.
            let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: PIECE_NANOSECONDS }));
        };
        failure(&self.command, status).map_or(Ok(()), Err)
    }
}

impl Drop for PipedProgram {
    fn drop(&mut self) {
        // Of one that has ended both do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_for(pipe: BorrowedFd<'_>, what: PollFlags, wait: Wait<'_>) -> Result<()> {
    wait()?;
    // After an error the pipe's own call is tried again, and says it.
    let _ = poll(&mut [PollFd::new(&pipe, what)], Some(&Timespec { tv_sec: 0, tv_nsec: PIECE_NANOSECONDS }));
    Ok(())
}

/// As strsignal() describes the signals that end programs.
fn signal_description(signal: i32) -> String {
    let known = match signal {
        1 => "Hangup",
        2 => "Interrupt",
        3 => "Quit",
        6 => "Aborted",
        8 => "Floating point exception",
        9 => "Killed",
        11 => "Segmentation fault",
        13 => "Broken pipe",
        14 => "Alarm clock",
        15 => "Terminated",
        _ => return format!("Unknown signal {signal}"),
    };
    known.to_owned()
}

fn failure(command: &str, status: ExitStatus) -> Option<DbError> {
    let reason = match (status.code(), status.signal()) {
        (Some(0), _) => return None,
        (Some(COMMAND_NOT_EXECUTABLE), _) => "command not executable".to_owned(),
        (Some(COMMAND_NOT_FOUND), _) => "command not found".to_owned(),
        (Some(code), _) => format!("child process exited with exit code {code}"),
        (None, Some(signal)) => format!("child process was terminated by signal {signal}: {}", signal_description(signal)),
        (None, None) => format!("child process exited with unrecognized status {}", status.into_raw()),
    };
    Some(err!(EXTERNAL_ROUTINE_EXCEPTION, "program \"{command}\" failed").detail(reason))
}
