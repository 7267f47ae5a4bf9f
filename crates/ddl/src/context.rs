//! The context of a defining statement, by which it finds and locks relations, schemas and roles.

use std::sync::Arc;

use melba_catalog::{Catalog, Function, Namespace, Relation, RelationKind, acl, classes, quote_ident};
use melba_engine::{LockTag, RelationLockMode, Wait};
use melba_fmgr::Session;
use melba_types::{DbError, Oid, Result, SqlState, bail, err};
use pg_query::protobuf::{RangeVar, RoleSpec, RoleSpecType};

use super::on_commit::OnCommit;
use melba_transaction::Tx;

/// The context of a defining statement.
pub struct Ddl<'a> {
    pub tx: &'a Arc<Tx>,
    pub session: &'a dyn Session,
    /// The session over another catalog: evaluates expressions once the catalog has changed.
    pub session_for: &'a dyn Fn(Arc<Catalog>) -> Arc<dyn Session>,
    /// The same on behalf of an object's owner.
    pub maintainer: &'a dyn Fn(Arc<Catalog>, Oid) -> Arc<dyn Session>,
    /// The effective search path: temporary schema first when there is one, pg_catalog included.
    pub path: &'a [Oid],
    /// Where unqualified names are created; `None`: no schema of search_path exists.
    pub creation_namespace: Option<Oid>,
    /// The session's temporary schema, or 0: there may be one once the statement has run.
    pub temporary: Oid,
    /// The session's temporary schema, made at first use.
    pub temporary_namespace: &'a dyn Fn() -> Result<Oid>,
    /// current_user, whose privileges count, and session_user.
    pub user: Oid,
    pub session_user: Oid,
    /// The stored form of a role's password (a given verifier is kept unchanged); `None` for an empty password.
    pub stored_password: &'a dyn Fn(&str, &str) -> Result<Option<String>>,
    /// Checks a new function by the rules of its language, if its body is a text.
    pub check_function: &'a dyn Fn(&Arc<Function>) -> Result<()>,
    /// Keeps the action for a temporary table when the transaction commits.
    pub on_commit: &'a dyn Fn(Oid, OnCommit),
    /// The statement's text, in which the bodies of functions are found, and where in the query string it begins.
    pub source: &'a str,
    pub start: usize,
    /// The lock on relations that the statement names, from its row.
    pub lock: RelationLockMode,
}

impl<'a> Ddl<'a> {
    pub fn catalog(&self) -> Arc<Catalog> {
        self.tx.catalog()
    }

    pub fn notice(&self, message: impl Into<String>) {
        self.session.notice(DbError::new(SqlState::SUCCESSFUL_COMPLETION, message).severity(melba_types::Severity::Notice));
    }

    /// A message of level DEBUG1: only those of PostgreSQL for which clients' tests look.
    pub fn debug(&self, message: impl Into<String>) {
        self.session.notice(DbError::new(SqlState::SUCCESSFUL_COMPLETION, message).severity(melba_types::Severity::Debug));
    }

    pub fn warning(&self, state: SqlState, message: impl Into<String>) {
        self.session.notice(DbError::new(state, message).severity(melba_types::Severity::Warning));
    }

    /// The schema called `name`.
    pub fn namespace(&self, name: &str) -> Result<Arc<Namespace>> {
        let catalog = self.catalog();
        if name == "pg_temp" {
            let oid = (self.temporary_namespace)()?;
            let catalog = self.catalog();
            return catalog.namespace(oid).cloned().ok_or_else(|| DbError::internal("temporary schema is missing"));
        }
        catalog.namespace_by_name(name).cloned().ok_or_else(|| err!(INVALID_SCHEMA_NAME, "schema \"{name}\" does not exist"))
    }

