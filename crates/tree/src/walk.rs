//! Traversal of expressions and queries.
//!
//! `Expr::children` and `Query::expressions` visit one level; the functions at the end visit all levels, counting query levels.
//! Every traversal of a tree is built from these, so that a new kind of node is added only here.

use super::*;

macro_rules! expr_children {
    ($name:ident, $iter:ident, $as_deref:ident $(, $mut:tt)?) => {
        /// Calls `f` for every direct subexpression, in the order in which they are evaluated. Of a sublink only the test:
        /// its query is another level.
        pub fn $name<'a>(&'a $($mut)? self, f: &mut dyn FnMut(&'a $($mut)? Expr)) {
            match self {
                Expr::Const(_)
                | Expr::Var(_)
                | Expr::Param(_)
                | Expr::DomainValue { .. }
                | Expr::SqlValue { .. }
                | Expr::Default { .. }
                | Expr::CaseTest { .. }
                | Expr::MergeAction
                | Expr::NextValue { .. } => {}
                Expr::Function(c) => c.args.$iter().for_each(f),
                Expr::Operator(c) | Expr::Distinct(c) | Expr::NullIf(c) => c.args.$iter().for_each(f),
                Expr::ScalarArray(s) => {
                    f(&$($mut)? s.scalar);
                    f(&$($mut)? s.array);
                }
                Expr::And(args) | Expr::Or(args) => args.$iter().for_each(f),
                Expr::Coalesce { args, .. }
                | Expr::MinMax { args, .. }
                | Expr::Grouping { args, .. }
                | Expr::CurrentOf { args }
                | Expr::Sampled { args, .. } => args.$iter().for_each(f),
                Expr::Not(arg)
                | Expr::NullTest { arg, .. }
                | Expr::BooleanTest { arg, .. }
                | Expr::Relabel { arg, .. }
                | Expr::CoerceViaIo { arg, .. }
                | Expr::ConvertRowtype { arg, .. }
                | Expr::CoerceToDomain { arg, .. }
                | Expr::Collate { arg, .. }
                | Expr::FieldSelect { arg, .. } => f(arg),
                Expr::ArrayCoerce { arg, element, .. } => {
                    f(arg);
                    f(element);
                }
                Expr::FieldStore { arg, values, .. } => {
                    f(arg);
                    values.$iter().for_each(|(_, v)| f(v));
                }
                Expr::Case(c) => {
                    if let Some(arg) = &$($mut)? c.arg {
                        f(arg);
                    }
                    for (when, then) in c.whens.$iter() {
                        f(when);
                        f(then);
                    }
                    f(&$($mut)? c.default);
                }
                Expr::Array(a) => a.elements.$iter().for_each(f),
                Expr::Row(r) => r.fields.$iter().for_each(f),
                Expr::RowCompare(r) => {
                    r.left.$iter().for_each(&mut *f);
                    r.right.$iter().for_each(f);
                }
                Expr::Subscript(s) => {
                    f(&$($mut)? s.container);
                    s.upper.$iter().flatten().for_each(&mut *f);
                    s.lower.$iter().flatten().for_each(&mut *f);
                    if let Some(assign) = &$($mut)? s.assign {
                        f(assign);
                    }
                }
                Expr::Aggregate(a) => {
                    a.direct_args.$iter().for_each(&mut *f);
                    a.args.$iter().for_each(&mut *f);
                    a.order_by.$iter().for_each(|o| f(&$($mut)? o.expr));
                    if let Some(filter) = &$($mut)? a.filter {
                        f(filter);
                    }
                }
                Expr::Window(w) => {
                    w.args.$iter().for_each(&mut *f);
                    if let Some(filter) = &$($mut)? w.filter {
                        f(filter);
                    }
                }
                Expr::Sublink(s) => {
                    if let Some(test) = &$($mut)? s.test {
                        f(test);
                    }
                }
                Expr::JsonValue(v) => v.$name(f),
                Expr::JsonConstructor(c) => c.$name(f),
                Expr::IsJson(p) => f(&$($mut)? p.arg),
                Expr::Json(j) => j.$name(f),
            }
        }
    };
}

