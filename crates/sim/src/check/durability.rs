//! Every acknowledged commit is there after a recovery, and every other one is whole or absent, in commit order.
//!
//! Recovery answers with a CSN. This checks that the CSN is one it may be; that the state is exactly the one at that CSN, which
//! makes each commit whole or absent, is for `state`.

use melba_types::Csn;

use super::Check;
use crate::ensure;
use crate::model::Model;

/// `clean`: the engine was shut down, so everything is there.
pub fn check(model: &Model, recovered: Csn, clean: bool) -> Check {
    ensure!(recovered >= model.durable, "commit {} was durable, recovery ends at {recovered}", model.durable);
    ensure!(recovered <= model.assigned, "recovery found commit {recovered}, the last one was {}", model.assigned);
    ensure!(!clean || recovered == model.assigned, "a clean stop at {} came back at {recovered}", model.assigned);
    Ok(())
}
