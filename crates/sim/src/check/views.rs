//! Views: a snapshot is repeatable, a new one has everything acknowledged, and none shows the future.

use melba_types::Csn;

use super::Check;
use crate::ensure;
use crate::model::Model;

/// `snapshot`: the view of the transaction's first statement, when it must be the view of all.
pub fn check(model: &Model, csn: Csn, snapshot: Option<Csn>) -> Check {
    match snapshot {
        Some(first) => ensure!(csn == first, "a repeatable snapshot moved from {first} to {csn}"),
        None => ensure!(csn >= model.acknowledged, "commit {} was acknowledged, a new view is at {csn}", model.acknowledged),
    }
    ensure!(csn <= model.assigned, "a view is at {csn}, the last commit is {}", model.assigned);
    Ok(())
}
