import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.util.Arrays;
import java.util.Map;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.MigrationState;
import org.flywaydb.core.api.MigrationVersion;
import org.flywaydb.core.api.callback.Callback;
import org.flywaydb.core.api.callback.Context;
import org.flywaydb.core.api.callback.Event;
import org.flywaydb.core.api.configuration.FluentConfiguration;
import org.flywaydb.core.api.migration.BaseJavaMigration;
import org.flywaydb.database.postgresql.PostgreSQLConfigurationExtension;

/** Flyway: what its documentation shows of migrations and commands. */
public final class Suite {
    private static Path folder;

    private static FluentConfiguration configuration(String schema) {
        return Flyway.configure().dataSource(Outcomes.URL, Outcomes.USER, "").schemas(schema).cleanDisabled(false)
                .locations("filesystem:" + folder.resolve(schema));
    }

    private static FluentConfiguration lockedOutside(String schema) {
        FluentConfiguration configuration = configuration(schema);
        configuration.getConfigurationExtension(PostgreSQLConfigurationExtension.class).setTransactionalLock(false);
        return configuration;
    }

    private static void write(String schema, String name, String text) throws Exception {
        Files.createDirectories(folder.resolve(schema));
        Files.writeString(folder.resolve(schema).resolve(name), text);
    }

    /** A migration in Java. */
    public static final class V3__in_java extends BaseJavaMigration {
        @Override
        public void migrate(org.flywaydb.core.api.migration.Context context) throws Exception {
            context.getConnection().createStatement().execute("insert into person (name) values ('java')");
        }
    }

