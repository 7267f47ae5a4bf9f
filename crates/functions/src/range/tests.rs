use melba_types::{Oid, oids};

use crate::testing::FixedSession;

fn call(source: &str, args: &[(Oid, &str)], result: Oid) -> String {
    FixedSession::default().call_text(source, args, result).unwrap_or_else(|error| error)
}

const I4: Oid = oids::INT4RANGE;
const NUM: Oid = oids::NUMRANGE;

/// Expected values are PostgreSQL 18's.
#[test]
fn discrete_ranges_are_canonical() {
    let canonical = |text| call("int4range_canonical", &[(I4, text)], I4);
    assert_eq!(canonical("(1,5]"), "[2,6)");
    assert_eq!(canonical("(1,2)"), "empty");
    assert_eq!(canonical(" [ 3 ,)"), "[3,)");
    assert_eq!(canonical("[5,1)"), "22000 range lower bound must be less than or equal to range upper bound");
    assert_eq!(canonical("[1,2147483647]"), "22003 integer out of range");
    assert_eq!(canonical("1,2"), "22P02 malformed range literal: \"1,2\"");
}

#[test]
fn algebra() {
    let num = |f: &str, a, b| call(f, &[(NUM, a), (NUM, b)], NUM);
    assert_eq!(num("range_union", "[1.1,2.2)", "[2.2,3]"), "[1.1,3]");
    assert_eq!(num("range_union", "[1.1,2.2)", "(2.2,3]"), "22000 result of range union would not be contiguous");
    assert_eq!(num("range_merge", "[1.1,2.2)", "(5,6]"), "[1.1,6]");
    assert_eq!(num("range_intersect", "[1,3]", "(2,9)"), "(2,3]");
    assert_eq!(num("range_minus", "[1,9]", "[5,9]"), "[1,5)");
    assert_eq!(num("range_minus", "[1,9]", "[5,6]"), "22000 result of range difference would not be contiguous");
    let test = |f: &str, a, b| call(f, &[(I4, a), (I4, b)], oids::BOOL);
    assert_eq!(test("range_adjacent", "[1,5]", "[6,7]"), "t");
    assert_eq!(test("range_overlaps", "[1,5)", "[5,7]"), "f");
    assert_eq!(test("range_contains", "(,)", "empty"), "t");
}

#[test]
fn multiranges_merge() {
    let m = oids::INT4MULTIRANGE;
    let union = |a, b| call("multirange_union", &[(m, a), (m, b)], m);
    assert_eq!(union("{[1,3],[10,12)}", "{[4,6),empty}"), "{[1,6),[10,12)}");
    let minus = |a, b| call("multirange_minus", &[(m, a), (m, b)], m);
    assert_eq!(minus("{[1,10)}", "{[2,3),[5,7)}"), "{[1,2),[3,5),[7,10)}");
    let of = |ranges| call("multirange_constructor2", &[(oids::INT4RANGE_ARRAY, ranges)], m);
    assert_eq!(of("{\"[1,3)\",\"[2,5)\"}"), "{[1,5)}");
    assert_eq!(of("{\"[1,3)\",NULL}"), "22004 multirange values cannot contain null members");
    assert_eq!(of("{{empty}}"), "21000 multiranges cannot be constructed from multidimensional arrays");
}
