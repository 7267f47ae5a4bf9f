//! Spans of a session's statements, for a collector of traces (crate `traces`).
//!
//! A span is made when its step ends, from what the log knows about it; until then tracing costs nothing. Without a collector it costs
//! what the log costs: a branch (`Policy::is_quiet`).

use std::sync::Arc;

use melba_settings::Settings;
use melba_statement::context::SessionState;
use melba_traces::{Attribute, Kind, Parent, TraceSpan, Tracer};
use melba_types::DbError;

use super::Session;

/// Steps before the execution that are faster are no spans, in microseconds: most are.
const STEP_LEAST: i64 = 1000;
/// 2000-01-01, in microseconds since 1970.
const EPOCH: i64 = 946_684_800_000_000;

/// A session's settings of traces.
#[derive(Clone, Debug)]
pub(super) struct Tracing {
    tracer: Arc<Tracer>,
    /// Of statements without a parent.
    sample_rate: f64,
    /// Bytes of a statement's text.
    text_max: usize,
}

/// What a session knows of the spans that it makes.
#[derive(Debug, Default)]
pub(super) struct TraceState {
    /// A step has begun and not ended.
    in_step: bool,
    /// The trace of steps without a parent, and whether it is sampled: one until the client's Sync.
    trace: Option<([u8; 16], bool)>,
    /// The last span, to which a commit that follows belongs.
    last: Option<([u8; 16], [u8; 8])>,
    /// A span that ends when its commit is durable.
    pending: Option<TraceSpan>,
    /// The last commit.
    commit: Option<Commit>,
}

#[derive(Debug)]
struct Commit {
    began: i64,
    /// `None`: it is not durable yet.
    ended: Option<i64>,
    /// The span to which it belongs; `None`: that of the step that has not ended.
    parent: Option<([u8; 16], [u8; 8])>,
}

/// A step of a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TracedStep {
    Parse,
    Bind,
    Execution,
}

impl Tracing {
    /// `None`: the server has no collector, or the session is the server's own.
    pub fn of(session: &SessionState, settings: &Settings) -> Option<Tracing> {
        session.log_source.client.as_ref()?;
        Some(Tracing {
            tracer: session.instance.tracer()?.clone(),
            sample_rate: settings.get("traces_sample_rate").as_real(),
            text_max: usize::try_from(settings.get("traces_text_max_length").as_integer()).unwrap_or(0),
        })
    }
}

fn now(session: &Session) -> i64 {
    session.state.instance.cluster.clock.now_micros()
}

/// A message about a statement comes.
pub(super) fn begin_step(session: &mut Session) {
    session.traces.in_step = true;
    session.traces.last = None;
}

/// The client's Sync comes, which may commit: an error is then one of the last statement.
pub(super) fn begin_sync(session: &mut Session) {
    if session.derived.tracing.is_some() {
        session.traces.in_step = true;
        session.logging.began = now(session);
    }
}

/// The client has got all answers to what it has sent together.
pub(super) fn end_pipeline(session: &mut Session) {
    session.traces.trace = None;
    session.traces.in_step = false;
    if session.traces.commit.as_ref().is_some_and(|commit| commit.ended.is_some()) {
        end_commit(session);
    }
}

/// A step has ended well. One that commits ends with the commit.
pub(super) fn end_step(session: &mut Session, step: TracedStep, began: i64) {
    session.traces.in_step = false;
    if session.derived.tracing.is_none() || step != TracedStep::Execution && now(session) - began < STEP_LEAST {
        return;
    }
    let Some(span) = span(session, step, began, None) else {
        drop_commit(session);
        return;
    };
    session.traces.last = Some((span.trace, span.id));
    if let Some(commit) = &mut session.traces.commit {
        commit.parent = commit.parent.or(session.traces.last);
    }
    match session.is_committing() {
        true => session.traces.pending = Some(span),
        false => {
            finish(session, Some(span));
            end_commit(session);
        }
    }
}

/// What the present step has committed has no span.
fn drop_commit(session: &mut Session) {
    session.traces.commit = session.traces.commit.take().filter(|commit| commit.parent.is_some());
}

/// A step has failed.
pub(super) fn fail(session: &mut Session, error: &DbError) {
    drop_commit(session);
    if !std::mem::take(&mut session.traces.in_step) || session.derived.tracing.is_none() {
        return;
    }
    let began = if session.logging.began == 0 { session.statement_start } else { session.logging.began };
    let span = span(session, TracedStep::Execution, began, Some(error));
    finish(session, span);
}

/// A commit has begun, and ended if it was waited for.
pub(super) fn note_commit(session: &mut Session, began: i64) {
    if session.derived.tracing.is_some() {
        let ended = (!session.is_committing()).then(|| now(session));
        session.traces.commit = Some(Commit { began, ended, parent: session.traces.last });
    }
}

