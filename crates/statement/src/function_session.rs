//! The session as functions see it.

use std::sync::Arc;
use std::time::Duration;

use melba_catalog::relations::LiveInfo;
use melba_catalog::{Catalog, Function};
use melba_fmgr::{
    CallInfo, FileRequest, FileRows, FormatSettings, PureRoutine, PureTrigger, QueryRows, RoutineCall, RoutineRows,
    TransitionTable, TriggerCall,
};
use melba_settings::value::Value;
use melba_types::{Batch, Csn, Datum, DbError, Oid, Result};

use super::context::StatementContext;
use super::current_row::current_row;
use super::domain::domain_check_batch;
use super::files;
use super::query_text::query_rows;
use super::routine::{pure_routine, pure_trigger, routine_value, rows_of_routine, run_trigger};
use super::shown::{print_body, print_expression, print_query, print_rule};
use super::system::call_system;
use super::system_rows::rows_of;

impl melba_fmgr::Session for StatementContext {
    fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    fn live_info(&self) -> &dyn LiveInfo {
        &*self.session.instance.live
    }

    fn user(&self) -> Oid {
        self.user.oid
    }

    fn cursor_row(&self, cursor: &str, table: Oid) -> Result<Option<i64>> {
        current_row(self, cursor, table)
    }

    fn search_path(&self) -> Vec<Oid> {
        self.path.path.to_vec()
    }

    fn shown_expression(&self, text: &str, relation: Oid, pretty: bool) -> Result<String> {
        print_expression(self, text, relation, pretty)
    }

    fn shown_query(&self, view: &melba_catalog::Relation, pretty: bool) -> Result<String> {
        print_query(self, view, pretty)
    }

    fn shown_rule(&self, rule: &melba_catalog::RewriteRule, pretty: bool) -> Result<String> {
        print_rule(self, rule, pretty)
    }

    fn notify(&self, channel: &str, payload: &str) -> Result<()> {
        let tx = self.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
        tx.notify(&self.session.listener, channel, payload)
    }

    fn file_columns(&self, source: &str, args: &[Datum]) -> Result<Vec<melba_fmgr::RowColumn>> {
        files::columns(self, source, args)
    }

    fn open_files(self: Arc<Self>, request: FileRequest) -> Result<Box<dyn FileRows>> {
        files::open(self, request)
    }

    fn format(&self) -> &FormatSettings {
        &self.format
    }

    fn is_uncommitted_label(&self, enum_type: Oid, label: Oid) -> bool {
        let Some(tx) = self.tx.as_ref().filter(|tx| tx.has_catalog_changes()) else { return false };
        // After a rollback a new type no longer exists, nor do its uses.
        let committed = tx.cluster().catalog(tx.database);
        committed.type_(enum_type).is_some_and(|ty| ty.labels.iter().all(|l| l.0 != label))
    }

    fn temporary_namespace(&self) -> Oid {
        self.path.temporary
    }

    fn setting(&self, name: &str) -> Option<String> {
        let settings = self.session.settings.lock();
        settings.find(name).map(|id| settings.show(id))
    }

    fn setting_number(&self, name: &str) -> Option<f64> {
        match self.session.settings.lock().get(name) {
            Value::Integer(v) => Some(*v as f64),
            Value::Real(v) => Some(*v),
            _ => None,
        }
    }

    fn setting_is_given(&self, name: &str) -> bool {
        let settings = self.session.settings.lock();
        settings.find(name).is_some_and(|id| settings.is_given(id))
    }

    fn transaction_timestamp(&self) -> i64 {
        self.note_clock_read();
        self.transaction_start
    }

    fn statement_timestamp(&self) -> i64 {
        self.note_clock_read();
        self.statement_start
    }

    fn clock_timestamp(&self) -> i64 {
        self.note_clock_read();
        self.session.instance.cluster.clock.now_micros()
    }

    fn monotonic(&self) -> Duration {
        self.session.instance.cluster.clock.monotonic()
    }

    fn random_u64(&self) -> u64 {
        let mut state = self.session.random.lock();
        // SplitMix64: one word of state, so that setseed() repeats a sequence.
        let state = state.get_or_insert_with(|| self.session.instance.cluster.random.next_u64());
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn fill_random(&self, bytes: &mut [u8]) -> Result<()> {
        let filled = self.session.instance.cluster.random.fill(bytes);
        filled.map_err(|_| DbError::internal("could not generate random values"))
    }

    fn notice(&self, notice: DbError) {
        self.session.notice(notice);
    }

    fn system_function(&self, source: &str, call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
        call_system(self, source, call, args)
    }

    fn check_domain(&self, domain: Oid, values: &Batch) -> Result<()> {
        domain_check_batch(self, domain, values)
    }

    fn system_rows(&self, source: &str, _call: &CallInfo<'_>, args: &[Datum]) -> Result<Vec<Vec<Datum>>> {
        rows_of(self, source, args)
    }

    fn call_routine(&self, call: &RoutineCall<'_>) -> Result<Datum> {
        routine_value(self, call)
    }

    fn pure_routine(&self, call: &RoutineCall<'_>) -> Result<Option<Box<dyn PureRoutine>>> {
        pure_routine(self, call)
    }

    fn routine_rows(&self, call: &RoutineCall<'_>) -> Result<RoutineRows> {
        rows_of_routine(self, call)
    }

    fn query_rows(&self, text: &str, view: (Csn, u32)) -> Result<QueryRows> {
        query_rows(self, text, view)
    }

    fn call_trigger(&self, call: &TriggerCall<'_>) -> Result<Datum> {
        run_trigger(self, call)
    }

    fn pure_trigger(&self, call: &TriggerCall<'_>) -> Result<Option<Box<dyn PureTrigger>>> {
        pure_trigger(self, call)
    }

    fn transition_table(&self, name: &str) -> Option<Arc<dyn TransitionTable>> {
        let mut all = self.transitions.iter().flat_map(|all| all.iter());
        all.find(|(known, _)| **known == *name).map(|(_, rows)| rows.clone())
    }

    fn is_in_use(&self, relation: Oid) -> bool {
        let running = self.session.running_triggers.lock();
        running.iter().any(|table| *table == relation || self.catalog.descendants(relation).contains(table))
    }

    fn is_replica(&self) -> bool {
        self.session.settings.lock().get("session_replication_role").as_text() == "replica"
    }

    fn shown_body(&self, function: &Function) -> Result<String> {
        print_body(self, function)
    }

    fn check_interrupt(&self) -> Result<()> {
        melba_types::limits::check_reserve()?;
        self.session.interrupt.check()
    }
}
