//! Random transactions that succeed on the state they are made from.

use melba_vfs::{Random, SeededRandom};

use crate::ACCOUNTS;
use crate::operation::{Operation, REFUSED, Statement};
use crate::state::State;

/// Keys, tables and objects of a session.
const KEYS: usize = 12;
const TABLES: usize = 3;
const OBJECTS: usize = 3;
const OPERATIONS_MAX: usize = 5;
/// Most values are short; of the others most are stored apart from their row.
const SHORT: usize = 20;
const LONG: usize = 6000;
/// Objects have several chunks.
const OBJECT_BYTES: usize = 9000;

/// The operations of one transaction.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// Its number in the ledger.
    pub n: i32,
    pub operations: Vec<Operation>,
    /// synchronous_commit is off.
    pub asynchronous: bool,
    pub repeatable_read: bool,
}

impl Transaction {
    /// A transaction that a session may run on its state.
    pub fn random(random: &SeededRandom, state: &State, n: i32) -> Transaction {
        let mut state = state.clone();
        let operations = (0..1 + random.below(OPERATIONS_MAX)).map(|_| {
            let operation = operation(random, &state, n);
            operation.apply(&mut state);
            operation
        });
        let mut operations: Vec<Operation> = operations.collect();
        // A row of the unlogged table has the transaction's number as its key.
        let mut scratched = false;
        operations.retain(|o| !matches!(o, Operation::Scratch(_)) || !std::mem::replace(&mut scratched, true));
        Transaction { n, operations, asynchronous: random.chance(30), repeatable_read: random.chance(20) }
    }

    /// From BEGIN to COMMIT.
    pub fn statements(&self, session: u32) -> Vec<Statement> {
        let level = if self.repeatable_read { "repeatable read" } else { "read committed" };
        let mut all = vec![Statement::new(format!("begin isolation level {level}"))];
        if self.asynchronous {
            all.push(Statement::new("set local synchronous_commit = off".to_owned()));
        }
        all.extend(self.operations.iter().flat_map(|o| o.statements(session)));
        all.push(Statement::new(format!("insert into ledger values ({session}, {}, nextval('tickets'))", self.n)));
        all.push(Statement::new("commit".to_owned()));
        all
    }

    /// Its effect when it has committed.
    pub fn apply(&self, state: &mut State) {
        self.operations.iter().for_each(|o| o.apply(state));
    }
}

fn operation(random: &SeededRandom, state: &State, n: i32) -> Operation {
    match random.below(10) {
        0..4 => row(random, state),
        4..6 => transfer(random),
        6 => own_table(random, state),
        7 => object(random, state),
        8 if random.chance(50) => Operation::Scratch(n),
        8 => Operation::Refused(random.below(REFUSED.len())),
        _ => {
            let mut inner = state.clone();
            let operations = (0..1 + random.below(3)).map(|_| {
                let operation = [row, own_table, object][random.below(3)](random, &inner);
                operation.apply(&mut inner);
                operation
            });
            Operation::Undone(operations.collect())
        }
    }
}

fn row(random: &SeededRandom, state: &State) -> Operation {
    let key = random.below(KEYS) as i32;
    let parent = pick(random, state.parents.iter().copied());
    match (random.below(8), parent) {
        (0..5, Some(parent)) => Operation::PutChild { key, parent, note: text(random) },
        (5, _) if state.children.contains_key(&key) => Operation::DropChild(key),
        (6, Some(parent)) if random.chance(50) => Operation::DropParent(parent),
        (_, Some(parent)) if state.parents.contains(&key) => Operation::PutChild { key, parent, note: text(random) },
        _ => Operation::PutParent(key),
    }
}

fn transfer(random: &SeededRandom) -> Operation {
    let from = 1 + random.below(ACCOUNTS as usize) as i32;
    let to = 1 + (from + random.below(ACCOUNTS as usize - 1) as i32) % ACCOUNTS;
    Operation::Transfer { from, to, amount: 1 + random.below(9) as i64 }
}

fn own_table(random: &SeededRandom, state: &State) -> Operation {
    let table = random.below(TABLES) as u32;
    let Some(found) = state.tables.get(&table) else { return Operation::CreateTable(table) };
    let free = pick(random, (0..TABLES as u32).filter(|t| !state.tables.contains_key(t)));
    match (random.below(12), free) {
        (0, _) => Operation::DropTable(table),
        // An index keeps its name, by which it is known.
        (1, Some(to)) if !found.indexed => Operation::RenameTable { from: table, to },
        (2, _) => Operation::Truncate(table),
        (3, _) if !found.wide => Operation::AddColumn(table),
        (4, _) if found.indexed => Operation::DropIndex(table),
        (4 | 5, _) if !found.indexed => Operation::CreateIndex(table),
        _ => Operation::PutRow { table, id: random.below(KEYS) as i32, value: text(random) },
    }
}

fn object(random: &SeededRandom, state: &State) -> Operation {
    let object = random.below(OBJECTS) as u32;
    let Some(content) = state.objects.get(&object) else { return Operation::CreateObject(object) };
    if random.chance(10) {
        return Operation::DropObject(object);
    }
    let offset = random.below(content.len() + 2 * SHORT);
    Operation::PutObject { object, offset, bytes: 1 + random.below(OBJECT_BYTES), value: random.below(256) as u8 }
}

fn pick<T>(random: &SeededRandom, from: impl Iterator<Item = T>) -> Option<T> {
    let mut all: Vec<T> = from.collect();
    if all.is_empty() { None } else { Some(all.swap_remove(random.below(all.len()))) }
}

/// Random digits, which no compression makes much shorter.
fn text(random: &SeededRandom) -> String {
    let length = 1 + random.below(if random.chance(10) { LONG } else { SHORT });
    let mut text = String::with_capacity(length + 16);
    while text.len() < length {
        text.push_str(&format!("{:016x}", random.next_u64()));
    }
    text.truncate(length);
    text
}
