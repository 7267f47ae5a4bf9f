//! ANALYZE of statistics objects: reads a sample of the table's rows and keeps what it says in the catalog.

use std::collections::HashMap;
use std::sync::Arc;

use melba_analyze::analyze_stored_expression;
use melba_catalog::extended_statistics::{statistics_kinds as kinds, statistics_of};
use melba_catalog::{ExtendedStatistics, McvItem, Relation, StatisticsData, Storage, classes};
use melba_definition::context::Ddl;
use melba_definition::progress::{LongCommand, analyze as figures};
use melba_engine::RelationLockMode;
use melba_expression::key::KeyPart;
use melba_expression::{Evaluation, Expression, NoSubPlans, compile_for_table};
use melba_fmgr::io::text_of;
use melba_tree::Expr;
use melba_types::{Datum, Oid, Result, SqlState};

use crate::statistics::create::put_statistics;
use crate::statistics::degrees::Sample;
use crate::table::rows::scan_rows;

/// Rows of a sample, by unit of the statistics target (PostgreSQL's).
const ROWS_PER_TARGET: usize = 300;

/// Collects the data of a table's statistics objects. `columns`: those that ANALYZE names; none: all.
pub fn analyze_statistics(ddl: &Ddl<'_>, relation: &Relation, columns: &[&str]) -> Result<()> {
    let catalog = ddl.catalog();
    let objects: Vec<Arc<ExtendedStatistics>> = statistics_of(&catalog, relation.oid).into_iter().cloned().collect();
    if objects.is_empty() {
        return Ok(());
    }
    ddl.lock_relation(relation.oid, RelationLockMode::ShareUpdateExclusive)?;
    let progress = ddl.begin_progress(LongCommand::Analyze, relation.oid);
    progress.set(figures::PHASE, figures::COMPUTING_EXTENDED);
    progress.set(figures::EXTENDED_TOTAL, objects.len() as i64);
    for (done, statistics) in objects.into_iter().enumerate() {
        progress.set(figures::EXTENDED_DONE, done as i64);
        let target = statistics.target.map_or_else(|| default_target(ddl), |target| target as usize);
        if target == 0 {
            continue;
        }
        if !are_analyzed(&statistics, relation, columns) {
            let schema = catalog.namespace(statistics.namespace).map_or("?", |n| &n.name);
            let of = catalog.namespace(relation.namespace).map_or("?", |n| &n.name);
            let message = format!(
                "statistics object \"{schema}.{}\" could not be computed for relation \"{of}.{}\"",
                statistics.name, relation.name
            );
            ddl.warning(SqlState::INVALID_OBJECT_DEFINITION, message);
            continue;
        }
        let mut data = statistics.data.clone();
        let below = catalog.descendants(relation.oid);
        let alone = (!relation.is_partitioned()).then(|| (false, vec![relation.oid]));
        let together = (below.len() > 1 || relation.is_partitioned()).then_some((true, below));
        for (inherited, members) in alone.into_iter().chain(together) {
            let Some(found) = collect(ddl, &statistics, relation, &members, target)? else { continue };
            data.retain(|d| d.inherited != inherited);
            data.push(StatisticsData { inherited, ..found });
        }
        data.sort_by_key(|d| d.inherited);
        if data != statistics.data {
            put_statistics(ddl, ExtendedStatistics { data, ..(*statistics).clone() });
        }
    }
    Ok(())
}

fn default_target(ddl: &Ddl<'_>) -> usize {
    ddl.session().setting("default_statistics_target").and_then(|s| s.parse().ok()).unwrap_or(100)
}

fn are_analyzed(statistics: &ExtendedStatistics, relation: &Relation, columns: &[&str]) -> bool {
    let is_analyzed = |number: &i16| {
        let column = &relation.columns[*number as usize - 1];
        column.statistics_target != Some(0) && (columns.is_empty() || columns.contains(&&*column.name))
    };
    statistics.columns.iter().all(is_analyzed)
}

/// The values of one dimension: every distinct one has a number, in the order in which they were met.
struct Dimension {
    ty: Oid,
    key: KeyPart,
    numbers: HashMap<Vec<u8>, u32>,
    /// By number.
    texts: Vec<Option<Arc<str>>>,
    /// By row of the sample.
    rows: Vec<u32>,
}

