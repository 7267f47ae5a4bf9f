//! Queries: SELECT with all its clauses, set operations, VALUES, WITH.

use super::change;
use super::generator::{Atom, Common, Generator, Scope};
use super::tree::{List, Literal, Node, Part, Role, Sort, list, optional};
use super::types::{COLUMN_TYPES, Type};

impl Generator<'_> {
    /// A whole statement: a query with WITH, often in a total order, sometimes cut off there.
    pub fn statement(&mut self) -> Node {
        let mut with = Vec::new();
        let mut recursive = "with ";
        if self.chance(25) {
            for _ in 0..1 + self.below(2) {
                let (node, is_recursive) = self.common_query();
                with.push(node);
                if is_recursive {
                    recursive = "with recursive ";
                }
            }
        }
        let types: Vec<Type> = (0..1 + self.below(4)).map(|_| *self.pick(COLUMN_TYPES)).collect();
        let mut query = self.query(&types, Vec::new(), 3);
        if !with.is_empty() {
            let with = List { role: Role::With, open: recursive, separator: ", ", close: " ", least: 0, items: with };
            query.parts.insert(0, Part::List(with));
        }
        if self.chance(50) {
            query = self.in_order(query);
        }
        Node::new(Sort::Statement, vec![query.into()])
    }

    /// A cursor over a query in a total order, moved both ways.
    pub fn cursor(&mut self) -> Node {
        let types: Vec<Type> = (0..1 + self.below(4)).map(|_| *self.pick(COLUMN_TYPES)).collect();
        let query = self.ordered(&types, Vec::new(), 3);
        let moves = "; fetch 3 from c; fetch backward 2 from c; move 1 in c; fetch all from c; fetch prior from c; \
                     fetch absolute 2 from c; fetch relative -1 from c; fetch last from c; close c";
        Node::new(Sort::Statement, vec!["declare c scroll cursor for ".into(), query.into(), moves.into()])
    }

    /// Any number of rows of these types.
    pub fn query(&mut self, types: &[Type], outer: Vec<Atom>, depth: usize) -> Node {
        self.nesting += 1;
        let node = match self.below(20) {
            0..2 if depth > 0 && self.nesting < 3 => self.set_operation(types, outer, depth),
            2 if self.nesting > 1 => self.values(types),
            _ => self.select(types, outer, depth),
        };
        self.nesting -= 1;
        node
    }

    /// For EXISTS: its columns do not matter.
    pub fn some_query(&mut self, scope: &Scope, depth: usize) -> Node {
        let ty = *self.pick(COLUMN_TYPES);
        self.query(&[ty], scope.visible(), depth)
    }

    /// At most one row of one column.
    pub fn single(&mut self, ty: Type, outer: Vec<Atom>, depth: usize) -> Node {
        self.nesting += 1;
        let (from, scope) = self.from(&outer, depth);
        let filter = self.chance(75).then(|| self.condition(&scope, depth));
        let aggregate = if self.chance(60) { self.aggregate(ty, &scope, depth) } else { None };
        let node = match aggregate {
            Some(aggregate) => {
                let having = if self.chance(10) { Some(self.aggregate_condition(&scope)) } else { None };
                let targets = self.targets(vec![aggregate]);
                let parts = vec!["select ".into(), targets, from, optional(" where ", filter), optional(" having ", having)];
                Node::new(Sort::Query, parts)
            }
            None => {
                let value = self.value(ty, &scope, depth.min(2));
                let targets = self.targets(vec![value]);
                let query = Node::new(Sort::Query, vec!["select ".into(), targets, from, optional(" where ", filter)]);
                self.rigid_order(query, " limit 1")
            }
        };
        self.nesting -= 1;
        node
    }

    fn aggregate_condition(&mut self, scope: &Scope) -> Node {
        let groups = Scope { arguments: Some(Box::new(scope.clone())), ..Scope::default() };
        self.condition(&groups, 1)
    }

    /// Rows in a total order, so that an array of them is the same each time.
    pub fn ordered(&mut self, types: &[Type], outer: Vec<Atom>, depth: usize) -> Node {
        self.nesting += 1;
        let query = self.select(types, outer, depth);
        self.nesting -= 1;
        if query.parts.iter().any(is_order) { query } else { self.rigid_order(query, "") }
    }

    /// An order that reducing must not take away.
    fn rigid_order(&mut self, mut query: Node, limit: &str) -> Node {
        query.parts.push(list(" order by ", "", "", 1, vec![Node::new(Sort::Other, vec![Part::Positions])]));
        query.parts.push(limit.into());
        query
    }

    /// Orders a query by all its columns, and perhaps takes a part of its rows.
    fn in_order(&mut self, mut query: Node) -> Node {
        if query.parts.iter().any(is_order) {
            return query;
        }
        // PostgreSQL 18 plans min() and max() with the limit of the query around them, and fails where that is WITH TIES.
        let sql = query.sql();
        let extremes = sql.contains("min(") || sql.contains("max(");
        let number = |least: usize, below: usize| {
            let text = Some((least + self.below(below)).to_string());
            Part::Literal(Literal { ty: Type::Int8, text, bare: true })
        };
        let limit = match self.below(6) {
            0 => vec![" limit ".into(), number(0, 8)],
            1 => vec![" offset ".into(), number(0, 4)],
            2 => vec![" limit ".into(), number(0, 9), " offset ".into(), number(0, 4)],
            3 if !extremes => vec![" fetch first ".into(), number(1, 4), " rows with ties".into()],
            _ => Vec::new(),
        };
        // A parameter in its place may be negative, and a query that is not run does not fail.
        let may_fail = !limit.is_empty();
        let order = Node::new(Sort::Other, [vec![Part::Positions], limit].concat()).fallible(may_fail);
        query.parts.push(list(" order by ", "", "", 0, vec![order]));
        query
    }

    pub fn targets(&mut self, values: Vec<Node>) -> Part {
        let items = values.into_iter().enumerate().map(|(i, value)| Node::form(Sort::Other, &format!("$1 as c{i}"), &[value]));
        Part::List(List { role: Role::Targets, open: "", separator: ", ", close: "", least: 1, items: items.collect() })
    }

    fn select(&mut self, types: &[Type], outer: Vec<Atom>, depth: usize) -> Node {
        let (from, mut scope) = self.from(&outer, depth);
        let filter = self.chance(60).then(|| self.condition(&scope, depth.min(3)));
        let mut parts: Vec<Part> = vec!["select ".into()];
        if self.chance(25) {
            return self.grouped(types, scope, from, filter, depth);
        }
        scope.windows = self.chance(25).then(|| self.total_window(&scope));
        let mut order = None;
        if !scope.order.is_empty() && scope.windows.is_none() && self.chance(8) {
            // DISTINCT ON: which row of equal keys is kept follows from a total order.
            let (key, _) = self.key(&scope);
            parts.push(Node::form(Sort::Other, "distinct on ($1) ", std::slice::from_ref(&key)).into());
            let mut items = vec![Node::form(Sort::Other, "$1", &[key])];
            items.extend(scope.order.iter().cloned());
            order = Some(list(" order by ", ", ", "", 1, items));
        } else if self.chance(12) {
            parts.push(optional("", Some(Node::text(Sort::Other, "distinct "))));
        }
        let mut values: Vec<Node> = types.iter().map(|t| self.value(*t, &scope, depth.min(3))).collect();
        if order.is_none() && self.chance(4) {
            self.expand(types, &scope, &mut values);
        }
        parts.extend([self.targets(values), from, optional(" where ", filter)]);
        let fixed = order.is_some();
        parts.extend(order);
        let node = Node::new(Sort::Query, parts);
        if !fixed && self.nesting > 1 && self.chance(10) { self.in_order(node) } else { node }
    }

    /// Puts functions that return sets into a select list.
    fn expand(&mut self, types: &[Type], scope: &Scope, values: &mut [Node]) {
        for (ty, value) in types.iter().zip(values) {
            let (form, takes) = match ty {
                Type::Int4 => *self.pick(&[("generate_series(1, 3)", Type::Int4), ("unnest($1)", Type::IntArray)]),
                Type::Text => *self.pick(&[("unnest($1)", Type::TextArray), ("string_to_table($1, ' ')", Type::Text)]),
                Type::Jsonb => ("jsonb_path_query($1, '$.*')", Type::Jsonb),
                _ => continue,
            };
            *value = Node::form(Sort::Value(*ty), form, &[self.leaf(takes, scope)]);
        }
    }

    fn grouped(&mut self, types: &[Type], scope: Scope, from: Part, filter: Option<Node>, depth: usize) -> Node {
        let keys: Vec<(Node, Type)> = (0..self.below(4)).map(|_| self.key(&scope)).collect();
        let sets = keys.len() > 1 && self.chance(35);
        let atoms = keys.iter().map(|(node, ty)| Atom {
            node: node.clone(),
            ty: *ty,
            exact: false,
            // Within grouping sets a query below would see the column, not the key.
            plain: !sets && node.parts.len() == 1 && node.children().next().is_none(),
        });
        let order = if sets { Vec::new() } else { keys.iter().map(|(node, _)| node.clone()).collect() };
        let mut groups =
            Scope { atoms: atoms.collect(), outer: scope.outer.clone(), order, windows: None, arguments: Some(Box::new(scope)) };
        let plain_groups = groups.clone();
        groups.windows = (!sets && !keys.is_empty() && self.chance(15)).then(|| self.total_window(&plain_groups));
        let mut values: Vec<Node> = types.iter().map(|t| self.value(*t, &groups, depth.min(2))).collect();
        if sets
            && self.chance(40)
            && let Some(place) = types.iter().position(|t| *t == Type::Int4)
        {
            values[place] = Node::form(Sort::Value(Type::Int4), "grouping($1)", &[keys[0].0.clone()]);
        }
        let having = self.chance(25).then(|| self.condition(&plain_groups, 2));
        let group = self.group_by(&keys, sets);
        let distinct = self.chance(5).then(|| Node::text(Sort::Other, "distinct "));
        let parts = vec![
            "select ".into(),
            optional("", distinct),
            self.targets(values),
            from,
            optional(" where ", filter),
            group,
            optional(" having ", having),
        ];
        Node::new(Sort::Query, parts)
    }

    fn group_by(&mut self, keys: &[(Node, Type)], sets: bool) -> Part {
        let items: Vec<Node> = keys.iter().map(|(node, _)| Node::form(Sort::Other, "$1", std::slice::from_ref(node))).collect();
        if !sets {
            return list(" group by ", ", ", "", 0, items);
        }
        let item = match self.below(6) {
            0 if self.chance(30) => Node::new(Sort::Other, vec![list("distinct rollup (", ", ", ")", 1, items)]),
            0 => Node::new(Sort::Other, vec![list("rollup (", ", ", ")", 1, items)]),
            1 => Node::new(Sort::Other, vec![list("cube (", ", ", ")", 1, items)]),
            2 => Node::form(Sort::Other, "$1, rollup ($2)", &items),
            3 => Node::form(Sort::Other, "rollup (($1, $2), $1)", &items),
            4 => Node::form(Sort::Other, "grouping sets (($1, $2), ($2), ())", &items),
            _ => Node::new(Sort::Other, vec![list("grouping sets (", ", ", ")", 1, items)]),
        };
        let mut items_left =
            if item.sql().starts_with("grouping") || keys.len() < 3 { Vec::new() } else { vec![keys[2].0.clone()] };
        items_left.insert(0, item);
        list(" group by ", ", ", "", 0, items_left)
    }

    fn set_operation(&mut self, types: &[Type], outer: Vec<Atom>, depth: usize) -> Node {
        let word = *self.pick(&[" union ", " union all ", " intersect ", " intersect all ", " except ", " except all "]);
        let left = self.select(types, outer.clone(), depth - 1);
        let right = self.query(types, outer.clone(), depth - 1);
        let mut parts = vec!["(".into(), left.into(), format!("){word}(").into(), right.into(), ")".into()];
        if self.chance(15) {
            let word = *self.pick(&[" union ", " union all ", " intersect ", " except "]);
            let third = self.select(types, outer, depth - 1);
            parts.extend([format!("{word}(").into(), third.into(), ")".into()]);
        }
        Node::new(Sort::Query, parts)
    }

    fn values(&mut self, types: &[Type]) -> Node {
        let rows = (0..1 + self.below(4)).map(|_| {
            let items = types.iter().map(|t| self.typed_literal(*t)).collect();
            Node::new(Sort::Other, vec![Part::List(rigid("(", items))])
        });
        Node::new(Sort::Query, vec![list("values ", ", ", "", 1, rows.collect())])
    }

    /// Columns of VALUES take the type of their literals.
    pub fn typed_literal(&mut self, ty: Type) -> Node {
        let mut node = self.literal(ty);
        if let Some(Part::Literal(literal)) = node.parts.first_mut() {
            literal.bare = false;
        }
        node
    }

    fn common_query(&mut self) -> (Node, bool) {
        let name = self.name("w");
        if self.chance(25) {
            let node = self.recursive(&name);
            return (node, true);
        }
        let types: Vec<Type> = (0..1 + self.below(3)).map(|_| *self.pick(COLUMN_TYPES)).collect();
        let query = if self.chance(20) { change::changing(self, &types) } else { None };
        let changes = query.is_some();
        let query = match query {
            Some(query) => query,
            None => self.query(&types, Vec::new(), 2),
        };
        let hint = if changes { "" } else { *self.pick(&["", "", "materialized ", "not materialized "]) };
        let columns: Vec<String> = (0..types.len()).map(|i| format!("c{i}")).collect();
        let head = format!("{name}({}) as {hint}(", columns.join(", "));
        self.common.push(Common { name, columns: columns.into_iter().zip(types).collect() });
        (Node::new(Sort::Other, vec![head.into(), query.into(), ")".into()]), false)
    }

    /// A recursive query, which ends because a counter does.
    fn recursive(&mut self, name: &str) -> Node {
        let ty = *self.pick(&[Type::Int4, Type::Text, Type::Numeric, Type::Date, Type::IntArray]);
        let start = self.query(&[ty], Vec::new(), 1);
        let alias = self.name("r");
        let atoms = vec![Atom::column(&alias, "n", Type::Int4, false), Atom::column(&alias, "x", ty, false)];
        let scope = Scope { atoms, ..Scope::default() };
        let step = self.value(ty, &scope, 1);
        let filter = self.chance(40).then(|| self.condition(&scope, 1));
        let all = *self.pick(&["union", "union all"]);
        let cast = ty.name();
        let parts = vec![
            format!("{name}(n, x) as (select 1, s.c0::{cast} from (").into(),
            start.into(),
            format!(") s(c0) {all} select {alias}.n + 1, (").into(),
            step.into(),
            format!(")::{cast} from {name} {alias} where {alias}.n < {}", 2 + self.below(3)).into(),
            optional(" and ", filter),
            ")".into(),
        ];
        self.common.push(Common { name: name.to_owned(), columns: vec![("n".to_owned(), Type::Int4), ("x".to_owned(), ty)] });
        Node::new(Sort::Other, parts)
    }
}

/// A list of which no item may be removed.
pub fn rigid(open: &'static str, items: Vec<Node>) -> List {
    List { role: Role::Rigid, open, separator: ", ", close: ")", least: items.len(), items }
}

fn is_order(part: &Part) -> bool {
    matches!(part, Part::List(list) if list.open == " order by ")
}
