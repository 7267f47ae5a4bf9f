//! FROM: tables, views, subqueries, CTE references, TABLESAMPLE.

use std::sync::Arc;

use melba_catalog::{Catalog, Relation, RelationKind, classes};
use melba_types::{DbError, Oid, Result, err, limits, oids};
use pg_query::{NodeEnum, protobuf as pb};

use super::analyzer::Analyzer;
use super::context::Context;
use super::range_columns::{apply_aliases, relation_columns};
use super::scope::FromResult;
use super::scope::set_lateral;
use super::scope::{ExprKind, NsItem, system_var};
use super::sublink::scalar_sublink;
use super::{coerce, cte, items, join, json, json_table, nodes, range_function};
use melba_tree::*;

pub fn from_clause<'p>(analyzer: &mut Analyzer<'_, 'p>, list: &'p [pb::Node]) -> Result<Vec<FromItem>> {
    let mut items = Vec::with_capacity(list.len());
    for node in list {
        let mut result = analyzer.from_item(node)?;
        items::check_name_conflicts(analyzer, &analyzer.level().namespace, &result.namespace)?;
        set_lateral(&mut result.namespace, true, true);
        analyzer.level_mut().namespace.append(&mut result.namespace);
        items.push(result.item);
    }
    set_lateral(&mut analyzer.level_mut().namespace, false, true);
    Ok(items)
}

pub fn range_item<'p>(analyzer: &mut Analyzer<'_, 'p>, node: &'p pb::Node) -> Result<FromResult> {
    limits::check_stack()?;
    limits::check_interrupt()?;
    let own = match &node.node {
        Some(NodeEnum::RangeVar(n)) => range_var(analyzer, n)?,
        Some(NodeEnum::RangeSubselect(n)) => range_subselect(analyzer, n)?,
        Some(NodeEnum::RangeFunction(n)) => range_function::function_item(analyzer, n)?,
        Some(NodeEnum::RangeTableSample(n)) => return table_sample(analyzer, n),
        Some(NodeEnum::JoinExpr(n)) => return join::join_item(analyzer, n),
        Some(NodeEnum::JsonTable(n)) => json_table::json_table_item(analyzer, n)?,
        Some(NodeEnum::RangeTableFunc(n)) => return Err(DbError::unsupported("XMLTABLE").at(n.location)),
        _ => return Err(DbError::internal("unrecognized FROM item")),
    };
    Ok(FromResult { item: FromItem::Range(own.entry), namespace: vec![own.clone()], own })
}

/// A table, view or CTE by name.
fn range_var<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::RangeVar) -> Result<NsItem> {
    if n.schemaname.is_empty()
        && let Some(item) = cte::cte_reference(analyzer, n)?
    {
        return Ok(item);
    }
    if n.schemaname.is_empty()
        && let Some(rows) = analyzer.cx().session.transition_table(&n.relname)
    {
        return transition_entry(analyzer, rows.table(), n);
    }
    let relation = open_relation(analyzer, n)?;
    let entry = relation_entry(analyzer, &relation, n)?;
    Ok(NsItem::new(entry, analyzer.level().range_table[entry].name.clone()))
}

/// Adds a range entry for the rows that a trigger's statement has changed.
fn transition_entry<'p>(analyzer: &mut Analyzer<'_, 'p>, table: &Relation, n: &'p pb::RangeVar) -> Result<NsItem> {
    let mut columns: Vec<OutputColumn> = relation_columns(table).into_iter().filter(|c| c.ty.is_valid()).collect();
    let alias = n.alias.as_ref();
    let name: Arc<str> = alias.map_or(n.relname.as_str(), |a| &a.aliasname).into();
    if let Some(alias) = alias {
        apply_aliases(&mut columns, &alias.colnames, &name)?;
    }
    let entry = analyzer.add_entry(RangeEntry {
        kind: RangeKind::Transition { name: n.relname.as_str().into(), table: table.oid },
        alias: alias.map(|_| name.clone()),
        name: name.clone(),
        columns,
        ..RangeEntry::default()
    });
    Ok(NsItem::new(entry, name))
}

