//! Index access methods: operator families with their operators and support functions, and operator classes.
//!
//! Those that are built in, and those of extensions, are tables of the process. Users' are objects of the catalog, which has
//! all of them in one `AccessMethods`.

use std::sync::Arc;

use hashbrown::HashMap;
use melba_types::Oid;

use crate::classes::{FIRST_EXTENSION_OID, FIRST_USER_OID};

/// pg_opfamily with its rows of pg_amop and pg_amproc.
#[derive(Clone, Debug)]
pub struct OperatorFamily {
    pub oid: Oid,
    pub name: Arc<str>,
    /// An extension's has the schema and owner of the extension.
    pub namespace: Oid,
    pub owner: Oid,
    pub method: Oid,
    pub operators: Vec<FamilyOperator>,
    pub functions: Vec<FamilyFunction>,
}

impl OperatorFamily {
    /// The OIDs of its rows of pg_amop and pg_amproc.
    pub fn member_oids(&self) -> impl Iterator<Item = Oid> {
        self.operators.iter().map(|o| o.oid).chain(self.functions.iter().map(|f| f.oid))
    }
}

/// A row of pg_amop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyOperator {
    pub oid: Oid,
    pub left: Oid,
    pub right: Oid,
    /// B-tree: 1 `<`, 2 `<=`, 3 `=`, 4 `>=`, 5 `>`; hash: 1 `=`.
    pub strategy: i16,
    pub operator: Oid,
    /// Whether it is an ordering operator (`ORDER BY x <-> y`) rather than a search operator.
    pub ordering: bool,
    /// The family that orders an ordering operator's results; else 0.
    pub sort_family: Oid,
    /// The class that is nothing without it; 0: it may leave the family.
    pub class: Oid,
}

/// A row of pg_amproc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyFunction {
    pub oid: Oid,
    pub left: Oid,
    pub right: Oid,
    /// B-tree: 1 compares; hash: 1 hashes, 2 hashes with a seed.
    pub number: i16,
    pub function: Oid,
    /// The class that is nothing without it; 0: it may leave the family.
    pub class: Oid,
}

/// pg_opclass.
#[derive(Clone, Debug)]
pub struct OperatorClass {
    pub oid: Oid,
    pub name: Arc<str>,
    /// An extension's has the schema and owner of the extension.
    pub namespace: Oid,
    pub owner: Oid,
    pub method: Oid,
    pub family: Oid,
    pub input_type: Oid,
    pub is_default: bool,
    /// Type stored in the index when it is not `input_type`, else 0.
    pub key_type: Oid,
}

/// An operator's place in an operator family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorFamilyMember {
    pub family: Oid,
    pub method: Oid,
    pub left: Oid,
    pub right: Oid,
    pub strategy: i16,
    pub operator: Oid,
    /// An ordering operator rather than a search operator.
    pub ordering: bool,
}

/// Whether users created a family or class.
pub(crate) fn is_of_users(oid: Oid) -> bool {
    (FIRST_USER_OID..FIRST_EXTENSION_OID).contains(&oid.0)
}

