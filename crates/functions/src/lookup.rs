//! What built-ins ask of the catalog about types.

use std::collections::HashMap;
use std::sync::OnceLock;

use melba_catalog::TypeKind;
use melba_types::{Kind, Oid, oids};

use crate::Session;

/// A domain's base type and type modifier.
#[derive(Clone, Copy)]
pub struct Domain {
    pub base: Oid,
    pub typmod: i32,
}

/// What a domain type is made over; `None` for other types.
pub fn domain(_session: &dyn Session, _ty: Oid) -> Option<Domain> {
    None
}

/// Whether values of the domain (or of one it is made over) must be checked.
pub fn domain_is_checked(_session: &dyn Session, _ty: Oid) -> bool {
    false
}

/// The type below all domains.
pub fn base_type(session: &dyn Session, ty: Oid) -> Oid {
    let mut ty = ty;
    while let Some(domain) = domain(session, ty) {
        ty = domain.base;
    }
    ty
}

/// Element type of a true array type.
pub fn array_element(_session: &dyn Session, ty: Oid) -> Option<Oid> {
    static MAP: OnceLock<HashMap<u32, Oid>> = OnceLock::new();
    let map = MAP.get_or_init(|| ARRAYS.iter().map(|&(element, array, _)| (array.0, element)).collect());
    map.get(&ty.0).copied()
}

/// The array type over an element type.
pub fn array_type(_session: &dyn Session, element: Oid) -> Option<Oid> {
    static MAP: OnceLock<HashMap<u32, Oid>> = OnceLock::new();
    let map = MAP.get_or_init(|| ARRAYS.iter().map(|&(element, array, _)| (element.0, array)).collect());
    map.get(&element.0).copied()
}

/// What separates the elements of arrays of a type.
pub fn array_delimiter(_session: &dyn Session, element: Oid) -> u8 {
    if element == oids::BOX { b';' } else { b',' }
}

pub fn type_kind(_session: &dyn Session, ty: Oid) -> Option<TypeKind> {
    Kind::of_builtin(ty).map(|_| TypeKind::Base)
}

/// The type's name as format_type prints it without a modifier.
pub fn type_name(_session: &dyn Session, ty: Oid) -> String {
    match ARRAYS.iter().find(|row| row.0 == ty) {
        Some(row) => row.2.to_string(),
        None => match ARRAYS.iter().find(|row| row.1 == ty) {
            Some(row) => format!("{}[]", row.2),
            None => format!("{ty}"),
        },
    }
}

