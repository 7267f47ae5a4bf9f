//! WITH: ordinary, recursive and data-modifying queries.

use std::sync::Arc;

use melba_types::{DbError, Result, err};
use pg_query::NodeEnum;
use pg_query::protobuf as pb;

use super::analyzer::Analyzer;
use super::context::Context;
use super::scope::{CurrentCte, NsItem};
use super::{nodes, search_cycle};
use melba_tree::*;

/// Analyzes a WITH clause into the level's CTEs; returns whether it is RECURSIVE.
pub fn with_clause<'p>(analyzer: &mut Analyzer<'_, 'p>, with: Option<&'p pb::WithClause>) -> Result<bool> {
    let Some(with) = with else { return Ok(false) };
    let mut ctes: Vec<&'p pb::CommonTableExpr> = Vec::with_capacity(with.ctes.len());
    for node in &with.ctes {
        let Some(NodeEnum::CommonTableExpr(cte)) = &node.node else { continue };
        if ctes.iter().any(|c| c.ctename == cte.ctename) {
            return Err(err!(DUPLICATE_ALIAS, "WITH query name \"{}\" specified more than once", cte.ctename).at(cte.location));
        }
        ctes.push(cte);
    }
    for cte in &ctes {
        let select = matches!(query_node(cte), Some(NodeEnum::SelectStmt(_)));
        if !select {
            if analyzer.depth() > 1 {
                return Err(err!(
                    FEATURE_NOT_SUPPORTED,
                    "WITH clause containing a data-modifying statement must be at the top level"
                )
                .at(cte.location));
            }
            analyzer.level_mut().has_modifying_cte = true;
        }
    }
    if with.recursive {
        ctes = in_dependency_order(ctes)?;
    } else {
        analyzer.level_mut().future_ctes = ctes.iter().map(|c| c.ctename.as_str().into()).collect();
    }
    for cte in ctes {
        let recursive = with.recursive && mentions(cte, &cte.ctename);
        if recursive {
            check_recursion(cte)?;
        }
        let analyzed = with_query(analyzer, cte, recursive)?;
        let level = analyzer.level_mut();
        level.future_ctes.retain(|n| *n != analyzed.name);
        level.ctes.push(analyzed);
    }
    analyzer.level_mut().future_ctes.clear();
    Ok(with.recursive)
}

fn with_query<'p>(analyzer: &mut Analyzer<'_, 'p>, cte: &'p pb::CommonTableExpr, recursive: bool) -> Result<Cte> {
    let name: Arc<str> = cte.ctename.as_str().into();
    let aliases: Vec<Arc<str>> = nodes::strings(&cte.aliascolnames).into_iter().map(Into::into).collect();
    let node = query_node(cte).ok_or_else(|| DbError::internal("WITH query without a statement"))?;
    analyzer.level_mut().current_cte =
        Some(CurrentCte { name: name.clone(), recursive, aliases: aliases.clone(), columns: None });
    let result = analyzer.statement(node);
    let current = analyzer.level_mut().current_cte.take();
    let query = result?;
    let mut columns = query.output_columns();
    if let Some(early) = current.and_then(|c| c.columns) {
        check_recursive_types(analyzer.cx(), &name, &early, &columns, &query)?;
    }
    if aliases.len() > columns.len() {
        let (available, given) = (columns.len(), aliases.len());
        return Err(err!(
            INVALID_COLUMN_REFERENCE,
            "WITH query \"{name}\" has {available} columns available but {given} columns specified"
        )
        .at(cte.location));
    }
    for (column, alias) in columns.iter_mut().zip(&aliases) {
        column.name = alias.clone();
    }
    let (search, cycle, added) = search_cycle::search_and_cycle(analyzer, cte, recursive, &query, &columns)?;
    columns.extend(added);
    let materialized = match pb::CteMaterialize::try_from(cte.ctematerialized) {
        Ok(pb::CteMaterialize::Always) => Some(true),
        Ok(pb::CteMaterialize::Never) => Some(false),
        _ => None,
    };
    Ok(Cte {
        name,
        column_aliases: aliases,
        query: Box::new(query),
        recursive,
        materialized,
        columns,
        references: 0,
        search,
        cycle,
    })
}

