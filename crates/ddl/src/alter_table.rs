//! ALTER TABLE: one function per subcommand that is not about a column's definition.

use std::sync::Arc;

use melba_catalog::{
    Column, Constraint as Row, ConstraintKind, ObjectAddress, Persistence, Relation, RelationKind, Storage, classes,
};
use melba_engine::RelationLockMode;
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::{
    AlterTableCmd, AlterTableStmt, AlterTableType as At, ColumnDef, ConstrType, Constraint, DropBehavior, ObjectType,
    node::Node as N,
};

use super::Ddl;
use super::alter_kind::check_form;
use super::create_table::TableBuilder;
use super::schema::given;
use super::storage_parameters::{ParametersOf, reset_list};
use super::typed_table::{cascades, check_typed};
use melba_parse::command::object_word;
use melba_parse::nodes::inner;

/// Names that columns may not have.
pub fn is_system_column(name: &str) -> bool {
    matches!(name, "tableoid" | "cmax" | "xmax" | "cmin" | "xmin" | "ctid")
}

impl Ddl<'_> {
    pub fn alter_table(&self, s: &AlterTableStmt) -> Result<()> {
        let name = s.relation.as_ref().ok_or_else(|| DbError::internal("ALTER TABLE without a name"))?;
        if s.missing_ok && self.find_relation(name)?.is_none() {
            self.notice(format!("relation \"{}\" does not exist, skipping", name.relname));
            return Ok(());
        }
        let mut commands = Vec::new();
        for node in &s.cmds {
            if let N::AlterTableCmd(command) = inner(node)? {
                commands.push(command.as_ref());
            }
        }
        let relation = self.open_target(name)?;
        check_kind(s.objtype(), &relation)?;
        self.require_own_relation(&relation)?;
        self.refuse_pending_events(&relation, "ALTER TABLE")?;
        commands.iter().try_for_each(|c| check_typed(&relation, c))?;
        let mut tables = match cascades(&commands) {
            Some(cascade) => self.typed_tables(&relation, cascade)?,
            None => Vec::new(),
        };
        tables.insert(0, relation.oid);
        // As PostgreSQL: drops first, then types, then the rest.
        commands.sort_by_key(|c| pass(c.subtype()));
        let is_type = |c: &&AlterTableCmd| c.subtype() == At::AtAlterColumnType;
        let first = commands.iter().position(is_type).unwrap_or(commands.len());
        let (before, rest) = commands.split_at(first);
        let (types, after) = rest.split_at(rest.iter().filter(|c| is_type(c)).count());
        for table in tables {
            let recurse = name.inh || table != relation.oid;
            before.iter().try_for_each(|c| self.alter_command(table, c, recurse))?;
            self.alter_column_types(table, types, recurse)?;
            after.iter().try_for_each(|c| self.alter_command(table, c, recurse))?;
        }
        Ok(())
    }

    fn alter_command(&self, oid: Oid, c: &AlterTableCmd, recurse: bool) -> Result<()> {
        let relation = self.relation(oid)?;
        check_form(c.subtype(), &relation)?;
        let def = c.def.as_deref().and_then(|d| d.node.as_ref());
        match (c.subtype(), def) {
            (At::AtAddColumn, Some(N::ColumnDef(def))) => self.add_column_everywhere(&relation, def, c.missing_ok, recurse),
            (At::AtDropColumn, _) => self.drop_column_everywhere(&relation, c, recurse),
            (At::AtAddConstraint, Some(N::Constraint(constraint))) => {
                self.add_constraint_everywhere(oid, None, constraint, recurse)
            }
            (At::AtAddIndexConstraint | At::AtAddIndex, _) => Err(DbError::unsupported("this form of ADD CONSTRAINT")),
            (At::AtDropConstraint, _) => self.drop_table_constraint(&relation, c, recurse),
            (At::AtValidateConstraint, _) => self.validate_constraint(&relation, &c.name, recurse),
            (At::AtAlterConstraint, Some(N::AtalterConstraint(c))) => self.alter_constraint(&relation, c, recurse),
            (At::AtChangeOwner, _) => {
                let spec = c.newowner.as_ref().ok_or_else(|| DbError::internal("OWNER TO without a role"))?;
                self.change_relation_owner(&relation, self.role_spec(spec)?)
            }
            (At::AtSetLogged, _) => self.set_logged(&relation, Persistence::Permanent),
            (At::AtSetUnLogged, _) => self.set_logged(&relation, Persistence::Unlogged),
            (At::AtAddOf, Some(N::TypeName(name))) => self.set_table_type(&relation, name),
            (At::AtDropOf, _) => self.clear_table_type(&relation),
            (At::AtAddInherit, Some(N::RangeVar(parent))) => self.add_inherit(&relation, parent),
            (At::AtDropInherit, Some(N::RangeVar(parent))) => self.drop_inherit(&relation, parent),
            (At::AtAttachPartition, Some(N::PartitionCmd(part))) => match relation.index {
                Some(_) => self.attach_index_partition(&relation, part),
                None => self.attach_partition(&relation, part),
            },
            (At::AtDetachPartition, Some(N::PartitionCmd(part))) => self.detach_partition(&relation, part),
            (At::AtSetRelOptions | At::AtReplaceRelOptions, Some(N::List(list))) => {
                let options = ParametersOf::relation(&relation).changed_list(&relation.options, &list.items)?;
                if relation.view_query.is_some() {
                    let query = self.with_context(|c| melba_analyze::analyze_view(c, &relation))?;
                    self.check_checkable(&relation.name, &options, &query)?;
                }
                self.put_relation(Relation { options, ..(*relation).clone() });
                Ok(())
            }
            (At::AtResetRelOptions, Some(N::List(list))) => {
                let options = reset_list(&relation.options, &list.items)?;
                self.put_relation(Relation { options, ..(*relation).clone() });
                Ok(())
            }
            (At::AtClusterOn, _) => self.cluster_on(&relation, Some(&c.name)),
            (At::AtDropCluster, _) => self.cluster_on(&relation, None),
            (At::AtReplicaIdentity, Some(N::ReplicaIdentityStmt(s))) => self.set_replica_identity(&relation, s),
            (At::AtSetTableSpace, _) if c.name == "pg_default" => Ok(()),
            (At::AtSetAccessMethod, _) => self.set_access_method(&relation, &c.name),
            (_, _) if self.set_row_security(&relation, c)? => Ok(()),
            (_, _) if self.enable_triggers(&relation, c, recurse)? => Ok(()),
            (_, _) if self.alter_column_command(&relation, c, def, recurse)? => Ok(()),
            (other, _) => Err(DbError::unsupported(format!("ALTER TABLE {}", other.as_str_name().replace('_', " ")))),
        }
    }

    pub fn add_column(&self, relation: &Relation, def: &ColumnDef, if_not_exists: bool) -> Result<()> {
        if is_system_column(&def.colname) {
            bail!(DUPLICATE_COLUMN, "column name \"{}\" conflicts with a system column name", def.colname);
        }
        if relation.columns.iter().any(|c| *c.name == *def.colname && !c.dropped) {
            let message = format!("column \"{}\" of relation \"{}\" already exists", def.colname, relation.name);
            if if_not_exists {
                self.session.notice(err!(DUPLICATE_COLUMN, "{message}, skipping").severity(melba_types::Severity::Notice));
                return Ok(());
            }
            bail!(DUPLICATE_COLUMN, "{message}");
        }
        let mut builder = TableBuilder { table: relation.name.to_string(), ..TableBuilder::default() };
        self.add_column_definition(&mut builder, def)?;
        let column = builder.columns.pop().ok_or_else(|| DbError::internal("no column"))?;
        self.refuse_own_rows(relation, column.ty)?;
        let at = relation.columns.len();
        let kind = column.kind;
        let mut columns = relation.columns.to_vec();
        let not_null = column.not_null;
        columns.push(Column { not_null: false, ..column });
        self.put_relation(Relation { columns: columns.into(), ..relation.clone() });
        if let Storage::Tree(tree) = relation.storage {
            self.tx.engine.extend_table_tree(tree, &[kind])?;
        }
        for (_, options, identity) in builder.sequences {
            self.create_owned_sequence("ALTER TABLE", relation.oid, at, options, identity)?;
        }
        // The default is first: existing rows get it.
        let is_default = |c: &Constraint| matches!(c.contype(), ConstrType::ConstrDefault | ConstrType::ConstrGenerated);
        for (_, c) in builder.constraints.iter().filter(|(_, c)| is_default(c)) {
            self.set_column_expression(relation.oid, at, c)?;
        }
        let added = &self.relation(relation.oid)?.columns[at];
        if added.default.is_some() || added.identity != 0 {
            // Values that columns of that type hold would lack it.
            self.refuse_used_row_type(relation)?;
        }
        self.fill_new_column(relation.oid, at)?;
        if not_null {
            let named = builder.constraints.iter().find(|(_, c)| c.contype() == ConstrType::ConstrNotnull);
            let name = named.map(|(_, c)| c.conname.clone()).filter(|n| !n.is_empty());
            self.check_no_nulls(relation.oid, at)?;
            self.add_not_null(relation.oid, at, name, false)?;
        }
        for (_, c) in builder.constraints.iter().filter(|(_, c)| !is_default(c) && c.contype() != ConstrType::ConstrNotnull) {
            self.add_validated(relation.oid, Some(at), c, true)?;
        }
        Ok(())
    }

    pub fn drop_column(&self, relation: &Relation, c: &AlterTableCmd) -> Result<()> {
        let Some(at) = relation.columns.iter().position(|col| *col.name == *c.name && !col.dropped) else {
            if is_system_column(&c.name) {
                bail!(FEATURE_NOT_SUPPORTED, "cannot drop system column \"{}\"", c.name);
            }
            if c.missing_ok {
                self.notice(format!("column \"{}\" of relation \"{}\" does not exist, skipping", c.name, relation.name));
                return Ok(());
            }
            bail!(UNDEFINED_COLUMN, "column \"{}\" of relation \"{}\" does not exist", c.name, relation.name);
        };
        // Values that are stored have their fields by place, and would be taken for others.
        if self.refuse_used_row_type(relation).is_err() {
            return Err(DbError::unsupported("dropping a column of a row type that columns of tables have"));
        }
        let address = ObjectAddress { class: classes::PG_CLASS, object: relation.oid, sub: at as i32 + 1 };
        self.drop_addresses(&[address], c.behavior() == DropBehavior::DropCascade)
    }

    /// Keeps the column's place and removes all else of it.
    pub fn mark_column_dropped(&self, table: Oid, number: i32) -> Result<()> {
        let relation = self.relation(table)?;
        let mut columns = relation.columns.to_vec();
        let at = number as usize - 1;
        self.release_column(&relation, at)?;
        let name = format!("........pg.dropped.{number}........");
        columns[at] = Column {
            name: name.into(),
            dropped: true,
            not_null: false,
            default: None,
            default_oid: Oid::INVALID,
            default_depends_on: vec![],
            generated: 0,
            identity: 0,
            ty: Oid::INVALID,
            acl: None,
            ..columns[at].clone()
        };
        self.put_relation(Relation { columns: columns.into(), ..(*relation).clone() });
        Ok(())
    }

    /// Adds a constraint to one table; if `recurse`, keys of a partitioned table are added to its partitions.
    pub fn add_table_constraint(&self, table: Oid, column: Option<usize>, c: &Constraint, recurse: bool) -> Result<()> {
        let relation = &*self.relation(table)?;
        if c.contype() == ConstrType::ConstrNotnull {
            let columns = self.column_numbers(relation, &melba_parse::nodes::strings(&c.keys), false)?;
            for number in columns {
                let at = number as usize - 1;
                if let Some(existing) = self.catalog().not_null_constraint(relation, number) {
                    check_same_not_null(relation, existing, c)?;
                    let own = Row { local: true, ..(**existing).clone() };
                    self.tx.put(melba_catalog::Object::Constraint(Arc::new(own)));
                    continue;
                }
                let name = (!c.conname.is_empty()).then(|| c.conname.clone());
                if c.skip_validation {
                    self.add_not_null_unchecked(relation.oid, at, name, c.is_no_inherit)?;
                } else {
                    self.check_no_nulls(relation.oid, at)?;
                    self.add_not_null(relation.oid, at, name, c.is_no_inherit)?;
                }
            }
            return Ok(());
        }
        self.add_validated(table, column, c, recurse)
    }

    /// Adds a constraint and checks the existing rows.
    fn add_validated(&self, table: Oid, column: Option<usize>, c: &Constraint, recurse: bool) -> Result<()> {
        let relation = self.relation(table)?;
        let unmarked = if c.contype() == ConstrType::ConstrPrimary && c.indexname.is_empty() {
            let mut keys = match column {
                Some(column) => vec![column as i16 + 1],
                None => self.column_numbers(&relation, &melba_parse::nodes::strings(&c.keys), true)?,
            };
            keys.iter().try_for_each(|number| self.check_key_column(&relation, *number))?;
            keys.retain(|number| !self.catalog().is_never_null(&relation, *number as usize - 1));
            keys
        } else {
            Vec::new()
        };
        let before: Vec<Oid> = relation.constraints.clone();
        self.add_constraints_to(table, &[(column, c.clone())], recurse)?;
        unmarked.iter().try_for_each(|number| self.look_for_nulls(table, *number as usize - 1))?;
        let catalog = self.catalog();
        for oid in self.relation(table)?.constraints.iter().filter(|o| !before.contains(o)) {
            if let Some(row) = catalog.constraint(*oid)
                && row.kind == ConstraintKind::Check
                && row.validated
            {
                self.check_existing_rows(row)?;
            }
        }
        Ok(())
    }

    /// A primary key's columns are NOT NULL in all rows, the children's too.
    fn check_key_column(&self, relation: &Relation, number: i16) -> Result<()> {
        let catalog = self.catalog();
        let Some(row) = catalog.not_null_constraint(relation, number) else { return Ok(()) };
        let (marked, hint) = match () {
            () if row.no_inherit => ("NO INHERIT", INHERIT_HINT),
            () if !row.validated => ("NOT VALID", VALIDATE_HINT),
            () => return Ok(()),
        };
        let (name, table) = (&relation.columns[number as usize - 1].name, &relation.name);
        let detail = format!("The constraint \"{}\" on column \"{name}\" of table \"{table}\", marked {marked}, is ", row.name);
        Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "cannot create primary key on column \"{name}\"")
            .detail(detail + "incompatible with a primary key.")
            .hint(hint))
    }

    pub fn validate_constraint(&self, relation: &Relation, name: &str, recurse: bool) -> Result<()> {
        let row = self.constraint_of(relation, name)?;
        if !row.enforced {
            bail!(WRONG_OBJECT_TYPE, "cannot validate NOT ENFORCED constraint");
        }
        if row.validated {
            return Ok(());
        }
        self.validate_in_children(relation, &row, recurse)?;
        match row.kind {
            ConstraintKind::Check => self.check_existing_rows(&row)?,
            ConstraintKind::ForeignKey => self.validate_foreign_key(row.oid)?,
            ConstraintKind::NotNull => {
                row.columns.iter().try_for_each(|number| self.check_no_nulls(relation.oid, *number as usize - 1))?;
            }
            _ => bail!(
                WRONG_OBJECT_TYPE,
                "constraint \"{name}\" of relation \"{}\" is not a foreign key, check, or not-null constraint",
                relation.name
            ),
        }
        self.put_validated(&row);
        Ok(())
    }

    /// Notes that all rows have been found to satisfy a constraint.
    pub fn put_validated(&self, row: &Row) {
        self.tx.put(melba_catalog::Object::Constraint(Arc::new(Row { validated: true, ..row.clone() })));
        self.change_referenced_parts(row, &|part| part.validated = true);
    }

    pub fn constraint_of(&self, relation: &Relation, name: &str) -> Result<Arc<Row>> {
        let catalog = self.catalog();
        let found = relation.constraints.iter().filter_map(|c| catalog.constraint(*c)).find(|c| *c.name == *name);
        found
            .cloned()
            .ok_or_else(|| err!(UNDEFINED_OBJECT, "constraint \"{name}\" of relation \"{}\" does not exist", relation.name))
    }

    fn drop_table_constraint(&self, relation: &Relation, c: &AlterTableCmd, recurse: bool) -> Result<()> {
        let row = match self.constraint_of(relation, &c.name) {
            Ok(row) => row,
            Err(_) if c.missing_ok => {
                self.notice(format!("constraint \"{}\" of relation \"{}\" does not exist, skipping", c.name, relation.name));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.refuse_inherited_constraint(relation, &row)?;
        self.drop_constraint_from_children(relation, &row, recurse)?;
        let address = ObjectAddress { class: classes::PG_CONSTRAINT, object: row.oid, sub: 0 };
        self.drop_addresses(&[address], c.behavior() == DropBehavior::DropCascade)
    }

    fn change_relation_owner(&self, relation: &Relation, owner: Oid) -> Result<()> {
        self.check_new_owner(relation.owner, owner, Some(relation.namespace))?;
        self.give_relation(relation, owner);
        Ok(())
    }

    /// A relation and its parts get another owner.
    pub fn give_relation(&self, relation: &Relation, owner: Oid) {
        let catalog = self.catalog();
        self.put_relation(owned_by(relation, owner));
        for index in relation.indexes.iter().filter_map(|i| catalog.relation(*i)) {
            self.put_relation(Relation { owner, ..(**index).clone() });
        }
        for column in relation.columns.iter().filter(|c| !c.dropped) {
            if let Some(sequence) = self.owned_sequence(relation, &column.name) {
                self.put_relation(owned_by(&sequence, owner));
            }
        }
        if let Some(ty) = catalog.type_(relation.row_type) {
            self.give_type(ty, owner);
        }
    }
}

const INHERIT_HINT: &str =
    "You might need to make the existing constraint inheritable using ALTER TABLE ... ALTER CONSTRAINT ... INHERIT.";
const VALIDATE_HINT: &str = "You might need to validate it using ALTER TABLE ... VALIDATE CONSTRAINT.";

/// Refuses a NOT NULL constraint that differs from the column's.
fn check_same_not_null(relation: &Relation, existing: &Row, c: &Constraint) -> Result<()> {
    let (own, table) = (&existing.name, &relation.name);
    if existing.no_inherit != c.is_no_inherit {
        let message = format!("cannot change NO INHERIT status of NOT NULL constraint \"{own}\" on relation \"{table}\"");
        return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{message}").hint(INHERIT_HINT));
    }
    if !c.skip_validation && !existing.validated {
        let message = format!("incompatible NOT VALID constraint \"{own}\" on relation \"{table}\"");
        return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{message}").hint(VALIDATE_HINT));
    }
    if !c.conname.is_empty() && *c.conname != **own {
        let column = existing.columns.first().map_or("", |n| &relation.columns[*n as usize - 1].name);
        let message = format!("cannot create not-null constraint \"{}\" on column \"{column}\" of table \"{table}\"", c.conname);
        return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{message}")
            .detail(format!("A not-null constraint named \"{own}\" already exists for this column.")));
    }
    Ok(())
}

