//! Expressions.

use std::sync::Arc;

use melba_types::Oid;

use super::constant::ShowType;
use super::operator::is_simple;
use super::{INDENT_VAR, Masked, Printer, constant, json};
use melba_tree::*;

impl<'a> Printer<'a> {
    /// Prints an expression. `show_implicit`: an implicit cast at the top is written out, because nothing around it would imply
    /// it.
    pub(super) fn expr(&mut self, e: &'a Expr, show_implicit: bool) {
        match e {
            Expr::Var(v) => drop(self.var(v)),
            Expr::Const(c) => constant::constant(self, c, ShowType::AsNeeded),
            Expr::Param(p) if self.masked == Masked::Parameters => self.mask(p.ty),
            Expr::Param(p) if p.kind == ParamKind::External => self.parameter(p.number),
            Expr::Param(p) => self.put(&format!("${}", p.number)),
            Expr::Function(f) => self.function(e, f, show_implicit),
            Expr::Operator(o) => self.in_parens(|p| p.operator(e, o)),
            Expr::Distinct(o) => self.in_parens(|p| {
                p.operand(&o.args[0], e, false);
                p.put(" IS DISTINCT FROM ");
                p.operand(&o.args[1], e, true);
            }),
            Expr::NullIf(o) => self.call("NULLIF(", &o.args),
            Expr::ScalarArray(s) => self.in_parens(|p| p.scalar_array(e, s)),
            Expr::And(args) => self.in_parens(|p| p.joined(args, " AND ", e)),
            Expr::Or(args) => self.in_parens(|p| p.joined(args, " OR ", e)),
            Expr::Not(arg) => self.not(e, arg),
            Expr::Case(case) => self.case(case),
            Expr::Coalesce { args, .. } => self.call("COALESCE(", args),
            Expr::MinMax { greatest, args, .. } => self.call(if *greatest { "GREATEST(" } else { "LEAST(" }, args),
            Expr::NullTest { arg, is_null, .. } => {
                self.suffixed(e, arg, if *is_null { " IS NULL" } else { " IS NOT NULL" });
            }
            Expr::BooleanTest { arg, test } => self.suffixed(e, arg, boolean_test(*test)),
            Expr::Relabel { arg, ty, typmod, form, .. } => self.cast(e, arg, *ty, *typmod, *form, show_implicit),
            Expr::CoerceViaIo { arg, ty, form, .. } | Expr::ConvertRowtype { arg, ty, form } => {
                self.cast(e, arg, *ty, -1, *form, show_implicit);
            }
            Expr::ArrayCoerce { arg, ty, typmod, form, .. } | Expr::CoerceToDomain { arg, ty, typmod, form, .. } => {
                self.cast(e, arg, *ty, *typmod, *form, show_implicit);
            }
            Expr::DomainValue { .. } => self.put("VALUE"),
            Expr::Collate { arg, collation } => self.in_parens(|p| {
                p.operand(arg, e, false);
                p.put(" COLLATE ");
                p.collation_name(*collation);
            }),
            Expr::Array(a) => self.array(a),
            Expr::Row(r) => self.row(r),
            Expr::RowCompare(r) => self.row_compare(r),
            Expr::FieldSelect { arg, field, .. } => self.field(arg, *field),
            Expr::FieldStore { arg, .. } => self.expr(arg, show_implicit),
            Expr::Subscript(s) => self.subscript(s),
            Expr::Aggregate(a) => self.aggregate(a),
            Expr::Grouping { args, .. } => self.call("GROUPING(", args),
            Expr::Window(w) => self.window_call(w),
            Expr::Sublink(s) => self.sublink(s),
            Expr::SqlValue { function, typmod, .. } => self.sql_value(*function, *typmod),
            Expr::Default { .. } => self.put("DEFAULT"),
            Expr::CaseTest { .. } => self.put("CASE_TEST_EXPR"),
            Expr::CurrentOf { args } => {
                self.put("CURRENT OF ");
                if let Some(Expr::Const(Const { value: melba_types::Datum::Text(cursor), .. })) = args.first() {
                    self.ident(cursor);
                }
            }
            Expr::Sampled { system, args } => self.call(if *system { "system(" } else { "bernoulli(" }, &args[1..2]),
            Expr::MergeAction => self.put("MERGE_ACTION()"),
            Expr::JsonValue(v) => json::json_value(self, v),
            Expr::JsonConstructor(c) => json::json_constructor(self, c),
            Expr::IsJson(p) => json::is_json(self, e, p),
            Expr::Json(j) => json::json_query(self, j, show_implicit),
            Expr::NextValue { sequence, .. } => {
                let name = self.catalog.relation(*sequence).map_or_else(|| "?".into(), |r| self.relation_name(r));
                self.put(&format!("nextval('{}'::regclass)", name.replace('\'', "''")));
            }
        }
    }

