//! CREATE, ALTER, DROP and COMMENT of publications.

use std::sync::Arc;

use melba_catalog::publications::{ALL_OPERATIONS, is_publishable, parse_span, publication_by_name, publication_members};
use melba_catalog::{Object, ObjectAddress, Persistence, Publication, PublicationMember, Relation, RelationKind, acl, classes};
use melba_engine::RelationLockMode;
use melba_parse::nodes::{option_bool, option_text, options, string};
use melba_types::{DbError, Oid, Result, Severity, SqlState, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{
    AlterPublicationAction, AlterPublicationStmt, CreatePublicationStmt, DefElem, Node, PublicationObjSpecType,
};

use melba_definition::context::Ddl;
use melba_definition::store_writers::{WRITERS, may_write};

/// The formats of published tables.
const FORMATS: [&str; 1] = ["iceberg"];

pub fn create_publication(ddl: &Ddl<'_>, s: &CreatePublicationStmt) -> Result<()> {
    let name = &s.pubname;
    ddl.require_database(acl::CREATE)?;
    if s.for_all_tables && !ddl.is_superuser() {
        bail!(INSUFFICIENT_PRIVILEGE, "must be superuser to create FOR ALL TABLES publication");
    }
    if publication_by_name(&ddl.catalog(), name).is_some() {
        bail!(DUPLICATE_OBJECT, "publication \"{name}\" already exists");
    }
    let new = Publication {
        oid: ddl.tx().new_oid(),
        name: name.as_str().into(),
        owner: ddl.user(),
        all_tables: s.for_all_tables,
        operations: ALL_OPERATIONS.into(),
        via_root: false,
        generated: b'n',
        options: Vec::new(),
    };
    let publication = with_options(ddl, new, &s.options)?;
    let members = named_members(ddl, &s.pubobjects)?;
    if members.iter().any(|m| m.class == classes::PG_NAMESPACE) && !ddl.is_superuser() {
        bail!(INSUFFICIENT_PRIVILEGE, "must be superuser to create FOR TABLES IN SCHEMA publication");
    }
    members.iter().try_for_each(|member| may_publish(ddl, member))?;
    put(ddl, publication.clone());
    members.iter().for_each(|member| put_member(ddl, publication.oid, member));
    if publication.option("format").is_none() {
        let message = "\"wal_level\" is insufficient to publish logical changes";
        let warning = DbError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message.to_owned());
        let hint = "Set \"wal_level\" to \"logical\" before creating subscriptions.";
        ddl.session().notice(warning.severity(Severity::Warning).hint(hint));
    }
    Ok(())
}

fn put(ddl: &Ddl<'_>, publication: Publication) {
    ddl.tx().put(Object::Publication(Arc::new(publication)));
}

fn put_member(ddl: &Ddl<'_>, publication: Oid, member: &Member) {
    let Member { class, object, .. } = *member;
    let member = PublicationMember { oid: ddl.tx().new_oid(), publication, class, object };
    ddl.tx().put(Object::PublicationMember(Arc::new(member)));
}

/// A table or a schema that a statement names.
#[derive(Clone)]
struct Member {
    class: Oid,
    object: Oid,
    name: String,
}

/// The tables, which are locked, and schemas of a list, each once.
fn named_members(ddl: &Ddl<'_>, objects: &[Node]) -> Result<Vec<Member>> {
    let mut members: Vec<Member> = Vec::new();
    for object in objects {
        let Some(N::PublicationObjSpec(spec)) = &object.node else {
            return Err(DbError::internal("a publication of nothing"));
        };
        let mut add = |member: Member| {
            if !members.iter().any(|known| (known.class, known.object) == (member.class, member.object)) {
                members.push(member);
            }
        };
        let member = match spec.pubobjtype() {
            PublicationObjSpecType::PublicationobjTable => {
                let table = spec.pubtable.as_ref().ok_or_else(|| DbError::internal("a publication of no table"))?;
                if !table.columns.is_empty() {
                    return Err(DbError::unsupported("a column list of a publication"));
                }
                if table.where_clause.is_some() {
                    return Err(DbError::unsupported("WHERE of a publication"));
                }
                let name = table.relation.as_ref().ok_or_else(|| DbError::internal("a publication of no table"))?;
                let relation = ddl.open_relation(name, RelationLockMode::ShareUpdateExclusive)?;
                let below = if name.inh && relation.kind == RelationKind::Table { heirs(ddl, &relation)? } else { Vec::new() };
                below.into_iter().for_each(&mut add);
                Member { class: classes::PG_CLASS, object: relation.oid, name: relation.name.to_string() }
            }
            PublicationObjSpecType::PublicationobjTablesInSchema => {
                let namespace = ddl.namespace(&spec.name)?;
                Member { class: classes::PG_NAMESPACE, object: namespace.oid, name: spec.name.clone() }
            }
            _ => {
                let schema = ddl.creation_namespace();
                let schema = schema.ok_or_else(|| err!(INVALID_SCHEMA_NAME, "no schema has been selected for CURRENT_SCHEMA"))?;
                let name = ddl.catalog().namespace(schema).map_or_else(String::new, |n| n.name.to_string());
                Member { class: classes::PG_NAMESPACE, object: schema, name }
            }
        };
        add(member);
    }
    Ok(members)
}

