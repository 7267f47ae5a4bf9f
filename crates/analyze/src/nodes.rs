//! Small readers of parse nodes.

use pg_query::NodeEnum;
use pg_query::protobuf as pb;

/// The string a String node holds.
pub fn string(node: &pb::Node) -> Option<&str> {
    match &node.node {
        Some(NodeEnum::String(s)) => Some(&s.sval),
        _ => None,
    }
}

/// All strings of a list of String nodes.
pub fn strings(nodes: &[pb::Node]) -> Vec<&str> {
    nodes.iter().filter_map(string).collect()
}

/// A name list with dots, as messages have it.
pub fn dotted(nodes: &[pb::Node]) -> String {
    let mut out = String::new();
    for node in nodes {
        if !out.is_empty() {
            out.push('.');
        }
        match &node.node {
            Some(NodeEnum::String(s)) => out.push_str(&s.sval),
            Some(NodeEnum::AStar(_)) => out.push('*'),
            _ => {}
        }
    }
    out
}

/// Items of a List node; a row's fields.
pub fn list(node: &pb::Node) -> &[pb::Node] {
    match &node.node {
        Some(NodeEnum::List(l)) => &l.items,
        _ => std::slice::from_ref(node),
    }
}

/// Leftmost byte offset of a parse node, -1 when it has none.
pub fn location(node: &pb::Node) -> i32 {
    let Some(node) = &node.node else { return -1 };
    location_of(node)
}

pub fn location_of(node: &NodeEnum) -> i32 {
    let of = |n: &Option<Box<pb::Node>>| n.as_deref().map_or(-1, location);
    let first = |nodes: &[pb::Node]| nodes.iter().map(location).find(|l| *l >= 0).unwrap_or(-1);
    match node {
        NodeEnum::AConst(n) => n.location,
        NodeEnum::ColumnRef(n) => n.location,
        NodeEnum::ParamRef(n) => n.location,
        NodeEnum::AExpr(n) => earlier(n.location, of(&n.lexpr)),
        NodeEnum::TypeCast(n) => {
            let name = n.type_name.as_ref().map_or(-1, |t| t.location);
            earlier(earlier(of(&n.arg), name), n.location)
        }
        NodeEnum::CollateClause(n) => of(&n.arg),
        NodeEnum::FuncCall(n) => n.location,
        NodeEnum::AIndirection(n) => of(&n.arg),
        NodeEnum::AArrayExpr(n) => n.location,
        NodeEnum::ResTarget(n) => {
            if n.location >= 0 {
                n.location
            } else {
                of(&n.val)
            }
        }
        NodeEnum::SortBy(n) => of(&n.node),
        NodeEnum::WindowDef(n) => n.location,
        NodeEnum::RangeVar(n) => n.location,
        NodeEnum::BoolExpr(n) => earlier(n.location, first(&n.args)),
        NodeEnum::SubLink(n) => earlier(of(&n.testexpr), n.location),
        NodeEnum::CaseExpr(n) => n.location,
        NodeEnum::CaseWhen(n) => n.location,
        NodeEnum::CoalesceExpr(n) => n.location,
        NodeEnum::MinMaxExpr(n) => n.location,
        NodeEnum::SqlvalueFunction(n) => n.location,
        NodeEnum::NullTest(n) => earlier(n.location, of(&n.arg)),
        NodeEnum::BooleanTest(n) => earlier(n.location, of(&n.arg)),
        NodeEnum::RowExpr(n) => n.location,
        NodeEnum::NamedArgExpr(n) => earlier(n.location, of(&n.arg)),
        NodeEnum::SetToDefault(n) => n.location,
        NodeEnum::GroupingFunc(n) => n.location,
        NodeEnum::GroupingSet(n) => n.location,
        NodeEnum::MergeSupportFunc(n) => n.location,
        NodeEnum::TypeName(n) => n.location,
        NodeEnum::MultiAssignRef(n) => of(&n.source),
        NodeEnum::List(n) => first(&n.items),
        NodeEnum::WithClause(n) => n.location,
        NodeEnum::CommonTableExpr(n) => n.location,
        NodeEnum::ColumnDef(n) => n.location,
        NodeEnum::XmlExpr(n) => n.location,
        NodeEnum::JsonFuncExpr(n) => n.location,
        NodeEnum::JsonObjectConstructor(n) => n.location,
        NodeEnum::JsonArrayConstructor(n) => n.location,
        NodeEnum::JsonParseExpr(n) => n.location,
        NodeEnum::JsonScalarExpr(n) => n.location,
        NodeEnum::JsonSerializeExpr(n) => n.location,
        NodeEnum::JsonIsPredicate(n) => n.location,
        NodeEnum::RangeTableFunc(n) => n.location,
        NodeEnum::JsonTable(n) => n.location,
        NodeEnum::JsonObjectAgg(n) => n.constructor.as_ref().map_or(-1, |c| c.location),
        NodeEnum::JsonArrayAgg(n) => n.constructor.as_ref().map_or(-1, |c| c.location),
        NodeEnum::JsonValueExpr(n) => of(&n.raw_expr),
        NodeEnum::SelectStmt(n) => select_location(n),
        _ => -1,
    }
}

fn select_location(n: &pb::SelectStmt) -> i32 {
    let target = n.target_list.iter().map(location).find(|l| *l >= 0);
    target.or_else(|| n.larg.as_ref().map(|l| select_location(l))).unwrap_or(-1)
}

fn earlier(a: i32, b: i32) -> i32 {
    match (a < 0, b < 0) {
        (true, _) => b,
        (_, true) => a,
        _ => a.min(b),
    }
}

/// Whether a select-list item or value is a bare DEFAULT.
pub fn is_default(node: &pb::Node) -> bool {
    matches!(node.node, Some(NodeEnum::SetToDefault(_)))
}

pub fn is_star(node: Option<&pb::Node>) -> bool {
    matches!(node.and_then(|n| n.node.as_ref()), Some(NodeEnum::AStar(_)))
}
