//! regclass, regtype and the other types whose values are OIDs and whose text is a name; aclitem.

use melba_catalog::AclItem;
use melba_types::{Datum, DbError, Oid, Result, err, oids};

use crate::io::{self, TypeContext, TypeIo};
use crate::{CallContext, ScalarFn};

const REG: TypeIo = TypeIo {
    input: |c, text| c.session.catalog().reg_input(c.type_oid, text, &c.session.search_path()).map(|oid| Datum::Oid(oid.0)),
    output: |c, value, out| {
        let text = c.session.catalog().reg_output(c.type_oid, Oid(value.as_oid()), &c.session.search_path());
        out.extend_from_slice(text.as_bytes());
        Ok(())
    },
    receive: |_, bytes| Ok(Datum::Oid(u32::from_be_bytes(io::fixed(bytes)?))),
    send: |_, value, out| {
        out.extend_from_slice(&value.as_oid().to_be_bytes());
        Ok(())
    },
};

pub const TYPES: &[(Oid, TypeIo)] = &[
    (oids::REGCLASS, REG),
    (oids::REGCOLLATION, REG),
    (oids::REGCONFIG, REG),
    (oids::REGDICTIONARY, REG),
    (oids::REGNAMESPACE, REG),
    (oids::REGOPER, REG),
    (oids::REGOPERATOR, REG),
    (oids::REGPROC, REG),
    (oids::REGPROCEDURE, REG),
    (oids::REGROLE, REG),
    (oids::REGTYPE, REG),
    (
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
    ),
];

fn no_binary(direction: &str) -> DbError {
    err!(UNDEFINED_FUNCTION, "no binary {direction} function available for type aclitem")
}

/// An aclitem is held as its text; the catalog holds what it means.
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

/// to_regclass and its siblings: NULL where the input function would report an error.
fn lenient(call: &CallContext<'_>, ty: Oid, args: &[Datum]) -> Result<Datum> {
    let text = args[0].as_str();
    // Unlike the types' input, these take names only.
    if text == "-" || (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())) {
        return Ok(Datum::Null);
    }
    let found = call.session.catalog().reg_input(ty, text, &call.session.search_path());
    Ok(found.map_or(Datum::Null, |oid| Datum::Oid(oid.0)))
}

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("text_regclass", |c, a| {
        let path = c.session.search_path();
        c.session.catalog().reg_input(oids::REGCLASS, a[0].as_str(), &path).map(|oid| Datum::Oid(oid.0))
    }),
    ("to_regclass", |c, a| lenient(c, oids::REGCLASS, a)),
    ("to_regcollation", |c, a| lenient(c, oids::REGCOLLATION, a)),
    ("to_regnamespace", |c, a| lenient(c, oids::REGNAMESPACE, a)),
    ("to_regoper", |c, a| lenient(c, oids::REGOPER, a)),
    ("to_regoperator", |c, a| lenient(c, oids::REGOPERATOR, a)),
    ("to_regproc", |c, a| lenient(c, oids::REGPROC, a)),
    ("to_regprocedure", |c, a| lenient(c, oids::REGPROCEDURE, a)),
    ("to_regrole", |c, a| lenient(c, oids::REGROLE, a)),
    ("to_regtype", |c, a| lenient(c, oids::REGTYPE, a)),
];
