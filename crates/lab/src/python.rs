//! Our programs that Python runs, each in a separate process: databases inside Python. A request is a line of JSON and bytes
//! behind it; so is an answer.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::Result;

/// A program that waits for requests; it ends with this value.
pub struct Python {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// A program's answer; missing fields are zero.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct PythonAnswer {
    pub version: String,
    error: Option<String>,
    pub seconds: f64,
    pub number: f64,
    pub found: bool,
    /// Another answer to the same request follows.
    pub more: bool,
    length: usize,
}

/// The Python of a virtual environment; without one that of PATH.
pub fn interpreter(venv: Option<&Path>) -> PathBuf {
    venv.map_or_else(|| PathBuf::from("python3"), |venv| venv.join("bin/python"))
}

impl Python {
    /// Starts a program. Its first answer has its version; an error says why it cannot run.
    pub fn start(interpreter: &Path, program: &str, arguments: &[&str]) -> Result<(Python, String)> {
        let mut child = Command::new(interpreter)
            .args(["-c", program])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{}: {e}", interpreter.display()))?;
        let (input, output) = child.stdin.take().zip(child.stdout.take()).ok_or("no pipes to Python")?;
        let mut started = Python { child, input, output: BufReader::new(output) };
        let version = started.answer()?.0.version;
        Ok((started, version))
    }

    /// A request with its bytes, and the first answer with its own.
    pub fn ask(&mut self, request: &impl Serialize, payload: &[u8]) -> Result<(PythonAnswer, Vec<u8>)> {
        let line = serde_json::to_string(request).map_err(|e| e.to_string())?;
        let written =
            writeln!(self.input, "{line}").and_then(|()| self.input.write_all(payload)).and_then(|()| self.input.flush());
        // A process that has ended says why in its last answer.
        match self.answer() {
            Err(e) => Err(e),
            Ok(answer) => written.map(|()| answer).map_err(|e| e.to_string()),
        }
    }

    /// The next answer.
    pub fn answer(&mut self) -> Result<(PythonAnswer, Vec<u8>)> {
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(|e| e.to_string())?;
        let answer: PythonAnswer = serde_json::from_str(&line).map_err(|e| format!("Python answered {line:?}: {e}"))?;
        if let Some(error) = answer.error {
            return Err(error);
        }
        let mut payload = vec![0; answer.length];
        self.output.read_exact(&mut payload).map_err(|e| e.to_string())?;
        Ok((answer, payload))
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
