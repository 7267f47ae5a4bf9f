//! The rule that columns which are not grouped must be aggregated.

use std::collections::HashSet;

use melba_catalog::ConstraintKind;
use melba_types::{Oid, Result, err};

use super::analyzer::Analyzer;
use melba_tree::*;

/// 42803 for columns that are neither grouped nor aggregated; fills in the references of GROUPING().
pub fn check_grouping(analyzer: &mut Analyzer<'_, '_>, q: &mut Query) -> Result<()> {
    let grouped = places_of_targets(&q.group_by, &q.targets).filter_map(|(_, place)| place);
    let groups: Vec<Expr> = grouped.map(|at| flatten_join(analyzer, &q.targets[at].expr)).collect();
    // Only columns in every grouping set are surely grouped, for functional dependencies.
    let common: Vec<usize> = match &q.grouping_sets {
        None => (0..groups.len()).collect(),
        Some(sets) => match sets.split_first() {
            Some((first, rest)) => first.iter().copied().filter(|i| rest.iter().all(|s| s.contains(i))).collect(),
            None => Vec::new(),
        },
    };
    check_recursive_aggregates(analyzer, q)?;
    let column = |g: &Expr| if let Expr::Var(v) = g { (v.levels_up == 0).then_some((v.entry, v.column)) } else { None };
    let columns = groups.iter().filter_map(column).collect();
    let mut check = Check { groups: &groups, columns, common: &common, analyzer, dependent: Vec::new(), keys: Vec::new() };
    for target in &q.targets {
        check.expression(&target.expr)?;
    }
    if let Some(having) = &q.having {
        check.expression(having)?;
    }
    q.relied_on = check.keys;
    fill_grouping(analyzer, q, &groups)
}

fn check_recursive_aggregates(analyzer: &Analyzer<'_, '_>, q: &Query) -> Result<()> {
    let _ = q;
    let recursive = analyzer.level().range_table.iter().any(|e| matches!(e.kind, RangeKind::Cte { self_reference: true, .. }));
    if recursive && analyzer.level().has_aggregates {
        let mut location = -1;
        q.expressions(&mut |e| {
            if location < 0 {
                e.any(&mut |e| match e {
                    Expr::Aggregate(a) if a.levels_up == 0 => {
                        location = a.location;
                        true
                    }
                    _ => false,
                });
            }
        });
        return Err(
            err!(INVALID_RECURSION, "aggregate functions are not allowed in a recursive query's recursive term").at(location)
        );
    }
    Ok(())
}

/// Vars of join entries replaced by their expressions.
fn flatten_join(analyzer: &Analyzer<'_, '_>, e: &Expr) -> Expr {
    let table = &analyzer.level().range_table;
    if !table.iter().any(|e| matches!(e.kind, RangeKind::Join { .. })) {
        return e.clone();
    }
    let mut e = e.clone();
    e.visit_mut(0, &mut |e, level| {
        if let Expr::Var(v) = e
            && v.levels_up == level
            && let RangeKind::Join { merged, .. } = &table[v.entry].kind
            && let Some(meaning) = v.column.checked_sub(1).and_then(|i| merged.get(i as usize))
        {
            let location = v.location;
            let mut meaning = meaning.clone();
            meaning.shift_levels(level, 0);
            if let Expr::Var(m) = &mut meaning {
                m.location = location;
            }
            *e = meaning;
        }
        true
    });
    e
}

fn fill_grouping(analyzer: &mut Analyzer<'_, '_>, q: &mut Query, groups: &[Expr]) -> Result<()> {
    let mut wrong = None;
    let flatten: &dyn Fn(&Expr) -> Expr = &|e| flatten_join(analyzer, e);
    q.visit_mut(0, &mut |e, level| {
        if let Expr::Grouping { args, references, levels_up, .. } = e
            && *levels_up == level
        {
            references.clear();
            for arg in args.iter() {
                let mut plain = arg.clone();
                if level > 0 {
                    lower_levels(&mut plain, level);
                }
                match groups.iter().position(|g| equal(g, &flatten(&plain))) {
                    Some(i) => references.push(i),
                    None => {
                        wrong.get_or_insert(arg.location());
                    }
                }
            }
        }
        true
    });
    match wrong {
        Some(location) => {
            Err(err!(GROUPING_ERROR, "arguments to GROUPING must be grouping expressions of the associated query level")
                .at(location))
        }
        None => Ok(()),
    }
}

