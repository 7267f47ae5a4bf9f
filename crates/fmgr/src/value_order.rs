//! The order of values by functions of users: those of a B-tree class whose order no key has, or of types with such parts. A hash
//! class gives values an equality and no order.

use std::cmp::Ordering;
use std::sync::Arc;

use melba_catalog::{Catalog, Function, OperatorClass, TypeKind, TypeOrder, classes};
use melba_types::key::{self, KeyType};
use melba_types::{Array, Csn, Datum, DbError, Oid, Record, Result, err, limits, oids};

use crate::order::{self, ordered_by_function};
use crate::{CallInfo, RoutineCall, ScalarFn, Session, registry};

/// How values of a type are compared, when keys do not have their order.
#[derive(Debug)]
pub struct ValueOrder {
    /// What it was made of: the type, its collation and the operator that orders it, or 0.
    of: (Oid, Oid, Oid),
    order: Order,
}

/// Who compares: the session that runs the functions, and its statement's view.
#[derive(Clone, Copy)]
pub struct Comparer<'a> {
    pub session: &'a dyn Session,
    pub view: (Csn, u32),
}

impl<'a> Comparer<'a> {
    /// On behalf of a function that compares parts of its arguments.
    pub fn of_call(call: &'a CallInfo<'_>) -> Comparer<'a> {
        Comparer { session: call.session, view: call.view }
    }
}

#[derive(Debug)]
enum Order {
    Keys(KeyType),
    Compared(Support),
    /// The hash function, and the equality.
    Hashed(Support, Support),
    Array(Box<Order>),
    /// By field; `None`: a row without a named type, whose fields have their own types.
    Record(Option<Vec<Order>>),
}

/// A support function of a class.
#[derive(Debug)]
struct Support {
    function: Oid,
    target: Target,
    strict: bool,
    volatile: bool,
    arg_types: [Oid; 2],
    return_type: Oid,
    collation: Oid,
}

enum Target {
    Scalar(ScalarFn),
    /// By pg_proc.prosrc.
    System(Arc<str>),
    /// One that a user wrote.
    Routine,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Target")
    }
}

impl PartialEq for ValueOrder {
    /// Rows without a named type are those of one expression, whatever else a statement orders: of their fields nothing is known.
    fn eq(&self, other: &ValueOrder) -> bool {
        match self.order.is_anonymous() {
            true => std::ptr::eq(self, other),
            false => self.of == other.of,
        }
    }
}

impl ValueOrder {
    /// That of a type by its default class, as a collation has it; `None`: keys have it, or there is none.
    ///
    /// # Errors
    /// 0A000 for types whose values cannot be compared by functions yet: ranges.
    pub fn of_type(catalog: &Catalog, ty: Oid, collation: Oid) -> Result<Option<ValueOrder>> {
        if !catalog.may_be_ordered_by_function(ty) {
            return Ok(None);
        }
        let order = Order::of_type(catalog, ty, collation)?;
        Ok(Some(ValueOrder { of: (catalog.base_type(ty), collation, Oid::INVALID), order }))
    }

    /// That of an ordering operator, whose family of users orders by a function.
    ///
    /// # Errors
    /// XX000 when the family has no such function.
    pub fn of_operator(catalog: &Catalog, operator: Oid, ty: Oid, collation: Oid) -> Result<Option<ValueOrder>> {
        if !catalog.has_user_classes() {
            return Ok(None);
        }
        let Some(member) = catalog.function_ordering(operator) else { return Ok(None) };
        let compare = catalog.access_methods().function(member.family, member.left, member.right, 1);
        let missing = || {
            let (left, right) = (member.left, member.right);
            DbError::internal(format!("missing support function 1({left},{right}) in opfamily {}", member.family))
        };
        let compare = Support::new(catalog, compare.ok_or_else(missing)?, member.left, oids::INT4, collation)?;
        Ok(Some(ValueOrder { of: (catalog.base_type(ty), collation, operator), order: Order::Compared(compare) }))
    }

    /// Whether values have no order but an equality: `hash` and `equal` instead of `compare`.
    pub fn is_equality(&self) -> bool {
        matches!(self.order, Order::Hashed(..))
    }

