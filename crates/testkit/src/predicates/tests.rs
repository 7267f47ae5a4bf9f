use super::*;
use crate::history::AnomalyKind;

fn insert(row: Row, key: Key) -> PredicateOperation {
    PredicateOperation::Write(Write { row, before: None, after: row * 10, key: Some(key) })
}

fn change(row: Row, before: Version, key: Option<Key>) -> PredicateOperation {
    PredicateOperation::Write(Write { row, before: Some(before), after: before + 1, key })
}

fn read(from: Key, to: Key, rows: &[(Row, Version)]) -> PredicateOperation {
    PredicateOperation::Read(from, to, rows.to_vec())
}

/// Committed transactions: all at the same time, except the first, which was before.
fn found(transactions: &[&[PredicateOperation]]) -> Vec<AnomalyKind> {
    let transaction = |(t, operations): (usize, &&[PredicateOperation])| {
        let (began, ended) = if t == 0 { (0, 3) } else { (10, 30) };
        PredicateTransaction { operations: operations.to_vec(), committed: true, began, looked: 40, committing: ended - 1, ended }
    };
    let history: Vec<PredicateTransaction> = transactions.iter().enumerate().map(transaction).collect();
    check(&history).iter().map(|a| a.kind).collect()
}

#[test]
fn what_an_order_explains_is_fine() {
    let first: &[PredicateOperation] = &[insert(1, 5), insert(2, 7)];
    assert_eq!(found(&[first, &[read(0, 9, &[(1, 10), (2, 20)]), change(1, 10, Some(20))], &[read(0, 9, &[(2, 20)])]]), []);
    let removed: &[PredicateOperation] = &[read(0, 9, &[(1, 10), (2, 20)]), change(2, 20, None), read(0, 9, &[(1, 10)])];
    assert_eq!(found(&[first, removed, &[read(7, 7, &[])], &[read(7, 7, &[(2, 20)])]]), []);
}

#[test]
fn two_who_count_and_add_are_a_cycle() {
    let skew: &[&[PredicateOperation]] = &[&[], &[read(0, 9, &[]), insert(1, 5)], &[read(0, 9, &[]), insert(2, 6)]];
    assert_eq!(found(skew), [AnomalyKind::G2Item]);
    let apart: &[&[PredicateOperation]] = &[&[], &[read(0, 4, &[]), insert(1, 5)], &[read(6, 9, &[]), insert(2, 6)]];
    assert_eq!(found(apart), [], "one after the other: who read 0 to 4 is in nobody's way");
}

/// Fekete, O'Neil, O'Neil 2004: a batch is closed (row 1), a row comes into it late, and a report has seen the one and not the other.
#[test]
fn a_report_of_a_closed_batch_that_changes_is_a_cycle() {
    let first: &[PredicateOperation] = &[insert(1, 0)];
    let late: &[PredicateOperation] = &[read(0, 0, &[(1, 10)]), insert(2, 50)];
    let closes: &[PredicateOperation] = &[read(0, 0, &[(1, 10)]), change(1, 10, Some(0))];
    let report: &[PredicateOperation] = &[read(0, 0, &[(1, 11)]), read(50, 59, &[])];
    assert_eq!(found(&[first, late, closes]), []);
    assert_eq!(found(&[first, late, closes, report]), [AnomalyKind::G2Item]);
    let later: &[PredicateOperation] = &[read(0, 0, &[(1, 11)]), read(50, 59, &[(2, 20)])];
    assert_eq!(found(&[first, late, closes, later]), []);
}

#[test]
fn rows_that_move_are_read_where_they_were() {
    let first: &[PredicateOperation] = &[insert(1, 5)];
    let moves: &[PredicateOperation] = &[read(5, 5, &[(1, 10)]), change(1, 10, Some(50))];
    let torn: &[PredicateOperation] = &[read(0, 9, &[(1, 10)]), read(50, 59, &[(1, 11)])];
    assert!(found(&[first, moves, torn]).contains(&AnomalyKind::GSingle));
    let nowhere: &[PredicateOperation] = &[read(0, 9, &[]), read(50, 59, &[])];
    assert!(found(&[first, moves, nowhere]).contains(&AnomalyKind::GSingle));
}

#[test]
fn lost_and_foreign_versions_are_found() {
    let first: &[PredicateOperation] = &[insert(1, 5)];
    let again: &[PredicateOperation] = &[change(1, 10, Some(6))];
    let other: &[PredicateOperation] = &[PredicateOperation::Write(Write { row: 1, before: Some(10), after: 99, key: Some(7) })];
    assert!(found(&[first, again, other]).contains(&AnomalyKind::GSingle), "a lost update");
    assert_eq!(found(&[first, &[read(0, 9, &[(1, 17)])]]), [AnomalyKind::G1a]);
    assert_eq!(found(&[first, &[read(0, 9, &[])]]), [AnomalyKind::Internal], "it was there before the reader began");
    assert_eq!(found(&[first, &[read(0, 9, &[(1, 10), (1, 10)])]]), [AnomalyKind::Garbled]);
}
