//! Rows of pg_hba_file_rules and pg_ident_file_mappings: the files' present content, not the rules in force.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use melba_settings::Settings;
use melba_types::{Array, ArrayDim, Datum, DbError, Result, SqlState, oids};

use super::file::FileLine;
use super::ident::Mapping;
use super::rule::{Address, ClientCert, Rule};
use super::tokenizer::Token;
use super::{HostAccess, built_in, file};

impl HostAccess {
    /// rule_number, file_name, line_number, type, database, user_name, address, netmask, auth_method, options, error. Built-in
    /// rules have neither file nor line.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn rule_rows(&self, settings: &Settings) -> Result<Vec<Vec<Datum>>> {
        let Some(path) = self.hba_file.as_ref().filter(|path| self.is_named || path.exists()) else {
            let rules = built_in(self.require_password).rules;
            return Ok(rules.iter().zip(1..).map(|(rule, number)| row(number, None, Ok(rule))).collect());
        };
        let has_tls = settings.get("ssl").as_bool();
        let mut number = 0;
        let lines = file::read(path).map_err(unreadable)?;
        let rows = lines.iter().map(|line| {
            let parsed = line.error.clone().map_or_else(|| Rule::parse(line, has_tls), Err);
            number += i32::from(parsed.as_ref().is_ok_and(|rule| rule.warning.is_none()));
            row(number, Some((&line.file, line.number)), parsed.as_ref())
        });
        Ok(rows.collect())
    }

    /// map_number, file_name, line_number, map_name, sys_name, pg_username, error
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn mapping_rows(&self) -> Result<Vec<Vec<Datum>>> {
        // A server that never had one has no mappings.
        let is_there = |path: &&PathBuf| path.exists() || !self.in_force().mappings.is_empty();
        let Some(path) = self.ident_file.as_ref().filter(is_there) else { return Ok(Vec::new()) };
        let mut number = 0;
        let lines = file::read(path).map_err(unreadable)?;
        let rows = lines.iter().map(|line: &FileLine| {
            let parsed = line.error.clone().map_or_else(|| Mapping::parse(line), Err);
            let mut row = vec![Datum::Null; 7];
            (row[1], row[2]) = place(&line.file, line.number);
            match parsed {
                Ok(mapping) => {
                    number += 1;
                    row[0] = Datum::Int4(number);
                    row[3] = Datum::text(mapping.map);
                    row[4] = Datum::text(mapping.system_user.text);
                    row[5] = Datum::text(mapping.role.text);
                }
                Err(error) => row[6] = Datum::text(error),
            }
            row
        });
        Ok(rows.collect())
    }
}

fn unreadable(message: String) -> DbError {
    DbError::new(SqlState::UNDEFINED_FILE, message)
}

fn place(file: &Path, line: usize) -> (Datum, Datum) {
    (Datum::text(file.display().to_string()), Datum::Int4(line as i32))
}

fn row(number: i32, at: Option<(&Path, usize)>, parsed: std::result::Result<&Rule, &String>) -> Vec<Datum> {
    let mut row = vec![Datum::Null; 11];
    if let Some((file, line)) = at {
        (row[1], row[2]) = place(file, line);
    }
    let rule = match parsed {
        Ok(rule) => rule,
        Err(error) => {
            row[10] = Datum::text(error.clone());
            return row;
        }
    };
    match &rule.warning {
        Some(warning) => row[10] = Datum::text(warning.clone()),
        None => row[0] = Datum::Int4(number),
    }
    row[3] = Datum::text(rule.connections.name());
    row[4] = texts(rule.databases.iter().map(word));
    row[5] = texts(rule.users.iter().map(word));
    if rule.connections != super::Connections::Local {
        let (address, mask) = match &rule.address {
            Address::All => ("all".to_owned(), None),
            Address::SameHost => ("samehost".to_owned(), None),
            Address::SameNet => ("samenet".to_owned(), None),
            Address::Name(name) => (name.clone(), None),
            Address::Network { address, mask } => (address.to_string(), Some(mask.to_string())),
        };
        row[6] = Datum::text(address);
        row[7] = mask.map_or(Datum::Null, Datum::text);
    }
    row[8] = Datum::text(rule.method.name());
    let map = rule.options.map.iter().map(|map| format!("map={map}"));
    let client_cert = rule.options.client_cert.map(|cert| match cert {
        ClientCert::VerifyCa => "clientcert=verify-ca".to_owned(),
        ClientCert::VerifyFull => "clientcert=verify-full".to_owned(),
    });
    let options: Vec<String> = map.chain(client_cert).collect();
    if !options.is_empty() {
        row[9] = texts(options.into_iter());
    }
    row
}

fn word(token: &Token) -> String {
    token.text.clone()
}

fn texts(items: impl Iterator<Item = String>) -> Datum {
    let elements: Vec<Datum> = items.map(Datum::text).collect();
    let dims = vec![ArrayDim { length: elements.len() as i32, lower_bound: 1 }];
    Datum::Array(Arc::new(Array { element_type: oids::TEXT, dims, elements }))
}
