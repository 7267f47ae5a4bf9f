//! EXPLAIN: options, and the output for the statement inside.

use std::sync::Arc;
use std::time::Duration;

use melba_catalog::Catalog;
use melba_engine::{IoCounts, io_counts};
use melba_fmgr::Session as _;
use melba_parse::command::is_query;
use melba_parse::nodes::{option_text, options};
use melba_plan::explain::{ExplainOptions, explain, explain_document};
use melba_plan::explain_document::{self as document, Format, Group, PropertyValue};
use melba_plan::io_usage::{buffer_fields, buffer_lines};
use melba_plan::{NodeTiming, PlanStep, PlanSteps};
use melba_protocol::Format as WireFormat;
use melba_transaction::Tx;
use melba_types::{Batch, Datum, DbError, Oid, Result, bail, err, limits, oids};
use pg_query::NodeEnum;
use pg_query::protobuf::{DefElem, ExplainStmt};

use super::auto_explain;
use super::context::StatementContext;
use super::execution;
use super::outcome;
use super::outcome::{Outcome, ResultColumn, StoredRows, Tag};
use super::plan_report::{plan_settings, settings_group, settings_line, shows_identifiers};
use super::planned::Planned;
use super::planning::{self, Purpose};
use super::serialization::Serialization;
use super::values;

struct ExplainRequest {
    plan: ExplainOptions,
    summary: bool,
    memory: bool,
    settings: bool,
    /// How rows are made ready to be sent.
    serialize: Option<WireFormat>,
    /// `None`: text.
    format: Option<Format>,
}

/// Reads the list of options by PostgreSQL's rules.
fn read_options(s: &ExplainStmt) -> Result<ExplainRequest> {
    let (mut analyze, mut costs, mut generic, mut format) = (false, true, false, None);
    let (mut timing, mut summary, mut wal, mut serialize, mut verbose) = (None, None, false, None, false);
    let (mut buffers, mut memory, mut settings) = (None, false, false);
    for def in options(&s.options) {
        let on = || option_on(def);
        match def.defname.as_str() {
            "analyze" => analyze = on()?,
            "costs" => costs = on()?,
            "generic_plan" => generic = on()?,
            "timing" => timing = Some(on()?),
            "summary" => summary = Some(on()?),
            "wal" => wal = on()?,
            "verbose" => verbose = on()?,
            "buffers" => buffers = Some(on()?),
            "settings" => settings = on()?,
            "memory" => memory = on()?,
            "serialize" => serialize = read_serialize(def)?,
            "format" => format = read_format(def)?,
            other => return Err(err!(SYNTAX_ERROR, "unrecognized EXPLAIN option \"{other}\"").at(def.location)),
        }
    }
    for (given, name) in [(wal, "WAL"), (timing == Some(true), "TIMING"), (serialize.is_some(), "SERIALIZE")] {
        if given && !analyze {
            bail!(INVALID_PARAMETER_VALUE, "EXPLAIN option {name} requires ANALYZE");
        }
    }
    if generic && analyze {
        bail!(INVALID_PARAMETER_VALUE, "EXPLAIN options ANALYZE and GENERIC_PLAN cannot be used together");
    }
    let plan = ExplainOptions {
        costs,
        analyze,
        timing: timing.unwrap_or(true),
        buffers: buffers.unwrap_or(analyze),
        wal,
        io_timing: io_counts::measures_times(),
        verbose,
    };
    Ok(ExplainRequest { plan, summary: summary.unwrap_or(analyze), memory, settings, serialize, format })
}

fn option_on(def: &DefElem) -> Result<bool> {
    match option_text(def).map(|t| t.to_ascii_lowercase()).as_deref() {
        None | Some("true" | "on" | "1") => Ok(true),
        Some("false" | "off" | "0") => Ok(false),
        Some(_) => Err(err!(SYNTAX_ERROR, "{} requires a Boolean value", def.defname)),
    }
}

fn read_serialize(def: &DefElem) -> Result<Option<WireFormat>> {
    match option_text(def).as_deref() {
        None | Some("text") => Ok(Some(WireFormat::Text)),
        Some("binary") => Ok(Some(WireFormat::Binary)),
        Some("off" | "none") => Ok(None),
        Some(other) => {
            Err(err!(INVALID_PARAMETER_VALUE, "unrecognized value for EXPLAIN option \"serialize\": \"{other}\"")
                .at(def.location))
        }
    }
}

fn read_format(def: &DefElem) -> Result<Option<Format>> {
    let format = option_text(def).ok_or_else(|| err!(SYNTAX_ERROR, "{} requires a parameter", def.defname))?;
    match &*format {
        "text" => Ok(None),
        "json" => Ok(Some(Format::Json)),
        "xml" => Ok(Some(Format::Xml)),
        "yaml" => Ok(Some(Format::Yaml)),
        other => {
            Err(err!(INVALID_PARAMETER_VALUE, "unrecognized value for EXPLAIN option \"format\": \"{other}\"").at(def.location))
        }
    }
}

