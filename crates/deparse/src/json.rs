//! SQL/JSON: constructors, query functions, JSON_TABLE.

use std::sync::Arc;

use melba_types::{Oid, oids};

use super::constant::ShowType;
use super::{INDENT_VAR, Printer};
use melba_tree::*;

impl<'a> Printer<'a> {
    pub(super) fn json_value(&mut self, v: &'a JsonValue) {
        self.expr(&v.arg, false);
        let text = format_text(v.format);
        self.put(&text);
    }

    /// `by_default`: FORMAT is left out where it is the type's own.
    fn returning_text(&self, returning: JsonReturning, by_default: bool) -> String {
        let own = if returning.ty == oids::JSONB { JsonFormatKind::Jsonb } else { JsonFormatKind::Json };
        let ty = self.type_name(returning.ty, returning.typmod);
        let format = if by_default && returning.format.kind == own { String::new() } else { format_text(returning.format) };
        format!(" RETURNING {ty}{format}")
    }

    pub(super) fn json_constructor(&mut self, c: &'a JsonConstructor) {
        use JsonConstructorKind::*;
        let options = self.constructor_options(c);
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
            Some(Expr::Aggregate(a)) => return self.aggregate_as(name, a, separator, &options),
            Some(Expr::Window(w)) => return self.window_as(name, w, separator, &options),
            // An operator below has computed it.
            Some(function) => return self.expr(function, false),
            None => {}
        }
        self.put(name);
        self.put("(");
        for (i, arg) in c.args.iter().enumerate() {
            if i > 0 {
                self.put(if c.kind == Object && i % 2 == 1 { " : " } else { ", " });
            }
            self.expr(arg, true);
        }
        self.put(&options);
        self.put(")");
    }

    fn constructor_options(&self, c: &JsonConstructor) -> String {
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
            options += &self.returning_text(c.returning, true);
        }
        options
    }

    pub(super) fn is_json(&mut self, e: &'a Expr, test: &'a IsJson) {
        self.in_parens(|p| {
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

    pub(super) fn json_query(&mut self, j: &'a JsonExpr, show_implicit: bool) {
        self.put(match j.operation {
            JsonOperation::Exists => "JSON_EXISTS(",
            JsonOperation::Query => "JSON_QUERY(",
            JsonOperation::Value => "JSON_VALUE(",
        });
        self.expr(&j.item, show_implicit);
        self.put(", ");
        self.json_path(&j.path, show_implicit);
        for (i, (name, value)) in j.passing.iter().enumerate() {
            self.put(if i == 0 { " PASSING " } else { ", " });
            self.expr(value, show_implicit);
            self.put(" AS ");
            self.ident(name);
        }
        if j.operation != JsonOperation::Exists || j.returning.ty != oids::BOOL {
            let text = self.returning_text(j.returning, j.operation == JsonOperation::Query);
            self.put(&text);
        }
        self.json_options(j);
        self.put(")");
    }

    fn json_path(&mut self, path: &'a Expr, show_implicit: bool) {
        match path {
            Expr::Const(c) => self.constant(c, ShowType::Never),
            other => self.expr(other, show_implicit),
        }
    }

    fn json_options(&mut self, j: &'a JsonExpr) {
        if j.operation == JsonOperation::Query {
            self.put(match j.wrapper {
                JsonWrapper::None => " WITHOUT WRAPPER",
                JsonWrapper::Conditional => " WITH CONDITIONAL WRAPPER",
                JsonWrapper::Unconditional => " WITH UNCONDITIONAL WRAPPER",
            });
            self.put(if j.omit_quotes { " OMIT QUOTES" } else { " KEEP QUOTES" });
        }
        let default = match j.operation {
            JsonOperation::Exists => JsonBehaviorKind::False,
            _ => JsonBehaviorKind::Null,
        };
        if let Some(behavior) = j.on_empty.as_ref().filter(|b| b.kind != default) {
            self.json_behavior(behavior, "EMPTY");
        }
        if j.on_error.kind != default {
            self.json_behavior(&j.on_error, "ERROR");
        }
    }

    fn json_behavior(&mut self, behavior: &'a JsonBehavior, on: &str) {
        self.put(" ");
        self.put(behavior.kind.name());
        if behavior.kind == JsonBehaviorKind::Default
            && let Some(value) = &behavior.value
        {
            self.put(" ");
            self.expr(value, false);
        }
        self.put(" ON ");
        self.put(on);
    }

    pub(super) fn json_table(&mut self, table: &'a JsonTable) {
        self.put("JSON_TABLE(");
        self.indent += INDENT_VAR;
        self.keyword("", 0, 0, 0);
        self.expr(&table.item, true);
        self.put(", ");
        self.table_path(&table.root);
        if !table.passing.is_empty() {
            self.put(" ");
            self.keyword("PASSING ", 0, INDENT_VAR, 0);
            for (i, (name, value)) in table.passing.iter().enumerate() {
                self.put(if i == 0 { "" } else { ", " });
                self.keyword("", 0, 0, 0);
                self.expr(value, false);
                self.put(" AS ");
                self.ident(name);
            }
            self.indent -= INDENT_VAR;
        }
        self.table_columns(table, &table.root);
        if table.on_error != JsonBehaviorKind::EmptyArray {
            self.put(&format!(" {} ON ERROR", table.on_error.name()));
        }
        self.indent -= INDENT_VAR;
        self.keyword(")", 0, 0, 0);
    }

    fn table_path(&mut self, path: &'a JsonTablePath) {
        self.json_path(&path.path, true);
        self.put(" AS ");
        self.ident(&path.name);
    }

    fn table_columns(&mut self, table: &'a JsonTable, path: &'a JsonTablePath) {
        self.put(" ");
        self.keyword("COLUMNS (", 0, INDENT_VAR, 0);
        for at in path.columns.clone() {
            self.put(if at == path.columns.start { "" } else { ", " });
            self.keyword("", 0, 0, 0);
            self.table_column(&table.columns[at]);
        }
        for (i, nested) in path.nested.iter().enumerate() {
            self.put(if i == 0 && path.columns.is_empty() { " " } else { ", " });
            self.keyword("NESTED PATH ", 0, 0, 0);
            self.table_path(nested);
            self.table_columns(table, nested);
        }
        self.indent -= INDENT_VAR;
        self.keyword(")", 0, 0, 0);
    }

    fn table_column(&mut self, c: &'a JsonTableColumn) {
        let name: &Arc<str> = &c.column.name;
        self.ident(name);
        let Some(Expr::Json(value)) = &c.value else { return self.put(" FOR ORDINALITY") };
        let ty = self.type_name(c.column.ty, c.column.typmod);
        self.put(&format!(" {ty}"));
        match value.operation {
            JsonOperation::Exists => self.put(" EXISTS"),
            JsonOperation::Query if self.is_string(c.column.ty) => self.put(" FORMAT JSON"),
            _ => {}
        }
        self.put(" PATH ");
        self.json_path(&value.path, true);
        self.json_options(value);
    }

    fn is_string(&self, ty: Oid) -> bool {
        self.catalog.type_(ty).is_some_and(|t| t.category == b'S')
    }
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
