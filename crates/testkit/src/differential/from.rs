//! FROM: tables, joins of every kind, sub-queries, LATERAL, VALUES, functions.

use super::generator::{Atom, Generator, Scope};
use super::query::rigid;
use super::tree::{Node, Part, Sort, list};
use super::types::{COLUMN_TYPES, Type};

/// A relation as written, its visible columns, and the order of its rows.
struct Relation {
    node: Node,
    atoms: Vec<Atom>,
    order: Vec<Node>,
}

const JOINS: [&str; 8] = ["join", "join", "left join", "left join", "left join", "right join", "full join", "cross join"];

/// Names and types of a function's result columns.
type Columns = &'static [(&'static str, Type)];

const FUNCTIONS: &[(&str, Columns)] = &[
    ("generate_series(1, 3) as $a(x)", &[("x", Type::Int4)]),
    ("generate_series(1, 4) with ordinality as $a(x, o)", &[("x", Type::Int4), ("o", Type::Int8)]),
    ("unnest('{a,NULL,b,a}'::text[]) as $a(x)", &[("x", Type::Text)]),
    ("unnest(array[1,2], array['p','q','r']) as $a(x, y)", &[("x", Type::Int4), ("y", Type::Text)]),
    ("jsonb_each('{\"a\": 1, \"b\": [2]}') as $a(x, y)", &[("x", Type::Text), ("y", Type::Jsonb)]),
    ("jsonb_array_elements('[1, null, \"a\"]') as $a(x)", &[("x", Type::Jsonb)]),
    ("regexp_split_to_table('a b c', ' ') as $a(x)", &[("x", Type::Text)]),
    ("generate_series(date '2024-02-28', '2024-03-01', '1 day') as $a(x)", &[("x", Type::Timestamptz)]),
    ("rows from (generate_series(1, 2), generate_series(5, 7)) as $a(x, y)", &[("x", Type::Int4), ("y", Type::Int4)]),
    ("jsonb_to_recordset('[{\"x\": 1}, {\"y\": \"b\"}]') as $a(x int4, y text)", &[("x", Type::Int4), ("y", Type::Text)]),
];

/// Functions over a column of a relation to the left.
const LATERAL_FUNCTIONS: &[(&str, Type, Columns)] = &[
    ("generate_series(1, $1 % 4) as $a(x)", Type::Int4, &[("x", Type::Int4)]),
    ("unnest($1) with ordinality as $a(x, o)", Type::IntArray, &[("x", Type::Int4), ("o", Type::Int8)]),
    ("unnest($1) as $a(x)", Type::TextArray, &[("x", Type::Text)]),
    ("string_to_table($1, ' ') as $a(x)", Type::Text, &[("x", Type::Text)]),
    ("jsonb_path_query($1, '$.*') as $a(x)", Type::Jsonb, &[("x", Type::Jsonb)]),
];

