//! The dependents of dropped objects: finds everything that depends on them, and reports it as PostgreSQL does.
//!
//! Dependents are found depth first, newest first, and removed before the objects on which they depend. If a part (internal
//! dependency) is reached by a path other than from its whole, the whole is dropped too. A part of a dropped object (an automatic
//! or internal dependency on it) is not reported, however else it was found.
//!
//! DROP locks every object before it trusts the list of its dependents: a statement that makes a dependent locks it, too, when it has
//! run (`transaction::references`).

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use melba_catalog::foreign_keys::is_referenced_part;
use melba_catalog::{
    Catalog, Constraint, ConstraintKind, DependencyKind, ObjectAddress, RelationKind, TypeKind, classes, is_range_constructor,
};
use melba_definition::context::{Ddl, Dropped};
use melba_definition::describe::describe;
use melba_engine::RelationLockMode;
use melba_types::{DbError, Oid, Result, SqlState, err};

use crate::remove::remove_object;
use crate::table::column_uses::generated_from;

/// Most dependents that a message lists.
const LISTED_MAX: usize = 100;

/// Objects below are permanently built in.
pub const FIRST_UNPINNED_OID: u32 = 12000;

/// How an object was found; all ways are noted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The statement names it.
    Original = 1,
    Normal = 2,
    Auto = 4,
    Internal = 8,
    /// From a part of it.
    Reverse = 16,
}

struct FoundDependents {
    address: ObjectAddress,
    /// Of `Way`s.
    ways: u8,
    /// The object from which it was first found.
    dependee: Option<ObjectAddress>,
}

impl FoundDependents {
    fn is(&self, way: Way) -> bool {
        self.ways & way as u8 != 0
    }
}

/// Objects to be dropped.
pub struct Going<'c> {
    catalog: &'c Catalog,
    roots: &'c [ObjectAddress],
    /// Found objects are locked, if others may use them; these were so before.
    locked: Option<&'c mut HashSet<ObjectAddress>>,
    /// Objects were found that were not locked before: others may have begun to depend on them.
    has_locked: bool,
    found: Vec<FoundDependents>,
    places: HashMap<ObjectAddress, usize>,
    /// Places in `found`, dependents first.
    order: Vec<usize>,
}

