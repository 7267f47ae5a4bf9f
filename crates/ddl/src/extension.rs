//! CREATE, ALTER and DROP EXTENSION: the available extensions are data (`melba_catalog::available_extensions`).

use std::sync::Arc;

use melba_catalog::foreign::wrapper_by_name;
use melba_catalog::{
    Cast, Description, Extension, ExtensionDefinition, ForeignDataWrapper, Function, Object, ObjectAddress, Operator,
    OperatorClass, Relation, Type, acl, available_extensions, classes,
};
use melba_definition::context::Ddl;
use melba_definition::special_schema::refuse_special_schema;
use melba_parse::nodes::{option_text, options};
use melba_relation::stored_text::rewriting_users_of;
use melba_relation::view::create_view;
use melba_types::{DbError, Oid, Result, SqlState, bail, err};
use pg_query::NodeEnum;
use pg_query::protobuf::{AlterExtensionStmt, CreateExtensionStmt};

use crate::privileges::grant::grant;

/// An object in another schema and with another owner.
fn placed(object: &Object, namespace: Oid, owner: Oid) -> Object {
    match object {
        Object::Type(o) => Object::Type(Arc::new(Type { namespace, owner, ..(**o).clone() })),
        Object::Function(o) => Object::Function(Arc::new(Function { namespace, owner, ..(**o).clone() })),
        Object::Operator(o) => Object::Operator(Arc::new(Operator { namespace, owner, ..(**o).clone() })),
        Object::Cast(o) => Object::Cast(Arc::new(Cast::clone(o))),
        Object::ForeignDataWrapper(o) => Object::ForeignDataWrapper(Arc::new(ForeignDataWrapper { owner, ..(**o).clone() })),
        other => other.clone(),
    }
}

/// An array type is a part of its element's.
fn is_array_type(definition: &ExtensionDefinition, address: ObjectAddress) -> bool {
    definition.objects.iter().any(|o| matches!(o, Object::Type(t) if t.array == address.object))
}

fn address_of(extension: Oid) -> ObjectAddress {
    ObjectAddress { class: classes::PG_EXTENSION, object: extension, sub: 0 }
}

pub fn create_extension(ddl: &Ddl<'_>, s: &CreateExtensionStmt) -> Result<()> {
    let name = &s.extname;
    if ddl.catalog().extension_by_name(name).is_some() {
        let error = err!(DUPLICATE_OBJECT, "extension \"{name}\" already exists");
        if !s.if_not_exists {
            return Err(error);
        }
        let message = format!("{}, skipping", error.message());
        let notice = DbError::new(SqlState::DUPLICATE_OBJECT, message).severity(melba_types::Severity::Notice);
        ddl.session().notice(notice);
        return Ok(());
    }
    let (mut schema, mut version) = (None, None);
    for option in options(&s.options) {
        match option.defname.as_str() {
            "schema" => schema = option_text(option),
            "new_version" => version = option_text(option),
            // None of ours requires another one.
            _ => {}
        }
    }
    let Some(definition) = available_extensions().iter().find(|d| d.name == name) else {
        return Err(err!(FEATURE_NOT_SUPPORTED, "extension \"{name}\" is not available")
            .hint("The extension must first be installed on the system where PostgreSQL is running."));
    };
    if let Some(version) = version.filter(|v| v != definition.version) {
        bail!(
            INVALID_PARAMETER_VALUE,
            "extension \"{name}\" has no installation script nor update path for version \"{version}\""
        );
    }
    let namespace = match &schema {
        Some(schema) => ddl.namespace(schema)?.oid,
        None => ddl.creation_namespace().ok_or_else(|| err!(UNDEFINED_OBJECT, "no schema has been selected to create in"))?,
    };
    require_extension_privilege(ddl, definition)?;
    make_extension(ddl, definition, namespace)
}

fn require_extension_privilege(ddl: &Ddl<'_>, definition: &ExtensionDefinition) -> Result<()> {
    if ddl.is_superuser() || definition.trusted && ddl.require_database(acl::CREATE).is_ok() {
        return Ok(());
    }
    let hint = match definition.trusted {
        true => "Must have CREATE privilege on current database to create this extension.",
        false => "Must be superuser to create this extension.",
    };
    Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to create extension \"{}\"", definition.name).hint(hint))
}

fn make_extension(ddl: &Ddl<'_>, definition: &ExtensionDefinition, namespace: Oid) -> Result<()> {
    refuse_taken_names(ddl, &definition.objects, namespace)?;
    refuse_other_defaults(ddl, definition)?;
    // The objects of a trusted extension are the first superuser's.
    let owner = if ddl.is_superuser() { ddl.user() } else { classes::POSTGRES_ROLE };
    for object in &definition.objects {
        ddl.tx().put(placed(object, namespace, owner));
    }
    let views = definition.views.iter().map(|(name, query)| make_extension_view(ddl, namespace, name, query));
    let views = views.collect::<Result<Vec<_>>>()?;
    let extension = Extension {
        oid: ddl.catalog().allocate_oid(),
        name: definition.name.into(),
        owner: ddl.user(),
        namespace,
        version: definition.version.into(),
        members: (definition.objects.iter().map(Object::address))
            .filter(|a| !is_array_type(definition, *a))
            .chain(definition.access.iter().copied())
            .chain(views)
            .collect(),
    };
    let comment = Description { address: address_of(extension.oid), text: definition.comment.into() };
    ddl.tx().put(Object::Extension(Arc::new(extension)));
    ddl.tx().put(Object::Description(Arc::new(comment)));
    Ok(())
}

