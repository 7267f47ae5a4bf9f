//! CREATE, ALTER and DROP COLLATION: the orders of ICU, and collations that compare bytes, whatever their upper and lower case.

use std::sync::Arc;

use melba_catalog::{Collation, CollatorCell, Object, ObjectAddress, classes};
use melba_collation::{Collator, LocaleError};
use melba_parse::nodes::{inner, option_bool, option_text, options, strings};
use melba_types::{DbError, Oid, Result, Severity, SqlState, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{AlterCollationStmt, DefElem, DefineStmt, Node};

use melba_definition::context::Ddl;
use melba_definition::special_schema::refuse_special_schema;
use melba_relation::stored_text::rewriting_users_of;
use melba_routine::aggregate::option_name;

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
struct CollationDefinition {
    provider: u8,
    locale: Option<Arc<str>>,
    /// It is of databases in UTF-8 alone.
    utf8: bool,
    deterministic: bool,
}

fn wrong(message: &str) -> DbError {
    err!(INVALID_OBJECT_DEFINITION, "{message}")
}

pub fn create_collation(ddl: &Ddl<'_>, s: &DefineStmt) -> Result<()> {
    let (schema, name) = ddl.qualified(&strings(&s.defnames))?;
    let namespace = ddl.namespace_for_creation(schema)?;
    let given = CollationOptions::read(s)?;
    let definition = match given.from {
        Some(from) => copied_collation(ddl, from)?,
        None => given.definition(ddl)?,
    };
    if ddl.catalog().collation_by_name(namespace, name).is_some() {
        let encoding = if definition.utf8 { " for encoding \"UTF8\"" } else { "" };
        let message = format!("collation \"{name}\"{encoding} already exists");
        if s.if_not_exists {
            ddl.notice_of(SqlState::DUPLICATE_OBJECT, format!("{message}, skipping"));
            return Ok(());
        }
        bail!(DUPLICATE_OBJECT, "{message}");
    }
    let collation = Collation {
        oid: ddl.tx().new_oid(),
        name: name.into(),
        namespace,
        owner: ddl.user(),
        provider: definition.provider,
        deterministic: definition.deterministic,
        locale: definition.locale,
        version: None,
        collator: CollatorCell::default(),
    };
    let version = match given.version.and_then(option_text) {
        Some(version) => Some(version.into()),
        None => collation.actual_version().map(Arc::from),
    };
    let collation = Collation { version, ..collation };
    check_order(&collation)?;
    ddl.tx().put(Object::Collation(Arc::new(collation)));
    Ok(())
}

fn copied_collation(ddl: &Ddl<'_>, from: &DefElem) -> Result<CollationDefinition> {
    let names = option_name(from)?.unwrap_or_default();
    let old = ddl.with_context(|c| c.find_collation(&names, -1).cloned())?;
    if old.oid == classes::DEFAULT_COLLATION {
        return Err(wrong("collation \"default\" cannot be copied"));
    }
    Ok(CollationDefinition {
        provider: old.provider,
        locale: old.locale.clone(),
        utf8: !is_of_any_encoding(&old),
        deterministic: old.deterministic,
    })
}

fn is_of_any_encoding(collation: &Collation) -> bool {
    match collation.provider {
        b'i' => true,
        b'b' => false,
        _ => matches!(collation.locale.as_deref(), Some("C" | "POSIX")),
    }
}

/// # Errors
/// 22023 for a locale that has no order; 0A000 for one whose order is not known.
fn check_order(collation: &Collation) -> Result<()> {
    let Some(locale) = collation.locale.as_deref().filter(|_| collation.provider == b'i') else { return Ok(()) };
    match Collator::new(locale, collation.deterministic) {
        Ok(_) => Ok(()),
        Err(LocaleError::Unsupported(keyword)) => {
            Err(DbError::unsupported(format!("keyword \"{keyword}\" of the ICU locale \"{locale}\"")))
        }
        Err(error @ LocaleError::Illegal) => {
            Err(err!(INVALID_PARAMETER_VALUE, "could not open collator for locale \"{locale}\": {error}"))
        }
    }
}

/// ALTER COLLATION ... REFRESH VERSION
pub fn refresh_collation(ddl: &Ddl<'_>, s: &AlterCollationStmt) -> Result<()> {
    let collation = owned_collation(ddl, &strings(&s.collname))?;
    if collation.oid == classes::DEFAULT_COLLATION {
        return Err(err!(WRONG_OBJECT_TYPE, "cannot refresh version of default collation")
            .hint("Use ALTER DATABASE ... REFRESH COLLATION VERSION instead."));
    }
    match (collation.version.as_deref(), collation.actual_version()) {
        (Some(old), Some(new)) if old != new => {
            ddl.notice(format!("changing version from {old} to {new}"));
            ddl.tx().put(Object::Collation(Arc::new(Collation { version: Some(new.into()), ..(*collation).clone() })));
        }
        _ => ddl.notice("version has not changed".to_owned()),
    }
    Ok(())
}

fn owned_collation(ddl: &Ddl<'_>, names: &[&str]) -> Result<Arc<Collation>> {
    let collation = ddl.with_context(|c| c.find_collation(names, -1).cloned())?;
    ddl.require_owner(collation.owner, "collation", &collation.name)?;
    Ok(collation)
}

pub fn named_collation(ddl: &Ddl<'_>, object: Option<&Node>) -> Result<Arc<Collation>> {
    let object = object.ok_or_else(|| DbError::internal("a collation without a name"))?;
    owned_collation(ddl, &collation_name(object)?)
}

/// The collation that DROP or COMMENT names.
pub fn find_collation(ddl: &Ddl<'_>, object: &Node, missing_ok: bool) -> Result<Option<ObjectAddress>> {
    if let [schema, _] = collation_name(object)?[..]
        && ddl.is_missing_schema(schema, missing_ok)?
    {
        return Ok(None);
    }
    match named_collation(ddl, Some(object)) {
        Ok(c) => Ok(Some(ObjectAddress { class: classes::PG_COLLATION, object: c.oid, sub: 0 })),
        Err(error) if missing_ok && error.sqlstate() == SqlState::UNDEFINED_OBJECT => {
            ddl.notice(format!("collation \"{}\" does not exist, skipping", collation_name(object)?.join(".")));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

pub fn rename_collation(ddl: &Ddl<'_>, object: Option<&Node>, name: &str) -> Result<()> {
    let old = named_collation(ddl, object)?;
    refuse_same_collation(ddl, old.namespace, name, &old)?;
    change_collation(ddl, Collation { name: name.into(), ..(*old).clone() })
}

pub fn move_collation(ddl: &Ddl<'_>, object: Option<&Node>, schema: &str) -> Result<()> {
    let old = named_collation(ddl, object)?;
    let namespace = ddl.namespace_for_creation(Some(schema))?;
    if namespace == old.namespace {
        return Ok(());
    }
    refuse_special_schema(ddl, old.namespace, namespace)?;
    refuse_same_collation(ddl, namespace, &old.name, &old)?;
    change_collation(ddl, Collation { namespace, ..(*old).clone() })
}

pub fn give_collation(ddl: &Ddl<'_>, old: &Collation, owner: Oid) -> Result<()> {
    ddl.check_new_owner(old.owner, owner, Some(old.namespace))?;
    ddl.tx().put(Object::Collation(Arc::new(Collation { owner, ..old.clone() })));
    Ok(())
}

fn refuse_same_collation(ddl: &Ddl<'_>, namespace: Oid, name: &str, old: &Collation) -> Result<()> {
    let catalog = ddl.catalog();
    if catalog.collation_by_name(namespace, name).is_none() {
        return Ok(());
    }
    let encoding = if is_of_any_encoding(old) { "" } else { " for encoding \"UTF8\"" };
    let schema = catalog.namespace(namespace).map_or("?", |n| &n.name);
    bail!(DUPLICATE_OBJECT, "collation \"{name}\"{encoding} already exists in schema \"{schema}\"")
}

fn change_collation(ddl: &Ddl<'_>, collation: Collation) -> Result<()> {
    let address = ObjectAddress { class: classes::PG_COLLATION, object: collation.oid, sub: 0 };
    rewriting_users_of(ddl, address, || {
        ddl.tx().put(Object::Collation(Arc::new(collation)));
        Ok(())
    })
}

fn collation_name(object: &Node) -> Result<Vec<&str>> {
    match inner(object)? {
        N::List(list) => Ok(strings(&list.items)),
        _ => Err(DbError::internal("a collation without a name")),
    }
}

/// The language tag of a locale, which the catalog keeps. What is wrong with it is told as loudly as icu_validation_level says.
fn icu_locale(ddl: &Ddl<'_>, given: &str) -> Result<String> {
    let level = ddl.session().setting("icu_validation_level").unwrap_or_default();
    let tell = |message: String, hint: Option<&'static str>| {
        let wrong = err!(INVALID_PARAMETER_VALUE, "{message}");
        let wrong = hint.map_or(wrong.clone(), |hint| wrong.hint(hint));
        match &*level {
            "disabled" => Ok(()),
            "error" => Err(wrong),
            "warning" => {
                ddl.session().notice(wrong.severity(Severity::Warning));
                Ok(())
            }
            "notice" => {
                ddl.session().notice(wrong.severity(Severity::Notice));
                Ok(())
            }
            _ => Ok(()),
        }
    };
    let locale = match melba_collation::language_tag(given) {
        Ok(tag) => {
            if tag != given {
                ddl.notice(format!("using standard form \"{tag}\" for ICU locale \"{given}\""));
            }
            tag
        }
        Err(error) => {
            tell(format!("could not convert locale name \"{given}\" to language tag: {error}"), None)?;
            given.to_owned()
        }
    };
    let language = melba_collation::language_of(&locale);
    let catalog = ddl.catalog();
    let is_of_language = |c: &Arc<Collation>| {
        c.provider == b'i' && c.locale.as_deref().is_some_and(|l| melba_collation::language_of(l) == language)
    };
    let is_known = ["", "und", "root"].contains(&&*language)
        || catalog.collations().into_iter().any(|c| c.oid.0 < classes::FIRST_USER_OID && is_of_language(c));
    if !is_known {
        const HINT: &str = "To disable ICU locale validation, set the parameter \"icu_validation_level\" to \"disabled\".";
        tell(format!("ICU locale \"{locale}\" has unknown language \"{language}\""), Some(HINT))?;
    }
    Ok(locale)
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

    fn definition(&self, ddl: &Ddl<'_>) -> Result<CollationDefinition> {
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
        let mut definition = match provider {
            b'i' => {
                let locale = icu_locale(ddl, &locale.ok_or_else(|| missing("locale"))?)?;
                CollationDefinition { provider, locale: Some(locale.into()), utf8: false, deterministic: true }
            }
            b'b' => builtin(&locale.ok_or_else(|| missing("locale"))?)?,
            _ => {
                let given = |own: Option<&DefElem>| own.and_then(option_text).or_else(|| locale.clone());
                let collate = given(self.collate).ok_or_else(|| missing("lc_collate"))?;
                let ctype = given(self.ctype).ok_or_else(|| missing("lc_ctype"))?;
                libc(&collate, &ctype)?
            }
        };
        definition.deterministic = self.deterministic.map_or(Ok(true), option_bool)?;
        if !definition.deterministic && provider != b'i' {
            bail!(FEATURE_NOT_SUPPORTED, "nondeterministic collations not supported with this provider");
        }
        if self.rules.is_some() && provider == b'i' {
            return Err(DbError::unsupported("rules of an ICU collation"));
        }
        if self.rules.is_some() {
            return Err(wrong("ICU rules cannot be specified unless locale provider is ICU"));
        }
        Ok(definition)
    }
}

fn builtin(locale: &str) -> Result<CollationDefinition> {
    let canonical = match locale {
        "C" => "C",
        "C.UTF-8" | "C.UTF8" => "C.UTF-8",
        "PG_UNICODE_FAST" => "PG_UNICODE_FAST",
        _ => bail!(WRONG_OBJECT_TYPE, "invalid locale name \"{locale}\" for builtin provider"),
    };
    Ok(CollationDefinition { provider: b'b', locale: Some(canonical.into()), utf8: true, deterministic: true })
}

fn libc(collate: &str, ctype: &str) -> Result<CollationDefinition> {
    let compares_bytes = ["C", "POSIX", "C.UTF-8", "C.UTF8", "C.utf8", "C.utf-8"].contains(&collate);
    if !compares_bytes {
        return Err(DbError::unsupported(format!("ordering by the operating system's locale \"{collate}\"")));
    }
    if collate != ctype {
        return Err(DbError::unsupported("a collation whose LC_COLLATE and LC_CTYPE differ"));
    }
    Ok(CollationDefinition { provider: b'c', locale: Some(collate.into()), utf8: true, deterministic: true })
}
