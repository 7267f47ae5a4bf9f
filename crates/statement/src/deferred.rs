//! Constraint checks that wait for the commit: SET CONSTRAINTS, and the end of a transaction.

use melba_catalog::Catalog;
use melba_types::{Oid, Result, bail, err};
use pg_query::protobuf::{ConstraintsSetStmt, node::Node as N};

use super::context::StatementContext;
use super::ddl_context::Utility;
use super::execution::plain_evaluation;

/// Runs the constraint checks that waited for the commit, or (`all` false) those that SET CONSTRAINTS made immediate.
pub fn run_deferred(context: &StatementContext, all: bool) -> Result<()> {
    let Some(tx) = &context.tx else { return Ok(()) };
    tx.deferred.run(&plain_evaluation(context, tx), &tx.engine, all)
}

pub(super) fn set_constraints(utility: &Utility<'_>, s: &ConstraintsSetStmt) -> Result<()> {
    let Utility { context, lookup, .. } = utility;
    let catalog = lookup.catalog();
    let mut constraints = Vec::new();
    for node in &s.constraints {
        let N::RangeVar(name) = melba_parse::nodes::inner(node)? else { continue };
        let schemas: Vec<Oid> = match name.schemaname.as_str() {
            "" => lookup.path().to_vec(),
            schema => vec![lookup.namespace(schema)?.oid],
        };
        let all = schemas.iter().map(|ns| catalog.constraints_named(*ns, &name.relname)).find(|all| !all.is_empty());
        let all = all.ok_or_else(|| err!(UNDEFINED_OBJECT, "constraint \"{}\" does not exist", name.relname))?;
        if s.deferred && all.iter().any(|c| !c.deferrable) {
            bail!(WRONG_OBJECT_TYPE, "constraint \"{}\" is not deferrable", name.relname);
        }
        for constraint in all.iter().filter(|c| c.deferrable) {
            constraints.push(constraint.oid);
            add_parts(&catalog, constraint, &mut constraints);
        }
    }
    lookup.tx().deferred.set(&constraints, s.deferred);
    // Only checks take the transaction's snapshot, if it keeps one.
    if !s.deferred && !lookup.tx().deferred.is_empty() {
        run_deferred(context, false)?;
    }
    Ok(())
}

/// The constraints of partitions that are parts of one.
fn add_parts(catalog: &Catalog, constraint: &melba_catalog::Constraint, out: &mut Vec<Oid>) {
    // Partitions come after their parents.
    for table in catalog.descendants(constraint.relation).iter().filter_map(|t| catalog.relation(*t)) {
        // A part for a partition of the referenced table has parts for that one's partitions.
        loop {
            let own = table.constraints.iter().filter_map(|c| catalog.constraint(*c));
            let parts: Vec<Oid> = own.filter(|c| out.contains(&c.parent) && !out.contains(&c.oid)).map(|c| c.oid).collect();
            if parts.is_empty() {
                break;
            }
            out.extend(parts);
        }
    }
}
