//! INSERT, UPDATE, DELETE and MERGE, whose effect does not depend on the order of the rows.

use super::generator::{Atom, BUDGET, Generator, Scope};
use super::query::rigid;
use super::schema::{Column, RandomTable};
use super::tree::{Node, Part, Sort, list, optional};
use super::types::{COLUMN_TYPES, Type};

/// A statement that changes a table.
pub fn change(generator: &mut Generator<'_>) -> Option<Node> {
    let types: Vec<Type> = (0..1 + generator.below(3)).map(|_| *generator.pick(COLUMN_TYPES)).collect();
    let node = if generator.chance(25) { merge(generator)? } else { changing(generator, &types)? };
    // Values may not fit into their columns.
    Some(Node::new(Sort::Statement, vec![node.into()]).fallible(true))
}

/// One that returns columns of these types.
pub fn changing(generator: &mut Generator<'_>, types: &[Type]) -> Option<Node> {
    let table = target(generator, |_| true)?;
    generator.changed.push(table.family.clone());
    let alias = generator.name("t");
    Some(match generator.below(3) {
        0 => insert(generator, &table, &alias, types),
        1 => update(generator, &table, &alias, types),
        _ => delete(generator, &table, &alias, types),
    })
}

/// A table, or a view that stands for one, of a family that nothing here changes yet.
fn target(generator: &mut Generator<'_>, allowed: fn(&RandomTable) -> bool) -> Option<RandomTable> {
    let free = |t: &&RandomTable| (!t.is_view || t.is_simple) && !generator.changed.contains(&t.family) && allowed(t);
    let tables: Vec<&RandomTable> = generator.schema.tables.iter().filter(free).collect();
    tables.get(generator.below(tables.len().max(1))).map(|t| (*t).clone())
}

fn returning(generator: &mut Generator<'_>, table: &RandomTable, alias: &str, types: &[Type]) -> Vec<Part> {
    let mut scope = target_scope(table, alias);
    let budget = generator.budget;
    if generator.chance(30) && generator.schema.is_modern {
        scope.atoms.extend(["old", "new"].iter().flat_map(|version| table.atoms(version)));
        // PostgreSQL 18.6 crashes on some sub-queries beside them: `(old.a, old.b) = any (select ...)` of an INSERT.
        generator.budget = 0;
    }
    let values = types.iter().map(|t| generator.value(*t, &scope, 1)).collect();
    generator.budget = budget;
    vec![" returning ".into(), generator.targets(values)]
}

fn insert(generator: &mut Generator<'_>, table: &RandomTable, alias: &str, types: &[Type]) -> Node {
    let mut columns: Vec<&Column> = table.columns.iter().filter(|c| !c.generated).collect();
    if generator.chance(30) {
        let dropped = generator.below(columns.len());
        if columns[dropped].name != "id" {
            columns.remove(dropped);
        }
    }
    let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
    let head = format!("insert into {} as {alias} ({}) ", table.name, names.join(", "));
    let mut parts: Vec<Part> = vec![head.into()];
    if generator.chance(65) {
        let rows = (0..1 + generator.below(4)).map(|_| {
            let items = columns.iter().map(|c| new_value(generator, c)).collect();
            Node::new(Sort::Other, vec![Part::List(rigid("(", items))])
        });
        parts.push(list("values ", ", ", "", 1, rows.collect()));
    } else {
        let types: Vec<Type> = columns.iter().map(|c| c.ty).collect();
        parts.push(generator.ordered(&types, Vec::new(), 1).into());
    }
    if generator.chance(55) {
        parts.push(on_conflict(generator, table, alias));
    }
    parts.extend(returning(generator, table, alias, types));
    Node::new(Sort::Query, parts)
}

fn new_value(generator: &mut Generator<'_>, column: &Column) -> Node {
    match column.name.as_str() {
        "id" if generator.chance(60) => Node::text(Sort::Value(Type::Int4), (2000 + generator.below(50)).to_string()),
        "id" => Node::text(Sort::Value(Type::Int4), (1 + generator.below(12)).to_string()),
        "ref" if generator.chance(80) => Node::text(Sort::Value(Type::Int4), *generator.pick(&["1", "2", "null"])),
        _ if generator.chance(10) => Node::text(Sort::Value(column.ty), "default"),
        _ => generator.literal(column.ty),
    }
}

