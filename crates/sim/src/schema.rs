//! Tables, indexes, columns and sequences that are created and dropped.

use melba_engine::{LockTag, Persistence, RelationLockMode, SequenceDefinition, SequenceId, SequenceState, Wait};

use crate::check;
use crate::client::{Attempt, Open};
use crate::failure::Outcome;
use crate::model::{Model, SchemaChange, TableNumber};
use crate::row::{FIRST_COLUMNS, IndexKey, kind, kinds};
use crate::world::World;

/// More columns than this no table gets.
const COLUMNS_MAX: usize = 5;

impl Model {
    /// A synchronous commit that used values of sequences is durable.
    pub fn use_values(&mut self, used: &[(SequenceId, i64)]) {
        for (id, value) in used {
            self.sequences.entry(*id).and_modify(|s| s.floor = s.floor.max(*value));
        }
    }
}

impl World {
    pub fn create_table(&mut self, open: &mut Open) -> Outcome<Attempt> {
        let persistence = match self.random.below(10) {
            0 | 1 => Persistence::Unlogged,
            2 => Persistence::Memory,
            3 => Persistence::Temporary,
            _ => Persistence::Logged,
        };
        let number = self.model.next_table;
        self.model.next_table += 1;
        let tree = open.txn.create_table_tree(&kinds(FIRST_COLUMNS), persistence)?;
        let mut indexes = vec![(open.txn.create_index_tree(tree, persistence)?, IndexKey::Number)];
        if self.random.chance(70) {
            indexes.push((open.txn.create_index_tree(tree, persistence)?, IndexKey::Text));
        }
        open.changes.schema.push(SchemaChange::CreateTable(number, tree, persistence, indexes));
        // No other session can know it yet; the lock stays for those who see it first.
        self.lock_table(open, number, RelationLockMode::AccessExclusive)?;
        Ok(Attempt::Done)
    }

    pub fn drop_table(&mut self, open: &mut Open, number: TableNumber) -> Outcome<Attempt> {
        let shape = self.lock_table(open, number, RelationLockMode::AccessExclusive)?;
        let Some(shape) = shape else { return Ok(Attempt::Blocked) };
        open.cursor = None;
        for (tree, ..) in &shape.indexes {
            open.txn.drop_tree(*tree)?;
        }
        open.txn.drop_tree(shape.tree)?;
        open.changes.rows.retain(|(n, _), _| *n != number);
        open.changes.schema.push(SchemaChange::DropTable(number));
        Ok(Attempt::Done)
    }

    pub fn create_index(&mut self, open: &mut Open, number: TableNumber) -> Outcome<Attempt> {
        // Writers are excluded until the index exists.
        let Some(shape) = self.lock_table(open, number, RelationLockMode::Share)? else { return Ok(Attempt::Blocked) };
        if Open::has_text_index(&shape.indexes) {
            return Ok(Attempt::Done);
        }
        open.view(self)?;
        let index = open.txn.create_index_tree(shape.tree, shape.persistence)?;
        self.fill_index(&open.txn, shape.tree, index, IndexKey::Text, shape.columns)?;
        open.changes.schema.push(SchemaChange::CreateIndex(number, index, IndexKey::Text));
        Ok(Attempt::Done)
    }

    pub fn drop_index(&mut self, open: &mut Open, number: TableNumber) -> Outcome<Attempt> {
        let shape = self.lock_table(open, number, RelationLockMode::AccessExclusive)?;
        let Some(shape) = shape else { return Ok(Attempt::Blocked) };
        if let Some((tree, ..)) = shape.indexes.iter().find(|(_, key, _)| *key == IndexKey::Text) {
            open.txn.drop_tree(*tree)?;
            open.changes.schema.push(SchemaChange::DropIndex(number, *tree));
        }
        Ok(Attempt::Done)
    }

    pub fn add_column(&mut self, open: &mut Open, number: TableNumber) -> Outcome<Attempt> {
        let shape = self.lock_table(open, number, RelationLockMode::AccessExclusive)?;
        let Some(shape) = shape else { return Ok(Attempt::Blocked) };
        if shape.columns < COLUMNS_MAX {
            open.txn.extend_table_tree(shape.tree, &[kind(shape.columns)])?;
            open.changes.schema.push(SchemaChange::AddColumn(number));
        }
        Ok(Attempt::Done)
    }

    pub fn create_sequence(&mut self, open: &mut Open) -> Outcome<Attempt> {
        let persistence = if self.random.chance(30) { Persistence::Unlogged } else { Persistence::Logged };
        let definition = SequenceDefinition { increment: 1 + self.random.below(3) as i64, min: 1, max: i64::MAX, cycle: false };
        let id = open.txn.create_sequence(definition, SequenceState { last_value: 1, is_called: false }, persistence)?;
        open.changes.schema.push(SchemaChange::CreateSequence(id, persistence));
        Ok(Attempt::Done)
    }

    fn lock_sequence(&mut self, open: &Open, id: SequenceId, mode: RelationLockMode) -> Outcome<bool> {
        let tag = LockTag::Object { database: 1, class: 2, object: id.0 as u32 };
        let granted = open.txn.lock_object(tag, mode, Wait::NoWait)?;
        let visible = self.engine().visible_csn();
        Ok(granted && self.model.sequences.get(&id).is_some_and(|s| s.life.is_at(visible)))
    }

    pub fn drop_sequence(&mut self, open: &mut Open, id: SequenceId) -> Outcome<Attempt> {
        if !self.lock_sequence(open, id, RelationLockMode::AccessExclusive)? {
            return Ok(Attempt::Blocked);
        }
        open.txn.drop_sequence(id)?;
        open.changes.schema.push(SchemaChange::DropSequence(id));
        Ok(Attempt::Done)
    }

    pub fn next_value(&mut self, open: &mut Open, id: SequenceId) -> Outcome<Attempt> {
        if !self.lock_sequence(open, id, RelationLockMode::RowExclusive)? {
            return Ok(Attempt::Blocked);
        }
        let value = open.txn.nextval(id)?;
        if let Some(sequence) = self.model.sequences.get_mut(&id) {
            check::sequences::check(sequence, value)?;
            sequence.given = Some(value);
        }
        open.used.push((id, value));
        Ok(Attempt::Done)
    }

    /// Forward only, so that earlier values never come again.
    pub fn set_value(&mut self, open: &mut Open, id: SequenceId, by: i64) -> Outcome<Attempt> {
        if !self.lock_sequence(open, id, RelationLockMode::RowExclusive)? {
            return Ok(Attempt::Blocked);
        }
        let value = open.txn.sequence_state(id)?.last_value + by;
        open.txn.setval(id, value, true)?;
        self.model.sequences.entry(id).and_modify(|s| s.given = Some(value));
        open.used.push((id, value));
        Ok(Attempt::Done)
    }
}
