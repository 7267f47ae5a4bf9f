//! REFERENCING of CREATE TRIGGER: the names of the tables of old and new rows.

use std::sync::Arc;

use melba_catalog::trigger_events::{BEFORE, DELETE, INSERT, INSTEAD, ROW, TRUNCATE, UPDATE};
use melba_catalog::{Relation, RelationKind};
use melba_parse::nodes::inner;
use melba_types::{Result, bail, err};
use pg_query::protobuf::Node;
use pg_query::protobuf::node::Node as N;

#[derive(Default)]
pub struct TransitionNames {
    pub old: Option<Arc<str>>,
    pub new: Option<Arc<str>>,
}

/// # Errors
/// 0A000, 42809 and 42P17 where the trigger's events, or its table, have no such rows.
pub fn transition_names(nodes: &[Node], events: i16, has_columns: bool, table: &Relation) -> Result<TransitionNames> {
    let mut names = TransitionNames::default();
    for node in nodes {
        let N::TriggerTransition(transition) = inner(node)? else { continue };
        if !transition.is_table {
            return Err(err!(FEATURE_NOT_SUPPORTED, "ROW variable naming in the REFERENCING clause is not supported")
                .hint("Use OLD TABLE or NEW TABLE for naming transition tables."));
        }
        check_table(table, events)?;
        check_events(events, has_columns)?;
        let is = |bit: i16| events & bit != 0;
        let (place, word, other, verb) = match transition.is_new {
            true => (&mut names.new, "NEW", INSERT, "an INSERT"),
            false => (&mut names.old, "OLD", DELETE, "a DELETE"),
        };
        if !is(other) && !is(UPDATE) {
            bail!(INVALID_OBJECT_DEFINITION, "{word} TABLE can only be specified for {verb} or UPDATE trigger");
        }
        if place.is_some() {
            bail!(INVALID_OBJECT_DEFINITION, "{word} TABLE cannot be specified multiple times");
        }
        *place = Some(transition.name.as_str().into());
    }
    if names.old.is_some() && names.old == names.new {
        bail!(INVALID_OBJECT_DEFINITION, "OLD TABLE name and NEW TABLE name cannot be the same");
    }
    Ok(names)
}

fn check_table(table: &Relation, events: i16) -> Result<()> {
    if table.kind == RelationKind::View {
        return Err(
            err!(WRONG_OBJECT_TYPE, "\"{}\" is a view", table.name).detail("Triggers on views cannot have transition tables.")
        );
    }
    if events & ROW != 0 && !table.parents.is_empty() {
        let of = if table.is_partition() { "partitions" } else { "inheritance children" };
        bail!(FEATURE_NOT_SUPPORTED, "ROW triggers with transition tables are not supported on {of}");
    }
    Ok(())
}

fn check_events(events: i16, has_columns: bool) -> Result<()> {
    let is = |bit: i16| events & bit != 0;
    if is(BEFORE) || is(INSTEAD) {
        bail!(INVALID_OBJECT_DEFINITION, "transition table name can only be specified for an AFTER trigger");
    }
    if is(TRUNCATE) {
        bail!(FEATURE_NOT_SUPPORTED, "TRUNCATE triggers with transition tables are not supported");
    }
    if [INSERT, UPDATE, DELETE].into_iter().filter(|bit| is(*bit)).count() != 1 {
        bail!(FEATURE_NOT_SUPPORTED, "transition tables cannot be specified for triggers with more than one event");
    }
    if has_columns {
        bail!(FEATURE_NOT_SUPPORTED, "transition tables cannot be specified for triggers with column lists");
    }
    Ok(())
}
