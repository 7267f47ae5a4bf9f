//! pg_stat_reset and similar functions, and counts since they were called.

use melba_catalog::Storage;
use melba_engine::{RowCounts, ScanCounts};
use melba_types::{Datum, Oid, Result, TreeId, err};

use super::backends::SessionCounts;
use super::context::StatementContext;
use super::maintained::MaintainedTable;
use super::resets::{IoSums, SHARED};

/// The functions that reset; `None`: no such one.
pub(super) fn reset_statistics(context: &StatementContext, source: &str, args: &[Datum]) -> Option<Result<Datum>> {
    let instance = &context.session.instance;
    let now = instance.cluster.clock.now_micros();
    let done = Some(Ok(Datum::text("")));
    match source {
        "pg_stat_reset" => {
            let database = context.session.database_oid;
            let (_, counts) = instance.backends.of_database(database, now);
            let trees =
                context.catalog.relations().filter_map(|r| if let Storage::Tree(tree) = r.storage { Some(tree) } else { None });
            let trees: Vec<TreeId> = trees.collect();
            let mut kept = instance.resets.0.lock();
            kept.databases.insert(database, (now, counts));
            let tables = context.catalog.relations().filter_map(|r| MaintainedTable::of(database, r));
            instance.maintained.forget(&tables.collect::<Vec<_>>());
            trees.into_iter().for_each(|tree| _ = kept.trees.insert(tree, counts_of(context, tree)));
            instance.functions.reset(database, None);
            done
        }
        "pg_stat_reset_single_table_counters" => {
            if let Some(relation) = context.catalog.relation(Oid(args[0].as_oid())) {
                if let Storage::Tree(tree) = relation.storage {
                    let counts = counts_of(context, tree);
                    instance.resets.0.lock().trees.insert(tree, counts);
                }
                instance.maintained.forget(MaintainedTable::of(context.session.database_oid, relation).as_slice());
            }
            done
        }
        "pg_stat_reset_shared" => {
            let target = args.first().filter(|target| !target.is_null()).map(Datum::as_str);
            Some(reset_shared(context, target, now).map(|()| Datum::text("")))
        }
        "pg_stat_reset_slru" => {
            instance.resets.0.lock().shared.insert("slru", now);
            done
        }
        "pg_stat_reset_single_function_counters" => {
            instance.functions.reset(context.session.database_oid, Some(Oid(args[0].as_oid())));
            done
        }
        "pg_stat_reset_backend_stats" => {
            let pid = args[0].as_i32();
            if let Some(backend) = instance.backends.get(pid) {
                let mut kept = instance.resets.0.lock();
                kept.sessions.retain(|pid, _| instance.backends.get(*pid).is_some());
                kept.sessions.insert(pid, (now, SessionCounts::of_session(&backend)));
            }
            done
        }
        // Nothing of the kind is counted.
        "pg_stat_reset_replication_slot" | "pg_stat_reset_subscription_stats" => done,
        _ => None,
    }
}

/// pg_stat_reset_shared of one target, or of all.
fn reset_shared(context: &StatementContext, target: Option<&str>, now: i64) -> Result<()> {
    let instance = &context.session.instance;
    let wanted: Vec<&'static str> = SHARED.into_iter().filter(|known| target.is_none_or(|t| t == *known)).collect();
    if wanted.is_empty() {
        let error = err!(INVALID_PARAMETER_VALUE, "unrecognized reset target: \"{}\"", target.unwrap_or_default());
        let hint =
            "Target must be \"archiver\", \"bgwriter\", \"checkpointer\", \"io\", \"recovery_prefetch\", \"slru\", or \"wal\".";
        return Err(error.hint(hint));
    }
    let sums = IoSums::now(instance);
    let flushed = *instance.background_work.flushed.lock();
    let mut kept = instance.resets.0.lock();
    if wanted.contains(&"checkpointer") {
        kept.flushed = flushed;
    }
    if wanted.contains(&"wal") {
        kept.wal = sums.log;
    }
    if wanted.contains(&"io") {
        kept.io = sums;
    }
    wanted.into_iter().for_each(|target| _ = kept.shared.insert(target, now));
    Ok(())
}

/// The counts of a tree since the server's start.
fn counts_of(context: &StatementContext, tree: TreeId) -> (RowCounts, ScanCounts) {
    let engine = &context.session.instance.cluster.engine;
    (engine.tree_row_counts(tree), engine.tree_scan_counts(tree))
}

/// The same, since they were reset.
pub(super) fn counts_since_reset(context: &StatementContext, tree: TreeId) -> (RowCounts, ScanCounts) {
    let ((rows, scans), (rows_before, scans_before)) = (counts_of(context, tree), context.session.instance.resets.of_tree(tree));
    let since = |count: u64, before: u64| count.saturating_sub(before);
    let rows = RowCounts {
        inserted: since(rows.inserted, rows_before.inserted),
        updated: since(rows.updated, rows_before.updated),
        deleted: since(rows.deleted, rows_before.deleted),
    };
    (rows, scans.since(scans_before))
}
