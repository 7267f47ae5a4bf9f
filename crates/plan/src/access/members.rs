//! Tables with children: each member of the family is planned in its parent's place, and the members' rows are appended.
//!
//! While a member is planned, the range table entry is the member's, and so are the column numbers of the conditions. The result
//! is mapped back to the parent's columns, which have the same names.

use std::rc::Rc;
use std::sync::Arc;

use hashbrown::HashSet;
use melba_catalog::{Relation, Storage};
use melba_engine::RelationLockMode;
use melba_types::{Datum, DbError, Kind, Oid, Result};

use super::{prune, source};
use crate::explain_output;
use crate::layout::Layout;
use crate::member::Member;
use crate::node::*;
use crate::path::{Access, FamilyPath, LeafPath, MemberPath};
use crate::path::{Goal, Path, PathKind};
use crate::planner::{Planner, Stage};
use crate::rels::contains_sublink;
use crate::{needed, plain_path};
use melba_analyze::relation_columns;
use melba_expression::Expression;
use melba_expression::Node;
use melba_table::PartitionMap;
use melba_tree::{Expr, RangeEntry, RangeKind};

impl Member {
    fn new(parent: &Arc<Relation>, relation: &Arc<Relation>, alias: Option<Arc<str>>) -> Member {
        let same = |(at, c): (usize, &melba_catalog::Column)| {
            let number = match relation.columns.get(at) {
                Some(own) if !own.dropped && own.name == c.name => at + 1,
                _ => relation.columns.iter().position(|own| !own.dropped && own.name == c.name).map_or(0, |at| at + 1),
            };
            if c.dropped { 0 } else { number as i16 }
        };
        let numbers = parent.columns.iter().enumerate().map(same).collect();
        Member { parent: parent.clone(), relation: relation.clone(), numbers, alias }
    }

    /// The member's number of a column of the parent; system columns and the whole row have the same.
    pub fn number(&self, column: i16) -> i16 {
        match usize::try_from(column - 1) {
            Ok(at) => self.numbers.get(at).copied().unwrap_or(0),
            Err(_) => column,
        }
    }

    /// The position of the parent's virtual column that a column of a member is, by its position.
    pub fn virtual_parent(&self, relation: &Relation, column: usize) -> Option<usize> {
        let at = self.numbers.iter().position(|number| usize::try_from(*number - 1) == Ok(column))?;
        (self.relation.oid == relation.oid && self.parent.columns[at].generated == b'v').then_some(at)
    }

    /// For the parent's columns that are not dropped, the positions of the member's.
    pub fn live(&self) -> impl Iterator<Item = usize> {
        let live = self.numbers.iter().zip(self.parent.columns.iter()).filter(|(_, c)| !c.dropped);
        live.map(|(number, _)| (*number as usize).wrapping_sub(1))
    }

    fn condition(&self, entry: usize, condition: &Expr) -> Expr {
        let mut moved = condition.clone();
        moved.visit_mut(0, &mut |e, level| {
            if let Expr::Var(v) = e
                && v.levels_up == level
                && v.entry == entry
            {
                v.column = self.number(v.column);
            }
            true
        });
        moved
    }
}

/// The tables of a family: the parent itself and all below it. Of partitions, those that `kept` names, if it is given.
fn family_of(planner: &Planner<'_>, parent: &Arc<Relation>, kept: Option<&HashSet<Oid>>) -> Result<Vec<Arc<Relation>>> {
    let mut all: Vec<Arc<Relation>> = Vec::new();
    match parent.is_partitioned() {
        true => add_partitions(planner, parent, kept, &mut all)?,
        false => {
            let catalog = planner.catalog();
            all.extend(catalog.descendants(parent.oid).into_iter().filter_map(|oid| catalog.relation(oid).cloned()));
        }
    }
    let own = planner.inputs.session.temporary_namespace();
    all.retain(|member| !member.is_temporary_elsewhere(own));
    Ok(all)
}

