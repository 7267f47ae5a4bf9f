//! A plan and what belongs to it: as auto_explain logs it, and parts that EXPLAIN shows too.

use melba_plan::explain::{ExplainOptions, explain, explain_document};
use melba_plan::explain_document::{self as document, Format, PropertyValue};
use melba_plan::{NodeTiming, Plan};

use super::context::StatementContext;

/// Settings outside of "Query Tuning" that change plans.
const OTHER_PLAN_SETTINGS: [&str; 7] = [
    "hash_mem_multiplier",
    "max_parallel_workers",
    "max_parallel_workers_per_gather",
    "parallel_leader_participation",
    "search_path",
    "temp_buffers",
    "work_mem",
];

/// What is logged of a plan beside it.
pub(super) struct PlanReport<'a> {
    pub text: &'a str,
    pub parameters: Option<String>,
    pub options: ExplainOptions,
    /// The settings that planning has read.
    pub settings: bool,
    pub identifier: Option<i64>,
}

/// A plan as auto_explain logs it. `format`: none is text.
pub(super) fn plan_report(
    context: &StatementContext,
    plan: &Plan,
    timings: &[NodeTiming],
    report: &PlanReport<'_>,
    format: Option<Format>,
) -> String {
    let settings = if report.settings { plan_settings(context) } else { Vec::new() };
    let Some(format) = format else {
        let mut lines = vec![format!("Query Text: {}", report.text)];
        lines.extend(report.parameters.iter().map(|parameters| format!("Query Parameters: {parameters}")));
        lines.extend(explain(plan, report.options, timings));
        lines.extend(settings_line(&settings));
        lines.extend(report.identifier.map(|identifier| format!("Query Identifier: {identifier}")));
        return lines.join("\n");
    };
    let mut group = vec![("Query Text".to_owned(), PropertyValue::text(report.text))];
    group.extend(report.parameters.iter().map(|parameters| ("Query Parameters".into(), PropertyValue::text(parameters))));
    group.push(("Plan".into(), PropertyValue::Group(explain_document(plan, report.options, timings))));
    if report.settings {
        group.push(settings_group(&settings));
    }
    group.extend(report.identifier.map(|identifier| ("Query Identifier".into(), PropertyValue::plain(identifier))));
    document::write_object(format, &group)
}

pub(super) fn settings_line(settings: &[(&'static str, String)]) -> Option<String> {
    let settings: Vec<String> = settings.iter().map(|(name, value)| format!("{name} = '{value}'")).collect();
    (!settings.is_empty()).then(|| format!("Settings: {}", settings.join(", ")))
}

pub(super) fn settings_group(settings: &[(&'static str, String)]) -> (String, PropertyValue) {
    let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), PropertyValue::text(value)));
    ("Settings".into(), PropertyValue::Group(settings.collect()))
}

/// The settings that PostgreSQL's planner reads and that differ from their defaults, with their values as SHOW has them.
pub(super) fn plan_settings(context: &StatementContext) -> Vec<(&'static str, String)> {
    let settings = context.session.settings.lock();
    let differs = |id: &usize| {
        settings.definition(*id).is_some_and(|d| {
            (d.category.starts_with("Query Tuning") || OTHER_PLAN_SETTINGS.contains(&d.name))
                && settings.setting(d, settings.value(*id)) != d.default
        })
    };
    let shown = settings.ids().filter(differs).filter_map(|id| Some((settings.definition(id)?.name, settings.show(id))));
    shown.collect()
}

/// compute_query_id: with `auto` identifiers are computed if anything needs them.
pub(super) fn shows_identifiers(context: &StatementContext) -> bool {
    match context.session.settings.lock().get("compute_query_id").as_text() {
        "on" => true,
        "auto" => context.catalog.extension_by_name("pg_stat_statements").is_some(),
        _ => false,
    }
}
