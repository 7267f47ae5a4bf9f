//! Analyzed trees back to SQL, in the form that PostgreSQL's pg_get_expr, pg_get_viewdef and similar functions print.
//!
//! The same printer makes the text that the catalog stores (every name qualified, so that it means the same under any
//! search_path) and the text that clients see (names qualified only where the search path does not find them).

mod columns;
mod constant;
mod expr;
mod from;
mod json;
mod modify;
mod operator;
mod query;
mod rule;

use std::sync::Arc;

use melba_catalog::{Catalog, Relation, classes};
use melba_fmgr::Session;
use melba_types::{Datum, Oid};

use melba_analyze::{Context, RoutineScope, relation_columns};
use melba_tree::{ArrayExpr, Command, Const, Expr, Query, RangeEntry, RangeKind};

pub use modify::unprintable;
pub use rule::shown_rule;

/// How wide the layout's steps are (PostgreSQL's PRETTYINDENT_*).
const INDENT_STANDARD: i32 = 8;
const INDENT_JOIN: i32 = 4;
const INDENT_VAR: i32 = 4;
/// Deeper levels are not indented further.
const INDENT_LIMIT: i32 = 40;

/// Prints trees.
struct Printer<'a> {
    catalog: &'a Catalog,
    session: &'a dyn Session,
    path: &'a [Oid],
    /// Leave out parentheses that are not needed (the `pretty` of pg_get_viewdef).
    drop_parens: bool,
    backslashes: Backslashes,
    /// Objects in literals (of type regclass and similar ones) are written as their OIDs, which no rename changes.
    oids: bool,
    out: String,
    indent: i32,
    /// Names of the enclosing queries' range entries, innermost last.
    levels: Vec<PrintLevel<'a>>,
    /// The table whose columns level 0 refers to when there is no query.
    relation: Option<&'a Relation>,
    /// Columns are printed with their table's name.
    qualify: bool,
    /// The function whose arguments parameters are.
    routine: Option<&'a RoutineScope>,
    /// The next query's column names are not visible.
    hide_names: bool,
    /// The names of the next query's columns, where they are not its own: those of a view.
    result_names: Option<Arc<[Arc<str>]>>,
    masked: Masked,
}

/// A constant that is printed only as its type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Masked {
    Nothing,
    Constants,
    /// Parameters stand for constants, too.
    Parameters,
}

/// How literals with backslashes are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Backslashes {
    /// As E'...', which has the same meaning under all settings.
    Escaped,
    /// Plain.
    Conforming,
    /// Plain and doubled, for sessions without standard_conforming_strings.
    Doubled,
}

impl Backslashes {
    /// For a client that reads under its own settings.
    fn shown_to(session: &dyn Session) -> Backslashes {
        let off = session.setting("standard_conforming_strings").is_some_and(|s| s == "off");
        if off { Backslashes::Doubled } else { Backslashes::Conforming }
    }
}

/// A query being printed.
struct PrintLevel<'a> {
    query: &'a Query,
    names: Vec<Arc<str>>,
    hide_names: bool,
    result_names: Option<Arc<[Arc<str>]>>,
}

/// The stored form of an expression over a table's columns.
pub fn expression(cx: &Context<'_>, expr: &Expr, relation: Option<&Relation>) -> String {
    let path = [classes::PG_CATALOG];
    expression_of(Printer::stored(cx, &path), expr, relation)
}

fn expression_of<'a>(mut printer: Printer<'a>, expr: &'a Expr, relation: Option<&'a Relation>) -> String {
    let has_query = expr.any(&mut |e| matches!(e, Expr::Sublink(_)));
    match relation {
        // Queries in it name the table's columns with its name, and take names beside that.
        Some(table) if has_query => {
            let entry = RangeEntry {
                kind: RangeKind::Relation { oid: table.oid, inherit: true, sample: None },
                alias: None,
                name: table.name.clone(),
                columns: relation_columns(table),
                ..RangeEntry::default()
            };
            let over = Query { range_table: vec![entry], ..Query::new(Command::Select) };
            let names = vec![table.name.clone()];
            let mut within = Printer {
                out: String::new(),
                levels: vec![PrintLevel { query: &over, names, hide_names: false, result_names: None }],
                ..printer
            };
            within.expr(expr, false);
            within.out
        }
        _ => {
            printer.relation = relation;
            printer.expr(expr, false);
            printer.out
        }
    }
}

