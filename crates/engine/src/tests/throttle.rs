//! Writers that wait for background work.

use std::sync::Arc;

use melba_types::row::RowLayout;
use melba_types::{Datum, Kind};
use melba_vfs::{Clock, ManualClock, MemoryDirectory};

use crate::commit::{WAIT_MAX, WAIT_MIN};
use crate::*;

#[test]
fn a_commit_that_does_not_wait_itself_leaves_that_to_the_next_transaction() {
    let clock = Arc::new(ManualClock::new());
    let options = EngineOptions { memory_bytes: 60_000, ..EngineOptions::default() };
    let engine = Engine::open(options, MemoryDirectory::new(), Arc::clone(&clock) as Arc<dyn Clock>).expect("opens");
    let session = engine.session().expect("opens");
    let throttled = || session.throttled_until();
    let t = engine.begin_in(&session, Isolation::ReadCommitted).expect("begins");
    let tree = t.create_table_tree(&[Kind::Text], Persistence::Logged).expect("creates");
    t.commit(Durability::Sync).expect("commits");
    let row = RowLayout::new(vec![Kind::Text]).encode_row(&[Datum::text("x".repeat(2000))]);
    for n in 0.. {
        assert!(n < 100, "the row store fills up and nobody waits");
        let t = engine.begin_in(&session, Isolation::ReadCommitted).expect("begins");
        assert!(throttled().is_zero());
        t.insert(tree, &row).expect("inserts");
        t.start_commit(Durability::Async, None).and_then(Committing::wait).expect("commits");
        if !throttled().is_zero() {
            break;
        }
    }
    let wait = throttled() - clock.monotonic();
    assert!(wait >= WAIT_MIN && wait <= WAIT_MAX, "{wait:?}");
}
