//! Backslash commands: their names and effects.

mod arguments;
pub mod files;
mod settings;

use std::io::IsTerminal as _;

use crate::input::Input;
use crate::output::shell;
use crate::scan::{Scanner, identifier, literal};
use crate::shell::{Ended, Flow, Shell};
use crate::{Result, commands, copy, describe, terminal};
use melba_client::escape;
use melba_client::target::Target;

impl Shell {
    /// Runs a command; `scanner` has the text typed so far.
    pub fn command(&mut self, name: &str, rest: &str, scanner: &mut Scanner, input: &mut dyn Input) -> Flow {
        // Commands that run statements report their failures themselves.
        match name {
            "q" | "quit" => return Err(Ended::Well),
            "g" | "gx" => return files::run_pending(self, name, rest, scanner, input),
            "gexec" => return self.run_values(scanner, input),
            "i" | "ir" | "include" | "include_relative" => return files::include(self, name, rest, input),
            "copy" => {
                let is_well = copy::copy(self, rest, input);
                return self.judge(is_well);
            }
            "e" | "edit" => {
                let edited = files::edit(self, rest, scanner);
                return self.judge_done(edited, input);
            }
            _ => {}
        }
        let arguments = arguments::split(rest, &self.variables);
        let done = arguments.and_then(|arguments| {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            match name {
                "p" | "print" => {
                    let pending = scanner.pending().trim();
                    println!("{}", escape::text(if pending.is_empty() { self.last_statement.trim() } else { pending }));
                    Ok(())
                }
                "r" | "reset" => {
                    scanner.take_pending();
                    if !self.is_quiet {
                        println!("Query buffer reset (cleared).");
                    }
                    Ok(())
                }
                name => self.simple_command(name, rest, &arguments, input),
            }
        });
        self.judge_done(done, input)
    }

    fn judge_done(&mut self, done: Result<()>, input: &dyn Input) -> Flow {
        if let Err(e) = &done {
            self.complain(e, input.number());
        }
        self.judge(done.is_ok())
    }

    fn simple_command(&mut self, name: &str, rest: &str, arguments: &[&str], input: &mut dyn Input) -> Result<()> {
        match name {
            "?" => {
                commands::help();
                Ok(())
            }
            "h" | "help" => {
                Err("\\h: the syntax of statements is in https://www.postgresql.org/docs/18/sql-commands.html".to_owned())
            }
            "c" | "connect" => self.reconnect_to(arguments),
            "conninfo" => self.connection_info(),
            "echo" | "qecho" | "warn" => self.echo(name, arguments),
            "!" => run_in_shell(rest),
            "cd" => change_folder(arguments),
            "password" => self.change_password(arguments, input),
            "errverbose" => {
                match &self.last_error {
                    Some((report, sql)) => eprintln!("{}", report.verbose(sql)),
                    None => println!("There is no previous error."),
                }
                Ok(())
            }
            "o" | "out" => files::send_results_to(self, rest),
            "sf" | "sv" => self.show_definition(name, rest),
            _ if settings::is_one(name) => settings::change_setting(self, name, arguments),
            _ if describe::is_one(name) => describe::describe(self, name, rest),
            _ => Err(format!("invalid command \\{name}\nTry \\? for help.")),
        }
    }

    /// `\c`: a database, or a URL; a role.
    fn reconnect_to(&mut self, arguments: &[&str]) -> Result<()> {
        let target = match arguments {
            [] => self.target.clone(),
            [place, ..] if place.contains("://") || place.contains('=') => Target::parse(place)?,
            [database, rest @ ..] => {
                let mut target = self.target.clone();
                if *database != "-" {
                    (*database).clone_into(&mut target.database);
                }
                if let Some(user) = rest.first().filter(|user| **user != "-") {
                    (*user).clone_into(&mut target.user);
                    target.password = None;
                }
                target
            }
        };
        match self.connect(target) {
            Ok(()) => {
                if !self.is_quiet {
                    let (database, user) = (&self.target.database, &self.target.user);
                    println!("You are now connected to database \"{database}\" as user \"{user}\".");
                }
                Ok(())
            }
            Err(e) if self.is_interactive => Err(format!("{e}\nPrevious connection kept")),
            Err(e) => {
                // The following input is meant for another database.
                if let Some(connection) = &mut self.connection {
                    connection.is_lost = true;
                }
                Err(format!("\\connect: {e}"))
            }
        }
    }

