//! SEARCH and CYCLE of recursive queries: turns the clauses into columns that both arms of the union compute.
//!
//! Each arm becomes a subquery of a query that adds the columns; the recursive one passes those of the row before it through.
//! Rows on a path are records, and a path is an array of them.

use std::sync::Arc;

use melba_catalog::Catalog;
use melba_types::{Datum, DbError, Oid, Result, err, oids};

use super::layout::column;
use melba_tree::*;

/// record = record, and its function.
const RECORD_EQUAL: Oid = Oid(2988);
const RECORD_EQ: Oid = Oid(2981);
const ARRAY_CAT: Oid = Oid(383);
const INT8INC: Oid = Oid(1219);

/// The query without the clauses, which returns their columns.
pub fn expand(cte: &Cte, catalog: &Catalog) -> Result<Cte> {
    let mut cte = cte.clone();
    let (search, cycle) = (cte.search.take(), cte.cycle.take());
    let own = cte.columns.len() - usize::from(search.is_some()) - 2 * usize::from(cycle.is_some());
    let (columns, added) = cte.columns.split_at(own);
    let unions = || DbError::internal("SEARCH or CYCLE of a query that is no union");
    let set = cte.query.set_operation.as_mut().ok_or_else(unions)?;
    let (SetInput::Leaf(left), SetInput::Leaf(right)) = (&set.left, &set.right) else { return Err(unions()) };
    let (left, right) = (*left, *right);
    set.columns.extend(added.iter().cloned());
    for (i, column) in added.iter().enumerate() {
        cte.query.targets.insert(own + i, target(var(left, own + i, column), column));
    }
    let paths = PathColumns { columns, added, search: search.as_ref(), cycle: cycle.as_ref() };
    let table = &mut cte.query.range_table;
    let base = paths.base(take_query(&mut table[left])?);
    put_query(&mut table[left], base, added);
    let mut arm = take_query(&mut table[right])?;
    paths.pass_through(&mut arm, &cte.name)?;
    let recursive = paths.recursive(arm, catalog);
    put_query(&mut table[right], recursive, added);
    Ok(cte)
}

fn take_query(entry: &mut RangeEntry) -> Result<Query> {
    match &mut entry.kind {
        RangeKind::Subquery { query, .. } => Ok(std::mem::replace(&mut **query, Query::new(Command::Select))),
        _ => Err(DbError::internal("arm of a union is no subquery")),
    }
}

fn put_query(entry: &mut RangeEntry, arm: Query, added: &[OutputColumn]) {
    if let RangeKind::Subquery { query, .. } = &mut entry.kind {
        **query = arm;
    }
    entry.columns.extend(added.iter().cloned());
}

fn target(expr: Expr, column: &OutputColumn) -> Target {
    Target { expr, name: column.name.clone(), junk: false, reference: 0, column: 0, origin: (Oid::INVALID, 0) }
}

fn var(entry: usize, index: usize, c: &OutputColumn) -> Expr {
    column(entry, index as i16 + 1, c.ty, c.typmod, c.collation)
}

fn call(function: Oid, args: Vec<Expr>, ty: Oid) -> Expr {
    Expr::Function(Box::new(FunctionCall {
        function,
        args,
        defaulted: 0,
        ty,
        collation: Oid::INVALID,
        input_collation: Oid::INVALID,
        returns_set: false,
        variadic: false,
        form: CoercionForm::Call,
        typmod: -1,
        location: -1,
    }))
}

fn array_of(row: Expr) -> Expr {
    Expr::Array(Box::new(ArrayExpr {
        elements: vec![row],
        element_type: oids::RECORD,
        ty: oids::RECORD_ARRAY,
        collation: Oid::INVALID,
        multidimensional: false,
        location: -1,
    }))
}

struct PathColumns<'a> {
    /// The query's own columns, and those that the clauses add.
    columns: &'a [OutputColumn],
    added: &'a [OutputColumn],
    search: Option<&'a Search>,
    cycle: Option<&'a Cycle>,
}

