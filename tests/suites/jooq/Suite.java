import static org.jooq.impl.DSL.*;

import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Stream;
import org.jooq.DSLContext;
import org.jooq.Field;
import org.jooq.JSONB;
import org.jooq.Name;
import org.jooq.Record;
import org.jooq.Result;
import org.jooq.SQLDialect;
import org.jooq.Table;
import org.jooq.codegen.GenerationTool;
import org.jooq.exception.DataAccessException;
import org.jooq.exception.IntegrityConstraintViolationException;
import org.jooq.impl.DSL;
import org.jooq.impl.SQLDataType;
import org.jooq.meta.jaxb.Configuration;
import org.jooq.meta.jaxb.Database;
import org.jooq.meta.jaxb.Generate;
import org.jooq.meta.jaxb.Generator;
import org.jooq.meta.jaxb.Jdbc;
import org.jooq.meta.jaxb.Target;

/** jOOQ: what its manual shows of statements, functions, meta data and generated code. */
public final class Suite {
    private static final Table<?> PERSON = table(name("person"));
    private static final Field<Integer> ID = field(name("person", "id"), SQLDataType.INTEGER);
    private static final Field<String> NAME = field(name("person", "name"), SQLDataType.VARCHAR);
    private static final Field<BigDecimal> BALANCE = field(name("person", "balance"), SQLDataType.NUMERIC(10, 2));
    private static final Field<LocalDate> BORN = field(name("person", "born"), SQLDataType.LOCALDATE);
    private static final Field<String[]> TAGS = field(name("person", "tags"), SQLDataType.VARCHAR.getArrayDataType());
    private static final Field<JSONB> INFO = field(name("person", "info"), SQLDataType.JSONB);
    private static final Table<?> POST = table(name("post"));
    private static final Field<Integer> POST_ID = field(name("post", "id"), SQLDataType.INTEGER);
    private static final Field<Integer> AUTHOR = field(name("post", "person_id"), SQLDataType.INTEGER);
    private static final Field<String> TITLE = field(name("post", "title"), SQLDataType.VARCHAR);
    private static final Field<Integer> RANK = field(name("post", "rank"), SQLDataType.INTEGER);

    private interface Use {
        void with(DSLContext dsl) throws Exception;
    }

    private static void test(String name, Use use) {
        Outcomes.test(name, () -> {
            try (Connection connection = Outcomes.connect()) {
                use.with(DSL.using(connection, SQLDialect.POSTGRES));
            }
        });
    }

    private static <T> void list(List<T> got, Object... expected) {
        Outcomes.same(Arrays.asList(expected), got);
    }