impl Dimension {
    fn number(&mut self, ctx: &Evaluation<NoSubPlans>, value: &Datum, with_text: bool) -> Result<u32> {
        let mut key = Vec::new();
        self.key.encode(value, &mut key);
        if let Some(number) = self.numbers.get(&key) {
            return Ok(*number);
        }
        let number = self.texts.len() as u32;
        self.numbers.insert(key, number);
        let text = if with_text && !value.is_null() { Some(text_of(&*ctx.session, self.ty, value)?.into()) } else { None };
        self.texts.push(text);
        Ok(number)
    }

    /// Numbers become ranks in the order of the keys.
    fn rank(&mut self) {
        let mut keys: Vec<(Vec<u8>, u32)> = self.numbers.drain().collect();
        keys.sort_unstable();
        let mut ranks = vec![0; keys.len()];
        let mut texts = Vec::with_capacity(keys.len());
        for (rank, (_, number)) in keys.into_iter().enumerate() {
            ranks[number as usize] = rank as u32;
            texts.push(self.texts[number as usize].take());
        }
        self.texts = texts;
        self.rows.iter_mut().for_each(|number| *number = ranks[*number as usize]);
    }
}

/// Where a dimension's values are in the rows of one table.
enum DimensionSource {
    Column(usize),
    Expression(Expression),
}

/// Data of the rows of `members`; `None`: they have no rows.
fn collect(
    ddl: &Ddl<'_>,
    statistics: &ExtendedStatistics,
    relation: &Relation,
    members: &[Oid],
    target: usize,
) -> Result<Option<StatisticsData>> {
    let catalog = ddl.catalog();
    let mut dimensions: Vec<Dimension> = Vec::new();
    let types = dimension_types(ddl, statistics, relation)?;
    for ty in types {
        let key = KeyPart::equality(&catalog, (ty, Oid::INVALID));
        dimensions.push(Dimension { ty, key, numbers: HashMap::new(), texts: Vec::new(), rows: Vec::new() });
    }
    // A single expression may be of a type without an order; nothing is counted for it.
    let has_order = |d: &Dimension| catalog.default_operator_class(classes::BTREE, d.ty).is_some();
    if dimensions.len() < 2 || !dimensions.iter().all(has_order) {
        return Ok(Some(StatisticsData::default()));
    }
    let with_texts = statistics.kinds.contains(&kinds::MCV);
    let mut reservoir = Reservoir { size: ROWS_PER_TARGET * target, seen: 0 };
    for member in members {
        read_member(ddl, statistics, relation, *member, (&mut dimensions[..], with_texts), &mut reservoir)?;
    }
    if reservoir.seen == 0 {
        return Ok(None);
    }
    dimensions.iter_mut().for_each(Dimension::rank);
    Ok(Some(describe_sample(statistics, dimensions, reservoir.seen, target)))
}

fn dimension_types(ddl: &Ddl<'_>, statistics: &ExtendedStatistics, relation: &Relation) -> Result<Vec<Oid>> {
    let mut types: Vec<Oid> = statistics.columns.iter().map(|c| relation.columns[*c as usize - 1].ty).collect();
    for expression in expressions_over(ddl, statistics, relation.oid)? {
        types.push(expression.ty());
    }
    Ok(types)
}

/// The expressions, over a table that has columns of their names.
fn expressions_over(ddl: &Ddl<'_>, statistics: &ExtendedStatistics, table: Oid) -> Result<Vec<Expr>> {
    let table = ddl.relation(table)?;
    let analyze = |text: &Arc<str>| ddl.with_context(|c| analyze_stored_expression(c, text, Some(&table), None));
    statistics.expressions.iter().map(analyze).collect()
}

/// A sample of rows of which only the count is known at the end (Vitter's algorithm R, with a fixed sequence of numbers, so that
/// the same rows give the same data).
struct Reservoir {
    size: usize,
    seen: u64,
}

