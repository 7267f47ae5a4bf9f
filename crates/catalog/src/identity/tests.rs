use super::*;
use crate::classes::*;

const PATH: &[Oid] = &[PG_CATALOG, PUBLIC];

fn scope() -> NameScope<'static> {
    NameScope { path: PATH, user: POSTGRES_ROLE, temporary: Oid::INVALID }
}

#[test]
fn built_in_objects_have_the_texts_of_postgresql() {
    let c = Catalog::default();
    for (class, object, sub, kind, identity, description) in [
        (PG_CLASS, 1259, 0, "table", "pg_catalog.pg_class", "table pg_class"),
        (PG_CLASS, 1259, 2, "table column", "pg_catalog.pg_class.relname", "column relname of table pg_class"),
        (PG_TYPE, 23, 0, "type", "integer", "type integer"),
        (PG_TYPE, 25, 0, "type", "pg_catalog.text", "type text"),
        (PG_PROC, 870, 0, "function", "pg_catalog.lower(pg_catalog.text)", "function lower(text)"),
        (PG_OPERATOR, 551, 0, "operator", "pg_catalog.+(integer,integer)", "operator +(integer,integer)"),
        (PG_OPERATOR, 484, 0, "operator", "pg_catalog.-(NONE,bigint)", "operator -(NONE,bigint)"),
        (PG_NAMESPACE, 11, 0, "schema", "pg_catalog", "schema pg_catalog"),
        (PG_LANGUAGE, 14, 0, "language", "sql", "language sql"),
        (PG_AM, 403, 0, "access method", "btree", "access method btree"),
        (PG_COLLATION, 100, 0, "collation", "pg_catalog.\"default\"", "collation \"default\""),
        (
            PG_OPFAMILY,
            1976,
            0,
            "operator family",
            "pg_catalog.integer_ops USING btree",
            "operator family integer_ops for access method btree",
        ),
        (
            PG_AMOP,
            10000,
            0,
            "operator of access method",
            "operator 1 (smallint, smallint) of pg_catalog.integer_ops USING btree",
            "operator 1 (smallint, smallint) of operator family integer_ops for access method btree: <(smallint,smallint)",
        ),
        (
            PG_AUTH_MEMBERS,
            10308,
            0,
            "role membership",
            "membership of role pg_monitor in role pg_read_all_settings",
            "membership of role pg_monitor in role pg_read_all_settings",
        ),
    ] {
        let address = ObjectAddress { class, object: Oid(object), sub };
        assert_eq!(object_kind(&c, address).as_deref(), Some(kind));
        assert_eq!(identify(&c, &scope(), address).expect(identity).identity, identity);
        assert_eq!(describe(&c, PATH, address).as_deref(), Some(description));
    }
}

#[test]
fn a_missing_object_has_a_kind_only() {
    let c = Catalog::default();
    for (class, kind) in
        [(PG_CLASS, "relation"), (PG_PROC, "routine"), (PG_CONSTRAINT, "constraint"), (PG_TS_DICT, "text search dictionary")]
    {
        let address = ObjectAddress { class, object: Oid(0), sub: 0 };
        assert_eq!(object_kind(&c, address).as_deref(), Some(kind));
        assert_eq!(identify(&c, &scope(), address), None);
        assert_eq!(describe(&c, PATH, address), None);
    }
    assert_eq!(object_kind(&c, ObjectAddress { class: Oid(1), object: Oid(1), sub: 0 }), None);
}

#[test]
fn names_are_given_where_they_are_unique() {
    let c = Catalog::default();
    let of = |class, object| identify(&c, &scope(), ObjectAddress { class, object: Oid(object), sub: 0 }).expect("built in");
    let class = of(PG_CLASS, 1259);
    assert_eq!((class.schema.as_deref(), class.name.as_deref()), (Some("pg_catalog"), Some("pg_class")));
    assert_eq!(class.names, ["pg_catalog", "pg_class"]);
    let function = of(PG_PROC, 870);
    assert_eq!((function.schema.as_deref(), function.name), (Some("pg_catalog"), None));
    assert_eq!((function.names, function.arguments), (vec!["pg_catalog".into(), "lower".into()], vec!["pg_catalog.text".into()]));
    let language = of(PG_LANGUAGE, 14);
    assert_eq!((language.schema, language.name.as_deref()), (None, Some("sql")));
}
