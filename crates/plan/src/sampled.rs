//! Evaluates the conditions on a table for rows drawn from it, so that any condition has an estimate, and columns that depend on each
//! other are seen together.

use std::rc::Rc;
use std::sync::Arc;

use hashbrown::HashMap;
use melba_catalog::classes::FIRST_USER_OID;
use melba_engine::SampledColumn;
use melba_expression::key::KeyPart;
use melba_expression::{Compiler, Expression, Node, Resolved, Scope, filter};
use melba_tree::{Expr, RangeKind, Var, equal};
use melba_types::{Batch, Column, DbError, Result};

use super::planner::{Nothing, Planner};
use super::rels::rels_of;

/// Fewer clusters of rows with hits than this say only in which order of magnitude the share is.
const CLUSTERS_MIN: usize = 5;
/// By the clusters with hits: between which factors of the hits their expected number lies, with some 95 % probability (of a Poisson
/// distribution). Without a hit it is below the last number, with 63 %: rules that say more are mostly guesses.
const BOUNDS: [(f64, f64); CLUSTERS_MIN] = [(0.0, 1.0), (0.1, 4.7), (0.2, 3.1), (0.3, 2.6), (0.35, 2.3)];
/// Functions of a higher cost (pg_proc.procost) are not called.
const COST_MAX: f32 = 10.0;
/// A value that this number of a sample's rows have is frequent.
const FREQUENT_MIN: u32 = CLUSTERS_MIN as u32;

/// The rows of a sample that pass a condition.
pub(super) struct Passing {
    rows: Vec<u32>,
    of: usize,
    cluster_rows: usize,
    is_complete: bool,
}

/// The conditions of a query level that were evaluated, by entry; `None`: they cannot be.
pub(super) type Evaluated = Vec<(usize, Expr, Option<Rc<Passing>>)>;

/// A column's frequent values.
pub(super) struct Frequent {
    /// By the key of the value: the share of the table's rows that have it.
    pub shares: HashMap<Vec<u8>, f64>,
    pub nulls: f64,
}

impl Passing {
    /// The rows that pass this condition and another.
    pub fn and(&self, other: &Passing) -> Passing {
        let rows = self.rows.iter().copied().filter(|row| other.rows.binary_search(row).is_ok()).collect();
        Passing { rows, ..*self }
    }

    /// The share of the table's rows. `expected`: what is assumed without a sample, which decides as far as the sample says little.
    pub fn share(&self, expected: f64) -> f64 {
        let (of, hits) = (self.of as f64, self.rows.len() as f64);
        if self.is_complete {
            return hits.max(0.5) / of;
        }
        match BOUNDS.get(self.clusters()) {
            None => hits / of,
            Some((low, high)) => expected.clamp(low * hits / of, high * hits.max(1.0) / of),
        }
    }

    /// Whether the share is known from the sample alone.
    pub fn is_sure(&self) -> bool {
        self.is_complete || self.clusters() >= CLUSTERS_MIN
    }

    /// How many clusters of the sample have rows that pass.
    fn clusters(&self) -> usize {
        self.rows.chunk_by(|a, b| *a as usize / self.cluster_rows == *b as usize / self.cluster_rows).count()
    }
}

/// The sampled rows of `entry` that pass a condition; `None` where that cannot be known now: it has parameters without a value, reads
/// other relations or columns that are not sampled, calls functions of users or volatile ones, or raises an error.
pub(super) fn passing(planner: &Planner<'_>, entry: usize, condition: &Expr) -> Option<Rc<Passing>> {
    let known = |e: &&(usize, Expr, _)| e.0 == entry && equal(&e.1, condition);
    if let Some((_, _, found)) = planner.level().estimates.evaluated.borrow().iter().find(known) {
        return found.clone();
    }
    let found = evaluate(planner, entry, condition).map(Rc::new);
    planner.level().estimates.evaluated.borrow_mut().push((entry, condition.clone(), found.clone()));
    found
}

