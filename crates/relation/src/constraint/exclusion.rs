//! EXCLUDE constraints: their index and the operators of its columns.

use melba_analyze::OperatorName;
use melba_catalog::{Constraint as Row, ConstraintKind, IndexKey, Relation, TypeKind, classes};
use melba_definition::context::Ddl;
use melba_parse::nodes::{inner, strings};
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::Node;
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{Constraint, IndexElem};

use crate::constraint::row::{bare_constraint, column_numbers, put_constraint};
use crate::index::build::{build_index, require_key_order, resolve_key};
use crate::index::create::{index_name, index_predicate, invalidate_partitioned_index, key_request};
use crate::index::request::{AccessMethod, IndexRequest, KeyRequest};
use crate::partition::index::index_partitions;
use crate::table::rows::check_excluded_rows;
use crate::table::storage_parameters::ParametersOf;

/// EXCLUDE, DEFERRABLE and INITIALLY DEFERRED or not. With `recurse`, partitions get theirs; else they must have their own.
pub fn add_exclusion(ddl: &Ddl<'_>, table: Oid, c: &Constraint, deferrable: (bool, bool), recurse: bool) -> Result<()> {
    let relation = ddl.relation(table)?;
    let method = AccessMethod::of(&ddl.catalog(), &c.access_method)?;
    if !c.indexspace.is_empty() && c.indexspace != "pg_default" {
        bail!(UNDEFINED_OBJECT, "tablespace \"{}\" does not exist", c.indexspace);
    }
    method.check_exclusion(c.exclusions.len(), !c.including.is_empty())?;
    let mut depends_on = Vec::new();
    let mut elements = Vec::with_capacity(c.exclusions.len());
    for element in &c.exclusions {
        elements.push(element_of(element)?);
    }
    let mut keys = Vec::with_capacity(elements.len());
    for (element, _) in &elements {
        keys.push(key_request(ddl, &relation, element, method, &mut depends_on).map_err(in_key)?);
    }
    let include = column_numbers(&relation, &strings(&c.including), true)?;
    let predicate = match c.where_clause.as_deref() {
        Some(node) => Some(index_predicate(ddl, node, &relation, &mut depends_on)?),
        None => None,
    };
    let mut operators = Vec::with_capacity(elements.len());
    for (key, (_, names)) in keys.iter().zip(&elements) {
        let resolved = resolve_key(ddl, &relation, key, method)?;
        operators.push(exclusion_operator(ddl, names, resolved.ty, resolved.opclass)?);
    }
    let name = match c.conname.is_empty() {
        true => index_name(ddl, &relation, &keys, &include, "excl"),
        false => c.conname.clone(),
    };
    let bare = bare_constraint(ddl, &relation, &name, ConstraintKind::Exclusion)?;
    let row = Row {
        columns: keys.iter().map(|k| k.column).collect(),
        deferrable: deferrable.0,
        initially_deferred: deferrable.1,
        operators,
        no_inherit: true,
        ..bare
    };
    check_partitioned_exclusion(ddl, &relation, &row)?;
    let request = IndexRequest {
        keys,
        include,
        predicate,
        method,
        constraint: row.oid,
        deferrable: deferrable.0,
        options: ParametersOf::Index.new_list(&c.options)?,
        depends_on,
        ..IndexRequest::named(name)
    };
    let index = build_index(ddl, &relation, request)?;
    put_constraint(ddl, (*ddl.relation(table)?).clone(), Row { index, ..row });
    check_excluded_rows(ddl, index)?;
    if recurse {
        return index_partitions(ddl, index);
    }
    invalidate_partitioned_index(ddl, index)
}

/// The access method and the operators of a key WITHOUT OVERLAPS.
pub fn period_operators(ddl: &Ddl<'_>, relation: &Relation, keys: &[KeyRequest]) -> Result<(AccessMethod, Vec<Oid>)> {
    let catalog = ddl.catalog();
    if keys.len() < 2 {
        bail!(SYNTAX_ERROR, "constraint using WITHOUT OVERLAPS needs at least two columns");
    }
    let method = AccessMethod::of_oid(&catalog, classes::GIST);
    let mut operators = Vec::with_capacity(keys.len());
    for (at, key) in keys.iter().enumerate() {
        let column = &relation.columns[key.column as usize - 1];
        let is_period = at + 1 == keys.len();
        let kind = catalog.type_(catalog.base_type(column.ty)).map(|t| t.type_kind);
        if is_period && !matches!(kind, Some(TypeKind::Range | TypeKind::Multirange)) {
            bail!(DATATYPE_MISMATCH, "column \"{}\" in WITHOUT OVERLAPS is not a range or multirange type", column.name);
        }
        let resolved = resolve_key(ddl, relation, key, method)?;
        let name = if is_period { "&&" } else { "=" };
        operators.push(exclusion_operator(ddl, &[name], resolved.ty, resolved.opclass)?);
    }
    Ok((method, operators))
}