    /// Whether a function of it is volatile.
    pub fn is_volatile(&self) -> bool {
        self.order.is_volatile()
    }

    /// Compares two values that are not null.
    ///
    /// # Errors
    /// Those of the functions.
    pub fn compare(&self, by: Comparer<'_>, a: &Datum, b: &Datum) -> Result<Ordering> {
        self.order.compare(by, a, b)
    }

    /// The hash code of a value, when there is no order.
    ///
    /// # Errors
    /// Those of the function.
    pub fn hash(&self, by: Comparer<'_>, value: &Datum) -> Result<Datum> {
        match &self.order {
            Order::Hashed(hash, _) => hash.call(by, std::slice::from_ref(value)),
            _ => Ok(Datum::Int4(0)),
        }
    }
}

/// How a function compares values of a type that it gets.
pub struct Comparison<'a> {
    by: Comparer<'a>,
    how: How,
}

enum How {
    Keys(KeyType),
    Functions(ValueOrder),
}

impl<'a> Comparison<'a> {
    /// By the order of a type.
    ///
    /// # Errors
    /// 42883 when it has none, 0A000 when its values cannot be compared by functions yet.
    pub fn of_type(call: &'a CallInfo<'_>, ty: Oid, collation: Oid) -> Result<Comparison<'a>> {
        let how = match ValueOrder::of_type(call.session.catalog(), ty, collation)? {
            Some(order) => How::Functions(order),
            None => How::Keys(order::key_type(call.session, ty, collation)?),
        };
        Ok(Comparison { by: Comparer::of_call(call), how })
    }

    /// That of a row without a named type, by the types of its fields.
    ///
    /// # Errors
    /// Those of `of_type`.
    pub fn of_record(call: &'a CallInfo<'_>, field_types: &[Oid]) -> Result<Comparison<'a>> {
        let catalog = call.session.catalog();
        match field_types.iter().any(|ty| catalog.may_be_ordered_by_function(*ty)) {
            true => Comparison::of_type(call, oids::RECORD, Oid::INVALID),
            false => {
                let how = How::Keys(order::record_key_type(call.session, field_types)?);
                Ok(Comparison { by: Comparer::of_call(call), how })
            }
        }
    }

    /// The order of two values that are not null.
    ///
    /// # Errors
    /// Those of functions of users.
    pub fn compare(&self, a: &Datum, b: &Datum) -> Result<Ordering> {
        match &self.how {
            How::Keys(key) => Ok(key::compare(key, a, b)),
            How::Functions(order) => order.compare(self.by, a, b),
        }
    }

    /// The same of values that may be null: nulls come last and are equal.
    ///
    /// # Errors
    /// Those of functions of users.
    pub fn compare_nested(&self, a: &Datum, b: &Datum) -> Result<Ordering> {
        match (a.is_null(), b.is_null()) {
            (false, false) => self.compare(a, b),
            (a, b) => Ok(a.cmp(&b)),
        }
    }
}

impl Order {
    fn of_type(catalog: &Catalog, ty: Oid, collation: Oid) -> Result<Order> {
        limits::check_stack()?;
        let ty = catalog.base_type(ty);
        if ty == oids::RECORD {
            return Ok(Order::Record(None));
        }
        if let TypeOrder::Function(class) = catalog.type_order(ty) {
            return Order::of_class(catalog, &class, collation);
        }
        if !catalog.may_be_ordered_by_function(ty) {
            return Ok(Order::Keys(order::own_key_type(catalog, ty, collation)?));
        }
        if let Some(element) = catalog.array_element(ty) {
            return Ok(Order::Array(Box::new(Order::of_part(catalog, element, collation)?)));
        }
        let entry = catalog.type_(ty).filter(|entry| entry.type_kind == TypeKind::Composite);
        match entry.and_then(|entry| catalog.relation(entry.relation)) {
            Some(relation) => {
                let live = relation.columns.iter().filter(|c| !c.dropped);
                let fields = live.map(|c| Order::of_part(catalog, c.ty, c.collation)).collect::<Result<Vec<_>>>()?;
                Ok(Order::Record(Some(fields)))
            }
            None => Err(refused(catalog, ty)),
        }
    }

