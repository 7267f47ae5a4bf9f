//! One command of a rule, for one statement: the statement's tables and conditions become the command's, too (PostgreSQL's
//! rewriteRuleAction).

use melba_catalog::rule_events;
use melba_types::{DbError, Oid, Result, bail};

use super::rule::{is_used, query_over_rows, uses};
use super::rule_rows::{EventRows, shift_range_table, with_source};
use super::trigger::{NEW_ENTRY, OLD_ENTRY};
use melba_tree::*;

pub struct ActionRewrite<'a> {
    pub rows: &'a EventRows<'a>,
    /// The statement.
    pub query: &'a Query,
    /// One of `rule_events`.
    pub event: u8,
    /// Of the rule.
    pub condition: Option<&'a Expr>,
}

impl ActionRewrite<'_> {
    /// The command to run. `returns`: some command of the event's rules returns the statement's rows.
    pub fn apply(&self, mut action: Query, returns: &mut bool) -> Result<Query> {
        check_as(&mut action, self.rows.relation().owner);
        let is_insert = action.command == Command::Insert;
        let inner = query_over_rows(&mut action);
        let is_select = inner.command == Command::Select;
        let base = inner.range_table.len();
        self.merge(inner, is_select)?;
        let is_row = is_insert && !is_select;
        self.returning(&mut action, (!is_insert).then_some(base), returns)?;
        let finds_rows = !action.from.is_empty() || action.filter.is_some();
        Ok(if is_row && finds_rows { with_source(action) } else { action })
    }

    /// Adds the tables and conditions of the statement to a command. `is_select`: it is the SELECT of an INSERT.
    fn merge(&self, into: &mut Query, is_select: bool) -> Result<()> {
        let base = into.range_table.len();
        let has = |entry| uses(into, entry) || self.condition.is_some_and(|c| is_used(c, entry));
        let takes_old = has(OLD_ENTRY) || self.event == rule_events::UPDATE && has(NEW_ENTRY);
        let mut conditions: Vec<Expr> = self.condition.cloned().into_iter().collect();
        conditions.iter_mut().try_for_each(|c| self.rows.replace_in(c, base))?;
        self.rows.replace_in_query(into, base)?;
        for row in [OLD_ENTRY, NEW_ENTRY] {
            into.range_table[row] = RangeEntry::default();
        }
        let mut statement = self.query.clone();
        statement.insert = None;
        shift_range_table(&mut statement, base);
        let result = self.query.result.map(|at| at + base);
        let filters_old = result.is_some_and(|at| statement.filter.as_ref().is_some_and(|f| is_used(f, at)));
        if self.event != rule_events::INSERT && !takes_old && !filters_old {
            statement.from.retain(|item| !matches!(item, FromItem::Range(at) if Some(*at) == result));
        }
        conditions.extend(statement.filter.take());
        if into.set_operation.is_some() && !conditions.is_empty() {
            bail!(FEATURE_NOT_SUPPORTED, "conditional UNION/INTERSECT/EXCEPT statements are not implemented");
        }
        self.merge_ctes(into, &mut statement, is_select)?;
        make_lateral(into);
        for (at, mut entry) in statement.range_table.into_iter().enumerate() {
            if Some(at + base) == result {
                // The privileges for the change are those of the statement.
                let required = &mut entry.required;
                (required.insert, required.update, required.delete) = (false, false, false);
                required.inserted.clear();
                required.updated.clear();
            }
            into.range_table.push(entry);
        }
        // A set operation has no FROM: without conditions its rows do not depend on the statement's.
        if into.set_operation.is_none() {
            into.from.splice(0..0, statement.from);
        }
        into.add_conditions(conditions);
        Ok(())
    }

    fn merge_ctes(&self, into: &mut Query, statement: &mut Query, is_select: bool) -> Result<()> {
        if statement.ctes.is_empty() {
            return Ok(());
        }
        if is_select && statement.ctes.iter().any(|cte| cte.query.command != Command::Select) {
            let message = "INSERT ... SELECT rule actions are not supported for queries having data-modifying statements in WITH";
            bail!(FEATURE_NOT_SUPPORTED, "{message}");
        }
        for cte in &statement.ctes {
            if into.ctes.iter().any(|own| own.name == cte.name) {
                let message = "appears in both a rule action and the query being rewritten";
                bail!(FEATURE_NOT_SUPPORTED, "WITH query name \"{}\" {message}", cte.name);
            }
        }
        into.recursive |= statement.recursive;
        into.ctes.splice(0..0, std::mem::take(&mut statement.ctes));
        Ok(())
    }

    /// A command's RETURNING stands for the columns of the changed relation in that of the statement. `base`: where the statement's
    /// entries are in the command's range table.
    fn returning(&self, action: &mut Query, base: Option<usize>, returns: &mut bool) -> Result<()> {
        let own = std::mem::take(&mut action.returning);
        if self.query.returning.is_empty() || own.is_empty() {
            return Ok(());
        }
        if std::mem::replace(returns, true) {
            bail!(FEATURE_NOT_SUPPORTED, "cannot have RETURNING lists in multiple rules");
        }
        let mut returning = self.query.returning.clone();
        let mut result = Ok(());
        for target in &mut returning {
            target.expr.visit_mut(0, &mut |e, level| {
                let Expr::Var(v) = e else { return true };
                if v.levels_up != level {
                    return true;
                }
                match self.returned(v, &own, base) {
                    Ok(mut meaning) => {
                        meaning.shift_levels(level, 0);
                        *e = meaning;
                    }
                    Err(error) => result = Err(error),
                }
                false
            });
        }
        action.returning = returning;
        result
    }

    /// A column in the statement's RETURNING.
    fn returned(&self, var: &Var, own: &[Target], base: Option<usize>) -> Result<Expr> {
        if Some(var.entry) != self.query.result {
            let base =
                base.ok_or_else(|| DbError::unsupported("RETURNING of another table's columns through a rule's INSERT"))?;
            return Ok(Expr::Var(Var { entry: var.entry + base, levels_up: 0, ..var.clone() }));
        }
        let column = |number: i16| {
            let found = usize::try_from(number - 1).ok().and_then(|at| own.get(at)).map(|t| t.expr.clone());
            let mut found = found
                .ok_or_else(|| DbError::internal(format!("could not find replacement targetlist entry for attno {number}")))?;
            match (&mut found, var.version) {
                (_, RowVersion::Default) => {}
                (Expr::Var(column), version) => column.version = version,
                _ => return Err(DbError::unsupported("RETURNING with OLD or NEW of a rule's expression")),
            }
            Ok(found)
        };
        if var.column != 0 {
            return column(var.column);
        }
        let fields = (1..=own.len() as i16).map(column).collect::<Result<_>>()?;
        let names = self.rows.relation().columns.iter().map(|c| c.name.clone()).collect();
        Ok(Expr::Row(Box::new(RowExpr { fields, names, ty: var.ty, explicit: false, location: -1 })))
    }
}

