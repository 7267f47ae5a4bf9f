//! Compares two answers, and knows which differences are harmless.

use super::server::{Answer, Row, Rows};
use super::tree::Node;

const FLOAT4: u32 = 700;
const FLOAT8: u32 = 701;
const NUMERIC: u32 = 1700;
/// Arrays of int4, text and numeric.
const ARRAYS: [u32; 3] = [1007, 1009, 1231];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Same,
    /// Both refuse the statement in the same way.
    SameError,
    /// Different for a reason of the list.
    Explained(Reason),
    /// Melba refuses a feature.
    Refused(String),
    Different(Difference),
}

/// Reasons for which answers may differ. `explain` decides each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// An expression that fails on some values is evaluated for other rows by another plan, or in another order: a side
    /// has a data error (class 22), and the statement has such an expression.
    DataError,
    /// Values that are equal but not the same (1.0 and 1.00, 0 and -0, NaN with and without a sign): which one DISTINCT, a set operation, a group or a
    /// maximum shows depends on the plan.
    EqualForms,
    /// PostgreSQL has FULL JOIN only over merge-joinable or hash-joinable conditions, and which those are depends on its plan.
    FullJoin,
    /// Either side took longer than the limit for a statement, or has no memory for it.
    Limits,
    /// PostgreSQL fails with an error of its own: XX000, or the check of a wrong plan of MERGE.
    Internal,
    /// PostgreSQL has crashed.
    Crash,
    /// A statement breaks several constraints, or one of them only until it has removed rows: which is found first depends on the
    /// order of rows and checks.
    Constraints,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    Rows,
    Order,
    Columns,
    Affected,
    /// Melba fails where PostgreSQL does not, or otherwise, by SQLSTATE (empty: it does not fail).
    Error {
        expected: String,
        actual: String,
    },
    Lost,
}

/// Judges Melba's answer (`actual`) by PostgreSQL's.
pub fn judge(statement: &Node, expected: &Answer, actual: &Answer) -> Verdict {
    if let Answer::Lost(_) = actual {
        return Verdict::Different(Difference::Lost);
    }
    if let Answer::Error { state, message } = actual
        && state == "0A000"
        && message.contains("not supported yet")
        && !matches!(expected, Answer::Error { state, .. } if state == "0A000")
    {
        return Verdict::Refused(message.clone());
    }
    let found = match (expected, actual) {
        (Answer::Rows(expected), Answer::Rows(actual)) => compare(expected, actual, statement.is_ordered()),
        (Answer::Error { state: a, .. }, Answer::Error { state: b, .. }) if a == b => return Verdict::SameError,
        _ => Some(Difference::Error { expected: state(expected), actual: state(actual) }),
    };
    let Some(found) = found else { return Verdict::Same };
    explain(statement, &found, expected, actual).map_or(Verdict::Different(found), Verdict::Explained)
}

fn state(answer: &Answer) -> String {
    match answer {
        Answer::Error { state, .. } => state.clone(),
        Answer::Rows(_) => String::new(),
        Answer::Lost(_) => "lost".to_owned(),
    }
}

fn compare(expected: &Rows, actual: &Rows, ordered: bool) -> Option<Difference> {
    if expected.columns != actual.columns {
        return Some(Difference::Columns);
    }
    if sorted(&expected.rows) != sorted(&actual.rows) {
        return Some(Difference::Rows);
    }
    if ordered && expected.rows != actual.rows {
        return Some(Difference::Order);
    }
    (expected.affected != actual.affected).then_some(Difference::Affected)
}

fn sorted(rows: &[Row]) -> Vec<&Row> {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort();
    rows
}

fn explain(statement: &Node, found: &Difference, expected: &Answer, actual: &Answer) -> Option<Reason> {
    match found {
        Difference::Error { expected: a, actual: b } => {
            let either = |test: &dyn Fn(&str) -> bool| test(a) || test(b);
            if either(&|s| matches!(s, "57014" | "53200" | "54000" | "54001")) {
                return Some(Reason::Limits);
            }
            let own_check = "table row type and query-specified row type do not match";
            if a == "XX000" || matches!(expected, Answer::Error { message, .. } if message == own_check) {
                return Some(Reason::Internal);
            }
            let full_join = |answer: &Answer| matches!(answer, Answer::Error { message, .. } if message.starts_with("FULL JOIN"));
            let breaks = |answer: &Answer, s: &str| s.starts_with("23") || s == "21000" || is_data_error(answer);
            // MERGE takes the rows of its join in the order of the plan, those that it deletes before or after those it adds.
            let reorders = || statement.sql().starts_with("merge") && statement.sql().contains("not matched by source");
            let keys_only = [a, b].iter().all(|s| matches!(&***s, "23505" | ""));
            if breaks(expected, a) && breaks(actual, b) || keys_only && reorders() {
                return Some(Reason::Constraints);
            }
            if full_join(expected) || full_join(actual) {
                return Some(Reason::FullJoin);
            }
            let data = |answer: &Answer| matches!(answer, Answer::Rows(_)) || is_data_error(answer);
            (data(expected) && data(actual) && statement.any(&|n| n.fallible)).then_some(Reason::DataError)
        }
        Difference::Rows | Difference::Order => {
            let (Answer::Rows(expected), Answer::Rows(actual)) = (expected, actual) else { return None };
            let found = compare(&one_form(expected), &one_form(actual), *found == Difference::Order);
            found.is_none().then_some(Reason::EqualForms)
        }
        _ => None,
    }
}

