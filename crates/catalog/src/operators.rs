//! Operators, casts and operator classes: the planner's and executor's questions about types, their ordering and equality, coercions
//! without a function.
//!
//! Values are kept and compared as keys of bytes, whose orders are those of built-in types. A class of users has such an order when
//! its comparison function and its operators are the functions of a built-in class under other names (functions of language
//! internal, of the same source). Any other order is that of a function: no key has it. Queries order values by the function
//! (`fmgr::value_order`); indexes cannot.

use std::sync::Arc;

use melba_types::key::KeyType;
use melba_types::{Oid, oids};

use crate::builtin::BUILTINS;
use crate::classes::{
    BTREE, C_COLLATION, DEFAULT_COLLATION, FIRST_EXTENSION_OID, HASH, INTERNAL_LANGUAGE, PG_CATALOG, PG_OPCLASS, PG_OPFAMILY,
};
use crate::objects::*;
use crate::operator_families::{AccessMethods, OperatorFamilyMember, is_of_users};
use crate::snapshot::Catalog;

/// The operators that a type is sorted, grouped and hashed by (its default B-tree and hash classes). 0: has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TypeOperators {
    pub equal: Oid,
    pub less: Oid,
    pub greater: Oid,
    /// B-tree support function 1.
    pub compare: Oid,
    /// Hash support function 1.
    pub hash: Oid,
    pub btree_family: Oid,
    pub hash_family: Oid,
    /// The type the operators are declared for (text for varchar, anyarray for arrays).
    pub input_type: Oid,
}

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

impl TypeOrder {
    pub fn is_function(&self) -> bool {
        matches!(self, TypeOrder::Function(_))
    }
}

const LESS: i16 = 1;
const EQUAL: i16 = 3;
const GREATER: i16 = 5;
const HASH_EQUAL: i16 = 1;

impl Catalog {
    pub fn operator(&self, oid: Oid) -> Option<&Arc<Operator>> {
        self.operators.get(oid)
    }

    pub fn operators_by_name<'a>(&'a self, namespace: Oid, name: &'a str) -> impl Iterator<Item = &'a Arc<Operator>> {
        self.operators.named(namespace, name)
    }

    /// In OID order.
    pub fn operators(&self) -> impl Iterator<Item = &Arc<Operator>> {
        self.operators.iter()
    }

    /// The pg_cast row from one type to another.
    pub fn cast(&self, source: Oid, target: Oid) -> Option<&Arc<Cast>> {
        self.casts.named(source, "").find(|c| c.target == target)
    }

    pub fn cast_by_oid(&self, oid: Oid) -> Option<&Arc<Cast>> {
        self.casts.get(oid)
    }

    pub fn casts_from(&self, source: Oid) -> impl Iterator<Item = &Arc<Cast>> {
        self.casts.named(source, "")
    }

    /// In OID order.
    pub fn casts(&self) -> impl Iterator<Item = &Arc<Cast>> {
        self.casts.iter()
    }

    /// Operator families and classes: built-in ones, those of extensions and of users.
    pub fn access_methods(&self) -> &AccessMethods {
        &self.access
    }

    /// The order of a collation; `None` when that is of bytes.
    pub fn collator(&self, collation: Oid) -> Option<&Arc<melba_collation::Collator>> {
        // What nearly all texts have.
        if matches!(collation, Oid::INVALID | DEFAULT_COLLATION | C_COLLATION) {
            return None;
        }
        self.collation(collation)?.collator()
    }

    /// The type under a domain, and under domains over it; the type itself when it is no domain.
    pub fn base_type(&self, ty: Oid) -> Oid {
        self.base_type_and_typmod(ty, -1).0
    }

    /// `base_type`, with the type modifier of the domains when none is given.
    pub fn base_type_and_typmod(&self, mut ty: Oid, mut typmod: i32) -> (Oid, i32) {
        while let Some(domain) = self.type_(ty).and_then(|t| t.domain.as_ref()) {
            ty = domain.base;
            typmod = domain.typmod;
        }
        (ty, typmod)
    }

    /// An input or output function of a type, by the name that the type has for it: in pg_catalog, or with an extension's type.
    pub fn type_function<'a>(&'a self, ty: &Type, name: &'a str) -> Option<&'a Arc<Function>> {
        let schema = self.type_(self.base_type(ty.oid)).map_or(ty.namespace, |base| base.namespace);
        [PG_CATALOG, schema].into_iter().find_map(|schema| self.functions_by_name(schema, name).next())
    }

