//! Lookup: the objects that a statement names, with their locks and the user's privileges on them (PostgreSQL's namespace.c,
//! lmgr.c and aclchk.c).
//!
//! Every utility statement has a [`Lookup`]. COPY, LOCK, VACUUM and the like need no more; those that define objects have a
//! `Ddl`, which adds what definitions need.

mod function_rows;
mod privileges;

use std::sync::Arc;
use std::time::Duration;

use melba_analyze::Context;
use melba_catalog::{Catalog, Namespace, ObjectAddress, Relation, RelationKind, acl, classes};
use melba_engine::{LockTag, RelationLockMode, Wait};
use melba_fmgr::Session;
use melba_transaction::Tx;
use melba_types::{DbError, Oid, Result, SqlState, bail, err};
use pg_query::protobuf::{RangeVar, RoleSpec, RoleSpecType, TypeName};

/// Others wait for so long behind a patient request of a lock, and it is made so often.
const PATIENT_WAIT: Duration = Duration::from_millis(50);
const PATIENT_REQUESTS: usize = 20;

/// What a lookup asks of the session besides what functions ask of it.
pub trait LookupSession: Session {
    /// The session over another catalog: evaluates expressions once the catalog has changed.
    fn over(&self, catalog: Arc<Catalog>) -> Arc<dyn Session>;
    /// The session's temporary schema, created at first use.
    ///
    /// # Errors
    /// 42501 where the user may not leave temporary objects.
    fn create_temporary_namespace(&self, tx: &Tx) -> Result<Oid>;
    fn session_user(&self) -> Oid;
}

/// The schemas that bare names belong to.
#[derive(Clone, Copy)]
pub struct Schemas<'a> {
    /// The effective search path: temporary schema first when there is one, pg_catalog included.
    pub path: &'a [Oid],
    /// Where unqualified names are created; `None`: no schema of search_path exists.
    pub creation: Option<Oid>,
    /// The session's temporary schema, or 0: there may be one once the statement has run.
    pub temporary: Oid,
}

/// Finds and locks what a statement names, on behalf of current_user.
#[derive(Clone, Copy)]
pub struct Lookup<'a> {
    tx: &'a Arc<Tx>,
    session: &'a dyn LookupSession,
    schemas: Schemas<'a>,
    /// The lock on relations that the statement names, from its row.
    target_lock: RelationLockMode,
}

impl<'a> Lookup<'a> {
    pub fn new(tx: &'a Arc<Tx>, session: &'a dyn LookupSession, schemas: Schemas<'a>) -> Lookup<'a> {
        Lookup { tx, session, schemas, target_lock: RelationLockMode::AccessExclusive }
    }

    /// The same for a statement that locks its relations in a mode.
    pub fn with_target_lock(self, target_lock: RelationLockMode) -> Lookup<'a> {
        Lookup { target_lock, ..self }
    }

    /// The same with another search path.
    pub fn with_path<'b>(&'b self, path: &'b [Oid], creation: Option<Oid>) -> Lookup<'b> {
        Lookup { schemas: Schemas { path, creation, ..self.schemas }, ..*self }
    }

