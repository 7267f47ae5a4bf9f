//! Every acknowledged commit exists after a recovery, and every other one is whole or absent, in commit order.
//!
//! Recovery returns a CSN. This checks that the CSN is an allowed one; `state` checks that the state is exactly the one at that
//! CSN, which makes each commit whole or absent.

use melba_types::Csn;

use super::Check;
use crate::ensure;
use crate::model::Model;

/// `clean`: the engine was shut down, so every commit exists.
pub fn check(model: &Model, recovered: Csn, clean: bool) -> Check {
    ensure!(recovered >= model.durable, "commit {} was durable, recovery ends at {recovered}", model.durable);
    ensure!(recovered <= model.assigned, "recovery found commit {recovered}, the last one was {}", model.assigned);
    ensure!(!clean || recovered == model.assigned, "a clean stop at {} came back at {recovered}", model.assigned);
    Ok(())
}
