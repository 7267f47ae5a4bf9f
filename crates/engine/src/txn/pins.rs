//! Views that outlive the statement, or are given to other transactions.

use std::sync::Arc;

use melba_types::Csn;

use crate::session::EngineSession;
use crate::view::ReadView;

/// Keeps a view usable after its statement; a cursor holds it.
pub struct ViewPin {
    pub(super) session: Arc<EngineSession>,
    pub(super) view: ReadView,
}

/// A snapshot that other transactions may adopt, as long as this lives.
pub struct ExportedSnapshot {
    pub(super) pin: ViewPin,
}

impl ExportedSnapshot {
    pub fn csn(&self) -> Csn {
        self.pin.view.csn
    }
}

impl Drop for ExportedSnapshot {
    fn drop(&mut self) {
        // The pin is dropped after this: the snapshot is protected until no session can adopt it.
        self.pin.session.shared.snapshots.forget_export(self.pin.view.csn);
    }
}

impl Drop for ViewPin {
    fn drop(&mut self) {
        let mut pins = self.session.pins.lock();
        if let Some(at) = pins.held.iter().position(|v| *v == self.view) {
            pins.held.swap_remove(at);
        }
        self.session.shared.snapshots.hold(self.session.slot, pins.oldest());
    }
}
