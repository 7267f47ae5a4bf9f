//! The values with which the variables of a trigger function begin.

use std::sync::Arc;

use melba_catalog::Trigger;
use melba_catalog::trigger_events::{BEFORE, DELETE, INSERT, INSTEAD, ROW, UPDATE};
use melba_fmgr::TriggerCall;
use melba_types::{Array, ArrayDim, Datum, oids};

use super::frame::{Frame, TriggerValues};

/// Numbers of variables.
const NEW: usize = 0;
const OLD: usize = 1;
const BEHIND_ROWS: usize = 2;

/// Gives the variables their first values. The frame keeps those that are the same for the trigger's next row.
pub(super) fn begin(frame: &mut Frame<'_>, call: &TriggerCall<'_>) {
    let row = |row: Option<&Datum>| row.cloned().unwrap_or_default();
    (frame.values[NEW], frame.values[OLD]) = (row(call.new), row(call.old));
    if !frame.program.names_trigger {
        return;
    }
    let kept = match frame.trigger_values.take() {
        Some(known) if (known.event, known.table) == (call.event, call.table.oid) => known,
        _ => {
            let schema = frame.context.catalog.namespace(call.table.namespace).map_or_else(|| "".into(), |n| n.name.clone());
            Box::new(TriggerValues { event: call.event, table: call.table.oid, values: values(call, schema) })
        }
    };
    frame.values[BEHIND_ROWS..][..kept.values.len()].clone_from_slice(&kept.values);
    frame.trigger_values = Some(kept);
}

/// The same for the trigger's next row, of the same event, without an old row.
pub(super) fn begin_row(frame: &mut Frame<'_>, new: Datum) {
    (frame.values[NEW], frame.values[OLD]) = (new, Datum::Null);
    if let Some(known) = frame.trigger_values.as_deref() {
        frame.values[BEHIND_ROWS..][..known.values.len()].clone_from_slice(&known.values);
    }
}

/// The result is the only owner of its row then.
pub(super) fn forget_rows(frame: &mut Frame<'_>) {
    (frame.values[NEW], frame.values[OLD]) = (Datum::Null, Datum::Null);
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