    public static void main(String[] arguments) throws Exception {
        folder = Files.createTempDirectory(Path.of("."), "migrations").toAbsolutePath();
        write("main", "V1__person.sql", """
                create table person (id int generated always as identity primary key, name text not null unique);
                comment on table person is 'people; not "all"';
                insert into person (name) values ('Ann'), ('O''Brien; x');
                """);
        write("main", "V2__functions.sql", """
                create function initial(text) returns text language sql immutable as $$ select left($1, 1); $$;
                create function twice(a int) returns int language plpgsql as $body$
                begin
                    -- a comment; with a semicolon
                    return a * 2;
                end;
                $body$;
                create index person_initial on person (initial(name));
                do $$ begin perform twice(2); end $$;
                """);
        write("main", "R__view.sql", "create or replace view named as select name, '${who}' as who from person;");
        Outcomes.test("migrate makes the schema and its history", () -> {
            Outcomes.same(3, configuration("main").placeholders(Map.of("who", "me")).load().migrate().migrationsExecuted);
            Outcomes.same("me", Outcomes.ask("select who from main.named limit 1"));
            Outcomes.same("O'Brien; x", Outcomes.ask("select name from main.person order by id desc"));
        });
        Outcomes.test("migrate again changes nothing", () ->
            Outcomes.same(0, configuration("main").placeholders(Map.of("who", "me")).load().migrate().migrationsExecuted));
        Outcomes.test("info and validate", () -> {
            Flyway flyway = configuration("main").placeholders(Map.of("who", "me")).load();
            Outcomes.same("2", flyway.info().current().getVersion().getVersion());
            Outcomes.same(0, flyway.info().pending().length);
            flyway.validate();
        });
        Outcomes.test("a repeatable migration runs when it changes", () ->
            Outcomes.same(1, configuration("main").placeholders(Map.of("who", "you")).load().migrate().migrationsExecuted));
        Outcomes.test("a migration in Java", () -> {
            Flyway flyway = configuration("main").placeholders(Map.of("who", "you")).javaMigrations(new V3__in_java()).load();
            Outcomes.same(1, flyway.migrate().migrationsExecuted);
            Outcomes.same("3", Outcomes.ask("select count(*) from main.person"));
        });
        Outcomes.test("validate finds a changed script, repair takes it", () -> {
            write("main", "V1__person.sql", "select 1;");
            Flyway flyway = configuration("main").placeholders(Map.of("who", "you")).javaMigrations(new V3__in_java()).load();
            Outcomes.fails("checksum mismatch", flyway::validate);
            flyway.repair();
            flyway.validate();
        });
        Outcomes.test("a failed migration is rolled back whole", () -> {
            write("failing", "V1__fine.sql", "create table fine (a int);");
            write("failing", "V2__broken.sql", "create table broken (a int); insert into broken values (1); select 1 / 0;");
            Outcomes.fails("division by zero", () -> configuration("failing").load().migrate());
            Outcomes.same(null, Outcomes.ask("select to_regclass('failing.broken')"));
            Outcomes.same("1", configuration("failing").load().info().current().getVersion().getVersion());
        });
        Outcomes.test("a group of migrations in one transaction", () -> {
            write("grouped", "V1__one.sql", "create table one (a int);");
            write("grouped", "V2__two.sql", "create table two (a int); select no_such_function();");
            Outcomes.fails("does not exist", () -> configuration("grouped").group(true).load().migrate());
            Outcomes.same(null, Outcomes.ask("select to_regclass('grouped.one')"));
        });
        Outcomes.test("statements that run outside of a transaction", () -> {
            write("outside", "V1__table.sql", "create table t (a int);");
            write("outside", "V2__index.sql", "create index concurrently t_a on t (a);");
            write("outside", "V2__index.sql.conf", "executeInTransaction=false");
            write("outside", "V3__vacuum.sql", "vacuum t;");
            write("outside", "V4__enum.sql", "create type mood as enum ('sad');");
            write("outside", "V5__value.sql", "alter type mood add value 'happy';");
            FluentConfiguration configuration = lockedOutside("outside");
            Outcomes.same(5, configuration.load().migrate().migrationsExecuted);
            Outcomes.same("t", Outcomes.ask("select indisvalid from pg_index where indexrelid = 'outside.t_a'::regclass"));
        });
        Outcomes.test("COPY with its data in the script", () -> {
            write("copied", "V1__copy.sql", "create table t (a int, b text);\nCOPY t (a, b) FROM stdin;\n1\tone\n2\t\\N\n\\.\ninsert into t values (3, 'x');\n");
            configuration("copied").load().migrate();
            Outcomes.same("3", Outcomes.ask("select count(*) from copied.t"));
            Outcomes.same("t", Outcomes.ask("select b is null from copied.t where a = 2"));
        });
        Outcomes.test("baseline of a schema that is there", () -> {
            try (Connection connection = Outcomes.connect()) {
                connection.createStatement().execute("create schema based; create table based.old (a int)");
            }
            write("based", "V1__never.sql", "select 1 / 0;");
            write("based", "V2__next.sql", "create table next (a int);");
            Outcomes.fails("non-empty schema", () -> configuration("based").load().migrate());
            configuration("based").baselineVersion("1").load().baseline();
            Outcomes.same(1, configuration("based").load().migrate().migrationsExecuted);
        });
        Outcomes.test("out of order, target, missing migrations", () -> {
            write("order", "V1__a.sql", "create table a (a int);");
            write("order", "V3__c.sql", "create table c (a int);");
            Outcomes.same(1, configuration("order").target(MigrationVersion.fromVersion("1")).load().migrate().migrationsExecuted);
            configuration("order").load().migrate();
            write("order", "V2__b.sql", "create table b (a int);");
            Outcomes.same(1, configuration("order").outOfOrder(true).load().migrate().migrationsExecuted);
            Files.delete(folder.resolve("order").resolve("V1__a.sql"));
            Flyway flyway = configuration("order").outOfOrder(true).ignoreMigrationPatterns("*:missing").load();
            flyway.validate();
            Outcomes.same(true, Arrays.stream(flyway.info().all()).anyMatch(i -> i.getState() == MigrationState.MISSING_SUCCESS));
        });
        Outcomes.test("callbacks and initial SQL", () -> {
            write("called", "V1__a.sql", "create table a (a int);");
            StringBuilder seen = new StringBuilder();
            Callback callback = new Callback() {
                @Override public boolean supports(Event event, Context context) { return event == Event.AFTER_MIGRATE || event == Event.BEFORE_EACH_MIGRATE; }
                @Override public boolean canHandleInTransaction(Event event, Context context) { return true; }
                @Override public void handle(Event event, Context context) { seen.append(event.getId()).append(' '); }
                @Override public String getCallbackName() { return "seen"; }
            };
            configuration("called").initSql("set statement_timeout = '1min'").callbacks(callback).load().migrate();
            Outcomes.same("beforeEachMigrate afterMigrate ", seen.toString());
        });
        Outcomes.test("two at once: one waits for the other", () -> {
            write("twice", "V1__slow.sql", "create table slow (a int); select pg_sleep(1);");
            Thread other = new Thread(() -> configuration("twice").load().migrate());
            other.start();
            configuration("twice").load().migrate();
            other.join();
            Outcomes.same("1", Outcomes.ask("select count(*) from twice.flyway_schema_history where type = 'SQL'"));
        });
        Outcomes.test("two at once, locked outside of transactions", () -> {
            write("locked", "V1__slow.sql", "create table slow (a int); select pg_sleep(1);");
            FluentConfiguration configuration = lockedOutside("locked");
            Thread other = new Thread(() -> configuration.load().migrate());
            other.start();
            configuration.load().migrate();
            other.join();
            Outcomes.same("1", Outcomes.ask("select count(*) from locked.flyway_schema_history where type = 'SQL'"));
        });
        Outcomes.test("clean drops everything of the schema", () -> {
            write("full", "V1__all.sql", """
                    create type mood as enum ('a'); create domain positive as int check (value > 0);
                    create type pair as (a int, b text); create type span as range (subtype = float8);
                    create sequence s; create table t (a positive primary key default nextval('s'), m mood);
                    create table part (a int) partition by list (a); create table part_1 partition of part for values in (1);
                    create table child (b int) inherits (t);
                    create view v as select * from t; create materialized view mv as select * from t;
                    create function f(a int, variadic b int[]) returns int language sql as 'select 1';
                    create function f(a text) returns text language sql as 'select $1';
                    create procedure p(inout a int) language plpgsql as $$ begin a := 1; end $$;
                    create aggregate total(int) (sfunc = int4pl, stype = int);
                    create function tr() returns trigger language plpgsql as $$ begin return new; end $$;
                    create trigger tr before insert on t for each row execute function tr();
                    create collation german from "C";
                    """);
            Flyway flyway = configuration("full").load();
            flyway.migrate();
            flyway.clean();
            Outcomes.same("0", Outcomes.ask("select count(*) from pg_class where relnamespace = (select oid from pg_namespace where nspname = 'full')"));
            flyway.migrate();
        });
        Outcomes.test("a table and a tablespace of its own for the history", () -> {
            write("named", "V1__a.sql", "create table a (a int);");
            configuration("named").table("history").tablespace("pg_default").installedBy("someone").load().migrate();
            Outcomes.same("someone", Outcomes.ask("select installed_by from named.history where version = '1'"));
        });
        System.exit(0);
    }
}
