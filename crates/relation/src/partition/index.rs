//! Indexes of partitioned tables: one on each partition, which may have existed before.

use std::sync::Arc;

use melba_catalog::{
    Catalog, Column, Constraint as Row, ConstraintKind, IndexInfo, IndexKey, Object, ObjectAddress, Relation, classes,
};
use melba_definition::context::Ddl;
use melba_definition::naming::{column_part, unused_relation_name};
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::PartitionCmd;

use crate::constraint::row::{bare_constraint, put_constraint};
use crate::index::build::build_index;
use crate::index::request::{AccessMethod, IndexRequest, KeyRequest};
use crate::table::relation::put_relation;
use crate::table::rows::check_excluded_rows;

/// A unique key of a partitioned table has all columns of its partition key: uniqueness is a matter of each partition.
pub fn check_partitioned_key(relation: &Relation, request: &IndexRequest) -> Result<()> {
    let Some(key) = relation.partition_key.as_ref().filter(|_| request.unique) else { return Ok(()) };
    let what = if request.primary { "PRIMARY KEY" } else { "UNIQUE" };
    for column in &key.columns {
        if column.column == 0 {
            return Err(err!(FEATURE_NOT_SUPPORTED, "unsupported {what} constraint with partition key definition")
                .detail(format!("{what} constraints cannot be used when partition keys include expressions.")));
        }
        if !request.keys.iter().any(|k| k.column == column.column) {
            let name = &relation.columns[column.column as usize - 1].name;
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "unique constraint on partitioned table must include all partitioning columns"
            )
            .detail(format!(
                "{what} constraint on table \"{}\" lacks column \"{name}\" which is part of the partition key.",
                relation.name
            )));
        }
    }
    Ok(())
}

/// Adds an index like it to every partition of an index's table.
pub fn index_partitions(ddl: &Ddl<'_>, index: Oid) -> Result<()> {
    let relation = ddl.relation(index)?;
    let Some(info) = &relation.index else { return Ok(()) };
    if ddl.relation(info.table)?.is_partitioned() {
        for partition in ddl.catalog().children(info.table) {
            index_partition(ddl, partition, index)?;
        }
    }
    Ok(())
}

/// Adds the indexes of its parents to a partition.
pub fn add_parent_indexes(ddl: &Ddl<'_>, partition: Oid) -> Result<()> {
    for parent in &ddl.relation(partition)?.parents {
        for index in &ddl.relation(*parent)?.indexes {
            index_partition(ddl, partition, *index)?;
        }
    }
    Ok(())
}

/// Attaches an index of a partition to its parent's, or makes one.
fn index_partition(ddl: &Ddl<'_>, partition: Oid, parent: Oid) -> Result<()> {
    let (table, above) = (ddl.relation(partition)?, ddl.relation(parent)?);
    let Some(info) = &above.index else { return Ok(()) };
    let catalog = ddl.catalog();
    let over = ddl.relation(info.table)?;
    let number = |n: i16| {
        let name = &over.columns[n as usize - 1].name;
        table.columns.iter().position(|c| !c.dropped && c.name == *name).map_or(0, |at| at as i16 + 1)
    };
    let own = table.indexes.iter().filter_map(|i| catalog.relation(*i));
    let fits = |i: &&Arc<Relation>| {
        let alike = |own: &Arc<IndexInfo>| is_alike(&catalog, info, own, &number) && has_such_constraint(info, own);
        i.parents.is_empty() && i.index.as_ref().is_some_and(alike)
    };
    let index = match own.into_iter().find(fits) {
        Some(found) => found.oid,
        None if info.primary && has_primary(&catalog, &table) => {
            bail!(INVALID_TABLE_DEFINITION, "multiple primary keys for table \"{}\" are not allowed", table.name)
        }
        None => copy_index(ddl, partition, &above, &number)?,
    };
    attach_index(ddl, index, parent)
}

/// Makes an index a part of a partitioned one, and its constraint a part of that one's.
fn attach_index(ddl: &Ddl<'_>, index: Oid, parent: Oid) -> Result<()> {
    let (relation, above) = (ddl.relation(index)?, ddl.relation(parent)?);
    let constraint_of = |r: &Relation| r.index.as_ref().map_or(Oid::INVALID, |i| i.constraint);
    put_relation(ddl, Relation { parents: vec![parent], ..(*relation).clone() });
    let catalog = ddl.catalog();
    let parent = constraint_of(&above);
    if let Some(row) = catalog.constraint(constraint_of(&relation)).filter(|_| parent.is_valid()) {
        let row = Row { parent, inherited: 1, local: false, ..(**row).clone() };
        ddl.tx().put(Object::Constraint(Arc::new(row)));
    }
    Ok(())
}

