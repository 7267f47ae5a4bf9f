//! Names of new objects: two transactions that create objects of one name at the same time.
//!
//! Statements look up a name in the catalog as their transaction sees it, where others' uncommitted objects are not. So each new
//! name is locked until the transaction's end, when the statement that made it has run: the second to take it waits for the
//! first, and is refused if that committed. The unique indexes of PostgreSQL's catalogs do the same.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use melba_catalog::foreign::{server_by_name, user_mapping_of, wrapper_by_name};
use melba_catalog::publications::publication_by_name;
use melba_catalog::{Catalog, Object, PlainObject, classes};
use melba_engine::{LockTag, RelationLockMode, Wait};
use melba_types::{Oid, Result, err};

use super::Tx;

/// A name that no two objects of a catalog share.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct UniqueName {
    class: Oid,
    /// PostgreSQL's index, its columns and the object's values.
    index: &'static str,
    columns: &'static str,
    values: String,
}

impl UniqueName {
    /// `None` for an object without a name, or with one that a table's lock reserves for it.
    pub(super) fn of(object: &Object) -> Option<UniqueName> {
        let (class, index, columns, values) = match object {
            Object::Relation(r) => {
                let values = format!("{}, {}", r.name, r.namespace);
                (classes::PG_CLASS, "pg_class_relname_nsp_index", "relname, relnamespace", values)
            }
            Object::Type(t) => {
                let values = format!("{}, {}", t.name, t.namespace);
                (classes::PG_TYPE, "pg_type_typname_nsp_index", "typname, typnamespace", values)
            }
            Object::Function(f) => {
                let types: Vec<String> = f.arg_types.iter().map(Oid::to_string).collect();
                let values = format!("{}, {}, {}", f.name, types.join(" "), f.namespace);
                (classes::PG_PROC, "pg_proc_proname_args_nsp_index", "proname, proargtypes, pronamespace", values)
            }
            Object::Namespace(n) => (classes::PG_NAMESPACE, "pg_namespace_nspname_index", "nspname", n.name.to_string()),
            Object::ExtendedStatistics(s) => {
                let values = format!("{}, {}", s.name, s.namespace);
                (classes::PG_STATISTIC_EXT, "pg_statistic_ext_name_index", "stxname, stxnamespace", values)
            }
            Object::Operator(o) => {
                let values = format!("{}, {}, {}, {}", o.name, o.left, o.right, o.namespace);
                let columns = "oprname, oprleft, oprright, oprnamespace";
                (classes::PG_OPERATOR, "pg_operator_oprname_l_r_n_index", columns, values)
            }
            Object::OperatorFamily(f) => {
                let values = format!("{}, {}, {}", f.method, f.name, f.namespace);
                (classes::PG_OPFAMILY, "pg_opfamily_am_name_nsp_index", "opfmethod, opfname, opfnamespace", values)
            }
            Object::OperatorClass(c) => {
                let values = format!("{}, {}, {}", c.method, c.name, c.namespace);
                (classes::PG_OPCLASS, "pg_opclass_am_name_nsp_index", "opcmethod, opcname, opcnamespace", values)
            }
            Object::Cast(c) => {
                let values = format!("{}, {}", c.source, c.target);
                (classes::PG_CAST, "pg_cast_source_target_index", "castsource, casttarget", values)
            }
            Object::Collation(c) => {
                // One name stands for all encodings.
                let values = format!("{}, -1, {}", c.name, c.namespace);
                (classes::PG_COLLATION, "pg_collation_name_enc_nsp_index", "collname, collencoding, collnamespace", values)
            }
            Object::TextSearchDictionary(d) => {
                let values = format!("{}, {}", d.name, d.namespace);
                (classes::PG_TS_DICT, "pg_ts_dict_dictname_index", "dictname, dictnamespace", values)
            }
            Object::TextSearchConfig(c) => {
                let values = format!("{}, {}", c.name, c.namespace);
                (classes::PG_TS_CONFIG, "pg_ts_config_cfgname_index", "cfgname, cfgnamespace", values)
            }
            Object::Extension(e) => (classes::PG_EXTENSION, "pg_extension_name_index", "extname", e.name.to_string()),
            Object::Publication(p) => (classes::PG_PUBLICATION, "pg_publication_pubname_index", "pubname", p.name.to_string()),
            Object::EventTrigger(e) => {
                (classes::PG_EVENT_TRIGGER, "pg_event_trigger_evtname_index", "evtname", e.name.to_string())
            }
            Object::Plain(o) => return plain_name(o),
            Object::Role(r) => (classes::PG_AUTHID, "pg_authid_rolname_index", "rolname", r.name.to_string()),
            Object::Database(d) => (classes::PG_DATABASE, "pg_database_datname_index", "datname", d.name.to_string()),
            _ => return UniqueName::of_foreign_data(object),
        };
        Some(UniqueName { class, index, columns, values })
    }

    fn of_foreign_data(object: &Object) -> Option<UniqueName> {
        let (class, index, columns, values) = match object {
            Object::ForeignDataWrapper(w) => {
                (classes::PG_FOREIGN_DATA_WRAPPER, "pg_foreign_data_wrapper_name_index", "fdwname", w.name.to_string())
            }
            Object::ForeignServer(s) => {
                (classes::PG_FOREIGN_SERVER, "pg_foreign_server_name_index", "srvname", s.name.to_string())
            }
            Object::UserMapping(m) => {
                let values = format!("{}, {}", m.user, m.server);
                (classes::PG_USER_MAPPING, "pg_user_mapping_user_server_index", "umuser, umserver", values)
            }
            _ => return None,
        };
        Some(UniqueName { class, index, columns, values })
    }

    fn is_shared(&self) -> bool {
        [classes::PG_AUTHID, classes::PG_DATABASE].contains(&self.class)
    }

