//! Cursors.

use melba_plpgsql::tree::{Expression, Fetch, Loop, Opened, Scroll, Target};
use melba_types::{DbError, Result};

use super::frame::{Flow, Frame};

impl Frame {
    pub fn open(&mut self, _cursor: usize, _opened: &Opened, _scroll: Scroll) -> Result<()> {
        Err(DbError::unsupported("OPEN"))
    }

    pub fn fetch(&mut self, _fetch: &Fetch) -> Result<()> {
        Err(DbError::unsupported("FETCH"))
    }

    pub fn close(&mut self, _cursor: usize) -> Result<()> {
        Err(DbError::unsupported("CLOSE"))
    }

    pub fn cursor_loop(&mut self, _t: &Target, _cursor: usize, _arguments: Option<&Expression>, _body: &Loop) -> Result<Flow> {
        Err(DbError::unsupported("FOR over cursor"))
    }
}
