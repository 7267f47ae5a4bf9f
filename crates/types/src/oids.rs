//! OIDs of the built-in types (PostgreSQL 18, pg_type) and the physical kind each is held as.

use crate::ids::Oid;

/// How a value of some SQL type is held in memory and on disk.
///
/// The discriminants are part of the on-disk format of table layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    Bool = 0,
    Int2 = 1,
    /// Also `date` (days since 2000-01-01).
    Int4 = 2,
    /// Also `time`, `timestamp`, `timestamptz` (microseconds; timestamps since 2000-01-01), `money`, `xid8`, `pg_lsn`, `tid`.
    Int8 = 3,
    Float4 = 4,
    Float8 = 5,
    /// Unsigned 32 bits: `oid`, the reg types, `xid`, `cid`, enum values (by the OID of their label).
    Oid = 6,
    /// `"char"`, one byte.
    Char = 7,
    /// Valid UTF-8: text, varchar, bpchar (blanks kept), name, json, xml, cstring, unknown.
    Text = 8,
    /// bytea and every type with a special binary form (jsonb, hstore, bit, inet, macaddr, geometric, tsvector, jsonpath).
    Bytes = 9,
    Numeric = 10,
    Interval = 11,
    Uuid = 12,
    TimeTz = 13,
    Array = 14,
    /// Composite values.
    Record = 15,
    Range = 16,
    Multirange = 17,
    /// Bytes that are not worth analysing (frames of large values, compressed already): no SQL type has this kind. Segments store
    /// them unchanged.
    Frame = 18,
}

impl Kind {
    /// Bytes of a fixed-width kind, `None` for varying width.
    pub const fn width(self) -> Option<usize> {
        match self {
            Kind::Bool | Kind::Char => Some(1),
            Kind::Int2 => Some(2),
            Kind::Int4 | Kind::Float4 | Kind::Oid => Some(4),
            Kind::Int8 | Kind::Float8 => Some(8),
            Kind::TimeTz => Some(12),
            Kind::Interval | Kind::Uuid => Some(16),
            Kind::Text
            | Kind::Bytes
            | Kind::Numeric
            | Kind::Array
            | Kind::Record
            | Kind::Range
            | Kind::Multirange
            | Kind::Frame => None,
        }
    }

    /// Whether equal values are equal numbers, and the other way round.
    pub fn is_integer(self) -> bool {
        matches!(self, Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Oid)
    }

    /// Whether values may be compressed or kept out of their rows.
    pub fn is_toastable(self) -> bool {
        self.width().is_none() && self != Kind::Frame
    }

    pub fn from_u8(v: u8) -> Option<Kind> {
        const ALL: [Kind; 19] = [
            Kind::Bool,
            Kind::Int2,
            Kind::Int4,
            Kind::Int8,
            Kind::Float4,
            Kind::Float8,
            Kind::Oid,
            Kind::Char,
            Kind::Text,
            Kind::Bytes,
            Kind::Numeric,
            Kind::Interval,
            Kind::Uuid,
            Kind::TimeTz,
            Kind::Array,
            Kind::Record,
            Kind::Range,
            Kind::Multirange,
            Kind::Frame,
        ];
        ALL.get(v as usize).copied()
    }

