//! The operators by which a type is sorted and grouped.

use melba_catalog::TypeOperators;
use melba_fmgr::order::ordered_by_function;
use melba_types::{Oid, Result, err, oids};
use pg_query::protobuf as pb;

use super::context::Context;
use super::operators::OperatorName;
use melba_tree::*;

/// The operators that order a type as an ORDER BY item says.
pub fn sort_key(cx: &Context<'_>, ty: Oid, sort: &pb::SortBy, location: i32) -> Result<SortKey> {
    let ty = if ty == oids::UNKNOWN { oids::TEXT } else { ty };
    let operators = type_operators(cx, ty);
    let mut key = SortKey { equal: operators.equal, ..SortKey::default() };
    match pb::SortByDir::try_from(sort.sortby_dir).unwrap_or(pb::SortByDir::SortbyDefault) {
        pb::SortByDir::SortbyDesc => {
            key.sort = operators.greater;
            key.descending = true;
        }
        pb::SortByDir::SortbyUsing => {
            let name = OperatorName::from_nodes(&sort.use_op);
            let operator = cx.binary_operator(name, ty, ty, sort.location)?;
            let invalid = || {
                err!(WRONG_OBJECT_TYPE, "operator {} is not a valid ordering operator", name.name)
                    .hint("Ordering operators must be \"<\" or \">\" members of btree operator families.")
                    .at(sort.location)
            };
            let by_function = || cx.catalog.function_ordering(operator.oid).map(|m| (m.family, m.strategy));
            let (family, strategy) = cx.catalog.btree_strategy(operator.oid).or_else(by_function).ok_or_else(invalid)?;
            if strategy != 1 && strategy != 5 {
                return Err(invalid());
            }
            key.sort = operator.oid;
            key.descending = strategy == 5;
            key.using = true;
            let access = cx.catalog.access_methods();
            key.equal = access.operator(family, operator.left, operator.right, 3).ok_or_else(invalid)?;
        }
        _ => key.sort = operators.less,
    }
    if !key.sort.is_valid() {
        let name = cx.type_name(ty);
        return Err(err!(UNDEFINED_FUNCTION, "could not identify an ordering operator for type {name}")
            .hint("Use an explicit ordering operator or modify the query.")
            .at(location));
    }
    key.hashable = operators.hash.is_valid();
    key.nulls_first = match pb::SortByNulls::try_from(sort.sortby_nulls) {
        Ok(pb::SortByNulls::SortbyNullsFirst) => true,
        Ok(pb::SortByNulls::SortbyNullsLast) => false,
        _ => key.descending,
    };
    Ok(key)
}

/// # Errors
/// 0A000 for a type whose order, by a class of users, no key has.
pub fn refuse_function(cx: &Context<'_>, ty: Oid, location: i32) -> Result<()> {
    match cx.catalog.ordering_function(ty) {
        Some(class) => Err(ordered_by_function(&class).at(location)),
        None => Ok(()),
    }
}

/// The operators of a type; arrays have them when their elements do.
pub fn type_operators(cx: &Context<'_>, ty: Oid) -> TypeOperators {
    let mut own = cx.catalog.type_operators(ty);
    if own.input_type == oids::ANYARRAY
        && let Some(element) = cx.catalog.array_element(ty)
    {
        remove_missing(&mut own, &type_operators(cx, element));
    } else if own.input_type == oids::RECORD
        && let Some(relation) = cx.row_relation(ty)
    {
        let live = relation.columns.iter().filter(|c| !c.dropped);
        live.for_each(|column| remove_missing(&mut own, &type_operators(cx, column.ty)));
    }
    own
}

/// Removes from a container's operators those that need operators of its parts which these lack.
fn remove_missing(own: &mut TypeOperators, part: &TypeOperators) {
    if !part.less.is_valid() {
        (own.less, own.greater) = (Oid::INVALID, Oid::INVALID);
    }
    if !part.equal.is_valid() {
        own.equal = Oid::INVALID;
    }
    if !part.hash.is_valid() {
        own.hash = Oid::INVALID;
    }
}

/// Equality (and if there is one the order) of a type, for grouping.
pub fn group_key(cx: &Context<'_>, ty: Oid, location: i32) -> Result<SortKey> {
    let ty = if ty == oids::UNKNOWN { oids::TEXT } else { ty };
    let operators = type_operators(cx, ty);
    if !operators.equal.is_valid() {
        let name = cx.type_name(ty);
        return Err(err!(UNDEFINED_FUNCTION, "could not identify an equality operator for type {name}").at(location));
    }
    Ok(SortKey { equal: operators.equal, sort: operators.less, hashable: operators.hash.is_valid(), ..SortKey::default() })
}

/// How an ORDER BY item compares.
#[derive(Clone, Copy, Debug, Default)]
pub struct SortKey {
    pub equal: Oid,
    pub sort: Oid,
    pub descending: bool,
    pub nulls_first: bool,
    pub hashable: bool,
    pub using: bool,
}

impl SortKey {
    pub fn into_group(self, reference: u32) -> SortGroup {
        SortGroup {
            reference,
            equal: self.equal,
            sort: self.sort,
            descending: self.descending,
            nulls_first: self.nulls_first,
            hashable: self.hashable,
            using: self.using,
        }
    }
}
