//! Objects of one kind: the built-in ones, shared by every database of the process, below those that users created.

use std::sync::Arc;

use hashbrown::HashMap;
use melba_types::Oid;

use crate::objects::*;
use crate::radix::RadixMap;

/// An object that has an OID and a name within a scope (a namespace, or a table for triggers, rules and policies).
pub trait Named {
    fn oid(&self) -> Oid;
    /// The scope in which the name is unique (or overloaded), and the name.
    fn key(&self) -> (Oid, &str);
}

macro_rules! named {
    ($($ty:ident, $self:ident, $scope:expr, $name:expr;)*) => {$(
        impl Named for $ty {
            fn oid(&self) -> Oid {
                self.oid
            }
            fn key(&$self) -> (Oid, &str) {
                ($scope, $name)
            }
        }
    )*};
}

named! {
    Namespace, self, Oid::INVALID, &self.name;
    Relation, self, self.namespace, &self.name;
    Type, self, self.namespace, &self.name;
    Function, self, self.namespace, &self.name;
    Operator, self, self.namespace, &self.name;
    OperatorFamily, self, self.namespace, &self.name;
    OperatorClass, self, self.namespace, &self.name;
    Cast, self, self.source, "";
    Constraint, self, self.namespace, &self.name;
    Trigger, self, self.table, &self.name;
    Policy, self, self.table, &self.name;
    RewriteRule, self, self.table, &self.name;
    ExtendedStatistics, self, self.namespace, &self.name;
    EventTrigger, self, Oid::INVALID, &self.name;
    Publication, self, Oid::INVALID, &self.name;
    PublicationMember, self, self.publication, "";
    ForeignDataWrapper, self, Oid::INVALID, &self.name;
    ForeignServer, self, Oid::INVALID, &self.name;
    UserMapping, self, self.server, "";
    Collation, self, self.namespace, &self.name;
    TextSearchDictionary, self, self.namespace, &self.name;
    TextSearchConfig, self, self.namespace, &self.name;
    Extension, self, Oid::INVALID, &self.name;
    PlainObject, self, self.class, &self.name;
    Granted, self, self.class, &self.name;
    DefaultAcl, self, self.role, "";
    Role, self, Oid::INVALID, &self.name;
    Database, self, Oid::INVALID, &self.name;
}

/// The objects of one kind that exist in every database.
#[derive(Debug)]
pub(crate) struct Builtin<T> {
    by_oid: HashMap<Oid, Arc<T>>,
    /// In OID order.
    all: Vec<Arc<T>>,
    by_name: HashMap<u32, Vec<Oid>>,
}

impl<T: Named> Builtin<T> {
    pub(crate) fn new(mut all: Vec<Arc<T>>) -> Builtin<T> {
        all.sort_by_key(|o| o.oid());
        let mut by_name: HashMap<u32, Vec<Oid>> = HashMap::with_capacity(all.len());
        for object in &all {
            by_name.entry(name_hash(object.key())).or_default().push(object.oid());
        }
        Builtin { by_oid: all.iter().map(|o| (o.oid(), o.clone())).collect(), all, by_name }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.all.iter()
    }

    pub(crate) fn get(&self, oid: Oid) -> Option<&Arc<T>> {
        self.by_oid.get(&oid)
    }
}

/// Built-in objects and, over them, those users created, changed (`Some`) or dropped (`None`).
#[derive(Debug)]
pub(crate) struct Layered<T: 'static> {
    builtin: &'static Builtin<T>,
    user: RadixMap<Option<Arc<T>>>,
    user_names: RadixMap<Vec<Oid>>,
    /// OIDs of users' objects by the scopes of their names: the members of schemas.
    user_scopes: RadixMap<RadixMap<()>>,
}

impl<T> Clone for Layered<T> {
    fn clone(&self) -> Self {
        Layered {
            builtin: self.builtin,
            user: self.user.clone(),
            user_names: self.user_names.clone(),
            user_scopes: self.user_scopes.clone(),
        }
    }
}

impl<T: Named> Layered<T> {
    pub(crate) fn new(builtin: &'static Builtin<T>) -> Layered<T> {
        Layered { builtin, user: RadixMap::default(), user_names: RadixMap::default(), user_scopes: RadixMap::default() }
    }