    /// The kind of a built-in, non-array base type. Arrays, composites, enums, domains and ranges that users create are in the
    /// catalog, which knows every type (`Type::kind`).
    pub fn of_builtin(ty: Oid) -> Option<Kind> {
        Some(match ty {
            BOOL => Kind::Bool,
            INT2 => Kind::Int2,
            INT4 | DATE => Kind::Int4,
            INT8 | TIME | TIMESTAMP | TIMESTAMPTZ | MONEY | XID8 | PG_LSN | TID => Kind::Int8,
            FLOAT4 => Kind::Float4,
            FLOAT8 => Kind::Float8,
            OID | XID | CID | REGPROC | REGPROCEDURE | REGOPER | REGOPERATOR | REGCLASS | REGTYPE | REGCONFIG | REGDICTIONARY
            | REGNAMESPACE | REGROLE | REGCOLLATION => Kind::Oid,
            CHAR => Kind::Char,
            CITEXT | QUERY_INT => Kind::Text,
            HSTORE => Kind::Bytes,
            TEXT | VARCHAR | BPCHAR | NAME | JSON | XML | CSTRING | UNKNOWN | PG_NODE_TREE | REFCURSOR | ACLITEM => Kind::Text,
            NUMERIC => Kind::Numeric,
            INTERVAL => Kind::Interval,
            UUID => Kind::Uuid,
            TIMETZ => Kind::TimeTz,
            RECORD => Kind::Record,
            INT4RANGE | INT8RANGE | NUMRANGE | TSRANGE | TSTZRANGE | DATERANGE => Kind::Range,
            INT4MULTIRANGE | INT8MULTIRANGE | NUMMULTIRANGE | TSMULTIRANGE | TSTZMULTIRANGE | DATEMULTIRANGE => Kind::Multirange,
            INT2VECTOR | OIDVECTOR | ANYARRAY | RECORD_ARRAY => Kind::Array,
            BYTEA | JSONB | JSONPATH | BIT | VARBIT | INET | CIDR | MACADDR | MACADDR8 | POINT | LSEG | PATH | BOX | POLYGON
            | LINE | CIRCLE | TSVECTOR | TSQUERY | TXID_SNAPSHOT | PG_SNAPSHOT => Kind::Bytes,
            _ => return None,
        })
    }
}

/// Types of extensions, whose OIDs are the same wherever they are installed.
pub const CITEXT: Oid = Oid(0x7fff_0001);
pub const HSTORE: Oid = Oid(0x7fff_0fa1);
pub const QUERY_INT: Oid = Oid(0x7fff_2329);