fn on_conflict(generator: &mut Generator<'_>, table: &RandomTable, alias: &str) -> Part {
    if !table.has_key || generator.chance(35) {
        return optional("", Some(Node::text(Sort::Other, " on conflict do nothing")));
    }
    let mut scope = target_scope(table, alias);
    scope.atoms.extend(table.atoms("excluded"));
    let set = assignments(generator, table, &scope);
    let filter = generator.chance(30).then(|| generator.condition(&scope, 1));
    Node::new(Sort::Other, vec![" on conflict (id) do update set ".into(), set, optional(" where ", filter)]).into()
}

/// `a = expression, ...`, not of keys: whether these meet on the way depends on the order of rows.
fn assignments(generator: &mut Generator<'_>, table: &RandomTable, scope: &Scope) -> Part {
    let mut columns: Vec<&Column> =
        table.columns.iter().filter(|c| !c.generated && !matches!(c.name.as_str(), "id" | "ref")).collect();
    let mut items = Vec::new();
    while !columns.is_empty() && (items.is_empty() || generator.chance(35)) {
        let column = columns.remove(generator.below(columns.len()));
        if !columns.is_empty() && generator.chance(12) {
            let other = columns.remove(generator.below(columns.len()));
            items.push(row_assignment(generator, column, other, scope));
            continue;
        }
        let value = if generator.chance(8) { Node::text(Sort::Other, "default") } else { generator.value(column.ty, scope, 2) };
        items.push(Node::form(Sort::Other, &format!("{} = $1", column.name), &[value]));
    }
    list("", ", ", "", 1, items)
}

fn row_assignment(generator: &mut Generator<'_>, column: &Column, other: &Column, scope: &Scope) -> Node {
    let target = format!("({}, {})", column.name, other.name);
    if generator.chance(50) && generator.may_nest() {
        let query = generator.single(column.ty, scope.visible(), 1);
        // The second column is the row's own, beside the query's.
        let query = Node::form(Sort::Query, &format!("select ($1), null::{}", other.ty.name()), &[query]);
        return Node::form(Sort::Other, &format!("{target} = ($1)"), &[query]);
    }
    let values = [generator.value(column.ty, scope, 1), generator.value(other.ty, scope, 1)];
    Node::form(Sort::Other, &format!("{target} = row($1, $2)"), &values)
}

fn update(generator: &mut Generator<'_>, table: &RandomTable, alias: &str, types: &[Type]) -> Node {
    let mut scope = target_scope(table, alias);
    let source = if generator.chance(40) { source(generator, table) } else { None };
    let mut conditions = Vec::new();
    let mut from = None;
    if let Some((source, source_alias, column)) = source {
        scope.atoms.extend(source.atoms(&source_alias));
        conditions.push(Node::text(Sort::Other, format!("{alias}.{column} = {source_alias}.id")));
        from = Some(Node::text(Sort::Relation, format!("{} as {source_alias}", source.name)));
    }
    let set = assignments(generator, table, &scope);
    if generator.chance(75) {
        conditions.push(generator.condition(&scope, 2));
    }
    let mut parts = vec![format!("update {} as {alias} set ", table.name).into(), set];
    if let Some(from) = from {
        // Without the join on a key a row would have several new values.
        parts.extend([" from ".into(), from.into()]);
        parts.push(list(" where ", " and ", "", conditions.len().max(1), conditions));
    } else {
        parts.push(list(" where ", " and ", "", 0, conditions));
    }
    parts.extend(returning(generator, table, alias, types));
    Node::new(Sort::Query, parts)
}

/// Another table with a key, and the column that may hold it.
fn source(generator: &mut Generator<'_>, table: &RandomTable) -> Option<(RandomTable, String, String)> {
    let sources: Vec<&RandomTable> = generator.schema.tables.iter().filter(|t| t.has_key && t.name != table.name).collect();
    let source = (*sources.get(generator.below(sources.len().max(1)))?).clone();
    let columns: Vec<&Column> = table.columns.iter().filter(|c| c.ty == Type::Int4).collect();
    let column = columns.get(generator.below(columns.len().max(1)))?.name.clone();
    Some((source, generator.name("s"), column))
}