/// The tables that inherit from a table, locked.
fn heirs(ddl: &Ddl<'_>, table: &Relation) -> Result<Vec<Member>> {
    let mut heirs = Vec::new();
    for object in ddl.catalog().descendants(table.oid).into_iter().filter(|heir| *heir != table.oid) {
        ddl.lock_relation(object, RelationLockMode::ShareUpdateExclusive)?;
        heirs.push(Member { class: classes::PG_CLASS, object, name: ddl.relation(object)?.name.to_string() });
    }
    Ok(heirs)
}

/// Whether the user may publish a table or schema, and it can be published.
fn may_publish(ddl: &Ddl<'_>, member: &Member) -> Result<()> {
    if member.class == classes::PG_NAMESPACE {
        let name = &member.name;
        if member.object.0 < classes::FIRST_USER_OID && member.object != classes::PUBLIC {
            return Err(err!(INVALID_PARAMETER_VALUE, "cannot add schema \"{name}\" to publication")
                .detail("This operation is not supported for system schemas."));
        }
        return Ok(());
    }
    let relation = ddl.relation(member.object)?;
    ddl.require_owner(relation.owner, "table", &relation.name)?;
    if relation.index.is_some() {
        return Err(err!(WRONG_OBJECT_TYPE, "cannot open relation \"{}\"", relation.name)
            .detail("This operation is not supported for indexes."));
    }
    if is_publishable(&ddl.catalog(), &relation) {
        return Ok(());
    }
    Err(err!(INVALID_PARAMETER_VALUE, "cannot add relation \"{}\" to publication", relation.name)
        .detail(format!("This operation is not supported for {}.", kind_of(&relation))))
}

fn kind_of(relation: &Relation) -> &'static str {
    match (relation.kind, relation.persistence) {
        (RelationKind::View, _) => "views",
        (RelationKind::MaterializedView, _) => "materialized views",
        (RelationKind::Sequence, _) => "sequences",
        (RelationKind::Composite, _) => "composite types",
        (RelationKind::ForeignTable, _) => "foreign tables",
        (_, Persistence::Temporary) => "temporary tables",
        (_, Persistence::Unlogged) => "unlogged tables",
        (_, Persistence::Memory) => "memory tables",
        _ => "system tables",
    }
}

/// A publication with the options of a statement.
fn with_options(ddl: &Ddl<'_>, mut publication: Publication, list: &[Node]) -> Result<Publication> {
    let mut seen: Vec<&str> = Vec::new();
    for option in options(list) {
        let name = option.defname.as_str();
        if seen.contains(&name) {
            return Err(err!(SYNTAX_ERROR, "conflicting or redundant options").at(option.location));
        }
        seen.push(name);
        match name {
            "publish" => publication.operations = operations(option)?.into(),
            "publish_via_partition_root" => publication.via_root = option_bool(option)?,
            "publish_generated_columns" => publication.generated = generated(option)?,
            "format" | "location" | "snapshot_interval" | "keep" => {
                let text = option_text(option).unwrap_or_default();
                check_option(ddl, name, &text)?;
                publication.options.retain(|known| known.split_once('=').is_none_or(|(known, _)| known != name));
                publication.options.push(format!("{name}={text}").into());
                publication.options.sort();
            }
            _ => bail!(SYNTAX_ERROR, "unrecognized publication parameter: \"{name}\""),
        }
    }
    let is_placed = publication.option("location").is_some();
    if publication.option("format").is_some() && (publication.via_root || *publication.operations != *ALL_OPERATIONS) {
        return Err(DbError::unsupported("publish and publish_via_partition_root of a publication with a format"));
    }
    match publication.option("format") {
        Some(format) if !is_placed => {
            Err(err!(INVALID_PARAMETER_VALUE, "a publication with format \"{format}\" needs a location"))
        }
        None if !publication.options.is_empty() => {
            Err(err!(INVALID_PARAMETER_VALUE, "a publication without a format has no location, snapshot_interval and keep"))
        }
        Some(_) => require_store(ddl).map(|()| publication),
        None => Ok(publication),
    }
}

