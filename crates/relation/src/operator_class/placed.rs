//! Operator classes and families as objects with a schema, a name and an owner.

use std::sync::Arc;

use melba_catalog::{Object, ObjectAddress, OperatorClass, OperatorFamily, classes};
use melba_definition::context::Ddl;
use melba_definition::special_schema::refuse_special_schema;
use melba_parse::nodes::{inner, strings};
use melba_types::{DbError, Oid, Result, SqlState, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{Node, ObjectType};

use super::{named_class, named_family};
use crate::dependents::FIRST_UNPINNED_OID;
use crate::family_lock::lock_family;
use crate::index::request::AccessMethod;

/// An operator class or family.
#[derive(Clone)]
pub enum Placed {
    Class(Arc<OperatorClass>),
    Family(Arc<OperatorFamily>),
}

/// Whether objects of a kind are operator classes or families.
pub fn is_placed(kind: ObjectType) -> bool {
    matches!(kind, ObjectType::ObjectOpclass | ObjectType::ObjectOpfamily)
}

impl Placed {
    fn word(&self) -> &'static str {
        match self {
            Placed::Class(_) => "operator class",
            Placed::Family(_) => "operator family",
        }
    }

    fn oid(&self) -> Oid {
        match self {
            Placed::Class(o) => o.oid,
            Placed::Family(o) => o.oid,
        }
    }

    fn address(&self) -> ObjectAddress {
        let class = match self {
            Placed::Class(_) => classes::PG_OPCLASS,
            Placed::Family(_) => classes::PG_OPFAMILY,
        };
        ObjectAddress { class, object: self.oid(), sub: 0 }
    }

    /// Schema, name, owner, access method.
    fn place(&self) -> (Oid, &Arc<str>, Oid, Oid) {
        match self {
            Placed::Class(o) => (o.namespace, &o.name, o.owner, o.method),
            Placed::Family(o) => (o.namespace, &o.name, o.owner, o.method),
        }
    }

    /// Puts it into another place, or gives it another name or owner.
    fn put(&self, ddl: &Ddl<'_>, namespace: Oid, name: Arc<str>, owner: Oid) -> Result<()> {
        ddl.tx().put(match self {
            Placed::Class(o) => Object::OperatorClass(Arc::new(OperatorClass { namespace, name, owner, ..(**o).clone() })),
            Placed::Family(o) => {
                let now = lock_family(ddl, o)?;
                Object::OperatorFamily(Arc::new(OperatorFamily { namespace, name, owner, ..(*now).clone() }))
            }
        });
        Ok(())
    }

    /// # Errors
    /// 42501 for a user who does not own it.
    fn require_owner(&self, ddl: &Ddl<'_>) -> Result<()> {
        let (_, name, owner, _) = self.place();
        ddl.require_owner(owner, self.word(), name)
    }

    /// # Errors
    /// 42501 for a user who does not own it, 0A000 for one that is built in or an extension's.
    fn require_own_of_users(&self, ddl: &Ddl<'_>) -> Result<()> {
        self.require_owner(ddl)?;
        match (classes::FIRST_USER_OID..classes::FIRST_EXTENSION_OID).contains(&self.oid().0) {
            true => Ok(()),
            false => Err(DbError::unsupported(format!("changing {} \"{}\", which is built in", self.word(), self.place().1))),
        }
    }

    /// 42710 for a name that another object of the schema has.
    fn refuse_same(&self, ddl: &Ddl<'_>, namespace: Oid, name: &str) -> Result<()> {
        let (catalog, method) = (ddl.catalog(), self.place().3);
        let exists = match self {
            Placed::Class(_) => catalog.find_operator_class(&[namespace], method, name).is_some(),
            Placed::Family(_) => catalog.find_operator_family(&[namespace], method, name).is_some(),
        };
        if !exists {
            return Ok(());
        }
        let schema = catalog.namespace(namespace).map_or("?", |n| &n.name);
        let method = catalog.access_methods().method_name(method).unwrap_or_default();
        bail!(DUPLICATE_OBJECT, "{} \"{name}\" for access method \"{method}\" already exists in schema \"{schema}\"", self.word())
    }
}

/// The object that a list names, whose first name is that of the access method.
fn named(ddl: &Ddl<'_>, kind: ObjectType, object: Option<&Node>) -> Result<Placed> {
    let object = object.ok_or_else(|| DbError::internal("an operator class without a name"))?;
    let N::List(list) = inner(object)? else { return Err(DbError::internal("an operator class without a name")) };
    let names = strings(&list.items);
    let [method, names @ ..] = &names[..] else { return Err(DbError::internal("an operator class without an access method")) };
    let method = AccessMethod::of(&ddl.catalog(), method)?;
    Ok(match kind {
        ObjectType::ObjectOpclass => Placed::Class(named_class(ddl, names, method)?),
        _ => Placed::Family(named_family(ddl, names, method)?),
    })
}

