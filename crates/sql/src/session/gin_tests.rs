//! GIN indexes give the answers that scans give, whatever has changed.

use super::tests::Harness;

/// Numbers that only depend on where they begin (Knuth's constants).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn pick<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len() as u64) as usize]
    }

    fn array(&mut self) -> String {
        let elements: Vec<String> =
            (0..self.below(5)).map(|_| self.pick(&["1", "2", "3", "4", "5", "null"]).to_owned()).collect();
        if self.below(12) == 0 { "null::int[]".to_owned() } else { format!("array[{}]::int[]", elements.join(",")) }
    }

    fn json(&mut self, depth: u64) -> String {
        match self.below(if depth == 0 { 7 } else { 12 }) {
            0 => "null".to_owned(),
            1 => "true".to_owned(),
            n @ 2..=4 => n.to_string(),
            5 => "2.0".to_owned(),
            6 => format!("\"{}\"", self.pick(&["a", "b", "c", "2", ""])),
            7 | 8 => {
                let elements: Vec<String> = (0..self.below(4)).map(|_| self.json(depth - 1)).collect();
                format!("[{}]", elements.join(","))
            }
            _ => {
                let field =
                    |numbers: &mut Numbers| format!("\"{}\": {}", numbers.pick(&["a", "b", "c"]), numbers.json(depth - 1));
                let fields: Vec<String> = (0..self.below(4)).map(|_| field(self)).collect();
                format!("{{{}}}", fields.join(","))
            }
        }
    }

    fn condition(&mut self) -> String {
        let (array, json) = (self.array(), self.json(2));
        let keys = format!("array['{}', '{}']", self.pick(&["a", "b", "2"]), self.pick(&["b", "c", ""]));
        match self.below(9) {
            0 => format!("a && {array}"),
            1 => format!("a @> {array}"),
            2 => format!("a <@ {array}"),
            3 => format!("a = {array}"),
            4 => format!("d ? '{}'", self.pick(&["a", "b", "c", "2", ""])),
            5 => format!("d ?| {keys}"),
            6 => format!("d ?& {keys}"),
            7 => {
                let path = [
                    "$.a",
                    "$.a.b",
                    "$[*].a",
                    "$.a ? (@ == 2)",
                    "$.** ? (@ == \"a\")",
                    "$ ? (@.a == null || @.b == true)",
                    "$.a ? (@.size() > 1)",
                ];
                format!("d @? '{}'", self.pick(&path))
            }
            _ => format!("d @> '{json}'"),
        }
    }

    fn change(&mut self, table: &str) -> String {
        let (a, d, id) = (self.array(), self.json(3), self.below(80));
        match self.below(5) {
            0 | 1 => format!("insert into {table} values ({id}, {a}, '{d}'), ({id}, {a}, null)"),
            2 => format!("update {table} set a = {a} where id % 5 = {}", id % 5),
            3 => format!("update {table} set d = '{d}', a = a || 5 where id % 7 = {}", id % 7),
            _ => format!("delete from {table} where id % 9 = {}", id % 9),
        }
    }
}

fn answers_are_those_of_scans(h: &mut Harness, numbers: &mut Numbers, table: &str) {
    for _ in 0..6 {
        let (one, other) = (numbers.condition(), numbers.condition());
        let condition = if numbers.below(3) == 0 { format!("{one} and {other}") } else { one };
        let text = format!(
            "select coalesce(string_agg(id || ' ' || md5(coalesce(a::text, '') || coalesce(d::text, '')), ',' order by id, a, d), '-') from {table} where {condition}"
        );
        h.query("set enable_seqscan = off; set enable_bitmapscan = on");
        let by_index = h.lines(&text);
        h.query("set enable_seqscan = on; set enable_bitmapscan = off");
        assert_eq!(by_index, h.lines(&text), "{table}: {condition}");
        assert!(!by_index.starts_with("ERROR"), "{by_index}: {condition}");
    }
}

#[test]
fn gin_indexes_answer_as_scans_do_after_changes_and_rollbacks() {
    let mut h = Harness::new();
    let tables = [
        ("t1", "create index on t1 using gin (a); create index on t1 using gin (d)"),
        ("t2", "create index on t2 using gin (d jsonb_path_ops)"),
        ("t3", "create index on t3 using gin (a, d)"),
        ("t4", "create index on t4 using gin (a) where id % 2 = 0; create index on t4 using gin ((d -> 'a'))"),
    ];
    let mut numbers = Numbers(18);
    for (table, indexes) in tables {
        h.query(&format!("create table {table} (id int, a int[], d jsonb)"));
        h.query(&numbers.change(table));
        let made = h.query(indexes);
        assert!(made.ends_with("C:CREATE INDEX Z:I"), "{made}");
        for round in 0..20 {
            let changes: Vec<String> = (0..3).map(|_| numbers.change(table)).collect();
            match round % 4 {
                0 => drop(h.query(&changes[0])),
                1 => drop(h.query(&format!("begin; {}; {}", changes[0], changes[1]))),
                2 => drop(h.query(&format!("begin; {}; savepoint s; {}; rollback to s; {}", changes[0], changes[1], changes[2]))),
                _ => drop(h.query(&format!("insert into {table} select g, array[g % 5, g % 3], jsonb_build_object('a', g % 4) from generate_series(1, 40) g"))),
            }
            answers_are_those_of_scans(&mut h, &mut numbers, table);
            h.query(if round % 8 < 4 { "rollback" } else { "commit" });
            answers_are_those_of_scans(&mut h, &mut numbers, table);
        }
        h.query("set enable_seqscan = off; set enable_bitmapscan = on");
        let condition = if table == "t2" { "d @> '{\"a\": 1}'" } else { "a && '{1}' and id % 2 = 0" };
        let plan = h.lines(&format!("explain (costs off) select id from {table} where {condition}"));
        assert!(plan.contains("Bitmap Index Scan"), "{plan}");
        h.query("reset enable_seqscan");
    }
    assert_eq!(h.engine().check_indexes(|_| false), Vec::<String>::new());
}