fn evaluate(planner: &Planner<'_>, entry: usize, condition: &Expr) -> Option<Passing> {
    if entry >= 127 || rels_of(condition) != 1 << entry || condition.any(&mut |e| is_dear(planner, e)) {
        return None;
    }
    let (tree, _) = sampled_table(planner, entry)?;
    let mut scope = Columns { entry, columns: Vec::new() };
    let (catalog, session) = (planner.inputs.catalog, planner.inputs.session);
    let condition = Compiler::new(catalog, Some(session), &mut scope).compile(condition).ok()?;
    if condition.any(&mut |e| !is_evaluable(e)) {
        return None;
    }
    let sample = planner.inputs.statistics.sample(tree, &scope.columns)?;
    let columns = sample.columns.iter().map(|c| c.as_ref().map(|c| c.values.clone())).collect::<Option<Vec<Column>>>()?;
    let evaluation = planner.inputs.statistics.evaluation()?;
    let batch = Batch { columns, rows: sample.rows };
    let rows = filter(&[condition], &evaluation, &batch).ok()?;
    let rows = rows.unwrap_or_else(|| (0..sample.rows as u32).collect());
    Some(Passing { rows, of: sample.rows, cluster_rows: sample.cluster_rows, is_complete: sample.is_complete })
}

/// The values of expressions in sampled rows, as numbers: equal values of one expression have the same.
pub(super) struct Numbered {
    /// By expression and row.
    pub numbers: Vec<Vec<u32>>,
    pub rows: usize,
    pub is_complete: bool,
}

impl Numbered {
    /// One of the expressions.
    pub fn only(&self, at: usize) -> Numbered {
        Numbered { numbers: vec![self.numbers[at].clone()], ..*self }
    }

    /// How many combinations of values there are, and how many of them only once. `shift`: each expression takes its values from so many
    /// rows further on.
    pub fn distinct(&self, shift: impl Fn(usize) -> usize) -> (usize, usize) {
        let mut counts: HashMap<Vec<u32>, u32> = HashMap::with_capacity(self.rows);
        for row in 0..self.rows {
            let of = |(at, numbers): (usize, &Vec<u32>)| numbers[(row + shift(at)) % self.rows];
            *counts.entry(self.numbers.iter().enumerate().map(of).collect()).or_default() += 1;
        }
        (counts.len(), counts.values().filter(|count| **count == 1).count())
    }
}

/// The values of expressions over `entry` in sampled rows; `None` where they cannot be known now, as with `passing`.
pub(super) fn numbered(planner: &Planner<'_>, entry: usize, exprs: &[&Expr]) -> Option<Numbered> {
    if entry >= 127 || exprs.iter().any(|expr| expr.any(&mut |e| is_dear(planner, e))) {
        return None;
    }
    let (tree, _) = sampled_table(planner, entry)?;
    let mut scope = Columns { entry, columns: Vec::new() };
    let (catalog, session) = (planner.inputs.catalog, planner.inputs.session);
    let mut compiler = Compiler::new(catalog, Some(session), &mut scope);
    let compiled = exprs.iter().map(|expr| compiler.compile(expr).ok()).collect::<Option<Vec<Expression>>>()?;
    if compiled.iter().any(|expr| expr.any(&mut |e| !is_evaluable(e))) {
        return None;
    }
    let sample = planner.inputs.statistics.sample(tree, &scope.columns)?;
    let columns = sample.columns.iter().map(|c| c.as_ref().map(|c| c.values.clone())).collect::<Option<Vec<Column>>>()?;
    let evaluation = planner.inputs.statistics.evaluation()?;
    let batch = Batch { columns, rows: sample.rows };
    let number = |(expr, of): (&Expression, &&Expr)| {
        let key = KeyPart::equality(planner.catalog(), (planner.catalog().base_type(of.ty()), of.collation()));
        let mut known: HashMap<Vec<u8>, u32> = HashMap::new();
        let of_row = |row: usize| {
            let mut bytes = Vec::new();
            key.encode(&expr.eval_row(&evaluation, &batch.row(row)).ok()?, &mut bytes);
            let next = known.len() as u32;
            Some(*known.entry(bytes).or_insert(next))
        };
        (0..sample.rows).map(of_row).collect::<Option<Vec<u32>>>()
    };
    let numbers = compiled.iter().zip(exprs).map(number).collect::<Option<Vec<Vec<u32>>>>()?;
    Some(Numbered { numbers, rows: sample.rows, is_complete: sample.is_complete })
}

