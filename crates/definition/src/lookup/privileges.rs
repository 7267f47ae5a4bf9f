//! The rights that a user needs for a statement besides owning its object: privileges on schemas, types, referenced tables,
//! databases, and the right to act as an object's new owner.

use melba_catalog::memberships::is_admin_of;
use melba_catalog::privileges::{AclKind, RoleUse};
use melba_catalog::{ObjectAddress, Relation, Role, Type, acl, classes};
use melba_tree::Query;
use melba_tree::permissions::denied;
use melba_types::{Oid, Result, bail, err};
use pg_query::protobuf::TypeName;

use super::Lookup;
use super::function_rows::add_function_columns;
use crate::words::relation_word;

impl Lookup<'_> {
    pub fn is_superuser(&self) -> bool {
        self.catalog().is_superuser(self.user())
    }

    /// Whether the user has the privileges of a role without SET ROLE.
    pub fn has_privileges_of(&self, role: Oid) -> bool {
        self.catalog().has_role(self.user(), role, RoleUse::Inherit)
    }

    /// Whether the user has the owner's rights.
    pub fn is_owner(&self, owner: Oid) -> bool {
        self.has_privileges_of(owner)
    }

    /// # Errors
    /// 42501 unless the user is the object's owner, or has its privileges.
    pub fn require_owner(&self, owner: Oid, what: &str, name: &str) -> Result<()> {
        if self.is_owner(owner) {
            return Ok(());
        }
        bail!(INSUFFICIENT_PRIVILEGE, "must be owner of {what} {name}")
    }

    /// # Errors
    /// 42501 unless the user owns the relation, and for a system catalog.
    pub fn require_own_relation(&self, relation: &Relation) -> Result<()> {
        self.require_owner(relation.owner, relation_word(relation.kind), &relation.name)?;
        if relation.oid.0 < classes::FIRST_USER_OID {
            bail!(INSUFFICIENT_PRIVILEGE, "permission denied: \"{}\" is a system catalog", relation.name);
        }
        Ok(())
    }

    /// # Errors
    /// 42501 unless the user owns the type; of an array that is its element's.
    pub fn require_type_owner(&self, ty: &Type) -> Result<()> {
        let catalog = self.catalog();
        let named = catalog.type_(array_element(ty)).map_or(ty.oid, |element| element.oid);
        self.require_owner(ty.owner, "type", &catalog.type_name(named, self.schemas.path))
    }

    /// # Errors
    /// 42501 unless the user may become the role by SET ROLE.
    pub fn require_set_role(&self, role: Oid) -> Result<()> {
        let catalog = self.catalog();
        if catalog.has_role(self.user(), role, RoleUse::Set) {
            return Ok(());
        }
        let name = catalog.role(role).map_or("", |r| &r.name);
        bail!(INSUFFICIENT_PRIVILEGE, "must be able to SET ROLE \"{name}\"")
    }

    /// Whether the user, who owns an object, may give it to another role; one in a schema only to a role that could have created
    /// it there.
    ///
    /// # Errors
    /// 42501
    pub fn check_new_owner(&self, old: Oid, new: Oid, namespace: Option<Oid>) -> Result<()> {
        if old == new || self.is_superuser() {
            return Ok(());
        }
        self.require_set_role(new)?;
        namespace.map_or(Ok(()), |namespace| self.require_schema(new, namespace, acl::CREATE))
    }

    /// # Errors
    /// 42501 when `role` lacks the privilege on the schema.
    pub fn require_schema(&self, role: Oid, namespace: Oid, privilege: u64) -> Result<()> {
        let catalog = self.catalog();
        match catalog.namespace(namespace) {
            Some(n) if !self.may_use_schema(role, namespace, privilege) => {
                Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied for schema {}", n.name))
            }
            _ => Ok(()),
        }
    }

    fn may_use_schema(&self, role: Oid, namespace: Oid, privilege: u64) -> bool {
        let catalog = self.catalog();
        catalog.namespace(namespace).is_none_or(|n| {
            self.is_own_temporary(namespace) || catalog.has_privileges(role, AclKind::Namespace, n.owner, &n.acl, privilege)
        })
    }

    /// # Errors
    /// 42501 when the user may not create schemas in the database (`acl::CREATE`) or temporary tables (`acl::TEMPORARY`).
    pub fn require_database(&self, privilege: u64) -> Result<()> {
        let catalog = self.catalog();
        let Some(database) = catalog.database(self.tx.database) else { return Ok(()) };
        if catalog.has_privileges(self.user(), AclKind::Database, database.owner, &database.acl, privilege) {
            return Ok(());
        }
        if privilege == acl::TEMPORARY {
            bail!(INSUFFICIENT_PRIVILEGE, "permission denied to create temporary tables in database \"{}\"", database.name);
        }
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied for database {}", database.name)
    }

    /// # Errors
    /// 42501 without USAGE on a type; of an array that is its element's.
    pub fn require_type(&self, ty: Oid) -> Result<()> {
        let catalog = self.catalog();
        let Some(mut found) = catalog.type_(ty) else { return Ok(()) };
        found = catalog.type_(array_element(found)).unwrap_or(found);
        if catalog.has_privileges(self.user(), AclKind::Type, found.owner, &found.acl, acl::USAGE) {
            return Ok(());
        }
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied for type {}", catalog.type_name(found.oid, self.schemas.path))
    }

    /// A type that a statement uses for a column, parameter or domain, and its modifier.
    pub fn usable_type(&self, name: &TypeName) -> Result<(Oid, i32)> {
        let (ty, typmod) = self.type_from_name(name)?;
        self.require_type(ty)?;
        Ok((ty, typmod))
    }

    /// The dependencies of a stored expression, on whose types the user needs USAGE; functions are checked when they are called.
    pub fn usable(&self, dependencies: Vec<ObjectAddress>) -> Result<Vec<ObjectAddress>> {
        let types = dependencies.iter().filter(|d| d.class == classes::PG_TYPE && d.object.0 >= classes::FIRST_USER_OID);
        types.map(|d| d.object).try_for_each(|ty| self.require_type(ty))?;
        Ok(dependencies)
    }

    /// The same of a query.
    ///
    /// # Errors
    /// 0A000 for a query that reads the transition tables of a statement: they exist only during it.
    pub fn usable_of_query(&self, query: &Query) -> Result<Vec<ObjectAddress>> {
        let (mut dependencies, transition) = query.mentions();
        add_function_columns(&self.catalog(), query, &mut dependencies);
        match transition {
            None => self.usable(dependencies),
            Some(name) => bail!(FEATURE_NOT_SUPPORTED, "transition table \"{name}\" cannot be referenced in a persistent object"),
        }
    }

    /// # Errors
    /// 42501 without a privilege on a relation, or on all of the columns.
    pub fn require_columns(&self, relation: &Relation, columns: &[i16], privilege: u64) -> Result<()> {
        let catalog = self.catalog();
        let may = |number: &i16| {
            let column = relation.columns.get(*number as usize - 1);
            column.is_some_and(|c| catalog.has_column_privileges(self.user(), relation, c, privilege))
        };
        if catalog.has_relation_privileges(self.user(), relation, privilege) || !columns.is_empty() && columns.iter().all(may) {
            return Ok(());
        }
        Err(denied(relation))
    }

    /// Whether the user may manage a role: only superusers may manage superusers.
    ///
    /// # Errors
    /// 42501
    pub fn require_role_manager(&self, role: &Role) -> Result<()> {
        let denied = |detail: String| Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied").detail(detail));
        if role.superuser {
            if !self.is_superuser() {
                return denied("The current user must have the SUPERUSER attribute.".into());
            }
        } else if !self.catalog().role(self.user()).is_some_and(|r| r.superuser || r.create_role) {
            return denied("The current user must have the CREATEROLE attribute.".into());
        } else if !is_admin_of(&self.catalog(), self.user(), role.oid) {
            return denied(format!("The current user must have the ADMIN option on role \"{}\".", role.name));
        }
        Ok(())
    }
}

/// The type of an array's elements; invalid when the type is no true array.
fn array_element(ty: &Type) -> Oid {
    if *ty.subscript == *"array_subscript_handler" { ty.element } else { Oid::INVALID }
}