/// Items of FROM that now refer to the statement's tables need those rows.
fn make_lateral(query: &mut Query) {
    for at in 0..query.range_table.len() {
        let entry = &query.range_table[at];
        let mut refers = false;
        match &entry.kind {
            RangeKind::Subquery { query, .. } => query.visit(1, &mut |e, level| {
                refers |= matches!(e, Expr::Var(v) if v.levels_up == level);
                !refers
            }),
            RangeKind::Values { rows } => rows.iter().flatten().for_each(|e| refers |= e.has_vars()),
            RangeKind::Function { functions, .. } => functions.iter().for_each(|f| refers |= f.expr.has_vars()),
            _ => {}
        }
        query.range_table[at].lateral |= refers;
    }
}

/// The relations of a command are used with the privileges of `owner`.
fn check_as(query: &mut Query, owner: Oid) {
    for entry in &mut query.range_table {
        entry.required.check_as = owner;
        if let RangeKind::Subquery { query, view } = &mut entry.kind
            && !view.is_valid()
        {
            check_as(query, owner);
        }
    }
    for cte in &mut query.ctes {
        check_as(&mut cte.query, owner);
    }
    query.expressions_mut(&mut |e| {
        e.visit_mut(0, &mut |e, _| {
            if let Expr::Sublink(s) = e {
                check_as(&mut s.query, owner);
                return false;
            }
            true
        });
    });
}
