//! CREATE, ALTER and DROP TEXT SEARCH CONFIGURATION and DICTIONARY.
//!
//! What a dictionary's options mean is known to the functions of its template, and the types of tokens to those of the parser: both
//! are found by pg_proc.prosrc, as other functions are.

use std::sync::Arc;

use melba_catalog::text_search_options::{TextSearchOption, parse_options};
use melba_catalog::{Object, ObjectAddress, TextSearchConfig, TextSearchDictionary, TextSearchMapping, classes, quote_ident};
use melba_fmgr::{CallInfo, registry};
use melba_parse::nodes::{inner, option_text, options, strings};
use melba_types::{Datum, DbError, Oid, Result, SqlState, bail, err, oids};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{
    AlterTsConfigType, AlterTsConfigurationStmt, AlterTsDictionaryStmt, DefElem, DefineStmt, Node, ObjectType,
};

use melba_definition::context::Ddl;
use melba_definition::special_schema::refuse_special_schema;
use melba_routine::aggregate::option_name;

/// A configuration or a dictionary.
#[derive(Clone)]
pub enum TextSearchObject {
    Config(Arc<TextSearchConfig>),
    Dictionary(Arc<TextSearchDictionary>),
}

impl TextSearchObject {
    fn place(&self) -> (Oid, &Arc<str>, Oid) {
        match self {
            TextSearchObject::Config(o) => (o.namespace, &o.name, o.owner),
            TextSearchObject::Dictionary(o) => (o.namespace, &o.name, o.owner),
        }
    }

    /// Puts it into another place, or gives it another name or owner.
    fn put(&self, ddl: &Ddl<'_>, namespace: Oid, name: Arc<str>, owner: Oid) {
        ddl.tx().put(match self {
            TextSearchObject::Config(o) => {
                Object::TextSearchConfig(Arc::new(TextSearchConfig { namespace, name, owner, ..(**o).clone() }))
            }
            TextSearchObject::Dictionary(o) => {
                Object::TextSearchDictionary(Arc::new(TextSearchDictionary { namespace, name, owner, ..(**o).clone() }))
            }
        });
    }
}

/// Whether objects of a kind are configurations or dictionaries.
pub fn is_text_search(kind: ObjectType) -> bool {
    matches!(kind, ObjectType::ObjectTsconfiguration | ObjectType::ObjectTsdictionary)
}

fn word(kind: ObjectType) -> &'static str {
    if kind == ObjectType::ObjectTsdictionary { "text search dictionary" } else { "text search configuration" }
}

/// The OID of a configuration or dictionary.
///
/// # Errors
/// 42704 when there is none.
fn oid_named(ddl: &Ddl<'_>, kind: ObjectType, names: &[&str]) -> Result<Oid> {
    let (schema, name) = ddl.qualified(names)?;
    let schemas = ddl.searched_schemas(schema)?;
    let catalog = ddl.catalog();
    let found = match kind {
        ObjectType::ObjectTsdictionary => catalog.find_text_search_dictionary(&schemas, name).map(|o| o.oid),
        _ => catalog.find_text_search_config(&schemas, name).map(|o| o.oid),
    };
    found.ok_or_else(|| err!(UNDEFINED_OBJECT, "{} \"{}\" does not exist", word(kind), names.join(".")))
}

/// The object that a statement changes.
///
/// # Errors
/// 42501 for a user who does not own it, 0A000 for a built-in one.
fn owned(ddl: &Ddl<'_>, kind: ObjectType, names: &[&str]) -> Result<TextSearchObject> {
    let oid = oid_named(ddl, kind, names)?;
    let catalog = ddl.catalog();
    let found = match kind {
        ObjectType::ObjectTsdictionary => catalog.text_search_dictionary(oid).cloned().map(TextSearchObject::Dictionary),
        _ => catalog.text_search_config(oid).cloned().map(TextSearchObject::Config),
    };
    let found = found.ok_or_else(|| DbError::internal("a text search object without an OID"))?;
    ddl.require_owner(found.place().2, word(kind), found.place().1)?;
    if oid.0 < classes::FIRST_USER_OID {
        return Err(DbError::unsupported(format!("changing a built-in {}", word(kind))));
    }
    Ok(found)
}

