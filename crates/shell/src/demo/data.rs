//! Data of a small shop, the same each time: pages that were fetched again and again, orders, and visitors' events.

use std::fmt::Write as _;

/// A table, its definition and its rows.
pub struct DemoTable {
    pub name: &'static str,
    /// `$dense `: the column is stored densely, where there is such a thing.
    pub columns: &'static str,
    /// Appends a row's line of COPY's text format.
    row: fn(&Shop, u64, &mut String),
    rows: fn(&Shop) -> u64,
}

impl DemoTable {
    pub fn rows(&self, shop: &Shop) -> u64 {
        (self.rows)(shop)
    }

    pub fn row(&self, shop: &Shop, at: u64, line: &mut String) {
        (self.row)(shop, at, line);
        line.push('\n');
    }
}

pub const TABLES: [DemoTable; 3] = [
    DemoTable {
        name: "documents",
        columns: "id bigint PRIMARY KEY, url text NOT NULL, fetched timestamp NOT NULL, body text $dense NOT NULL",
        row: document,
        rows: |shop| shop.pages * COPIES,
    },
    DemoTable {
        name: "orders",
        columns: "id bigint PRIMARY KEY, customer integer NOT NULL, placed timestamp NOT NULL, country text NOT NULL, status text NOT NULL, \
                  amount numeric(10, 2) NOT NULL",
        row: order,
        rows: |shop| shop.orders,
    },
    DemoTable {
        name: "events",
        columns: "at timestamp NOT NULL, customer integer NOT NULL, kind text NOT NULL, payload jsonb NOT NULL",
        row: event,
        rows: |shop| shop.orders,
    },
];

/// How often each page was fetched.
const COPIES: u64 = 25;
const PAGES: u64 = 400;
const ORDERS: u64 = 200_000;
/// Of a page: its frame, which it shares with the others of its kind, and its own text.
const FRAME_SENTENCES: u64 = 14;
const SENTENCES: u64 = 40;
const KINDS: u64 = 4;
const DAY: u64 = 86_400;

pub struct Shop {
    pages: u64,
    orders: u64,
}

impl Shop {
    /// `scale`: 1 is some tens of megabytes.
    pub fn new(scale: f64) -> Shop {
        let scaled = |count: u64| ((count as f64 * scale) as u64).max(20);
        Shop { pages: scaled(PAGES), orders: scaled(ORDERS) }
    }
}

/// A number in which every bit depends on all parts (the finalizer of SplitMix64 over each).
fn hash(parts: &[u64]) -> u64 {
    parts.iter().fold(0x6D65_6C62_6164_656D, |state: u64, part| {
        let mut z = (state ^ part).wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    })
}

/// A word of a language with 4096 words, of which the first are most frequent.
fn word(seed: u64) -> String {
    const SYLLABLES: [&str; 16] =
        ["ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ra", "se", "ti", "vo", "wa", "ze", "sho"];
    let number = hash(&[seed]) % 4096;
    let number = (number * number / 4096) as usize;
    [number % 16, number / 16 % 16, number / 256].map(|at| SYLLABLES[at]).concat()
}

fn sentence(seeds: &[u64], into: &mut String) {
    let seed = hash(seeds);
    for at in 0..9 + seed % 6 {
        into.push_str(&word(seed.wrapping_add(at)));
        into.push(' ');
    }
    into.pop();
    into.push_str(". ");
}

/// Page by page, its copies one after the other: each differs from the one before in two sentences, most of the time.
fn document(_: &Shop, at: u64, line: &mut String) {
    let (page, copy) = (at / COPIES, at % COPIES);
    let kind = page % KINDS;
    write!(line, "{}\thttps://shop.example/{}/{page}\t{}\t", at + 1, word(kind), moment(copy * DAY + hash(&[page, copy]) % DAY))
        .expect("memory");
    for number in 0..FRAME_SENTENCES / 2 {
        sentence(&[1, kind, number], line);
    }
    for number in 0..SENTENCES {
        // The last copy in which this sentence was rewritten.
        let changed = (1..=copy).rev().find(|copy| changes(page, *copy).contains(&Some(number))).unwrap_or(0);
        sentence(&[2, page, number, changed], line);
    }
    for number in FRAME_SENTENCES / 2..FRAME_SENTENCES {
        sentence(&[1, kind, number], line);
    }
}

/// The sentences that are new in a copy of a page.
fn changes(page: u64, copy: u64) -> [Option<u64>; 2] {
    let is_new = hash(&[3, page, copy]) % 8 >= page % 8;
    [4, 5].map(|salt| is_new.then(|| hash(&[salt, page, copy]) % SENTENCES))
}

fn order(shop: &Shop, at: u64, line: &mut String) {
    const COUNTRIES: [&str; 8] = ["DE", "FR", "PL", "IT", "ES", "NL", "AT", "SE"];
    let random = |salt: u64| hash(&[10 + salt, at]);
    let country = COUNTRIES[(random(0) % 8 * (random(1) % 8) / 8) as usize];
    let status = ["delivered", "delivered", "delivered", "shipped", "returned"][(random(2) % 5) as usize];
    let cents = 500 + random(3) % 2000 + random(4) % 100 * (random(5) % 100);
    let placed = moment(at * 360 * DAY / shop.orders + random(6) % 3600);
    write!(line, "{}\t{}\t{placed}\t{country}\t{status}\t{}.{:02}", at + 1, customer(at), cents / 100, cents % 100)
        .expect("memory");
}

fn event(shop: &Shop, at: u64, line: &mut String) {
    const PATHS: [&str; 6] = ["/", "/search", "/basket", "/basket/pay", "/account", "/help"];
    const AGENTS: [&str; 3] = [
        "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
    ];
    let random = |salt: u64| hash(&[20 + salt, at]);
    let path = (random(0) % 6 * (1 + random(1) % 6) / 6) as usize;
    let kind = ["view", "view", "view", "click", "error"][(random(2) % 5) as usize];
    let milliseconds = 3 + random(3) % 40 * (1 + path as u64 * path as u64) / 4;
    write!(
        line,
        "{}\t{}\t{kind}\t{{\"path\": \"{}\", \"agent\": \"{}\", \"ms\": {milliseconds}, \"session\": \"{:016x}\"}}",
        moment(at * 360 * DAY / shop.orders),
        customer(at / 3),
        PATHS[path],
        AGENTS[(random(4) % 3) as usize],
        hash(&[30, at / 7])
    )
    .expect("memory");
}

/// Some customers come often.
fn customer(at: u64) -> u64 {
    let number = hash(&[40, at]) % 20_000;
    1 + number * number / 20_000
}

/// Seconds after the beginning of 2025, which has twelve months of thirty days here.
fn moment(seconds: u64) -> String {
    let (day, second) = (seconds / DAY, seconds % DAY);
    let (month, day) = (1 + day / 30 % 12, 1 + day % 30);
    // February has 28.
    let day = if month == 2 { day.min(28) } else { day };
    format!("2025-{month:02}-{day:02} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_a_page_are_nearly_the_same() {
        let shop = Shop::new(0.1);
        let row = |at: u64| {
            let mut line = String::new();
            TABLES[0].row(&shop, at, &mut line);
            line.rsplit('\t').next().expect("a body").to_owned()
        };
        let (first, second) = (row(0), row(1));
        assert!(first.len() > 3000 && first != second, "{first}");
        let same = first.split(". ").filter(|sentence| second.contains(sentence)).count();
        assert!(same >= 48, "{same}");
        assert_eq!(first, row(0));
        assert!(TABLES.iter().all(|table| table.rows(&shop) > 100));
    }
}
