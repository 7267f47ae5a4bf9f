//! INSERT, UPDATE, DELETE, MERGE: the rows to change come from an ordinary plan, below one node that changes them.

use std::sync::Arc;

use melba_catalog::classes::{PG_CLASS, PG_DESCRIPTION};
use melba_catalog::{IndexInfo, Relation, RelationKind, Storage};
use melba_engine::RelationLockMode;
use melba_types::{DbError, Kind, Oid, Result};

use super::access::{members, source};
use super::join_tree::Tree;
use super::layout::row_columns;
use super::layout::{LATEST, Layout, NEW, OLD};
use super::modify_node::*;
use super::node::*;
use super::path::Goal;
use super::planner::{Planner, Stage};
use super::prepare::{entry_names, joined_columns, substitute};
use super::rels::conjuncts;
use super::{arbiters, explain_output, join, member, needed, prepare, project_set, recheck};
use melba_expression::Expression;
use melba_table::{ColumnMap, RowCheckTarget, RowChecks, TableTarget, TargetBuilder};
use melba_tree::{
    Command, Expr, FromItem, JoinKind, MergeCommand, MergeMatch, Query, RangeKind, RowExpr, RowVersion, Target, Var,
};

/// Neither MERGE nor ON CONFLICT.
fn changes_plainly(query: &Query) -> bool {
    query.command != Command::Merge && query.insert.as_ref().is_none_or(|insert| insert.on_conflict.is_none())
}

/// An UPDATE of no columns of pg_class but relpages and reltuples.
fn states_sizes(query: &Query, entry: usize, pg_class: &Relation) -> bool {
    let updated = &query.range_table[entry].required.updated;
    let is_size = |column: &str| matches!(column, "relpages" | "reltuples");
    query.command == Command::Update
        && updated.iter().all(|number| pg_class.columns.get(*number as usize - 1).is_some_and(|column| is_size(&column.name)))
}

/// The table that a statement changes.
struct Changed<'a> {
    /// Its range entry.
    entry: usize,
    relation: &'a Arc<Relation>,
    target: Arc<TableTarget>,
    /// The command tag counts its rows: the statement is the outermost.
    counts: bool,
}

pub fn modify(planner: &mut Planner<'_>, query: &mut Query) -> Result<Stage> {
    let Some(entry) = query.result else {
        return Err(DbError::internal("a data-modifying statement without a target"));
    };
    let oid = match query.range_table[entry].kind {
        RangeKind::Relation { oid, .. } => oid,
        // Its triggers change the rows that it shows.
        RangeKind::Subquery { view, .. } if view.is_valid() => view,
        _ => return Err(DbError::internal("a target that is no relation")),
    };
    let Some(relation) = planner.catalog().relation(oid).cloned() else {
        return Err(DbError::internal(format!("relation {oid} does not exist")));
    };
    match relation.storage {
        Storage::Tree(_) => {}
        Storage::None if relation.is_partitioned() || relation.kind == RelationKind::View => {}
        // Comments are objects of their own. PostgreSQL lets superusers change the other catalogs, too; here their rows are
        // computed.
        Storage::System(_) if oid == PG_DESCRIPTION && changes_plainly(query) => {}
        Storage::System(_) if oid == PG_CLASS && states_sizes(query, entry, &relation) => {}
        Storage::System(_) => {
            return Err(DbError::unsupported(format!("changing system catalog \"{}\" by its rows", relation.name)));
        }
        Storage::Toast(_) => {
            return Err(melba_types::err!(WRONG_OBJECT_TYPE, "cannot change TOAST relation \"{}\"", relation.name));
        }
        _ => return Err(DbError::unsupported(format!("changing relation \"{}\"", relation.name))),
    }
    planner.relations.add(oid, RelationLockMode::RowExclusive);
    let builder = TargetBuilder { catalog: planner.inputs.catalog, session: planner.inputs.session };
    let mut target = builder.table(oid)?;
    let required = &query.range_table[entry].required;
    target.written = required.inserted.iter().chain(&required.updated).copied().collect();
    target.updated = required.updated.clone();
    let computed = target.computed_from(&required.updated);
    target.updated.extend(computed);
    let changed = Changed { entry, relation: &relation, target: Arc::new(target), counts: planner.levels.len() == 1 };
    let outer = std::mem::take(&mut planner.routines);
    let stage = match query.command {
        Command::Insert => insert(planner, query, changed),
        _ => change(planner, query, changed),
    };
    planner.routines.append(outer);
    stage
}

