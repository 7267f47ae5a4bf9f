//! CREATE, ALTER and DROP COLLATION: collations that compare bytes, whatever their upper and lower case.

use std::sync::Arc;

use melba_catalog::{Collation, Object, ObjectAddress, classes};
use melba_types::{DbError, Oid, Result, SqlState, bail, err};
use pg_query::protobuf::{AlterCollationStmt, DefElem, DefineStmt, Node, node::Node as N};

use super::Ddl;
use super::aggregate::qualified;
use melba_parse::nodes::{inner, option_bool, option_text, options, strings};

/// The options of a definition, each given once.
#[derive(Default)]
struct CollationOptions<'s> {
    from: Option<&'s DefElem>,
    locale: Option<&'s DefElem>,
    collate: Option<&'s DefElem>,
    ctype: Option<&'s DefElem>,
    provider: Option<&'s DefElem>,
    deterministic: Option<&'s DefElem>,
    rules: Option<&'s DefElem>,
    version: Option<&'s DefElem>,
}

/// The result of a definition.
struct Definition {
    provider: u8,
    locale: Option<Arc<str>>,
    /// It is of databases in UTF-8 alone.
    utf8: bool,
}

fn wrong(message: &str) -> DbError {
    err!(INVALID_OBJECT_DEFINITION, "{message}")
}

