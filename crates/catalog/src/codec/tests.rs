//! Every kind of object survives its bytes, and broken bytes are refused.

use melba_types::oids;

use super::*;
use crate::snapshot::Catalog;

fn index_key() -> IndexKey {
    IndexKey {
        column: 0,
        expression: Some("lower(a)".into()),
        ty: oids::TEXT,
        collation: Oid(100),
        natural_collation: Oid(950),
        opclass: Oid(3126),
        descending: true,
        nulls_first: true,
    }
}

fn default_acl() -> Object {
    let item = AclItem { grantee: Oid(0), grantor: Oid(10), privileges: 2 };
    let (role, namespace) = (Oid(10), Oid(2200));
    Object::DefaultAcl(Arc::new(DefaultAcl { oid: Oid(16500), role, namespace, letter: b'r', acl: [item].into() }))
}

fn policy() -> Object {
    Object::Policy(Arc::new(Policy {
        oid: Oid(16501),
        name: "p".into(),
        table: Oid(16400),
        permissive: false,
        command: b'w',
        roles: vec![Oid(0), Oid(16390)],
        using: Some("true".into()),
        check: None,
        depends_on: vec![ObjectAddress { class: classes::PG_CLASS, object: Oid(16400), sub: 2 }],
    }))
}

fn rule() -> Object {
    Object::from(RewriteRule {
        oid: Oid(16503),
        name: "r".into(),
        table: Oid(16400),
        event: b'2',
        enabled: b'O',
        instead: true,
        condition: Some("(new.a > 0)".into()),
        actions: vec!["DELETE FROM t".into()],
        depends_on: vec![ObjectAddress { class: classes::PG_CLASS, object: Oid(16400), sub: 1 }],
    })
}

fn statistics() -> Object {
    let item = McvItem { values: vec![Some("1".into()), None], frequency: 0.5, base_frequency: 0.25 };
    Object::ExtendedStatistics(Arc::new(ExtendedStatistics {
        oid: Oid(16502),
        name: "s".into(),
        namespace: Oid(2200),
        owner: Oid(10),
        table: Oid(16400),
        columns: vec![1, 2],
        expressions: vec!["(a + 1)".into()],
        kinds: vec![b'd', b'f', b'm', b'e'],
        target: Some(100),
        depends_on: vec![ObjectAddress { class: classes::PG_CLASS, object: Oid(16400), sub: 3 }],
        data: vec![StatisticsData {
            inherited: true,
            ndistinct: vec![(vec![1, -1], 7)],
            dependencies: vec![(vec![1, 2], 0.75)],
            mcv: vec![item],
        }],
    }))
}

fn event_trigger() -> Object {
    Object::EventTrigger(Arc::new(EventTrigger {
        oid: Oid(16503),
        name: "e".into(),
        event: "ddl_command_end".into(),
        owner: Oid(10),
        function: Oid(16504),
        enabled: b'A',
        tags: vec!["CREATE TABLE".into()],
    }))
}

fn partition_key() -> PartitionKey {
    let column = PartitionColumn {
        column: 0,
        expression: Some("lower(a)".into()),
        ty: oids::TEXT,
        typmod: -1,
        collation: Oid(950),
        natural_collation: Oid(100),
        opclass: Oid(3126),
    };
    PartitionKey { strategy: PartitionStrategy::Range, columns: vec![column] }
}

fn bounds() -> Vec<PartitionBound> {
    let to = vec![RangeDatum::Value(Datum::text("m")), RangeDatum::MaxValue];
    let values = [
        PartitionValues::Default,
        PartitionValues::List(vec![Datum::Int4(1), Datum::Null]),
        PartitionValues::Range(vec![RangeDatum::MinValue], to),
        PartitionValues::Hash { modulus: 4, remainder: 3 },
    ];
    values.into_iter().map(|values| PartitionBound { values, text: "FOR VALUES".into() }).collect()
}

fn partition_of(relation: &Relation, bound: PartitionBound) -> Object {
    let partition_bound = Some(Arc::new(bound));
    Object::Relation(Arc::new(Relation { partition_bound, detach_pending: true, ..relation.clone() }))
}

