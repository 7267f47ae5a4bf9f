//! `Catalog`: a snapshot of one database's objects, and how the next one is made from it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use melba_types::{Kind, Oid};

use crate::builtin::BUILTINS;
use crate::builtin_comments::{builtin_descriptions, is_builtin};
use crate::classes;
use crate::depend::{Dependency, Dependents, Links, dependencies};
use crate::derived::Derived;
use crate::families::{Families, PartitionFamily};
use crate::index_lists::{table_with, table_without, with_its_indexes};
use crate::inheritance::Inheritance;
use crate::layered::{Layered, Named};
use crate::objects::*;
use crate::operator_families::AccessMethods;
use crate::radix::RadixMap;

/// A snapshot of one database's catalog. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Catalog {
    database: Oid,
    version: u64,
    namespaces: Layered<Namespace>,
    relations: Layered<Relation>,
    types: Layered<Type>,
    functions: Layered<Function>,
    pub(crate) operators: Layered<Operator>,
    /// Those of users; `access` has all.
    pub(crate) operator_families: Layered<OperatorFamily>,
    pub(crate) operator_classes: Layered<OperatorClass>,
    pub(crate) access: Arc<AccessMethods>,
    pub(crate) casts: Layered<Cast>,
    constraints: Layered<Constraint>,
    triggers: Layered<Trigger>,
    pub(crate) policies: Layered<Policy>,
    pub(crate) rules: Layered<RewriteRule>,
    statistics_objects: Layered<ExtendedStatistics>,
    pub(crate) event_triggers: Layered<EventTrigger>,
    pub(crate) publications: Layered<Publication>,
    pub(crate) publication_members: Layered<PublicationMember>,
    pub(crate) foreign_data_wrappers: Layered<ForeignDataWrapper>,
    pub(crate) foreign_servers: Layered<ForeignServer>,
    pub(crate) user_mappings: Layered<UserMapping>,
    collations: Layered<Collation>,
    text_search_dictionaries: Layered<TextSearchDictionary>,
    text_search_configs: Layered<TextSearchConfig>,
    extensions: Layered<Extension>,
    pub(crate) plain_objects: Layered<PlainObject>,
    pub(crate) parameter_acls: Layered<Granted>,
    default_acls: Layered<DefaultAcl>,
    roles: Layered<Role>,
    databases: Layered<Database>,
    /// By OID of the described object.
    descriptions: RadixMap<Vec<Arc<Description>>>,
    dependents: Dependents,
    pub(crate) inheritance: Inheritance,
    /// By table: the foreign keys that refer to it. A table that much depends on has few.
    referencing: Links,
    pub(crate) families: Families,
    /// The relations that defaults of columns and rules of views are parts of, by the OIDs of these.
    parts: RadixMap<Oid>,
    /// Counts the assigned OIDs; one counter for all snapshots of a cluster. From `Oid::TOAST` on they are assigned a second time.
    next_oid: Arc<AtomicU64>,
    pub(crate) derived: Derived,
}

/// The change of one object by DDL.
#[derive(Clone, Debug)]
pub enum ObjectChange {
    /// Create the object, or replace the one with its address.
    Put(Object),
    /// Forget the object. Comments have `ObjectAddress::class` pg_description, see `Object::address`.
    Remove(ObjectAddress),
    /// Forget the comment on an object.
    RemoveDescription(ObjectAddress),
}

impl ObjectChange {
    /// Whether the change is to an object that all databases of a cluster share.
    pub fn is_shared(&self) -> bool {
        match self {
            ObjectChange::Put(Object::Description(d)) => classes::is_shared(d.address.class),
            ObjectChange::Put(object) => classes::is_shared(object.address().class),
            ObjectChange::Remove(address) | ObjectChange::RemoveDescription(address) => classes::is_shared(address.class),
        }
    }
}

impl Default for Catalog {
    fn default() -> Self {
        Catalog::new(classes::POSTGRES_DATABASE)
    }
}

