//! Expressions that the catalog keeps as text: defaults, checks, index keys and predicates, generation expressions.

use std::sync::Arc;

use melba_catalog::{Column, ObjectAddress, Relation};
use melba_toast::Method;
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::{Node, TypeName};

use super::Ddl;
use melba_analyze::{Context, Expected, ExprKind};
use melba_parse::nodes::qualified;
use melba_tree::{Expr, Var};

/// The use of an expression: decides its allowed content and its value's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Default,
    Check,
    Generated,
    IndexExpression,
    IndexPredicate,
    PartitionKey,
    /// ALTER COLUMN TYPE ... USING.
    Transform,
}

/// An analyzed expression in the form the catalog keeps.
pub struct Stored {
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

impl Stored {
    /// A superfluous default: a column without one is NULL, too.
    pub fn is_null(&self) -> bool {
        matches!(&self.expr, Expr::Const(c) if c.value.is_null())
    }
}

impl Ddl<'_> {
    /// Runs `f` with an analysis context.
    pub fn with_context<T>(&self, f: impl FnOnce(&Context<'_>) -> Result<T>) -> Result<T> {
        let catalog = self.catalog();
        let database = catalog.database(self.tx.database).map_or_else(String::new, |d| d.name.to_string());
        // Functions must see the transaction's changes: they write and read the names of objects.
        let changed = self.tx.has_catalog_changes().then(|| (self.session_for)(catalog.clone()));
        f(&Context {
            catalog: &catalog,
            session: changed.as_deref().unwrap_or(self.session),
            search_path: self.path,
            temp_namespace: self.temporary,
            database: &database,
            user: self.user,
        })
    }

    pub fn type_from_name(&self, name: &TypeName) -> Result<(Oid, i32)> {
        self.with_context(|c| c.transform_type_name(name))
    }

    /// Analyzes an expression over a table's columns; `column`: the one whose value it is (defaults, generation).
    pub fn stored_expression(&self, node: &Node, relation: &Relation, usage: Use, column: Option<&Column>) -> Result<Stored> {
        let kind = match usage {
            Use::Default => ExprKind::ColumnDefault,
            Use::Check => ExprKind::CheckConstraint,
            Use::Generated => ExprKind::GeneratedColumn,
            Use::IndexExpression => ExprKind::IndexExpression,
            Use::IndexPredicate => ExprKind::IndexPredicate,
            Use::PartitionKey => ExprKind::PartitionExpression,
            Use::Transform => ExprKind::AlterColumnTransform,
        };
        let visible = Arc::new(relation.clone());
        let expected = column.map(|c| Expected { ty: c.ty, typmod: c.typmod, column: &c.name });
        self.with_context(|c| {
            let expr = melba_analyze::analyze_expression(c, node, Some(&visible), kind, expected)?;
            let mut columns = Vec::new();
            expr.visit_vars(&mut |v: &Var| {
                if v.column > 0 && !columns.contains(&v.column) {
                    columns.push(v.column);
                }
            });
            columns.sort_unstable();
            refuse_virtual(usage, &visible, &columns)?;
            Ok(Stored {
                text: melba_deparse::expression(c, &expr, Some(relation)).into(),
                ty: expr.ty(),
                collation: expr.collation(),
                depends_on: self.usable(expr.dependencies())?,
                columns,
                column_only: match &expr {
                    Expr::Var(v) if v.column > 0 => Some(v.column),
                    _ => None,
                },
                expr,
            })
        })
    }

    /// The text of a domain's DEFAULT, and its dependencies.
    pub fn domain_default(&self, node: &Node, relation: &Relation, column: &Column) -> Result<(Arc<str>, Vec<ObjectAddress>)> {
        let stored = self.stored_expression(node, relation, Use::Default, Some(column))?;
        let text = self.with_context(|c| Ok(melba_deparse::domain_default(c, &stored.expr).into()))?;
        Ok((text, stored.depends_on))
    }

    /// Analyzes a domain's CHECK, where VALUE is of the base type: returns its text, and its dependencies.
    pub fn stored_domain_check(&self, node: &Node, base: Oid, typmod: i32) -> Result<(Arc<str>, Vec<ObjectAddress>)> {
        self.with_context(|c| {
            let expr = melba_analyze::analyze_domain_check(c, node, base, typmod)?;
            Ok((melba_deparse::expression(c, &expr, None).into(), self.usable(expr.dependencies())?))
        })
    }

    /// The collation a COLLATE clause names, for a column of a type.
    pub fn collation(&self, names: &[&str], ty: Oid, location: i32) -> Result<Oid> {
        let catalog = self.catalog();
        if catalog.type_(ty).is_some_and(|t| !t.collation.is_valid()) {
            let name = catalog.type_name(ty, self.path);
            return Err(err!(DATATYPE_MISMATCH, "collations are not supported by type {name}").at(location));
        }
        self.with_context(|c| Ok(c.find_collation(names, location)?.oid))
    }

    /// The code of a COMPRESSION clause.
    pub fn compression_method(&self, name: &str, column: &Column) -> Result<u8> {
        if name == "default" {
            return Ok(0);
        }
        let Some(method) = Method::from_name(name) else {
            bail!(INVALID_PARAMETER_VALUE, "invalid compression method \"{name}\"");
        };
        self.check_compressible(column.ty)?;
        Ok(method.letter())
    }

    /// Refuses types whose values are all short.
    pub fn check_compressible(&self, ty: Oid) -> Result<()> {
        if self.is_toastable(ty) {
            return Ok(());
        }
        let ty = self.catalog().type_name(ty, self.path);
        bail!(FEATURE_NOT_SUPPORTED, "column data type {ty} does not support compression")
    }

    /// The code of a STORAGE clause.
    pub fn storage_strategy(&self, name: &str, column: &Column) -> Result<u8> {
        let code = match name.to_ascii_lowercase().as_str() {
            "plain" => b'p',
            "external" => b'e',
            "extended" => b'x',
            "main" => b'm',
            "default" => self.catalog().type_(column.ty).map_or(b'p', |t| t.storage),
            _ => bail!(INVALID_PARAMETER_VALUE, "invalid storage type \"{name}\""),
        };
        if code != b'p' && !self.is_toastable(column.ty) {
            let ty = self.catalog().type_name(column.ty, self.path);
            bail!(FEATURE_NOT_SUPPORTED, "column data type {ty} can only have storage PLAIN");
        }
        Ok(code)
    }

    fn is_toastable(&self, ty: Oid) -> bool {
        self.catalog().type_(ty).is_some_and(|t| t.storage != b'p')
    }

    /// The default B-tree equality between two types, as foreign keys use it.
    pub fn equality_operator(&self, left: Oid, right: Oid) -> Option<Oid> {
        self.with_context(|c| Ok(c.find_operator("=", left, right).map(|o| o.oid))).ok().flatten()
    }

    /// A possibly qualified name as (schema, name).
    pub fn split<'n>(&self, names: &[&'n str]) -> Result<(Option<&'n str>, &'n str)> {
        qualified(names)
    }
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