/// A view over the extension's functions, which everybody may read.
fn make_extension_view(ddl: &Ddl<'_>, namespace: Oid, name: &str, query: &str) -> Result<ObjectAddress> {
    let schema = ddl.catalog().namespace(namespace).map(|n| n.name.clone()).unwrap_or_default();
    let schema = melba_catalog::quote_ident(&schema);
    let query = query.replace("FROM ", &format!("FROM {schema}."));
    let text = format!("CREATE VIEW {schema}.{name} AS {query}; GRANT SELECT ON {schema}.{name} TO PUBLIC");
    for statement in melba_parse::parse(&text)?.statements {
        match &statement.node {
            NodeEnum::ViewStmt(view) => create_view(ddl, view)?,
            NodeEnum::GrantStmt(s) => grant(ddl, s)?,
            _ => {}
        }
    }
    let view = ddl.catalog().relation_by_name(namespace, name).map(|view| view.oid);
    let object = view.ok_or_else(|| DbError::internal("an extension without its view"))?;
    Ok(ObjectAddress { class: classes::PG_CLASS, object, sub: 0 })
}

fn refuse_taken_names(ddl: &Ddl<'_>, objects: &[Object], namespace: Oid) -> Result<()> {
    let catalog = ddl.catalog();
    for object in objects {
        match object {
            Object::Type(t) if catalog.type_by_name(namespace, &t.name).is_some() => {
                bail!(DUPLICATE_OBJECT, "type \"{}\" already exists", t.name);
            }
            Object::Function(f) if catalog.functions_by_name(namespace, &f.name).any(|o| o.arg_types == f.arg_types) => {
                bail!(DUPLICATE_FUNCTION, "function \"{}\" already exists with same argument types", f.name);
            }
            Object::Operator(o) => {
                let same = |other: &Arc<Operator>| (other.left, other.right) == (o.left, o.right);
                if catalog.operators_by_name(namespace, &o.name).any(same) {
                    bail!(DUPLICATE_FUNCTION, "operator {} already exists", o.name);
                }
            }
            Object::ForeignDataWrapper(w) if wrapper_by_name(&catalog, &w.name).is_some() => {
                bail!(DUPLICATE_OBJECT, "foreign-data wrapper \"{}\" already exists", w.name);
            }
            _ => {}
        }
    }
    Ok(())
}

/// # Errors
/// 42710 when users have made other operator classes the default for types of the extension's.
fn refuse_other_defaults(ddl: &Ddl<'_>, definition: &ExtensionDefinition) -> Result<()> {
    let catalog = ddl.catalog();
    let access = catalog.access_methods();
    let classes = definition.access.iter().filter(|a| a.class == classes::PG_OPCLASS).filter_map(|a| access.class(a.object));
    for class in classes.filter(|class| class.is_default) {
        let same = |other: &&Arc<OperatorClass>| {
            other.is_default && (other.method, other.input_type) == (class.method, class.input_type)
        };
        if let Some(other) = catalog.user_operator_classes().find(same) {
            let shown = catalog.type_name(class.input_type, ddl.path());
            return Err(err!(DUPLICATE_OBJECT, "could not make operator class \"{}\" be default for type {shown}", class.name)
                .detail(format!("Operator class \"{}\" already is the default.", other.name)));
        }
    }
    Ok(())
}

pub fn find_extension(ddl: &Ddl<'_>, name: &str) -> Result<Arc<Extension>> {
    let found = ddl.catalog().extension_by_name(name).cloned();
    found.ok_or_else(|| err!(UNDEFINED_OBJECT, "extension \"{name}\" does not exist"))
}

/// An extension that the statement names and the user owns.
pub fn owned_extension(ddl: &Ddl<'_>, name: &str) -> Result<ObjectAddress> {
    let extension = find_extension(ddl, name)?;
    ddl.require_owner(extension.owner, "extension", name)?;
    Ok(address_of(extension.oid))
}

pub fn dropped_extension(ddl: &Ddl<'_>, name: &str, missing_ok: bool) -> Result<Option<ObjectAddress>> {
    if missing_ok && ddl.catalog().extension_by_name(name).is_none() {
        ddl.notice(format!("extension \"{name}\" does not exist, skipping"));
        return Ok(None);
    }
    owned_extension(ddl, name).map(Some)
}

