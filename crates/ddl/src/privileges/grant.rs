//! GRANT and REVOKE on objects; `melba_catalog::grants` has their effect on a privilege list.

use std::sync::Arc;

use melba_catalog::privileges::AclKind;
use melba_catalog::{Acl, AclItem, Namespace, Object, Relation, RelationKind, Type, TypeKind, classes};
use melba_definition::context::Ddl;
use melba_definition::words::relation_word;
use melba_parse::command::object_word;
use melba_parse::nodes::{inner, string};
use melba_relation::table::relation::put_relation;
use melba_types::{DbError, Oid, Result, SqlState, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{DropBehavior, GrantStmt, GrantTargetType, ObjectType};

use crate::alter_routine::{check_routine_privileges, grant_on_routine, granted_routines};
use crate::database::database_by_name;
use crate::foreign::{grant_on_foreign, granted_foreign, is_foreign};
use crate::large_object::{grant_on_large_object, granted_large_objects};
use crate::plain::{grant_on_plain, refuse_plain, tablespace_named};
use crate::privileges::acl::{Grant, ListOf, acl_after, changed_acl};
use crate::privileges::granted::{change_granted, language_named, parameter_named};
use crate::types::named::named_type;

/// In the order in which a REVOKE on the whole table processes them.
const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "cmax", "xmax", "cmin", "xmin", "ctid"];

/// The clauses of a GRANT or REVOKE beside its objects, which PostgreSQL finds first.
pub fn read_grant<'s>(ddl: &Ddl<'_>, s: &'s GrantStmt) -> Result<Grant<'s>> {
    let mut grantees = Vec::new();
    for node in &s.grantees {
        if let N::RoleSpec(spec) = inner(node)? {
            grantees.push(ddl.role_spec(spec)?);
        }
    }
    let cascade = s.behavior() == DropBehavior::DropCascade;
    Ok(Grant { is_grant: s.is_grant, grant_option: s.grant_option, cascade, grantees, privileges: &s.privileges })
}

pub fn grant(ddl: &Ddl<'_>, s: &GrantStmt) -> Result<()> {
    if let Some(grantor) = &s.grantor
        && ddl.role_spec(grantor)? != ddl.user()
    {
        bail!(FEATURE_NOT_SUPPORTED, "grantor must be current user");
    }
    match s.objtype() {
        ObjectType::ObjectTable | ObjectType::ObjectSequence => {
            let relations = granted_relations(ddl, s)?;
            grant_on_each(ddl, s, relations, |grant, relation| grant_on_relation(ddl, s.objtype(), grant, &relation))
        }
        ObjectType::ObjectSchema => {
            let schemas = named(s, |name| Ok(ddl.namespace(name)?.oid))?;
            grant_on_each(ddl, s, schemas, |grant, schema| grant_on_schema(ddl, grant, schema))
        }
        ObjectType::ObjectDatabase => {
            let databases = named(s, |name| Ok(database_by_name(ddl, name)?.oid))?;
            grant_on_each(ddl, s, databases, |grant, database| grant_on_database(ddl, grant, database))
        }
        ObjectType::ObjectType | ObjectType::ObjectDomain => {
            let is_domain = s.objtype() == ObjectType::ObjectDomain;
            let types = s.objects.iter().map(|node| Ok(named_type(ddl, Some(node))?.oid)).collect::<Result<Vec<_>>>()?;
            grant_on_each(ddl, s, types, |grant, ty| grant_on_type(ddl, grant, ty, is_domain))
        }
        ObjectType::ObjectLargeobject => {
            let objects = granted_large_objects(ddl, s)?;
            grant_on_each(ddl, s, objects, |grant, object| grant_on_large_object(ddl, object, grant))
        }
        ObjectType::ObjectFunction | ObjectType::ObjectProcedure | ObjectType::ObjectRoutine => {
            let routines = granted_routines(ddl, s)?;
            let grant = read_grant(ddl, s)?;
            check_routine_privileges(s.objtype(), &grant)?;
            routines.iter().try_for_each(|routine| grant_on_routine(ddl, &grant, routine))
        }
        kind if is_foreign(kind) => {
            let objects = named(s, |name| granted_foreign(ddl, kind, name))?;
            grant_on_each(ddl, s, objects, |grant, object| grant_on_foreign(ddl, grant, object))
        }
        ObjectType::ObjectLanguage => {
            let languages = named(s, |name| language_named(ddl, name))?;
            grant_on_each(ddl, s, languages, |grant, language| grant_on_plain(ddl, grant, &language))
        }
        ObjectType::ObjectTablespace => {
            let tablespaces = named(s, |name| tablespace_named(ddl, name))?;
            grant_on_each(ddl, s, tablespaces, |grant, tablespace| grant_on_plain(ddl, grant, &tablespace))
        }
        ObjectType::ObjectParameterAcl => {
            let parameters = named(s, |name| parameter_named(ddl, name, s.is_grant))?;
            grant_on_each(ddl, s, parameters.into_iter().flatten(), |grant, parameter| change_granted(ddl, grant, parameter))
        }
        kind => refuse_plain(ddl, kind, &s.objects, &format!("GRANT ON {}", object_word(kind))),
    }
}