/// The relation of a name; 42P01 with CTE hints, 42809 for a relation that cannot be read.
pub fn open_relation(analyzer: &Analyzer<'_, '_>, n: &pb::RangeVar) -> Result<Arc<Relation>> {
    let schema = (!n.schemaname.is_empty()).then_some(n.schemaname.as_str());
    if !n.catalogname.is_empty() {
        analyzer
            .cx()
            .check_database(&n.catalogname, &[&format!("\"{}.{}.{}\"", n.catalogname, n.schemaname, n.relname)])
            .map_err(|e| e.at(n.location))?;
    }
    if let Some(schema) = schema
        && let Err(e) = analyzer.cx().namespace(schema)
        && e.sqlstate() == melba_types::SqlState::INSUFFICIENT_PRIVILEGE
    {
        return Err(e.at(n.location));
    }
    if let Some(relation) = analyzer.cx().find_relation(schema, &n.relname) {
        let what = match relation.kind {
            RelationKind::Index | RelationKind::PartitionedIndex => "This operation is not supported for indexes.",
            RelationKind::Composite => "This operation is not supported for composite types.",
            _ => return Ok(relation.clone()),
        };
        let name = &n.relname;
        return Err(err!(WRONG_OBJECT_TYPE, "cannot open relation \"{name}\"").detail(what).at(n.location));
    }
    let e = super::missing_relation(schema, &n.relname).at(n.location);
    let future = analyzer.levels().any(|l| l.future_ctes.iter().any(|c| **c == *n.relname));
    if schema.is_none() && future {
        let name = &n.relname;
        return Err(e
            .detail(format!("There is a WITH item named \"{name}\", but it cannot be referenced from this part of the query."))
            .hint("Use WITH RECURSIVE, or re-order the WITH items to remove forward references."));
    }
    Err(e)
}

/// Adds a range entry for a relation; views become their query.
pub fn relation_entry(analyzer: &mut Analyzer<'_, '_>, relation: &Relation, n: &pb::RangeVar) -> Result<usize> {
    let kind = if relation.kind == RelationKind::View {
        if stands_in_itself(analyzer.cx().catalog, relation) {
            let name = &relation.name;
            return Err(err!(INVALID_OBJECT_DEFINITION, "infinite recursion detected in rules for relation \"{name}\""));
        }
        let query = super::expression::analyze_view(analyzer.cx(), relation)?;
        RangeKind::Subquery { query: Box::new(query), view: relation.oid }
    } else {
        RangeKind::Relation { oid: relation.oid, inherit: n.inh, sample: None }
    };
    let mut columns = relation_columns(relation);
    let alias = n.alias.as_ref();
    let name: Arc<str> = alias.map_or(n.relname.as_str(), |a| &a.aliasname).into();
    if let Some(alias) = alias {
        apply_aliases(&mut columns, &alias.colnames, &name)?;
    }
    Ok(analyzer.add_entry(RangeEntry {
        kind,
        alias: alias.map(|_| name.clone()),
        name,
        columns,
        required: Privileges { select: true, ..Privileges::default() },
        ..RangeEntry::default()
    }))
}

fn range_subselect<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::RangeSubselect) -> Result<NsItem> {
    let node = n.subquery.as_deref().and_then(|s| s.node.as_ref());
    let node = node.ok_or_else(|| DbError::internal("subquery in FROM without a query"))?;
    let level = analyzer.level_mut();
    let saved_lateral = std::mem::replace(&mut level.lateral_active, n.lateral);
    let result = analyzer.with_kind(ExprKind::FromSubselect, |a| a.statement(node));
    analyzer.level_mut().lateral_active = saved_lateral;
    let query = result?;
    if query.command != Command::Select {
        return Err(DbError::internal("unexpected non-SELECT command in subquery in FROM"));
    }
    let mut columns = query.output_columns();
    let alias = n.alias.as_ref();
    let name: Arc<str> = alias.map_or("unnamed_subquery", |a| &a.aliasname).into();
    if let Some(alias) = alias {
        apply_aliases(&mut columns, &alias.colnames, &name)?;
    }
    let entry = analyzer.add_entry(RangeEntry {
        kind: RangeKind::Subquery { query: Box::new(query), view: Oid::INVALID },
        alias: alias.map(|_| name.clone()),
        name: name.clone(),
        columns,
        lateral: n.lateral,
        ..RangeEntry::default()
    });
    let mut item = NsItem::new(entry, name);
    item.relation_visible = alias.is_some();
    Ok(item)
}

