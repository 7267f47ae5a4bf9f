//! The types that statements are generated over, and their values: few of each, so that they meet, with the edges among them.
//!
//! Of values that are equal but not the same (1.0 and 1.00, 24 hours and a day) tables hold one form only: which of them a
//! DISTINCT keeps depends on the plan.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    Bool,
    Int2,
    Int4,
    Int8,
    Numeric,
    Float4,
    Float8,
    Text,
    Varchar,
    Char,
    Name,
    Bytea,
    Date,
    Time,
    Timetz,
    Timestamp,
    Timestamptz,
    Interval,
    Uuid,
    Inet,
    Cidr,
    Bit,
    Varbit,
    Jsonb,
    Money,
    Oid,
    Mood,
    Pair,
    Positive,
    Int4Range,
    Int8Range,
    NumRange,
    DateRange,
    TsRange,
    TstzRange,
    Int4Multirange,
    DateMultirange,
    IntArray,
    Int8Array,
    TextArray,
    NumericArray,
    BoolArray,
    DateArray,
    MoodArray,
    /// A whole row of a relation: only referred to, never a column.
    Record,
}

use Type::*;

/// Those that columns have, the common ones more often.
pub const COLUMN_TYPES: &[Type] = &[
    Bool,
    Bool,
    Int2,
    Int4,
    Int4,
    Int4,
    Int4,
    Int4,
    Int8,
    Int8,
    Numeric,
    Numeric,
    Numeric,
    Float4,
    Float8,
    Text,
    Text,
    Text,
    Text,
    Varchar,
    Char,
    Name,
    Bytea,
    Date,
    Date,
    Time,
    Timetz,
    Timestamp,
    Timestamptz,
    Interval,
    Uuid,
    Inet,
    Cidr,
    Bit,
    Varbit,
    Jsonb,
    Jsonb,
    Money,
    Oid,
    Mood,
    Mood,
    Pair,
    Positive,
    Int4Range,
    Int8Range,
    NumRange,
    DateRange,
    TsRange,
    TstzRange,
    Int4Multirange,
    DateMultirange,
    IntArray,
    IntArray,
    Int8Array,
    TextArray,
    NumericArray,
    BoolArray,
    DateArray,
    MoodArray,
];

/// The types that a schema makes for itself; they live in the schema of the tables.
pub const CREATED_TYPES: &[&str] = &[
    "create type mood as enum ('sad', 'ok', 'happy')",
    "create type pair as (p int4, q text)",
    "create domain positive as int4 check (value > 0)",
];

