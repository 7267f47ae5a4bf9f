//! Whether values of two types can be compared by one key, and hash alike.

use super::planner::Planner;
use super::sort;
use melba_fmgr::order;
use melba_tree::OperatorCall;
use melba_types::{Oid, oids};

/// Whether a comparison of values of two types and collations is equality of their keys, by either collation.
pub fn hashes_alike(planner: &Planner<'_>, comparison: &OperatorCall, left: (Oid, Oid), right: (Oid, Oid)) -> bool {
    // Only the comparison itself says that texts of several collations have none in common.
    let is_collatable = planner.catalog().type_(left.0).is_some_and(|ty| ty.collation.is_valid());
    let has_order = comparison.input_collation.is_valid() || !is_collatable;
    let is_equal = |collation| order::is_same_equality(planner.catalog(), collation, comparison.input_collation);
    planner.catalog().is_equality(comparison.operator)
        && comparable(planner, left.0, right.0)
        && has_order
        && is_equal(left.1)
        && is_equal(right.1)
}

/// Whether a comparison is the equality of a type whose values functions of users order: equal values have one label.
pub fn labels_alike(planner: &Planner<'_>, comparison: &OperatorCall, left: (Oid, Oid), right: (Oid, Oid)) -> bool {
    let catalog = planner.catalog();
    let is_joinable = || catalog.operator(comparison.operator).is_some_and(|operator| operator.can_merge || operator.can_hash);
    catalog.has_user_classes()
        && catalog.base_type(left.0) == catalog.base_type(right.0)
        && left.1 == right.1
        && catalog.type_operators(left.0).equal == comparison.operator
        && is_joinable()
        && matches!(sort::value_order(planner, Oid::INVALID, left), Ok(Some(_)))
}

/// Whether values of the two types have keys of one form.
pub fn comparable(planner: &Planner<'_>, a: Oid, b: Oid) -> bool {
    let (a, b) = (planner.catalog().base_type(a), planner.catalog().base_type(b));
    let family = |ty| match ty {
        oids::INT2 | oids::INT4 | oids::INT8 => 1,
        oids::FLOAT4 | oids::FLOAT8 => 2,
        oids::TEXT | oids::VARCHAR | oids::NAME => 3,
        oids::REGPROC
        | oids::REGPROCEDURE
        | oids::REGOPER
        | oids::REGOPERATOR
        | oids::REGCLASS
        | oids::REGTYPE
        | oids::REGNAMESPACE
        | oids::REGROLE
        | oids::OID => 4,
        _ => 0,
    };
    let by_function = |ty| planner.catalog().may_be_ordered_by_function(ty);
    a == b && !by_function(a) || (family(a) != 0 && family(a) == family(b))
}
