use super::Operation::{Append, Read};
use super::*;

/// A history of committed transactions, one after the other began and all before one ended.
fn history(transactions: &[&[Operation]], finally: &[(Key, &[Value])]) -> History {
    let transaction = |(t, operations): (usize, &&[Operation])| Transaction {
        operations: operations.to_vec(),
        ending: Ending::Committed,
        began: t as u64,
        ended: 1000 + t as u64,
    };
    History {
        transactions: transactions.iter().enumerate().map(transaction).collect(),
        finally: finally.iter().map(|(key, list)| (*key, list.to_vec())).collect(),
    }
}

fn kinds(history: &History, level: Level) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = check(history, level).iter().map(|a| a.kind).collect();
    kinds.dedup();
    kinds
}

/// What each level finds: READ COMMITTED, REPEATABLE READ, SERIALIZABLE.
fn found(history: &History) -> [Vec<Kind>; 3] {
    [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable].map(|level| kinds(history, level))
}

const X: Key = 1;
const Y: Key = 2;

#[test]
fn a_serial_history_is_fine() {
    let h = history(
        &[
            &[Append(X, 1), Read(X, vec![1])],
            &[Read(X, vec![1]), Append(X, 2), Append(Y, 3), Read(X, vec![1, 2])],
            &[Read(Y, vec![3]), Read(X, vec![1, 2])],
        ],
        &[(X, &[1, 2]), (Y, &[3])],
    );
    assert_eq!(found(&h), [vec![], vec![], vec![]]);
}

#[test]
fn g0_is_a_cycle_of_overwrites() {
    let h = history(&[&[Append(X, 1), Append(Y, 3)], &[Append(X, 2), Append(Y, 4)]], &[(X, &[1, 2]), (Y, &[4, 3])]);
    assert!(found(&h).iter().all(|f| f.contains(&Kind::G0)));
}

#[test]
fn g1a_reads_what_was_aborted() {
    let mut h = history(&[&[Append(X, 1)], &[Read(X, vec![1])]], &[]);
    h.transactions[0].ending = Ending::Aborted;
    assert!(found(&h).iter().all(|f| f == &[Kind::G1a]));
    let mut h = history(&[&[Append(X, 1)]], &[(X, &[1])]);
    h.transactions[0].ending = Ending::Aborted;
    assert!(found(&h).iter().all(|f| f == &[Kind::G1a]), "a dirty write");
}

#[test]
fn g1b_reads_the_middle_of_a_transaction() {
    let h = history(&[&[Append(X, 1), Append(X, 2)], &[Read(X, vec![1])]], &[(X, &[1, 2])]);
    assert!(found(&h).iter().all(|f| f.contains(&Kind::G1b)));
}

#[test]
fn g1c_is_a_cycle_of_reads() {
    let h = history(&[&[Append(X, 1), Read(Y, vec![2])], &[Append(Y, 2), Read(X, vec![1])]], &[(X, &[1]), (Y, &[2])]);
    assert!(found(&h).iter().all(|f| f.contains(&Kind::G1c)));
}

#[test]
fn g_single_reads_one_state_and_misses_another() {
    // Read skew.
    let h = history(&[&[Append(X, 1), Append(Y, 2)], &[Read(X, vec![]), Read(Y, vec![2])]], &[(X, &[1]), (Y, &[2])]);
    assert_eq!(found(&h), [vec![], vec![Kind::GSingle], vec![Kind::GSingle]]);
    // A lost update: both have read the same and written.
    let h = history(&[&[Read(X, vec![]), Append(X, 1)], &[Read(X, vec![]), Append(X, 2)]], &[(X, &[1, 2])]);
    assert_eq!(found(&h), [vec![], vec![Kind::GSingle], vec![Kind::GSingle]]);
}

#[test]
fn g2_item_is_write_skew() {
    let h = history(&[&[Read(X, vec![]), Append(Y, 1)], &[Read(Y, vec![]), Append(X, 2)]], &[(X, &[2]), (Y, &[1])]);
    assert_eq!(found(&h), [vec![], vec![], vec![Kind::G2Item]]);
}

#[test]
fn g_nonadjacent_is_a_long_fork() {
    // Two readers see two writes in different orders.
    let h = history(
        &[&[Append(X, 1)], &[Append(Y, 2)], &[Read(X, vec![1]), Read(Y, vec![])], &[Read(X, vec![]), Read(Y, vec![2])]],
        &[(X, &[1]), (Y, &[2])],
    );
    assert_eq!(found(&h), [vec![], vec![Kind::GNonadjacent], vec![Kind::GNonadjacent]]);
}

#[test]
fn a_snapshot_that_misses_what_was_over_before_is_stale() {
    let mut h = history(&[&[Append(X, 1)], &[Read(X, vec![])]], &[(X, &[1])]);
    (h.transactions[0].ended, h.transactions[1].began) = (10, 20);
    assert_eq!(found(&h), [vec![], vec![Kind::GSingle], vec![]]);
}

#[test]
fn a_transaction_sees_itself_and_one_snapshot() {
    let h = history(&[&[Append(X, 1), Read(X, vec![])]], &[(X, &[1])]);
    assert!(found(&h).iter().all(|f| f.contains(&Kind::Internal)));
    let h = history(&[&[Read(X, vec![]), Read(X, vec![1])], &[Append(X, 1)]], &[(X, &[1])]);
    assert_eq!(kinds(&h, Level::ReadCommitted), []);
    assert!(kinds(&h, Level::RepeatableRead).contains(&Kind::Internal));
}

#[test]
fn commits_are_kept_whole() {
    let h = history(&[&[Append(X, 1)], &[Append(Y, 2)]], &[(Y, &[2])]);
    assert!(found(&h).iter().all(|f| f.contains(&Kind::LostAppend)));
    let mut h = history(&[&[Append(X, 1), Append(Y, 2)]], &[(Y, &[2])]);
    h.transactions[0].ending = Ending::Unknown;
    assert!(found(&h).iter().all(|f| f.contains(&Kind::Torn)));
    h.finally.clear();
    assert_eq!(found(&h), [vec![], vec![], vec![]], "absent altogether");
    h.finally = [(X, vec![1]), (Y, vec![2])].into();
    assert_eq!(found(&h), [vec![], vec![], vec![]], "or whole");
}

#[test]
fn lists_are_read_in_one_order() {
    let h = history(&[&[Append(X, 1)], &[Append(X, 2)], &[Read(X, vec![1])], &[Read(X, vec![2])]], &[(X, &[1, 2])]);
    assert!(found(&h).iter().all(|f| f.contains(&Kind::Disagreement)));
    let h = history(&[&[Append(X, 1)]], &[(X, &[1, 1])]);
    assert!(found(&h).iter().all(|f| f.contains(&Kind::Garbled)));
}