fn delete(generator: &mut Generator<'_>, table: &RandomTable, alias: &str, types: &[Type]) -> Node {
    let head = format!("delete from {} as {alias}", table.name);
    let mut parts: Vec<Part> = vec![head.into()];
    let mut scope = target_scope(table, alias);
    if generator.chance(40) {
        let (Part::List(mut from), inner) = generator.from(&[], 1) else { return Node::text(Sort::Query, "select 1 as c0") };
        from.open = " using ";
        scope.atoms.extend(inner.atoms);
        parts.push(Part::List(from));
    }
    let filter = generator.chance(90).then(|| generator.condition(&scope, 2));
    parts.push(optional(" where ", filter));
    parts.extend(returning(generator, table, alias, types));
    Node::new(Sort::Query, parts)
}

/// MERGE by keys, so that no row is matched twice.
fn merge(generator: &mut Generator<'_>) -> Option<Node> {
    // Views came with PostgreSQL 17.
    let table = target(generator, if generator.schema.is_modern { |_| true } else { |table| !table.is_view })?;
    let (source, source_alias, _) = source(generator, &table)?;
    let alias = generator.name("t");
    let both = {
        let mut scope = target_scope(&table, &alias);
        scope.atoms.extend(source.atoms(&source_alias));
        scope
    };
    let only_source = target_scope(&source, &source_alias);
    let mut actions = Vec::new();
    let only_target = target_scope(&table, &alias);
    for _ in 0..1 + generator.below(3) {
        let by_source = generator.chance(20) && generator.schema.is_modern;
        let matched = by_source || generator.chance(60);
        let scope = match (by_source, matched) {
            (true, _) => &only_target,
            (_, true) => &both,
            _ => &only_source,
        };
        let filter = if generator.chance(50) { Some(generator.condition(scope, 1)) } else { None };
        let action = match (matched, generator.below(6)) {
            (_, 0) => Node::text(Sort::Other, "do nothing"),
            (true, 1 | 2) => Node::text(Sort::Other, "delete"),
            (true, _) => Node::new(Sort::Other, vec!["update set ".into(), assignments(generator, &table, scope)]),
            (false, _) => merge_insert(generator, &table, &source_alias, &only_source),
        };
        let when = match (by_source, matched) {
            (true, _) => "when not matched by source",
            (_, true) => "when matched",
            _ => "when not matched",
        };
        actions.push(Node::new(Sort::Other, vec![when.into(), optional(" and ", filter), " then ".into(), action.into()]));
    }
    let extra = generator.chance(25).then(|| generator.condition(&both, 1));
    let head =
        format!("merge into {} as {alias} using {} as {source_alias} on {alias}.id = {source_alias}.id", table.name, source.name);
    let mut parts = vec![head.into(), optional(" and ", extra), list(" ", " ", "", 1, actions)];
    if generator.chance(50) && generator.schema.is_modern {
        let types = [*generator.pick(COLUMN_TYPES), *generator.pick(COLUMN_TYPES)];
        parts.push(" returning merge_action() as action, ".into());
        let values = types.iter().map(|t| generator.value(*t, &both, 1)).collect();
        parts.push(generator.targets(values));
    }
    Some(Node::new(Sort::Query, parts))
}

/// Several changes in a row, then a query that sees them.
pub fn script(generator: &mut Generator<'_>) -> Option<Node> {
    let mut items = Vec::new();
    for _ in 0..1 + generator.below(3) {
        items.push(change(generator)?);
        // Each statement sees the changes of those before.
        generator.changed.clear();
    }
    generator.budget = BUDGET;
    items.push(generator.statement());
    Some(Node::new(Sort::Script, vec![list("", "; ", "", 1, items)]))
}

fn merge_insert(generator: &mut Generator<'_>, table: &RandomTable, source_alias: &str, scope: &Scope) -> Node {
    let columns: Vec<&Column> = table.columns.iter().filter(|c| !c.generated && c.name != "ref").collect();
    let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
    let items = columns.iter().map(|c| match c.name.as_str() {
        "id" => Node::text(Sort::Other, format!("{source_alias}.id + 3000")),
        _ => generator.value(c.ty, scope, 1),
    });
    let items = items.collect();
    let head = format!("insert ({}) values ", names.join(", "));
    Node::new(Sort::Other, vec![head.into(), Part::List(rigid("(", items))])
}

fn target_scope(table: &RandomTable, alias: &str) -> Scope {
    let mut atoms = table.atoms(alias);
    atoms.push(Atom::row(alias));
    Scope { atoms, ..Scope::default() }
}
