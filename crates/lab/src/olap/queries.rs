//! The queries: over the large table, then over accounts and records.

use super::answer::Compare;
use super::data::{ACCOUNT, Data, FIRST_YEAR, PHONES, RECORD, TMP, phone};
use crate::random::Random;

/// A query whose time is measured.
pub struct Query {
    pub name: String,
    pub sql: String,
    pub compare: Compare,
}

/// A short statement that many clients run, with the values of its parameter.
pub struct Statement {
    pub name: &'static str,
    /// The parameter is `{}`, once or more often.
    pub sql: String,
    pub parameters: Vec<Parameter>,
}

/// A parameter of a statement.
#[derive(Clone, Debug)]
pub enum Parameter {
    Number(i64),
    Text(String),
}

impl Parameter {
    /// As a literal: no value of the experiment has a quote in it.
    pub fn literal(&self) -> String {
        match self {
            Parameter::Number(number) => number.to_string(),
            Parameter::Text(text) => format!("'{text}'"),
        }
    }
}

impl Statement {
    /// The statement with the parameter in place.
    pub fn with(&self, parameter: &Parameter) -> String {
        self.sql.replace("{}", &parameter.literal())
    }
}

const LIMIT: &str = "LIMIT 1000";
/// Ranges have as many phones as there are under a prefix.
const RANGES: [(u64, &str); 2] = [(1_000_000, "10^6 phones"), (100_000_000, "10^8 phones")];

/// Over the large table. Only the index on phone differs between the two times they are run.
pub fn large(data: &Data) -> Vec<Query> {
    let table = TMP.name;
    let mut queries = vec![
        query("count(*)", format!("SELECT count(*) FROM {table}"), Compare::Rows),
        query(
            "phone = x",
            format!("SELECT uid, phone, nickname FROM {table} WHERE phone = '{}'", data.phone_of(data.rows / 2)),
            Compare::Rows,
        ),
    ];
    for (size, words) in RANGES {
        let (low, high) = range(data, size);
        let prefix = low.trim_end_matches('0');
        // A prefix may itself end in zeros.
        let prefix = &low[..prefix.len().max(low.len() - size.ilog10() as usize)];
        let rows = format!("SELECT uid, phone, nickname FROM {table} WHERE phone");
        let within = format!("phone BETWEEN '{low}' AND '{high}'");
        with_and_without(
            &mut queries,
            &format!("BETWEEN, {words}"),
            &format!("{rows} BETWEEN '{low}' AND '{high}'"),
            (1, &low, &high),
        );
        with_and_without(
            &mut queries,
            &format!("LIKE 'prefix%', {words}"),
            &format!("{rows} LIKE '{prefix}%'"),
            (1, &low, &high),
        );
        let grouped = format!("SELECT phone, count(*) FROM {table} WHERE {within} GROUP BY phone");
        with_and_without(&mut queries, &format!("GROUP BY phone, {words}"), &grouped, (0, &low, &high));
    }
    let (low, high) = (phone(0), phone(PHONES - 1));
    let grouped = format!("SELECT phone, count(*) FROM {table} GROUP BY phone");
    with_and_without(&mut queries, "GROUP BY phone, everything", &grouped, (0, &low, &high));
    let (low, high) = range(data, RANGES[1].0);
    let top = format!(
        "SELECT phone, count(uid) FROM {table} WHERE phone BETWEEN '{low}' AND '{high}' GROUP BY phone ORDER BY count(uid) DESC"
    );
    let last = format!("SELECT uid, phone, nickname FROM {table} ORDER BY phone DESC");
    for (name, sql) in [("ORDER BY phone DESC", last), ("top by count(uid), 10^8 phones", top)] {
        queries.push(query(&format!("{name}, {LIMIT}"), format!("{sql} {LIMIT}"), Compare::Ordered { column: 1 }));
        queries.push(query(name, sql, Compare::Ordered { column: 1 }));
    }
    queries
}

fn query(name: &str, sql: String, compare: Compare) -> Query {
    Query { name: name.to_owned(), sql, compare }
}

/// Of rows without an order, any may be the first 1000: their column's values must be in the range.
fn with_and_without(queries: &mut Vec<Query>, name: &str, sql: &str, (column, low, high): (usize, &str, &str)) {
    let any = Compare::Number { column, low: low.to_owned(), high: high.to_owned() };
    queries.push(query(&format!("{name}, {LIMIT}"), format!("{sql} {LIMIT}"), any));
    queries.push(query(name, sql.to_owned(), Compare::Rows));
}