/// ALTER EXTENSION UPDATE: there is one version of each.
pub fn update_extension(ddl: &Ddl<'_>, s: &AlterExtensionStmt) -> Result<()> {
    let extension = find_extension(ddl, &s.extname)?;
    ddl.require_owner(extension.owner, "extension", &s.extname)?;
    let wanted = options(&s.options).find(|o| o.defname == "new_version").and_then(option_text);
    match wanted {
        Some(version) if *version != *extension.version => Err(err!(
            INVALID_PARAMETER_VALUE,
            "extension \"{}\" has no update path from version \"{}\" to version \"{version}\"",
            s.extname,
            extension.version
        )),
        _ => {
            ddl.notice(format!("version \"{}\" of extension \"{}\" is already installed", extension.version, s.extname));
            Ok(())
        }
    }
}

/// ALTER EXTENSION SET SCHEMA.
pub fn move_extension(ddl: &Ddl<'_>, name: &str, schema: &str) -> Result<()> {
    let extension = find_extension(ddl, name)?;
    ddl.require_owner(extension.owner, "extension", name)?;
    let target = ddl.namespace_for_creation(Some(schema))?;
    refuse_special_schema(ddl, extension.namespace, target)?;
    let definition = available_extensions().iter().find(|d| *d.name == *extension.name && d.relocatable);
    let Some(definition) = definition else {
        bail!(FEATURE_NOT_SUPPORTED, "extension \"{name}\" does not support SET SCHEMA");
    };
    if target == extension.namespace {
        return Ok(());
    }
    let catalog = ddl.catalog();
    let is_view = |member: &ObjectAddress| {
        let view = catalog.relation(member.object).filter(|_| member.class == classes::PG_CLASS);
        view.is_some_and(|view| definition.views.iter().any(|(name, _)| **name == *view.name))
    };
    let is_added = |member: &ObjectAddress| member.object.0 < classes::FIRST_EXTENSION_OID && !is_view(member);
    if extension.members.iter().any(is_added) {
        return Err(DbError::unsupported("moving an extension to which members were added"));
    }
    let placed: Vec<Object> =
        definition.objects.iter().filter(|o| !matches!(o, Object::ForeignDataWrapper(_))).cloned().collect();
    refuse_taken_names(ddl, &placed, target)?;
    move_members(ddl, &extension, &extension.members, target)
}

/// Moves the members, and prints again the expressions of other objects that use them: `users` lists those left to check.
fn move_members(ddl: &Ddl<'_>, extension: &Extension, users: &[ObjectAddress], target: Oid) -> Result<()> {
    let catalog = ddl.catalog();
    let is_other = |d: &melba_catalog::Dependency| {
        // Its views name its functions by their schema.
        let is_view = d.dependent.class == classes::PG_CLASS;
        d.dependent.object != extension.oid && (is_view || !extension.members.contains(&d.dependent))
    };
    let used = users.iter().position(|member| catalog.dependents(*member).any(is_other));
    if let Some(at) = used {
        return rewriting_users_of(ddl, users[at], || move_members(ddl, extension, &users[at + 1..], target));
    }
    let with_arrays = extension.members.iter().flat_map(|member| {
        let array = catalog.type_(member.object).map(|t| t.array).filter(|a| member.class == classes::PG_TYPE && a.is_valid());
        [Some(*member), array.map(|object| ObjectAddress { object, ..*member })].into_iter().flatten()
    });
    for member in with_arrays {
        let object = match member.class {
            classes::PG_TYPE => catalog.type_(member.object).cloned().map(Object::Type),
            classes::PG_PROC => catalog.function(member.object).cloned().map(Object::Function),
            classes::PG_OPERATOR => catalog.operator(member.object).cloned().map(Object::Operator),
            classes::PG_CLASS => catalog.relation(member.object).cloned().map(Object::Relation),
            _ => None,
        };
        match object {
            Some(Object::Type(o)) => ddl.tx().put(Object::Type(Arc::new(Type { namespace: target, ..(*o).clone() }))),
            Some(Object::Function(o)) => ddl.tx().put(Object::Function(Arc::new(Function { namespace: target, ..(*o).clone() }))),
            Some(Object::Operator(o)) => ddl.tx().put(Object::Operator(Arc::new(Operator { namespace: target, ..(*o).clone() }))),
            Some(Object::Relation(o)) => {
                let row_type = catalog.type_(o.row_type).cloned();
                for ty in row_type.iter().chain(row_type.as_ref().and_then(|t| catalog.type_(t.array))) {
                    ddl.tx().put(Object::Type(Arc::new(Type { namespace: target, ..Type::clone(ty) })));
                }
                ddl.tx().put(Object::Relation(Arc::new(Relation { namespace: target, ..(*o).clone() })));
            }
            _ => {}
        }
    }
    ddl.tx().put(Object::Extension(Arc::new(Extension { namespace: target, ..extension.clone() })));
    Ok(())
}