    /// Parentheses that only the pretty form leaves out.
    pub(super) fn in_parens(&mut self, f: impl FnOnce(&mut Self)) {
        let parens = !self.drop_parens;
        if parens {
            self.put("(");
        }
        f(self);
        if parens {
            self.put(")");
        }
    }

    /// An operand of `parent`, in parentheses where the pretty form needs them.
    pub(super) fn operand(&mut self, e: &'a Expr, parent: &'a Expr, right: bool) {
        let parens = self.drop_parens && !is_simple(e, parent, right, &|oid| self.operator_name(oid));
        if parens {
            self.put("(");
        }
        self.expr(e, shows_implicit(parent));
        if parens {
            self.put(")");
        }
    }

    pub(super) fn list(&mut self, args: &'a [Expr]) {
        for (i, arg) in args.iter().enumerate() {
            if i > 0 {
                self.put(", ");
            }
            self.expr(arg, true);
        }
    }

    fn call(&mut self, open: &str, args: &'a [Expr]) {
        self.put(open);
        self.list(args);
        self.put(")");
    }

    fn joined(&mut self, args: &'a [Expr], word: &str, parent: &'a Expr) {
        for (i, arg) in args.iter().enumerate() {
            if i > 0 {
                self.put(word);
            }
            self.operand(arg, parent, false);
        }
    }

    fn suffixed(&mut self, e: &'a Expr, arg: &'a Expr, suffix: &str) {
        self.in_parens(|p| {
            p.operand(arg, e, false);
            p.put(suffix);
        });
    }

    fn not(&mut self, e: &'a Expr, arg: &'a Expr) {
        // NOT over IS DISTINCT FROM is IS NOT DISTINCT FROM to the grammar, but PostgreSQL prints the tree's form.
        self.in_parens(|p| {
            p.put("NOT ");
            p.operand(arg, e, false);
        });
    }

    fn operator(&mut self, e: &'a Expr, o: &'a OperatorCall) {
        let name = self.operator_name(o.operator);
        match o.args.as_slice() {
            [arg] => {
                self.put(&name);
                self.put(" ");
                self.operand(arg, e, false);
            }
            [left, right] => {
                self.operand(left, e, false);
                self.put(&format!(" {name} "));
                self.operand(right, e, true);
            }
            _ => {}
        }
    }

    fn scalar_array(&mut self, e: &'a Expr, s: &'a ScalarArrayExpr) {
        self.operand(&s.scalar, e, false);
        let name = self.operator_name(s.operator);
        self.put(&format!(" {name} {} (", if s.any { "ANY" } else { "ALL" }));
        self.operand(&s.array, e, true);
        // A bare sublink would be taken for ANY (SELECT ...).
        if let Expr::Sublink(link) = &s.array
            && link.kind == SublinkKind::Expr
        {
            let ty = self.type_name(link.ty, link.typmod);
            self.put(&format!("::{ty}"));
        }
        self.put(")");
    }

    fn cast(&mut self, e: &'a Expr, arg: &'a Expr, ty: Oid, typmod: i32, form: CoercionForm, show_implicit: bool) {
        if form == CoercionForm::ImplicitCast && !show_implicit {
            self.operand(arg, e, false);
            return;
        }
        if let Expr::Const(c) = arg
            && c.ty == ty
            && c.typmod == -1
        {
            constant::constant(self, c, ShowType::Never);
        } else {
            self.in_parens(|p| p.operand(arg, e, false));
        }
        let name = self.type_name(ty, typmod);
        self.put(&format!("::{name}"));
    }