fn check_option(ddl: &Ddl<'_>, name: &str, text: &str) -> Result<()> {
    match name {
        "format" if !FORMATS.contains(&text) => {
            Err(err!(INVALID_PARAMETER_VALUE, "unrecognized value for publication option \"format\": \"{text}\"")
                .detail(format!("Valid values are \"{}\".", FORMATS.join("\", \""))))
        }
        "location" if !text.contains("://") => Err(err!(INVALID_PARAMETER_VALUE, "location \"{text}\" is no URL")
            .hint("Folders have URLs such as s3://bucket/folder and file:///folder.")),
        "location" => require_store(ddl),
        "snapshot_interval" | "keep" if parse_span(text).is_none() => {
            Err(err!(INVALID_PARAMETER_VALUE, "invalid value for publication option \"{name}\": \"{text}\"")
                .hint("Valid units for this option are \"ms\", \"s\", \"min\", \"h\", and \"d\"."))
        }
        _ => Ok(()),
    }
}

/// Stores and files of the server are written with the server's rights, as by COPY TO.
fn require_store(ddl: &Ddl<'_>) -> Result<()> {
    let role = WRITERS;
    if may_write(ddl, ddl.user()) {
        return Ok(());
    }
    Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to publish to a file or an object store")
        .detail(format!("Only roles with privileges of the \"{role}\" role may set the location of a publication.")))
}

fn operations(option: &DefElem) -> Result<String> {
    let text = option_text(option).unwrap_or_default();
    let mut letters = String::new();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        letters.push(match word {
            "insert" => 'i',
            "update" => 'u',
            "delete" => 'd',
            "truncate" => 't',
            _ => bail!(SYNTAX_ERROR, "unrecognized value for publication option \"publish\": \"{word}\""),
        });
    }
    Ok(ALL_OPERATIONS.chars().filter(|letter| letters.contains(*letter)).collect())
}

fn generated(option: &DefElem) -> Result<u8> {
    match option_text(option).unwrap_or_default().to_ascii_lowercase().as_str() {
        "none" => Ok(b'n'),
        "stored" => Ok(b's'),
        other => {
            let parameter = "publish_generated_columns";
            Err(err!(SYNTAX_ERROR, "invalid value for publication parameter \"{parameter}\": \"{other}\"")
                .detail("Valid values are \"none\" and \"stored\"."))
        }
    }
}

