//! Judges a database's content: whether it is the result of the sessions' transactions.
//!
//! 1. A transaction exists whole or not at all, and those of a session are a prefix of its attempts.
//! 2. One that was acknowledged before the power failed, synchronously, exists.
//! 3. One that was acknowledged before another sent its COMMIT exists when the other does, synchronous or not.
//! 4. Constraints hold, indexes agree with scans, every relation of the catalog can be read, and no other exists.
//! 5. A sequence returns no value that a row has.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::Session;
use crate::state::{State, runs};
use crate::{ACCOUNTS, BALANCE, Connection, Failure, Row};

/// The content read from a database.
#[derive(Default)]
pub struct Found {
    /// Numbers of transactions by session.
    ledger: BTreeMap<u32, Vec<i32>>,
    /// As `State::lines`, by session.
    lines: BTreeMap<u32, BTreeSet<String>>,
    balances: BTreeMap<i32, i64>,
    /// Rows of the unlogged table.
    pub scratch: u64,
    problems: Vec<String>,
}

/// The number of each session's attempts that remain.
pub type Verdict = Result<Vec<usize>, Vec<String>>;

/// Settings by which rows are found by a scan, and by an index where there is one.
const WAYS: [&str; 2] = [
    "set enable_indexscan = off; set enable_bitmapscan = off; set enable_indexonlyscan = off; \
     set enable_seqscan = on",
    "set enable_indexscan = on; set enable_indexonlyscan = on; set enable_seqscan = off",
];

/// Questions whose answer is a number that must be 0.
const NONE: [(&str, &str); 6] = [
    ("children without a parent", "select count(*) from child c where not exists (select from parent p where p.id = c.parent)"),
    ("children of another session's parent", "select count(*) from child c join parent p on p.id = c.parent where c.session <> p.session"),
    (
        "rows against a unique key or a check",
        "select (select count(*) - count(distinct (session, k)) + count(*) - count(distinct id) from parent)
            + (select count(*) - count(distinct (session, k)) + count(*) - count(distinct id) from child)
            + (select count(*) - count(distinct ticket) from ledger)
            + (select count(*) from child where note is null or not length(note) > 0) + (select count(*) from account where not balance > 0)",
    ),
    (
        "transactions that the deferred trigger has not written down as they are",
        "select count(*) from ledger l full join journal j using (session, n) where l.ticket is distinct from j.ticket",
    ),
    (
        "sessions whose deferred trigger has seen other children at the last commit",
        "select count(*) from (select distinct on (session) session, children from journal order by session, n desc) j
            where children <> (select count(*) from child c where c.session = j.session)",
    ),
    (
        "entries of the catalog that name a relation which is not there",
        "select (select count(*) from pg_index i where not exists (select from pg_class c where c.oid = i.indexrelid)
                or not exists (select from pg_class c where c.oid = i.indrelid))
            + (select count(*) from pg_constraint i where conrelid <> 0 and not exists (select from pg_class c where c.oid = i.conrelid))
            + (select count(*) from pg_attribute a where not exists (select from pg_class c where c.oid = a.attrelid))",
    ),
];

/// The next value of each sequence, and the greatest that is in use.
const SEQUENCES: [(&str, &str); 3] = [
    ("tickets", "select nextval('tickets'), (select max(ticket) from ledger)"),
    ("parent.id", "select nextval(pg_get_serial_sequence('parent', 'id')), (select max(id) from parent)"),
    ("child.id", "select nextval(pg_get_serial_sequence('child', 'id')), (select max(id) from child)"),
];

/// Reads everything, in each way. Takes a value of each sequence.
///
/// # Errors
/// The first statement that fails.
pub fn read(connection: &mut dyn Connection) -> Result<Found, String> {
    let mut ask =
        |statement: &str| connection.ask(statement).map_err(|e: Failure| format!("{} {}: {statement}", e.state, e.message));
    let mut found = Found::default();
    for way in WAYS {
        way.split("; ").try_for_each(|setting| ask(setting).map(drop))?;
        let before = std::mem::take(&mut found.lines);
        rows(&mut ask, &mut found.lines)?;
        if way != WAYS[0] && before != found.lines {
            found.problems.push(format!("scans and indexes disagree: {}", difference(&before, &found.lines)));
        }
        let ledger = ask("select session, n from ledger where n >= 0 order by session, n")?;
        found.ledger.clear();
        for row in ledger {
            found.ledger.entry(number(&row, 0)).or_default().push(number(&row, 1));
        }
        let balances: BTreeMap<i32, i64> =
            ask("select id, balance from account where id >= 0")?.iter().map(|r| (number(r, 0), number(r, 1))).collect();
        if way != WAYS[0] && balances != found.balances {
            found.problems.push(format!("accounts by a scan {:?}, by the index {balances:?}", found.balances));
        }
        found.balances = balances;
        found.scratch = ask("select count(*) from scratch where session >= 0")?.first().map_or(0, |r| number(r, 0));
        for (what, question) in NONE {
            let count: i64 = ask(question)?.first().map_or(0, |r| number(r, 0));
            if count != 0 {
                found.problems.push(format!("{count} {what}"));
            }
        }
    }
    for (name, question) in SEQUENCES {
        let (next, used): (i64, i64) = ask(question)?.first().map_or((0, 0), |r| (number(r, 0), number(r, 1)));
        if next <= used {
            found.problems.push(format!("the sequence of {name} gives {next} again, {used} is in use"));
        }
    }
    Ok(found)
}

