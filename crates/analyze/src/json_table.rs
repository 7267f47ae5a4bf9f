//! JSON_TABLE.

use std::sync::Arc;

use melba_catalog::TypeKind;
use melba_types::json::write_string;
use melba_types::{Datum, DbError, Oid, Result, err, oids};
use pg_query::NodeEnum;
use pg_query::protobuf as pb;

use super::analyzer::Analyzer;
use super::context::Context;
use super::json::WantedJson;
use super::json_query::{PathCall, behavior_kind};
use super::range_columns::apply_aliases;
use super::scope::{ExprKind, NsItem};
use super::{json, json_query};
use melba_tree::*;

/// State that the columns of one JSON_TABLE share.
struct Columns<'p> {
    passing: &'p [pb::Node],
    /// Names of columns and paths: each stands for one thing.
    names: Vec<Arc<str>>,
    unnamed_paths: usize,
    columns: Vec<JsonTableColumn>,
}

pub fn json_table_item<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::JsonTable) -> Result<NsItem> {
    // A literal that became a parameter could not be a path, which is read here.
    analyzer.literals().refuse();
    let on_error = n.on_error.as_deref().map_or(JsonBehaviorKind::EmptyArray, behavior_kind);
    if !matches!(on_error, JsonBehaviorKind::Error | JsonBehaviorKind::Empty | JsonBehaviorKind::EmptyArray) {
        return Err(err!(SYNTAX_ERROR, "invalid ON ERROR behavior")
            .detail("Only EMPTY [ ARRAY ] or ERROR is allowed in the top-level ON ERROR clause.")
            .at(n.on_error.as_ref().map_or(-1, |b| b.location)));
    }
    let spec = n.pathspec.as_deref().ok_or_else(|| DbError::internal("JSON_TABLE without a path"))?;
    let mut shared = Columns { passing: &n.passing, names: Vec::new(), unnamed_paths: 0, columns: Vec::new() };
    let name = shared.path_name(spec);
    shared.names.push(name.clone());
    shared.check_names(&n.columns)?;
    let saved = std::mem::replace(&mut analyzer.level_mut().lateral_active, true);
    let table = analyzer.with_kind(ExprKind::FromFunction, |a| {
        let wanted = WantedJson { format: JsonFormatKind::Jsonb, ty: Some(oids::JSONB), passing: false };
        let item = json::value(a, n.context_item.as_deref(), wanted)?;
        let passing = json_query::json_passing(a, &n.passing)?;
        let root = json_table_path(a, &mut shared, spec, name, &n.columns)?;
        Ok(JsonTable { item, passing, on_error, root, columns: std::mem::take(&mut shared.columns) })
    });
    analyzer.level_mut().lateral_active = saved;
    json_table_entry(analyzer, n, table?)
}

fn json_table_entry<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::JsonTable, table: JsonTable) -> Result<NsItem> {
    let mut columns: Vec<OutputColumn> = table.columns.iter().map(|c| c.column.clone()).collect();
    let alias = n.alias.as_ref();
    let name: Arc<str> = alias.map_or("json_table", |a| &a.aliasname).into();
    if let Some(alias) = alias {
        let (available, given) = (columns.len(), alias.colnames.len());
        if given > available {
            return Err(err!(
                INVALID_COLUMN_REFERENCE,
                "JSON_TABLE function has {available} columns available but {given} columns specified"
            ));
        }
        apply_aliases(&mut columns, &alias.colnames, &name)?;
    }
    let kind = RangeKind::JsonTable(Box::new(table));
    let mut entry = RangeEntry {
        kind,
        alias: alias.map(|_| name.clone()),
        name: name.clone(),
        columns,
        lateral: n.lateral,
        in_from: true,
        required: Privileges::default(),
        security: Vec::new(),
    };
    if let RangeKind::JsonTable(table) = &entry.kind {
        let values = table.columns.iter().filter_map(|c| c.value.as_ref());
        let mut inputs = table.passing.iter().map(|(_, v)| v).chain(values).chain([&table.item]);
        entry.lateral |= inputs.any(Expr::has_vars);
    }
    let entry = analyzer.add_entry(entry);
    Ok(NsItem::new(entry, name))
}

/// A path with its own columns, then those of the paths that are nested in it.
fn json_table_path<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    shared: &mut Columns<'p>,
    spec: &'p pb::JsonTablePathSpec,
    name: Arc<str>,
    columns: &'p [pb::Node],
) -> Result<JsonTablePath> {
    let first = shared.columns.len();
    let mut ordinality = false;
    for node in columns {
        let Some(NodeEnum::JsonTableColumn(c)) = &node.node else { continue };
        match pb::JsonTableColumnType::try_from(c.coltype) {
            Ok(pb::JsonTableColumnType::JtcNested) => continue,
            Ok(pb::JsonTableColumnType::JtcForOrdinality) => {
                if std::mem::replace(&mut ordinality, true) {
                    return Err(err!(SYNTAX_ERROR, "only one FOR ORDINALITY column is allowed").at(c.location));
                }
                let name = c.name.as_str().into();
                let column = OutputColumn { name, ty: oids::INT4, typmod: -1, collation: Oid::INVALID };
                shared.columns.push(JsonTableColumn { column, value: None });
            }
            _ => {
                let column = json_table_column(analyzer, c, shared.passing)?;
                shared.columns.push(column);
            }
        }
    }
    let own = first..shared.columns.len();
    let mut nested = Vec::new();
    for node in columns {
        let Some(NodeEnum::JsonTableColumn(c)) = &node.node else { continue };
        if let Some(spec) = c.pathspec.as_deref()
            && c.coltype == pb::JsonTableColumnType::JtcNested as i32
        {
            let name = shared.path_name(spec);
            nested.push(json_table_path(analyzer, shared, spec, name, &c.columns)?);
        }
    }
    let path = analyzer.cx().input(oids::JSONPATH, -1, path_text(spec)?)?;
    let path = Expr::Const(Const { value: path, ty: oids::JSONPATH, typmod: -1, collation: Oid::INVALID, location: -1 });
    Ok(JsonTablePath { path, name, columns: own, nested })
}