impl Catalog {
    /// A database with nothing but the built-in objects.
    pub fn new(database: Oid) -> Catalog {
        let b = &*BUILTINS;
        Catalog {
            database,
            version: 0,
            namespaces: Layered::new(&b.namespaces),
            relations: Layered::new(&b.relations),
            types: Layered::new(&b.types),
            functions: Layered::new(&b.functions),
            operators: Layered::new(&b.operators),
            operator_families: Layered::new(&b.operator_families),
            operator_classes: Layered::new(&b.operator_classes),
            access: b.access.clone(),
            casts: Layered::new(&b.casts),
            constraints: Layered::new(&b.constraints),
            triggers: Layered::new(&b.triggers),
            policies: Layered::new(&b.policies),
            rules: Layered::new(&b.rules),
            statistics_objects: Layered::new(&b.statistics_objects),
            event_triggers: Layered::new(&b.event_triggers),
            publications: Layered::new(&b.publications),
            publication_members: Layered::new(&b.publication_members),
            foreign_data_wrappers: Layered::new(&b.foreign_data_wrappers),
            foreign_servers: Layered::new(&b.foreign_servers),
            user_mappings: Layered::new(&b.user_mappings),
            plain_objects: Layered::new(&b.plain_objects),
            parameter_acls: Layered::new(&b.granted),
            collations: Layered::new(&b.collations),
            text_search_dictionaries: Layered::new(&b.text_search_dictionaries),
            text_search_configs: Layered::new(&b.text_search_configs),
            extensions: Layered::new(&b.extensions),
            default_acls: Layered::new(&b.default_acls),
            roles: Layered::new(&b.roles),
            databases: Layered::new(&b.databases),
            descriptions: builtin_descriptions(),
            dependents: Dependents::default(),
            inheritance: Inheritance::default(),
            referencing: Links::default(),
            families: Families::default(),
            parts: RadixMap::default(),
            next_oid: Arc::new(AtomicU64::new(classes::FIRST_USER_OID.into())),
            derived: Derived::default(),
        }
    }

    /// The snapshot after `changes`, made in order.
    pub fn with(&self, changes: &[ObjectChange]) -> Catalog {
        let mut next = self.clone();
        next.version += 1;
        next.derived = self.derived.next();
        for change in changes {
            match change {
                ObjectChange::Put(object) => next.put(object),
                ObjectChange::Remove(address) => next.remove(*address),
                ObjectChange::RemoveDescription(address) => next.remove_description(*address),
            }
        }
        next
    }

    /// This snapshot with another one's roles and databases.
    pub(crate) fn with_shared_of(&self, other: &Catalog) -> Catalog {
        let mut next = self.clone();
        next.version += 1;
        next.derived = self.derived.next();
        next.roles = other.roles.clone();
        next.databases = other.databases.clone();
        next.parameter_acls = other.parameter_acls.clone();
        for object in other.plain_objects.user_objects().filter(|o| classes::is_shared(o.class)) {
            next.plain_objects.put(object.clone());
        }
        let tablespaces: Vec<Oid> = next.plain_objects_of(classes::PG_TABLESPACE).map(|t| t.oid).collect();
        let described = next.roles.iter().map(|r| r.oid).chain(next.databases.iter().map(|d| d.oid)).chain(tablespaces);
        for oid in described {
            let of_other = other.descriptions.get(oid.0).into_iter().flatten();
            let shared: Vec<_> = of_other.filter(|d| classes::is_shared(d.address.class)).cloned().collect();
            let own = next.descriptions.get(oid.0).is_some_and(|v| v.iter().any(|d| classes::is_shared(d.address.class)));
            if own || !shared.is_empty() {
                let all = next.descriptions.entry(oid.0, Vec::new);
                all.retain(|d| !classes::is_shared(d.address.class));
                all.extend(shared);
            }
        }
        next
    }

    /// A new, empty database that shares this one's roles, databases and OID counter.
    pub(crate) fn sibling(&self, database: Oid) -> Catalog {
        let (next_oid, derived) = (self.next_oid.clone(), self.derived.clone());
        Catalog { next_oid, derived, ..Catalog::new(database) }.with_shared_of(self)
    }