fn check_recursive_types(
    cx: &Context<'_>,
    name: &str,
    early: &[OutputColumn],
    columns: &[OutputColumn],
    query: &Query,
) -> Result<()> {
    for (i, (a, b)) in early.iter().zip(columns).enumerate() {
        if a.ty != b.ty || a.typmod != b.typmod {
            let (from, to) = (cx.type_name_typmod(a.ty, a.typmod), cx.type_name_typmod(b.ty, b.typmod));
            let number = i + 1;
            return Err(err!(
                DATATYPE_MISMATCH,
                "recursive query \"{name}\" column {number} has type {from} in non-recursive term but type {to} overall"
            )
            .hint("Cast the output of the non-recursive term to the correct type.")
            .at(query.targets.get(i).map_or(-1, |t| t.expr.location())));
        }
        if a.collation != b.collation {
            let collation = |oid| cx.catalog.collation(oid).map_or("(null)".into(), |c| c.name.clone());
            let (from, to, number) = (collation(a.collation), collation(b.collation), i + 1);
            return Err(err!(
                COLLATION_MISMATCH,
                "recursive query \"{name}\" column {number} has collation \"{from}\" in non-recursive term but \
                     collation \"{to}\" overall"
            )
            .hint("Use the COLLATE clause to set the collation of the non-recursive term.")
            .at(query.targets.get(i).map_or(-1, |t| t.expr.location())));
        }
    }
    Ok(())
}

/// Whether the level is the query of a recursive CTE itself.
pub fn level_is_recursive_cte(analyzer: &Analyzer<'_, '_>) -> bool {
    analyzer.levels().nth(1).and_then(|outer| outer.current_cte.as_ref()).is_some_and(|c| c.recursive)
}

/// Called when the left side of a set operation is known: the self-reference in the right side needs it.
pub fn note_recursive_columns(analyzer: &mut Analyzer<'_, '_>, columns: &[OutputColumn]) {
    if !level_is_recursive_cte(analyzer) {
        return;
    }
    let mut columns = columns.to_vec();
    for column in &mut columns {
        if column.ty == melba_types::oids::UNKNOWN {
            column.ty = melba_types::oids::TEXT;
            // A literal with COLLATE has its own.
            if !column.collation.is_valid() {
                column.collation = DEFAULT_COLLATION;
            }
        }
    }
    if let Some(current) = &mut analyzer.level_up_mut(1).current_cte {
        for (column, alias) in columns.iter_mut().zip(&current.aliases) {
            column.name = alias.clone();
        }
        current.columns.get_or_insert(columns);
    }
}

/// The range entry for an unqualified name that is a CTE.
pub fn cte_reference<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::RangeVar) -> Result<Option<NsItem>> {
    for up in 0..analyzer.depth() {
        let level = analyzer.level_up_mut(up);
        let found = if let Some(cte) = level.ctes.iter_mut().find(|c| *c.name == *n.relname) {
            cte.references += 1;
            if cte.query.command != Command::Select && cte.query.returning.is_empty() {
                return Err(
                    err!(FEATURE_NOT_SUPPORTED, "WITH query \"{}\" does not have a RETURNING clause", n.relname).at(n.location)
                );
            }
            Some((cte.columns.clone(), false))
        } else {
            match &level.current_cte {
                Some(current) if current.recursive && *current.name == *n.relname => {
                    let columns = current.columns.clone().ok_or_else(|| {
                        err!(
                            INVALID_RECURSION,
                            "recursive reference to query \"{}\" must not appear within its non-recursive term",
                            n.relname
                        )
                        .at(n.location)
                    })?;
                    Some((columns, true))
                }
                _ => None,
            }
        };
        let Some((mut columns, self_reference)) = found else { continue };
        let alias = n.alias.as_ref();
        let name: Arc<str> = alias.map_or(n.relname.as_str(), |a| &a.aliasname).into();
        if let Some(alias) = alias {
            super::range_columns::apply_aliases(&mut columns, &alias.colnames, &name)?;
        }
        let entry = analyzer.add_entry(RangeEntry {
            kind: RangeKind::Cte { name: n.relname.as_str().into(), levels: up, self_reference },
            alias: alias.map(|_| name.clone()),
            name: name.clone(),
            columns,
            ..RangeEntry::default()
        });
        return Ok(Some(NsItem::new(entry, name)));
    }
    Ok(None)
}

