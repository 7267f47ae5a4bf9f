//! FROM clauses and references to their columns.

use std::sync::Arc;

use melba_catalog::Relation;
use melba_types::Oid;

use super::{INDENT_JOIN, INDENT_STANDARD, Printer, json};
use melba_tree::*;

impl<'a> Printer<'a> {
    /// The tables that are read; the changed table stands elsewhere.
    pub(super) fn from_clause(&mut self, query: &'a Query, word: &str) {
        let mut first = true;
        for item in &query.from {
            if let FromItem::Range(entry) = item
                && (matches!(query.range_table[*entry].kind, RangeKind::Result) || query.result == Some(*entry))
            {
                continue;
            }
            if first {
                self.keyword(word, -INDENT_STANDARD, INDENT_STANDARD, 2);
                self.from_item(item, query);
                first = false;
            } else {
                self.put(", ");
                let text = self.apart(|p| p.from_item(item, query));
                self.put_wrapped(&text, false);
            }
        }
    }

    fn from_item(&mut self, item: &'a FromItem, query: &'a Query) {
        match item {
            FromItem::Range(entry) => self.range_entry(*entry, query),
            FromItem::Join(join) => self.join(join, query),
        }
    }

    fn join(&mut self, join: &'a Join, query: &'a Query) {
        let right_parens = self.drop_parens && matches!(&join.right, FromItem::Join(right) if right.alias.is_none());
        let parens = !self.drop_parens || join.alias.is_some();
        if parens {
            self.put("(");
        }
        self.from_item(&join.left, query);
        let word = match (join.kind, &join.condition) {
            (JoinKind::Inner, None) if join.using.is_empty() => " CROSS JOIN ",
            (JoinKind::Inner, _) => " JOIN ",
            (JoinKind::Left, _) => " LEFT JOIN ",
            (JoinKind::Right, _) => " RIGHT JOIN ",
            (JoinKind::Full, _) => " FULL JOIN ",
        };
        self.keyword(word, -INDENT_STANDARD, INDENT_STANDARD, INDENT_JOIN);
        if right_parens {
            self.put("(");
        }
        self.from_item(&join.right, query);
        if right_parens {
            self.put(")");
        }
        if !join.using.is_empty() {
            self.put(" USING (");
            self.names(&join.using);
            self.put(")");
            if let Some(alias) = self.using_alias(query, join.entry, self.levels.len().saturating_sub(1)) {
                self.put(" AS ");
                self.ident(&alias);
            }
        } else if let Some(condition) = &join.condition {
            self.put(" ON ");
            if !self.drop_parens {
                self.put("(");
            }
            self.expr(condition, false);
            if !self.drop_parens {
                self.put(")");
            }
        } else if join.kind != JoinKind::Inner {
            self.put(" ON TRUE");
        }
        if parens {
            self.put(")");
        }
        if join.alias.is_some() {
            self.put(" ");
            let alias = self.entry_name(0, join.entry);
            self.ident(&alias);
            if let Some(names) = self.listed_of_join(join, query) {
                self.put("(");
                self.names(&names);
                self.put(")");
            }
        }
    }

    fn range_entry(&mut self, at: usize, query: &'a Query) {
        let over = query;
        let entry = &query.range_table[at];
        let name = self.entry_name(0, at);
        if entry.lateral {
            self.put("LATERAL ");
        }
        let mut show_alias = true;
        // The names that columns have without a list; `None`: the list is always there.
        let mut own: Option<Vec<Arc<str>>> = None;
        match &entry.kind {
            RangeKind::Relation { oid, inherit, sample } => {
                if !inherit {
                    self.put("ONLY ");
                }
                let Some(relation) = self.catalog.relation(*oid) else { return };
                let text = self.relation_in_from(relation);
                self.put(&text);
                if !self.alias_with_columns(&name, query, at) {
                    let show = entry.alias.is_some() || *name != *relation.name;
                    self.alias(&name, entry, show, None);
                }
                return self.sample(sample.as_deref());
            }
            RangeKind::Subquery { query, view } => {
                if view.is_valid()
                    && let Some(relation) = self.catalog.relation(*view)
                {
                    let text = self.relation_in_from(relation);
                    self.put(&text);
                    if self.alias_with_columns(&name, over, at) {
                        return;
                    }
                    let show = entry.alias.is_some() || *name != *relation.name;
                    return self.alias(&name, entry, show, None);
                } else {
                    self.put("(");
                    self.query(query);
                    self.put(")");
                    own = Some(query.targets.iter().filter(|t| !t.junk).map(|t| t.name.clone()).collect());
                }
            }
            RangeKind::Function { functions, ordinality } => self.range_functions(entry, functions, *ordinality),
            RangeKind::Values { rows } => {
                self.put("(");
                self.values(rows);
                self.put(")");
            }
            RangeKind::Cte { name: cte, levels, .. } => {
                self.ident(cte);
                show_alias = entry.alias.is_some() || *name != **cte;
                own = Some(self.cte_columns(cte, *levels));
            }
            RangeKind::Transition { name: table, .. } => {
                self.ident(table);
                let show = entry.alias.is_some() || *name != **table;
                return self.alias(&name, entry, show, None);
            }
            RangeKind::JsonTable(table) => {
                json::json_table(self, table);
                show_alias = entry.alias.is_some();
                own = Some(table.columns.iter().map(|c| c.column.name.clone()).collect());
            }
            RangeKind::Join { .. } | RangeKind::Result => return,
        }
        let now = self.entry_names_now(over, at);
        let has_names = |own: Vec<Arc<str>>| own.get(..now.len()).is_some_and(|own| *own == *now);
        let listed = (!own.is_some_and(has_names)).then_some(now);
        self.alias(&name, entry, show_alias || listed.is_some(), listed);
    }