/// A number of an answer; 0 for NULL.
fn number<T: std::str::FromStr + Default>(row: &Row, column: usize) -> T {
    row.get(column).and_then(Option::as_ref).and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn field(row: &Row, column: usize) -> &str {
    row.get(column).and_then(Option::as_deref).unwrap_or("NULL")
}

type Ask<'a> = dyn FnMut(&str) -> Result<Vec<Row>, String> + 'a;

/// The sessions' data, in the form of `State::lines`.
fn rows(ask: &mut Ask<'_>, lines: &mut BTreeMap<u32, BTreeSet<String>>) -> Result<(), String> {
    let mut add = |session: u32, line: String| {
        lines.entry(session).or_default().insert(line);
    };
    for row in ask("select session, k from parent where session >= 0 and id > 0")? {
        add(number(&row, 0), format!("parent {}", field(&row, 1)));
    }
    for row in ask("select c.session, c.k, p.k, c.note from child c join parent p on p.id = c.parent where c.session >= 0")? {
        add(number(&row, 0), format!("child {} of {}: {}", field(&row, 1), field(&row, 2), field(&row, 3)));
    }
    let relations = ask("select relname, relkind from pg_class where relname like 'own\\_%' order by relname")?;
    for relation in relations {
        let (name, kind) = (field(&relation, 0).to_owned(), field(&relation, 1).to_owned());
        let session = name.split('_').nth(1).and_then(|s| s.parse().ok()).unwrap_or(u32::MAX);
        match kind.as_str() {
            // Primary keys keep the names that they had before their table was renamed.
            "i" if name.contains("_pkey") => {}
            "i" => add(session, format!("index {name}")),
            _ => {
                add(session, format!("table {name}"));
                for row in ask(&format!("select * from {name} where id >= 0"))? {
                    let values: Vec<&str> = (0..row.len()).map(|c| field(&row, c)).collect();
                    add(session, format!("{name}: {}", values.join(" ")));
                }
            }
        }
    }
    for object in ask("select oid from pg_largeobject_metadata order by oid")? {
        let oid: u32 = number(&object, 0);
        let answer = ask(&format!("select encode(lo_get({oid}), 'hex')"))?;
        let content = answer.first().map_or(String::new(), |r| field(r, 0).to_owned());
        let bytes: Vec<u8> =
            (0..content.len() / 2).filter_map(|n| u8::from_str_radix(content.get(2 * n..2 * n + 2)?, 16).ok()).collect();
        add((oid.saturating_sub(100_000)) / 100, format!("object {oid}: {}", runs(&bytes)));
    }
    Ok(())
}

fn difference<K: Ord + std::fmt::Debug>(
    expected: &BTreeMap<K, BTreeSet<String>>,
    found: &BTreeMap<K, BTreeSet<String>>,
) -> String {
    let all = |m: &BTreeMap<K, BTreeSet<String>>| -> BTreeSet<String> {
        m.iter().flat_map(|(k, v)| v.iter().map(move |line| format!("session {k:?} {line}"))).collect()
    };
    let (expected, found) = (all(expected), all(found));
    let some =
        |lines: BTreeSet<&String>| -> Vec<String> { lines.into_iter().take(5).map(|l| l.chars().take(120).collect()).collect() };
    format!(
        "lacks {:?}, has beyond that {:?}",
        some(expected.difference(&found).collect()),
        some(found.difference(&expected).collect())
    )
}

/// Judges the state after a power cut at a place (`Attempt::place`).
pub fn judge(found: &Found, sessions: &[Session], place: u64) -> Verdict {
    let mut problems = found.problems.clone();
    let mut left = Vec::new();
    for session in sessions {
        left.push(prefix(found, session).unwrap_or_else(|problem| {
            problems.push(problem);
            0
        }));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    durability(sessions, &left, place, &mut problems);
    contents(found, sessions, &left, &mut problems);
    if problems.is_empty() { Ok(left) } else { Err(problems) }
}

/// How many of a session's attempts exist.
fn prefix(found: &Found, session: &Session) -> Result<usize, String> {
    let there = found.ledger.get(&session.number).map_or(&[][..], Vec::as_slice);
    let tried: Vec<i32> = session.done.iter().copied().chain(session.attempts.iter().map(|a| a.transaction.n)).collect();
    if there.len() < session.done.len() || !tried.starts_with(there) {
        let unexpected = there.iter().zip(&tried).position(|(a, b)| a != b).unwrap_or(tried.len().min(there.len()));
        return Err(format!(
            "session {}: the ledger has {} transactions, {} must be there and {} were tried; they part at number {unexpected}: {:?}",
            session.number,
            there.len(),
            session.done.len(),
            tried.len(),
            there.get(unexpected)
        ));
    }
    Ok(there.len() - session.done.len())
}

fn durability(sessions: &[Session], left: &[usize], place: u64, problems: &mut Vec<String>) {
    let survivors = sessions.iter().zip(left).flat_map(|(s, left)| &s.attempts[..*left]);
    let last = survivors.map(|a| a.sent).max();
    for (session, left) in sessions.iter().zip(left) {
        for lost in &session.attempts[*left..] {
            let Some(acknowledged) = lost.acknowledged else { continue };
            let n = lost.transaction.n;
            if !lost.transaction.asynchronous && lost.place <= place {
                problems.push(format!(
                    "session {}: transaction {n} is lost, which was acknowledged at {}, before the power went at {place}",
                    session.number, lost.place
                ));
            } else if last.is_some_and(|sent| acknowledged < sent) {
                problems.push(format!(
                    "session {}: transaction {n}, acknowledged at {acknowledged}, is lost, but one is there that was sent later, at {last:?}",
                    session.number
                ));
            }
        }
    }
}

fn contents(found: &Found, sessions: &[Session], left: &[usize], problems: &mut Vec<String>) {
    let mut balances: BTreeMap<i32, i64> = (1..=ACCOUNTS).map(|id| (id, BALANCE)).collect();
    let mut expected: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    for (session, left) in sessions.iter().zip(left) {
        let state: State = session.state_after(*left);
        for (id, amount) in &state.moved {
            *balances.entry(*id).or_default() += amount;
        }
        let lines = state.lines(session.number);
        if !lines.is_empty() {
            expected.insert(session.number, lines);
        }
    }
    if balances != found.balances {
        problems.push(format!("accounts have {:?}, expected {balances:?}", found.balances));
    }
    if expected != found.lines {
        problems.push(difference(&expected, &found.lines));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attempt, Transaction};

    /// Two sessions of three transactions without effects, which take turns; the place of each is the number of its acknowledgement.
    fn sessions(asynchronous: bool) -> Vec<Session> {
        let attempt = |session: u64, n: u64| {
            let transaction = Transaction { n: n as i32, operations: Vec::new(), asynchronous, repeatable_read: false };
            let sent = 4 * n + 2 * session;
            Attempt { transaction, sent, acknowledged: Some(sent + 1), place: sent + 1 }
        };
        let session = |number| Session { attempts: (0..3).map(|n| attempt(number, n)).collect(), ..Session::new(number as u32) };
        (0..2).map(session).collect()
    }

    fn found(first: i32, second: i32) -> Found {
        let ledger = BTreeMap::from([(0, (0..first).collect()), (1, (0..second).collect())]);
        Found { ledger, balances: (1..=ACCOUNTS).map(|id| (id, BALANCE)).collect(), ..Found::default() }
    }

    #[test]
    fn a_synchronous_commit_may_not_be_lost_once_it_was_acknowledged() {
        assert_eq!(judge(&found(3, 2), &sessions(false), 9), Ok(vec![3, 2]));
        assert!(judge(&found(3, 2), &sessions(false), 11).is_err(), "the last one was acknowledged");
    }

    #[test]
    fn asynchronous_commits_are_lost_from_the_end() {
        assert_eq!(judge(&found(1, 1), &sessions(true), 100), Ok(vec![1, 1]));
        assert_eq!(judge(&found(2, 1), &sessions(true), 100), Ok(vec![2, 1]));
        assert!(judge(&found(3, 1), &sessions(true), 100).is_err(), "one is there that was sent after one that is lost");
    }

    #[test]
    fn what_is_there_follows_from_the_ledger() {
        let mut wrong = found(3, 3);
        wrong.balances.insert(1, 0);
        assert!(judge(&wrong, &sessions(false), 0).is_err());
        let mut unknown = found(3, 3);
        unknown.lines.insert(0, BTreeSet::from(["parent 1".to_owned()]));
        assert!(judge(&unknown, &sessions(false), 0).is_err());
        assert!(judge(&found(4, 3), &sessions(false), 0).is_err(), "nobody tried a fourth");
    }
}
