//! The rows `old` and `new` of a rule in terms of the statement that the rule is for.

use std::sync::Arc;

use melba_catalog::Relation;
use melba_types::{DbError, Oid, Result, bail, oids};

use super::context::Context;
use super::expression::{Expected, analyze_stored_expression};
use super::trigger::{NEW_ENTRY, OLD_ENTRY};
use melba_tree::*;

/// The rows that a statement changes.
pub struct EventRows<'a> {
    pub cx: &'a Context<'a>,
    query: &'a Query,
    relation: &'a Arc<Relation>,
}

impl<'a> EventRows<'a> {
    pub fn new(cx: &'a Context<'a>, query: &'a Query, relation: &'a Arc<Relation>) -> EventRows<'a> {
        EventRows { cx, query, relation }
    }

    /// The relation that the statement changes.
    pub fn relation(&self) -> &'a Arc<Relation> {
        self.relation
    }

    /// Replaces `old` and `new` in an expression. `base`: where the statement's first entry will be.
    pub fn replace_in(&self, e: &mut Expr, base: usize) -> Result<()> {
        self.replace(base, |f| e.visit_mut(0, f))
    }

    /// The same in a command.
    pub fn replace_in_query(&self, query: &mut Query, base: usize) -> Result<()> {
        self.replace(base, |f| query.visit_mut(0, f))
    }

    fn replace(&self, base: usize, visit: impl FnOnce(&mut dyn FnMut(&mut Expr, usize) -> bool)) -> Result<()> {
        let mut result = Ok(());
        visit(&mut |e, level| {
            let Expr::Var(v) = e else { return true };
            if v.levels_up != level || v.entry > NEW_ENTRY {
                return true;
            }
            match self.meaning(v) {
                Ok(mut meaning) => {
                    shift_entries(&mut meaning, base);
                    meaning.shift_levels(level, 0);
                    *e = meaning;
                }
                Err(error) => result = Err(error),
            }
            false
        });
        result
    }

    /// A column of `old` or `new`, or the whole row, over the statement's range table.
    fn meaning(&self, var: &Var) -> Result<Expr> {
        if var.entry == OLD_ENTRY || var.column < 0 && self.query.command == Command::Update {
            return self.found(var);
        }
        match var.column {
            n if n > 0 => self.assigned(n),
            n if n < 0 => Ok(Expr::null(var.ty, var.typmod, var.collation)),
            _ => self.whole(var),
        }
    }

    fn found(&self, var: &Var) -> Result<Expr> {
        let entry = self.query.result.ok_or_else(|| DbError::internal("a change without a target"))?;
        Ok(Expr::Var(Var { entry, levels_up: 0, ..var.clone() }))
    }

    /// The new value of a column.
    fn assigned(&self, number: i16) -> Result<Expr> {
        let at = number as usize - 1;
        let column = self.relation.columns.get(at).ok_or_else(|| DbError::internal("a row without a column"))?;
        if column.generated != 0 {
            return self.generated(at);
        }
        if let Some(target) = self.query.targets.iter().find(|t| t.column == number) {
            if target.expr.any(&mut |e| matches!(e, Expr::Sublink(s) if s.kind == SublinkKind::MultiExpr)) {
                let message = "NEW variables in ON UPDATE rules cannot reference columns that are part of a multiple assignment in the \
                               subject UPDATE command";
                bail!(FEATURE_NOT_SUPPORTED, "{message}");
            }
            return Ok(target.expr.clone());
        }
        match self.query.command {
            Command::Insert => Ok(Expr::null(column.ty, column.typmod, column.collation)),
            _ => self.found(&Var::new(0, number, column.ty, column.typmod, column.collation)),
        }
    }

    /// A generated column, computed from the new values.
    fn generated(&self, at: usize) -> Result<Expr> {
        let c = &self.relation.columns[at];
        let text = c.default.as_deref().ok_or_else(|| DbError::internal("a generated column without an expression"))?;
        let expected = Expected { ty: c.ty, typmod: c.typmod, column: &c.name };
        let mut e = analyze_stored_expression(self.cx, text, Some(self.relation), Some(expected))?;
        let mut result = Ok(());
        e.visit_mut(0, &mut |e, _| {
            let Expr::Var(v) = e else { return true };
            match self.meaning(&Var { entry: NEW_ENTRY, ..v.clone() }) {
                Ok(meaning) => *e = meaning,
                Err(error) => result = Err(error),
            }
            false
        });
        result.map(|()| e)
    }

    fn whole(&self, var: &Var) -> Result<Expr> {
        let columns = || self.relation.columns.iter().enumerate();
        let field = |(at, c): (usize, &melba_catalog::Column)| match c.dropped {
            true => Ok(Expr::null(oids::INT4, -1, Oid::INVALID)),
            false => self.assigned(at as i16 + 1),
        };
        let fields = columns().map(field).collect::<Result<_>>()?;
        let names = columns().map(|(_, c)| c.name.clone()).collect();
        Ok(Expr::Row(Box::new(RowExpr { fields, names, ty: var.ty, explicit: false, location: -1 })))
    }
}

