//! ALTER, DROP, COMMENT and GRANT on plain objects: conversions, languages, tablespaces, transforms; access methods, parsers and templates
//! of text search, which nobody makes. Of other kinds there are none: any name does not exist.

use std::sync::Arc;

use melba_catalog::plain::transform_name;
use melba_catalog::privileges::AclKind;
use melba_catalog::{Object, ObjectAddress, PlainObject, classes};
use melba_parse::command::object_word;
use melba_parse::nodes::{inner, string, strings};
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{AlterTableSpaceOptionsStmt, Node, ObjectType};

use melba_definition::context::Ddl;
use melba_definition::special_schema::refuse_special_schema;
use melba_relation::dependents::FIRST_UNPINNED_OID;
use melba_relation::table::storage_parameters::{ParametersOf, reset_list};

use crate::privileges::acl::{Grant, acl_after, given};

/// A kind of objects that are plain.
pub struct PlainKind {
    word: &'static str,
    /// The system relation of its objects; none: there are no objects.
    class: Option<Oid>,
}

impl PlainKind {
    pub fn of(kind: ObjectType) -> Option<PlainKind> {
        let (word, class) = match kind {
            ObjectType::ObjectAccessMethod => ("access method", Some(classes::PG_AM)),
            ObjectType::ObjectConversion => ("conversion", Some(classes::PG_CONVERSION)),
            ObjectType::ObjectLanguage => ("language", Some(classes::PG_LANGUAGE)),
            ObjectType::ObjectSubscription => ("subscription", None),
            ObjectType::ObjectTablespace => ("tablespace", Some(classes::PG_TABLESPACE)),
            ObjectType::ObjectTransform => ("transform", Some(classes::PG_TRANSFORM)),
            ObjectType::ObjectTsparser => ("text search parser", Some(classes::PG_TS_PARSER)),
            ObjectType::ObjectTstemplate => ("text search template", Some(classes::PG_TS_TEMPLATE)),
            _ => return None,
        };
        Some(PlainKind { word, class })
    }

    fn find(&self, ddl: &Ddl<'_>, names: &[&str]) -> Result<Option<Arc<PlainObject>>> {
        let Some(class) = self.class else { return Ok(None) };
        let (schema, name) = ddl.qualified(names)?;
        let catalog = ddl.catalog();
        let in_schemas = matches!(class, classes::PG_CONVERSION | classes::PG_TS_PARSER | classes::PG_TS_TEMPLATE);
        let schemas = if in_schemas { ddl.searched_schemas(schema)? } else { vec![Oid::INVALID] };
        Ok(schemas.iter().find_map(|schema| catalog.plain_object_by_name(class, *schema, name)).cloned())
    }
}

/// The name of an object for messages, and the object.
fn looked_up(ddl: &Ddl<'_>, kind: &PlainKind, object: &Node) -> Result<(String, Option<Arc<PlainObject>>)> {
    if kind.class == Some(classes::PG_TRANSFORM) {
        let N::List(list) = inner(object)? else { return Err(DbError::internal("a transform without its type")) };
        let [ty, language] = &list.items[..] else { return Err(DbError::internal("a transform without its language")) };
        let N::TypeName(ty) = inner(ty)? else { return Err(DbError::internal("a transform without its type")) };
        return find_transform(ddl, ddl.type_from_name(ty)?.0, string(language).unwrap_or_default());
    }
    let names = match inner(object)? {
        N::List(list) => strings(&list.items),
        _ => string(object).into_iter().collect(),
    };
    Ok((format!("\"{}\"", names.join(".")), kind.find(ddl, &names)?))
}

/// The name of a transform with its type as it was written; `None` for another object.
fn written_transform(object: &Node) -> Option<String> {
    let N::List(list) = object.node.as_ref()? else { return None };
    let [ty, language] = &list.items[..] else { return None };
    let N::TypeName(ty) = ty.node.as_ref()? else { return None };
    Some(format!("for type {} language \"{}\"", strings(&ty.names).join("."), string(language)?))
}

/// The same of a transform by its type and language.
///
/// # Errors
/// 42704 when there is no such language.
pub fn find_transform(ddl: &Ddl<'_>, ty: Oid, language: &str) -> Result<(String, Option<Arc<PlainObject>>)> {
    let catalog = ddl.catalog();
    let Some(oid) = catalog.language_by_name(language) else { bail!(UNDEFINED_OBJECT, "language \"{language}\" does not exist") };
    let name = transform_name(ty, oid);
    let found = catalog.plain_object_by_name(classes::PG_TRANSFORM, Oid::INVALID, &name).cloned();
    Ok((format!("for type {} language \"{language}\"", catalog.type_name(ty, ddl.path())), found))
}

