//! Whether values of two types can be compared by one key, and hash alike.

use super::planner::Planner;
use melba_types::oids;

/// Whether equality by this operator is equality of keys.
pub fn hashes_alike(planner: &Planner<'_>, operator: melba_types::Oid, left: melba_types::Oid, right: melba_types::Oid) -> bool {
    planner.catalog().is_equality(operator) && comparable(planner, left, right)
}

/// Whether values of the two types have keys of one form.
pub fn comparable(planner: &Planner<'_>, a: melba_types::Oid, b: melba_types::Oid) -> bool {
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
    a == b || (family(a) != 0 && family(a) == family(b))
}