/// A former partition keeps its indexes as its own.
pub fn detach_indexes(ddl: &Ddl<'_>, table: &Relation) -> Result<()> {
    let catalog = ddl.catalog();
    for index in table.indexes.iter().filter_map(|i| catalog.relation(*i)).filter(|i| !i.parents.is_empty()) {
        put_relation(ddl, Relation { parents: vec![], ..(**index).clone() });
        if let Some(row) = index.index.as_ref().and_then(|i| catalog.constraint(i.constraint)) {
            let row = Row { parent: Oid::INVALID, inherited: 0, local: true, ..(**row).clone() };
            ddl.tx().put(Object::Constraint(Arc::new(row)));
        }
    }
    Ok(())
}

/// A part of a partitioned index is dropped only with it.
pub fn refuse_index_part(ddl: &Ddl<'_>, index: &Relation) -> Result<()> {
    let catalog = ddl.catalog();
    let Some(parent) = index.parents.first().and_then(|p| catalog.relation(*p)) else { return Ok(()) };
    Err(err!(DEPENDENT_OBJECTS_STILL_EXIST, "cannot drop index {} because index {} requires it", index.name, parent.name)
        .hint(format!("You can drop index {} instead.", parent.name)))
}

/// ALTER INDEX ... ATTACH PARTITION.
pub fn attach_index_partition(ddl: &Ddl<'_>, parent: &Relation, c: &PartitionCmd) -> Result<()> {
    let name = c.name.as_ref().ok_or_else(|| DbError::internal("ATTACH PARTITION without an index"))?;
    if c.bound.is_some() {
        bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a partitioned table", parent.name);
    }
    let index = ddl.open_relation(name, melba_engine::RelationLockMode::AccessExclusive)?;
    let (Some(own), Some(info)) = (&index.index, &parent.index) else {
        bail!(WRONG_OBJECT_TYPE, "\"{}\" is not an index", index.name);
    };
    if index.parents.contains(&parent.oid) {
        return Ok(());
    }
    let (table, over) = (ddl.relation(own.table)?, ddl.relation(info.table)?);
    let cannot = |detail: String| {
        err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "cannot attach index \"{}\" as a partition of index \"{}\"",
            index.name,
            parent.name
        )
        .detail(detail)
    };
    let catalog = ddl.catalog();
    let mut others = table.indexes.iter().filter_map(|i| catalog.relation(*i));
    if others.any(|i| i.parents.contains(&parent.oid)) {
        return Err(cannot(format!("Another index is already attached for partition \"{}\".", table.name)));
    }
    if !index.parents.is_empty() {
        return Err(cannot(format!("Index \"{}\" is already attached to another index.", index.name)));
    }
    if !table.parents.contains(&over.oid) {
        return Err(cannot(format!("Index \"{}\" is not an index on any partition of table \"{}\".", index.name, over.name)));
    }
    let number = |n: i16| {
        let name = &over.columns[n as usize - 1].name;
        table.columns.iter().position(|c| !c.dropped && c.name == *name).map_or(0, |at| at as i16 + 1)
    };
    if !is_alike(&catalog, info, own, &number) {
        return Err(err!(
            INVALID_OBJECT_DEFINITION,
            "cannot attach index \"{}\" as a partition of index \"{}\"",
            index.name,
            parent.name
        )
        .detail("The index definitions do not match."));
    }
    if info.constraint.is_valid() && !own.constraint.is_valid() {
        return Err(cannot(format!(
            "The index \"{}\" belongs to a constraint in table \"{}\" but no constraint exists for index \"{}\".",
            parent.name, over.name, index.name
        )));
    }
    attach_index(ddl, index.oid, parent.oid)?;
    validate_partitioned_index(ddl, parent.oid)
}

/// A partitioned index is valid once all partitions have their part.
fn validate_partitioned_index(ddl: &Ddl<'_>, index: Oid) -> Result<()> {
    let relation = ddl.relation(index)?;
    let Some(info) = relation.index.as_ref().filter(|i| !i.valid) else { return Ok(()) };
    let catalog = ddl.catalog();
    // A partition has one part at most.
    if catalog.child_count(info.table) == catalog.child_count(index) {
        let info = Arc::new(IndexInfo { valid: true, ..(**info).clone() });
        put_relation(ddl, Relation { index: Some(info), ..(*relation).clone() });
    }
    Ok(())
}

/// Whether an index of a partition is equivalent to its parent's. `number`: the partition's column for one of the parent.
fn is_alike(catalog: &Catalog, parent: &IndexInfo, own: &IndexInfo, number: &dyn Fn(i16) -> i16) -> bool {
    let same_key = |(a, b): (&IndexKey, &IndexKey)| {
        let column = if a.column == 0 { 0 } else { number(a.column) };
        column == b.column
            && a.expression == b.expression
            && a.collation == b.collation
            && a.opclass == b.opclass
            && a.descending == b.descending
            && a.nulls_first == b.nulls_first
    };
    let operators = |of: &IndexInfo| catalog.constraint(of.constraint).map_or(&[][..], |c| &c.operators[..]);
    operators(parent) == operators(own)
        && parent.unique == own.unique
        && parent.nulls_not_distinct == own.nulls_not_distinct
        && parent.predicate == own.predicate
        && parent.keys.len() == own.keys.len()
        && parent.keys.iter().zip(&own.keys).all(same_key)
        && parent.include.iter().map(|n| number(*n)).eq(own.include.iter().copied())
}

