//! CREATE, ALTER, DROP and COMMENT of event triggers, which only superusers may create.

use std::sync::Arc;

use melba_catalog::event_triggers::events;
use melba_catalog::{EventTrigger, FIRES_ON_ORIGIN, Object, ObjectAddress, classes};
use melba_parse::command::{has_event_triggers, is_tag};
use melba_parse::nodes::{inner, options, string, strings};
use melba_types::{Oid, Result, bail, err, oids};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{AlterEventTrigStmt, CreateEventTrigStmt, DefElem, Node};

use melba_definition::context::Ddl;
use melba_relation::trigger::function_without_arguments;

/// Commands that may write the rows of a table again.
const REWRITING_TAGS: [&str; 3] = ["ALTER MATERIALIZED VIEW", "ALTER TABLE", "ALTER TYPE"];

pub fn create_event_trigger(ddl: &Ddl<'_>, s: &CreateEventTrigStmt) -> Result<()> {
    let name = &s.trigname;
    if !ddl.is_superuser() {
        return Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to create event trigger \"{name}\"")
            .hint("Must be superuser to create an event trigger."));
    }
    let event = s.eventname.as_str();
    if ![events::COMMAND_START, events::COMMAND_END, events::DROP, events::REWRITE, events::LOGIN].contains(&event) {
        bail!(SYNTAX_ERROR, "unrecognized event name \"{event}\"");
    }
    let tags = filter_tags(event, &s.whenclause)?;
    if ddl.catalog().event_trigger_by_name(name).is_some() {
        bail!(DUPLICATE_OBJECT, "event trigger \"{name}\" already exists");
    }
    let function = function_without_arguments(ddl, &s.funcname, oids::EVENT_TRIGGER)?;
    put_event_trigger(
        ddl,
        EventTrigger {
            oid: ddl.tx().new_oid(),
            name: name.as_str().into(),
            event: event.into(),
            owner: ddl.user(),
            function,
            enabled: FIRES_ON_ORIGIN,
            tags,
        },
    );
    Ok(())
}

fn put_event_trigger(ddl: &Ddl<'_>, trigger: EventTrigger) {
    ddl.tx().put(Object::EventTrigger(Arc::new(trigger)));
}

/// WHEN TAG IN (...).
fn filter_tags(event: &str, clauses: &[Node]) -> Result<Vec<Arc<str>>> {
    let mut filter: Option<&DefElem> = None;
    for clause in options(clauses) {
        let variable = &clause.defname;
        if variable != "tag" {
            bail!(SYNTAX_ERROR, "unrecognized filter variable \"{variable}\"");
        }
        if filter.replace(clause).is_some() {
            bail!(SYNTAX_ERROR, "filter variable \"{variable}\" specified more than once");
        }
    }
    let Some(filter) = filter else { return Ok(Vec::new()) };
    if event == events::LOGIN {
        bail!(FEATURE_NOT_SUPPORTED, "tag filtering is not supported for login event triggers");
    }
    let values = match filter.arg.as_deref().map(inner).transpose()? {
        Some(N::List(list)) => strings(&list.items),
        Some(N::String(_)) => filter.arg.as_deref().and_then(string).into_iter().collect(),
        _ => Vec::new(),
    };
    let mut tags = Vec::with_capacity(values.len());
    for value in values {
        let tag = value.to_ascii_uppercase();
        if !is_tag(&tag) {
            bail!(SYNTAX_ERROR, "filter value \"{value}\" not recognized for filter variable \"tag\"");
        }
        let is_fit = if event == events::REWRITE { REWRITING_TAGS.contains(&&*tag) } else { has_event_triggers(&tag) };
        if !is_fit {
            bail!(FEATURE_NOT_SUPPORTED, "event triggers are not supported for {value}");
        }
        tags.push(tag.into());
    }
    Ok(tags)
}

pub fn alter_event_trigger(ddl: &Ddl<'_>, s: &AlterEventTrigStmt) -> Result<()> {
    let trigger = owned_event_trigger(ddl, &s.trigname)?;
    let enabled = s.tgenabled.bytes().next().unwrap_or(FIRES_ON_ORIGIN);
    put_event_trigger(ddl, EventTrigger { enabled, ..(*trigger).clone() });
    Ok(())
}

fn owned_event_trigger(ddl: &Ddl<'_>, name: &str) -> Result<Arc<EventTrigger>> {
    let found = ddl.catalog().event_trigger_by_name(name).cloned();
    let found = found.ok_or_else(|| err!(UNDEFINED_OBJECT, "event trigger \"{name}\" does not exist"))?;
    ddl.require_owner(found.owner, "event trigger", name)?;
    Ok(found)
}

/// The event trigger that DROP or COMMENT names.
pub fn find_event_trigger(ddl: &Ddl<'_>, object: &Node, missing_ok: bool) -> Result<Option<ObjectAddress>> {
    let name = string(object).unwrap_or_default();
    if missing_ok && ddl.catalog().event_trigger_by_name(name).is_none() {
        ddl.notice(format!("event trigger \"{name}\" does not exist, skipping"));
        return Ok(None);
    }
    let object = owned_event_trigger(ddl, name)?.oid;
    Ok(Some(ObjectAddress { class: classes::PG_EVENT_TRIGGER, object, sub: 0 }))
}

pub fn rename_event_trigger(ddl: &Ddl<'_>, object: Option<&Node>, name: &str) -> Result<()> {
    let old = named_event_trigger(ddl, object)?;
    if ddl.catalog().event_trigger_by_name(name).is_some() {
        bail!(DUPLICATE_OBJECT, "event trigger \"{name}\" already exists");
    }
    put_event_trigger(ddl, EventTrigger { name: name.into(), ..(*old).clone() });
    Ok(())
}

pub fn named_event_trigger(ddl: &Ddl<'_>, object: Option<&Node>) -> Result<Arc<EventTrigger>> {
    owned_event_trigger(ddl, object.and_then(string).unwrap_or_default())
}

/// Its owner stays a superuser.
pub fn give_event_trigger(ddl: &Ddl<'_>, old: &EventTrigger, owner: Oid) -> Result<()> {
    if old.owner == owner {
        return Ok(());
    }
    if !ddl.catalog().role(owner).is_some_and(|role| role.superuser) {
        return Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to change owner of event trigger \"{}\"", old.name)
            .hint("The owner of an event trigger must be a superuser."));
    }
    put_event_trigger(ddl, EventTrigger { owner, ..old.clone() });
    Ok(())
}