/// The object that DROP or COMMENT names.
pub fn find_text_search(ddl: &Ddl<'_>, kind: ObjectType, object: &Node, missing_ok: bool) -> Result<Option<ObjectAddress>> {
    let names = names_of(object)?;
    if let [schema, _] = names[..]
        && ddl.is_missing_schema(schema, missing_ok)?
    {
        return Ok(None);
    }
    match oid_named(ddl, kind, &names) {
        Ok(oid) => {
            let class = if kind == ObjectType::ObjectTsdictionary { classes::PG_TS_DICT } else { classes::PG_TS_CONFIG };
            let address = ObjectAddress { class, object: oid, sub: 0 };
            let owner = match ddl.catalog().object(address) {
                Some(Object::TextSearchDictionary(o)) => o.owner,
                Some(Object::TextSearchConfig(o)) => o.owner,
                _ => Oid::INVALID,
            };
            ddl.require_owner(owner, word(kind), &names.join("."))?;
            Ok(Some(address))
        }
        Err(error) if missing_ok && error.sqlstate() == SqlState::UNDEFINED_OBJECT => {
            ddl.notice(format!("{}, skipping", error.message()));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn names_of(object: &Node) -> Result<Vec<&str>> {
    match inner(object)? {
        N::List(list) => Ok(strings(&list.items)),
        _ => Err(DbError::internal("a text search object without a name")),
    }
}

fn named(ddl: &Ddl<'_>, kind: ObjectType, object: Option<&Node>) -> Result<TextSearchObject> {
    let object = object.ok_or_else(|| DbError::internal("a text search object without a name"))?;
    owned(ddl, kind, &names_of(object)?)
}

pub fn rename_text_search(ddl: &Ddl<'_>, kind: ObjectType, object: Option<&Node>, name: &str) -> Result<()> {
    let old = named(ddl, kind, object)?;
    let (namespace, _, owner) = old.place();
    refuse_same(ddl, kind, namespace, name)?;
    old.put(ddl, namespace, name.into(), owner);
    Ok(())
}

pub fn move_text_search(ddl: &Ddl<'_>, kind: ObjectType, object: Option<&Node>, schema: &str) -> Result<()> {
    let old = named(ddl, kind, object)?;
    let (namespace, name, owner) = old.place();
    let new = ddl.namespace_for_creation(Some(schema))?;
    if new != namespace {
        refuse_special_schema(ddl, namespace, new)?;
        refuse_same(ddl, kind, new, name)?;
        old.put(ddl, new, name.clone(), owner);
    }
    Ok(())
}

/// ALTER ... OWNER TO.
pub fn own_text_search(ddl: &Ddl<'_>, kind: ObjectType, object: Option<&Node>, owner: Oid) -> Result<()> {
    give_text_search(ddl, &named(ddl, kind, object)?, owner)
}

pub fn give_text_search(ddl: &Ddl<'_>, old: &TextSearchObject, owner: Oid) -> Result<()> {
    let (namespace, name, old_owner) = old.place();
    ddl.check_new_owner(old_owner, owner, Some(namespace))?;
    old.put(ddl, namespace, name.clone(), owner);
    Ok(())
}

/// 42710 for a name that another object has.
fn refuse_same(ddl: &Ddl<'_>, kind: ObjectType, namespace: Oid, name: &str) -> Result<()> {
    if !exists(ddl, kind, namespace, name) {
        return Ok(());
    }
    let catalog = ddl.catalog();
    let schema = catalog.namespace(namespace).map_or("?", |n| &n.name);
    bail!(DUPLICATE_OBJECT, "{} \"{name}\" already exists in schema \"{schema}\"", word(kind))
}

fn exists(ddl: &Ddl<'_>, kind: ObjectType, namespace: Oid, name: &str) -> bool {
    let catalog = ddl.catalog();
    match kind {
        ObjectType::ObjectTsdictionary => catalog.text_search_dictionary_by_name(namespace, name).is_some(),
        _ => catalog.text_search_config_by_name(namespace, name).is_some(),
    }
}

/// 23505, as the index of PostgreSQL's catalog says it.
fn refuse_duplicate(ddl: &Ddl<'_>, kind: ObjectType, namespace: Oid, name: &str) -> Result<()> {
    if !exists(ddl, kind, namespace, name) {
        return Ok(());
    }
    let (index, columns) = match kind {
        ObjectType::ObjectTsdictionary => ("pg_ts_dict_dictname_index", "dictname, dictnamespace"),
        _ => ("pg_ts_config_cfgname_index", "cfgname, cfgnamespace"),
    };
    Err(err!(UNIQUE_VIOLATION, "duplicate key value violates unique constraint \"{index}\"")
        .detail(format!("Key ({columns})=({name}, {namespace}) already exists.")))
}

/// CREATE TEXT SEARCH CONFIGURATION or DICTIONARY.
pub fn create_text_search(ddl: &Ddl<'_>, kind: ObjectType, s: &DefineStmt) -> Result<()> {
    let (schema, name) = ddl.qualified(&strings(&s.defnames))?;
    let namespace = ddl.namespace_for_creation(schema)?;
    if kind == ObjectType::ObjectTsdictionary {
        create_dictionary(ddl, s, namespace, name)
    } else {
        create_config(ddl, s, namespace, name)
    }
}

fn create_config(ddl: &Ddl<'_>, s: &DefineStmt, namespace: Oid, name: &str) -> Result<()> {
    let (mut parser, mut copied) = (None, None);
    for option in options(&s.definition) {
        let names = || Ok::<_, DbError>(option_name(option)?.unwrap_or_default());
        match option.defname.as_str() {
            "parser" => parser = Some(parser_named(ddl, &names()?)?),
            "copy" => copied = Some(oid_named(ddl, ObjectType::ObjectTsconfiguration, &names()?)?),
            other => bail!(SYNTAX_ERROR, "text search configuration parameter \"{other}\" not recognized"),
        }
    }
    if parser.is_some() && copied.is_some() {
        bail!(SYNTAX_ERROR, "cannot specify both PARSER and COPY options");
    }
    let copied = copied.and_then(|oid| ddl.catalog().text_search_config(oid).cloned());
    let parser = copied.as_ref().map(|config| config.parser).or(parser);
    let parser = parser.ok_or_else(|| err!(INVALID_OBJECT_DEFINITION, "text search parser is required"))?;
    refuse_duplicate(ddl, ObjectType::ObjectTsconfiguration, namespace, name)?;
    ddl.tx().put(Object::TextSearchConfig(Arc::new(TextSearchConfig {
        oid: ddl.tx().new_oid(),
        name: name.into(),
        namespace,
        owner: ddl.user(),
        parser,
        map: copied.map(|config| config.map.clone()).unwrap_or_default(),
    })));
    Ok(())
}

fn parser_named(ddl: &Ddl<'_>, names: &[&str]) -> Result<Oid> {
    let (schema, name) = ddl.qualified(names)?;
    let found = ddl.catalog().find_text_search_parser(&ddl.searched_schemas(schema)?, name);
    found.ok_or_else(|| err!(UNDEFINED_OBJECT, "text search parser \"{}\" does not exist", names.join(".")))
}

fn create_dictionary(ddl: &Ddl<'_>, s: &DefineStmt, namespace: Oid, name: &str) -> Result<()> {
    let (mut template, mut given) = (None, Vec::new());
    for option in options(&s.definition) {
        if option.defname == "template" {
            let names = option_name(option)?.unwrap_or_default();
            let (schema, name) = ddl.qualified(&names)?;
            let found = ddl.catalog().find_text_search_template(&ddl.searched_schemas(schema)?, name);
            let missing = || err!(UNDEFINED_OBJECT, "text search template \"{}\" does not exist", names.join("."));
            template = Some(found.ok_or_else(missing)?);
        } else {
            given.push(option_of(option)?);
        }
    }
    let template = template.ok_or_else(|| err!(INVALID_OBJECT_DEFINITION, "text search template is required"))?;
    let options = written(&given);
    check_options(ddl, template, options.as_deref())?;
    refuse_duplicate(ddl, ObjectType::ObjectTsdictionary, namespace, name)?;
    ddl.tx().put(Object::TextSearchDictionary(Arc::new(TextSearchDictionary {
        oid: ddl.tx().new_oid(),
        name: name.into(),
        namespace,
        owner: ddl.user(),
        template,
        options,
    })));
    Ok(())
}

fn option_of(option: &DefElem) -> Result<TextSearchOption> {
    let is_number = match option.arg.as_deref() {
        Some(arg) => matches!(inner(arg)?, N::Integer(_) | N::Float(_)),
        None => false,
    };
    let missing = || err!(SYNTAX_ERROR, "{} requires a parameter", option.defname);
    Ok(TextSearchOption { name: option.defname.clone(), value: option_text(option).ok_or_else(missing)?, quoted: !is_number })
}

/// Options as pg_ts_dict.dictinitoption has them.
fn written(options: &[TextSearchOption]) -> Option<Arc<str>> {
    let one = |option: &TextSearchOption| {
        let (name, value) = (quote_ident(&option.name), &option.value);
        if !option.quoted {
            return format!("{name} = {value}");
        }
        let escape = if value.contains('\\') { "E" } else { "" };
        format!("{name} = {escape}'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
    };
    (!options.is_empty()).then(|| options.iter().map(one).collect::<Vec<_>>().join(", ").into())
}

/// Asks the template's function about options.
///
/// # Errors
/// Those of the function, 0A000 for a template that has none here.
fn check_options(ddl: &Ddl<'_>, template: Oid, options: Option<&str>) -> Result<()> {
    let catalog = ddl.catalog();
    let (name, function) = catalog.text_search_template(template).ok_or_else(|| DbError::internal("a missing template"))?;
    let check = registry::scalar(&function).ok_or_else(|| DbError::unsupported(format!("text search template \"{name}\"")))?;
    let session = ddl.session();
    let call = CallInfo {
        session,
        arg_types: &[oids::TEXT],
        return_type: oids::VOID,
        collation: Oid::INVALID,
        variadic: false,
        columns: None,
        view: CallInfo::NO_VIEW,
    };
    check(&call, &[Datum::text(options.unwrap_or(""))]).map(drop)
}

/// ALTER TEXT SEARCH DICTIONARY: options replace those of their names; those without a value go.
pub fn alter_dictionary(ddl: &Ddl<'_>, s: &AlterTsDictionaryStmt) -> Result<()> {
    let TextSearchObject::Dictionary(old) = owned(ddl, ObjectType::ObjectTsdictionary, &strings(&s.dictname))? else {
        return Err(DbError::internal("a dictionary that is none"));
    };
    let mut kept = parse_options(old.options.as_deref().unwrap_or(""))?;
    for option in options(&s.options) {
        kept.retain(|old| old.name != option.defname);
        if option.arg.is_some() {
            kept.push(option_of(option)?);
        }
    }
    let options = written(&kept);
    check_options(ddl, old.template, options.as_deref())?;
    ddl.tx().put(Object::TextSearchDictionary(Arc::new(TextSearchDictionary { options, ..(*old).clone() })));
    Ok(())
}

/// ALTER TEXT SEARCH CONFIGURATION ... MAPPING.
pub fn alter_config(ddl: &Ddl<'_>, s: &AlterTsConfigurationStmt) -> Result<()> {
    let TextSearchObject::Config(old) = owned(ddl, ObjectType::ObjectTsconfiguration, &strings(&s.cfgname))? else {
        return Err(DbError::internal("a configuration that is none"));
    };
    let tokens = token_types(ddl, old.parser, &strings(&s.tokentype))?;
    let dictionaries = s.dicts.iter().map(|names| oid_named(ddl, ObjectType::ObjectTsdictionary, &names_of(names)?));
    let dictionaries = dictionaries.collect::<Result<Vec<Oid>>>()?;
    let mut config = (*old).clone();
    match AlterTsConfigType::try_from(s.kind).unwrap_or(AlterTsConfigType::AlterTsconfigTypeUndefined) {
        AlterTsConfigType::AlterTsconfigAddMapping => map(&mut config, &tokens, &dictionaries, false)?,
        AlterTsConfigType::AlterTsconfigAlterMappingForToken => map(&mut config, &tokens, &dictionaries, true)?,
        AlterTsConfigType::AlterTsconfigReplaceDict | AlterTsConfigType::AlterTsconfigReplaceDictForToken => {
            let [old, new] = dictionaries[..] else { return Err(DbError::internal("REPLACE without two dictionaries")) };
            replace(&mut config, &tokens, old, new);
        }
        AlterTsConfigType::AlterTsconfigDropMapping => unmap(ddl, &mut config, &tokens, s.missing_ok)?,
        AlterTsConfigType::AlterTsconfigTypeUndefined => {
            return Err(DbError::internal("a change of a configuration that is none"));
        }
    }
    ddl.tx().put(Object::TextSearchConfig(Arc::new(config)));
    Ok(())
}

/// A type of tokens by its number and name.
type TokenType = (i32, String);

fn token_types(ddl: &Ddl<'_>, parser: Oid, names: &[&str]) -> Result<Vec<TokenType>> {
    let session = ddl.session();
    let known = registry::set_returning("ts_token_type_byid").ok_or_else(|| DbError::unsupported("text search parsers"))?;
    let call = CallInfo {
        session,
        arg_types: &[oids::OID],
        return_type: oids::RECORD,
        collation: Oid::INVALID,
        variadic: false,
        columns: None,
        view: CallInfo::NO_VIEW,
    };
    let known = known(&call, &[Datum::Oid(parser.0)])?.collect::<Result<Vec<_>>>()?;
    let mut out: Vec<TokenType> = Vec::new();
    for name in names {
        let found = known.iter().find(|row| row[1].as_str() == *name);
        let found = found.ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "token type \"{name}\" does not exist"))?;
        let number = found[0].as_i32();
        if out.iter().all(|(known, _)| *known != number) {
            out.push((number, (*name).to_owned()));
        }
    }
    Ok(out)
}

/// Gives tokens to dictionaries, instead of those that they were given to or where they were given to none.
fn map(config: &mut TextSearchConfig, tokens: &[TokenType], dictionaries: &[Oid], overrides: bool) -> Result<()> {
    for (token_type, _) in tokens {
        let at = config.map.partition_point(|mapping| mapping.token_type < *token_type);
        let mapping = TextSearchMapping { token_type: *token_type, dictionaries: dictionaries.to_vec() };
        match config.map.get_mut(at).filter(|mapping| mapping.token_type == *token_type) {
            Some(old) if overrides => *old = mapping,
            Some(_) => {
                let message = "duplicate key value violates unique constraint \"pg_ts_config_map_index\"";
                let key = format!("Key (mapcfg, maptokentype, mapseqno)=({}, {token_type}, 1) already exists.", config.oid);
                return Err(err!(UNIQUE_VIOLATION, "{message}").detail(key));
            }
            None => config.map.insert(at, mapping),
        }
    }
    Ok(())
}

/// Replaces a dictionary, for some types of tokens or, without any, for all.
fn replace(config: &mut TextSearchConfig, tokens: &[TokenType], old: Oid, new: Oid) {
    for mapping in &mut config.map {
        if tokens.is_empty() || tokens.iter().any(|(token_type, _)| *token_type == mapping.token_type) {
            mapping.dictionaries.iter_mut().filter(|dictionary| **dictionary == old).for_each(|dictionary| *dictionary = new);
        }
    }
}

fn unmap(ddl: &Ddl<'_>, config: &mut TextSearchConfig, tokens: &[TokenType], missing_ok: bool) -> Result<()> {
    for (token_type, name) in tokens {
        let before = config.map.len();
        config.map.retain(|mapping| mapping.token_type != *token_type);
        if config.map.len() < before {
            continue;
        }
        if !missing_ok {
            bail!(UNDEFINED_OBJECT, "mapping for token type \"{name}\" does not exist");
        }
        ddl.notice(format!("mapping for token type \"{name}\" does not exist, skipping"));
    }
    Ok(())
}
