//! The account of what a statement holds, in all its threads, and the budget of which all statements take.

use super::*;

const MEGABYTE: usize = 1 << 20;

/// Two threads of one statement and one of another take and give memory, of which there is not enough for all. What is in use is what
/// their accounts say, reserved is no less, and at the end nothing is.
fn threads_take_and_give() {
    let budget = MemoryBudget::new(4 * MEGABYTE as u64);
    let statements = [QueryMemory::new(&budget), QueryMemory::new(&budget)];
    let threads = [0, 0, 1].map(|statement| {
        let (memory, budget) = (Arc::clone(&statements[statement]), Arc::clone(&budget));
        spawn(move || {
            let mut held = Held::new(&memory);
            for bytes in [2 * MEGABYTE, choose(&[1, 3 * MEGABYTE]), choose(&[0, MEGABYTE])] {
                let before = held.bytes();
                let is_held = held.try_set_sparing(bytes, choose(&[0, MEGABYTE as u64]));
                assert_eq!(held.bytes(), if is_held { bytes } else { before });
                assert!(is_held || bytes > before, "less is always held");
                assert!(budget.reserved() <= budget.limit(), "{} of {}", budget.reserved(), budget.limit());
            }
            held
        })
    });
    let held = join(threads);
    let of = |holders: &[Held]| holders.iter().map(|held| held.bytes() as u64).sum::<u64>();
    assert_eq!([statements[0].used(), statements[1].used()], [of(&held[..2]), of(&held[2..])]);
    assert!(budget.reserved() >= of(&held), "{} of {}", of(&held), budget.reserved());
    drop(held);
    assert_eq!([statements[0].used(), statements[1].used()], [0, 0]);
    drop(statements);
    assert_eq!(budget.reserved(), 0);
}

#[test]
fn threads_of_a_statement_neither_lose_nor_exceed_what_is_reserved() {
    check(threads_take_and_give);
    check_finds(Plant::GiveBackTwice, threads_take_and_give);
}
