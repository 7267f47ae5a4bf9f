//! has_table_privilege and similar functions, pg_has_role, and privilege lists as values.
//!
//! Each of the has_..._privilege functions comes with the role given by name, by OID or not at all, and the object by name or
//! OID: one implementation distinguishes them by the number and kind of the arguments.

use melba_catalog::foreign;
use melba_catalog::grants::privilege_bit;
use melba_catalog::memberships::is_admin_of;
use melba_catalog::privileges::{AclKind, RoleUse, parse_privileges};
use melba_catalog::row_security::hides_rows;
use melba_catalog::{Acl, AclItem, Catalog, Relation, acl, classes, quote_ident};
use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::{Array, ArrayDim, Datum, Oid, Result, bail, err, oids};

use super::current_role;
use crate::regs::{object_named, relation_named};

/// The target of the privileges: owner and list, or `None` when there is no object with the OID given.
type Target = Option<(Oid, Acl)>;

/// Splits off the role, which is the first of `with_role` arguments.
fn role_and_rest<'a>(call: &CallInfo<'_>, args: &'a [Datum], with_role: usize) -> Result<(Oid, &'a [Datum])> {
    if args.len() < with_role {
        Ok((current_role(call)?, args))
    } else {
        Ok((role(call.session.catalog(), &args[0])?, &args[1..]))
    }
}

/// A role by name (`public` is everybody, OID 0) or by OID.
fn role(catalog: &Catalog, value: &Datum) -> Result<Oid> {
    match value {
        Datum::Text(name) if &**name == "public" => Ok(Oid::INVALID),
        Datum::Text(name) => {
            let found = catalog.role_by_name(name).map(|r| r.oid);
            found.ok_or_else(|| err!(UNDEFINED_OBJECT, "role \"{name}\" does not exist"))
        }
        other => Ok(Oid(other.as_oid())),
    }
}

/// An object by its name as a reg type reads it, or by OID.
fn object(call: &CallInfo<'_>, reg_type: Oid, value: &Datum) -> Result<Oid> {
    match value {
        Datum::Text(name) => object_named(call.session, reg_type, name),
        other => Ok(Oid(other.as_oid())),
    }
}

