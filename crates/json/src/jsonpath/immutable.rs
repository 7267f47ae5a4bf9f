//! Whether a path's result depends on the session's time zone.

use melba_functions::format::template_has_zone;
use melba_types::{Oid, Result, limits, oids};

use super::ast::{Accessor, Expr, Path, PathOperator};

/// The kind of the items of an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Items {
    Plain,
    /// Dates and times without a zone.
    Local,
    Zoned,
    /// Dates and times of either kind.
    Unknown,
}

struct Walk<'a> {
    lax: bool,
    variables: &'a [(&'a str, Oid)],
    /// The kind of `@`.
    current: Items,
    mutable: bool,
}

/// PostgreSQL's rule: a comparison of dates and times that may be one with and one without a zone, and the methods that convert
/// between them. `variables` are the types of PASSING.
pub fn is_mutable(path: &Path, variables: &[(&str, Oid)]) -> Result<bool> {
    let mut walk = Walk { lax: path.lax, variables, current: Items::Plain, mutable: false };
    walk.expr(&path.expr)?;
    Ok(walk.mutable)
}

impl Walk<'_> {
    fn expr(&mut self, e: &Expr) -> Result<Items> {
        limits::check_stack()?;
        Ok(match e {
            Expr::Null | Expr::Bool(_) | Expr::Number(_) | Expr::String(_) | Expr::Root | Expr::Last => Items::Plain,
            Expr::Current => self.current,
            Expr::Variable(name) => self.variables.iter().find(|(n, _)| n == name).map_or(Items::Plain, |(_, ty)| of_type(*ty)),
            Expr::Chain(base, accessors) => {
                let mut items = self.expr(base)?;
                for accessor in accessors {
                    items = self.accessor(accessor, items)?;
                }
                items
            }
            Expr::Unary(_, arg) | Expr::Not(arg) | Expr::Exists(arg) | Expr::IsUnknown(arg) | Expr::LikeRegex(arg, ..) => {
                self.expr(arg)?;
                Items::Plain
            }
            Expr::Binary(operator, left, right) => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                let of_times = left != Items::Plain && right != Items::Plain;
                if is_comparison(*operator) && of_times && (left != right || left == Items::Unknown) {
                    self.mutable = true;
                }
                Items::Plain
            }
            Expr::StartsWith(left, right) => {
                self.expr(left)?;
                self.expr(right)?;
                Items::Plain
            }
        })
    }

    fn accessor(&mut self, accessor: &Accessor, items: Items) -> Result<Items> {
        Ok(match accessor {
            Accessor::Key(_) | Accessor::AnyKey => Items::Plain,
            Accessor::AnyLevel(from, _) => {
                if *from == Some(0) {
                    items
                } else {
                    Items::Plain
                }
            }
            Accessor::AnyElement => {
                if self.lax {
                    items
                } else {
                    Items::Plain
                }
            }
            Accessor::Elements(subscripts) => {
                for (from, to) in subscripts {
                    if let Some(to) = to {
                        self.expr(to)?;
                    }
                    self.expr(from)?;
                }
                if self.lax { items } else { Items::Plain }
            }
            Accessor::Filter(predicate) => {
                let outer = std::mem::replace(&mut self.current, items);
                self.expr(predicate)?;
                self.current = outer;
                items
            }
            Accessor::Method(name, args) => self.method(name, args)?,
        })
    }

    fn method(&mut self, name: &str, args: &[Expr]) -> Result<Items> {
        Ok(match (name, args.first()) {
            ("datetime", None) => Items::Unknown,
            ("datetime", Some(Expr::String(template))) if template_has_zone(template)? => Items::Zoned,
            ("datetime", Some(Expr::String(_))) => Items::Local,
            // They convert from one kind to the other.
            ("date" | "time" | "time_tz" | "timestamp" | "timestamp_tz", _) => {
                self.mutable = true;
                Items::Local
            }
            _ => Items::Plain,
        })
    }
}

fn of_type(ty: Oid) -> Items {
    match ty {
        oids::DATE | oids::TIME | oids::TIMESTAMP => Items::Local,
        oids::TIMETZ | oids::TIMESTAMPTZ => Items::Zoned,
        _ => Items::Plain,
    }
}

fn is_comparison(operator: PathOperator) -> bool {
    use PathOperator::*;
    matches!(operator, Equal | NotEqual | Less | LessOrEqual | Greater | GreaterOrEqual)
}