    fn function(&mut self, e: &'a Expr, f: &'a FunctionCall, show_implicit: bool) {
        match f.form {
            CoercionForm::ImplicitCast | CoercionForm::ExplicitCast => {
                self.cast(e, &f.args[0], f.ty, f.typmod, f.form, show_implicit);
                return;
            }
            CoercionForm::SqlSyntax if self.sql_syntax(e, f) => return,
            _ => {}
        }
        let name = self.function_name(f.function);
        self.put(&name);
        self.put("(");
        for (i, arg) in f.args.iter().enumerate().take(f.args.len() - f.defaulted) {
            if i > 0 {
                self.put(", ");
            }
            if f.variadic && i + 1 == f.args.len() {
                self.put("VARIADIC ");
            }
            self.expr(arg, true);
        }
        self.put(")");
    }

    /// Functions for which SQL has a special syntax; false: none known.
    fn sql_syntax(&mut self, e: &'a Expr, f: &'a FunctionCall) -> bool {
        let Some(function) = self.catalog.function(f.function) else { return false };
        let text_of = |arg: &Expr| match arg {
            Expr::Const(c) => match &c.value {
                melba_types::Datum::Text(t) => Some(t.to_string()),
                _ => None,
            },
            _ => None,
        };
        match (&*function.name, f.args.as_slice()) {
            ("timezone", [zone, value]) => {
                self.put("(");
                self.operand(value, e, false);
                self.put(" AT TIME ZONE ");
                self.operand(zone, e, false);
                self.put(")");
            }
            ("timezone", [value]) => {
                self.put("(");
                self.operand(value, e, false);
                self.put(" AT LOCAL)");
            }
            ("extract", [field, value]) => {
                let field = text_of(field).unwrap_or_default();
                self.put("EXTRACT(");
                self.ident(&field);
                self.put(" FROM ");
                self.expr(value, true);
                self.put(")");
            }
            ("overlaps", [a, b, c, d]) => {
                self.put("((");
                self.list(std::slice::from_ref(a));
                self.put(", ");
                self.expr(b, true);
                self.put(") OVERLAPS (");
                self.expr(c, true);
                self.put(", ");
                self.expr(d, true);
                self.put("))");
            }
            ("is_normalized", args) => self.normalization("IS ", args, e),
            ("normalize", args) => {
                self.put("NORMALIZE(");
                self.expr(&args[0], true);
                if let Some(form) = args.get(1).and_then(text_of) {
                    self.put(&format!(", {form}"));
                }
                self.put(")");
            }
            ("overlay", args) => self.worded("OVERLAY(", args, &[" PLACING ", " FROM ", " FOR "]),
            ("position", [string, part]) => {
                self.put("POSITION((");
                self.expr(part, true);
                self.put(") IN (");
                self.expr(string, true);
                self.put("))");
            }
            ("substring", args) if function.arg_types.get(1) != Some(&melba_types::oids::TEXT) => {
                self.worded("SUBSTRING(", args, &[" FROM ", " FOR "]);
            }
            ("substring", args) if args.len() == 3 => self.worded("SUBSTRING(", args, &[" SIMILAR ", " ESCAPE "]),
            ("btrim", args) => self.trim("BOTH", args),
            ("ltrim", args) => self.trim("LEADING", args),
            ("rtrim", args) => self.trim("TRAILING", args),
            _ => return false,
        }
        true
    }

    fn normalization(&mut self, word: &str, args: &'a [Expr], e: &'a Expr) {
        self.put("(");
        self.operand(&args[0], e, false);
        self.put(" ");
        self.put(word);
        if let Some(Expr::Const(c)) = args.get(1)
            && let melba_types::Datum::Text(form) = &c.value
        {
            self.put(form);
            self.put(" ");
        }
        self.put("NORMALIZED)");
    }

    fn worded(&mut self, open: &str, args: &'a [Expr], words: &[&str]) {
        self.put(open);
        for (i, arg) in args.iter().enumerate() {
            if i > 0 {
                self.put(words.get(i - 1).copied().unwrap_or(", "));
            }
            self.expr(arg, true);
        }
        self.put(")");
    }

    fn trim(&mut self, side: &str, args: &'a [Expr]) {
        self.put(&format!("TRIM({side}"));
        if let Some(characters) = args.get(1) {
            self.put(" ");
            self.expr(characters, true);
        }
        self.put(" FROM ");
        self.expr(&args[0], true);
        self.put(")");
    }

