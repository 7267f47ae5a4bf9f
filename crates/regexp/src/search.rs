//! A pattern in the `regex` crate, which finds where matches start.
//!
//! That crate compiles without checking for interrupts, for seconds when a pattern is large. So a pattern that may take long is
//! compiled in a separate thread: a statement that must end leaves it behind.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use melba_types::{Result, limits};
use regex::Regex;

use crate::automaton::ranges;
use crate::error::too_complex;
use crate::parse::{Part, Pattern};

const COMPILED_BYTES_MAX: usize = 1 << 26;
/// So many atoms compile in some milliseconds when they are characters, and in a tenth of a second when they are large sets.
const ATOMS_AT_ONCE_MAX: usize = 300;
/// The compiled form has at least this many bytes for each stretch of characters of a set.
const RANGE_BYTES: usize = 4;
/// Threads that compile, including those whose statement has ended.
const THREADS_MAX: usize = 4;
/// How often a statement that waits for one looks whether it is to end.
const LOOK: Duration = Duration::from_millis(5);

/// The compiled pattern, and whether it says less than the pattern.
///
/// # Errors
/// 2201B for a pattern that is too complex, and those of the limits.
pub fn compile(pattern: &Pattern) -> Result<(Regex, bool)> {
    if pattern.weight <= ATOMS_AT_ONCE_MAX {
        let (text, says_less) = pattern.regex();
        return Ok((build(&text)?, says_less));
    }
    let mut least = Least { pattern, sets: HashMap::new() };
    if least.bytes(&pattern.part)? > COMPILED_BYTES_MAX {
        return Err(too_complex(format!("Compiled regex exceeds size limit of {COMPILED_BYTES_MAX} bytes.")));
    }
    let (text, says_less) = pattern.regex();
    Ok((build_in_thread(text)?, says_less))
}

fn build(text: &str) -> Result<Regex> {
    let mut builder = regex::RegexBuilder::new(text);
    builder.size_limit(COMPILED_BYTES_MAX).dfa_size_limit(COMPILED_BYTES_MAX).build().map_err(too_complex)
}

static THREADS: AtomicUsize = AtomicUsize::new(0);

/// One of the threads that may compile.
struct Turn;

impl Turn {
    fn take() -> Result<Turn> {
        let more = |threads: usize| (threads < THREADS_MAX).then_some(threads + 1);
        while THREADS.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more).is_err() {
            limits::check_interrupt()?;
            std::thread::sleep(LOOK);
        }
        Ok(Turn)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        THREADS.fetch_sub(1, Ordering::AcqRel);
    }
}

fn build_in_thread(text: String) -> Result<Regex> {
    let turn = Turn::take()?;
    let text: Arc<str> = text.into();
    let (tell, told) = channel();
    let thread = std::thread::Builder::new().name("regular expression".into()).spawn({
        let text = Arc::clone(&text);
        move || {
            let _turn = turn;
            // The receiver may have ended.
            let _ = tell.send(build(&text));
        }
    });
    if thread.is_err() {
        // There are no more threads.
        return build(&text);
    }
    loop {
        match told.recv_timeout(LOOK) {
            Ok(built) => return built,
            Err(RecvTimeoutError::Timeout) => limits::check()?,
            Err(RecvTimeoutError::Disconnected) => return Err(too_complex("It could not be compiled.")),
        }
    }
}

/// The least size of a pattern's compiled form.
struct Least<'p> {
    pattern: &'p Pattern,
    sets: HashMap<Rc<str>, usize>,
}

impl Least<'_> {
    fn bytes(&mut self, part: &Part) -> Result<usize> {
        limits::tick()?;
        Ok(match part {
            Part::Set(text) => match self.sets.get(text) {
                Some(bytes) => *bytes,
                None => {
                    let bytes = ranges(text, self.pattern.ignore_case)?.len() * RANGE_BYTES;
                    self.sets.insert(Rc::clone(text), bytes);
                    bytes
                }
            },
            Part::Place(_) | Part::Look { .. } => 0,
            Part::Group(_, part) => self.bytes(part)?,
            Part::Back(number) => match self.pattern.groups.get(number - 1) {
                Some(group) => self.bytes(group)?,
                None => 0,
            },
            Part::Repeat { part, min, max, .. } => {
                let copies = max.unwrap_or(*min).max(1) as usize;
                self.bytes(part)?.saturating_mul(copies)
            }
            Part::Sequence(parts) | Part::Branches(parts) => {
                parts.iter().try_fold(0usize, |sum, part| self.bytes(part).map(|bytes| sum.saturating_add(bytes)))?
            }
        })
    }
}
