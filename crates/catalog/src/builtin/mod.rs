//! The built-in objects: read once per process from the seeds, shared by every database.

mod access;
mod constraints;
mod extensions;
mod functions;
mod plain;
mod relations;
mod types;

use std::sync::{Arc, LazyLock};

use hashbrown::HashMap;
use melba_types::{Oid, TreeId};

pub use constraints::{CatalogForeignKey, catalog_foreign_keys};
pub use extensions::{ExtensionDefinition, PLPGSQL, available_extensions};

use crate::classes;
use crate::layered::Builtin;
use crate::objects::*;
use crate::operator_families::AccessMethods;
use crate::seed::seed;
use crate::text_search;

/// Everything that exists before a user creates anything.
#[derive(Debug)]
pub(crate) struct Builtins {
    pub namespaces: Builtin<Namespace>,
    pub relations: Builtin<Relation>,
    pub types: Builtin<Type>,
    pub functions: Builtin<Function>,
    pub operators: Builtin<Operator>,
    pub casts: Builtin<Cast>,
    pub constraints: Builtin<Constraint>,
    pub triggers: Builtin<Trigger>,
    pub policies: Builtin<Policy>,
    pub rules: Builtin<RewriteRule>,
    pub statistics_objects: Builtin<ExtendedStatistics>,
    pub event_triggers: Builtin<EventTrigger>,
    pub publications: Builtin<Publication>,
    pub publication_members: Builtin<PublicationMember>,
    pub foreign_data_wrappers: Builtin<ForeignDataWrapper>,
    pub foreign_servers: Builtin<ForeignServer>,
    pub user_mappings: Builtin<UserMapping>,
    pub granted: Builtin<Granted>,
    pub collations: Builtin<Collation>,
    pub text_search_dictionaries: Builtin<TextSearchDictionary>,
    pub text_search_configs: Builtin<TextSearchConfig>,
    pub extensions: Builtin<Extension>,
    pub plain_objects: Builtin<PlainObject>,
    pub default_acls: Builtin<DefaultAcl>,
    pub roles: Builtin<Role>,
    pub databases: Builtin<Database>,
    pub operator_families: Builtin<OperatorFamily>,
    pub operator_classes: Builtin<OperatorClass>,
    pub access: Arc<AccessMethods>,
    /// System relations that all databases share.
    pub shared_relations: Vec<Oid>,
}

pub(crate) static BUILTINS: LazyLock<Builtins> = LazyLock::new(|| {
    let roles = roles();
    let role_oids: HashMap<Arc<str>, Oid> = roles.iter().map(|r| (r.name.clone(), r.oid)).collect();
    let role = |name: &str| role_oids.get(name).copied().unwrap_or_default();
    let types = types::types();
    let (relations, shared_relations) = relations::relations(&types, &role);
    let plain_objects = Builtin::new(plain::built_in(&relations));
    Builtins {
        namespaces: Builtin::new(namespaces(&role)),
        relations: Builtin::new(relations),
        types: Builtin::new(types.into_values().collect()),
        functions: Builtin::new(functions::functions(&seed!("pg_proc"), &seed!("pg_aggregate"), &role)),
        operators: Builtin::new(functions::operators(&seed!("pg_operator"))),
        casts: Builtin::new(functions::casts(&seed!("pg_cast"))),
        constraints: Builtin::new(constraints::constraints()),
        triggers: Builtin::new(Vec::new()),
        policies: Builtin::new(Vec::new()),
        rules: Builtin::new(Vec::new()),
        statistics_objects: Builtin::new(Vec::new()),
        event_triggers: Builtin::new(Vec::new()),
        publications: Builtin::new(Vec::new()),
        publication_members: Builtin::new(Vec::new()),
        foreign_data_wrappers: Builtin::new(Vec::new()),
        foreign_servers: Builtin::new(Vec::new()),
        user_mappings: Builtin::new(Vec::new()),
        granted: Builtin::new(Vec::new()),
        collations: Builtin::new(collations()),
        text_search_dictionaries: Builtin::new(text_search::built_in_dictionaries()),
        text_search_configs: Builtin::new(text_search::built_in_configs()),
        extensions: Builtin::new(extensions::builtin()),
        plain_objects,
        default_acls: Builtin::new(Vec::new()),
        roles: Builtin::new(roles),
        databases: Builtin::new(databases()),
        operator_families: Builtin::new(Vec::new()),
        operator_classes: Builtin::new(Vec::new()),
        access: Arc::new(access::access_methods()),
        shared_relations,
    }
});

