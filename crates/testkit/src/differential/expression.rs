//! Expressions and conditions.

use super::generator::{Generator, Scope};
use super::operators::{AGGREGATES, Aggregate, OPERATORS};
use super::tree::{Node, Sort, list};
use super::types::Type;

const COMPARISONS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];

impl Generator<'_> {
    /// An expression of a type, `depth` levels deep at most.
    pub fn value(&mut self, ty: Type, scope: &Scope, depth: usize) -> Node {
        if ty == Type::Bool && self.chance(85) {
            return self.condition(scope, depth);
        }
        if depth == 0 || ty == Type::Record {
            return self.leaf(ty, scope);
        }
        if let (Some(inner), true) = (&scope.arguments, self.chance(40))
            && let Some(aggregate) = self.aggregate(ty, inner, depth - 1)
        {
            return aggregate;
        }
        if scope.windows.is_some()
            && self.chance(35)
            && let Some(window) = self.window(ty, scope)
        {
            return window;
        }
        match self.below(100) {
            0..30 => self.leaf(ty, scope),
            30..68 => self.operator(ty, scope, depth),
            68..75 => self.case(ty, scope, depth),
            75..81 => self.several("coalesce(", ty, scope, depth),
            81..86 => {
                let arguments = [self.value(ty, scope, depth - 1), self.leaf(ty, scope)];
                Node::form(Sort::Value(ty), "nullif($1, $2)", &arguments)
            }
            86..90 => {
                let function = *self.pick(&["greatest(", "least("]);
                self.several(function, ty, scope, depth)
            }
            90..97 if self.may_nest() => {
                let query = self.single(ty, scope.visible(), depth - 1);
                Node::form(Sort::Value(ty), "($1)", &[query])
            }
            97..99 if self.may_nest() && ty.element().is_some() => {
                let element = ty.element().unwrap_or(ty);
                let query = self.ordered(&[element], scope.visible(), depth - 1);
                Node::form(Sort::Value(ty), "array($1)", &[query])
            }
            _ => self.leaf(ty, scope),
        }
    }

    pub fn may_nest(&self) -> bool {
        self.budget > 0 && self.nesting < 3
    }

    fn operator(&mut self, ty: Type, scope: &Scope, depth: usize) -> Node {
        let giving: Vec<_> = OPERATORS.iter().filter(|o| o.gives == ty).collect();
        if giving.is_empty() {
            return self.leaf(ty, scope);
        }
        let operator = *self.pick(&giving);
        let arguments: Vec<Node> = operator.takes.iter().map(|t| self.value(*t, scope, depth - 1)).collect();
        Node::form(Sort::Value(ty), operator.form, &arguments).fallible(operator.fallible)
    }

    /// `coalesce(...)`, `greatest(...)`, `least(...)`.
    fn several(&mut self, open: &'static str, ty: Type, scope: &Scope, depth: usize) -> Node {
        let count = 1 + self.below(3);
        let items = (0..count).map(|_| self.value(ty, scope, depth - 1)).collect();
        Node::new(Sort::Value(ty), vec![list(open, ", ", ")", 1, items)])
    }

    fn case(&mut self, ty: Type, scope: &Scope, depth: usize) -> Node {
        let simple = self.chance(30);
        let operand_type = self.some_type(scope);
        let mut parts = vec!["(case".into()];
        if simple {
            parts.extend([" ".into(), self.value(operand_type, scope, depth - 1).into()]);
        }
        let count = 1 + self.below(2);
        let branches = (0..count).map(|_| {
            let when = if simple { self.leaf(operand_type, scope) } else { self.condition(scope, depth - 1) };
            let then = self.value(ty, scope, depth - 1);
            Node::form(Sort::Other, "when $1 then $2", &[when, then])
        });
        let branches = branches.collect();
        parts.push(list(" ", " ", "", 1, branches));
        let otherwise = self.chance(70).then(|| self.value(ty, scope, depth - 1));
        parts.push(list(" else ", "", "", 0, otherwise.into_iter().collect()));
        parts.push(" end)".into());
        Node::new(Sort::Value(ty), parts)
    }

    /// An aggregate with result type `ty`, where there is one.
    pub fn aggregate(&mut self, ty: Type, inner: &Scope, depth: usize) -> Option<Node> {
        let node = self.aggregate_call(ty, inner, depth, |_| true)?;
        if self.chance(20) {
            let filter = self.condition(inner, depth.min(1));
            // The cast of some forms would come before FILTER.
            if !node.sql().contains("::text") || node.sql().ends_with(')') {
                return Some(Node::form(Sort::Value(ty), "$1 filter (where $2)", &[node, filter]));
            }
        }
        Some(node)
    }

    /// The call alone, of one that `allowed` admits.
    pub fn aggregate_call(&mut self, ty: Type, inner: &Scope, depth: usize, allowed: fn(&Aggregate) -> bool) -> Option<Node> {
        // Extremes of these are as young.
        let known = |a: &&Aggregate| self.schema.is_modern || !matches!(a.takes, [Type::Bytea | Type::Pair]);
        let giving: Vec<_> = AGGREGATES.iter().filter(|a| a.gives == ty && allowed(a)).filter(known).collect();
        if giving.is_empty() {
            return None;
        }
        let aggregate = *self.pick(&giving);
        // A separate level: an aggregate over columns of the outer queries would be theirs.
        let local = Scope { atoms: inner.atoms.clone(), ..Scope::default() };
        let mut arguments = Vec::new();
        for ty in aggregate.takes {
            let atoms: Vec<Node> = local.atoms.iter().filter(|a| a.ty == *ty && a.exact).map(|a| a.node.clone()).collect();
            arguments.push(match *ty {
                Type::Float8 | Type::Record if atoms.is_empty() => return None,
                Type::Float8 => self.pick(&atoms).clone(),
                Type::Record => local.atoms.iter().find(|a| a.ty == Type::Record)?.node.clone(),
                ty => self.value(ty, &local, depth.min(1)),
            });
        }
        if !arguments.is_empty() && arguments.iter().all(|a| !refers(a, &local)) {
            return None;
        }
        Some(Node::form(Sort::Value(ty), aggregate.form, &arguments).fallible(aggregate.fallible))
    }

    pub fn condition(&mut self, scope: &Scope, depth: usize) -> Node {
        let bool_type = Sort::Value(Type::Bool);
        if depth == 0 {
            return if self.chance(25) { self.leaf(Type::Bool, scope) } else { self.comparison(scope, 0) };
        }
        let nest = self.may_nest();
        match self.below(100) {
            0..13 => self.connected(" and ", scope, depth),
            13..25 => self.connected(" or ", scope, depth),
            25..33 => {
                let inner = self.condition(scope, depth - 1);
                Node::form(bool_type, "(not $1)", &[inner])
            }
            33..53 => self.comparison(scope, depth - 1),
            53..58 => self.null_test(scope, depth),
            58..62 => {
                let test = *self.pick(&["true", "false", "unknown", "not true", "not false", "not unknown"]);
                let inner = self.condition(scope, depth - 1);
                Node::form(bool_type, &format!("($1 is {test})"), &[inner])
            }
            62..66 => self.between(scope, depth),
            66..71 => self.in_list(scope, depth),
            71..75 => self.any_array(scope, depth),
            75..80 => self.operator(Type::Bool, scope, depth),
            80..84 => self.row_comparison(scope, depth),
            84..86 => self.case(Type::Bool, scope, depth),
            86..88 => self.several("coalesce(", Type::Bool, scope, depth),
            88..92 if nest => {
                let query = self.some_query(scope, depth - 1);
                let form = *self.pick(&["(exists ($1))", "(not exists ($1))"]);
                Node::form(bool_type, form, &[query])
            }
            92..96 if nest => self.in_query(scope, depth),
            96..99 if nest => self.row_in_query(scope, depth),
            _ => self.leaf(Type::Bool, scope),
        }
    }

    fn connected(&mut self, word: &'static str, scope: &Scope, depth: usize) -> Node {
        let count = 2 + self.below(2);
        let items = (0..count).map(|_| self.condition(scope, depth - 1)).collect();
        Node::new(Sort::Value(Type::Bool), vec![list("(", word, ")", 1, items)])
    }

    pub fn comparison(&mut self, scope: &Scope, depth: usize) -> Node {
        let left_type = self.some_type(scope);
        let right_type = if self.chance(75) { left_type } else { *self.pick(left_type.family()) };
        let (left, right) = (self.value_or_leaf(left_type, scope, depth), self.value_or_leaf(right_type, scope, depth));
        let operator = match self.below(10) {
            0..4 => "=",
            4..5 => *self.pick(&["is distinct from", "is not distinct from"]),
            _ => *self.pick(&COMPARISONS),
        };
        Node::form(Sort::Value(Type::Bool), &format!("($1 {operator} $2)"), &[left, right])
    }

    /// Mostly a column, so that conditions are of the kind that plans are made from.
    fn value_or_leaf(&mut self, ty: Type, scope: &Scope, depth: usize) -> Node {
        if depth == 0 || self.chance(60) { self.leaf(ty, scope) } else { self.value(ty, scope, depth) }
    }

    fn null_test(&mut self, scope: &Scope, depth: usize) -> Node {
        let record = scope.atoms.iter().any(|a| a.ty == Type::Record) && self.chance(25);
        let ty = if record { Type::Record } else { self.some_type(scope) };
        let value = self.value_or_leaf(ty, scope, depth - 1);
        let form = *self.pick(&["($1 is null)", "($1 is not null)"]);
        Node::form(Sort::Value(Type::Bool), form, &[value])
    }

    fn between(&mut self, scope: &Scope, depth: usize) -> Node {
        let ty = self.some_type(scope);
        let arguments = [self.value_or_leaf(ty, scope, depth - 1), self.leaf(ty, scope), self.leaf(ty, scope)];
        let form = *self.pick(&["($1 between $2 and $3)", "($1 not between $2 and $3)", "($1 between symmetric $2 and $3)"]);
        Node::form(Sort::Value(Type::Bool), form, &arguments)
    }

    fn in_list(&mut self, scope: &Scope, depth: usize) -> Node {
        let ty = self.some_type(scope);
        let value = self.value_or_leaf(ty, scope, depth - 1);
        let count = if self.chance(5) { 40 } else { 1 + self.below(4) };
        let items = (0..count).map(|_| if self.chance(80) { self.literal(ty) } else { self.leaf(ty, scope) }).collect();
        let open = *self.pick(&[" in (", " not in ("]);
        Node::new(Sort::Value(Type::Bool), vec!["(".into(), value.into(), list(open, ", ", ")", 1, items), ")".into()])
    }

    fn any_array(&mut self, scope: &Scope, depth: usize) -> Node {
        let ty = *self.pick(&[Type::Int4, Type::Int4, Type::Text, Type::Numeric, Type::Mood]);
        let array = ty.array().unwrap_or(Type::IntArray);
        let arguments = [self.value_or_leaf(ty, scope, depth - 1), self.value_or_leaf(array, scope, depth - 1)];
        let (operator, quantifier) = (*self.pick(&COMPARISONS), *self.pick(&["any", "all"]));
        Node::form(Sort::Value(Type::Bool), &format!("($1 {operator} {quantifier} ($2))"), &arguments)
    }

    fn row_comparison(&mut self, scope: &Scope, depth: usize) -> Node {
        let (a, b) = (self.some_type(scope), self.some_type(scope));
        let depth = depth - 1;
        let arguments = [self.leaf(a, scope), self.leaf(b, scope), self.value_or_leaf(a, scope, depth), self.leaf(b, scope)];
        let operator = *self.pick(&["=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from"]);
        let form = match self.below(4) {
            0 => "(($1, $2) in (($3, $4), ($1, $4)))".to_owned(),
            _ => format!("(($1, $2) {operator} ($3, $4))"),
        };
        Node::form(Sort::Value(Type::Bool), &form, &arguments)
    }

    fn in_query(&mut self, scope: &Scope, depth: usize) -> Node {
        let ty = self.some_type(scope);
        let value = self.value_or_leaf(ty, scope, depth - 1);
        let query = self.query(&[ty], scope.visible(), depth - 1);
        let word = match self.below(3) {
            0 => "in",
            1 => "not in",
            _ => {
                let quantifier = *self.pick(&[" any", " all", " some"]);
                let operator = *self.pick(&COMPARISONS);
                return Node::form(Sort::Value(Type::Bool), &format!("($1 {operator}{quantifier} ($2))"), &[value, query]);
            }
        };
        Node::form(Sort::Value(Type::Bool), &format!("($1 {word} ($2))"), &[value, query])
    }

    fn row_in_query(&mut self, scope: &Scope, depth: usize) -> Node {
        let types = [self.some_type(scope), self.some_type(scope)];
        let (left, right) = (self.leaf(types[0], scope), self.leaf(types[1], scope));
        let query = self.query(&types, scope.visible(), depth - 1);
        let word = *self.pick(&["in", "not in", "= any", "= all", "<> all", "< any", ">= all"]);
        Node::form(Sort::Value(Type::Bool), &format!("(($1, $2) {word} ($3))"), &[left, right, query])
    }
}

/// Whether an expression refers to a column of `scope`.
fn refers(node: &Node, scope: &Scope) -> bool {
    let sql = node.sql();
    scope.atoms.iter().any(|a| sql.contains(&a.node.sql()))
}
