//! Tables with rows, indexes, constraints, partitions and children, and views over them.

use super::generator::{Atom, Generator, Scope};
use super::tree::Node;
use super::types::{COLUMN_TYPES, CREATED_TYPES, Type};

#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub ty: Type,
    pub generated: bool,
    pub not_null: bool,
}

#[derive(Clone, Debug)]
pub struct RandomTable {
    pub name: String,
    pub columns: Vec<Column>,
    /// The part of a statement's budget that a scan of it uses.
    pub cost: usize,
    pub has_children: bool,
    /// The unique column `id` exists, and covers all rows.
    pub has_key: bool,
    pub is_view: bool,
    /// A view that may be changed.
    pub is_simple: bool,
    /// Tables of one family reference each other, or are views of each other: a change of one may reach another.
    pub family: String,
    /// Reading it may raise a data error.
    pub fallible: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// PostgreSQL is version 18, with the features of it and the two before.
    pub is_modern: bool,
    pub tables: Vec<RandomTable>,
}

/// A statement that sets the schema up, and the object that exists when it succeeds.
pub struct Step {
    pub sql: String,
    pub table: Option<RandomTable>,
}

impl Step {
    pub fn new(sql: impl Into<String>) -> Step {
        Step { sql: sql.into(), table: None }
    }
}

impl RandomTable {
    pub fn column_of(&self, ty: Type) -> Option<&Column> {
        self.columns.iter().find(|c| c.ty == ty && !c.generated)
    }

    pub fn atoms(&self, alias: &str) -> Vec<Atom> {
        self.columns.iter().map(|c| Atom::column(alias, &c.name, c.ty, true)).collect()
    }
}

pub fn types() -> Vec<Step> {
    CREATED_TYPES.iter().map(|sql| Step::new(*sql)).collect()
}

/// The steps of one table. Constraints that its rows do not meet fail, on every server.
pub fn table_steps(generator: &mut Generator<'_>, number: usize) -> Vec<Step> {
    let name = format!("t{number}");
    let mut columns = vec![plain("id", Type::Int4)];
    for i in 0..2 + generator.below(5) {
        let not_null = generator.chance(12);
        columns.push(Column { not_null, ..plain(&format!("a{i}"), *generator.pick(COLUMN_TYPES)) });
    }
    if generator.chance(25) {
        columns.push(Column { generated: true, ..plain("gen", Type::Int4) });
    }
    let mut parents = generator.schema.tables.iter().filter(|t| t.has_key && !t.is_view && t.cost == 1);
    let parent = parents.next_back().map(|t| (t.name.clone(), t.family.clone())).filter(|_| generator.chance(40));
    let partition = if generator.chance(25) { partitions(generator, &name, &columns) } else { None };
    // Melba has no foreign keys of partitioned tables.
    let (parent, family) = parent.filter(|_| partition.is_none()).unzip();
    if parent.is_some() {
        columns.push(plain("ref", Type::Int4));
    }
    let many = generator.chance(15);
    let mut table = RandomTable {
        name: name.clone(),
        columns,
        cost: if many { 3 } else { 1 },
        has_children: partition.is_some(),
        has_key: partition.is_none() && generator.chance(75),
        is_view: false,
        is_simple: false,
        family: family.unwrap_or_else(|| name.clone()),
        fallible: false,
    };
    let mut steps = vec![create(generator, &table, parent.as_deref(), partition.as_ref().map(|(by, _)| by.as_str()))];
    let is_partitioned = partition.is_some();
    steps.extend(partition.into_iter().flat_map(|(_, parts)| parts).map(Step::new));
    if !is_partitioned && parent.is_none() && generator.chance(15) {
        table.has_children = true;
        table.has_key = false;
        steps.push(Step::new(format!("create table {name}_child (extra text) inherits ({name})")));
        steps.push(Step::new(rows(generator, &table, &format!("{name}_child"), 4, 500)));
    }
    let count = [0, 1, 3, 6, 8, 12, 14][generator.below(7)];
    steps.push(Step::new(if many { series(generator, &table) } else { rows(generator, &table, &name, count, 0) }));
    for _ in 0..generator.below(4) {
        steps.push(index(generator, &table));
    }
    if generator.chance(30) {
        let check = check(generator, &table);
        steps.push(Step::new(format!("alter table {name} add check {check}")));
    }
    if let Some(last) = steps.first_mut() {
        last.table = Some(table);
    }
    steps
}

