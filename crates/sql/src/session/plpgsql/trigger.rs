//! The variables with which trigger functions begin.

use std::sync::Arc;

use melba_catalog::trigger_events::{BEFORE, DELETE, INSERT, INSTEAD, ROW, UPDATE};
use melba_catalog::{Function, Trigger};
use melba_fmgr::TriggerCall;
use melba_plpgsql::{Parameter, Types};
use melba_types::{Array, ArrayDim, Datum, Oid, Result, err, oids};

use super::frame::Frame;

/// The variables of every trigger function, in the order of `begin`. `row`: the type of the table's rows.
pub(super) fn parameters(types: &dyn Types, row: Oid) -> Vec<Parameter> {
    let variable = |(name, ty): (&str, _)| Parameter { names: vec![name.into()], ty: types.by_oid(ty, -1), constant: false };
    let all = [
        ("new", row),
        ("old", row),
        ("tg_name", oids::NAME),
        ("tg_when", oids::TEXT),
        ("tg_level", oids::TEXT),
        ("tg_op", oids::TEXT),
        ("tg_relid", oids::OID),
        ("tg_relname", oids::NAME),
        ("tg_table_name", oids::NAME),
        ("tg_table_schema", oids::NAME),
        ("tg_nargs", oids::INT4),
        ("tg_argv", oids::TEXT_ARRAY),
    ];
    all.into_iter().map(variable).collect()
}

/// The variables of an event trigger's function.
pub(super) fn event_parameters(types: &dyn Types) -> Vec<Parameter> {
    let variable = |name: &str| Parameter { names: vec![name.into()], ty: types.by_oid(oids::TEXT, -1), constant: false };
    ["tg_event", "tg_tag"].into_iter().map(variable).collect()
}

/// What the variables behind the rows of a trigger are, for an event and a table.
pub(super) struct Surroundings {
    event: i16,
    table: Oid,
    values: [Datum; 10],
}

/// Gives the variables their first values. The frame keeps those that are the same for the trigger's next row.
pub(super) fn begin(frame: &mut Frame<'_>, call: &TriggerCall<'_>) {
    let surroundings = match frame.surroundings.take() {
        Some(known) if (known.event, known.table) == (call.event, call.table.oid) => known,
        _ => {
            let schema = frame.context.catalog.namespace(call.table.namespace).map_or_else(|| "".into(), |n| n.name.clone());
            Box::new(Surroundings { event: call.event, table: call.table.oid, values: values(call, schema) })
        }
    };
    let row = |row: Option<&Datum>| row.cloned().unwrap_or_default();
    let all = [row(call.new), row(call.old)].into_iter().chain(surroundings.values.iter().cloned());
    for (variable, value) in frame.values.iter_mut().zip(all) {
        *variable = value;
    }
    frame.surroundings = Some(surroundings);
}

/// `schema`: the name of the table's.
fn values(call: &TriggerCall<'_>, schema: Arc<str>) -> [Datum; 10] {
    let trigger = call.trigger;
    let name = || Datum::Text(call.table.name.clone());
    [
        Datum::Text(trigger.name.clone()),
        Datum::text(match () {
            () if trigger.has(BEFORE) => "BEFORE",
            () if trigger.has(INSTEAD) => "INSTEAD OF",
            () => "AFTER",
        }),
        Datum::text(if trigger.has(ROW) { "ROW" } else { "STATEMENT" }),
        Datum::text(match call.event {
            INSERT => "INSERT",
            UPDATE => "UPDATE",
            DELETE => "DELETE",
            _ => "TRUNCATE",
        }),
        Datum::Oid(call.table.oid.0),
        name(),
        name(),
        Datum::Text(schema),
        Datum::Int4(trigger.arguments.len() as i32),
        arguments(trigger),
    ]
}

/// TG_ARGV, which counts from 0.
fn arguments(trigger: &Trigger) -> Datum {
    if trigger.arguments.is_empty() {
        return Datum::Null;
    }
    Datum::Array(Arc::new(Array {
        element_type: oids::TEXT,
        dims: vec![ArrayDim { length: trigger.arguments.len() as i32, lower_bound: 0 }],
        elements: trigger.arguments.iter().map(|a| Datum::Text(a.clone())).collect(),
    }))
}

/// # Errors
/// 0A000 for a trigger function that is called like any other.
pub(super) fn refuse_call(function: &Function) -> Result<()> {
    match function.return_type {
        oids::TRIGGER | oids::EVENT_TRIGGER => {
            Err(err!(FEATURE_NOT_SUPPORTED, "trigger functions can only be called as triggers"))
        }
        _ => Ok(()),
    }
}