impl Reservoir {
    /// The next row's place in the sample; `None`: it is not in it.
    fn place(&mut self) -> Option<usize> {
        self.seen += 1;
        if self.seen <= self.size as u64 {
            return Some(self.seen as usize - 1);
        }
        let place = mixed(self.seen) % self.seen;
        usize::try_from(place).ok().filter(|place| *place < self.size)
    }
}

/// Steele, Lea and Flood's SplitMix64.
fn mixed(n: u64) -> u64 {
    let z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

fn read_member(
    ddl: &Ddl<'_>,
    statistics: &ExtendedStatistics,
    relation: &Relation,
    member: Oid,
    (dimensions, with_texts): (&mut [Dimension], bool),
    reservoir: &mut Reservoir,
) -> Result<()> {
    let (table, catalog) = (ddl.relation(member)?, ddl.catalog());
    let Storage::Tree(tree) = table.storage else { return Ok(()) };
    // Functions in the expressions run as the table's owner, not as the role that runs ANALYZE.
    let ctx = Evaluation::plain(ddl.session_of_owner(relation.owner), &ddl.tx().engine);
    let column = |number: &i16| {
        let name = &relation.columns[*number as usize - 1].name;
        table.columns.iter().position(|c| !c.dropped && c.name == *name).map(DimensionSource::Column)
    };
    let mut sources: Vec<DimensionSource> = statistics.columns.iter().filter_map(column).collect();
    for expression in expressions_over(ddl, statistics, member)? {
        sources.push(DimensionSource::Expression(compile_for_table(&catalog, Some(&*ctx.session), &expression)?));
    }
    let missing: Vec<Datum> = table.columns.iter().map(|c| c.missing.clone()).collect();
    let (view, _pin) = ddl.tx().engine.latest_view();
    let mut rows = scan_rows(ddl, tree, table.columns.len(), &missing, view)?;
    while let Some(batch) = rows.next_batch()? {
        ctx.check_interrupt()?;
        for (_, row) in batch {
            let Some(place) = reservoir.place() else { continue };
            let row = ctx.expand_row(&row, table.columns.iter().map(|c| c.kind))?;
            for (source, dimension) in sources.iter().zip(dimensions.iter_mut()) {
                let value = match source {
                    DimensionSource::Column(at) => row[*at].clone(),
                    DimensionSource::Expression(expression) => expression.eval_row(&ctx, &row)?,
                };
                let number = dimension.number(&ctx, &value, with_texts)?;
                match dimension.rows.get_mut(place) {
                    Some(old) => *old = number,
                    None => dimension.rows.push(number),
                }
            }
        }
    }
    Ok(())
}

fn describe_sample(
    statistics: &ExtendedStatistics,
    mut dimensions: Vec<Dimension>,
    rows_total: u64,
    target: usize,
) -> StatisticsData {
    let ranks = dimensions.iter_mut().map(|d| std::mem::take(&mut d.rows)).collect::<Vec<_>>();
    let sample = Sample { rows: ranks.first().map_or(0, Vec::len), dimensions: ranks, rows_total };
    // PostgreSQL numbers expressions from -1 downwards.
    let number = |d: &usize| match statistics.columns.get(*d) {
        Some(column) => *column,
        None => -((*d - statistics.columns.len()) as i16 + 1),
    };
    let numbers = |set: Vec<usize>| set.iter().map(number).collect::<Vec<i16>>();
    let mut data = StatisticsData::default();
    if statistics.kinds.contains(&kinds::NDISTINCT) {
        data.ndistinct = sample.ndistinct().into_iter().map(|(set, count)| (numbers(set), count)).collect();
    }
    if statistics.kinds.contains(&kinds::DEPENDENCIES) {
        data.dependencies = sample.dependencies().into_iter().map(|(set, degree)| (numbers(set), degree)).collect();
    }
    if statistics.kinds.contains(&kinds::MCV) {
        let item = |common: crate::statistics::degrees::Common| McvItem {
            values: common.ranks.iter().zip(&dimensions).map(|(rank, d)| d.texts[*rank as usize].clone()).collect(),
            frequency: common.frequency,
            base_frequency: common.base_frequency,
        };
        data.mcv = sample.most_common(target).into_iter().map(item).collect();
    }
    data
}
