//! INSERT, UPDATE and DELETE, as in bodies of functions.

use melba_catalog::Relation;

use super::{INDENT_STANDARD, Printer};
use melba_tree::*;

/// The clause of a query that cannot be printed; `None`: all can.
pub fn unprintable(query: &Query) -> Option<&'static str> {
    let is_partial = |t: &Target| {
        t.expr.any(&mut |e| match e {
            Expr::FieldStore { .. } => true,
            Expr::Subscript(s) => s.assign.is_some(),
            Expr::Sublink(s) => s.kind == SublinkKind::MultiExpr,
            _ => false,
        })
    };
    let conflict = query.insert.as_ref().and_then(|i| i.on_conflict.as_ref()).and_then(|c| c.update.as_ref());
    let assigned = conflict.map_or(&[][..], |u| &u.targets);
    match query.command {
        Command::Select => {}
        Command::Merge => return Some("MERGE"),
        _ if query.targets.iter().chain(assigned).any(is_partial) => return Some("an assignment to a part of a column"),
        _ if query.result.is_some_and(|r| !query.range_table[r].required.through.is_empty()) => {
            return Some("a change of a view");
        }
        _ => {}
    }
    let mut found = None;
    query.subqueries(&mut |q| found = found.or_else(|| unprintable(q)));
    query.visit(0, &mut |e, _| {
        if let Expr::Sublink(s) = e {
            found = found.or_else(|| unprintable(&s.query));
        }
        true
    });
    found
}

impl<'a> Printer<'a> {
    pub(super) fn modify(&mut self, query: &'a Query) {
        self.indent += INDENT_STANDARD;
        self.put(" ");
        match query.command {
            Command::Insert => self.insert(query),
            Command::Update => {
                self.put("UPDATE ");
                self.target_table(query, " ");
                self.put(" SET ");
                self.assignments(query, &query.targets);
                self.from_clause(query, " FROM ");
                self.changed_rows(query);
            }
            _ => {
                self.put("DELETE FROM ");
                self.target_table(query, " ");
                self.from_clause(query, " USING ");
                self.changed_rows(query);
            }
        }
        if !query.returning.is_empty() {
            self.keyword(" RETURNING", -INDENT_STANDARD, INDENT_STANDARD, 1);
            self.target_items(&query.returning);
        }
    }

    fn changed_rows(&mut self, query: &'a Query) {
        if let Some(filter) = &query.filter {
            self.keyword(" WHERE ", -INDENT_STANDARD, INDENT_STANDARD, 1);
            self.expr(filter, false);
        }
    }

    fn target_relation(&self, query: &Query) -> Option<&'a Relation> {
        match &query.range_table.get(query.result?)?.kind {
            RangeKind::Relation { oid, .. } => self.catalog.relation(*oid).map(|r| &**r),
            _ => None,
        }
    }

    /// The table with its alias, after `before`.
    fn target_table(&mut self, query: &'a Query, before: &str) {
        let (Some(relation), Some(at)) = (self.target_relation(query), query.result) else { return };
        if matches!(query.range_table[at].kind, RangeKind::Relation { inherit: false, .. }) && query.command != Command::Insert {
            self.put("ONLY ");
        }
        let name = self.relation_name(relation);
        self.put(&name);
        let alias = self.entry_name(0, at);
        if query.range_table[at].alias.is_some() || *alias != *relation.name {
            self.put(before);
            self.ident(&alias);
        }
    }

    fn column(&mut self, query: &Query, number: i16) {
        let found = self.target_relation(query).and_then(|r| r.columns.get(number as usize - 1));
        if let Some(column) = found {
            self.ident(&column.name);
        }
    }

    fn assignments(&mut self, query: &'a Query, targets: &'a [Target]) {
        for (i, target) in targets.iter().enumerate() {
            if i > 0 {
                self.put(", ");
            }
            self.column(query, target.column);
            self.put(" = ");
            self.expr(&target.expr, false);
        }
    }

    fn insert(&mut self, query: &'a Query) {
        let Some(info) = &query.insert else { return };
        self.put("INSERT INTO ");
        self.target_table(query, " AS ");
        self.put(" ");
        if !info.written.is_empty() {
            self.put("(");
            for (i, number) in info.written.iter().enumerate() {
                if i > 0 {
                    self.put(", ");
                }
                self.column(query, *number);
            }
            self.put(") ");
        }
        match info.overriding {
            Overriding::None => {}
            Overriding::User => self.put("OVERRIDING USER VALUE "),
            Overriding::System => self.put("OVERRIDING SYSTEM VALUE "),
        }
        match info.source.map(|s| &query.range_table[s].kind) {
            Some(RangeKind::Subquery { query, .. }) => {
                self.hide_names = true;
                self.query(query);
            }
            Some(RangeKind::Values { rows }) => self.values(rows),
            _ if info.written.is_empty() => self.put("DEFAULT VALUES"),
            _ => {
                self.keyword("VALUES (", -INDENT_STANDARD, INDENT_STANDARD, 2);
                for (i, number) in info.written.iter().enumerate() {
                    if i > 0 {
                        self.put(", ");
                    }
                    if let Some(target) = query.targets.iter().find(|t| t.column == *number) {
                        self.expr(&target.expr, false);
                    }
                }
                self.put(")");
            }
        }
        if let Some(conflict) = &info.on_conflict {
            self.on_conflict(query, conflict);
        }
    }

    fn on_conflict(&mut self, query: &'a Query, conflict: &'a OnConflict) {
        self.put(" ON CONFLICT");
        if let Some(constraint) = self.catalog.constraint(conflict.constraint) {
            self.put(" ON CONSTRAINT ");
            self.ident(&constraint.name);
        } else if !conflict.inference.is_empty() {
            let qualify = std::mem::replace(&mut self.qualify, false);
            self.put("(");
            self.list(&conflict.inference);
            self.put(")");
            if let Some(filter) = &conflict.inference_filter {
                self.keyword(" WHERE ", -INDENT_STANDARD, INDENT_STANDARD, 1);
                self.expr(filter, false);
            }
            self.qualify = qualify;
        }
        let Some(update) = &conflict.update else { return self.put(" DO NOTHING") };
        self.put(" DO UPDATE SET ");
        self.assignments(query, &update.targets);
        if let Some(filter) = &update.filter {
            self.keyword(" WHERE ", -INDENT_STANDARD, INDENT_STANDARD, 1);
            self.expr(filter, false);
        }
    }
}