    public static void main(String[] arguments) throws Exception {
        System.setProperty("org.jooq.no-logo", "true");
        System.setProperty("org.jooq.no-tips", "true");
        test("DDL", dsl -> {
            dsl.createType("mood").asEnum("sad", "ok", "happy").execute();
            dsl.createTable("person").column("id", SQLDataType.INTEGER.identity(true)).column("name", SQLDataType.VARCHAR(80).nullable(false))
                .column("balance", SQLDataType.NUMERIC(10, 2).defaultValue(BigDecimal.ZERO)).column("born", SQLDataType.LOCALDATE)
                .column("tags", SQLDataType.VARCHAR.getArrayDataType()).column("info", SQLDataType.JSONB).column("token", SQLDataType.UUID)
                .column("made", SQLDataType.TIMESTAMPWITHTIMEZONE(6).defaultValue(currentOffsetDateTime()))
                .constraints(primaryKey("id"), unique("name"), constraint("balance_is_positive").check(field("balance", BigDecimal.class).ge(BigDecimal.ZERO))).execute();
            dsl.createTable("post").column("id", SQLDataType.INTEGER.identity(true)).column("person_id", SQLDataType.INTEGER)
                .column("title", SQLDataType.VARCHAR).column("rank", SQLDataType.INTEGER).constraints(primaryKey("id"),
                    foreignKey("person_id").references("person", "id").onDeleteCascade()).execute();
            dsl.createIndexIfNotExists("post_rank").on(POST, RANK.desc()).where(RANK.isNotNull()).execute();
            dsl.createUniqueIndex("person_lower").on(PERSON, lower(NAME)).execute();
            dsl.createView("rich", "id", "name").as(select(ID, NAME).from(PERSON).where(BALANCE.gt(new BigDecimal(5)))).execute();
            dsl.createSequence("numbers").startWith(10).incrementBy(2).maxvalue(100).cycle().execute();
            dsl.createSchema("other").execute();
            dsl.createTable("copied").as(select(inline(1).as("a"), inline("x").as("b"))).withData().execute();
            dsl.alterTable("copied").add("c", SQLDataType.INTEGER.defaultValue(7)).execute();
            dsl.alterTable("copied").renameColumn("b").to("d").execute();
            dsl.alterTable("copied").alter("a").set(SQLDataType.BIGINT).execute();
            dsl.alterTable("copied").alter("a").setNotNull().execute();
            dsl.alterTable("copied").add(constraint("only").unique("a")).execute();
            dsl.commentOnTable("copied").is("it's one").execute();
            dsl.alterTable("copied").renameTo("renamed").execute();
            Outcomes.same(7, dsl.fetchOne("select c from renamed").get(0));
            dsl.dropTable("renamed").cascade().execute();
        });
        test("insert with every type, returning", dsl -> {
            UUID token = UUID.randomUUID();
            Record row = dsl.insertInto(PERSON, NAME, BALANCE, BORN, TAGS, INFO, field("token", UUID.class))
                .values("Ann", new BigDecimal("12.50"), LocalDate.of(1990, 5, 17), new String[] {"a", "b,c", "\"d\"", null}, JSONB.valueOf("{\"city\": \"Oslo\", \"n\": [1, 2]}"), token)
                .returning(ID, NAME, TAGS, INFO, field("token", UUID.class), field("made", OffsetDateTime.class)).fetchOne();
            Outcomes.same(1, row.get(ID));
            list(Arrays.asList(row.get(TAGS)), "a", "b,c", "\"d\"", null);
            Outcomes.same(token, row.get("token"));
            Outcomes.same("Oslo", dsl.select(jsonbGetAttributeAsText(INFO, "city")).from(PERSON).fetchOne().value1());
        });
        test("insert of many rows", dsl -> {
            Outcomes.same(3, dsl.insertInto(PERSON, NAME, BALANCE).values("Bob", new BigDecimal(3)).values("Cid", new BigDecimal(30)).values("Dan", null).execute());
            dsl.insertInto(POST, AUTHOR, TITLE, RANK).valuesOfRows(Stream.of(1, 2, 3, 4, 5, 6).map(i -> row(i % 3 + 1, "post " + i, i)).toList()).execute();
        });
        test("insert of a query, defaults", dsl -> {
            dsl.insertInto(POST, AUTHOR, TITLE).select(select(ID, val("of a query")).from(PERSON).where(NAME.eq("Ann"))).execute();
            dsl.insertInto(POST).defaultValues().execute();
            Outcomes.same(2, dsl.deleteFrom(POST).where(RANK.isNull()).execute());
        });
        test("upsert", dsl -> {
            dsl.insertInto(PERSON, NAME, BALANCE).values("Bob", BigDecimal.ONE).onConflict(field(name("name"))).doUpdate().set(BALANCE, excluded(BALANCE).plus(5)).execute();
            Outcomes.same(new BigDecimal("6.00"), dsl.select(BALANCE).from(PERSON).where(NAME.eq("Bob")).fetchOne(BALANCE));
            Outcomes.same(0, dsl.insertInto(PERSON, NAME).values("Bob").onConflictDoNothing().execute());
            Outcomes.same(1, dsl.insertInto(PERSON, NAME, BALANCE).values("Bob", BigDecimal.ONE).onConflictOnConstraint(name("person_name_key")).doUpdate().set(BALANCE, new BigDecimal(3)).where(BALANCE.gt(BigDecimal.ONE)).execute());
        });
        test("merge", dsl -> {
            dsl.mergeInto(PERSON).using(select(val("Eve").as("n"), val(new BigDecimal(9)).as("b")).asTable("s")).on(NAME.eq(field(name("s", "n"), String.class)))
                .whenMatchedThenUpdate().set(field(name("balance"), BigDecimal.class), field(name("s", "b"), BigDecimal.class))
                .whenNotMatchedThenInsert(field(name("name")), field(name("balance"))).values(field(name("s", "n")), field(name("s", "b"))).execute();
            Outcomes.same(1, dsl.fetchCount(PERSON, NAME.eq("Eve")));
        });
        test("update from, returning; delete using", dsl -> {
            Result<?> rows = dsl.update(POST).set(field(name("title"), String.class), concat(TITLE, val(" by "), NAME)).from(PERSON).where(ID.eq(AUTHOR)).and(NAME.eq("Ann")).returning(POST_ID, TITLE).fetch();
            Outcomes.same(2, rows.size());
            Outcomes.same(true, rows.get(0).get(TITLE).endsWith(" by Ann"));
            dsl.transaction(c -> {
                Outcomes.same(2, c.dsl().deleteFrom(POST).using(PERSON).where(ID.eq(AUTHOR)).and(NAME.eq("Ann")).execute());
                c.dsl().insertInto(POST, AUTHOR, TITLE, RANK).values(1, "again", 10).values(1, "and again", 11).execute();
            });
            dsl.update(PERSON).set(row(field(name("balance"), BigDecimal.class), field(name("born"), LocalDate.class)), row(val(new BigDecimal(4)), val(LocalDate.of(2000, 1, 1)))).where(NAME.eq("Dan")).execute();
        });
        test("joins, grouping, having", dsl -> {
            Result<?> rows = dsl.select(NAME, count(POST_ID), max(RANK)).from(PERSON).leftJoin(POST).on(AUTHOR.eq(ID)).groupBy(ID, NAME).having(count(POST_ID).ge(0)).orderBy(NAME).fetch();
            list(rows.getValues(count(POST_ID)), 2, 2, 2, 0, 0);
            list(dsl.select(NAME).from(PERSON).leftSemiJoin(POST).on(AUTHOR.eq(ID)).orderBy(NAME).fetch(NAME), "Ann", "Bob", "Cid");
            list(dsl.select(NAME).from(PERSON).leftAntiJoin(POST).on(AUTHOR.eq(ID)).orderBy(NAME).fetch(NAME), "Dan", "Eve");
            Outcomes.same(3, dsl.select().from(PERSON).crossJoin(lateral(select(RANK).from(POST).where(AUTHOR.eq(ID)).orderBy(RANK.desc()).limit(1)).as("l")).fetch().size());
        });
        test("grouping sets, rollup, cube, filter", dsl -> {
            Outcomes.same(7, dsl.select(AUTHOR, RANK, count(), grouping(AUTHOR)).from(POST).where(AUTHOR.le(2)).groupBy(rollup(AUTHOR, RANK)).fetch().size());
            Outcomes.same(3, dsl.select(AUTHOR, count()).from(POST).where(AUTHOR.le(2)).groupBy(groupingSets(new Field[] {AUTHOR}, new Field[0])).fetch().size());
            Outcomes.same(1, dsl.select(count().filterWhere(RANK.gt(4))).from(POST).where(RANK.lt(10)).fetchOne(0, int.class));
        });
        test("window functions", dsl -> {
            list(dsl.select(rowNumber().over(orderBy(RANK))).from(POST).orderBy(RANK).limit(3).fetch(0, Integer.class), 1, 2, 3);
            dsl.select(AUTHOR, sum(RANK).over(partitionBy(AUTHOR).orderBy(RANK).rowsBetweenUnboundedPreceding().andCurrentRow()), lag(RANK, 1, 0).over(orderBy(RANK)), firstValue(RANK).over(orderBy(RANK)),
                ntile(2).over(orderBy(RANK)), percentRank().over(orderBy(RANK)), denseRank().over(orderBy(RANK)), nthValue(RANK, 2).over(orderBy(RANK).groupsBetweenPreceding(1).andFollowing(1).excludeCurrentRow())).from(POST).fetch();
            dsl.select(rank().over(name("w")), cumeDist().over(name("w"))).from(POST).window(name("w").as(orderBy(RANK))).fetch();
        });
        test("ordered-set and other aggregates", dsl -> {
            dsl.select(percentileCont(0.5).withinGroupOrderBy(RANK), mode().withinGroupOrderBy(RANK), median(RANK), listAgg(TITLE, ", ").withinGroupOrderBy(RANK), arrayAgg(RANK).orderBy(RANK.desc()),
                stddevPop(RANK), varSamp(RANK), corr(RANK, AUTHOR), boolAnd(RANK.gt(0)), bitXorAgg(RANK), countDistinct(AUTHOR), groupConcat(TITLE).separator(";"), regrSlope(RANK, AUTHOR), product(RANK)).from(POST).fetch();
        });
        test("common table expressions, recursive", dsl -> {
            list(dsl.withRecursive("t", "n").as(select(inline(1)).unionAll(select(field(name("n"), int.class).plus(1)).from(table(name("t"))).where(field(name("n"), int.class).lt(4)))).selectFrom(table(name("t"))).fetch(0, Integer.class), 1, 2, 3, 4);
            Outcomes.same(2, dsl.with("gone").as(resultQuery("delete from post where rank > 9 returning *")).selectCount().from(table(name("gone"))).fetchOne(0, int.class));
        });
        test("set operations", dsl -> {
            list(dsl.select(inline(1).as("a")).union(select(inline(2))).unionAll(select(inline(2))).except(select(inline(1))).orderBy(1).fetch(0, Integer.class), 2);
            list(dsl.select(inline(1)).intersectAll(select(inline(1))).fetch(0, Integer.class), 1);
        });
        test("VALUES, unnest, series", dsl -> {
            list(dsl.selectFrom(values(row(1, "a"), row(2, "b")).as("v", "i", "t")).fetch(1, String.class), "a", "b");
            list(dsl.select().from(unnest(new Integer[] {3, 4}).as("u", "x")).fetch(0, Integer.class), 3, 4);
            list(dsl.select().from(generateSeries(1, 7, 3)).fetch(0, Integer.class), 1, 4, 7);
        });
        test("nested collections (MULTISET)", dsl -> {
            var rows = dsl.select(NAME, multiset(select(TITLE, RANK).from(POST).where(AUTHOR.eq(ID)).orderBy(RANK)).as("posts")).from(PERSON).where(NAME.in("Bob", "Dan")).orderBy(NAME).fetch();
            Outcomes.same(2, rows.get(0).value2().size());
            Outcomes.same(0, rows.get(1).value2().size());
            dsl.select(AUTHOR, multisetAgg(TITLE, RANK)).from(POST).groupBy(AUTHOR).fetch();
            dsl.select(row(ID, NAME).as("nested"), row(ID, row(NAME)).as("deeper")).from(PERSON).fetch();
        });
        test("JSON", dsl -> {
            dsl.select(jsonObject(key("a").value(1), key("b").value(val("x"))), jsonbArray(val(1), val("y")), jsonArrayAgg(NAME).orderBy(NAME), jsonbObjectAgg(NAME, BALANCE)).from(PERSON).where(BALANCE.isNotNull()).fetch();
            Outcomes.same(1, dsl.select(jsonbValue(INFO, "$.n[0]")).from(PERSON).where(jsonbExists(INFO, "$.n")).fetch().size());
            list(dsl.select(field(name("j", "v"), Integer.class)).from(PERSON, lateral(jsonbTable(INFO, val("$.n[*]")).column("v", SQLDataType.INTEGER).path("$").as("j"))).fetch(0, Integer.class), 1, 2);
            dsl.select(jsonbKeys(INFO), jsonbGetElement(jsonbArray(val(5)), 0)).from(PERSON).fetch();
        });
        test("predicates", dsl -> {
            Outcomes.same(1, dsl.fetchCount(PERSON, NAME.like("A%").and(NAME.likeRegex("^A")).and(NAME.containsIgnoreCase("N")).and(BALANCE.between(BigDecimal.ONE, new BigDecimal(20)))));
            Outcomes.same(4, dsl.fetchCount(PERSON, BORN.isDistinctFrom(LocalDate.of(1990, 5, 17))));
            Outcomes.same(1, dsl.fetchCount(PERSON, row(ID, NAME).in(row(1, "Ann"), row(2, "x"))));
            Outcomes.same(2, dsl.fetchCount(PERSON, ID.eq(any(1, 2))));
            Outcomes.same(1, dsl.fetchCount(PERSON, NAME.similarTo("A(n|b)n")));
            Outcomes.same(1, dsl.fetchCount(PERSON, condition("(date '2020-01-01', date '2020-02-01') overlaps (date '2020-01-15', date '2020-03-01')").and(ID.eq(1))));
            Outcomes.same(5, dsl.fetchCount(PERSON, exists(selectOne().from(POST)).and(notExists(selectOne().from(POST).where(RANK.gt(100))))));
        });
        test("functions", dsl -> {
            Record row = dsl.select(coalesce(val((String) null), val("x")), nullif(val(1), val(2)), choose(val(2), val("a"), val("b")), when(val(1).eq(1), "one").otherwise("other"), greatest(val(1), val(3)), round(val(2.567), 2),
                trunc(val(2.567), 1), val(7).mod(3), power(val(2), 3), position("abc", "c"), substring(val("abcdef"), 2, 3), lpad(val("x"), 3, "-"), repeat("ab", 2), replace(val("aba"), "a", "c"), reverse(val("abc")),
                md5("x"), translate(val("abc"), "ab", "xy"), splitPart(val("a,b"), val(","), val(2)), regexpReplaceAll(val("a1b2"), "[0-9]", "-"), overlay(val("abcdef"), val("XX"), val(2)), bitAnd(val(6), val(3)), shl(val(1), 3), toHex(val(255)),
                extract(val(LocalDate.of(2020, 3, 4)), org.jooq.DatePart.DAY_OF_YEAR), dateAdd(val(java.sql.Date.valueOf("2020-01-31")), 1, org.jooq.DatePart.MONTH), trunc(val(LocalDate.of(2020, 3, 4)), org.jooq.DatePart.MONTH), widthBucket(val(5), 0, 10, 5), cast(val("12"), int.class)).fetchOne();
            Outcomes.same("b", row.get(2));
            Outcomes.same(28, row.size());
        });
        test("arrays", dsl -> {
            Outcomes.same(4, dsl.select(cardinality(TAGS)).from(PERSON).where(ID.eq(1)).fetchOne(0, int.class));
            dsl.select(arrayAppend(TAGS, "z"), arrayPrepend("y", TAGS), arrayConcat(TAGS, TAGS), arrayRemove(TAGS, "a"), arrayReplace(TAGS, val("a"), val("q")), arrayGet(TAGS, 2), array(select(ID).from(PERSON)), arrayOverlap(TAGS, array("a"))).from(PERSON).where(ID.eq(1)).fetch();
            Outcomes.same(1, dsl.fetchCount(PERSON, TAGS.contains(new String[] {"a"})));
        });
        test("limit, ties, seek, distinct on, for update", dsl -> {
            Outcomes.same(2, dsl.selectFrom(POST).orderBy(RANK).limit(2).offset(1).fetch().size());
            Outcomes.same(2, dsl.select(AUTHOR).from(POST).orderBy(AUTHOR).limit(1).withTies().fetch().size());
            list(dsl.select(ID, NAME).from(PERSON).orderBy(NAME, ID).seek("Bob", 2).limit(2).fetch(NAME), "Cid", "Dan");
            Outcomes.same(2, dsl.select(AUTHOR, RANK).distinctOn(AUTHOR).from(POST).where(AUTHOR.isNotNull()).orderBy(AUTHOR, RANK.desc()).fetch().size());
            dsl.transaction(c -> Outcomes.same(1, c.dsl().selectFrom(PERSON).where(ID.eq(1)).forUpdate().of(PERSON).skipLocked().fetch().size()));
            dsl.transaction(c -> c.dsl().selectFrom(PERSON).where(ID.eq(1)).forNoKeyUpdate().noWait().fetch());
        });
        test("transactions: nested, rolled back", dsl -> {
            dsl.transaction(outer -> {
                outer.dsl().insertInto(PERSON, NAME).values("Fay").execute();
                try {
                    outer.dsl().transaction(inner -> {
                        inner.dsl().insertInto(PERSON, NAME).values("Gus").execute();
                        throw new IllegalStateException("no");
                    });
                } catch (IllegalStateException expected) {
                    Outcomes.same("no", expected.getMessage());
                }
            });
            Outcomes.same(1, dsl.fetchCount(PERSON, NAME.in("Fay", "Gus")));
        });
        test("exceptions by SQLSTATE", dsl -> {
            try {
                dsl.insertInto(PERSON, NAME).values("Ann").execute();
                throw new AssertionError("inserted twice");
            } catch (IntegrityConstraintViolationException e) {
                Outcomes.same("23505", e.sqlState());
            }
            try {
                dsl.selectFrom(table(name("nowhere"))).fetch();
                throw new AssertionError("found");
            } catch (DataAccessException e) {
                Outcomes.same("42P01", e.sqlState());
            }
        });
        test("batches", dsl -> {
            Outcomes.same(3, dsl.batch(dsl.insertInto(POST, AUTHOR, TITLE, RANK).values((Integer) null, null, null)).bind(1, "x", 20).bind(2, "y", 21).bind(3, "z", 22).execute().length);
            dsl.batch(dsl.update(POST).set(field(name("rank"), Integer.class), 23).where(TITLE.eq("x")), dsl.deleteFrom(POST).where(TITLE.eq("y"))).execute();
        });
        test("loading CSV", dsl -> {
            var loader = dsl.loadInto(POST).bulkAfter(2).batchAfter(2).loadCSV("title,rank\nl1,30\nl2,31\nl3,32\n").fields(field(name("title"), String.class), field(name("rank"), Integer.class)).separator(',').execute();
            Outcomes.same(3, loader.stored());
        });
        test("lazy fetching, streams, timeouts", dsl -> {
            dsl.transaction(c -> {
                try (var cursor = c.dsl().selectFrom(generateSeries(1, 1000)).fetchSize(50).fetchLazy()) {
                    int rows = 0;
                    while (cursor.hasNext()) rows += cursor.fetchNext(100).size();
                    Outcomes.same(1000, rows);
                }
            });
            Outcomes.fails("cancel", () -> dsl.resultQuery("select pg_sleep(10)").queryTimeout(1).fetch());
        });
        test("sequences and plain SQL", dsl -> {
            Outcomes.same(10L, dsl.nextval(sequence(name("numbers"), Long.class)));
            Outcomes.same(12L, dsl.nextval("numbers").longValue());
            Outcomes.same(5, dsl.resultQuery("select ?::int + ?::int", 2, 3).fetchOne(0, int.class));
            Outcomes.same(Map.of("a", 1), dsl.fetchOne("select 1 as a").intoMap());
        });
        test("functions and procedures of the database", dsl -> {
            dsl.execute("create function twice(a int) returns int language sql as 'select a * 2'");
            Outcomes.same(8, dsl.select(function(name("twice"), int.class, val(4))).fetchOne(0, int.class));
            dsl.begin(insertInto(POST, RANK).values(101), insertInto(POST, RANK).values(102)).execute();
            Outcomes.same(2, dsl.fetchCount(POST, RANK.gt(100)));
        });
        test("meta data", dsl -> {
            var tables = dsl.meta().filterSchemas(s -> s.getName().equals("public")).getTables();
            Outcomes.same(true, tables.stream().map(Table::getName).toList().containsAll(List.of("person", "post", "rich")));
            Table<?> person = dsl.meta().getTables("person").get(0);
            Outcomes.same(8, person.fields().length);
            Outcomes.same("person_pkey", person.getPrimaryKey().getName());
            Outcomes.same(true, person.field("id").getDataType().identity());
            Outcomes.same(true, dsl.meta().getTables("post").get(0).getReferences().get(0).getKey().getTable().getName().equals("person"));
            Outcomes.same(true, dsl.meta().getTables("post").get(0).getIndexes().stream().anyMatch(x -> x.getName().equals("post_rank")));
            Outcomes.same(true, dsl.meta().filterSchemas(s -> s.getName().equals("public")).ddl().queries().length > 3);
        });
        Outcomes.test("generated code", () -> {
            try (Connection connection = Outcomes.connect()) {
                connection.createStatement().execute("""
                    create domain positive as int check (value > 0);
                    create type pair as (a int, b text[]);
                    create table everything (a positive, m mood, p pair, r int4range, i interval, h bytea, x bit(3), g int generated always as (1 + 1) stored, arr int[][], t timestamp(3), ip inet, mc macaddr, b bigserial, c char(3));
                    create function rows_of(n int) returns table (a int, b text) language sql as $$ select n, 'x' $$;
                    create function over(a int) returns int language sql as 'select 1';
                    create function over(a text, out b int, inout c int) language sql as 'select 1, c';
                    create procedure proc(a int, inout b int) language plpgsql as $$ begin b := a; end $$;
                    create materialized view mv as select * from person;
                    create table parts (k int primary key, v text) partition by range (k); create table parts_1 partition of parts for values from (0) to (10);
                    comment on column person.name is 'how they are called';
                    """);
            }
            Path out = Files.createTempDirectory(Path.of("."), "generated");
            GenerationTool.generate(new Configuration().withJdbc(new Jdbc().withDriver("org.postgresql.Driver").withUrl(Outcomes.URL).withUser(Outcomes.USER).withPassword(""))
                .withOnError(org.jooq.meta.jaxb.OnError.FAIL)
                .withGenerator(new Generator().withDatabase(new Database().withName("org.jooq.meta.postgres.PostgresDatabase").withInputSchema("public").withIncludeSystemSequences(true).withIncludeDomains(true).withIncludeTriggers(true))
                    .withGenerate(new Generate().withComments(true)).withTarget(new Target().withPackageName("made").withDirectory(out.toString()))));
            String all = "";
            try (Stream<Path> files = Files.walk(out)) {
                for (Path file : files.filter(f -> f.toString().endsWith(".java")).sorted().toList()) all += file.getFileName() + " ";
            }
            for (String file : List.of("Person.java", "Post.java", "Rich.java", "Everything.java", "RowsOf.java", "Over1.java", "Over2.java", "Proc.java", "Mood.java", "Pair.java", "Mv.java", "Parts.java", "Sequences.java", "Keys.java", "Indexes.java", "Domains.java")) {
                if (!all.contains(file)) throw new AssertionError("no " + file + " in " + all);
            }
            Path person = out.resolve("made/tables/Person.java");
            Outcomes.same(true, Files.readString(person).contains("how they are called"));
            Outcomes.same(true, Files.readString(person).contains("VARCHAR(80).nullable(false)"));
            Outcomes.same(true, Files.readString(person).contains("balance_is_positive"));
        });
        System.exit(0);
    }
}
