//! An index as statements ask for it: its name, keys and parameters.

use std::sync::Arc;

use melba_catalog::{Catalog, ObjectAddress, Relation, classes};
use melba_definition::context::Ddl;
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::IndexStmt;

use crate::table::storage_parameters::ParametersOf;

impl AccessMethod {
    /// Whether its keys have directions.
    pub fn is_ordered(self) -> bool {
        self.oid == classes::BTREE
    }

    /// Whether its indexes have the values themselves for keys.
    pub fn is_of_values(self) -> bool {
        [classes::BTREE, classes::HASH].contains(&self.oid)
    }

    /// The storage parameters of its indexes.
    pub fn parameters(self) -> ParametersOf {
        match self.oid {
            classes::GIN => ParametersOf::Gin,
            classes::BRIN => ParametersOf::Brin,
            _ => ParametersOf::Index,
        }
    }

    /// Refuses what an access method's indexes cannot have.
    pub fn check_index(self, s: &IndexStmt) -> Result<()> {
        let lacks = [
            (s.unique, "unique indexes"),
            (!s.index_including_params.is_empty(), "included columns"),
            (s.index_params.len() > 1 && self.oid == classes::HASH, "multicolumn indexes"),
        ];
        match lacks.into_iter().find(|(wanted, _)| *wanted && !self.is_ordered()) {
            Some((_, what)) => bail!(FEATURE_NOT_SUPPORTED, "access method \"{}\" does not support {what}", self.name),
            None => Ok(()),
        }
    }

    /// Refuses what an access method's constraints cannot have.
    pub fn check_exclusion(self, columns: usize, has_included: bool) -> Result<()> {
        let name = self.name;
        if has_included && name == "hash" {
            bail!(FEATURE_NOT_SUPPORTED, "access method \"{name}\" does not support included columns");
        }
        if columns > 1 && matches!(name, "hash" | "spgist") {
            bail!(FEATURE_NOT_SUPPORTED, "access method \"{name}\" does not support multicolumn indexes");
        }
        if matches!(name, "gin" | "brin") {
            bail!(FEATURE_NOT_SUPPORTED, "access method \"{name}\" does not support exclusion constraints");
        }
        Ok(())
    }
}

/// Most key and INCLUDE columns of an index (PostgreSQL's INDEX_MAX_KEYS).
pub const KEYS_MAX: usize = 32;

/// An access method of indexes.
#[derive(Clone, Copy)]
pub struct AccessMethod {
    pub oid: Oid,
    pub name: &'static str,
}

impl AccessMethod {
    pub const BTREE: AccessMethod = AccessMethod { oid: classes::BTREE, name: "btree" };

    /// By name; without one, btree.
    pub fn of(catalog: &Catalog, name: &str) -> Result<AccessMethod> {
        let oid = if name.is_empty() { Some(classes::BTREE) } else { catalog.access_methods().method_by_name(name) };
        let oid = oid.ok_or_else(|| err!(UNDEFINED_OBJECT, "access method \"{name}\" does not exist"))?;
        match AccessMethod::of_oid(catalog, oid) {
            method if matches!(method.name, "btree" | "hash" | "gist" | "gin" | "spgist" | "brin") => Ok(method),
            _ => bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "access method \"{name}\" is not of type INDEX"),
        }
    }

    pub fn of_oid(catalog: &Catalog, oid: Oid) -> AccessMethod {
        AccessMethod { oid, name: catalog.access_methods().method_name(oid).unwrap_or("btree") }
    }
}

/// An index to build.
pub struct IndexRequest {
    pub name: String,
    pub keys: Vec<KeyRequest>,
    pub include: Vec<i16>,
    pub unique: bool,
    pub primary: bool,
    pub nulls_not_distinct: bool,
    pub predicate: Option<Arc<str>>,
    pub method: AccessMethod,
    pub constraint: Oid,
    pub deferrable: bool,
    pub options: Vec<Arc<str>>,
    pub depends_on: Vec<ObjectAddress>,
    pub concurrently: bool,
}

impl IndexRequest {
    pub fn named(name: String) -> IndexRequest {
        IndexRequest {
            name,
            keys: vec![],
            include: vec![],
            unique: false,
            primary: false,
            nulls_not_distinct: false,
            predicate: None,
            method: AccessMethod::BTREE,
            constraint: Oid::INVALID,
            deferrable: false,
            options: vec![],
            depends_on: vec![],
            concurrently: false,
        }
    }
}

/// One key of an index to build.
pub struct KeyRequest {
    /// Column number, or 0 for `expression`.
    pub column: i16,
    pub expression: Option<(Arc<str>, Oid, Oid)>,
    pub collation: Option<Oid>,
    pub opclass: Option<Oid>,
    pub descending: bool,
    pub nulls_first: bool,
    /// Name of the column in the index.
    pub name: Option<String>,
}

impl KeyRequest {
    pub fn column(number: i16) -> KeyRequest {
        KeyRequest {
            column: number,
            expression: None,
            collation: None,
            opclass: None,
            descending: false,
            nulls_first: false,
            name: None,
        }
    }
}

pub fn no_default_class(ddl: &Ddl<'_>, ty: Oid, method: &str) -> DbError {
    let name = ddl.catalog().type_name(ty, ddl.path());
    err!(UNDEFINED_OBJECT, "data type {name} has no default operator class for access method \"{method}\"")
        .hint("You must specify an operator class for the index or define a default operator class for the data type.")
}

/// Names of an index's columns: the column's, one derived from the expression, or `expr`, numbered when repeated.
pub fn index_column_names(relation: &Relation, keys: &[KeyRequest], include: &[i16]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let base = keys
        .iter()
        .map(|k| match k.column {
            0 => k.name.clone().unwrap_or_else(|| "expr".to_owned()),
            n => relation.columns[n as usize - 1].name.to_string(),
        })
        .chain(include.iter().map(|n| relation.columns[*n as usize - 1].name.to_string()));
    for name in base {
        let mut unique = name.clone();
        let mut n = 1;
        while names.contains(&unique) {
            unique = format!("{name}{n}");
            n += 1;
        }
        names.push(unique);
    }
    names
}
