//! The names by which a text refers to the columns of its FROM items, and the lists of names that aliases need for them.
//!
//! A text is printed again when a table has got columns, has lost some, or has other names for them: a list has the columns that its item has
//! now, in their order. Two columns of one item get different names, as in PostgreSQL.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use melba_catalog::Relation;
use melba_tree::*;
use melba_types::oids;

use super::Printer;
use super::from::system_column;

/// A column that an item of FROM has when its text is read again.
#[derive(Clone)]
struct TextColumn {
    name: Arc<str>,
    /// Its place among the columns of the item when the query was analyzed; `None`: there was no such column.
    source: Option<usize>,
    /// There is no such column any more.
    is_dropped: bool,
}

impl Printer<'_> {
    /// The name of an entry's column in its query.
    pub(super) fn column_in(&self, query: &Query, at: usize, entry: &RangeEntry, column: i16) -> Arc<str> {
        let plain = || self.column_name(entry, column, is_changed(query, at));
        let Some(index) = usize::try_from(column).ok().and_then(|column| column.checked_sub(1)) else { return plain() };
        if named_by_relation(entry) {
            return self.listed_names(query, at).and_then(|names| names.into_iter().nth(index).flatten()).unwrap_or_else(plain);
        }
        let is_composed = matches!(entry.kind, RangeKind::Join { .. } | RangeKind::Function { .. });
        let own = entry.columns.get(index).map(|c| &c.name);
        if !is_composed && entry.columns.iter().filter(|c| Some(&c.name) == own).count() == 1 {
            return plain();
        }
        let found = self.entry_columns(query, at).into_iter().find(|c| c.source == Some(index));
        found.map_or_else(plain, |c| c.name)
    }

    /// The names of all columns that an entry has now.
    pub(super) fn entry_names_now(&self, query: &Query, at: usize) -> Vec<Arc<str>> {
        live_names(self.entry_columns(query, at))
    }

    /// The names that a join's alias lists; `None`: its columns have these names already.
    pub(super) fn listed_of_join(&self, join: &Join, query: &Query) -> Option<Vec<Arc<str>>> {
        let names = live_names(self.join_columns(join, query));
        (names != live_names(self.columns_of_sides(join, query))).then_some(names)
    }

    /// How many columns that can be named without a table have this name.
    pub(super) fn visible(&self, query: &Query, name: &str) -> usize {
        let columns = query.from.iter().flat_map(|item| self.item_columns(item, query));
        columns.filter(|c| !c.is_dropped && *c.name == *name).count()
    }

    /// Whether a query inside this one that mentions the merged column of a join would take its bare name for a column of its own, or one inside that.
    fn is_captured(&self, query: &Query, join: usize, column: i16, name: &str) -> bool {
        let is_var = |e: &Expr, level: usize| match e {
            Expr::Var(v) => (v.levels_up, v.entry, v.column) == (level, join, column),
            _ => false,
        };
        any_inner(query, 0, &mut |inner, level| {
            let mut mentioned = false;
            inner.visit(level, &mut |e, level| {
                mentioned |= is_var(e, level);
                !mentioned
            });
            mentioned && self.visible(inner, name) > 0
        })
    }

    /// The alias of the merged columns of JOIN ... USING: the given one, or one that is needed because the bare name of a merged
    /// column, which has no column behind it, would not be the only one.
    pub(super) fn alias_of_using(&self, query: &Query, join: usize) -> Option<Arc<str>> {
        let entry = query.range_table.get(join)?;
        let RangeKind::Join { merged, using_columns, using_alias, .. } = &entry.kind else { return None };
        let bare = merged.iter().zip(&entry.columns).enumerate().take(*using_columns);
        let mut bare = bare.filter(|(_, (from, _))| !matches!(from, Expr::Var(_)));
        let is_unclear =
            |at: usize, name: &str| self.visible(query, name) > 1 || self.is_captured(query, join, at as i16 + 1, name);
        if using_alias.is_some() || !bare.any(|(at, (_, column))| is_unclear(at, &column.name)) {
            return using_alias.clone();
        }
        let depth = self.levels.len();
        Some(if depth == 0 { format!("merged_{join}") } else { format!("merged_{depth}_{join}") }.into())
    }

    fn item_columns(&self, item: &FromItem, query: &Query) -> Vec<TextColumn> {
        match item {
            FromItem::Range(entry) => self.entry_columns(query, *entry),
            FromItem::Join(join) if join.alias.is_some() => self.join_columns(join, query),
            FromItem::Join(join) => self.columns_of_sides(join, query),
        }
    }

    /// The columns of a join without an alias.
    fn columns_of_sides(&self, join: &Join, query: &Query) -> Vec<TextColumn> {
        let is_merged = |c: &TextColumn| !c.is_dropped && join.using.contains(&c.name);
        let merged = join.using.iter().map(|name| TextColumn { name: name.clone(), source: Some(0), is_dropped: false });
        let sides = [&join.left, &join.right].into_iter().flat_map(|side| self.item_columns(side, query));
        merged.chain(sides.filter(|c| !is_merged(c))).collect()
    }

    /// The columns of a join with an alias: those of its sides, most of them under the names that it has given.
    fn join_columns(&self, join: &Join, query: &Query) -> Vec<TextColumn> {
        let mut columns = self.columns_of_sides(join, query);
        let Some(RangeEntry { kind: RangeKind::Join { merged, .. }, columns: given, .. }) = query.range_table.get(join.entry)
        else {
            return columns;
        };
        for (place, column) in columns.iter_mut().filter(|c| c.source.is_some()).enumerate() {
            column.source = Some(place);
            let behind = merged.get(place).and_then(|e| if let Expr::Var(v) = e { Some(v) } else { None });
            let own = behind.and_then(|v| query.range_table.get(v.entry)?.columns.get((v.column - 1) as usize));
            // A name that is the column's own follows its changes.
            if let Some(given) = given.get(place).filter(|given| own.is_none_or(|own| own.name != given.name)) {
                column.name = given.name.clone();
            }
        }
        self.with_unique_names(columns, query, join.entry)
    }

    fn entry_columns(&self, query: &Query, at: usize) -> Vec<TextColumn> {
        let Some(entry) = query.range_table.get(at) else { return Vec::new() };
        if let RangeKind::Join { .. } = entry.kind {
            return find_join(&query.from, at).map_or_else(Vec::new, |join| self.join_columns(join, query));
        }
        let old = || entry.columns.iter().enumerate().filter(|(_, c)| c.ty.is_valid());
        let live = |index: usize, name: Arc<str>| TextColumn { name, source: Some(index), is_dropped: false };
        match (&entry.kind, self.relation_of(entry)) {
            (_, Some(relation)) => {
                let listed = self.listed_names(query, at);
                let name = |index: usize| listed.as_ref().and_then(|names| names.get(index).cloned().flatten());
                let columns = old().map(|(index, _)| TextColumn {
                    is_dropped: relation.columns.get(index).is_none_or(|c| c.dropped),
                    ..live(index, name(index).unwrap_or_else(|| self.column_name(entry, index as i16 + 1, is_changed(query, at))))
                });
                let new = relation.columns.iter().enumerate().skip(entry.columns.len()).filter(|(_, c)| !c.dropped);
                let new = new
                    .map(|(index, c)| TextColumn { source: None, ..live(index, name(index).unwrap_or_else(|| c.name.clone())) });
                columns.chain(new).collect()
            }
            (RangeKind::Function { functions, .. }, _) => {
                self.with_unique_names(self.columns_of_functions(entry, functions), query, at)
            }
            _ => self.with_unique_names(old().map(|(index, c)| live(index, c.name.clone())).collect(), query, at),
        }
    }

    /// A function that returns a row has as many columns as the row's type has now.
    fn columns_of_functions(&self, entry: &RangeEntry, functions: &[RangeFunction]) -> Vec<TextColumn> {
        let mut columns = Vec::new();
        let mut given = entry.columns.iter().enumerate();
        for function in functions {
            let row = self.row_of(function);
            let now: Vec<&Arc<str>> = row.iter().flat_map(|r| r.columns.iter()).filter(|c| !c.dropped).map(|c| &c.name).collect();
            let has_lost_some = row.is_some() && now.len() < function.columns.len();
            for (own, (index, c)) in function.columns.iter().zip(given.by_ref()) {
                let is_dropped = has_lost_some && !now.contains(&&own.name);
                columns.push(TextColumn { name: c.name.clone(), source: Some(index), is_dropped });
            }
            let new = now.into_iter().skip(function.columns.len());
            columns.extend(new.map(|name| TextColumn { name: name.clone(), source: None, is_dropped: false }));
        }
        columns.extend(given.map(|(index, c)| TextColumn { name: c.name.clone(), source: Some(index), is_dropped: false }));
        columns
    }

    fn row_of(&self, function: &RangeFunction) -> Option<&Arc<Relation>> {
        let ty = function.expr.ty();
        if function.column_definitions || ty == oids::RECORD {
            return None;
        }
        self.catalog.relation(self.catalog.type_(self.catalog.base_type(ty))?.relation)
    }

    /// Gives columns of the same name different ones. A text that is stored keeps equal names that it does not mention: they are the names of
    /// the item's row.
    fn with_unique_names(&self, mut columns: Vec<TextColumn>, query: &Query, at: usize) -> Vec<TextColumn> {
        let mut counts: HashMap<Arc<str>, usize> = HashMap::with_capacity(columns.len());
        columns.iter().filter(|c| !c.is_dropped).for_each(|c| *counts.entry(c.name.clone()).or_default() += 1);
        let is_doubled = |c: &&TextColumn| !c.is_dropped && counts.get(&c.name).is_some_and(|count| *count > 1);
        let doubled: HashSet<usize> = columns.iter().filter(is_doubled).filter_map(|c| c.source).collect();
        if counts.values().all(|count| *count == 1) || self.oids && !mentions(query, at, &doubled) {
            return columns;
        }
        let mut taken: HashSet<Arc<str>> = HashSet::with_capacity(columns.len());
        for is_new in [false, true] {
            for column in columns.iter_mut().filter(|c| !c.is_dropped && c.source.is_none() == is_new) {
                let numbered = (1..).map(|n| Arc::from(format!("{}_{n}", column.name)));
                if let Some(name) = std::iter::once(column.name.clone()).chain(numbered).find(|name| !taken.contains(name)) {
                    taken.insert(name.clone());
                    column.name = name;
                }
            }
        }
        columns
    }

    fn relation_of(&self, entry: &RangeEntry) -> Option<&Arc<Relation>> {
        match &entry.kind {
            RangeKind::Relation { oid, .. } => self.catalog.relation(*oid),
            RangeKind::Subquery { view, .. } if view.is_valid() => self.catalog.relation(*view),
            _ => None,
        }
    }

    /// Whether an expression is printed as the row of a join, `j.*`.
    pub(super) fn is_row_of_join(&self, e: &Expr) -> bool {
        !self.oids && matches!(e, Expr::Row(row) if self.whole_row_of_join(row).is_some())
    }

    /// The alias of a join whose whole row, with its names, an expression is.
    pub(super) fn whole_row_of_join(&self, row: &RowExpr) -> Option<Arc<str>> {
        let Some(Expr::Var(first)) = row.fields.first().filter(|_| row.ty == oids::RECORD && !row.explicit) else { return None };
        let depth = self.levels.len().checked_sub(first.levels_up + 1)?;
        let query = self.levels[depth].query;
        let is_field = |field: &Expr, entry: usize, place: usize| match field {
            Expr::Var(v) => (v.levels_up, v.entry, v.column) == (first.levels_up, entry, place as i16 + 1),
            _ => false,
        };
        let is_named = |columns: &[OutputColumn]| {
            columns.len() == row.names.len() && columns.iter().zip(&row.names).all(|(column, name)| column.name == *name)
        };
        let entry = query.range_table.get(first.entry)?;
        let is_join = matches!(entry.kind, RangeKind::Join { .. }) && entry.alias.is_some() && is_named(&entry.columns);
        if is_join && row.fields.iter().enumerate().all(|(place, field)| is_field(field, first.entry, place)) {
            return Some(self.entry_name(first.levels_up, first.entry));
        }
        // The row of an alias for the columns of USING.
        let joins = query.range_table.iter().enumerate();
        let using = joins.filter_map(|(at, join)| match &join.kind {
            RangeKind::Join { merged, using_columns, using_alias: Some(_), .. } if join.alias.is_none() => {
                Some((at, merged, join.columns.get(..*using_columns)?))
            }
            _ => None,
        });
        let mut using = using.filter(|(_, _, columns)| is_named(columns));
        let is_row = |at: usize, merged: &[Expr]| {
            row.fields.iter().enumerate().all(|(place, field)| match &merged[place] {
                Expr::Var(behind) => is_field(field, behind.entry, (behind.column - 1) as usize),
                _ => is_field(field, at, place),
            })
        };
        let (at, ..) = using.find(|(at, merged, _)| is_row(*at, merged))?;
        self.using_alias(query, at, depth)
    }

    /// The names of a table's or view's columns, by attribute number, that its alias must list: they differ from the columns' own
    /// names because an alias has given them, or because JOIN ... USING names columns, of which one has another name by now or
    /// another column has its name. `None`: their own names will do.
    pub(super) fn listed_names(&self, query: &Query, at: usize) -> Option<Vec<Option<Arc<str>>>> {
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
}