    pub(crate) fn get(&self, oid: Oid) -> Option<&Arc<T>> {
        match self.user.get(oid.0) {
            Some(object) => object.as_ref(),
            None => self.builtin.get(oid),
        }
    }

    /// The objects with a name, built-in ones first, each group in the order they were made.
    pub(crate) fn named<'a>(&'a self, scope: Oid, name: &'a str) -> impl Iterator<Item = &'a Arc<T>> {
        let hash = name_hash((scope, name));
        let builtin = self.builtin.by_name.get(&hash).map_or(&[][..], |v| v);
        let user = self.user_names.get(hash).map_or(&[][..], |v| v);
        let builtin = builtin.iter().filter(|oid| self.user.get(oid.0).is_none()).filter_map(|oid| self.builtin.get(*oid));
        let user = user.iter().filter_map(|oid| self.user.get(oid.0)?.as_ref());
        builtin.chain(user).filter(move |o| o.key() == (scope, name))
    }

    /// How many users' objects there are where most of them are.
    pub(crate) fn largest_scope(&self) -> usize {
        self.user_scopes.iter().map(|(_, members)| members.len()).max().unwrap_or(0)
    }

    /// About how many objects there are: built-in ones that users changed may count twice.
    pub(crate) fn len_estimate(&self) -> usize {
        self.builtin.all.len() + self.user.len()
    }

    /// All objects in OID order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        let builtin = self.builtin.iter().filter_map(|o| match self.user.get(o.oid().0) {
            Some(changed) => changed.as_ref(),
            None => Some(o),
        });
        let user = self.user.iter().filter(|(oid, _)| self.builtin.get(Oid(*oid)).is_none()).filter_map(|(_, o)| o.as_ref());
        builtin.chain(user)
    }

    /// Objects that users created or changed, in OID order.
    pub(crate) fn user_objects(&self) -> impl Iterator<Item = &Arc<T>> {
        self.user.iter().filter_map(|(_, o)| o.as_ref())
    }

    /// The objects within a scope (a namespace, ...), built-in ones first, each group in OID order.
    pub(crate) fn within(&self, scope: Oid) -> impl Iterator<Item = &Arc<T>> {
        let builtin = self.builtin.iter().filter(move |o| o.key().0 == scope && self.user.get(o.oid().0).is_none());
        let user = self.user_scopes.get(scope.0).into_iter().flat_map(|members| members.iter());
        builtin.chain(user.filter_map(|(oid, ())| self.user.get(oid)?.as_ref()))
    }

    pub(crate) fn is_builtin(&self, oid: Oid) -> bool {
        self.builtin.get(oid).is_some()
    }

    /// Puts an object in place of the one with its OID, which it returns.
    pub(crate) fn put(&mut self, object: Arc<T>) -> Option<Arc<T>> {
        let oid = object.oid();
        let old = self.get(oid).cloned();
        self.forget_name(oid);
        self.user_names.entry(name_hash(object.key()), Vec::new).push(oid);
        self.user_scopes.entry(object.key().0.0, RadixMap::default).insert(oid.0, ());
        self.user.insert(oid.0, Some(object));
        old
    }

    pub(crate) fn remove(&mut self, oid: Oid) -> Option<Arc<T>> {
        let old = self.get(oid).cloned()?;
        self.forget_name(oid);
        if self.is_builtin(oid) {
            self.user.insert(oid.0, None);
        } else {
            self.user.remove(oid.0);
        }
        Some(old)
    }

    fn forget_name(&mut self, oid: Oid) {
        let Some(Some(old)) = self.user.get(oid.0) else { return };
        let hash = name_hash(old.key());
        let names = self.user_names.entry(hash, Vec::new);
        names.retain(|o| *o != oid);
        if names.is_empty() {
            self.user_names.remove(hash);
        }
        let scope = old.key().0.0;
        let members = self.user_scopes.entry(scope, RadixMap::default);
        members.remove(oid.0);
        if members.is_empty() {
            self.user_scopes.remove(scope);
        }
    }
}

/// FNV-1a over the scope and the name.
fn name_hash((scope, name): (Oid, &str)) -> u32 {
    let bytes = scope.0.to_le_bytes();
    bytes.iter().chain(name.as_bytes()).fold(0x811c_9dc5, |h, b| (h ^ u32::from(*b)).wrapping_mul(0x0100_0193))
}
