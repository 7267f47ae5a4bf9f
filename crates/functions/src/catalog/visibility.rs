//! Whether an object's bare name finds it: pg_table_is_visible and similar functions. NULL when there is no such object.

use melba_catalog::identity::seeded_object;
use melba_catalog::{ObjectAddress, classes};
use melba_fmgr::ScalarFn;
use melba_types::Datum;

use super::oid_argument;

/// A row: the catalog's lookup and its test.
macro_rules! visible {
    ($source:literal, $get:ident, $is_visible:ident) => {
        ($source, |c, a| {
            let catalog = c.session.catalog();
            Ok(match catalog.$get(oid_argument(a, 0)) {
                Some(object) => Datum::Bool(catalog.$is_visible(object, &c.session.search_path())),
                None => Datum::Null,
            })
        })
    };
}

/// A row: the catalog's lookup by OID, and the one by name.
macro_rules! named {
    ($source:literal, $get:ident, $find:ident) => {
        ($source, |c, a| {
            let catalog = c.session.catalog();
            let Some(object) = catalog.$get(oid_argument(a, 0)) else { return Ok(Datum::Null) };
            let found = catalog.$find(&c.session.search_path(), &object.name);
            Ok(Datum::Bool(found.is_some_and(|found| found.oid == object.oid)))
        })
    };
}

/// A row for objects that no statement makes: visible when their schema, where each name is unique, is searched.
macro_rules! built_in {
    ($source:literal, $class:ident) => {
        ($source, |c, a| {
            let address = ObjectAddress { class: classes::$class, object: oid_argument(a, 0), sub: 0 };
            let schema = seeded_object(c.session.catalog(), address).and_then(|o| o.namespace);
            Ok(schema.map_or(Datum::Null, |schema| Datum::Bool(c.session.search_path().contains(&schema))))
        })
    };
}

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    visible!("pg_table_is_visible", relation, relation_is_visible),
    visible!("pg_type_is_visible", type_, type_is_visible),
    visible!("pg_function_is_visible", function, function_is_visible),
    visible!("pg_operator_is_visible", operator, operator_is_visible),
    visible!("pg_collation_is_visible", collation, collation_is_visible),
    built_in!("pg_opclass_is_visible", PG_OPCLASS),
    built_in!("pg_opfamily_is_visible", PG_OPFAMILY),
    built_in!("pg_conversion_is_visible", PG_CONVERSION),
    named!("pg_ts_config_is_visible", text_search_config, find_text_search_config),
    named!("pg_ts_dict_is_visible", text_search_dictionary, find_text_search_dictionary),
    built_in!("pg_ts_parser_is_visible", PG_TS_PARSER),
    built_in!("pg_ts_template_is_visible", PG_TS_TEMPLATE),
    ("pg_is_other_temp_schema", |c, a| {
        let own = c.session.system_function("pg_my_temp_schema", c, &[])?.as_oid();
        let namespace = c.session.catalog().namespace(oid_argument(a, 0));
        let is_temporary = namespace.is_some_and(|n| n.name.starts_with("pg_temp_") || n.name.starts_with("pg_toast_temp_"));
        Ok(Datum::Bool(is_temporary && own != a[0].as_oid()))
    }),
];