fn query_node(cte: &pb::CommonTableExpr) -> Option<&NodeEnum> {
    cte.ctequery.as_deref().and_then(|n| n.node.as_ref())
}

/// Places of an unqualified table name in a statement.
fn references(node: &NodeEnum, name: &str) -> Vec<i32> {
    // The parse tree has hundreds of kinds of nodes; in serialized form one search covers them all.
    let mut found = Vec::new();
    if let Ok(tree) = serde_json::to_value(node) {
        collect_references(&tree, name, &mut found);
    }
    found
}

fn collect_references(tree: &serde_json::Value, name: &str, found: &mut Vec<i32>) {
    match tree {
        serde_json::Value::Object(fields) => {
            let text = |key: &str| fields.get(key).and_then(|v| v.as_str());
            if text("relname") == Some(name) && text("schemaname") == Some("") {
                found.push(fields.get("location").and_then(|l| l.as_i64()).unwrap_or(-1) as i32);
            }
            fields.values().for_each(|v| collect_references(v, name, found));
        }
        serde_json::Value::Array(items) => items.iter().for_each(|v| collect_references(v, name, found)),
        _ => {}
    }
}

fn mentions(cte: &pb::CommonTableExpr, name: &str) -> bool {
    query_node(cte).is_some_and(|n| !references(n, name).is_empty())
}

/// WITH RECURSIVE allows forward references: each query after those it mentions.
fn in_dependency_order(ctes: Vec<&pb::CommonTableExpr>) -> Result<Vec<&pb::CommonTableExpr>> {
    let mut pending = ctes;
    let mut ordered = Vec::with_capacity(pending.len());
    while !pending.is_empty() {
        let ready =
            pending.iter().position(|c| pending.iter().all(|other| other.ctename == c.ctename || !mentions(c, &other.ctename)));
        match ready {
            Some(i) => ordered.push(pending.remove(i)),
            None => {
                return Err(
                    err!(FEATURE_NOT_SUPPORTED, "mutual recursion between WITH items is not implemented").at(pending[0].location)
                );
            }
        }
    }
    Ok(ordered)
}

/// The form a recursive query must have.
fn check_recursion(cte: &pb::CommonTableExpr) -> Result<()> {
    let name = &cte.ctename;
    let select = match query_node(cte) {
        Some(NodeEnum::SelectStmt(s)) => s,
        _ => {
            return Err(
                err!(INVALID_RECURSION, "recursive query \"{name}\" must not contain data-modifying statements").at(cte.location)
            );
        }
    };
    let is_union = select.op == pb::SetOperation::SetopUnion as i32;
    let (Some(left), Some(right), true) = (&select.larg, &select.rarg, is_union) else {
        return Err(err!(
            INVALID_RECURSION,
            "recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] recursive-term"
        )
        .at(cte.location));
    };
    let in_with = select.with_clause.iter().flat_map(|w| &w.ctes).filter_map(|c| c.node.as_ref());
    if let Some(location) = in_with.flat_map(|node| references(node, name)).next() {
        return Err(
            err!(INVALID_RECURSION, "recursive reference to query \"{name}\" must not appear within a subquery").at(location)
        );
    }
    let in_left = references(&NodeEnum::SelectStmt(left.clone()), name);
    if let Some(location) = in_left.first() {
        return Err(err!(
            INVALID_RECURSION,
            "recursive reference to query \"{name}\" must not appear within its non-recursive term"
        )
        .at(*location));
    }
    for (clause, node) in [
        ("ORDER BY", select.sort_clause.first()),
        ("OFFSET", select.limit_offset.as_deref()),
        ("LIMIT", select.limit_count.as_deref()),
        ("FOR UPDATE/SHARE", select.locking_clause.first()),
    ] {
        if let Some(node) = node {
            return Err(err!(FEATURE_NOT_SUPPORTED, "{clause} in a recursive query is not implemented").at(nodes::location(node)));
        }
    }
    let mut walk = RecursionWalk { name, seen: 0 };
    walk.select(right, None)
}