    /// The schema of a new object with this name.
    pub fn namespace_for_creation(&self, schema: Option<&str>) -> Result<Oid> {
        let oid = match schema {
            Some(name) => self.namespace(name)?.oid,
            None => {
                self.creation_namespace.ok_or_else(|| err!(INVALID_SCHEMA_NAME, "no schema has been selected to create in"))?
            }
        };
        self.require_schema(self.user, oid, acl::CREATE)?;
        if oid == classes::PG_CATALOG {
            let name = schema.unwrap_or("pg_catalog");
            return Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to create objects in schema \"{name}\"")
                .detail("System catalog modifications are currently disallowed."));
        }
        Ok(oid)
    }

    /// The schema of a new relation, and whether it is temporary.
    pub fn relation_namespace(&self, name: &RangeVar) -> Result<(Oid, bool)> {
        self.check_database(name)?;
        let schema = (!name.schemaname.is_empty()).then_some(name.schemaname.as_str());
        if name.relpersistence == "t" || schema == Some("pg_temp") {
            if schema.is_some_and(|s| s != "pg_temp") {
                return Err(
                    err!(INVALID_TABLE_DEFINITION, "cannot create temporary relation in non-temporary schema").at(name.location)
                );
            }
            if name.relpersistence == "u" {
                return Err(err!(INVALID_TABLE_DEFINITION, "only temporary relations may be created in temporary schemas")
                    .at(name.location));
            }
            self.require_database(acl::TEMPORARY)?;
            return Ok(((self.temporary_namespace)()?, true));
        }
        let oid = self.namespace_for_creation(schema)?;
        Ok((oid, self.is_own_temporary(oid)))
    }

    /// Whether a schema is the one that the session has for temporary objects: everybody may make objects there.
    pub(crate) fn is_own_temporary(&self, namespace: Oid) -> bool {
        namespace.is_valid() && self.temporary == namespace
    }

    fn check_database(&self, name: &RangeVar) -> Result<()> {
        let catalog = self.catalog();
        let current = catalog.database(self.tx.database).map_or("", |d| &d.name);
        if !name.catalogname.is_empty() && name.catalogname != current {
            bail!(
                FEATURE_NOT_SUPPORTED,
                "cross-database references are not implemented: \"{}.{}.{}\"",
                name.catalogname,
                name.schemaname,
                name.relname
            );
        }
        Ok(())
    }

    /// The schemas in which a name is searched: the one before its dot, or those of the search path.
    ///
    /// # Errors
    /// 3F000 when there is no such schema, 42501 when its names may not be looked up.
    pub(super) fn searched_schemas(&self, schema: Option<&str>) -> Result<Vec<Oid>> {
        let Some(schema) = schema else { return Ok(self.path.to_vec()) };
        let namespace = self.namespace(schema)?.oid;
        self.require_schema(self.user, namespace, acl::USAGE)?;
        Ok(vec![namespace])
    }

    /// Finds a relation by name, `None` when missing.
    pub fn find_relation(&self, name: &RangeVar) -> Result<Option<Arc<Relation>>> {
        self.check_database(name)?;
        let catalog = self.catalog();
        if name.schemaname.is_empty() {
            return Ok(self.path.iter().find_map(|ns| catalog.relation_by_name(*ns, &name.relname)).cloned());
        }
        let namespace = match name.schemaname.as_str() {
            "pg_temp" if self.temporary.is_valid() => Some(self.temporary),
            schema => catalog.namespace_by_name(schema).map(|n| n.oid),
        };
        let Some(namespace) = namespace else { return Ok(None) };
        self.require_schema(self.user, namespace, acl::USAGE)?;
        Ok(catalog.relation_by_name(namespace, &name.relname).cloned())
    }

    /// Finds and locks a relation; the descriptor is the one current once the lock is held.
    pub fn open_relation(&self, name: &RangeVar, mode: RelationLockMode) -> Result<Arc<Relation>> {
        loop {
            let found = self.find_relation(name)?.ok_or_else(|| undefined_relation(name))?;
            self.lock_relation(found.oid, mode)?;
            // During the wait, the name may have got another relation.
            match self.find_relation(name)? {
                // It is created and dropped with its table, and cannot be changed otherwise.
                Some(now) if now.oid == found.oid && now.kind == RelationKind::Toast => {
                    bail!(INSUFFICIENT_PRIVILEGE, "permission denied: \"{}\" is a system catalog", now.name)
                }
                Some(now) if now.oid == found.oid => return Ok(now),
                _ => continue,
            }
        }
    }

    /// The same for the statement's relation, with the lock of the statement's row.
    pub fn open_target(&self, name: &RangeVar) -> Result<Arc<Relation>> {
        self.open_relation(name, self.lock)
    }

    pub fn lock_relation(&self, oid: Oid, mode: RelationLockMode) -> Result<()> {
        self.tx.engine.lock_relation(LockTag::Relation { database: self.tx.database.0, relation: oid.0 }, mode, Wait::Block)?;
        Ok(())
    }

    /// LOCK TABLE ... NOWAIT.
    pub fn try_lock_relation(&self, relation: &Relation, mode: RelationLockMode) -> Result<()> {
        let tag = LockTag::Relation { database: self.tx.database.0, relation: relation.oid.0 };
        if self.tx.engine.lock_relation(tag, mode, Wait::NoWait)? {
            return Ok(());
        }
        bail!(LOCK_NOT_AVAILABLE, "could not obtain lock on relation \"{}\"", relation.name)
    }

    pub fn relation(&self, oid: Oid) -> Result<Arc<Relation>> {
        self.catalog().relation(oid).cloned().ok_or_else(|| DbError::internal(format!("relation {oid} is missing")))
    }

    /// `schema.name` as messages and stored text write it.
    pub fn qualified_name(&self, relation: &Relation) -> String {
        let catalog = self.catalog();
        let schema = catalog.namespace(relation.namespace).map_or("", |n| &n.name);
        format!("{}.{}", quote_ident(schema), quote_ident(&relation.name))
    }

    /// The role of a RoleSpec.
    pub fn role_spec(&self, spec: &RoleSpec) -> Result<Oid> {
        match spec.roletype() {
            RoleSpecType::RolespecCstring => {
                let catalog = self.catalog();
                let role = catalog.role_by_name(&spec.rolename);
                role.map(|r| r.oid).ok_or_else(|| err!(UNDEFINED_OBJECT, "role \"{}\" does not exist", spec.rolename))
            }
            RoleSpecType::RolespecPublic => Ok(Oid::INVALID),
            RoleSpecType::RolespecSessionUser => Ok(self.session_user),
            _ => Ok(self.user),
        }
    }
}

/// 42P01 in PostgreSQL's wording.
pub fn undefined_relation(name: &RangeVar) -> DbError {
    let full = if name.schemaname.is_empty() { name.relname.clone() } else { format!("{}.{}", name.schemaname, name.relname) };
    err!(UNDEFINED_TABLE, "relation \"{full}\" does not exist")
}