fn samples() -> Vec<Object> {
    let c = Catalog::default();
    let mut relation = (**c.relation(Oid(1259)).expect("pg_class")).clone();
    relation.oid = Oid(16400);
    relation.storage = Storage::Tree(TreeId(7));
    let mut columns = relation.columns.to_vec();
    columns[0].missing = Datum::text("x");
    relation.columns = columns.into();
    relation.sequence = Some(Arc::new(SequenceInfo {
        ty: oids::INT8,
        start: i64::MIN,
        increment: -1,
        min: i64::MIN,
        max: i64::MAX,
        cache: 1,
        cycle: true,
        owned_by: Some((Oid(5), 3)),
        identity: false,
    }));
    relation.partition_key = Some(Arc::new(partition_key()));
    relation.index = Some(Arc::new(IndexInfo {
        table: Oid(1),
        keys: vec![index_key()],
        include: vec![2],
        unique: true,
        primary: false,
        nulls_not_distinct: true,
        valid: true,
        clustered: false,
        replica_identity: false,
        predicate: None,
        constraint: Oid(0),
        deferrable: false,
    }));
    let address = ObjectAddress { class: classes::PG_CLASS, object: Oid(16400), sub: 2 };
    let mut constraint = (**c.constraints().next().expect("a constraint")).clone();
    constraint.foreign_key = Some(Arc::new(ForeignKeyInfo {
        referenced_table: Oid(16401),
        referenced_columns: vec![1, 2],
        on_update: b'a',
        on_delete: b'c',
        match_type: b's',
        delete_set_columns: Vec::new(),
        operators: vec![Oid(96)],
    }));
    let partition = |bound| partition_of(&relation, bound);
    let mut objects: Vec<Object> = bounds().into_iter().map(partition).collect();
    objects.extend([
        Object::Relation(Arc::new(relation)),
        Object::Namespace(c.namespace_by_name("public").expect("public").clone()),
        Object::Type(c.type_(oids::INT4RANGE).expect("int4range").clone()),
        Object::Type(c.types().find(|t| t.domain.is_some()).expect("a domain").clone()),
        Object::Type(Arc::new(base_type(&c, address))),
        Object::Function(c.function(Oid(2100)).expect("avg").clone()),
        Object::Function(c.function(Oid(3464)).expect("make_interval").clone()),
        Object::Cast(c.cast(oids::INT4, oids::INT8).expect("a cast").clone()),
        Object::Constraint(Arc::new(constraint)),
        default_acl(),
        policy(),
        rule(),
        statistics(),
        event_trigger(),
        Object::Collation(c.collation(Oid(950)).expect("C").clone()),
        Object::Description(Arc::new(Description { address, text: "héllo".into() })),
        Object::Role(c.role_by_name("pg_monitor").expect("a role").clone()),
        Object::Database(c.database(Oid(1)).expect("template1").clone()),
    ]);
    objects.extend(operator_objects(&c));
    objects
}

fn base_type(c: &Catalog, address: ObjectAddress) -> Type {
    let text = c.type_(oids::TEXT).expect("text");
    Type { depends_on: vec![address], base: Some(base_info()), ..(**text).clone() }
}

fn base_info() -> Arc<BaseInfo> {
    Arc::new(BaseInfo {
        held_as: oids::TEXT,
        input: Oid(16400),
        output: Oid(16401),
        receive: Oid::INVALID,
        send: Oid::INVALID,
        typmod_in: Oid::INVALID,
        typmod_out: Oid::INVALID,
        analyze: Oid::INVALID,
        default: Some("zippo".into()),
    })
}

fn operator_objects(c: &Catalog) -> [Object; 3] {
    let access = c.access_methods();
    [
        Object::Operator(c.operator(Oid(96)).expect("=").clone()),
        Object::OperatorFamily(access.family(Oid(1976)).expect("integer_ops").clone()),
        Object::OperatorClass(access.class(Oid(1978)).expect("int4_ops").clone()),
    ]
}

