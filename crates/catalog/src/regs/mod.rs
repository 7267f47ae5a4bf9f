//! The reg types (regclass, regtype, ...): from names to OIDs and back, under a search path.
//!
//! A search path is a list of namespace OIDs in search order; the session puts pg_catalog (and its temporary schema) in front of
//! it when the setting does not name them.

mod names;
mod type_name;

use std::borrow::Cow;
use std::sync::Arc;

use melba_types::{Oid, Result, bail, err, oids};

pub use names::{parse_qualified_name, truncate};
pub use type_name::parse_type;

use crate::naming::{format_type_modifier, quote_ident, standard_name};
use crate::objects::*;
use crate::privileges::AclKind;
use crate::seed::seed;
use crate::snapshot::Catalog;
use crate::text_search::DEFAULT_PARSER;
use crate::{acl, classes};

/// The user and schemas for which names are looked up.
#[derive(Clone, Copy)]
pub struct NameScope<'a> {
    /// Schemas that bare names are looked up in, in order, pg_catalog included.
    pub path: &'a [Oid],
    /// The role that needs USAGE on a schema that a name mentions.
    pub user: Oid,
    /// The schema pg_temp; invalid before the session has temporary objects.
    pub temporary: Oid,
}

impl NameScope<'_> {
    /// The schema that a name is qualified with; `None` when there is no such schema.
    ///
    /// # Errors
    /// 42501 without USAGE on it.
    fn schema(&self, catalog: &Catalog, name: &str) -> Result<Option<Oid>> {
        if name == "pg_temp" && self.temporary.is_valid() {
            return Ok(Some(self.temporary));
        }
        let Some(found) = catalog.namespace_by_name(name) else { return Ok(None) };
        let is_usable = found.oid == self.temporary
            || catalog.has_privileges(self.user, AclKind::Namespace, found.owner, &found.acl, acl::USAGE);
        if !is_usable {
            bail!(INSUFFICIENT_PRIVILEGE, "permission denied for schema {name}");
        }
        Ok(Some(found.oid))
    }
}

/// Lookups by name under a search path.
/// An OID in digits, as the type oid reads it: octal behind a zero.
fn numeric_oid(text: &str) -> Result<Oid> {
    let (digits, radix) = match text.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => (octal, 8),
        _ => (text, 10),
    };
    if !digits.bytes().all(|digit| char::from(digit).is_digit(radix)) {
        bail!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type oid: \"{text}\"");
    }
    let oid = u32::from_str_radix(digits, radix).map(Oid);
    oid.map_err(|_| err!(NUMERIC_VALUE_OUT_OF_RANGE, "value \"{text}\" is out of range for type oid"))
}

impl Catalog {
    /// The relation of a bare name.
    pub fn find_relation(&self, path: &[Oid], name: &str) -> Option<&Arc<Relation>> {
        path.iter().find_map(|n| self.relation_by_name(*n, name))
    }

    /// The type of a bare name.
    pub fn find_type(&self, path: &[Oid], name: &str) -> Option<&Arc<Type>> {
        path.iter().find_map(|n| self.type_by_name(*n, name))
    }

    /// The collation of a bare name.
    pub fn find_collation(&self, path: &[Oid], name: &str) -> Option<&Arc<Collation>> {
        path.iter().find_map(|n| self.collation_by_name(*n, name))
    }

    /// The configuration of a bare name.
    pub fn find_text_search_config(&self, path: &[Oid], name: &str) -> Option<&Arc<TextSearchConfig>> {
        path.iter().find_map(|namespace| self.text_search_config_by_name(*namespace, name))
    }

    /// The dictionary of a bare name.
    pub fn find_text_search_dictionary(&self, path: &[Oid], name: &str) -> Option<&Arc<TextSearchDictionary>> {
        path.iter().find_map(|namespace| self.text_search_dictionary_by_name(*namespace, name))
    }

    /// The parser of a bare name.
    pub fn find_text_search_parser(&self, path: &[Oid], name: &str) -> Option<Oid> {
        (name == "default" && path.contains(&classes::PG_CATALOG)).then_some(DEFAULT_PARSER)
    }

