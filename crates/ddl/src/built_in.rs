//! Statements about kinds of objects of which there are only built-in ones: any other name does not exist.

use melba_catalog::identity::seeded_object_by_name;
use melba_catalog::{ObjectAddress, classes};
use melba_parse::command::object_word;
use melba_parse::nodes::{inner, string, strings};
use melba_types::{DbError, Oid, Result, bail};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{Node, ObjectType};

use melba_definition::context::Ddl;
use melba_relation::dependents::FIRST_UNPINNED_OID;

/// A kind of object that no statement creates.
pub struct BuiltInKind {
    word: &'static str,
    /// The system relation of its objects; none: there are no objects.
    class: Option<Oid>,
}

impl BuiltInKind {
    pub fn of(kind: ObjectType) -> Option<BuiltInKind> {
        let (word, class) = match kind {
            ObjectType::ObjectAccessMethod => ("access method", Some(classes::PG_AM)),
            ObjectType::ObjectConversion => ("conversion", Some(classes::PG_CONVERSION)),
            ObjectType::ObjectLanguage => ("language", Some(classes::PG_LANGUAGE)),
            ObjectType::ObjectSubscription => ("subscription", None),
            ObjectType::ObjectTablespace => ("tablespace", Some(classes::PG_TABLESPACE)),
            ObjectType::ObjectTsparser => ("text search parser", Some(classes::PG_TS_PARSER)),
            ObjectType::ObjectTstemplate => ("text search template", Some(classes::PG_TS_TEMPLATE)),
            _ => return None,
        };
        Some(BuiltInKind { word, class })
    }

    fn missing(&self, names: &[&str]) -> String {
        format!("{} \"{}\" does not exist", self.word, names.join("."))
    }

    fn find(&self, ddl: &Ddl<'_>, names: &[&str]) -> Result<Option<Oid>> {
        let Some(class) = self.class else { return Ok(None) };
        let (schema, name) = ddl.qualified(names)?;
        let catalog = ddl.catalog();
        if class == classes::PG_AM {
            return Ok(catalog.access_methods().method_by_name(name));
        }
        let schemas = ddl.searched_schemas(schema)?;
        Ok(seeded_object_by_name(&catalog, class, &schemas, name, Oid::INVALID).map(|object| object.oid))
    }
}

fn names_of(object: &Node) -> Result<Vec<&str>> {
    Ok(match inner(object)? {
        N::List(list) => strings(&list.items),
        _ => string(object).into_iter().collect(),
    })
}

/// The object that a statement names: its class and OID, and its name.
///
/// # Errors
/// 42704 when there is none, 0A000 when objects of that kind are not known here.
fn named_built_in(ddl: &Ddl<'_>, kind: ObjectType, object: &Node, doing: &str) -> Result<(Oid, Oid, String)> {
    let Some(of_kind) = BuiltInKind::of(kind) else { return Err(DbError::unsupported(doing)) };
    let names = names_of(object)?;
    match (of_kind.class, of_kind.find(ddl, &names)?) {
        (Some(class), Some(oid)) => Ok((class, oid, names.join("."))),
        _ => bail!(UNDEFINED_OBJECT, "{}", of_kind.missing(&names)),
    }
}

/// What a statement does with built-in objects is not supported; others do not exist.
///
/// # Errors
/// Always: 42704 or 0A000.
pub fn refuse_built_in(ddl: &Ddl<'_>, kind: ObjectType, objects: &[Node], doing: &str) -> Result<()> {
    objects.iter().try_for_each(|object| named_built_in(ddl, kind, object, doing).map(drop))?;
    Err(DbError::unsupported(doing))
}

/// ALTER ... OWNER TO. Built-in objects belong to the superuser that every cluster starts with, and stay his: dumps name him.
///
/// # Errors
/// As `named_built_in`'s, 42501 for a user who does not own it, 0A000 for another owner.
pub fn give_built_in(ddl: &Ddl<'_>, kind: ObjectType, object: Option<&Node>, owner: Oid) -> Result<()> {
    let doing = format!("ALTER {} ... OWNER TO", object_word(kind));
    let object = object.ok_or_else(|| DbError::internal("OWNER TO of nothing"))?;
    let (_, _, name) = named_built_in(ddl, kind, object, &doing)?;
    ddl.require_owner(classes::POSTGRES_ROLE, &object_word(kind).to_lowercase(), &name)?;
    if owner == classes::POSTGRES_ROLE { Ok(()) } else { Err(DbError::unsupported(doing)) }
}

/// The object that COMMENT ON names. Comments on tablespaces, which all databases share, are not kept.
///
/// # Errors
/// As `named_built_in`'s, and 42501 when the user is no superuser.
pub fn commented_built_in(ddl: &Ddl<'_>, kind: ObjectType, object: Option<&Node>) -> Result<ObjectAddress> {
    let doing = format!("COMMENT ON {}", object_word(kind));
    let object = object.ok_or_else(|| DbError::internal("COMMENT ON nothing"))?;
    let (class, oid, name) = named_built_in(ddl, kind, object, &doing)?;
    if class == classes::PG_TABLESPACE {
        return Err(DbError::unsupported(doing));
    }
    if class == classes::PG_AM && !ddl.is_superuser() {
        bail!(INSUFFICIENT_PRIVILEGE, "must be superuser");
    }
    ddl.require_owner(classes::POSTGRES_ROLE, &object_word(kind).to_lowercase(), &name)?;
    Ok(ObjectAddress { class, object: oid, sub: 0 })
}

/// The object that DROP names: never one, for built-in objects are not dropped.
///
/// # Errors
/// 42704 when there is none and IF EXISTS is missing, 2BP01 or 0A000 when there is one.
pub fn built_in_object(ddl: &Ddl<'_>, kind: ObjectType, object: &Node, missing_ok: bool) -> Result<Option<ObjectAddress>> {
    let Some(of_kind) = BuiltInKind::of(kind) else { return Ok(None) };
    let names = names_of(object)?;
    if let [schema, _] = names[..]
        && ddl.is_missing_schema(schema, missing_ok)?
    {
        return Ok(None);
    }
    let word = of_kind.word;
    if let Some(oid) = of_kind.find(ddl, &names)? {
        if oid < Oid(FIRST_UNPINNED_OID) {
            let name = names.join(".");
            bail!(DEPENDENT_OBJECTS_STILL_EXIST, "cannot drop {word} {name} because it is required by the database system");
        }
        return Err(DbError::unsupported(format!("DROP {} of a built-in object", object_word(kind))));
    }
    let missing = of_kind.missing(&names);
    if !missing_ok {
        bail!(UNDEFINED_OBJECT, "{missing}");
    }
    ddl.notice(format!("{missing}, skipping"));
    Ok(None)
}
