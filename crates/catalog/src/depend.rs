//! Dependencies between objects: derived from the objects themselves, kept reversed for DROP.

use melba_types::Oid;

use crate::classes;
use crate::objects::*;
use crate::radix::RadixMap;

/// pg_depend.deptype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DependencyKind {
    /// The dependent is dropped only with CASCADE.
    Normal,
    /// The dependent is dropped with the referenced object.
    Auto,
    /// The dependent is a part: it is dropped with the whole and cannot be dropped alone.
    Internal,
    /// The dependent is a member of an extension: a part that dumps leave out.
    Extension,
    /// DEPENDS ON EXTENSION: the dependent is dropped with the extension.
    AutoExtension,
}

impl DependencyKind {
    pub fn letter(self) -> u8 {
        match self {
            DependencyKind::Normal => b'n',
            DependencyKind::Auto => b'a',
            DependencyKind::Internal => b'i',
            DependencyKind::Extension => b'e',
            DependencyKind::AutoExtension => b'x',
        }
    }
}

/// A row of pg_depend. Objects that depend on a view's query are recorded as dependents of the view itself, not of its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    pub dependent: ObjectAddress,
    pub referenced: ObjectAddress,
    pub kind: DependencyKind,
}

/// The dependents of objects, by the OID of the referenced object and then of the dependent one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dependents(RadixMap<RadixMap<Vec<Dependency>>>);

impl Dependents {
    pub(crate) fn add(&mut self, dependencies: &[Dependency]) {
        for d in dependencies {
            let of = self.0.entry(d.referenced.object.0, RadixMap::default);
            of.entry(d.dependent.object.0, Vec::new).push(*d);
        }
    }

    pub(crate) fn remove(&mut self, dependencies: &[Dependency]) {
        for d in dependencies {
            let of = self.0.entry(d.referenced.object.0, RadixMap::default);
            let by = of.entry(d.dependent.object.0, Vec::new);
            by.retain(|x| x != d);
            if by.is_empty() {
                of.remove(d.dependent.object.0);
            }
            if of.is_empty() {
                self.0.remove(d.referenced.object.0);
            }
        }
    }

    /// How many objects others depend on.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// In the order of the dependents' OIDs. A `sub` of 0 stands for the object and all of its parts.
    pub(crate) fn of(&self, address: ObjectAddress) -> impl Iterator<Item = &Dependency> {
        self.of_oid(address.object)
            .filter(move |d| d.referenced.class == address.class && (address.sub == 0 || d.referenced.sub == address.sub))
    }

    pub(crate) fn of_oid(&self, oid: Oid) -> impl Iterator<Item = &Dependency> {
        self.0.get(oid.0).into_iter().flat_map(|of| of.iter()).flat_map(|(_, by)| by)
    }
}

/// Objects by the OID of one that they belong to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links(RadixMap<RadixMap<Oid>>);

impl Links {
    pub(crate) fn add(&mut self, to: Oid, from: Oid) {
        self.0.entry(to.0, RadixMap::default).insert(from.0, from);
    }

    pub(crate) fn remove(&mut self, to: Oid, from: Oid) {
        let links = self.0.entry(to.0, RadixMap::default);
        links.remove(from.0);
        if links.is_empty() {
            self.0.remove(to.0);
        }
    }

    /// By the OIDs of both: those that belong to others.
    pub(crate) fn all(&self) -> impl Iterator<Item = Oid> {
        self.0.iter().flat_map(|(_, links)| links.iter()).map(|(_, oid)| *oid)
    }

    /// How many objects others belong to.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many belong to an object.
    pub(crate) fn count(&self, to: Oid) -> usize {
        self.0.get(to.0).map_or(0, RadixMap::len)
    }

    /// In the order of OIDs.
    pub(crate) fn of(&self, to: Oid) -> impl Iterator<Item = Oid> {
        self.0.get(to.0).into_iter().flat_map(|links| links.iter()).map(|(_, oid)| *oid)
    }
}