    fn put(&mut self, object: &Object) {
        let highest = u64::from(object.oid_max().0);
        if highest < u64::from(classes::FIRST_EXTENSION_OID) {
            self.next_oid.fetch_max(highest + 1, Ordering::Relaxed);
        }
        let old = match object {
            Object::Namespace(o) => self.namespaces.put(o.clone()).map(Object::Namespace),
            Object::Relation(o) => {
                let old = self.relations.put(with_its_indexes(self, o)).map(Object::Relation);
                if let Some(table) = table_with(self, o) {
                    self.relations.put(table);
                }
                match o.toast_table() {
                    Some(toast) => self.relations.put(Arc::new(toast)),
                    None => self.relations.remove(o.oid.toast()),
                };
                old
            }
            Object::Type(o) => self.types.put(o.clone()).map(Object::Type),
            Object::Function(o) => self.functions.put(o.clone()).map(Object::Function),
            Object::Operator(o) => self.operators.put(o.clone()).map(Object::Operator),
            Object::OperatorFamily(o) => {
                let access = Arc::make_mut(&mut self.access);
                access.remove_family(o.oid);
                access.add_family(o.clone());
                self.operator_families.put(o.clone()).map(Object::OperatorFamily)
            }
            Object::OperatorClass(o) => {
                let access = Arc::make_mut(&mut self.access);
                access.remove_class(o.oid);
                access.add_class(o.clone());
                self.operator_classes.put(o.clone()).map(Object::OperatorClass)
            }
            Object::Cast(o) => self.casts.put(o.clone()).map(Object::Cast),
            Object::Constraint(o) => self.constraints.put(o.clone()).map(Object::Constraint),
            Object::Trigger(o) => self.triggers.put(o.clone()).map(Object::Trigger),
            Object::Policy(o) => self.policies.put(o.clone()).map(Object::Policy),
            Object::Rule(o) => self.rules.put(o.clone()).map(Object::Rule),
            Object::ExtendedStatistics(o) => self.statistics_objects.put(o.clone()).map(Object::ExtendedStatistics),
            Object::EventTrigger(o) => self.event_triggers.put(o.clone()).map(Object::EventTrigger),
            Object::Publication(o) => self.publications.put(o.clone()).map(Object::Publication),
            Object::PublicationMember(o) => self.publication_members.put(o.clone()).map(Object::PublicationMember),
            Object::ForeignDataWrapper(o) => self.foreign_data_wrappers.put(o.clone()).map(Object::ForeignDataWrapper),
            Object::ForeignServer(o) => self.foreign_servers.put(o.clone()).map(Object::ForeignServer),
            Object::UserMapping(o) => self.user_mappings.put(o.clone()).map(Object::UserMapping),
            Object::Collation(o) => self.collations.put(o.clone()).map(Object::Collation),
            Object::TextSearchDictionary(o) => self.text_search_dictionaries.put(o.clone()).map(Object::TextSearchDictionary),
            Object::TextSearchConfig(o) => self.text_search_configs.put(o.clone()).map(Object::TextSearchConfig),
            Object::Extension(o) => self.extensions.put(o.clone()).map(Object::Extension),
            Object::DefaultAcl(o) => self.default_acls.put(o.clone()).map(Object::DefaultAcl),
            Object::Role(o) => self.roles.put(o.clone()).map(Object::Role),
            Object::Database(o) => self.databases.put(o.clone()).map(Object::Database),
            Object::Plain(o) => self.plain_objects.put(o.clone()).map(Object::Plain),
            Object::Granted(o) => self.parameter_acls.put(o.clone()).map(Object::Granted),
            Object::Description(o) => {
                self.remove_description(o.address);
                self.descriptions.entry(o.address.object.0, Vec::new).push(o.clone());
                return;
            }
        };
        if let Some(old) = &old {
            self.forget_uses(old);
        }
        self.note_uses(object, old.as_ref());
    }

    fn note_uses(&mut self, object: &Object, old: Option<&Object>) {
        self.dependents.add(&dependencies(object));
        match object {
            Object::Relation(relation) => {
                self.families.change(old.and_then(Object::relation), Some(relation), &self.derived);
                parts_of(relation).for_each(|part| self.parts.insert(part.0, relation.oid));
                self.inheritance.add(relation);
            }
            Object::Constraint(constraint) => {
                constraint.foreign_key.iter().for_each(|key| self.referencing.add(key.referenced_table, constraint.oid));
            }
            _ => {}
        }
    }

    fn forget_uses(&mut self, object: &Object) {
        self.dependents.remove(&dependencies(object));
        match object {
            Object::Relation(relation) => {
                parts_of(relation).for_each(|part| self.parts.remove(part.0));
                self.inheritance.remove(relation);
            }
            Object::Constraint(constraint) => {
                constraint.foreign_key.iter().for_each(|key| self.referencing.remove(key.referenced_table, constraint.oid));
            }
            _ => {}
        }
    }

