//! The metrics, and the SQL query for each: names are postgres_exporter's where it has the same metric.

use std::sync::Arc;

use melba_statement::context::Instance;
use melba_types::Result;

use super::exposition::Exposition;
use super::exposition::MetricKind::{self, Counter, Gauge};
use crate::questions::{Questions, Row};

/// Metrics of one question: its first columns are labels, each further one is a metric `PREFIX_COLUMN`.
struct Family {
    prefix: &'static str,
    labels: &'static [&'static str],
    metrics: &'static [(&'static str, MetricKind, &'static str)],
    from: &'static str,
}

const SERVER: [Family; 8] = [
    Family {
        prefix: "pg_stat_database",
        labels: &["datid", "datname"],
        metrics: &[
            ("numbackends", Gauge, "Number of backends currently connected to this database."),
            ("xact_commit", Counter, "Number of transactions in this database that have been committed."),
            ("xact_rollback", Counter, "Number of transactions in this database that have been rolled back."),
            ("blks_read", Counter, "Number of disk blocks read in this database."),
            ("blks_hit", Counter, "Number of times disk blocks were found already in the block cache, so that a read was not necessary."),
            ("blk_read_time", Counter, "Time spent reading data file blocks by backends in this database, in milliseconds."),
            ("blk_write_time", Counter, "Time spent writing data file blocks by backends in this database, in milliseconds."),
            ("tup_returned", Counter, "Number of rows returned by queries in this database."),
            ("tup_fetched", Counter, "Number of rows fetched by queries in this database."),
            ("tup_inserted", Counter, "Number of rows inserted by queries in this database."),
            ("tup_updated", Counter, "Number of rows updated by queries in this database."),
            ("tup_deleted", Counter, "Number of rows deleted by queries in this database."),
            ("temp_files", Counter, "Number of temporary files created by queries in this database."),
            ("temp_bytes", Counter, "Total amount of data written to temporary files by queries in this database."),
            ("deadlocks", Counter, "Number of deadlocks detected in this database."),
            ("active_time_seconds_total", Counter, "Time spent executing SQL statements in this database, in seconds."),
            ("stats_reset", Counter, "Time at which these statistics were last reset."),
        ],
        from: "select datid::text, datname, numbackends, xact_commit, xact_rollback, blks_read, blks_hit, blk_read_time, blk_write_time, tup_returned,
            tup_fetched, tup_inserted, tup_updated, tup_deleted, temp_files, temp_bytes, deadlocks, active_time / 1000, extract(epoch from stats_reset)
            from pg_stat_database where datname is not null",
    },
    Family {
        prefix: "pg_database",
        labels: &["datname"],
        metrics: &[
            ("size_bytes", Gauge, "Disk space used by the database."),
            ("connection_limit", Gauge, "Connection limit set for the database."),
        ],
        from: "select datname, pg_database_size(oid), datconnlimit from pg_database where datallowconn",
    },
    Family {
        prefix: "pg_stat_activity",
        labels: &["datname", "state", "usename", "application_name", "backend_type", "wait_event_type", "wait_event"],
        metrics: &[
            ("count", Gauge, "Number of connections in this state."),
            ("max_tx_duration", Gauge, "Max duration in seconds any active transaction has been running."),
        ],
        from: "select datname, state, usename, application_name, backend_type, wait_event_type, wait_event, count(*),
            coalesce(max(extract(epoch from now() - xact_start)), 0) from pg_stat_activity
            where datname is not null group by 1, 2, 3, 4, 5, 6, 7",
    },
    Family {
        prefix: "pg_locks",
        labels: &["datname", "mode"],
        metrics: &[("count", Gauge, "Number of locks.")],
        from: "select d.datname, lower(m.mode), count(l.mode) from pg_database d cross join (values ('AccessShareLock'), ('RowShareLock'),
            ('RowExclusiveLock'), ('ShareUpdateExclusiveLock'), ('ShareLock'), ('ShareRowExclusiveLock'), ('ExclusiveLock'),
            ('AccessExclusiveLock'), ('SIReadLock')) m(mode) left join pg_locks l on l.database = d.oid and l.mode = m.mode group by 1, 2",
    },
    Family {
        prefix: "pg_stat_bgwriter",
        labels: &[],
        metrics: &[
            ("buffers_clean_total", Counter, "Number of buffers written by the background writer."),
            ("maxwritten_clean_total", Counter, "Number of times the background writer stopped a cleaning scan."),
            ("buffers_alloc_total", Counter, "Number of buffers allocated."),
            ("stats_reset_total", Counter, "Time at which these statistics were last reset."),
        ],
        from: "select buffers_clean, maxwritten_clean, buffers_alloc, extract(epoch from stats_reset) from pg_stat_bgwriter",
    },
    Family {
        prefix: "pg_stat_archiver",
        labels: &[],
        metrics: &[
            ("archived_count", Counter, "Number of WAL files that have been successfully archived."),
            ("failed_count", Counter, "Number of failed attempts for archiving WAL files."),
        ],
        from: "select archived_count, failed_count from pg_stat_archiver",
    },
    Family {
        prefix: "melba",
        labels: &[],
        metrics: &[
            ("log_records_total", Counter, "Records written to the log."),
            ("log_bytes_total", Counter, "Bytes written to the log."),
            ("query_memory_limit_bytes", Gauge, "What queries may hold together."),
            ("query_memory_used_bytes", Gauge, "What queries hold now."),
        ],
        from: "select wal_records, wal_bytes, total_bytes, used_bytes from pg_stat_wal cross join
            (select * from pg_backend_memory_contexts where name = 'query memory') m",
    },
    Family {
        prefix: "pg",
        labels: &[],
        metrics: &[
            ("postmaster_start_time_seconds", Gauge, "Time at which postmaster started."),
            ("replication_is_replica", Gauge, "Indicates if the server is a replica."),
        ],
        from: "select extract(epoch from pg_postmaster_start_time()), pg_is_in_recovery()::int",
    },
];