/// The last commit is durable.
pub(super) fn end_commit(session: &mut Session) {
    let (pending, commit) = (session.traces.pending.take(), session.traces.commit.take());
    if pending.is_some() {
        let ended = unix(now(session));
        finish(session, pending.map(|span| TraceSpan { ended, ..span }));
    }
    if let Some(Commit { began, ended, parent: Some((trace, parent)) }) = commit {
        let ended = ended.unwrap_or_else(|| now(session));
        finish(
            session,
            Some(TraceSpan {
                trace,
                id: draw_id(session),
                parent: Some(parent),
                name: "commit".into(),
                kind: Kind::Internal,
                began: unix(began),
                ended: unix(ended),
                attributes: Vec::new(),
                error: None,
            }),
        );
    }
}

/// The span of a step that ends now; `None`: it is not in the sample.
fn span(session: &mut Session, step: TracedStep, began: i64, error: Option<&DbError>) -> Option<TraceSpan> {
    let tracing = session.derived.tracing.clone()?;
    let source = Arc::clone(&session.source);
    let parent = Parent::of_statement(&source);
    let (trace, is_sampled) = match (&parent, session.traces.trace) {
        (Some(parent), _) => (parent.trace, parent.is_sampled),
        (None, Some(trace)) => trace,
        (None, None) => {
            let rate = tracing.sample_rate;
            let trace = [draw_id(session), draw_id(session)].concat().try_into().unwrap_or([1; 16]);
            *session.traces.trace.insert((trace, rate >= 1.0 || rate > 0.0 && session.draw() < rate))
        }
    };
    let name = match step {
        TracedStep::Parse => "PARSE",
        TracedStep::Bind => "BIND",
        TracedStep::Execution => session.logging.command.unwrap_or("query"),
    };
    is_sampled.then(|| TraceSpan {
        trace,
        id: draw_id(session),
        parent: parent.map(|parent| parent.span),
        name: name.into(),
        kind: Kind::Server,
        began: unix(began),
        ended: unix(now(session)),
        attributes: attributes_of(session, &source, &tracing, error),
        error: error.map(|error| status_of(error, &tracing)),
    })
}

/// A message has values and texts of the statement, so without texts it is left out, too.
fn status_of(error: &DbError, tracing: &Tracing) -> String {
    match tracing.text_max {
        0 => error.sqlstate().to_string(),
        _ => melba_serverlog::without_passwords(error.message()).into_owned(),
    }
}

/// By OpenTelemetry's conventions for databases; what they do not know is `melba.*`.
fn attributes_of(session: &Session, source: &str, tracing: &Tracing, error: Option<&DbError>) -> Vec<(&'static str, Attribute)> {
    let text = |text: &str| Attribute::Text(text.into());
    let mut attributes = vec![
        ("db.system.name", text("postgresql")),
        ("db.namespace", Attribute::Text(Arc::clone(&session.state.database))),
        ("melba.role", Attribute::Text(Arc::clone(&session.state.user))),
        ("melba.pid", Attribute::Number(session.state.pid.into())),
    ];
    if let Some(command) = session.logging.command {
        attributes.push(("db.operation.name", text(command)));
        let id = session.state.activity.query_id();
        attributes.extend((id != 0).then_some(("melba.query_id", Attribute::Number(id))));
    }
    if tracing.text_max > 0 {
        let cut = &source[..source.floor_char_boundary(tracing.text_max)];
        attributes.push(("db.query.text", text(&melba_serverlog::without_passwords(cut))));
    }
    if let Some(error) = error {
        let code = error.sqlstate().to_string();
        attributes.push(("db.response.status_code", text(&code)));
        attributes.push(("error.type", text(&code)));
    }
    if let Some(client) = &session.state.log_source.client {
        attributes.push(("client.address", text(&client.host)));
        attributes.extend(client.port.map(|port| ("client.port", Attribute::Number(port.into()))));
        let application = client.application_name();
        if !application.is_empty() {
            attributes.push(("melba.application_name", Attribute::Text(application)));
        }
    }
    attributes
}

fn finish(session: &Session, span: Option<TraceSpan>) {
    if let (Some(tracing), Some(span)) = (&session.derived.tracing, span) {
        tracing.tracer.finish(span);
    }
}

/// Not all zeros, which would be none.
fn draw_id(session: &Session) -> [u8; 8] {
    session.state.instance.cluster.random.next_u64().max(1).to_be_bytes()
}

/// Microseconds since 1970.
fn unix(micros: i64) -> u64 {
    micros.saturating_add(EPOCH).try_into().unwrap_or(0)
}