/// A partitioned table and its descendants, in the order of bounds.
fn add_partitions(
    planner: &Planner<'_>,
    table: &Arc<Relation>,
    kept: Option<&HashSet<Oid>>,
    out: &mut Vec<Arc<Relation>>,
) -> Result<()> {
    out.push(table.clone());
    if table.is_partitioned() {
        let partitions = PartitionMap::new(planner.catalog(), table)?.in_order();
        for partition in partitions.into_iter().filter(|p| kept.is_none_or(|kept| kept.contains(p))) {
            if let Some(partition) = planner.catalog().relation(partition) {
                add_partitions(planner, partition, kept, out)?;
            }
        }
    }
    Ok(())
}

/// Plans with a member in its parent's place.
fn as_member<T>(
    planner: &mut Planner<'_>,
    entry: usize,
    member: &Arc<Member>,
    f: impl FnOnce(&mut Planner<'_>) -> Result<T>,
) -> Result<T> {
    let level = planner.level_mut();
    let old = &level.entries[entry];
    let own = RangeEntry {
        kind: RangeKind::Relation { oid: member.relation.oid, inherit: false, sample: None },
        name: member.alias.clone().unwrap_or_else(|| old.name.clone()),
        // Expressions are shown with that name.
        alias: member.alias.clone().or_else(|| old.alias.clone()),
        columns: relation_columns(&member.relation),
        security: Vec::new(),
        ..old.clone()
    };
    let needed = level.needed[entry].iter().map(|(c, places)| (member.number(*c), *places)).collect();
    let old = std::mem::replace(&mut level.entries[entry], own);
    let old_needed = std::mem::replace(&mut level.needed[entry], needed);
    let outer = level.member.replace(member.clone());
    // Those of the entry are of another table.
    let estimates = std::mem::take(&mut level.estimates);
    let result = f(planner);
    let level = planner.level_mut();
    level.estimates = estimates;
    level.entries[entry] = old;
    level.needed[entry] = old_needed;
    level.member = outer;
    result
}

pub fn family_paths(
    planner: &mut Planner<'_>,
    entry: usize,
    parent: &Arc<Relation>,
    own: &[Expr],
    across: &[Rc<Expr>],
    goal: &Goal,
) -> Result<Vec<Rc<Path>>> {
    let pruner = prune::pruner(planner, entry, parent, own)?;
    let kept = pruner.as_ref().map(|pruner| pruner.constant(planner.inputs.session)).transpose()?;
    let mut relations = family_of(planner, parent, kept.as_ref())?;
    relations.iter().for_each(|r| planner.relations.add(r.oid, RelationLockMode::AccessShare));
    let scanned = planner.level_mut().scanned.entry(entry).or_default();
    scanned.extend(relations.iter().map(|r| r.oid));
    relations.retain(has_rows);
    let own_alias = relations.len() > 1;
    let name = planner.level().entries[entry].name.clone();
    let members: Vec<Arc<Member>> = relations
        .iter()
        .enumerate()
        .map(|(i, r)| Arc::new(Member::new(parent, r, own_alias.then(|| format!("{name}_{}", i + 1).into()))))
        .collect();
    // Conditions with subqueries are checked above: their parameters are the parent's columns.
    let (above, below): (Vec<Expr>, Vec<Expr>) = own.iter().cloned().partition(contains_sublink);
    let across: Vec<&Rc<Expr>> = across.iter().filter(|c| !contains_sublink(c)).collect();
    let mut choices: Vec<Vec<(Rc<Path>, Vec<usize>)>> = Vec::with_capacity(members.len());
    for member in &members {
        let below: Vec<Expr> = below.iter().map(|c| member.condition(entry, c)).collect();
        let moved: Vec<Rc<Expr>> = across.iter().map(|c| Rc::new(member.condition(entry, c))).collect();
        let goal = Goal { wanted: goal.wanted, ..Goal::default() };
        let oid = member.relation.oid;
        let paths = as_member(planner, entry, member, |p| p.relation_paths(entry, oid, false, &below, &moved, &goal))?;
        let with_used = |path: Rc<Path>| {
            let used = path.used.iter().filter_map(|u| moved.iter().position(|c| Rc::ptr_eq(c, u))).collect();
            (path, used)
        };
        choices.push(paths.into_iter().map(with_used).collect());
    }
    let params = plain_path::parameters_of(own, entry);
    let pruner = pruner.filter(|p| p.is_variable() && members.len() > 1);
    planner.prunes_by_parameters |= pruner.is_some();
    let mut out = Vec::new();
    for (wanted, used) in shapes(&choices) {
        let Some(paths) = choices.iter().map(|c| cheapest(c, wanted, &used)).collect::<Option<Vec<_>>>() else { continue };
        let sum = |f: fn(&Path) -> f64| paths.iter().map(|p| f(p)).sum::<f64>();
        let members = members.iter().zip(&paths).map(|(m, p)| MemberPath { member: m.clone(), path: p.clone() }).collect();
        let family = FamilyPath { members, pruner: pruner.clone() };
        out.push(Rc::new(Path {
            rels: 1 << entry,
            params: wanted | params,
            rows: sum(|p| p.rows).max(1.0),
            startup: 0.0,
            total: sum(|p| p.total) + 0.01,
            ordered: 0,
            used: used.iter().map(|i| across[*i].clone()).collect(),
            kind: PathKind::Leaf(LeafPath { entry, access: Access::Family(family), filter: above.clone() }),
        }));
    }
    if members.is_empty() {
        let family = FamilyPath { members: vec![], pruner: None };
        out.push(plain_path::simple_path(planner, entry, Access::Family(family), &above, params, 0.0));
    }
    Ok(out)
}

pub fn create_family(planner: &mut Planner<'_>, entry: usize, family: &FamilyPath, estimate: Estimate) -> Result<Stage> {
    let parent = source::relation_of(planner, entry)?;
    let needed = needed::needed(planner, entry, &[]);
    let layout = Layout(needed.iter().map(|c| (entry, *c)).collect());
    let kinds: Arc<[Kind]> = needed.iter().map(|c| column_kind(&parent, *c)).collect();
    let mut inputs = Vec::with_capacity(family.members.len());
    for MemberPath { member, path } in &family.members {
        let stage = as_member(planner, entry, member, |p| p.create(path))?;
        inputs.push(aligned(planner, stage, entry, member, &layout, &kinds)?);
    }
    if inputs.len() == 1
        && let Some(node) = inputs.pop()
    {
        return Ok(Stage { node, layout });
    }
    let pruning = match &family.pruner {
        Some(pruner) => {
            let members: Vec<Oid> = family.members.iter().map(|m| m.member.relation.oid).collect();
            Some(prune::compile_pruning(planner, pruner, &members)?)
        }
        None => None,
    };
    if inputs.is_empty() {
        let never = Expression::new(Node::Const(Datum::Bool(false)), melba_types::oids::BOOL, Kind::Bool);
        let nulls = kinds.iter().map(|k| Expression::new(Node::Const(Datum::Null), Oid::INVALID, *k)).collect();
        let op = Op::Result(Arc::new(ResultNode { input: None, conditions: vec![never] }));
        let mut node = planner.node(op, Arc::from([]), estimate);
        planner.detail(&mut node, "One-Time Filter", || "false".into());
        let op = Op::Project(Arc::new(ProjectNode { input: node, expressions: nulls }));
        return Ok(Stage { node: planner.node(op, kinds, estimate), layout });
    }
    let node = planner.node(Op::Append(Arc::new(AppendNode { inputs, pruning })), kinds, estimate);
    Ok(explain_output::scan_stage(planner, node, layout))
}

/// A member's rows with the parent's columns in the parent's order.
fn aligned(
    planner: &mut Planner<'_>,
    stage: Stage,
    entry: usize,
    member: &Member,
    layout: &Layout,
    kinds: &Arc<[Kind]>,
) -> Result<PlanNode> {
    let places = member_places(&stage.layout, entry, member, layout)?;
    if places.len() == stage.layout.0.len() && places.iter().enumerate().all(|(at, place)| at == *place) {
        return Ok(stage.node);
    }
    let column = |(at, kind): (&usize, &Kind)| Expression::new(Node::Column(*at), Oid::INVALID, *kind);
    let expressions = places.iter().zip(kinds.iter()).map(column).collect();
    let estimate = stage.node.estimate;
    Ok(planner.node(Op::Project(Arc::new(ProjectNode { input: stage.node, expressions })), kinds.clone(), estimate))
}

/// How rows of a family's members are found again by their ids: sources whose outputs are the parent's columns.
pub fn member_sources(
    planner: &mut Planner<'_>,
    entry: usize,
    parent: &Arc<Relation>,
) -> Result<Vec<(Arc<Relation>, TableSource)>> {
    let layout = Layout(needed::needed(planner, entry, &[]).iter().map(|c| (entry, *c)).collect());
    let mut out = Vec::new();
    let scanned = planner.level().scanned.get(&entry).cloned();
    for relation in family_of(planner, parent, scanned.as_ref())?.into_iter().filter(has_rows) {
        let member = Arc::new(Member::new(parent, &relation, None));
        let (mut source, own) = as_member(planner, entry, &member, |p| source::table_source(p, entry, &relation, &[]))?;
        let places = member_places(&own, entry, &member, &layout)?;
        source.outputs = places.iter().map(|at| source.outputs[*at].clone()).collect();
        source.kinds = places.iter().map(|at| source.kinds[*at]).collect();
        let in_order = source.outputs.iter().enumerate().all(|(i, o)| matches!(o, ScanOutput::Column(c) if *c == i));
        source.plain = in_order && source.outputs.len() == source.projection.len() && source.virtuals.is_empty();
        out.push((relation, source));
    }
    Ok(out)
}

/// Whether rows are stored in a member itself.
fn has_rows(member: &Arc<Relation>) -> bool {
    matches!(member.storage, Storage::Tree(_))
}

/// For each of the parent's columns, its place among the member's.
fn member_places(own: &Layout, entry: usize, member: &Member, layout: &Layout) -> Result<Vec<usize>> {
    let place = |(_, column): &(usize, i16)| {
        let number = member.number(*column);
        own.position(entry, number).ok_or_else(|| DbError::internal("a child lacks a column of its parent"))
    };
    layout.0.iter().map(place).collect()
}

/// How a column of a scan is held.
fn column_kind(relation: &Relation, column: i16) -> Kind {
    match column {
        -1 => Kind::Int8,
        0 => Kind::Record,
        c if c < 0 => Kind::Oid,
        c => relation.columns.get(c as usize - 1).map_or(Kind::Text, |c| c.kind),
    }
}

/// The parameters that the first member's paths take, and the conditions that they decide by them.
fn shapes(choices: &[Vec<(Rc<Path>, Vec<usize>)>]) -> Vec<(u128, Vec<usize>)> {
    let mut out: Vec<(u128, Vec<usize>)> = Vec::new();
    for (path, used) in choices.first().into_iter().flatten() {
        if !out.iter().any(|(params, u)| *params == path.params && u == used) {
            out.push((path.params, used.clone()));
        }
    }
    out
}

fn cheapest(choices: &[(Rc<Path>, Vec<usize>)], params: u128, used: &[usize]) -> Option<Rc<Path>> {
    let fits = choices.iter().filter(|(path, u)| path.params == params && *u == used);
    fits.min_by(|a, b| a.0.total.total_cmp(&b.0.total)).map(|(path, _)| path.clone())
}