fn create(generator: &mut Generator<'_>, table: &RandomTable, parent: Option<&str>, partition: Option<&str>) -> Step {
    let columns = table.columns.iter().map(|column| {
        let tail = match column.name.as_str() {
            "id" if table.has_key => " primary key".to_owned(),
            "ref" => {
                let action = *generator.pick(&["cascade", "set null", "restrict", "no action"]);
                format!(" references {} on delete {action} on update cascade", parent.unwrap_or(&table.name))
            }
            "gen" => " generated always as (coalesce(id % 7, -1)) stored".to_owned(),
            _ if generator.chance(8) => format!(" default {}", generator.literal(column.ty).sql()),
            _ => String::new(),
        };
        let not_null = if column.not_null { " not null" } else { "" };
        format!("{} {}{tail}{not_null}", column.name, column.ty.column())
    });
    let columns: Vec<String> = columns.collect();
    let partition = partition.map_or_else(String::new, |by| format!(" partition by {by}"));
    let kind = if partition.is_empty() && parent.is_none() && generator.chance(10) { "unlogged table" } else { "table" };
    Step::new(format!("create {kind} {} ({}){partition}", table.name, columns.join(", ")))
}

/// How a table is partitioned, and the statements that make its partitions; every row has one.
fn partitions(generator: &mut Generator<'_>, name: &str, columns: &[Column]) -> Option<(String, Vec<String>)> {
    let column = columns.iter().find(|c| matches!(c.ty, Type::Text | Type::Date | Type::Bool | Type::Mood) && !c.generated);
    let part = |i: usize, bound: &str| format!("create table {name}_p{i} partition of {name} {bound}");
    let by_id = |method: &str| format!("{method} (id)");
    match (generator.below(4), column) {
        (0, Some(c)) if c.ty == Type::Text => Some((
            format!("list ({})", c.name),
            vec![part(0, "for values in ('a', 'b', null)"), part(1, "for values in ('foo', 'ab')"), part(2, "default")],
        )),
        (0, Some(c)) if c.ty == Type::Bool => {
            Some((format!("list ({})", c.name), vec![part(0, "for values in (true)"), part(1, "for values in (false, null)")]))
        }
        (0 | 1, Some(c)) if c.ty == Type::Date => Some((
            format!("range ({})", c.name),
            vec![
                part(0, "for values from (minvalue) to ('2000-01-01')"),
                part(1, "for values from ('2000-01-01') to ('2024-03-01')"),
                part(2, "default"),
            ],
        )),
        (1, _) => {
            Some((by_id("hash"), (0..3).map(|i| part(i, &format!("for values with (modulus 3, remainder {i})"))).collect()))
        }
        (2, _) => Some((
            by_id("range"),
            vec![
                part(0, "for values from (minvalue) to (3)"),
                part(1, "for values from (3) to (8) partition by list (id)"),
                format!("create table {name}_p1a partition of {name}_p1 for values in (3, 4, 5)"),
                format!("create table {name}_p1b partition of {name}_p1 default"),
                part(2, "default"),
            ],
        )),
        _ => Some((by_id("list"), vec![part(0, "for values in (1, 2, 3)"), part(1, "for values in (4, 5)"), part(2, "default")])),
    }
}

fn rows(generator: &mut Generator<'_>, table: &RandomTable, into: &str, count: usize, start: usize) -> String {
    let columns: Vec<&Column> = table.columns.iter().filter(|c| !c.generated).collect();
    let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
    if count == 0 {
        return format!("insert into {into} ({}) select {} where false", names.join(", "), vec!["null"; names.len()].join(", "));
    }
    let rows = (1..=count).map(|row| {
        let values = columns.iter().map(|c| match c.name.as_str() {
            "id" => (start + row).to_string(),
            // Parents have the ids from 1 on; not all have this many.
            "ref" => ["null", "1", "1", "2"][generator.below(4)].to_owned(),
            _ if !c.not_null && generator.chance(18) => "null".to_owned(),
            _ => format!("'{}'", generator.pick(c.ty.values()).replace('\'', "''")),
        });
        format!("({})", values.collect::<Vec<_>>().join(", "))
    });
    let rows: Vec<String> = rows.collect();
    format!("insert into {into} ({}) values\n  {}", names.join(", "), rows.join(",\n  "))
}