#[test]
fn objects_survive_their_bytes() {
    for object in samples() {
        let stored = encode_change(Oid(5), &ObjectChange::Put(object.clone()));
        let value = stored.value.expect("a put has a value");
        let (_, change) = decode_change(&stored.key, &value).expect("reads back");
        let ObjectChange::Put(read) = change else { panic!("not a put") };
        assert_eq!(format!("{read:?}"), format!("{object:?}"));
        // Every truncation is refused, as is a row under another's key.
        for length in 0..value.len() {
            assert!(decode_change(&stored.key, &value[..length]).is_none());
        }
        let mut key = stored.key;
        key[12] ^= 1;
        assert!(decode_change(&key, &value).is_none());
    }
}

#[test]
fn a_dropped_built_in_object_is_remembered() {
    let public = ObjectAddress { class: classes::PG_NAMESPACE, object: classes::PUBLIC, sub: 0 };
    let stored = encode_change(Oid(5), &ObjectChange::Remove(public));
    let (database, change) = decode_change(&stored.key, &stored.value.expect("a tombstone")).expect("reads back");
    assert_eq!(database, Oid(5));
    assert!(matches!(change, ObjectChange::Remove(a) if a == public));

    let user = ObjectAddress { object: Oid(16384), ..public };
    assert!(encode_change(Oid(5), &ObjectChange::Remove(user)).value.is_none());
}

#[test]
fn a_changed_system_relation_keeps_its_rows() {
    let class = Catalog::default().relation(Oid(1259)).expect("pg_class").clone();
    let stored = encode_change(Oid(5), &ObjectChange::Put(Object::Relation(class)));
    let (_, change) = decode_change(&stored.key, &stored.value.expect("a value")).expect("reads back");
    let ObjectChange::Put(Object::Relation(read)) = change else { panic!("not a relation") };
    assert_eq!(read.storage, Storage::System("pg_class"));
}

#[test]
fn relations_of_version_7_state_no_size() {
    let class = Catalog::default().relation(Oid(1259)).expect("pg_class").clone();
    let stored = |stated| {
        let relation = Relation { stated, ..(*class).clone() };
        encode_change(Oid(5), &ObjectChange::Put(Object::Relation(Arc::new(relation))))
    };
    let read = |key: &[u8], value: &[u8]| {
        let (_, change) = decode_change(key, value).expect("reads back");
        let ObjectChange::Put(Object::Relation(read)) = change else { panic!("not a relation") };
        read.stated.map(|s| (s.pages, s.rows))
    };
    let with = stored(Some(StatedSize { pages: 3, rows: 70.5 }));
    assert_eq!(read(&with.key, &with.value.expect("a value")), Some((3, 70.5)));
    let without = stored(None).value.expect("a value");
    let mut old = without[..without.len() - 2].to_vec();
    old[0] = VERSION_7;
    assert_eq!(read(&with.key, &old), None);
}

#[test]
fn types_of_version_4_depend_on_nothing() {
    let domain = Catalog::default().types().find(|t| t.domain.is_some()).expect("a domain").clone();
    let ty = Type { depends_on: vec![], ..(*domain).clone() };
    let stored = encode_change(Oid(5), &ObjectChange::Put(Object::Type(Arc::new(ty))));
    let value = stored.value.expect("a value");
    let mut old = value[..value.len() - 1].to_vec();
    old[0] = VERSION_4;
    let (_, change) = decode_change(&stored.key, &old).expect("reads back");
    let ObjectChange::Put(Object::Type(read)) = change else { panic!("not a type") };
    assert!(read.depends_on.is_empty() && read.domain.is_some());
    old[0] = VERSION;
    assert!(decode_change(&stored.key, &old).is_none());
}

#[test]
fn relations_of_version_8_have_no_pending_detach() {
    let class = Catalog::default().relation(Oid(1259)).expect("pg_class").clone();
    let stored = encode_change(Oid(5), &ObjectChange::Put(Object::Relation(class)));
    let value = stored.value.expect("a value");
    let mut old = value[..value.len() - 1].to_vec();
    old[0] = VERSION_8;
    let (_, change) = decode_change(&stored.key, &old).expect("reads back");
    let ObjectChange::Put(Object::Relation(read)) = change else { panic!("not a relation") };
    assert!(!read.detach_pending);
    old[0] = VERSION;
    assert!(decode_change(&stored.key, &old).is_none());
}