impl<'c> Going<'c> {
    pub fn new(catalog: &'c Catalog, roots: &'c [ObjectAddress]) -> Going<'c> {
        let (locked, has_locked) = (None, false);
        Going { catalog, roots, locked, has_locked, found: Vec::new(), places: HashMap::new(), order: Vec::new() }
    }

    /// Dependents first.
    pub fn in_order(&self) -> impl Iterator<Item = ObjectAddress> {
        self.order.iter().map(|at| self.found[*at].address)
    }

    /// The same with the ways in which they were found.
    fn dropped(&self) -> Vec<Dropped> {
        let mut all = Vec::with_capacity(self.order.len());
        for found in self.order.iter().map(|at| &self.found[*at]) {
            let (address, original) = (found.address, found.is(Way::Original));
            // The rule of a view is a part of it, of which the catalog has no more than the OID.
            if let Some(view) =
                self.catalog.relation(address.object).filter(|r| address.class == classes::PG_CLASS && r.rule.is_valid())
            {
                let rule = ObjectAddress { class: classes::PG_REWRITE, object: view.rule, sub: 0 };
                all.push(Dropped { address: rule, original: false, normal: true });
            }
            let normal = found.is(Way::Normal) || found.is(Way::Reverse) || !original && self.uses_its_whole(address);
            all.push(Dropped { address, original, normal });
        }
        all
    }

    /// Whether PostgreSQL has a part of a relation depend on columns, as any expression does, beside that it is a part.
    fn uses_its_whole(&self, part: ObjectAddress) -> bool {
        match part.class {
            classes::PG_REWRITE => true,
            classes::PG_CONSTRAINT => {
                let of_table =
                    |c: &Arc<Constraint>| c.kind == ConstraintKind::Check && c.relation.is_valid() && !c.columns.is_empty();
                self.catalog.constraint(part.object).is_some_and(of_table)
            }
            classes::PG_ATTRDEF => {
                self.catalog.column_with_default(part.object).is_some_and(|(table, at)| table.columns[at].generated != 0)
            }
            _ => false,
        }
    }

    fn find(&mut self, ddl: &Ddl<'_>, address: ObjectAddress, way: Way, dependee: Option<ObjectAddress>) -> Result<()> {
        let whole = ObjectAddress { sub: 0, ..address };
        if let Some(at) = self.places.get(&address) {
            self.found[*at].ways |= way as u8;
            return Ok(());
        }
        if self.places.contains_key(&whole) {
            return Ok(());
        }
        if let Some(owner) = owner_of_part(self.catalog, address)
            && !self.has(owner)
        {
            if dependee.is_none() {
                // It is dropped with the whole, which is named too.
                if self.roots.contains(&owner) || self.roots.contains(&ObjectAddress { sub: 0, ..owner }) {
                    return Ok(());
                }
                let (part, owner) = (describe(ddl, address), describe(ddl, owner));
                return Err(err!(DEPENDENT_OBJECTS_STILL_EXIST, "cannot drop {part} because {owner} requires it")
                    .hint(format!("You can drop {owner} instead.")));
            }
            self.find(ddl, owner, Way::Reverse, dependee)?;
            if let Some(at) = self.places.get(&address) {
                self.found[*at].ways |= way as u8;
                return Ok(());
            }
        }
        if let Some(locked) = &mut self.locked
            && locked.insert(address)
        {
            lock_dropped(ddl, self.catalog, address)?;
            self.has_locked = true;
        }
        let place = self.found.len();
        self.found.push(FoundDependents { address, ways: way as u8, dependee });
        self.places.insert(address, place);
        let of_it = |d: &&melba_catalog::Dependency| address.sub == 0 || d.referenced.sub == address.sub;
        let mut dependents: Vec<_> = self.catalog.dependents(address).filter(of_it).copied().collect();
        dependents.sort_by_key(|d| (std::cmp::Reverse(d.dependent.object), d.dependent.class, d.dependent.sub));
        for column in computed_from(ddl, address)? {
            self.find(ddl, column, Way::Normal, Some(address))?;
        }
        for dependency in dependents {
            let way = match dependency.kind {
                DependencyKind::Normal => Way::Normal,
                DependencyKind::Auto | DependencyKind::AutoExtension => Way::Auto,
                DependencyKind::Internal | DependencyKind::Extension => Way::Internal,
            };
            self.find(ddl, dependency.dependent, way, Some(address))?;
        }
        self.order.push(place);
        Ok(())
    }

    fn has(&self, address: ObjectAddress) -> bool {
        self.places.contains_key(&address) || self.places.contains_key(&ObjectAddress { sub: 0, ..address })
    }

    /// Objects to report, which were not named and are no part of a dropped one, with the object each depends on; oldest first.
    fn told(&self) -> Vec<(ObjectAddress, ObjectAddress)> {
        let is_told = |f: &&FoundDependents| {
            let with_whole = f.address.sub != 0 && self.places.contains_key(&ObjectAddress { sub: 0, ..f.address });
            !(f.is(Way::Original) || f.is(Way::Auto) || f.is(Way::Internal) || with_whole)
        };
        let found = self.order.iter().rev().map(|at| &self.found[*at]).filter(is_told);
        found.filter_map(|f| Some((f.address, f.dependee?))).collect()
    }
}