/// Objects that initdb makes undroppable: their dependents are not needed.
fn is_pinned(address: ObjectAddress) -> bool {
    address.object.0 < 12000 && !(address.class == classes::PG_NAMESPACE && address.object == classes::PUBLIC)
}

/// The objects on which an object depends.
pub fn dependencies(object: &Object) -> Vec<Dependency> {
    let mut list = List { dependent: object.address(), all: Vec::new() };
    match object {
        Object::Relation(o) => relation(o, &mut list),
        Object::Type(o) => type_(o, &mut list),
        Object::Function(o) => {
            list.normal(classes::PG_NAMESPACE, o.namespace);
            if is_range_constructor(o) {
                list.push(address(classes::PG_TYPE, o.return_type, 0), DependencyKind::Internal);
            }
            o.arg_types.iter().chain(&o.all_arg_types).chain([&o.return_type]).for_each(|t| list.normal(classes::PG_TYPE, *t));
            list.normal(classes::PG_LANGUAGE, o.language);
            list.normals(&o.depends_on);
        }
        Object::Operator(o) => {
            list.normal(classes::PG_NAMESPACE, o.namespace);
            [o.left, o.right, o.result].into_iter().for_each(|t| list.normal(classes::PG_TYPE, t));
            list.normal(classes::PG_PROC, o.function);
        }
        Object::OperatorFamily(o) => operator_family(o, &mut list),
        Object::OperatorClass(o) => operator_class(o, &mut list),
        Object::Cast(o) => {
            let kind = if o.part_of_type { DependencyKind::Internal } else { DependencyKind::Normal };
            list.push(address(classes::PG_TYPE, o.source, 0), kind);
            list.push(address(classes::PG_TYPE, o.target, 0), kind);
            list.push(address(classes::PG_PROC, o.function, 0), kind);
        }
        Object::Constraint(o) => constraint(o, &mut list),
        Object::Trigger(o) => trigger(o, &mut list),
        Object::Policy(o) => list.of_table(o.table, &o.depends_on),
        Object::Rule(o) => list.of_table(o.table, &o.depends_on),
        Object::ExtendedStatistics(o) => extended_statistics(o, &mut list),
        Object::EventTrigger(o) => list.normal(classes::PG_PROC, o.function),
        Object::PublicationMember(o) => {
            list.push(address(o.class, o.object, 0), DependencyKind::Auto);
            list.push(address(classes::PG_PUBLICATION, o.publication, 0), DependencyKind::Auto);
        }
        Object::ForeignDataWrapper(o) => [o.handler, o.validator].into_iter().for_each(|f| list.normal(classes::PG_PROC, f)),
        Object::ForeignServer(o) => list.normal(classes::PG_FOREIGN_DATA_WRAPPER, o.wrapper),
        Object::UserMapping(o) => list.normal(classes::PG_FOREIGN_SERVER, o.server),
        Object::Collation(o) => list.normal(classes::PG_NAMESPACE, o.namespace),
        Object::TextSearchDictionary(o) => list.normal(classes::PG_NAMESPACE, o.namespace),
        Object::TextSearchConfig(o) => {
            list.normal(classes::PG_NAMESPACE, o.namespace);
            o.map.iter().flat_map(|m| &m.dictionaries).for_each(|d| list.normal(classes::PG_TS_DICT, *d));
        }
        Object::Extension(o) => {
            list.normal(classes::PG_NAMESPACE, o.namespace);
            for member in &o.members {
                list.of(*member, |list| list.push(address(classes::PG_EXTENSION, o.oid, 0), DependencyKind::Extension));
            }
        }
        Object::DefaultAcl(o) => list.push(address(classes::PG_NAMESPACE, o.namespace, 0), DependencyKind::Auto),
        Object::Plain(o) => list.in_schema(o.namespace, &o.depends_on),
        Object::Publication(_)
        | Object::Namespace(_)
        | Object::Granted(_)
        | Object::Description(_)
        | Object::Role(_)
        | Object::Database(_) => {}
    }
    list.all
}

