//! Columns that conditions make equal: PostgreSQL's equivalence classes.
//!
//! From `a = b AND b = c` follows `a = c`, and from `a = b AND a = 1` that `b = 1`. What follows is added to the conditions, so that the
//! join search may join `a` with `c` before `b`, and find rows of `b` by the constant. Equality by operators of one B-tree family is
//! transitive, across its types too, and a row with a NULL passes none of these conditions; so what is added rejects no row that the
//! conditions it follows from let through, and no equality raises an error.
//!
//! Of the conditions of one class, a join needs to check only one: its sides have all their columns of the class equal already.

use std::rc::Rc;

use melba_types::Oid;

use super::layout::same;
use super::membership::Membership;
use super::planner::Planner;
use super::prepare::{Rels, Tree, TreeJoin, contains_sublink, rels_of};
use melba_tree::{Expr, OperatorCall};

/// Strategy number of `=` in a B-tree family.
const EQUAL: i16 = 3;
/// All pairs of a class with more columns than this are too many to plan with: it keeps the conditions that are written.
const MEMBERS_MAX: usize = 8;

/// An equality by a B-tree family, taken apart.
#[derive(Clone, Copy)]
struct Equality<'e> {
    family: Oid,
    collation: Oid,
    /// Operands, and the types that the operator takes them as.
    sides: [(&'e Expr, Oid); 2],
}

/// Columns that are equal in every row, and the first value they are equal to.
struct Class {
    family: Oid,
    collation: Oid,
    members: Vec<(Expr, Oid)>,
    value: Option<(Expr, Oid)>,
}

impl Class {
    fn has(&self, column: &Expr) -> bool {
        self.members.iter().any(|(member, _)| same(member, column))
    }
}

impl Planner<'_> {
    /// Adds to the conditions of all inner joins what follows from them, and to those of the other joins that the right side's columns are
    /// equal to the values that the left side's are.
    pub(super) fn imply_equalities(&self, tree: &mut Tree) {
        self.imply_below(tree, &[]);
    }

    /// `above`: conditions on rows of the tree alone that are checked above it.
    fn imply_below(&self, tree: &mut Tree, above: &[Expr]) {
        match tree {
            Tree::Leaf(_) => {}
            Tree::Inner { items, conditions } => {
                let implied = self.implied_equalities(conditions);
                conditions.extend(implied);
                for item in items {
                    let rels = item.rels();
                    let own: Vec<Expr> = above.iter().chain(&*conditions).filter(|c| is_within(c, rels)).cloned().collect();
                    self.imply_below(item, &own);
                }
            }
            Tree::Join { join: TreeJoin::Full, left, right, .. } => {
                self.imply_below(left, &[]);
                self.imply_below(right, &[]);
            }
            Tree::Join { left, right, conditions, .. } => {
                let (left_rels, right_rels) = (left.rels(), right.rels());
                let of_left: Vec<Expr> = above.iter().filter(|c| is_within(c, left_rels)).cloned().collect();
                // Left rows that fail these are of no use, and the others have no partner with other values.
                let mut all: Vec<Expr> = of_left.iter().chain(&*conditions).cloned().collect();
                add_certain(left, &mut all);
                let implied = self.implied_equalities(&all).into_iter().filter(|c| is_within(c, right_rels));
                conditions.extend(implied);
                let of_right: Vec<Expr> = conditions.iter().filter(|c| is_within(c, right_rels)).cloned().collect();
                self.imply_below(left, &of_left);
                self.imply_below(right, &of_right);
            }
        }
    }

    /// The equalities that follow from others, without those. Two values for one class are left to contradict each other.
    fn implied_equalities(&self, conditions: &[Expr]) -> Vec<Expr> {
        let mut implied = Vec::new();
        for class in self.classes(conditions) {
            if let Some((value, ty)) = &class.value {
                for (member, of) in class.members.iter().filter(|(member, _)| !self.is_fixed(conditions, &class, member)) {
                    implied.extend(self.equality_of(&class, (member, *of), (value, *ty)));
                }
                continue;
            }
            if class.members.len() > MEMBERS_MAX {
                continue;
            }
            for (i, (a, a_type)) in class.members.iter().enumerate() {
                for (b, b_type) in &class.members[i + 1..] {
                    if !self.compares(conditions, &class, a, b) {
                        implied.extend(self.equality_of(&class, (a, *a_type), (b, *b_type)));
                    }
                }
            }
        }
        implied
    }

    /// Of each condition: its class, if it is an equality of columns of two relations. What is said of a class holds only if any two of
    /// its columns are compared by a condition, or by one value; of another class, each condition counts for itself.
    pub(super) fn memberships(&self, conditions: &[Rc<Expr>]) -> Vec<Option<Membership>> {
        let all: Vec<Expr> = conditions.iter().map(|c| (**c).clone()).collect();
        let classes = self.classes(&all);
        let is_closed: Vec<bool> = classes.iter().map(|class| self.is_closed(&all, class)).collect();
        let of_one = |condition: &Expr| {
            let equality = self.equality(condition)?;
            let [(a, _), (b, _)] = equality.sides;
            let is_of = |c: &Class| c.family == equality.family && c.collation == equality.collation && c.has(a) && c.has(b);
            let class = classes.iter().position(is_of).filter(|class| is_closed[*class])?;
            let is_fixed = |member| self.is_fixed(&all, &classes[class], member);
            Some(Membership { class, is_decided: is_fixed(a) && is_fixed(b) })
        };
        all.iter().map(of_one).collect()
    }

    fn is_closed(&self, conditions: &[Expr], class: &Class) -> bool {
        let is_fixed: Vec<bool> = class.members.iter().map(|(member, _)| self.is_fixed(conditions, class, member)).collect();
        let members = || class.members.iter().zip(&is_fixed).enumerate();
        members().all(|(i, ((a, _), a_is_fixed))| {
            members()
                .skip(i + 1)
                .all(|(_, ((b, _), b_is_fixed))| (*a_is_fixed && *b_is_fixed) || self.compares(conditions, class, a, b))
        })
    }

    /// Whether a condition is the equality of two members of a class.
    fn compares(&self, conditions: &[Expr], class: &Class, a: &Expr, b: &Expr) -> bool {
        let is = |e: &Equality<'_>| {
            let [(x, _), (y, _)] = e.sides;
            e.family == class.family
                && e.collation == class.collation
                && ((same(x, a) && same(y, b)) || (same(x, b) && same(y, a)))
        };
        conditions.iter().filter_map(|c| self.equality(c)).any(|e| is(&e))
    }

    fn classes(&self, conditions: &[Expr]) -> Vec<Class> {
        let mut classes: Vec<Class> = Vec::new();
        for condition in conditions {
            if !matches!(condition, Expr::Operator(op) if op.args.iter().all(is_column)) {
                continue;
            }
            let Some(equality) = self.equality(condition) else { continue };
            let Equality { family, collation, sides: [(a, a_type), (b, b_type)] } = equality;
            let of = |c: &Class, e: &Expr| c.family == family && c.collation == collation && c.has(e);
            match (classes.iter().position(|c| of(c, a)), classes.iter().position(|c| of(c, b))) {
                (Some(i), Some(j)) if i == j => {}
                (Some(i), Some(j)) => {
                    let merged = classes.remove(i.max(j));
                    classes[i.min(j)].members.extend(merged.members);
                }
                (Some(i), None) => classes[i].members.push((b.clone(), b_type)),
                (None, Some(j)) => classes[j].members.push((a.clone(), a_type)),
                (None, None) => {
                    let members = vec![(a.clone(), a_type), (b.clone(), b_type)];
                    classes.push(Class { family, collation, members, value: None });
                }
            }
        }
        for class in &mut classes {
            let value = self.values_of(conditions, class).next().map(|(_, value, ty)| (value.clone(), ty));
            class.value = value;
        }
        classes
    }

    /// Whether a condition sets a member equal to the value of its class.
    fn is_fixed(&self, conditions: &[Expr], class: &Class, member: &Expr) -> bool {
        let is_value = |value: &Expr| class.value.as_ref().is_some_and(|(of_class, _)| same(value, of_class));
        self.values_of(conditions, class).any(|(column, value, _)| same(column, member) && is_value(value))
    }

    /// Members of a class that conditions set equal to a value, with the value and its type.
    fn values_of<'c>(&'c self, conditions: &'c [Expr], class: &'c Class) -> impl Iterator<Item = (&'c Expr, &'c Expr, Oid)> + 'c {
        let equalities = conditions.iter().filter_map(|c| self.equality(c));
        let of_class = equalities.filter(|e| e.family == class.family && e.collation == class.collation);
        of_class.filter_map(|e| {
            let [(a, a_type), (b, b_type)] = e.sides;
            let (column, value, ty) = if class.has(a) { (a, b, b_type) } else { (b, a, a_type) };
            (class.has(column) && self.is_value(value)).then_some((column, value, ty))
        })
    }

    /// The same for all rows of the query.
    fn is_value(&self, expr: &Expr) -> bool {
        rels_of(expr) == 0 && !self.has_volatile(expr) && !contains_sublink(expr)
    }

    fn equality<'e>(&self, condition: &'e Expr) -> Option<Equality<'e>> {
        let Expr::Operator(op) = condition else { return None };
        let [a, b] = &op.args[..] else { return None };
        let (family, strategy) = self.catalog().btree_strategy(op.operator)?;
        let operator = self.catalog().operator(op.operator)?;
        let sides = [(a, operator.left), (b, operator.right)];
        (strategy == EQUAL).then_some(Equality { family, collation: op.input_collation, sides })
    }

    /// `a = b` by the operator of a class; `None` when its family has none for the two types.
    fn equality_of(&self, class: &Class, (a, a_type): (&Expr, Oid), (b, b_type): (&Expr, Oid)) -> Option<Expr> {
        let found = self.catalog().access_methods().operator(class.family, a_type, b_type, EQUAL)?;
        let operator = self.catalog().operator(found)?;
        Some(Expr::Operator(Box::new(OperatorCall {
            operator: found,
            function: operator.function,
            args: vec![a.clone(), b.clone()],
            ty: operator.result,
            collation: Oid::INVALID,
            input_collation: class.collation,
            returns_set: false,
            location: -1,
        })))
    }
}

/// A column of this query, seen as another type at most.
fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Var(v) => v.levels_up == 0 && v.column > 0,
        Expr::Relabel { arg, .. } => is_column(arg),
        _ => false,
    }
}

/// Adds conditions that hold for every row of a tree.
fn add_certain(tree: &Tree, out: &mut Vec<Expr>) {
    match tree {
        Tree::Inner { items, conditions } => {
            out.extend_from_slice(conditions);
            items.iter().for_each(|item| add_certain(item, out));
        }
        Tree::Join { join: TreeJoin::Left | TreeJoin::Semi | TreeJoin::SemiPair | TreeJoin::Anti, left, .. } => {
            add_certain(left, out);
        }
        Tree::Leaf(_) | Tree::Join { join: TreeJoin::Full, .. } => {}
    }
}

fn is_within(condition: &Expr, rels: Rels) -> bool {
    let refers = rels_of(condition);
    refers != 0 && refers & !rels == 0
}