    /// The name of a relation; with its schema where a WITH query has the name.
    fn relation_in_from(&self, relation: &Relation) -> String {
        let is_hidden = self.levels.iter().any(|level| level.query.ctes.iter().any(|cte| cte.name == relation.name));
        match is_hidden {
            true => self.catalog.qualified(false, relation.namespace, &relation.name),
            false => self.relation_name(relation),
        }
    }

    /// The names of a CTE's columns.
    fn cte_columns(&self, name: &str, levels: usize) -> Vec<Arc<str>> {
        let level = self.levels.len().checked_sub(levels + 1).and_then(|at| self.levels.get(at));
        let cte = level.and_then(|level| level.query.ctes.iter().find(|cte| *cte.name == *name));
        cte.map_or_else(Vec::new, |cte| cte.columns.iter().map(|c| c.name.clone()).collect())
    }

    fn sample(&mut self, sample: Option<&'a TableSample>) {
        let Some(sample) = sample else { return };
        self.put(" TABLESAMPLE ");
        self.put(&sample.method);
        self.put(" (");
        for (i, arg) in sample.args.iter().enumerate() {
            self.put(if i == 0 { "" } else { ", " });
            self.expr(arg, false);
        }
        self.put(")");
        if let Some(seed) = &sample.repeatable {
            self.put(" REPEATABLE (");
            self.expr(seed, false);
            self.put(")");
        }
    }

    fn range_functions(&mut self, entry: &RangeEntry, functions: &'a [RangeFunction], ordinality: bool) {
        let several = is_rows_from(entry, functions, ordinality);
        if several {
            self.put("ROWS FROM(");
        }
        for (i, function) in functions.iter().enumerate() {
            if i > 0 {
                self.put(", ");
            }
            self.expr(&function.expr, true);
            if several && function.column_definitions {
                self.put(" AS ");
                self.column_definitions(&function.columns);
            }
        }
        if several {
            self.put(")");
        }
        if ordinality {
            self.put(" WITH ORDINALITY");
        }
    }

    fn column_definitions(&mut self, columns: &[OutputColumn]) {
        self.put("(");
        for (i, column) in columns.iter().enumerate() {
            if i > 0 {
                self.put(", ");
            }
            self.ident(&column.name);
            let ty = self.type_name(column.ty, column.typmod);
            self.put(&format!(" {ty}"));
        }
        self.put(")");
    }

    /// `columns`: those that it lists, except where functions have definitions of theirs.
    fn alias(&mut self, name: &str, entry: &RangeEntry, show: bool, columns: Option<Vec<Arc<str>>>) {
        if !show {
            return;
        }
        self.put(" ");
        self.ident(name);
        if let RangeKind::Function { functions, ordinality } = &entry.kind
            && let [function] = functions.as_slice()
            && function.column_definitions
            && !is_rows_from(entry, functions, *ordinality)
        {
            self.column_definitions(&function.columns);
            return;
        }
        if let Some(columns) = columns.filter(|columns| !columns.is_empty()) {
            self.put("(");
            self.names(&columns);
            self.put(")");
        }
    }

    /// The name of a range entry `levels_up` queries outwards.
    pub(super) fn entry_name(&self, levels_up: usize, entry: usize) -> Arc<str> {
        let level = self.levels.len().checked_sub(levels_up + 1).and_then(|i| self.levels.get(i));
        level.and_then(|l| l.names.get(entry)).cloned().unwrap_or_else(|| "?".into())
    }

