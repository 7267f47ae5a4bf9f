//! SELECT statements.

use std::sync::Arc;

use super::constant::ShowType;
use super::{INDENT_STANDARD, PrintLevel, Printer, constant, modify};
use melba_tree::*;

impl<'a> Printer<'a> {
    /// A query, as a statement or in parentheses. The caller prints the parentheses.
    pub(super) fn query(&mut self, query: &'a Query) {
        let names = self.entry_names(query);
        let saved_qualify = self.qualify;
        let saved_indent = self.indent;
        let entries = query.range_table.iter().filter(|e| !matches!(e.kind, RangeKind::Result)).count();
        self.qualify = !self.levels.is_empty() || entries != 1 || self.routine.is_some();
        let hide_names = std::mem::take(&mut self.hide_names);
        let result_names = self.result_names.take();
        self.levels.push(PrintLevel { query, names, hide_names, result_names });
        self.ctes(query);
        match query.command {
            Command::Select => self.select(query),
            _ => modify::modify(self, query),
        }
        self.levels.pop();
        self.qualify = saved_qualify;
        self.indent = saved_indent;
    }

    /// Names of the range entries, unique among this query and the ones around it.
    pub(super) fn entry_names(&self, query: &Query) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> = Vec::with_capacity(query.range_table.len());
        for (at, entry) in query.range_table.iter().enumerate() {
            let base: Arc<str> = match &entry.kind {
                RangeKind::Relation { oid, .. } if entry.alias.is_none() => {
                    self.catalog.relation(*oid).map_or_else(|| entry.name.clone(), |r| r.name.clone())
                }
                RangeKind::Join { .. } if entry.alias.is_none() => match self.alias_of_using(query, at) {
                    Some(alias) => alias,
                    None => {
                        names.push("".into());
                        continue;
                    }
                },
                _ => entry.name.clone(),
            };
            let taken = |name: &str| {
                names.iter().any(|n| **n == *name) || self.levels.iter().any(|l| l.names.iter().any(|n| **n == *name))
            };
            let mut name = base.clone();
            let mut n = 0;
            while taken(&name) {
                n += 1;
                name = format!("{base}_{n}").into();
            }
            names.push(name);
        }
        names
    }

    fn ctes(&mut self, query: &'a Query) {
        for (i, cte) in query.ctes.iter().enumerate() {
            if i == 0 {
                self.indent += INDENT_STANDARD;
                self.put(if query.recursive { " WITH RECURSIVE " } else { " WITH " });
            } else {
                self.put(", ");
            }
            self.ident(&cte.name);
            if !cte.column_aliases.is_empty() {
                self.put("(");
                self.names(&cte.column_aliases);
                self.put(")");
            }
            self.put(match cte.materialized {
                None => " AS (",
                Some(true) => " AS MATERIALIZED (",
                Some(false) => " AS NOT MATERIALIZED (",
            });
            self.keyword("", 0, 0, 0);
            self.query(&cte.query);
            self.keyword("", 0, 0, 0);
            self.put(")");
            self.search_and_cycle(cte);
        }
        if !query.ctes.is_empty() {
            self.indent -= INDENT_STANDARD;
            self.keyword("", 0, 0, 0);
        }
    }

    fn search_and_cycle(&mut self, cte: &'a Cte) {
        if let Some(search) = &cte.search {
            self.put(if search.breadth_first { " SEARCH BREADTH FIRST BY " } else { " SEARCH DEPTH FIRST BY " });
            self.names(&search.columns);
            self.put(" SET ");
            self.ident(&search.set_column);
        }
        if let Some(cycle) = &cte.cycle {
            self.put(" CYCLE ");
            self.names(&cycle.columns);
            self.put(" SET ");
            self.ident(&cycle.mark_column);
            let is = |e: &Expr, v: bool| matches!(e, Expr::Const(c) if matches!(c.value, melba_types::Datum::Bool(b) if b == v));
            if !(is(&cycle.mark_value, true) && is(&cycle.mark_default, false)) {
                self.put(" TO ");
                self.cycle_mark(&cycle.mark_value);
                self.put(" DEFAULT ");
                self.cycle_mark(&cycle.mark_default);
            }
            self.put(" USING ");
            self.ident(&cycle.path_column);
        }
    }

    /// The grammar takes no casts here, but a type before a literal.
    fn cycle_mark(&mut self, mark: &'a Expr) {
        match mark {
            Expr::Const(c) if matches!(c.value, melba_types::Datum::Text(_)) => {
                let ty = self.type_name(c.ty, c.typmod);
                self.put(&ty);
                self.put(" ");
                constant::constant(self, c, ShowType::Never);
            }
            mark => self.expr(mark, false),
        }
    }

    pub(super) fn names(&mut self, names: &[Arc<str>]) {
        for (i, name) in names.iter().enumerate() {
            if i > 0 {
                self.put(", ");
            }
            self.ident(name);
        }
    }

    fn select(&mut self, query: &'a Query) {
        match &query.set_operation {
            Some(tree) => {
                let hide_names = self.levels.last().is_some_and(|level| level.hide_names);
                self.set_tree(tree, query, hide_names);
            }
            None => self.basic_select(query),
        }
        if !query.order_by.is_empty() {
            self.keyword(" ORDER BY ", -INDENT_STANDARD, INDENT_STANDARD, 1);
            self.order_by(&query.order_by, &query.targets, query.set_operation.is_some());
        }
        if let Some(offset) = &query.offset {
            self.keyword(" OFFSET ", -INDENT_STANDARD, INDENT_STANDARD, 0);
            self.expr(offset, false);
        }
        if let Some(limit) = &query.limit {
            if query.with_ties {
                self.keyword(" FETCH FIRST ", -INDENT_STANDARD, INDENT_STANDARD, 0);
                self.put("(");
                self.expr(limit, false);
                self.put(") ROWS WITH TIES");
            } else {
                self.keyword(" LIMIT ", -INDENT_STANDARD, INDENT_STANDARD, 0);
                match limit {
                    Expr::Const(c) if c.value.is_null() => self.put("ALL"),
                    limit => self.expr(limit, false),
                }
            }
        }
        for locking in &query.locking {
            self.keyword(&format!(" {}", locking.strength.clause()), -INDENT_STANDARD, INDENT_STANDARD, 0);
            self.put(" OF ");
            let name = self.entry_name(0, locking.entry);
            self.ident(&name);
            match locking.wait {
                LockWait::NoWait => self.put(" NOWAIT"),
                LockWait::SkipLocked => self.put(" SKIP LOCKED"),
                LockWait::Block => {}
            }
        }
    }

    fn set_tree(&mut self, tree: &'a SetTree, query: &'a Query, hide_names: bool) {
        let parens = |input: &SetInput, left: bool| match input {
            SetInput::Leaf(entry) => match &query.range_table[*entry].kind {
                RangeKind::Subquery { query, .. } => {
                    !query.ctes.is_empty()
                        || !query.order_by.is_empty()
                        || !query.locking.is_empty()
                        || query.limit.is_some()
                        || query.offset.is_some()
                        || query.set_operation.is_some()
                }
                _ => false,
            },
            SetInput::Tree(inner) => !(left && inner.operation == tree.operation && inner.all == tree.all),
        };
        // A query in parentheses is indented.
        let is_tree = |input: &SetInput| matches!(input, SetInput::Tree(_));
        let left_parens = parens(&tree.left, true);
        if left_parens && is_tree(&tree.left) {
            self.put("(");
            self.keyword("", INDENT_STANDARD, 0, 0);
            self.set_input(&tree.left, false, query, hide_names);
            self.keyword(") ", -INDENT_STANDARD, 0, 0);
        } else {
            self.set_input(&tree.left, left_parens, query, hide_names);
            self.keyword("", 0, 0, 0);
        }
        self.put(match tree.operation {
            SetOperation::Union => "UNION ",
            SetOperation::Intersect => "INTERSECT ",
            SetOperation::Except => "EXCEPT ",
        });
        if tree.all {
            self.put("ALL ");
        }
        let right_parens = parens(&tree.right, false);
        if right_parens && is_tree(&tree.right) {
            self.put("(");
            self.keyword("", INDENT_STANDARD, 0, 0);
            self.set_input(&tree.right, false, query, true);
            self.indent -= INDENT_STANDARD;
            self.keyword(")", 0, 0, 0);
        } else {
            self.keyword("", 0, 0, 0);
            self.set_input(&tree.right, right_parens, query, true);
        }
    }

    /// `hide_names`: the result has the names of another input.
    fn set_input(&mut self, input: &'a SetInput, parens: bool, query: &'a Query, hide_names: bool) {
        if parens {
            self.put("(");
        }
        match input {
            SetInput::Leaf(entry) => {
                if let RangeKind::Subquery { query, .. } = &query.range_table[*entry].kind {
                    let saved = self.indent;
                    self.hide_names = hide_names;
                    self.result_names = self.levels.last().and_then(|level| level.result_names.clone());
                    self.query(query);
                    self.indent = saved;
                }
            }
            SetInput::Tree(tree) => self.set_tree(tree, query, hide_names),
        }
        if parens {
            self.put(")");
        }
    }

    fn basic_select(&mut self, query: &'a Query) {
        self.indent += INDENT_STANDARD;
        self.put(" ");
        if self.values_only(query) {
            return;
        }
        self.put("SELECT");
        match &query.distinct {
            Distinct::None => {}
            Distinct::All(_) => self.put(" DISTINCT"),
            Distinct::On(keys) => {
                self.put(" DISTINCT ON (");
                self.keys(keys, &query.targets);
                self.put(")");
            }
        }
        self.targets(query);
        self.from_clause(query, " FROM ");
        if let Some(filter) = &query.filter {
            self.keyword(" WHERE ", -INDENT_STANDARD, INDENT_STANDARD, 1);
            self.expr(filter, false);
        }
        self.group_by(query);
        if let Some(having) = &query.having {
            self.keyword(" HAVING ", -INDENT_STANDARD, INDENT_STANDARD, 0);
            self.expr(having, false);
        }
        self.window_clause(query);
    }

    /// A bare VALUES list.
    fn values_only(&mut self, query: &'a Query) -> bool {
        let [FromItem::Range(entry)] = query.from.as_slice() else { return false };
        let RangeKind::Values { rows } = &query.range_table[*entry].kind else { return false };
        let plain = query.filter.is_none()
            && query.group_by.is_empty()
            && query.having.is_none()
            && query.targets.iter().all(|t| matches!(&t.expr, Expr::Var(v) if v.entry == *entry) && !t.junk)
            && query.targets.len() == rows.first().map_or(0, Vec::len);
        let renamed = query.targets.iter().enumerate().any(|(i, t)| *t.name != format!("column{}", i + 1));
        if !plain || renamed && self.levels.len() == 1 && query.range_table[*entry].alias.is_some() {
            return false;
        }
        self.values(rows);
        true
    }

    pub(super) fn values(&mut self, rows: &'a [Vec<Expr>]) {
        self.put("VALUES ");
        for (i, row) in rows.iter().enumerate() {
            if i > 0 {
                self.put(", ");
            }
            self.put("(");
            for (j, value) in row.iter().enumerate() {
                if j > 0 {
                    self.put(",");
                }
                self.item(value);
            }
            self.put(")");
        }
    }

    fn targets(&mut self, query: &'a Query) {
        self.target_items(&query.targets);
    }

    pub(super) fn target_items(&mut self, targets: &'a [Target]) {
        for (i, target) in targets.iter().filter(|t| !t.junk).enumerate() {
            self.put(if i == 0 { " " } else { ", " });
            let item = self.apart(|p| {
                let own_name = match &target.expr {
                    // Without its type it would be all of its columns.
                    Expr::Var(v) if v.column == 0 => {
                        p.item(&target.expr);
                        None
                    }
                    Expr::Row(_) if p.is_row_of_join(&target.expr) => {
                        p.item(&target.expr);
                        None
                    }
                    Expr::Var(v) => p.var(v),
                    expr => {
                        p.expr(expr, true);
                        p.levels.last().is_some_and(|l| l.hide_names).then(|| "?column?".into())
                    }
                };
                let names = p.levels.last().and_then(|level| level.result_names.clone());
                let name = names.and_then(|names| names.get(i).cloned()).unwrap_or_else(|| target.name.clone());
                if own_name.as_deref() != Some(&*name) {
                    p.put(" AS ");
                    p.ident(&name);
                }
            });
            self.put_wrapped(&item, i == 0);
        }
    }

    fn group_by(&mut self, query: &'a Query) {
        if query.group_by.is_empty() && query.grouping_sets.is_none() {
            return;
        }
        self.keyword(" GROUP BY ", -INDENT_STANDARD, INDENT_STANDARD, 1);
        if query.group_distinct {
            self.put("DISTINCT ");
        }
        match &query.grouping_text {
            Some(nodes) if !nodes.is_empty() => {
                for (i, node) in nodes.iter().enumerate() {
                    if i > 0 {
                        self.put(", ");
                    }
                    self.grouping_node(node, query, true);
                }
            }
            _ => self.keys(&query.group_by, &query.targets),
        }
    }

    fn grouping_node(&mut self, node: &'a GroupingNode, query: &'a Query, top: bool) {
        match node {
            GroupingNode::Empty => self.put("()"),
            GroupingNode::Simple(keys) => {
                let parens = !top || keys.len() != 1;
                if parens {
                    self.put("(");
                }
                let keys: Vec<SortGroup> = keys.iter().map(|k| query.group_by[*k].clone()).collect();
                self.keys(&keys, &query.targets);
                if parens {
                    self.put(")");
                }
            }
            GroupingNode::Rollup(nodes) => self.grouping_list("ROLLUP(", nodes, query),
            GroupingNode::Cube(nodes) => self.grouping_list("CUBE(", nodes, query),
            GroupingNode::Sets(nodes) => {
                self.put("GROUPING SETS (");
                for (i, node) in nodes.iter().enumerate() {
                    if i > 0 {
                        self.put(", ");
                    }
                    self.grouping_node(node, query, false);
                }
                self.put(")");
            }
        }
    }

    fn grouping_list(&mut self, word: &str, nodes: &'a [GroupingNode], query: &'a Query) {
        self.put(word);
        for (i, node) in nodes.iter().enumerate() {
            if i > 0 {
                self.put(", ");
            }
            self.grouping_node(node, query, true);
        }
        self.put(")");
    }

    /// Expressions that keys refer to, as GROUP BY and DISTINCT ON list them.
    fn keys(&mut self, keys: &[SortGroup], targets: &'a [Target]) {
        for (i, key) in keys.iter().enumerate() {
            if i > 0 {
                self.put(", ");
            }
            self.sort_expression(key.reference, targets, false);
        }
    }

    fn sort_expression(&mut self, reference: u32, targets: &'a [Target], positions: bool) {
        let Some(at) = targets.iter().position(|t| t.reference == reference) else { return };
        let target = &targets[at];
        if positions && !target.junk {
            self.put(&(at + 1).to_string());
            return;
        }
        match &target.expr {
            // A literal would be taken for a position.
            Expr::Const(c) => constant::constant(self, c, super::constant::ShowType::Always),
            Expr::Var(v) => {
                // ORDER BY and DISTINCT ON take a bare name for an output column first.
                let qualify = self.qualify;
                self.qualify |= self.is_taken_by_output(v, targets);
                self.var(v);
                self.qualify = qualify;
            }
            expr => {
                // Others have parentheses of their own, or need none.
                let is_call = matches!(expr, Expr::Function(_) | Expr::Aggregate(_) | Expr::Window(_) | Expr::JsonConstructor(_));
                let parens = is_call || self.drop_parens;
                if parens {
                    self.put("(");
                }
                self.expr(expr, true);
                if self.is_row_of_join(expr) {
                    self.put("::record");
                }
                if parens {
                    self.put(")");
                }
            }
        }
    }

    /// Whether another output column has the name of this column.
    fn is_taken_by_output(&self, var: &Var, targets: &[Target]) -> bool {
        let Some(level) = self.levels.last() else { return false };
        let Some(entry) = level.query.range_table.get(var.entry).filter(|_| var.levels_up == 0 && var.column != 0) else {
            return false;
        };
        let name = self.column_in(level.query, var.entry, entry, var.column);
        let is_same = |e: &Expr| matches!(e, Expr::Var(v) if (v.entry, v.column, v.levels_up) == (var.entry, var.column, 0));
        targets.iter().any(|t| !t.junk && t.name == name && !is_same(&t.expr))
    }

    pub(super) fn order_by(&mut self, keys: &[SortGroup], targets: &'a [Target], positions: bool) {
        for (i, key) in keys.iter().enumerate() {
            if i > 0 {
                self.put(", ");
            }
            self.sort_expression(key.reference, targets, positions);
            self.direction(key.descending, key.nulls_first);
        }
    }

    pub(super) fn direction(&mut self, descending: bool, nulls_first: bool) {
        match (descending, nulls_first) {
            (false, false) => {}
            (false, true) => self.put(" NULLS FIRST"),
            (true, true) => self.put(" DESC"),
            (true, false) => self.put(" DESC NULLS LAST"),
        }
    }

    fn window_clause(&mut self, query: &'a Query) {
        let mut first = true;
        for window in query.windows.iter().filter(|w| w.name.is_some()) {
            if first {
                self.keyword(" WINDOW ", -INDENT_STANDARD, INDENT_STANDARD, 1);
                first = false;
            } else {
                self.put(", ");
            }
            self.ident(window.name.as_deref().unwrap_or_default());
            self.put(" AS ");
            self.window_specification(window, &query.targets);
        }
    }

    pub(super) fn window_specification(&mut self, window: &'a Window, targets: &'a [Target]) {
        self.put("(");
        let mut space = false;
        let mut gap = |p: &mut Self| {
            if std::mem::replace(&mut space, true) {
                p.put(" ");
            }
        };
        if let Some(name) = &window.references {
            gap(self);
            self.ident(name);
        }
        if !window.partition_by.is_empty() && window.references.is_none() {
            gap(self);
            self.put("PARTITION BY ");
            self.keys(&window.partition_by, targets);
        }
        if !window.order_by.is_empty() {
            gap(self);
            self.put("ORDER BY ");
            self.order_by(&window.order_by, targets, false);
        }
        if window.frame.explicit {
            gap(self);
            self.frame(&window.frame);
        }
        self.put(")");
    }

    fn frame(&mut self, frame: &'a WindowFrame) {
        self.put(match frame.mode {
            FrameMode::Range => "RANGE BETWEEN ",
            FrameMode::Rows => "ROWS BETWEEN ",
            FrameMode::Groups => "GROUPS BETWEEN ",
        });
        self.bound(&frame.start);
        self.put(" AND ");
        self.bound(&frame.end);
        self.put(match frame.exclude {
            FrameExclusion::None => "",
            FrameExclusion::CurrentRow => " EXCLUDE CURRENT ROW",
            FrameExclusion::Group => " EXCLUDE GROUP",
            FrameExclusion::Ties => " EXCLUDE TIES",
        });
    }

    fn bound(&mut self, bound: &'a FrameBound) {
        match bound {
            FrameBound::UnboundedPreceding => self.put("UNBOUNDED PRECEDING"),
            FrameBound::UnboundedFollowing => self.put("UNBOUNDED FOLLOWING"),
            FrameBound::CurrentRow => self.put("CURRENT ROW"),
            FrameBound::Preceding(e) => {
                self.expr(e, false);
                self.put(" PRECEDING");
            }
            FrameBound::Following(e) => {
                self.expr(e, false);
                self.put(" FOLLOWING");
            }
        }
    }
}
