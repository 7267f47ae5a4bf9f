//! Rows that move to another tree while others wait for their locks, and notes are dropped.

use super::*;

/// A transaction that sees a row by its view, and finds it gone once it has the lock, learns that it has moved.
#[test]
fn a_row_that_moved_is_never_taken_for_deleted() {
    check(|| {
        let f = Fixture::new(2);
        let mover = spawn({
            let f = Arc::clone(&f);
            move || {
                for row in [0, 1] {
                    let t = f.begin();
                    t.lock_row_to_change(f.table, f.rows[row], RowLockMode::ForUpdate).expect("locks");
                    t.delete_to_move(f.table, f.rows[row]).expect("deletes");
                    t.commit(choose(&[Durability::Sync, Durability::Async])).expect("commits");
                }
            }
        });
        let forgetting = spawn({
            let f = Arc::clone(&f);
            move || {
                for _ in 0..3 {
                    f.engine.shared.snapshots.compute_oldest();
                    f.engine.shared.moves.forget(&f.engine.shared.snapshots);
                }
            }
        });
        for row in [0, 1] {
            let t = f.begin();
            let view = t.statement_view();
            if t.get(view, f.table, f.rows[row]).expect("reads").is_some() {
                t.lock_row_to_change(f.table, f.rows[row], RowLockMode::ForUpdate).expect("locks");
                let latest = t.get_latest(f.table, f.rows[row]).expect("reads");
                assert!(latest.row.is_some() != t.has_moved(f.table, f.rows[row], &latest), "row {row} is gone without a note");
            }
        }
        join([mover]);
        join([forgetting]);
    });
}