impl Generator<'_> {
    /// The FROM clause and the scope it makes.
    pub fn from(&mut self, outer: &[Atom], depth: usize) -> (Part, Scope) {
        let mut scope = Scope { outer: outer.to_vec(), ..Scope::default() };
        let mut items = Vec::new();
        let count = match self.below(20) {
            0 => 0,
            1..17 => 1,
            _ => 2,
        };
        for _ in 0..count {
            if !items.is_empty() && self.budget == 0 {
                break;
            }
            let relation = self.relation(outer, &scope.atoms.clone(), depth);
            items.push(relation.node);
            scope.atoms.extend(relation.atoms);
            scope.order.extend(relation.order);
        }
        (list(" from ", ", ", "", 0, items), scope)
    }

    fn relation(&mut self, outer: &[Atom], left: &[Atom], depth: usize) -> Relation {
        match self.below(100) {
            0..45 if self.budget > 1 => self.join(outer, left, depth),
            45..55 if depth > 0 && self.nesting < 3 => self.derived(outer, &[], depth),
            55..60 if depth > 0 && self.nesting < 3 && !left.is_empty() => self.derived(outer, left, depth),
            60..65 => self.values_relation(),
            65..70 => self.function(left),
            70..82 if !self.common.is_empty() => self.common_relation(),
            _ => self.table_relation(),
        }
    }

    fn table_relation(&mut self) -> Relation {
        let table = self.table();
        let alias = self.name("t");
        let only = if table.has_children && self.chance(15) { "only " } else { "" };
        let atoms = table.columns.iter().map(|c| Atom::column(&alias, &c.name, c.ty, true)).collect();
        let text = format!("{only}{} as {alias}", table.name);
        let mut relation = named(text.into(), alias, atoms);
        relation.node.fallible = table.fallible;
        relation
    }

    fn common_relation(&mut self) -> Relation {
        let common = self.pick(&self.common).clone();
        self.budget = self.budget.saturating_sub(1);
        let alias = self.name("t");
        let atoms = common.columns.iter().map(|(name, ty)| Atom::column(&alias, name, *ty, false)).collect();
        named(format!("{} as {alias}", common.name).into(), alias, atoms)
    }

    /// A sub-query, which with `left` is LATERAL.
    fn derived(&mut self, outer: &[Atom], left: &[Atom], depth: usize) -> Relation {
        let types: Vec<Type> = (0..1 + self.below(3)).map(|_| *self.pick(COLUMN_TYPES)).collect();
        let visible: Vec<Atom> = left.iter().chain(outer).cloned().collect();
        let query = self.query(&types, visible, depth - 1);
        let alias = self.name("s");
        let columns: Vec<String> = (0..types.len()).map(|i| format!("c{i}")).collect();
        let atoms = columns.iter().zip(&types).map(|(name, ty)| Atom::column(&alias, name, *ty, false)).collect();
        // Names come from the query, where it has any, so that the reducer may drop its columns.
        let names = if query.sql().starts_with("values") { format!("({})", columns.join(", ")) } else { String::new() };
        let head = if left.is_empty() { "(" } else { "lateral (" };
        let node = Node::new(Sort::Relation, vec![head.into(), query.into(), format!(") as {alias}{names}").into()]);
        finish(node, alias, atoms)
    }

    fn values_relation(&mut self) -> Relation {
        let types: Vec<Type> = (0..1 + self.below(3)).map(|_| *self.pick(COLUMN_TYPES)).collect();
        let rows = (0..1 + self.below(4)).map(|_| {
            let items = types.iter().map(|t| self.typed_literal(*t)).collect();
            Node::new(Sort::Other, vec![Part::List(rigid("(", items))])
        });
        let rows = rows.collect();
        let alias = self.name("v");
        let columns: Vec<String> = (0..types.len()).map(|i| format!("c{i}")).collect();
        let atoms = columns.iter().zip(&types).map(|(name, ty)| Atom::column(&alias, name, *ty, false)).collect();
        let tail = format!(") as {alias}({})", columns.join(", "));
        let node = Node::new(Sort::Relation, vec!["(".into(), list("values ", ", ", "", 1, rows), tail.into()]);
        finish(node, alias, atoms)
    }

    fn function(&mut self, left: &[Atom]) -> Relation {
        let alias = self.name("f");
        let usable: Vec<_> = LATERAL_FUNCTIONS.iter().filter(|f| left.iter().any(|a| a.ty == f.1)).collect();
        let (form, argument, columns) = if usable.is_empty() || self.chance(40) {
            let (form, columns) = *self.pick(FUNCTIONS);
            (form, None, columns)
        } else {
            let (form, ty, columns) = **self.pick(&usable);
            let of: Vec<Node> = left.iter().filter(|a| a.ty == ty).map(|a| a.node.clone()).collect();
            (form, Some(self.pick(&of).clone()), columns)
        };
        let argument = argument.map_or_else(String::new, |a| a.sql());
        let text = form.replace("$a", &alias).replace("$1", &argument);
        let atoms = columns.iter().map(|(name, ty)| Atom::column(&alias, name, *ty, false)).collect();
        named(text.into(), alias, atoms)
    }

    fn join(&mut self, outer: &[Atom], before: &[Atom], depth: usize) -> Relation {
        self.budget -= 1;
        let left = self.relation(outer, before, depth);
        let natural = self.chance(3) && self.schema.is_modern;
        let kind = if natural { "natural join" } else { *self.pick(&JOINS) };
        let lateral: Vec<Atom> = match kind {
            "join" | "left join" | "cross join" if self.chance(30) => left.atoms.iter().chain(before).cloned().collect(),
            _ => Vec::new(),
        };
        let right = if !lateral.is_empty() && depth > 0 && self.nesting < 3 {
            if self.chance(35) { self.function(&left.atoms) } else { self.derived(outer, &lateral, depth) }
        } else {
            self.relation(outer, &[], depth)
        };
        let mut atoms = left.atoms.clone();
        atoms.extend(right.atoms.iter().cloned());
        let mut order = left.order;
        order.extend(right.order);
        let mut parts = vec!["(".into(), left.node.into(), format!(" {kind} ").into(), right.node.into()];
        if kind != "cross join" && kind != "natural join" {
            let scope = Scope { atoms: atoms.clone(), outer: outer.to_vec(), ..Scope::default() };
            let by_id = |atoms: &[Atom]| atoms.iter().filter(|a| a.node.sql().ends_with(".id")).count() == 1;
            if by_id(&left.atoms) && by_id(&right.atoms) && self.chance(25) {
                // The column of both sides as one: that of the other side where this one is missing.
                let alias = self.name("j");
                parts.push(format!(" using (id) as {alias}").into());
                atoms.push(Atom::column(&alias, "id", Type::Int4, true));
            } else {
                let condition = self.join_condition(kind, &left.atoms, &right.atoms, &scope, depth);
                parts.extend([" on ".into(), condition.into()]);
            }
        }
        parts.push(")".into());
        Relation { node: Node::new(Sort::Relation, parts), atoms, order }
    }

    fn join_condition(&mut self, kind: &str, left: &[Atom], right: &[Atom], scope: &Scope, depth: usize) -> Node {
        let equal = self.equality(left, right);
        if kind == "full join" {
            // PostgreSQL has FULL JOIN only over conditions that hash or merge.
            let constant = Node::text(Sort::Value(Type::Bool), *self.pick(&["true", "false"]));
            return equal.unwrap_or(constant);
        }
        let condition = match (self.below(20), equal) {
            (0..10, Some(equal)) => equal,
            (10..16, Some(equal)) => {
                let more = self.condition(scope, depth.min(2));
                either(" and ", equal, more)
            }
            (16, Some(equal)) => {
                let more = self.condition(scope, depth.min(1));
                either(" or ", equal, more)
            }
            (17, _) => Node::text(Sort::Value(Type::Bool), *self.pick(&["true", "false"])),
            _ => self.condition(scope, depth.min(2)),
        };
        // In a lateral or correlated query joins depend on the row outside as well.
        if scope.outer.is_empty() || !self.chance(25) {
            return condition;
        }
        match self.equality(&[left, right].concat(), &scope.outer) {
            Some(outside) if self.chance(30) => either(" or ", outside, condition),
            Some(outside) => either(" and ", outside, condition),
            None => condition,
        }
    }

    fn equality(&mut self, left: &[Atom], right: &[Atom]) -> Option<Node> {
        let mut pairs = Vec::new();
        for l in left.iter().filter(|a| a.ty != Type::Record) {
            let matching = right.iter().filter(|r| l.ty.family().contains(&r.ty));
            pairs.extend(matching.map(|r| (l.node.clone(), r.node.clone())));
        }
        if pairs.is_empty() {
            return None;
        }
        let (l, r) = self.pick(&pairs).clone();
        Some(Node::form(Sort::Value(Type::Bool), "($1 = $2)", &[l, r]))
    }
}

fn either(word: &'static str, left: Node, right: Node) -> Node {
    Node::new(Sort::Value(Type::Bool), vec![list("(", word, ")", 1, vec![left, right])])
}

fn named(text: Part, alias: String, atoms: Vec<Atom>) -> Relation {
    finish(Node::new(Sort::Relation, vec![text]), alias, atoms)
}

fn finish(mut node: Node, alias: String, mut atoms: Vec<Atom>) -> Relation {
    let order = atoms.iter().map(|a| Node { sort: Sort::Order(alias.clone()), ..a.node.clone() }).collect();
    atoms.push(Atom::row(&alias));
    node.defines = Some(alias);
    Relation { node, atoms, order }
}
