//! Comments on objects, and names of types, roles and encodings.

use melba_catalog::{Catalog, ObjectAddress, classes};
use melba_types::{Datum, Oid};

use super::oid_argument;
use crate::ScalarFn;

/// PostgreSQL's encodings by number.
const ENCODINGS: [&str; 42] = [
    "SQL_ASCII",
    "EUC_JP",
    "EUC_CN",
    "EUC_KR",
    "EUC_TW",
    "EUC_JIS_2004",
    "UTF8",
    "MULE_INTERNAL",
    "LATIN1",
    "LATIN2",
    "LATIN3",
    "LATIN4",
    "LATIN5",
    "LATIN6",
    "LATIN7",
    "LATIN8",
    "LATIN9",
    "LATIN10",
    "WIN1256",
    "WIN1258",
    "WIN866",
    "WIN874",
    "KOI8R",
    "WIN1251",
    "WIN1252",
    "ISO_8859_5",
    "ISO_8859_6",
    "ISO_8859_7",
    "ISO_8859_8",
    "WIN1250",
    "WIN1253",
    "WIN1254",
    "WIN1255",
    "WIN1257",
    "KOI8U",
    "SJIS",
    "BIG5",
    "GBK",
    "UHC",
    "GB18030",
    "JOHAB",
    "SHIFT_JIS_2004",
];

fn comment(catalog: &Catalog, class: Oid, object: Oid, sub: i32) -> Datum {
    let found = catalog.description(ObjectAddress { class, object, sub });
    found.map_or(Datum::Null, |d| Datum::Text(d.text.clone()))
}

/// The comment on an object of the system relation that the second argument names.
fn comment_by_class(catalog: &Catalog, args: &[Datum]) -> Datum {
    match catalog.relation_by_name(classes::PG_CATALOG, args[1].as_str()) {
        Some(class) => comment(catalog, class.oid, oid_argument(args, 0), 0),
        None => Datum::Null,
    }
}

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("obj_description_1215", |c, a| Ok(comment_by_class(c.session.catalog(), a))),
    ("shobj_description_1993", |c, a| Ok(comment_by_class(c.session.catalog(), a))),
    ("obj_description_1348", |c, a| {
        let oid = oid_argument(a, 0);
        let of_object = |d: &&std::sync::Arc<melba_catalog::Description>| d.address.object == oid && d.address.sub == 0;
        Ok(c.session.catalog().descriptions().find(of_object).map_or(Datum::Null, |d| Datum::Text(d.text.clone())))
    }),
    ("col_description_1216", |c, a| Ok(comment(c.session.catalog(), classes::PG_CLASS, oid_argument(a, 0), a[1].as_i32()))),
    ("format_type", |c, a| {
        if a[0].is_null() {
            return Ok(Datum::Null);
        }
        let typmod = if a[1].is_null() { None } else { Some(a[1].as_i32()) };
        Ok(Datum::text(c.session.catalog().format_type(oid_argument(a, 0), typmod, &c.session.search_path())))
    }),
    ("oidvectortypes", |c, a| {
        let (catalog, path) = (c.session.catalog(), c.session.search_path());
        let names: Vec<_> = a[0].as_array().elements.iter().map(|t| catalog.type_name(Oid(t.as_oid()), &path)).collect();
        Ok(Datum::text(names.join(", ")))
    }),
    ("pg_get_userbyid", |c, a| Ok(Datum::text(c.session.catalog().role_name(oid_argument(a, 0))))),
    ("PG_encoding_to_char", |_, a| {
        let name = usize::try_from(a[0].as_i32()).ok().and_then(|n| ENCODINGS.get(n));
        Ok(Datum::text(*name.unwrap_or(&"")))
    }),
    ("PG_char_to_encoding", |_, a| {
        // Case and punctuation do not count.
        let plain = |s: &str| s.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_uppercase();
        let wanted = match &*plain(a[0].as_str()) {
            "UNICODE" => "UTF8".to_owned(),
            other => other.to_owned(),
        };
        let at = ENCODINGS.iter().position(|e| plain(e) == wanted);
        Ok(Datum::Int4(at.map_or(-1, |n| n as i32)))
    }),
];
