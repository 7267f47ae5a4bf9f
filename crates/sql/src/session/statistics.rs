//! The statistics functions behind pg_stat_wal and pg_stat_io, and what pg_class says of sizes.

use std::sync::Arc;

use melba_catalog::relations::{LiveInfo, RelationEstimate};
use melba_catalog::{Relation, Storage};
use melba_engine::{Engine, Written};
use melba_types::numeric::Numeric;
use melba_types::{Datum, Oid, Record, oids};

use super::context::StatementContext;

/// The page size that pg_class counts in.
const PAGE_BYTES: u64 = 8192;

impl StatementContext {
    /// pg_stat_get_wal: wal_records, wal_fpi, wal_bytes, wal_buffers_full, stats_reset. There are no full-page images, and
    /// the log's buffer grows instead of being full.
    pub(super) fn wal_statistics(&self) -> Datum {
        let statistics = self.session.instance.cluster.engine.log_statistics();
        let fields = vec![
            Datum::Int8(statistics.records as i64),
            Datum::Int8(0),
            Datum::Numeric(Numeric::from(statistics.bytes as i64)),
            Datum::Int8(0),
            Datum::Int8(self.session.instance.started),
        ];
        let types: [Oid; 5] = [oids::INT8, oids::INT8, oids::NUMERIC, oids::INT8, oids::TIMESTAMPTZ];
        Datum::Record(Arc::new(Record { type_oid: oids::RECORD, field_types: types.into(), field_names: None, fields }))
    }

    /// pg_stat_get_io: backend_type, object, context, reads, read_bytes, read_time, writes, write_bytes, write_time,
    /// writebacks, writeback_time, extends, extend_bytes, extend_time, hits, evictions, reuses, fsyncs, fsync_time,
    /// stats_reset. Only the log is counted.
    pub(super) fn io_rows(&self) -> Vec<Vec<Datum>> {
        let statistics = self.session.instance.cluster.engine.log_statistics();
        let row = |backend: &'static str, written: Written| {
            let mut row = vec![Datum::Null; 20];
            (row[0], row[1], row[2]) = (Datum::text(backend), Datum::text("wal"), Datum::text("normal"));
            row[6] = Datum::Int8(written.writes as i64);
            row[7] = Datum::Numeric(Numeric::from(written.bytes as i64));
            row[17] = Datum::Int8(written.syncs as i64);
            row[19] = Datum::Int8(self.session.instance.started);
            row
        };
        vec![row("client backend", statistics.by_clients), row("walwriter", statistics.in_background)]
    }
}

/// What the engine knows of relations at this moment.
pub struct EngineInfo(pub Arc<Engine>);

impl LiveInfo for EngineInfo {
    fn relation_estimate(&self, relation: &Relation) -> Option<RelationEstimate> {
        let Storage::Tree(tree) = relation.storage else { return None };
        let pages = self.0.tree_bytes(tree).div_ceil(PAGE_BYTES);
        Some(RelationEstimate { pages: pages.min(i32::MAX as u64) as i32, rows: self.0.tree_rows_estimate(tree) as f32 })
    }
}