macro_rules! query_expressions {
    ($exprs:ident, $subqueries:ident, $from:ident, $entry:ident, $children_of_table:ident, $iter:ident $(, $mut:tt)?) => {
        /// Calls `f` for every expression that stands directly in this query: not those of subqueries in FROM and of CTEs.
        pub fn $exprs<'a>(&'a $($mut)? self, f: &mut dyn FnMut(&'a $($mut)? Expr)) {
            for entry in self.range_table.$iter() {
                $entry(entry, f);
            }
            self.from.$iter().for_each(|item| $from(item, f));
            if let Some(filter) = &$($mut)? self.filter {
                f(filter);
            }
            self.targets.$iter().for_each(|t| f(&$($mut)? t.expr));
            if let Some(InsertInfo { on_conflict: Some(conflict), .. }) = &$($mut)? self.insert {
                conflict.inference.$iter().for_each(&mut *f);
                if let Some(filter) = &$($mut)? conflict.inference_filter {
                    f(filter);
                }
                if let Some(update) = &$($mut)? conflict.update {
                    update.targets.$iter().for_each(|t| f(&$($mut)? t.expr));
                    if let Some(filter) = &$($mut)? update.filter {
                        f(filter);
                    }
                }
            }
            if let Some(condition) = &$($mut)? self.merge_condition {
                f(condition);
            }
            for action in self.merge_actions.$iter() {
                if let Some(condition) = &$($mut)? action.condition {
                    f(condition);
                }
                action.targets.$iter().for_each(|t| f(&$($mut)? t.expr));
            }
            self.returning.$iter().for_each(|t| f(&$($mut)? t.expr));
            self.row_checks.$iter().for_each(|c| f(&$($mut)? c.condition));
            if let Some(having) = &$($mut)? self.having {
                f(having);
            }
            for window in self.windows.$iter() {
                for bound in [&$($mut)? window.frame.start, &$($mut)? window.frame.end] {
                    if let FrameBound::Preceding(e) | FrameBound::Following(e) = bound {
                        f(e);
                    }
                }
            }
            for e in [&$($mut)? self.offset, &$($mut)? self.limit].into_iter().flatten() {
                f(e);
            }
        }

        /// Calls `f` for every query one level further in: FROM's subqueries and the CTEs (not sublinks).
        pub fn $subqueries<'a>(&'a $($mut)? self, f: &mut dyn FnMut(&'a $($mut)? Query)) {
            for cte in self.ctes.$iter() {
                f(&$($mut)? cte.query);
            }
            for entry in self.range_table.$iter() {
                if let RangeKind::Subquery { query, .. } = &$($mut)? entry.kind {
                    f(query);
                }
            }
        }
    };
}

macro_rules! from_expressions {
    ($from:ident, $entry:ident, $iter:ident $(, $mut:tt)?) => {
        fn $from<'a>(item: &'a $($mut)? FromItem, f: &mut dyn FnMut(&'a $($mut)? Expr)) {
            if let FromItem::Join(join) = item {
                let join = &$($mut)? **join;
                $from(&$($mut)? join.left, f);
                $from(&$($mut)? join.right, f);
                if let Some(condition) = &$($mut)? join.condition {
                    f(condition);
                }
            }
        }

        fn $entry<'a>(entry: &'a $($mut)? RangeEntry, f: &mut dyn FnMut(&'a $($mut)? Expr)) {
            entry.security.$iter().for_each(&mut *f);
            match &$($mut)? entry.kind {
                RangeKind::Relation { sample: Some(sample), .. } => {
                    sample.args.$iter().for_each(&mut *f);
                    if let Some(repeatable) = &$($mut)? sample.repeatable {
                        f(repeatable);
                    }
                }
                RangeKind::Function { functions, .. } => functions.$iter().for_each(|x| f(&$($mut)? x.expr)),
                RangeKind::Values { rows } => rows.$iter().flatten().for_each(f),
                RangeKind::Join { merged, .. } => merged.$iter().for_each(f),
                RangeKind::JsonTable(table) => {
                    f(&$($mut)? table.item);
                    table.passing.$iter().for_each(|(_, v)| f(v));
                    for column in table.columns.$iter() {
                        if let Some(value) = &$($mut)? column.value {
                            f(value);
                        }
                    }
                }
                RangeKind::Relation { sample: None, .. }
                | RangeKind::Subquery { .. }
                | RangeKind::Cte { .. }
                | RangeKind::Transition { .. }
                | RangeKind::Result => {}
            }
        }
    };
}

from_expressions!(from_expressions, entry_expressions, iter);
from_expressions!(from_expressions_mut, entry_expressions_mut, iter_mut, mut);

impl Expr {
    expr_children!(children, iter, as_deref);
    expr_children!(children_mut, iter_mut, as_deref_mut, mut);

    /// Whether `f` holds for this expression or any below it, without entering sublinks' queries.
    pub fn any(&self, f: &mut dyn FnMut(&Expr) -> bool) -> bool {
        if f(self) {
            return true;
        }
        let mut found = false;
        self.children(&mut |child| found = found || child.any(f));
        found
    }

    /// Calls `f` for every node of this expression and of the queries in it; the number is the query level relative to
    /// this expression. `f` returns false to stay out of a node.
    pub fn visit(&self, level: usize, f: &mut dyn FnMut(&Expr, usize) -> bool) {
        if !f(self, level) {
            return;
        }
        self.children(&mut |child| child.visit(level, f));
        if let Expr::Sublink(s) = self {
            s.query.visit(level + 1, f);
        }
    }

    /// Like `visit`, to change nodes in place. A node is handed to `f` before its children.
    pub fn visit_mut(&mut self, level: usize, f: &mut dyn FnMut(&mut Expr, usize) -> bool) {
        if !f(self, level) {
            return;
        }
        self.children_mut(&mut |child| child.visit_mut(level, f));
        if let Expr::Sublink(s) = self {
            s.query.visit_mut(level + 1, f);
        }
    }