    /// The element type when `ty` is an array type proper (not point, name or oidvector), looking through domains.
    pub fn array_element(&self, ty: Oid) -> Option<Oid> {
        let ty = self.type_(self.base_type(ty))?;
        (ty.length == -1 && ty.element.is_valid() && &*ty.subscript == "array_subscript_handler").then_some(ty.element)
    }

    /// The array type over a type.
    pub fn array_of(&self, ty: Oid) -> Option<Oid> {
        self.type_(ty).map(|t| t.array).filter(|a| a.is_valid())
    }

    /// Whether a value of one type is one of the other without any function (PostgreSQL's IsBinaryCoercible).
    pub fn is_binary_coercible(&self, source: Oid, target: Oid) -> bool {
        if source == target || matches!(target, oids::ANY | oids::ANYELEMENT | oids::ANYCOMPATIBLE) {
            return true;
        }
        let source = self.base_type(source);
        if source == target {
            return true;
        }
        let Some(ty) = self.type_(source) else { return false };
        match target {
            oids::ANYARRAY | oids::ANYCOMPATIBLEARRAY => return self.array_element(source).is_some(),
            oids::ANYNONARRAY | oids::ANYCOMPATIBLENONARRAY => return self.array_element(source).is_none(),
            oids::ANYENUM => return ty.type_kind == TypeKind::Enum,
            oids::ANYRANGE | oids::ANYCOMPATIBLERANGE => return ty.type_kind == TypeKind::Range,
            oids::ANYMULTIRANGE | oids::ANYCOMPATIBLEMULTIRANGE => return ty.type_kind == TypeKind::Multirange,
            oids::RECORD if ty.type_kind == TypeKind::Composite => return true,
            oids::RECORD_ARRAY => {
                let element = self.array_element(source).and_then(|e| self.type_(e));
                return element.is_some_and(|e| e.type_kind == TypeKind::Composite);
            }
            _ => {}
        }
        self.cast(source, target).is_some_and(|c| c.method == b'b' && c.context == b'i')
    }

    /// The operator class an index on a type uses when none is named (PostgreSQL's GetDefaultOpClass): the type's own, or
    /// the one of a type that it is binary-coercible to, preferred types first.
    pub fn default_operator_class(&self, method: Oid, ty: Oid) -> Option<&Arc<OperatorClass>> {
        let access = self.access_methods();
        let ty = self.base_type(ty);
        let default_class = |ty: Oid| access.default_class(method, ty).filter(|c| self.has_class(c));
        if let Some(own) = default_class(ty) {
            return Some(own);
        }
        let entry = self.type_(ty)?;
        let polymorphic = match entry.type_kind {
            TypeKind::Enum => oids::ANYENUM,
            TypeKind::Range => oids::ANYRANGE,
            TypeKind::Multirange => oids::ANYMULTIRANGE,
            TypeKind::Composite => oids::RECORD,
            _ if self.array_element(ty).is_some() => oids::ANYARRAY,
            _ => oids::ANYELEMENT,
        };
        let targets = self.casts_from(ty).filter(|c| c.method == b'b' && c.context == b'i').map(|c| c.target);
        let mut compatible = None;
        let mut ambiguous = false;
        for class in targets.chain([polymorphic]).filter_map(default_class) {
            let input = self.type_(class.input_type)?;
            if input.preferred && input.category == entry.category {
                return Some(class);
            }
            ambiguous = compatible.is_some();
            compatible = Some(class);
        }
        compatible.filter(|_| !ambiguous)
    }

    /// The operator class of a method with a name, in the first of the schemas that has one.
    pub fn find_operator_class(&self, schemas: &[Oid], method: Oid, name: &str) -> Option<&Arc<OperatorClass>> {
        let named = self.access_methods().classes().filter(|c| c.method == method && *c.name == *name);
        let places: Vec<_> = named.filter_map(|c| Some((self.class_namespace(c)?, c))).collect();
        schemas.iter().find_map(|schema| places.iter().find(|(namespace, _)| namespace == schema)).map(|(_, class)| *class)
    }