/// An error about a value. PostgreSQL has some of them as features that it does not have.
fn is_data_error(answer: &Answer) -> bool {
    let Answer::Error { state, message } = answer else { return false };
    let unsupported = ["cannot convert", "multidimensional arrays"].iter().any(|w| message.contains(w));
    state.starts_with("22") || state == "23514" || (state == "0A000" && unsupported)
}

/// The rows with equal values in one form.
fn one_form(rows: &Rows) -> Rows {
    let form = |(place, value): (usize, &Option<Vec<u8>>)| {
        let value = value.as_ref()?;
        let ty = rows.columns.get(place).map_or(0, |c| c.1);
        Some(match ty {
            NUMERIC => blank(value, 6..8),
            FLOAT4 | FLOAT8 => without_idle_sign(value),
            _ if ARRAYS.contains(&ty) => blank(value, 4..8),
            _ => trimmed(value),
        })
    };
    let of = |row: &Row| row.iter().enumerate().map(form).collect();
    Rows { rows: rows.rows.iter().map(of).collect(), ..rows.clone() }
}

/// A binary float; which sign NaN has after arithmetic depends on the compiler, and zeros with either sign are equal.
fn without_idle_sign(value: &[u8]) -> Vec<u8> {
    let number = match value {
        [a, b, c, d] => f64::from(f32::from_be_bytes([*a, *b, *c, *d])),
        _ => value.try_into().map_or(1.0, f64::from_be_bytes),
    };
    match number {
        n if n.is_nan() => b"NaN".to_vec(),
        0.0 => b"0".to_vec(),
        _ => value.to_vec(),
    }
}

/// A binary value without the scale that a numeric shows, or the flag that says that an array may hold a NULL: a slice of
/// one that does keeps it.
fn blank(value: &[u8], part: std::ops::Range<usize>) -> Vec<u8> {
    let mut value = value.to_vec();
    if let Some(part) = value.get_mut(part) {
        part.fill(0);
    }
    value
}

/// Decimal fractions without the zeros at their end; no minus before zero.
fn trimmed(value: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some(&byte) = rest.first() {
        if !byte.is_ascii_digit() {
            out.push(byte);
            rest = &rest[1..];
            continue;
        }
        let whole = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let after = rest[whole..].strip_prefix(b".").unwrap_or(&[]);
        let fraction = after.iter().take_while(|b| b.is_ascii_digit()).count();
        let kept = after[..fraction].iter().rposition(|b| *b != b'0').map_or(0, |p| p + 1);
        if rest[..whole].iter().all(|b| *b == b'0') && kept == 0 && out.last() == Some(&b'-') {
            out.pop();
        }
        out.extend_from_slice(&rest[..whole]);
        if kept > 0 {
            out.push(b'.');
            out.extend_from_slice(&after[..kept]);
        }
        rest = &rest[whole + if fraction > 0 { 1 + fraction } else { 0 }..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::tree::Sort;
    use super::*;

    fn rows(values: &[&str]) -> Answer {
        let rows = values.iter().map(|v| vec![Some(v.as_bytes().to_vec())]).collect();
        Answer::Rows(Rows { columns: vec![("c0".to_owned(), 0)], rows, affected: values.len() as u64 })
    }

    fn error(state: &str) -> Answer {
        Answer::Error { state: state.to_owned(), message: "division by zero".to_owned() }
    }

    #[test]
    fn rows_are_compared_as_multisets_without_an_order() {
        let statement = Node::text(Sort::Statement, "select 1");
        assert_eq!(judge(&statement, &rows(&["1", "2"]), &rows(&["2", "1"])), Verdict::Same);
        assert_eq!(judge(&statement, &rows(&["1", "1"]), &rows(&["1", "2"])), Verdict::Different(Difference::Rows));
        let explained = judge(&statement, &rows(&["1.50", "{-0.0}"]), &rows(&["1.5", "{0}"]));
        assert_eq!(explained, Verdict::Explained(Reason::EqualForms));
    }

    #[test]
    fn zeros_of_either_sign_are_in_any_order() {
        let statement = Node::text(Sort::Statement, "select 1");
        let rows = |values: [f32; 2]| {
            let rows = values.iter().map(|v| vec![Some(v.to_be_bytes().to_vec())]).collect();
            Answer::Rows(Rows { columns: vec![("c0".to_owned(), FLOAT4)], rows, affected: 2 })
        };
        let explained = judge(&statement, &rows([0.0, 1.0]), &rows([-0.0, 1.0]));
        assert_eq!(explained, Verdict::Explained(Reason::EqualForms));
        assert_eq!(judge(&statement, &rows([0.0, 1.0]), &rows([-0.0, -1.0])), Verdict::Different(Difference::Rows));
    }

    #[test]
    fn data_errors_are_explained_only_where_something_can_fail() {
        let safe = Node::text(Sort::Statement, "select 1");
        let different = Difference::Error { expected: String::new(), actual: "22012".to_owned() };
        assert_eq!(judge(&safe, &rows(&["1"]), &error("22012")), Verdict::Different(different));
        let fallible = safe.fallible(true);
        assert_eq!(judge(&fallible, &rows(&["1"]), &error("22012")), Verdict::Explained(Reason::DataError));
        assert!(matches!(judge(&fallible, &rows(&["1"]), &error("XX000")), Verdict::Different(_)));
    }
}
