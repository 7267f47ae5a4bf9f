//! Cursors: variables that name portals of the session.

use std::sync::Arc;

use melba_plpgsql::tree::{Count, Direction, Expression, Fetch, Loop, Opened, RowSource, Scroll, Target};
use melba_spill::Resources;
use melba_types::{Datum, DbError, Result, bail, err, oids};
use pg_query::protobuf::FetchDirection;

use super::super::portal::{Declared, Portal, PortalRows, PortalState, Rewind};
use super::super::portals::no_cursor;
use super::frame::{Flow, Frame, Typed};
use super::sql::{Begun, Origin};
use super::value::RowShape;

/// FETCH ALL: as many as there are.
const ALL: i64 = i64::MAX;

impl Frame<'_> {
    /// The name in a cursor variable.
    fn cursor_name(&self, cursor: usize) -> Result<Option<String>> {
        let ty = self.types[cursor];
        match &self.values[cursor] {
            Datum::Null => Ok(None),
            value => self.text_of(&Typed { value: value.clone(), ty: ty.oid, typmod: ty.typmod }).map(Some),
        }
    }

    fn open_name(&self, cursor: usize) -> Result<String> {
        self.cursor_name(cursor)?.ok_or_else(|| {
            let name = &self.program.tree.variables[cursor].name;
            err!(NULL_VALUE_NOT_ALLOWED, "cursor variable \"{name}\" is null")
        })
    }

    /// The name that is to be opened, if the variable has one.
    fn free_name(&self, cursor: usize) -> Result<Option<String>> {
        let name = self.cursor_name(cursor)?;
        match &name {
            Some(name) if self.context.session.portals.contains(name) => {
                Err(err!(DUPLICATE_CURSOR, "cursor \"{name}\" already in use"))
            }
            _ => Ok(name),
        }
    }

    pub fn open(&mut self, cursor: usize, opened: &Opened, scroll: Scroll) -> Result<()> {
        let given = self.free_name(cursor)?;
        let begun = match opened {
            Opened::Bound(arguments) => self.begin_bound(cursor, arguments.as_ref())?,
            Opened::Query(query) => self.begin_cursor(&RowSource::Query(query.clone()))?,
            Opened::Execute { query, using } => {
                self.begin_cursor(&RowSource::Execute { query: query.clone(), using: using.clone() })?
            }
        };
        let name = self.add_portal(given.clone(), begun, scroll, false);
        match given {
            Some(_) => Ok(()),
            None => self.set_cursor(cursor, Datum::text(name)),
        }
    }

    fn set_cursor(&mut self, cursor: usize, name: Datum) -> Result<()> {
        let declared = &self.program.tree.variables[cursor];
        if declared.constant {
            bail!(ERROR_IN_ASSIGNMENT, "variable \"{}\" is declared CONSTANT", declared.name);
        }
        self.assign(&Target::Variable(cursor), Typed { value: name, ty: oids::TEXT, typmod: -1 })
    }

    /// A bound cursor's query, over its arguments.
    fn begin_bound(&mut self, cursor: usize, arguments: Option<&Expression>) -> Result<Begun> {
        let program = self.program.clone();
        let bound = program.tree.variables[cursor].cursor.as_ref();
        let bound = bound.ok_or_else(|| DbError::internal("a cursor without a query"))?;
        if let Some(arguments) = arguments {
            let mut begun = self.begin_rows(&RowSource::Query(arguments.clone()))?;
            let row = begun.source.next(1).map_err(|e| self.of_source(&begun.origin, e))?;
            let row = row.ok_or_else(|| DbError::internal("a cursor's arguments are no row"))?;
            let targets = bound.arguments.iter().map(|a| Target::Variable(*a)).collect();
            self.assign_row(&Target::Row(targets), &RowShape::of_result(&begun.columns), &row, 0)?;
        }
        self.begin_cursor(&RowSource::Query(bound.query.clone()))
    }

    /// Makes a query's rows a portal; its name.
    pub fn add_portal(&self, name: Option<String>, begun: Begun, scroll: Scroll, pinned: bool) -> String {
        let session = &self.context.session;
        let name = name.unwrap_or_else(|| session.portals.new_name());
        let rewind = match scroll {
            Scroll::Yes => Rewind::Always,
            Scroll::No => Rewind::Never,
            Scroll::Default => Rewind::WhileSmall,
        };
        let mut rows = PortalRows::new(begun.source, rewind);
        if rewind == Rewind::Always {
            rows = rows.keeping(&Arc::new(Resources::new(&*self.context, &session.engine())));
        }
        let declared = Declared {
            statement: begun.origin.text().to_owned(),
            scroll: rewind != Rewind::Never,
            binary: false,
            created: self.context.statement_start,
        };
        let portal = Portal {
            formats: Vec::new(),
            columns: Some(begun.columns),
            state: PortalState::Open(rows, begun.tag),
            hold: false,
            declared: Some(declared),
            bound: None,
            held: false,
            positions: begun.positions,
            pinned,
            counted: None,
            number: 0,
        };
        session.portals.insert(name.clone(), portal);
        name
    }

    /// FETCH and MOVE.
    pub fn fetch(&mut self, fetch: &Fetch) -> Result<()> {
        let name = self.open_name(fetch.cursor)?;
        if !self.context.session.portals.contains(&name) {
            return Err(no_cursor(&name));
        }
        let how_many = match &fetch.count {
            Count::Rows(n) => *n,
            Count::All => ALL,
            Count::Expression(e) => {
                let count = self.integer(e)?;
                let null = || err!(NULL_VALUE_NOT_ALLOWED, "relative or absolute cursor position is null");
                i64::from(count.ok_or_else(null)?)
            }
        };
        let direction = match fetch.direction {
            Direction::Forward => FetchDirection::FetchForward,
            Direction::Backward => FetchDirection::FetchBackward,
            Direction::Absolute => FetchDirection::FetchAbsolute,
            Direction::Relative => FetchDirection::FetchRelative,
        };
        let session = self.context.session.clone();
        let fetched = session.fetch(&name, direction, how_many, fetch.target.is_some())?;
        if let Some(target) = &fetch.target {
            let shape = RowShape::of_result(&fetched.columns);
            match fetched.batches.iter().find(|batch| batch.rows > 0) {
                Some(batch) => self.assign_row(target, &shape, batch, 0)?,
                None => self.assign_no_row(target, &shape)?,
            }
        }
        self.row_count = fetched.count;
        self.set_found(fetched.count > 0);
        self.refresh();
        Ok(())
    }

    pub fn close(&mut self, cursor: usize) -> Result<()> {
        let name = self.open_name(cursor)?;
        match self.context.session.portals.close(&name)? {
            true => Ok(()),
            false => Err(no_cursor(&name)),
        }
    }

    /// `FOR row IN cursor LOOP`
    pub fn cursor_loop(&mut self, target: &Target, cursor: usize, arguments: Option<&Expression>, body: &Loop) -> Result<Flow> {
        let given = self.free_name(cursor)?;
        let program = self.program.clone();
        let scroll = program.tree.variables[cursor].cursor.as_ref().map_or(Scroll::Default, |c| c.scroll);
        let begun = self.begin_bound(cursor, arguments)?;
        let (shape, origin) = (RowShape::of_result(&begun.columns), begun.origin.clone());
        let name = self.add_portal(given.clone(), begun, scroll, true);
        if given.is_none() {
            self.set_cursor(cursor, Datum::text(name.as_str()))?;
        }
        // One row at a time: the body's WHERE CURRENT OF changes apply to the row that it sees.
        let flow = self.portal_loop(&name, (target, &shape, &origin), 1, body)?;
        if given.is_none() {
            self.set_cursor(cursor, Datum::Null)?;
        }
        Ok(flow)
    }

    /// Goes through a portal, which is closed in the end. `ahead`: rows that are read at once.
    pub fn portal_loop(
        &mut self,
        name: &str,
        (target, shape, origin): (&Target, &RowShape, &Origin),
        ahead: u64,
        body: &Loop,
    ) -> Result<Flow> {
        let session = self.context.session.clone();
        let flow = self.portal_rounds(name, (target, shape, origin), ahead, body);
        session.portals.remove(name);
        flow
    }

    fn portal_rounds(
        &mut self,
        name: &str,
        (target, shape, origin): (&Target, &RowShape, &Origin),
        ahead: u64,
        body: &Loop,
    ) -> Result<Flow> {
        let session = self.context.session.clone();
        let mut found = false;
        let mut last = Flow::Next;
        'rows: loop {
            let Some(mut portal) = session.portals.take(name) else { return Err(no_cursor(name)) };
            let PortalState::Open(rows, _) = &mut portal.state else {
                bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "portal \"{name}\" cannot be run");
            };
            let batch = rows.next_batch(ahead);
            session.portals.put_back(name.to_owned(), portal);
            let Some(batch) = batch.map_err(|e| self.of_source(origin, e))? else { break };
            for row in 0..batch.rows {
                session.interrupt.check()?;
                found = true;
                self.assign_row(target, shape, &batch, row)?;
                let flow = self.statements(&body.body)?;
                if let Some(flow) = Frame::after_round(flow, body) {
                    last = flow;
                    break 'rows;
                }
            }
        }
        if !found {
            self.assign_no_row(target, shape)?;
        }
        self.set_found(found);
        Ok(last)
    }
}