pub fn alter_publication(ddl: &Ddl<'_>, s: &AlterPublicationStmt) -> Result<()> {
    let publication = owned_publication(ddl, &s.pubname)?;
    if !s.options.is_empty() {
        let changed = with_options(ddl, (*publication).clone(), &s.options)?;
        put(ddl, changed);
        return Ok(());
    }
    let named = named_members(ddl, &s.pubobjects)?;
    let is_schema = |m: &&Member| m.class == classes::PG_NAMESPACE;
    if s.action() != AlterPublicationAction::ApDropObjects && named.iter().any(|m| is_schema(&m)) && !ddl.is_superuser() {
        bail!(INSUFFICIENT_PRIVILEGE, "must be superuser to add or set schemas");
    }
    if publication.all_tables {
        let what = if named.iter().any(|m| is_schema(&m)) { "Schemas" } else { "Tables" };
        return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "publication \"{}\" is defined as FOR ALL TABLES", publication.name)
            .detail(format!("{what} cannot be added to or dropped from FOR ALL TABLES publications.")));
    }
    let catalog = ddl.catalog();
    let present: Vec<_> = publication_members(&catalog).filter(|m| m.publication == publication.oid).cloned().collect();
    let find = |member: &Member| present.iter().find(|p| (p.class, p.object) == (member.class, member.object));
    if s.action() == AlterPublicationAction::ApDropObjects {
        for member in &named {
            let Some(found) = find(member) else { return Err(no_member(member)) };
            ddl.tx().remove(found.address());
        }
        return Ok(());
    }
    named.iter().try_for_each(|member| may_publish(ddl, member))?;
    if s.action() == AlterPublicationAction::ApAddObjects
        && let Some(member) = named.iter().find(|member| find(member).is_some())
    {
        let word = if is_schema(&member) { "schema" } else { "relation" };
        bail!(DUPLICATE_OBJECT, "{word} \"{}\" is already member of publication \"{}\"", member.name, publication.name);
    }
    if s.action() == AlterPublicationAction::ApSetObjects {
        let is_named = |p: &PublicationMember| named.iter().any(|m| (p.class, p.object) == (m.class, m.object));
        present.iter().filter(|p| !is_named(p)).for_each(|p| ddl.tx().remove(p.address()));
    }
    named.iter().filter(|member| find(member).is_none()).for_each(|member| put_member(ddl, publication.oid, member));
    Ok(())
}

fn no_member(member: &Member) -> DbError {
    match member.class {
        classes::PG_CLASS => err!(UNDEFINED_OBJECT, "relation \"{}\" is not part of the publication", member.name),
        _ => err!(UNDEFINED_OBJECT, "tables from schema \"{}\" are not part of the publication", member.name),
    }
}

fn owned_publication(ddl: &Ddl<'_>, name: &str) -> Result<Arc<Publication>> {
    let found = publication_by_name(&ddl.catalog(), name).cloned();
    let found = found.ok_or_else(|| err!(UNDEFINED_OBJECT, "publication \"{name}\" does not exist"))?;
    ddl.require_owner(found.owner, "publication", name)?;
    Ok(found)
}

/// The publication that DROP or COMMENT names.
pub fn find_publication(ddl: &Ddl<'_>, object: &Node, missing_ok: bool) -> Result<Option<ObjectAddress>> {
    let name = string(object).unwrap_or_default();
    if missing_ok && publication_by_name(&ddl.catalog(), name).is_none() {
        ddl.notice(format!("publication \"{name}\" does not exist, skipping"));
        return Ok(None);
    }
    let object = owned_publication(ddl, name)?.oid;
    Ok(Some(ObjectAddress { class: classes::PG_PUBLICATION, object, sub: 0 }))
}

pub fn rename_publication(ddl: &Ddl<'_>, object: Option<&Node>, name: &str) -> Result<()> {
    let old = named_publication(ddl, object)?;
    ddl.require_database(acl::CREATE)?;
    if publication_by_name(&ddl.catalog(), name).is_some() {
        bail!(DUPLICATE_OBJECT, "publication \"{name}\" already exists");
    }
    put(ddl, Publication { name: name.into(), ..(*old).clone() });
    Ok(())
}

pub fn named_publication(ddl: &Ddl<'_>, object: Option<&Node>) -> Result<Arc<Publication>> {
    owned_publication(ddl, object.and_then(string).unwrap_or_default())
}

/// Of all tables, it stays a superuser's.
pub fn give_publication(ddl: &Ddl<'_>, old: &Publication, owner: Oid) -> Result<()> {
    if old.owner == owner {
        return Ok(());
    }
    ddl.check_new_owner(old.owner, owner, None)?;
    ddl.require_database(acl::CREATE)?;
    if old.all_tables && !ddl.is_superuser() && !ddl.catalog().is_superuser(owner) {
        return Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to change owner of publication \"{}\"", old.name)
            .hint("The owner of a FOR ALL TABLES publication must be a superuser."));
    }
    if old.option("format").is_some() && !may_write(ddl, owner) {
        return Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to change owner of publication \"{}\"", old.name)
            .hint("The owner of a publication with a format needs the privileges of the \"pg_write_server_files\" role."));
    }
    put(ddl, Publication { owner, ..old.clone() });
    Ok(())
}