/// The default of a domain, which clients see in its stored form: with qualified names.
pub fn domain_default(cx: &Context<'_>, expr: &Expr) -> String {
    let path = [classes::PG_CATALOG];
    let mut printer = Printer::new(cx.catalog, cx.session, &path, false);
    printer.expr(expr, false);
    printer.out
}

/// An expression over a table's columns for clients: names qualified by need.
pub fn shown_expression(cx: &Context<'_>, expr: &Expr, relation: Option<&Relation>, pretty: bool) -> String {
    expression_of(Printer::shown(cx, pretty), expr, relation)
}

/// The condition of a trigger for the catalog: `over` has the table's old and new rows as its entries.
pub fn trigger_condition(cx: &Context<'_>, condition: &Expr, over: &Query) -> String {
    let path = [classes::PG_CATALOG];
    condition_over(Printer::stored(cx, &path), condition, over)
}

/// The condition of a trigger for clients.
pub fn shown_trigger_condition(cx: &Context<'_>, condition: &Expr, over: &Query, pretty: bool) -> String {
    condition_over(Printer::shown(cx, pretty), condition, over)
}

fn condition_over<'a>(mut printer: Printer<'a>, condition: &'a Expr, over: &'a Query) -> String {
    let names = over.range_table.iter().map(|e| e.name.clone()).collect();
    printer.levels.push(PrintLevel { query: over, names, hide_names: false, result_names: None });
    printer.qualify = true;
    printer.expr(condition, false);
    printer.out
}

/// An expression of a plan, with schemas where the search path does not find a name: `levels` are the queries around it, outermost
/// first, of which only the range tables and the windows matter. `qualify`: columns have their relations' names.
pub fn plan_expression(catalog: &Catalog, session: &dyn Session, levels: &[Query], qualify: bool, expr: &Expr) -> String {
    let path = session.search_path();
    in_plan(Printer::new(catalog, session, &path, false), levels, qualify, |printer| printer.expr(expr, false))
}

/// The window of a plan, which is one of the innermost query, as EXPLAIN prints it.
pub fn plan_window(catalog: &Catalog, session: &dyn Session, levels: &[Query], qualify: bool, window: usize) -> String {
    let path = session.search_path();
    in_plan(Printer::new(catalog, session, &path, false), levels, qualify, |printer| {
        let Some((window, query)) = levels.last().and_then(|query| Some((query.windows.get(window)?, query))) else { return };
        printer.ident(window.name.as_deref().unwrap_or_default());
        printer.put(" AS ");
        printer.window_specification(window, &query.targets);
    })
}

fn in_plan<'a>(mut printer: Printer<'a>, levels: &'a [Query], qualify: bool, print: impl FnOnce(&mut Printer<'a>)) -> String {
    printer.backslashes = Backslashes::shown_to(printer.session);
    for query in levels {
        let names = printer.entry_names(query);
        printer.levels.push(PrintLevel { query, names, hide_names: false, result_names: None });
    }
    printer.qualify = qualify;
    print(&mut printer);
    printer.out
}

/// The stored form of a view's query.
pub fn stored_query(cx: &Context<'_>, query: &Query) -> String {
    let path = [classes::PG_CATALOG];
    let mut printer = Printer::stored(cx, &path);
    printer.query(query);
    printer.out
}

/// A query without its constants, for telling queries apart: names are qualified, constants are their types, and a list of constants
/// is as one of two. `has_literals`: parameters are constants, too.
pub fn identifying_text(cx: &Context<'_>, query: &Query, has_literals: bool) -> String {
    let path = [classes::PG_CATALOG];
    let masked = if has_literals { Masked::Parameters } else { Masked::Constants };
    let mut printer = Printer { masked, hide_names: true, ..Printer::stored(cx, &path) };
    if unprintable(query).is_some() {
        return masked_tree(query, has_literals);
    }
    printer.query(query);
    printer.out
}

