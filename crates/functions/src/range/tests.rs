use melba_types::{Oid, oids};

fn call(source: &str, args: &[(Oid, &str)], result: Oid) -> String {
    crate::testing::session().call_text(source, args, result).unwrap_or_else(|error| error)
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

/// The numbers below 12 that a bit stands for, as a multirange.
fn ranges(bits: u32) -> String {
    let number = |n: u32| format!("[{n},{n}]");
    format!("{{{}}}", (0..12).filter(|n| bits >> n & 1 == 1).map(number).collect::<Vec<_>>().join(","))
}

/// Multiranges are walked side by side; operations on sets of numbers give the expected results.
#[test]
fn operations_on_multiranges_are_those_on_sets() {
    let m = oids::INT4MULTIRANGE;
    let mut random = 1u32;
    let mut next = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        random >> 16 & 0xfff
    };
    let canonical = |bits| call("multirange_union", &[(m, &ranges(bits)), (m, "{}")], m);
    for _ in 0..300 {
        let (a, b) = (next(), if next() % 3 == 0 { next() & next() } else { next() });
        let (x, y) = (ranges(a), ranges(b));
        let of = |source: &str, result| call(source, &[(m, &x), (m, &y)], result);
        assert_eq!(of("multirange_intersect", m), canonical(a & b), "{x} * {y}");
        assert_eq!(of("multirange_minus", m), canonical(a & !b), "{x} - {y}");
        let is = |holds: bool| if holds { "t" } else { "f" };
        assert_eq!(of("multirange_overlaps_multirange", oids::BOOL), is(a & b != 0), "{x} && {y}");
        assert_eq!(of("multirange_contains_multirange", oids::BOOL), is(b & !a == 0), "{x} @> {y}");
    }
    let minus = |a, b| call("multirange_minus", &[(m, a), (m, b)], m);
    assert_eq!(minus("{(,)}", "{(,1),[3,5),[9,)}"), "{[1,3),[5,9)}");
    assert_eq!(minus("{(,5),[7,)}", "{[1,8)}"), "{(,1),[8,)}");
}

/// The product of their lengths took all memory there was.
#[test]
fn long_multiranges_are_walked_once() {
    let m = oids::INT4MULTIRANGE;
    let long =
        |first: usize| format!("{{{}}}", (0..20_000).map(|n| format!("[{0},{0}]", first + 2 * n)).collect::<Vec<_>>().join(","));
    let (even, odd) = (long(0), long(1));
    let start = std::time::Instant::now();
    assert_eq!(call("multirange_intersect", &[(m, &even), (m, &odd)], m), "{}");
    assert_eq!(call("multirange_overlaps_multirange", &[(m, &even), (m, &odd)], oids::BOOL), "f");
    assert!(call("multirange_minus", &[(m, &even), (m, &odd)], m).starts_with("{[0,1),[2,3)"));
    assert!(start.elapsed() < std::time::Duration::from_secs(10), "{:?}", start.elapsed());
}