/// The only column of the result.
pub fn columns(s: &ExplainStmt, catalog: &Catalog) -> Result<Arc<[ResultColumn]>> {
    let ty = match read_options(s)?.format {
        Some(Format::Json) => oids::JSON,
        Some(Format::Xml) => oids::XML,
        Some(Format::Yaml) | None => oids::TEXT,
    };
    Ok(Arc::new([ResultColumn::new("QUERY PLAN", ty, catalog)]))
}

/// The query that is explained; `None` for statements without a plan.
pub(super) fn explained(s: &ExplainStmt) -> Result<Option<&NodeEnum>> {
    let Some(node) = s.query.as_deref().and_then(|n| n.node.as_ref()) else {
        return Err(DbError::internal("EXPLAIN without a statement"));
    };
    Ok(planning::query_within(node))
}

/// Runs EXPLAIN.
pub fn run(
    context: &Arc<StatementContext>,
    tx: &Arc<Tx>,
    s: &ExplainStmt,
    parameter_types: &[Oid],
    parameters: &Arc<[Datum]>,
) -> Result<Outcome> {
    let options = read_options(s)?;
    let query = match s.query.as_deref().and_then(|n| n.node.as_ref()) {
        Some(NodeEnum::CreateTableAsStmt(s)) if !options.plan.analyze => s.query.as_deref().and_then(|n| n.node.as_ref()),
        query => query,
    };
    let lines = match (query, explained(s)?) {
        (Some(NodeEnum::CreateTableAsStmt(_)), _) if options.plan.analyze => {
            return Err(DbError::unsupported("EXPLAIN ANALYZE of CREATE TABLE AS"));
        }
        (Some(NodeEnum::ExecuteStmt(execute)), _) => {
            let prepared = context.session.prepared.lock().get(&execute.name).cloned();
            let prepared =
                prepared.ok_or_else(|| err!(UNDEFINED_PSTATEMENT, "prepared statement \"{}\" does not exist", execute.name))?;
            let values = values::evaluate(context, &execute.params, &prepared.parameter_types)?;
            match &prepared.statement {
                Some(s) if is_query(&s.node) => {
                    plan_lines(context, tx, &s.node, &options, &prepared.parameter_types, &values.into())?
                }
                _ => no_plan(&options),
            }
        }
        (_, Some(node)) => plan_lines(context, tx, node, &options, parameter_types, parameters)?,
        (_, None) => no_plan(&options),
    };
    let source = Box::new(StoredRows(vec![outcome::text_rows(vec![lines])].into_iter()));
    Ok(Outcome::Rows { columns: columns(s, &context.catalog)?, source, tag: Tag::Fixed("EXPLAIN".into()), formats: Vec::new() })
}

fn no_plan(options: &ExplainRequest) -> Vec<String> {
    vec![match options.format {
        Some(format) => document::write(format, None),
        None => "Utility statements have no plan structure".to_owned(),
    }]
}

fn plan_lines(
    context: &Arc<StatementContext>,
    tx: &Arc<Tx>,
    node: &NodeEnum,
    options: &ExplainRequest,
    types: &[Oid],
    parameters: &Arc<[Datum]>,
) -> Result<Vec<String>> {
    let started = context.monotonic();
    let (io, memory) = (io_counts::counted(), limits::thread_memory());
    let (context, planned) = execution::plan_locked(context, tx, |context| {
        let planned = planning::plan_query(context, node, types, Purpose::Explain { verbose: options.plan.verbose })?;
        planned.plan.check_constants()?;
        Ok(planned)
    })?;
    let context = &context;
    let planning = Planning {
        time: context.monotonic().saturating_sub(started),
        io: io_counts::counted().since(&io),
        memory: limits::thread_memory().saturating_sub(memory).max(0) as u64,
    };
    execution::check_use(context, &planned, None, options.plan.analyze)?;
    if let Some(steps) = &planned.plan.steps {
        return step_lines(steps, options, planning.time);
    }
    let mut serialization = options.serialize.zip(planned.columns.as_ref()).map(|(format, columns)| {
        let types = columns.iter().map(|column| column.ty).collect();
        Serialization::new(format, types)
    });
    let started = context.monotonic();
    let mut take = |batch: &Batch| serialization.as_mut().map_or(Ok(()), |s| s.take(&**context, batch));
    let timings = match options.plan.analyze {
        true => execution::run_measured(context, tx, &planned, parameters, options.plan.wal, &mut take)?,
        false => {
            auto_explain::shown_only(context, &planned, parameters);
            Vec::new()
        }
    };
    let execution = context.monotonic().saturating_sub(started);
    let identifier = planned.identity.as_ref().map(|identity| identity.number);
    let identifier = identifier.filter(|_| options.plan.verbose && shows_identifiers(context));
    let settings = if options.settings { plan_settings(context) } else { Vec::new() };
    let report = Explained { planned: &planned, timings: &timings, settings, identifier, planning, serialization, execution };
    Ok(match options.format {
        Some(format) => vec![document::write(format, Some(&report.document(options)))],
        None => report.lines(options),
    })
}

