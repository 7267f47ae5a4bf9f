//! CREATE INDEX and the indexes behind PRIMARY KEY and UNIQUE.

use std::sync::Arc;

use melba_catalog::{Catalog, IndexInfo, IndexKey, ObjectAddress, Relation, RelationKind, Storage, classes};
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::Node;
use pg_query::protobuf::{IndexElem, IndexStmt, SortByDir, SortByNulls, node::Node as N};

use super::Ddl;
use super::expression::Use;
use super::naming::{column_part, unused_relation_name};
use super::persistence::engine_persistence;
use super::storage_parameters::ParametersOf;
use melba_parse::nodes::{inner, qualified, strings};

/// Most key and INCLUDE columns of an index (PostgreSQL's INDEX_MAX_KEYS).
const KEYS_MAX: usize = 32;

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

impl Ddl<'_> {
    pub fn create_index(&self, s: &IndexStmt) -> Result<()> {
        let name = s.relation.as_ref().ok_or_else(|| DbError::internal("CREATE INDEX without a table"))?;
        let relation = self.open_target(name)?;
        let kinds = [RelationKind::Table, RelationKind::MaterializedView, RelationKind::PartitionedTable];
        if !kinds.contains(&relation.kind) {
            return Err(err!(WRONG_OBJECT_TYPE, "cannot create index on relation \"{}\"", relation.name)
                .detail(format!("This operation is not supported for {}.", plural(relation.kind))));
        }
        self.require_own_relation(&relation)?;
        self.refuse_pending_events(&relation, "CREATE INDEX")?;
        self.check_access_method(&s.access_method)?;
        if !s.table_space.is_empty() && s.table_space != "pg_default" {
            bail!(UNDEFINED_OBJECT, "tablespace \"{}\" does not exist", s.table_space);
        }
        let mut depends_on = Vec::new();
        let keys = self.key_requests(&relation, s, &mut depends_on)?;
        let mut include = Vec::new();
        for element in &s.index_including_params {
            if let N::IndexElem(element) = inner(element)? {
                if element.expr.is_some() {
                    bail!(FEATURE_NOT_SUPPORTED, "expressions are not supported in included columns");
                }
                include.extend(self.column_numbers(&relation, &[&element.name], false)?);
            }
        }
        let predicate = match s.where_clause.as_deref() {
            Some(node) => Some(self.index_predicate(node, &relation, &mut depends_on)?),
            None => None,
        };
        let index_name = if s.idxname.is_empty() {
            self.index_name(&relation, &keys, &include, "idx")
        } else {
            if self.relation_exists(relation.namespace, &s.idxname, s.if_not_exists)? {
                return Ok(());
            }
            s.idxname.clone()
        };
        let request = IndexRequest {
            keys,
            include,
            unique: s.unique,
            nulls_not_distinct: s.nulls_not_distinct,
            predicate,
            options: ParametersOf::Index.new_list(&s.options)?,
            depends_on,
            ..IndexRequest::named(index_name)
        };
        if relation.is_partitioned() && s.concurrent {
            bail!(FEATURE_NOT_SUPPORTED, "cannot create index on partitioned table \"{}\" concurrently", relation.name);
        }
        let index = self.build_index(&relation, request)?;
        if name.inh {
            return self.index_partitions(index);
        }
        self.invalidate_partitioned_index(index)
    }

    /// ON ONLY: partitions must have their own.
    pub fn invalidate_partitioned_index(&self, index: Oid) -> Result<()> {
        let relation = self.relation(index)?;
        let Some(info) = &relation.index else { return Ok(()) };
        if self.relation(info.table)?.is_partitioned() && self.catalog().has_children(info.table) {
            let info = Arc::new(IndexInfo { valid: false, ..(**info).clone() });
            self.put_relation(Relation { index: Some(info), ..(*relation).clone() });
        }
        Ok(())
    }

    fn check_access_method(&self, name: &str) -> Result<()> {
        match name {
            "" | "btree" => Ok(()),
            // A hash index supports only equality; a tree supports that too, in the same time.
            "hash" => Ok(()),
            "gin" | "gist" | "brin" | "spgist" => Err(DbError::unsupported(format!("access method \"{name}\""))),
            other => bail!(UNDEFINED_OBJECT, "access method \"{other}\" does not exist"),
        }
    }

    fn key_requests(&self, relation: &Relation, s: &IndexStmt, depends_on: &mut Vec<ObjectAddress>) -> Result<Vec<KeyRequest>> {
        let is_hash = s.access_method == "hash";
        if is_hash {
            check_hash_index(s)?;
        }
        let mut keys = Vec::new();
        for element in &s.index_params {
            if let N::IndexElem(element) = inner(element)? {
                let key = self.key_request(relation, element, AccessMethod::BTREE, depends_on)?;
                if is_hash {
                    self.check_hash_key(relation, &key, element)?;
                }
                keys.push(key);
            }
        }
        Ok(keys)
    }

    /// Refuses keys that a hash index cannot have, though the tree that implements it could.
    fn check_hash_key(&self, relation: &Relation, key: &KeyRequest, element: &IndexElem) -> Result<()> {
        let ty = match &key.expression {
            Some((_, ty, _)) => *ty,
            None => relation.columns[key.column as usize - 1].ty,
        };
        if key.opclass.is_none() && self.catalog().default_operator_class(classes::HASH, ty).is_none() {
            return Err(self.no_default_class(ty, "hash"));
        }
        if element.ordering() != SortByDir::SortbyDefault {
            bail!(FEATURE_NOT_SUPPORTED, "access method \"hash\" does not support ASC/DESC options");
        }
        if element.nulls_ordering() != SortByNulls::SortbyNullsDefault {
            bail!(FEATURE_NOT_SUPPORTED, "access method \"hash\" does not support NULLS FIRST/LAST options");
        }
        Ok(())
    }

    pub(super) fn no_default_class(&self, ty: Oid, method: &str) -> DbError {
        let name = self.catalog().type_name(ty, self.path);
        err!(UNDEFINED_OBJECT, "data type {name} has no default operator class for access method \"{method}\"")
            .hint("You must specify an operator class for the index or define a default operator class for the data type.")
    }

    pub(super) fn key_request(
        &self,
        relation: &Relation,
        element: &IndexElem,
        method: AccessMethod,
        depends_on: &mut Vec<ObjectAddress>,
    ) -> Result<KeyRequest> {
        let mut key = KeyRequest::column(0);
        match element.expr.as_deref() {
            None => {
                key.column = self
                    .column_numbers(relation, &[&element.name], false)
                    .map_err(|e| DbError::new(e.sqlstate(), format!("column \"{}\" does not exist", element.name)))?[0]
            }
            Some(node) => {
                let stored = self.stored_expression(node, relation, Use::IndexExpression, None)?;
                depends_on.extend(column_addresses(relation, &stored.columns));
                depends_on.extend(stored.depends_on);
                key.name = melba_analyze::suggested_name(node);
                match stored.column_only {
                    // (a) is the column itself.
                    Some(column) => key.column = column,
                    None => key.expression = Some((stored.text, stored.ty, stored.collation)),
                }
            }
        }
        if !element.collation.is_empty() {
            let ty = match &key.expression {
                Some((_, ty, _)) => *ty,
                None => relation.columns[key.column as usize - 1].ty,
            };
            key.collation = Some(self.collation(&strings(&element.collation), ty, -1)?);
        }
        if !element.opclass.is_empty() {
            key.opclass = Some(self.operator_class(&strings(&element.opclass), method)?);
        }
        key.descending = element.ordering() == SortByDir::SortbyDesc;
        key.nulls_first = match element.nulls_ordering() {
            SortByNulls::SortbyNullsFirst => true,
            SortByNulls::SortbyNullsLast => false,
            _ => key.descending,
        };
        Ok(key)
    }

    fn operator_class(&self, names: &[&str], method: AccessMethod) -> Result<Oid> {
        let (_, name) = qualified(names)?;
        let catalog = self.catalog();
        let found = catalog.operator_class(method.oid, name).map(|c| c.oid);
        let method = method.name;
        found.ok_or_else(|| err!(UNDEFINED_OBJECT, "operator class \"{name}\" does not exist for access method \"{method}\""))
    }

    /// The predicate of a partial index as the catalog keeps it.
    pub(super) fn index_predicate(
        &self,
        node: &Node,
        relation: &Relation,
        depends_on: &mut Vec<ObjectAddress>,
    ) -> Result<Arc<str>> {
        let stored = self.stored_expression(node, relation, Use::IndexPredicate, None)?;
        depends_on.extend(column_addresses(relation, &stored.columns));
        depends_on.extend(stored.depends_on);
        Ok(stored.text)
    }

    pub(super) fn index_name(&self, relation: &Relation, keys: &[KeyRequest], include: &[i16], label: &str) -> String {
        let names: Vec<String> = index_column_names(relation, keys, include);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        unused_relation_name(&self.catalog(), relation.namespace, &relation.name, Some(&column_part(&names)), label)
    }

    /// Creates the index and fills it from the table's rows. Returns its OID.
    pub fn build_index(&self, relation: &Relation, request: IndexRequest) -> Result<Oid> {
        let table_tree = match relation.storage {
            Storage::Tree(tree) => Some(tree),
            _ if relation.is_partitioned() => None,
            _ => return Err(DbError::internal("index on a relation without storage")),
        };
        self.check_partitioned_key(relation, &request)?;
        if request.keys.len() + request.include.len() > KEYS_MAX {
            bail!(TOO_MANY_COLUMNS, "cannot use more than {KEYS_MAX} columns in an index");
        }
        if self.catalog().relation_by_name(relation.namespace, &request.name).is_some() {
            bail!(DUPLICATE_TABLE, "relation \"{}\" already exists", request.name);
        }
        let names = index_column_names(relation, &request.keys, &request.include);
        let mut columns = Vec::new();
        let mut keys = Vec::new();
        for (key, name) in request.keys.iter().zip(&names) {
            let key = self.resolve_key(relation, key, request.method)?;
            columns.push(self.new_column(name, key.ty, -1)?);
            keys.push(key);
        }
        for (number, name) in request.include.iter().zip(names.iter().skip(keys.len())) {
            columns.push(self.new_column(name, relation.columns[*number as usize - 1].ty, -1)?);
        }
        if request.primary {
            for key in &keys {
                self.check_no_nulls(relation.oid, key.column as usize - 1)?;
            }
        }
        let info = IndexInfo {
            table: relation.oid,
            keys,
            include: request.include,
            unique: request.unique,
            primary: request.primary,
            nulls_not_distinct: request.nulls_not_distinct,
            valid: true,
            clustered: false,
            replica_identity: false,
            predicate: request.predicate,
            constraint: request.constraint,
            deferrable: request.deferrable,
        };
        let (kind, storage) = match table_tree {
            Some(tree) => {
                let tree = self.tx.engine.create_index_tree(tree, engine_persistence(relation.persistence))?;
                (RelationKind::Index, Storage::Tree(tree))
            }
            None => (RelationKind::PartitionedIndex, Storage::None),
        };
        let index = Relation {
            storage,
            index: Some(Arc::new(info)),
            owner: relation.owner,
            access_method: request.method.oid,
            options: request.options,
            depends_on: request.depends_on,
            ..self.bare_relation(relation.namespace, &request.name, kind, relation.persistence, columns)
        };
        let oid = index.oid;
        self.put_relation(index);
        if table_tree.is_some() {
            self.fill_index(oid)?;
        }
        Ok(oid)
    }

    pub(super) fn resolve_key(&self, relation: &Relation, key: &KeyRequest, method: AccessMethod) -> Result<IndexKey> {
        let catalog = self.catalog();
        let (ty, collation) = match &key.expression {
            Some((_, ty, collation)) => (*ty, *collation),
            None => {
                let column = &relation.columns[key.column as usize - 1];
                if column.generated == b'v' {
                    bail!(FEATURE_NOT_SUPPORTED, "indexes on virtual generated columns are not supported");
                }
                (column.ty, column.collation)
            }
        };
        let opclass = match key.opclass {
            Some(opclass) => opclass,
            None => {
                let class = catalog.default_operator_class(method.oid, ty).map(|c| c.oid);
                class.ok_or_else(|| self.no_default_class(ty, method.name))?
            }
        };
        Ok(IndexKey {
            column: key.column,
            expression: key.expression.as_ref().map(|e| e.0.clone()),
            ty,
            collation: key.collation.unwrap_or(collation),
            natural_collation: collation,
            opclass,
            descending: key.descending,
            nulls_first: key.nulls_first,
        })
    }

    /// Removes an index from its table and drops its storage.
    pub fn drop_index_storage(&self, oid: Oid) -> Result<()> {
        // It may have been dropped with its table already.
        let Some(index) = self.catalog().relation(oid).cloned() else { return Ok(()) };
        if let Storage::Tree(tree) = index.storage {
            self.tx.engine.drop_tree(tree)?;
        }
        self.tx.remove(ObjectAddress { class: classes::PG_CLASS, object: oid, sub: 0 });
        Ok(())
    }
}