/// A function that CREATE TYPE ... AS RANGE has made: a part of the type that it returns.
pub fn is_range_constructor(f: &Function) -> bool {
    let makes_range = f.source.starts_with("range_constructor") || f.source.starts_with("multirange_constructor");
    f.language == classes::INTERNAL_LANGUAGE && makes_range && f.oid.0 >= classes::FIRST_USER_OID
}

/// How an object depends on another one that it mentions: an extension is mentioned by ALTER ... DEPENDS ON EXTENSION alone.
fn usual_kind(referenced: ObjectAddress) -> DependencyKind {
    if referenced.class == classes::PG_EXTENSION { DependencyKind::AutoExtension } else { DependencyKind::Normal }
}

struct List {
    dependent: ObjectAddress,
    all: Vec<Dependency>,
}

impl List {
    fn push(&mut self, mut referenced: ObjectAddress, kind: DependencyKind) {
        // A toast table is dropped with its table.
        if referenced.class == classes::PG_CLASS && referenced.object.is_toast() {
            referenced = address(classes::PG_CLASS, referenced.object.without_toast(), 0);
        }
        let dependency = Dependency { dependent: self.dependent, referenced, kind };
        if referenced.object.is_valid() && !is_pinned(referenced) && !self.all.contains(&dependency) {
            self.all.push(dependency);
        }
    }

    fn normal(&mut self, class: Oid, object: Oid) {
        self.push(address(class, object, 0), DependencyKind::Normal);
    }

    /// Of an extension, an object that DEPENDS ON EXTENSION.
    fn normals(&mut self, addresses: &[ObjectAddress]) {
        for address in addresses {
            self.push(*address, usual_kind(*address));
        }
    }

    /// What stands in a schema, or in none.
    fn in_schema(&mut self, namespace: Oid, others: &[ObjectAddress]) {
        self.normal(classes::PG_NAMESPACE, namespace);
        self.normals(others);
    }

    /// What belongs to a table.
    fn of_table(&mut self, table: Oid, others: &[ObjectAddress]) {
        self.push(address(classes::PG_CLASS, table, 0), DependencyKind::Auto);
        self.normals(others);
    }

    /// Continues with a part of the object, or an object with its own OID within it.
    fn of(&mut self, dependent: ObjectAddress, add: impl FnOnce(&mut List)) {
        let whole = std::mem::replace(&mut self.dependent, dependent);
        add(self);
        self.dependent = whole;
    }
}

fn address(class: Oid, object: Oid, sub: i32) -> ObjectAddress {
    ObjectAddress { class, object, sub }
}

fn relation(o: &Relation, list: &mut List) {
    if let Some(index) = &o.index {
        index_dependencies(o, index, list);
        return;
    }
    if o.kind == RelationKind::Composite {
        // A stand-alone composite type's relation is a part of the type.
        list.push(address(classes::PG_TYPE, o.row_type, 0), DependencyKind::Internal);
    } else {
        list.normal(classes::PG_NAMESPACE, o.namespace);
    }
    list.normal(classes::PG_TYPE, o.of_type);
    o.foreign.iter().for_each(|table| list.normal(classes::PG_FOREIGN_SERVER, table.server));
    o.partition_key.iter().flat_map(|k| &k.columns).for_each(|c| list.normal(classes::PG_OPCLASS, c.opclass));
    for (i, column) in o.columns.iter().enumerate().filter(|(_, c)| !c.dropped) {
        let number = i as i32 + 1;
        // A partitioned table is nothing without the columns of its key.
        let in_key = |k: &std::sync::Arc<PartitionKey>| k.columns.iter().any(|c| i32::from(c.column) == number);
        let sub = if o.partition_key.as_ref().is_some_and(in_key) { 0 } else { number };
        list.of(address(classes::PG_CLASS, o.oid, sub), |list| {
            list.normal(classes::PG_TYPE, column.ty);
            list.normal(classes::PG_COLLATION, column.collation);
        });
        if column.default_oid.is_valid() {
            list.of(address(classes::PG_ATTRDEF, column.default_oid, 0), |list| {
                list.push(address(classes::PG_CLASS, o.oid, number), DependencyKind::Auto);
                if column.generated == 0 {
                    list.normals(&column.default_depends_on);
                }
            });
            // A generated column is nothing without its expression.
            if column.generated != 0 {
                list.of(address(classes::PG_CLASS, o.oid, number), |list| list.normals(&column.default_depends_on));
            }
        }
    }
    let parent_kind = if o.partition_bound.is_some() { DependencyKind::Auto } else { DependencyKind::Normal };
    o.parents.iter().for_each(|p| list.push(address(classes::PG_CLASS, *p, 0), parent_kind));
    if let Some(sequence) = &o.sequence
        && let Some((table, column)) = sequence.owned_by
    {
        let kind = if sequence.identity { DependencyKind::Internal } else { DependencyKind::Auto };
        list.push(address(classes::PG_CLASS, table, i32::from(column)), kind);
    }
    list.normals(&o.depends_on);
}

