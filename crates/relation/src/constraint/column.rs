//! Checks the constraints written at one column against each other.

use melba_catalog::Column;
use melba_definition::context::Ddl;
use melba_parse::nodes::inner;
use melba_types::{DbError, Result, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{ColumnDef, ConstrType, Constraint, Node};

use crate::sequence::sequence_options;
use crate::table::builder::{TableBuilder, last_of, not_null};

/// The constraints of a column so far.
#[derive(Default)]
struct Said<'d> {
    null: bool,
    not_null: Option<&'d Constraint>,
    /// It is NOT NULL implicitly: serial, identity, a key.
    needs_not_null: bool,
    default: bool,
    identity: bool,
    generated: bool,
}

/// Refuses declarations of a column that contradict each other or come twice.
///
/// # Errors
/// 42601.
pub fn check_column_constraints(table: &str, def: &ColumnDef, is_serial: bool) -> Result<()> {
    use ConstrType::*;
    let mut constraints: Vec<&Constraint> = Vec::new();
    for node in &def.constraints {
        if let Some(N::Constraint(c)) = &node.node {
            constraints.push(c);
        }
    }
    let column = &def.colname;
    let of = format!("column \"{column}\" of table \"{table}\"");
    let refused = |what: &str, at: &Constraint| -> DbError { err!(SYNTAX_ERROR, "{what} {of}").at(at.location) };
    let inherits = is_serial || constraints.iter().any(|c| matches!(c.contype(), ConstrIdentity | ConstrPrimary));
    check_attributes(&constraints)?;
    let mut said = Said { needs_not_null: is_serial, ..Said::default() };
    for c in constraints {
        let contradiction = || refused("conflicting NULL/NOT NULL declarations for", c);
        match c.contype() {
            ConstrNull if said.not_null.is_some() || said.needs_not_null => return Err(contradiction()),
            ConstrNull => said.null = true,
            ConstrNotnull => {
                if said.null {
                    return Err(contradiction());
                }
                let other = said.not_null.is_some_and(|before| before.is_no_inherit != c.is_no_inherit);
                if other || inherits && c.is_no_inherit {
                    let message = format!("conflicting NO INHERIT declarations for not-null constraints on column \"{column}\"");
                    return Err(err!(SYNTAX_ERROR, "{message}"));
                }
                said.not_null = Some(c);
            }
            ConstrDefault if said.default => return Err(refused("multiple default values specified for", c)),
            ConstrDefault => said.default = true,
            ConstrIdentity if said.identity => return Err(refused("multiple identity specifications for", c)),
            ConstrGenerated if said.generated => return Err(refused("multiple generation clauses specified for", c)),
            ConstrGenerated => said.generated = true,
            ConstrIdentity | ConstrPrimary => {
                if said.null {
                    return Err(contradiction());
                }
                said.identity |= c.contype() == ConstrIdentity;
                said.needs_not_null = true;
            }
            _ => {}
        }
        if said.default && said.identity {
            return Err(refused("both default and identity specified for", c));
        }
        if said.default && said.generated {
            return Err(refused("both default and generation expression specified for", c));
        }
        if said.identity && said.generated {
            return Err(refused("both identity and generation expression specified for", c));
        }
    }
    // A serial column has a default, which comes after all that is written.
    if is_serial && said.default {
        return Err(err!(SYNTAX_ERROR, "multiple default values specified for {of}"));
    }
    if is_serial && said.identity {
        return Err(err!(SYNTAX_ERROR, "both default and identity specified for {of}"));
    }
    if is_serial && said.generated {
        return Err(err!(SYNTAX_ERROR, "both default and generation expression specified for {of}"));
    }
    Ok(())
}

