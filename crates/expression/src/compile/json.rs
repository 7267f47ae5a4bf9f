//! Expressions whose functions have no row in pg_proc: SQL/JSON's constructors and paths, TABLESAMPLE.

use std::sync::Arc;

use melba_fmgr::{ScalarFn, registry};
use melba_types::{Datum, DbError, Oid, Result, oids};

use super::{Compiler, Local};
use crate::json::{Behavior, JsonPath, JsonQuery};
use crate::{Call, CallTarget, Expression, Node};
use melba_tree::{
    Expr, IsJson, JsonBehavior, JsonCoercion, JsonConstructor, JsonConstructorKind, JsonExpr, JsonItemType, JsonOperation,
    JsonValue, JsonWrapper,
};

fn implementation(source: &str) -> Result<ScalarFn> {
    registry::scalar(source).ok_or_else(|| DbError::internal(format!("no function {source}")))
}

impl Compiler<'_> {
    /// `body` over the value of `arg`, which it has as CaseTest.
    fn over_value(&mut self, arg: Expression, body: &Expr) -> Result<Expression> {
        let simple = matches!(arg.node, Node::Column(_) | Node::Const(_) | Node::Parameter(_) | Node::Executor(_));
        self.locals.push(if simple { Local::Inline(arg.clone()) } else { Local::Runtime });
        let body = self.compile(body);
        self.locals.pop();
        let body = body?;
        if simple {
            return Ok(body);
        }
        let (ty, kind) = (body.ty, body.kind);
        Ok(Expression::new(Node::Let { arg: Box::new(arg), body: Box::new(body) }, ty, kind))
    }

    /// An expression over a value that is the innermost local when it is evaluated (`Evaluation::with_local`).
    pub fn compile_over_local(&mut self, body: &Expr) -> Result<Expression> {
        self.locals.push(Local::Runtime);
        let body = self.compile(body);
        self.locals.pop();
        body
    }

    pub(super) fn json_value(&mut self, value: &JsonValue) -> Result<Expression> {
        let arg = self.compile(&value.arg)?;
        self.over_value(arg, &value.formatting)
    }

    pub(super) fn json_constructor(&mut self, made: &JsonConstructor) -> Result<Expression> {
        let value = match (&made.function, made.kind) {
            (Some(function), _) => self.compile(function)?,
            // The argument is JSON already.
            (None, JsonConstructorKind::Serialize) => self.compile(&made.args[0])?,
            (None, JsonConstructorKind::Parse) if !made.unique_keys => self.compile(&made.args[0])?,
            (None, kind) => self.constructor_call(kind, made)?,
        };
        match &made.coercion {
            Some(coercion) => self.over_value(value, coercion),
            None => Ok(value),
        }
    }

    fn constructor_call(&mut self, kind: JsonConstructorKind, made: &JsonConstructor) -> Result<Expression> {
        let boolean = |value| Expression::new(Node::Const(Datum::Bool(value)), oids::BOOL, self.kind(oids::BOOL));
        let (source, mut args) = match kind {
            JsonConstructorKind::Object => ("sqljson_object", vec![boolean(made.absent_on_null), boolean(made.unique_keys)]),
            JsonConstructorKind::Array => ("sqljson_array", vec![boolean(made.absent_on_null)]),
            JsonConstructorKind::Scalar => ("sqljson_scalar", Vec::new()),
            JsonConstructorKind::Parse => ("sqljson_parse", Vec::new()),
            _ => return Err(DbError::internal("SQL/JSON constructor without its function")),
        };
        args.extend(self.compile_all(&made.args)?);
        self.named_call(source, args, made.constructed_type(), made.location)
    }

    pub(super) fn is_json(&mut self, test: &IsJson) -> Result<Expression> {
        let item = match test.item {
            JsonItemType::Any => Datum::Null,
            JsonItemType::Object => Datum::text("object"),
            JsonItemType::Array => Datum::text("array"),
            JsonItemType::Scalar => Datum::text("scalar"),
        };
        let args = vec![
            self.compile(&test.arg)?,
            self.expression(Node::Const(item), oids::TEXT),
            self.expression(Node::Const(Datum::Bool(test.unique_keys)), oids::BOOL),
        ];
        self.named_call("sqljson_is", args, oids::BOOL, test.location)
    }

    pub(super) fn sampled(&mut self, system: bool, args: &[Expr]) -> Result<Expression> {
        let args = self.compile_all(args)?;
        self.named_call(if system { "tablesample_system" } else { "tablesample_bernoulli" }, args, oids::BOOL, -1)
    }

    /// A call of a function that has no row in pg_proc. Its result may depend on settings.
    fn named_call(&mut self, source: &str, args: Vec<Expression>, return_type: Oid, location: i32) -> Result<Expression> {
        let call = Call::plain(CallTarget::Scalar(implementation(source)?), args, return_type, location);
        Ok(self.expression(Node::Call(Box::new(call)), return_type))
    }

    pub(super) fn json_query(&mut self, j: &JsonExpr) -> Result<Expression> {
        let source = match j.operation {
            JsonOperation::Exists => "sqljson_exists",
            JsonOperation::Query => "sqljson_query",
            JsonOperation::Value => "sqljson_value",
        };
        let ty = j.returning.ty;
        let mut path = self.json_path(source, &j.item, &j.path, &j.passing)?;
        path.column = j.column.clone();
        path.wrapper = j.wrapper;
        path.stays_json = matches!(ty, oids::JSON | oids::JSONB) || j.coercion == JsonCoercion::Populate;
        let query = JsonQuery {
            operation: j.operation,
            path,
            coercion: j.coercion,
            typmod: j.returning.typmod,
            omit_quotes: j.omit_quotes,
            exists_as_integer: self.catalog.base_type(ty) == oids::INT4,
            populate: implementation("sqljson_populate")?,
            on_empty: j.on_empty.as_ref().map(|b| self.behavior(b)).transpose()?,
            on_error: self.behavior(&j.on_error)?,
        };
        Ok(self.expression(Node::JsonQuery(Box::new(query)), ty))
    }

    /// A path for which `source` is called.
    pub fn json_path(&mut self, source: &str, item: &Expr, path: &Expr, passing: &[(Arc<str>, Expr)]) -> Result<JsonPath> {
        let (item, path) = (self.compile(item)?, self.compile(path)?);
        let passing: Vec<(Arc<str>, Expression)> =
            passing.iter().map(|(name, value)| Ok((name.clone(), self.compile(value)?))).collect::<Result<_>>()?;
        let mut arg_types = vec![oids::JSONB, oids::JSONPATH, oids::TEXT, oids::INT4, oids::BOOL];
        for (_, value) in &passing {
            arg_types.extend([oids::TEXT, value.ty]);
        }
        Ok(JsonPath {
            function: implementation(source)?,
            item,
            path,
            passing,
            column: None,
            wrapper: JsonWrapper::None,
            stays_json: false,
            arg_types: arg_types.into(),
            return_type: oids::JSONB,
        })
    }

    fn behavior(&mut self, b: &JsonBehavior) -> Result<Behavior> {
        Ok(Behavior {
            kind: b.kind,
            value: b.value.as_ref().map(|v| self.compile(v)).transpose()?,
            populate: b.populate,
            is_cast: matches!(b.value, Some(Expr::CoerceViaIo { .. } | Expr::CoerceToDomain { .. })),
        })
    }
}
