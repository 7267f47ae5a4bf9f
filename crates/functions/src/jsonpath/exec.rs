//! Runs a path over a document.

use std::cmp::Ordering;
use std::rc::Rc;

use melba_types::jsonb::Value;
use melba_types::{DbError, Numeric, Result, err, limits};

use super::ast::{Accessor, Expr, Operator, Path};
use super::methods;
use crate::Session;
use crate::text::regexp::{Flags, Regexp};

/// What a path runs over.
pub struct Executor<'a> {
    pub session: &'a dyn Session,
    pub root: &'a Value,
    pub vars: &'a Value,
    pub lax: bool,
}

/// Where `@` and `last` point.
#[derive(Clone, Copy)]
struct Scope<'a> {
    current: &'a Value,
    /// Length of the innermost array being subscripted.
    length: usize,
}

/// Errors that a predicate turns into unknown, and a silent call into no result: those about data.
pub fn is_suppressible(error: &DbError) -> bool {
    error.sqlstate().class() == "22"
}

impl Executor<'_> {
    /// The items the path selects.
    pub fn run(&self, path: &Path) -> Result<Vec<Value>> {
        self.items(&path.expr, Scope { current: self.root, length: 0 })
    }

    fn items(&self, expr: &Expr, scope: Scope<'_>) -> Result<Vec<Value>> {
        limits::check_stack()?;
        Ok(match expr {
            Expr::Null => vec![Value::Null],
            Expr::Bool(v) => vec![Value::Bool(*v)],
            Expr::Number(v) => vec![Value::Number(v.clone())],
            Expr::String(v) => vec![Value::String(v.clone())],
            Expr::Root => vec![self.root.clone()],
            Expr::Current => vec![scope.current.clone()],
            Expr::Last => vec![integer(scope.length as i64 - 1)],
            Expr::Variable(name) => vec![self.variable(name)?],
            Expr::Chain(base, accessors) => {
                let mut items = self.items(base, scope)?;
                for accessor in accessors {
                    let mut next = Vec::new();
                    for item in items {
                        self.access(item, accessor, scope, &mut next)?;
                    }
                    items = next;
                    if items.is_empty() {
                        break;
                    }
                }
                items
            }
            Expr::Unary(sign, operand) => {
                let numbers = self.unwrapped(operand, scope)?.into_iter().map(|item| match (item, sign) {
                    (Value::Number(v), '-') => Ok(Value::Number(v.neg())),
                    (Value::Number(v), _) => Ok(Value::Number(v)),
                    _ => Err(err!(SQL_JSON_NUMBER_NOT_FOUND, "operand of unary jsonpath operator {sign} is not a numeric value")),
                });
                numbers.collect::<Result<_>>()?
            }
            Expr::Binary(op, left, right) if !expr.is_predicate() => {
                let left = self.number(left, scope, "left", *op)?;
                let right = self.number(right, scope, "right", *op)?;
                vec![Value::Number(arithmetic(*op, &left, &right)?)]
            }
            _ => vec![self.predicate(expr, scope)?.map_or(Value::Null, Value::Bool)],
        })
    }

    fn variable(&self, name: &str) -> Result<Value> {
        let found = match self.vars {
            Value::Object(fields) => fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone()),
            _ => None,
        };
        found.ok_or_else(|| err!(UNDEFINED_OBJECT, "could not find jsonpath variable \"{name}\""))
    }

    /// Items, arrays taken apart in lax mode.
    fn unwrapped(&self, expr: &Expr, scope: Scope<'_>) -> Result<Vec<Value>> {
        let items = self.items(expr, scope)?;
        if !self.lax {
            return Ok(items);
        }
        Ok(items
            .into_iter()
            .flat_map(|item| match item {
                Value::Array(elements) => elements,
                other => vec![other],
            })
            .collect())
    }

    fn number(&self, expr: &Expr, scope: Scope<'_>, side: &str, op: Operator) -> Result<Numeric> {
        match &self.unwrapped(expr, scope)?[..] {
            [Value::Number(v)] => Ok(v.clone()),
            _ => Err(err!(
                SINGLETON_SQL_JSON_ITEM_REQUIRED,
                "{side} operand of jsonpath operator {} is not a single numeric value",
                op.symbol()
            )),
        }
    }

    fn access(&self, item: Value, accessor: &Accessor, scope: Scope<'_>, out: &mut Vec<Value>) -> Result<()> {
        // In lax mode most accessors go into arrays by themselves.
        let goes_inside = match accessor {
            Accessor::Key(_) | Accessor::AnyKey | Accessor::Filter(_) => true,
            Accessor::Method(name, _) => !matches!(name.as_str(), "type" | "size"),
            _ => false,
        };
        match item {
            Value::Array(elements) if self.lax && goes_inside => {
                elements.into_iter().try_for_each(|element| self.access_one(element, accessor, scope, out))
            }
            item => self.access_one(item, accessor, scope, out),
        }
    }

    fn access_one(&self, item: Value, accessor: &Accessor, scope: Scope<'_>, out: &mut Vec<Value>) -> Result<()> {
        match accessor {
            Accessor::Key(key) => match item {
                Value::Object(fields) => match fields.into_iter().find(|(name, _)| name == key) {
                    Some((_, value)) => out.push(value),
                    None if self.lax => {}
                    None => {
                        return Err(err!(SQL_JSON_MEMBER_NOT_FOUND, "JSON object does not contain key \"{key}\""));
                    }
                },
                _ if self.lax => {}
                _ => {
                    return Err(err!(SQL_JSON_MEMBER_NOT_FOUND, "jsonpath member accessor can only be applied to an object"));
                }
            },
            Accessor::AnyKey => match item {
                Value::Object(fields) => out.extend(fields.into_iter().map(|(_, value)| value)),
                _ if self.lax => {}
                _ => {
                    return Err(err!(
                        SQL_JSON_OBJECT_NOT_FOUND,
                        "jsonpath wildcard member accessor can only be applied to an object"
                    ));
                }
            },
            Accessor::AnyLevel(from, to) => descend(&item, 0, from.unwrap_or(u32::MAX), to.unwrap_or(u32::MAX), out),
            Accessor::AnyElement => match item {
                Value::Array(elements) => out.extend(elements),
                other if self.lax => out.push(other),
                _ => {
                    return Err(err!(
                        SQL_JSON_ARRAY_NOT_FOUND,
                        "jsonpath wildcard array accessor can only be applied to an array"
                    ));
                }
            },
            Accessor::Elements(subscripts) => self.elements(item, subscripts, scope, out)?,
            Accessor::Filter(predicate) => {
                if self.predicate(predicate, Scope { current: &item, ..scope })? == Some(true) {
                    out.push(item);
                }
            }
            Accessor::Method(name, args) => methods::apply(self.session, self.lax, item, name, args, out)?,
        }
        Ok(())
    }

    fn elements(&self, item: Value, subscripts: &[(Expr, Option<Expr>)], scope: Scope<'_>, out: &mut Vec<Value>) -> Result<()> {
        let elements = match item {
            Value::Array(elements) => elements,
            other if self.lax => vec![other],
            _ => {
                return Err(err!(SQL_JSON_ARRAY_NOT_FOUND, "jsonpath array accessor can only be applied to an array"));
            }
        };
        let inner = Scope { length: elements.len(), ..scope };
        for (from, to) in subscripts {
            let first = self.subscript(from, inner)?;
            let last = to.as_ref().map_or(Ok(first), |to| self.subscript(to, inner))?;
            let count = elements.len() as i64;
            if !self.lax && (first < 0 || first > last || last >= count) {
                return Err(err!(INVALID_SQL_JSON_SUBSCRIPT, "jsonpath array subscript is out of bounds"));
            }
            out.extend((first.max(0)..=last.min(count - 1)).map(|i| elements[i as usize].clone()));
        }
        Ok(())
    }

    fn subscript(&self, expr: &Expr, scope: Scope<'_>) -> Result<i64> {
        match &self.items(expr, scope)?[..] {
            [Value::Number(v)] => v
                .trunc(0)?
                .to_i32()
                .map(i64::from)
                .map_err(|_| err!(INVALID_SQL_JSON_SUBSCRIPT, "jsonpath array subscript is out of integer range")),
            _ => Err(err!(INVALID_SQL_JSON_SUBSCRIPT, "jsonpath array subscript is not a single numeric value")),
        }
    }

    /// True, false, or unknown (`None`).
    fn predicate(&self, expr: &Expr, scope: Scope<'_>) -> Result<Option<bool>> {
        limits::check_stack()?;
        Ok(match expr {
            Expr::Binary(Operator::And, left, right) => match self.predicate(left, scope)? {
                Some(false) => Some(false),
                left => match (left, self.predicate(right, scope)?) {
                    (_, Some(false)) => Some(false),
                    (Some(true), right) => right,
                    _ => None,
                },
            },
            Expr::Binary(Operator::Or, left, right) => match self.predicate(left, scope)? {
                Some(true) => Some(true),
                left => match (left, self.predicate(right, scope)?) {
                    (_, Some(true)) => Some(true),
                    (Some(false), right) => right,
                    _ => None,
                },
            },
            Expr::Not(operand) => self.predicate(operand, scope)?.map(|v| !v),
            Expr::IsUnknown(operand) => Some(self.predicate(operand, scope)?.is_none()),
            Expr::Exists(operand) => self.attempt(self.items(operand, scope))?.map(|items| !items.is_empty()),
            Expr::Binary(op, left, right) => {
                let left = self.attempt(self.unwrapped(left, scope))?;
                let right = self.attempt(self.unwrapped(right, scope))?;
                let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
                let pairs = left.iter().flat_map(|a| right.iter().map(move |b| (a, b)));
                self.any(pairs.map(|(a, b)| compare(*op, a, b)))
            }
            Expr::StartsWith(left, right) => {
                let left = self.attempt(self.unwrapped(left, scope))?;
                let right = self.items(right, scope)?;
                let Some(left) = left else { return Ok(None) };
                self.any(left.iter().map(|item| match (item, right.first()) {
                    (Value::String(text), Some(Value::String(prefix))) => Some(text.starts_with(prefix.as_str())),
                    _ => None,
                }))
            }
            Expr::LikeRegex(operand, pattern, flags) => {
                let Some(items) = self.attempt(self.unwrapped(operand, scope))? else { return Ok(None) };
                let regex = regex_of(pattern, flags)?;
                let test = |item: &Value| match item {
                    Value::String(text) => regex.is_match(text).map(Some),
                    _ => Ok(None),
                };
                let tests = items.iter().map(test).collect::<Result<Vec<_>>>()?;
                self.any(tests.into_iter())
            }
            other => match &self.items(other, scope)?[..] {
                [Value::Bool(v)] => Some(*v),
                _ => None,
            },
        })
    }

    /// Errors about data make a predicate unknown.
    fn attempt(&self, items: Result<Vec<Value>>) -> Result<Option<Vec<Value>>> {
        match items {
            Ok(items) => Ok(Some(items)),
            Err(e) if is_suppressible(&e) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Whether any test is true. In strict mode all must have an answer.
    fn any(&self, tests: impl Iterator<Item = Option<bool>>) -> Option<bool> {
        let (mut found, mut unknown) = (false, false);
        for test in tests {
            match test {
                Some(true) if self.lax => return Some(true),
                Some(true) => found = true,
                Some(false) => {}
                None if !self.lax => return None,
                None => unknown = true,
            }
        }
        if found {
            Some(true)
        } else if unknown {
            None
        } else {
            Some(false)
        }
    }
}

pub fn integer(value: i64) -> Value {
    Value::Number(Numeric::from_parts(i128::from(value), 0))
}

fn arithmetic(op: Operator, a: &Numeric, b: &Numeric) -> Result<Numeric> {
    match op {
        Operator::Add => a.add(b),
        Operator::Subtract => a.sub(b),
        Operator::Multiply => a.mul(b),
        Operator::Divide => a.div(b),
        _ => a.rem(b),
    }
}

/// The item and what is inside it, by level.
fn descend(item: &Value, level: u32, from: u32, to: u32, out: &mut Vec<Value>) {
    let is_leaf = item.is_scalar();
    // "last" alone selects the leaves, but not a document that is one.
    if (level >= from && level <= to) || (from == u32::MAX && is_leaf && level > 0) {
        out.push(item.clone());
    }
    if level >= to {
        return;
    }
    match item {
        Value::Array(elements) => elements.iter().for_each(|element| descend(element, level + 1, from, to, out)),
        Value::Object(fields) => fields.iter().for_each(|(_, value)| descend(value, level + 1, from, to, out)),
        _ => {}
    }
}

fn compare(op: Operator, a: &Value, b: &Value) -> Option<bool> {
    let order = match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) | (_, Value::Null) => return Some(op == Operator::NotEqual),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        _ => return None,
    };
    Some(match op {
        Operator::Equal => order.is_eq(),
        Operator::NotEqual => order.is_ne(),
        Operator::Less => order.is_lt(),
        Operator::LessOrEqual => order.is_le(),
        Operator::Greater => order.is_gt(),
        _ => order.is_ge(),
    })
}

/// The regular expression of like_regex: PostgreSQL's, with XQuery's flags.
pub fn regex_of(pattern: &str, flags: &str) -> Result<Rc<Regexp>> {
    if let Some(other) = flags.chars().find(|flag| !LIKE_REGEX_FLAGS.contains(*flag)) {
        return Err(err!(SYNTAX_ERROR, "invalid input syntax for type jsonpath")
            .detail(format!("Unrecognized flag character \"{other}\" in LIKE_REGEX predicate.")));
    }
    let has = |flag| flags.contains(flag);
    let flags = match has('q') {
        true => Flags { ignore_case: has('i'), literal: true, ..Flags::default() },
        false if has('x') => {
            return Err(err!(FEATURE_NOT_SUPPORTED, "XQuery \"x\" flag (expanded regular expressions) is not implemented"));
        }
        false => Flags { ignore_case: has('i'), newline_excluded: !has('s'), newline_anchors: has('m'), ..Flags::default() },
    };
    Regexp::get(pattern, flags)
}

/// In the order in which they are printed.
pub const LIKE_REGEX_FLAGS: &str = "ismxq";
