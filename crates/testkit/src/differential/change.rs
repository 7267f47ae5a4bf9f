//! INSERT, UPDATE, DELETE and MERGE, whose effect does not depend on the order of the rows.

use super::generator::{Atom, BUDGET, Generator, Scope};
use super::query::rigid;
use super::schema::{Column, Table};
use super::tree::{Node, Part, Sort, list, optional};
use super::types::{COLUMN_TYPES, Type};

impl Generator<'_> {
    /// A statement that changes a table.
    pub fn change(&mut self) -> Option<Node> {
        let types: Vec<Type> = (0..1 + self.below(3)).map(|_| *self.pick(COLUMN_TYPES)).collect();
        let node = if self.chance(25) { self.merge()? } else { self.changing(&types)? };
        // Values may not fit into their columns.
        Some(Node::new(Sort::Statement, vec![node.into()]).fallible(true))
    }

    /// One that returns columns of these types.
    pub fn changing(&mut self, types: &[Type]) -> Option<Node> {
        let table = self.target(|_| true)?;
        self.changed.push(table.family.clone());
        let alias = self.name("t");
        Some(match self.below(3) {
            0 => self.insert(&table, &alias, types),
            1 => self.update(&table, &alias, types),
            _ => self.delete(&table, &alias, types),
        })
    }

    /// A table, or a view that stands for one, of a family that nothing here changes yet.
    fn target(&mut self, allowed: fn(&Table) -> bool) -> Option<Table> {
        let free = |t: &&Table| (!t.is_view || t.is_simple) && !self.changed.contains(&t.family) && allowed(t);
        let tables: Vec<&Table> = self.schema.tables.iter().filter(free).collect();
        tables.get(self.below(tables.len().max(1))).map(|t| (*t).clone())
    }

    fn returning(&mut self, table: &Table, alias: &str, types: &[Type]) -> Vec<Part> {
        let mut scope = target_scope(table, alias);
        let budget = self.budget;
        if self.chance(30) && self.schema.is_modern {
            scope.atoms.extend(["old", "new"].iter().flat_map(|version| table.atoms(version)));
            // PostgreSQL 18.6 crashes on some sub-queries beside them: `(old.a, old.b) = any (select ...)` of an INSERT.
            self.budget = 0;
        }
        let values = types.iter().map(|t| self.value(*t, &scope, 1)).collect();
        self.budget = budget;
        vec![" returning ".into(), self.targets(values)]
    }

    fn insert(&mut self, table: &Table, alias: &str, types: &[Type]) -> Node {
        let mut columns: Vec<&Column> = table.columns.iter().filter(|c| !c.generated).collect();
        if self.chance(30) {
            let dropped = self.below(columns.len());
            if columns[dropped].name != "id" {
                columns.remove(dropped);
            }
        }
        let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
        let head = format!("insert into {} as {alias} ({}) ", table.name, names.join(", "));
        let mut parts: Vec<Part> = vec![head.into()];
        if self.chance(65) {
            let rows = (0..1 + self.below(4)).map(|_| {
                let items = columns.iter().map(|c| self.new_value(c)).collect();
                Node::new(Sort::Other, vec![Part::List(rigid("(", items))])
            });
            parts.push(list("values ", ", ", "", 1, rows.collect()));
        } else {
            let types: Vec<Type> = columns.iter().map(|c| c.ty).collect();
            parts.push(self.ordered(&types, Vec::new(), 1).into());
        }
        if self.chance(55) {
            parts.push(self.on_conflict(table, alias));
        }
        parts.extend(self.returning(table, alias, types));
        Node::new(Sort::Query, parts)
    }

    fn new_value(&mut self, column: &Column) -> Node {
        match column.name.as_str() {
            "id" if self.chance(60) => Node::text(Sort::Value(Type::Int4), (2000 + self.below(50)).to_string()),
            "id" => Node::text(Sort::Value(Type::Int4), (1 + self.below(12)).to_string()),
            "ref" if self.chance(80) => Node::text(Sort::Value(Type::Int4), *self.pick(&["1", "2", "null"])),
            _ if self.chance(10) => Node::text(Sort::Value(column.ty), "default"),
            _ => self.literal(column.ty),
        }
    }

    fn on_conflict(&mut self, table: &Table, alias: &str) -> Part {
        if !table.has_key || self.chance(35) {
            return optional("", Some(Node::text(Sort::Other, " on conflict do nothing")));
        }
        let mut scope = target_scope(table, alias);
        scope.atoms.extend(table.atoms("excluded"));
        let set = self.assignments(table, &scope);
        let filter = self.chance(30).then(|| self.condition(&scope, 1));
        Node::new(Sort::Other, vec![" on conflict (id) do update set ".into(), set, optional(" where ", filter)]).into()
    }

    /// `a = expression, ...`, not of keys: whether these meet on the way depends on the order of rows.
    fn assignments(&mut self, table: &Table, scope: &Scope) -> Part {
        let mut columns: Vec<&Column> =
            table.columns.iter().filter(|c| !c.generated && !matches!(c.name.as_str(), "id" | "ref")).collect();
        let mut items = Vec::new();
        while !columns.is_empty() && (items.is_empty() || self.chance(35)) {
            let column = columns.remove(self.below(columns.len()));
            if !columns.is_empty() && self.chance(12) {
                let other = columns.remove(self.below(columns.len()));
                items.push(self.row_assignment(column, other, scope));
                continue;
            }
            let value = if self.chance(8) { Node::text(Sort::Other, "default") } else { self.value(column.ty, scope, 2) };
            items.push(Node::form(Sort::Other, &format!("{} = $1", column.name), &[value]));
        }
        list("", ", ", "", 1, items)
    }

    fn row_assignment(&mut self, column: &Column, other: &Column, scope: &Scope) -> Node {
        let target = format!("({}, {})", column.name, other.name);
        if self.chance(50) && self.may_nest() {
            let query = self.single(column.ty, scope.visible(), 1);
            // The second column is the row's own, beside the query's.
            let query = Node::form(Sort::Query, &format!("select ($1), null::{}", other.ty.name()), &[query]);
            return Node::form(Sort::Other, &format!("{target} = ($1)"), &[query]);
        }
        let values = [self.value(column.ty, scope, 1), self.value(other.ty, scope, 1)];
        Node::form(Sort::Other, &format!("{target} = row($1, $2)"), &values)
    }

    fn update(&mut self, table: &Table, alias: &str, types: &[Type]) -> Node {
        let mut scope = target_scope(table, alias);
        let source = if self.chance(40) { self.source(table) } else { None };
        let mut conditions = Vec::new();
        let mut from = None;
        if let Some((source, source_alias, column)) = source {
            scope.atoms.extend(source.atoms(&source_alias));
            conditions.push(Node::text(Sort::Other, format!("{alias}.{column} = {source_alias}.id")));
            from = Some(Node::text(Sort::Relation, format!("{} as {source_alias}", source.name)));
        }
        let set = self.assignments(table, &scope);
        if self.chance(75) {
            conditions.push(self.condition(&scope, 2));
        }
        let mut parts = vec![format!("update {} as {alias} set ", table.name).into(), set];
        if let Some(from) = from {
            // Without the join on a key a row would have several new values.
            parts.extend([" from ".into(), from.into()]);
            parts.push(list(" where ", " and ", "", conditions.len().max(1), conditions));
        } else {
            parts.push(list(" where ", " and ", "", 0, conditions));
        }
        parts.extend(self.returning(table, alias, types));
        Node::new(Sort::Query, parts)
    }

    /// Another table with a key, and the column that may hold it.
    fn source(&mut self, table: &Table) -> Option<(Table, String, String)> {
        let sources: Vec<&Table> = self.schema.tables.iter().filter(|t| t.has_key && t.name != table.name).collect();
        let source = (*sources.get(self.below(sources.len().max(1)))?).clone();
        let columns: Vec<&Column> = table.columns.iter().filter(|c| c.ty == Type::Int4).collect();
        let column = columns.get(self.below(columns.len().max(1)))?.name.clone();
        Some((source, self.name("s"), column))
    }

    fn delete(&mut self, table: &Table, alias: &str, types: &[Type]) -> Node {
        let head = format!("delete from {} as {alias}", table.name);
        let mut parts: Vec<Part> = vec![head.into()];
        let mut scope = target_scope(table, alias);
        if self.chance(40) {
            let (Part::List(mut from), inner) = self.from(&[], 1) else { return Node::text(Sort::Query, "select 1 as c0") };
            from.open = " using ";
            scope.atoms.extend(inner.atoms);
            parts.push(Part::List(from));
        }
        let filter = self.chance(90).then(|| self.condition(&scope, 2));
        parts.push(optional(" where ", filter));
        parts.extend(self.returning(table, alias, types));
        Node::new(Sort::Query, parts)
    }

    /// MERGE by keys, so that no row is matched twice.
    fn merge(&mut self) -> Option<Node> {
        // Views came with PostgreSQL 17.
        let table = self.target(if self.schema.is_modern { |_| true } else { |table| !table.is_view })?;
        let (source, source_alias, _) = self.source(&table)?;
        let alias = self.name("t");
        let both = {
            let mut scope = target_scope(&table, &alias);
            scope.atoms.extend(source.atoms(&source_alias));
            scope
        };
        let only_source = target_scope(&source, &source_alias);
        let mut actions = Vec::new();
        let only_target = target_scope(&table, &alias);
        for _ in 0..1 + self.below(3) {
            let by_source = self.chance(20) && self.schema.is_modern;
            let matched = by_source || self.chance(60);
            let scope = match (by_source, matched) {
                (true, _) => &only_target,
                (_, true) => &both,
                _ => &only_source,
            };
            let filter = if self.chance(50) { Some(self.condition(scope, 1)) } else { None };
            let action = match (matched, self.below(6)) {
                (_, 0) => Node::text(Sort::Other, "do nothing"),
                (true, 1 | 2) => Node::text(Sort::Other, "delete"),
                (true, _) => Node::new(Sort::Other, vec!["update set ".into(), self.assignments(&table, scope)]),
                (false, _) => self.merge_insert(&table, &source_alias, &only_source),
            };
            let when = match (by_source, matched) {
                (true, _) => "when not matched by source",
                (_, true) => "when matched",
                _ => "when not matched",
            };
            actions.push(Node::new(Sort::Other, vec![when.into(), optional(" and ", filter), " then ".into(), action.into()]));
        }
        let extra = self.chance(25).then(|| self.condition(&both, 1));
        let head = format!(
            "merge into {} as {alias} using {} as {source_alias} on {alias}.id = {source_alias}.id",
            table.name, source.name
        );
        let mut parts = vec![head.into(), optional(" and ", extra), list(" ", " ", "", 1, actions)];
        if self.chance(50) && self.schema.is_modern {
            let types = [*self.pick(COLUMN_TYPES), *self.pick(COLUMN_TYPES)];
            parts.push(" returning merge_action() as action, ".into());
            let values = types.iter().map(|t| self.value(*t, &both, 1)).collect();
            parts.push(self.targets(values));
        }
        Some(Node::new(Sort::Query, parts))
    }

    /// Several changes in a row, then a query that sees them.
    pub fn script(&mut self) -> Option<Node> {
        let mut items = Vec::new();
        for _ in 0..1 + self.below(3) {
            items.push(self.change()?);
            // Each statement sees the changes of those before.
            self.changed.clear();
        }
        self.budget = BUDGET;
        items.push(self.statement());
        Some(Node::new(Sort::Script, vec![list("", "; ", "", 1, items)]))
    }

    fn merge_insert(&mut self, table: &Table, source_alias: &str, scope: &Scope) -> Node {
        let columns: Vec<&Column> = table.columns.iter().filter(|c| !c.generated && c.name != "ref").collect();
        let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
        let items = columns.iter().map(|c| match c.name.as_str() {
            "id" => Node::text(Sort::Other, format!("{source_alias}.id + 3000")),
            _ => self.value(c.ty, scope, 1),
        });
        let items = items.collect();
        let head = format!("insert ({}) values ", names.join(", "));
        Node::new(Sort::Other, vec![head.into(), Part::List(rigid("(", items))])
    }
}

fn target_scope(table: &Table, alias: &str) -> Scope {
    let mut atoms = table.atoms(alias);
    atoms.push(Atom::row(alias));
    Scope { atoms, ..Scope::default() }
}