/// has_X_privilege for everything but columns.
fn check(
    call: &CallInfo<'_>,
    args: &[Datum],
    kind: AclKind,
    find: impl Fn(&CallInfo<'_>, &Datum) -> Result<Target>,
) -> Result<Datum> {
    let (role, rest) = role_and_rest(call, args, 3)?;
    // As in PostgreSQL: the object first, but for sequences.
    let (target, masks) = match kind {
        AclKind::Sequence => {
            let masks = parse_privileges(kind, rest[1].as_str())?;
            (find(call, &rest[0])?, masks)
        }
        _ => (find(call, &rest[0])?, parse_privileges(kind, rest[1].as_str())?),
    };
    let Some((owner, acl)) = target else { return Ok(Datum::Null) };
    let has = |mask: &u64| call.session.catalog().has_privileges(role, kind, owner, &acl, *mask);
    Ok(Datum::Bool(masks.iter().any(has)))
}

/// A relation by its OID, or by its name, which is never a number.
fn relation_oid(call: &CallInfo<'_>, value: &Datum) -> Result<Oid> {
    match value {
        Datum::Text(name) => relation_named(call.session, name),
        other => Ok(Oid(other.as_oid())),
    }
}

fn relation_target(call: &CallInfo<'_>, value: &Datum) -> Result<Target> {
    let oid = relation_oid(call, value)?;
    Ok(call.session.catalog().relation(oid).map(|r| (r.owner, r.acl.clone())))
}

fn sequence_target(call: &CallInfo<'_>, value: &Datum) -> Result<Target> {
    let oid = relation_oid(call, value)?;
    let relation = call.session.catalog().relation(oid);
    if let Some(other) = relation.filter(|r| r.sequence.is_none()) {
        bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a sequence", other.name);
    }
    Ok(relation.map(|r| (r.owner, r.acl.clone())))
}

fn namespace_target(call: &CallInfo<'_>, value: &Datum) -> Result<Target> {
    let catalog = call.session.catalog();
    let found = match value {
        Datum::Text(name) => {
            Some(catalog.namespace_by_name(name).ok_or_else(|| err!(UNDEFINED_SCHEMA, "schema \"{name}\" does not exist"))?)
        }
        other => catalog.namespace(Oid(other.as_oid())),
    };
    // Every role may use the temporary schema of its session.
    if let Some(own) = found.filter(|n| n.oid == call.session.temporary_namespace()) {
        let everybody = AclItem { grantee: Oid::INVALID, grantor: own.owner, privileges: AclKind::Namespace.all() };
        return Ok(Some((own.owner, Some([everybody].into()))));
    }
    Ok(found.map(|n| (n.owner, n.acl.clone())))
}

fn database_target(call: &CallInfo<'_>, value: &Datum) -> Result<Target> {
    let catalog = call.session.catalog();
    let found = match value {
        Datum::Text(name) => {
            let error = || err!(UNDEFINED_DATABASE, "database \"{name}\" does not exist");
            Some(catalog.database_by_name(name).ok_or_else(error)?)
        }
        other => catalog.database(Oid(other.as_oid())),
    };
    Ok(found.map(|d| (d.owner, d.acl.clone())))
}

fn function_target(call: &CallInfo<'_>, value: &Datum) -> Result<Target> {
    let oid = object(call, oids::REGPROCEDURE, value)?;
    Ok(call.session.catalog().function(oid).map(|f| (f.owner, f.acl.clone())))
}

/// An array type has the privileges of its element type.
fn type_target(call: &CallInfo<'_>, value: &Datum) -> Result<Target> {
    let catalog = call.session.catalog();
    let oid = object(call, oids::REGTYPE, value)?;
    let oid = catalog.array_element(oid).unwrap_or(oid);
    Ok(catalog.type_(oid).map(|t| (t.owner, t.acl.clone())))
}

fn language_target(call: &CallInfo<'_>, value: &Datum) -> Result<Target> {
    let catalog = call.session.catalog();
    plain_target(catalog, classes::PG_LANGUAGE, "language", value)
}

/// An object that a name without a schema finds.
fn plain_target(catalog: &Catalog, class: Oid, word: &str, value: &Datum) -> Result<Target> {
    let found = match value {
        Datum::Text(name) => match catalog.plain_object_by_name(class, Oid::INVALID, name) {
            Some(found) => Some(found),
            None => bail!(UNDEFINED_OBJECT, "{word} \"{name}\" does not exist"),
        },
        other => catalog.plain_object(class, Oid(other.as_oid())),
    };
    Ok(found.map(|object| (object.owner, object.acl.clone())))
}

fn tablespace_target(call: &CallInfo<'_>, value: &Datum) -> Result<Target> {
    plain_target(call.session.catalog(), classes::PG_TABLESPACE, "tablespace", value)
}

fn wrapper_target(call: &CallInfo<'_>, value: &Datum) -> Result<Target> {
    let catalog = call.session.catalog();
    let found = match value {
        Datum::Text(name) => match foreign::wrapper_by_name(catalog, name) {
            None => bail!(UNDEFINED_OBJECT, "foreign-data wrapper \"{name}\" does not exist"),
            found => found,
        },
        other => foreign::wrapper(catalog, Oid(other.as_oid())),
    };
    Ok(found.map(|w| (w.owner, w.acl.clone())))
}

fn server_target(call: &CallInfo<'_>, value: &Datum) -> Result<Target> {
    let catalog = call.session.catalog();
    let found = match value {
        Datum::Text(name) => match foreign::server_by_name(catalog, name) {
            None => bail!(UNDEFINED_OBJECT, "server \"{name}\" does not exist"),
            found => found,
        },
        other => foreign::server(catalog, Oid(other.as_oid())),
    };
    Ok(found.map(|s| (s.owner, s.acl.clone())))
}

/// A setting of any name: that there is one is not looked at.
fn parameter_target(call: &CallInfo<'_>, value: &Datum) -> Result<Target> {
    let name = value.as_str().to_ascii_lowercase();
    Ok(Some((classes::POSTGRES_ROLE, call.session.catalog().granted_acl(&name))))
}

/// has_column_privilege.
fn check_column(call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
    let (role, rest) = role_and_rest(call, args, 4)?;
    let catalog = call.session.catalog();
    let relation = catalog.relation(relation_oid(call, &rest[0])?);
    let at =
        match (&rest[1], relation) {
            (_, None) => None,
            (Datum::Text(name), Some(relation)) => {
                let found = relation.columns.iter().position(|c| c.name == *name);
                Some(found.ok_or_else(|| {
                    err!(UNDEFINED_COLUMN, "column \"{name}\" of relation \"{}\" does not exist", relation.name)
                })?)
            }
            (number, _) => usize::try_from(number.as_i16()).ok().and_then(|n| n.checked_sub(1)),
        };
    let masks = parse_privileges(AclKind::Column, rest[2].as_str())?;
    let Some(relation) = relation else { return Ok(Datum::Null) };
    let Some(column) = at.and_then(|at| relation.columns.get(at)).filter(|c| !c.dropped) else { return Ok(Datum::Null) };
    Ok(Datum::Bool(masks.iter().any(|mask| catalog.has_column_privileges(role, relation, column, *mask))))
}

/// has_any_column_privilege.
fn check_any_column(call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
    let (role, rest) = role_and_rest(call, args, 3)?;
    let catalog = call.session.catalog();
    let relation = catalog.relation(relation_oid(call, &rest[0])?);
    let masks = parse_privileges(AclKind::Column, rest[1].as_str())?;
    let Some(relation) = relation else { return Ok(Datum::Null) };
    let has = |mask: &u64| any_column(catalog, role, relation, *mask);
    Ok(Datum::Bool(masks.iter().any(has)))
}

fn any_column(catalog: &Catalog, role: Oid, relation: &Relation, mask: u64) -> bool {
    let mut columns = relation.columns.iter().filter(|c| !c.dropped);
    catalog.has_relation_privileges(role, relation, mask)
        || columns.any(|c| catalog.has_column_privileges(role, relation, c, mask))
}

/// pg_has_role: USAGE, MEMBER or SET, each also WITH ADMIN OPTION.
fn has_role(call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
    let (member, rest) = role_and_rest(call, args, 3)?;
    let catalog = call.session.catalog();
    let target = role(catalog, &rest[0])?;
    let mut any = false;
    for item in rest[1].as_str().split(',') {
        let word = item.trim().to_ascii_uppercase();
        let (name, admin) = match word.strip_suffix(" WITH ADMIN OPTION").or(word.strip_suffix(" WITH GRANT OPTION")) {
            Some(name) => (name.trim_end(), true),
            None => (&*word, false),
        };
        let how = match name {
            "USAGE" => RoleUse::Inherit,
            "MEMBER" => RoleUse::Member,
            "SET" => RoleUse::Set,
            _ => bail!(INVALID_PARAMETER_VALUE, "unrecognized privilege type: \"{}\"", item.trim()),
        };
        any |= if admin { is_admin_of(catalog, member, target) } else { catalog.has_role(member, target, how) };
    }
    Ok(Datum::Bool(any))
}

fn row_security_active(call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
    let catalog = call.session.catalog();
    let Some(relation) = catalog.relation(object(call, oids::REGCLASS, &args[0])?) else { return Ok(Datum::Bool(false)) };
    Ok(Datum::Bool(hides_rows(catalog, relation, current_role(call)?)))
}

/// acldefault(): the list that stands for "nothing granted or revoked".
fn acl_default(call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
    let letter = args[0].as_char();
    let Some(kind) = AclKind::from_letter(letter) else {
        bail!(INVALID_PARAMETER_VALUE, "unrecognized object type abbreviation: {}", char::from(letter));
    };
    let items: Vec<_> = kind.default_acl(Oid(args[1].as_oid())).iter().map(|i| item_text(call.session.catalog(), i)).collect();
    let dims = vec![ArrayDim { length: items.len() as i32, lower_bound: 1 }];
    let dims = if items.is_empty() { Vec::new() } else { dims };
    Ok(Datum::Array(std::sync::Arc::new(Array { element_type: oids::ACLITEM, dims, elements: items })))
}

/// makeaclitem(): an item from grantee, grantor, a list of privileges, and whether they may be granted on.
fn make_acl_item(call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
    let mut privileges = 0;
    for word in args[2].as_str().split(',').map(str::trim) {
        let bit = privilege_bit(&word.to_ascii_lowercase());
        privileges |= bit.ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "unrecognized privilege type: \"{word}\""))?;
    }
    if args[3].as_bool() {
        privileges |= privileges << acl::GRANT_OPTION_SHIFT;
    }
    let item = AclItem { grantee: Oid(args[0].as_oid()), grantor: Oid(args[1].as_oid()), privileges };
    Ok(item_text(call.session.catalog(), &item))
}

