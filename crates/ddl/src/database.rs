//! CREATE, DROP and ALTER DATABASE.

use std::sync::Arc;

use melba_catalog::{Database, Object, ObjectAddress, classes};
use melba_largeobject::Trees;
use melba_parse::nodes::{option_bool, option_int, option_text, options};
use melba_types::{DbError, Oid, Result, TreeId, bail, err};
use pg_query::protobuf::{
    AlterDatabaseRefreshCollStmt, AlterDatabaseSetStmt, AlterDatabaseStmt, CreatedbStmt, DefElem, DropdbStmt, VariableSetKind,
    VariableSetStmt,
};

use melba_definition::context::Ddl;
use melba_definition::kept_setting::{kept_setting, may_reset};

pub fn database_by_name(ddl: &Ddl<'_>, name: &str) -> Result<Arc<Database>> {
    let catalog = ddl.catalog();
    catalog.database_by_name(name).cloned().ok_or_else(|| err!(UNDEFINED_DATABASE, "database \"{name}\" does not exist"))
}

pub fn may_create_databases(ddl: &Ddl<'_>) -> bool {
    ddl.catalog().role(ddl.user()).is_some_and(|r| r.superuser || r.create_db)
}

pub fn create_database(ddl: &Ddl<'_>, s: &CreatedbStmt) -> Result<()> {
    let catalog = ddl.catalog();
    if !may_create_databases(ddl) {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied to create database");
    }
    if catalog.database_by_name(&s.dbname).is_some() {
        bail!(DUPLICATE_DATABASE, "database \"{}\" already exists", s.dbname);
    }
    let mut database = Database {
        oid: ddl.tx().new_oid(),
        name: s.dbname.as_str().into(),
        owner: ddl.user(),
        is_template: false,
        allow_connections: true,
        connection_limit: -1,
        acl: None,
        settings: vec![],
        large_object_metadata: TreeId(0),
        large_object_data: TreeId(0),
    };
    let mut template = "template1".to_owned();
    for def in options(&s.options) {
        let text = option_text(def).unwrap_or_default();
        match def.defname.as_str() {
            "owner" => database.owner = new_database_owner(ddl, &text)?,
            "template" => template = text,
            "encoding" if matches!(text.to_ascii_uppercase().as_str(), "UTF8" | "UTF-8" | "6") => {}
            "encoding" => return Err(DbError::unsupported(format!("encoding \"{text}\""))),
            "is_template" => database.is_template = option_bool(def)?,
            "allow_connections" => database.allow_connections = option_bool(def)?,
            "connection_limit" => database.connection_limit = connection_limit(def)?,
            // One collation for all databases: byte order.
            "locale" | "lc_collate" | "lc_ctype" | "builtin_locale"
                if matches!(text.as_str(), "C" | "POSIX" | "C.UTF-8" | "C.UTF8") => {}
            "locale_provider" if matches!(text.as_str(), "libc" | "builtin") => {}
            "strategy" | "tablespace" if matches!(text.as_str(), "wal_log" | "file_copy" | "pg_default") => {}
            other => return Err(DbError::unsupported(format!("database option {other} = {text}"))),
        }
    }
    let source = database_by_name(ddl, &template)
        .map_err(|_| err!(UNDEFINED_DATABASE, "template database \"{template}\" does not exist"))?;
    if !source.is_template && !ddl.is_owner(source.owner) {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied to copy database \"{template}\"");
    }
    let copied = ddl.tx().cluster().catalog(source.oid);
    // The separate objects of another database: changed ones of the initial objects (grants on schema public) count, too.
    let shared = |o: &Object| match o {
        Object::Role(_) | Object::Database(_) | Object::Granted(_) => true,
        Object::Plain(o) => [classes::PG_TABLESPACE, classes::PG_DB_ROLE_SETTING].contains(&o.class),
        Object::Description(d) => [classes::PG_AUTHID, classes::PG_DATABASE, classes::PG_TABLESPACE].contains(&d.address.class),
        // Of sessions, which do not outlive the server.
        Object::Namespace(n) => n.name.starts_with("pg_temp_"),
        _ => false,
    };
    if !copied.user_objects().iter().all(shared) {
        return Err(DbError::unsupported(format!("copying database \"{template}\", which is not empty,")));
    }
    let objects =
        ddl.tx().engine.scan(ddl.tx().engine.latest_view().0, source.large_object_metadata, &[], &[], &[], None)?.next()?;
    if objects.is_some() {
        return Err(DbError::unsupported(format!("copying the large objects of database \"{template}\"")));
    }
    let trees = Trees::create(&ddl.tx().engine, database.oid)?;
    (database.large_object_metadata, database.large_object_data) = (trees.metadata, trees.data);
    ddl.tx().put(Object::Database(Arc::new(database)));
    Ok(())
}

