//! The two ways in which a step fails: the engine refused, which may be correct, or a checker did.

use melba_engine::EngineError;

/// Why a step has no result.
#[derive(Debug)]
pub enum Failure {
    Engine(EngineError),
    /// A checker's finding: the simulation ends.
    Violation(String),
}

/// The result of a step.
pub type Outcome<T> = Result<T, Failure>;

impl From<EngineError> for Failure {
    fn from(e: EngineError) -> Failure {
        Failure::Engine(e)
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure::Violation(message)
    }
}

/// A checker's finding as a result.
pub fn violated<T>(message: String) -> Outcome<T> {
    Err(Failure::Violation(message))
}
