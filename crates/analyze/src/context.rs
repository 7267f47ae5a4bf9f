//! The session as analysis sees it: the catalog, the search path, input functions.

use std::sync::Arc;

use melba_catalog::privileges::AclKind;
use melba_catalog::{Catalog, Collation, Function, Operator, Relation, Type, TypeKind, acl, classes};
use melba_fmgr::Session;
use melba_types::{Datum, DbError, Oid, Result, err};

/// Names in stored text are qualified, except those of pg_catalog.
const STORED_PATH: [Oid; 1] = [classes::PG_CATALOG];

/// The surroundings of an analysis.
pub struct Context<'a> {
    pub catalog: &'a Catalog,
    pub session: &'a dyn Session,
    /// Namespaces in which names are looked up, in order; the temporary schema and pg_catalog are in their implied places.
    pub search_path: &'a [Oid],
    /// The session's temporary schema, or 0.
    pub temp_namespace: Oid,
    /// Name of the current database (`database.schema.table`).
    pub database: &'a str,
    pub user: Oid,
}

impl<'a> Context<'a> {
    /// The context in which stored text is analyzed.
    pub fn stored(&self) -> Context<'a> {
        Context {
            catalog: self.catalog,
            session: self.session,
            search_path: &STORED_PATH,
            temp_namespace: Oid::INVALID,
            database: self.database,
            // Stored names were looked up, with permission, when they were stored.
            user: classes::POSTGRES_ROLE,
        }
    }

    /// Whether this may be a context of stored text: names without a schema are the system's or temporary ones.
    pub fn is_stored(&self) -> bool {
        self.search_path.iter().all(|namespace| *namespace == classes::PG_CATALOG || *namespace == self.temp_namespace)
    }

    /// The context in which a function's body is analyzed: names in one that was analyzed when it was created are qualified.
    pub fn of_body(&self, function: &Function) -> Context<'a> {
        if function.sql_body.is_some() { self.stored() } else { Context { ..*self } }
    }

    pub fn ty(&self, oid: Oid) -> Result<&'a Arc<Type>> {
        self.catalog.type_(oid).ok_or_else(|| DbError::internal(format!("cache lookup failed for type {oid}")))
    }

    pub fn relation(&self, oid: Oid) -> Result<&'a Arc<Relation>> {
        self.catalog.relation(oid).ok_or_else(|| DbError::internal(format!("could not open relation with OID {oid}")))
    }

    pub fn function(&self, oid: Oid) -> Result<&'a Arc<Function>> {
        self.catalog.function(oid).ok_or_else(|| DbError::internal(format!("cache lookup failed for function {oid}")))
    }

    pub fn operator(&self, oid: Oid) -> Result<&'a Arc<Operator>> {
        self.catalog.operator(oid).ok_or_else(|| DbError::internal(format!("cache lookup failed for operator {oid}")))
    }

    /// The type's name as messages have it.
    pub fn type_name(&self, oid: Oid) -> String {
        self.catalog.type_name(oid, self.search_path)
    }

    pub fn type_name_typmod(&self, oid: Oid, typmod: i32) -> String {
        self.catalog.format_type(oid, Some(typmod), self.search_path)
    }

    pub fn base_type(&self, oid: Oid) -> Oid {
        self.catalog.base_type(oid)
    }

    /// Category and preference of a type.
    pub fn category(&self, oid: Oid) -> (u8, bool) {
        self.catalog.type_(oid).map_or((b'X', false), |t| (t.category, t.preferred))
    }

    pub fn collation_of_type(&self, oid: Oid) -> Oid {
        self.catalog.type_(oid).map_or(Oid::INVALID, |t| t.collation)
    }

    pub fn is_complex(&self, oid: Oid) -> bool {
        self.row_relation(oid).is_some()
    }

    /// The relation whose columns a composite type (or a domain over one) has.
    pub fn row_relation(&self, oid: Oid) -> Option<&'a Arc<Relation>> {
        let ty = self.catalog.type_(self.base_type(oid))?;
        if ty.type_kind != TypeKind::Composite {
            return None;
        }
        self.catalog.relation(ty.relation)
    }

    pub fn namespace(&self, name: &str) -> Result<Oid> {
        if name == "pg_temp" && self.temp_namespace.is_valid() {
            return Ok(self.temp_namespace);
        }
        match self.catalog.namespace_by_name(name) {
            // Everybody may use the session's own temporary schema.
            Some(n) if n.oid == self.temp_namespace => Ok(n.oid),
            Some(n) => {
                if !self.catalog.has_privileges(self.user, AclKind::Namespace, n.owner, &n.acl, acl::USAGE) {
                    return Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied for schema {name}"));
                }
                Ok(n.oid)
            }
            None => Err(err!(UNDEFINED_SCHEMA, "schema \"{name}\" does not exist")),
        }
    }

    /// A relation by name as the search path has it.
    pub fn find_relation(&self, schema: Option<&str>, name: &str) -> Option<&'a Arc<Relation>> {
        match schema {
            Some(schema) => self.catalog.relation_by_name(self.namespace(schema).ok()?, name),
            None => {
                if self.temp_namespace.is_valid()
                    && !self.search_path.contains(&self.temp_namespace)
                    && let Some(found) = self.catalog.relation_by_name(self.temp_namespace, name)
                {
                    return Some(found);
                }
                self.search_path.iter().find_map(|n| self.catalog.relation_by_name(*n, name))
            }
        }
    }

    pub fn find_type(&self, schema: Option<&str>, name: &str) -> Result<Option<&'a Arc<Type>>> {
        match schema {
            Some(schema) => {
                let namespace = self.namespace(schema)?;
                Ok(self.catalog.type_by_name(namespace, name))
            }
            None => {
                if self.temp_namespace.is_valid()
                    && !self.search_path.contains(&self.temp_namespace)
                    && let Some(found) = self.catalog.type_by_name(self.temp_namespace, name)
                {
                    return Ok(Some(found));
                }
                Ok(self.search_path.iter().find_map(|n| self.catalog.type_by_name(*n, name)))
            }
        }
    }

    /// A collation by its possibly qualified name.
    pub fn find_collation(&self, names: &[&str], location: i32) -> Result<&'a Arc<Collation>> {
        let found = match names {
            [name] => self.search_path.iter().find_map(|n| self.catalog.collation_by_name(*n, name)),
            [schema, name] => {
                let namespace = self.namespace(schema).map_err(|e| e.at(location))?;
                self.catalog.collation_by_name(namespace, name)
            }
            _ => None,
        };
        let name = names.join(".");
        found.ok_or_else(|| err!(UNDEFINED_OBJECT, "collation \"{name}\" for encoding \"UTF8\" does not exist").at(location))
    }

    /// The value that a literal stands for.
    pub fn input(&self, ty: Oid, typmod: i32, text: &str) -> Result<Datum> {
        melba_fmgr::io::text_in(self.session, ty, typmod, text)
    }
}