fn namespaces(role: &dyn Fn(&str) -> Oid) -> Vec<Arc<Namespace>> {
    let seed = seed!("pg_namespace");
    let namespace = |r: crate::seed::Row<'_>| Namespace {
        oid: r.oid("oid"),
        name: r.text("nspname"),
        owner: r.oid("nspowner"),
        acl: r.acl("nspacl", role),
    };
    seed.rows().map(|r| Arc::new(namespace(r))).collect()
}

fn collations() -> Vec<Arc<Collation>> {
    let seed = seed!("pg_collation");
    let collation = |r: crate::seed::Row<'_>| Collation {
        oid: r.oid("oid"),
        name: r.text("collname"),
        namespace: r.oid("collnamespace"),
        owner: classes::POSTGRES_ROLE,
        provider: r.char("collprovider"),
        deterministic: r.bool("collisdeterministic"),
        locale: r.optional("colllocale").or(r.optional("collcollate")).map(Arc::from),
        version: None,
        collator: CollatorCell::default(),
    };
    let collation = |r| {
        let mut collation = collation(r);
        collation.version = collation.actual_version().map(Arc::from);
        collation
    };
    seed.rows().map(|r| Arc::new(collation(r))).collect()
}

fn roles() -> Vec<Arc<Role>> {
    let mut memberships: HashMap<Oid, Vec<Membership>> = HashMap::new();
    for r in seed!("pg_auth_members").rows() {
        memberships.entry(r.oid("member")).or_default().push(Membership {
            oid: r.oid("oid"),
            role: r.oid("roleid"),
            grantor: r.oid("grantor"),
            admin: r.bool("admin_option"),
            inherit: r.bool("inherit_option"),
            set: r.bool("set_option"),
        });
    }
    let seed = seed!("pg_authid");
    let role = |r: crate::seed::Row<'_>| Role {
        oid: r.oid("oid"),
        name: r.text("rolname"),
        superuser: r.bool("rolsuper"),
        inherit: r.bool("rolinherit"),
        create_role: r.bool("rolcreaterole"),
        create_db: r.bool("rolcreatedb"),
        can_login: r.bool("rolcanlogin"),
        replication: r.bool("rolreplication"),
        bypass_rls: r.bool("rolbypassrls"),
        connection_limit: -1,
        password: None,
        valid_until: None,
        member_of: memberships.get(&r.oid("oid")).cloned().unwrap_or_default(),
        settings: Vec::new(),
    };
    seed.rows().map(|r| Arc::new(role(r))).collect()
}

/// template1, template0 and postgres, as initdb leaves them.
fn databases() -> Vec<Arc<Database>> {
    let owner = classes::POSTGRES_ROLE;
    let template_acl = || {
        let item = |grantee, letters| AclItem { grantee, grantor: owner, privileges: letters };
        let all = crate::acl::CREATE | crate::acl::TEMPORARY | crate::acl::CONNECT;
        Some([item(Oid::INVALID, crate::acl::CONNECT), item(owner, all)].into())
    };
    let database = |oid, name: &str, is_template, allow_connections, acl| {
        Arc::new(Database {
            oid: Oid(oid),
            name: name.into(),
            owner,
            is_template,
            allow_connections,
            connection_limit: -1,
            acl,
            settings: Vec::new(),
            large_object_metadata: TreeId::default(),
            large_object_data: TreeId::default(),
        })
    };
    vec![
        database(1, "template1", true, true, template_acl()),
        database(4, "template0", true, false, template_acl()),
        database(5, "postgres", false, true, None),
    ]
}