/// A relation after a change of owner, with the privileges granted by or to the old one.
fn owned_by(relation: &Relation, owner: Oid) -> Relation {
    let columns = relation.columns.iter().map(|c| Column { acl: given(&c.acl, relation.owner, owner), ..c.clone() });
    Relation { owner, acl: given(&relation.acl, relation.owner, owner), columns: columns.collect(), ..relation.clone() }
}

pub fn check_kind(kind: ObjectType, relation: &Relation) -> Result<()> {
    let right = match kind {
        // ALTER TABLE works on most relations, as in PostgreSQL.
        ObjectType::ObjectTable => relation.kind != RelationKind::Composite,
        ObjectType::ObjectIndex => matches!(relation.kind, RelationKind::Index | RelationKind::PartitionedIndex),
        ObjectType::ObjectSequence => relation.kind == RelationKind::Sequence,
        ObjectType::ObjectView => relation.kind == RelationKind::View,
        ObjectType::ObjectMatview => relation.kind == RelationKind::MaterializedView,
        _ => true,
    };
    if right {
        return Ok(());
    }
    let word = object_word(kind).to_lowercase();
    let article = if word.starts_with('i') { "an" } else { "a" };
    bail!(WRONG_OBJECT_TYPE, "\"{}\" is not {article} {word}", relation.name)
}