fn trigger(o: &Trigger, list: &mut List) {
    list.push(address(classes::PG_CLASS, o.table, 0), DependencyKind::Auto);
    list.push(address(classes::PG_CLASS, o.constraint_table, 0), DependencyKind::Auto);
    list.push(address(classes::PG_TRIGGER, o.parent, 0), DependencyKind::Auto);
    list.normal(classes::PG_PROC, o.function);
    o.columns.iter().for_each(|c| list.push(address(classes::PG_CLASS, o.table, i32::from(*c)), DependencyKind::Normal));
    list.normals(&o.depends_on);
    if o.constraint.is_valid() {
        let itself = address(classes::PG_TRIGGER, o.oid, 0);
        list.of(address(classes::PG_CONSTRAINT, o.constraint, 0), |list| list.push(itself, DependencyKind::Internal));
    }
}

fn extended_statistics(o: &ExtendedStatistics, list: &mut List) {
    list.normal(classes::PG_NAMESPACE, o.namespace);
    if o.columns.is_empty() {
        list.push(address(classes::PG_CLASS, o.table, 0), DependencyKind::Auto);
    }
    o.columns.iter().for_each(|c| list.push(address(classes::PG_CLASS, o.table, i32::from(*c)), DependencyKind::Auto));
    for of in &o.depends_on {
        // Columns of its table that an expression reads.
        let own = of.class == classes::PG_CLASS && of.object == o.table;
        list.push(*of, if own { DependencyKind::Auto } else { usual_kind(*of) });
    }
}

fn operator_class(o: &OperatorClass, list: &mut List) {
    list.normal(classes::PG_NAMESPACE, o.namespace);
    list.push(address(classes::PG_OPFAMILY, o.family, 0), DependencyKind::Auto);
    list.normal(classes::PG_TYPE, o.input_type);
    list.normal(classes::PG_TYPE, o.key_type);
}

/// A member that a class needs is a part of the class and goes with it; any other may leave the family.
fn operator_family(o: &OperatorFamily, list: &mut List) {
    list.normal(classes::PG_NAMESPACE, o.namespace);
    let member = |list: &mut List, uses: &[(Oid, Oid)], class: Oid| {
        let kind = if class.is_valid() { DependencyKind::Normal } else { DependencyKind::Auto };
        uses.iter().for_each(|(of, object)| list.push(address(*of, *object, 0), kind));
        match class.is_valid() {
            true => list.push(address(classes::PG_OPCLASS, class, 0), DependencyKind::Internal),
            false => list.push(address(classes::PG_OPFAMILY, o.oid, 0), DependencyKind::Auto),
        }
    };
    for m in &o.operators {
        let uses = [(classes::PG_OPERATOR, m.operator), (classes::PG_OPFAMILY, m.sort_family)];
        list.of(address(classes::PG_AMOP, m.oid, 0), |list| member(list, &uses, m.class));
    }
    for m in &o.functions {
        list.of(address(classes::PG_AMPROC, m.oid, 0), |list| member(list, &[(classes::PG_PROC, m.function)], m.class));
    }
}

