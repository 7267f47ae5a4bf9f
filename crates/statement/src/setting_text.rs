//! The text of a setting's value in SET and its kin.

use melba_catalog::quote_ident;
use melba_settings::Settings;
use melba_settings::check::zone_of_seconds;
use melba_types::datetime::IntervalStyle;
use melba_types::{Result, bail, err, interval};
use pg_query::NodeEnum;
use pg_query::protobuf::a_const::Val;
use pg_query::protobuf::{AConst, Node, TypeCast};

pub fn constant_text(node: &NodeEnum) -> Option<String> {
    let NodeEnum::AConst(AConst { val: Some(value), .. }) = node else { return None };
    Some(match value {
        Val::Ival(v) => v.ival.to_string(),
        Val::Fval(v) => v.fval.clone(),
        Val::Boolval(v) => if v.boolval { "on" } else { "off" }.to_owned(),
        Val::Sval(v) => v.sval.clone(),
        Val::Bsval(v) => v.bsval.clone(),
    })
}

/// Settings that take a list, and whether their items are identifiers that must be quoted again.
fn list_setting(name: &str) -> Option<bool> {
    match name.to_ascii_lowercase().as_str() {
        "search_path"
        | "temp_tablespaces"
        | "session_preload_libraries"
        | "local_preload_libraries"
        | "shared_preload_libraries"
        | "unix_socket_directories" => Some(true),
        "datestyle" | "createrole_self_grant" | "log_connections" | "wal_consistency_checking" => Some(false),
        "restrict_nonsystem_relation_kind" | "listen_addresses" | "log_destination" | "synchronous_standby_names" => Some(false),
        _ => None,
    }
}

/// The text of SET's arguments, as the setting would be written in a configuration file.
pub fn argument_text(settings: &Settings, name: &str, args: &[Node]) -> Result<String> {
    // An unknown name is the more useful error.
    if !name.contains('.') {
        settings.get_id(name)?;
    }
    let list = list_setting(name);
    if args.len() > 1 && list.is_none() {
        bail!(INVALID_PARAMETER_VALUE, "SET {name} takes only one argument");
    }
    let mut items = Vec::with_capacity(args.len());
    for arg in args {
        let item = match &arg.node {
            Some(NodeEnum::TypeCast(cast)) => interval_zone(cast)?,
            Some(node) => constant_text(node).ok_or_else(|| err!(SYNTAX_ERROR, "SET takes constants only"))?,
            None => bail!(SYNTAX_ERROR, "SET takes constants only"),
        };
        items.push(if list == Some(true) { quote_ident(&item).into_owned() } else { item });
    }
    Ok(items.join(", "))
}

/// SET TIME ZONE INTERVAL '+3:30' HOUR TO MINUTE.
fn interval_zone(cast: &TypeCast) -> Result<String> {
    let text = cast.arg.as_ref().and_then(|a| constant_text(a.node.as_ref()?)).unwrap_or_default();
    let modifiers = cast.type_name.as_ref().map_or(&[][..], |name| &name.typmods);
    // The fields of an interval's type stand in the upper half of its modifier.
    let fields = modifiers.first().and_then(|n| constant_text(n.node.as_ref()?)).and_then(|mask| mask.parse::<i32>().ok());
    let span = interval::parse(&text, fields.map_or(-1, |mask| mask << 16 | 0xffff), IntervalStyle::Postgres)?;
    let wrong = |what: &str| {
        err!(INVALID_PARAMETER_VALUE, "invalid value for parameter \"TimeZone\": \"INTERVAL '{text}'\"")
            .detail(format!("Cannot specify {what} in time zone interval."))
    };
    match (span.months, span.days) {
        (0, 0) => Ok(zone_of_seconds(span.micros / 1_000_000)),
        (0, _) => Err(wrong("days")),
        _ => Err(wrong("months")),
    }
}