/// The operator families and classes of all access methods.
#[derive(Clone, Debug, Default)]
pub struct AccessMethods {
    methods: Vec<(Oid, &'static str)>,
    families: HashMap<Oid, Arc<OperatorFamily>>,
    classes: HashMap<Oid, Arc<OperatorClass>>,
    /// By method and input type.
    defaults: HashMap<(Oid, Oid), Oid>,
    members_of_operator: HashMap<Oid, Vec<OperatorFamilyMember>>,
    operators: HashMap<(Oid, Oid, Oid, i16), Oid>,
    functions: HashMap<(Oid, Oid, Oid, i16), Oid>,
    /// How many classes users created.
    user_classes: usize,
}

impl AccessMethods {
    pub(crate) fn new(methods: Vec<(Oid, &'static str)>) -> AccessMethods {
        AccessMethods { methods, ..AccessMethods::default() }
    }

    pub(crate) fn add_family(&mut self, family: Arc<OperatorFamily>) {
        for o in &family.operators {
            let member = OperatorFamilyMember {
                family: family.oid,
                method: family.method,
                left: o.left,
                right: o.right,
                strategy: o.strategy,
                operator: o.operator,
                ordering: o.ordering,
            };
            self.members_of_operator.entry(o.operator).or_default().push(member);
            self.operators.insert((family.oid, o.left, o.right, o.strategy), o.operator);
        }
        for f in &family.functions {
            self.functions.insert((family.oid, f.left, f.right, f.number), f.function);
        }
        self.families.insert(family.oid, family);
    }

    pub(crate) fn remove_family(&mut self, oid: Oid) {
        let Some(family) = self.families.remove(&oid) else { return };
        for o in &family.operators {
            if let Some(members) = self.members_of_operator.get_mut(&o.operator) {
                members.retain(|m| m.family != oid);
            }
            self.operators.remove(&(oid, o.left, o.right, o.strategy));
        }
        for f in &family.functions {
            self.functions.remove(&(oid, f.left, f.right, f.number));
        }
    }

    pub(crate) fn add_class(&mut self, class: Arc<OperatorClass>) {
        if class.is_default {
            self.defaults.insert((class.method, class.input_type), class.oid);
        }
        self.user_classes += usize::from(is_of_users(class.oid));
        self.classes.insert(class.oid, class);
    }

    pub(crate) fn remove_class(&mut self, oid: Oid) {
        let Some(class) = self.classes.remove(&oid) else { return };
        self.user_classes -= usize::from(is_of_users(oid));
        if class.is_default {
            let place = (class.method, class.input_type);
            self.defaults.remove(&place);
            // That of an extension, which may be installed later, stood behind it.
            let other = self.classes.values().find(|c| c.is_default && (c.method, c.input_type) == place);
            if let Some(other) = other.map(|c| c.oid) {
                self.defaults.insert(place, other);
            }
        }
    }

    pub fn method_by_name(&self, name: &str) -> Option<Oid> {
        self.methods.iter().find(|(_, n)| *n == name).map(|(oid, _)| *oid)
    }

    pub fn method_name(&self, oid: Oid) -> Option<&'static str> {
        self.methods.iter().find(|(o, _)| *o == oid).map(|(_, n)| *n)
    }

    pub fn family(&self, oid: Oid) -> Option<&Arc<OperatorFamily>> {
        self.families.get(&oid)
    }

    /// In no order; also those of extensions that are not installed.
    pub(crate) fn families(&self) -> impl Iterator<Item = &Arc<OperatorFamily>> {
        self.families.values()
    }

    pub fn class(&self, oid: Oid) -> Option<&Arc<OperatorClass>> {
        self.classes.get(&oid)
    }

    /// In no order; also those of extensions that are not installed.
    pub(crate) fn classes(&self) -> impl Iterator<Item = &Arc<OperatorClass>> {
        self.classes.values()
    }

    /// Whether users created any class.
    pub(crate) fn has_user_classes(&self) -> bool {
        self.user_classes > 0
    }

    /// The default class of a method for exactly this type.
    pub fn default_class(&self, method: Oid, input_type: Oid) -> Option<&Arc<OperatorClass>> {
        self.classes.get(self.defaults.get(&(method, input_type))?)
    }

    /// Where an operator stands in the families of all methods; see `Catalog::operator_members`.
    pub(crate) fn members(&self, operator: Oid) -> &[OperatorFamilyMember] {
        self.members_of_operator.get(&operator).map_or(&[], |v| v)
    }

    /// The operator of a family with a strategy number for two operand types.
    pub fn operator(&self, family: Oid, left: Oid, right: Oid, strategy: i16) -> Option<Oid> {
        self.operators.get(&(family, left, right, strategy)).copied()
    }

    /// The support function of a family (B-tree: 1 compares; hash: 1 hashes, 2 hashes with a seed).
    pub fn function(&self, family: Oid, left: Oid, right: Oid, number: i16) -> Option<Oid> {
        self.functions.get(&(family, left, right, number)).copied()
    }

    /// A support function of a class for its own type.
    pub fn class_function(&self, class: &OperatorClass, number: i16) -> Option<Oid> {
        self.function(class.family, class.input_type, class.input_type, number)
    }
}