    /// The template of a bare name.
    pub fn find_text_search_template(&self, path: &[Oid], name: &str) -> Option<Oid> {
        let seed = seed!("pg_ts_template");
        let found = seed.rows().find(|r| r.str("tmplname") == name).map(|r| r.oid("oid"));
        found.filter(|_| path.contains(&classes::PG_CATALOG))
    }

    /// The name of a template, and the function that checks the options of its dictionaries.
    pub fn text_search_template(&self, oid: Oid) -> Option<(&'static str, Arc<str>)> {
        let seed = seed!("pg_ts_template");
        let found = seed.rows().find(|r| r.oid("oid") == oid).map(|r| (r.str("tmplname"), r.oid("tmplinit")));
        found.and_then(|(name, init)| Some((name, self.function(init)?.source.clone())))
    }

    /// Functions with a bare name, those in earlier namespaces first. Of two with the same arguments the first one hides
    /// the other; that is left to the caller, who matches arguments anyway.
    pub fn find_functions<'a>(&'a self, path: &'a [Oid], name: &'a str) -> impl Iterator<Item = &'a Arc<Function>> {
        path.iter().flat_map(move |n| self.functions_by_name(*n, name))
    }

    /// Operators with a bare name, those in earlier namespaces first.
    pub fn find_operators<'a>(&'a self, path: &'a [Oid], name: &'a str) -> impl Iterator<Item = &'a Arc<Operator>> {
        path.iter().flat_map(move |n| self.operators_by_name(*n, name))
    }

    pub fn relation_is_visible(&self, relation: &Relation, path: &[Oid]) -> bool {
        self.find_relation(path, &relation.name).is_some_and(|r| r.oid == relation.oid)
    }

    pub fn function_is_visible(&self, function: &Function, path: &[Oid]) -> bool {
        let same = |f: &&Arc<Function>| f.arg_types == function.arg_types;
        self.find_functions(path, &function.name).find(same).is_some_and(|f| f.oid == function.oid)
    }

    pub fn operator_is_visible(&self, operator: &Operator, path: &[Oid]) -> bool {
        let same = |o: &&Arc<Operator>| (o.left, o.right) == (operator.left, operator.right);
        self.find_operators(path, &operator.name).find(same).is_some_and(|o| o.oid == operator.oid)
    }

    pub fn collation_is_visible(&self, collation: &Collation, path: &[Oid]) -> bool {
        self.find_collation(path, &collation.name).is_some_and(|c| c.oid == collation.oid)
    }

    /// `schema.name`, or `name` when the search path finds it.
    pub fn qualified(&self, visible: bool, namespace: Oid, name: &str) -> String {
        if visible {
            return quote_ident(name).into_owned();
        }
        let schema = self.namespace(namespace).map_or(Cow::Borrowed("\"\""), |n| quote_ident(&n.name));
        format!("{schema}.{}", quote_ident(name))
    }

    /// A relation's name as regclass prints it.
    pub fn relation_name(&self, relation: &Relation, path: &[Oid]) -> String {
        self.qualified(self.relation_is_visible(relation, path), relation.namespace, &relation.name)
    }

    /// `name(type, type)` as regprocedure prints it.
    pub fn function_signature(&self, function: &Function, path: &[Oid]) -> String {
        let name = self.qualified(self.function_is_visible(function, path), function.namespace, &function.name);
        let types: Vec<_> = function.arg_types.iter().map(|t| self.type_name(*t, path)).collect();
        format!("{name}({})", types.join(","))
    }

    /// `name(type,type)` as regoperator prints it.
    pub fn operator_signature(&self, operator: &Operator, path: &[Oid]) -> String {
        let side = |ty: Oid| if ty.is_valid() { self.type_name(ty, path) } else { "NONE".into() };
        let name = self.operator_name(operator, self.operator_is_visible(operator, path));
        format!("{name}({},{})", side(operator.left), side(operator.right))
    }

    fn operator_name(&self, operator: &Operator, visible: bool) -> String {
        if visible {
            return operator.name.to_string();
        }
        let schema = self.namespace(operator.namespace).map_or("", |n| &n.name);
        format!("{}.{}", quote_ident(schema), operator.name)
    }

    /// A type's SQL name. `typmod` `None`: no modifier was given at all, which differs from -1 for bit and char
    /// (`bpchar` against `character`). Types that `path` does not find are qualified.
    pub fn format_type(&self, ty: Oid, typmod: Option<i32>, path: &[Oid]) -> String {
        if !ty.is_valid() {
            return "-".into();
        }
        let Some(mut entry) = self.type_(ty) else { return "???".into() };
        let mut is_array = false;
        if &*entry.subscript == "array_subscript_handler" && entry.storage != b'p' && entry.element.is_valid() {
            let Some(element) = self.type_(entry.element) else { return "???[]".into() };
            entry = element;
            is_array = true;
        }
        let modifier = typmod.filter(|m| *m >= 0);
        let mut out = match standard_name(entry.oid, typmod, modifier) {
            Some(name) => name,
            None => {
                let mut name = if self.type_is_visible(entry, path) {
                    quote_ident(&entry.name).into_owned()
                } else {
                    let namespace = self.namespace(entry.namespace).map_or("", |n| &n.name);
                    format!("{}.{}", quote_ident(namespace), quote_ident(&entry.name))
                };
                if let Some(modifier) = modifier {
                    name.push_str(&format_type_modifier(&entry.typmod_out, modifier));
                }
                name
            }
        };
        if is_array {
            out.push_str("[]");
        }
        out
    }

    /// A type's name as error messages have it (PostgreSQL's format_type_be).
    pub fn type_name(&self, ty: Oid, path: &[Oid]) -> String {
        self.format_type(ty, None, path)
    }

    /// Whether the type's bare name finds it on the search path.
    pub fn type_is_visible(&self, ty: &Type, path: &[Oid]) -> bool {
        path.iter().find_map(|n| self.type_by_name(*n, &ty.name)).is_some_and(|t| t.oid == ty.oid)
    }
}

