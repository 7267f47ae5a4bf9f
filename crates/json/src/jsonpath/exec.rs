//! Runs a path over a document.

use std::cell::Cell;
use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

use melba_fmgr::Session;
use melba_regexp::{Flags, Flavor, Regexp};
use melba_types::jsonb::JsonbValue;
use melba_types::{DbError, Numeric, Result, err, limits};

use super::ast::{Accessor, Expr, Path, PathOperator};
use super::item::{Base, DateTime, Item};
use super::{datetime, methods};

/// The state of a path's execution.
pub struct Executor<'a> {
    pub session: &'a dyn Session,
    /// Casts may depend on the session's time zone.
    pub use_zone: bool,
    pub lax: bool,
    root: Item<'a>,
    variables: Variables<'a>,
    /// Objects made so far; the document is 0, and the variables follow it.
    made: Cell<i64>,
}

/// The values of a path's `$name`.
pub enum Variables<'a> {
    /// The fields of an object.
    Object(&'a JsonbValue, Rc<Base<'a>>),
    Named(&'a [Variable]),
}

/// One of PASSING.
pub struct Variable {
    pub name: Arc<str>,
    pub value: VariableValue,
}

pub enum VariableValue {
    Json(JsonbValue),
    DateTime(DateTime),
}

impl<'a> Variables<'a> {
    pub fn of_object(object: &'a JsonbValue) -> Variables<'a> {
        Variables::Object(object, Base::new(1, object, 0))
    }

    fn find(&self, name: &str) -> Option<Item<'a>> {
        match self {
            Variables::Object(object, base) => Item::Part(object, base.clone()).field(name).flatten(),
            Variables::Named(variables) => {
                let at = variables.iter().position(|v| *v.name == *name)?;
                Some(match &variables[at].value {
                    VariableValue::Json(value) => Item::Part(value, Base::new(at as i64 + 1, value, 0)),
                    VariableValue::DateTime(value) => Item::DateTime(value.clone()),
                })
            }
        }
    }

    /// How many documents the path has besides its own.
    fn documents(&self) -> i64 {
        match self {
            Variables::Object(..) => 1,
            Variables::Named(variables) => variables.len() as i64,
        }
    }
}

/// Where `@` and `last` point.
#[derive(Clone, Copy)]
struct Scope<'s, 'a> {
    current: &'s Item<'a>,
    /// Length of the innermost array being subscripted.
    length: usize,
}

/// Takes the items that a step selects.
pub type Sink<'s, 'a> = &'s mut dyn FnMut(Item<'a>) -> Result<()>;

/// Errors that a predicate turns into unknown, and a silent call into no result: those about data.
pub fn is_suppressible(error: &DbError) -> bool {
    error.sqlstate().class() == "22"
}