/// Whether an array is shown as a list of any length: it has several constants and nothing else.
pub fn is_list_of_constants(a: &ArrayExpr, has_literals: bool) -> bool {
    let is_constant = |e: &Expr| e.constant_location().is_some() && (has_literals || !matches!(e, Expr::Param(_)));
    a.elements.len() > 1 && a.elements.iter().all(is_constant)
}

/// The same of a query that has no text: its tree.
fn masked_tree(query: &Query, has_literals: bool) -> String {
    let mut query = query.clone();
    query.clear_locations();
    query.visit_mut(0, &mut |e, _| {
        match e {
            Expr::Const(c) => c.value = Datum::Null,
            Expr::Param(p) if has_literals => {
                let (ty, typmod, collation) = (p.ty, p.typmod, p.collation);
                *e = Expr::Const(Const { value: Datum::Null, ty, typmod, collation, location: -1 });
            }
            _ => {}
        }
        true
    });
    format!("{query:?}")
}

/// A view's query as pg_get_viewdef shows it.
pub fn shown_query(cx: &Context<'_>, query: &Query, pretty: bool) -> String {
    let mut printer = Printer::shown(cx, pretty);
    printer.result_names = Some(query.targets.iter().filter(|t| !t.junk).map(|t| t.name.clone()).collect());
    printer.query(query);
    printer.out.push(';');
    printer.out
}

/// The stored form of a body RETURN ... or BEGIN ATOMIC ... END.
pub fn stored_body(cx: &Context<'_>, queries: &[Query], scope: &RoutineScope, is_return: bool) -> String {
    let path = [classes::PG_CATALOG];
    body(Printer::stored(cx, &path), queries, scope, is_return)
}

/// A body RETURN ... or BEGIN ATOMIC ... END as pg_get_function_sqlbody shows it.
pub fn shown_body(cx: &Context<'_>, queries: &[Query], scope: &RoutineScope, is_return: bool) -> String {
    body(Printer::new(cx.catalog, cx.session, cx.search_path, false), queries, scope, is_return)
}

fn body<'a>(mut printer: Printer<'a>, queries: &'a [Query], scope: &'a RoutineScope, is_return: bool) -> String {
    printer.routine = Some(scope);
    if is_return
        && let [one] = queries
        && let [target] = &one.targets[..]
    {
        printer.put("RETURN ");
        printer.expr(&target.expr, false);
        return printer.out;
    }
    printer.put("BEGIN ATOMIC\n");
    for query in queries {
        let text = printer.apart(|p| {
            p.indent = 1;
            p.hide_names = true;
            p.query(query);
        });
        let text = text.trim_start_matches('\n');
        printer.put(text);
        printer.put(";\n");
    }
    printer.put("END");
    printer.out
}

impl<'a> Printer<'a> {
    fn new(catalog: &'a Catalog, session: &'a dyn Session, path: &'a [Oid], drop_parens: bool) -> Printer<'a> {
        Printer {
            catalog,
            session,
            path,
            drop_parens,
            backslashes: Backslashes::Escaped,
            oids: false,
            out: String::new(),
            indent: 0,
            levels: Vec::new(),
            relation: None,
            qualify: false,
            routine: None,
            hide_names: false,
            result_names: None,
            masked: Masked::Nothing,
        }
    }

    /// For the catalog.
    fn stored(cx: &Context<'a>, path: &'a [Oid]) -> Printer<'a> {
        Printer { oids: true, ..Printer::new(cx.catalog, cx.session, path, false) }
    }