/// The tables that a change of a table with children reaches; `None` when it is the only one.
fn family(planner: &mut Planner<'_>, entry: usize, relation: &Arc<Relation>, layout: &Layout) -> Result<Option<Family>> {
    let inherit = matches!(planner.level().entries[entry].kind, RangeKind::Relation { inherit: true, .. });
    if !member::is_family(planner.catalog(), relation, inherit) {
        return Ok(None);
    }
    let Some(table) = layout.position(entry, -6) else {
        return Err(DbError::internal("the target's table is not in the row"));
    };
    let builder = TargetBuilder { catalog: planner.inputs.catalog, session: planner.inputs.session };
    let mut members = Vec::new();
    // Of a partitioned table, ONLY has no rows.
    let sources = if inherit { members::member_sources(planner, entry, relation)? } else { vec![] };
    for (member, source) in sources {
        planner.relations.add(member.oid, RelationLockMode::RowExclusive);
        let target = Arc::new(builder.table(member.oid)?);
        members.push(FamilyMember { source, target, columns: ColumnMap::new(relation, &member) });
    }
    Ok(Some(Family { table, members }))
}

fn insert(planner: &mut Planner<'_>, query: &mut Query, changed: Changed<'_>) -> Result<Stage> {
    let Changed { entry, relation, .. } = changed;
    let info = query.insert.clone().ok_or_else(|| DbError::internal("INSERT without its description"))?;
    let tree = match info.source {
        Some(source) => Tree::Leaf(source),
        None => Tree::Inner { items: vec![], conditions: vec![] },
    };
    planner.level_mut().entries = std::mem::take(&mut query.range_table);
    needed::gather_needed(planner, query, &tree, &[]);
    let returns_sets = query.targets.iter().any(|t| project_set::has_set(&t.expr));
    let (input, layout) = match info.source {
        None if !returns_sets => (None, Layout::default()),
        _ => {
            let (path, _) = join::plan_joins(planner, &tree, &Goal::default())?;
            let mut stage = planner.create(&path)?;
            if returns_sets {
                stage = project_set::project_set(planner, stage, query.targets.iter_mut().map(|t| &mut t.expr))?;
            }
            (Some(stage.node), stage.layout)
        }
    };
    let values = row_values(planner, &query.targets, relation, &layout)?;
    let on_conflict = match &info.on_conflict {
        None => None,
        Some(conflict) => {
            let update = match &conflict.update {
                None => None,
                Some(update) => {
                    let mut update = update.clone();
                    let rows = [entry, update.excluded];
                    let expressions = update.targets.iter_mut().map(|t| &mut t.expr).chain(&mut update.filter);
                    expressions.for_each(|e| e.visit_mut(0, &mut |e, level| spell_out(e, level, rows, relation)));
                    let columns = relation.columns.len();
                    let both = table_layout(entry, columns).joined(&table_layout(update.excluded, columns));
                    let assignments = assignments(planner, &update.targets, relation, &both)?;
                    let filter = update.filter.as_ref().map(|f| planner.compile(f, &both)).transpose()?;
                    Some((assignments, filter))
                }
            };
            // PostgreSQL searches for them after it has computed the constants.
            let arbiters =
                arbiters::arbiters(planner, conflict, relation, entry).map_err(|e| planner.constant_error.take().unwrap_or(e))?;
            // The triggers of a view meet no conflicts.
            (relation.kind != RelationKind::View).then_some(ConflictNode { arbiters, update })
        }
    };
    let action = Action::Insert { values, on_conflict };
    finish_modify(planner, query, changed, input, layout, None, action)
}