    /// The position in the text of a constant, or of a parameter that may stand for one; -1: unknown. `None` for other expressions.
    pub fn constant_location(&self) -> Option<i32> {
        match self {
            Expr::Const(c) => Some(c.location),
            Expr::Param(p) => Some(p.location),
            Expr::Relabel { arg, .. } | Expr::CoerceViaIo { arg, .. } => arg.constant_location(),
            _ => None,
        }
    }

    /// Removes the text positions of the expression and everything below it.
    pub fn clear_locations(&mut self) {
        self.visit_mut(0, &mut |e, _| {
            e.clear_location();
            true
        });
    }

    fn clear_location(&mut self) {
        match self {
            Expr::Const(c) => c.location = -1,
            Expr::Var(v) => v.location = -1,
            Expr::Param(p) => p.location = -1,
            Expr::Function(f) => f.location = -1,
            Expr::Operator(o) | Expr::Distinct(o) | Expr::NullIf(o) => o.location = -1,
            Expr::ScalarArray(s) => s.location = -1,
            Expr::Aggregate(a) => a.location = -1,
            Expr::Window(w) => w.location = -1,
            Expr::Sublink(s) => s.location = -1,
            Expr::JsonConstructor(c) => c.location = -1,
            Expr::IsJson(p) => p.location = -1,
            Expr::Json(j) => j.location = -1,
            Expr::Array(a) => a.location = -1,
            Expr::Row(r) => r.location = -1,
            Expr::Case(c) => c.location = -1,
            Expr::Coalesce { location, .. } | Expr::Grouping { location, .. } => *location = -1,
            _ => {}
        }
    }

    /// Vars that refer to the query this expression stands in, sublinks included.
    pub fn visit_vars(&self, f: &mut dyn FnMut(&Var)) {
        self.visit(0, &mut |e, level| {
            if let Expr::Var(v) = e
                && v.levels_up == level
            {
                f(v);
            }
            true
        });
    }

    /// Whether the expression refers to any column of the same query level.
    pub fn has_vars(&self) -> bool {
        let mut found = false;
        self.visit_vars(&mut |_| found = true);
        found
    }

    /// Adds `by` to the level of every reference that reaches beyond `from` levels.
    pub fn shift_levels(&mut self, by: usize, from: usize) {
        self.visit_mut(0, &mut |e, level| shift(e, level + from, by));
        self.shift_ctes(by, from);
    }

    /// References of the expression's subqueries to WITH queries count levels as well.
    fn shift_ctes(&mut self, by: usize, from: usize) {
        self.visit_mut(0, &mut |e, _| {
            let Expr::Sublink(s) = e else { return true };
            if let Some(test) = &mut s.test {
                test.shift_ctes(by, from);
            }
            s.query.shift_ctes(by, from);
            false
        });
    }
}

fn shift(e: &mut Expr, level: usize, by: usize) -> bool {
    match e {
        Expr::Var(v) if v.levels_up >= level => v.levels_up += by,
        Expr::Aggregate(a) if a.levels_up >= level => a.levels_up += by,
        Expr::Grouping { levels_up, .. } if *levels_up >= level => *levels_up += by,
        _ => {}
    }
    true
}

impl Query {
    query_expressions!(expressions, subqueries, from_expressions, entry_expressions, table, iter);
    query_expressions!(expressions_mut, subqueries_mut, from_expressions_mut, entry_expressions_mut, table, iter_mut, mut);

    /// Calls `f` for every node of every expression in this query and the queries in it.
    pub fn visit(&self, level: usize, f: &mut dyn FnMut(&Expr, usize) -> bool) {
        self.expressions(&mut |e| e.visit(level, f));
        self.subqueries(&mut |q| q.visit(level + 1, f));
    }

    pub fn visit_mut(&mut self, level: usize, f: &mut dyn FnMut(&mut Expr, usize) -> bool) {
        self.expressions_mut(&mut |e| e.visit_mut(level, f));
        self.subqueries_mut(&mut |q| q.visit_mut(level + 1, f));
    }

    /// Forgets where in the text the expressions of the query stood.
    pub fn clear_locations(&mut self) {
        self.visit_mut(0, &mut |e, _| {
            e.clear_location();
            true
        });
    }

    /// Adds `by` to the level of every reference that leaves this query.
    pub fn shift_levels(&mut self, by: usize) {
        self.visit_mut(1, &mut |e, level| shift(e, level, by));
        // References to CTEs of outer queries count levels as well.
        self.shift_ctes(by, 0);
    }

    fn shift_ctes(&mut self, by: usize, level: usize) {
        for entry in &mut self.range_table {
            if let RangeKind::Cte { levels, .. } = &mut entry.kind
                && *levels > level
            {
                *levels += by;
            }
        }
        self.subqueries_mut(&mut |q| q.shift_ctes(by, level + 1));
        self.expressions_mut(&mut |e| e.shift_ctes(by, level + 1));
    }
}
