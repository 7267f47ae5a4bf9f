//! A session for the tests of this crate, whose functions are installed.

pub use melba_fmgr::testing::FixedSession;
use melba_fmgr::{Tables, registry};

static ALL: &[&Tables] = &[&crate::TABLES];

pub fn session() -> FixedSession {
    registry::install(ALL);
    FixedSession::default()
}