    pub fn tx(&self) -> &'a Arc<Tx> {
        self.tx
    }

    pub fn session(&self) -> &'a dyn Session {
        self.session
    }

    /// The session over the transaction's present catalog.
    pub fn current_session(&self) -> Arc<dyn Session> {
        self.session.over(self.catalog())
    }

    /// The effective search path.
    pub fn path(&self) -> &'a [Oid] {
        self.schemas.path
    }

    /// Where unqualified names are created; `None`: no schema of search_path exists.
    pub fn creation_namespace(&self) -> Option<Oid> {
        self.schemas.creation
    }

    /// The session's temporary schema, or 0.
    pub fn temporary(&self) -> Oid {
        self.schemas.temporary
    }

    /// The session's temporary schema, created at first use.
    pub fn temporary_namespace(&self) -> Result<Oid> {
        self.session.create_temporary_namespace(self.tx)
    }

    /// current_user, whose privileges count.
    pub fn user(&self) -> Oid {
        self.session.user()
    }

    pub fn session_user(&self) -> Oid {
        self.session.session_user()
    }

    pub fn target_lock(&self) -> RelationLockMode {
        self.target_lock
    }

    pub fn catalog(&self) -> Arc<Catalog> {
        self.tx.catalog()
    }

    pub fn notice(&self, message: impl Into<String>) {
        self.notice_of(SqlState::SUCCESSFUL_COMPLETION, message);
    }

    pub fn notice_of(&self, state: SqlState, message: impl Into<String>) {
        self.session.notice(DbError::new(state, message).severity(melba_types::Severity::Notice));
    }

    /// Whether there is no such schema; IF EXISTS, `missing_ok`, tells so and goes on.
    ///
    /// # Errors
    /// 3F000 without IF EXISTS.
    pub fn is_missing_schema(&self, schema: &str, missing_ok: bool) -> Result<bool> {
        if schema == "pg_temp" || self.catalog().namespace_by_name(schema).is_some() {
            return Ok(false);
        }
        if !missing_ok {
            return Err(err!(INVALID_SCHEMA_NAME, "schema \"{schema}\" does not exist"));
        }
        self.notice(format!("schema \"{schema}\" does not exist, skipping"));
        Ok(true)
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
            let oid = self.temporary_namespace()?;
            let catalog = self.catalog();
            return catalog.namespace(oid).cloned().ok_or_else(|| DbError::internal("temporary schema is missing"));
        }
        catalog.namespace_by_name(name).cloned().ok_or_else(|| err!(INVALID_SCHEMA_NAME, "schema \"{name}\" does not exist"))
    }

    /// The schema of a new object with this name.
    pub fn namespace_for_creation(&self, schema: Option<&str>) -> Result<Oid> {
        let oid = match schema {
            Some(name) => self.namespace(name)?.oid,
            None => self.schemas.creation.ok_or_else(|| err!(INVALID_SCHEMA_NAME, "no schema has been selected to create in"))?,
        };
        self.require_schema(self.user(), oid, acl::CREATE)?;
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
            return Ok((self.temporary_namespace()?, true));
        }
        let oid = self.namespace_for_creation(schema)?;
        Ok((oid, self.is_own_temporary(oid)))
    }

    /// Whether a schema is the one that the session has for temporary objects: everybody may make objects there.
    pub(crate) fn is_own_temporary(&self, namespace: Oid) -> bool {
        namespace.is_valid() && self.schemas.temporary == namespace
    }

    /// The error of a name that no relation has, or of its schema.
    pub fn undefined_relation(&self, name: &RangeVar) -> DbError {
        match name.schemaname.as_str() {
            "" => err!(UNDEFINED_TABLE, "relation \"{}\" does not exist", name.relname),
            schema if schema != "pg_temp" && self.catalog().namespace_by_name(schema).is_none() => {
                err!(INVALID_SCHEMA_NAME, "schema \"{schema}\" does not exist")
            }
            schema => err!(UNDEFINED_TABLE, "relation \"{schema}.{}\" does not exist", name.relname),
        }
    }

    fn check_database(&self, name: &RangeVar) -> Result<()> {
        if name.catalogname.is_empty() || self.is_own_database(&name.catalogname) {
            return Ok(());
        }
        Err(other_database(format!("\"{}.{}.{}\"", name.catalogname, name.schemaname, name.relname)))
    }

    fn is_own_database(&self, name: &str) -> bool {
        self.catalog().database(self.tx.database).is_some_and(|d| *d.name == *name)
    }

    /// Splits a name into schema and object.
    ///
    /// # Errors
    /// 0A000 for a name in another database, 42601 for one of more than three parts.
    pub fn qualified<'n>(&self, names: &[&'n str]) -> Result<(Option<&'n str>, &'n str)> {
        match names {
            [name] => Ok((None, name)),
            [schema, name] => Ok((Some(schema), name)),
            [database, schema, name] if self.is_own_database(database) => Ok((Some(schema), name)),
            [_, _, _] => Err(other_database(names.join("."))),
            _ => Err(err!(SYNTAX_ERROR, "improper qualified name (too many dotted names): {}", names.join("."))),
        }
    }

    /// The schemas in which a name is searched: the one before its dot, or those of the search path.
    ///
    /// # Errors
    /// 3F000 when there is no such schema, 42501 when its names may not be looked up.
    pub fn searched_schemas(&self, schema: Option<&str>) -> Result<Vec<Oid>> {
        let Some(schema) = schema else { return Ok(self.schemas.path.to_vec()) };
        let namespace = self.namespace(schema)?.oid;
        self.require_schema(self.user(), namespace, acl::USAGE)?;
        Ok(vec![namespace])
    }

    /// Finds a relation by name, `None` when missing.
    pub fn find_relation(&self, name: &RangeVar) -> Result<Option<Arc<Relation>>> {
        self.check_database(name)?;
        let catalog = self.catalog();
        if name.schemaname.is_empty() {
            return Ok(self.schemas.path.iter().find_map(|ns| catalog.relation_by_name(*ns, &name.relname)).cloned());
        }
        let namespace = match name.schemaname.as_str() {
            "pg_temp" if self.schemas.temporary.is_valid() => Some(self.schemas.temporary),
            schema => catalog.namespace_by_name(schema).map(|n| n.oid),
        };
        let Some(namespace) = namespace else { return Ok(None) };
        self.require_schema(self.user(), namespace, acl::USAGE)?;
        Ok(catalog.relation_by_name(namespace, &name.relname).cloned())
    }

    /// Finds and locks a relation; the descriptor is the one current once the lock is held.
    pub fn open_relation(&self, name: &RangeVar, mode: RelationLockMode) -> Result<Arc<Relation>> {
        loop {
            let found = self.find_relation(name)?.ok_or_else(|| self.undefined_relation(name))?;
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
        self.open_relation(name, self.target_lock)
    }

    pub fn lock_relation(&self, oid: Oid, mode: RelationLockMode) -> Result<()> {
        self.tx.engine.lock_relation(LockTag::Relation { database: self.tx.database.0, relation: oid.0 }, mode, Wait::Block)?;
        Ok(())
    }

    /// The same without keeping others waiting for long: a request that others queue behind is made when those that hold the lock have
    /// ended, and given up when it takes long. Where they never pause the last request waits.
    pub fn lock_relation_patiently(&self, oid: Oid, mode: RelationLockMode) -> Result<()> {
        let tag = LockTag::Relation { database: self.tx.database.0, relation: oid.0 };
        for _ in 0..PATIENT_REQUESTS {
            let session = self.tx.engine.session();
            session.await_holders(tag, mode)?;
            if session.lock_relation_within(tag, mode, PATIENT_WAIT)? {
                return Ok(());
            }
        }
        self.lock_relation(oid, mode)
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
        self.catalog().qualified(false, relation.namespace, &relation.name)
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
            RoleSpecType::RolespecSessionUser => Ok(self.session.session_user()),
            _ => Ok(self.user()),
        }
    }

    /// Analyzes queries that are to be stored, for the definitions that their relations have once they are locked. `mentioned`: what the
    /// queries depend on.
    pub fn analyze_locked<T>(
        &self,
        analyze: impl Fn(&Context<'_>) -> Result<T>,
        mentioned: impl Fn(&T) -> Vec<ObjectAddress>,
    ) -> Result<T> {
        loop {
            let before = self.catalog();
            let analyzed = self.with_context(&analyze)?;
            for relation in mentioned(&analyzed).iter().filter(|object| object.class == classes::PG_CLASS) {
                self.lock_relation(relation.object, RelationLockMode::AccessShare)?;
            }
            // During the wait for a lock, another transaction may have changed the relations.
            if Arc::ptr_eq(&before, &self.catalog()) {
                return Ok(analyzed);
            }
        }
    }

    /// Runs `f` with an analysis context.
    pub fn with_context<T>(&self, f: impl FnOnce(&Context<'_>) -> Result<T>) -> Result<T> {
        let catalog = self.catalog();
        let database = catalog.database(self.tx.database).map_or_else(String::new, |d| d.name.to_string());
        // Functions must see the transaction's changes: they write and read the names of objects.
        let changed = self.tx.has_catalog_changes().then(|| self.session.over(catalog.clone()));
        f(&Context {
            catalog: &catalog,
            session: changed.as_deref().unwrap_or(self.session()),
            search_path: self.schemas.path,
            temp_namespace: self.schemas.temporary,
            database: &database,
            user: self.user(),
        })
    }

    pub fn type_from_name(&self, name: &TypeName) -> Result<(Oid, i32)> {
        self.with_context(|c| c.transform_type_name(name))
    }

    /// The collation a COLLATE clause names, for a column of a type.
    pub fn collation(&self, names: &[&str], ty: Oid, location: i32) -> Result<Oid> {
        let catalog = self.catalog();
        if catalog.type_(ty).is_some_and(|t| !t.collation.is_valid()) {
            let name = catalog.type_name(ty, self.schemas.path);
            return Err(err!(DATATYPE_MISMATCH, "collations are not supported by type {name}").at(location));
        }
        self.with_context(|c| Ok(c.find_collation(names, location)?.oid))
    }

    /// Keeps others from changing the definition of an object that is no relation until the transaction ends. Needed before
    /// reading a definition that is written back changed; for a relation, a lock that conflicts with itself serves.
    pub fn lock_database_object(&self, database: Oid, class: Oid, object: Oid) -> Result<()> {
        let tag = LockTag::Object { database: database.0, class: class.0, object: object.0 };
        self.tx.engine.lock_object(tag, RelationLockMode::ShareUpdateExclusive, Wait::Block)?;
        Ok(())
    }

    /// Keeps others from using an object that is no relation until the transaction ends.
    pub fn lock_object_exclusively(&self, database: Oid, class: Oid, object: Oid) -> Result<()> {
        let tag = LockTag::Object { database: database.0, class: class.0, object: object.0 };
        self.tx.engine.lock_object(tag, RelationLockMode::AccessExclusive, Wait::Block)?;
        Ok(())
    }
}

fn other_database(name: String) -> DbError {
    err!(FEATURE_NOT_SUPPORTED, "cross-database references are not implemented: {name}")
}
