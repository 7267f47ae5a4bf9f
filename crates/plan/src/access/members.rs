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

use super::bounds_order::bounds_order;
use super::{prune, source};
use crate::explain_output;
use crate::layout::Layout;
use crate::member::Member;
use crate::node::*;
use crate::path::{Access, FamilyPath, LeafPath, MemberPath};
use crate::path::{COMPARISON, Goal, OrderKey, Path, PathKind, sorting_cost};
use crate::planner::{Planner, Stage};
use crate::pruning::Pruner;
use crate::rels::{Rels, contains_sublink};
use crate::{explain, needed, plain_path, sort, volatility};
use melba_analyze::relation_columns;
use melba_expression::Expression;
use melba_expression::Node;
use melba_expression::key::KeyPart;
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
    let tables = relations.clone();
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
    // Rows are read ahead when they are merged, which shows where conditions are volatile.
    let keeps_order = !own.iter().any(|condition| volatility::has_volatile(planner, condition));
    let order: &[OrderKey] = if keeps_order { &goal.order } else { &[] };
    let mut choices: Vec<MemberPaths> = Vec::with_capacity(members.len());
    for member in &members {
        let below: Vec<Expr> = below.iter().map(|c| member.condition(entry, c)).collect();
        let moved: Vec<Rc<Expr>> = across.iter().map(|c| Rc::new(member.condition(entry, c))).collect();
        let order = order.iter().map(|key| OrderKey { expr: member.condition(entry, &key.expr), ..key.clone() }).collect();
        let goal = Goal { order, groups: goal.groups.clone(), wanted: goal.wanted };
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
    let ways = FamilyWays {
        entry,
        members: &members,
        tables: &tables,
        choices: &choices,
        across: &across,
        above: &above,
        params,
        pruner,
    };
    let mut out = Vec::new();
    for (wanted, used) in shapes(&choices) {
        out.extend(ways.appended(wanted, &used));
    }
    for (wanted, used) in shapes(&choices).into_iter().filter(|_| !order.is_empty()) {
        out.extend(ways.in_order(planner, order, goal, (wanted, &used))?);
    }
    if members.is_empty() {
        out.push(plain_path::simple_path(planner, entry, Access::Family(FamilyPath::default()), &above, params, 0.0));
    }
    Ok(out)
}

/// A member's paths, with the positions of the conditions from above that they satisfy.
type MemberPaths = Vec<(Rc<Path>, Vec<usize>)>;

/// A family whose members' paths are known.
struct FamilyWays<'a> {
    entry: usize,
    members: &'a [Arc<Member>],
    /// All tables that are read, partitioned ones among them, the root first.
    tables: &'a [Arc<Relation>],
    choices: &'a [MemberPaths],
    across: &'a [&'a Rc<Expr>],
    above: &'a [Expr],
    params: Rels,
    pruner: Option<Rc<Pruner>>,
}

