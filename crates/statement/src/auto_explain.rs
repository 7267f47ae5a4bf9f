//! auto_explain: the plans of slow statements, for the server log. It is PostgreSQL's module of that name, built in.

use std::sync::Arc;
use std::time::Duration;

use melba_engine::log_bytes;
use melba_execute::{EndedExecution, Execution, ExecutionWatch, watched_depth};
use melba_plan::explain::ExplainOptions;
use melba_types::{Datum, Oid};

use super::auto_explain_settings::PlanLogging;
use super::context::{SessionState, StatementContext};
use super::plan_report::{PlanReport, plan_report, shows_identifiers};
use super::planned::Planned;
use super::value_io::parameter_list;

/// One execution whose plan is logged if it takes long enough.
struct Watch {
    context: Arc<StatementContext>,
    /// `None`: it only tells those within that they are.
    wanted: Option<Arc<PlanLogging>>,
    text: Arc<str>,
    parameter_types: Vec<Oid>,
    identifier: Option<i64>,
    /// Bytes of the log that the transaction's commit would have written before.
    logged: u64,
}

/// Whether an execution that is begun now is measured as by EXPLAIN ANALYZE.
pub(super) fn measures(session: &SessionState) -> bool {
    session.auto_explain.is_on() && chosen(session).is_some_and(|wanted| wanted.analyze)
}

/// The settings for an execution that is begun now; `None`: it is not logged.
fn chosen(session: &SessionState) -> Option<Arc<PlanLogging>> {
    let auto = &session.auto_explain;
    auto.wanted().filter(|wanted| auto.is_sampled() && (wanted.nested || watched_depth() == 0))
}

/// Decides whether a statement of the top level is in the sample.
pub(super) fn draw_sample(session: &SessionState) {
    let auto = &session.auto_explain;
    if !auto.is_on() || watched_depth() > 0 {
        return;
    }
    let rate = auto.wanted().map_or(0.0, |wanted| wanted.sample_rate);
    let draw = || (session.instance.cluster.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    auto.set_sampled(rate >= 1.0 || rate > 0.0 && draw() < rate);
}

/// Logs the plan of a query that EXPLAIN shows and does not run, as one that took no time.
pub(super) fn shown_only(context: &Arc<StatementContext>, planned: &Planned, parameters: &Arc<[Datum]>) {
    let session = &context.session;
    draw_sample(session);
    if !session.auto_explain.is_on() || planned.plan.steps.is_some() {
        return;
    }
    let Some(wanted) = chosen(session) else { return };
    let options = ExplainOptions { analyze: false, buffers: false, wal: false, ..wanted.options };
    let wanted = PlanLogging { analyze: false, options, ..(*wanted).clone() };
    let mut watch = Watch::new(context, planned, Some(Arc::new(wanted)), session.activity.query());
    watch.ended(&EndedExecution { plan: &planned.plan, timings: Vec::new(), time: Duration::ZERO, parameters });
}

/// Has an execution watched that begins, if plans may be logged. `text`: the query's; that of the client's message if there is none.
pub(super) fn watch(context: &Arc<StatementContext>, planned: &Planned, text: Option<&Arc<str>>, execution: &mut Execution) {
    let session = &context.session;
    // Neither the values that utility statements compute, nor what rules made of a statement, which is several plans.
    let is_statement = (text.is_some() || planned.identity.is_some()) && planned.plan.steps.is_none();
    if !session.auto_explain.is_on() || !is_statement {
        return;
    }
    let wanted = chosen(session);
    let logs = wanted.as_ref().is_some_and(|wanted| wanted.options.wal);
    let text = text.cloned().unwrap_or_else(|| session.activity.query());
    let logged = if logs { log_bytes(execution.evaluation().transaction()) } else { 0 };
    execution.watch(Box::new(Watch { logged, ..Watch::new(context, planned, wanted, text) }));
}

impl ExecutionWatch for Watch {
    fn ended(&mut self, ended: &EndedExecution<'_>) {
        let Some(wanted) = self.wanted.take().filter(|wanted| ended.time >= wanted.least) else { return };
        let mut timings = if wanted.analyze { ended.timings.clone() } else { Vec::new() };
        if wanted.options.wal
            && let Some(tx) = &self.context.tx
            && let Some(root) = timings.get_mut(ended.plan.root.id)
        {
            root.io.log_bytes += log_bytes(&tx.engine).saturating_sub(self.logged);
            root.io.log_records += u64::from(root.io.log_bytes > 0 && self.logged == 0);
        }
        let report = PlanReport {
            text: &self.text,
            parameters: self.parameters(ended.parameters, wanted.parameter_max),
            options: wanted.options,
            settings: wanted.settings,
            identifier: self.identifier.filter(|_| wanted.options.verbose && shows_identifiers(&self.context)),
        };
        let report = plan_report(&self.context, ended.plan, &timings, &report, wanted.format);
        let milliseconds = ended.time.as_secs_f64() * 1000.0;
        let message = format!("duration: {milliseconds:.3} ms  plan:\n{report}");
        self.context.session.tell_plan(message, wanted.level);
    }
}

impl Watch {
    fn new(context: &Arc<StatementContext>, planned: &Planned, wanted: Option<Arc<PlanLogging>>, text: Arc<str>) -> Watch {
        Watch {
            wanted,
            text,
            // Literals that became parameters are not the client's.
            parameter_types: if planned.literals.is_empty() { planned.parameter_types.clone() } else { Vec::new() },
            identifier: planned.identity.as_ref().map(|identity| identity.number),
            logged: 0,
            context: context.clone(),
        }
    }

    fn parameters(&self, values: &[Datum], max: Option<usize>) -> Option<String> {
        let shown = !self.parameter_types.is_empty() && max != Some(0);
        shown.then(|| parameter_list(&self.context, &self.parameter_types, values, max))
    }
}