/// The object that DROP or COMMENT names. `None`: there is none, as IF EXISTS allows.
pub fn find_placed(ddl: &Ddl<'_>, kind: ObjectType, object: &Node, missing_ok: bool) -> Result<Option<ObjectAddress>> {
    if let N::List(list) = inner(object)?
        && let [_, schema, _] = strings(&list.items)[..]
        && ddl.is_missing_schema(schema, missing_ok)?
    {
        return Ok(None);
    }
    if let N::List(list) = inner(object)?
        && let Some(method) = strings(&list.items).first()
    {
        // IF EXISTS is about the class, not its access method.
        AccessMethod::of(&ddl.catalog(), method)?;
    }
    match named(ddl, kind, Some(object)) {
        Ok(found) => {
            let N::List(list) = inner(object)? else { return Ok(None) };
            // Its name is that of the statement, with the access method.
            ddl.require_owner(found.place().2, found.word(), &strings(&list.items).join("."))?;
            Ok(Some(found.address()))
        }
        Err(error) if missing_ok && error.sqlstate() == SqlState::UNDEFINED_OBJECT => {
            ddl.notice(format!("{}, skipping", error.message()));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// # Errors
/// 2BP01 for a built-in class or family, 0A000 for one of an extension.
fn refuse_dropping_built_in(ddl: &Ddl<'_>, address: ObjectAddress) -> Result<()> {
    let of_users = classes::FIRST_USER_OID..classes::FIRST_EXTENSION_OID;
    if of_users.contains(&address.object.0) {
        return Ok(());
    }
    let shown = melba_definition::describe::describe(ddl, address);
    if address.object < Oid(FIRST_UNPINNED_OID) {
        return Err(err!(DEPENDENT_OBJECTS_STILL_EXIST, "cannot drop {shown} because it is required by the database system"));
    }
    Err(DbError::unsupported(format!("dropping {shown}, which is built in")))
}

/// The object that DROP names. A family is locked, so that nobody adds to it meanwhile.
pub fn dropped_placed(ddl: &Ddl<'_>, kind: ObjectType, object: &Node, missing_ok: bool) -> Result<Option<ObjectAddress>> {
    let Some(found) = find_placed(ddl, kind, object, missing_ok)? else { return Ok(None) };
    refuse_dropping_built_in(ddl, found)?;
    ddl.lock_database_object(ddl.tx().database, found.class, found.object)?;
    match ddl.catalog().object(found).is_some() {
        true => Ok(Some(found)),
        false => find_placed(ddl, kind, object, missing_ok),
    }
}

pub fn rename_placed(ddl: &Ddl<'_>, kind: ObjectType, object: Option<&Node>, name: &str) -> Result<()> {
    let old = named(ddl, kind, object)?;
    let (namespace, _, owner, _) = old.place();
    old.refuse_same(ddl, namespace, name)?;
    old.require_own_of_users(ddl)?;
    ddl.require_schema(ddl.user(), namespace, melba_catalog::acl::CREATE)?;
    old.put(ddl, namespace, name.into(), owner)
}

pub fn move_placed(ddl: &Ddl<'_>, kind: ObjectType, object: Option<&Node>, schema: &str) -> Result<()> {
    let old = named(ddl, kind, object)?;
    let (namespace, name, owner, _) = old.place();
    old.require_own_of_users(ddl)?;
    let new = ddl.namespace_for_creation(Some(schema))?;
    if new != namespace {
        refuse_special_schema(ddl, namespace, new)?;
        old.refuse_same(ddl, new, name)?;
        old.put(ddl, new, name.clone(), owner)?;
    }
    Ok(())
}

/// ALTER ... OWNER TO. Dumps name the owner of built-in objects, who stays the same.
pub fn own_placed(ddl: &Ddl<'_>, kind: ObjectType, object: Option<&Node>, owner: Oid) -> Result<()> {
    let old = named(ddl, kind, object)?;
    old.require_owner(ddl)?;
    if old.place().2 == owner {
        return Ok(());
    }
    old.require_own_of_users(ddl)?;
    give_placed(ddl, &old, owner)
}

pub fn give_placed(ddl: &Ddl<'_>, old: &Placed, owner: Oid) -> Result<()> {
    let (namespace, name, old_owner, _) = old.place();
    ddl.check_new_owner(old_owner, owner, Some(namespace))?;
    old.put(ddl, namespace, name.clone(), owner)
}