pub const BOOL: Oid = Oid(16);
pub const BOOL_ARRAY: Oid = Oid(1000);
pub const BYTEA: Oid = Oid(17);
pub const BYTEA_ARRAY: Oid = Oid(1001);
pub const CHAR: Oid = Oid(18);
pub const CHAR_ARRAY: Oid = Oid(1002);
pub const NAME: Oid = Oid(19);
pub const NAME_ARRAY: Oid = Oid(1003);
pub const INT8: Oid = Oid(20);
pub const INT8_ARRAY: Oid = Oid(1016);
pub const INT2: Oid = Oid(21);
pub const INT2_ARRAY: Oid = Oid(1005);
pub const INT2VECTOR: Oid = Oid(22);
pub const INT2VECTOR_ARRAY: Oid = Oid(1006);
pub const INT4: Oid = Oid(23);
pub const INT4_ARRAY: Oid = Oid(1007);
pub const REGPROC: Oid = Oid(24);
pub const REGPROC_ARRAY: Oid = Oid(1008);
pub const TEXT: Oid = Oid(25);
pub const TEXT_ARRAY: Oid = Oid(1009);
pub const OID: Oid = Oid(26);
pub const OID_ARRAY: Oid = Oid(1028);
pub const TID: Oid = Oid(27);
pub const TID_ARRAY: Oid = Oid(1010);
pub const XID: Oid = Oid(28);
pub const XID_ARRAY: Oid = Oid(1011);
pub const CID: Oid = Oid(29);
pub const CID_ARRAY: Oid = Oid(1012);
pub const OIDVECTOR: Oid = Oid(30);
pub const OIDVECTOR_ARRAY: Oid = Oid(1013);
pub const PG_DDL_COMMAND: Oid = Oid(32);
pub const JSON: Oid = Oid(114);
pub const JSON_ARRAY: Oid = Oid(199);
pub const XML: Oid = Oid(142);
pub const XML_ARRAY: Oid = Oid(143);
pub const PG_NODE_TREE: Oid = Oid(194);
pub const TABLE_AM_HANDLER: Oid = Oid(269);
pub const INDEX_AM_HANDLER: Oid = Oid(325);
pub const POINT: Oid = Oid(600);
pub const POINT_ARRAY: Oid = Oid(1017);
pub const LSEG: Oid = Oid(601);
pub const LSEG_ARRAY: Oid = Oid(1018);
pub const PATH: Oid = Oid(602);
pub const PATH_ARRAY: Oid = Oid(1019);
pub const BOX: Oid = Oid(603);
pub const BOX_ARRAY: Oid = Oid(1020);
pub const POLYGON: Oid = Oid(604);
pub const POLYGON_ARRAY: Oid = Oid(1027);
pub const LINE: Oid = Oid(628);
pub const LINE_ARRAY: Oid = Oid(629);
pub const CIDR: Oid = Oid(650);
pub const CIDR_ARRAY: Oid = Oid(651);
pub const FLOAT4: Oid = Oid(700);
pub const FLOAT4_ARRAY: Oid = Oid(1021);
pub const FLOAT8: Oid = Oid(701);
pub const FLOAT8_ARRAY: Oid = Oid(1022);
pub const UNKNOWN: Oid = Oid(705);
pub const CIRCLE: Oid = Oid(718);
pub const CIRCLE_ARRAY: Oid = Oid(719);
pub const MACADDR8: Oid = Oid(774);
pub const MACADDR8_ARRAY: Oid = Oid(775);
pub const MONEY: Oid = Oid(790);
pub const MONEY_ARRAY: Oid = Oid(791);
pub const MACADDR: Oid = Oid(829);
pub const MACADDR_ARRAY: Oid = Oid(1040);
pub const INET: Oid = Oid(869);
pub const INET_ARRAY: Oid = Oid(1041);
pub const ACLITEM: Oid = Oid(1033);
pub const ACLITEM_ARRAY: Oid = Oid(1034);
pub const BPCHAR: Oid = Oid(1042);
pub const BPCHAR_ARRAY: Oid = Oid(1014);
pub const VARCHAR: Oid = Oid(1043);
pub const VARCHAR_ARRAY: Oid = Oid(1015);
pub const DATE: Oid = Oid(1082);
pub const DATE_ARRAY: Oid = Oid(1182);
pub const TIME: Oid = Oid(1083);
pub const TIME_ARRAY: Oid = Oid(1183);
pub const TIMESTAMP: Oid = Oid(1114);
pub const TIMESTAMP_ARRAY: Oid = Oid(1115);
pub const TIMESTAMPTZ: Oid = Oid(1184);
pub const TIMESTAMPTZ_ARRAY: Oid = Oid(1185);
pub const INTERVAL: Oid = Oid(1186);
pub const INTERVAL_ARRAY: Oid = Oid(1187);
pub const TIMETZ: Oid = Oid(1266);
pub const TIMETZ_ARRAY: Oid = Oid(1270);
pub const BIT: Oid = Oid(1560);
pub const BIT_ARRAY: Oid = Oid(1561);
pub const VARBIT: Oid = Oid(1562);
pub const VARBIT_ARRAY: Oid = Oid(1563);
pub const NUMERIC: Oid = Oid(1700);
pub const NUMERIC_ARRAY: Oid = Oid(1231);
pub const REFCURSOR: Oid = Oid(1790);
pub const REFCURSOR_ARRAY: Oid = Oid(2201);
pub const REGPROCEDURE: Oid = Oid(2202);
pub const REGPROCEDURE_ARRAY: Oid = Oid(2207);
pub const REGOPER: Oid = Oid(2203);
pub const REGOPER_ARRAY: Oid = Oid(2208);
pub const REGOPERATOR: Oid = Oid(2204);
pub const REGOPERATOR_ARRAY: Oid = Oid(2209);
pub const REGCLASS: Oid = Oid(2205);
pub const REGCLASS_ARRAY: Oid = Oid(2210);
pub const REGTYPE: Oid = Oid(2206);
pub const REGTYPE_ARRAY: Oid = Oid(2211);
pub const RECORD: Oid = Oid(2249);
pub const RECORD_ARRAY: Oid = Oid(2287);
pub const CSTRING: Oid = Oid(2275);
pub const CSTRING_ARRAY: Oid = Oid(1263);
pub const ANY: Oid = Oid(2276);
pub const ANYARRAY: Oid = Oid(2277);
pub const VOID: Oid = Oid(2278);
pub const TRIGGER: Oid = Oid(2279);
pub const LANGUAGE_HANDLER: Oid = Oid(2280);
pub const INTERNAL: Oid = Oid(2281);
pub const ANYELEMENT: Oid = Oid(2283);
pub const ANYNONARRAY: Oid = Oid(2776);
pub const UUID: Oid = Oid(2950);
pub const UUID_ARRAY: Oid = Oid(2951);
pub const TXID_SNAPSHOT: Oid = Oid(2970);
pub const TXID_SNAPSHOT_ARRAY: Oid = Oid(2949);
pub const FDW_HANDLER: Oid = Oid(3115);
pub const PG_LSN: Oid = Oid(3220);
pub const PG_LSN_ARRAY: Oid = Oid(3221);
pub const TSM_HANDLER: Oid = Oid(3310);
pub const PG_NDISTINCT: Oid = Oid(3361);
pub const PG_DEPENDENCIES: Oid = Oid(3402);
pub const ANYENUM: Oid = Oid(3500);
pub const TSVECTOR: Oid = Oid(3614);
pub const TSVECTOR_ARRAY: Oid = Oid(3643);
pub const TSQUERY: Oid = Oid(3615);
pub const TSQUERY_ARRAY: Oid = Oid(3645);
pub const GTSVECTOR: Oid = Oid(3642);
pub const GTSVECTOR_ARRAY: Oid = Oid(3644);
pub const REGCONFIG: Oid = Oid(3734);
pub const REGCONFIG_ARRAY: Oid = Oid(3735);
pub const REGDICTIONARY: Oid = Oid(3769);
pub const REGDICTIONARY_ARRAY: Oid = Oid(3770);
pub const JSONB: Oid = Oid(3802);
pub const JSONB_ARRAY: Oid = Oid(3807);
pub const ANYRANGE: Oid = Oid(3831);
pub const EVENT_TRIGGER: Oid = Oid(3838);
pub const INT4RANGE: Oid = Oid(3904);
pub const INT4RANGE_ARRAY: Oid = Oid(3905);
pub const NUMRANGE: Oid = Oid(3906);
pub const NUMRANGE_ARRAY: Oid = Oid(3907);
pub const TSRANGE: Oid = Oid(3908);
pub const TSRANGE_ARRAY: Oid = Oid(3909);
pub const TSTZRANGE: Oid = Oid(3910);
pub const TSTZRANGE_ARRAY: Oid = Oid(3911);
pub const DATERANGE: Oid = Oid(3912);
pub const DATERANGE_ARRAY: Oid = Oid(3913);
pub const INT8RANGE: Oid = Oid(3926);
pub const INT8RANGE_ARRAY: Oid = Oid(3927);
pub const JSONPATH: Oid = Oid(4072);
pub const JSONPATH_ARRAY: Oid = Oid(4073);
pub const REGNAMESPACE: Oid = Oid(4089);
pub const REGNAMESPACE_ARRAY: Oid = Oid(4090);
pub const REGROLE: Oid = Oid(4096);
pub const REGROLE_ARRAY: Oid = Oid(4097);
pub const REGCOLLATION: Oid = Oid(4191);
pub const REGCOLLATION_ARRAY: Oid = Oid(4192);
pub const INT4MULTIRANGE: Oid = Oid(4451);
pub const INT4MULTIRANGE_ARRAY: Oid = Oid(6150);
pub const NUMMULTIRANGE: Oid = Oid(4532);
pub const NUMMULTIRANGE_ARRAY: Oid = Oid(6151);
pub const TSMULTIRANGE: Oid = Oid(4533);
pub const TSMULTIRANGE_ARRAY: Oid = Oid(6152);
pub const TSTZMULTIRANGE: Oid = Oid(4534);
pub const TSTZMULTIRANGE_ARRAY: Oid = Oid(6153);
pub const DATEMULTIRANGE: Oid = Oid(4535);
pub const DATEMULTIRANGE_ARRAY: Oid = Oid(6155);
pub const INT8MULTIRANGE: Oid = Oid(4536);
pub const INT8MULTIRANGE_ARRAY: Oid = Oid(6157);
pub const ANYMULTIRANGE: Oid = Oid(4537);
pub const ANYCOMPATIBLEMULTIRANGE: Oid = Oid(4538);
pub const PG_BRIN_BLOOM_SUMMARY: Oid = Oid(4600);
pub const PG_BRIN_MINMAX_MULTI_SUMMARY: Oid = Oid(4601);
pub const PG_MCV_LIST: Oid = Oid(5017);
pub const PG_SNAPSHOT: Oid = Oid(5038);
pub const PG_SNAPSHOT_ARRAY: Oid = Oid(5039);
pub const XID8: Oid = Oid(5069);
pub const XID8_ARRAY: Oid = Oid(271);
pub const ANYCOMPATIBLE: Oid = Oid(5077);
pub const ANYCOMPATIBLEARRAY: Oid = Oid(5078);
pub const ANYCOMPATIBLENONARRAY: Oid = Oid(5079);
pub const ANYCOMPATIBLERANGE: Oid = Oid(5080);