    fn case(&mut self, case: &'a CaseExpr) {
        self.keyword("CASE", 0, INDENT_VAR, 0);
        if let Some(arg) = &case.arg {
            self.put(" ");
            self.expr(arg, true);
        }
        for (when, then) in &case.whens {
            self.keyword("WHEN ", 0, 0, 0);
            match (case.arg.is_some(), when) {
                // `CaseTest = value` was written as just the value.
                (true, Expr::Operator(o)) if o.args.len() == 2 && is_case_test(&o.args[0]) => self.expr(&o.args[1], false),
                _ => self.expr(when, false),
            }
            self.put(" THEN ");
            self.expr(then, true);
        }
        self.keyword("ELSE ", 0, 0, 0);
        self.expr(&case.default, true);
        self.keyword("END", -INDENT_VAR, 0, 0);
    }

    fn array(&mut self, a: &'a ArrayExpr) {
        self.put("ARRAY[");
        let is_any = self.masked != Masked::Nothing && super::is_list_of_constants(a, self.masked == Masked::Parameters);
        self.list(if is_any { &a.elements[..2] } else { &a.elements });
        self.put("]");
        if a.elements.is_empty() {
            let ty = self.type_name(a.ty, -1);
            self.put(&format!("::{ty}"));
        }
    }

    fn row(&mut self, r: &'a RowExpr) {
        match self.whole_row_of_join(r) {
            Some(join) if !self.oids => {
                self.ident(&join);
                return self.put(".*");
            }
            of_join if self.oids && (of_join.is_some() || has_names(r)) => return self.named_row(r),
            _ => {}
        }
        self.put("ROW(");
        for (i, field) in r.fields.iter().enumerate() {
            if i > 0 {
                self.put(", ");
            }
            self.item(field);
        }
        self.put(")");
        if r.ty != melba_types::oids::RECORD && r.explicit {
            let ty = self.type_name(r.ty, -1);
            self.put(&format!("::{ty}"));
        }
    }

    /// A row whose fields have names, which no statement can say, for the catalog. The row of a join is stored so: the join may get other columns.
    fn named_row(&mut self, r: &'a RowExpr) {
        self.put("pg_catalog.\"row\"(");
        for (i, (name, field)) in r.names.iter().zip(&r.fields).enumerate() {
            self.put(if i == 0 { "" } else { ", " });
            self.ident(name);
            self.put(" => ");
            self.item(field);
        }
        self.put(")");
    }

    /// One of several values, which a whole row must not be expanded to.
    pub(super) fn item(&mut self, e: &'a Expr) {
        self.expr(e, false);
        if self.is_row_of_join(e) {
            self.put("::record");
        }
        if let Expr::Var(v) = e
            && v.column == 0
        {
            let ty = self.type_name(v.ty, -1);
            self.put(&format!("::{ty}"));
        }
    }

    fn row_compare(&mut self, r: &'a RowCompareExpr) {
        self.put("(ROW(");
        self.list(&r.left);
        let name = r.operators.first().map_or_else(String::new, |o| self.operator_name(*o));
        self.put(&format!(") {name} ROW("));
        self.list(&r.right);
        self.put("))");
    }

    fn field(&mut self, arg: &'a Expr, field: i16) {
        if let Expr::Row(row) = arg
            && (self.whole_row_of_join(row).is_some() || self.oids && has_names(row))
            && let Some(field) = row.fields.get(field as usize - 1)
        {
            return self.expr(field, false);
        }
        let plain = matches!(arg, Expr::Subscript(_) | Expr::FieldSelect { .. });
        if !plain {
            self.put("(");
        }
        self.expr(arg, true);
        if !plain {
            self.put(")");
        }
        let name: Arc<str> = self.field_name(arg, field);
        self.put(".");
        self.ident(&name);
    }

