//! The tree of a path, and its normalized text.

use std::fmt::{Display, Formatter, Result, Write};

use melba_types::Numeric;
use melba_types::json::write_string;

/// A whole path.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    pub lax: bool,
    pub expr: Expr,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Null,
    Bool(bool),
    Number(Numeric),
    String(String),
    Root,
    Current,
    Last,
    Variable(String),
    /// An expression and the accessors of its items, in order.
    Chain(Box<Expr>, Vec<Accessor>),
    Unary(char, Box<Expr>),
    Binary(PathOperator, Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    Exists(Box<Expr>),
    IsUnknown(Box<Expr>),
    StartsWith(Box<Expr>, Box<Expr>),
    /// Pattern and flags.
    LikeRegex(Box<Expr>, String, String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathOperator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Accessor {
    Key(String),
    AnyKey,
    /// Levels from, to; `None`: the last.
    AnyLevel(Option<u32>, Option<u32>),
    AnyElement,
    /// Index, or from and to.
    Elements(Vec<(Expr, Option<Expr>)>),
    Filter(Expr),
    Method(String, Vec<Expr>),
}

impl PathOperator {
    pub fn symbol(self) -> &'static str {
        match self {
            PathOperator::Or => "||",
            PathOperator::And => "&&",
            PathOperator::Equal => "==",
            PathOperator::NotEqual => "!=",
            PathOperator::Less => "<",
            PathOperator::LessOrEqual => "<=",
            PathOperator::Greater => ">",
            PathOperator::GreaterOrEqual => ">=",
            PathOperator::Add => "+",
            PathOperator::Subtract => "-",
            PathOperator::Multiply => "*",
            PathOperator::Divide => "/",
            PathOperator::Modulo => "%",
        }
    }

    fn priority(self) -> u8 {
        match self {
            PathOperator::Or => 0,
            PathOperator::And => 1,
            PathOperator::Add | PathOperator::Subtract => 3,
            PathOperator::Multiply | PathOperator::Divide | PathOperator::Modulo => 4,
            _ => 2,
        }
    }
}

impl Expr {
    /// Whether the expression is true, false or unknown rather than items.
    pub fn is_predicate(&self) -> bool {
        match self {
            Expr::Binary(op, ..) => op.priority() <= 2,
            Expr::Not(_) | Expr::Exists(_) | Expr::IsUnknown(_) | Expr::StartsWith(..) | Expr::LikeRegex(..) => true,
            _ => false,
        }
    }

    fn priority(&self) -> u8 {
        match self {
            Expr::Binary(op, ..) => op.priority(),
            Expr::StartsWith(..) => 2,
            Expr::Unary(..) => 5,
            _ => 6,
        }
    }

    fn write(&self, f: &mut Formatter<'_>, brackets: bool) -> Result {
        let open = |f: &mut Formatter<'_>| if brackets { f.write_char('(') } else { Ok(()) };
        let close = |f: &mut Formatter<'_>| if brackets { f.write_char(')') } else { Ok(()) };
        match self {
            Expr::Null => f.write_str("null"),
            Expr::Bool(v) => write!(f, "{v}"),
            Expr::Number(v) => write!(f, "{v}"),
            Expr::String(v) => quoted(v, f),
            Expr::Root => f.write_char('$'),
            Expr::Current => f.write_char('@'),
            Expr::Last => f.write_str("last"),
            Expr::Variable(name) => {
                f.write_char('$')?;
                quoted(name, f)
            }
            Expr::Chain(base, accessors) => {
                match &**base {
                    Expr::Number(value) => write!(f, "({value})")?,
                    base => base.write(f, true)?,
                }
                accessors.iter().try_for_each(|accessor| accessor.write(f))
            }
            Expr::Unary(sign, operand) => {
                open(f)?;
                f.write_char(*sign)?;
                operand.write(f, operand.priority() <= 5)?;
                close(f)
            }
            Expr::Binary(op, left, right) => {
                open(f)?;
                left.write(f, left.priority() <= op.priority())?;
                write!(f, " {} ", op.symbol())?;
                right.write(f, right.priority() <= op.priority())?;
                close(f)
            }
            Expr::Not(operand) => {
                f.write_str("!(")?;
                operand.write(f, false)?;
                f.write_char(')')
            }
            Expr::Exists(operand) => {
                f.write_str("exists (")?;
                operand.write(f, false)?;
                f.write_char(')')
            }
            Expr::IsUnknown(operand) => {
                f.write_char('(')?;
                operand.write(f, false)?;
                f.write_str(") is unknown")
            }
            Expr::StartsWith(left, right) => {
                open(f)?;
                left.write(f, left.priority() <= 2)?;
                f.write_str(" starts with ")?;
                right.write(f, right.priority() <= 2)?;
                close(f)
            }
            Expr::LikeRegex(operand, pattern, flags) => {
                open(f)?;
                operand.write(f, operand.priority() <= 6)?;
                f.write_str(" like_regex ")?;
                quoted(pattern, f)?;
                if !flags.is_empty() {
                    write!(f, " flag \"{flags}\"")?;
                }
                close(f)
            }
        }
    }
}

impl Accessor {
    fn write(&self, f: &mut Formatter<'_>) -> Result {
        let level = |level: &Option<u32>| level.map_or("last".to_string(), |n| n.to_string());
        match self {
            Accessor::Key(key) => {
                f.write_char('.')?;
                quoted(key, f)
            }
            Accessor::AnyKey => f.write_str(".*"),
            Accessor::AnyLevel(Some(0), None) => f.write_str(".**"),
            Accessor::AnyLevel(from, to) if from == to => write!(f, ".**{{{}}}", level(from)),
            Accessor::AnyLevel(from, to) => write!(f, ".**{{{} to {}}}", level(from), level(to)),
            Accessor::AnyElement => f.write_str("[*]"),
            Accessor::Elements(subscripts) => {
                f.write_char('[')?;
                for (i, (from, to)) in subscripts.iter().enumerate() {
                    if i > 0 {
                        f.write_char(',')?;
                    }
                    from.write(f, false)?;
                    if let Some(to) = to {
                        f.write_str(" to ")?;
                        to.write(f, false)?;
                    }
                }
                f.write_char(']')
            }
            Accessor::Filter(predicate) => {
                f.write_str("?(")?;
                predicate.write(f, false)?;
                f.write_char(')')
            }
            Accessor::Method(name, args) => {
                write!(f, ".{name}(")?;
                for (i, arg) in args.iter().enumerate() {
                    if i > 0 {
                        f.write_char(',')?;
                    }
                    arg.write(f, false)?;
                }
                f.write_char(')')
            }
        }
    }
}

fn quoted(text: &str, f: &mut Formatter<'_>) -> Result {
    let mut out = Vec::new();
    write_string(text, &mut out).map_err(|_| std::fmt::Error)?;
    f.write_str(&String::from_utf8_lossy(&out))
}

impl Display for Path {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if !self.lax {
            f.write_str("strict ")?;
        }
        self.expr.write(f, true)
    }
}