    /// The operator family of a method with a name, in the first of the schemas that has one.
    pub fn find_operator_family(&self, schemas: &[Oid], method: Oid, name: &str) -> Option<&Arc<OperatorFamily>> {
        let named = self.access_methods().families().filter(|f| f.method == method && *f.name == *name);
        let places: Vec<_> = named.filter_map(|f| Some((self.family_namespace(f)?, f))).collect();
        schemas.iter().find_map(|schema| places.iter().find(|(namespace, _)| namespace == schema)).map(|(_, family)| *family)
    }

    /// The schema of an operator class, that of its extension if it has one; `None`: the extension is not there.
    pub fn class_namespace(&self, class: &OperatorClass) -> Option<Oid> {
        self.class_place(class).map(|(namespace, _)| namespace)
    }

    /// The schema of an operator family, that of its extension if it has one; `None`: the extension is not there.
    pub fn family_namespace(&self, family: &OperatorFamily) -> Option<Oid> {
        self.family_place(family).map(|(namespace, _)| namespace)
    }

    /// The schema and the owner of an operator class.
    pub fn class_place(&self, class: &OperatorClass) -> Option<(Oid, Oid)> {
        self.place_of_member(PG_OPCLASS, class.oid, (class.namespace, class.owner))
    }

    /// The schema and the owner of an operator family.
    pub fn family_place(&self, family: &OperatorFamily) -> Option<(Oid, Oid)> {
        self.place_of_member(PG_OPFAMILY, family.oid, (family.namespace, family.owner))
    }

    fn place_of_member(&self, class: Oid, object: Oid, own: (Oid, Oid)) -> Option<(Oid, Oid)> {
        if object.0 < FIRST_EXTENSION_OID {
            return Some(own);
        }
        self.extension_of(ObjectAddress { class, object, sub: 0 }).map(|extension| (extension.namespace, extension.owner))
    }

    /// Classes of extensions are there as long as these are.
    pub(crate) fn has_class(&self, class: &OperatorClass) -> bool {
        self.class_namespace(class).is_some()
    }

    /// Whether users created any operator class.
    pub fn has_user_classes(&self) -> bool {
        self.access_methods().has_user_classes()
    }

    /// The operators by which a type is sorted, grouped and hashed.
    pub fn type_operators(&self, ty: Oid) -> TypeOperators {
        let access = self.access_methods();
        let mut all = TypeOperators::default();
        if let Some(class) = self.default_operator_class(BTREE, ty) {
            let input = class.input_type;
            let operator = |strategy| access.operator(class.family, input, input, strategy).unwrap_or_default();
            all.input_type = input;
            all.btree_family = class.family;
            all.equal = operator(EQUAL);
            all.less = operator(LESS);
            all.greater = operator(GREATER);
            all.compare = access.function(class.family, input, input, 1).unwrap_or_default();
        }
        if let Some(class) = self.default_operator_class(HASH, ty) {
            let input = class.input_type;
            let equal = access.operator(class.family, input, input, HASH_EQUAL).unwrap_or_default();
            if !all.equal.is_valid() {
                all.input_type = input;
                all.equal = equal;
            }
            // A class of users may have given one of the methods another equality.
            if all.equal == equal {
                all.hash_family = class.family;
                all.hash = access.function(class.family, input, input, 1).unwrap_or_default();
            }
        }
        all
    }

    /// The B-tree family and strategy (1 `<` ... 5 `>`) of a comparison operator, in the family where it is the default
    /// order of its operands if there is one.
    pub fn btree_strategy(&self, operator: Oid) -> Option<(Oid, i16)> {
        let mut found = self.operator_members(operator).filter(|m| m.method == BTREE && !m.ordering);
        let first = found.next()?;
        let is_default =
            |m: &&OperatorFamilyMember| self.default_operator_class(BTREE, m.left).is_some_and(|c| c.family == m.family);
        let best = [first].into_iter().chain(found).find(is_default).unwrap_or(first);
        Some((best.family, best.strategy))
    }

    /// Whether an operator compares the order of two values.
    pub fn is_ordering(&self, operator: Oid) -> bool {
        self.btree_strategy(operator).is_some_and(|(_, strategy)| strategy != EQUAL)
    }