#[test]
fn indexes_of_version_9_order_texts_by_their_bytes() {
    const GERMAN: Oid = Oid(12479);
    let class = Catalog::default().relation(Oid(2662)).expect("an index of pg_class").clone();
    let mut info = (**class.index.as_ref().expect("an index")).clone();
    (info.keys[0].collation, info.keys[0].natural_collation) = (GERMAN, GERMAN);
    let index = Relation { oid: Oid(20000), index: Some(Arc::new(info)), ..(*class).clone() };
    let stored = encode_change(Oid(5), &ObjectChange::Put(Object::Relation(Arc::new(index))));
    let collation = |value: &[u8]| {
        let (_, change) = decode_change(&stored.key, value).expect("reads back");
        let ObjectChange::Put(Object::Relation(read)) = change else { panic!("not a relation") };
        let key = read.index.as_ref().expect("an index").keys[0].clone();
        (key.collation, key.natural_collation)
    };
    let mut value = stored.value.clone().expect("a value");
    assert_eq!(collation(&value), (GERMAN, GERMAN));
    value[0] = VERSION_9;
    assert_eq!(collation(&value), (classes::C_COLLATION, GERMAN));
}

#[test]
fn collations_of_version_9_have_no_version() {
    let collation = (**Catalog::default().collation(Oid(12479)).expect("de-x-icu")).clone();
    let stored = encode_change(Oid(5), &ObjectChange::Put(Object::Collation(Arc::new(collation))));
    let value = stored.value.expect("a value");
    // A mark that there is one, and its length.
    let mut old = value[..value.len() - melba_collation::VERSION.len() - 2].to_vec();
    old[0] = VERSION_9;
    let (_, change) = decode_change(&stored.key, &old).expect("reads back");
    let ObjectChange::Put(Object::Collation(read)) = change else { panic!("not a collation") };
    assert_eq!((&*read.name, read.version.as_deref()), ("de-x-icu", None));
}

#[test]
fn constraints_of_version_5_are_enabled() {
    let constraint = samples().into_iter().find(|o| matches!(o, Object::Constraint(_))).expect("a constraint");
    let stored = encode_change(Oid(5), &ObjectChange::Put(constraint));
    let value = stored.value.expect("a value");
    let mut old = value[..value.len() - 2].to_vec();
    old[0] = VERSION_5;
    let (_, change) = decode_change(&stored.key, &old).expect("reads back");
    let ObjectChange::Put(Object::Constraint(read)) = change else { panic!("not a constraint") };
    assert_eq!((read.check_enabled, read.action_enabled), (FIRES_ON_ORIGIN, FIRES_ON_ORIGIN));
}

#[test]
fn aggregates_of_version_6_are_only_read_by_their_final_functions() {
    let avg = Catalog::default().function(Oid(2100)).expect("avg").clone();
    for sort_operator in [Oid(0), Oid(521)] {
        let info = AggregateInfo { sort_operator, moving: None, ..(**avg.aggregate.as_ref().expect("an aggregate")).clone() };
        let function = Function { aggregate: Some(Arc::new(info)), ..(*avg).clone() };
        let stored = encode_change(Oid(5), &ObjectChange::Put(Object::Function(Arc::new(function))));
        let value = stored.value.expect("a value");
        // The serialization functions' OIDs take two bytes each.
        let mut old = value[..value.len() - 8].to_vec();
        old[0] = VERSION_6;
        let (_, change) = decode_change(&stored.key, &old).expect("reads back");
        let ObjectChange::Put(Object::Function(read)) = change else { panic!("not a function") };
        let read = read.aggregate.clone().expect("an aggregate");
        assert_eq!((read.sort_operator, read.final_modify, read.serial), (sort_operator, b'r', Oid(0)));
    }
    let plain = Catalog::default().function(Oid(3464)).expect("make_interval").clone();
    let stored = encode_change(Oid(5), &ObjectChange::Put(Object::Function(plain)));
    let mut old = stored.value.expect("a value");
    old[0] = VERSION_6;
    assert!(decode_change(&stored.key, &old).is_some());
}

