//! The WHEN condition of a trigger: over the row before its change, and the row after it.

use std::sync::Arc;

use melba_catalog::trigger_events::{BEFORE, DELETE, INSERT, ROW, UPDATE};
use melba_catalog::{Relation, Trigger, rule_events};
use melba_types::{DbError, Result, bail, err};
use pg_query::protobuf as pb;

use super::analyzer::Analyzer;
use super::context::Context;
use super::scope::{ExprKind, NsItem};
use super::{Params, coerce};
use melba_tree::*;

/// The entry of the row before its change, and of the row after it.
pub const OLD_ENTRY: usize = 0;
pub const NEW_ENTRY: usize = 1;

/// Attribute number of tableoid.
pub const TABLE_OID: i16 = -6;

/// The entries of the names `old` and `new`.
pub fn trigger_entries(table: &Relation) -> Vec<RangeEntry> {
    let entry = |name: &str| RangeEntry {
        kind: RangeKind::Relation { oid: table.oid, inherit: true, sample: None },
        alias: Some(name.into()),
        name: name.into(),
        columns: super::range_columns::relation_columns(table),
        ..RangeEntry::default()
    };
    vec![entry("old"), entry("new")]
}

/// The condition of a new trigger.
///
/// # Errors
/// 42P17 where it mentions a row that the trigger's events lack.
pub fn analyze_trigger_condition(cx: &Context<'_>, node: &pb::Node, table: &Relation, events: i16) -> Result<Expr> {
    let condition = analyze(cx, node, table)?;
    let mut error = None;
    condition.visit_vars(&mut |v| {
        if error.is_none() {
            error = check(v, table, events).err().map(|e: DbError| e.at(v.location));
        }
    });
    error.map_or(Ok(condition), Err)
}

/// The condition that a trigger has, if it has one.
pub fn stored_trigger_condition(cx: &Context<'_>, trigger: &Trigger, table: &Relation) -> Result<Option<Expr>> {
    let Some(text) = &trigger.when else { return Ok(None) };
    let node = melba_parse::parse_expression(text)?;
    let mut condition = analyze(&cx.stored(), &node, table)?;
    condition.clear_locations();
    Ok(Some(condition))
}

fn analyze(cx: &Context<'_>, node: &pb::Node, table: &Relation) -> Result<Expr> {
    let mut analyzer = Analyzer::new(cx, Params::none());
    analyzer.with_level(|a| {
        for entry in trigger_entries(table) {
            let name: Arc<str> = entry.name.clone();
            let number = a.add_entry(entry);
            a.level_mut().namespace.push(NsItem::new(number, name));
        }
        let e = a.expression(node, ExprKind::TriggerWhen)?;
        let mut e = coerce::to_boolean(a, e, "WHEN")?;
        super::collate::assign(cx, &mut e)?;
        Ok(e)
    })
}

fn check(var: &Var, table: &Relation, events: i16) -> Result<()> {
    let is = |bit: i16| events & bit != 0;
    if !is(ROW) {
        bail!(INVALID_OBJECT_DEFINITION, "statement trigger's WHEN condition cannot reference column values");
    }
    if var.column < 0 && var.column != TABLE_OID && !(var.entry == NEW_ENTRY && is(BEFORE)) {
        return Err(DbError::unsupported("a system column other than tableoid in a trigger's WHEN condition"));
    }
    if var.entry == OLD_ENTRY {
        if is(INSERT) {
            bail!(INVALID_OBJECT_DEFINITION, "INSERT trigger's WHEN condition cannot reference OLD values");
        }
        return Ok(());
    }
    if is(DELETE) {
        bail!(INVALID_OBJECT_DEFINITION, "DELETE trigger's WHEN condition cannot reference NEW values");
    }
    if !is(BEFORE) {
        return Ok(());
    }
    let generated = || err!(INVALID_OBJECT_DEFINITION, "BEFORE trigger's WHEN condition cannot reference NEW generated columns");
    match var.column {
        n if n < 0 => bail!(FEATURE_NOT_SUPPORTED, "BEFORE trigger's WHEN condition cannot reference NEW system columns"),
        0 if table.columns.iter().any(|c| c.generated != 0) => {
            Err(generated().detail("A whole-row reference is used and the table contains generated columns."))
        }
        0 => Ok(()),
        n => match table.columns.get(n as usize - 1).filter(|c| c.generated != 0) {
            Some(column) => Err(generated().detail(format!("Column \"{}\" is a generated column.", column.name))),
            None => Ok(()),
        },
    }
}

/// The rules' event of a command, one of `rule_events`.
pub fn event_of(command: Command) -> Option<u8> {
    match command {
        Command::Insert => Some(rule_events::INSERT),
        Command::Update => Some(rule_events::UPDATE),
        Command::Delete => Some(rule_events::DELETE),
        Command::Merge | Command::Select => None,
    }
}

/// As triggers know a command; MERGE may be several.
pub fn trigger_event_of(command: Command) -> i16 {
    match command {
        Command::Insert => INSERT,
        Command::Update => UPDATE,
        Command::Delete => DELETE,
        Command::Merge | Command::Select => 0,
    }
}