/// Output and input of the reg types.
impl Catalog {
    /// The text of a value of reg type `ty`: a name, or the number when nothing has the OID.
    pub fn reg_output(&self, ty: Oid, oid: Oid, path: &[Oid]) -> String {
        if !oid.is_valid() {
            return if ty == oids::REGOPER || ty == oids::REGOPERATOR { "0" } else { "-" }.into();
        }
        let name = match ty {
            oids::REGCLASS => self.relation(oid).map(|r| self.relation_name(r, path)),
            oids::REGTYPE => self.type_(oid).map(|_| self.type_name(oid, path)),
            oids::REGPROC => self.function(oid).map(|f| {
                let mut same_name = self.find_functions(path, &f.name);
                let only = same_name.next().is_some_and(|g| g.oid == oid) && same_name.next().is_none();
                self.qualified(only, f.namespace, &f.name)
            }),
            oids::REGPROCEDURE => self.function(oid).map(|f| self.function_signature(f, path)),
            oids::REGOPER => self.operator(oid).map(|o| {
                let mut same_name = self.find_operators(path, &o.name);
                let only = same_name.next().is_some_and(|p| p.oid == oid) && same_name.next().is_none();
                self.operator_name(o, only)
            }),
            oids::REGOPERATOR => self.operator(oid).map(|o| self.operator_signature(o, path)),
            oids::REGNAMESPACE => self.namespace(oid).map(|n| quote_ident(&n.name).into_owned()),
            oids::REGROLE => self.role(oid).map(|r| quote_ident(&r.name).into_owned()),
            oids::REGCOLLATION => {
                self.collation(oid).map(|c| self.qualified(self.collation_is_visible(c, path), c.namespace, &c.name))
            }
            oids::REGCONFIG => self.text_search_config(oid).map(|c| {
                let visible = self.find_text_search_config(path, &c.name).is_some_and(|found| found.oid == oid);
                self.qualified(visible, c.namespace, &c.name)
            }),
            oids::REGDICTIONARY => self.text_search_dictionary(oid).map(|d| {
                let visible = self.find_text_search_dictionary(path, &d.name).is_some_and(|found| found.oid == oid);
                self.qualified(visible, d.namespace, &d.name)
            }),
            _ => None,
        };
        name.unwrap_or_else(|| oid.to_string())
    }