fn live_names(columns: Vec<TextColumn>) -> Vec<Arc<str>> {
    columns.into_iter().filter(|c| !c.is_dropped).map(|c| c.name).collect()
}

fn named_by_relation(entry: &RangeEntry) -> bool {
    match &entry.kind {
        RangeKind::Relation { .. } => true,
        RangeKind::Subquery { view, .. } => view.is_valid(),
        _ => false,
    }
}

/// Whether an expression of the query mentions a column of an entry that is in these places.
fn mentions(query: &Query, at: usize, places: &HashSet<usize>) -> bool {
    let mut found = false;
    query.visit(0, &mut |e, level| {
        if let Expr::Var(v) = e
            && (v.levels_up, v.entry) == (level, at)
        {
            found |= usize::try_from(v.column - 1).is_ok_and(|place| places.contains(&place));
        }
        !found
    });
    found
}

/// Whether `f` holds for any query inside this one; the number is its level.
fn any_inner(query: &Query, level: usize, f: &mut dyn FnMut(&Query, usize) -> bool) -> bool {
    let mut found = false;
    query.expressions(&mut |e| {
        found =
            found || e.any(&mut |e| matches!(e, Expr::Sublink(s) if f(&s.query, level + 1) || any_inner(&s.query, level + 1, f)));
    });
    query.subqueries(&mut |inner| found = found || f(inner, level + 1) || any_inner(inner, level + 1, f));
    found
}

/// The join of FROM that has an entry of the range table.
fn find_join(items: &[FromItem], entry: usize) -> Option<&Join> {
    items.iter().find_map(|item| match item {
        FromItem::Range(_) => None,
        FromItem::Join(join) if join.entry == entry => Some(&**join),
        FromItem::Join(join) => {
            [&join.left, &join.right].into_iter().find_map(|side| find_join(std::slice::from_ref(side), entry))
        }
    })
}

fn is_changed(query: &Query, entry: usize) -> bool {
    let conflict = query.insert.as_ref().and_then(|i| i.on_conflict.as_ref()).and_then(|c| c.update.as_ref());
    query.result == Some(entry) || conflict.is_some_and(|u| u.excluded == entry)
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