/// Asked in each database.
const TABLES: Family = Family {
    prefix: "pg_stat_user_tables",
    labels: &["datname", "schemaname", "relname"],
    metrics: &[
        ("seq_scan", Counter, "Number of sequential scans initiated on this table."),
        ("seq_tup_read", Counter, "Number of live rows fetched by sequential scans."),
        ("idx_scan", Counter, "Number of index scans initiated on this table."),
        ("idx_tup_fetch", Counter, "Number of live rows fetched by index scans."),
        ("n_tup_ins", Counter, "Number of rows inserted."),
        ("n_tup_upd", Counter, "Number of rows updated."),
        ("n_tup_del", Counter, "Number of rows deleted."),
        ("n_live_tup", Gauge, "Estimated number of live rows."),
        ("size_bytes", Gauge, "Total disk space used by this table, in bytes, including all indexes and TOAST data."),
    ],
    from: "select current_database(), schemaname, relname, seq_scan, seq_tup_read, idx_scan, idx_tup_fetch, n_tup_ins, n_tup_upd, n_tup_del,
        n_live_tup, pg_total_relation_size(relid) from pg_stat_user_tables order by relid limit 1000",
};

const TABLE_BLOCKS: Family = Family {
    prefix: "pg_statio_user_tables",
    labels: TABLES.labels,
    metrics: &[
        ("heap_blocks_read", Counter, "Number of disk blocks read from this table."),
        ("heap_blocks_hit", Counter, "Number of cache hits in this table."),
        ("idx_blocks_read", Counter, "Number of disk blocks read from all indexes on this table."),
        ("idx_blocks_hit", Counter, "Number of cache hits in all indexes on this table."),
        ("toast_blocks_read", Counter, "Number of disk blocks read from this table's long values."),
        ("toast_blocks_hit", Counter, "Number of cache hits in this table's long values."),
    ],
    from: "select current_database(), schemaname, relname, heap_blks_read, heap_blks_hit, idx_blks_read, idx_blks_hit, toast_blks_read,
        toast_blks_hit from pg_statio_user_tables order by relid limit 1000",
};

/// Everything that SQL knows.
pub fn gather(instance: &Arc<Instance>, out: &mut Exposition) -> Result<()> {
    let catalogs = instance.cluster.catalogs();
    for (at, catalog) in catalogs.databases().enumerate() {
        let Some(database) = catalog.databases().find(|database| database.oid == catalog.database_oid()) else { continue };
        let mut questions = Questions::new(instance, catalog, &database.name)?;
        if at == 0 {
            for family in &SERVER {
                family.gather(&mut questions, out)?;
            }
            settings(&mut questions, out)?;
        }
        TABLES.gather(&mut questions, out)?;
        TABLE_BLOCKS.gather(&mut questions, out)?;
    }
    Ok(())
}

impl Family {
    fn gather(&self, questions: &mut Questions, out: &mut Exposition) -> Result<()> {
        for row in questions.ask(self.from)? {
            self.add(&row, out);
        }
        Ok(())
    }

    fn add(&self, row: &Row, out: &mut Exposition) {
        let (labels, values) = row.split_at(self.labels.len().min(row.len()));
        let labels: Vec<(&str, &str)> =
            self.labels.iter().zip(labels).map(|(name, value)| (*name, value.as_deref().unwrap_or(""))).collect();
        for ((name, kind, help), value) in self.metrics.iter().zip(values) {
            if let Some(value) = value.as_deref().and_then(|v| v.parse().ok()) {
                out.sample(&format!("{}_{name}", self.prefix), help, *kind, &labels, value);
            }
        }
    }
}

/// `pg_settings_NAME` of each setting that is a number or a truth value, in bytes and seconds.
fn settings(questions: &mut Questions, out: &mut Exposition) -> Result<()> {
    const SQL: &str =
        "select name, setting, coalesce(unit, ''), short_desc from pg_settings where vartype in ('bool', 'integer', 'real')";
    for row in questions.ask(SQL)? {
        let [Some(name), Some(setting), Some(unit), Some(help)] = &row[..] else { continue };
        let Some(value) = plain(setting) else { continue };
        let (factor, suffix, base) = match unit.as_str() {
            "B" => (1.0, "_bytes", "bytes"),
            "kB" => (1024.0, "_bytes", "bytes"),
            "8kB" => (8192.0, "_bytes", "bytes"),
            "MB" => (1_048_576.0, "_bytes", "bytes"),
            "us" => (1e-6, "_seconds", "seconds"),
            "ms" => (1e-3, "_seconds", "seconds"),
            "s" => (1.0, "_seconds", "seconds"),
            "min" => (60.0, "_seconds", "seconds"),
            "" => (1.0, "", ""),
            _ => continue,
        };
        // -1 says that there is no such limit, in no unit.
        let value = if value < 0.0 { value } else { value * factor };
        let help =
            if base.is_empty() { format!("Server Parameter: {name}") } else { format!("{help} [Units converted to {base}.]") };
        out.gauge(&format!("pg_settings_{}{suffix}", name.replace('.', "_")), &help, value);
    }
    Ok(())
}

fn plain(setting: &str) -> Option<f64> {
    match setting {
        "on" => Some(1.0),
        "off" => Some(0.0),
        number => number.parse().ok(),
    }
}