/// UPDATE, DELETE, MERGE.
fn change(planner: &mut Planner<'_>, query: &mut Query, changed: Changed<'_>) -> Result<Stage> {
    let Changed { entry, relation, .. } = changed;
    let is_view = relation.kind == RelationKind::View || matches!(relation.storage, Storage::System(_));
    let mut marker = None;
    if query.command == Command::Merge {
        marker = merge_join(query, entry)?;
    }
    let mut tree = prepare::prepare(planner, query)?;
    tree.keep_partners();
    planner.level_mut().entries = std::mem::take(&mut query.range_table);
    let shows_presence = match (is_view, query.command) {
        (false, _) => Some(-1),
        (true, Command::Merge) => Some(0),
        (true, _) => None,
    };
    let mut needed: Vec<(usize, i16)> = shows_presence.map(|column| (entry, column)).into_iter().collect();
    // Virtual columns are computed only where they are read.
    let is_stored = |c: &usize| !relation.columns[*c].dropped && relation.columns[*c].generated != b'v';
    needed.extend((0..relation.columns.len()).filter(is_stored).map(|c| (entry, c as i16 + 1)));
    needed.extend(marker.map(|m| (m, 0)));
    let inherit = matches!(planner.level().entries[entry].kind, RangeKind::Relation { inherit: true, .. });
    let is_family = member::is_family(planner.catalog(), relation, inherit);
    needed.extend(is_family.then_some((entry, -6)));
    needed::gather_needed(planner, query, &tree, &needed);
    let (path, gates) = join::plan_joins(planner, &tree, &Goal::default())?;
    let mut stage = planner.create(&path)?;
    if !gates.is_empty() {
        let conditions = planner.compile_all(&gates, &Layout::default())?;
        let (kinds, estimate) = (stage.node.kinds.clone(), stage.node.estimate);
        let op = Op::Result(Arc::new(ResultNode { input: Some(stage.node), conditions }));
        stage = Stage { node: planner.node(op, kinds, estimate), layout: stage.layout };
    }
    let layout = stage.layout;
    let family = if is_view { None } else { family(planner, entry, relation, &layout)? };
    let (source, scan) = match &family {
        None if is_view => (None, Layout::default()),
        None => {
            let (source, scan) = source::table_source(planner, entry, relation, &[])?;
            (Some(source), scan)
        }
        Some(_) => (None, Layout(needed::needed(planner, entry, &[]).iter().map(|c| (entry, *c)).collect())),
    };
    let row_id = match shows_presence.and_then(|column| layout.position(entry, column)) {
        Some(place) => place,
        None if is_view => 0,
        None => return Err(DbError::internal("the target's row id is not in the row")),
    };
    let existing = Existing {
        source,
        row_id,
        columns: (0..relation.columns.len()).map(|c| layout.position(entry, c as i16 + 1).filter(|_| is_stored(&c))).collect(),
        replace: row_columns(&layout, &scan),
        recheck: if is_view {
            vec![]
        } else {
            let steps = recheck::rechecks(&tree, &planner.level().entries);
            recheck::compile_rechecks(planner, steps, &layout)?
        },
    };
    let action = match query.command {
        Command::Update => Action::Update(assignments(planner, &query.targets.clone(), relation, &layout)?),
        Command::Delete => Action::Delete,
        _ => merge_action(planner, query, relation, &layout, marker)?,
    };
    let found = Some((existing, family));
    finish_modify(planner, query, changed, Some(stage.node), layout, found, action)
}