fn json_table_column<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    c: &'p pb::JsonTableColumn,
    passing: &'p [pb::Node],
) -> Result<JsonTableColumn> {
    let type_name = c.type_name.as_ref().ok_or_else(|| DbError::internal("column of JSON_TABLE without a type"))?;
    let queries = c.coltype == pb::JsonTableColumnType::JtcFormatted as i32
        || c.quotes != pb::JsonQuotes::JsQuotesUnspec as i32
        || c.wrapper != pb::JsonWrapper::JswUnspec as i32
        || is_json_container(analyzer.cx(), analyzer.cx().transform_type_name(type_name)?.0);
    let operation = match c.coltype == pb::JsonTableColumnType::JtcExists as i32 {
        true => JsonOperation::Exists,
        false if queries => JsonOperation::Query,
        false => JsonOperation::Value,
    };
    let path = match c.pathspec.as_deref() {
        Some(spec) => path_text(spec)?.to_owned(),
        None => default_path(&c.name)?,
    };
    let location = c.pathspec.as_ref().map_or(-1, |p| p.location);
    let path = json_query::json_path(
        analyzer,
        Expr::Const(Const { value: Datum::text(path), ty: oids::UNKNOWN, typmod: -1, collation: Oid::INVALID, location }),
    )?;
    let returning = Some(json::returning_of(analyzer.cx(), type_name, c.format.as_ref(), false)?);
    let value = json_query::column_call(
        analyzer,
        PathCall {
            operation,
            column: Some(&c.name),
            item: Expr::CaseTest { ty: oids::JSONB, typmod: -1, collation: Oid::INVALID },
            path,
            passing,
            returning,
            wrapper: c.wrapper,
            quotes: c.quotes,
            on_empty: c.on_empty.as_deref(),
            on_error: c.on_error.as_deref(),
            location: c.location,
        },
    )?;
    let (ty, typmod, collation) = (value.ty(), value.typmod(), value.collation());
    let column = OutputColumn { name: c.name.as_str().into(), ty, typmod, collation };
    Ok(JsonTableColumn { column, value: Some(value) })
}

/// Whether a column of the type holds more than a scalar, so that it is read as JSON_QUERY does.
fn is_json_container(cx: &Context<'_>, ty: Oid) -> bool {
    let base = cx.base_type(ty);
    matches!(base, oids::JSON | oids::JSONB | oids::RECORD)
        || cx.catalog.array_element(base).is_some()
        || cx.catalog.type_(base).is_some_and(|t| t.type_kind == TypeKind::Composite)
}

impl Columns<'_> {
    /// The given name of a path, or a generated one.
    fn path_name(&mut self, spec: &pb::JsonTablePathSpec) -> Arc<str> {
        if !spec.name.is_empty() {
            return spec.name.as_str().into();
        }
        let name: Arc<str> = format!("json_table_path_{}", self.unnamed_paths).into();
        self.unnamed_paths += 1;
        self.names.push(name.clone());
        name
    }

    fn check_names(&mut self, columns: &[pb::Node]) -> Result<()> {
        for node in columns {
            let Some(NodeEnum::JsonTableColumn(c)) = &node.node else { continue };
            if c.coltype != pb::JsonTableColumnType::JtcNested as i32 {
                self.add_name(&c.name, c.location)?;
                continue;
            }
            if let Some(spec) = c.pathspec.as_deref().filter(|spec| !spec.name.is_empty()) {
                self.add_name(&spec.name, spec.name_location)?;
            }
            self.check_names(&c.columns)?;
        }
        Ok(())
    }

    fn add_name(&mut self, name: &str, location: i32) -> Result<()> {
        if self.names.iter().any(|n| **n == *name) {
            return Err(err!(DUPLICATE_ALIAS, "duplicate JSON_TABLE column or path name: {name}").at(location));
        }
        self.names.push(name.into());
        Ok(())
    }
}

fn path_text(spec: &pb::JsonTablePathSpec) -> Result<&str> {
    let constant = match spec.string.as_deref().and_then(|n| n.node.as_ref()) {
        Some(NodeEnum::AConst(constant)) => constant.val.as_ref(),
        _ => None,
    };
    match constant {
        Some(pb::a_const::Val::Sval(text)) => Ok(&text.sval),
        _ => Err(DbError::internal("path of JSON_TABLE is no string")),
    }
}

/// The path of a column that has none: the field of its name.
fn default_path(name: &str) -> Result<String> {
    let mut path = b"$.".to_vec();
    write_string(name, &mut path)?;
    String::from_utf8(path).map_err(|_| DbError::internal("name of a column is not UTF-8"))
}