/// The object that a statement names, and its name for messages.
///
/// # Errors
/// 42704 when there is none, 0A000 when objects of that kind are not known here.
fn named(ddl: &Ddl<'_>, kind: ObjectType, object: Option<&Node>, doing: &str) -> Result<(Arc<PlainObject>, String)> {
    let Some(of_kind) = PlainKind::of(kind) else { return Err(DbError::unsupported(doing)) };
    let object = object.ok_or_else(|| DbError::internal("a statement without its object"))?;
    let (name, found) = looked_up(ddl, &of_kind, object)?;
    let found = found.ok_or_else(|| err!(UNDEFINED_OBJECT, "{} {name} does not exist", of_kind.word))?;
    let shown = name.trim_matches('"').to_owned();
    Ok((found, shown))
}

/// # Errors
/// 42501 for a user who may not change the object.
fn require_owner(ddl: &Ddl<'_>, kind: ObjectType, object: &PlainObject, name: &str) -> Result<()> {
    if object.class == classes::PG_AM && !ddl.is_superuser() {
        bail!(INSUFFICIENT_PRIVILEGE, "must be superuser");
    }
    if object.class == classes::PG_TRANSFORM {
        let catalog = ddl.catalog();
        return catalog.type_(object.oid_field(0)).map_or(Ok(()), |ty| ddl.require_type_owner(ty));
    }
    ddl.require_owner(object.owner, &object_word(kind).to_lowercase(), name)
}

fn put(ddl: &Ddl<'_>, object: PlainObject) {
    ddl.tx().put(Object::Plain(Arc::new(object)));
}

/// The object as it is when nobody else changes it any more: those that all databases share have no other guard.
fn locked(ddl: &Ddl<'_>, object: &PlainObject) -> Result<PlainObject> {
    let is_shared = matches!(object.class, classes::PG_TABLESPACE | classes::PG_DB_ROLE_SETTING);
    ddl.lock_database_object(if is_shared { Oid::INVALID } else { ddl.tx().database }, object.class, object.oid)?;
    let found = ddl.catalog().plain_object(object.class, object.oid).cloned();
    Ok(found.map_or_else(|| object.clone(), |found| (*found).clone()))
}

/// What a statement does with plain objects of its kind is not supported; others do not exist.
///
/// # Errors
/// Always: 42704 or 0A000.
pub fn refuse_plain(ddl: &Ddl<'_>, kind: ObjectType, objects: &[Node], doing: &str) -> Result<()> {
    objects.iter().try_for_each(|object| named(ddl, kind, Some(object), doing).map(drop))?;
    Err(DbError::unsupported(doing))
}

/// ALTER ... RENAME TO.
pub fn rename_plain(ddl: &Ddl<'_>, kind: ObjectType, object: Option<&Node>, name: &str) -> Result<()> {
    let doing = format!("ALTER {} ... RENAME TO", object_word(kind));
    let (old, shown) = named(ddl, kind, object, &doing)?;
    if !matches!(old.class, classes::PG_CONVERSION | classes::PG_LANGUAGE) {
        return Err(DbError::unsupported(doing));
    }
    require_owner(ddl, kind, &old, &shown)?;
    refuse_same(ddl, &old, old.namespace, name)?;
    put(ddl, PlainObject { name: name.into(), ..(*old).clone() });
    Ok(())
}

/// ALTER ... SET SCHEMA.
pub fn move_plain(ddl: &Ddl<'_>, kind: ObjectType, object: Option<&Node>, schema: &str) -> Result<()> {
    let doing = format!("ALTER {} ... SET SCHEMA", object_word(kind));
    let (old, shown) = named(ddl, kind, object, &doing)?;
    if old.class != classes::PG_CONVERSION {
        return Err(DbError::unsupported(doing));
    }
    let namespace = ddl.namespace_for_creation(Some(schema))?;
    if namespace == old.namespace {
        return Ok(());
    }
    refuse_special_schema(ddl, old.namespace, namespace)?;
    require_owner(ddl, kind, &old, &shown)?;
    refuse_same(ddl, &old, namespace, &old.name)?;
    put(ddl, PlainObject { namespace, ..(*old).clone() });
    Ok(())
}

/// 42710 for a name that another object has.
fn refuse_same(ddl: &Ddl<'_>, object: &PlainObject, namespace: Oid, name: &str) -> Result<()> {
    let catalog = ddl.catalog();
    if catalog.plain_object_by_name(object.class, namespace, name).is_none() {
        return Ok(());
    }
    match catalog.namespace(namespace) {
        Some(schema) => bail!(DUPLICATE_OBJECT, "conversion \"{name}\" already exists in schema \"{}\"", schema.name),
        None => bail!(DUPLICATE_OBJECT, "language \"{name}\" already exists"),
    }
}

/// ALTER ... OWNER TO.
pub fn own_plain(ddl: &Ddl<'_>, kind: ObjectType, object: Option<&Node>, owner: Oid) -> Result<()> {
    let doing = format!("ALTER {} ... OWNER TO", object_word(kind));
    let (old, shown) = named(ddl, kind, object, &doing)?;
    if !matches!(old.class, classes::PG_CONVERSION | classes::PG_LANGUAGE | classes::PG_TABLESPACE) {
        return Err(DbError::unsupported(doing));
    }
    require_owner(ddl, kind, &old, &shown)?;
    give_plain(ddl, &old, owner)
}