/// MERGE's source and target as a join; the entry whose presence shows whether there is a source row.
fn merge_join(query: &mut Query, entry: usize) -> Result<Option<usize>> {
    let acts = |m: MergeMatch| query.merge_actions.iter().any(|a| a.matched == m);
    let (by_target, by_source) = (acts(MergeMatch::NotMatchedByTarget), acts(MergeMatch::NotMatchedBySource));
    let kind = match (by_target, by_source) {
        (true, true) => JoinKind::Full,
        (true, false) => JoinKind::Left,
        (false, true) => JoinKind::Right,
        (false, false) => JoinKind::Inner,
    };
    let [source] = &query.from[..] else { return Err(DbError::internal("MERGE has one source")) };
    let marker = match by_source {
        true => {
            let shows = always_present(source);
            let shows = shows.ok_or_else(|| DbError::unsupported("WHEN NOT MATCHED BY SOURCE over a FULL JOIN"))?;
            // Kept as it is, so that its whole row shows its presence.
            query.range_table[shows].lateral = true;
            Some(shows)
        }
        false => None,
    };
    // Rows of the right side without a partner come last: keys of deleted target rows are free by then.
    let (left, right) = match kind {
        JoinKind::Full => (FromItem::Range(entry), source.clone()),
        _ => (source.clone(), FromItem::Range(entry)),
    };
    let join = melba_tree::Join {
        kind,
        left,
        right,
        condition: query.merge_condition.clone(),
        using: vec![],
        natural: false,
        alias: None,
        entry: 0,
    };
    query.from = vec![FromItem::Join(Box::new(join))];
    Ok(marker)
}

/// An entry with a row of its own in every row of an item.
fn always_present(item: &FromItem) -> Option<usize> {
    match item {
        FromItem::Range(entry) => Some(*entry),
        FromItem::Join(join) => match join.kind {
            JoinKind::Inner | JoinKind::Left => always_present(&join.left),
            JoinKind::Right => always_present(&join.right),
            JoinKind::Full => None,
        },
    }
}

fn merge_action(
    planner: &mut Planner<'_>,
    query: &Query,
    relation: &Arc<Relation>,
    layout: &Layout,
    marker: Option<usize>,
) -> Result<Action> {
    let mut actions = Vec::with_capacity(query.merge_actions.len());
    for action in &query.merge_actions {
        let command = match action.command {
            MergeCommand::Insert => MergeActionNode::Insert(row_values(planner, &action.targets, relation, layout)?),
            MergeCommand::Update => MergeActionNode::Update(assignments(planner, &action.targets, relation, layout)?),
            MergeCommand::Delete => MergeActionNode::Delete,
            MergeCommand::DoNothing => MergeActionNode::Nothing,
        };
        let condition = action.condition.as_ref().map(|c| planner.compile(c, layout)).transpose()?;
        actions.push(MergeNode { matched: action.matched, condition, command });
    }
    let mut parts = Vec::new();
    if let Some(condition) = &query.merge_condition {
        conjuncts(condition.clone(), &mut parts);
    }
    let condition = recheck::compile_present(planner, parts, layout)?;
    let source_marker = marker.and_then(|m| layout.position(m, 0));
    Ok(Action::Merge { actions, condition, source_marker })
}

/// A new row's values by column.
fn row_values(
    planner: &mut Planner<'_>,
    targets: &[Target],
    relation: &Relation,
    layout: &Layout,
) -> Result<Vec<Option<Expression>>> {
    let mut values: Vec<Option<Expression>> = vec![None; relation.columns.len()];
    for target in targets.iter().filter(|t| t.column > 0) {
        values[target.column as usize - 1] = Some(planner.compile(&target.expr, layout)?);
    }
    Ok(values)
}

