//! The content of the seeds, and that snapshots change as they should.

use melba_types::oids;

use super::*;
use crate::TypeOperators;
use crate::classes::{BTREE, FIRST_EXTENSION_OID, PG_CATALOG, PUBLIC};

fn table(catalog: &Catalog, name: &str) -> (Oid, ObjectChange) {
    let mut relation = (**catalog.relation_by_name(PG_CATALOG, "pg_namespace").expect("pg_namespace")).clone();
    relation.oid = catalog.allocate_oid();
    relation.namespace = PUBLIC;
    relation.name = name.into();
    (relation.oid, ObjectChange::Put(Object::Relation(Arc::new(relation))))
}

#[test]
fn built_in_objects_are_found_by_oid_and_name() {
    let c = Catalog::default();
    assert_eq!(c.type_by_name(PG_CATALOG, "int4").expect("int4").oid, oids::INT4);
    assert_eq!(c.array_of(oids::INT4), Some(oids::INT4_ARRAY));
    assert_eq!(c.array_element(oids::INT4_ARRAY), Some(oids::INT4));
    assert_eq!(c.array_element(oids::NAME), None);
    assert_eq!(c.kind_of(oids::TEXT_ARRAY), Some(Kind::Array));
    assert_eq!(c.functions_by_name(PG_CATALOG, "substring").count(), 8);
    let lpad = c.function(Oid(879)).expect("lpad(text, int4)");
    assert_eq!((&*lpad.source, lpad.language), ("lpad_879", classes::INTERNAL_LANGUAGE));
    let interval = c.functions_by_name(PG_CATALOG, "make_interval").next().expect("make_interval");
    assert_eq!(interval.arg_defaults.len(), 7);
    assert_eq!(&*interval.arg_names[6], "secs");
    assert_eq!(c.cast(oids::INT4, oids::INT8).expect("a cast").context, b'i');
    let class = c.relation_by_name(PG_CATALOG, "pg_class").expect("pg_class");
    assert_eq!((class.oid, class.columns.len(), &*class.columns[1].name), (Oid(1259), 34, "relname"));
    assert_eq!(c.type_(class.row_type).expect("row type").relation, class.oid);
    assert!(c.is_shared_relation(classes::PG_AUTHID));
    assert!(c.role_by_name("pg_read_all_data").is_some());
}

/// Every OID that a built-in object mentions exists.
#[test]
fn the_seeds_hang_together() {
    let c = Catalog::default();
    let has_type = |oid: Oid| !oid.is_valid() || c.type_(oid).is_some();
    for f in c.functions() {
        assert!(f.arg_types.iter().chain([&f.return_type]).all(|t| has_type(*t)), "{f:?}");
        assert_eq!(f.kind == FunctionKind::Aggregate, f.aggregate.is_some(), "{f:?}");
    }
    for o in c.operators() {
        assert!(has_type(o.left) && has_type(o.right) && has_type(o.result), "{o:?}");
        assert!(!o.function.is_valid() || c.function(o.function).is_some(), "{o:?}");
    }
    for t in c.types() {
        assert!(has_type(t.element) && has_type(t.array), "{t:?}");
        assert!(!t.relation.is_valid() || c.relation(t.relation).is_some(), "{t:?}");
        assert!(c.functions_by_name(PG_CATALOG, &t.input).next().is_some(), "{t:?}");
    }
    for r in c.relations() {
        assert!(r.columns.iter().all(|column| c.type_(column.ty).is_some()), "{r:?}");
        assert!(r.index.is_some() || c.type_(r.row_type).is_some(), "{r:?}");
    }
}