/// Moves the entries that an expression refers to.
fn shift_entries(e: &mut Expr, by: usize) {
    e.visit_mut(0, &mut |e, level| shift_entry(e, level, by));
}

fn shift_entry(e: &mut Expr, level: usize, by: usize) -> bool {
    if let Expr::Var(v) = e
        && v.levels_up == level
    {
        v.entry += by;
    }
    true
}

/// Moves the entries of a query's range table to `by` and after it: in all that refers to them.
pub fn shift_range_table(query: &mut Query, by: usize) {
    query.visit_mut(0, &mut |e, level| shift_entry(e, level, by));
    query.from.iter_mut().for_each(|item| shift_item(item, by));
}

fn shift_item(item: &mut FromItem, by: usize) {
    match item {
        FromItem::Range(entry) => *entry += by,
        FromItem::Join(join) => {
            shift_item(&mut join.left, by);
            shift_item(&mut join.right, by);
            join.entry += by;
        }
    }
}

/// What the columns of a join stand for, and their names.
type JoinColumns = (Vec<Expr>, Vec<Arc<str>>);

/// Replaces columns of joins, and of views over the changed table, by what they stand for.
pub fn expand_joins(query: &mut Query) {
    let joins = |entry: &RangeEntry| match &entry.kind {
        RangeKind::Join { merged, .. } => Some((merged.clone(), entry.columns.iter().map(|c| c.name.clone()).collect())),
        _ => None,
    };
    let joins: Vec<Option<JoinColumns>> = query.range_table.iter().map(joins).collect();
    if joins.iter().all(Option::is_none) {
        return;
    }
    query.visit_mut(0, &mut |e, level| {
        while let Expr::Var(v) = e
            && v.levels_up == level
            && let Some(Some((merged, names))) = joins.get(v.entry)
        {
            let mut meaning = match v.column.checked_sub(1).and_then(|at| merged.get(at as usize)) {
                Some(meaning) => meaning.clone(),
                None => {
                    let (fields, names) = (merged.clone(), names.clone());
                    Expr::Row(Box::new(RowExpr { fields, names, ty: v.ty, explicit: false, location: -1 }))
                }
            };
            meaning.shift_levels(level, 0);
            *e = meaning;
        }
        true
    });
}

/// An INSERT whose row of VALUES has become a row for each one that it finds: it inserts a query's rows.
pub fn with_source(mut query: Query) -> Query {
    let Some(result) = query.result else { return query };
    let excluded = query.insert.as_ref().and_then(|i| Some(i.on_conflict.as_ref()?.update.as_ref()?.excluded));
    let mut source = Query::new(Command::Select);
    source.ctes = std::mem::take(&mut query.ctes);
    source.recursive = query.recursive;
    source.from = std::mem::take(&mut query.from);
    source.filter = query.filter.take();
    source.has_set_returning = std::mem::take(&mut query.has_set_returning);
    source.targets = query.targets.iter().map(|t| Target { column: 0, ..t.clone() }).collect();
    source.range_table = query.range_table.clone();
    for (at, entry) in query.range_table.iter_mut().enumerate() {
        let unused = if at == result || Some(at) == excluded { &mut source.range_table[at] } else { entry };
        *unused = RangeEntry::default();
    }
    let columns = source.output_columns();
    let at = query.range_table.len();
    for (i, target) in query.targets.iter_mut().enumerate() {
        target.expr = Expr::Var(Var::holding(&target.expr, at, i as i16 + 1));
    }
    query.range_table.push(RangeEntry {
        kind: RangeKind::Subquery { query: Box::new(source), view: Oid::INVALID },
        name: "*SELECT*".into(),
        columns,
        in_from: false,
        ..RangeEntry::default()
    });
    query.from = vec![FromItem::Range(at)];
    if let Some(insert) = &mut query.insert {
        insert.source = Some(at);
    }
    query
}
