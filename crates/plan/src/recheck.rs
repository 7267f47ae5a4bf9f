//! How joined rows are checked again when a part of them has changed.

use melba_tree::{Expr, RangeEntry};
use melba_types::Result;

use super::layout::Layout;
use super::node::*;
use super::planner::Planner;
use super::rels::{Rels, has};

pub fn compile_rechecks(planner: &mut Planner<'_>, steps: Vec<RecheckExpr>, layout: &Layout) -> Result<Vec<Recheck>> {
    let mut out = Vec::new();
    for step in steps {
        match step {
            RecheckExpr::Condition(condition) => {
                out.extend(compile_present(planner, vec![condition], layout)?.into_iter().map(Recheck::Condition));
            }
            RecheckExpr::Outer { conditions, rels } => {
                let is_right = |entry: usize| has(rels, entry);
                let columns = layout.0.iter().enumerate().filter(|(_, c)| is_right(c.0)).map(|(i, _)| i).collect();
                let conditions = compile_present(planner, conditions, layout)?;
                out.push(Recheck::Outer { conditions, columns });
            }
        }
    }
    Ok(out)
}

/// The conditions whose columns are all in the row.
pub fn compile_present(
    planner: &mut Planner<'_>,
    conditions: Vec<Expr>,
    layout: &Layout,
) -> Result<Vec<melba_expression::Expression>> {
    let mut out = Vec::new();
    for condition in conditions {
        let mut there = true;
        condition.visit_vars(&mut |v| there &= layout.position(v.entry, v.column).is_some());
        if there {
            out.push(planner.compile(&condition, layout)?);
        }
    }
    Ok(out)
}

/// `Recheck` before it is compiled.
pub(super) enum RecheckExpr {
    Condition(Expr),
    Outer { conditions: Vec<Expr>, rels: Rels },
}

/// The steps of rechecking a joined row of which a part has changed, innermost joins first.
pub fn rechecks(tree: &super::join_tree::Tree, entries: &[RangeEntry]) -> Vec<RecheckExpr> {
    use super::join_tree::{Tree, TreeJoin};
    let must = |conditions: &[Expr]| conditions.iter().cloned().map(RecheckExpr::Condition).collect::<Vec<_>>();
    match tree {
        Tree::Leaf(entry) => must(&entries[*entry].security),
        Tree::Inner { items, conditions } => {
            items.iter().flat_map(|item| rechecks(item, entries)).chain(must(conditions)).collect()
        }
        Tree::Join { join, left, right, conditions } => {
            let mut steps = rechecks(left, entries);
            match join {
                TreeJoin::SemiPair => steps.extend(must(conditions)),
                TreeJoin::Left => steps.push(RecheckExpr::Outer { conditions: conditions.clone(), rels: right.rels() }),
                // A side without matches is not searched again, and rows of a full join cannot be locked.
                TreeJoin::Anti | TreeJoin::NotIn | TreeJoin::Semi | TreeJoin::Full => {}
            }
            steps
        }
    }
}