impl FamilyWays<'_> {
    /// The members' rows one after the other.
    fn appended(&self, wanted: Rels, used: &[usize]) -> Option<Rc<Path>> {
        let paths = self.choices.iter().map(|c| cheapest(c, wanted, used, |path| path.total)).collect::<Option<Vec<_>>>()?;
        let sum = |f: fn(&Path) -> f64| paths.iter().map(|p| f(p)).sum::<f64>();
        let (rows, total) = (sum(|p| p.rows), sum(|p| p.total));
        let members = self.members.iter().zip(&paths).map(|(m, p)| MemberPath { member: m.clone(), path: p.clone() }).collect();
        let family = FamilyPath { members, pruner: self.pruner.clone(), ..FamilyPath::default() };
        Some(self.path(family, (wanted, used), rows, (0.0, total), 0))
    }

    /// The members' rows in the required order, if some member has it, or its first keys. The others are sorted.
    fn in_order(
        &self,
        planner: &Planner<'_>,
        order: &[OrderKey],
        goal: &Goal,
        (wanted, used): (Rels, &[usize]),
    ) -> Result<Option<Rc<Path>>> {
        let paths: Option<Vec<_>> =
            self.choices.iter().map(|c| cheapest(c, wanted, used, |path| path.sorted_cost(goal))).collect();
        let Some(mut paths) = paths else { return Ok(None) };
        // A sort above may bring rows with equal keys into the rest of the order.
        let keys = paths.iter().map(|path| path.ordered.min(order.len())).max().unwrap_or(0);
        if keys == 0 {
            return Ok(None);
        }
        let by_bounds = bounds_order(planner, self.entry, self.tables, &order[..keys])?;
        let mut members = self.members.to_vec();
        if by_bounds == Some(true) {
            paths.reverse();
            members.reverse();
        }
        let is_merged = by_bounds.is_none() && members.len() > 1;
        let rows = paths.iter().map(|p| p.rows).sum::<f64>();
        let startups = paths.iter().map(|p| if p.ordered >= keys { p.startup } else { p.total + sorting_cost(p.rows, 1.0) });
        let startup = if is_merged { startups.sum() } else { startups.take(1).sum() };
        let total: f64 = paths.iter().map(|p| p.total + if p.ordered >= keys { 0.0 } else { sorting_cost(p.rows, 1.0) }).sum();
        // A row is put into its place among the members' with two comparisons a step.
        let merging = if is_merged { rows * (members.len() as f64).log2() * 2.0 * COMPARISON } else { 0.0 };
        let members = members.into_iter().zip(paths).map(|(member, path)| MemberPath { member, path }).collect();
        let family = FamilyPath { members, order: order[..keys].to_vec(), is_merged, pruner: self.pruner.clone() };
        Ok(Some(self.path(family, (wanted, used), rows, (startup, total + merging), keys)))
    }

    fn path(
        &self,
        family: FamilyPath,
        (wanted, used): (Rels, &[usize]),
        rows: f64,
        (startup, total): (f64, f64),
        ordered: usize,
    ) -> Rc<Path> {
        Rc::new(Path {
            rels: 1 << self.entry,
            params: wanted | self.params,
            rows: rows.max(1.0),
            startup,
            total: total + 0.01,
            ordered,
            used: used.iter().map(|i| self.across[*i].clone()).collect(),
            kind: PathKind::Leaf(LeafPath { entry: self.entry, access: Access::Family(family), filter: self.above.to_vec() }),
        })
    }
}

pub fn create_family(planner: &mut Planner<'_>, entry: usize, family: &FamilyPath, estimate: Estimate) -> Result<Stage> {
    let parent = source::relation_of(planner, entry)?;
    let needed = needed::needed(planner, entry, &[]);
    let layout = Layout(needed.iter().map(|c| (entry, *c)).collect());
    let kinds: Arc<[Kind]> = needed.iter().map(|c| column_kind(&parent, *c)).collect();
    let mut inputs = Vec::with_capacity(family.members.len());
    for MemberPath { member, path } in &family.members {
        let stage = as_member(planner, entry, member, |p| p.create(path))?;
        let mut node = aligned(planner, stage, entry, member, &layout, &kinds)?;
        if path.ordered < family.order.len() {
            let keys = family_keys(planner, &family.order, &layout)?;
            let shown = explain::order_key(planner, &family.order);
            node = sort::sorted(planner, Stage { node, layout: layout.clone() }, keys, None, shown).node;
        }
        inputs.push(node);
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
    let merge = if family.is_merged { family_keys(planner, &family.order, &layout)? } else { vec![] };
    let mut node = planner.node(Op::Append(Arc::new(AppendNode { inputs, merge, pruning })), kinds, estimate);
    if family.is_merged {
        planner.detail(&mut node, "Sort Key", || explain::order_key(planner, &family.order));
    }
    Ok(explain_output::scan_stage(planner, node, layout))
}

/// The required order over the columns of a family.
fn family_keys(planner: &mut Planner<'_>, order: &[OrderKey], layout: &Layout) -> Result<Vec<SortKey>> {
    let mut keys = Vec::with_capacity(order.len());
    for OrderKey { expr, descending, nulls_first } in order {
        let part = KeyPart::new(planner.catalog(), (expr.ty(), expr.collation()), *descending, *nulls_first);
        keys.push((planner.compile(expr, layout)?, part));
    }
    Ok(keys)
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

/// The cheapest way to a member's rows by some measure.
fn cheapest(choices: &[(Rc<Path>, Vec<usize>)], params: u128, used: &[usize], cost: impl Fn(&Path) -> f64) -> Option<Rc<Path>> {
    let fits = choices.iter().filter(|(path, u)| path.params == params && *u == used);
    fits.min_by(|a, b| cost(&a.0).total_cmp(&cost(&b.0))).map(|(path, _)| path.clone())
}
