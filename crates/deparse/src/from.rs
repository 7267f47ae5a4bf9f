//! FROM clauses and references to their columns.

use std::sync::Arc;

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
        if let Some(alias) = &join.alias {
            self.put(" ");
            self.ident(alias);
            self.join_columns(&query.range_table[join.entry], query);
        }
    }

    /// The column names of a join with an alias, where they differ from those of its sides.
    fn join_columns(&mut self, entry: &RangeEntry, query: &Query) {
        let RangeKind::Join { merged, .. } = &entry.kind else { return };
        if entry.columns.iter().zip(merged).any(|(column, from)| self.joined_name(from, query).is_some_and(|n| n != column.name))
        {
            self.put("(");
            let names: Vec<Arc<str>> = entry.columns.iter().map(|c| c.name.clone()).collect();
            self.names(&names);
            self.put(")");
        }
    }

    fn joined_name(&self, from: &Expr, query: &Query) -> Option<Arc<str>> {
        let Expr::Var(v) = from else { return None };
        let entry = query.range_table.get(v.entry)?;
        Some(self.column_in(query, v.entry, entry, v.column))
    }

    fn range_entry(&mut self, at: usize, query: &'a Query) {
        let over = query;
        let entry = &query.range_table[at];
        let name = self.entry_name(0, at);
        if entry.lateral {
            self.put("LATERAL ");
        }
        let mut show_alias = true;
        let mut show_columns = true;
        match &entry.kind {
            RangeKind::Relation { oid, inherit, sample } => {
                if !inherit {
                    self.put("ONLY ");
                }
                let Some(relation) = self.catalog.relation(*oid) else { return };
                let text = self.relation_name(relation);
                self.put(&text);
                if !self.alias_with_columns(&name, query, at) {
                    let show = entry.alias.is_some() || *name != *relation.name;
                    self.alias(&name, entry, show, false);
                }
                return self.sample(sample.as_deref());
            }
            RangeKind::Subquery { query, view } => {
                if view.is_valid()
                    && let Some(relation) = self.catalog.relation(*view)
                {
                    let text = self.relation_name(relation);
                    self.put(&text);
                    if self.alias_with_columns(&name, over, at) {
                        return;
                    }
                    show_alias = entry.alias.is_some() || *name != *relation.name;
                    show_columns = false;
                } else {
                    self.put("(");
                    self.query(query);
                    self.put(")");
                    let given = query.targets.iter().filter(|t| !t.junk);
                    show_columns = given.zip(&entry.columns).any(|(t, c)| t.name != c.name);
                }
            }
            RangeKind::Function { functions, ordinality } => self.range_functions(entry, functions, *ordinality),
            RangeKind::Values { rows } => {
                self.put("(");
                self.values(rows);
                self.put(")");
            }
            RangeKind::Cte { name: cte, .. } => {
                self.ident(cte);
                show_alias = entry.alias.is_some() || *name != **cte;
                show_columns = false;
            }
            RangeKind::Transition { name: own, .. } => {
                self.ident(own);
                show_alias = entry.alias.is_some() || *name != **own;
                show_columns = false;
            }
            RangeKind::JsonTable(table) => {
                json::json_table(self, table);
                show_alias = entry.alias.is_some();
                show_columns = table.columns.iter().zip(&entry.columns).any(|(own, c)| own.column.name != c.name);
            }
            RangeKind::Join { .. } | RangeKind::Result => {}
        }
        self.alias(&name, entry, show_alias, show_columns);
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

    fn alias(&mut self, name: &str, entry: &RangeEntry, show: bool, columns: bool) {
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
        if columns && !entry.columns.is_empty() {
            self.put("(");
            let names: Vec<Arc<str>> = entry.columns.iter().filter(|c| c.ty.is_valid()).map(|c| c.name.clone()).collect();
            self.names(&names);
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

    /// The alias of the merged columns of JOIN ... USING: the given one, or one that is needed because the bare name of a merged
    /// column, which has no column behind it, would not be the only one.
    fn using_alias(&self, query: &Query, join: usize, depth: usize) -> Option<Arc<str>> {
        let entry = query.range_table.get(join)?;
        let RangeKind::Join { merged, using_columns, using_alias, .. } = &entry.kind else { return None };
        let is_ambiguous = |name: &str| query.from.iter().map(|item| self.visible(item, query, name)).sum::<usize>() > 1;
        let mut bare = merged.iter().zip(&entry.columns).take(*using_columns).filter(|(from, _)| !matches!(from, Expr::Var(_)));
        if using_alias.is_some() || !bare.any(|(_, column)| is_ambiguous(&column.name)) {
            return using_alias.clone();
        }
        let mut alias = if depth == 0 { format!("merged_{join}") } else { format!("merged_{depth}_{join}") };
        while self.levels.iter().any(|level| level.names.iter().any(|name| **name == *alias)) {
            alias.push('_');
        }
        Some(alias.into())
    }

    /// How many columns of an item of FROM have this name.
    fn visible(&self, item: &FromItem, query: &Query, name: &str) -> usize {
        let at = match item {
            FromItem::Range(entry) => *entry,
            FromItem::Join(join) if join.alias.is_some() => join.entry,
            FromItem::Join(join) if join.using.iter().any(|column| **column == *name) => return 1,
            FromItem::Join(join) => return self.visible(&join.left, query, name) + self.visible(&join.right, query, name),
        };
        let Some(entry) = query.range_table.get(at) else { return 0 };
        let relation = match &entry.kind {
            RangeKind::Relation { oid, .. } => self.catalog.relation(*oid),
            RangeKind::Subquery { view, .. } => self.catalog.relation(*view),
            _ => None,
        };
        let own = entry.columns.iter().enumerate().filter(|(_, column)| column.ty.is_valid());
        let own = own.filter(|(index, _)| *self.column_in(query, at, entry, *index as i16 + 1) == *name).count();
        let new = relation.map_or(&[][..], |r| &r.columns).iter().skip(entry.columns.len());
        own + new.filter(|column| !column.dropped && *column.name == *name).count()
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

    /// The name of an entry's column in its query.
    pub(super) fn column_in(&self, query: &Query, at: usize, entry: &RangeEntry, column: i16) -> Arc<str> {
        let index = usize::try_from(column).ok().and_then(|column| column.checked_sub(1));
        let listed = index.and_then(|index| self.listed_names(query, at)?.into_iter().nth(index).flatten());
        listed.unwrap_or_else(|| self.column_name(entry, column, is_changed(query, at)))
    }

    /// The names of a table's or view's columns, by attribute number, that its alias must list: they differ from the columns' own
    /// names because an alias has given them, or because JOIN ... USING names columns, of which one has another name by now or
    /// another column has its name. `None`: their own names will do.
    fn listed_names(&self, query: &Query, at: usize) -> Option<Vec<Option<Arc<str>>>> {
        let entry = query.range_table.get(at)?;
        let (oid, is_aliased) = match &entry.kind {
            RangeKind::Relation { oid, .. } => (oid, entry.alias.is_some() && !is_changed(query, at)),
            RangeKind::Subquery { query, view } => {
                let own = query.output().iter().filter(|t| !t.junk).map(|t| &t.name);
                (view, own.zip(&entry.columns).any(|(own, column)| *own != column.name))
            }
            _ => return None,
        };
        let mut using = Vec::new();
        for item in &query.from {
            using_around(item, at, &mut using);
        }
        let relation = self.catalog.relation(*oid).filter(|_| is_aliased || !using.is_empty())?;
        let given = |index: usize| entry.columns.get(index).filter(|c| c.ty.is_valid()).map(|c| c.name.clone());
        let is_used = |name: &Arc<str>| using.contains(name);
        let differs = |(index, now): (usize, &Arc<str>)| match given(index) {
            Some(name) => name != *now && (is_aliased || is_used(&name) || is_used(now)),
            None => is_used(now),
        };
        let live = relation.columns.iter().enumerate().filter(|(_, c)| !c.dropped);
        if !live.map(|(index, c)| (index, &c.name)).any(differs) {
            return None;
        }
        // A name that USING mentions is that of the column that had it; two columns may have any other name.
        let mut names = vec![None; relation.columns.len()];
        let mut taken = using.clone();
        for is_new in [false, true] {
            for (index, column) in relation.columns.iter().enumerate().filter(|(_, c)| !c.dropped) {
                let name = given(index);
                if name.is_none() != is_new {
                    continue;
                }
                if name.as_ref().is_some_and(is_used) {
                    names[index] = name;
                    continue;
                }
                let name = name.unwrap_or_else(|| column.name.clone());
                let numbered = (1..).map(|n| Arc::from(format!("{name}_{n}")));
                names[index] = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name));
                taken.extend(names[index].clone());
            }
        }
        Some(names)
    }

    /// `is_changed`: the entry is the table that the query changes, whose columns an alias does not rename.
    pub(super) fn column_name(&self, entry: &RangeEntry, column: i16, is_changed: bool) -> Arc<str> {
        if column < 0 {
            return system_column(column).into();
        }
        let at = column as usize - 1;
        let own = entry.columns.get(at).map(|c| c.name.clone());
        match &entry.kind {
            RangeKind::Relation { oid, .. } if entry.alias.is_none() || is_changed => {
                self.catalog.relation(*oid).and_then(|r| r.columns.get(at)).map(|c| c.name.clone()).or(own)
            }
            RangeKind::Subquery { view, .. } if view.is_valid() => {
                self.catalog.relation(*view).and_then(|r| r.columns.get(at)).map(|c| c.name.clone()).or(own)
            }
            _ => own,
        }
        .unwrap_or_else(|| "?column?".into())
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

fn system_column(number: i16) -> &'static str {
    match number {
        -1 => "ctid",
        -2 => "xmin",
        -3 => "cmin",
        -4 => "xmax",
        -5 => "cmax",
        _ => "tableoid",
    }
}

fn is_changed(query: &Query, entry: usize) -> bool {
    let conflict = query.insert.as_ref().and_then(|i| i.on_conflict.as_ref()).and_then(|c| c.update.as_ref());
    query.result == Some(entry) || conflict.is_some_and(|u| u.excluded == entry)
}

/// ROWS FROM must be written.
fn is_rows_from(entry: &RangeEntry, functions: &[RangeFunction], ordinality: bool) -> bool {
    // Columns of files have names of their own, which an alias may change: a list of definitions has the place of the alias's.
    let renamed = |f: &RangeFunction| f.columns.iter().zip(&entry.columns).any(|(own, shown)| own.name != shown.name);
    functions.len() > 1 || functions.iter().any(|f| f.column_definitions && (ordinality || renamed(f)))
}

/// The names in USING of the joins around an entry; whether it stands in this item.
fn using_around(item: &FromItem, at: usize, names: &mut Vec<Arc<str>>) -> bool {
    match item {
        FromItem::Range(entry) => *entry == at,
        FromItem::Join(join) => {
            let is_inside = [&join.left, &join.right].map(|side| using_around(side, at, names)).contains(&true);
            if is_inside {
                names.extend(join.using.iter().cloned());
            }
            is_inside
        }
    }
}
