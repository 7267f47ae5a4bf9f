//! ALTER TABLE ... ALTER COLUMN.

use std::sync::Arc;

use melba_catalog::{Column, ObjectAddress, Relation, RelationKind, SequenceInfo, Storage, classes};
use melba_types::{DbError, Oid, Result, SqlState, bail, err};
use pg_query::protobuf::{AlterTableCmd, AlterTableType as At, Constraint, node::Node as N};

use super::Ddl;
use super::expression::Use;
use super::partition_identity::check_identity_change;
use super::rewrite::TypeChange;
use super::storage_parameters::{ParametersOf, reset_list};
use melba_parse::nodes::{option_text, options};
use melba_tree::Var;

/// The largest value of SET STATISTICS.
const STATISTICS_TARGET_MAX: i16 = 10_000;

impl Ddl<'_> {
    /// Runs a subcommand about one column; false when it is another one.
    pub fn alter_column_command(&self, relation: &Relation, c: &AlterTableCmd, def: Option<&N>, recurse: bool) -> Result<bool> {
        let kind = c.subtype();
        let is_column = matches!(
            kind,
            At::AtColumnDefault
                | At::AtDropNotNull
                | At::AtSetNotNull
                | At::AtDropExpression
                | At::AtSetStatistics
                | At::AtSetOptions
                | At::AtResetOptions
                | At::AtSetStorage
                | At::AtSetCompression
                | At::AtAddIdentity
                | At::AtSetIdentity
                | At::AtDropIdentity
        );
        if !is_column {
            return Ok(false);
        }
        let at = self.place_of_column(relation, c)?;
        let text = || match def {
            Some(N::String(s)) => s.sval.clone(),
            Some(N::DefElem(d)) => option_text(d).unwrap_or_default(),
            _ => String::new(),
        };
        match kind {
            At::AtColumnDefault => self.change_default(relation, at, c)?,
            At::AtSetNotNull => self.set_not_null(relation, at, recurse)?,
            At::AtDropNotNull => self.drop_not_null(relation, at, recurse)?,
            At::AtDropExpression => self.drop_expression(relation, at, c.missing_ok)?,
            At::AtSetStatistics => {
                let target = self.statistics_target(def)?;
                check_has_statistics(relation, at)?;
                self.change_column(relation, at, |col| col.statistics_target = target);
            }
            At::AtSetOptions | At::AtResetOptions => self.change_options(relation, at, def, kind == At::AtSetOptions)?,
            At::AtSetStorage => {
                let code = self.storage_strategy(&text(), &relation.columns[at])?;
                self.change_column(relation, at, |col| col.storage = code);
            }
            At::AtSetCompression => {
                let code = self.compression_method(&text(), &relation.columns[at])?;
                self.change_column(relation, at, |col| col.compression = code);
            }
            _ => {
                check_identity_change(relation, kind, recurse)?;
                self.alter_identity(relation, at, c, def)?;
                if relation.is_partitioned() {
                    let letter = self.relation(relation.oid)?.columns[at].identity;
                    self.spread_identity(relation.oid, &c.name, letter)?;
                }
            }
        }
        if recurse && matches!(kind, At::AtColumnDefault | At::AtSetStatistics | At::AtSetStorage) {
            self.alter_childrens_column(relation, c, def)?;
        }
        Ok(true)
    }

    /// The place of the column that a subcommand is about.
    pub(super) fn place_of_column(&self, relation: &Relation, c: &AlterTableCmd) -> Result<usize> {
        let kind = c.subtype();
        Ok(match relation.columns.iter().position(|col| *col.name == *c.name && !col.dropped) {
            Some(at) => at,
            None if kind == At::AtSetStatistics && c.num > 0 && relation.index.is_none() => {
                bail!(FEATURE_NOT_SUPPORTED, "cannot refer to non-index column by number")
            }
            None if kind == At::AtSetStatistics && c.num > 0 => match relation.columns.get(c.num as usize - 1) {
                Some(_) => c.num as usize - 1,
                None => bail!(UNDEFINED_COLUMN, "column number {} of relation \"{}\" does not exist", c.num, relation.name),
            },
            None if super::alter_table::is_system_column(&c.name) => {
                bail!(FEATURE_NOT_SUPPORTED, "cannot alter system column \"{}\"", c.name)
            }
            None => bail!(UNDEFINED_COLUMN, "column \"{}\" of relation \"{}\" does not exist", c.name, relation.name),
        })
    }

    /// Passes changes that children share on to them unchanged. A column known by its number is an index's.
    fn alter_childrens_column(&self, relation: &Relation, c: &AlterTableCmd, def: Option<&N>) -> Result<()> {
        if !c.name.is_empty() {
            let mode = melba_engine::RelationLockMode::AccessExclusive;
            self.each_child(relation, mode, |child| self.alter_column_command(&child, c, def, true).map(drop))?;
        }
        Ok(())
    }

    fn statistics_target(&self, def: Option<&N>) -> Result<Option<i16>> {
        let Some(N::Integer(i)) = def else { return Ok(None) };
        match i.ival {
            ..-1 => bail!(INVALID_PARAMETER_VALUE, "statistics target {} is too low", i.ival),
            -1 => Ok(None),
            target if target > i32::from(STATISTICS_TARGET_MAX) => {
                let message = format!("lowering statistics target to {STATISTICS_TARGET_MAX}");
                self.warning(SqlState::INVALID_PARAMETER_VALUE, message);
                Ok(Some(STATISTICS_TARGET_MAX))
            }
            target => Ok(Some(target as i16)),
        }
    }

    fn change_default(&self, relation: &Relation, at: usize, c: &AlterTableCmd) -> Result<()> {
        let column = &relation.columns[at];
        if column.identity != 0 {
            let error = err!(SYNTAX_ERROR, "column \"{}\" of relation \"{}\" is an identity column", column.name, relation.name);
            return Err(match c.def {
                None => error.hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead."),
                Some(_) => error,
            });
        }
        if column.generated != 0 {
            let error = err!(SYNTAX_ERROR, "column \"{}\" of relation \"{}\" is a generated column", column.name, relation.name);
            return Err(match (&c.def, column.generated) {
                (Some(_), _) => error.hint("Use ALTER TABLE ... ALTER COLUMN ... SET EXPRESSION instead."),
                (None, b's') => error.hint("Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead."),
                (None, _) => error,
            });
        }
        match c.def.as_deref() {
            None => self.change_column(relation, at, forget_default),
            Some(node) => {
                let stored = self.stored_expression(node, relation, Use::Default, Some(column))?;
                if stored.is_null() {
                    self.change_column(relation, at, forget_default);
                    return Ok(());
                }
                let oid = self.tx.new_oid();
                self.change_column(relation, at, |col| {
                    col.default = Some(stored.text);
                    col.default_oid = oid;
                    col.default_depends_on = stored.depends_on;
                });
            }
        }
        Ok(())
    }

    fn drop_not_null(&self, relation: &Relation, at: usize, recurse: bool) -> Result<()> {
        let catalog = self.catalog();
        let column = &relation.columns[at];
        let number = at as i16 + 1;
        let primary = relation.indexes.iter().filter_map(|i| catalog.relation(*i)?.index.as_ref());
        if primary.clone().any(|i| i.primary && i.keys.iter().any(|k| k.column == number)) {
            bail!(INVALID_TABLE_DEFINITION, "column \"{}\" is in a primary key", column.name);
        }
        if column.identity != 0 {
            bail!(SYNTAX_ERROR, "column \"{}\" of relation \"{}\" is an identity column", column.name, relation.name);
        }
        match catalog.not_null_constraint(relation, number) {
            Some(constraint) => {
                self.refuse_inherited_constraint(relation, constraint)?;
                self.drop_constraint_from_children(relation, constraint, recurse)?;
                self.drop_constraint_row(constraint)?;
            }
            None => self.change_column(relation, at, |col| col.not_null = false),
        }
        Ok(())
    }

    fn drop_expression(&self, relation: &Relation, at: usize, missing_ok: bool) -> Result<()> {
        let column = &relation.columns[at];
        if column.generated == 0 {
            let message = format!("column \"{}\" of relation \"{}\" is not a generated column", column.name, relation.name);
            if missing_ok {
                self.notice(format!("{message}, skipping"));
                return Ok(());
            }
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{message}");
        }
        if column.generated == b'v' {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "ALTER TABLE / DROP EXPRESSION is not supported for virtual generated columns"
            )
            .detail(format!("Column \"{}\" of relation \"{}\" is a virtual generated column.", column.name, relation.name)));
        }
        self.change_column(relation, at, |col| {
            col.generated = 0;
            forget_default(col);
        });
        Ok(())
    }

    fn change_options(&self, relation: &Relation, at: usize, def: Option<&N>, set: bool) -> Result<()> {
        let Some(N::List(list)) = def else { return Ok(()) };
        let column = &relation.columns[at];
        if set && options(&list.items).any(|def| def.defname == "compression_level") {
            self.check_compressible(column.ty)?;
        }
        let changed = if set {
            ParametersOf::Column.changed_list(&column.options, &list.items)?
        } else {
            reset_list(&column.options, &list.items)?
        };
        self.change_column(relation, at, |column| column.options = changed);
        Ok(())
    }

    /// The result of ALTER COLUMN TYPE for a column.
    pub fn changed_type(&self, relation: &Relation, at: usize, def: Option<&N>) -> Result<TypeChange> {
        let Some(N::ColumnDef(def)) = def else { return Err(DbError::internal("ALTER TYPE without a type")) };
        let name = def.type_name.as_ref().ok_or_else(|| DbError::internal("ALTER TYPE without a type"))?;
        let generated = relation.columns[at].generated != 0;
        if generated && def.raw_default.is_some() {
            let column = &relation.columns[at].name;
            return Err(err!(INVALID_COLUMN_DEFINITION, "cannot specify USING when altering type of generated column")
                .detail(format!("Column \"{column}\" is a generated column.")));
        }
        let (ty, typmod) = self.type_from_name(name)?;
        if relation.columns[at].identity != 0 && !super::sequence::is_sequence_type(ty) {
            bail!(INVALID_PARAMETER_VALUE, "identity column type must be smallint, integer, or bigint");
        }
        let mut column = Column { ..relation.columns[at].clone() };
        let fresh = self.new_column(&column.name, ty, typmod)?;
        self.refuse_own_rows(relation, ty)?;
        self.refuse_used_column(relation, at)?;
        column.ty = ty;
        column.typmod = typmod;
        column.kind = fresh.kind;
        column.storage = fresh.storage;
        column.collation = match &def.coll_clause {
            Some(clause) => self.collation(&melba_parse::nodes::strings(&clause.collname), ty, clause.location)?,
            None => fresh.collation,
        };
        if fresh.storage == b'p' {
            column.compression = 0;
        }
        if relation.columns[at].identity != 0
            && let Some(sequence) = self.owned_sequence(relation, &relation.columns[at].name)
        {
            self.change_sequence(&sequence, &super::sequence::SequenceOptions::of_type(ty))?;
        }
        Ok(TypeChange { at, column, using: def.raw_default.as_deref().cloned() })
    }

    /// An expression stored as text that uses the column would have another meaning with another type of it.
    fn refuse_used_column(&self, relation: &Relation, at: usize) -> Result<()> {
        let catalog = self.catalog();
        let name = &relation.columns[at].name;
        let address = ObjectAddress { class: classes::PG_CLASS, object: relation.oid, sub: at as i32 + 1 };
        if let Some(column) = self.generated_from(relation, at)?.first() {
            let user = &relation.columns[*column].name;
            return Err(err!(FEATURE_NOT_SUPPORTED, "cannot alter type of a column used by a generated column")
                .detail(format!("Column \"{name}\" is used by generated column \"{user}\".")));
        }
        for dependent in catalog.dependents(address).map(|d| d.dependent).filter(|d| d.object != relation.oid) {
            let (what, detail) = match dependent.class {
                classes::PG_PROC => {
                    ("function or procedure", format!("{} depends on column \"{name}\"", self.describe(dependent)))
                }
                classes::PG_TRIGGER => {
                    ("trigger definition", format!("{} depends on column \"{name}\"", self.describe(dependent)))
                }
                classes::PG_POLICY => ("policy definition", format!("{} depends on column \"{name}\"", self.describe(dependent))),
                classes::PG_CLASS if catalog.relation(dependent.object).is_some_and(|r| r.rule.is_valid()) => {
                    ("view or rule", format!("rule _RETURN on {} depends on column \"{name}\"", self.describe(dependent)))
                }
                _ => continue,
            };
            let used = if matches!(dependent.class, classes::PG_TRIGGER | classes::PG_POLICY) { "in" } else { "by" };
            return Err(err!(FEATURE_NOT_SUPPORTED, "cannot alter type of a column used {used} a {what}").detail(detail));
        }
        Ok(())
    }

    /// The places of the generated columns that are computed from a column.
    pub fn generated_from(&self, relation: &Relation, at: usize) -> Result<Vec<usize>> {
        let mut found = Vec::new();
        let visible = Arc::new(relation.clone());
        for (place, column) in relation.columns.iter().enumerate().filter(|(_, c)| c.generated != 0 && !c.dropped) {
            let Some(text) = &column.default else { continue };
            let expression = self.with_context(|c| melba_analyze::analyze_stored_expression(c, text, Some(&visible), None))?;
            let mut uses = false;
            expression.visit_vars(&mut |v: &Var| uses |= v.column == 0 || v.column as usize == at + 1);
            if uses && place != at {
                found.push(place);
            }
        }
        Ok(found)
    }

    /// Columns of a row type hold values of the type as it was.
    pub fn refuse_used_row_type(&self, relation: &Relation) -> Result<()> {
        self.refuse_columns_of(relation, relation.row_type, &mut Vec::new())
    }

    /// Refuses columns of a type, and of types built from it.
    fn refuse_columns_of(&self, relation: &Relation, ty: Oid, seen: &mut Vec<Oid>) -> Result<()> {
        if !ty.is_valid() || seen.contains(&ty) {
            return Ok(());
        }
        seen.push(ty);
        let catalog = self.catalog();
        for dependent in catalog.dependents(ObjectAddress { class: classes::PG_TYPE, object: ty, sub: 0 }) {
            let dependent = dependent.dependent;
            match (dependent.class, catalog.relation(dependent.object)) {
                (classes::PG_TYPE, _) => self.refuse_columns_of(relation, dependent.object, seen)?,
                (classes::PG_CLASS, Some(user)) if dependent.sub > 0 && user.oid != relation.oid => {
                    if matches!(user.storage, Storage::Tree(_)) || user.is_partitioned() {
                        let column = &user.columns[dependent.sub as usize - 1].name;
                        let is_type = relation.kind == RelationKind::Composite;
                        let (what, used) = if is_type { ("type", "it") } else { ("table", "its row type") };
                        bail!(
                            FEATURE_NOT_SUPPORTED,
                            "cannot alter {what} \"{}\" because column \"{}.{column}\" uses {used}",
                            relation.name,
                            user.name
                        );
                    }
                    self.refuse_columns_of(relation, user.row_type, seen)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Refuses a column of a type that has the relation's own rows in it.
    pub fn refuse_own_rows(&self, relation: &Relation, ty: Oid) -> Result<()> {
        let catalog = self.catalog();
        let (mut todo, mut at) = (vec![ty], 0);
        while let Some(ty) = todo.get(at).copied() {
            at += 1;
            if relation.row_type.is_valid() && ty == relation.row_type {
                bail!(INVALID_TABLE_DEFINITION, "composite type {} cannot be made a member of itself", relation.name);
            }
            let Some(entry) = catalog.type_(ty) else { continue };
            let columns = catalog.relation(entry.relation).into_iter().flat_map(|r| r.columns.iter());
            let parts = columns.filter(|c| !c.dropped).map(|c| c.ty);
            let inner = [entry.element, entry.domain.as_ref().map_or(Oid::INVALID, |d| d.base)];
            for part in parts.chain(inner).chain(entry.range.iter().map(|r| r.subtype)) {
                if part.0 >= classes::FIRST_USER_OID && !todo.contains(&part) {
                    todo.push(part);
                }
            }
        }
        Ok(())
    }

    fn add_identity(&self, relation: &Relation, at: usize, constraint: &Constraint) -> Result<()> {
        let column = &relation.columns[at];
        if !super::sequence::is_sequence_type(column.ty) {
            bail!(INVALID_PARAMETER_VALUE, "identity column type must be smallint, integer, or bigint");
        }
        if !column.not_null {
            bail!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "column \"{}\" of relation \"{}\" must be declared NOT NULL before identity can be added",
                column.name,
                relation.name
            );
        }
        if column.identity != 0 {
            bail!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "column \"{}\" of relation \"{}\" is already an identity column",
                column.name,
                relation.name
            );
        }
        if column.default.is_some() {
            bail!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "column \"{}\" of relation \"{}\" already has a default value",
                column.name,
                relation.name
            );
        }
        let options = self.sequence_options(&constraint.options, Some(column.ty))?;
        let letter = constraint.generated_when.as_bytes().first().copied().unwrap_or(b'a');
        self.change_column(relation, at, |col| col.identity = letter);
        self.create_owned_sequence("ALTER TABLE", relation.oid, at, options, true)
    }

    fn alter_identity(&self, relation: &Relation, at: usize, c: &AlterTableCmd, def: Option<&N>) -> Result<()> {
        let column = &relation.columns[at];
        let not_identity = || format!("column \"{}\" of relation \"{}\" is not an identity column", column.name, relation.name);
        match (c.subtype(), def) {
            (At::AtAddIdentity, Some(N::Constraint(constraint))) => self.add_identity(relation, at, constraint),
            (At::AtSetIdentity, Some(N::List(list))) => {
                if column.identity == 0 {
                    bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{}", not_identity());
                }
                let mut letter = column.identity;
                let mut rest = Vec::new();
                for node in &list.items {
                    match node.node.as_ref() {
                        Some(N::DefElem(d)) if d.defname == "generated" => {
                            letter = match d.arg.as_ref().and_then(|a| a.node.as_ref()) {
                                Some(N::Integer(i)) => i.ival as u8,
                                _ => letter,
                            };
                        }
                        _ => rest.push(node.clone()),
                    }
                }
                self.change_column(relation, at, |col| col.identity = letter);
                match self.owned_sequence(relation, &column.name) {
                    Some(sequence) if !rest.is_empty() => self.change_sequence(&sequence, &self.sequence_options(&rest, None)?),
                    _ => Ok(()),
                }
            }
            (At::AtDropIdentity, _) => {
                if column.identity == 0 {
                    if c.missing_ok {
                        self.notice(format!("{}, skipping", not_identity()));
                        return Ok(());
                    }
                    bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{}", not_identity());
                }
                let sequence = self.owned_sequence(relation, &column.name);
                self.change_column(relation, at, |col| col.identity = 0);
                if let Some(sequence) = sequence {
                    let info = sequence.sequence.as_ref().map(|s| SequenceInfo { identity: false, ..(**s).clone() });
                    self.put_relation(Relation { sequence: info.map(Arc::new), ..(*sequence).clone() });
                    let address = ObjectAddress { class: classes::PG_CLASS, object: sequence.oid, sub: 0 };
                    self.drop_addresses(&[address], true)?;
                }
                Ok(())
            }
            _ => Err(DbError::unsupported("this change of an identity column")),
        }
    }
}

fn forget_default(column: &mut Column) {
    column.default = None;
    column.default_oid = Oid::INVALID;
    column.default_depends_on = vec![];
}

/// In an index, only expressions have separate statistics.
fn check_has_statistics(relation: &Relation, at: usize) -> Result<()> {
    let Some(index) = &relation.index else { return Ok(()) };
    let (column, name) = (&relation.columns[at].name, &relation.name);
    match index.keys.get(at) {
        None => bail!(FEATURE_NOT_SUPPORTED, "cannot alter statistics on included column \"{column}\" of index \"{name}\""),
        Some(key) if key.column != 0 => {
            let message = format!("cannot alter statistics on non-expression column \"{column}\" of index \"{name}\"");
            Err(err!(FEATURE_NOT_SUPPORTED, "{message}").hint("Alter statistics on table column instead."))
        }
        Some(_) => Ok(()),
    }
}
