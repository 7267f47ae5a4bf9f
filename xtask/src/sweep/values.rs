//! Values of every type, as expressions: some as large as fits a statement's time, and some small ones.

/// Values of a type: the large ones first, and how many of them are large.
pub struct Values {
    pub types: &'static [&'static str],
    pub large: &'static [&'static str],
    pub small: &'static [&'static str],
}

const TEXT: &[&str] = &[
    "repeat('x', 30000000)",
    "repeat('a, ', 5000000)",
    "repeat('é', 10000000)",
    "repeat('1', 10000000)",
    "repeat('(a|%', 2000000)",
    "repeat('\\x', 2000000)",
];

pub const VALUES: &[Values] = &[
    Values {
        types: &["text", "varchar", "bpchar", "anynonarray"],
        large: TEXT,
        small: &["'x'", "', '", "'%a%_%'", "'(x+x+)+y'", "'g'"],
    },
    Values {
        types: &["any", "anyelement", "anycompatible", "anycompatiblenonarray"],
        large: &[TEXT[0], TEXT[1]],
        small: &["'x'::text"],
    },
    Values {
        types: &["cstring"],
        large: &["textout(repeat('1', 10000000))", "textout(repeat('(1, ', 3000000))"],
        small: &["textout('1')"],
    },
    Values {
        types: &["bytea"],
        large: &["convert_to(repeat('x', 30000000), 'UTF8')", "convert_to(repeat('é\\', 5000000), 'UTF8')"],
        small: &["'\\x41'::bytea", "'x'::bytea"],
    },
    Values { types: &["name"], large: &[], small: &["'utf8'::name"] },
    Values {
        types: &["numeric"],
        large: &[
            "repeat('7', 131000)::numeric",
            "('0.' || repeat('3', 16000))::numeric",
            "(repeat('8', 100000) || '.' || repeat('3', 16000))::numeric",
            "1e-16000::numeric",
        ],
        small: &["2::numeric", "0.3::numeric", "100000::numeric"],
    },
    Values { types: &["int2"], large: &["32767::int2"], small: &["3::int2"] },
    Values { types: &["int4"], large: &["2147483647", "-2147483647"], small: &["3", "100000"] },
    Values { types: &["int8"], large: &["9223372036854775807"], small: &["3::int8", "100000000::int8"] },
    Values { types: &["float4", "float8"], large: &["1e30"], small: &["0.5"] },
    Values { types: &["bool"], large: &[], small: &["true"] },
    Values { types: &["bit", "varbit"], large: &["repeat('10', 20000000)::varbit"], small: &["'101'::varbit", "'1'::varbit"] },
    Values {
        types: &["anyarray", "anycompatiblearray", "_int4"],
        large: &["array_fill(1, array[1000000])", "array_fill(7, array[3, 100000, 2])"],
        small: &["array[1, 2]", "array[null, 1]"],
    },
    Values {
        types: &["_text"],
        large: &[
            "array_fill('abc'::text, array[1000000])",
            "string_to_array(repeat('b,a,', 300000), ',')",
            "array[repeat('x', 30000000)]",
            "array[repeat('\"', 10000000)]",
        ],
        small: &["array['a', null]"],
    },
    Values { types: &["_numeric"], large: &["array_fill(1.5, array[1000000])"], small: &["array[1.5]"] },
    Values { types: &["_float8"], large: &["array_fill(1.5::float8, array[1000000])"], small: &["array[0.5::float8]"] },
    Values { types: &["_bool"], large: &["array_fill(true, array[1000000])"], small: &["array[true]"] },
    Values {
        types: &["jsonb"],
        large: &[
            "('[' || repeat('1,', 700000) || '1]')::jsonb",
            "('[' || repeat('{\"a\":[1,\"x\"]},', 100000) || '1]')::jsonb",
            "('{' || repeat('\"a\":1,', 200000) || '\"b\":2}')::jsonb",
            "to_jsonb(repeat('x', 30000000))",
            "(repeat('{\"a\":', 3000) || '1' || repeat('}', 3000))::jsonb",
        ],
        small: &["'{\"a\":1}'::jsonb", "'[1,2]'::jsonb"],
    },
    Values {
        types: &["json"],
        large: &[
            "('[' || repeat('1,', 2000000) || '1]')::json",
            "('[' || repeat('{\"a\":[1,\"x\"]},', 500000) || '1]')::json",
            "('{' || repeat('\"a\":1,', 500000) || '\"b\":2}')::json",
            "to_json(repeat('x', 30000000))",
        ],
        small: &["'{\"a\":1}'::json"],
    },
    Values {
        types: &["jsonpath"],
        large: &["('$' || repeat('.a', 2000))::jsonpath", "('$[0' || repeat(',1', 100000) || ']')::jsonpath"],
        small: &[
            "'$.**'::jsonpath",
            "'$[*] ? (@ like_regex \"(x+x+)+y\" || @ > 0 || @.a[*] == 1)'::jsonpath",
            "'$.**{5 to last}.**'::jsonpath",
        ],
    },
    Values {
        types: &["anyrange", "anycompatiblerange", "numrange"],
        large: &["numrange(1, repeat('7', 131000)::numeric)"],
        small: &["numrange(1, 5)", "'empty'::numrange"],
    },
    Values { types: &["int4range"], large: &["int4range(1, 2147483646)"], small: &["int4range(1, 5)"] },
    Values { types: &["int8range"], large: &["int8range(1, 9223372036854775806)"], small: &["int8range(1, 5)"] },
    Values {
        types: &["anymultirange", "anycompatiblemultirange", "int4multirange"],
        large: &["(select range_agg(int4range(i * 2, i * 2 + 1)) from generate_series(1, 100000) i)"],
        small: &["'{[1,3),[7,9)}'::int4multirange"],
    },
    Values { types: &["record"], large: &["row(repeat('x', 30000000), 1)"], small: &["row('x'::text, 1)"] },
    Values {
        types: &["timestamp"],
        large: &["'infinity'::timestamp", "'294276-01-01'::timestamp"],
        small: &["'2020-01-01'::timestamp"],
    },
    Values { types: &["timestamptz"], large: &["'294276-01-01'::timestamptz"], small: &["'2020-01-01'::timestamptz"] },
    Values { types: &["date"], large: &["'5874897-01-01'::date"], small: &["'2020-01-01'::date"] },
    Values { types: &["time"], large: &[], small: &["'12:00'::time"] },
    Values { types: &["timetz"], large: &[], small: &["'12:00+01'::timetz"] },
    Values {
        types: &["interval"],
        large: &["'170000000 years'::interval", "'-1 microsecond'::interval"],
        small: &["'1 day'::interval"],
    },
    Values { types: &["money"], large: &[], small: &["'1'::money"] },
    Values { types: &["uuid"], large: &[], small: &["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid"] },
    Values { types: &["inet", "cidr"], large: &["'::/0'::inet"], small: &["'10.0.0.0/8'::cidr"] },
    Values { types: &["oid"], large: &[], small: &["1259::oid"] },
    Values { types: &["regclass"], large: &[], small: &["'pg_class'::regclass"] },
    Values { types: &["regtype"], large: &[], small: &["'int4'::regtype"] },
    Values { types: &["char"], large: &[], small: &["'x'::\"char\""] },
];
