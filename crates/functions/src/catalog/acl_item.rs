//! aclitem: text input and output, equality, hash, and whether a list contains an item.

use melba_catalog::AclItem;
use melba_fmgr::{CallInfo, ScalarFn, TypeContext, TypeIo};
use melba_types::{Datum, DbError, Oid, Result, err, oids};

use crate::hash::hash_word_extended;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("aclitem_eq", |c, a| {
        let (x, y) = (parsed(c, &a[0])?, parsed(c, &a[1])?);
        Ok(Datum::Bool((x.grantee, x.grantor, x.privileges) == (y.grantee, y.grantor, y.privileges)))
    }),
    ("aclcontains", |c, a| {
        let wanted = parsed(c, &a[1])?;
        let has = |item: AclItem| {
            (item.grantee, item.grantor) == (wanted.grantee, wanted.grantor)
                && item.privileges & wanted.privileges == wanted.privileges
        };
        let items = a[0].as_array().elements.iter().map(|item| parsed(c, item).map(has));
        items.collect::<Result<Vec<bool>>>().map(|found| Datum::Bool(found.contains(&true)))
    }),
    ("hash_aclitem", |c, a| Ok(Datum::Int4(sum(&parsed(c, &a[0])?) as i32))),
    ("hash_aclitem_extended", |c, a| {
        let (sum, seed) = (sum(&parsed(c, &a[0])?), a[1].as_i64() as u64);
        Ok(Datum::Int8(if seed == 0 { i64::from(sum) } else { hash_word_extended(sum, seed) as i64 }))
    }),
    ("aclinsert", |_, _| Err(err!(FEATURE_NOT_SUPPORTED, "aclinsert is no longer supported"))),
    ("aclremove", |_, _| Err(err!(FEATURE_NOT_SUPPORTED, "aclremove is no longer supported"))),
];

/// # Errors
/// 22004 for NULL in a list, XX000 for a text that is no aclitem.
fn parsed(call: &CallInfo<'_>, item: &Datum) -> Result<AclItem> {
    if item.is_null() {
        return Err(err!(NULL_VALUE_NOT_ALLOWED, "ACL arrays must not contain null values"));
    }
    let catalog = call.session.catalog();
    let role = |name: &str| catalog.role_by_name(name).map_or_else(|| Oid(name.parse().unwrap_or(0)), |r| r.oid);
    AclItem::parse(item.as_str(), role).ok_or_else(|| DbError::internal("an aclitem without its form"))
}

/// PostgreSQL's hash of an aclitem: its three numbers added.
fn sum(item: &AclItem) -> u32 {
    (item.privileges as u32).wrapping_add(item.grantee.0).wrapping_add(item.grantor.0)
}

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
