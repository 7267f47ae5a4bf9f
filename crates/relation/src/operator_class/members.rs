//! The operators and functions of an operator family, as statements add them.

use std::sync::Arc;

use melba_analyze::exact_operator;
use melba_catalog::privileges::AclKind;
use melba_catalog::{FamilyFunction, FamilyOperator, Function, Object, OperatorFamily, acl, classes};
use melba_definition::context::Ddl;
use melba_parse::nodes::{inner, strings};
use melba_routine::find::{RoutineName, find_routine};
use melba_routine::operator::named_operator;
use melba_types::{DbError, Oid, Result, SqlState, bail, err, oids};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{CreateOpClassItem, Node, ObjectType, ObjectWithArgs};

use super::{FUNCTION, OPERATOR, named_family};
use crate::index::request::AccessMethod;

/// Whether it is an operator, its types, its number.
type Key = (bool, Oid, Oid, i16);

fn wrong(message: impl Into<String>) -> DbError {
    DbError::new(SqlState::INVALID_OBJECT_DEFINITION, message)
}

/// The highest strategy, and the highest number of a support function.
fn numbers_max(method: AccessMethod) -> (i32, i32) {
    match method.name {
        "btree" => (5, 6),
        "hash" => (1, 3),
        "gist" => (i16::MAX.into(), 12),
        "gin" | "spgist" => (i16::MAX.into(), 7),
        _ => (i16::MAX.into(), 15),
    }
}

pub(super) fn number_of(method: AccessMethod, item: &CreateOpClassItem) -> Result<i16> {
    let (operators, functions) = numbers_max(method);
    let (word, max) = if item.itemtype == OPERATOR { ("operator", operators) } else { ("function", functions) };
    if item.number <= 0 || item.number > max {
        bail!(INVALID_OBJECT_DEFINITION, "invalid {word} number {}, must be between 1 and {max}", item.number);
    }
    Ok(item.number as i16)
}

/// One or two types in parentheses.
pub(super) fn types_of(ddl: &Ddl<'_>, nodes: &[Node]) -> Result<(Oid, Oid)> {
    let ty = |node: &Node| match inner(node)? {
        N::TypeName(name) => Ok(ddl.type_from_name(name)?.0),
        _ => Err(DbError::internal("a type that is none")),
    };
    match nodes {
        [one] => ty(one).map(|ty| (ty, ty)),
        [left, right] => Ok((ty(left)?, ty(right)?)),
        _ => bail!(SYNTAX_ERROR, "one or two argument types must be specified"),
    }
}

pub fn shown(ddl: &Ddl<'_>, (is_operator, left, right, number): Key, separator: &str) -> String {
    let catalog = ddl.catalog();
    let [left, right] = [left, right].map(|ty| catalog.type_name(ty, ddl.path()));
    format!("{} {number}({left}{separator}{right})", if is_operator { "operator" } else { "function" })
}

pub(super) fn repeated(ddl: &Ddl<'_>, (is_operator, left, right, number): Key) -> DbError {
    let catalog = ddl.catalog();
    let [left, right] = [left, right].map(|ty| catalog.type_name(ty, ddl.path()));
    let word = if is_operator { "operator" } else { "function" };
    wrong(format!("{word} number {number} for ({left},{right}) appears more than once"))
}

/// NewMembers to be added to a family.
pub struct NewMembers<'d, 'a> {
    ddl: &'d Ddl<'a>,
    method: AccessMethod,
    /// The type of the class; 0: ALTER OPERATOR FAMILY.
    input_type: Oid,
    operators: Vec<FamilyOperator>,
    functions: Vec<FamilyFunction>,
}

impl<'d, 'a> NewMembers<'d, 'a> {
    pub fn new(ddl: &'d Ddl<'a>, method: AccessMethod, input_type: Oid) -> NewMembers<'d, 'a> {
        NewMembers { ddl, method, input_type, operators: Vec::new(), functions: Vec::new() }
    }

    pub fn add(&mut self, item: &CreateOpClassItem) -> Result<()> {
        let number = number_of(self.method, item)?;
        let name = item.name.as_ref().ok_or_else(|| DbError::internal("a member of an operator family without a name"))?;
        match item.itemtype {
            OPERATOR => self.add_operator(item, name, number),
            FUNCTION => self.add_function(item, name, number),
            _ => Err(DbError::internal("an item of an operator class of an unknown kind")),
        }
    }

