//! A session for the tests of this crate, whose functions are installed with those that they call.

pub use melba_fmgr::testing::FixedSession;
use melba_fmgr::{Tables, registry};

static ALL: &[&Tables] = &[&melba_functions::TABLES, &crate::TABLES];

pub fn session() -> FixedSession {
    registry::install(ALL);
    FixedSession::default()
}
