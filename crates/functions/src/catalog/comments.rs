//! Comments on objects, and names of types, roles and encodings.

use melba_catalog::definitions::role_name;
use melba_catalog::{Catalog, ObjectAddress, classes};
use melba_encoding::Encoding;
use melba_fmgr::ScalarFn;
use melba_types::{Datum, Oid};

use super::oid_argument;

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
    ("pg_get_userbyid", |c, a| Ok(Datum::text(role_name(c.session.catalog(), oid_argument(a, 0))))),
    ("PG_encoding_to_char", |_, a| Ok(Datum::text(Encoding::by_number(a[0].as_i32()).map_or("", Encoding::name)))),
    ("PG_char_to_encoding", |_, a| Ok(Datum::Int4(Encoding::by_name(a[0].as_str()).map_or(-1, Encoding::number)))),
];