    fn add_operator(&mut self, item: &CreateOpClassItem, name: &ObjectWithArgs, strategy: i16) -> Result<()> {
        let ddl = self.ddl;
        let operator = if !name.objargs.is_empty() {
            let node = Node { node: Some(N::ObjectWithArgs(name.clone())) };
            named_operator(ddl, Some(&node))?
        } else if self.input_type.is_valid() {
            self.operator_of_input(name)?
        } else {
            bail!(SYNTAX_ERROR, "operator argument types must be specified in ALTER OPERATOR FAMILY");
        };
        let ordering = !item.order_family.is_empty();
        let sort_family = match ordering {
            true => named_family(ddl, &strings(&item.order_family), AccessMethod::BTREE)?.oid,
            false => Oid::INVALID,
        };
        if !operator.left.is_valid() {
            return Err(wrong("index operators must be binary"));
        }
        if ordering && !matches!(self.method.name, "gist" | "spgist") {
            return Err(wrong(format!("access method \"{}\" does not support ordering operators", self.method.name)));
        }
        if !ordering && operator.result != oids::BOOL {
            return Err(wrong("index search operators must return boolean"));
        }
        let (left, right) = match item.class_args.is_empty() {
            true => (operator.left, operator.right),
            false => types_of(ddl, &item.class_args)?,
        };
        if self.operators.iter().any(|m| (m.left, m.right, m.strategy) == (left, right, strategy)) {
            return Err(repeated(ddl, (true, left, right, strategy)));
        }
        let (oid, operator, class) = (Oid::INVALID, operator.oid, Oid::INVALID);
        self.operators.push(FamilyOperator { oid, left, right, strategy, operator, ordering, sort_family, class });
        Ok(())
    }

    /// The operator of a name for two values of the class's type.
    fn operator_of_input(&self, name: &ObjectWithArgs) -> Result<Arc<melba_catalog::Operator>> {
        let (names, ty) = (strings(&name.objname), self.input_type);
        let found = self.ddl.with_context(|c| exact_operator(c, &names, ty, ty))?;
        let catalog = self.ddl.catalog();
        let missing = || {
            let ty = catalog.type_name(ty, self.ddl.path());
            err!(UNDEFINED_FUNCTION, "operator does not exist: {ty} {} {ty}", names.join("."))
        };
        catalog.operator(found).cloned().ok_or_else(missing)
    }

    fn add_function(&mut self, item: &CreateOpClassItem, name: &ObjectWithArgs, number: i16) -> Result<()> {
        let ddl = self.ddl;
        let node = Node { node: Some(N::ObjectWithArgs(name.clone())) };
        let name = RoutineName::of(ObjectType::ObjectFunction, Some(&node)).ok_or_else(|| DbError::internal("no function"))?;
        let function = find_routine(ddl, &name)?;
        if !ddl.catalog().has_privileges(ddl.user(), AclKind::Function, function.owner, &function.acl, acl::EXECUTE) {
            bail!(INSUFFICIENT_PRIVILEGE, "permission denied for function {}", function.name);
        }
        let given = match item.class_args.is_empty() {
            true => None,
            false => Some(types_of(ddl, &item.class_args)?),
        };
        let implied = implied_types(self.method, &function, number, given)?;
        let own = Some((self.input_type, self.input_type)).filter(|_| self.input_type.is_valid());
        let missing = || wrong("associated data types must be specified for index support function");
        let (left, right) = given.or(implied).or(own).ok_or_else(missing)?;
        if self.functions.iter().any(|m| (m.left, m.right, m.number) == (left, right, number)) {
            return Err(repeated(ddl, (false, left, right, number)));
        }
        let (oid, function, class) = (Oid::INVALID, function.oid, Oid::INVALID);
        self.functions.push(FamilyFunction { oid, left, right, number, function, class });
        Ok(())
    }

    fn existing(&self, family: &OperatorFamily) -> Option<Key> {
        let operator =
            |m: &&FamilyOperator| family.operators.iter().any(|o| (o.left, o.right, o.strategy) == (m.left, m.right, m.strategy));
        let function =
            |m: &&FamilyFunction| family.functions.iter().any(|o| (o.left, o.right, o.number) == (m.left, m.right, m.number));
        let operator = self.operators.iter().find(operator).map(|m| (true, m.left, m.right, m.strategy));
        operator.or_else(|| self.functions.iter().find(function).map(|m| (false, m.left, m.right, m.number)))
    }

    /// # Errors
    /// 42710 for a member that the family has.
    pub fn refuse_existing(&self, family: &OperatorFamily) -> Result<()> {
        match self.existing(family) {
            Some(key) => {
                let member = shown(self.ddl, key, ",");
                Err(err!(DUPLICATE_OBJECT, "{member} already exists in operator family \"{}\"", family.name))
            }
            None => Ok(()),
        }
    }