/// Finds recursive references where they are not allowed.
struct RecursionWalk<'n> {
    name: &'n str,
    seen: usize,
}

impl RecursionWalk<'_> {
    fn select(&mut self, s: &pb::SelectStmt, context: Option<&'static str>) -> Result<()> {
        for cte in s.with_clause.iter().flat_map(|w| &w.ctes) {
            let Some(NodeEnum::CommonTableExpr(cte)) = &cte.node else { continue };
            // From there on the name has another meaning.
            if cte.ctename == self.name {
                return Ok(());
            }
            if let Some(NodeEnum::SelectStmt(select)) = query_node(cte) {
                self.select(select, context)?;
            }
        }
        if let (Some(left), Some(right)) = (&s.larg, &s.rarg) {
            let op = pb::SetOperation::try_from(s.op).unwrap_or(pb::SetOperation::Undefined);
            let (l, r) = match op {
                pb::SetOperation::SetopIntersect if s.all => (Some("INTERSECT"), Some("INTERSECT")),
                pb::SetOperation::SetopExcept if s.all => (Some("EXCEPT"), Some("EXCEPT")),
                pb::SetOperation::SetopExcept => (context, Some("EXCEPT")),
                _ => (context, context),
            };
            self.select(left, l)?;
            return self.select(right, r);
        }
        for item in &s.from_clause {
            self.from(item, context)?;
        }
        // Everything else holds references in subqueries only.
        let mut rest = s.clone();
        rest.from_clause.clear();
        rest.with_clause = None;
        self.refuse(&NodeEnum::SelectStmt(Box::new(rest)), "a subquery")
    }

    fn refuse(&self, node: &NodeEnum, place: &str) -> Result<()> {
        match references(node, self.name).first() {
            Some(location) => {
                Err(err!(INVALID_RECURSION, "recursive reference to query \"{}\" must not appear within {place}", self.name)
                    .at(*location))
            }
            None => Ok(()),
        }
    }

    fn from(&mut self, item: &pb::Node, context: Option<&'static str>) -> Result<()> {
        match &item.node {
            Some(NodeEnum::RangeVar(r)) if r.schemaname.is_empty() && r.relname == self.name => {
                if let Some(place) = context {
                    let place = if place == "outer" { "an outer join" } else { place };
                    return Err(err!(
                        INVALID_RECURSION,
                        "recursive reference to query \"{}\" must not appear within {place}",
                        self.name
                    )
                    .at(r.location));
                }
                self.seen += 1;
                if self.seen > 1 {
                    return Err(err!(
                        INVALID_RECURSION,
                        "recursive reference to query \"{}\" must not appear more than once",
                        self.name
                    )
                    .at(r.location));
                }
                Ok(())
            }
            Some(NodeEnum::JoinExpr(j)) => {
                let (l, r) = match pb::JoinType::try_from(j.jointype) {
                    Ok(pb::JoinType::JoinLeft) => (context, Some("outer")),
                    Ok(pb::JoinType::JoinRight) => (Some("outer"), context),
                    Ok(pb::JoinType::JoinFull) => (Some("outer"), Some("outer")),
                    _ => (context, context),
                };
                if let Some(left) = &j.larg {
                    self.from(left, l)?;
                }
                if let Some(right) = &j.rarg {
                    self.from(right, r)?;
                }
                match j.quals.as_deref().and_then(|q| q.node.as_ref()) {
                    Some(quals) => self.refuse(quals, "a subquery"),
                    None => Ok(()),
                }
            }
            Some(NodeEnum::RangeSubselect(s)) => match s.subquery.as_deref().and_then(|q| q.node.as_ref()) {
                Some(NodeEnum::SelectStmt(select)) => self.select(select, context),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}
