//! FROM: tables, views, subqueries, CTE references, TABLESAMPLE.

use std::sync::Arc;

use melba_catalog::{Catalog, Relation, RelationKind, classes};
use melba_types::{DbError, Oid, Result, err, limits, oids};
use pg_query::NodeEnum;
use pg_query::protobuf as pb;

use super::columns::system_var;
use super::range_columns::{apply_aliases, relation_columns};
use super::scope::{ExprKind, NsItem};
use super::sublink::scalar_sublink;
use super::{Analyzer, nodes};
use melba_tree::*;

/// The result of a FROM item: its place in the join tree, its range item, and the columns it makes visible.
pub struct FromResult {
    pub item: FromItem,
    pub own: NsItem,
    pub namespace: Vec<NsItem>,
}

impl<'p> Analyzer<'_, 'p> {
    pub fn from_clause(&mut self, list: &'p [pb::Node]) -> Result<Vec<FromItem>> {
        let mut items = Vec::with_capacity(list.len());
        for node in list {
            let mut result = self.from_item(node)?;
            self.check_name_conflicts(&self.level().namespace, &result.namespace)?;
            set_lateral(&mut result.namespace, true, true);
            self.level_mut().namespace.append(&mut result.namespace);
            items.push(result.item);
        }
        set_lateral(&mut self.level_mut().namespace, false, true);
        Ok(items)
    }

    pub fn from_item(&mut self, node: &'p pb::Node) -> Result<FromResult> {
        limits::check_stack()?;
        limits::check_interrupt()?;
        let own = match &node.node {
            Some(NodeEnum::RangeVar(n)) => self.range_var(n)?,
            Some(NodeEnum::RangeSubselect(n)) => self.range_subselect(n)?,
            Some(NodeEnum::RangeFunction(n)) => self.range_function(n)?,
            Some(NodeEnum::RangeTableSample(n)) => return self.table_sample(n),
            Some(NodeEnum::JoinExpr(n)) => return self.join(n),
            Some(NodeEnum::JsonTable(n)) => self.json_table(n)?,
            Some(NodeEnum::RangeTableFunc(n)) => return Err(DbError::unsupported("XMLTABLE").at(n.location)),
            _ => return Err(DbError::internal("unrecognized FROM item")),
        };
        Ok(FromResult { item: FromItem::Range(own.entry), namespace: vec![own.clone()], own })
    }

    /// A table, view or CTE by name.
    fn range_var(&mut self, n: &'p pb::RangeVar) -> Result<NsItem> {
        if n.schemaname.is_empty()
            && let Some(item) = self.cte_reference(n)?
        {
            return Ok(item);
        }
        if n.schemaname.is_empty()
            && let Some(rows) = self.cx.session.transition_table(&n.relname)
        {
            return self.transition_entry(rows.table(), n);
        }
        let relation = self.open_relation(n)?;
        let entry = self.relation_entry(&relation, n)?;
        Ok(NsItem::new(entry, self.level().range_table[entry].name.clone()))
    }

    /// Adds a range entry for the rows that a trigger's statement has changed.
    fn transition_entry(&mut self, table: &Relation, n: &'p pb::RangeVar) -> Result<NsItem> {
        let mut columns: Vec<OutputColumn> = relation_columns(table).into_iter().filter(|c| c.ty.is_valid()).collect();
        let alias = n.alias.as_ref();
        let name: Arc<str> = alias.map_or(n.relname.as_str(), |a| &a.aliasname).into();
        if let Some(alias) = alias {
            apply_aliases(&mut columns, &alias.colnames, &name)?;
        }
        let entry = self.add_entry(RangeEntry {
            kind: RangeKind::Transition { name: n.relname.as_str().into(), table: table.oid },
            alias: alias.map(|_| name.clone()),
            name: name.clone(),
            columns,
            ..RangeEntry::default()
        });
        Ok(NsItem::new(entry, name))
    }

    /// The relation of a name; 42P01 with CTE hints, 42809 for a relation that cannot be read.
    pub fn open_relation(&self, n: &pb::RangeVar) -> Result<Arc<Relation>> {
        let schema = (!n.schemaname.is_empty()).then_some(n.schemaname.as_str());
        if !n.catalogname.is_empty() {
            self.cx.check_database(&n.catalogname, &[&n.catalogname, &n.schemaname, &n.relname]).map_err(|e| e.at(n.location))?;
        }
        if let Some(schema) = schema
            && let Err(e) = self.cx.namespace(schema)
            && e.sqlstate() == melba_types::SqlState::INSUFFICIENT_PRIVILEGE
        {
            return Err(e.at(n.location));
        }
        if let Some(relation) = self.cx.find_relation(schema, &n.relname) {
            let what = match relation.kind {
                RelationKind::Index | RelationKind::PartitionedIndex => "This operation is not supported for indexes.",
                RelationKind::Composite => "This operation is not supported for composite types.",
                _ => return Ok(relation.clone()),
            };
            let name = &n.relname;
            return Err(err!(WRONG_OBJECT_TYPE, "cannot open relation \"{name}\"").detail(what).at(n.location));
        }
        let e = super::missing_relation(schema, &n.relname).at(n.location);
        let future = self.levels.iter().any(|l| l.future_ctes.iter().any(|c| **c == *n.relname));
        if schema.is_none() && future {
            let name = &n.relname;
            return Err(e
                .detail(format!(
                    "There is a WITH item named \"{name}\", but it cannot be referenced from this part of the query."
                ))
                .hint("Use WITH RECURSIVE, or re-order the WITH items to remove forward references."));
        }
        Err(e)
    }

    /// Adds a range entry for a relation; views become their query.
    pub fn relation_entry(&mut self, relation: &Relation, n: &pb::RangeVar) -> Result<usize> {
        let kind = if relation.kind == RelationKind::View {
            if stands_in_itself(self.cx.catalog, relation) {
                let name = &relation.name;
                return Err(err!(INVALID_OBJECT_DEFINITION, "infinite recursion detected in rules for relation \"{name}\""));
            }
            let query = super::expression::analyze_view(self.cx, relation)?;
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
        Ok(self.add_entry(RangeEntry {
            kind,
            alias: alias.map(|_| name.clone()),
            name,
            columns,
            required: Privileges { select: true, ..Privileges::default() },
            ..RangeEntry::default()
        }))
    }

    fn range_subselect(&mut self, n: &'p pb::RangeSubselect) -> Result<NsItem> {
        let node = n.subquery.as_deref().and_then(|s| s.node.as_ref());
        let node = node.ok_or_else(|| DbError::internal("subquery in FROM without a query"))?;
        let level = self.level_mut();
        let saved_lateral = std::mem::replace(&mut level.lateral_active, n.lateral);
        let result = self.with_kind(ExprKind::FromSubselect, |a| a.statement(node));
        self.level_mut().lateral_active = saved_lateral;
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
        let entry = self.add_entry(RangeEntry {
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

    fn table_sample(&mut self, n: &'p pb::RangeTableSample) -> Result<FromResult> {
        let relation = n.relation.as_deref().ok_or_else(|| DbError::internal("TABLESAMPLE without a table"))?;
        let result = self.from_item(relation)?;
        let entry = result.own.entry;
        let sampled = match &self.level().range_table[entry].kind {
            RangeKind::Relation { oid, .. } => matches!(
                self.cx.relation(*oid)?.kind,
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
            return Err(err!(
                INVALID_TABLESAMPLE_ARGUMENT,
                "tablesample method {method} requires 1 argument, not {}",
                n.args.len()
            )
            .at(n.location));
        }
        let mut args = Vec::with_capacity(1);
        for arg in &n.args {
            let e = self.expression(arg, ExprKind::FromFunction)?;
            args.push(self.coerce_to_specific(e, oids::FLOAT4, "TABLESAMPLE")?);
        }
        let repeatable = match &n.repeatable {
            Some(node) => {
                let e = self.expression(node, ExprKind::FromFunction)?;
                Some(self.coerce_to_specific(e, oids::FLOAT8, "REPEATABLE")?)
            }
            None => None,
        };
        self.sample_rows(entry, &method, &args, repeatable.clone())?;
        if let RangeKind::Relation { sample, .. } = &mut self.level_mut().range_table[entry].kind {
            *sample = Some(Box::new(TableSample { method: method.into(), args, repeatable }));
        }
        Ok(result)
    }

    /// Hides the rows of a table that are not in its sample.
    fn sample_rows(&mut self, entry: usize, method: &str, args: &[Expr], seed: Option<Expr>) -> Result<()> {
        let seed = match seed {
            Some(seed) => seed,
            None => self.random_seed()?,
        };
        let mut all = vec![system_var(entry, -1, oids::TID)];
        all.extend(args.iter().cloned());
        all.push(seed);
        let sampled = Expr::Sampled { system: method == "system", args: all };
        self.level_mut().range_table[entry].security.push(sampled);
        Ok(())
    }

    /// A random number that is the same for a whole statement.
    fn random_seed(&mut self) -> Result<Expr> {
        let expr = self.built_in_call("random", &[], vec![], -1)?;
        let mut query = Query::new(Command::Select);
        let (name, origin) = ("seed".into(), (Oid::INVALID, 0));
        query.targets.push(Target { expr, name, junk: false, reference: 0, column: 0, origin });
        scalar_sublink(query, -1)
    }

    /// 42712 when two items have the same name.
    pub fn check_name_conflicts(&self, old: &[NsItem], new: &[NsItem]) -> Result<()> {
        let table = &self.level().range_table;
        for item in new.iter().filter(|i| i.relation_visible) {
            for other in old.iter().filter(|i| i.relation_visible && i.name == item.name) {
                let (a, b) = (&table[item.entry], &table[other.entry]);
                let by_name = |e: &RangeEntry| match (&e.alias, super::columns::relation_oid(e)) {
                    (None, Some(oid)) => Some(oid),
                    _ => None,
                };
                // Two tables of one name in different schemas are distinguishable.
                if let (Some(a), Some(b)) = (by_name(a), by_name(b))
                    && a != b
                {
                    continue;
                }
                return Err(err!(DUPLICATE_ALIAS, "table name \"{}\" specified more than once", item.name));
            }
        }
        Ok(())
    }
}

pub fn set_lateral(namespace: &mut [NsItem], only: bool, ok: bool) {
    for item in namespace {
        item.lateral_only = only;
        item.lateral_ok = ok;
    }
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
