//! SQL/JSON: constructors, query functions, JSON_TABLE.

use std::sync::Arc;

use melba_types::{Oid, oids};

use super::constant::ShowType;
use super::{INDENT_VAR, Printer, constant};
use melba_tree::*;

pub(super) fn json_value<'a>(printer: &mut Printer<'a>, v: &'a JsonValue) {
    printer.expr(&v.arg, false);
    let text = format_text(v.format);
    printer.put(&text);
}

/// `by_default`: FORMAT is left out where it is the type's own.
fn returning_text(printer: &Printer<'_>, returning: JsonReturning, by_default: bool) -> String {
    let own = if returning.ty == oids::JSONB { JsonFormatKind::Jsonb } else { JsonFormatKind::Json };
    let ty = printer.type_name(returning.ty, returning.typmod);
    let format = if by_default && returning.format.kind == own { String::new() } else { format_text(returning.format) };
    format!(" RETURNING {ty}{format}")
}

pub(super) fn json_constructor<'a>(printer: &mut Printer<'a>, c: &'a JsonConstructor) {
    use JsonConstructorKind::*;
    let options = constructor_options(printer, c);
    let (name, separator) = match c.kind {
        Object => ("JSON_OBJECT", ""),
        Array => ("JSON_ARRAY", ""),
        ObjectAggregate => ("JSON_OBJECTAGG", " : "),
        ArrayAggregate => ("JSON_ARRAYAGG", ", "),
        Parse => ("JSON", ""),
        Scalar => ("JSON_SCALAR", ""),
        Serialize => ("JSON_SERIALIZE", ""),
    };
    match &c.function {
        Some(Expr::Aggregate(a)) => return printer.aggregate_as(name, a, separator, &options),
        Some(Expr::Window(w)) => return printer.window_as(name, w, separator, &options),
        // An operator below has computed it.
        Some(function) => return printer.expr(function, false),
        None => {}
    }
    printer.put(name);
    printer.put("(");
    for (i, arg) in c.args.iter().enumerate() {
        if i > 0 {
            printer.put(if c.kind == Object && i % 2 == 1 { " : " } else { ", " });
        }
        printer.expr(arg, true);
    }
    printer.put(&options);
    printer.put(")");
}

fn constructor_options(printer: &Printer<'_>, c: &JsonConstructor) -> String {
    use JsonConstructorKind::*;
    let mut options = String::new();
    match c.kind {
        Object | ObjectAggregate if c.absent_on_null => options += " ABSENT ON NULL",
        Array | ArrayAggregate if !c.absent_on_null => options += " NULL ON NULL",
        _ => {}
    }
    if c.unique_keys {
        options += " WITH UNIQUE KEYS";
    }
    if !matches!(c.kind, Parse | Scalar) {
        options += &returning_text(printer, c.returning, true);
    }
    options
}

pub(super) fn is_json<'a>(printer: &mut Printer<'a>, e: &'a Expr, test: &'a IsJson) {
    printer.in_parens(|p| {
        p.operand(&test.arg, e, false);
        p.put(match test.item {
            JsonItemType::Any => " IS JSON",
            JsonItemType::Object => " IS JSON OBJECT",
            JsonItemType::Array => " IS JSON ARRAY",
            JsonItemType::Scalar => " IS JSON SCALAR",
        });
        if test.unique_keys {
            p.put(" WITH UNIQUE KEYS");
        }
    });
}

pub(super) fn json_query<'a>(printer: &mut Printer<'a>, j: &'a JsonExpr, show_implicit: bool) {
    printer.put(match j.operation {
        JsonOperation::Exists => "JSON_EXISTS(",
        JsonOperation::Query => "JSON_QUERY(",
        JsonOperation::Value => "JSON_VALUE(",
    });
    printer.expr(&j.item, show_implicit);
    printer.put(", ");
    json_path(printer, &j.path, show_implicit);
    for (i, (name, value)) in j.passing.iter().enumerate() {
        printer.put(if i == 0 { " PASSING " } else { ", " });
        printer.expr(value, show_implicit);
        printer.put(" AS ");
        printer.ident(name);
    }
    if j.operation != JsonOperation::Exists || j.returning.ty != oids::BOOL {
        let text = returning_text(printer, j.returning, j.operation == JsonOperation::Query);
        printer.put(&text);
    }
    json_options(printer, j);
    printer.put(")");
}

fn json_path<'a>(printer: &mut Printer<'a>, path: &'a Expr, show_implicit: bool) {
    match path {
        Expr::Const(c) => constant::constant(printer, c, ShowType::Never),
        other => printer.expr(other, show_implicit),
    }
}