/// Columns that an expression or predicate reads: the index is dropped with them.
fn column_addresses(relation: &Relation, columns: &[i16]) -> impl Iterator<Item = ObjectAddress> {
    columns.iter().map(|number| ObjectAddress { class: classes::PG_CLASS, object: relation.oid, sub: i32::from(*number) })
}

/// Names of an index's columns: the column's, one derived from the expression, or `expr`, numbered when repeated.
fn index_column_names(relation: &Relation, keys: &[KeyRequest], include: &[i16]) -> Vec<String> {
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

/// The plural of a kind of relation in messages.
pub fn plural(kind: RelationKind) -> &'static str {
    match kind {
        RelationKind::Table => "tables",
        RelationKind::Index => "indexes",
        RelationKind::Sequence => "sequences",
        RelationKind::View => "views",
        RelationKind::MaterializedView => "materialized views",
        RelationKind::Composite => "composite types",
        RelationKind::PartitionedTable => "partitioned tables",
        RelationKind::PartitionedIndex => "partitioned indexes",
        RelationKind::Toast => "TOAST tables",
    }
}

/// Refuses features that PostgreSQL's hash indexes lack.
fn check_hash_index(s: &IndexStmt) -> Result<()> {
    let lacks = [
        (s.unique, "unique indexes"),
        (!s.index_including_params.is_empty(), "included columns"),
        (s.index_params.len() > 1, "multicolumn indexes"),
    ];
    match lacks.into_iter().find(|(wanted, _)| *wanted) {
        Some((_, what)) => bail!(FEATURE_NOT_SUPPORTED, "access method \"hash\" does not support {what}"),
        None => Ok(()),
    }
}