/// The whole that an object is a part of.
fn owner_of_part(catalog: &Catalog, address: ObjectAddress) -> Option<ObjectAddress> {
    let at = |class, object, sub| ObjectAddress { class, object, sub };
    if let Some(extension) = catalog.extension_of(address) {
        return Some(at(classes::PG_EXTENSION, extension.oid, 0));
    }
    match address.class {
        classes::PG_CLASS if address.sub == 0 => {
            let relation = catalog.relation(address.object)?;
            if let Some(index) = &relation.index {
                return index.constraint.is_valid().then(|| at(classes::PG_CONSTRAINT, index.constraint, 0));
            }
            if relation.kind == RelationKind::Composite {
                return Some(at(classes::PG_TYPE, relation.row_type, 0));
            }
            let sequence = relation.sequence.as_ref().filter(|s| s.identity)?;
            sequence.owned_by.map(|(table, column)| at(classes::PG_CLASS, table, i32::from(column)))
        }
        classes::PG_TYPE => {
            let ty = catalog.type_(address.object)?;
            if ty.type_kind == TypeKind::Multirange {
                return ty.range.as_ref().map(|r| at(classes::PG_TYPE, r.range, 0));
            }
            if ty.category == b'A' && ty.element.is_valid() {
                return Some(at(classes::PG_TYPE, ty.element, 0));
            }
            let of_table = catalog.relation(ty.relation).filter(|r| r.kind != RelationKind::Composite);
            of_table.map(|r| at(classes::PG_CLASS, r.oid, 0))
        }
        classes::PG_PROC => {
            let f = catalog.function(address.object).filter(|f| is_range_constructor(f))?;
            Some(at(classes::PG_TYPE, f.return_type, 0))
        }
        classes::PG_CONSTRAINT => {
            let constraint = catalog.constraint(address.object)?;
            if is_referenced_part(catalog, constraint) {
                return Some(at(classes::PG_CONSTRAINT, constraint.parent, 0));
            }
            if constraint.kind != ConstraintKind::Trigger {
                return None;
            }
            let triggers = catalog.relation(constraint.relation)?.triggers.iter().filter_map(|t| catalog.trigger(*t));
            triggers.into_iter().find(|t| t.constraint == constraint.oid).map(|t| at(classes::PG_TRIGGER, t.oid, 0))
        }
        classes::PG_AMOP | classes::PG_AMPROC => {
            let family = catalog.family_of_member(address.object)?;
            let operator = family.operators.iter().find(|m| m.oid == address.object).map(|m| m.class);
            let function = || family.functions.iter().find(|m| m.oid == address.object).map(|m| m.class);
            let class = operator.or_else(function).filter(|class| class.is_valid())?;
            Some(at(classes::PG_OPCLASS, class, 0))
        }
        classes::PG_CAST => {
            let cast = catalog.cast_by_oid(address.object).filter(|c| c.part_of_type)?;
            Some(at(classes::PG_PROC, cast.function, 0))
        }
        _ => None,
    }
}

/// Drops objects and, with `cascade`, all that depends on them.
///
/// # Errors
/// 2BP01 when other objects depend on them, when they are parts of others, or built in.
pub fn drop_addresses(ddl: &Ddl<'_>, roots: &[ObjectAddress], cascade: bool) -> Result<()> {
    for root in roots {
        let is_public = root.class == classes::PG_NAMESPACE && root.object == classes::PUBLIC;
        if root.object < Oid(FIRST_UNPINNED_OID) && !is_public {
            let what = describe(ddl, *root);
            return Err(err!(DEPENDENT_OBJECTS_STILL_EXIST, "cannot drop {what} because it is required by the database system"));
        }
    }
    if roots.iter().any(|r| r.object.0 < classes::FIRST_USER_OID && r.object != classes::PUBLIC) {
        return Err(DbError::unsupported("dropping a built-in object"));
    }
    let mut locked = HashSet::new();
    loop {
        let catalog = ddl.catalog();
        let mut going = Going { locked: Some(&mut locked), ..Going::new(&catalog, roots) };
        roots.iter().try_for_each(|root| going.find(ddl, *root, Way::Original, None))?;
        if going.has_locked && !Arc::ptr_eq(&catalog, &ddl.catalog()) {
            continue;
        }
        tell(ddl, &going.told(), roots, cascade)?;
        ddl.dropping(&going.dropped());
        return going.in_order().try_for_each(|address| remove_object(ddl, address));
    }
}