pub fn drop_database(ddl: &Ddl<'_>, s: &DropdbStmt) -> Result<()> {
    let catalog = ddl.catalog();
    let Some(database) = catalog.database_by_name(&s.dbname) else {
        if s.missing_ok {
            ddl.notice(format!("database \"{}\" does not exist, skipping", s.dbname));
            return Ok(());
        }
        bail!(UNDEFINED_DATABASE, "database \"{}\" does not exist", s.dbname);
    };
    ddl.require_owner(database.owner, "database", &s.dbname)?;
    if database.oid == ddl.tx().database {
        bail!(OBJECT_IN_USE, "cannot drop the currently open database");
    }
    if database.is_template {
        bail!(WRONG_OBJECT_TYPE, "cannot drop a template database");
    }
    match ddl.tx().cluster().prepared.count_in(database.oid) {
        0 => {}
        count => {
            let (are, transactions) = if count == 1 { ("is", "transaction") } else { ("are", "transactions") };
            return Err(err!(OBJECT_IN_USE, "database \"{}\" is being accessed by other users", s.dbname)
                .detail(format!("There {are} {count} prepared {transactions} using the database.")));
        }
    }
    for object in ddl.tx().cluster().catalog(database.oid).user_objects() {
        let Object::Relation(relation) = object else { continue };
        match relation.storage {
            melba_catalog::Storage::Tree(tree) => ddl.tx().engine.drop_tree(tree)?,
            melba_catalog::Storage::Sequence(tree) => ddl.tx().engine.drop_sequence(melba_engine::SequenceId(tree.0))?,
            _ => {}
        }
    }
    ddl.tx().engine.drop_tree(database.large_object_metadata)?;
    ddl.tx().engine.drop_tree(database.large_object_data)?;
    ddl.tx().drop_database(database.oid);
    ddl.tx().remove(ObjectAddress { class: classes::PG_DATABASE, object: database.oid, sub: 0 });
    Ok(())
}

fn new_database_owner(ddl: &Ddl<'_>, name: &str) -> Result<Oid> {
    let owner = ddl.catalog().role_by_name(name).map(|r| r.oid);
    let owner = owner.ok_or_else(|| err!(UNDEFINED_OBJECT, "role \"{name}\" does not exist"))?;
    ddl.require_set_role(owner)?;
    Ok(owner)
}

pub fn alter_database(ddl: &Ddl<'_>, s: &AlterDatabaseStmt) -> Result<()> {
    let database = database_by_name(ddl, &s.dbname)?;
    let mut changed = (*database).clone();
    for def in options(&s.options) {
        match def.defname.as_str() {
            "is_template" => changed.is_template = option_bool(def)?,
            "allow_connections" => changed.allow_connections = option_bool(def)?,
            "connection_limit" => changed.connection_limit = connection_limit(def)?,
            "tablespace" => match option_text(def).unwrap_or_default().as_str() {
                "pg_default" => {}
                name => bail!(UNDEFINED_OBJECT, "tablespace \"{name}\" does not exist"),
            },
            other => return Err(DbError::unsupported(format!("ALTER DATABASE ... {other}"))),
        }
    }
    ddl.require_owner(database.owner, "database", &s.dbname)?;
    if !changed.allow_connections && database.oid == ddl.tx().database {
        bail!(INVALID_PARAMETER_VALUE, "cannot disallow connections for current database");
    }
    ddl.tx().put(Object::Database(Arc::new(changed)));
    Ok(())
}

/// ALTER DATABASE ... REFRESH COLLATION VERSION: the order of the default collation has no version.
pub fn refresh_database_collation(ddl: &Ddl<'_>, s: &AlterDatabaseRefreshCollStmt) -> Result<()> {
    let database = database_by_name(ddl, &s.dbname)?;
    ddl.require_owner(database.owner, "database", &s.dbname)?;
    ddl.notice("version has not changed".to_owned());
    Ok(())
}

pub fn alter_database_set(ddl: &Ddl<'_>, s: &AlterDatabaseSetStmt) -> Result<()> {
    let database = database_by_name(ddl, &s.dbname)?;
    ddl.require_owner(database.owner, "database", &s.dbname)?;
    let set = s.setstmt.as_ref().ok_or_else(|| DbError::internal("ALTER DATABASE SET without a setting"))?;
    set_in_database(ddl, &database, set)
}

/// A setting of all roles in a database: ALTER DATABASE ... SET, ALTER ROLE ALL IN DATABASE ... SET.
pub fn set_in_database(ddl: &Ddl<'_>, database: &Database, set: &VariableSetStmt) -> Result<()> {
    let mut changed = database.clone();
    change_settings(ddl, &mut changed.settings, set)?;
    ddl.tx().put(Object::Database(Arc::new(changed)));
    Ok(())
}

/// SET or RESET of a list of settings, as `name=value`.
pub fn change_settings(ddl: &Ddl<'_>, settings: &mut Vec<Arc<str>>, set: &VariableSetStmt) -> Result<()> {
    if set.kind() == VariableSetKind::VarResetAll {
        settings.retain(|text| !may_reset(ddl, text));
    } else {
        let text = kept_setting(ddl, set)?;
        settings.retain(|text| !text.starts_with(&format!("{}=", set.name)));
        settings.extend(text.map(Into::into));
    }
    Ok(())
}

/// CONNECTION LIMIT of a role or a database; -1: none.
pub fn connection_limit(def: &DefElem) -> Result<i32> {
    let limit = option_int(def)?;
    match i32::try_from(limit) {
        Ok(limit) if limit >= -1 => Ok(limit),
        _ => Err(err!(INVALID_PARAMETER_VALUE, "invalid connection limit: {limit}")),
    }
}
