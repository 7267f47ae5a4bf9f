//! WITH queries: inlined, or planned to be shared.

use std::sync::Arc;

use melba_tree::{Command, Cte, Query};
use melba_types::{DbError, Result, limits};

use super::layout::{Layout, TARGET};
use super::node::*;
use super::planner::{CteBinding, Level, Planner, Stage};
use super::prepare::{inline_cte, referenced_ctes};
use super::{set_operation, sort, volatility};

/// WITH queries: inlined, or planned to be shared.
pub fn plan_ctes(planner: &mut Planner<'_>, query: &mut Query) -> Result<()> {
    let mut ctes = std::mem::take(&mut query.ctes);
    let mut i = 0;
    while i < ctes.len() {
        let cte = ctes[i].clone();
        if can_inline(planner, &cte) {
            // One reference stands in one of them.
            let mut is_done = inline_cte(query, &cte) && cte.references == 1;
            for later in &mut ctes[i + 1..] {
                if is_done {
                    break;
                }
                limits::check_interrupt()?;
                // A later WITH query is one level inside this one.
                let mut holder = Query::new(Command::Select);
                holder.ctes.push(later.clone());
                is_done = inline_cte(&mut holder, &cte) && cte.references == 1;
                *later = holder.ctes.swap_remove(0);
            }
            ctes.remove(i);
        } else {
            i += 1;
        }
    }
    let mut holder = Query::new(Command::Select);
    for (i, cte) in ctes.iter().enumerate() {
        holder.ctes = ctes[i + 1..].to_vec();
        let used = referenced_ctes(query).contains(&*cte.name) || referenced_ctes(&mut holder).contains(&*cte.name);
        if used || cte.query.command != Command::Select {
            plan_cte(planner, cte)?;
        }
    }
    Ok(())
}

fn can_inline(planner: &Planner<'_>, cte: &Cte) -> bool {
    cte.query.command == Command::Select
        && !cte.recursive
        && cte.materialized != Some(true)
        && (cte.materialized == Some(false) || cte.references == 1)
        && !volatility::query_is_volatile(planner, &cte.query)
        && cte.query.locking.is_empty()
}

fn plan_cte(planner: &mut Planner<'_>, cte: &Cte) -> Result<()> {
    let expanded;
    let cte = match cte.search.is_some() || cte.cycle.is_some() {
        true => {
            expanded = super::search_cycle::expand(cte, planner.catalog())?;
            &expanded
        }
        false => cte,
    };
    let index = planner.ctes.len();
    planner.ctes.push(None);
    let columns = if cte.columns.is_empty() { cte.query.output_columns() } else { cte.columns.clone() };
    let kinds = planner.kinds_of(&columns);
    let outer = std::mem::take(&mut planner.used);
    let planned =
        if cte.recursive { recursive_cte(planner, cte, index, kinds.clone()) } else { planner.query((*cte.query).clone(), None) };
    let used = std::mem::replace(&mut planner.used, outer);
    let node = planned?.node;
    let depth = planner.levels.len() - 1;
    // The WITH query may depend on outer queries' rows only.
    let parameters: Vec<usize> =
        used.iter().copied().filter(|p| planner.parameters[*p].is_some_and(|(level, ..)| level < depth)).collect();
    planner.used.extend(parameters.iter().copied());
    let rows = node.estimate.rows;
    let modifying = cte.query.command != Command::Select;
    planner.ctes[index] = Some(CteNode { name: cte.name.clone(), node, parameters, modifying });
    let binding = CteBinding { index, kinds, rows, work_table: None };
    let level = planner.level_mut();
    level.ctes.retain(|(name, _)| *name != cte.name);
    level.ctes.push((cte.name.clone(), binding));
    Ok(())
}

/// base UNION [ALL] recursive.
fn recursive_cte(planner: &mut Planner<'_>, cte: &Cte, index: usize, kinds: Arc<[melba_types::Kind]>) -> Result<Stage> {
    let query = &cte.query;
    let Some(set) = &query.set_operation else { return planner.query((**query).clone(), None) };
    if !query.order_by.is_empty() || query.limit.is_some() || query.offset.is_some() {
        return Err(DbError::unsupported("ORDER BY, OFFSET or LIMIT in a recursive query"));
    }
    if !set.all && set.keys.iter().any(|k| !k.hashable) {
        return Err(melba_types::err!(FEATURE_NOT_SUPPORTED, "could not implement recursive UNION")
            .detail("All column datatypes must be hashable."));
    }
    let table = planner.work_tables;
    planner.work_tables += 1;
    let depth = planner.levels.len() - 1;
    let parameter = planner.new_parameter(Some((depth, super::layout::WORK, 0)));
    // The rows of a round are not known: 100 are assumed.
    let binding = CteBinding { index, kinds: kinds.clone(), rows: 100.0, work_table: Some((table, parameter)) };
    planner.level_mut().ctes.push((cte.name.clone(), binding));
    // The arms are two levels inside the query with the WITH: the set operation is the level between.
    planner.levels.push(Level::default());
    let mut inner = (**query).clone();
    let result = (|| -> Result<(PlanNode, PlanNode)> {
        plan_ctes(planner, &mut inner)?;
        planner.level_mut().entries = std::mem::take(&mut inner.range_table);
        let base = set_operation::set_input(planner, &set.left, &set.columns)?;
        let recursive = set_operation::set_input(planner, &set.right, &set.columns)?;
        Ok((base.node, recursive.node))
    })();
    planner.levels.pop();
    let (base, recursive) = result?;
    let distinct = match set.all {
        true => None,
        false => Some(sort::column_keys(planner, &query.output_columns(), &kinds)?),
    };
    // As in PostgreSQL, ten rounds are assumed.
    let rows = base.estimate.rows * 10.0;
    let estimate = Estimate { startup: 0.0, total: base.estimate.total + recursive.estimate.total * 10.0, rows };
    let op = Op::RecursiveUnion(Arc::new(RecursiveUnionNode { base, recursive, table, parameter, distinct }));
    let node = planner.node(op, kinds.clone(), estimate);
    Ok(Stage { node, layout: Layout::of(TARGET, kinds.len()) })
}