fn item_text(catalog: &Catalog, item: &AclItem) -> Datum {
    let name = |oid: Oid| match catalog.role(oid) {
        Some(role) => quote_ident(&role.name).into_owned(),
        None if oid.is_valid() => oid.to_string(),
        None => String::new(),
    };
    Datum::text(format!("{}={}/{}", name(item.grantee), item.letters(), name(item.grantor)))
}

/// aclexplode(): grantor, grantee, privilege and whether it may be granted on, a row a privilege.
pub fn acl_explode(call: &CallInfo<'_>, args: &[Datum]) -> Result<Box<dyn Iterator<Item = Result<Vec<Datum>>> + Send>> {
    let mut rows = Vec::new();
    let catalog = call.session.catalog();
    let role = |name: &str| catalog.role_by_name(name).map_or_else(|| Oid(name.parse().unwrap_or(0)), |r| r.oid);
    for element in &args[0].as_array().elements {
        if element.is_null() {
            bail!(NULL_VALUE_NOT_ALLOWED, "ACL arrays must not contain null values");
        }
        let Some(item) = AclItem::parse(element.as_str(), role) else { continue };
        for (bit, name) in acl::NAMES.iter().enumerate().filter(|(bit, _)| item.privileges >> bit & 1 != 0) {
            let grantable = item.privileges >> (bit as u32 + acl::GRANT_OPTION_SHIFT) & 1 != 0;
            let (grantor, grantee) = (Datum::Oid(item.grantor.0), Datum::Oid(item.grantee.0));
            rows.push(Ok(vec![grantor, grantee, Datum::text(*name), Datum::Bool(grantable)]));
        }
    }
    Ok(Box::new(rows.into_iter()))
}