/// Built-in element types, their array types, and their names in messages.
const ARRAYS: &[(Oid, Oid, &str)] = &[
    (oids::BOOL, oids::BOOL_ARRAY, "boolean"),
    (oids::BYTEA, oids::BYTEA_ARRAY, "bytea"),
    (oids::CHAR, oids::CHAR_ARRAY, "\"char\""),
    (oids::NAME, oids::NAME_ARRAY, "name"),
    (oids::INT8, oids::INT8_ARRAY, "bigint"),
    (oids::INT2, oids::INT2_ARRAY, "smallint"),
    (oids::INT4, oids::INT4_ARRAY, "integer"),
    (oids::REGPROC, oids::REGPROC_ARRAY, "regproc"),
    (oids::TEXT, oids::TEXT_ARRAY, "text"),
    (oids::OID, oids::OID_ARRAY, "oid"),
    (oids::TID, oids::TID_ARRAY, "tid"),
    (oids::XID, oids::XID_ARRAY, "xid"),
    (oids::CID, oids::CID_ARRAY, "cid"),
    (oids::JSON, oids::JSON_ARRAY, "json"),
    (oids::XML, oids::XML_ARRAY, "xml"),
    (oids::POINT, oids::POINT_ARRAY, "point"),
    (oids::LSEG, oids::LSEG_ARRAY, "lseg"),
    (oids::PATH, oids::PATH_ARRAY, "path"),
    (oids::BOX, oids::BOX_ARRAY, "box"),
    (oids::POLYGON, oids::POLYGON_ARRAY, "polygon"),
    (oids::LINE, oids::LINE_ARRAY, "line"),
    (oids::CIDR, oids::CIDR_ARRAY, "cidr"),
    (oids::FLOAT4, oids::FLOAT4_ARRAY, "real"),
    (oids::FLOAT8, oids::FLOAT8_ARRAY, "double precision"),
    (oids::CIRCLE, oids::CIRCLE_ARRAY, "circle"),
    (oids::MACADDR8, oids::MACADDR8_ARRAY, "macaddr8"),
    (oids::MONEY, oids::MONEY_ARRAY, "money"),
    (oids::MACADDR, oids::MACADDR_ARRAY, "macaddr"),
    (oids::INET, oids::INET_ARRAY, "inet"),
    (oids::ACLITEM, oids::ACLITEM_ARRAY, "aclitem"),
    (oids::BPCHAR, oids::BPCHAR_ARRAY, "character"),
    (oids::VARCHAR, oids::VARCHAR_ARRAY, "character varying"),
    (oids::DATE, oids::DATE_ARRAY, "date"),
    (oids::TIME, oids::TIME_ARRAY, "time without time zone"),
    (oids::TIMESTAMP, oids::TIMESTAMP_ARRAY, "timestamp without time zone"),
    (oids::TIMESTAMPTZ, oids::TIMESTAMPTZ_ARRAY, "timestamp with time zone"),
    (oids::INTERVAL, oids::INTERVAL_ARRAY, "interval"),
    (oids::TIMETZ, oids::TIMETZ_ARRAY, "time with time zone"),
    (oids::BIT, oids::BIT_ARRAY, "bit"),
    (oids::VARBIT, oids::VARBIT_ARRAY, "bit varying"),
    (oids::NUMERIC, oids::NUMERIC_ARRAY, "numeric"),
    (oids::REFCURSOR, oids::REFCURSOR_ARRAY, "refcursor"),
    (oids::REGPROCEDURE, oids::REGPROCEDURE_ARRAY, "regprocedure"),
    (oids::REGOPER, oids::REGOPER_ARRAY, "regoper"),
    (oids::REGOPERATOR, oids::REGOPERATOR_ARRAY, "regoperator"),
    (oids::REGCLASS, oids::REGCLASS_ARRAY, "regclass"),
    (oids::REGTYPE, oids::REGTYPE_ARRAY, "regtype"),
    (oids::RECORD, oids::RECORD_ARRAY, "record"),
    (oids::CSTRING, oids::CSTRING_ARRAY, "cstring"),
    (oids::UUID, oids::UUID_ARRAY, "uuid"),
    (oids::TXID_SNAPSHOT, oids::TXID_SNAPSHOT_ARRAY, "txid_snapshot"),
    (oids::PG_LSN, oids::PG_LSN_ARRAY, "pg_lsn"),
    (oids::TSVECTOR, oids::TSVECTOR_ARRAY, "tsvector"),
    (oids::TSQUERY, oids::TSQUERY_ARRAY, "tsquery"),
    (oids::GTSVECTOR, oids::GTSVECTOR_ARRAY, "gtsvector"),
    (oids::REGCONFIG, oids::REGCONFIG_ARRAY, "regconfig"),
    (oids::REGDICTIONARY, oids::REGDICTIONARY_ARRAY, "regdictionary"),
    (oids::JSONB, oids::JSONB_ARRAY, "jsonb"),
    (oids::INT4RANGE, oids::INT4RANGE_ARRAY, "int4range"),
    (oids::NUMRANGE, oids::NUMRANGE_ARRAY, "numrange"),
    (oids::TSRANGE, oids::TSRANGE_ARRAY, "tsrange"),
    (oids::TSTZRANGE, oids::TSTZRANGE_ARRAY, "tstzrange"),
    (oids::DATERANGE, oids::DATERANGE_ARRAY, "daterange"),
    (oids::INT8RANGE, oids::INT8RANGE_ARRAY, "int8range"),
    (oids::JSONPATH, oids::JSONPATH_ARRAY, "jsonpath"),
    (oids::REGNAMESPACE, oids::REGNAMESPACE_ARRAY, "regnamespace"),
    (oids::REGROLE, oids::REGROLE_ARRAY, "regrole"),
    (oids::REGCOLLATION, oids::REGCOLLATION_ARRAY, "regcollation"),
    (oids::INT4MULTIRANGE, oids::INT4MULTIRANGE_ARRAY, "int4multirange"),
    (oids::NUMMULTIRANGE, oids::NUMMULTIRANGE_ARRAY, "nummultirange"),
    (oids::TSMULTIRANGE, oids::TSMULTIRANGE_ARRAY, "tsmultirange"),
    (oids::TSTZMULTIRANGE, oids::TSTZMULTIRANGE_ARRAY, "tstzmultirange"),
    (oids::DATEMULTIRANGE, oids::DATEMULTIRANGE_ARRAY, "datemultirange"),
    (oids::INT8MULTIRANGE, oids::INT8MULTIRANGE_ARRAY, "int8multirange"),
    (oids::PG_SNAPSHOT, oids::PG_SNAPSHOT_ARRAY, "pg_snapshot"),
    (oids::XID8, oids::XID8_ARRAY, "xid8"),
];