impl PathColumns<'_> {
    /// SELECT ... FROM (arm), with its own columns.
    fn around(&self, mut arm: Query, name: &str, added: &[OutputColumn]) -> Query {
        arm.shift_levels(1);
        let name: Arc<str> = name.into();
        let mut query = Query::new(Command::Select);
        query.range_table.push(RangeEntry {
            kind: RangeKind::Subquery { query: Box::new(arm), view: Oid::INVALID },
            alias: Some(name.clone()),
            name,
            columns: self.columns.iter().chain(added).cloned().collect(),
            in_from: true,
            ..RangeEntry::default()
        });
        query.from = vec![FromItem::Range(0)];
        query.targets = self.columns.iter().enumerate().map(|(i, c)| target(var(0, i, c), c)).collect();
        query
    }

    /// Some of the columns as a record, after `first`.
    fn row(&self, names: &[Arc<str>], first: Option<Expr>) -> Expr {
        let place = |name: &Arc<str>| self.columns.iter().position(|c| c.name == *name);
        let columns = names.iter().filter_map(place).map(|i| var(0, i, &self.columns[i]));
        let depth = first.is_some().then(|| Arc::from("*DEPTH*"));
        Expr::Row(Box::new(RowExpr {
            fields: first.into_iter().chain(columns).collect(),
            names: depth.into_iter().chain(names.iter().cloned()).collect(),
            ty: oids::RECORD,
            explicit: true,
            location: -1,
        }))
    }

    /// The arm where every path begins.
    fn base(&self, arm: Query) -> Query {
        let mut query = self.around(arm, "*TLOCRN*", &[]);
        let mut values = Vec::new();
        if let Some(search) = self.search {
            let zero = || Const { value: Datum::Int8(0), ty: oids::INT8, typmod: -1, collation: Oid::INVALID, location: -1 };
            values.push(match search.breadth_first {
                true => self.row(&search.columns, Some(Expr::Const(zero()))),
                false => array_of(self.row(&search.columns, None)),
            });
        }
        if let Some(cycle) = self.cycle {
            values.extend([(*cycle.mark_default).clone(), array_of(self.row(&cycle.columns, None))]);
        }
        query.targets.extend(values.into_iter().zip(self.added).map(|(value, column)| target(value, column)));
        query
    }

    /// Lets the recursive arm return the added columns of the row that it continues from.
    fn pass_through(&self, arm: &mut Query, name: &Arc<str>) -> Result<()> {
        let is_self = |e: &RangeEntry| matches!(&e.kind, RangeKind::Cte { name: n, self_reference: true, .. } if n == name);
        let Some(entry) = arm.range_table.iter().position(is_self) else {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "with a SEARCH or CYCLE clause, the recursive reference to WITH query \"{name}\" must be at the top level of \
                 its right-hand SELECT"
            ));
        };
        let first = arm.range_table[entry].columns.len();
        arm.range_table[entry].columns.extend(self.added.iter().cloned());
        let visible = arm.targets.iter().filter(|t| !t.junk).count();
        for (i, column) in self.added.iter().enumerate() {
            arm.targets.insert(visible + i, target(var(entry, first + i, column), column));
        }
        Ok(())
    }

    /// The arm that makes each path longer, and stops at a row that closed a cycle.
    fn recursive(&self, arm: Query, catalog: &Catalog) -> Query {
        let mut query = self.around(arm, "*TROCRN*", self.added);
        let before = |at: usize| var(0, self.columns.len() + at, &self.added[at]);
        let longer = |at: usize, row: Expr| call(ARRAY_CAT, vec![before(at), array_of(row)], oids::RECORD_ARRAY);
        let mut values = Vec::new();
        if let Some(search) = self.search {
            values.push(if search.breadth_first {
                let (arg, ty) = (Box::new(before(0)), oids::INT8);
                let depth = Expr::FieldSelect { arg, field: 1, ty, typmod: -1, collation: Oid::INVALID };
                self.row(&search.columns, Some(call(INT8INC, vec![depth], oids::INT8)))
            } else {
                longer(0, self.row(&search.columns, None))
            });
        }
        if let Some(cycle) = self.cycle {
            let (mark, path) = (values.len(), values.len() + 1);
            let equal = catalog.type_operators(self.added[mark].ty).equal;
            query.filter = Some(Expr::Not(Box::new(Expr::Operator(Box::new(OperatorCall {
                operator: equal,
                function: catalog.operator(equal).map(|o| o.function).unwrap_or_default(),
                args: vec![before(mark), (*cycle.mark_value).clone()],
                ty: oids::BOOL,
                collation: Oid::INVALID,
                input_collation: self.added[mark].collation,
                returns_set: false,
                location: -1,
            })))));
            let met = Expr::ScalarArray(Box::new(ScalarArrayExpr {
                operator: RECORD_EQUAL,
                function: RECORD_EQ,
                any: true,
                scalar: self.row(&cycle.columns, None),
                array: before(path),
                input_collation: Oid::INVALID,
                location: -1,
            }));
            values.push(Expr::Case(Box::new(CaseExpr {
                arg: None,
                whens: vec![(met, (*cycle.mark_value).clone())],
                default: (*cycle.mark_default).clone(),
                ty: self.added[mark].ty,
                typmod: self.added[mark].typmod,
                collation: self.added[mark].collation,
                location: -1,
            })));
            values.push(longer(path, self.row(&cycle.columns, None)));
        }
        query.targets.extend(values.into_iter().zip(self.added).map(|(value, column)| target(value, column)));
        query
    }
}