/// Refuses attributes (DEFERRABLE, ...) that a constraint has twice, or that contradict each other.
fn check_attributes(constraints: &[&Constraint]) -> Result<()> {
    use ConstrType::*;
    let (mut deferrable, mut initially, mut enforced) = (None, None, None);
    for c in constraints {
        let (seen, clauses) = match c.contype() {
            ConstrAttrDeferrable | ConstrAttrNotDeferrable => (&mut deferrable, "DEFERRABLE/NOT DEFERRABLE"),
            ConstrAttrDeferred | ConstrAttrImmediate => (&mut initially, "INITIALLY IMMEDIATE/DEFERRED"),
            ConstrAttrEnforced | ConstrAttrNotEnforced => (&mut enforced, "ENFORCED/NOT ENFORCED"),
            _ => {
                (deferrable, initially, enforced) = (None, None, None);
                continue;
            }
        };
        if seen.replace(c.contype()).is_some() {
            return Err(err!(SYNTAX_ERROR, "multiple {clauses} clauses not allowed").at(c.location));
        }
        if deferrable == Some(ConstrAttrNotDeferrable) && initially == Some(ConstrAttrDeferred) {
            return Err(err!(SYNTAX_ERROR, "constraint declared INITIALLY DEFERRED must be DEFERRABLE").at(c.location));
        }
    }
    Ok(())
}

/// Collects the constraints written at the column that comes next.
pub fn add_column_constraints(
    ddl: &Ddl<'_>,
    builder: &mut TableBuilder,
    def: &ColumnDef,
    column: &mut Column,
    is_serial: bool,
) -> Result<()> {
    let at = builder.columns.len();
    check_column_constraints(&builder.table, def, is_serial)?;
    for constraint in &def.constraints {
        let N::Constraint(constraint) = inner(constraint)? else { continue };
        match constraint.contype() {
            ConstrType::ConstrNull => {}
            // Written after their constraint, as separate nodes.
            ConstrType::ConstrAttrDeferrable => last_of(builder, at, constraint)?.deferrable = true,
            ConstrType::ConstrAttrNotDeferrable => last_of(builder, at, constraint)?.deferrable = false,
            ConstrType::ConstrAttrDeferred => last_of(builder, at, constraint)?.initdeferred = true,
            ConstrType::ConstrAttrImmediate => last_of(builder, at, constraint)?.initdeferred = false,
            ConstrType::ConstrAttrEnforced => last_of(builder, at, constraint)?.is_enforced = true,
            ConstrType::ConstrAttrNotEnforced => last_of(builder, at, constraint)?.is_enforced = false,
            ConstrType::ConstrIdentity => {
                column.not_null = true;
                column.identity = constraint.generated_when.as_bytes().first().copied().unwrap_or(b'a');
                builder.sequences.push((at, sequence_options(ddl, &constraint.options, Some(column.ty))?, true));
            }
            ConstrType::ConstrNotnull => {
                column.not_null = true;
                builder.constraints.push((Some(at), (**constraint).clone()));
            }
            kind => {
                if kind == ConstrType::ConstrGenerated {
                    column.generated = if constraint.generated_kind == "v" { b'v' } else { b's' };
                }
                builder.constraints.push((Some(at), (**constraint).clone()));
            }
        }
    }
    // An implicit NOT NULL counts beside an explicit one.
    let is_said = |(of, c): &(Option<usize>, Constraint)| *of == Some(at) && c.contype() == ConstrType::ConstrNotnull;
    if (is_serial || column.identity != 0) && !builder.constraints.iter().any(is_said) {
        builder.constraints.push((Some(at), not_null()));
    }
    Ok(())
}

pub fn constraints_of(def: &ColumnDef) -> impl Iterator<Item = &Constraint> {
    def.constraints.iter().filter_map(|n| match &n.node {
        Some(N::Constraint(c)) => Some(&**c),
        _ => None,
    })
}

/// A column's definition with some of its constraints only.
pub fn with_constraints(def: &ColumnDef, keep: impl Fn(&Constraint) -> bool) -> ColumnDef {
    let kept = |n: &&Node| matches!(&n.node, Some(N::Constraint(c)) if keep(c));
    ColumnDef { constraints: def.constraints.iter().filter(kept).cloned().collect(), ..def.clone() }
}
