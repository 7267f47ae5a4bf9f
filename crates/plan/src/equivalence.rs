//! Columns that conditions make equal: PostgreSQL's equivalence classes.
//!
//! From `a = b AND b = c` follows `a = c`, and from `a = b AND a = 1` that `b = 1`. Derived equalities are added to the
//! conditions, so that the join search may join `a` with `c` before `b`, and find rows of `b` by the constant. Equality by
//! operators of one B-tree family is transitive, across its types too, and a row with a NULL passes none of these conditions; so
//! a derived equality rejects no row that the original conditions let through, and no equality raises an error.
//!
//! Of the conditions of one class, a join needs to check only one: all columns of the class are already equal within each of its sides.

use std::rc::Rc;

use melba_catalog::classes::BTREE;
use melba_types::Oid;

use super::join_tree::{Tree, TreeJoin};
use super::layout::same;
use super::membership::ClassMembership;
use super::planner::Planner;
use super::rels::{Rels, contains_sublink, rels_of};
use super::volatility;
use melba_tree::{Expr, OperatorCall};

/// Strategy number of `=` in a B-tree family.
const EQUAL: i16 = 3;
/// A class with more columns than this has too many pairs to plan with: it keeps only the written conditions.
const MEMBERS_MAX: usize = 8;

/// An equality by a B-tree family, taken apart.
#[derive(Clone, Copy)]
struct Equality<'e> {
    family: Oid,
    collation: Oid,
    sides: [Side<'e>; 2],
}

/// An operand, and the type that the operator takes it as.
type Side<'e> = (&'e Expr, Oid);

/// Columns that are equal in every row, and the first value they are equal to.
struct Class<'e> {
    family: Oid,
    collation: Oid,
    members: Vec<Side<'e>>,
    value: Option<Side<'e>>,
}

impl<'e> Class<'e> {
    fn has(&self, column: &Expr) -> bool {
        self.members.iter().any(|(member, _)| same(member, column))
    }

    /// Those by the family and collation of this class.
    fn own<'q>(&self, equalities: &'q [Equality<'e>]) -> impl Iterator<Item = &'q Equality<'e>> {
        let (family, collation) = (self.family, self.collation);
        equalities.iter().filter(move |e| e.family == family && e.collation == collation)
    }