/// The strongest of the locks that an ALTER TABLE's commands take.
pub(super) fn lock_of(s: &AlterTableStmt) -> RelationLockMode {
    let commands = s.cmds.iter().filter_map(|node| if let Some(N::AlterTableCmd(c)) = &node.node { Some(c) } else { None });
    commands.map(|c| lock_mode(c)).max().unwrap_or(RelationLockMode::AccessExclusive)
}

/// The lock that a form of ALTER TABLE takes: as weak as PostgreSQL's.
fn lock_mode(c: &AlterTableCmd) -> RelationLockMode {
    let def = c.def.as_deref().and_then(|d| d.node.as_ref());
    match (c.subtype(), def) {
        (At::AtValidateConstraint | At::AtSetStatistics, _) => RelationLockMode::ShareUpdateExclusive,
        (
            At::AtEnableTrig
            | At::AtEnableTrigAll
            | At::AtEnableTrigUser
            | At::AtEnableAlwaysTrig
            | At::AtEnableReplicaTrig
            | At::AtDisableTrig
            | At::AtDisableTrigAll
            | At::AtDisableTrigUser,
            _,
        ) => RelationLockMode::ShareRowExclusive,
        (At::AtAddConstraint, Some(N::Constraint(c))) if c.contype() == ConstrType::ConstrForeign => {
            RelationLockMode::ShareRowExclusive
        }
        _ => RelationLockMode::AccessExclusive,
    }
}

/// The pass PostgreSQL runs a subcommand in.
fn pass(kind: At) -> u8 {
    match kind {
        At::AtDropColumn | At::AtDropConstraint | At::AtDropNotNull | At::AtDropExpression | At::AtDropIdentity => 0,
        At::AtAlterColumnType => 1,
        At::AtAddColumn => 2,
        At::AtColumnDefault | At::AtSetNotNull | At::AtAddIdentity | At::AtSetIdentity => 3,
        At::AtAddConstraint => 5,
        _ => 4,
    }
}
