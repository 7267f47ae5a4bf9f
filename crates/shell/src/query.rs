//! Statements sent, and the messages of their answers shown as they come.

use std::io::{Read, Write as _};

use crate::copy_data;
use crate::format::Printer;
use crate::input::Input;
use crate::output::{Output, Results, is_enough};
use crate::progress::Running;
use crate::shell::Shell;
use melba_client::escape;
use melba_client::{Connection, Event, Table};

const CANCELED: &str = "57014";

/// The other end of a COPY, where it is not the statements' own input and output.
#[derive(Default)]
pub struct CopyEnds<'a> {
    pub from: Option<&'a mut dyn Read>,
    pub to: Option<&'a mut dyn std::io::Write>,
}

/// The state of a query's answer.
struct Answer<'a> {
    results: Results<'a>,
    printer: Option<Printer>,
    is_well: bool,
    /// The reader of the results does not want the rest of them.
    is_enough: bool,
    /// Data of a COPY was written where tags are written.
    is_copied_here: bool,
    tags: Vec<String>,
}

impl Shell {
    /// An internal query.
    ///
    /// # Errors
    /// The server's, and that there is no connection.
    pub fn table(&mut self, sql: &str) -> crate::Result<Table> {
        let connection = self.connection.as_mut().ok_or("You are currently not connected to a database.")?;
        connection.table(sql)
    }

    /// Sends statements unchanged and shows their answers. `false`: something failed, which has been reported.
    pub fn query(&mut self, sql: &str, input: &mut dyn Input) -> bool {
        self.query_with(sql, input, CopyEnds::default())
    }

    pub fn query_with(&mut self, sql: &str, input: &mut dyn Input, mut ends: CopyEnds) -> bool {
        let Some(mut connection) = self.connection.take() else {
            self.complain("You are currently not connected to a database.", input.number());
            return false;
        };
        self.interrupts.begin(&connection.cancel_key);
        let running = if self.is_interactive { Running::start(&self.target, connection.process_id) } else { Running::silent() };
        let mut output = std::mem::replace(&mut self.output, Output::Standard);
        self.style.is_terminal = output.is_terminal();
        self.style.width = output.width();
        let results = Results::new(&mut output, self.uses_pager && self.style.is_terminal, &running);
        let mut answer =
            Answer { results, printer: None, is_well: true, is_enough: false, is_copied_here: false, tags: Vec::new() };
        if let Err(lost) = self.answer(&mut connection, sql, input, &mut ends, &mut answer, &running) {
            running.clear();
            answer.is_well = false;
            connection.is_lost = true;
            self.complain(&lost, input.number());
        }
        self.interrupts.end();
        let Answer { results, is_well, tags, .. } = answer;
        let shown = results.finish().or_else(|e| if is_enough(&e) { Ok(()) } else { Err(e) });
        drop(running);
        self.names_are_old |= tags.iter().any(|tag| changes_names(tag));
        (self.connection, self.output) = (Some(connection), output);
        match shown {
            Ok(()) => is_well,
            Err(e) => {
                self.complain(&format!("the results cannot be written: {e}"), input.number());
                false
            }
        }
    }

    /// # Errors
    /// The connection is lost.
    fn answer(
        &mut self,
        connection: &mut Connection,
        sql: &str,
        input: &mut dyn Input,
        ends: &mut CopyEnds,
        answer: &mut Answer,
        running: &Running,
    ) -> crate::Result<()> {
        connection.send_query(sql)?;
        loop {
            let event = connection.next()?;
            match event {
                Event::Ready => return Ok(()),
                // We requested it.
                Event::Error(report) if answer.is_enough && report.code == CANCELED => {}
                Event::Error(report) => {
                    running.clear();
                    // Rows before it have been shown, or never will be.
                    answer.printer = None;
                    answer.is_well = false;
                    self.complain(&report.full(Some(sql), true), input.number());
                    connection.is_lost |= report.is_fatal();
                    self.last_error = Some((report, sql.to_owned()));
                }
                Event::Notice(report) => {
                    running.clear();
                    self.complain(&report.full(Some(sql), false), input.number());
                }
                Event::Notification { process_id, channel, payload } => {
                    running.clear();
                    let payload = if payload.is_empty() { payload } else { format!(" with payload \"{payload}\"") };
                    let text = format!(
                        "Asynchronous notification \"{channel}\"{payload} received from server process with PID {process_id}."
                    );
                    println!("{}", escape::text(&text));
                }
                Event::CopyIn => {
                    if ends.from.is_none() && self.is_interactive {
                        running.clear();
                        println!("Enter data to be copied followed by a newline.");
                        println!("End with a backslash and a period on a line by itself, or an EOF signal.");
                    }
                    let from: Option<&mut dyn Read> = match &mut ends.from {
                        Some(from) => Some(&mut **from),
                        None => None,
                    };
                    copy_data::send(connection, &self.interrupts, from, input)?;
                }
                Event::CopyOut => answer.is_copied_here = ends.to.is_none(),
                Event::CopyData(data) if !answer.is_enough => {
                    let written = match &mut ends.to {
                        Some(to) => to.write_all(&data),
                        None => self.copied_out(&data, &mut answer.results),
                    };
                    self.written(written, connection, answer, input);
                }
                event if !answer.is_enough => {
                    let written = self.show_event(event, answer);
                    self.written(written, connection, answer, input);
                }
                _ => {}
            }
        }
    }

    /// Rows and tags.
    fn show_event(&self, event: Event, answer: &mut Answer) -> std::io::Result<()> {
        match event {
            Event::Columns(columns) => {
                let mut printer = Printer::new(&self.style, columns);
                printer.begin(&mut answer.results)?;
                answer.printer = Some(printer);
            }
            Event::Row(row) => {
                let values = row.values().map_err(std::io::Error::other)?;
                if let Some(printer) = &mut answer.printer {
                    printer.row(&values, &mut answer.results)?;
                }
            }
            Event::Complete(tag) => {
                let had_rows = answer.printer.is_some();
                if let Some(mut printer) = answer.printer.take() {
                    printer.end(&mut answer.results)?;
                }
                // Of queries the rows say enough, and a tag among copied data would be taken for some.
                let is_query =
                    had_rows && !["INSERT", "UPDATE", "DELETE", "MERGE"].iter().any(|command| tag.starts_with(command));
                let is_shown = !is_query && !std::mem::take(&mut answer.is_copied_here);
                if is_shown && !self.is_quiet && !self.style.format.is_for_programs() {
                    writeln!(answer.results, "{tag}")?;
                }
                answer.tags.push(tag);
            }
            _ => {}
        }
        Ok(())
    }

    /// COPY TO STDOUT: a terminal gets no control characters.
    fn copied_out(&self, data: &[u8], results: &mut Results) -> std::io::Result<()> {
        match self.style.is_terminal {
            true => results.write_all(escape::text(&String::from_utf8_lossy(data)).as_bytes()),
            false => results.write_all(data),
        }
    }

    fn written(&self, written: std::io::Result<()>, connection: &Connection, answer: &mut Answer, input: &dyn Input) {
        let Err(e) = written else { return };
        answer.is_enough = true;
        if !is_enough(&e) {
            answer.is_well = false;
            self.complain(&format!("the results cannot be written: {e}"), input.number());
        }
        // If the request does not get through, the rest is read and thrown away.
        let _ = connection.cancel_key.cancel();
    }
}

fn changes_names(tag: &str) -> bool {
    ["CREATE", "ALTER", "DROP", "SELECT INTO", "ROLLBACK", "COMMIT"].iter().any(|command| tag.starts_with(command))
}