impl<'a> Executor<'a> {
    pub fn new(
        session: &'a dyn Session,
        root: &'a JsonbValue,
        variables: Variables<'a>,
        lax: bool,
        use_zone: bool,
    ) -> Executor<'a> {
        let root = Item::Part(root, Base::new(0, root, 0));
        let made = Cell::new(1 + variables.documents());
        Executor { session, use_zone, lax, root, variables, made }
    }

    /// The items the path selects. Those that were found before an error stay in `found`.
    pub fn run(&self, path: &Path, found: &mut Vec<Item<'a>>) -> Result<()> {
        let scope = Scope { current: &self.root, length: 0 };
        match &path.expr {
            Expr::Chain(base, accessors) => {
                self.items(base, scope)?.into_iter().try_for_each(|item| self.follow(item, accessors, scope, found))
            }
            Expr::Unary(sign, operand) => self.unwrapped(operand, scope)?.iter().try_for_each(|item| {
                found.push(signed(*sign, item)?);
                Ok(())
            }),
            expr => {
                found.extend(self.items(expr, scope)?);
                Ok(())
            }
        }
    }

    fn items(&self, expr: &Expr, scope: Scope<'_, 'a>) -> Result<Vec<Item<'a>>> {
        limits::check_stack()?;
        Ok(match expr {
            Expr::Null => vec![Item::Made(JsonbValue::Null)],
            Expr::Bool(v) => vec![Item::Made(JsonbValue::Bool(*v))],
            Expr::Number(v) => vec![Item::number(v.clone())],
            Expr::String(v) => vec![Item::string(v)],
            Expr::Root => vec![self.root.clone()],
            Expr::Current => vec![scope.current.clone()],
            Expr::Last => vec![Item::integer(scope.length as i64 - 1)],
            Expr::Variable(name) => vec![self.variable(name)?],
            Expr::Chain(base, accessors) => {
                let mut found = Vec::new();
                for item in self.items(base, scope)? {
                    self.follow(item, accessors, scope, &mut found)?;
                }
                found
            }
            Expr::Unary(sign, operand) => {
                self.unwrapped(operand, scope)?.iter().map(|item| signed(*sign, item)).collect::<Result<_>>()?
            }
            Expr::Binary(op, left, right) if !expr.is_predicate() => {
                let left = self.number(left, scope, "left", *op)?;
                let right = self.number(right, scope, "right", *op)?;
                vec![Item::number(arithmetic(*op, &left, &right)?)]
            }
            _ => vec![Item::Made(self.predicate(expr, scope)?.map_or(JsonbValue::Null, JsonbValue::Bool))],
        })
    }

    fn variable(&self, name: &str) -> Result<Item<'a>> {
        self.variables.find(name).ok_or_else(|| err!(UNDEFINED_OBJECT, "could not find jsonpath variable \"{name}\""))
    }

    /// Items, arrays taken apart in lax mode.
    fn unwrapped(&self, expr: &Expr, scope: Scope<'_, 'a>) -> Result<Vec<Item<'a>>> {
        let items = self.items(expr, scope)?;
        if !self.lax {
            return Ok(items);
        }
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            match item.elements() {
                Some(elements) => out.extend(elements),
                None => out.push(item),
            }
        }
        Ok(out)
    }

    fn number(&self, expr: &Expr, scope: Scope<'_, 'a>, side: &str, op: PathOperator) -> Result<Numeric> {
        if let [item] = &self.unwrapped(expr, scope)?[..]
            && let Some(JsonbValue::Number(v)) = item.value()
        {
            return Ok(v.clone());
        }
        Err(err!(
            SINGLETON_SQL_JSON_ITEM_REQUIRED,
            "{side} operand of jsonpath operator {} is not a single numeric value",
            op.symbol()
        ))
    }

    /// Appends the items that a chain of accessors selects. An item is followed to the end before the next one is searched, as in
    /// PostgreSQL: the numbers of created objects, and which of several errors is met, depend on it.
    fn follow(&self, item: Item<'a>, accessors: &[Accessor], scope: Scope<'_, 'a>, found: &mut Vec<Item<'a>>) -> Result<()> {
        limits::check_stack()?;
        limits::tick()?;
        match accessors.split_first() {
            None => found.push(item),
            Some((accessor, rest)) => self.access(item, accessor, scope, &mut |item| self.follow(item, rest, scope, found))?,
        }
        Ok(())
    }

    fn access(&self, item: Item<'a>, accessor: &Accessor, scope: Scope<'_, 'a>, out: Sink<'_, 'a>) -> Result<()> {
        // In lax mode most accessors unwrap arrays implicitly.
        let goes_inside = match accessor {
            Accessor::Key(_) | Accessor::AnyKey | Accessor::Filter(_) => true,
            Accessor::Method(name, _) => !matches!(name.as_str(), "type" | "size"),
            _ => false,
        };
        match item.elements().filter(|_| self.lax && goes_inside) {
            Some(mut elements) => elements.try_for_each(|element| self.access_one(element, accessor, scope, out)),
            None => self.access_one(item, accessor, scope, out),
        }
    }

    fn access_one(&self, item: Item<'a>, accessor: &Accessor, scope: Scope<'_, 'a>, out: Sink<'_, 'a>) -> Result<()> {
        match accessor {
            Accessor::Key(key) => match item.field(key) {
                Some(Some(value)) => out(value)?,
                _ if self.lax => {}
                Some(None) => {
                    return Err(err!(SQL_JSON_MEMBER_NOT_FOUND, "JSON object does not contain key \"{key}\""));
                }
                None => {
                    return Err(err!(SQL_JSON_MEMBER_NOT_FOUND, "jsonpath member accessor can only be applied to an object"));
                }
            },
            Accessor::AnyKey => match item.fields() {
                Some(fields) => fields.into_iter().try_for_each(|(_, value)| out(value))?,
                None if self.lax => {}
                None => {
                    return Err(err!(
                        SQL_JSON_OBJECT_NOT_FOUND,
                        "jsonpath wildcard member accessor can only be applied to an object"
                    ));
                }
            },
            Accessor::AnyLevel(from, to) => descend(&item, 0, from.unwrap_or(u32::MAX), to.unwrap_or(u32::MAX), out)?,
            Accessor::AnyElement => match item.elements() {
                Some(mut elements) => elements.try_for_each(out)?,
                None if self.lax => out(item)?,
                None => {
                    return Err(err!(
                        SQL_JSON_ARRAY_NOT_FOUND,
                        "jsonpath wildcard array accessor can only be applied to an array"
                    ));
                }
            },
            Accessor::Elements(subscripts) => self.elements(item, subscripts, scope, out)?,
            Accessor::Filter(predicate) => {
                if self.predicate(predicate, Scope { current: &item, ..scope })? == Some(true) {
                    out(item)?;
                }
            }
            Accessor::Method(name, args) => {
                let next_number = || self.made.replace(self.made.get() + 1);
                methods::apply(self, item, name, args, next_number, out)?;
            }
        }
        Ok(())
    }

    fn elements(
        &self,
        item: Item<'a>,
        subscripts: &[(Expr, Option<Expr>)],
        scope: Scope<'_, 'a>,
        out: Sink<'_, 'a>,
    ) -> Result<()> {
        let elements: Vec<Item<'a>> = match item.elements() {
            Some(elements) => elements.collect(),
            None if self.lax => vec![item],
            None => {
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
            (first.max(0)..=last.min(count - 1)).try_for_each(|i| out(elements[i as usize].clone()))?;
        }
        Ok(())
    }

    fn subscript(&self, expr: &Expr, scope: Scope<'_, 'a>) -> Result<i64> {
        if let [item] = &self.items(expr, scope)?[..]
            && let Some(JsonbValue::Number(v)) = item.value()
        {
            let out_of_range = |_| err!(INVALID_SQL_JSON_SUBSCRIPT, "jsonpath array subscript is out of integer range");
            return v.trunc(0)?.to_i32().map(i64::from).map_err(out_of_range);
        }
        Err(err!(INVALID_SQL_JSON_SUBSCRIPT, "jsonpath array subscript is not a single numeric value"))
    }

    /// True, false, or unknown (`None`).
    fn predicate(&self, expr: &Expr, scope: Scope<'_, 'a>) -> Result<Option<bool>> {
        limits::check_stack()?;
        Ok(match expr {
            Expr::Binary(PathOperator::And, left, right) => match self.predicate(left, scope)? {
                Some(false) => Some(false),
                left => match (left, self.predicate(right, scope)?) {
                    (_, Some(false)) => Some(false),
                    (Some(true), right) => right,
                    _ => None,
                },
            },
            Expr::Binary(PathOperator::Or, left, right) => match self.predicate(left, scope)? {
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
                self.any(pairs.map(|(a, b)| {
                    limits::tick()?;
                    self.compare(*op, a, b)
                }))?
            }
            Expr::StartsWith(left, right) => {
                let left = self.attempt(self.unwrapped(left, scope))?;
                let right = self.items(right, scope)?;
                let Some(left) = left else { return Ok(None) };
                let prefix = right.first().and_then(Item::value);
                self.any(left.iter().map(|item| match (item.value(), prefix) {
                    (Some(JsonbValue::String(text)), Some(JsonbValue::String(prefix))) => {
                        Ok(Some(text.starts_with(prefix.as_str())))
                    }
                    _ => Ok(None),
                }))?
            }
            Expr::LikeRegex(operand, pattern, flags) => {
                let Some(items) = self.attempt(self.unwrapped(operand, scope))? else { return Ok(None) };
                let regex = regex_of(pattern, flags)?;
                self.any(items.iter().map(|item| match item.value() {
                    Some(JsonbValue::String(text)) => regex.is_match(text).map(Some),
                    _ => Ok(None),
                }))?
            }
            other => match &self.items(other, scope)?[..] {
                [item] if let Some(JsonbValue::Bool(v)) = item.value() => Some(*v),
                _ => None,
            },
        })
    }

    /// Errors about data make a predicate unknown.
    fn attempt(&self, items: Result<Vec<Item<'a>>>) -> Result<Option<Vec<Item<'a>>>> {
        match items {
            Ok(items) => Ok(Some(items)),
            Err(e) if is_suppressible(&e) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Whether any test is true. In strict mode all must have an answer.
    fn any(&self, tests: impl Iterator<Item = Result<Option<bool>>>) -> Result<Option<bool>> {
        let (mut found, mut unknown) = (false, false);
        for test in tests {
            match test? {
                Some(true) if self.lax => return Ok(Some(true)),
                Some(true) => found = true,
                Some(false) => {}
                None if !self.lax => return Ok(None),
                None => unknown = true,
            }
        }
        Ok(if found { Some(true) } else { (!unknown).then_some(false) })
    }

    fn compare(&self, op: PathOperator, a: &Item<'a>, b: &Item<'a>) -> Result<Option<bool>> {
        let is_null = |item: &Item<'_>| matches!(item.value(), Some(JsonbValue::Null));
        let order = match (a, b) {
            _ if is_null(a) != is_null(b) => return Ok(Some(op == PathOperator::NotEqual)),
            (Item::DateTime(a), Item::DateTime(b)) => {
                let Some(order) = datetime::compare(self.session, self.use_zone, a, b)? else { return Ok(None) };
                order
            }
            _ => match (a.value(), b.value()) {
                (Some(JsonbValue::Null), Some(JsonbValue::Null)) => Ordering::Equal,
                (Some(JsonbValue::Bool(a)), Some(JsonbValue::Bool(b))) => a.cmp(b),
                (Some(JsonbValue::Number(a)), Some(JsonbValue::Number(b))) => a.cmp(b),
                (Some(JsonbValue::String(a)), Some(JsonbValue::String(b))) => a.cmp(b),
                _ => return Ok(None),
            },
        };
        Ok(Some(match op {
            PathOperator::Equal => order.is_eq(),
            PathOperator::NotEqual => order.is_ne(),
            PathOperator::Less => order.is_lt(),
            PathOperator::LessOrEqual => order.is_le(),
            PathOperator::Greater => order.is_gt(),
            _ => order.is_ge(),
        }))
    }
}

fn signed<'a>(sign: char, item: &Item<'a>) -> Result<Item<'a>> {
    match (item.value(), sign) {
        (Some(JsonbValue::Number(v)), '-') => Ok(Item::number(v.neg())),
        (Some(JsonbValue::Number(v)), _) => Ok(Item::number(v.clone())),
        _ => Err(err!(SQL_JSON_NUMBER_NOT_FOUND, "operand of unary jsonpath operator {sign} is not a numeric value")),
    }
}