    fn field_name(&self, arg: &Expr, field: i16) -> Arc<str> {
        let relation = self.catalog.type_(self.catalog.base_type(arg.ty())).and_then(|t| self.catalog.relation(t.relation));
        let column = relation.and_then(|r| r.columns.get(field as usize - 1)).map(|c| c.name.clone());
        let of_record = || {
            let levels: Vec<&Query> = self.levels.iter().map(|level| level.query).collect();
            let is_record = arg.ty() == melba_types::oids::RECORD;
            is_record.then(|| melba_analyze::record::field_names(&levels, arg))??.into_iter().nth(field as usize - 1)
        };
        column.or_else(of_record).unwrap_or_else(|| format!("f{field}").into())
    }

    fn subscript(&mut self, s: &'a SubscriptExpr) {
        // Behind another subscript it would be one of that: a[1:2][1:2] has two dimensions.
        let plain = matches!(s.container, Expr::Var(_) | Expr::Param(_) | Expr::FieldSelect { .. });
        if !plain {
            self.put("(");
        }
        self.expr(&s.container, true);
        if !plain {
            self.put(")");
        }
        for (i, upper) in s.upper.iter().enumerate() {
            self.put("[");
            if s.slice {
                if let Some(Some(lower)) = s.lower.get(i) {
                    self.expr(lower, false);
                }
                self.put(":");
            }
            if let Some(upper) = upper {
                self.expr(upper, false);
            }
            self.put("]");
        }
    }

    fn aggregate(&mut self, a: &'a AggregateCall) {
        let name = self.function_name(a.function);
        self.aggregate_as(&name, a, ", ", "");
    }

    /// An aggregate by the name it was called by; `options` follow its arguments.
    pub(super) fn aggregate_as(&mut self, name: &str, a: &'a AggregateCall, separator: &str, options: &str) {
        self.put(name);
        self.put("(");
        if a.distinct {
            self.put("DISTINCT ");
        }
        if a.ordered_set {
            self.list(&a.direct_args);
            self.put(") WITHIN GROUP (ORDER BY ");
            self.aggregate_order(&a.order_by);
        } else {
            if a.star {
                self.put("*");
            }
            for (i, arg) in a.args.iter().enumerate() {
                if i > 0 {
                    self.put(separator);
                }
                if a.variadic && i + 1 == a.args.len() {
                    self.put("VARIADIC ");
                }
                self.expr(arg, true);
            }
            if !a.order_by.is_empty() {
                self.put(" ORDER BY ");
                self.aggregate_order(&a.order_by);
            }
        }
        self.put(options);
        self.put(")");
        self.filter(a.filter.as_ref());
    }

    fn aggregate_order(&mut self, keys: &'a [AggregateOrder]) {
        for (i, key) in keys.iter().enumerate() {
            if i > 0 {
                self.put(", ");
            }
            self.expr(&key.expr, true);
            self.direction(key.descending, key.nulls_first);
        }
    }

    fn filter(&mut self, filter: Option<&'a Expr>) {
        if let Some(filter) = filter {
            self.put(" FILTER (WHERE ");
            self.expr(filter, false);
            self.put(")");
        }
    }

    fn window_call(&mut self, w: &'a WindowCall) {
        let name = self.function_name(w.function);
        self.window_as(&name, w, ", ", "");
    }

    /// A window function by the name it was called by; `options` follow its arguments.
    pub(super) fn window_as(&mut self, name: &str, w: &'a WindowCall, separator: &str, options: &str) {
        self.put(name);
        self.put("(");
        if w.star {
            self.put("*");
        }
        for (i, arg) in w.args.iter().enumerate() {
            if i > 0 {
                self.put(separator);
            }
            self.expr(arg, true);
        }
        self.put(options);
        self.put(")");
        self.filter(w.filter.as_ref());
        self.put(" OVER ");
        let Some(level) = self.levels.last() else { return };
        let query = level.query;
        let Some(window) = query.windows.get(w.window) else { return };
        match &window.name {
            Some(name) => self.ident(name),
            None => self.window_specification(window, &query.targets),
        }
    }

    fn sublink(&mut self, s: &'a Sublink) {
        match s.kind {
            SublinkKind::Array => self.put("ARRAY"),
            SublinkKind::Exists => self.put("(EXISTS "),
            SublinkKind::Any | SublinkKind::All | SublinkKind::RowCompare => {
                self.put("(");
                self.sublink_test(s);
            }
            SublinkKind::Expr | SublinkKind::MultiExpr => {}
        }
        self.put("(");
        self.hide_names = true;
        self.query(&s.query);
        self.put(")");
        if !matches!(s.kind, SublinkKind::Array | SublinkKind::Expr | SublinkKind::MultiExpr) {
            self.put(")");
        }
    }

