//! The variables with which trigger functions begin.

use melba_catalog::Function;
use melba_plpgsql::{Parameter, Types};
use melba_types::{Oid, Result, err, oids};

/// The variables of every trigger function, in the order of `trigger_values`. `row`: the type of the table's rows.
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

/// Whether a function's text may name the variables behind the rows, also by escapes in its identifiers.
pub(super) fn may_be_named(source: &str) -> bool {
    let source = source.to_ascii_lowercase();
    source.contains("tg_") || source.contains("u&")
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