fn publication_objects() -> [Object; 2] {
    let publication = Publication {
        oid: Oid(16500),
        name: "lake".into(),
        owner: Oid(10),
        all_tables: false,
        operations: "iud".into(),
        via_root: true,
        generated: b's',
        options: vec!["format=iceberg".into(), "location=file:///lake".into()],
    };
    let (publication_oid, class, object) = (publication.oid, classes::PG_NAMESPACE, classes::PUBLIC);
    let member = PublicationMember { oid: Oid(16501), publication: publication_oid, class, object };
    [Object::Publication(Arc::new(publication)), Object::PublicationMember(Arc::new(member))]
}

#[test]
fn publications_survive_their_bytes() {
    for object in publication_objects() {
        let stored = encode_change(Oid(5), &ObjectChange::Put(object.clone()));
        let (_, change) = decode_change(&stored.key, &stored.value.expect("a value")).expect("reads back");
        let ObjectChange::Put(read) = change else { panic!("not an object") };
        assert_eq!(format!("{read:?}"), format!("{object:?}"));
    }
}

fn conversion() -> Arc<PlainObject> {
    Arc::new(PlainObject {
        namespace: classes::PUBLIC,
        options: vec!["a=b".into()],
        fields: vec![Datum::Int4(8), Datum::Int4(6), Datum::Oid(4374), Datum::Bool(true)],
        depends_on: vec![ObjectAddress { class: classes::PG_PROC, object: Oid(16600), sub: 0 }],
        ..PlainObject::new(Oid(16601), classes::PG_CONVERSION, "c", Oid(10))
    })
}

#[test]
fn plain_objects_survive_their_bytes() {
    let object = Object::Plain(conversion());
    let stored = encode_change(Oid(5), &ObjectChange::Put(object.clone()));
    let (_, change) = decode_change(&stored.key, &stored.value.expect("a value")).expect("reads back");
    let ObjectChange::Put(read) = change else { panic!("not an object") };
    assert_eq!(format!("{read:?}"), format!("{object:?}"));
}

#[test]
fn privileges_on_a_language_of_version_12_are_those_of_its_row() {
    let acl: Acl = Some([AclItem { grantee: Oid(16700), grantor: Oid(10), privileges: 256 }].into());
    let list = Granted { oid: classes::PLPGSQL_LANGUAGE, class: classes::PG_LANGUAGE, name: "plpgsql".into(), acl: acl.clone() };
    let stored = encode_change(Oid(5), &ObjectChange::Put(Object::Granted(Arc::new(list))));
    let (_, change) = decode_change(&stored.key, &stored.value.expect("a value")).expect("reads back");
    let catalog = Catalog::default().with(&[change]);
    let language = catalog.plain_object(classes::PG_LANGUAGE, classes::PLPGSQL_LANGUAGE).expect("a language");
    assert_eq!((&*language.name, language.owner, &language.acl), ("plpgsql", classes::POSTGRES_ROLE, &acl));
    assert_eq!(catalog.language_by_name("plpgsql"), Some(classes::PLPGSQL_LANGUAGE));
}

