//! Every operator returns the same whether its rows fit or not.

use melba_engine::EngineOptions;

use super::tests::Harness;

/// Rows of random text, numbers with many and with few equals, NULLs.
const SETUP: &str = "
    select setseed(0.25);
    create table t as select i as id, (random() * 3000)::int as a, (random() * 9)::int as few,
        case when random() < 0.1 then null else md5(random()::text) end as b, (random() * 100)::numeric(10, 4) as c
        from generate_series(1, 7000) i;
    create table u as select i as id, case when random() < 0.05 then null else (random() * 3000)::int end as a,
        (random() * 9)::int as few, md5((i % 2500)::text) as b, random() as d
        from generate_series(1, 6000) i;
    create table skewed as select 7 as a, i as n, repeat('x', 60) || i as filler from generate_series(1, 4000) i;
";

/// Whether rows come in a known order, and the query; all of them keep more than 64 kB.
const QUERIES: &[(bool, &str)] = &[
    (true, "select id, b, c from t order by b, c, id"),
    (true, "select b from t order by c desc nulls first, id limit 50 offset 6000"),
    (true, "select b from t order by b desc, id offset 6990"),
    (true, "select b, c from t order by c, id limit 3000 offset 3997"),
    (true, "select b from t order by c, id offset 7000"),
    (true, "select repeat(b, 100) from t order by a, id limit 3000"),
    (true, "select row_to_json(x) from (select t from t order by b desc, id) x(x)"),
    (true, "select array[b, c::text], int4range(few, few + a) from t order by c, id"),
    (false, "select b, count(*), sum(c), min(a) from t group by b"),
    (false, "select a, few, avg(c), max(b) filter (where few > 3) from t group by a, few having count(*) < 9"),
    (false, "select few, count(distinct b), count(distinct a), sum(distinct c) from t group by few"),
    (false, "select a, array_agg(b order by c, id), string_agg(distinct b, ',') from t group by a"),
    (false, "select few, percentile_disc(0.3) within group (order by b), mode() within group (order by a) from t group by few"),
    (false, "select rank(1500) within group (order by a) from t"),
    (
        false,
        "select a, few, b is null, count(*), grouping(a, few) from t group by grouping sets ((a, few), (few, b is null), (a, b), ())",
    ),
    (false, "select few, a, count(distinct b) from t group by rollup (few, a)"),
    (false, "select t.id, u.id from t join u on t.a = u.a"),
    (false, "select t.id, u.id from t join u on t.b = u.b and t.few < u.few"),
    (false, "select t.id, x.id from t join t x on repeat(t.b, 3) = repeat(x.b, 3) and t.few = x.few"),
    (false, "select count(*), count(s.n) from t left join skewed s on repeat(s.filler, 3) = repeat('x', 60) || t.id || t.b"),
    (false, "select t.id, u.id, u.b from t left join u on t.a = u.a and t.few = u.few"),
    (false, "select t.id, t.b, u.id from t right join u on t.a = u.a and t.c > u.d * 90"),
    (false, "select t.id, t.b, u.id, u.b from t full join u on t.a = u.a and t.few = u.few"),
    (false, "select id, b from t where exists (select from u where u.a = t.a and u.d > 0.5)"),
    (false, "select id, b from t where not exists (select from u where u.a = t.a and u.few = t.few)"),
    (false, "select count(*), sum(s.n), min(s.filler) from t join skewed s on s.a = t.few"),
    (false, "select count(s.n), count(*), sum(t.id) from t left join skewed s on s.a = t.few and s.n % 700 = t.id % 699"),
    (false, "select t.id, s.n from t full join skewed s on s.a = t.few and s.n = t.id"),
    (false, "select id from t where exists (select from skewed s where s.a = t.few and s.n = t.id)"),
    (false, "select id from t where not exists (select from skewed s where s.a = t.few and s.n = t.id)"),
    (false, "select distinct a, few, b from t"),
    (true, "select distinct on (a) a, b from t order by a, id"),
    (false, "select a, b from t union select a, b from u"),
    (false, "select a, few from t intersect select a, few from u"),
    (false, "select a, few from t intersect all select a, few from u"),
    (false, "select a, few, b from t except select a, few, b from u where few > 2"),
    (false, "select a, few from t except all select a, few from u"),
    (false, "with x as materialized (select * from t) select count(*), sum(x.c), min(y.b) from x join x y on x.id = y.a"),
    (
        false,
        "with recursive r(n, s) as (select 1, md5('1') union all select n + 1, md5(s) from r where n < 4000) select * from r",
    ),
    (false, "select count(*), min(t.b), max(u.b) from t join u on t.b < u.b where t.id <= 2500 and u.id <= 2500"),
    (false, "select count(*), count(t.id), count(u.id) from t full join u on t.a = u.a and t.id < u.id + 2 and u.b <> t.b"),
    (false, "select id, row_number() over (order by b, id), rank() over (order by a), dense_rank() over (order by a) from t"),
    (
        false,
        "select id, lag(b, 2, 'none') over w, lead(c) over w, first_value(b) over w, last_value(id) over w from t window w as (order by a, id)",
    ),
    (false, "select id, sum(c) over (order by a), count(b) filter (where few > 4) over (partition by few order by a, id) from t"),
    (false, "select id, avg(c) over (order by c range between 5 preceding and 3 following) from t"),
    (
        false,
        "select id, sum(id) over (order by few, id rows between 700 preceding and 20 following exclude current row) from t where id < 1500",
    ),
    (
        false,
        "select id, max(b) over (order by few groups between 1 preceding and current row exclude ties), cume_dist() over (order by few) from t",
    ),
    (
        false,
        "select id, ntile(7) over (partition by few > 4 order by id), percent_rank() over (partition by few > 4 order by a) from t",
    ),
    (false, "select id, count(*) over (partition by a, few order by id) from t"),
    (false, "select id from t where (a, b) in (select a, b from t where few = 3)"),
    (false, "select id from t where a > all (select a from u where d < 0.2 and a < 2900)"),
];

