//! Decides which expressions need no parentheses around them as operands (PostgreSQL's isSimpleNode).

use melba_tree::{CoercionForm, Expr};

/// Binding strength of the arithmetic operators.
fn precedence(name: &str) -> Option<u8> {
    match name {
        "+" | "-" => Some(1),
        "*" | "/" | "%" => Some(2),
        _ => None,
    }
}

/// Whether `expr` needs no parentheses as an operand of `parent`. `right`: it is the right one of two. `name` returns
/// operators' names.
pub(super) fn is_simple(expr: &Expr, parent: &Expr, right: bool, name: &dyn Fn(melba_types::Oid) -> String) -> bool {
    match expr {
        Expr::Var(_)
        | Expr::Const(_)
        | Expr::Param(_)
        | Expr::DomainValue { .. }
        | Expr::Default { .. }
        | Expr::CurrentOf { .. }
        | Expr::Sampled { .. }
        | Expr::Subscript(_)
        | Expr::Array(_)
        | Expr::Row(_)
        | Expr::Coalesce { .. }
        | Expr::MinMax { .. }
        | Expr::SqlValue { .. }
        | Expr::NullIf(_)
        | Expr::Aggregate(_)
        | Expr::Grouping { .. }
        | Expr::Window(_)
        | Expr::NextValue { .. }
        | Expr::Json(_)
        | Expr::JsonConstructor(_)
        | Expr::MergeAction
        | Expr::CaseTest { .. }
        | Expr::Case(_) => true,
        Expr::Function(f) => {
            f.form != CoercionForm::ExplicitCast && f.form != CoercionForm::ImplicitCast || parent_is_cast(parent)
        }
        Expr::FieldSelect { .. } | Expr::FieldStore { .. } => !matches!(parent, Expr::FieldSelect { .. }),
        Expr::Relabel { arg, .. } | Expr::ConvertRowtype { arg, .. } | Expr::CoerceToDomain { arg, .. } => {
            is_simple(arg, expr, false, name)
        }
        Expr::CoerceViaIo { arg, .. } | Expr::ArrayCoerce { arg, .. } => is_simple(arg, expr, false, name),
        Expr::Operator(o) => operator_is_simple(o.operator, o.args.len(), parent, right, name),
        Expr::Sublink(_)
        | Expr::NullTest { .. }
        | Expr::BooleanTest { .. }
        | Expr::Distinct(_)
        | Expr::RowCompare(_)
        | Expr::IsJson(_)
        | Expr::Collate { .. } => in_list_or_logic(parent),
        Expr::JsonValue(v) => is_simple(&v.arg, expr, false, name),
        // Only a list puts it between delimiters.
        Expr::ScalarArray(_) => is_list(parent),
        Expr::Not(_) => matches!(parent, Expr::And(_) | Expr::Or(_)) || is_list(parent),
        Expr::And(_) => matches!(parent, Expr::Or(_) | Expr::And(_)) || is_list(parent),
        Expr::Or(_) => matches!(parent, Expr::Or(_)) || is_list(parent),
    }
}

fn parent_is_cast(parent: &Expr) -> bool {
    !matches!(parent, Expr::Subscript(_))
}

/// Parents that put their operands between delimiters.
fn is_list(parent: &Expr) -> bool {
    match parent {
        Expr::Function(f) => f.form == CoercionForm::Call,
        Expr::Aggregate(_)
        | Expr::Window(_)
        | Expr::Array(_)
        | Expr::Row(_)
        | Expr::Coalesce { .. }
        | Expr::MinMax { .. }
        | Expr::NullIf(_)
        | Expr::Case(_)
        | Expr::Subscript(_) => true,
        _ => false,
    }
}

fn in_list_or_logic(parent: &Expr) -> bool {
    is_list(parent) || matches!(parent, Expr::And(_) | Expr::Or(_) | Expr::Not(_))
}

fn operator_is_simple(
    operator: melba_types::Oid,
    args: usize,
    parent: &Expr,
    right: bool,
    name: &dyn Fn(melba_types::Oid) -> String,
) -> bool {
    let Expr::Operator(outer) = parent else { return in_list_or_logic(parent) };
    // Arithmetic binds as usual: the inner one must bind tighter, or as tight and stand on the left.
    let (Some(inner), Some(outer_strength)) = (precedence(&name(operator)), precedence(&name(outer.operator))) else {
        return false;
    };
    if args != 2 || outer.args.len() != 2 {
        return false;
    }
    inner > outer_strength || inner == outer_strength && !right
}