    /// Whether an operator is the equality of some B-tree or hash family.
    pub fn is_equality(&self, operator: Oid) -> bool {
        let is = |m: &OperatorFamilyMember| match m.method {
            BTREE => m.strategy == EQUAL,
            HASH => m.strategy == HASH_EQUAL,
            _ => false,
        };
        self.operator_members(operator).any(is)
    }

    /// The order that a type's default class of users gives it.
    pub fn type_order(&self, ty: Oid) -> TypeOrder {
        if !self.access_methods().has_user_classes() {
            return TypeOrder::Own;
        }
        let class = [BTREE, HASH].iter().find_map(|method| self.default_operator_class(*method, ty));
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
        self.ordering_function_of_parts(ty)
    }

    /// The same of the elements or fields of values of a type.
    fn ordering_function_of_parts(&self, ty: Oid) -> Option<Arc<OperatorClass>> {
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

    /// Whether functions of users may order values of a type, or parts of them. The fields of rows without a named type may be of
    /// any type.
    pub fn may_be_ordered_by_function(&self, ty: Oid) -> bool {
        self.has_user_classes()
            && match ty {
                oids::RECORD | oids::RECORD_ARRAY => self.has_types_ordered_by_function(),
                _ => self.ordering_function(ty).is_some(),
            }
    }

    /// Whether functions of users order any type.
    fn has_types_ordered_by_function(&self) -> bool {
        let orders = |class: &OperatorClass| class.is_default && is_of_users(class.oid) && [BTREE, HASH].contains(&class.method);
        self.operator_classes.iter().any(|class| orders(class) && self.built_in_order(class).is_none())
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
            false => {
                let ty = self.base_type(ty);
                has_same_keys(ty, other) && self.kind_of(ty).is_some_and(|kind| self.kind_of(other) == Some(kind))
            }
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
            false => {
                let is_own = matches!(self.type_order(ty), TypeOrder::Own) && self.ordering_function(ty).is_none();
                is_own && has_same_keys(ty, class.input_type)
            }
            true => match (self.built_in_order(class), self.type_order(ty)) {
                (Some(own), TypeOrder::Of(other)) => own == other,
                (Some(own), TypeOrder::Own) => own == ty || has_same_keys(ty, own) && self.is_binary_coercible(ty, own),
                _ => false,
            },
        }
    }

    /// Whether keys of a type may have the order of a built-in class that a key names, whatever class is the type's default.
    pub fn keys_may_have_order(&self, class: &OperatorClass, ty: Oid) -> bool {
        let ty = self.base_type(ty);
        let is_composed = self.type_(ty).is_some_and(|t| t.base.is_none());
        !is_of_users(class.oid)
            && self.ordering_function_of_parts(ty).is_none()
            && self.is_held_alike(ty, class.input_type)
            && (is_composed || self.key_type_of_class(class, ty) == class.input_type)
    }

    /// The type whose order the keys of a column have: of a base type of users, the one that the class is for.
    pub fn key_type_of_class(&self, class: &OperatorClass, ty: Oid) -> Oid {
        let is_of_user = self.type_(self.base_type(ty)).is_some_and(|t| t.base.is_some());
        let has_class_keys = is_of_user && !is_of_users(class.oid) && KeyType::of_builtin(class.input_type).is_some();
        if has_class_keys { class.input_type } else { ty }
    }

    /// Where an operator that orders values of a type by a function of users, in an order that no key has, stands in its family.
    pub fn function_ordering(&self, operator: Oid) -> Option<&OperatorFamilyMember> {
        let is_ordering = |m: &&OperatorFamilyMember| {
            m.method == BTREE && !m.ordering && m.left == m.right && matches!(m.strategy, LESS | GREATER)
        };
        match self.btree_strategy(operator) {
            Some(_) => None,
            None => self.access_methods().members(operator).iter().find(is_ordering),
        }
    }

    /// The families of all access methods that an operator stands in, also those whose orders no key has.
    pub fn all_operator_members(&self, operator: Oid) -> &[OperatorFamilyMember] {
        self.access_methods().members(operator)
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

/// Whether keys of two built-in types that are held alike are the same: not where one ignores blanks at the end, or case.
fn has_same_keys(ty: Oid, other: Oid) -> bool {
    let ignores = |ty| matches!(KeyType::of_builtin(ty), Some(KeyType::Bpchar | KeyType::Mapped(_)));
    ty == other || !ignores(ty) && !ignores(other)
}