/// The tree and the relation of a table whose rows may be looked at: policies may hide some from the user, whom estimates would tell
/// about them.
fn sampled_table<'p>(planner: &'p Planner<'_>, entry: usize) -> Option<(melba_types::TreeId, &'p melba_catalog::Relation)> {
    let RangeKind::Relation { oid, .. } = planner.level().entries.get(entry)?.kind else { return None };
    let relation = planner.catalog().relation(oid).filter(|r| !r.row_security)?;
    match relation.storage {
        melba_catalog::Storage::Tree(tree) => Some((tree, relation)),
        _ => None,
    }
}

/// Whether an expression calls a function that may take longer for the sample than a plan may: one of an extension (crypt), of a user, or
/// of a high cost (to_tsvector), unless it is called when the expression is compiled.
fn is_dear(planner: &Planner<'_>, e: &Expr) -> bool {
    let function = match e {
        Expr::Function(call) => call.function,
        Expr::Operator(op) | Expr::Distinct(op) | Expr::NullIf(op) => op.function,
        Expr::ScalarArray(list) => list.function,
        _ => return false,
    };
    let is_dear = function.0 >= FIRST_USER_OID || planner.catalog().function(function).is_none_or(|f| f.cost > COST_MAX);
    is_dear && !is_computed(planner, e)
}

/// Whether compiling an expression computes it.
fn is_computed(planner: &Planner<'_>, e: &Expr) -> bool {
    let (catalog, session) = (planner.inputs.catalog, planner.inputs.session);
    let is_const = |e: Expression| e.as_const().is_some();
    !e.any(&mut |e| matches!(e, Expr::Var(_) | Expr::Sublink(_)))
        && Compiler::new(catalog, Some(session), &mut Nothing).compile(e).is_ok_and(is_const)
}

fn is_evaluable(e: &Expression) -> bool {
    !e.is_volatile()
        && !matches!(
            e.node,
            Node::Parameter(_)
                | Node::Executor(_)
                | Node::Routine(_)
                | Node::SubPlan(_)
                | Node::CursorRow { .. }
                | Node::CurrentOf(_)
        )
}

/// A column's frequent values; `None` when it is not sampled.
pub(super) fn frequent(planner: &Planner<'_>, (entry, column): (usize, usize)) -> Option<Rc<Frequent>> {
    if let Some(known) = planner.level().estimates.frequent.borrow().get(&(entry, column)) {
        return known.clone();
    }
    let found = frequent_values(planner, entry, column).map(Rc::new);
    planner.level().estimates.frequent.borrow_mut().insert((entry, column), found.clone());
    found
}

fn frequent_values(planner: &Planner<'_>, entry: usize, column: usize) -> Option<Frequent> {
    let (tree, relation) = sampled_table(planner, entry)?;
    let definition = relation.columns.get(column)?;
    let sample = planner.inputs.statistics.sample(tree, &[column])?;
    let sampled: &Arc<SampledColumn> = sample.columns.first()?.as_ref()?;
    let key = KeyPart::equality(planner.catalog(), (planner.catalog().base_type(definition.ty), definition.collation));
    let mut shares = HashMap::new();
    let least = if sample.is_complete { 1 } else { FREQUENT_MIN };
    for (row, count) in sampled.repeated.iter().take_while(|(_, count)| *count >= least) {
        let mut bytes = Vec::new();
        key.encode_at(&sampled.values, *row as usize, &mut bytes);
        *shares.entry(bytes).or_insert(0.0) += f64::from(*count) / sample.rows as f64;
    }
    Some(Frequent { shares, nulls: sampled.nulls as f64 / sample.rows as f64 })
}

impl Frequent {
    /// The share of rows whose value is one of these.
    pub fn share(&self) -> f64 {
        self.shares.values().sum()
    }