    /// The OID for the text of a value of reg type `ty`: a number, `-`, or a name.
    ///
    /// # Errors
    /// As PostgreSQL's input functions: 42P01, 42704, 42883, 42725, 42602 and the like. to_regclass and its siblings turn
    /// errors into NULL.
    pub fn reg_input(&self, ty: Oid, text: &str, within: &NameScope<'_>) -> Result<Oid> {
        if text == "-" || (text == "0" && (ty == oids::REGOPER || ty == oids::REGOPERATOR)) {
            return Ok(Oid::INVALID);
        }
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            return numeric_oid(text);
        }
        match ty {
            oids::REGTYPE => parse_type(self, text, within),
            oids::REGPROCEDURE => self.parse_function_signature(text, within),
            oids::REGOPERATOR => self.parse_operator_signature(text, within),
            oids::REGOPER => self.parse_operator(text, within),
            oids::REGNAMESPACE | oids::REGROLE => {
                let [name] = &parse_qualified_name(text)?[..] else { bail!(INVALID_NAME, "invalid name syntax") };
                if ty == oids::REGROLE {
                    let role = self.role_by_name(name).map(|r| r.oid);
                    return role.ok_or_else(|| err!(UNDEFINED_OBJECT, "role \"{name}\" does not exist"));
                }
                let namespace = self.namespace_by_name(name).map(|n| n.oid);
                namespace.ok_or_else(|| err!(UNDEFINED_SCHEMA, "schema \"{name}\" does not exist"))
            }
            _ => {
                let names = parse_qualified_name(text)?;
                let scope = self.scope(&names, within)?;
                let name = names.last().map_or("", |n| n);
                self.parse_named(ty, &names.join("."), &scope, name)
            }
        }
    }

    /// The relation of a name, as has_table_privilege and the like read it.
    ///
    /// # Errors
    /// 42602 when the text is no name, 42601 for too many parts, 0A000 for a name in another database, 3F000, 42P01 when there is none.
    pub fn relation_input(&self, text: &str, within: &NameScope<'_>) -> Result<Oid> {
        let names = parse_qualified_name(text)?;
        let full = names.join(".");
        match &names[..] {
            [_, _, _, _, ..] => bail!(SYNTAX_ERROR, "improper relation name (too many dotted names): {full}"),
            [database, _, _] if self.is_other_database(database) => {
                bail!(FEATURE_NOT_SUPPORTED, "cross-database references are not implemented: \"{full}\"")
            }
            _ => {}
        }
        let scope = self.scope(&names, within)?;
        match &names[..] {
            [.., schema, _] if scope.is_empty() => bail!(UNDEFINED_SCHEMA, "schema \"{schema}\" does not exist"),
            [.., name] => self.parse_named(oids::REGCLASS, &full, &scope, name),
            [] => bail!(INVALID_NAME, "invalid name syntax"),
        }
    }

    fn parse_named(&self, ty: Oid, full: &str, scope: &[Oid], name: &str) -> Result<Oid> {
        match ty {
            oids::REGCLASS => {
                let found = self.find_relation(scope, name).map(|r| r.oid);
                found.ok_or_else(|| err!(UNDEFINED_TABLE, "relation \"{full}\" does not exist"))
            }
            oids::REGPROC => {
                let mut found = self.find_functions(scope, name);
                match (found.next(), found.next()) {
                    (Some(only), None) => Ok(only.oid),
                    (None, _) => bail!(UNDEFINED_FUNCTION, "function \"{full}\" does not exist"),
                    _ => bail!(AMBIGUOUS_FUNCTION, "more than one function named \"{full}\""),
                }
            }
            oids::REGCOLLATION => {
                let found = self.find_collation(scope, name).map(|c| c.oid);
                let error = || err!(UNDEFINED_OBJECT, "collation \"{full}\" for encoding \"UTF8\" does not exist");
                found.ok_or_else(error)
            }
            oids::REGCONFIG => self
                .find_text_search_config(scope, name)
                .map(|c| c.oid)
                .ok_or_else(|| err!(UNDEFINED_OBJECT, "text search configuration \"{full}\" does not exist")),
            oids::REGDICTIONARY => self
                .find_text_search_dictionary(scope, name)
                .map(|d| d.oid)
                .ok_or_else(|| err!(UNDEFINED_OBJECT, "text search dictionary \"{full}\" does not exist")),
            _ => Err(melba_types::DbError::internal(format!("type {ty} is no reg type"))),
        }
    }

    fn is_other_database(&self, name: &str) -> bool {
        self.database(self.database_oid()).is_none_or(|d| *d.name != *name)
    }

    /// The namespaces a name is looked up in: the path, or its qualification alone (empty when there is no such schema).
    fn scope<'a>(&self, names: &[String], within: &NameScope<'a>) -> Result<Cow<'a, [Oid]>> {
        let schema = match names {
            [] | [_] => return Ok(Cow::Borrowed(within.path)),
            [schema, _] => schema,
            [database, schema, _] => {
                if self.is_other_database(database) {
                    let full = names.join(".");
                    bail!(FEATURE_NOT_SUPPORTED, "cross-database references are not implemented: {full}");
                }
                schema
            }
            _ => bail!(SYNTAX_ERROR, "improper qualified name (too many dotted names): {}", names.join(".")),
        };
        Ok(Cow::Owned(within.schema(self, schema)?.into_iter().collect()))
    }

    fn parse_function_signature(&self, text: &str, within: &NameScope<'_>) -> Result<Oid> {
        let (names, types) = self.parse_signature(text, within, parse_qualified_name, false)?;
        let scope = self.scope(&names, within)?;
        let name = names.last().map_or("", |n| n);
        let found = self.find_functions(&scope, name).find(|f| f.arg_types == types);
        found.map(|f| f.oid).ok_or_else(|| err!(UNDEFINED_FUNCTION, "function \"{text}\" does not exist"))
    }

    fn parse_operator_signature(&self, text: &str, within: &NameScope<'_>) -> Result<Oid> {
        let (names, types) = self.parse_signature(text, within, operator_names, true)?;
        let (left, right) = match types[..] {
            [left, right] => (left, right),
            [_] => {
                let error = err!(UNDEFINED_PARAMETER, "missing argument");
                return Err(error.hint("Use NONE to denote the missing argument of a unary operator."));
            }
            _ => {
                let error = err!(TOO_MANY_ARGUMENTS, "too many arguments");
                return Err(error.hint("Provide two argument types for operator."));
            }
        };
        let scope = self.scope(&names, within)?;
        let name = names.last().map_or("", |n| n);
        let found = self.find_operators(&scope, name).find(|o| (o.left, o.right) == (left, right));
        found.map(|o| o.oid).ok_or_else(|| err!(UNDEFINED_FUNCTION, "operator does not exist: {text}"))
    }

    fn parse_operator(&self, text: &str, within: &NameScope<'_>) -> Result<Oid> {
        let names = operator_names(text)?;
        let scope = self.scope(&names, within)?;
        let mut found = self.find_operators(&scope, names.last().map_or("", |n| n));
        match (found.next(), found.next()) {
            (Some(only), None) => Ok(only.oid),
            (None, _) => bail!(UNDEFINED_FUNCTION, "operator does not exist: {text}"),
            _ => bail!(AMBIGUOUS_FUNCTION, "more than one operator named {text}"),
        }
    }

    /// Splits `name(type, type)`.
    fn parse_signature(
        &self,
        text: &str,
        within: &NameScope<'_>,
        name: impl Fn(&str) -> Result<Vec<String>>,
        allow_none: bool,
    ) -> Result<(Vec<String>, Vec<Oid>)> {
        let mut in_quote = false;
        let open = text.find(|c| {
            in_quote ^= c == '"';
            c == '(' && !in_quote
        });
        let Some(open) = open else { bail!(INVALID_TEXT_REPRESENTATION, "expected a left parenthesis") };
        let names = name(&text[..open])?;
        let Some(list) = text[open + 1..].trim_end_matches(names::is_space).strip_suffix(')') else {
            bail!(INVALID_TEXT_REPRESENTATION, "expected a right parenthesis");
        };
        let mut types = Vec::new();
        if !list.trim_matches(names::is_space).is_empty() {
            for item in split_types(list)? {
                let item = item.trim_matches(names::is_space);
                if item.is_empty() {
                    bail!(INVALID_TEXT_REPRESENTATION, "expected a type name");
                }
                let none = allow_none && item.eq_ignore_ascii_case("none");
                types.push(if none { Oid::INVALID } else { parse_type(self, item, within)? });
            }
        }
        Ok((names, types))
    }
}