    /// That of a part of values, which must have an order.
    fn of_part(catalog: &Catalog, ty: Oid, collation: Oid) -> Result<Order> {
        match Order::of_type(catalog, ty, collation)? {
            Order::Hashed(..) => Err(refused(catalog, ty)),
            order => Ok(order),
        }
    }

    fn of_class(catalog: &Catalog, class: &OperatorClass, collation: Oid) -> Result<Order> {
        let access = catalog.access_methods();
        let input = class.input_type;
        let support = |number| {
            let missing =
                || DbError::internal(format!("missing support function {number}({input},{input}) in opfamily {}", class.family));
            access.class_function(class, number).ok_or_else(missing)
        };
        if class.method == classes::BTREE {
            return Ok(Order::Compared(Support::new(catalog, support(1)?, input, oids::INT4, collation)?));
        }
        let equal = access.operator(class.family, input, input, 1).and_then(|operator| catalog.operator(operator));
        let missing = || DbError::internal(format!("missing operator 1({input},{input}) in opfamily {}", class.family));
        let equal = Support::new(catalog, equal.ok_or_else(missing)?.function, input, oids::BOOL, collation)?;
        let hash = Support::new(catalog, support(1)?, input, oids::INT4, collation)?;
        Ok(Order::Hashed(hash, equal))
    }

    /// Whether values have rows without a named type.
    fn is_anonymous(&self) -> bool {
        match self {
            Order::Keys(_) | Order::Compared(_) | Order::Hashed(..) => false,
            Order::Array(element) => element.is_anonymous(),
            Order::Record(fields) => fields.as_ref().is_none_or(|fields| fields.iter().any(Order::is_anonymous)),
        }
    }

    fn is_volatile(&self) -> bool {
        match self {
            Order::Keys(_) => false,
            Order::Compared(compare) => compare.volatile,
            Order::Hashed(hash, equal) => hash.volatile || equal.volatile,
            Order::Array(element) => element.is_volatile(),
            // What its fields are called by is not known.
            Order::Record(fields) => fields.as_ref().is_none_or(|fields| fields.iter().any(Order::is_volatile)),
        }
    }

    fn compare(&self, by: Comparer<'_>, a: &Datum, b: &Datum) -> Result<Ordering> {
        limits::check_stack()?;
        match (self, a, b) {
            (Order::Keys(key), ..) => Ok(key::compare(key, a, b)),
            (Order::Compared(compare), ..) => match compare.call(by, &[a.clone(), b.clone()])? {
                Datum::Int4(order) => Ok(order.cmp(&0)),
                _ => Err(compare.returned_null()),
            },
            // Any order will do between values that are not equal.
            (Order::Hashed(_, equal), ..) => match equal.call(by, &[a.clone(), b.clone()])? {
                Datum::Bool(true) => Ok(Ordering::Equal),
                Datum::Bool(false) => Ok(Ordering::Greater),
                _ => Err(equal.returned_null()),
            },
            (Order::Array(element), Datum::Array(a), Datum::Array(b)) => compare_arrays(element, by, a, b),
            (Order::Record(fields), Datum::Record(a), Datum::Record(b)) => compare_records(fields.as_deref(), by, a, b),
            _ => Err(DbError::internal("compared values of another type")),
        }
    }

    /// `compare` with nulls after everything and equal to each other.
    fn compare_nested(&self, by: Comparer<'_>, a: &Datum, b: &Datum) -> Result<Ordering> {
        match (a.is_null(), b.is_null()) {
            (false, false) => self.compare(by, a, b),
            (a, b) => Ok(a.cmp(&b)),
        }
    }
}

/// 0A000 for a type whose values cannot be compared by functions yet.
fn refused(catalog: &Catalog, ty: Oid) -> DbError {
    match catalog.ordering_function(ty) {
        Some(class) => ordered_by_function(&class),
        None => DbError::internal(format!("type {ty} is not ordered by a function")),
    }
}