impl Ddl<'_> {
    pub fn create_collation(&self, s: &DefineStmt) -> Result<()> {
        let (schema, name) = self.split(&strings(&s.defnames))?;
        let namespace = self.namespace_for_creation(schema)?;
        let given = CollationOptions::read(s)?;
        let definition = match given.from {
            Some(from) => self.copied_collation(from)?,
            None => given.definition()?,
        };
        if self.catalog().collation_by_name(namespace, name).is_some() {
            let encoding = if definition.utf8 { " for encoding \"UTF8\"" } else { "" };
            let message = format!("collation \"{name}\"{encoding} already exists");
            if s.if_not_exists {
                self.notice(format!("{message}, skipping"));
                return Ok(());
            }
            bail!(DUPLICATE_OBJECT, "{message}");
        }
        let collation = Collation {
            oid: self.tx.new_oid(),
            name: name.into(),
            namespace,
            owner: self.user,
            provider: definition.provider,
            deterministic: true,
            locale: definition.locale,
        };
        self.tx.put(Object::Collation(Arc::new(collation)));
        Ok(())
    }

    fn copied_collation(&self, from: &DefElem) -> Result<Definition> {
        let names = qualified(from)?.unwrap_or_default();
        let old = self.with_context(|c| c.find_collation(&names, -1).cloned())?;
        if old.oid == classes::DEFAULT_COLLATION {
            return Err(wrong("collation \"default\" cannot be copied"));
        }
        if old.provider == b'i' {
            return Err(unsupported_icu());
        }
        let utf8 = old.provider == b'b' || !matches!(old.locale.as_deref(), Some("C" | "POSIX"));
        Ok(Definition { provider: old.provider, locale: old.locale.clone(), utf8 })
    }

    /// ALTER COLLATION ... REFRESH VERSION: the order of bytes has none that changes.
    pub fn refresh_collation(&self, s: &AlterCollationStmt) -> Result<()> {
        let collation = self.owned_collation(&strings(&s.collname))?;
        if collation.oid == classes::DEFAULT_COLLATION {
            return Err(err!(WRONG_OBJECT_TYPE, "cannot refresh version of default collation")
                .hint("Use ALTER DATABASE ... REFRESH COLLATION VERSION instead."));
        }
        self.notice("version has not changed".to_owned());
        Ok(())
    }

    fn owned_collation(&self, names: &[&str]) -> Result<Arc<Collation>> {
        let collation = self.with_context(|c| c.find_collation(names, -1).cloned())?;
        self.require_owner(collation.owner, "collation", &collation.name)?;
        Ok(collation)
    }

    pub(super) fn named_collation(&self, object: Option<&Node>) -> Result<Arc<Collation>> {
        let object = object.ok_or_else(|| DbError::internal("a collation without a name"))?;
        self.owned_collation(&collation_name(object)?)
    }

    /// The collation that DROP or COMMENT names.
    pub(super) fn find_collation(&self, object: &Node, missing_ok: bool) -> Result<Option<ObjectAddress>> {
        match self.named_collation(Some(object)) {
            Ok(c) => Ok(Some(ObjectAddress { class: classes::PG_COLLATION, object: c.oid, sub: 0 })),
            Err(error) if missing_ok && error.sqlstate() == SqlState::UNDEFINED_OBJECT => {
                self.notice(format!("collation \"{}\" does not exist, skipping", collation_name(object)?.join(".")));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn rename_collation(&self, object: Option<&Node>, name: &str) -> Result<()> {
        let old = self.named_collation(object)?;
        self.refuse_same_collation(old.namespace, name, &old)?;
        self.change_collation(Collation { name: name.into(), ..(*old).clone() })
    }

    pub(super) fn move_collation(&self, object: Option<&Node>, schema: &str) -> Result<()> {
        let old = self.named_collation(object)?;
        let namespace = self.namespace_for_creation(Some(schema))?;
        if namespace == old.namespace {
            return Ok(());
        }
        self.refuse_same_collation(namespace, &old.name, &old)?;
        self.change_collation(Collation { namespace, ..(*old).clone() })
    }

    pub(super) fn give_collation(&self, old: &Collation, owner: Oid) -> Result<()> {
        self.check_new_owner(old.owner, owner, Some(old.namespace))?;
        self.tx.put(Object::Collation(Arc::new(Collation { owner, ..old.clone() })));
        Ok(())
    }

    fn refuse_same_collation(&self, namespace: Oid, name: &str, old: &Collation) -> Result<()> {
        let catalog = self.catalog();
        if catalog.collation_by_name(namespace, name).is_none() {
            return Ok(());
        }
        let any_encoding = matches!(old.locale.as_deref(), Some("C" | "POSIX"));
        let encoding = if any_encoding { "" } else { " for encoding \"UTF8\"" };
        let schema = catalog.namespace(namespace).map_or("?", |n| &n.name);
        bail!(DUPLICATE_OBJECT, "collation \"{name}\"{encoding} already exists in schema \"{schema}\"")
    }

    fn change_collation(&self, collation: Collation) -> Result<()> {
        let address = ObjectAddress { class: classes::PG_COLLATION, object: collation.oid, sub: 0 };
        self.rewriting_users_of(address, || {
            self.tx.put(Object::Collation(Arc::new(collation)));
            Ok(())
        })
    }
}

fn collation_name(object: &Node) -> Result<Vec<&str>> {
    match inner(object)? {
        N::List(list) => Ok(strings(&list.items)),
        _ => Err(DbError::internal("a collation without a name")),
    }
}

fn unsupported_icu() -> DbError {
    DbError::unsupported("ordering by a locale of ICU").hint("Collations of the providers builtin and libc compare bytes.")
}

impl<'s> CollationOptions<'s> {
    fn read(s: &'s DefineStmt) -> Result<CollationOptions<'s>> {
        let mut out = CollationOptions::default();
        let conflict = || err!(SYNTAX_ERROR, "conflicting or redundant options");
        for def in options(&s.definition) {
            let place = match def.defname.as_str() {
                "from" => &mut out.from,
                "locale" => &mut out.locale,
                "lc_collate" => &mut out.collate,
                "lc_ctype" => &mut out.ctype,
                "provider" => &mut out.provider,
                "deterministic" => &mut out.deterministic,
                "rules" => &mut out.rules,
                "version" => &mut out.version,
                other => return Err(err!(SYNTAX_ERROR, "collation attribute \"{other}\" not recognized").at(def.location)),
            };
            if place.replace(def).is_some() {
                return Err(conflict().at(def.location));
            }
        }
        if out.locale.is_some() && (out.collate.is_some() || out.ctype.is_some()) {
            return Err(conflict().detail("LOCALE cannot be specified together with LC_COLLATE or LC_CTYPE."));
        }
        if out.from.is_some() && s.definition.len() != 1 {
            return Err(conflict().detail("FROM cannot be specified together with any other options."));
        }
        Ok(out)
    }

    fn definition(&self) -> Result<Definition> {
        let provider = match self.provider.and_then(option_text).map(|p| p.to_ascii_lowercase()).as_deref() {
            None | Some("libc") => b'c',
            Some("builtin") => b'b',
            Some("icu") => b'i',
            Some(_) => {
                let given = self.provider.and_then(option_text).unwrap_or_default();
                return Err(wrong(&format!("unrecognized collation provider: {given}")));
            }
        };
        let missing = |parameter: &str| wrong(&format!("parameter \"{parameter}\" must be specified"));
        let locale = self.locale.and_then(option_text);
        let definition = match provider {
            b'i' => return Err(if locale.is_none() { missing("locale") } else { unsupported_icu() }),
            b'b' => builtin(&locale.ok_or_else(|| missing("locale"))?)?,
            _ => {
                let given = |own: Option<&DefElem>| own.and_then(option_text).or_else(|| locale.clone());
                let collate = given(self.collate).ok_or_else(|| missing("lc_collate"))?;
                let ctype = given(self.ctype).ok_or_else(|| missing("lc_ctype"))?;
                libc(&collate, &ctype)?
            }
        };
        if !self.deterministic.map_or(Ok(true), option_bool)? {
            bail!(FEATURE_NOT_SUPPORTED, "nondeterministic collations not supported with this provider");
        }
        if self.rules.is_some() {
            return Err(wrong("ICU rules cannot be specified unless locale provider is ICU"));
        }
        Ok(definition)
    }
}

fn builtin(locale: &str) -> Result<Definition> {
    let canonical = match locale {
        "C" => "C",
        "C.UTF-8" | "C.UTF8" => "C.UTF-8",
        "PG_UNICODE_FAST" => "PG_UNICODE_FAST",
        _ => bail!(WRONG_OBJECT_TYPE, "invalid locale name \"{locale}\" for builtin provider"),
    };
    Ok(Definition { provider: b'b', locale: Some(canonical.into()), utf8: canonical != "C" })
}

fn libc(collate: &str, ctype: &str) -> Result<Definition> {
    let compares_bytes = ["C", "POSIX", "C.UTF-8", "C.UTF8", "C.utf8", "C.utf-8"].contains(&collate);
    if !compares_bytes {
        return Err(DbError::unsupported(format!("ordering by the operating system's locale \"{collate}\"")));
    }
    if collate != ctype {
        return Err(DbError::unsupported("a collation whose LC_COLLATE and LC_CTYPE differ"));
    }
    Ok(Definition { provider: b'c', locale: Some(collate.into()), utf8: true })
}