/// First and last phone of a range that one prefix covers.
fn range(data: &Data, size: u64) -> (String, String) {
    let first = Random::new(&[data.seed, 7, size]).below(PHONES / size) * size;
    (phone(first), phone(first + size - 1))
}

/// How many different parameters point queries and searches have.
const POINTS: u64 = 250;
const SEARCHES: u64 = 16;

/// The short statements over accounts and records.
pub fn short(data: &Data) -> [Statement; 4] {
    let mut random = Random::new(&[data.seed, 8]);
    let mut numbers = |below: u64| (0..POINTS).map(|_| Parameter::Number(random.below(below) as i64)).collect();
    let (accounts, records) = (numbers(data.accounts), numbers(data.records));
    let nicknames = (0..POINTS).map(|_| Parameter::Text(data.nickname_of_record(random.below(data.records)))).collect();
    let part = |_| Parameter::Text(format!("%{}%", &data.nickname_of(random.below(data.accounts))[1..5]));
    let parts = (0..SEARCHES).map(part).collect();
    let search = |column: &str| format!("SELECT id, nickname, former_name FROM {} WHERE {column} LIKE {{}}", ACCOUNT.name);
    [
        Statement {
            name: "an account by id",
            sql: format!("SELECT id, nickname, former_name, status FROM {} WHERE id = {{}}", ACCOUNT.name),
            parameters: accounts,
        },
        Statement {
            name: "nickname LIKE '%x%' UNION former_name LIKE '%x%'",
            sql: format!("{} UNION {}", search("nickname"), search("former_name")),
            parameters: parts,
        },
        Statement {
            name: "a record by id",
            sql: format!("SELECT id, nickname, status, raw FROM {} WHERE id = {{}}", RECORD.name),
            parameters: records,
        },
        Statement {
            name: "a nickname's latest record",
            // The second key makes the answer one, should two be of the same second.
            sql: format!(
                "SELECT id, nickname, status, raw FROM {} WHERE nickname = {{}} ORDER BY update_time DESC, id LIMIT 1",
                RECORD.name
            ),
            parameters: nicknames,
        },
    ]
}

/// The long queries over the records of a year.
pub fn long() -> [Query; 4] {
    let year = FIRST_YEAR + 6;
    let of_year = |what: &str, groups: &str| {
        format!(
            "SELECT {what} FROM {} WHERE update_time >= '{year}-01-01 00:00:00' AND update_time < '{}-01-01 00:00:00'{groups}",
            RECORD.name,
            year + 1
        )
    };
    [
        query("count(*) of a year", of_year("count(*)", ""), Compare::Rows),
        query(
            "nickname, count(DISTINCT id) of a year",
            of_year("nickname, count(DISTINCT id)", " GROUP BY nickname"),
            Compare::Rows,
        ),
        query("sum(bit_length(raw)) of a year", of_year("sum(bit_length(raw))", ""), Compare::Rows),
        query("status, count(*) of a year", of_year("status, count(*)", " GROUP BY status"), Compare::Rows),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_covers_its_range() {
        for seed in 0..50 {
            let data = Data { seed, rows: 100, accounts: 10, records: 10 };
            let queries = large(&data);
            for (size, words) in RANGES {
                let (low, high) = range(&data, size);
                let sql = &queries.iter().find(|q| q.name == format!("LIKE 'prefix%', {words}")).unwrap().sql;
                let prefix = sql.split('\'').nth(1).unwrap().trim_end_matches('%');
                let free = low.len() - prefix.len();
                assert_eq!(10_u64.pow(free as u32), size, "{sql}");
                assert!(low.starts_with(prefix) && high.starts_with(prefix) && low.ends_with(&"0".repeat(free)), "{sql} {low}");
            }
        }
    }

    #[test]
    fn statements_take_their_parameters() {
        let [_, search, record, _] = short(&Data { seed: 1, rows: 1, accounts: 10, records: 10 });
        let sql = search.with(&search.parameters[0]);
        assert!(sql.matches("LIKE '%").count() == 2 && !sql.contains('{'), "{sql}");
        assert!(record.parameters.iter().all(|p| matches!(p, Parameter::Number(0..10))));
    }
}