fn table_sample<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::RangeTableSample) -> Result<FromResult> {
    let relation = n.relation.as_deref().ok_or_else(|| DbError::internal("TABLESAMPLE without a table"))?;
    let result = analyzer.from_item(relation)?;
    let entry = result.own.entry;
    let sampled = match &analyzer.level().range_table[entry].kind {
        RangeKind::Relation { oid, .. } => matches!(
            analyzer.cx().relation(*oid)?.kind,
            RelationKind::Table | RelationKind::MaterializedView | RelationKind::PartitionedTable
        ),
        _ => false,
    };
    if !sampled {
        return Err(err!(FEATURE_NOT_SUPPORTED, "TABLESAMPLE clause can only be applied to tables and materialized views")
            .at(nodes::location(relation)));
    }
    let method = nodes::dotted(&n.method);
    if !matches!(method.as_str(), "system" | "bernoulli") {
        return Err(err!(UNDEFINED_OBJECT, "tablesample method {method} does not exist").at(n.location));
    }
    if n.args.len() != 1 {
        return Err(err!(INVALID_TABLESAMPLE_ARGUMENT, "tablesample method {method} requires 1 argument, not {}", n.args.len())
            .at(n.location));
    }
    let mut args = Vec::with_capacity(1);
    for arg in &n.args {
        let e = analyzer.expression(arg, ExprKind::FromFunction)?;
        args.push(coerce::to_specific(analyzer, e, oids::FLOAT4, "TABLESAMPLE")?);
    }
    let repeatable = match &n.repeatable {
        Some(node) => {
            let e = analyzer.expression(node, ExprKind::FromFunction)?;
            Some(coerce::to_specific(analyzer, e, oids::FLOAT8, "REPEATABLE")?)
        }
        None => None,
    };
    sample_rows(analyzer, entry, &method, &args, repeatable.clone())?;
    if let RangeKind::Relation { sample, .. } = &mut analyzer.level_mut().range_table[entry].kind {
        *sample = Some(Box::new(TableSample { method: method.into(), args, repeatable }));
    }
    Ok(result)
}

/// Hides the rows of a table that are not in its sample.
fn sample_rows(analyzer: &mut Analyzer<'_, '_>, entry: usize, method: &str, args: &[Expr], seed: Option<Expr>) -> Result<()> {
    let seed = match seed {
        Some(seed) => seed,
        None => random_seed(analyzer.cx())?,
    };
    let mut all = vec![system_var(entry, -1, oids::TID)];
    all.extend(args.iter().cloned());
    all.push(seed);
    let sampled = Expr::Sampled { system: method == "system", args: all };
    analyzer.level_mut().range_table[entry].security.push(sampled);
    Ok(())
}

/// A random number that is the same for a whole statement.
fn random_seed(cx: &Context<'_>) -> Result<Expr> {
    let expr = json::built_in_call(cx, "random", &[], vec![], -1)?;
    let mut query = Query::new(Command::Select);
    let (name, origin) = ("seed".into(), (Oid::INVALID, 0));
    query.targets.push(Target { expr, name, junk: false, reference: 0, column: 0, origin });
    scalar_sublink(query, -1)
}

/// Whether a view's query uses the view, directly or through other views: CREATE OR REPLACE VIEW can cause that.
fn stands_in_itself(catalog: &Catalog, view: &Relation) -> bool {
    let mut seen: Vec<Oid> = Vec::new();
    let mut open: Vec<&Relation> = vec![view];
    while let Some(next) = open.pop() {
        for address in next.depends_on.iter().filter(|d| d.class == classes::PG_CLASS && d.sub == 0) {
            if address.object == view.oid {
                return true;
            }
            if !seen.contains(&address.object)
                && let Some(relation) = catalog.relation(address.object)
                && relation.kind == RelationKind::View
            {
                seen.push(relation.oid);
                open.push(relation);
            }
        }
    }
    false
}