fn answer(h: &mut Harness, ordered: bool, query: &str) -> Vec<String> {
    // One text per row, so that it is one word for any columns.
    let text = format!("select translate(q::text, ' ', '_') from ({query}) q");
    let answer = h.query(&text);
    assert!(!answer.contains(" E") && !answer.starts_with('E'), "{query}: {}", &answer[..answer.len().min(300)]);
    let mut rows: Vec<String> = answer.split(' ').filter(|w| w.starts_with("D:")).map(str::to_owned).collect();
    if !ordered {
        rows.sort_unstable();
    }
    rows
}

#[test]
fn spilled_queries_answer_like_those_in_memory() {
    let mut h = Harness::with_options(EngineOptions::default());
    assert!(h.query(SETUP).ends_with("Z:I"));
    for (ordered, query) in QUERIES {
        h.query("set work_mem = '512MB'");
        let before = h.engine().temp_counters();
        let expected = answer(&mut h, *ordered, query);
        assert_eq!(h.engine().temp_counters(), before, "{query} fits");
        h.query("set work_mem = '64kB'");
        let found = answer(&mut h, *ordered, query);
        assert!(found == expected, "{query}: {} rows, not {}", found.len(), expected.len());
        let hashed_subquery = query.contains(") in (select") || query.contains("> all");
        assert!(hashed_subquery || h.engine().temp_counters().1 > before.1, "{query} does not fit");
    }
    assert_eq!(h.engine().query_memory().reserved(), 0);
}