/// Keeps all others from using an object, and what they do with it already has ended. A part of a relation is locked with it.
pub fn lock_dropped(ddl: &Ddl<'_>, catalog: &Catalog, address: ObjectAddress) -> Result<()> {
    if address.object.0 < classes::FIRST_USER_OID && address.object != classes::PUBLIC {
        return Ok(());
    }
    let oid = address.object;
    let relation = match address.class {
        classes::PG_CLASS => catalog.relation(oid).map(|r| r.oid),
        classes::PG_CONSTRAINT => catalog.constraint(oid).map(|c| c.relation).filter(|r| r.is_valid()),
        classes::PG_TRIGGER => catalog.trigger(oid).map(|t| t.table),
        classes::PG_POLICY => catalog.policy(oid).map(|p| p.table),
        classes::PG_REWRITE => catalog.rule(oid).map(|r| r.table),
        classes::PG_ATTRDEF => catalog.relation_of_part(oid).map(|r| r.oid),
        // Their family is locked when they leave it.
        classes::PG_AMOP | classes::PG_AMPROC => return Ok(()),
        _ => None,
    };
    match relation {
        Some(relation) => ddl.lock_relation(relation, RelationLockMode::AccessExclusive),
        None => ddl.lock_object_exclusively(ddl.tx().database, address.class, oid),
    }
}

/// Drops objects and everything that depends on them without a word.
pub fn drop_quietly(ddl: &Ddl<'_>, roots: &[ObjectAddress]) -> Result<()> {
    let catalog = ddl.catalog();
    let mut going = Going::new(&catalog, roots);
    roots.iter().try_for_each(|root| going.find(ddl, *root, Way::Original, None))?;
    going.in_order().try_for_each(|address| remove_object(ddl, address))
}

/// Drops everything in a schema, and what depends on it, without a word. The schema stays.
pub fn drop_contents(ddl: &Ddl<'_>, schema: Oid) -> Result<()> {
    let catalog = ddl.catalog();
    let roots = [ObjectAddress { class: classes::PG_NAMESPACE, object: schema, sub: 0 }];
    let mut going = Going::new(&catalog, &roots);
    going.find(ddl, roots[0], Way::Original, None)?;
    going.in_order().filter(|address| *address != roots[0]).try_for_each(|address| remove_object(ddl, address))
}

/// The generated columns that are computed from a column.
fn computed_from(ddl: &Ddl<'_>, column: ObjectAddress) -> Result<Vec<ObjectAddress>> {
    let catalog = ddl.catalog();
    match catalog.relation(column.object) {
        Some(relation) if column.class == classes::PG_CLASS && column.sub > 0 => {
            let places = generated_from(ddl, relation, column.sub as usize - 1)?;
            Ok(places.into_iter().map(|place| ObjectAddress { sub: place as i32 + 1, ..column }).collect())
        }
        _ => Ok(Vec::new()),
    }
}

/// Refuses to drop objects on which others depend, or with CASCADE reports the others that are dropped.
fn tell(ddl: &Ddl<'_>, told: &[(ObjectAddress, ObjectAddress)], roots: &[ObjectAddress], cascade: bool) -> Result<()> {
    if told.is_empty() {
        return Ok(());
    }
    let listed = told.iter().take(LISTED_MAX);
    if !cascade {
        let lines = listed.map(|(d, on)| format!("{} depends on {}", describe(ddl, *d), describe(ddl, *on)));
        let error = match roots {
            [one] => {
                let what = describe(ddl, *one);
                err!(DEPENDENT_OBJECTS_STILL_EXIST, "cannot drop {what} because other objects depend on it")
            }
            _ => err!(DEPENDENT_OBJECTS_STILL_EXIST, "cannot drop desired object(s) because other objects depend on them"),
        };
        return Err(error
            .detail(with_rest(lines.collect(), told.len()))
            .hint("Use DROP ... CASCADE to drop the dependent objects too."));
    }
    let lines: Vec<String> = listed.map(|(d, _)| format!("drop cascades to {}", describe(ddl, *d))).collect();
    let notice = match &lines[..] {
        [one] => DbError::new(SqlState::SUCCESSFUL_COMPLETION, one.clone()),
        _ => DbError::new(SqlState::SUCCESSFUL_COMPLETION, format!("drop cascades to {} other objects", told.len()))
            .detail(with_rest(lines, told.len())),
    };
    ddl.session().notice(notice.severity(melba_types::Severity::Notice));
    Ok(())
}

fn with_rest(lines: Vec<String>, all: usize) -> String {
    let rest = all - lines.len();
    let mut out = lines.join("\n");
    if rest > 0 {
        let objects = if rest == 1 { "object" } else { "objects" };
        out.push_str(&format!("\nand {rest} other {objects} (see server log for list)"));
    }
    out
}
