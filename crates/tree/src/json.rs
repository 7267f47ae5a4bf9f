//! SQL/JSON: constructors, IS JSON, query functions, JSON_TABLE.
//!
//! Steps after a value was computed (a conversion to the RETURNING type, a column of JSON_TABLE) are expressions over
//! `Expr::CaseTest`, which stands for that value.

use std::sync::Arc;

use melba_types::{Oid, oids};

use super::{Expr, OutputColumn};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JsonFormat {
    pub kind: JsonFormatKind,
    pub encoding: JsonEncoding,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JsonFormatKind {
    #[default]
    Default,
    Json,
    Jsonb,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JsonEncoding {
    #[default]
    Default,
    Utf8,
    Utf16,
    Utf32,
}

/// RETURNING, written or by default.
#[derive(Clone, Copy, Debug)]
pub struct JsonReturning {
    pub ty: Oid,
    pub typmod: i32,
    pub format: JsonFormat,
}

/// A value as it was written, and the expression that makes it JSON.
#[derive(Clone, Debug)]
pub struct JsonValue {
    pub arg: Expr,
    /// Over CaseTest, which is `arg`'s value.
    pub formatting: Expr,
    pub format: JsonFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonConstructorKind {
    /// JSON_OBJECT: `args` are keys and values by turns.
    Object,
    Array,
    ObjectAggregate,
    ArrayAggregate,
    /// JSON().
    Parse,
    Scalar,
    Serialize,
}

#[derive(Clone, Debug)]
pub struct JsonConstructor {
    pub kind: JsonConstructorKind,
    /// Of the aggregates: none.
    pub args: Vec<Expr>,
    /// The call of the aggregates, as an aggregate or a window function.
    pub function: Option<Expr>,
    /// Over CaseTest, when the value made is not of the RETURNING type.
    pub coercion: Option<Expr>,
    pub returning: JsonReturning,
    pub collation: Oid,
    pub absent_on_null: bool,
    pub unique_keys: bool,
    pub location: i32,
}

impl JsonConstructor {
    /// The type of the value before `coercion`.
    pub fn constructed_type(&self) -> Oid {
        match (&self.function, self.returning.format.kind) {
            (Some(function), _) => function.ty(),
            (None, JsonFormatKind::Jsonb) => oids::JSONB,
            _ => oids::JSON,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonItemType {
    Any,
    Object,
    Array,
    Scalar,
}

/// `arg IS JSON`.
#[derive(Clone, Debug)]
pub struct IsJson {
    pub arg: Expr,
    pub item: JsonItemType,
    pub unique_keys: bool,
    pub location: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonOperation {
    Exists,
    Query,
    Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonWrapper {
    None,
    Conditional,
    Unconditional,
}

/// How the item that a path selects becomes a value of the RETURNING type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonCoercion {
    None,
    /// Its text is read by the type's input function.
    ByText,
    /// As json_populate_record fills a column.
    Populate,
}

#[derive(Clone, Debug)]
pub struct JsonExpr {
    pub operation: JsonOperation,
    /// The column of JSON_TABLE that it computes, for messages.
    pub column: Option<Arc<str>>,
    /// jsonb.
    pub item: Expr,
    pub path: Expr,
    pub passing: Vec<(Arc<str>, Expr)>,
    pub returning: JsonReturning,
    pub collation: Oid,
    pub coercion: JsonCoercion,
    pub wrapper: JsonWrapper,
    pub omit_quotes: bool,
    /// Not JSON_EXISTS.
    pub on_empty: Option<JsonBehavior>,
    pub on_error: JsonBehavior,
    pub location: i32,
}

#[derive(Clone, Debug)]
pub struct JsonBehavior {
    pub kind: JsonBehaviorKind,
    /// The value; of ERROR there is none.
    pub value: Option<Expr>,
    /// The value is populated as the RETURNING type when it is needed.
    pub populate: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonBehaviorKind {
    Null,
    Error,
    Empty,
    True,
    False,
    Unknown,
    EmptyArray,
    EmptyObject,
    Default,
}

impl JsonBehaviorKind {
    pub fn name(self) -> &'static str {
        match self {
            JsonBehaviorKind::Null => "NULL",
            JsonBehaviorKind::Error => "ERROR",
            JsonBehaviorKind::Empty => "EMPTY",
            JsonBehaviorKind::True => "TRUE",
            JsonBehaviorKind::False => "FALSE",
            JsonBehaviorKind::Unknown => "UNKNOWN",
            JsonBehaviorKind::EmptyArray => "EMPTY ARRAY",
            JsonBehaviorKind::EmptyObject => "EMPTY OBJECT",
            JsonBehaviorKind::Default => "DEFAULT",
        }
    }
}

/// JSON_TABLE in FROM.
#[derive(Clone, Debug)]
pub struct JsonTable {
    /// jsonb.
    pub item: Expr,
    pub passing: Vec<(Arc<str>, Expr)>,
    pub on_error: JsonBehaviorKind,
    pub root: JsonTablePath,
    /// By path: those of the root, then those of its first nested path and of the paths in that, and so on.
    pub columns: Vec<JsonTableColumn>,
}

/// A row pattern.
#[derive(Clone, Debug)]
pub struct JsonTablePath {
    /// A constant jsonpath.
    pub path: Expr,
    pub name: Arc<str>,
    /// Its own columns.
    pub columns: std::ops::Range<usize>,
    /// NESTED PATHs, whose rows follow each other.
    pub nested: Vec<JsonTablePath>,
}

#[derive(Clone, Debug)]
pub struct JsonTableColumn {
    pub column: OutputColumn,
    /// Over CaseTest, which is the row pattern's item; `None`: FOR ORDINALITY.
    pub value: Option<Expr>,
}

macro_rules! json_children {
    ($name:ident, $iter:ident $(, $mut:tt)?) => {
        impl JsonValue {
            pub(crate) fn $name<'a>(&'a $($mut)? self, f: &mut dyn FnMut(&'a $($mut)? Expr)) {
                f(&$($mut)? self.arg);
                f(&$($mut)? self.formatting);
            }
        }

        impl JsonConstructor {
            pub(crate) fn $name<'a>(&'a $($mut)? self, f: &mut dyn FnMut(&'a $($mut)? Expr)) {
                self.args.$iter().for_each(&mut *f);
                for e in [&$($mut)? self.function, &$($mut)? self.coercion].into_iter().flatten() {
                    f(e);
                }
            }
        }

        impl JsonExpr {
            pub(crate) fn $name<'a>(&'a $($mut)? self, f: &mut dyn FnMut(&'a $($mut)? Expr)) {
                f(&$($mut)? self.item);
                f(&$($mut)? self.path);
                self.passing.$iter().for_each(|(_, v)| f(v));
                let on_empty = self.on_empty.$iter();
                for behavior in on_empty.chain(std::iter::once(&$($mut)? self.on_error)) {
                    behavior.value.$iter().for_each(&mut *f);
                }
            }
        }
    };
}

json_children!(children, iter);
json_children!(children_mut, iter_mut, mut);
