//! Expressions that the catalog keeps as text: defaults, checks, index keys and predicates, generation expressions.

use std::sync::Arc;

use melba_analyze::{Expected, ExprKind};
use melba_catalog::{Column, ObjectAddress, Relation};
use melba_toast::Method;
use melba_tree::{Expr, Var};
use melba_types::{DbError, Oid, Result, bail};
use pg_query::protobuf::Node;

use crate::context::Ddl;

/// The use of an expression: decides its allowed content and its value's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Default,
    Check,
    Generated,
    IndexExpression,
    IndexPredicate,
    PartitionKey,
    /// An expression of a statistics object.
    Statistics,
    /// ALTER COLUMN TYPE ... USING.
    Transform,
}

/// An analyzed expression in the form the catalog keeps.
pub struct StoredExpression {
    pub expr: Expr,
    pub text: Arc<str>,
    pub ty: Oid,
    pub collation: Oid,
    pub depends_on: Vec<ObjectAddress>,
    /// Columns it reads, in order.
    pub columns: Vec<i16>,
    /// The expression is a plain column.
    pub column_only: Option<i16>,
}

impl StoredExpression {
    /// A superfluous default: a column without one is NULL, too.
    pub fn is_null(&self) -> bool {
        matches!(&self.expr, Expr::Const(c) if c.value.is_null())
    }
}

/// Analyzes an expression over a table's columns; `column`: the one whose value it is (defaults, generation).
///
/// # Errors
/// Those of the analysis; 42501 without USAGE on a type that it names.
pub fn stored_expression(
    ddl: &Ddl<'_>,
    node: &Node,
    relation: &Relation,
    usage: Use,
    column: Option<&Column>,
) -> Result<StoredExpression> {
    let stored = analyzed(ddl, node, relation, usage, column)?;
    let depends_on = ddl.usable(stored.depends_on)?;
    Ok(StoredExpression { depends_on, ..stored })
}

fn analyzed(ddl: &Ddl<'_>, node: &Node, relation: &Relation, usage: Use, column: Option<&Column>) -> Result<StoredExpression> {
    let kind = match usage {
        Use::Default => ExprKind::ColumnDefault,
        Use::Check => ExprKind::CheckConstraint,
        Use::Generated => ExprKind::GeneratedColumn,
        Use::IndexExpression => ExprKind::IndexExpression,
        Use::IndexPredicate => ExprKind::IndexPredicate,
        Use::PartitionKey => ExprKind::PartitionExpression,
        Use::Statistics => ExprKind::StatisticsExpression,
        Use::Transform => ExprKind::AlterColumnTransform,
    };
    let visible = Arc::new(relation.clone());
    let expected = column.map(|c| Expected { ty: c.ty, typmod: c.typmod, column: &c.name });
    ddl.with_context(|c| {
        let expr = melba_analyze::analyze_expression(c, node, Some(&visible), kind, expected)?;
        let mut columns = Vec::new();
        expr.visit_vars(&mut |v: &Var| {
            if v.column > 0 && !columns.contains(&v.column) {
                columns.push(v.column);
            }
        });
        columns.sort_unstable();
        refuse_virtual(usage, &visible, &columns)?;
        Ok(StoredExpression {
            text: melba_deparse::expression(c, &expr, Some(relation)).into(),
            ty: expr.ty(),
            collation: expr.collation(),
            depends_on: expr.dependencies(),
            columns,
            column_only: match &expr {
                Expr::Var(v) if v.column > 0 => Some(v.column),
                _ => None,
            },
            expr,
        })
    })
}

/// A stored expression, analyzed again because a column's type has changed; its types were usable when it was stored.
pub fn again(ddl: &Ddl<'_>, text: &str, relation: &Relation, usage: Use) -> Result<StoredExpression> {
    // Positions would be in the stored text, which the client did not send.
    let stored = analyzed(ddl, &melba_parse::parse_expression(text)?, relation, usage, None);
    stored.map_err(|mut error| {
        error.fields_mut().position = None;
        error
    })
}

