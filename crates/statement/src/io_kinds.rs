//! The rows of pg_stat_io: what each kind of process can do, as PostgreSQL 18 has it.
//!
//! Processes that Melba does not have count nothing. What its own do is in the context `normal`.

use melba_types::Datum;
use melba_types::numeric::Numeric;

/// The kind of process that serves a client.
pub(super) const SESSION: &str = "client backend";

/// A kind of process.
pub(super) struct BackendKind {
    pub name: &'static str,
    /// The contexts of relations.
    contexts: &'static [&'static str],
    has_temporary: bool,
    /// It reads blocks of relations, and adds some.
    reads: bool,
    extends: bool,
    reads_log: bool,
}

const ALL: &[&str] = &["bulkread", "bulkwrite", "init", "normal", "vacuum"];
const FEW: &[&str] = &["bulkread", "init", "normal"];
const VACUUMING: &[&str] = &["bulkread", "init", "normal", "vacuum"];
const WRITING: &[&str] = &["init", "normal"];

const fn serving(name: &'static str, has_temporary: bool) -> BackendKind {
    BackendKind { name, contexts: ALL, has_temporary, reads: true, extends: true, reads_log: true }
}

const fn helping(
    name: &'static str,
    contexts: &'static [&'static str],
    reads: bool,
    extends: bool,
    reads_log: bool,
) -> BackendKind {
    BackendKind { name, contexts, has_temporary: false, reads, extends, reads_log }
}

/// In the order of the view. The last is Melba's own.
pub(super) const BACKENDS: [BackendKind; 15] = [
    serving(SESSION, true),
    helping("autovacuum launcher", FEW, true, false, false),
    helping("autovacuum worker", VACUUMING, true, true, false),
    serving("background worker", true),
    serving("walsender", true),
    serving("slotsync worker", true),
    serving("standalone backend", false),
    helping("background writer", WRITING, false, false, false),
    helping("checkpointer", WRITING, false, false, true),
    serving("io worker", true),
    serving("startup", false),
    helping("walreceiver", &[], false, false, false),
    helping("walsummarizer", &[], false, false, true),
    helping("walwriter", &[], false, false, false),
    helping("merger", &["normal"], true, false, false),
];

/// A text of a row.
pub(super) fn text_at(row: &[Datum], at: usize) -> &str {
    match &row[at] {
        Datum::Text(text) => text,
        _ => "",
    }
}

/// Puts zeros into a number, its bytes and its time.
fn zero(row: &mut [Datum], at: usize) {
    (row[at], row[at + 1], row[at + 2]) = (Datum::Int8(0), Datum::Numeric(Numeric::from(0_i64)), Datum::Float8(0.0));
}

impl BackendKind {
    /// Its rows without counts: backend_type, object, context, reads, read_bytes, read_time, writes, write_bytes, write_time,
    /// writebacks, writeback_time, extends, extend_bytes, extend_time, hits, evictions, reuses, fsyncs, fsync_time, stats_reset.
    /// NULL: it does no such thing.
    pub fn rows(&self, reset: &Datum) -> Vec<Vec<Datum>> {
        let of_relations = self.contexts.iter().map(|context| self.relation("relation", context, reset));
        let temporary = self.has_temporary.then(|| self.relation("temp relation", "normal", reset));
        let of_log = self.log_contexts().iter().map(|context| self.log(context, reset));
        of_relations.chain(temporary).chain(of_log).collect()
    }

    /// Merges write no log.
    fn log_contexts(&self) -> &'static [&'static str] {
        if self.name == "merger" { &[] } else { WRITING }
    }

    fn empty(&self, object: &'static str, context: &'static str, reset: &Datum) -> Vec<Datum> {
        let mut row = vec![Datum::Null; 20];
        (row[0], row[1], row[2]) = (Datum::text(self.name), Datum::text(object), Datum::text(context));
        row[19] = reset.clone();
        row
    }

    fn relation(&self, object: &'static str, context: &'static str, reset: &Datum) -> Vec<Datum> {
        let mut row = self.empty(object, context, reset);
        let (is_permanent, is_ring) = (object == "relation", !WRITING.contains(&context));
        if self.reads {
            zero(&mut row, 3);
            (row[14], row[15]) = (Datum::Int8(0), Datum::Int8(0));
        }
        zero(&mut row, 6);
        if is_permanent {
            (row[9], row[10]) = (Datum::Int8(0), Datum::Float8(0.0));
        }
        if self.extends && context != "bulkread" {
            zero(&mut row, 11);
        }
        if is_ring {
            row[16] = Datum::Int8(0);
        }
        if is_permanent && !is_ring {
            (row[17], row[18]) = (Datum::Int8(0), Datum::Float8(0.0));
        }
        row
    }

    fn log(&self, context: &'static str, reset: &Datum) -> Vec<Datum> {
        let mut row = self.empty("wal", context, reset);
        if self.reads_log && context == "normal" {
            zero(&mut row, 3);
        }
        zero(&mut row, 6);
        (row[17], row[18]) = (Datum::Int8(0), Datum::Float8(0.0));
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The columns that are NULL of some rows, as PostgreSQL 18 has them.
    #[test]
    fn rows_are_null_where_a_process_does_no_such_thing() {
        let nulls = |backend: &str, object: &str, context: &str| -> Vec<usize> {
            let kind = BACKENDS.iter().find(|kind| kind.name == backend).expect("a kind");
            let is_it = |row: &Vec<Datum>| text_at(row, 1) == object && text_at(row, 2) == context;
            let row = kind.rows(&Datum::Int8(1)).into_iter().find(is_it).expect("a row");
            (0..row.len()).filter(|at| row[*at].is_null()).collect()
        };
        assert_eq!(nulls("client backend", "relation", "bulkread"), [11, 12, 13, 17, 18]);
        assert_eq!(nulls("client backend", "relation", "bulkwrite"), [17, 18]);
        assert_eq!(nulls("client backend", "relation", "normal"), [16]);
        assert_eq!(nulls("client backend", "temp relation", "normal"), [9, 10, 16, 17, 18]);
        assert_eq!(nulls("client backend", "wal", "normal"), [9, 10, 11, 12, 13, 14, 15, 16]);
        assert_eq!(nulls("autovacuum launcher", "relation", "init"), [11, 12, 13, 16]);
        assert_eq!(nulls("checkpointer", "relation", "normal"), [3, 4, 5, 11, 12, 13, 14, 15, 16]);
        assert_eq!(nulls("walwriter", "wal", "normal"), [3, 4, 5, 9, 10, 11, 12, 13, 14, 15, 16]);
    }

    #[test]
    fn there_are_the_rows_of_postgresql_and_one_more() {
        assert_eq!(BACKENDS.iter().flat_map(|kind| kind.rows(&Datum::Null)).count(), 79 + 1);
    }
}