    fn connection_info(&mut self) -> Result<()> {
        let connection = self.connection.as_ref().ok_or("You are currently not connected to a database.")?;
        let encrypted = if connection.is_encrypted { ", encrypted by TLS" } else { "" };
        let version = connection.parameter("server_version").unwrap_or("unknown");
        let Target { database, user, .. } = &self.target;
        let place = self.target.place();
        println!(
            "You are connected to database \"{database}\" as user \"{user}\" via {place}{encrypted}; process {}, server version {version}.",
            connection.process_id
        );
        Ok(())
    }

    fn echo(&mut self, name: &str, arguments: &[&str]) -> Result<()> {
        let (arguments, end) = match arguments {
            ["-n", rest @ ..] if name != "warn" => (rest, ""),
            arguments => (arguments, "\n"),
        };
        let text = arguments.join(" ");
        match name {
            "warn" => eprintln!("{}", escape::text(&text)),
            "qecho" => files::write_result(self, &format!("{text}{end}"))?,
            _ => print!("{}{end}", escape::if_terminal(&text, std::io::stdout().is_terminal())),
        }
        Ok(())
    }

    fn change_password(&mut self, arguments: &[&str], input: &mut dyn Input) -> Result<()> {
        let role = arguments.first().map_or_else(|| self.target.user.clone(), |role| (*role).to_owned());
        let ask = |prompt: &str| terminal::password(prompt).ok_or("there is no terminal to ask for a password at");
        let password = ask(&format!("Enter new password for user \"{role}\": "))?;
        if ask("Enter it again: ")? != password {
            return Err("Passwords didn't match.".to_owned());
        }
        // The server and its log get the password's verifier, not the password.
        let secret = postgres_protocol::password::scram_sha_256(password.as_bytes());
        let sql = format!("ALTER ROLE {} PASSWORD {}", identifier(&role), literal(&secret));
        if self.query(&sql, input) { Ok(()) } else { Err("The password is not changed.".to_owned()) }
    }

    fn show_definition(&mut self, name: &str, rest: &str) -> Result<()> {
        if rest.is_empty() {
            return Err(format!("\\{name}: missing required argument"));
        }
        let cast = match name {
            "sv" => "pg_catalog.pg_get_viewdef({}::pg_catalog.regclass, true)",
            _ if rest.contains('(') => "pg_catalog.pg_get_functiondef({}::pg_catalog.regprocedure)",
            _ => "pg_catalog.pg_get_functiondef({}::pg_catalog.regproc)",
        };
        let connection = self.connection.as_mut().ok_or("You are currently not connected to a database.")?;
        let rows = connection.rows(&format!("SELECT {}", cast.replace("{}", &literal(rest.trim_end_matches(';')))))?;
        let text = rows.into_iter().flatten().flatten().next().unwrap_or_default();
        let head =
            if name == "sv" { format!("CREATE OR REPLACE VIEW {} AS\n", rest.trim_end_matches(';')) } else { String::new() };
        files::write_result(self, &format!("{head}{}\n", text.trim_end()))
    }

    /// `\gexec`: runs the pending query, and its values as statements, row by row.
    fn run_values(&mut self, scanner: &mut Scanner, input: &mut dyn Input) -> Flow {
        let sql = files::pending_or_last(self, scanner);
        let rows = match &mut self.connection {
            Some(connection) => connection.rows(&sql),
            None => Err("You are currently not connected to a database.".to_owned()),
        };
        match rows {
            Ok(rows) => rows.into_iter().flatten().flatten().try_for_each(|sql| self.statement(&sql, input)),
            Err(e) => self.judge_done(Err(format!("ERROR:  {e}")), input),
        }
    }
}

fn run_in_shell(command: &str) -> Result<()> {
    let own = std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned());
    let status = if command.is_empty() { std::process::Command::new(own).status() } else { shell(command).status() };
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) if command.is_empty() => Ok(()),
        Ok(status) => Err(format!("\\!: {status}")),
        Err(e) => Err(format!("\\!: {e}")),
    }
}

fn change_folder(arguments: &[&str]) -> Result<()> {
    let folder = match arguments.first() {
        Some(folder) => std::path::PathBuf::from(folder),
        None => std::env::home_dir().ok_or("could not determine home directory")?,
    };
    let shown = folder.display();
    std::env::set_current_dir(&folder).map_err(|e| format!("\\cd: could not change directory to \"{shown}\": {e}"))
}