/// Rows for every way to name the role and the object.
macro_rules! privileges {
    ($($run:expr => $($source:literal)*;)*) => {
        pub const FUNCTIONS: &[(&str, ScalarFn)] = &[$($(($source, $run),)*)*];
    };
}

privileges! {
    |c, a| check(c, a, AclKind::Table, relation_target) =>
        "has_table_privilege_name_name" "has_table_privilege_name_id" "has_table_privilege_id_name" "has_table_privilege_id_id"
        "has_table_privilege_name" "has_table_privilege_id";
    |c, a| check(c, a, AclKind::Sequence, sequence_target) =>
        "has_sequence_privilege_name_name" "has_sequence_privilege_name_id" "has_sequence_privilege_id_name"
        "has_sequence_privilege_id_id" "has_sequence_privilege_name" "has_sequence_privilege_id";
    |c, a| check(c, a, AclKind::Namespace, namespace_target) =>
        "has_schema_privilege_name_name" "has_schema_privilege_name_id" "has_schema_privilege_id_name"
        "has_schema_privilege_id_id" "has_schema_privilege_name" "has_schema_privilege_id";
    |c, a| check(c, a, AclKind::Database, database_target) =>
        "has_database_privilege_name_name" "has_database_privilege_name_id" "has_database_privilege_id_name"
        "has_database_privilege_id_id" "has_database_privilege_name" "has_database_privilege_id";
    |c, a| check(c, a, AclKind::Function, function_target) =>
        "has_function_privilege_name_name" "has_function_privilege_name_id" "has_function_privilege_id_name"
        "has_function_privilege_id_id" "has_function_privilege_name" "has_function_privilege_id";
    |c, a| check(c, a, AclKind::Type, type_target) =>
        "has_type_privilege_name_name" "has_type_privilege_name_id" "has_type_privilege_id_name" "has_type_privilege_id_id"
        "has_type_privilege_name" "has_type_privilege_id";
    |c, a| check(c, a, AclKind::Language, language_target) =>
        "has_language_privilege_name_name" "has_language_privilege_name_id" "has_language_privilege_id_name"
        "has_language_privilege_id_id" "has_language_privilege_name" "has_language_privilege_id";
    |c, a| check(c, a, AclKind::Tablespace, tablespace_target) =>
        "has_tablespace_privilege_name_name" "has_tablespace_privilege_name_id" "has_tablespace_privilege_id_name"
        "has_tablespace_privilege_id_id" "has_tablespace_privilege_name" "has_tablespace_privilege_id";
    |c, a| check(c, a, AclKind::ForeignDataWrapper, wrapper_target) =>
        "has_foreign_data_wrapper_privilege_name_name" "has_foreign_data_wrapper_privilege_name_id"
        "has_foreign_data_wrapper_privilege_id_name" "has_foreign_data_wrapper_privilege_id_id"
        "has_foreign_data_wrapper_privilege_name" "has_foreign_data_wrapper_privilege_id";
    |c, a| check(c, a, AclKind::ForeignServer, server_target) =>
        "has_server_privilege_name_name" "has_server_privilege_name_id" "has_server_privilege_id_name"
        "has_server_privilege_id_id" "has_server_privilege_name" "has_server_privilege_id";
    |c, a| check(c, a, AclKind::Parameter, parameter_target) =>
        "has_parameter_privilege_name_name" "has_parameter_privilege_id_name" "has_parameter_privilege_name";
    check_column =>
        "has_column_privilege_name_name_name" "has_column_privilege_name_name_attnum" "has_column_privilege_name_id_name"
        "has_column_privilege_name_id_attnum" "has_column_privilege_id_name_name" "has_column_privilege_id_name_attnum"
        "has_column_privilege_id_id_name" "has_column_privilege_id_id_attnum" "has_column_privilege_name_name"
        "has_column_privilege_name_attnum" "has_column_privilege_id_name" "has_column_privilege_id_attnum";
    check_any_column =>
        "has_any_column_privilege_name_name" "has_any_column_privilege_name_id" "has_any_column_privilege_id_name"
        "has_any_column_privilege_id_id" "has_any_column_privilege_name" "has_any_column_privilege_id";
    has_role =>
        "pg_has_role_name_name" "pg_has_role_name_id" "pg_has_role_id_name" "pg_has_role_id_id" "pg_has_role_name"
        "pg_has_role_id";
    row_security_active => "row_security_active" "row_security_active_name";
    acl_default => "acldefault_sql";
    make_acl_item => "makeaclitem";
}