/// Rows enough for several batches and runs.
fn series(generator: &mut Generator<'_>, table: &RandomTable) -> String {
    let columns: Vec<&Column> = table.columns.iter().filter(|c| !c.generated).collect();
    let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
    let values = columns.iter().map(|c| match c.name.as_str() {
        "id" => "g".to_owned(),
        "ref" => "null".to_owned(),
        _ if !c.not_null && generator.chance(50) => {
            format!("case when g % {} > 0 then {} end", 2 + generator.below(6), c.ty.series())
        }
        _ => c.ty.series().to_owned(),
    });
    let values: Vec<String> = values.collect();
    // The largest take several segments and row groups.
    let count = *generator.pick(&[150, 400, 400, 1100, 1100, 5000]);
    format!("insert into {} ({}) select {} from generate_series(1, {count}) g", table.name, names.join(", "), values.join(", "))
}

fn index(generator: &mut Generator<'_>, table: &RandomTable) -> Step {
    let name = &table.name;
    let column = &generator.pick(&table.columns).name;
    let other = &generator.pick(&table.columns).name;
    let text = table.column_of(Type::Text).map(|c| c.name.as_str());
    let sql = match (generator.below(10), text) {
        (0, _) => format!("create unique index on {name} ({column}, {other})"),
        (1, Some(text)) => format!("create index on {name} (lower({text}), {column} desc)"),
        (2, _) => format!("create index on {name} ((id % 3), {column})"),
        (3, _) => format!("create index on {name} ({column}) where {other} is not null"),
        (4, _) if generator.chance(50) => format!("alter table {name} add unique nulls not distinct (id, {column})"),
        (4, _) => format!("create index on {name} ({column}) include ({other})"),
        (5, _) => format!("create index on {name} ({column} desc nulls last, {other})"),
        (6, _) => format!("create index on {name} ({column}) where id > 4"),
        (8, _) => format!("create index on {name} using hash ({column})"),
        (7, Some(text)) => format!("create unique index on {name} ({text}) where {column} is null"),
        _ => format!("create index on {name} ({column})"),
    };
    Step::new(sql)
}

/// An updatable view of one table.
pub fn simple_view_step(generator: &mut Generator<'_>, number: usize) -> Option<Step> {
    let tables: Vec<&RandomTable> =
        generator.schema.tables.iter().filter(|t| !t.is_view && !t.has_children && t.cost == 1).collect();
    let table = (*tables.get(generator.below(tables.len().max(1)))?).clone();
    let filter = generator.chance(60).then(|| format!(" where {}", check(generator, &table)));
    let columns: Vec<Column> = table.columns.iter().filter(|c| c.name == "id" || generator.chance(80)).cloned().collect();
    let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
    let name = format!("v{number}");
    let sql = format!("create view {name} as select {} from {}{}", names.join(", "), table.name, filter.unwrap_or_default());
    let view = RandomTable { name, columns, has_key: false, is_view: true, is_simple: true, fallible: true, ..table.clone() };
    Some(Step { sql, table: Some(view) })
}

fn check(generator: &mut Generator<'_>, table: &RandomTable) -> String {
    let atoms =
        table.columns.iter().map(|c| Atom { node: Node::text(super::tree::Sort::Value(c.ty), &c.name), ..column_atom(c) });
    let scope = Scope { atoms: atoms.collect(), ..Scope::default() };
    let budget = std::mem::take(&mut generator.budget);
    let condition = generator.condition(&scope, 2);
    generator.budget = budget;
    format!("({})", condition.sql())
}

/// A view: over anything a query may have.
pub fn view_step(generator: &mut Generator<'_>, number: usize) -> Step {
    let types: Vec<Type> = (0..2 + generator.below(3)).map(|_| *generator.pick(COLUMN_TYPES)).collect();
    let query = generator.query(&types, Vec::new(), 2);
    let name = format!("v{number}");
    let columns = types.iter().enumerate().map(|(i, ty)| plain(&format!("c{i}"), *ty));
    let columns: Vec<Column> = columns.collect();
    let kind = if generator.chance(15) { "materialized view" } else { "view" };
    let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
    let sql = format!("create {kind} {name} ({}) as {}", names.join(", "), query.sql());
    let table = RandomTable {
        name,
        columns,
        cost: 2,
        has_children: false,
        has_key: false,
        is_view: true,
        is_simple: false,
        family: String::new(),
        fallible: query.any(&|n| n.fallible),
    };
    Step { sql, table: Some(table) }
}

fn plain(name: &str, ty: Type) -> Column {
    Column { name: name.to_owned(), ty, generated: false, not_null: false }
}

fn column_atom(column: &Column) -> Atom {
    Atom::column("", &column.name, column.ty, true)
}