    /// For clients, in a session's own path and settings.
    fn shown(cx: &Context<'a>, drop_parens: bool) -> Printer<'a> {
        let backslashes = Backslashes::shown_to(cx.session);
        Printer { backslashes, ..Printer::new(cx.catalog, cx.session, cx.search_path, drop_parens) }
    }

    fn literal(&mut self, text: &str) {
        let quoted = match self.backslashes {
            Backslashes::Escaped => melba_catalog::quote_literal(text),
            Backslashes::Conforming => format!("'{}'", text.replace('\'', "''")),
            Backslashes::Doubled => format!("'{}'", text.replace('\'', "''").replace('\\', "\\\\")),
        };
        self.out.push_str(&quoted);
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn ident(&mut self, name: &str) {
        let quoted = melba_catalog::quote_ident(name);
        self.out.push_str(&quoted);
    }

    /// A clause on a separate line: the level moves by `before`, the line is indented to the level plus `plus`, the keyword
    /// follows, and the level moves by `after`.
    fn keyword(&mut self, text: &str, before: i32, after: i32, plus: i32) {
        self.indent += before;
        self.out.truncate(self.out.trim_end_matches(' ').len());
        self.out.push('\n');
        let level = self.indent.max(0);
        let spaces = if level < INDENT_LIMIT { level } else { INDENT_LIMIT + (level - INDENT_LIMIT) % INDENT_LIMIT / 4 };
        self.out.extend(std::iter::repeat_n(' ', (spaces + plus).max(0) as usize));
        self.out.push_str(text);
        self.indent = (self.indent + after).max(0);
    }

    /// Runs `f` with an empty output and returns its output.
    fn apart(&mut self, f: impl FnOnce(&mut Self)) -> String {
        let saved = std::mem::take(&mut self.out);
        f(self);
        std::mem::replace(&mut self.out, saved)
    }

    /// Appends an item of a list whose items after the first start new lines (targets, FROM items).
    fn put_wrapped(&mut self, item: &str, first: bool) {
        if item.starts_with('\n') {
            self.out.truncate(self.out.trim_end_matches(' ').len());
        } else if !first {
            self.keyword("", -INDENT_STANDARD, INDENT_STANDARD, INDENT_VAR);
        }
        self.out.push_str(item);
    }

    /// A constant of which only the type is printed.
    fn mask(&mut self, ty: Oid) {
        self.put(&format!("?{ty}"));
    }

    /// A function's argument by its name, if it has one; with the function's where a column could be meant.
    fn parameter(&mut self, number: usize) {
        let routine = self.routine.and_then(|r| Some((r, r.arg_names.get(number - 1).filter(|n| !n.is_empty())?)));
        let Some((routine, name)) = routine else { return self.put(&format!("${number}")) };
        if self.levels.iter().any(|l| !l.query.range_table.is_empty()) {
            self.ident(&routine.name);
            self.put(".");
        }
        self.ident(name);
    }

    fn type_name(&self, ty: Oid, typmod: i32) -> String {
        self.catalog.format_type(ty, Some(typmod), self.path)
    }

    fn relation_name(&self, relation: &Relation) -> String {
        let found = self.path.iter().find_map(|ns| self.catalog.relation_by_name(*ns, &relation.name));
        self.catalog.qualified(found.is_some_and(|f| f.oid == relation.oid), relation.namespace, &relation.name)
    }

    fn function_name(&self, oid: Oid) -> String {
        let Some(function) = self.catalog.function(oid) else { return "???".into() };
        let name = melba_catalog::quote_ident(&function.name);
        let visible = self.path.iter().find_map(|ns| self.catalog.functions_by_name(*ns, &function.name).next());
        if visible.is_some_and(|f| f.namespace == function.namespace) {
            return name.into_owned();
        }
        let namespace = self.catalog.namespace(function.namespace).map_or("", |n| &n.name);
        format!("{}.{name}", melba_catalog::quote_ident(namespace))
    }

    fn operator_name(&self, oid: Oid) -> String {
        let Some(operator) = self.catalog.operator(oid) else { return "???".into() };
        if operator.namespace == classes::PG_CATALOG || self.path.contains(&operator.namespace) {
            return operator.name.to_string();
        }
        let namespace = self.catalog.namespace(operator.namespace).map_or("", |n| &n.name);
        format!("OPERATOR({}.{})", melba_catalog::quote_ident(namespace), operator.name)
    }
}