fn arithmetic(op: PathOperator, a: &Numeric, b: &Numeric) -> Result<Numeric> {
    match op {
        PathOperator::Add => a.add(b),
        PathOperator::Subtract => a.sub(b),
        PathOperator::Multiply => a.mul(b),
        PathOperator::Divide => a.div(b),
        _ => a.rem(b),
    }
}

/// The item and its content, by level.
fn descend<'a>(item: &Item<'a>, level: u32, from: u32, to: u32, out: Sink<'_, 'a>) -> Result<()> {
    limits::check_stack()?;
    limits::tick()?;
    // "last" alone selects the leaves, but not a document that is one.
    if (level >= from && level <= to) || (from == u32::MAX && !item.is_container() && level > 0) {
        out(item.clone())?;
    }
    if level >= to {
        return Ok(());
    }
    if let Some(mut elements) = item.elements() {
        return elements.try_for_each(|element| descend(&element, level + 1, from, to, out));
    }
    let fields = item.fields().unwrap_or_default();
    fields.iter().try_for_each(|(_, value)| descend(value, level + 1, from, to, out))
}

/// The regular expression of like_regex: PostgreSQL's, with XQuery's flags.
pub fn regex_of(pattern: &str, flags: &str) -> Result<Rc<Regexp>> {
    if let Some(other) = flags.chars().find(|flag| !LIKE_REGEX_FLAGS.contains(*flag)) {
        return Err(err!(SYNTAX_ERROR, "invalid input syntax for type jsonpath")
            .detail(format!("Unrecognized flag character \"{other}\" in LIKE_REGEX predicate.")));
    }
    let has = |flag| flags.contains(flag);
    let flags = match has('q') {
        true => Flags { ignore_case: has('i'), flavor: Flavor::Literal, ..Flags::default() },
        false if has('x') => {
            return Err(err!(FEATURE_NOT_SUPPORTED, "XQuery \"x\" flag (expanded regular expressions) is not implemented"));
        }
        false => Flags { ignore_case: has('i'), newline_excluded: !has('s'), newline_anchors: has('m'), ..Flags::default() },
    };
    Regexp::get(pattern, flags)
}

/// In the order in which they are printed.
pub const LIKE_REGEX_FLAGS: &str = "ismxq";