/// The objects that a statement names, each by one name.
fn named<T>(s: &GrantStmt, find: impl Fn(&str) -> Result<T>) -> Result<Vec<T>> {
    s.objects.iter().filter_map(string).map(find).collect()
}

/// Changes the privileges on objects that were found.
fn grant_on_each<T>(
    ddl: &Ddl<'_>,
    s: &GrantStmt,
    objects: impl IntoIterator<Item = T>,
    change: impl Fn(&Grant<'_>, T) -> Result<()>,
) -> Result<()> {
    let grant = read_grant(ddl, s)?;
    objects.into_iter().try_for_each(|object| change(&grant, object))
}

pub fn grant_on_schema(ddl: &Ddl<'_>, grant: &Grant<'_>, oid: Oid) -> Result<()> {
    ddl.lock_database_object(ddl.tx().database, classes::PG_NAMESPACE, oid)?;
    let catalog = ddl.catalog();
    let namespace = catalog.namespace(oid).ok_or_else(|| gone("schema", oid))?;
    let acl = namespace.acl.as_deref();
    let acl = acl_after(ddl, grant, AclKind::Namespace, namespace.owner, acl, "schema", &namespace.name)?;
    ddl.tx().put(Object::Namespace(Arc::new(Namespace { acl: Some(acl), ..(**namespace).clone() })));
    Ok(())
}

pub fn grant_on_database(ddl: &Ddl<'_>, grant: &Grant<'_>, oid: Oid) -> Result<()> {
    ddl.lock_database_object(Oid::INVALID, classes::PG_DATABASE, oid)?;
    let catalog = ddl.catalog();
    let database = catalog.database(oid).ok_or_else(|| gone("database", oid))?;
    let acl = database.acl.as_deref();
    let acl = acl_after(ddl, grant, AclKind::Database, database.owner, acl, "database", &database.name)?;
    ddl.tx().put(Object::Database(Arc::new(melba_catalog::Database { acl: Some(acl), ..(**database).clone() })));
    Ok(())
}

pub fn grant_on_type(ddl: &Ddl<'_>, grant: &Grant<'_>, oid: Oid, is_domain: bool) -> Result<()> {
    ddl.lock_database_object(ddl.tx().database, classes::PG_TYPE, oid)?;
    let catalog = ddl.catalog();
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
    let acl = acl_after(ddl, grant, AclKind::Type, ty.owner, ty.acl.as_deref(), "type", &ty.name)?;
    ddl.tx().put(Object::Type(Arc::new(Type { acl: Some(acl), ..(**ty).clone() })));
    Ok(())
}

/// The relations that a statement names, or all of some schemas; none of them can change meanwhile.
fn granted_relations(ddl: &Ddl<'_>, s: &GrantStmt) -> Result<Vec<Arc<Relation>>> {
    let mut out = Vec::new();
    for node in &s.objects {
        match inner(node)? {
            N::RangeVar(name) => out.push(ddl.open_target(name)?),
            N::String(schema) if s.targtype() == GrantTargetType::AclTargetAllInSchema => {
                let wants_sequences = s.objtype() == ObjectType::ObjectSequence;
                let catalog = ddl.catalog();
                for relation in catalog.relations_in(ddl.namespace(&schema.sval)?.oid) {
                    let counts = match relation.kind {
                        RelationKind::Sequence => wants_sequences,
                        RelationKind::Index | RelationKind::PartitionedIndex | RelationKind::Composite => false,
                        RelationKind::Toast => false,
                        _ => !wants_sequences,
                    };
                    if counts {
                        ddl.lock_relation(relation.oid, ddl.target_lock())?;
                        out.extend(ddl.catalog().relation(relation.oid).cloned());
                    }
                }
            }
            _ => {}
        }
    }
    Ok(out)
}

pub fn grant_on_relation(ddl: &Ddl<'_>, kind: ObjectType, grant: &Grant<'_>, relation: &Relation) -> Result<()> {
    match relation.kind {
        RelationKind::Index | RelationKind::PartitionedIndex => {
            bail!(WRONG_OBJECT_TYPE, "\"{}\" is an index", relation.name)
        }
        RelationKind::Composite => bail!(WRONG_OBJECT_TYPE, "\"{}\" is a composite type", relation.name),
        RelationKind::Sequence => return grant_on_sequence(ddl, kind, grant, relation),
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
        next.acl = Some(changed_acl(ddl, grant, &on, whole)?);
    }
    // A grantee that loses a privilege on the whole loses it on the columns.
    let lost = if grant.is_grant { 0 } else { whole & AclKind::Column.all() };
    if lost != 0 && relation.kind != RelationKind::View {
        // They have no lists, but are warned of.
        SYSTEM_COLUMNS.iter().try_for_each(|name| column_acl(ddl, grant, relation, (name, &None), before, lost).map(drop))?;
    }
    let mut columns = relation.columns.to_vec();
    for (column, named) in columns.iter_mut().zip(grant.of_columns(relation)?) {
        if named | lost != 0 && !column.dropped {
            column.acl = column_acl(ddl, grant, relation, (&column.name, &column.acl), before, named | lost)?;
        }
    }
    put_relation(ddl, Relation { columns: columns.into(), ..next });
    Ok(())
}

/// The list of a column, which has this one now, after the statement.
fn column_acl(
    ddl: &Ddl<'_>,
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
    let acl = changed_acl(ddl, grant, &on, privileges)?;
    Ok((!acl.is_empty()).then_some(acl))
}

/// GRANT ... ON TABLE takes sequences, too, of whose privileges it warns when they are a table's.
fn grant_on_sequence(ddl: &Ddl<'_>, kind: ObjectType, grant: &Grant<'_>, relation: &Relation) -> Result<()> {
    let all = AclKind::Sequence.all();
    let privileges = match kind {
        ObjectType::ObjectSequence => grant.whole(all, AclKind::Sequence)?,
        _ => grant.whole(all | AclKind::Table.all(), AclKind::Table)?,
    };
    if privileges & !all != 0 && !grant.privileges.is_empty() {
        let message = format!("sequence \"{}\" only supports USAGE, SELECT, and UPDATE privileges", relation.name);
        ddl.warning(SqlState::WARNING, message);
    }
    if !grant.of_columns(relation)?.iter().all(|bits| *bits == 0) {
        ddl.warning(SqlState::WARNING, format!("sequence \"{}\" only supports SELECT column privileges", relation.name));
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
    let acl = changed_acl(ddl, grant, &on, privileges & all)?;
    put_relation(ddl, Relation { acl: Some(acl), ..relation.clone() });
    Ok(())
}

/// An object that was there before its lock was.
fn gone(what: &str, oid: Oid) -> DbError {
    err!(UNDEFINED_OBJECT, "{what} {oid} was concurrently dropped")
}
