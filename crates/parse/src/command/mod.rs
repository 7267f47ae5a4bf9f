//! Properties of a statement that are known before it runs: a row of one table for each kind of statement.
//!
//! The columns are read wherever the kind of a statement matters: command tags, read-only transactions, the server
//! log, transaction blocks, bodies of functions. The handler of a utility statement is a row of another table: of
//! `melba_ddl::execute` if the statement defines objects, of `melba_statement`'s `utility` otherwise.

mod event_tags;
mod objects;
mod rows;

pub use event_tags::{fires_event_triggers, has_event_triggers, is_tag};
pub use objects::object_word;
pub use rows::{allowed, logged, run_by, tag};

use pg_query::NodeEnum as N;

/// The part of the server that runs a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunBy {
    /// The executor, by a plan.
    Executor,
    /// The session itself: it is about its transaction, settings, prepared statements or cursors.
    Session,
    /// A row of the tables of utility statements.
    Utility,
}

/// Whether a read-only transaction may run a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It changes nothing that a dump would show, or checks its transaction itself.
    Reads,
    Changes,
    /// It makes changes; its name in the error.
    ChangesAs(&'static str),
}

/// From which value of log_statement on a statement is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logged {
    Ddl,
    Mod,
    All,
}

/// Where a statement is allowed. Names are those of PostgreSQL's errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed {
    Anywhere,
    /// Only in a transaction block, or in a function.
    Block(&'static str),
    /// In neither: it runs in a separate transaction.
    OwnTransaction(&'static str),
    /// Anywhere, a block that has failed included, which it ends.
    FailedBlock,
}

/// Statements that are planned: everything else is a utility statement.
pub fn is_query(node: &N) -> bool {
    run_by(node) == RunBy::Executor
}

/// Statements about the session: its transaction, settings, prepared statements and cursors.
pub fn is_session_statement(node: &N) -> bool {
    run_by(node) == RunBy::Session
}

/// Whether a utility statement takes the snapshot of a transaction that keeps one, as in PostgreSQL (PlannedStmtRequiresSnapshot). Those
/// with a transaction of their own are left out: nothing comes after them.
pub fn takes_snapshot(node: &N) -> bool {
    use N::*;
    let is_without = matches!(
        node,
        TransactionStmt(_)
            | VariableSetStmt(_)
            | VariableShowStmt(_)
            | FetchStmt(_)
            | LockStmt(_)
            | ConstraintsSetStmt(_)
            | NotifyStmt(_)
            | ListenStmt(_)
            | UnlistenStmt(_)
            | CheckPointStmt(_)
    );
    !is_without && !is_query(node) && !matches!(allowed(node), Allowed::OwnTransaction(_))
}

/// The command as PostgreSQL names it in "cannot execute ... in a read-only transaction"; `None`: it changes nothing.
/// Changes to temporary tables, which PostgreSQL allows there, are refused as well.
pub fn writing_command(node: &N) -> Option<&'static str> {
    match rows::effect(node) {
        Effect::Reads => None,
        Effect::Changes => Some(tag(node)),
        Effect::ChangesAs(name) => Some(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(text: &str) -> N {
        crate::parse(text).expect("valid").statements.remove(0).node.clone()
    }

    #[test]
    fn columns_of_a_row_follow_the_clauses_of_the_statement() {
        let of = |text: &str| (tag(&node(text)), writing_command(&node(text)), logged(&node(text)), allowed(&node(text)));
        use Allowed::*;
        use Logged::*;
        assert_eq!(of("select 1"), ("SELECT", None, All, Anywhere));
        assert_eq!(of("select 1 for share"), ("SELECT", Some("SELECT FOR SHARE"), All, Anywhere));
        assert_eq!(of("select 1 into t"), ("SELECT INTO", Some("SELECT INTO"), Ddl, Anywhere));
        assert_eq!(of("copy t from stdin"), ("COPY", Some("COPY FROM"), Mod, Anywhere));
        assert_eq!(of("copy t to stdout"), ("COPY", None, All, Anywhere));
        assert_eq!(of("drop index concurrently i").3, OwnTransaction("DROP INDEX CONCURRENTLY"));
        assert_eq!(of("drop index i"), ("DROP INDEX", Some("DROP INDEX"), Ddl, Anywhere));
        assert_eq!(of("reindex (concurrently) table t").3, OwnTransaction("REINDEX CONCURRENTLY"));
        assert_eq!(of("reindex (concurrently off) table t").3, Anywhere);
        let detach = "ALTER TABLE ... DETACH CONCURRENTLY";
        assert_eq!(of("alter table t detach partition p concurrently").3, OwnTransaction(detach));
        assert_eq!(of("alter table t detach partition p").3, Anywhere);
        assert_eq!(of("rollback to s"), ("ROLLBACK", None, All, FailedBlock));
        assert_eq!(of("declare c cursor for select 1").3, Block("DECLARE CURSOR"));
        assert_eq!(of("declare c cursor with hold for select 1").3, Anywhere);
        assert_eq!(of("alter view v rename column a to b").0, "ALTER VIEW");
        assert_eq!(of("alter table t rename constraint a to b").0, "ALTER TABLE");
        assert_eq!(of("alter type t rename attribute a to b").0, "ALTER TYPE");
        assert_eq!(of("alter operator + (int, int) owner to a").0, "ALTER OPERATOR");
        assert_eq!(of("reset all").0, "RESET");
        assert_eq!(of("create event trigger t on ddl_command_end execute function f()").0, "CREATE EVENT TRIGGER");
        assert_eq!(of("move 2 in c").0, "MOVE");
    }
}
