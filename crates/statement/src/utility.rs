//! Utility statements: the table of those that need the session, and the way to all of them. Those that only define things have
//! theirs in `melba_ddl`.

use std::sync::Arc;

use melba_definition::context::StatementText;
use melba_engine::RelationLockMode;
use melba_parse::Statement;
use melba_parse::command::tag;
use melba_transaction::Tx;
use melba_types::{DbError, Result};
use pg_query::protobuf::{CopyStmt, node::Node as N};

use super::context::StatementContext;
use super::copy::{self as copying, CopyEnvironment};
use super::ddl_context::{Utility, lookup};
use super::deferred;
use super::execution::{Parameters, plain_evaluation, run_query};
use super::outcome::Outcome;
use super::temporary::{makes_temporary, with_temporary_schema};
use super::{event_trigger, filling, library, lock_table, maintenance, notify, vacuum};

/// A row for each statement: `statement(s): the lock it takes on the relations it names => its handler`. A handler returns
/// an outcome, or nothing when the statement has only a tag.
macro_rules! statements {
    ($($node:ident($s:pat): $lock:expr => $handler:path;)*) => {
        /// `None`: there is no row.
        fn run_row(utility: &Utility<'_>, statement: &N) -> Option<Result<Outcome>> {
            use RelationLockMode::*;
            #[allow(unused_variables)]
            let lock = match statement {
                $(N::$node($s) => $lock,)*
                _ => return None,
            };
            let utility = Utility { lookup: utility.lookup.with_target_lock(lock), ..*utility };
            match statement {
                $(N::$node(s) => Some($handler(&utility, s).map(|outcome| outcome.tagged(tag(statement)))),)*
                _ => None,
            }
        }

        #[cfg(test)]
        const STATEMENTS: &[&str] = &[$(stringify!($node)),*];
    };
}

/// The lock of statements that name no relation, or whose options say which one.
const UNNAMED: RelationLockMode = RelationLockMode::AccessExclusive;

statements! {
    CopyStmt(s): if s.is_from { RowExclusive } else { AccessShare } => copy;
    CreateTableAsStmt(_): UNNAMED => filling::create_table_as;
    SelectStmt(_): UNNAMED => filling::select_into;
    RefreshMatViewStmt(_): AccessExclusive => filling::refresh;
    ConstraintsSetStmt(_): UNNAMED => deferred::set_constraints;
    ReindexStmt(_): UNNAMED => maintenance::reindex;
    ClusterStmt(_): AccessExclusive => maintenance::cluster;
    VacuumStmt(_): UNNAMED => vacuum::run;
    CheckPointStmt(_): UNNAMED => maintenance::checkpoint;
    LockStmt(s): lock_table::mode(s) => lock_table::run;
    LoadStmt(_): UNNAMED => library::load;
    NotifyStmt(_): UNNAMED => notify::notify;
    ListenStmt(_): UNNAMED => notify::listen;
    UnlistenStmt(_): UNNAMED => notify::unlisten;
}

/// The result of a handler.
trait Handled {
    fn tagged(self, tag: &str) -> Outcome;
}

impl Handled for () {
    fn tagged(self, tag: &str) -> Outcome {
        Outcome::Done { tag: tag.to_owned() }
    }
}

impl Handled for Outcome {
    fn tagged(self, _: &str) -> Outcome {
        self
    }
}

/// Runs a statement that has a row here or in `melba_ddl`.
pub fn execute(context: &StatementContext, tx: &Arc<Tx>, statement: &Statement, parameters: Parameters<'_>) -> Result<Outcome> {
    let source = statement.text();
    let start = source.as_ptr().addr() - statement.source.as_ptr().addr();
    let with_temporary;
    let context = match makes_temporary(&statement.node, &context.path) {
        true => {
            with_temporary = with_temporary_schema(context, tx)?;
            &with_temporary
        }
        false => context,
    };
    let text = StatementText { text: source, start };
    let utility = Utility { context, tx, lookup: lookup(context, tx), text, parameters };
    let outcome = event_trigger::around(context, &utility.lookup, &statement.node, || {
        let result = run_row(&utility, &statement.node).or_else(|| {
            let defined = melba_ddl::execute(&utility.ddl(), &statement.node)?;
            Some(defined.map(|()| ().tagged(tag(&statement.node))))
        });
        result.ok_or_else(|| DbError::unsupported(tag(&statement.node)))?
    })?;
    tx.claim_changes()?;
    Ok(outcome)
}

fn copy(utility: &Utility<'_>, s: &CopyStmt) -> Result<Outcome> {
    let Utility { context, tx, lookup, .. } = utility;
    let exec = || plain_evaluation(context, tx);
    let query = |node: &N| run_query(context, tx, node, (&[], &Arc::from([])));
    // The statement's own portal may be among them, without a name.
    let has_portals = context.session.portals.has_named();
    let activity = &context.session.activity;
    let wait = || context.check_wait();
    copying::run(&CopyEnvironment { lookup, tx, exec: &exec, query: &query, has_portals, wait: &wait, activity }, s)
}

#[cfg(test)]
mod tests {
    use super::STATEMENTS;

    /// The text of a file of the repository.
    fn text(name: &str) -> String {
        std::fs::read_to_string(format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))).expect("a file of the repository")
    }

    #[test]
    fn a_statement_has_one_handler_and_a_row_of_facts() {
        let facts = text("crates/parse/src/command/rows.rs");
        let handled: Vec<&str> = STATEMENTS.iter().chain(melba_ddl::STATEMENTS).copied().collect();
        for name in &handled {
            assert_eq!(facts.matches(&format!("\n    {name}(")).count(), 1, "rows of {name} in parse::command");
            assert_eq!(handled.iter().filter(|other| *other == name).count(), 1, "handlers of {name}");
        }
    }

    #[test]
    fn contributing_says_where_a_statement_goes() {
        let contributing = text("CONTRIBUTING.md");
        let section = contributing.split("## Add a utility statement").nth(1).and_then(|rest| rest.split("\n## ").next());
        let section = section.expect("the section");
        for (file, table) in [
            ("crates/parse/src/command/rows.rs", "statements! {"),
            ("crates/ddl/src/statements.rs", "statements! {"),
            ("crates/statement/src/utility.rs", "statements! {"),
        ] {
            assert!(section.contains(file), "{file} is not named");
            assert!(text(file).contains(table), "{file} has no table");
        }
    }
}