    fn remove(&mut self, address: ObjectAddress) {
        let oid = address.object;
        let old = match address.class {
            classes::PG_NAMESPACE => self.namespaces.remove(oid).map(Object::Namespace),
            classes::PG_CLASS => {
                self.relations.remove(oid.toast());
                self.relations.remove(oid).map(Object::Relation)
            }
            classes::PG_TYPE => self.types.remove(oid).map(Object::Type),
            classes::PG_PROC => self.functions.remove(oid).map(Object::Function),
            classes::PG_OPERATOR => self.operators.remove(oid).map(Object::Operator),
            classes::PG_OPFAMILY => {
                Arc::make_mut(&mut self.access).remove_family(oid);
                self.operator_families.remove(oid).map(Object::OperatorFamily)
            }
            classes::PG_OPCLASS => {
                Arc::make_mut(&mut self.access).remove_class(oid);
                self.operator_classes.remove(oid).map(Object::OperatorClass)
            }
            classes::PG_CAST => self.casts.remove(oid).map(Object::Cast),
            classes::PG_CONSTRAINT => self.constraints.remove(oid).map(Object::Constraint),
            classes::PG_TRIGGER => self.triggers.remove(oid).map(Object::Trigger),
            classes::PG_POLICY => self.policies.remove(oid).map(Object::Policy),
            classes::PG_REWRITE => self.rules.remove(oid).map(Object::Rule),
            classes::PG_STATISTIC_EXT => self.statistics_objects.remove(oid).map(Object::ExtendedStatistics),
            classes::PG_EVENT_TRIGGER => self.event_triggers.remove(oid).map(Object::EventTrigger),
            classes::PG_PUBLICATION => self.publications.remove(oid).map(Object::Publication),
            classes::PG_PUBLICATION_REL | classes::PG_PUBLICATION_NAMESPACE => {
                self.publication_members.remove(oid).map(Object::PublicationMember)
            }
            classes::PG_FOREIGN_DATA_WRAPPER => self.foreign_data_wrappers.remove(oid).map(Object::ForeignDataWrapper),
            classes::PG_FOREIGN_SERVER => self.foreign_servers.remove(oid).map(Object::ForeignServer),
            classes::PG_USER_MAPPING => self.user_mappings.remove(oid).map(Object::UserMapping),
            classes::PG_COLLATION => self.collations.remove(oid).map(Object::Collation),
            classes::PG_TS_DICT => self.text_search_dictionaries.remove(oid).map(Object::TextSearchDictionary),
            classes::PG_TS_CONFIG => self.text_search_configs.remove(oid).map(Object::TextSearchConfig),
            classes::PG_EXTENSION => self.extensions.remove(oid).map(Object::Extension),
            classes::PG_DEFAULT_ACL => self.default_acls.remove(oid).map(Object::DefaultAcl),
            classes::PG_AUTHID => self.roles.remove(oid).map(Object::Role),
            classes::PG_DATABASE => self.databases.remove(oid).map(Object::Database),
            classes::PG_PARAMETER_ACL => self.parameter_acls.remove(oid).map(Object::Granted),
            class if self.plain_object(class, oid).is_some() => self.plain_objects.remove(oid).map(Object::Plain),
            _ => None,
        };
        if let Some(Object::Relation(index)) = &old
            && let Some(table) = table_without(self, index)
        {
            self.relations.put(table);
        }
        if let Some(old) = old {
            self.families.change(old.relation(), None, &self.derived);
            self.forget_uses(&old);
        }
        // An object's comments, and its columns', are dropped with it.
        let described = |d: &Arc<Description>| d.address.class == address.class;
        if self.descriptions.get(oid.0).is_some_and(|v| v.iter().any(described)) {
            self.descriptions.entry(oid.0, Vec::new).retain(|d| !described(d));
        }
    }

    fn remove_description(&mut self, address: ObjectAddress) {
        if self.description(address).is_some() {
            self.descriptions.entry(address.object.0, Vec::new).retain(|d| d.address != address);
        }
    }

    /// The database this is a catalog of.
    pub fn database_oid(&self) -> Oid {
        self.database
    }

    /// Grows with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The data computed from this snapshot.
    pub fn derived(&self) -> &Derived {
        &self.derived
    }

    /// An OID that no object of this database, no role and no database has. Given out once, whether or not the transaction
    /// commits; and again after two billion others, if no object has it then.
    pub fn allocate_oid(&self) -> Oid {
        let (first, end) = (u64::from(classes::FIRST_USER_OID), u64::from(classes::FIRST_EXTENSION_OID));
        loop {
            let next = self.next_oid.fetch_add(1, Ordering::Relaxed);
            // Below are those of built-in objects.
            let oid = Oid((if next < end { next } else { first + (next - end) % (end - first) }) as u32);
            // The first time round the counter is ahead of everything there is.
            if next < end || !self.has_oid(oid) {
                return oid;
            }
        }
    }

    /// Whether an object or a part of one has this OID.
    fn has_oid(&self, oid: Oid) -> bool {
        macro_rules! is_one_of { ($($field:ident)*) => {false $(|| self.$field.get(oid).is_some())*}; }
        let objects = is_one_of! { namespaces relations types functions operators operator_families operator_classes casts constraints
        triggers policies rules statistics_objects event_triggers publications publication_members foreign_data_wrappers foreign_servers user_mappings collations text_search_dictionaries text_search_configs
        extensions plain_objects parameter_acls roles databases };
        objects
            || self.parts.get(oid.0).is_some()
            || self.types.iter().any(|t| t.labels.iter().any(|l| l.0 == oid))
            || self.roles.iter().any(|r| r.member_of.iter().any(|m| m.oid == oid))
            || self.operator_families.iter().any(|f| f.member_oids().any(|o| o == oid))
    }

