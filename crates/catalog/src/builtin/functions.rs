//! Built-in functions, aggregates, operators and casts.

use std::sync::Arc;

use hashbrown::HashMap;
use melba_types::Oid;

use crate::classes;
use crate::objects::*;
use crate::seed::{Row, Seed};

/// Functions of pg_proc, with the pg_aggregate rows of the aggregates among them.
pub(super) fn functions(pg_proc: &Seed, pg_aggregate: &Seed, role: &dyn Fn(&str) -> Oid) -> Vec<Arc<Function>> {
    let mut aggregates: HashMap<Oid, Arc<AggregateInfo>> = pg_aggregate
        .rows()
        .map(|r| {
            let info = AggregateInfo {
                kind: r.char("aggkind"),
                direct_args: r.number("aggnumdirectargs"),
                transition: r.oid("aggtransfn"),
                final_function: r.oid("aggfinalfn"),
                combine: r.oid("aggcombinefn"),
                sort_operator: r.oid("aggsortop"),
                transition_type: r.oid("aggtranstype"),
                initial_value: r.optional("agginitval").map(Arc::from),
                final_extra: r.bool("aggfinalextra"),
                final_modify: r.char("aggfinalmodify"),
                space: r.number("aggtransspace"),
                serial: r.oid("aggserialfn"),
                deserial: r.oid("aggdeserialfn"),
                moving: moving(&r),
            };
            (r.oid("aggfnoid"), Arc::new(info))
        })
        .collect();
    pg_proc.rows().map(|r| Arc::new(read_function(&r, &mut aggregates, role))).collect()
}

fn moving(r: &Row<'_>) -> Option<Arc<MovingAggregate>> {
    let moving = MovingAggregate {
        transition: r.oid("aggmtransfn"),
        inverse: r.oid("aggminvtransfn"),
        final_function: r.oid("aggmfinalfn"),
        final_extra: r.bool("aggmfinalextra"),
        final_modify: r.char("aggmfinalmodify"),
        transition_type: r.oid("aggmtranstype"),
        space: r.number("aggmtransspace"),
        initial_value: r.optional("aggminitval").map(Arc::from),
    };
    moving.transition_type.is_valid().then(|| Arc::new(moving))
}

fn read_function(r: &Row<'_>, aggregates: &mut HashMap<Oid, Arc<AggregateInfo>>, role: &dyn Fn(&str) -> Oid) -> Function {
    let oid = r.oid("oid");
    Function {
        oid,
        name: r.text("proname"),
        namespace: r.oid("pronamespace"),
        owner: classes::POSTGRES_ROLE,
        language: r.oid("prolang"),
        cost: r.number("procost"),
        rows: r.number("prorows"),
        variadic: r.oid("provariadic"),
        kind: match r.char("prokind") {
            b'p' => FunctionKind::Procedure,
            b'a' => FunctionKind::Aggregate,
            b'w' => FunctionKind::Window,
            _ => FunctionKind::Function,
        },
        security_definer: r.bool("prosecdef"),
        leakproof: r.bool("proleakproof"),
        strict: r.bool("proisstrict"),
        returns_set: r.bool("proretset"),
        volatility: r.char("provolatile"),
        parallel: r.char("proparallel"),
        return_type: r.oid("prorettype"),
        arg_types: r.oids("proargtypes"),
        all_arg_types: r.oids("proallargtypes"),
        arg_modes: r.str("proargmodes").bytes().filter(u8::is_ascii_alphabetic).collect(),
        arg_names: r.texts("proargnames"),
        arg_defaults: r.texts("proargdefaults"),
        source: r.text("prosrc"),
        sql_body: None,
        config: Vec::new(),
        acl: r.acl("proacl", role),
        depends_on: Vec::new(),
        aggregate: aggregates.remove(&oid),
    }
}

pub(super) fn operators(seed: &Seed) -> Vec<Arc<Operator>> {
    let operator = |r: Row<'_>| Operator {
        oid: r.oid("oid"),
        name: r.text("oprname"),
        namespace: r.oid("oprnamespace"),
        owner: classes::POSTGRES_ROLE,
        can_merge: r.bool("oprcanmerge"),
        can_hash: r.bool("oprcanhash"),
        left: r.oid("oprleft"),
        right: r.oid("oprright"),
        result: r.oid("oprresult"),
        commutator: r.oid("oprcom"),
        negator: r.oid("oprnegate"),
        function: r.oid("oprcode"),
        restrict: r.text("oprrest"),
        join: r.text("oprjoin"),
    };
    seed.rows().map(|r| Arc::new(operator(r))).collect()
}

pub(super) fn casts(seed: &Seed) -> Vec<Arc<Cast>> {
    let cast = |r: Row<'_>| Cast {
        oid: r.oid("oid"),
        source: r.oid("castsource"),
        target: r.oid("casttarget"),
        function: r.oid("castfunc"),
        context: r.char("castcontext"),
        method: r.char("castmethod"),
        part_of_type: false,
    };
    seed.rows().map(|r| Arc::new(cast(r))).collect()
}