fn compare_arrays(element: &Order, by: Comparer<'_>, a: &Array, b: &Array) -> Result<Ordering> {
    for (x, y) in a.elements.iter().zip(&b.elements) {
        let order = element.compare_nested(by, x, y)?;
        if order.is_ne() {
            return Ok(order);
        }
    }
    Ok(key::compare_array_shapes(a, b))
}

fn compare_records(fields: Option<&[Order]>, by: Comparer<'_>, a: &Record, b: &Record) -> Result<Ordering> {
    let Some(fields) = fields else { return compare_anonymous(by, a, b) };
    for (field, (x, y)) in fields.iter().zip(a.fields.iter().zip(b.fields.iter())) {
        let order = field.compare_nested(by, x, y)?;
        if order.is_ne() {
            return Ok(order);
        }
    }
    Ok(a.fields.len().cmp(&b.fields.len()))
}

/// Rows without a named type: each field by its own type, which must be the same in both.
fn compare_anonymous(by: Comparer<'_>, a: &Record, b: &Record) -> Result<Ordering> {
    let catalog = by.session.catalog();
    // Fields without a type from their context hold text.
    let type_of = |record: &Record, at: usize| {
        let ty = record.field_types.get(at).copied().unwrap_or_default();
        if ty.is_valid() && ty != oids::UNKNOWN { ty } else { oids::TEXT }
    };
    for (i, (x, y)) in a.fields.iter().zip(&b.fields).enumerate() {
        let (ty, other) = (type_of(a, i), type_of(b, i));
        if ty != other {
            let (ty, other) = (catalog.type_name(ty, &[classes::PG_CATALOG]), catalog.type_name(other, &[classes::PG_CATALOG]));
            let message = format!("cannot compare dissimilar column types {ty} and {other} at record column {}", i + 1);
            return Err(err!(DATATYPE_MISMATCH, "{message}"));
        }
        let order = Order::of_part(catalog, ty, Oid::INVALID)?.compare_nested(by, x, y)?;
        if order.is_ne() {
            return Ok(order);
        }
    }
    match a.fields.len() == b.fields.len() {
        true => Ok(Ordering::Equal),
        false => Err(err!(DATATYPE_MISMATCH, "cannot compare record types with different numbers of columns")),
    }
}

impl Support {
    fn new(catalog: &Catalog, function: Oid, input: Oid, return_type: Oid, collation: Oid) -> Result<Support> {
        let missing = || DbError::internal(format!("cache lookup failed for function {function}"));
        let entry: &Function = catalog.function(function).ok_or_else(missing)?;
        let target = match classes::is_written_language(entry.language) {
            true if entry.oid.0 >= classes::FIRST_USER_OID => Target::Routine,
            // Functions that PostgreSQL defines in SQL.
            true => match registry::scalar(&format!("{}_{}", entry.name, entry.oid)) {
                Some(function) => Target::Scalar(function),
                None => return Err(DbError::unsupported(format!("ordering by function {}", entry.name))),
            },
            false => registry::scalar(&entry.source).map_or_else(|| Target::System(entry.source.clone()), Target::Scalar),
        };
        Ok(Support {
            function,
            target,
            strict: entry.strict,
            volatile: entry.volatility == b'v',
            arg_types: [input, input],
            return_type,
            collation,
        })
    }

    /// Calls with values, none of them null.
    fn call(&self, by: Comparer<'_>, args: &[Datum]) -> Result<Datum> {
        let arg_types = &self.arg_types[..args.len()];
        let (return_type, collation, view) = (self.return_type, self.collation, by.view);
        debug_assert!(!self.strict || !args.iter().any(Datum::is_null));
        if let Target::Routine = self.target {
            let call = RoutineCall { function: self.function, args, arg_types, return_type, collation, columns: None, view };
            return by.session.call_routine(&call);
        }
        let call = CallInfo { session: by.session, arg_types, return_type, collation, variadic: false, columns: None, view };
        match &self.target {
            Target::Scalar(function) => function(&call, args),
            Target::System(source) => by.session.system_function(source, &call, args),
            Target::Routine => Err(DbError::internal("a function of users is called by the session")),
        }
    }

    fn returned_null(&self) -> DbError {
        DbError::internal(format!("function {} returned NULL", self.function))
    }
}