#[test]
fn a_statement_over_the_servers_memory_is_refused_and_others_continue() {
    let options = EngineOptions { query_bytes: 2 << 20, ..EngineOptions::default() };
    let mut h = Harness::with_options(options);
    assert!(h.query(SETUP).ends_with("Z:I"));
    let small = "select count(*) from (select distinct on (b) b, c from t order by b, c) q";
    let answer = h.query(small);
    h.query("set work_mem = '1GB'");
    for query in [
        "select array_agg(repeat(b, 30)) from t",
        "select count(s) from (select string_agg(repeat(b, 30), ',' order by id) s from t) q",
        "with recursive r(n) as (select 1 union select n + 1 from r) select count(*) from r",
        "select array(select repeat(b, 30) from t)",
    ] {
        assert_eq!(h.query(query), "T E53200 Z:I", "{query}");
        assert_eq!(h.query(small), answer);
    }
    // Operators spill when the server's memory is short, whatever work_mem is.
    let before = h.engine().temp_counters();
    assert_eq!(h.query("select count(*) from (select repeat(b, 40) from t order by 1 offset 0) q"), "T D:7000 C:SELECT 1 Z:I");
    assert!(h.engine().temp_counters().1 > before.1);
    // Keys of a join that are computed are counted.
    let count = h.query("set max_parallel_workers_per_gather = 0; select count(b) from t");
    for (times, spills) in [(1, false), (40, true)] {
        let before = h.engine().temp_counters();
        let join = format!("select count(*) from t x join t y on repeat(x.b, {times}) = repeat(y.b, {times})");
        assert_eq!(format!("C:SET {}", h.query(&join)), count, "{join}");
        assert_eq!(h.engine().temp_counters().1 > before.1, spills, "{join}");
    }
    assert_eq!(
        h.query("set temp_file_limit = '100kB'; select count(*) from (select repeat(b, 40) from t order by 1 offset 0) q"),
        "C:SET T E53400 Z:I"
    );
    assert_eq!(h.engine().query_memory().reserved(), 0);
}

#[test]
fn rows_over_a_default_work_mem_stay_in_memory_while_half_of_it_is_free() {
    // Each keeps some 20 MB or 40, which is more than work_mem with hash_mem_multiplier.
    const QUERIES: &[&str] = &[
        "select count(*) from (select repeat(b, 100) from t order by 1 offset 0) q",
        "select count(*) from (select distinct repeat(b, 100) from t) q",
        "select count(*), max(n) from (select repeat(b, 100), count(*) n from t group by 1) q",
    ];
    for (set, spills) in [("", false), ("set work_mem = '5MB'", true)] {
        let mut h = Harness::with_options(EngineOptions { query_bytes: 256 << 20, ..EngineOptions::default() });
        assert!(h.query(SETUP).ends_with("Z:I"));
        h.query(set);
        for query in QUERIES {
            let before = h.engine().temp_counters();
            let answer = h.query(query);
            assert!(answer.contains("C:SELECT 1"), "{query}: {answer}");
            assert_eq!(h.engine().temp_counters().1 > before.1, spills, "{query} {set}");
        }
        assert_eq!(h.engine().query_memory().reserved(), 0);
    }
}

#[test]
fn explain_reports_spilled_bytes() {
    let mut h = Harness::with_options(EngineOptions::default());
    assert!(h.query(SETUP).ends_with("Z:I"));
    h.query("set work_mem = '64kB'");
    let mut explained = |query: &str| h.query(&format!("explain (analyze, costs off, timing off, summary off) {query}"));
    assert!(explained("select * from t order by b").contains("Sort Method: external merge  Disk: "));
    assert!(explained("select a from t order by b limit 3").contains("Sort Method: top-N heapsort  Memory: "));
    assert!(explained("select * from t join u on t.a = u.a").contains("Batches: 8  Memory Usage: "));
    let grouped = explained("select b, count(*) from t group by b");
    assert!(grouped.contains("  Batches: ") && grouped.contains("  Disk Usage: "), "{grouped}");
    assert!(
        explained("with x as materialized (select * from t) select count(*) from x").contains("Storage: Disk  Maximum Storage: ")
    );
}
