//! GRANT and REVOKE on objects; `melba_catalog::grants` has their effect on a privilege list.

use std::sync::Arc;

use melba_catalog::acl::{GRANT_OPTION_SHIFT, NAMES};
use melba_catalog::grants::{ListChange, merged, privilege_bit};
use melba_catalog::privileges::AclKind;
use melba_catalog::{Acl, AclItem, Namespace, Object, Relation, RelationKind, Type, TypeKind, classes};
use melba_engine::{LockTag, RelationLockMode, Wait};
use melba_types::{DbError, Oid, Result, SqlState, bail, err};
use pg_query::protobuf::{DropBehavior, GrantStmt, GrantTargetType, Node, ObjectType, node::Node as N};

use super::Ddl;
use super::schema::relation_word;
use melba_parse::nodes::{inner, string, strings};

/// A GRANT or REVOKE, on any object.
pub struct Grant<'s> {
    pub is_grant: bool,
    pub grant_option: bool,
    pub cascade: bool,
    pub grantees: Vec<Oid>,
    /// Privileges by name, some of them on columns; none means all.
    privileges: &'s [Node],
}

/// In the order in which a REVOKE on the whole table processes them.
const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "cmax", "xmax", "cmin", "xmin", "ctid"];

/// The object of a list, for messages.
pub struct ListOf<'a> {
    pub kind: AclKind,
    pub owner: Oid,
    pub acl: &'a [AclItem],
    /// Another list with privileges on the same object: a column's table's.
    pub beside: &'a [AclItem],
    /// As in "permission denied for table t".
    pub described: String,
    /// As in "no privileges were granted for "t"".
    pub quoted: String,
}

/// PostgreSQL's word for an object in "invalid privilege type INSERT for schema".
fn kind_word(kind: AclKind) -> &'static str {
    match kind {
        AclKind::Table => "relation",
        AclKind::Column => "column",
        AclKind::Sequence => "sequence",
        AclKind::Database => "database",
        AclKind::Function => "function",
        AclKind::Language => "language",
        AclKind::Namespace => "schema",
        AclKind::Type => "type",
        AclKind::LargeObject => "large object",
        AclKind::Tablespace => "tablespace",
        AclKind::Parameter => "parameter",
    }
}

impl Grant<'_> {
    /// The effect of DROP OWNED on a list: REVOKE ALL ... FROM role CASCADE.
    pub fn revoke_all(role: Oid) -> Grant<'static> {
        Grant { is_grant: false, grant_option: false, cascade: true, grantees: vec![role], privileges: &[] }
    }

    /// The privileges on the whole of an object, of all there are.
    ///
    /// # Errors
    /// 42601 for a word that is no privilege, 0LP01 for one that such objects do not have.
    pub fn whole(&self, all: u64, kind: AclKind) -> Result<u64> {
        if self.privileges.is_empty() {
            return Ok(all);
        }
        let mut bits = 0;
        for node in self.privileges {
            let N::AccessPriv(privilege) = inner(node)? else { continue };
            if privilege.cols.is_empty() {
                bits |= named_privilege(&privilege.priv_name, all, kind)?;
            } else if kind != AclKind::Table {
                bail!(INVALID_GRANT_OPERATION, "column privileges are only valid for relations");
            }
        }
        Ok(bits)
    }

    /// The same for a table, whose statement might have been meant for a sequence.
    fn whole_table(&self) -> Result<u64> {
        let all = AclKind::Table.all();
        if self.privileges.is_empty() {
            return Ok(all);
        }
        let bits = self.whole(all | AclKind::Sequence.all(), AclKind::Table)?;
        match NAMES.iter().enumerate().find(|(bit, _)| bits & !all & 1 << bit != 0) {
            Some((_, word)) => Err(err!(INVALID_GRANT_OPERATION, "invalid privilege type {word} for table")),
            None => Ok(bits),
        }
    }

    /// By place, the privileges on columns.
    fn of_columns(&self, ddl: &Ddl<'_>, relation: &Relation) -> Result<Vec<u64>> {
        let mut bits = vec![0; relation.columns.len()];
        for node in self.privileges {
            let N::AccessPriv(privilege) = inner(node)? else { continue };
            if privilege.cols.is_empty() {
                continue;
            }
            let named = named_privilege(&privilege.priv_name, AclKind::Column.all(), AclKind::Column)?;
            for number in ddl.column_numbers(relation, &strings(&privilege.cols), false)? {
                bits[number as usize - 1] |= named;
            }
        }
        Ok(bits)
    }
}

