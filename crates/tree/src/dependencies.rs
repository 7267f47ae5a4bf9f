//! The dependencies of an analyzed statement: the objects that cannot be dropped while it is stored.

use melba_catalog::{ObjectAddress, classes};
use melba_types::{Datum, Oid, oids};

use super::*;

/// Objects below are built in: nothing depends on them.
fn is_user_object(oid: Oid) -> bool {
    oid.0 >= classes::FIRST_USER_OID
}

struct FoundObjects {
    all: Vec<ObjectAddress>,
    transition: Option<Arc<str>>,
}

impl FoundObjects {
    fn add(&mut self, class: Oid, object: Oid, sub: i32) {
        let address = ObjectAddress { class, object, sub };
        if is_user_object(object) && !self.all.contains(&address) {
            self.all.push(address);
        }
    }

    fn expr(&mut self, e: &Expr) {
        match e {
            Expr::Const(c) => match (&c.value, c.ty) {
                (Datum::Oid(oid), oids::REGCLASS) => self.add(classes::PG_CLASS, Oid(*oid), 0),
                (Datum::Oid(oid), oids::REGTYPE) => self.add(classes::PG_TYPE, Oid(*oid), 0),
                (Datum::Oid(oid), oids::REGPROC | oids::REGPROCEDURE) => self.add(classes::PG_PROC, Oid(*oid), 0),
                (Datum::Oid(oid), oids::REGOPER | oids::REGOPERATOR) => self.add(classes::PG_OPERATOR, Oid(*oid), 0),
                (Datum::Oid(oid), oids::REGCONFIG) => self.add(classes::PG_TS_CONFIG, Oid(*oid), 0),
                (Datum::Oid(oid), oids::REGDICTIONARY) => self.add(classes::PG_TS_DICT, Oid(*oid), 0),
                (Datum::Oid(oid), oids::REGCOLLATION) => self.add(classes::PG_COLLATION, Oid(*oid), 0),
                (Datum::Oid(oid), oids::REGNAMESPACE) => self.add(classes::PG_NAMESPACE, Oid(*oid), 0),
                _ => self.add(classes::PG_TYPE, c.ty, 0),
            },
            Expr::Function(f) => self.add(classes::PG_PROC, f.function, 0),
            Expr::Operator(o) | Expr::Distinct(o) | Expr::NullIf(o) => self.add(classes::PG_OPERATOR, o.operator, 0),
            Expr::ScalarArray(s) => self.add(classes::PG_OPERATOR, s.operator, 0),
            Expr::Aggregate(a) => self.add(classes::PG_PROC, a.function, 0),
            Expr::Window(w) => self.add(classes::PG_PROC, w.function, 0),
            Expr::NextValue { sequence, .. } => self.add(classes::PG_CLASS, *sequence, 0),
            Expr::Relabel { ty, .. }
            | Expr::CoerceViaIo { ty, .. }
            | Expr::ArrayCoerce { ty, .. }
            | Expr::ConvertRowtype { ty, .. }
            | Expr::CoerceToDomain { ty, .. } => self.add(classes::PG_TYPE, *ty, 0),
            Expr::Row(row) => self.add(classes::PG_TYPE, row.ty, 0),
            // A whole row's table is in the range table.
            Expr::FieldSelect { arg, .. } if !matches!(&**arg, Expr::Var(v) if v.column == 0) => {
                self.add(classes::PG_TYPE, arg.ty(), 0)
            }
            Expr::JsonConstructor(c) => self.add(classes::PG_TYPE, c.returning.ty, 0),
            Expr::Json(j) => self.add(classes::PG_TYPE, j.returning.ty, 0),
            Expr::Collate { collation, .. } => self.add(classes::PG_COLLATION, *collation, 0),
            _ => {}
        }
    }

    fn query(&mut self, query: &Query) {
        query.relied_on.iter().for_each(|key| self.add(classes::PG_CONSTRAINT, *key, 0));
        for entry in &query.range_table {
            match &entry.kind {
                RangeKind::Relation { oid, .. } => {
                    self.add(classes::PG_CLASS, *oid, 0);
                    let used = entry.required.selected.iter().chain(&entry.required.inserted).chain(&entry.required.updated);
                    for column in used.filter(|c| **c > 0) {
                        self.add(classes::PG_CLASS, *oid, i32::from(*column));
                    }
                }
                RangeKind::Subquery { view, .. } if view.is_valid() => {
                    // The view stands for its content.
                    self.add(classes::PG_CLASS, *view, 0);
                    continue;
                }
                RangeKind::Transition { name, .. } => self.transition = Some(name.clone()),
                _ => {}
            }
        }
        query.expressions(&mut |e| self.expression(e));
        for cte in &query.ctes {
            self.query(&cte.query);
        }
        for entry in &query.range_table {
            if let RangeKind::Subquery { query, view } = &entry.kind
                && !view.is_valid()
            {
                self.query(query);
            }
        }
    }

    fn expression(&mut self, e: &Expr) {
        self.expr(e);
        e.children(&mut |child| self.expression(child));
        if let Expr::Sublink(s) = e {
            self.query(&s.query);
        }
    }
}

impl Expr {
    /// User-made objects that the expression uses; columns of its own table are not included.
    pub fn dependencies(&self) -> Vec<ObjectAddress> {
        let mut found = FoundObjects { all: Vec::new(), transition: None };
        found.expression(self);
        found.all
    }
}

impl Query {
    /// User-made objects that the query mentions: relations, their columns, functions, types.
    pub fn dependencies(&self) -> Vec<ObjectAddress> {
        self.mentions().0
    }

    /// The same, and the name that a trigger has for changed rows, if the query reads them.
    pub fn mentions(&self) -> (Vec<ObjectAddress>, Option<Arc<str>>) {
        let mut found = FoundObjects { all: Vec::new(), transition: None };
        found.query(self);
        (found.all, found.transition)
    }
}