    fn tag(&self, database: Oid) -> LockTag {
        let mut hasher = DefaultHasher::new();
        self.values.hash(&mut hasher);
        let database = if self.is_shared() { 0 } else { database.0 };
        LockTag::Name { database, class: self.class.0, hash: hasher.finish() }
    }
}

fn plain_name(object: &PlainObject) -> Option<UniqueName> {
    let (index, columns, values) = match object.class {
        classes::PG_CONVERSION => {
            let values = format!("{}, {}", object.name, object.namespace);
            ("pg_conversion_name_nsp_index", "conname, connamespace", values)
        }
        classes::PG_LANGUAGE => ("pg_language_name_index", "lanname", object.name.to_string()),
        classes::PG_TRANSFORM => ("pg_transform_type_lang_index", "trftype, trflang", object.name.replace(' ', ", ")),
        // Nobody makes or renames others.
        _ => return None,
    };
    Some(UniqueName { class: object.class, index, columns, values })
}

/// The object that has the name of this one.
fn by_name(catalog: &Catalog, object: &Object) -> Option<Object> {
    Some(match object {
        Object::Relation(r) => Object::Relation(catalog.relation_by_name(r.namespace, &r.name)?.clone()),
        Object::Type(t) => Object::Type(catalog.type_by_name(t.namespace, &t.name)?.clone()),
        Object::Function(f) => {
            let mut same = catalog.functions_by_name(f.namespace, &f.name).filter(|o| o.arg_types == f.arg_types);
            Object::Function(same.next()?.clone())
        }
        Object::Namespace(n) => Object::Namespace(catalog.namespace_by_name(&n.name)?.clone()),
        Object::ExtendedStatistics(s) => {
            Object::ExtendedStatistics(catalog.statistics_object_by_name(s.namespace, &s.name)?.clone())
        }
        Object::Operator(o) => {
            let mut same = catalog.operators_by_name(o.namespace, &o.name).filter(|x| (x.left, x.right) == (o.left, o.right));
            Object::Operator(same.next()?.clone())
        }
        Object::OperatorFamily(f) => {
            Object::OperatorFamily(catalog.find_operator_family(&[f.namespace], f.method, &f.name)?.clone())
        }
        Object::OperatorClass(c) => {
            Object::OperatorClass(catalog.find_operator_class(&[c.namespace], c.method, &c.name)?.clone())
        }
        Object::Cast(c) => Object::Cast(catalog.cast(c.source, c.target)?.clone()),
        Object::Collation(c) => Object::Collation(catalog.collation_by_name(c.namespace, &c.name)?.clone()),
        Object::TextSearchDictionary(d) => {
            Object::TextSearchDictionary(catalog.text_search_dictionary_by_name(d.namespace, &d.name)?.clone())
        }
        Object::TextSearchConfig(c) => {
            Object::TextSearchConfig(catalog.text_search_config_by_name(c.namespace, &c.name)?.clone())
        }
        Object::Extension(e) => Object::Extension(catalog.extension_by_name(&e.name)?.clone()),
        Object::ForeignDataWrapper(w) => Object::ForeignDataWrapper(wrapper_by_name(catalog, &w.name)?.clone()),
        Object::ForeignServer(s) => Object::ForeignServer(server_by_name(catalog, &s.name)?.clone()),
        Object::UserMapping(m) => Object::UserMapping(user_mapping_of(catalog, m.user, m.server)?.clone()),
        Object::Publication(p) => Object::Publication(publication_by_name(catalog, &p.name)?.clone()),
        Object::EventTrigger(e) => Object::EventTrigger(catalog.event_trigger_by_name(&e.name)?.clone()),
        Object::Plain(o) => Object::Plain(catalog.plain_object_by_name(o.class, o.namespace, &o.name)?.clone()),
        Object::Role(r) => Object::Role(catalog.role_by_name(&r.name)?.clone()),
        Object::Database(d) => Object::Database(catalog.database_by_name(&d.name)?.clone()),
        _ => return None,
    })
}

impl Tx {
    /// Claims the names of changed objects, waiting for other sessions that did.
    ///
    /// # Errors
    /// 23505 when another transaction was first.
    pub(super) fn claim_names(&self, changed: &[(Object, Arc<Catalog>)]) -> Result<()> {
        let mut objects: Vec<_> = changed.iter().filter_map(|(object, _)| Some((UniqueName::of(object)?, object))).collect();
        // Before their parts; a table's row type, and the family that is made with a class.
        let first = [classes::PG_EXTENSION, classes::PG_TYPE, classes::PG_OPFAMILY];
        objects.sort_by_key(|(name, _)| first.iter().position(|class| *class == name.class).unwrap_or(first.len()));
        objects.iter().try_for_each(|(name, object)| self.claim(name, object))
    }

    fn claim(&self, name: &UniqueName, object: &Object) -> Result<()> {
        let has_name = |catalog: &Catalog, object: &Object| {
            catalog.object(object.address()).is_some_and(|known| UniqueName::of(&known).as_ref() == Some(name))
        };
        if has_name(&self.cluster().catalog(self.database), object) {
            return Ok(());
        }
        self.engine.lock_object(name.tag(self.database), RelationLockMode::AccessExclusive, Wait::Block)?;
        // The former holder of the lock has committed and published its changes, or has rolled back.
        let Some(other) = by_name(&self.cluster().catalog(self.database), object) else { return Ok(()) };
        if other.address() == object.address() || !has_name(&self.catalog(), &other) {
            return Ok(());
        }
        let UniqueName { index, columns, values, .. } = name;
        Err(err!(UNIQUE_VIOLATION, "duplicate key value violates unique constraint \"{index}\"")
            .detail(format!("Key ({columns})=({values}) already exists.")))
    }
}