fn assignments(planner: &mut Planner<'_>, targets: &[Target], relation: &Relation, layout: &Layout) -> Result<Assignments> {
    let mut columns = Vec::with_capacity(targets.len());
    for target in targets.iter().filter(|t| t.column > 0) {
        columns.push((target.column as usize - 1, planner.compile(&target.expr, layout)?));
    }
    let mut names: Vec<&str> = relation.columns.iter().filter(|c| c.generated != 0).map(|c| &*c.name).collect();
    names.extend(columns.iter().map(|(at, _)| &*relation.columns[*at].name));
    let key = planner.catalog().descendants(relation.oid).iter().any(|member| is_key_assigned(planner, *member, &names));
    Ok(Assignments { columns, key })
}

/// Whether any of these columns is part of a key of a table that a foreign key may refer to, or says in which of its partitions a row is.
fn is_key_assigned(planner: &Planner<'_>, table: Oid, assigned: &[&str]) -> bool {
    let Some(table) = planner.catalog().relation(table) else { return false };
    // A partition key's expression may read any column.
    let is_assigned = |number: i16| {
        let column = usize::try_from(number - 1).ok().and_then(|at| table.columns.get(at));
        column.is_none_or(|column| assigned.contains(&&*column.name))
    };
    let mut indexes = table.indexes.iter().filter_map(|index| planner.catalog().relation(*index)?.index.as_ref());
    let is_key = |index: &IndexInfo| index.unique && index.predicate.is_none() && index.keys.iter().all(|key| key.column != 0);
    indexes.any(|index| is_key(index) && index.keys.iter().any(|key| is_assigned(key.column)))
        || table.partition_key.as_ref().is_some_and(|key| key.columns.iter().any(|part| is_assigned(part.column)))
}

fn finish_modify(
    planner: &mut Planner<'_>,
    query: &Query,
    changed: Changed<'_>,
    input: Option<PlanNode>,
    layout: Layout,
    found: Option<(Existing, Option<Family>)>,
    action: Action,
) -> Result<Stage> {
    let Changed { entry, relation, target, counts } = changed;
    let (existing, family) = found.map_or((None, None), |(existing, family)| (Some(existing), family));
    let command = match query.command {
        Command::Insert => PlanCommand::Insert,
        Command::Update => PlanCommand::Update,
        Command::Delete => PlanCommand::Delete,
        _ => PlanCommand::Merge,
    };
    // RETURNING follows the change.
    let routines = std::mem::take(&mut planner.routines);
    let row_checks = Arc::new(row_checks(planner, query, entry, relation)?);
    let (returning, returned) = match query.returning.is_empty() {
        true => (None, None),
        false => {
            let (returning, returned) = returning(planner, query, entry, relation, layout)?;
            (Some(returning), Some(returned))
        }
    };
    let kinds: Arc<[Kind]> =
        returning.as_ref().map(|r| r.expressions.iter().map(|e| e.kind).collect()).unwrap_or_else(|| Arc::from([]));
    let estimate = input.as_ref().map(|i| i.estimate).unwrap_or(Estimate { rows: 1.0, total: 0.01, ..Default::default() });
    let node = ModifyNode { command, target, counts, input, existing, family, action, returning, row_checks, routines };
    let layout = Layout::of(super::layout::TARGET, kinds.len());
    let mut node = planner.node(Op::Modify(Arc::new(node)), kinds, estimate);
    let alias = planner.level().entries[entry].name.clone();
    explain_output::scanned(planner, &mut node, Some(relation.namespace), Some(&relation.name), &alias);
    returned.iter().for_each(|returned| explain_output::outputs(planner, &mut node, returned));
    Ok(Stage { node, layout })
}

/// The checks over a row of the target, followed by the OID of the table that it is in.
fn row_checks(planner: &mut Planner<'_>, query: &Query, entry: usize, relation: &Relation) -> Result<RowChecks> {
    let mut checks = RowChecks::default();
    let mut layout = table_layout(entry, relation.columns.len());
    layout.0.push((entry, -6));
    for check in &query.row_checks {
        let mut condition = check.condition.clone();
        condition.visit_mut(0, &mut |e, level| spell_out(e, level, [entry, entry], relation));
        let condition = planner.compile(&condition, &layout)?;
        checks.add(check.kind, RowCheckTarget { condition, name: check.name.clone(), policy: check.policy.clone() });
    }
    Ok(checks)
}