#[test]
fn foreign_data_survives_its_bytes() {
    let (name, owner, options): (Arc<str>, _, Vec<Arc<str>>) = ("w".into(), Oid(10), vec!["a=1".into()]);
    let (handler, validator, acl) = (Oid(0), Oid(16400), None);
    let (ty, version) = (None, Some("1".into()));
    let wrapper = ForeignDataWrapper {
        oid: Oid(16500),
        name: name.clone(),
        owner,
        handler,
        validator,
        acl: acl.clone(),
        options: options.clone(),
    };
    let server = ForeignServer { oid: Oid(16501), name, owner, wrapper: wrapper.oid, ty, version, acl, options: options.clone() };
    let mapping = UserMapping { oid: Oid(16502), user: Oid(0), server: server.oid, options: options.clone() };
    let foreign = Some(Arc::new(ForeignTable {
        server: server.oid,
        options: options.clone(),
        columns: vec![ColumnOptions { column: 2, options }],
    }));
    let table = Relation { kind: RelationKind::ForeignTable, foreign, ..Relation::new(Oid(16503), "t", Oid(2200), owner) };
    let objects = [
        Object::ForeignDataWrapper(Arc::new(wrapper)),
        Object::ForeignServer(Arc::new(server)),
        Object::UserMapping(Arc::new(mapping)),
        Object::Relation(Arc::new(table)),
    ];
    for object in objects {
        let stored = encode_change(Oid(5), &ObjectChange::Put(object.clone()));
        let value = stored.value.expect("a value");
        assert_eq!(value[0], VERSION);
        let (_, change) = decode_change(&stored.key, &value).expect("reads back");
        let ObjectChange::Put(read) = change else { panic!("not an object") };
        assert_eq!(format!("{read:?}"), format!("{object:?}"));
    }
}

#[test]
fn only_what_an_older_build_cannot_use_has_a_newer_version() {
    let catalog = Catalog::default();
    let version = |object: Object| encode_change(Oid(5), &ObjectChange::Put(object)).value.expect("a value")[0];
    let [operator, family, class] = operator_objects(&catalog);
    assert_eq!((version(operator), version(family), version(class)), (VERSION_10, VERSION_11, VERSION_11));
    let index = catalog.relation(Oid(2662)).expect("an index of pg_class");
    let index = Relation { storage: Storage::Tree(TreeId(7)), ..(**index).clone() };
    let brin = Relation { access_method: classes::BRIN, ..index.clone() };
    let without_entries = Relation { storage: Storage::None, ..index.clone() };
    let versions = [index, brin, without_entries].map(|index| version(Object::Relation(Arc::new(index))));
    assert_eq!(versions, [VERSION_10, VERSION_11, VERSION_12]);
    let ty = catalog.type_(oids::TEXT).expect("text").clone();
    let of_users = |base, defined| Object::Type(Arc::new(Type { base, defined, ..(*ty).clone() }));
    assert_eq!(version(of_users(None, true)), VERSION_10);
    assert_eq!((version(of_users(Some(base_info()), true)), version(of_users(None, false))), (VERSION_12, VERSION_12));
    let [publication, member] = publication_objects();
    assert_eq!((version(publication), version(member)), (VERSION_12, VERSION_12));
    assert_eq!(version(Object::Plain(conversion())), VERSION);
    let page = include_str!("../../../../docs/handbook/upgrade.md");
    let of_11 = format!("operator families, operator classes and BRIN indexes: {VERSION_11}");
    let of_12 = format!("{of_11}; base types, shells, publications and indexes in the order of functions: {VERSION_12}");
    let newer = format!(
        "{of_12}; foreign data, conversions, transforms, changed languages and tablespaces, settings of all roles: {VERSION}"
    );
    let row = format!("| {VERSION_10}; {newer} | 4 to {VERSION} |");
    assert!(page.contains(&row), "{row}");
}

#[test]
fn casts_of_version_6_that_are_no_extension_s_are_parts_of_range_types() {
    let cast = Catalog::default().cast(oids::INT4, oids::INT8).expect("a cast").clone();
    for (oid, is_part) in [(Oid(16500), true), (Oid(classes::FIRST_EXTENSION_OID + 5), false)] {
        let stored = encode_change(Oid(5), &ObjectChange::Put(Object::Cast(Arc::new(Cast { oid, ..(*cast).clone() }))));
        let value = stored.value.expect("a value");
        let mut old = value[..value.len() - 1].to_vec();
        old[0] = VERSION_6;
        let (_, change) = decode_change(&stored.key, &old).expect("reads back");
        let ObjectChange::Put(Object::Cast(read)) = change else { panic!("not a cast") };
        assert_eq!(read.part_of_type, is_part);
    }
}
