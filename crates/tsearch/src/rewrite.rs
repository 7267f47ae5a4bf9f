//! ts_rewrite: replaces parts of a query.
//!
//! AND and OR have any number of operands here, in an order that does not depend on how they were written: so `a & b` is found in
//! `c & b & a`. The order, and what becomes of it, are PostgreSQL's (tsquery_util.c).

use std::cmp::{Ordering, Reverse};

use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::tsquery::{Binary, QueryBuilder, TsNode, TsOperand, TsQuery, operand_crc};
use melba_types::{Datum, Result, bail, limits, oids};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("tsquery_rewrite", |_, a| {
        let mut rewritten = Rewritten::new(&a[0])?;
        rewritten.replace(&a[1], &a[2])?;
        rewritten.finish()
    }),
    ("tsquery_rewrite_query", |c, a| by_query(c, &a[0], a[1].as_str())),
];

/// Replaces what a query lists, each by what stands beside it; a replacement sees those before it.
fn by_query(call: &CallInfo<'_>, query: &Datum, text: &str) -> Result<Datum> {
    let mut rewritten = Rewritten::new(query)?;
    if rewritten.tree.is_none() {
        return Ok(query.clone());
    }
    let (types, rows) = call.session.query_rows(text, call.view)?;
    if types != [oids::TSQUERY; 2] {
        bail!(INVALID_PARAMETER_VALUE, "ts_rewrite query must return two tsquery columns");
    }
    for row in rows.iter().filter(|row| !row.iter().any(Datum::is_null)) {
        rewritten.replace(&row[0], &row[1])?;
        rewritten.settle()?;
    }
    rewritten.finish()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TreeOperator {
    Not,
    Binary(Binary),
}

#[derive(Clone)]
enum TreeKind {
    Operand {
        text: Vec<u8>,
        weights: u8,
        prefix: bool,
        crc: i32,
    },
    /// The right operand is the first one.
    Operator(TreeOperator, Vec<Tree>),
}

#[derive(Clone)]
struct Tree {
    kind: TreeKind,
    /// It was put here by a replacement: it is not searched again.
    is_new: bool,
}

/// A query whose parts are replaced.
struct Rewritten {
    tree: Option<Tree>,
}

impl Rewritten {
    /// # Errors
    /// 54001 for a query that nests too deeply.
    fn new(query: &Datum) -> Result<Rewritten> {
        let tree = TsQuery::new(query.as_bytes()).map(Tree::sorted).transpose()?;
        Ok(Rewritten { tree })
    }

    /// Replaces a part by another, or by nothing.
    fn replace(&mut self, target: &Datum, substitute: &Datum) -> Result<()> {
        let Some(target) = TsQuery::new(target.as_bytes()).map(Tree::sorted).transpose()? else { return Ok(()) };
        let substitute = TsQuery::new(substitute.as_bytes()).map(Tree::new).transpose()?;
        let Some(tree) = self.tree.take() else { return Ok(()) };
        self.tree = tree.replaced(&target, substitute.as_ref())?;
        Ok(())
    }

    /// Makes the query ready for another replacement, which sees what the others put there.
    fn settle(&mut self) -> Result<()> {
        if let Some(tree) = &mut self.tree {
            tree.flatten()?;
        }
        Ok(())
    }

    fn finish(self) -> Result<Datum> {
        let mut builder = QueryBuilder::default();
        if let Some(tree) = &self.tree {
            tree.build(&mut builder)?;
        }
        builder.finish().map(Datum::bytes)
    }
}

impl Tree {
    fn new(query: TsQuery<'_>) -> Result<Tree> {
        limits::check_stack()?;
        let kind = match query.node() {
            TsNode::Operand(TsOperand { text, weights, prefix }) => {
                TreeKind::Operand { text: text.to_vec(), weights, prefix, crc: operand_crc(text) }
            }
            TsNode::Not(of) => TreeKind::Operator(TreeOperator::Not, vec![Tree::new(of)?]),
            TsNode::Binary(operator, left, right) => {
                TreeKind::Operator(TreeOperator::Binary(operator), vec![Tree::new(right)?, Tree::new(left)?])
            }
        };
        Ok(Tree { kind, is_new: false })
    }

    fn sorted(query: TsQuery<'_>) -> Result<Tree> {
        let mut tree = Tree::new(query)?;
        tree.flatten()?;
        Ok(tree)
    }

    /// AND within AND and OR within OR become one, and their operands are put in order.
    fn flatten(&mut self) -> Result<()> {
        limits::check_stack()?;
        self.is_new = false;
        let TreeKind::Operator(operator, children) = &mut self.kind else { return Ok(()) };
        children.iter_mut().try_for_each(Tree::flatten)?;
        if is_commutative(*operator) {
            let mut flat = Vec::with_capacity(children.len());
            for child in std::mem::take(children) {
                match child.kind {
                    TreeKind::Operator(of, grandchildren) if of == *operator => flat.extend(grandchildren),
                    kind => flat.push(Tree { kind, is_new: false }),
                }
            }
            flat.sort_by(Tree::order);
            *children = flat;
        }
        Ok(())
    }

    /// Puts operands in order. The tree is no deeper than those it was made of.
    fn sort(&mut self) {
        if let TreeKind::Operator(operator, children) = &mut self.kind {
            children.iter_mut().for_each(Tree::sort);
            if is_commutative(*operator) {
                children.sort_by(Tree::order);
            }
        }
    }

    fn order(&self, other: &Tree) -> Ordering {
        match (&self.kind, &other.kind) {
            (TreeKind::Operator(a, x), TreeKind::Operator(b, y)) => {
                let distances = || Reverse(distance(*a)).cmp(&Reverse(distance(*b)));
                let children = || x.iter().zip(y).map(|(x, y)| x.order(y)).find(|order| order.is_ne());
                (Reverse(rank(*a)), Reverse(x.len()))
                    .cmp(&(Reverse(rank(*b)), Reverse(y.len())))
                    .then_with(|| children().unwrap_or(Ordering::Equal))
                    .then_with(distances)
            }
            (TreeKind::Operator(..), TreeKind::Operand { .. }) => Ordering::Less,
            (TreeKind::Operand { .. }, TreeKind::Operator(..)) => Ordering::Greater,
            (TreeKind::Operand { text: x, crc: a, .. }, TreeKind::Operand { text: y, crc: b, .. }) => {
                b.cmp(a).then_with(|| x.cmp(y))
            }
        }
    }

    /// The tree with all occurrences of a part replaced; `None` when nothing is left.
    fn replaced(self, target: &Tree, substitute: Option<&Tree>) -> Result<Option<Tree>> {
        limits::check_stack()?;
        limits::tick()?;
        let Some(tree) = self.replaced_here(target, substitute) else { return Ok(None) };
        if tree.is_new {
            return Ok(Some(tree));
        }
        let TreeKind::Operator(operator, children) = tree.kind else { return Ok(Some(tree)) };
        let kept = children.into_iter().filter_map(|child| child.replaced(target, substitute).transpose());
        let mut kept = kept.collect::<Result<Vec<Tree>>>()?;
        Ok(match kept.len() {
            0 => None,
            1 if operator != TreeOperator::Not => kept.pop(),
            _ => Some(Tree { kind: TreeKind::Operator(operator, kept), is_new: false }),
        })
    }

    /// Replaces the tree itself, or some of its operands.
    fn replaced_here(mut self, target: &Tree, substitute: Option<&Tree>) -> Option<Tree> {
        if self.is_new {
            return Some(self);
        }
        let new = || substitute.map(|tree| Tree { is_new: true, ..tree.clone() });
        if self.order(target).is_eq() {
            return new();
        }
        match (&mut self.kind, &target.kind) {
            (TreeKind::Operator(a, children), TreeKind::Operator(b, wanted))
                if rank(*a) == rank(*b) && children.len() > wanted.len() =>
            {
                if let Some(found) = places(children, wanted) {
                    let mut at = 0;
                    children.retain(|_| {
                        at += 1;
                        found.binary_search(&(at - 1)).is_err()
                    });
                    children.extend(new());
                    self.sort();
                }
                Some(self)
            }
            _ => Some(self),
        }
    }

    fn build(&self, builder: &mut QueryBuilder) -> Result<()> {
        limits::check_stack()?;
        let TreeKind::Operator(operator, children) = &self.kind else {
            if let TreeKind::Operand { text, weights, prefix, .. } = &self.kind {
                builder.operand(TsOperand { text, weights: *weights, prefix: *prefix });
            }
            return Ok(());
        };
        match operator {
            TreeOperator::Not => {
                children.iter().try_for_each(|child| child.build(builder))?;
                builder.not();
            }
            TreeOperator::Binary(operator) => build_binary(*operator, children, builder)?,
        }
        Ok(())
    }
}

/// Operands of one operator as operators with two: the first two are the innermost ones.
fn build_binary(operator: Binary, children: &[Tree], builder: &mut QueryBuilder) -> Result<()> {
    let (inner, outer) = children.split_at(children.len().min(2));
    outer.iter().chain(inner.iter().rev()).try_for_each(|child| child.build(builder))?;
    (1..children.len()).for_each(|_| builder.binary(operator));
    Ok(())
}

fn is_commutative(operator: TreeOperator) -> bool {
    matches!(operator, TreeOperator::Binary(Binary::And | Binary::Or))
}

/// PostgreSQL's numbers of operators.
fn rank(operator: TreeOperator) -> u8 {
    match operator {
        TreeOperator::Not => 1,
        TreeOperator::Binary(Binary::And) => 2,
        TreeOperator::Binary(Binary::Or) => 3,
        TreeOperator::Binary(Binary::Phrase(_)) => 4,
    }
}

fn distance(operator: TreeOperator) -> u16 {
    match operator {
        TreeOperator::Binary(Binary::Phrase(distance)) => distance,
        _ => 0,
    }
}

/// The places of some operands among others, both in order; `None` when one is missing.
fn places(children: &[Tree], wanted: &[Tree]) -> Option<Vec<usize>> {
    let (mut found, mut at) = (Vec::with_capacity(wanted.len()), 0);
    for target in wanted {
        at += children[at..].iter().position(|child| child.order(target).is_ge())?;
        if children[at].order(target).is_ne() {
            return None;
        }
        found.push(at);
        at += 1;
    }
    Some(found)
}
