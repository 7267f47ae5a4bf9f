//! Leakproof expressions, which reveal their inputs only to their caller: other conditions on a view with security_barrier see only
//! the rows that the view's own conditions let through, and those on a table with policies only the rows that these let through.

use melba_catalog::Catalog;

use crate::Expr;

impl Expr {
    /// Whether the expression may reveal more of a column's value than its result: by an error, a message, or a change. As
    /// PostgreSQL's contain_leaked_vars: functions of columns that are not marked LEAKPROOF may, and all expressions unknown here.
    pub fn may_leak(&self, catalog: &Catalog) -> bool {
        let function = match self {
            Expr::Const(_) | Expr::Var(_) | Expr::Param(_) | Expr::SqlValue { .. } | Expr::CaseTest { .. } => return false,
            Expr::CurrentOf { .. } => return false,
            Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::NullTest { .. }
            | Expr::BooleanTest { .. }
            | Expr::Relabel { .. }
            | Expr::Collate { .. }
            | Expr::Coalesce { .. }
            | Expr::Case(_)
            | Expr::Row(_)
            | Expr::Array(_) => None,
            Expr::Function(f) => Some(f.function),
            Expr::Operator(o) | Expr::Distinct(o) | Expr::NullIf(o) => Some(o.function),
            Expr::ScalarArray(s) => Some(s.function),
            _ => return self.has_column_or_query(),
        };
        if function.is_some_and(|f| catalog.function(f).is_none_or(|f| !f.leakproof)) && self.has_column_or_query() {
            return true;
        }
        let mut leaks = false;
        self.children(&mut |child| leaks |= child.may_leak(catalog));
        leaks
    }

    fn has_column_or_query(&self) -> bool {
        let mut found = false;
        self.visit(0, &mut |e, _| {
            found |= matches!(e, Expr::Var(_) | Expr::Sublink(_) | Expr::Aggregate(_) | Expr::Window(_));
            !found
        });
        found
    }
}