fn json_options<'a>(printer: &mut Printer<'a>, j: &'a JsonExpr) {
    if j.operation == JsonOperation::Query {
        printer.put(match j.wrapper {
            JsonWrapper::None => " WITHOUT WRAPPER",
            JsonWrapper::Conditional => " WITH CONDITIONAL WRAPPER",
            JsonWrapper::Unconditional => " WITH UNCONDITIONAL WRAPPER",
        });
        printer.put(if j.omit_quotes { " OMIT QUOTES" } else { " KEEP QUOTES" });
    }
    let default = match j.operation {
        JsonOperation::Exists => JsonBehaviorKind::False,
        _ => JsonBehaviorKind::Null,
    };
    if let Some(behavior) = j.on_empty.as_ref().filter(|b| b.kind != default) {
        json_behavior(printer, behavior, "EMPTY");
    }
    if j.on_error.kind != default {
        json_behavior(printer, &j.on_error, "ERROR");
    }
}

fn json_behavior<'a>(printer: &mut Printer<'a>, behavior: &'a JsonBehavior, on: &str) {
    printer.put(" ");
    printer.put(behavior.kind.name());
    if behavior.kind == JsonBehaviorKind::Default
        && let Some(value) = &behavior.value
    {
        printer.put(" ");
        printer.expr(value, false);
    }
    printer.put(" ON ");
    printer.put(on);
}

pub(super) fn json_table<'a>(printer: &mut Printer<'a>, table: &'a JsonTable) {
    printer.put("JSON_TABLE(");
    printer.indent += INDENT_VAR;
    printer.keyword("", 0, 0, 0);
    printer.expr(&table.item, true);
    printer.put(", ");
    table_path(printer, &table.root);
    if !table.passing.is_empty() {
        printer.put(" ");
        printer.keyword("PASSING ", 0, INDENT_VAR, 0);
        for (i, (name, value)) in table.passing.iter().enumerate() {
            printer.put(if i == 0 { "" } else { ", " });
            printer.keyword("", 0, 0, 0);
            printer.expr(value, false);
            printer.put(" AS ");
            printer.ident(name);
        }
        printer.indent -= INDENT_VAR;
    }
    table_columns(printer, table, &table.root);
    if table.on_error != JsonBehaviorKind::EmptyArray {
        printer.put(&format!(" {} ON ERROR", table.on_error.name()));
    }
    printer.indent -= INDENT_VAR;
    printer.keyword(")", 0, 0, 0);
}

fn table_path<'a>(printer: &mut Printer<'a>, path: &'a JsonTablePath) {
    json_path(printer, &path.path, true);
    printer.put(" AS ");
    printer.ident(&path.name);
}

fn table_columns<'a>(printer: &mut Printer<'a>, table: &'a JsonTable, path: &'a JsonTablePath) {
    printer.put(" ");
    printer.keyword("COLUMNS (", 0, INDENT_VAR, 0);
    for at in path.columns.clone() {
        printer.put(if at == path.columns.start { "" } else { ", " });
        printer.keyword("", 0, 0, 0);
        table_column(printer, &table.columns[at]);
    }
    for (i, nested) in path.nested.iter().enumerate() {
        printer.put(if i == 0 && path.columns.is_empty() { " " } else { ", " });
        printer.keyword("NESTED PATH ", 0, 0, 0);
        table_path(printer, nested);
        table_columns(printer, table, nested);
    }
    printer.indent -= INDENT_VAR;
    printer.keyword(")", 0, 0, 0);
}

fn table_column<'a>(printer: &mut Printer<'a>, c: &'a JsonTableColumn) {
    let name: &Arc<str> = &c.column.name;
    printer.ident(name);
    let Some(Expr::Json(value)) = &c.value else { return printer.put(" FOR ORDINALITY") };
    let ty = printer.type_name(c.column.ty, c.column.typmod);
    printer.put(&format!(" {ty}"));
    match value.operation {
        JsonOperation::Exists => printer.put(" EXISTS"),
        JsonOperation::Query if is_string(printer, c.column.ty) => printer.put(" FORMAT JSON"),
        _ => {}
    }
    printer.put(" PATH ");
    json_path(printer, &value.path, true);
    json_options(printer, value);
}

fn is_string(printer: &Printer<'_>, ty: Oid) -> bool {
    printer.catalog.type_(ty).is_some_and(|t| t.category == b'S')
}

fn format_text(format: JsonFormat) -> String {
    let kind = match format.kind {
        JsonFormatKind::Default => return String::new(),
        JsonFormatKind::Json => " FORMAT JSON",
        JsonFormatKind::Jsonb => " FORMAT JSONB",
    };
    let encoding = match format.encoding {
        JsonEncoding::Default => "",
        JsonEncoding::Utf8 => " ENCODING UTF8",
        JsonEncoding::Utf16 => " ENCODING UTF16",
        JsonEncoding::Utf32 => " ENCODING UTF32",
    };
    format!("{kind}{encoding}")
}
