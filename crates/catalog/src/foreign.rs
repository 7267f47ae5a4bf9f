//! Foreign data: wrappers, servers, user mappings, and what a foreign table says of its rows.

use std::sync::Arc;

use melba_types::{DbError, Oid, Result, bail};

use crate::classes;
use crate::objects::*;
use crate::snapshot::Catalog;

/// A row of pg_foreign_data_wrapper.
#[derive(Clone, Debug)]
pub struct ForeignDataWrapper {
    pub oid: Oid,
    pub name: Arc<str>,
    pub owner: Oid,
    pub handler: Oid,
    pub validator: Oid,
    pub acl: Acl,
    /// `name=value`, in the order in which they were given; of the other objects, too.
    pub options: Vec<Arc<str>>,
}

/// A row of pg_foreign_server.
#[derive(Clone, Debug)]
pub struct ForeignServer {
    pub oid: Oid,
    pub name: Arc<str>,
    pub owner: Oid,
    pub wrapper: Oid,
    pub ty: Option<Arc<str>>,
    pub version: Option<Arc<str>>,
    pub acl: Acl,
    pub options: Vec<Arc<str>>,
}

/// A row of pg_user_mapping.
#[derive(Clone, Debug)]
pub struct UserMapping {
    pub oid: Oid,
    /// 0: everybody without a mapping of their own.
    pub user: Oid,
    pub server: Oid,
    pub options: Vec<Arc<str>>,
}

/// A row of pg_foreign_table, beside that of pg_class.
#[derive(Clone, Debug)]
pub struct ForeignTable {
    pub server: Oid,
    pub options: Vec<Arc<str>>,
    /// Of columns that have some.
    pub columns: Vec<ColumnOptions>,
}

/// pg_attribute.attfdwoptions of a foreign table's column.
#[derive(Clone, Debug)]
pub struct ColumnOptions {
    /// pg_attribute.attnum.
    pub column: i16,
    pub options: Vec<Arc<str>>,
}

impl ForeignTable {
    /// The options of a column, by its number.
    pub fn column_options(&self, column: i16) -> &[Arc<str>] {
        self.columns.iter().find(|c| c.column == column).map_or(&[], |c| &c.options)
    }
}

/// The value of an option.
pub fn option<'a>(options: &'a [Arc<str>], name: &str) -> Option<&'a str> {
    options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
}

/// pg_proc.prosrc of the handler whose wrapper reads files of the server: that of the extension file_fdw.
const FILE_HANDLER: &str = "file_fdw_handler";

/// Whether the tables of a wrapper are files of the server.
pub fn reads_files(catalog: &Catalog, wrapper: &ForeignDataWrapper) -> bool {
    let handler = catalog.function(wrapper.handler);
    handler.is_some_and(|f| f.oid.0 >= classes::FIRST_EXTENSION_OID && *f.source == *FILE_HANDLER)
}

/// # Errors
/// 55000 when nothing reads or writes the rows of the server's tables.
pub fn require_handler(catalog: &Catalog, of: Oid) -> Result<()> {
    let wrapper = server(catalog, of).and_then(|server| wrapper(catalog, server.wrapper));
    let Some(wrapper) = wrapper else { return Err(DbError::internal("a server without its foreign-data wrapper")) };
    if !reads_files(catalog, wrapper) {
        bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "foreign-data wrapper \"{}\" has no handler", wrapper.name);
    }
    Ok(())
}

pub fn wrapper(catalog: &Catalog, oid: Oid) -> Option<&Arc<ForeignDataWrapper>> {
    catalog.foreign_data_wrappers.get(oid)
}

pub fn wrapper_by_name<'a>(catalog: &'a Catalog, name: &str) -> Option<&'a Arc<ForeignDataWrapper>> {
    let oid = catalog.foreign_data_wrappers.named(Oid::INVALID, name).next()?.oid;
    catalog.foreign_data_wrappers.get(oid)
}

/// In OID order, as the lists below.
pub fn wrappers(catalog: &Catalog) -> impl Iterator<Item = &Arc<ForeignDataWrapper>> {
    catalog.foreign_data_wrappers.iter()
}

pub fn server(catalog: &Catalog, oid: Oid) -> Option<&Arc<ForeignServer>> {
    catalog.foreign_servers.get(oid)
}

pub fn server_by_name<'a>(catalog: &'a Catalog, name: &str) -> Option<&'a Arc<ForeignServer>> {
    let oid = catalog.foreign_servers.named(Oid::INVALID, name).next()?.oid;
    catalog.foreign_servers.get(oid)
}

pub fn servers(catalog: &Catalog) -> impl Iterator<Item = &Arc<ForeignServer>> {
    catalog.foreign_servers.iter()
}

pub fn user_mapping(catalog: &Catalog, oid: Oid) -> Option<&Arc<UserMapping>> {
    catalog.user_mappings.get(oid)
}

pub fn user_mapping_of(catalog: &Catalog, user: Oid, server: Oid) -> Option<&Arc<UserMapping>> {
    user_mappings(catalog).find(|mapping| (mapping.user, mapping.server) == (user, server))
}

pub fn user_mappings(catalog: &Catalog) -> impl Iterator<Item = &Arc<UserMapping>> {
    catalog.user_mappings.iter()
}

/// The name of a mapping's user as messages and views show it.
pub fn mapped_user(catalog: &Catalog, mapping: &UserMapping) -> String {
    if !mapping.user.is_valid() {
        return "public".to_owned();
    }
    catalog.role(mapping.user).map_or_else(|| mapping.user.to_string(), |role| role.name.to_string())
}