/// Splits at commas that are neither quoted nor in parentheses.
fn split_types(list: &str) -> Result<Vec<&str>> {
    let mut out = Vec::new();
    let (mut in_quote, mut depth, mut start) = (false, 0, 0);
    for (at, c) in list.char_indices() {
        match c {
            '"' => in_quote = !in_quote,
            _ if in_quote => {}
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                out.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if in_quote || depth != 0 {
        bail!(INVALID_TEXT_REPRESENTATION, "improper type name");
    }
    out.push(&list[start..]);
    Ok(out)
}

/// An operator's name, which may be qualified: everything after the last part's dot is the operator.
fn operator_names(text: &str) -> Result<Vec<String>> {
    let text = text.trim_matches(names::is_space);
    match text.rfind('.') {
        None => Ok(vec![text.to_owned()]),
        Some(dot) => {
            let mut names = parse_qualified_name(&text[..dot])?;
            names.push(text[dot + 1..].to_owned());
            Ok(names)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::{PG_CATALOG, PUBLIC};

    #[test]
    fn names_become_oids_and_back() {
        let c = Catalog::default();
        let path = [PG_CATALOG, PUBLIC];
        let within = NameScope { path: &path, user: classes::POSTGRES_ROLE, temporary: Oid::INVALID };
        for (ty, text, oid) in [
            (oids::REGCLASS, "pg_class", 1259),
            (oids::REGTYPE, "integer[]", 1007),
            (oids::REGPROC, "boolin", 1242),
            (oids::REGPROCEDURE, "substr(text,integer,integer)", 877),
            (oids::REGOPERATOR, "+(integer,integer)", 551),
            (oids::REGOPERATOR, "-(NONE,bigint)", 484),
            (oids::REGOPER, "||/", 597),
            (oids::REGNAMESPACE, "pg_catalog", 11),
            (oids::REGROLE, "postgres", 10),
            (oids::REGCOLLATION, "\"C\"", 950),
            (oids::REGCONFIG, "simple", 3748),
            (oids::REGCLASS, "-", 0),
            (oids::REGCLASS, "123456", 123456),
        ] {
            assert_eq!(c.reg_input(ty, text, &within).expect(text), Oid(oid), "{text}");
            assert_eq!(c.reg_output(ty, Oid(oid), &path), text);
        }
        assert_eq!(c.reg_output(oids::REGCLASS, Oid(1259), &[PUBLIC]), "pg_catalog.pg_class");
        assert_eq!(c.reg_output(oids::REGPROC, Oid(870), &path), "pg_catalog.lower");
    }

    #[test]
    fn unknown_names_are_refused_as_postgresql_does() {
        let c = Catalog::default();
        let within = NameScope { path: &[PG_CATALOG], user: classes::POSTGRES_ROLE, temporary: Oid::INVALID };
        let error = |ty, text| c.reg_input(ty, text, &within).expect_err(text);
        assert_eq!(error(oids::REGCLASS, "a.\"B\"").message(), "relation \"a.B\" does not exist");
        assert_eq!(error(oids::REGPROCEDURE, "lower").message(), "expected a left parenthesis");
        assert_eq!(error(oids::REGOPERATOR, "+(int4)").message(), "missing argument");
        assert_eq!(error(oids::REGPROC, "lower").message(), "more than one function named \"lower\"");
        assert_eq!(error(oids::REGROLE, "x").sqlstate().to_string(), "42704");
        assert_eq!(error(oids::REGNAMESPACE, "a.b").sqlstate().to_string(), "42602");
    }
}