impl Type {
    /// As casts write it.
    pub fn name(self) -> &'static str {
        match self {
            Bool => "bool",
            Int2 => "int2",
            Int4 => "int4",
            Int8 => "int8",
            Numeric => "numeric",
            Float4 => "float4",
            Float8 => "float8",
            Text => "text",
            Varchar => "varchar",
            Char => "char(4)",
            Name => "name",
            Bytea => "bytea",
            Date => "date",
            Time => "time",
            Timetz => "timetz",
            Timestamp => "timestamp",
            Timestamptz => "timestamptz",
            Interval => "interval",
            Uuid => "uuid",
            Inet => "inet",
            Cidr => "cidr",
            Bit => "bit(4)",
            Varbit => "varbit",
            Jsonb => "jsonb",
            Money => "money",
            Oid => "oid",
            Mood => "mood",
            Pair => "pair",
            Positive => "positive",
            Int4Range => "int4range",
            Int8Range => "int8range",
            NumRange => "numrange",
            DateRange => "daterange",
            TsRange => "tsrange",
            TstzRange => "tstzrange",
            Int4Multirange => "int4multirange",
            DateMultirange => "datemultirange",
            IntArray => "int4[]",
            Int8Array => "int8[]",
            TextArray => "text[]",
            NumericArray => "numeric[]",
            BoolArray => "bool[]",
            DateArray => "date[]",
            MoodArray => "mood[]",
            Record => "record",
        }
    }

    /// As a column is declared.
    pub fn column(self) -> &'static str {
        match self {
            Numeric => "numeric(12,2)",
            Varchar => "varchar(12)",
            other => other.name(),
        }
    }

    pub fn is_number(self) -> bool {
        matches!(self, Int4 | Int8 | Numeric)
    }

    /// Types whose values compare with this one's without a cast.
    pub fn family(self) -> &'static [Type] {
        match self {
            Int2 | Int4 | Int8 | Numeric | Float4 | Float8 | Positive => &[Int2, Int4, Int8, Numeric, Float4, Float8, Positive],
            Text | Varchar | Name => &[Text, Varchar, Name],
            Date | Timestamp | Timestamptz => &[Date, Timestamp, Timestamptz],
            Bool => &[Bool],
            Char => &[Char],
            Bytea => &[Bytea],
            Time => &[Time],
            Interval => &[Interval],
            Uuid => &[Uuid],
            Timetz => &[Timetz],
            Inet | Cidr => &[Inet, Cidr],
            Bit => &[Bit],
            Varbit => &[Varbit],
            Jsonb => &[Jsonb],
            Money => &[Money],
            Oid => &[Oid],
            Mood => &[Mood],
            Pair => &[Pair],
            Int4Range => &[Int4Range],
            Int8Range => &[Int8Range],
            TsRange => &[TsRange],
            TstzRange => &[TstzRange],
            Int4Multirange => &[Int4Multirange],
            DateMultirange => &[DateMultirange],
            NumRange => &[NumRange],
            DateRange => &[DateRange],
            IntArray => &[IntArray],
            Int8Array => &[Int8Array],
            BoolArray => &[BoolArray],
            DateArray => &[DateArray],
            TextArray => &[TextArray],
            NumericArray => &[NumericArray],
            MoodArray => &[MoodArray],
            Record => &[Record],
        }
    }

    /// The array type over it, where statements use one.
    pub fn array(self) -> Option<Type> {
        match self {
            Int4 => Some(IntArray),
            Text => Some(TextArray),
            Numeric => Some(NumericArray),
            Int8 => Some(Int8Array),
            Bool => Some(BoolArray),
            Date => Some(DateArray),
            Mood => Some(MoodArray),
            _ => None,
        }
    }

    pub fn element(self) -> Option<Type> {
        [Int4, Int8, Text, Numeric, Bool, Date, Mood].into_iter().find(|t| t.array() == Some(self))
    }

    /// The distance that RANGE frames measure in.
    pub fn distance(self) -> Option<&'static [&'static str]> {
        match self {
            Int4 | Int2 | Int8 => Some(&["0", "1", "2", "5"]),
            Numeric | Float8 => Some(&["0", "0.5", "2", "100"]),
            Date | Timestamp | Timestamptz => {
                Some(&["'0'::interval", "'1 day'::interval", "'1 mon'::interval", "'36:00'::interval"])
            }
            Interval => Some(&["'1 day'::interval", "'2 days'::interval"]),
            _ => None,
        }
    }

    /// Its values as text.
    pub fn values(self) -> &'static [&'static str] {
        match self {
            Bool => &["t", "f"],
            Int2 => &["0", "1", "2", "3", "-1", "7", "32767", "-32768"],
            Int4 => &["0", "1", "2", "3", "4", "5", "-1", "10", "42", "2147483647", "-2147483648"],
            Int8 => &["0", "1", "2", "3", "5", "-7", "2147483648", "9223372036854775807", "-9223372036854775808"],
            Numeric => &["0.00", "1.00", "2.00", "2.50", "-1.25", "3.00", "99999.99", "-0.01", "NaN"],
            Float8 => &["0", "1", "2", "0.5", "-1.25", "3", "1024.25", "NaN", "Infinity", "-Infinity"],
            Float4 => &["0", "1", "2", "0.5", "-1.25", "3", "16777216", "NaN", "Infinity", "-Infinity"],
            Text => &["", "a", "b", "ab", "abc", "A", "foo", "foo bar", " x", "a%b", "a_c", "é", "10", "null"],
            Varchar => &["", "a", "b", "ab", "Abc", "foo", "z9", "10"],
            Char => &["", "a", "b", "ab", "abcd", "A"],
            Name => &["", "a", "b", "ab", "foo", "10"],
            Bytea => &["\\x", "\\x00", "\\x01", "\\x00ff", "\\x6162"],
            Date => {
                &["2000-01-01", "2024-02-29", "2024-03-01", "1999-12-31", "2024-02-28", "infinity", "-infinity", "0001-01-01"]
            }
            Time => &["00:00:00", "12:00:00", "23:59:59.999999", "12:34:56", "01:02:03"],
            Timetz => &["00:00:00+00", "12:00:00+02", "10:00:00+00", "23:59:59.999999-05", "10:00:00-01"],
            Timestamp => {
                &["2000-01-01 00:00:00", "2024-02-29 12:00:00", "2024-03-01 00:00:00", "1999-12-31 23:59:59.999999", "infinity"]
            }
            Timestamptz => &[
                "2000-01-01 00:00:00+00",
                "2024-02-29 12:00:00+00",
                "2024-03-10 07:00:00+00",
                "2024-11-03 06:30:00+00",
                "1999-12-31 23:59:59.5+00",
                "-infinity",
            ],
            Interval => &["00:00:00", "1 day", "2 days", "-1 day", "3 days", "7 days", "400 days"],
            Uuid => &[
                "00000000-0000-0000-0000-000000000000",
                "11111111-2222-3333-4444-555555555555",
                "ffffffff-ffff-ffff-ffff-ffffffffffff",
            ],
            Inet => &["10.0.0.1", "10.0.0.0/8", "192.168.1.0/24", "::1", "fe80::/10", "10.0.0.2"],
            Bit => &["0000", "1010", "1111", "0001"],
            Varbit => &["", "0", "1", "101", "00000000", "111111111"],
            Cidr => &["10.0.0.0/8", "10.0.0.0/16", "192.168.1.0/24", "::/0", "10.0.0.2/32"],
            Jsonb => &[
                "null",
                "1",
                "\"a\"",
                "true",
                "[]",
                "{}",
                "[1, 2, null]",
                "{\"a\": 1, \"b\": [true, \"x\"]}",
                "{\"a\": null}",
                "{\"a\": {\"b\": \"c\"}}",
                "\"\"",
            ],
            Money => &["$0.00", "$1.00", "$2.50", "-$1.25", "$1000.10"],
            Oid => &["0", "1", "2", "42", "4294967295"],
            Mood => &["sad", "ok", "happy"],
            Pair => &["(1,a)", "(2,b)", "(,)", "(1,)", "(,a)", "(2,\"\")"],
            Positive => &["1", "2", "3", "42", "2147483647"],
            nested => nested.nested_values(),
        }
    }

    /// Of ranges and arrays.
    fn nested_values(self) -> &'static [&'static str] {
        match self {
            Int4Range => &["empty", "[1,3)", "[2,5)", "(,3)", "[3,)", "(,)", "[1,2)"],
            Int8Range => &["empty", "[1,3)", "[2147483648,)", "(,3)"],
            TsRange => {
                &["empty", "[2024-01-01 00:00:00,2024-03-01 00:00:00)", "(,2000-01-01 00:00:00]", "[2024-02-29 12:00:00,)"]
            }
            TstzRange => &["empty", "[2024-01-01 00:00:00+00,2024-03-10 07:00:00+00)", "(,2000-01-01 00:00:00+00]"],
            Int4Multirange => &["{}", "{[1,3)}", "{[1,3),[5,9)}", "{(,3),[7,)}", "{[2,6)}"],
            DateMultirange => &["{}", "{[2024-01-01,2024-03-01)}", "{(,2000-01-01),[2024-02-29,)}"],
            NumRange => &["empty", "[1.00,2.50]", "(1.00,2.50)", "(,3.00)", "[3.00,)", "[2.00,2.00]"],
            DateRange => &["empty", "[2024-01-01,2024-03-01)", "[2024-02-29,2024-03-01)", "(,2000-01-01)", "[1999-12-31,)"],
            IntArray => &["{}", "{1}", "{1,2,3}", "{NULL}", "{3,NULL,1}", "{2,2}", "{{1,2},{3,4}}", "[0:1]={5,6}"],
            TextArray => &["{}", "{a}", "{a,b}", "{NULL,\"\"}", "{foo,NULL,foo}"],
            NumericArray => &["{}", "{1.00}", "{2.50,NULL}", "{1.00,2.00,3.00}"],
            Int8Array => &["{}", "{1}", "{2147483648,NULL}", "{1,2,3}"],
            BoolArray => &["{}", "{t}", "{f,NULL,t}", "{{t,f},{f,t}}"],
            DateArray => &["{}", "{2000-01-01}", "{2024-02-29,NULL}", "{infinity,2024-03-01}"],
            MoodArray => &["{}", "{sad}", "{happy,ok}", "{NULL,sad}"],
            _ => &[],
        }
    }

    /// An expression over `g`, a running number, for tables of many rows.
    pub fn series(self) -> &'static str {
        match self {
            Bool => "g % 3 = 0",
            Int2 => "(g % 11)::int2",
            Int4 => "g % 13",
            Int8 => "(g * 7 % 101)::int8",
            Numeric => "(g % 17)::numeric / 4",
            Float8 => "(g % 9)::float8 / 4",
            Float4 => "(g % 9)::float4 / 4",
            Text | Varchar => "'t' || g % 19",
            Name => "('n' || g % 7)::name",
            Char => "'c' || g % 5",
            Date => "date '2024-01-01' + g % 40",
            Timestamp => "timestamp '2024-01-01' + (g % 50) * interval '1 hour'",
            Timestamptz => "timestamptz '2024-03-09 00:00+00' + (g % 50) * interval '1 hour'",
            Time => "time '01:00' + (g % 20) * interval '1 minute'",
            Timetz => "timetz '01:00+01' + (g % 20) * interval '1 minute'",
            Interval => "(g % 6) * interval '1 day'",
            Jsonb => "jsonb_build_object('a', g % 4, 'b', nullif(g % 3, 0))",
            Mood => "case g % 4 when 0 then 'sad' when 1 then 'ok' when 2 then 'happy' end::mood",
            Positive => "g % 8 + 1",
            Int4Range => "int4range(g % 5, g % 5 + 3)",
            Int8Range => "int8range(g % 5, null)",
            DateRange => "daterange(date '2024-01-01' + g % 9, date '2024-01-11')",
            Int4Multirange => "int4multirange(int4range(g % 5, g % 5 + 2), int4range(9, 9 + g % 3))",
            Uuid => "md5((g % 9)::text)::uuid",
            Inet => "inet '10.0.0.0' + g % 12",
            Varbit => "(g % 13)::bit(4)::varbit",
            Bit => "(g % 13)::bit(4)",
            Money => "(g % 11)::money",
            Bytea => "decode(to_hex(16 + g % 200), 'hex')",
            Int8Array => "array[(g % 4)::int8, null]",
            IntArray => "array[g % 3, g % 5]",
            TextArray => "array['t' || g % 3, null]",
            Pair => "row(g % 3, 't' || g % 2)::pair",
            Oid => "(g % 10)::oid",
            _ => "null",
        }
    }
}
