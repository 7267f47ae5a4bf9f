//! The extensions available to CREATE EXTENSION: as data, their objects implemented in `melba-functions` like built-in ones.
//!
//! An object of an extension has the same OID in every database that has the extension (`classes::FIRST_EXTENSION_OID`), so that
//! types are identified by their OIDs and operator classes are tables of the process, like those of built-in types.

use std::sync::{Arc, LazyLock};

use melba_types::Oid;

use super::{functions, types};
use crate::classes;
use crate::objects::*;
use crate::seed::{Seed, seed};

/// The comment on the extension that every database has.
pub const PLPGSQL: &str = "PL/pgSQL procedural language";

/// An extension that can be created.
#[derive(Debug)]
pub struct ExtensionDefinition {
    pub name: &'static str,
    pub version: &'static str,
    pub relocatable: bool,
    /// Roles that may create objects in the database may create it.
    pub trusted: bool,
    pub comment: &'static str,
    /// Its objects, in schema public and owned by the first superuser; objects that others need come first.
    pub objects: Vec<Object>,
    /// Operator classes and families, which every process has (`AccessMethods`).
    pub access: Vec<ObjectAddress>,
    /// Views that everybody may read: name and query over its functions.
    pub views: Vec<(&'static str, &'static str)>,
}

/// In the order of their names.
pub fn available_extensions() -> &'static [ExtensionDefinition] {
    static ALL: LazyLock<Vec<ExtensionDefinition>> = LazyLock::new(load);
    &ALL
}

/// The extensions that initdb creates.
pub(super) fn builtin() -> Vec<Arc<Extension>> {
    let extension = |r: crate::seed::Row<'_>| Extension {
        oid: r.oid("oid"),
        name: r.text("extname"),
        owner: r.oid("extowner"),
        namespace: r.oid("extnamespace"),
        version: r.text("extversion"),
        members: Vec::new(),
    };
    seed!("pg_extension").rows().map(|r| Arc::new(extension(r))).collect()
}

/// The extension and OID of each row of a seed.
fn owners(seed: &Seed) -> Vec<(&'static str, Oid)> {
    seed.rows().map(|r| (r.str("extension"), r.oid("oid"))).collect()
}

fn wrappers(seed: &Seed) -> Vec<Arc<ForeignDataWrapper>> {
    let wrapper = |r: crate::seed::Row<'_>| ForeignDataWrapper {
        oid: r.oid("oid"),
        name: r.text("fdwname"),
        owner: classes::POSTGRES_ROLE,
        handler: r.oid("fdwhandler"),
        validator: r.oid("fdwvalidator"),
        acl: None,
        options: Vec::new(),
    };
    seed.rows().map(|r| Arc::new(wrapper(r))).collect()
}

fn load() -> Vec<ExtensionDefinition> {
    let role = |_: &str| classes::POSTGRES_ROLE;
    let (pg_type, pg_proc) = (seed!("extension/pg_type"), seed!("extension/pg_proc"));
    let (pg_operator, pg_cast) = (seed!("extension/pg_operator"), seed!("extension/pg_cast"));
    let pg_foreign_data_wrapper = seed!("extension/pg_foreign_data_wrapper");
    let all_functions = functions::functions(&pg_proc, &seed!("extension/pg_aggregate"), &role);
    let objects: Vec<(&str, Object)> = [&pg_type, &pg_proc, &pg_operator, &pg_cast, &pg_foreign_data_wrapper]
        .map(owners)
        .concat()
        .into_iter()
        .map(|(extension, _)| extension)
        .zip(
            (types::plain_types(&pg_type).into_iter().map(Object::Type))
                .chain(all_functions.into_iter().map(Object::Function))
                .chain(functions::operators(&pg_operator).into_iter().map(Object::Operator))
                .chain(functions::casts(&pg_cast).into_iter().map(Object::Cast))
                .chain(wrappers(&pg_foreign_data_wrapper).into_iter().map(Object::ForeignDataWrapper)),
        )
        .collect();
    let views: Vec<_> = seed!("extension/views").rows().map(|r| (r.str("extension"), r.str("name"), r.str("query"))).collect();
    let access = [(classes::PG_OPFAMILY, seed!("extension/pg_opfamily")), (classes::PG_OPCLASS, seed!("extension/pg_opclass"))];
    let mut all: Vec<ExtensionDefinition> = (seed!("extension/extensions").rows())
        .map(|r| {
            let name = r.str("name");
            let of_it = access.iter().flat_map(|(class, seed)| owners(seed).into_iter().map(|(e, oid)| (e, *class, oid)));
            ExtensionDefinition {
                name,
                version: r.str("version"),
                relocatable: r.bool("relocatable"),
                trusted: r.bool("trusted"),
                comment: r.str("comment"),
                objects: objects.iter().filter(|(e, _)| *e == name).map(|(_, o)| o.clone()).collect(),
                access: of_it
                    .filter(|(e, ..)| *e == name)
                    .map(|(_, class, object)| ObjectAddress { class, object, sub: 0 })
                    .collect(),
                views: views.iter().filter(|(e, ..)| *e == name).map(|(_, view, query)| (*view, *query)).collect(),
            }
        })
        .collect();
    all.sort_by_key(|e| e.name);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalog;

    #[test]
    fn objects_of_extensions_are_complete() {
        let catalog = Catalog::default();
        for extension in available_extensions() {
            let changes: Vec<_> = extension.objects.iter().cloned().map(crate::ObjectChange::Put).collect();
            let with = catalog.with(&changes);
            for object in &extension.objects {
                let address = object.address();
                assert!(address.object.0 >= classes::FIRST_EXTENSION_OID, "{object:?}");
                // Every object that it refers to exists.
                for dependency in crate::dependencies(object) {
                    let oid = dependency.referenced.object;
                    let found = match dependency.referenced.class {
                        classes::PG_TYPE => with.type_(oid).is_some(),
                        classes::PG_PROC => with.function(oid).is_some(),
                        _ => true,
                    };
                    assert!(found, "{} lacks {oid}: {object:?}", extension.name);
                }
            }
            assert_eq!(with.allocate_oid().0, catalog.allocate_oid().0 - 1, "members' OIDs are not counted");
        }
    }
}