    fn sublink_test(&mut self, s: &'a Sublink) {
        let mut left = Vec::new();
        let mut name = s.operator.as_deref().unwrap_or("=").to_owned();
        if let Some(test) = &s.test {
            collect_left(test, &mut left);
            if s.operator.is_none()
                && let Expr::Operator(o) = test
            {
                name = self.operator_name(o.operator);
            }
        }
        if let [one] = left.as_slice() {
            self.expr(one, true);
        } else {
            self.put("(");
            for (i, e) in left.iter().enumerate() {
                if i > 0 {
                    self.put(", ");
                }
                self.expr(e, true);
            }
            self.put(")");
        }
        match (s.kind, name.as_str()) {
            (SublinkKind::Any, "=") => self.put(" IN "),
            (SublinkKind::Any, name) => self.put(&format!(" {name} ANY ")),
            (SublinkKind::All, name) => self.put(&format!(" {name} ALL ")),
            (_, name) => self.put(&format!(" {name} ")),
        }
    }

    fn sql_value(&mut self, function: SqlValueFunction, typmod: i32) {
        use SqlValueFunction::*;
        let (name, precision) = match function {
            CurrentDate => ("CURRENT_DATE", false),
            CurrentTime => ("CURRENT_TIME", true),
            CurrentTimestamp => ("CURRENT_TIMESTAMP", true),
            LocalTime => ("LOCALTIME", true),
            LocalTimestamp => ("LOCALTIMESTAMP", true),
            CurrentRole => ("CURRENT_ROLE", false),
            CurrentUser => ("CURRENT_USER", false),
            User => ("USER", false),
            SessionUser => ("SESSION_USER", false),
            CurrentCatalog => ("CURRENT_CATALOG", false),
            CurrentSchema => ("CURRENT_SCHEMA", false),
        };
        self.put(name);
        if precision && typmod >= 0 {
            self.put(&format!("({typmod})"));
        }
    }
}

/// Left sides of a sublink's comparison.
fn collect_left<'e>(test: &'e Expr, out: &mut Vec<&'e Expr>) {
    match test {
        Expr::Operator(o) => out.extend(o.args.first()),
        Expr::And(args) | Expr::Or(args) => args.iter().for_each(|a| collect_left(a, out)),
        Expr::Not(arg) => collect_left(arg, out),
        Expr::RowCompare(r) => out.extend(&r.left),
        _ => {}
    }
}

fn is_case_test(e: &Expr) -> bool {
    match e {
        Expr::CaseTest { .. } => true,
        Expr::Relabel { arg, .. } | Expr::CoerceViaIo { arg, .. } => is_case_test(arg),
        Expr::Function(f) => f.args.first().is_some_and(is_case_test),
        _ => false,
    }
}

fn boolean_test(test: BooleanTest) -> &'static str {
    match test {
        BooleanTest::True => " IS TRUE",
        BooleanTest::NotTrue => " IS NOT TRUE",
        BooleanTest::False => " IS FALSE",
        BooleanTest::NotFalse => " IS NOT FALSE",
        BooleanTest::Unknown => " IS UNKNOWN",
        BooleanTest::NotUnknown => " IS NOT UNKNOWN",
    }
}

/// Whether an implicit cast of an operand is written out: where the choice of the operator depends on it.
fn shows_implicit(parent: &Expr) -> bool {
    matches!(
        parent,
        Expr::Operator(_)
            | Expr::Distinct(_)
            | Expr::ScalarArray(_)
            | Expr::RowCompare(_)
            | Expr::NullIf(_)
            | Expr::NullTest { .. }
            | Expr::IsJson(_)
            | Expr::FieldSelect { .. }
    )
}

/// Whether the fields of a row have other names than those of ROW(...).
fn has_names(row: &RowExpr) -> bool {
    let is_plain = |(i, name): (usize, &Arc<str>)| **name == *format!("f{}", i + 1);
    row.ty == melba_types::oids::RECORD && !row.explicit && !row.names.iter().enumerate().all(is_plain)
}