    /// Makes sure that `allocate_oid` returns nothing below `oid`: a restart restores the counter with it.
    pub fn reserve_oids_below(&self, oid: Oid) {
        self.next_oid.fetch_max(oid.0.into(), Ordering::Relaxed);
    }
}

/// Parts that have an OID but are in no list.
fn parts_of(relation: &Relation) -> impl Iterator<Item = Oid> {
    let defaults = relation.columns.iter().map(|c| c.default_oid);
    defaults.chain([relation.rule]).filter(|oid| oid.0 >= classes::FIRST_USER_OID)
}

/// `get(oid)`, `get_by_name(scope, name)` and `gets()` of a kind of object.
macro_rules! lookups {
    ($($field:ident, $ty:ty, $get:ident, $by_name:ident($scope:ident);)*) => {
        /// Lookups. None of them allocates.
        impl Catalog {$(
            pub fn $get(&self, oid: Oid) -> Option<&Arc<$ty>> {
                self.$field.get(oid)
            }

            pub fn $by_name(&self, $scope: Oid, name: &str) -> Option<&Arc<$ty>> {
                // The borrow of `name` must not outlive this call.
                let oid = self.$field.named($scope, name).next()?.oid();
                self.$field.get(oid)
            }

            /// All of them, built-in ones included, in OID order.
            pub fn $field(&self) -> impl Iterator<Item = &Arc<$ty>> {
                self.$field.iter()
            }
        )*}
    };
}

lookups! {
    relations, Relation, relation, relation_by_name(namespace);
    types, Type, type_, type_by_name(namespace);
    constraints, Constraint, constraint, constraint_by_name(namespace);
    triggers, Trigger, trigger, trigger_by_name(table);
    policies, Policy, policy, policy_by_name(table);
    rules, RewriteRule, rule, rule_by_name(relation);
    statistics_objects, ExtendedStatistics, statistics_object, statistics_object_by_name(namespace);
    collations, Collation, collation, collation_by_name(namespace);
    text_search_dictionaries, TextSearchDictionary, text_search_dictionary, text_search_dictionary_by_name(namespace);
    text_search_configs, TextSearchConfig, text_search_config, text_search_config_by_name(namespace);
}

impl Catalog {
    pub fn namespace(&self, oid: Oid) -> Option<&Arc<Namespace>> {
        self.namespaces.get(oid)
    }

    pub fn namespace_by_name(&self, name: &str) -> Option<&Arc<Namespace>> {
        let oid = self.namespaces.named(Oid::INVALID, name).next()?.oid;
        self.namespaces.get(oid)
    }

    /// In OID order.
    pub fn namespaces(&self) -> impl Iterator<Item = &Arc<Namespace>> {
        self.namespaces.iter()
    }

    pub fn extension(&self, oid: Oid) -> Option<&Arc<Extension>> {
        self.extensions.get(oid)
    }

    pub fn extension_by_name(&self, name: &str) -> Option<&Arc<Extension>> {
        let oid = self.extensions.named(Oid::INVALID, name).next()?.oid;
        self.extensions.get(oid)
    }

    /// In OID order.
    pub fn extensions(&self) -> impl Iterator<Item = &Arc<Extension>> {
        self.extensions.iter()
    }

    /// The extension that an object is a member of.
    pub fn extension_of(&self, member: ObjectAddress) -> Option<&Arc<Extension>> {
        self.extensions.user_objects().find(|e| e.members.contains(&member))
    }

    pub fn role(&self, oid: Oid) -> Option<&Arc<Role>> {
        self.roles.get(oid)
    }

    pub fn role_by_name(&self, name: &str) -> Option<&Arc<Role>> {
        let oid = self.roles.named(Oid::INVALID, name).next()?.oid;
        self.roles.get(oid)
    }

    /// In OID order.
    pub fn roles(&self) -> impl Iterator<Item = &Arc<Role>> {
        self.roles.iter()
    }

    pub fn database(&self, oid: Oid) -> Option<&Arc<Database>> {
        self.databases.get(oid)
    }

    pub fn database_by_name(&self, name: &str) -> Option<&Arc<Database>> {
        let oid = self.databases.named(Oid::INVALID, name).next()?.oid;
        self.databases.get(oid)
    }