    /// Adds the members to a family, on behalf of a class that is in the catalog already, or 0.
    pub fn put(self, family: Arc<OperatorFamily>, class: Oid) -> Result<()> {
        if let Some((is_operator, ..)) = self.existing(&family) {
            let index = if is_operator { "pg_amop_fam_strat_index" } else { "pg_amproc_fam_proc_index" };
            bail!(UNIQUE_VIOLATION, "duplicate key value violates unique constraint \"{index}\"");
        }
        let mut family = (*family).clone();
        let catalog = self.ddl.catalog();
        let method = self.method;
        let class_of = |ty: Oid| {
            if class.is_valid() && ty == self.input_type {
                return class;
            }
            let all = catalog.user_operator_classes().find(|c| c.family == family.oid && c.input_type == ty);
            all.map_or(Oid::INVALID, |c| c.oid)
        };
        let operators: Vec<_> = self
            .operators
            .iter()
            .map(|m| {
                let is_tied = method.is_of_values() && m.left == m.right;
                let class = if is_tied { class_of(m.left) } else { Oid::INVALID };
                FamilyOperator { oid: self.ddl.tx().new_oid(), class, ..m.clone() }
            })
            .collect();
        let functions: Vec<_> = self
            .functions
            .iter()
            .map(|m| {
                let is_tied = match method.is_of_values() {
                    true => m.number == 1 && m.left == m.right,
                    false => is_required(method, m.number) && class.is_valid(),
                };
                let class = match (is_tied, method.is_of_values()) {
                    (true, true) => class_of(m.left),
                    (true, false) => class,
                    _ => Oid::INVALID,
                };
                FamilyFunction { oid: self.ddl.tx().new_oid(), class, ..m.clone() }
            })
            .collect();
        family.operators.extend(operators);
        family.functions.extend(functions);
        self.ddl.tx().put(Object::OperatorFamily(Arc::new(family)));
        Ok(())
    }
}

/// Whether classes of a method are nothing without a support function.
fn is_required(method: AccessMethod, number: i16) -> bool {
    match method.oid {
        classes::GIST => matches!(number, 1 | 2 | 5 | 6 | 7),
        classes::GIN => matches!(number, 2 | 3),
        _ => matches!(method.name, "spgist") && number <= 5 || method.name == "brin" && number <= 4,
    }
}

/// The number of the function that reads the options of a class.
fn options_function(method: AccessMethod) -> i16 {
    match method.name {
        "btree" | "brin" => 5,
        "hash" => 3,
        "gist" => 10,
        "gin" => 7,
        _ => 6,
    }
}

/// The types that a support function of B-tree and hash classes is for, by its arguments.
///
/// # Errors
/// 42P17 for a function that cannot be a support function.
fn implied_types(method: AccessMethod, f: &Function, number: i16, given: Option<(Oid, Oid)>) -> Result<Option<(Oid, Oid)>> {
    let takes = |count: usize| f.arg_types.len() == count;
    let is_of_internal = || f.arg_types == [oids::INTERNAL];
    let check = |holds: bool, message: &str| if holds { Ok(()) } else { Err(wrong(message)) };
    let is_one_type = given.is_none_or(|(left, right)| left == right);
    if number == options_function(method) {
        let alike = "left and right associated data types for operator class options parsing functions must match";
        check(is_one_type, alike)?;
        if !is_of_internal() || f.return_type != oids::VOID {
            let hint = "Valid signature of operator class options parsing function is (internal) RETURNS void.";
            return Err(wrong("invalid operator class options parsing function").hint(hint));
        }
        return Ok(None);
    }
    match (method.oid, number) {
        (classes::BTREE, 1) => {
            check(takes(2), "ordering comparison functions must have two arguments")?;
            check(f.return_type == oids::INT4, "ordering comparison functions must return integer")?;
            Ok(Some((f.arg_types[0], f.arg_types[1])))
        }
        (classes::BTREE, 2) => {
            check(is_of_internal(), "ordering sort support functions must accept type \"internal\"")?;
            check(f.return_type == oids::VOID, "ordering sort support functions must return void")?;
            Ok(None)
        }
        (classes::BTREE, 3) => {
            check(takes(5), "ordering in_range functions must have five arguments")?;
            check(f.return_type == oids::BOOL, "ordering in_range functions must return boolean")?;
            Ok(Some((f.arg_types[0], f.arg_types[2])))
        }
        (classes::BTREE, 4) => {
            check(takes(1), "ordering equal image functions must have one argument")?;
            check(f.return_type == oids::BOOL, "ordering equal image functions must return boolean")?;
            check(is_one_type, "ordering equal image functions must not be cross-type")?;
            Ok(None)
        }
        (classes::BTREE, 6) => {
            check(is_of_internal(), "btree skip support functions must accept type \"internal\"")?;
            check(f.return_type == oids::VOID, "btree skip support functions must return void")?;
            check(is_one_type, "btree skip support functions must not be cross-type")?;
            Ok(None)
        }
        (classes::HASH, 1) => {
            check(takes(1), "hash function 1 must have one argument")?;
            check(f.return_type == oids::INT4, "hash function 1 must return integer")?;
            Ok(Some((f.arg_types[0], f.arg_types[0])))
        }
        (classes::HASH, 2) => {
            check(takes(2), "hash function 2 must have two arguments")?;
            check(f.return_type == oids::INT8, "hash function 2 must return bigint")?;
            Ok(Some((f.arg_types[0], f.arg_types[0])))
        }
        _ => Ok(None),
    }
}
