//! The orders of operator classes that users created.
//!
//! Values are kept and compared as keys of bytes, whose orders are those of built-in types. A class of users has such an order when
//! its comparison function and its operators are the functions of a built-in class under other names (functions of language
//! internal, of the same source). Any other order is that of a function: no key has it.

use std::sync::Arc;

use melba_types::{Oid, oids};

use crate::builtin::BUILTINS;
use crate::classes::{BTREE, HASH, INTERNAL_LANGUAGE};
use crate::objects::*;
use crate::operator_families::{OperatorFamilyMember, is_of_users};
use crate::snapshot::Catalog;

/// The order, or else the equality, of a type.
#[derive(Clone, Debug)]
pub enum TypeOrder {
    /// The one that a type of its kind has.
    Own,
    /// A class of users gives it the one of a built-in type, which may be polymorphic.
    Of(Oid),
    /// A class of users gives it one that no built-in type has.
    Function(Arc<OperatorClass>),
}

impl Catalog {
    /// The order that a type's default class of users gives it.
    pub fn type_order(&self, ty: Oid) -> TypeOrder {
        if !self.access_methods().has_user_classes() {
            return TypeOrder::Own;
        }
        let ty = self.base_type(ty);
        let class = [BTREE, HASH].iter().find_map(|method| self.access_methods().default_class(*method, ty));
        match class.filter(|class| is_of_users(class.oid)) {
            None => TypeOrder::Own,
            Some(class) => match self.built_in_order(class) {
                Some(other) => TypeOrder::Of(other),
                None => TypeOrder::Function(class.clone()),
            },
        }
    }

    /// The class of users whose function orders values of a type, or parts of them.
    pub fn ordering_function(&self, ty: Oid) -> Option<Arc<OperatorClass>> {
        if !self.access_methods().has_user_classes() {
            return None;
        }
        let ty = self.base_type(ty);
        if let TypeOrder::Function(class) = self.type_order(ty) {
            return Some(class);
        }
        if let Some(element) = self.array_element(ty) {
            return self.ordering_function(element);
        }
        let entry = self.type_(ty)?;
        if let Some(range) = &entry.range {
            return self.ordering_function(range.subtype);
        }
        let relation = self.relation(entry.relation)?;
        relation.columns.iter().filter(|c| !c.dropped).find_map(|c| self.ordering_function(c.ty))
    }

    /// The built-in type whose default class has the order of a class, of a hash class the equality.
    pub fn built_in_order(&self, class: &OperatorClass) -> Option<Oid> {
        let strategies = match class.method {
            BTREE => 1..=5,
            HASH => 1..=1,
            _ => return None,
        };
        let is_like = |other: &OperatorClass| {
            let alike = |strategy| match self.operator_source(class, strategy) {
                // An operator that a class lacks is never used.
                None => class.method == BTREE && self.class_operator(class, strategy).is_none(),
                own => own == self.operator_source(other, strategy),
            };
            let compare = |class: &OperatorClass| self.source(self.access_methods().class_function(class, 1)?);
            let compares_alike = || compare(class).is_some_and(|own| compare(other) == Some(own));
            (class.method == HASH || compares_alike()) && strategies.clone().all(alike)
        };
        let mut built_in = BUILTINS.access.classes().filter(|c| c.is_default && c.method == class.method && !is_of_users(c.oid));
        built_in
            .find(|c| self.has_class(c) && self.is_held_alike(class.input_type, c.input_type) && is_like(c))
            .map(|c| c.input_type)
    }

    /// Whether values of a type are held as those of another one, which may be polymorphic.
    fn is_held_alike(&self, ty: Oid, other: Oid) -> bool {
        let is_polymorphic = [oids::ANYARRAY, oids::ANYENUM, oids::ANYRANGE, oids::ANYMULTIRANGE, oids::RECORD].contains(&other);
        match is_polymorphic {
            true => self.is_binary_coercible(ty, other),
            false => self.kind_of(self.base_type(ty)).is_some_and(|kind| self.kind_of(other) == Some(kind)),
        }
    }

    fn class_operator(&self, class: &OperatorClass, strategy: i16) -> Option<Oid> {
        self.access_methods().operator(class.family, class.input_type, class.input_type, strategy)
    }

    fn operator_source(&self, class: &OperatorClass, strategy: i16) -> Option<&str> {
        self.source(self.operator(self.class_operator(class, strategy)?)?.function)
    }

    /// The built-in function that a function is.
    fn source(&self, function: Oid) -> Option<&str> {
        self.function(function).filter(|f| f.language == INTERNAL_LANGUAGE).map(|f| &*f.source)
    }

    /// Where an operator stands in families whose orders keys have.
    pub fn operator_members(&self, operator: Oid) -> impl Iterator<Item = &OperatorFamilyMember> {
        self.access_methods().members(operator).iter().filter(|m| !is_of_users(m.family) || self.is_of_built_in_order(m))
    }

    fn is_of_built_in_order(&self, member: &OperatorFamilyMember) -> bool {
        let is_its_class = |c: &OperatorClass| c.family == member.family && c.input_type == member.left;
        let mut classes = self.operator_classes.iter().filter(|c| is_its_class(c));
        member.left == member.right && classes.any(|c| self.built_in_order(c).is_some())
    }

    /// The strategy of an operator in a family whose order keys have, when it is a search operator of it.
    pub fn operator_strategy(&self, operator: Oid, family: Oid) -> Option<i16> {
        self.operator_members(operator).find(|m| m.family == family && !m.ordering).map(|m| m.strategy)
    }

    /// Whether keys of a type have the order of a class, or the equality of a hash class.
    pub fn keys_have_order(&self, class: &OperatorClass, ty: Oid) -> bool {
        let ty = self.base_type(ty);
        match is_of_users(class.oid) {
            // A class of users may have given the type, or its elements, another order.
            false => matches!(self.type_order(ty), TypeOrder::Own) && self.ordering_function(ty).is_none(),
            true => match (self.built_in_order(class), self.type_order(ty)) {
                (Some(own), TypeOrder::Of(other)) => own == other,
                (Some(own), TypeOrder::Own) => own == ty || self.is_binary_coercible(ty, own),
                _ => false,
            },
        }
    }

    /// Whether an operator is in the B-tree family of users whose order no key has.
    pub fn orders_by_function(&self, operator: Oid) -> bool {
        let members = self.access_methods().members(operator);
        members.iter().any(|m| m.method == BTREE && !m.ordering && is_of_users(m.family))
    }

    /// In the order of OIDs.
    pub fn user_operator_classes(&self) -> impl Iterator<Item = &Arc<OperatorClass>> {
        self.operator_classes.iter()
    }

    /// The family of users that an operator or function is a member of, by the OID of its row in pg_amop or pg_amproc.
    pub fn family_of_member(&self, member: Oid) -> Option<&Arc<OperatorFamily>> {
        self.operator_families.iter().find(|f| f.member_oids().any(|oid| oid == member))
    }
}