/// The bits of a privilege by name; of the empty name, which is ALL, all.
fn named_privilege(name: &str, all: u64, kind: AclKind) -> Result<u64> {
    if name.is_empty() {
        return Ok(all);
    }
    let bit = privilege_bit(name).ok_or_else(|| err!(SYNTAX_ERROR, "unrecognized privilege type \"{name}\""))?;
    if bit & all == 0 {
        let word = NAMES[bit.trailing_zeros() as usize];
        bail!(INVALID_GRANT_OPERATION, "invalid privilege type {word} for {}", kind_word(kind));
    }
    Ok(bit)
}

impl Ddl<'_> {
    /// The clauses of a GRANT or REVOKE beside its objects.
    pub fn read_grant<'s>(&self, s: &'s GrantStmt) -> Result<Grant<'s>> {
        if let Some(grantor) = &s.grantor
            && self.role_spec(grantor)? != self.user
        {
            bail!(FEATURE_NOT_SUPPORTED, "grantor must be current user");
        }
        let mut grantees = Vec::new();
        for node in &s.grantees {
            if let N::RoleSpec(spec) = inner(node)? {
                grantees.push(self.role_spec(spec)?);
            }
        }
        let cascade = s.behavior() == DropBehavior::DropCascade;
        Ok(Grant { is_grant: s.is_grant, grant_option: s.grant_option, cascade, grantees, privileges: &s.privileges })
    }

    pub fn grant(&self, s: &GrantStmt) -> Result<()> {
        let grant = self.read_grant(s)?;
        match s.objtype() {
            ObjectType::ObjectTable | ObjectType::ObjectSequence => {
                let relations = self.granted_relations(s)?;
                relations.iter().try_for_each(|relation| self.grant_on_relation(s.objtype(), &grant, relation))
            }
            ObjectType::ObjectSchema => {
                let names = s.objects.iter().filter_map(string);
                names.into_iter().try_for_each(|name| self.grant_on_schema(&grant, self.namespace(name)?.oid))
            }
            ObjectType::ObjectDatabase => {
                let names = s.objects.iter().filter_map(string);
                names.into_iter().try_for_each(|name| self.grant_on_database(&grant, self.database_by_name(name)?.oid))
            }
            ObjectType::ObjectType | ObjectType::ObjectDomain => {
                let is_domain = s.objtype() == ObjectType::ObjectDomain;
                s.objects.iter().try_for_each(|node| self.grant_on_type(&grant, self.named_type(Some(node))?.oid, is_domain))
            }
            ObjectType::ObjectLargeobject => self.grant_on_large_objects(s, &grant),
            ObjectType::ObjectFunction | ObjectType::ObjectProcedure | ObjectType::ObjectRoutine => {
                self.grant_on_routines(s, &grant)
            }
            _ => Err(DbError::unsupported("GRANT on this kind of object")),
        }
    }

    /// A list after the statement, of whose privileges the user may grant some or all.
    ///
    /// # Errors
    /// 42501 when the user has none on the object at all; see `Catalog::changed_list`.
    pub fn changed_acl(&self, grant: &Grant<'_>, on: &ListOf<'_>, privileges: u64) -> Result<Arc<[AclItem]>> {
        let catalog = self.catalog();
        let both = merged(on.beside, on.acl);
        let (grantor, grantable) = catalog.best_grantor(&both, self.user, on.owner, privileges);
        if grantable == 0 {
            let any = on.kind.all() | on.kind.all() << GRANT_OPTION_SHIFT;
            if catalog.listed_privileges(&both, self.user, on.owner) & any == 0 {
                bail!(INSUFFICIENT_PRIVILEGE, "permission denied for {}", on.described);
            }
        }
        let is_partial = grantable != privileges && !grant.privileges.is_empty();
        if grantable == 0 || is_partial {
            let some = if grantable == 0 { "no" } else { "not all" };
            let quoted = &on.quoted;
            let (state, message) = match grant.is_grant {
                true => (SqlState::WARNING_PRIVILEGE_NOT_GRANTED, format!("{some} privileges were granted for {quoted}")),
                false => (SqlState::WARNING_PRIVILEGE_NOT_REVOKED, format!("{some} privileges could be revoked for {quoted}")),
            };
            self.warning(state, message);
        }
        let change = ListChange {
            is_grant: grant.is_grant,
            grant_option: grant.grant_option,
            cascade: grant.cascade,
            owner: on.owner,
            grantor,
            privileges: grantable,
            grantees: &grant.grantees,
        };
        Ok(catalog.changed_list(on.acl, &change)?.into())
    }

    /// Keeps others from changing the definition of an object that is no relation until the transaction ends. Needed before
    /// reading a definition that is written back changed; for a relation, a lock that conflicts with itself serves.
    pub fn lock_definition(&self, database: Oid, class: Oid, object: Oid) -> Result<()> {
        let tag = LockTag::Object { database: database.0, class: class.0, object: object.0 };
        self.tx.engine.lock_object(tag, RelationLockMode::ShareUpdateExclusive, Wait::Block)?;
        Ok(())
    }

    pub fn grant_on_schema(&self, grant: &Grant<'_>, oid: Oid) -> Result<()> {
        self.lock_definition(self.tx.database, classes::PG_NAMESPACE, oid)?;
        let catalog = self.catalog();
        let namespace = catalog.namespace(oid).ok_or_else(|| gone("schema", oid))?;
        let acl = namespace.acl.as_deref();
        let acl = self.acl_after(grant, AclKind::Namespace, namespace.owner, acl, "schema", &namespace.name)?;
        self.tx.put(Object::Namespace(Arc::new(Namespace { acl: Some(acl), ..(**namespace).clone() })));
        Ok(())
    }

    pub fn grant_on_database(&self, grant: &Grant<'_>, oid: Oid) -> Result<()> {
        self.lock_definition(Oid::INVALID, classes::PG_DATABASE, oid)?;
        let catalog = self.catalog();
        let database = catalog.database(oid).ok_or_else(|| gone("database", oid))?;
        let acl = database.acl.as_deref();
        let acl = self.acl_after(grant, AclKind::Database, database.owner, acl, "database", &database.name)?;
        self.tx.put(Object::Database(Arc::new(melba_catalog::Database { acl: Some(acl), ..(**database).clone() })));
        Ok(())
    }

    pub fn grant_on_type(&self, grant: &Grant<'_>, oid: Oid, is_domain: bool) -> Result<()> {
        self.lock_definition(self.tx.database, classes::PG_TYPE, oid)?;
        let catalog = self.catalog();
        let ty = catalog.type_(oid).ok_or_else(|| gone("type", oid))?;
        if ty.element.is_valid() && *ty.subscript == *"array_subscript_handler" {
            return Err(err!(INVALID_GRANT_OPERATION, "cannot set privileges of array types")
                .hint("Set the privileges of the element type instead."));
        }
        if ty.type_kind == TypeKind::Multirange {
            return Err(err!(INVALID_GRANT_OPERATION, "cannot set privileges of multirange types")
                .hint("Set the privileges of the range type instead."));
        }
        if is_domain && ty.type_kind != TypeKind::Domain {
            bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a domain", ty.name);
        }
        let acl = self.acl_after(grant, AclKind::Type, ty.owner, ty.acl.as_deref(), "type", &ty.name)?;
        self.tx.put(Object::Type(Arc::new(Type { acl: Some(acl), ..(**ty).clone() })));
        Ok(())
    }

    /// The list of an object that has one list and no parts.
    pub fn acl_after(
        &self,
        grant: &Grant<'_>,
        kind: AclKind,
        owner: Oid,
        acl: Option<&[AclItem]>,
        what: &str,
        name: &str,
    ) -> Result<Arc<[AclItem]>> {
        let privileges = grant.whole(kind.all(), kind)?;
        let usual = kind.default_acl(owner);
        let on = ListOf {
            kind,
            owner,
            acl: acl.unwrap_or(&usual),
            beside: &[],
            described: format!("{what} {name}"),
            quoted: format!("\"{name}\""),
        };
        self.changed_acl(grant, &on, privileges)
    }

    /// The relations that a statement names, or all of some schemas; none of them can change meanwhile.
    fn granted_relations(&self, s: &GrantStmt) -> Result<Vec<Arc<Relation>>> {
        let mut out = Vec::new();
        for node in &s.objects {
            match inner(node)? {
                N::RangeVar(name) => out.push(self.open_target(name)?),
                N::String(schema) if s.targtype() == GrantTargetType::AclTargetAllInSchema => {
                    let wants_sequences = s.objtype() == ObjectType::ObjectSequence;
                    let catalog = self.catalog();
                    for relation in catalog.relations_in(self.namespace(&schema.sval)?.oid) {
                        let counts = match relation.kind {
                            RelationKind::Sequence => wants_sequences,
                            RelationKind::Index | RelationKind::PartitionedIndex | RelationKind::Composite => false,
                            RelationKind::Toast => false,
                            _ => !wants_sequences,
                        };
                        if counts {
                            self.lock_relation(relation.oid, self.lock)?;
                            out.extend(self.catalog().relation(relation.oid).cloned());
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(out)
    }

    pub fn grant_on_relation(&self, kind: ObjectType, grant: &Grant<'_>, relation: &Relation) -> Result<()> {
        match relation.kind {
            RelationKind::Index | RelationKind::PartitionedIndex => {
                bail!(WRONG_OBJECT_TYPE, "\"{}\" is an index", relation.name)
            }
            RelationKind::Composite => bail!(WRONG_OBJECT_TYPE, "\"{}\" is a composite type", relation.name),
            RelationKind::Sequence => return self.grant_on_sequence(kind, grant, relation),
            _ if kind == ObjectType::ObjectSequence => {
                bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a sequence", relation.name)
            }
            _ => {}
        }
        let whole = grant.whole_table()?;
        let usual = AclKind::Table.default_acl(relation.owner);
        let before = relation.acl.as_deref().unwrap_or(&usual);
        let described = format!("{} {}", relation_word(relation.kind), relation.name);
        let mut next = relation.clone();
        if whole != 0 {
            let quoted = format!("\"{}\"", relation.name);
            let on = ListOf { kind: AclKind::Table, owner: relation.owner, acl: before, beside: &[], described, quoted };
            next.acl = Some(self.changed_acl(grant, &on, whole)?);
        }
        // A grantee that loses a privilege on the whole loses it on the columns.
        let lost = if grant.is_grant { 0 } else { whole & AclKind::Column.all() };
        if lost != 0 && relation.kind != RelationKind::View {
            // They have no lists, but are warned of.
            SYSTEM_COLUMNS.iter().try_for_each(|name| self.column_acl(grant, relation, (name, &None), before, lost).map(drop))?;
        }
        let mut columns = relation.columns.to_vec();
        for (column, named) in columns.iter_mut().zip(grant.of_columns(self, relation)?) {
            if named | lost != 0 && !column.dropped {
                column.acl = self.column_acl(grant, relation, (&column.name, &column.acl), before, named | lost)?;
            }
        }
        self.put_relation(Relation { columns: columns.into(), ..next });
        Ok(())
    }

    /// The list of a column, which has this one now, after the statement.
    fn column_acl(
        &self,
        grant: &Grant<'_>,
        relation: &Relation,
        (name, acl): (&str, &Acl),
        of_table: &[AclItem],
        privileges: u64,
    ) -> Result<Acl> {
        let described = format!("column \"{name}\" of relation \"{}\"", relation.name);
        let on = ListOf {
            kind: AclKind::Column,
            owner: relation.owner,
            acl: acl.as_deref().unwrap_or(&[]),
            beside: of_table,
            quoted: described.clone(),
            described,
        };
        let acl = self.changed_acl(grant, &on, privileges)?;
        Ok((!acl.is_empty()).then_some(acl))
    }

    /// GRANT ... ON TABLE takes sequences, too, of whose privileges it warns when they are a table's.
    fn grant_on_sequence(&self, kind: ObjectType, grant: &Grant<'_>, relation: &Relation) -> Result<()> {
        let all = AclKind::Sequence.all();
        let privileges = match kind {
            ObjectType::ObjectSequence => grant.whole(all, AclKind::Sequence)?,
            _ => grant.whole(all | AclKind::Table.all(), AclKind::Table)?,
        };
        if privileges & !all != 0 && !grant.privileges.is_empty() {
            let message = format!("sequence \"{}\" only supports USAGE, SELECT, and UPDATE privileges", relation.name);
            self.warning(SqlState::WARNING, message);
        }
        if !grant.of_columns(self, relation)?.iter().all(|bits| *bits == 0) {
            self.warning(SqlState::WARNING, format!("sequence \"{}\" only supports SELECT column privileges", relation.name));
        }
        let usual = AclKind::Sequence.default_acl(relation.owner);
        let on = ListOf {
            kind: AclKind::Sequence,
            owner: relation.owner,
            acl: relation.acl.as_deref().unwrap_or(&usual),
            beside: &[],
            described: format!("sequence {}", relation.name),
            quoted: format!("\"{}\"", relation.name),
        };
        let acl = self.changed_acl(grant, &on, privileges & all)?;
        self.put_relation(Relation { acl: Some(acl), ..relation.clone() });
        Ok(())
    }
}

/// An object that was there before its lock was.
fn gone(what: &str, oid: Oid) -> DbError {
    err!(UNDEFINED_OBJECT, "{what} {oid} was concurrently dropped")
}
