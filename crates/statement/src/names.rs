//! The effective search path of a session.

use std::sync::Arc;

use melba_catalog::privileges::AclKind;
use melba_catalog::{Catalog, acl, classes};
use melba_settings::split_identifiers;
use melba_types::Oid;

use super::user::User;

/// Namespaces in which unqualified names are looked up, and the one in which they are created.
#[derive(Clone, Debug, Default)]
pub struct SearchPath {
    /// The temporary schema and pg_catalog stand in front unless the setting names them elsewhere.
    pub path: Arc<[Oid]>,
    /// Without those that were only implied, for current_schemas(false).
    pub explicit: Arc<[Oid]>,
    /// `None`: no schema of the setting exists.
    pub creation: Option<Oid>,
    /// New objects are created in the temporary schema, which may have to be created first.
    pub creates_temporary: bool,
    /// The session's temporary schema, or 0.
    pub temporary: Oid,
}

impl SearchPath {
    /// Reads the setting `search_path`. Schemas that do not exist or that the user may not look into are skipped.
    pub fn new(setting: &str, catalog: &Catalog, user: &User, temporary: Oid) -> SearchPath {
        let mut explicit: Vec<Oid> = Vec::new();
        let mut creation = None;
        let mut creates_temporary = false;
        for name in split_identifiers(setting) {
            let visible = |name: &str| {
                let namespace = catalog.namespace_by_name(name)?;
                let may = catalog.has_privileges(user.oid, AclKind::Namespace, namespace.owner, &namespace.acl, acl::USAGE);
                may.then_some(namespace.oid)
            };
            let oid = match name.as_str() {
                "$user" => visible(&user.name),
                "pg_temp" => {
                    creates_temporary |= creation.is_none();
                    Some(temporary).filter(|t| t.is_valid())
                }
                name => visible(name),
            };
            let Some(oid) = oid else { continue };
            if !explicit.contains(&oid) {
                explicit.push(oid);
            }
            creation = creation.or(Some(oid));
        }
        let mut path = explicit.clone();
        if !path.contains(&classes::PG_CATALOG) {
            path.insert(0, classes::PG_CATALOG);
        }
        if temporary.is_valid() && !path.contains(&temporary) {
            path.insert(0, temporary);
        }
        SearchPath { path: path.into(), explicit: explicit.into(), creation, creates_temporary, temporary }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implied_schemas_come_first() {
        let catalog = Catalog::new(classes::POSTGRES_DATABASE);
        let (oid, name) = (classes::POSTGRES_ROLE, Arc::<str>::from("postgres"));
        let user = User {
            oid,
            name: name.clone(),
            session_oid: oid,
            session_name: name,
            superuser: true,
            restricted: false,
            acting: false,
        };
        let path = SearchPath::new("\"$user\", public, nowhere", &catalog, &user, Oid::INVALID);
        assert_eq!(*path.path, [classes::PG_CATALOG, classes::PUBLIC]);
        assert_eq!((path.creation, &*path.explicit), (Some(classes::PUBLIC), &[classes::PUBLIC][..]));
        let path = SearchPath::new("public, pg_catalog, pg_temp", &catalog, &user, Oid(77));
        assert_eq!(*path.path, [classes::PUBLIC, classes::PG_CATALOG, Oid(77)]);
    }
}