    /// In OID order.
    pub fn databases(&self) -> impl Iterator<Item = &Arc<Database>> {
        self.databases.iter()
    }

    pub fn function(&self, oid: Oid) -> Option<&Arc<Function>> {
        self.functions.get(oid)
    }

    /// The functions, procedures and aggregates with a name.
    pub fn functions_by_name<'a>(&'a self, namespace: Oid, name: &'a str) -> impl Iterator<Item = &'a Arc<Function>> {
        self.functions.named(namespace, name)
    }

    /// Whether users created (or changed) any function.
    pub fn has_user_functions(&self) -> bool {
        self.functions.user_objects().next().is_some()
    }

    /// In OID order.
    pub fn functions(&self) -> impl Iterator<Item = &Arc<Function>> {
        self.functions.iter()
    }

    pub fn default_acl_by_oid(&self, oid: Oid) -> Option<&Arc<DefaultAcl>> {
        self.default_acls.get(oid)
    }

    /// In OID order.
    pub fn default_acls(&self) -> impl Iterator<Item = &Arc<DefaultAcl>> {
        self.default_acls.iter()
    }

    pub(crate) fn default_acls_of(&self, role: Oid) -> impl Iterator<Item = &Arc<DefaultAcl>> {
        self.default_acls.named(role, "")
    }

    pub fn plain_object(&self, class: Oid, oid: Oid) -> Option<&Arc<PlainObject>> {
        self.plain_objects.get(oid).filter(|object| object.class == class)
    }

    /// Those of a class, in OID order.
    pub fn plain_objects_of(&self, class: Oid) -> impl Iterator<Item = &Arc<PlainObject>> {
        self.plain_objects.iter().filter(move |object| object.class == class)
    }

    /// `namespace` is 0 for a class whose objects are in no schema.
    pub fn plain_object_by_name(&self, class: Oid, namespace: Oid, name: &str) -> Option<&Arc<PlainObject>> {
        let oid = self.plain_objects.named(class, name).find(|object| object.namespace == namespace)?.oid;
        self.plain_objects.get(oid)
    }

    /// Whether all databases share a system relation (pg_authid, pg_database, ...).
    pub fn is_shared_relation(&self, oid: Oid) -> bool {
        BUILTINS.shared_relations.contains(&oid)
    }

    /// Whether an object existed before users created any.
    pub fn is_builtin(&self, address: ObjectAddress) -> bool {
        address.object.0 < classes::FIRST_USER_OID
    }

    /// The relations in a schema: tables and all else that pg_class has, indexes and toast tables too.
    pub fn relations_in(&self, namespace: Oid) -> impl Iterator<Item = &Arc<Relation>> {
        self.relations.within(namespace)
    }

    pub fn types_in(&self, namespace: Oid) -> impl Iterator<Item = &Arc<Type>> {
        self.types.within(namespace)
    }

    pub fn functions_in(&self, namespace: Oid) -> impl Iterator<Item = &Arc<Function>> {
        self.functions.within(namespace)
    }

    /// A schema's constraints with a name: one a table.
    pub fn constraints_by_name<'a>(&'a self, namespace: Oid, name: &'a str) -> impl Iterator<Item = &'a Arc<Constraint>> {
        self.constraints.named(namespace, name)
    }

    pub fn constraints_in(&self, namespace: Oid) -> impl Iterator<Item = &Arc<Constraint>> {
        self.constraints.within(namespace)
    }

    /// The relation that a default (by its OID in pg_attrdef) or a view's rule is a part of.
    pub fn relation_of_part(&self, part: Oid) -> Option<&Arc<Relation>> {
        self.relation(*self.parts.get(part.0)?)
    }

    /// The column with a default, by the default's OID: its relation, and its place there.
    pub fn column_with_default(&self, default: Oid) -> Option<(&Arc<Relation>, usize)> {
        let relation = self.relation_of_part(default)?;
        let place = relation.columns.iter().position(|c| c.default_oid == default)?;
        Some((relation, place))
    }

    /// Comments on an object and its parts, and on others of the same OID.
    pub(crate) fn descriptions_of(&self, oid: Oid) -> impl Iterator<Item = &Arc<Description>> {
        self.descriptions.get(oid.0).into_iter().flatten()
    }

    /// About how many relations there are, built-in ones included.
    pub(crate) fn relation_count(&self) -> usize {
        self.relations.len_estimate()
    }

    pub(crate) fn namespace_count(&self) -> usize {
        self.namespaces.len_estimate()
    }

    /// How many objects have comments.
    pub(crate) fn description_count(&self) -> usize {
        self.descriptions.len()
    }