fn index_dependencies(o: &Relation, index: &IndexInfo, list: &mut List) {
    o.parents.iter().for_each(|p| list.push(address(classes::PG_CLASS, *p, 0), DependencyKind::Auto));
    if index.constraint.is_valid() {
        let constraint = address(classes::PG_CONSTRAINT, index.constraint, 0);
        list.push(constraint, DependencyKind::Internal);
        // Its own columns are those of the key.
        list.of(constraint, |list| {
            for column in &index.include {
                list.push(address(classes::PG_CLASS, index.table, i32::from(*column)), DependencyKind::Auto);
            }
        });
    } else {
        let columns = index.keys.iter().map(|k| k.column).chain(index.include.iter().copied());
        let mut whole = true;
        for column in columns.filter(|c| *c > 0) {
            whole = false;
            list.push(address(classes::PG_CLASS, index.table, i32::from(column)), DependencyKind::Auto);
        }
        if whole || index.predicate.is_some() {
            list.push(address(classes::PG_CLASS, index.table, 0), DependencyKind::Auto);
        }
    }
    index.keys.iter().for_each(|k| list.normal(classes::PG_COLLATION, k.collation));
    index.keys.iter().for_each(|k| list.normal(classes::PG_OPCLASS, k.opclass));
    for of in &o.depends_on {
        // Columns of its table that an expression or the predicate reads.
        let own = of.class == classes::PG_CLASS && of.object == index.table;
        list.push(*of, if own { DependencyKind::Auto } else { usual_kind(*of) });
    }
}

fn type_(o: &Type, list: &mut List) {
    let is_row_type_of_table = o.type_kind == TypeKind::Composite && o.relation.is_valid();
    let is_array = o.subscript.as_ref() == "array_subscript_handler" && o.element.is_valid();
    if is_array {
        list.push(address(classes::PG_TYPE, o.element, 0), DependencyKind::Internal);
    } else if is_row_type_of_table && o.relation < o.oid {
        // The relation was there first: the type is a part of it, not the other way around.
        list.push(address(classes::PG_CLASS, o.relation, 0), DependencyKind::Internal);
    } else {
        list.normal(classes::PG_NAMESPACE, o.namespace);
    }
    if let Some(domain) = &o.domain {
        list.normal(classes::PG_TYPE, domain.base);
        list.normal(classes::PG_COLLATION, o.collation);
        list.normals(&o.depends_on);
    }
    if let Some(range) = &o.range {
        if o.type_kind == TypeKind::Multirange {
            list.push(address(classes::PG_TYPE, range.range, 0), DependencyKind::Internal);
            return;
        }
        list.normal(classes::PG_TYPE, range.subtype);
        list.normal(classes::PG_COLLATION, range.collation);
        list.normal(classes::PG_OPCLASS, range.opclass);
        list.normals(&o.depends_on);
    }
    if let Some(base) = &o.base {
        base.functions().into_iter().for_each(|f| list.normal(classes::PG_PROC, f));
        list.normal(classes::PG_COLLATION, o.collation);
    }
}

fn constraint(o: &Constraint, list: &mut List) {
    if o.domain.is_valid() {
        list.push(address(classes::PG_TYPE, o.domain, 0), DependencyKind::Auto);
    } else if o.columns.is_empty() {
        list.push(address(classes::PG_CLASS, o.relation, 0), DependencyKind::Auto);
    }
    for column in &o.columns {
        list.push(address(classes::PG_CLASS, o.relation, i32::from(*column)), DependencyKind::Auto);
    }
    if let Some(key) = &o.foreign_key {
        for column in &key.referenced_columns {
            list.push(address(classes::PG_CLASS, key.referenced_table, i32::from(*column)), DependencyKind::Normal);
        }
        list.normal(classes::PG_CLASS, o.index);
    }
    if o.parent.is_valid() {
        list.push(address(classes::PG_CONSTRAINT, o.parent, 0), DependencyKind::Auto);
    }
    list.normals(&o.depends_on);
}