/// The text of a domain's DEFAULT, and its dependencies.
pub fn domain_default(
    ddl: &Ddl<'_>,
    node: &Node,
    relation: &Relation,
    column: &Column,
) -> Result<(Arc<str>, Vec<ObjectAddress>)> {
    let stored = stored_expression(ddl, node, relation, Use::Default, Some(column))?;
    let text = ddl.with_context(|c| Ok(melba_deparse::domain_default(c, &stored.expr).into()))?;
    Ok((text, stored.depends_on))
}

/// Analyzes a domain's CHECK, where VALUE is of the base type: returns its text, and its dependencies.
pub fn stored_domain_check(ddl: &Ddl<'_>, node: &Node, base: Oid, typmod: i32) -> Result<(Arc<str>, Vec<ObjectAddress>)> {
    ddl.with_context(|c| {
        let expr = melba_analyze::analyze_domain_check(c, node, base, typmod)?;
        Ok((melba_deparse::expression(c, &expr, None).into(), ddl.usable(expr.dependencies())?))
    })
}

/// The code of a COMPRESSION clause.
pub fn compression_method(ddl: &Ddl<'_>, name: &str, column: &Column) -> Result<u8> {
    if name == "default" {
        return Ok(0);
    }
    let Some(method) = Method::from_name(name) else {
        bail!(INVALID_PARAMETER_VALUE, "invalid compression method \"{name}\"");
    };
    check_compressible(ddl, column.ty)?;
    Ok(method.letter())
}

/// Refuses types whose values are all short.
pub fn check_compressible(ddl: &Ddl<'_>, ty: Oid) -> Result<()> {
    if is_toastable(ddl, ty) {
        return Ok(());
    }
    let ty = ddl.catalog().type_name(ty, ddl.path());
    bail!(FEATURE_NOT_SUPPORTED, "column data type {ty} does not support compression")
}

/// The code of a STORAGE clause.
pub fn storage_strategy(ddl: &Ddl<'_>, name: &str, column: &Column) -> Result<u8> {
    let code = match name.to_ascii_lowercase().as_str() {
        "plain" => b'p',
        "external" => b'e',
        "extended" => b'x',
        "main" => b'm',
        "default" => ddl.catalog().type_(column.ty).map_or(b'p', |t| t.storage),
        _ => bail!(INVALID_PARAMETER_VALUE, "invalid storage type \"{name}\""),
    };
    if code != b'p' && !is_toastable(ddl, column.ty) {
        let ty = ddl.catalog().type_name(column.ty, ddl.path());
        bail!(FEATURE_NOT_SUPPORTED, "column data type {ty} can only have storage PLAIN");
    }
    Ok(code)
}

fn is_toastable(ddl: &Ddl<'_>, ty: Oid) -> bool {
    ddl.catalog().type_(ty).is_some_and(|t| t.storage != b'p')
}

/// The default B-tree equality between two types, as foreign keys use it.
pub fn equality_operator(ddl: &Ddl<'_>, left: Oid, right: Oid) -> Option<Oid> {
    ddl.with_context(|c| Ok(c.find_operator("=", left, right).map(|o| o.oid))).ok().flatten()
}

/// Expressions over stored rows cannot use columns that are computed on reading.
fn refuse_virtual(usage: Use, relation: &Relation, columns: &[i16]) -> Result<()> {
    let is_virtual = |c: &i16| relation.columns.get(*c as usize - 1).is_some_and(|c| c.generated == b'v');
    match usage {
        Use::IndexExpression | Use::IndexPredicate if columns.iter().any(is_virtual) => {
            bail!(FEATURE_NOT_SUPPORTED, "indexes on virtual generated columns are not supported")
        }
        Use::Transform if columns.iter().any(is_virtual) => {
            Err(DbError::unsupported("a virtual generated column in USING of ALTER COLUMN TYPE"))
        }
        _ => Ok(()),
    }
}
