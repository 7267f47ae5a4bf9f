//! The syntax around a function's arguments.

use pg_query::protobuf as pb;

use melba_tree::*;

pub struct CallSyntax<'p> {
    pub node: &'p pb::FuncCall,
    pub filter: Option<Expr>,
}

impl CallSyntax<'_> {
    pub fn decorated(&self) -> bool {
        let n = self.node;
        self.filter.is_some() || n.over.is_some() || n.agg_star || n.agg_distinct || n.agg_within_group || !n.agg_order.is_empty()
    }
}
