//! Copies the parts of CREATE TABLE ... (LIKE ...) besides columns: checks, indexes with their constraints, statistics objects,
//! comments.

use std::sync::Arc;

use melba_catalog::{Constraint as Row, ConstraintKind, Description, Object, ObjectAddress, classes};
use melba_definition::context::Ddl;
use melba_types::{Oid, Result};

use crate::constraint::row::{bare_constraint, put_constraint};
use crate::partition::index::copy_index;
use crate::statistics::create::copy_statistics;
use crate::table::builder::like;

pub fn copy_like(ddl: &Ddl<'_>, table: Oid, source: Oid, bits: u32) -> Result<()> {
    let source = ddl.relation(source)?;
    let catalog = ddl.catalog();
    let target = ddl.relation(table)?;
    // Column numbers of the source in the new table.
    let number = |n: i16| {
        let name = &source.columns[n as usize - 1].name;
        target.columns.iter().position(|c| c.name == *name).map_or(0, |at| at as i16 + 1)
    };
    let comments = bits & like::COMMENTS != 0;
    for constraint in source.constraints.iter().filter_map(|c| catalog.constraint(*c)) {
        let copy = match constraint.kind {
            ConstraintKind::Check if bits & like::CONSTRAINTS != 0 => copy_check(ddl, table, constraint, &number)?,
            ConstraintKind::NotNull => {
                let of = constraint.columns.first().map(|c| number(*c));
                let target = ddl.relation(table)?;
                of.and_then(|n| ddl.catalog().not_null_constraint(&target, n).map(|c| c.oid))
            }
            _ => None,
        };
        if let Some(copy) = copy.filter(|_| comments) {
            copy_comment(ddl, (classes::PG_CONSTRAINT, constraint.oid, 0), (copy, 0));
        }
    }
    if bits & like::INDEXES != 0 {
        for index in source.indexes.iter().filter_map(|i| catalog.relation(*i)) {
            let copy = copy_index(ddl, table, index, &number)?;
            if comments {
                copy_comment(ddl, (classes::PG_CLASS, index.oid, 0), (copy, 0));
            }
        }
    }
    if bits & like::STATISTICS != 0 {
        for (original, copy) in copy_statistics(ddl, table, &source, &number)? {
            if comments {
                copy_comment(ddl, (classes::PG_STATISTIC_EXT, original, 0), (copy, 0));
            }
        }
    }
    if comments {
        for at in (1..).zip(source.columns.iter()).filter(|(_, c)| !c.dropped).map(|(at, _)| at) {
            let to = i32::from(number(at));
            if to > 0 {
                copy_comment(ddl, (classes::PG_CLASS, source.oid, i32::from(at)), (table, to));
            }
        }
    }
    Ok(())
}

fn copy_comment(ddl: &Ddl<'_>, (class, object, sub): (Oid, Oid, i32), (to, to_sub): (Oid, i32)) {
    let catalog = ddl.catalog();
    if let Some(comment) = catalog.description(ObjectAddress { class, object, sub }) {
        let address = ObjectAddress { class, object: to, sub: to_sub };
        ddl.tx().put(Object::Description(Arc::new(Description { address, text: comment.text.clone() })));
    }
}

/// Adds another table's check to a table; an inherited one becomes its own, too.
fn copy_check(ddl: &Ddl<'_>, table: Oid, check: &Row, number: &dyn Fn(i16) -> i16) -> Result<Option<Oid>> {
    let target = ddl.relation(table)?;
    let catalog = ddl.catalog();
    let mut own = target.constraints.iter().filter_map(|c| catalog.constraint(*c));
    let same = |c: &&Arc<Row>| c.name == check.name && c.inherited > 0 && c.expression == check.expression;
    if let Some(inherited) = own.find(same) {
        ddl.notice(format!("merging constraint \"{}\" with inherited definition", check.name));
        ddl.tx().put(Object::Constraint(Arc::new(Row { local: true, ..(**inherited).clone() })));
        return Ok(Some(inherited.oid));
    }
    let row = Row {
        columns: check.columns.iter().map(|c| number(*c)).collect(),
        expression: check.expression.clone(),
        depends_on: ddl.usable(check.depends_on.clone())?,
        no_inherit: check.no_inherit,
        enforced: check.enforced,
        validated: check.enforced,
        ..bare_constraint(ddl, &target, &check.name, ConstraintKind::Check)?
    };
    let oid = row.oid;
    put_constraint(ddl, (*target).clone(), row);
    Ok(Some(oid))
}