    pub(crate) fn type_count(&self) -> usize {
        self.types.len_estimate()
    }

    pub(crate) fn function_count(&self) -> usize {
        self.functions.len_estimate()
    }

    pub(crate) fn constraint_count(&self) -> usize {
        self.constraints.len_estimate()
    }

    pub(crate) fn relations_of_largest_schema(&self) -> usize {
        self.relations.largest_scope()
    }

    pub(crate) fn types_of_largest_schema(&self) -> usize {
        self.types.largest_scope()
    }

    pub(crate) fn constraints_of_largest_schema(&self) -> usize {
        self.constraints.largest_scope()
    }

    /// How many tables foreign keys refer to.
    pub(crate) fn referenced_count(&self) -> usize {
        self.referencing.len()
    }

    /// How many objects others depend on.
    pub(crate) fn depended_on_count(&self) -> usize {
        self.dependents.len()
    }

    /// COMMENT ON an object.
    pub fn description(&self, address: ObjectAddress) -> Option<&Arc<Description>> {
        self.descriptions.get(address.object.0)?.iter().find(|d| d.address == address)
    }

    /// By OID of the object.
    pub fn descriptions(&self) -> impl Iterator<Item = &Arc<Description>> {
        self.descriptions.iter().flat_map(|(_, v)| v)
    }

    /// The dependents of an object or, without `sub`, of any part of it.
    pub fn dependents(&self, address: ObjectAddress) -> impl Iterator<Item = &Dependency> {
        self.dependents.of(address)
    }

    /// The dependents of any object with an OID, of whatever class.
    pub(crate) fn dependents_of_oid(&self, oid: Oid) -> impl Iterator<Item = &Dependency> {
        self.dependents.of_oid(oid)
    }

    /// Relations that users created or changed, in OID order; without the toast tables that these have.
    pub fn user_relations(&self) -> impl Iterator<Item = &Arc<Relation>> {
        self.relations.user_objects().filter(|r| r.kind != RelationKind::Toast)
    }

    /// Tables that inherit from a table, or its partitions, in OID order.
    pub fn children(&self, relation: Oid) -> Vec<Oid> {
        self.inheritance.children.of(relation).collect()
    }

    pub fn child_count(&self, relation: Oid) -> usize {
        self.inheritance.children.count(relation)
    }

    pub fn has_children(&self, relation: Oid) -> bool {
        self.inheritance.children.of(relation).next().is_some()
    }

    /// A table and all below it that inherit from it, or are its partitions, each before those below it.
    pub fn descendants(&self, relation: Oid) -> Vec<Oid> {
        self.inheritance.descendants(relation)
    }

    pub fn default_partition(&self, table: Oid) -> Option<Oid> {
        self.children(table).into_iter().find(|p| self.relation(*p).is_some_and(|p| p.is_default_partition()))
    }

    /// The constraints of a schema that have a name: tables do not share names of theirs.
    pub fn constraints_named(&self, namespace: Oid, name: &str) -> Vec<&Arc<Constraint>> {
        let oids: Vec<Oid> = self.constraints.named(namespace, name).map(|c| c.oid()).collect();
        oids.into_iter().filter_map(|oid| self.constraints.get(oid)).collect()
    }

    /// The state of a partitioned table's partitions.
    pub fn family(&self, table: Oid) -> Option<&PartitionFamily> {
        self.families.of(table)
    }

    /// Foreign keys of other tables (or its own) that refer to a table.
    pub fn referencing_constraints(&self, relation: Oid) -> Vec<&Arc<Constraint>> {
        self.referencing.of(relation).filter_map(|oid| self.constraint(oid)).collect()
    }

    pub fn is_referenced(&self, relation: Oid) -> bool {
        self.referencing.of(relation).next().is_some()
    }

    /// The NOT NULL constraint of a column, by its number.
    pub fn not_null_constraint(&self, relation: &Relation, number: i16) -> Option<&Arc<Constraint>> {
        let of_column = |c: &&Arc<Constraint>| c.kind == ConstraintKind::NotNull && c.columns == [number];
        relation.constraints.iter().filter_map(|c| self.constraint(*c)).find(of_column)
    }

    /// Whether a column, by its place, has no NULL in any row: not so while its NOT NULL constraint is NOT VALID.
    pub fn is_never_null(&self, relation: &Relation, place: usize) -> bool {
        let is_valid = || self.not_null_constraint(relation, place as i16 + 1).is_none_or(|c| c.validated);
        relation.columns[place].not_null && is_valid()
    }