fn returning(
    planner: &mut Planner<'_>,
    query: &Query,
    entry: usize,
    relation: &Arc<Relation>,
    mut layout: Layout,
) -> Result<(Returning, Vec<Expr>)> {
    // The target's columns in the input are those of before the change.
    for column in layout.0.iter_mut().filter(|c| c.0 == entry) {
        *column = (super::layout::GROUP, -1);
    }
    let columns = relation.columns.len();
    let default = match query.command {
        Command::Delete => OLD,
        Command::Merge => LATEST,
        _ => NEW,
    };
    let versions = if default == LATEST { &[OLD, NEW, LATEST][..] } else { &[OLD, NEW] };
    layout = versions.iter().fold(layout, |layout, version| layout.joined(&table_layout(*version, columns)));
    layout.0.extend(
        versions
            .iter()
            .flat_map(|version| RETURNED_SYSTEM_COLUMNS.iter().map(|column| (*version, *column)).chain([(*version, 0)])),
    );
    // A view's columns, where no plan of a source has replaced them.
    let entries = &planner.level_mut().entries;
    let (joined, names) = (joined_columns(entries), entry_names(entries));
    let (mut expressions, mut shown) = (Vec::with_capacity(query.returning.len()), Vec::new());
    for returned in query.returning.iter().filter(|t| !t.junk) {
        let mut expr = returned.expr.clone();
        expr.visit_mut(0, &mut |e, level| substitute(e, level, &joined, &names));
        shown.push(expr.clone());
        expr.visit_mut(0, &mut |e, level| {
            if let Expr::Var(v) = e
                && v.levels_up == level
                && v.entry == entry
            {
                v.entry = match v.version {
                    RowVersion::Old => OLD,
                    RowVersion::New => NEW,
                    RowVersion::Default => default,
                };
                v.version = RowVersion::Default;
            }
            true
        });
        expressions.push(planner.compile(&expr, &layout)?);
    }
    let live: Vec<usize> = (0..columns).filter(|&c| !relation.columns[c].dropped).collect();
    let mut xmins = versions.iter().filter_map(|version| layout.position(*version, -2));
    let reads_xmin = xmins.any(|place| expressions.iter().any(|e| e.reads(place)));
    let returning = Returning {
        expressions,
        latest: default == LATEST,
        reads_xmin,
        row_type: relation.row_type,
        field_types: live.iter().map(|&c| relation.columns[c].ty).collect(),
        field_names: live.iter().map(|&c| relation.columns[c].name.clone()).collect(),
        live,
    };
    Ok((returning, shown))
}

/// Whole rows of the table and of the proposed row become rows of their columns.
fn spell_out(e: &mut Expr, level: usize, entries: [usize; 2], relation: &Relation) -> bool {
    if let Expr::Var(v) = e
        && v.levels_up == level
        && v.column == 0
        && entries.contains(&v.entry)
    {
        let live = relation.columns.iter().zip(1..).filter(|(c, _)| !c.dropped);
        let fields = live.clone().map(|(c, number)| {
            Expr::Var(Var { column: number, ty: c.ty, typmod: c.typmod, collation: c.collation, ..v.clone() })
        });
        let names = live.clone().map(|(c, _)| c.name.clone()).collect();
        *e = Expr::Row(Box::new(RowExpr { fields: fields.collect(), names, ty: v.ty, explicit: false, location: -1 }));
    }
    true
}

/// All columns of a table, dropped ones too.
fn table_layout(entry: usize, columns: usize) -> Layout {
    Layout::of(entry, columns)
}
