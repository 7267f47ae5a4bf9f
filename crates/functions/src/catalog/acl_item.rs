//! Text input and output of aclitem.

use melba_catalog::AclItem;
use melba_fmgr::{TypeContext, TypeIo};
use melba_types::{Datum, DbError, Oid, Result, err, oids};

pub const TYPES: &[(Oid, TypeIo)] = &[(
    oids::ACLITEM,
    TypeIo {
        input: acl_item_in,
        output: |_, value, out| {
            out.extend_from_slice(value.as_str().as_bytes());
            Ok(())
        },
        receive: |_, _| Err(no_binary("input")),
        send: |_, _, _| Err(no_binary("output")),
    },
)];

fn no_binary(direction: &str) -> DbError {
    err!(UNDEFINED_FUNCTION, "no binary {direction} function available for type aclitem")
}

/// An aclitem is held as its text; the catalog holds the parsed form.
fn acl_item_in(context: &TypeContext<'_>, text: &str) -> Result<Datum> {
    let mut unknown = None;
    let role = |name: &str| match context.session.catalog().role_by_name(name) {
        Some(role) => role.oid,
        None => Oid::INVALID,
    };
    let item = AclItem::parse(text.trim(), |name| {
        let oid = role(name);
        if !oid.is_valid() {
            unknown = Some(name.to_owned());
        }
        oid
    });
    if let Some(name) = unknown {
        return Err(err!(UNDEFINED_OBJECT, "role \"{name}\" does not exist"));
    }
    match item {
        Some(_) => Ok(Datum::text(text.trim())),
        None if !text.contains('=') => Err(err!(INVALID_TEXT_REPRESENTATION, "missing \"=\" sign")),
        None => Err(err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type aclitem: \"{text}\"")),
    }
}
