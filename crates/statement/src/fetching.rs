//! Reads counts of tables, indexes and functions as consistently as stats_fetch_consistency wants.

use melba_catalog::Storage;
use melba_types::{Oid, TreeId};

use super::call_counts::CallCounts;
use super::context::StatementContext;
use super::fetched::{Consistency, DatabaseCounts, TreeCounts};
use super::reset::counts_since_reset;

/// The setting.
fn consistency(context: &StatementContext) -> Consistency {
    Consistency::of(context.session.settings.lock().get("stats_fetch_consistency").as_text())
}

/// pg_stat_get_snapshot_timestamp, in microseconds since 2000-01-01.
pub(super) fn snapshot_time(context: &StatementContext) -> Option<i64> {
    context.session.fetched.taken(consistency(context))
}

/// The counts of a table's or an index's tree.
pub(super) fn fetched_tree(context: &StatementContext, tree: TreeId) -> TreeCounts {
    let newest = || tree_counts(context, tree);
    context.session.fetched.counts(consistency(context), tree, |all| &mut all.trees, newest, || statistics(context))
}

/// The counts of a function; `None`: it was never called, or does not exist.
pub(super) fn fetched_function(context: &StatementContext, function: Oid) -> Option<CallCounts> {
    let newest = || function_counts(context, function);
    context.session.fetched.counts(consistency(context), function, |all| &mut all.functions, newest, || statistics(context))
}

fn tree_counts(context: &StatementContext, tree: TreeId) -> TreeCounts {
    let (rows, scans) = counts_since_reset(context, tree);
    TreeCounts { rows, scans, live: context.session.instance.cluster.engine.tree_rows_estimate(tree) }
}

fn function_counts(context: &StatementContext, function: Oid) -> Option<CallCounts> {
    if !exists(context, function) {
        return None;
    }
    let session = &context.session;
    let known = session.instance.functions.of_function(session.database_oid, function);
    // The first call's counts are added when its transaction ends.
    known.or_else(|| session.calls.of_function(function).map(|_| CallCounts::default()))
}

fn exists(context: &StatementContext, function: Oid) -> bool {
    context.session.catalog().function(function).is_some() || context.catalog.function(function).is_some()
}

/// All of the session's database.
fn statistics(context: &StatementContext) -> DatabaseCounts {
    let session = &context.session;
    let functions = session.instance.functions.of_database(session.database_oid).into_iter();
    let functions = functions.filter(|(function, _)| exists(context, *function));
    let trees = context.catalog.user_relations().filter_map(|r| match r.storage {
        Storage::Tree(tree) => Some((tree, tree_counts(context, tree))),
        _ => None,
    });
    DatabaseCounts {
        functions: functions.map(|(function, counts)| (function, Some(counts))).collect(),
        trees: trees.collect(),
        taken: Some(session.instance.cluster.clock.now_micros()),
    }
}