    /// The share of pairs of rows of two columns of one type whose values are equal, as PostgreSQL's eqjoinsel_inner computes it.
    /// `distinct`: of each side.
    pub fn equal_pairs(&self, other: &Frequent, distinct: (f64, f64)) -> f64 {
        let (mut product, mut matched, mut own, mut others) = (0.0, 0.0, 0.0, 0.0);
        for (key, share) in &self.shares {
            if let Some(of_other) = other.shares.get(key) {
                product += share * of_other;
                own += share;
                others += of_other;
                matched += 1.0;
            }
        }
        // What one side's rows without a frequent partner meet among the other's values.
        let side = |a: &Frequent, b: &Frequent, (a_matched, b_matched): (f64, f64), b_distinct: f64| {
            let (a_unmatched, b_unmatched) = (a.share() - a_matched, b.share() - b_matched);
            let rest = |f: &Frequent| (1.0 - f.nulls - f.share()).max(0.0);
            let infrequent = (b_distinct - b.shares.len() as f64).max(1.0);
            let mut all = product;
            if b_distinct > b.shares.len() as f64 {
                all += a_unmatched * rest(b) / infrequent;
            }
            if b_distinct > matched {
                all += rest(a) * (rest(b) + b_unmatched) / (b_distinct - matched).max(1.0);
            }
            all
        };
        side(self, other, (own, others), distinct.1).min(side(other, self, (others, own), distinct.0))
    }
}

/// The columns of one entry, in the order in which they are met.
struct Columns {
    entry: usize,
    columns: Vec<usize>,
}

impl Scope for Columns {
    fn var(&mut self, var: &Var) -> Result<Resolved> {
        let column = usize::try_from(var.column - 1).ok().filter(|_| var.levels_up == 0 && var.entry == self.entry);
        let column = column.ok_or_else(|| DbError::internal("not a column of the table"))?;
        let place = self.columns.iter().position(|known| *known == column).unwrap_or_else(|| {
            self.columns.push(column);
            self.columns.len() - 1
        });
        Ok(Resolved::Column(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passing(rows: &[u32]) -> Passing {
        Passing { rows: rows.to_vec(), of: 1024, cluster_rows: 8, is_complete: false }
    }

    #[track_caller]
    fn about(found: f64, wanted: f64) {
        assert!((found / wanted - 1.0).abs() < 0.01, "{found}, not about {wanted}");
    }

    #[test]
    fn many_hits_decide_and_few_bound() {
        let many = passing(&(0..100).map(|i| i * 8).collect::<Vec<u32>>());
        about(many.share(0.9), 100.0 / 1024.0);
        let none = passing(&[]);
        about(none.share(1e-6), 1e-6);
        about(none.share(0.5), 1.0 / 1024.0);
        // Eight hits, but all in one place of the table.
        let one_place = passing(&[8, 9, 10, 11, 12, 13, 14, 15]);
        assert!(!one_place.is_sure());
        about(one_place.share(8.0 / 1024.0), 8.0 / 1024.0);
        about(one_place.share(1e-6), 0.8 / 1024.0);
        about(many.and(&passing(&[8, 9, 16])).share(0.001), 0.001);
    }

    #[test]
    fn equal_pairs_follow_the_frequent_values() {
        let frequent =
            |shares: &[(u8, f64)]| Frequent { shares: shares.iter().map(|(k, s)| (vec![*k], *s)).collect(), nulls: 0.0 };
        let (a, b) = (frequent(&[(1, 0.5), (2, 0.5)]), frequent(&[(1, 0.9), (3, 0.1)]));
        about(a.equal_pairs(&b, (2.0, 2.0)), 0.45);
        // Nothing in common, and no other values.
        assert!(a.equal_pairs(&frequent(&[(3, 1.0)]), (2.0, 1.0)) < 1e-9);
        // Evenly spread: as many as without frequent values.
        let none = frequent(&[]);
        about(none.equal_pairs(&none, (100.0, 50.0)), 0.01);
    }
}