/// # Errors
/// 42501 when the user may not give it to that role.
pub fn give_plain(ddl: &Ddl<'_>, old: &PlainObject, owner: Oid) -> Result<()> {
    let old = locked(ddl, old)?;
    ddl.check_new_owner(old.owner, owner, old.schema())?;
    put(ddl, PlainObject { owner, acl: given(&old.acl, old.owner, owner), ..old });
    Ok(())
}

/// GRANT and REVOKE on a language or a tablespace.
pub fn grant_on_plain(ddl: &Ddl<'_>, grant: &Grant<'_>, object: &PlainObject) -> Result<()> {
    let object = locked(ddl, object)?;
    let (kind, word) = match object.class {
        classes::PG_LANGUAGE => (AclKind::Language, "language"),
        classes::PG_TABLESPACE => (AclKind::Tablespace, "tablespace"),
        // Objects of other kinds have no privileges.
        _ => return Ok(()),
    };
    let acl = acl_after(ddl, grant, kind, object.owner, object.acl.as_deref(), word, &object.name)?;
    put(ddl, PlainObject { acl: Some(acl), ..object });
    Ok(())
}

/// A tablespace on which privileges may be granted.
pub fn tablespace_named(ddl: &Ddl<'_>, name: &str) -> Result<Arc<PlainObject>> {
    let found = ddl.catalog().plain_object_by_name(classes::PG_TABLESPACE, Oid::INVALID, name).cloned();
    found.ok_or_else(|| err!(UNDEFINED_OBJECT, "tablespace \"{name}\" does not exist"))
}

/// ALTER TABLESPACE ... SET and RESET. The options are for plans that count pages: they are kept.
pub fn alter_tablespace(ddl: &Ddl<'_>, s: &AlterTableSpaceOptionsStmt) -> Result<()> {
    let old = tablespace_named(ddl, &s.tablespacename)?;
    ddl.require_owner(old.owner, "tablespace", &s.tablespacename)?;
    let old = locked(ddl, &old)?;
    let options = match s.is_reset {
        true => reset_list(&old.options, &s.options)?,
        false => ParametersOf::Tablespace.changed_list(&old.options, &s.options)?,
    };
    put(ddl, PlainObject { options, ..old });
    Ok(())
}

/// Changes the settings of all roles in all databases.
pub fn change_settings_of_all(ddl: &Ddl<'_>, change: impl FnOnce(&mut Vec<Arc<str>>) -> Result<()>) -> Result<()> {
    let class = classes::PG_DB_ROLE_SETTING;
    let mut row = locked(ddl, &PlainObject::new(class, class, "", classes::POSTGRES_ROLE))?;
    change(&mut row.options)?;
    put(ddl, row);
    Ok(())
}

/// The object that COMMENT ON names.
///
/// # Errors
/// As `named`'s, and 42501 when the user does not own it.
pub fn commented_plain(ddl: &Ddl<'_>, kind: ObjectType, object: Option<&Node>) -> Result<ObjectAddress> {
    let (found, name) = named(ddl, kind, object, &format!("COMMENT ON {}", object_word(kind)))?;
    require_owner(ddl, kind, &found, &name)?;
    Ok(found.address())
}

/// The object that DROP names.
///
/// # Errors
/// 42704 when there is none and IF EXISTS is missing, 2BP01 or 0A000 for a built-in one.
pub fn dropped_plain(ddl: &Ddl<'_>, kind: ObjectType, object: &Node, missing_ok: bool) -> Result<Option<ObjectAddress>> {
    let Some(of_kind) = PlainKind::of(kind) else { return Ok(None) };
    if let N::List(list) = inner(object)?
        && kind != ObjectType::ObjectTransform
        && let [schema, _] = strings(&list.items)[..]
        && ddl.is_missing_schema(schema, missing_ok)?
    {
        return Ok(None);
    }
    let word = of_kind.word;
    let (name, found) = looked_up(ddl, &of_kind, object)?;
    let Some(found) = found else {
        if !missing_ok {
            bail!(UNDEFINED_OBJECT, "{word} {name} does not exist");
        }
        let name = written_transform(object).unwrap_or(name);
        ddl.notice(format!("{word} {name} does not exist, skipping"));
        return Ok(None);
    };
    let name = name.trim_matches('"');
    if found.oid < Oid(FIRST_UNPINNED_OID) {
        bail!(DEPENDENT_OBJECTS_STILL_EXIST, "cannot drop {word} {name} because it is required by the database system");
    }
    require_owner(ddl, kind, &found, name)?;
    if found.oid.0 < classes::FIRST_USER_OID {
        return Err(DbError::unsupported(format!("DROP {} of a built-in object", object_word(kind))));
    }
    Ok(Some(found.address()))
}