/// What EXPLAIN tells of a query.
struct Explained<'a> {
    planned: &'a Planned,
    timings: &'a [NodeTiming],
    settings: Vec<(&'static str, String)>,
    identifier: Option<i64>,
    planning: Planning,
    serialization: Option<Serialization>,
    execution: Duration,
}

impl Explained<'_> {
    fn document(&self, options: &ExplainRequest) -> Group {
        let plan = explain_document(&self.planned.plan, options.plan, self.timings);
        let mut query = vec![("Plan".to_owned(), PropertyValue::Group(plan))];
        if options.settings {
            query.push(settings_group(&self.settings));
        }
        if let Some(identifier) = self.identifier {
            query.push(("Query Identifier".into(), PropertyValue::Plain(identifier.to_string())));
        }
        query.extend(self.planning.group(options));
        if options.summary {
            query.push(("Planning Time".into(), PropertyValue::Plain(in_milliseconds(self.planning.time))));
        }
        if options.plan.analyze {
            query.push(("Triggers".into(), PropertyValue::Groups("Trigger", vec![])));
        }
        if let Some(serialization) = &self.serialization {
            query.push(("Serialization".into(), serialization.group(options.plan.timing)));
        }
        if options.summary && options.plan.analyze {
            query.push(("Execution Time".into(), PropertyValue::Plain(in_milliseconds(self.execution))));
        }
        query
    }

    fn lines(&self, options: &ExplainRequest) -> Vec<String> {
        let mut lines = explain(&self.planned.plan, options.plan, self.timings);
        lines.extend(settings_line(&self.settings));
        if let Some(identifier) = self.identifier {
            lines.push(format!("Query Identifier: {identifier}"));
        }
        lines.extend(self.planning.lines(options));
        if options.summary {
            lines.push(format!("Planning Time: {} ms", in_milliseconds(self.planning.time)));
        }
        lines.extend(self.serialization.as_ref().map(|serialization| serialization.line(options.plan.timing)));
        if options.summary && options.plan.analyze {
            lines.push(format!("Execution Time: {} ms", in_milliseconds(self.execution)));
        }
        lines
    }
}

/// What planning took.
struct Planning {
    time: Duration,
    io: IoCounts,
    /// Bytes that the plan has from the allocator.
    memory: u64,
}

impl Planning {
    fn kilobytes(&self) -> u64 {
        self.memory.div_ceil(1024)
    }

    fn lines(&self, options: &ExplainRequest) -> Vec<String> {
        let mut lines = if options.plan.buffers { buffer_lines(&self.io) } else { Vec::new() };
        if options.memory {
            let kb = self.kilobytes();
            lines.push(format!("Memory: used={kb}kB  allocated={kb}kB"));
        }
        if lines.is_empty() {
            return lines;
        }
        std::iter::once("Planning:".to_owned()).chain(lines.into_iter().map(|line| format!("  {line}"))).collect()
    }

    fn group(&self, options: &ExplainRequest) -> Option<(String, PropertyValue)> {
        let mut group = if options.plan.buffers { buffer_fields(&self.io, options.plan.io_timing) } else { Vec::new() };
        if options.memory {
            group.push(("Memory Used".into(), PropertyValue::plain(self.kilobytes())));
            group.push(("Memory Allocated".into(), PropertyValue::plain(self.kilobytes())));
        }
        (!group.is_empty()).then(|| ("Planning".to_owned(), PropertyValue::Group(group)))
    }
}

/// The plans of a statement that rules have rewritten, one after the other.
fn step_lines(steps: &PlanSteps, options: &ExplainRequest, planning: Duration) -> Result<Vec<String>> {
    if options.plan.analyze || options.format.is_some() {
        return Err(DbError::unsupported("EXPLAIN with ANALYZE or FORMAT of a statement that rules rewrite"));
    }
    if steps.steps.is_empty() {
        return Ok(vec!["Query rewrites to nothing".to_owned()]);
    }
    let mut lines = Vec::new();
    for (at, step) in steps.steps.iter().enumerate() {
        if at > 0 {
            lines.push(String::new());
        }
        match step {
            PlanStep::Run(plan) => {
                lines.extend(explain(plan, options.plan, &[]));
                lines.extend(options.summary.then(|| format!("Planning Time: {} ms", in_milliseconds(planning))));
            }
            PlanStep::Notify { .. } => lines.push("NOTIFY".to_owned()),
        }
    }
    Ok(lines)
}

fn in_milliseconds(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64() * 1000.0)
}