/// The operator of a column of an exclusion constraint, which must be one of the column's operator class.
pub fn exclusion_operator(ddl: &Ddl<'_>, names: &[&str], ty: Oid, class: Oid) -> Result<Oid> {
    let name = match names {
        [schema, name] => OperatorName { schema: Some(schema), name },
        _ => OperatorName::plain(names.last().copied().unwrap_or_default()),
    };
    let operator = ddl.with_context(|c| c.binary_operator(name, ty, ty, -1).cloned())?;
    let catalog = ddl.catalog();
    if let Some(class) = catalog.access_methods().class(class) {
        require_key_order(&catalog, class, ty)?;
    }
    let coercible = |to: Oid| catalog.is_binary_coercible(ty, to);
    let signature = || catalog.operator_signature(&operator, ddl.path());
    if !(coercible(operator.left) && coercible(operator.right)) {
        bail!(UNDEFINED_FUNCTION, "operator requires run-time type coercion: {}", signature());
    }
    if operator.commutator != operator.oid {
        return Err(err!(WRONG_OBJECT_TYPE, "operator {} is not commutative", signature())
            .detail("Only commutative operators can be used in exclusion constraints."));
    }
    let access = catalog.access_methods();
    let family = access.class(class).map_or(Oid::INVALID, |c| c.family);
    if catalog.operator_strategy(operator.oid, family).is_none() {
        let family = access.family(family).map_or("", |f| &*f.name);
        let message = format!("operator {} is not a member of operator family \"{family}\"", signature());
        return Err(err!(WRONG_OBJECT_TYPE, "{message}")
            .detail("The exclusion operator must be related to the index operator class for the constraint."));
    }
    Ok(operator.oid)
}

/// The operators of a constraint whose columns have got other types.
pub fn retyped_operators(ddl: &Ddl<'_>, constraint: &Row, keys: &[IndexKey]) -> Result<Vec<Oid>> {
    let catalog = ddl.catalog();
    let operator = |(old, key): (&Oid, &IndexKey)| {
        let name = catalog.operator(*old).map_or_else(Default::default, |o| o.name.clone());
        exclusion_operator(ddl, &[&name], key.ty, key.opclass)
    };
    constraint.operators.iter().zip(keys).map(operator).collect()
}

/// An exclusion constraint of a partitioned table compares all columns of the partition key by equality: it holds in each
/// partition.
fn check_partitioned_exclusion(ddl: &Ddl<'_>, relation: &Relation, constraint: &Row) -> Result<()> {
    let Some(key) = &relation.partition_key else { return Ok(()) };
    for column in &key.columns {
        if column.column == 0 {
            return Err(err!(FEATURE_NOT_SUPPORTED, "unsupported EXCLUDE constraint with partition key definition")
                .detail("EXCLUDE constraints cannot be used when partition keys include expressions."));
        }
        let name = &relation.columns[column.column as usize - 1].name;
        let Some(at) = constraint.columns.iter().position(|c| *c == column.column) else {
            let detail = format!(
                "EXCLUDE constraint on table \"{}\" lacks column \"{name}\" which is part of the partition key.",
                relation.name
            );
            let message = "unique constraint on partitioned table must include all partitioning columns";
            return Err(err!(FEATURE_NOT_SUPPORTED, "{message}").detail(detail));
        };
        check_partitioned_operator(ddl, name, constraint.operators[at])?;
    }
    Ok(())
}

/// The same of a key WITHOUT OVERLAPS.
pub fn check_partitioned_operators(ddl: &Ddl<'_>, relation: &Relation, constraint: &Row) -> Result<()> {
    let parts = relation.partition_key.iter().flat_map(|key| &key.columns);
    for column in parts.filter(|column| column.column > 0) {
        let at = constraint.columns.iter().position(|c| *c == column.column);
        if let Some(operator) = at.and_then(|at| constraint.operators.get(at)) {
            check_partitioned_operator(ddl, &relation.columns[column.column as usize - 1].name, *operator)?;
        }
    }
    Ok(())
}

fn check_partitioned_operator(ddl: &Ddl<'_>, column: &str, operator: Oid) -> Result<()> {
    let catalog = ddl.catalog();
    if catalog.is_equality(operator) {
        return Ok(());
    }
    let operator = catalog.operator(operator).map_or("", |o| &o.name);
    bail!(
        FEATURE_NOT_SUPPORTED,
        "cannot match partition key to index on column \"{column}\" using non-equal operator \"{operator}\""
    )
}

/// A column of EXCLUDE, and the names of its operator.
fn element_of(node: &Node) -> Result<(&IndexElem, Vec<&str>)> {
    let malformed = || DbError::internal("EXCLUDE without a column and its operator");
    let N::List(list) = inner(node)? else { return Err(malformed()) };
    let [element, operator] = &list.items[..] else { return Err(malformed()) };
    match (inner(element)?, inner(operator)?) {
        (N::IndexElem(element), N::List(names)) => Ok((element, strings(&names.items))),
        _ => Err(malformed()),
    }
}

/// The error of a missing column, as constraints report it.
fn in_key(error: DbError) -> DbError {
    match error.message().strip_suffix(" does not exist") {
        Some(column) if error.sqlstate() == melba_types::SqlState::UNDEFINED_COLUMN && column.starts_with("column ") => {
            DbError::new(error.sqlstate(), format!("{column} named in key does not exist"))
        }
        _ => error,
    }
}