    /// Whether an equality is of two members.
    fn compares(&self, equalities: &[Equality<'_>], a: &Expr, b: &Expr) -> bool {
        self.own(equalities).any(|e| {
            let [(x, _), (y, _)] = e.sides;
            (same(x, a) && same(y, b)) || (same(x, b) && same(y, a))
        })
    }

    /// Whether an equality sets a member to the value of the class.
    fn is_fixed(&self, equalities: &[Equality<'_>], member: &Expr) -> bool {
        self.value.is_some_and(|(value, _)| self.compares(equalities, member, value))
    }

    /// Whether any two members are compared, by an equality or by the value.
    fn is_closed(&self, equalities: &[Equality<'_>]) -> bool {
        let is_fixed: Vec<bool> = self.members.iter().map(|(member, _)| self.is_fixed(equalities, member)).collect();
        let pairs = (0..self.members.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
        let mut pairs = pairs.filter(|(i, j)| !(is_fixed[*i] && is_fixed[*j]));
        pairs.all(|(i, j)| self.compares(equalities, self.members[i].0, self.members[j].0))
    }
}

/// Adds the derived equalities to the conditions of all inner joins, and to those of other joins the equalities of the right
/// side's columns with values that the left side's columns equal.
pub fn imply_equalities(planner: &Planner<'_>, tree: &mut Tree) {
    imply_below(planner, tree, &[]);
}

/// `above`: conditions on rows of the tree alone that are checked above it.
fn imply_below(planner: &Planner<'_>, tree: &mut Tree, above: &[Expr]) {
    match tree {
        Tree::Leaf(_) => {}
        Tree::Inner { items, conditions } => {
            let implied = implied_equalities(planner, conditions);
            conditions.extend(implied);
            for item in items {
                let rels = item.rels();
                let own: Vec<Expr> = above.iter().chain(&*conditions).filter(|c| is_within(c, rels)).cloned().collect();
                imply_below(planner, item, &own);
            }
        }
        Tree::Join { join: TreeJoin::Full, left, right, .. } => {
            imply_below(planner, left, &[]);
            imply_below(planner, right, &[]);
        }
        // The right side's NULLs decide, too, and would not pass a condition on a left row's value.
        Tree::Join { join: TreeJoin::NotIn, left, right, .. } => {
            let left_rels = left.rels();
            let of_left: Vec<Expr> = above.iter().filter(|c| is_within(c, left_rels)).cloned().collect();
            imply_below(planner, left, &of_left);
            imply_below(planner, right, &[]);
        }
        Tree::Join { left, right, conditions, .. } => {
            let (left_rels, right_rels) = (left.rels(), right.rels());
            let of_left: Vec<Expr> = above.iter().filter(|c| is_within(c, left_rels)).cloned().collect();
            // Left rows that fail these are not needed, and the others have no partner with other values.
            let mut all: Vec<Expr> = of_left.iter().chain(&*conditions).cloned().collect();
            add_certain(left, &mut all);
            let implied = implied_equalities(planner, &all).into_iter().filter(|c| is_within(c, right_rels));
            conditions.extend(implied);
            let of_right: Vec<Expr> = conditions.iter().filter(|c| is_within(c, right_rels)).cloned().collect();
            imply_below(planner, left, &of_left);
            imply_below(planner, right, &of_right);
        }
    }
}

/// Columns, of entries, that are equal in each row of a tree, as groups and keys of tables compare them.
pub fn columns_equal_in(planner: &Planner<'_>, tree: &Tree) -> Vec<[(usize, i16); 2]> {
    let mut conditions = Vec::new();
    add_certain(tree, &mut conditions);
    let place = |e: &Equality<'_>, (side, _): Side<'_>| match side {
        Expr::Var(v) if is_column(side) => {
            let class = planner.catalog().default_operator_class(BTREE, v.ty)?;
            (class.family == e.family && v.collation == e.collation).then_some((v.entry, v.column))
        }
        _ => None,
    };
    let equalities = equalities(planner, &conditions);
    equalities.iter().filter_map(|e| Some([place(e, e.sides[0])?, place(e, e.sides[1])?])).collect()
}

/// The equalities that follow from others, without those. Two values for one class are left to contradict each other.
fn implied_equalities(planner: &Planner<'_>, conditions: &[Expr]) -> Vec<Expr> {
    let equalities = equalities(planner, conditions);
    let mut implied = Vec::new();
    for class in classes(planner, &equalities) {
        let members = &class.members;
        if let Some(value) = class.value {
            let open = members.iter().filter(|(member, _)| !class.is_fixed(&equalities, member));
            implied.extend(open.filter_map(|member| equality_of(planner, &class, *member, value)));
        } else if members.len() <= MEMBERS_MAX {
            let pairs = members.iter().enumerate().flat_map(|(i, a)| members[i + 1..].iter().map(move |b| (*a, *b)));
            let open = pairs.filter(|(a, b)| !class.compares(&equalities, a.0, b.0));
            implied.extend(open.filter_map(|(a, b)| equality_of(planner, &class, a, b)));
        }
    }
    implied
}

/// Of each condition: its class, if it is an equality of columns of two relations. A class is used only if any two of its
/// columns are compared by a condition, or by one value; with another class, each condition counts alone.
pub fn memberships(planner: &Planner<'_>, conditions: &[Rc<Expr>]) -> Vec<Option<ClassMembership>> {
    let equalities = equalities(planner, conditions.iter().map(|c| &**c));
    let classes = classes(planner, &equalities);
    let is_closed: Vec<bool> = classes.iter().map(|class| class.is_closed(&equalities)).collect();
    let of_one = |condition: &Rc<Expr>| {
        let Equality { family, collation, sides: [(a, _), (b, _)] } = equality(planner, condition)?;
        let is_of = |c: &Class<'_>| c.family == family && c.collation == collation && c.has(a) && c.has(b);
        let class = classes.iter().position(is_of).filter(|class| is_closed[*class])?;
        let is_fixed = |member| classes[class].is_fixed(&equalities, member);
        Some(ClassMembership { class, is_decided: is_fixed(a) && is_fixed(b) })
    };
    conditions.iter().map(of_one).collect()
}

fn classes<'e>(planner: &Planner<'_>, equalities: &[Equality<'e>]) -> Vec<Class<'e>> {
    let mut classes: Vec<Class<'e>> = Vec::new();
    for Equality { family, collation, sides: [a, b] } in equalities.iter().copied() {
        if !(is_column(a.0) && is_column(b.0)) {
            continue;
        }
        let of = |c: &Class<'_>, e: &Expr| c.family == family && c.collation == collation && c.has(e);
        match (classes.iter().position(|c| of(c, a.0)), classes.iter().position(|c| of(c, b.0))) {
            (Some(i), Some(j)) if i == j => {}
            (Some(i), Some(j)) => {
                let merged = classes.remove(i.max(j));
                classes[i.min(j)].members.extend(merged.members);
            }
            (Some(i), None) => classes[i].members.push(b),
            (None, Some(j)) => classes[j].members.push(a),
            (None, None) => classes.push(Class { family, collation, members: vec![a, b], value: None }),
        }
    }
    for class in &mut classes {
        let value_of = |e: &Equality<'e>| {
            let [a, b] = e.sides;
            let (column, value) = if class.has(a.0) { (a, b) } else { (b, a) };
            (class.has(column.0) && is_value(planner, value.0)).then_some(value)
        };
        let value = class.own(equalities).find_map(value_of);
        class.value = value;
    }
    classes
}

/// The same for all rows of the query.
fn is_value(planner: &Planner<'_>, expr: &Expr) -> bool {
    rels_of(expr) == 0 && !volatility::has_volatile(planner, expr) && !contains_sublink(expr)
}

/// None where no two columns are compared: no class is, either.
fn equalities<'e>(planner: &Planner<'_>, conditions: impl IntoIterator<Item = &'e Expr, IntoIter: Clone>) -> Vec<Equality<'e>> {
    let conditions = conditions.into_iter();
    let is_pair = |c: &Expr| matches!(c, Expr::Operator(op) if op.args.iter().all(is_column));
    match conditions.clone().any(is_pair) {
        true => conditions.filter_map(|c| equality(planner, c)).collect(),
        false => Vec::new(),
    }
}

fn equality<'e>(planner: &Planner<'_>, condition: &'e Expr) -> Option<Equality<'e>> {
    let Expr::Operator(op) = condition else { return None };
    let [a, b] = &op.args[..] else { return None };
    let (family, strategy) = planner.catalog().btree_strategy(op.operator)?;
    let operator = planner.catalog().operator(op.operator)?;
    let sides = [(a, operator.left), (b, operator.right)];
    (strategy == EQUAL).then_some(Equality { family, collation: op.input_collation, sides })
}

/// `a = b` by the operator of a class; `None` when its family has none for the two types.
fn equality_of(planner: &Planner<'_>, class: &Class<'_>, (a, a_type): Side<'_>, (b, b_type): Side<'_>) -> Option<Expr> {
    let found = planner.catalog().access_methods().operator(class.family, a_type, b_type, EQUAL)?;
    let operator = planner.catalog().operator(found)?;
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
        Tree::Leaf(_) | Tree::Join { join: TreeJoin::Full, .. } => {}
        Tree::Join { left, .. } => add_certain(left, out),
    }
}

fn is_within(condition: &Expr, rels: Rels) -> bool {
    let refers = rels_of(condition);
    refers != 0 && refers & !rels == 0
}