/// An index behind a constraint needs one that is behind a constraint of the kind.
fn has_such_constraint(parent: &IndexInfo, own: &IndexInfo) -> bool {
    !parent.constraint.is_valid() || (own.constraint.is_valid() && parent.primary == own.primary)
}

fn has_primary(catalog: &Catalog, table: &Relation) -> bool {
    table.indexes.iter().filter_map(|i| catalog.relation(*i)?.index.as_ref()).any(|i| i.primary)
}

/// Adds an index like another table's to a table, with a constraint if that one has. Returns its OID.
pub fn copy_index(ddl: &Ddl<'_>, table: Oid, index: &Relation, number: &dyn Fn(i16) -> i16) -> Result<Oid> {
    let Some(info) = &index.index else { return Err(DbError::internal("an index without its definition")) };
    let target = ddl.relation(table)?;
    let catalog = ddl.catalog();
    let is_primary = |i: &Oid| catalog.relation(*i).and_then(|r| r.index.as_ref()).is_some_and(|i| i.primary);
    if info.primary && target.indexes.iter().any(is_primary) {
        bail!(INVALID_TABLE_DEFINITION, "multiple primary keys for table \"{}\" are not allowed", target.name);
    }
    let keys: Vec<KeyRequest> = info
        .keys
        .iter()
        .zip(index.columns.iter())
        .map(|(k, own)| KeyRequest {
            column: if k.column == 0 { 0 } else { number(k.column) },
            expression: k.expression.clone().map(|text| (text, k.ty, k.collation)),
            collation: Some(k.collation),
            opclass: Some(k.opclass),
            descending: k.descending,
            nulls_first: k.nulls_first,
            name: Some(own.name.to_string()),
        })
        .collect();
    let name = copied_index_name(ddl, &target, index, info, &keys, number);
    let old = catalog.constraint(info.constraint);
    let constraint = old.map(|old| bare_constraint(ddl, &target, &name, old.kind)).transpose()?;
    let renumbered = |of: &ObjectAddress| match of.class == classes::PG_CLASS && of.object == info.table {
        true => ObjectAddress { object: table, sub: number(of.sub as i16).into(), ..*of },
        false => *of,
    };
    let depends_on = index.depends_on.iter().map(renumbered).collect();
    let request = IndexRequest {
        keys,
        include: info.include.iter().map(|c| number(*c)).collect(),
        unique: info.unique,
        primary: info.primary,
        nulls_not_distinct: info.nulls_not_distinct,
        predicate: info.predicate.clone(),
        method: AccessMethod::of_oid(&catalog, index.access_method),
        constraint: constraint.as_ref().map_or(Oid::INVALID, |c| c.oid),
        deferrable: info.deferrable,
        options: index.options.clone(),
        depends_on,
        concurrently: false,
        name,
    };
    let columns: Vec<i16> = request.keys.iter().map(|k| k.column).collect();
    let oid = build_index(ddl, &target, request)?;
    if let Some(bare) = constraint {
        let row = Row {
            columns,
            index: oid,
            deferrable: old.is_some_and(|c| c.deferrable),
            initially_deferred: old.is_some_and(|c| c.initially_deferred),
            operators: old.map_or_else(Vec::new, |c| c.operators.clone()),
            no_inherit: false,
            ..bare
        };
        put_constraint(ddl, (*ddl.relation(table)?).clone(), row);
        check_excluded_rows(ddl, oid)?;
    }
    index_partitions(ddl, oid)?;
    Ok(oid)
}

fn copied_index_name(
    ddl: &Ddl<'_>,
    target: &Relation,
    index: &Relation,
    info: &IndexInfo,
    keys: &[KeyRequest],
    number: &dyn Fn(i16) -> i16,
) -> String {
    // An expression's column is called like its function.
    let name = |(key, own): (&KeyRequest, &Column)| match key.column {
        0 => own.name.clone(),
        n => target.columns[n as usize - 1].name.clone(),
    };
    let mut names: Vec<Arc<str>> = keys.iter().zip(index.columns.iter()).map(name).collect();
    names.extend(info.include.iter().map(|c| target.columns[number(*c) as usize - 1].name.clone()));
    let names: Vec<&str> = names.iter().map(|n| &**n).collect();
    let part = column_part(&names);
    let catalog = ddl.catalog();
    let (middle, label) = match (info.primary, catalog.constraint(info.constraint).map(|c| c.kind)) {
        (true, _) => (None, "pkey"),
        (false, Some(ConstraintKind::Exclusion)) => (Some(part.as_str()), "excl"),
        (false, Some(_)) => (Some(part.as_str()), "key"),
        (false, None) => (Some(part.as_str()), "idx"),
    };
    unused_relation_name(&ddl.catalog(), target.namespace, &target.name, middle, label)
}