    /// Prints a column reference and returns the name that an output column gets from it.
    pub(super) fn var(&mut self, var: &Var) -> Option<Arc<str>> {
        let Some(at) = self.levels.len().checked_sub(var.levels_up + 1) else {
            return self.table_var(var);
        };
        let query = self.levels[at].query;
        let entry = query.range_table.get(var.entry)?;
        if let RangeKind::Join { merged, using_columns, .. } = &entry.kind
            && entry.alias.is_none()
            && let Some(column) = usize::try_from(var.column).ok().and_then(|c| c.checked_sub(1))
        {
            // A join without an alias: the column behind it, or the merged column's bare name.
            if let Some(Expr::Var(inner)) = merged.get(column) {
                let inner = Var { levels_up: inner.levels_up + var.levels_up, ..inner.clone() };
                return self.var(&inner);
            }
            let name = entry.columns.get(column).map(|c| c.name.clone())?;
            // Other relations may have a column of that name.
            if column < *using_columns
                && let Some(alias) = self.using_alias(query, var.entry, at)
            {
                self.ident(&alias);
                self.put(".");
            }
            self.ident(&name);
            return Some(name);
        }
        let prefix = self.entry_name(var.levels_up, var.entry);
        if var.column == 0 {
            self.ident(&prefix);
            self.put(".*");
            return None;
        }
        let name = self.column_in(query, var.entry, entry, var.column);
        if self.qualify {
            let prefix = match var.version {
                RowVersion::Old => "old".into(),
                RowVersion::New => "new".into(),
                RowVersion::Default => prefix,
            };
            self.ident(&prefix);
            self.put(".");
        }
        self.ident(&name);
        Some(name)
    }

    /// The alias of the merged columns of JOIN ... USING, unique like other names. That of a join with an alias of its own is not in scope.
    pub(super) fn using_alias(&self, query: &Query, join: usize, depth: usize) -> Option<Arc<str>> {
        let entry = query.range_table.get(join)?;
        match &entry.kind {
            RangeKind::Join { using_alias, .. } if entry.alias.is_some() => using_alias.clone().filter(|_| !self.oids),
            RangeKind::Join { .. } => self.levels.get(depth)?.names.get(join).filter(|name| !name.is_empty()).cloned(),
            _ => None,
        }
    }

    /// Prints the alias of a table or view with a list of columns; false: it needs no list.
    fn alias_with_columns(&mut self, name: &str, query: &Query, at: usize) -> bool {
        let Some(columns) = self.listed_names(query, at) else { return false };
        self.put(" ");
        self.ident(name);
        self.put("(");
        self.names(&columns.into_iter().flatten().collect::<Vec<_>>());
        self.put(")");
        true
    }

    /// A column of the table that a stored expression is about.
    fn table_var(&mut self, var: &Var) -> Option<Arc<str>> {
        let relation = self.relation?;
        let name: Arc<str> = match var.column {
            0 => {
                self.ident(&relation.name);
                self.put(".*");
                return None;
            }
            n if n < 0 => system_column(n).into(),
            n => relation.columns.get(n as usize - 1).map(|c| c.name.clone())?,
        };
        self.ident(&name);
        Some(name)
    }

    /// The name of an operator class behind a key; nothing for none.
    pub(super) fn operator_class(&mut self, class: Oid) {
        let Some(class) = self.catalog.access_methods().class(class) else { return };
        let namespace = self.catalog.class_namespace(class).and_then(|namespace| self.catalog.namespace(namespace));
        self.put(" ");
        if let Some(namespace) = namespace.filter(|namespace| !self.path.contains(&namespace.oid)) {
            self.ident(&namespace.name);
            self.put(".");
        }
        self.ident(&class.name);
    }

    pub(super) fn collation_name(&mut self, collation: Oid) {
        let Some(row) = self.catalog.collation(collation) else { return };
        if !self.path.contains(&row.namespace) {
            let namespace = self.catalog.namespace(row.namespace).map_or("", |n| &n.name);
            self.ident(namespace);
            self.put(".");
        }
        self.ident(&row.name);
    }
}

pub(super) fn system_column(number: i16) -> &'static str {
    match number {
        -1 => "ctid",
        -2 => "xmin",
        -3 => "cmin",
        -4 => "xmax",
        -5 => "cmax",
        _ => "tableoid",
    }
}

/// ROWS FROM must be written.
fn is_rows_from(entry: &RangeEntry, functions: &[RangeFunction], ordinality: bool) -> bool {
    // Columns of files have names of their own, which an alias may change: a list of definitions has the place of the alias's.
    let renamed = |f: &RangeFunction| f.columns.iter().zip(&entry.columns).any(|(own, shown)| own.name != shown.name);
    functions.len() > 1 || functions.iter().any(|f| f.column_definitions && (ordinality || renamed(f)))
}
