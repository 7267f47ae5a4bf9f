//! A transaction's operations, as statements and as changes of the model.

use crate::state::{State, Table, object_oid, table_name};

/// A statement, and the error that it ends with on purpose.
#[derive(Clone, Debug)]
pub struct Statement {
    pub text: String,
    pub refused: Option<&'static str>,
}

impl Statement {
    pub(crate) fn new(text: String) -> Statement {
        Statement { text, refused: None }
    }
}

/// A change of the session's own data, except for transfers.
#[derive(Clone, Debug)]
pub enum Operation {
    PutParent(i32),
    /// Its children are deleted, too.
    DropParent(i32),
    /// Inserts a child, or changes its parent and note.
    PutChild {
        key: i32,
        parent: i32,
        note: String,
    },
    DropChild(i32),
    Transfer {
        from: i32,
        to: i32,
        amount: i64,
    },
    CreateTable(u32),
    RenameTable {
        from: u32,
        to: u32,
    },
    AddColumn(u32),
    CreateIndex(u32),
    DropIndex(u32),
    Truncate(u32),
    DropTable(u32),
    PutRow {
        table: u32,
        id: i32,
        value: String,
    },
    CreateObject(u32),
    /// The bytes are a repetition of one value.
    PutObject {
        object: u32,
        offset: usize,
        bytes: usize,
        value: u8,
    },
    DropObject(u32),
    /// A row of the unlogged table.
    Scratch(i32),
    /// Within a savepoint that is rolled back.
    Undone(Vec<Operation>),
    /// One of `REFUSED`.
    Refused(usize),
}

/// Statements against constraints, with their errors.
pub(crate) const REFUSED: [(&str, &str); 6] = [
    ("insert into child (parent, session, k, note) values (-1, 0, -1, 'x')", "23503"),
    ("insert into child (parent, session, k, note) values (null, 0, -1, 'x')", "23502"),
    ("insert into parent (session, k) values (-1, -1), (-1, -1)", "23505"),
    ("insert into account values (-1, -1)", "23514"),
    ("create table account (id int)", "42P07"),
    ("update account set id = 1", "23505"),
];

impl Operation {
    /// Its statements in a session's transaction.
    pub fn statements(&self, session: u32) -> Vec<Statement> {
        let own = |table: &u32| table_name(session, *table);
        let oid = |object: &u32| object_oid(session, *object);
        let one = match self {
            Operation::PutParent(key) => format!("insert into parent (session, k) values ({session}, {key})"),
            Operation::DropParent(key) => format!("delete from parent where session = {session} and k = {key}"),
            Operation::PutChild { key, parent, note } => format!(
                "insert into child (parent, session, k, note) \
                 select id, {session}, {key}, '{note}' from parent where session = {session} and k = {parent} \
                 on conflict (session, k) do update set parent = excluded.parent, note = excluded.note"
            ),
            Operation::DropChild(key) => format!("delete from child where session = {session} and k = {key}"),
            Operation::Transfer { from, to, amount } => format!(
                "update account set balance = balance + case id when {from} then -{amount} else {amount} end \
                 where id in ({from}, {to})"
            ),
            Operation::CreateTable(table) => format!("create table {} (id int primary key, v text not null)", own(table)),
            Operation::RenameTable { from, to } => format!("alter table {} rename to {}", own(from), own(to)),
            Operation::AddColumn(table) => format!("alter table {} add column c int not null default 7", own(table)),
            Operation::CreateIndex(table) => format!("create index {0}_v on {0} (v, id)", own(table)),
            Operation::DropIndex(table) => format!("drop index {}_v", own(table)),
            Operation::Truncate(table) => format!("truncate {}", own(table)),
            Operation::DropTable(table) => format!("drop table {}", own(table)),
            Operation::PutRow { table, id, value } => format!(
                "insert into {} (id, v) values ({id}, '{value}') on conflict (id) do update set v = excluded.v",
                own(table)
            ),
            Operation::CreateObject(object) => format!("select lo_create({})", oid(object)),
            Operation::PutObject { object, offset, bytes, value } => {
                format!("select lo_put({}, {offset}, decode(repeat('{value:02x}', {bytes}), 'hex'))", oid(object))
            }
            Operation::DropObject(object) => format!("select lo_unlink({})", oid(object)),
            Operation::Scratch(n) => format!("insert into scratch values ({session}, {n})"),
            Operation::Undone(operations) => {
                return enclosed(operations.iter().flat_map(|o| o.statements(session)).collect());
            }
            Operation::Refused(which) => {
                let (text, state) = REFUSED[*which];
                return enclosed(vec![Statement { text: text.to_owned(), refused: Some(state) }]);
            }
        };
        vec![Statement::new(one)]
    }

    /// Its effect on the session's data.
    pub fn apply(&self, state: &mut State) {
        let State { parents, children, tables, objects, moved } = state;
        match self {
            Operation::PutParent(key) => drop(parents.insert(*key)),
            Operation::DropParent(key) => {
                parents.remove(key);
                children.retain(|_, (parent, _)| parent != key);
            }
            Operation::PutChild { key, parent, note } => drop(children.insert(*key, (*parent, note.clone()))),
            Operation::DropChild(key) => drop(children.remove(key)),
            Operation::Transfer { from, to, amount } => {
                *moved.entry(*from).or_default() -= amount;
                *moved.entry(*to).or_default() += amount;
            }
            Operation::CreateTable(table) => drop(tables.insert(*table, Table::default())),
            Operation::RenameTable { from, to } => {
                let table = tables.remove(from).unwrap_or_default();
                tables.insert(*to, table);
            }
            Operation::AddColumn(table) => tables.entry(*table).or_default().wide = true,
            Operation::CreateIndex(table) => tables.entry(*table).or_default().indexed = true,
            Operation::DropIndex(table) => tables.entry(*table).or_default().indexed = false,
            Operation::Truncate(table) => tables.entry(*table).or_default().rows.clear(),
            Operation::DropTable(table) => drop(tables.remove(table)),
            Operation::PutRow { table, id, value } => {
                tables.entry(*table).or_default().rows.insert(*id, value.clone());
            }
            Operation::CreateObject(object) => drop(objects.insert(*object, Vec::new())),
            Operation::PutObject { object, offset, bytes, value } => {
                let content = objects.entry(*object).or_default();
                content.resize(content.len().max(offset + bytes), 0);
                content[*offset..offset + bytes].fill(*value);
            }
            Operation::DropObject(object) => drop(objects.remove(object)),
            Operation::Scratch(_) | Operation::Undone(_) | Operation::Refused(_) => {}
        }
    }
}

/// Statements of which nothing remains.
fn enclosed(statements: Vec<Statement>) -> Vec<Statement> {
    let mut all = vec![Statement::new("savepoint undone".to_owned())];
    all.extend(statements);
    all.push(Statement::new("rollback to savepoint undone".to_owned()));
    all
}