#[test]
fn types_have_postgresqls_default_operators() {
    let c = Catalog::default();
    let operators = |ty| c.type_operators(ty);
    assert_eq!(operators(oids::INT4).equal, Oid(96));
    assert_eq!(operators(oids::INT4).less, Oid(97));
    assert_eq!(operators(oids::VARCHAR), operators(oids::TEXT));
    assert_eq!(operators(oids::INT4_ARRAY).equal, Oid(1070));
    assert_eq!(operators(oids::INT4RANGE).compare, Oid(3870));
    assert_eq!(operators(oids::JSON), TypeOperators::default());
    assert_eq!(&*c.default_operator_class(BTREE, oids::VARCHAR).expect("text_ops").name, "text_ops");
    assert_eq!(c.btree_strategy(Oid(97)), Some((Oid(1976), 1)));
    assert!(c.is_equality(Oid(96)) && !c.is_equality(Oid(97)));
}

#[test]
fn oids_come_again_when_all_were_given_out_and_only_the_free_ones() {
    let catalog = Catalog::default();
    let (first, put) = table(&catalog, "t");
    let ObjectChange::Put(Object::Relation(mut relation)) = put else { panic!("a relation") };
    Arc::make_mut(&mut relation).rule = Oid(first.0 + 2);
    let catalog = catalog.with(&[ObjectChange::Put(Object::Relation(relation.clone()))]);
    let last = Oid(FIRST_EXTENSION_OID - 1);
    catalog.reserve_oids_below(last);
    assert_eq!(catalog.allocate_oid(), last);
    assert_eq!([catalog.allocate_oid(), catalog.allocate_oid()], [Oid(first.0 + 1), Oid(first.0 + 3)]);
    // An object with a high OID does not set the counter back.
    Arc::make_mut(&mut relation).oid = last;
    let catalog = catalog.with(&[ObjectChange::Put(Object::Relation(relation))]);
    assert_eq!(catalog.allocate_oid(), Oid(first.0 + 4));
}

#[test]
fn a_change_is_in_the_new_snapshot_only() {
    let old = Catalog::default();
    let (oid, put) = table(&old, "t");
    assert_eq!(oid.0, 16384);
    let new = old.with(std::slice::from_ref(&put));
    assert!(old.relation(oid).is_none());
    assert_eq!(new.relation_by_name(PUBLIC, "t").expect("t").oid, oid);
    assert_eq!(new.relations_in(PUBLIC).count(), 1);
    assert!(new.version() > old.version());

    let mut renamed = (**new.relation(oid).expect("t")).clone();
    renamed.name = "u".into();
    let comment = |text: &str| {
        let address = ObjectAddress { class: classes::PG_CLASS, object: oid, sub: 1 };
        ObjectChange::Put(Object::Description(Arc::new(Description { address, text: text.into() })))
    };
    let new = new.with(&[ObjectChange::Put(Object::Relation(Arc::new(renamed))), comment("a"), comment("b")]);
    assert!(new.relation_by_name(PUBLIC, "t").is_none());
    assert_eq!(new.relation_by_name(PUBLIC, "u").expect("u").oid, oid);
    assert_eq!(new.descriptions().filter(|d| !is_builtin(d)).map(|d| &*d.text).collect::<Vec<_>>(), ["b"]);

    let new = new.with(&[ObjectChange::Remove(ObjectAddress { class: classes::PG_CLASS, object: oid, sub: 0 })]);
    assert!(new.relation_by_name(PUBLIC, "u").is_none());
    assert!(new.relations_in(PUBLIC).next().is_none());
    assert_eq!(new.descriptions().filter(|d| !is_builtin(d)).count(), 0);
}

#[test]
fn built_in_objects_can_be_changed_and_dropped() {
    let c = Catalog::default();
    let mut public = (**c.namespace(PUBLIC).expect("public")).clone();
    public.owner = classes::POSTGRES_ROLE;
    let c = c.with(&[ObjectChange::Put(Object::Namespace(Arc::new(public)))]);
    assert_eq!(c.namespace_by_name("public").expect("public").owner, classes::POSTGRES_ROLE);
    assert_eq!(c.namespaces().filter(|n| n.oid == PUBLIC).count(), 1);
    let c = c.with(&[ObjectChange::Remove(ObjectAddress { class: classes::PG_NAMESPACE, object: PUBLIC, sub: 0 })]);
    assert!(c.namespace_by_name("public").is_none());
    assert!(c.namespaces().all(|n| n.oid != PUBLIC));
}