    /// How values of a type are held.
    pub fn kind_of(&self, ty: Oid) -> Option<Kind> {
        Some(self.types.get(ty)?.kind)
    }

    /// The object that has its row at an address; columns are parts of their relation.
    pub fn object(&self, address: ObjectAddress) -> Option<Object> {
        let oid = address.object;
        match address.class {
            classes::PG_NAMESPACE => self.namespace(oid).cloned().map(Object::Namespace),
            classes::PG_CLASS => self.relation(oid).cloned().map(Object::Relation),
            classes::PG_TYPE => self.type_(oid).cloned().map(Object::Type),
            classes::PG_PROC => self.function(oid).cloned().map(Object::Function),
            classes::PG_OPERATOR => self.operator(oid).cloned().map(Object::Operator),
            classes::PG_OPFAMILY => self.operator_families.get(oid).cloned().map(Object::OperatorFamily),
            classes::PG_OPCLASS => self.operator_classes.get(oid).cloned().map(Object::OperatorClass),
            classes::PG_CAST => self.cast_by_oid(oid).cloned().map(Object::Cast),
            classes::PG_CONSTRAINT => self.constraint(oid).cloned().map(Object::Constraint),
            classes::PG_TRIGGER => self.trigger(oid).cloned().map(Object::Trigger),
            classes::PG_POLICY => self.policy(oid).cloned().map(Object::Policy),
            classes::PG_REWRITE => self.rule(oid).cloned().map(Object::Rule),
            classes::PG_STATISTIC_EXT => self.statistics_object(oid).cloned().map(Object::ExtendedStatistics),
            classes::PG_EVENT_TRIGGER => self.event_trigger(oid).cloned().map(Object::EventTrigger),
            classes::PG_PUBLICATION => self.publications.get(oid).cloned().map(Object::Publication),
            class @ (classes::PG_PUBLICATION_REL | classes::PG_PUBLICATION_NAMESPACE) => {
                let member = self.publication_members.get(oid).filter(|member| member.address().class == class);
                member.cloned().map(Object::PublicationMember)
            }
            classes::PG_FOREIGN_DATA_WRAPPER => self.foreign_data_wrappers.get(oid).cloned().map(Object::ForeignDataWrapper),
            classes::PG_FOREIGN_SERVER => self.foreign_servers.get(oid).cloned().map(Object::ForeignServer),
            classes::PG_USER_MAPPING => self.user_mappings.get(oid).cloned().map(Object::UserMapping),
            classes::PG_COLLATION => self.collation(oid).cloned().map(Object::Collation),
            classes::PG_TS_DICT => self.text_search_dictionary(oid).cloned().map(Object::TextSearchDictionary),
            classes::PG_TS_CONFIG => self.text_search_config(oid).cloned().map(Object::TextSearchConfig),
            classes::PG_EXTENSION => self.extension(oid).cloned().map(Object::Extension),
            classes::PG_DEFAULT_ACL => self.default_acl_by_oid(oid).cloned().map(Object::DefaultAcl),
            classes::PG_AUTHID => self.role(oid).cloned().map(Object::Role),
            classes::PG_DATABASE => self.database(oid).cloned().map(Object::Database),
            classes::PG_PARAMETER_ACL => self.granted(oid).cloned().map(Object::Granted),
            class => self.plain_object(class, oid).cloned().map(Object::Plain),
        }
    }

    /// Everything that users created or changed, as objects: the content of a dump of the catalog.
    pub fn user_objects(&self) -> Vec<Object> {
        let mut all: Vec<Object> = Vec::new();
        macro_rules! add {
            ($($field:ident $kind:ident,)*) => {$(all.extend(self.$field.user_objects().cloned().map(Object::$kind));)*};
        }
        add! { roles Role, databases Database, namespaces Namespace, types Type, }
        all.extend(self.user_relations().cloned().map(Object::Relation));
        add! {
            functions Function, operators Operator, operator_families OperatorFamily, operator_classes OperatorClass, casts Cast, collations Collation,
            text_search_dictionaries TextSearchDictionary, text_search_configs TextSearchConfig, extensions Extension, default_acls DefaultAcl,
            constraints Constraint, triggers Trigger, policies Policy, rules Rule, event_triggers EventTrigger,
            publications Publication, publication_members PublicationMember,
            foreign_data_wrappers ForeignDataWrapper, foreign_servers ForeignServer, user_mappings UserMapping,
            statistics_objects ExtendedStatistics, plain_objects Plain, parameter_acls Granted,
        }
        all.extend(self.descriptions().filter(|d| !is_builtin(d)).cloned().map(Object::Description));
        all
    }
}

#[cfg(test)]
mod tests;
