use super::ListOperation::{Append, Read};
use super::*;

/// A history of committed transactions, one after the other began and all before one ended.
fn history(transactions: &[&[ListOperation]], finally: &[(Key, &[Value])]) -> History {
    let transaction = |(t, operations): (usize, &&[ListOperation])| ListTransaction {
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

fn kinds(history: &History, level: Level) -> Vec<AnomalyKind> {
    let mut kinds: Vec<AnomalyKind> = check(history, level).iter().map(|a| a.kind).collect();
    kinds.dedup();
    kinds
}

/// The anomalies at each level: READ COMMITTED, REPEATABLE READ, SERIALIZABLE.
fn found(history: &History) -> [Vec<AnomalyKind>; 3] {
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
    assert!(found(&h).iter().all(|f| f.contains(&AnomalyKind::G0)));
}

#[test]
fn g1a_is_a_read_of_an_aborted_write() {
    let mut h = history(&[&[Append(X, 1)], &[Read(X, vec![1])]], &[]);
    h.transactions[0].ending = Ending::Aborted;
    assert!(found(&h).iter().all(|f| f == &[AnomalyKind::G1a]));
    let mut h = history(&[&[Append(X, 1)]], &[(X, &[1])]);
    h.transactions[0].ending = Ending::Aborted;
    assert!(found(&h).iter().all(|f| f == &[AnomalyKind::G1a]), "a dirty write");
}

#[test]
fn g1b_reads_the_middle_of_a_transaction() {
    let h = history(&[&[Append(X, 1), Append(X, 2)], &[Read(X, vec![1])]], &[(X, &[1, 2])]);
    assert!(found(&h).iter().all(|f| f.contains(&AnomalyKind::G1b)));
}

#[test]
fn g1c_is_a_cycle_of_reads() {
    let h = history(&[&[Append(X, 1), Read(Y, vec![2])], &[Append(Y, 2), Read(X, vec![1])]], &[(X, &[1]), (Y, &[2])]);
    assert!(found(&h).iter().all(|f| f.contains(&AnomalyKind::G1c)));
}

#[test]
fn g_single_reads_one_state_and_misses_another() {
    // Read skew.
    let h = history(&[&[Append(X, 1), Append(Y, 2)], &[Read(X, vec![]), Read(Y, vec![2])]], &[(X, &[1]), (Y, &[2])]);
    assert_eq!(found(&h), [vec![], vec![AnomalyKind::GSingle], vec![AnomalyKind::GSingle]]);
    // A lost update: both have read the same and written.
    let h = history(&[&[Read(X, vec![]), Append(X, 1)], &[Read(X, vec![]), Append(X, 2)]], &[(X, &[1, 2])]);
    assert_eq!(found(&h), [vec![], vec![AnomalyKind::GSingle], vec![AnomalyKind::GSingle]]);
}

#[test]
fn g2_item_is_write_skew() {
    let h = history(&[&[Read(X, vec![]), Append(Y, 1)], &[Read(Y, vec![]), Append(X, 2)]], &[(X, &[2]), (Y, &[1])]);
    assert_eq!(found(&h), [vec![], vec![], vec![AnomalyKind::G2Item]]);
}

#[test]
fn g_nonadjacent_is_a_long_fork() {
    // Two readers see two writes in different orders.
    let h = history(
        &[&[Append(X, 1)], &[Append(Y, 2)], &[Read(X, vec![1]), Read(Y, vec![])], &[Read(X, vec![]), Read(Y, vec![2])]],
        &[(X, &[1]), (Y, &[2])],
    );
    assert_eq!(found(&h), [vec![], vec![AnomalyKind::GNonadjacent], vec![AnomalyKind::GNonadjacent]]);
}

#[test]
fn a_snapshot_without_an_earlier_finished_transaction_is_stale() {
    let mut h = history(&[&[Append(X, 1)], &[Read(X, vec![])]], &[(X, &[1])]);
    (h.transactions[0].ended, h.transactions[1].began) = (10, 20);
    assert_eq!(found(&h), [vec![], vec![AnomalyKind::GSingle], vec![]]);
}

#[test]
fn a_transaction_sees_itself_and_one_snapshot() {
    let h = history(&[&[Append(X, 1), Read(X, vec![])]], &[(X, &[1])]);
    assert!(found(&h).iter().all(|f| f.contains(&AnomalyKind::Internal)));
    let h = history(&[&[Read(X, vec![]), Read(X, vec![1])], &[Append(X, 1)]], &[(X, &[1])]);
    assert_eq!(kinds(&h, Level::ReadCommitted), []);
    assert!(kinds(&h, Level::RepeatableRead).contains(&AnomalyKind::Internal));
}

#[test]
fn commits_are_kept_whole() {
    let h = history(&[&[Append(X, 1)], &[Append(Y, 2)]], &[(Y, &[2])]);
    assert!(found(&h).iter().all(|f| f.contains(&AnomalyKind::LostAppend)));
    let mut h = history(&[&[Append(X, 1), Append(Y, 2)]], &[(Y, &[2])]);
    h.transactions[0].ending = Ending::Unknown;
    assert!(found(&h).iter().all(|f| f.contains(&AnomalyKind::Torn)));
    h.finally.clear();
    assert_eq!(found(&h), [vec![], vec![], vec![]], "absent altogether");
    h.finally = [(X, vec![1]), (Y, vec![2])].into();
    assert_eq!(found(&h), [vec![], vec![], vec![]], "or whole");
}

#[test]
fn lists_are_read_in_one_order() {
    let h = history(&[&[Append(X, 1)], &[Append(X, 2)], &[Read(X, vec![1])], &[Read(X, vec![2])]], &[(X, &[1, 2])]);
    assert!(found(&h).iter().all(|f| f.contains(&AnomalyKind::Disagreement)));
    let h = history(&[&[Append(X, 1)]], &[(X, &[1, 1])]);
    assert!(found(&h).iter().all(|f| f.contains(&AnomalyKind::Garbled)));
}

/// A transaction that has appended to Y reads from X a value that another one was about to commit when the server was killed. X
/// afterwards has another value in the lost one's place.
fn lost_read() -> History {
    let mut h =
        history(&[&[Append(X, 1)], &[Append(X, 2)], &[Append(Y, 3), Read(X, vec![1, 2])], &[Append(X, 4)]], &[(X, &[1, 4])]);
    h.transactions[1].ending = Ending::Unknown;
    h.transactions[2].ending = Ending::Interrupted;
    h
}

#[test]
fn an_unanswered_transaction_may_read_rows_lost_in_a_crash() {
    let h = lost_read();
    assert_eq!(kinds(&h, Level::ReadCommitted), []);
    assert!(kinds(&h, Level::RepeatableRead).contains(&AnomalyKind::G1a), "a snapshot shows what is durable");
    assert!(kinds(&h, Level::Serializable).contains(&AnomalyKind::G1a));
    let mut h = lost_read();
    h.transactions[2].ending = Ending::Unknown;
    assert_eq!(kinds(&h, Level::ReadCommitted), [], "its COMMIT was lost, too");
    let mut h = lost_read();
    h.transactions[2].operations = vec![Append(X, 3), Read(X, vec![1, 2, 3])];
    assert_eq!(kinds(&h, Level::ReadCommitted), [], "it appended behind the lost value");
}

/// The anomalies of `lost_read`'s history at READ COMMITTED after a change.
fn lost_read_but(change: impl Fn(&mut History)) -> Vec<AnomalyKind> {
    let mut h = lost_read();
    change(&mut h);
    kinds(&h, Level::ReadCommitted)
}

#[test]
fn an_answered_transaction_relies_on_nothing_that_a_crash_takes() {
    let committed = |h: &mut History| {
        h.transactions[2].ending = Ending::Committed;
        h.finally.insert(Y, vec![3]);
    };
    assert!(lost_read_but(committed).contains(&AnomalyKind::G1a));
    assert!(
        lost_read_but(|h| h.transactions[2].ending = Ending::Aborted).contains(&AnomalyKind::G1a),
        "a rollback waits for the log"
    );
    let survived = |h: &mut History| {
        h.transactions[2].ending = Ending::Unknown;
        h.finally.insert(Y, vec![3]);
    };
    assert!(lost_read_but(survived).contains(&AnomalyKind::G1a), "what recovery kept was read from what it lost");
}

#[test]
fn only_a_row_lock_shows_a_commit_that_is_not_durable() {
    let no_lock = |h: &mut History| h.transactions[2].operations = vec![Read(X, vec![1, 2])];
    assert!(lost_read_but(no_lock).contains(&AnomalyKind::G1a));
    let later_lock = |h: &mut History| h.transactions[2].operations = vec![Read(X, vec![1, 2]), Append(Y, 3)];
    assert!(lost_read_but(later_lock).contains(&AnomalyKind::G1a));
}

#[test]
fn what_never_was_a_commit_is_read_by_nobody() {
    assert!(lost_read_but(|h| h.transactions[1].ending = Ending::Aborted).contains(&AnomalyKind::G1a));
    assert!(
        lost_read_but(|h| h.transactions[1].ending = Ending::Interrupted).contains(&AnomalyKind::G1a),
        "it never asked for COMMIT"
    );
    let middle = |h: &mut History| h.transactions[1].operations.push(Append(X, 5));
    assert_eq!(lost_read_but(middle), [AnomalyKind::G1b], "half of what it was to commit");
}

#[test]
fn a_crash_takes_the_end_of_the_order_of_commits() {
    let kept_after_lost = |h: &mut History| {
        h.transactions[2].operations[1] = Read(X, vec![1, 2, 4]);
        h.finally.insert(X, vec![1, 2, 4]);
        h.transactions[0].operations = vec![Append(X, 2)];
        h.transactions[1].operations = vec![Append(X, 1)];
        h.finally.insert(X, vec![2, 4]);
    };
    assert!(lost_read_but(kept_after_lost).contains(&AnomalyKind::G1a), "2 and 4 were kept, 1 was not");
    let before = |h: &mut History| (h.transactions[1].ended, h.transactions[2].began) = (10, 20);
    assert!(lost_read_but(before).contains(&AnomalyKind::G1a), "the server was killed before the reader began");
}