/// The primary key of a table that determines all its columns, because it is grouped by.
fn determining_key(analyzer: &Analyzer<'_, '_>, entry: usize, groups: &[Expr], common: &[usize]) -> Option<Oid> {
    let RangeKind::Relation { oid, .. } = &analyzer.level().range_table[entry].kind else { return None };
    let relation = analyzer.cx().catalog.relation(*oid)?;
    relation.constraints.iter().copied().find(|c| {
        let Some(c) = analyzer.cx().catalog.constraint(*c) else { return false };
        c.kind == ConstraintKind::PrimaryKey
            && !c.deferrable
            && c.columns.iter().all(|column| {
                common
                    .iter()
                    .any(|g| matches!(&groups[*g], Expr::Var(v) if v.levels_up == 0 && v.entry == entry && v.column == *column))
            })
    })
}

/// References `by` levels out become references of the own level.
fn lower_levels(e: &mut Expr, by: usize) {
    e.visit_mut(0, &mut |e, level| {
        if let Expr::Var(v) = e
            && v.levels_up >= level + by
        {
            v.levels_up -= by;
        }
        true
    });
}

struct Check<'c, 'a, 'p> {
    groups: &'c [Expr],
    /// Those of the groups that are columns: their entries and numbers.
    columns: HashSet<(usize, i16)>,
    common: &'c [usize],
    analyzer: &'c Analyzer<'a, 'p>,
    /// Entries known to be determined by their primary key.
    dependent: Vec<usize>,
    /// Those keys.
    keys: Vec<Oid>,
}

impl Check<'_, '_, '_> {
    fn expression(&mut self, e: &Expr) -> Result<()> {
        let flat = flatten_join(self.analyzer, e);
        self.walk(&flat, 0, false)
    }

    fn walk(&mut self, e: &Expr, level: usize, in_direct: bool) -> Result<()> {
        match e {
            Expr::Const(_) | Expr::Param(_) => return Ok(()),
            Expr::Aggregate(a) if a.levels_up == level => {
                for direct in &a.direct_args {
                    self.walk(direct, level, true)?;
                }
                return Ok(());
            }
            // Aggregates of queries further out are evaluated there.
            Expr::Aggregate(a) if a.levels_up > level => return Ok(()),
            Expr::Grouping { levels_up, .. } if *levels_up >= level => return Ok(()),
            _ => {}
        }
        if !matches!(e, Expr::Var(_)) && self.grouped(e, level) {
            return Ok(());
        }
        if let Expr::Var(v) = e {
            return if v.levels_up == level { self.variable(v, e, level, in_direct) } else { Ok(()) };
        }
        let mut result = Ok(());
        e.children(&mut |child| {
            if result.is_ok() {
                result = self.walk(child, level, in_direct);
            }
        });
        result?;
        if let Expr::Sublink(s) = e {
            self.query(&s.query, level + 1)?;
        }
        Ok(())
    }

    fn query(&mut self, q: &Query, level: usize) -> Result<()> {
        let mut result = Ok(());
        q.expressions(&mut |e| {
            if result.is_ok() {
                let flat = if level == 0 { e.clone() } else { self.flatten_at(e, level) };
                result = self.walk(&flat, level, false);
            }
        });
        result?;
        let mut result = Ok(());
        q.subqueries(&mut |inner| {
            if result.is_ok() {
                result = self.query(inner, level + 1);
            }
        });
        result
    }

    fn flatten_at(&self, e: &Expr, _level: usize) -> Expr {
        e.clone()
    }

    /// Within a subquery only columns are compared, as PostgreSQL does it.
    fn grouped(&self, e: &Expr, level: usize) -> bool {
        level == 0 && self.groups.iter().any(|g| equal(g, e))
    }

    fn variable(&mut self, v: &Var, e: &Expr, level: usize, in_direct: bool) -> Result<()> {
        if self.columns.contains(&(v.entry, v.column)) || self.dependent.contains(&v.entry) {
            return Ok(());
        }
        if let Some(key) = determining_key(self.analyzer, v.entry, self.groups, self.common) {
            self.dependent.push(v.entry);
            self.keys.push(key);
            return Ok(());
        }
        let entry = &self.analyzer.level().range_table[v.entry];
        let name = if v.column == 0 {
            format!("{}.*", entry.name)
        } else if v.column < 0 {
            let system = super::scope::SYSTEM_COLUMNS.iter().find(|c| c.1 == v.column);
            format!("{}.{}", entry.name, system.map_or("?", |c| c.0))
        } else {
            format!("{}.{}", entry.name, entry.columns[v.column as usize - 1].name)
        };
        let message = if level == 0 {
            format!("column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function")
        } else {
            format!("subquery uses ungrouped column \"{name}\" from outer query")
        };
        let e = err!(GROUPING_ERROR, "{message}").at(e.location());
        Err(if in_direct { e.detail("Direct arguments of an ordered-set aggregate must use only grouped columns.") } else { e })
    }
}
