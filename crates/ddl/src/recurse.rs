//! Changes of a table that reach its children.
//!
//! A child's column or constraint counts the parents that it comes from (`inherited`) and says whether it is also its own (`local`). A
//! column or constraint that a parent loses is dropped from the children too, once no parent has it and it is not their own.

use std::sync::Arc;

use melba_catalog::{Column, Constraint as Row, ConstraintKind, Object, Relation};
use melba_engine::RelationLockMode;
use melba_types::{Oid, Result, bail, err};
use pg_query::protobuf::{AlterTableCmd, ColumnDef, ConstrType, Constraint, Node, RenameStmt, node::Node as N};

use super::Ddl;
use super::retype::Retyped;
use melba_parse::nodes::strings;

const EXCLUSIVE: RelationLockMode = RelationLockMode::AccessExclusive;

impl Ddl<'_> {
    /// Calls a function for the tables that inherit from a table directly, locked. Each is in the state that the ones before it
    /// left: a table may be below another in several ways.
    pub fn each_child(
        &self,
        relation: &Relation,
        mode: RelationLockMode,
        mut f: impl FnMut(Arc<Relation>) -> Result<()>,
    ) -> Result<()> {
        let children = self.catalog().children(relation.oid);
        children.iter().try_for_each(|child| self.lock_relation(*child, mode))?;
        children.into_iter().try_for_each(|child| f(self.relation(child)?))
    }

    fn has_children(&self, relation: &Relation) -> bool {
        self.catalog().has_children(relation.oid)
    }

    /// ADD COLUMN.
    pub fn add_column_everywhere(&self, relation: &Relation, def: &ColumnDef, if_not_exists: bool, recurse: bool) -> Result<()> {
        if relation.is_partition() {
            bail!(WRONG_OBJECT_TYPE, "cannot add column to a partition");
        }
        if !self.has_children(relation) {
            return self.add_column(relation, def, if_not_exists);
        }
        let exists = relation.columns.iter().any(|c| !c.dropped && *c.name == *def.colname);
        if !recurse && !exists {
            bail!(INVALID_TABLE_DEFINITION, "column must be added to child tables too");
        }
        if exists {
            return self.add_column(relation, def, if_not_exists);
        }
        if !relation.is_partitioned() && constraints_of(def).any(|c| c.contype() == ConstrType::ConstrIdentity) {
            bail!(INVALID_TABLE_DEFINITION, "cannot recursively add identity column to table that has child tables");
        }
        // Keys of a partitioned table need the column in the partitions.
        let is_key = |c: &Constraint| matches!(c.contype(), ConstrType::ConstrPrimary | ConstrType::ConstrUnique);
        self.add_column(relation, &with_constraints(def, |c| !is_key(c)), false)?;
        let parent = self.relation(relation.oid)?;
        self.each_child(relation, EXCLUSIVE, |child| self.add_column_to_child(&child, &parent, def))?;
        let at = parent.columns.len() - 1;
        for key in constraints_of(def).filter(|c| is_key(c)) {
            self.add_constraint_everywhere(parent.oid, Some(at), key, true)?;
        }
        Ok(())
    }

    fn add_column_to_child(&self, child: &Relation, parent: &Relation, def: &ColumnDef) -> Result<()> {
        let Some(above) = parent.columns.iter().rfind(|c| *c.name == *def.colname) else { return Ok(()) };
        if let Some(at) = child.columns.iter().position(|c| !c.dropped && *c.name == *def.colname) {
            let own = &child.columns[at];
            if own.ty != above.ty || own.typmod != above.typmod {
                bail!(DATATYPE_MISMATCH, "child table \"{}\" has different type for column \"{}\"", child.name, def.colname);
            }
            if own.collation != above.collation {
                bail!(
                    COLLATION_MISMATCH,
                    "child table \"{}\" has different collation for column \"{}\"",
                    child.name,
                    def.colname
                );
            }
            self.notice(format!("merging definition of column \"{}\" for child \"{}\"", def.colname, child.name));
            self.change_column(child, at, |c| c.inherited += 1);
            self.inherit_new_constraints(child.oid, parent, &[])?;
            return self.pass_constraints_on(&*self.relation(child.oid)?, &child.constraints);
        }
        let is_own = |c: &Constraint| {
            matches!(c.contype(), ConstrType::ConstrDefault | ConstrType::ConstrGenerated | ConstrType::ConstrNull)
        };
        self.add_column(child, &with_constraints(def, is_own), false)?;
        let added = self.relation(child.oid)?;
        let at = added.columns.len() - 1;
        self.change_column(&added, at, |c| (c.inherited, c.local, c.identity) = (1, false, above.identity));
        if above.identity != 0 {
            self.fill_new_column(child.oid, at)?;
        }
        self.inherit_new_constraints(child.oid, parent, &[])?;
        let child = self.relation(child.oid)?;
        self.each_child(&child, EXCLUSIVE, |grandchild| self.add_column_to_child(&grandchild, &child, def))
    }

    /// Adds to a child those NOT NULLs and CHECKs of its parent that are not among `old` and that it lacks; those that it has
    /// count one parent more. Only the last column's, if `old` is empty.
    fn inherit_new_constraints(&self, child: Oid, parent: &Relation, old: &[Oid]) -> Result<()> {
        let catalog = self.catalog();
        let last = parent.columns.len() as i16;
        let is_new = |c: &&Arc<Row>| match old.is_empty() {
            true => c.columns == [last],
            false => !old.contains(&c.oid),
        };
        let above = parent.constraints.iter().filter_map(|c| catalog.constraint(*c)).filter(|c| !c.no_inherit);
        for row in above.filter(is_new) {
            match row.kind {
                ConstraintKind::NotNull => self.inherit_not_null(child, parent, row)?,
                ConstraintKind::Check => self.inherit_check(child, row)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn inherit_not_null(&self, child: Oid, parent: &Relation, above: &Row) -> Result<()> {
        let relation = self.relation(child)?;
        let name = &parent.columns[above.columns[0] as usize - 1].name;
        let Some(at) = relation.columns.iter().position(|c| !c.dropped && c.name == *name) else { return Ok(()) };
        let catalog = self.catalog();
        if let Some(own) = catalog.not_null_constraint(&relation, at as i16 + 1) {
            if own.no_inherit {
                bail!(
                    INVALID_OBJECT_DEFINITION,
                    "cannot change NO INHERIT status of NOT NULL constraint \"{}\" on relation \"{}\"",
                    own.name,
                    relation.name
                );
            }
            let row = Row { inherited: own.inherited + 1, validated: own.validated || above.validated, ..(**own).clone() };
            if above.validated && !own.validated {
                self.check_no_nulls(child, at)?;
            }
            self.tx.put(Object::Constraint(Arc::new(row)));
            return Ok(());
        }
        if above.validated {
            self.check_no_nulls(child, at)?;
        }
        self.put_inherited_not_null(child, at, &above.name, 1, false)
    }

    fn inherit_check(&self, child: Oid, above: &Row) -> Result<()> {
        let relation = self.relation(child)?;
        let catalog = self.catalog();
        let own = relation.constraints.iter().filter_map(|c| catalog.constraint(*c)).find(|c| c.name == above.name);
        if let Some(own) = own {
            if own.kind != ConstraintKind::Check || own.expression != above.expression {
                bail!(DUPLICATE_OBJECT, "constraint \"{}\" for relation \"{}\" already exists", above.name, relation.name);
            }
            if own.no_inherit {
                bail!(
                    INVALID_OBJECT_DEFINITION,
                    "constraint \"{}\" conflicts with non-inherited constraint on relation \"{}\"",
                    above.name,
                    relation.name
                );
            }
            refuse_weaker(own, above.validated, above.enforced, &relation)?;
            self.notice(format!("merging constraint \"{}\" with inherited definition", above.name));
            let row = Row { inherited: own.inherited + 1, local: own.local && !relation.is_partition(), ..(**own).clone() };
            self.tx.put(Object::Constraint(Arc::new(row)));
            return Ok(());
        }
        self.put_inherited_check(&relation, above, 1, false)?;
        let (relation, catalog) = (self.relation(child)?, self.catalog());
        let added = relation.constraints.last().and_then(|c| catalog.constraint(*c));
        match added.filter(|c| c.validated) {
            Some(added) => self.check_existing_rows(added),
            None => Ok(()),
        }
    }

    /// ADD CONSTRAINT: NOT NULL and CHECK are added to the children.
    pub fn add_constraint_everywhere(&self, table: Oid, column: Option<usize>, c: &Constraint, recurse: bool) -> Result<()> {
        let relation = self.relation(table)?;
        let inherited = matches!(c.contype(), ConstrType::ConstrCheck | ConstrType::ConstrNotnull) && !c.is_no_inherit;
        if !recurse && c.contype() == ConstrType::ConstrPrimary && c.indexname.is_empty() {
            self.check_children_not_null(&relation, c)?;
        }
        if inherited && !recurse && self.has_children(&relation) {
            bail!(INVALID_TABLE_DEFINITION, "constraint must be added to child tables too");
        }
        if self.merge_own_check(&relation, c)? {
            return Ok(());
        }
        let before = relation.constraints.clone();
        self.add_table_constraint(table, column, c, recurse)?;
        let parent = self.relation(table)?;
        match self.has_children(&parent) {
            true => self.pass_constraints_on(&parent, &before),
            false => Ok(()),
        }
    }

    /// A primary key of a parent alone: the children's columns must be NOT NULL already.
    fn check_children_not_null(&self, relation: &Relation, c: &Constraint) -> Result<()> {
        for child in self.catalog().children(relation.oid) {
            let child = self.relation(child)?;
            for name in strings(&c.keys) {
                let column = child.columns.iter().find(|c| !c.dropped && *c.name == *name);
                if column.is_some_and(|c| !c.not_null) {
                    bail!(
                        OBJECT_NOT_IN_PREREQUISITE_STATE,
                        "column \"{name}\" of table \"{}\" is not marked NOT NULL",
                        child.name
                    );
                }
            }
        }
        Ok(())
    }

    /// A CHECK that is inherited becomes the table's own, too; whether it was one.
    fn merge_own_check(&self, relation: &Relation, c: &Constraint) -> Result<bool> {
        if c.contype() != ConstrType::ConstrCheck || c.conname.is_empty() {
            return Ok(false);
        }
        let catalog = self.catalog();
        let mut rows = relation.constraints.iter().filter_map(|c| catalog.constraint(*c));
        let is_its = |r: &&Arc<Row>| r.kind == ConstraintKind::Check && *r.name == *c.conname && r.inherited > 0 && !r.local;
        let Some(own) = rows.find(is_its) else { return Ok(false) };
        self.check_mergeable(relation, own, c)?;
        refuse_weaker(own, !c.skip_validation && c.is_enforced, c.is_enforced, relation)?;
        self.notice(format!("merging constraint \"{}\" with inherited definition", own.name));
        let row = Row { local: !relation.is_partition(), ..(**own).clone() };
        self.tx.put(Object::Constraint(Arc::new(row)));
        Ok(true)
    }

    pub fn pass_constraints_on(&self, parent: &Relation, before: &[Oid]) -> Result<()> {
        let before = if before.is_empty() { &[Oid::INVALID][..] } else { before };
        if parent.constraints.iter().all(|c| before.contains(c)) {
            return Ok(());
        }
        self.each_child(parent, EXCLUSIVE, |child| {
            self.inherit_new_constraints(child.oid, parent, before)?;
            self.pass_constraints_on(&*self.relation(child.oid)?, &child.constraints)
        })
    }

    /// SET NOT NULL.
    pub fn set_not_null(&self, relation: &Relation, at: usize, recurse: bool) -> Result<()> {
        let before = relation.constraints.clone();
        let existing = self.catalog().not_null_constraint(relation, at as i16 + 1).cloned();
        let alone = !recurse && self.has_children(relation);
        if existing.is_none() && alone && relation.is_partitioned() {
            return Err(err!(INVALID_TABLE_DEFINITION, "constraint must be added to child tables too")
                .hint("Do not specify the ONLY keyword."));
        }
        match existing {
            Some(existing) if existing.no_inherit && recurse => {
                let (name, table) = (&existing.name, &relation.name);
                let message =
                    format!("cannot change NO INHERIT status of NOT NULL constraint \"{name}\" on relation \"{table}\"");
                bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{message}");
            }
            Some(existing) if !existing.validated => self.validate_constraint(relation, &existing.name, recurse),
            Some(_) => Ok(()),
            None => {
                self.check_no_nulls(relation.oid, at)?;
                // Of a parent alone: it is not for the children.
                self.add_not_null(relation.oid, at, None, alone)?;
                self.pass_constraints_on(&*self.relation(relation.oid)?, &before)
            }
        }
    }

    /// DROP COLUMN.
    pub fn drop_column_everywhere(&self, relation: &Relation, c: &AlterTableCmd, recurse: bool) -> Result<()> {
        let Some(at) = relation.columns.iter().position(|col| *col.name == *c.name && !col.dropped) else {
            return self.drop_column(relation, c);
        };
        if relation.columns[at].inherited > 0 {
            bail!(INVALID_TABLE_DEFINITION, "cannot drop inherited column \"{}\"", c.name);
        }
        self.refuse_partition_column(relation, at, "drop")?;
        self.drop_from_children(relation, c, recurse)?;
        self.drop_column(&*self.relation(relation.oid)?, c)
    }

    fn drop_from_children(&self, relation: &Relation, c: &AlterTableCmd, recurse: bool) -> Result<()> {
        if relation.is_partitioned() && !recurse && self.has_children(relation) {
            return Err(err!(
                INVALID_TABLE_DEFINITION,
                "cannot drop column from only the partitioned table when partitions exist"
            )
            .hint("Do not specify the ONLY keyword."));
        }
        self.each_child(relation, EXCLUSIVE, |child| {
            let Some(at) = child.columns.iter().position(|col| *col.name == *c.name && !col.dropped) else { return Ok(()) };
            let own = &child.columns[at];
            if recurse && own.inherited == 1 && !own.local {
                self.refuse_partition_column(&child, at, "drop")?;
                self.drop_from_children(&child, c, true)?;
                return self.drop_column(&*self.relation(child.oid)?, c);
            }
            self.change_column(&child, at, |own| {
                own.inherited -= 1;
                own.local |= !recurse;
            });
            Ok(())
        })
    }

    /// DROP CONSTRAINT of a NOT NULL or CHECK, and DROP NOT NULL: the children's are dropped unless they have another origin.
    pub fn drop_constraint_from_children(&self, relation: &Relation, row: &Row, recurse: bool) -> Result<()> {
        if row.no_inherit || !matches!(row.kind, ConstraintKind::Check | ConstraintKind::NotNull) {
            return Ok(());
        }
        if relation.is_partitioned() && !recurse && self.has_children(relation) {
            return Err(err!(
                INVALID_TABLE_DEFINITION,
                "cannot remove constraint from only the partitioned table when partitions exist"
            )
            .hint("Do not specify the ONLY keyword."));
        }
        let column_of = |r: &Relation, c: &Row| c.columns.first().map(|n| r.columns[*n as usize - 1].name.clone());
        let column = column_of(relation, row);
        self.each_child(relation, EXCLUSIVE, |child| {
            let is_its = |c: &&Arc<Row>| {
                c.kind == row.kind
                    && if row.kind == ConstraintKind::Check { c.name == row.name } else { column_of(&child, c) == column }
            };
            let catalog = self.catalog();
            let own = child.constraints.iter().filter_map(|c| catalog.constraint(*c)).find(is_its);
            let Some(own) = own.filter(|c| c.inherited > 0) else { return Ok(()) };
            if recurse && own.inherited == 1 && !own.local {
                self.drop_constraint_from_children(&child, own, true)?;
                return self.drop_constraint_row(own);
            }
            let row = Row { inherited: own.inherited - 1, local: own.local || !recurse, ..(**own).clone() };
            self.tx.put(Object::Constraint(Arc::new(row)));
            Ok(())
        })
    }

    pub fn refuse_inherited_constraint(&self, relation: &Relation, row: &Row) -> Result<()> {
        if row.inherited > 0 || row.parent.is_valid() {
            bail!(
                INVALID_TABLE_DEFINITION,
                "cannot drop inherited constraint \"{}\" of relation \"{}\"",
                row.name,
                relation.name
            );
        }
        Ok(())
    }

    /// ALTER COLUMN TYPE: the children's columns have the type of their parents'.
    pub fn alter_type_everywhere(
        &self,
        relation: &Relation,
        at: usize,
        def: Option<&N>,
        recurse: bool,
        retyped: &mut Retyped,
    ) -> Result<()> {
        let name = &relation.columns[at].name;
        if relation.columns[at].inherited > 0 {
            bail!(INVALID_TABLE_DEFINITION, "cannot alter inherited column \"{name}\"");
        }
        if !recurse && self.has_children(relation) {
            bail!(INVALID_TABLE_DEFINITION, "type of inherited column \"{name}\" must be changed in child tables too");
        }
        let members = self.catalog().descendants(relation.oid);
        for oid in &members {
            self.lock_relation(*oid, RelationLockMode::AccessExclusive)?;
            let member = self.relation(*oid)?;
            let Some(at) = member.columns.iter().position(|c| !c.dropped && c.name == *name) else { continue };
            let count = member.parents.iter().filter(|p| members.contains(p)).count();
            if member.columns[at].inherited as usize > count {
                bail!(INVALID_TABLE_DEFINITION, "cannot alter inherited column \"{name}\" of relation \"{}\"", member.name);
            }
            self.refuse_partition_column(&member, at, "alter")?;
            retyped.add(*oid, self.changed_type(&member, at, def)?);
        }
        Ok(())
    }

    /// VALIDATE CONSTRAINT of a CHECK or NOT NULL: the children's first.
    pub fn validate_in_children(&self, relation: &Relation, row: &Row, recurse: bool) -> Result<()> {
        if row.kind == ConstraintKind::ForeignKey && relation.is_partitioned() {
            return self.validate_foreign_keys_below(relation, row);
        }
        if row.no_inherit || !matches!(row.kind, ConstraintKind::Check | ConstraintKind::NotNull) {
            return Ok(());
        }
        if !recurse && self.has_children(relation) {
            bail!(INVALID_TABLE_DEFINITION, "constraint must be validated on child tables too");
        }
        let column = row.columns.first().map(|n| relation.columns[*n as usize - 1].name.clone());
        self.each_child(relation, RelationLockMode::ShareUpdateExclusive, |child| {
            let catalog = self.catalog();
            let place = child.columns.iter().position(|c| !c.dropped && Some(&c.name) == column.as_ref());
            let not_null = place.and_then(|at| catalog.not_null_constraint(&child, at as i16 + 1));
            match (row.kind, not_null) {
                (ConstraintKind::NotNull, Some(own)) => self.validate_constraint(&child, &own.name, true),
                _ => self.validate_constraint(&child, &row.name, true),
            }
        })
    }

    /// RENAME COLUMN.
    pub fn rename_column_everywhere(&self, relation: &Relation, s: &RenameStmt) -> Result<()> {
        let (from, to, recurse) =
            (&*s.subname, &*s.newname, relation.of_type.is_valid() || s.relation.as_ref().is_none_or(|r| r.inh));
        let column = relation.columns.iter().find(|c| !c.dropped && *c.name == *from);
        if column.is_some_and(|c| c.inherited > 0) {
            bail!(INVALID_TABLE_DEFINITION, "cannot rename inherited column \"{from}\"");
        }
        if !recurse && self.has_children(relation) && column.is_some() {
            bail!(INVALID_TABLE_DEFINITION, "inherited column \"{from}\" must be renamed in child tables too");
        }
        let members = self.catalog().descendants(relation.oid);
        for oid in &members {
            let member = self.relation(*oid)?;
            let count = member.parents.iter().filter(|p| members.contains(p)).count();
            let column = member.columns.iter().find(|c| !c.dropped && *c.name == *from);
            if column.is_some_and(|c| c.inherited as usize > count) {
                bail!(INVALID_TABLE_DEFINITION, "cannot rename inherited column \"{from}\"");
            }
        }
        // Partition keys mention columns in expressions of all.
        for oid in members {
            self.lock_relation(oid, RelationLockMode::AccessExclusive)?;
            self.rename_column(&*self.relation(oid)?, from, to)?;
        }
        Ok(())
    }

    /// RENAME CONSTRAINT.
    pub fn rename_constraint_everywhere(&self, relation: &Relation, s: &RenameStmt) -> Result<()> {
        let (from, to, recurse) = (&*s.subname, &*s.newname, s.relation.as_ref().is_none_or(|r| r.inh));
        let catalog = self.catalog();
        let row = relation.constraints.iter().filter_map(|c| catalog.constraint(*c)).find(|c| *c.name == *from);
        let passed_on = row.is_some_and(|r| matches!(r.kind, ConstraintKind::Check | ConstraintKind::NotNull) && !r.no_inherit);
        if row.is_some_and(|r| r.inherited > 0 && !r.parent.is_valid()) {
            bail!(INVALID_TABLE_DEFINITION, "cannot rename inherited constraint \"{from}\"");
        }
        if passed_on && !recurse && self.has_children(relation) {
            bail!(INVALID_TABLE_DEFINITION, "inherited constraint \"{from}\" must be renamed in child tables too");
        }
        self.rename_constraint(relation, from, to)?;
        if passed_on {
            for oid in catalog.descendants(relation.oid).into_iter().skip(1) {
                let member = self.relation(oid)?;
                let has = member.constraints.iter().filter_map(|c| catalog.constraint(*c)).any(|c| *c.name == *from);
                if has {
                    self.rename_constraint(&member, from, to)?;
                }
            }
        }
        Ok(())
    }

    pub fn change_column(&self, relation: &Relation, at: usize, f: impl FnOnce(&mut Column)) {
        let mut columns = relation.columns.to_vec();
        f(&mut columns[at]);
        self.put_relation(Relation { columns: columns.into(), ..relation.clone() });
    }
}

/// A constraint that rows may not satisfy cannot stand for one that they do.
fn refuse_weaker(own: &Row, validated: bool, enforced: bool, relation: &Relation) -> Result<()> {
    let what = match () {
        () if enforced && !own.enforced => "NOT ENFORCED",
        () if validated && own.enforced && !own.validated => "NOT VALID",
        () => return Ok(()),
    };
    bail!(
        INVALID_OBJECT_DEFINITION,
        "constraint \"{}\" conflicts with {what} constraint on relation \"{}\"",
        own.name,
        relation.name
    )
}

pub fn constraints_of(def: &ColumnDef) -> impl Iterator<Item = &Constraint> {
    def.constraints.iter().filter_map(|n| match &n.node {
        Some(N::Constraint(c)) => Some(&**c),
        _ => None,
    })
}

/// A column's definition with some of its constraints only.
fn with_constraints(def: &ColumnDef, keep: impl Fn(&Constraint) -> bool) -> ColumnDef {
    let kept = |n: &&Node| matches!(&n.node, Some(N::Constraint(c)) if keep(c));
    ColumnDef { constraints: def.constraints.iter().filter(kept).cloned().collect(), ..def.clone() }
}
