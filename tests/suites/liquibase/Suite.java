import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import liquibase.Contexts;
import liquibase.LabelExpression;
import liquibase.Liquibase;
import liquibase.database.Database;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.diff.DiffResult;
import liquibase.diff.compare.CompareControl;
import liquibase.diff.output.DiffOutputControl;
import liquibase.diff.output.changelog.DiffToChangeLog;
import liquibase.lockservice.LockServiceFactory;
import liquibase.resource.DirectoryResourceAccessor;
import liquibase.snapshot.DatabaseSnapshot;
import liquibase.snapshot.SnapshotControl;
import liquibase.snapshot.SnapshotGeneratorFactory;
import liquibase.structure.core.Column;
import liquibase.structure.core.ForeignKey;
import liquibase.structure.core.Index;
import liquibase.structure.core.PrimaryKey;
import liquibase.structure.core.Sequence;
import liquibase.structure.core.Table;
import liquibase.structure.core.UniqueConstraint;
import liquibase.structure.core.View;

/** Liquibase: what its documentation shows of changes, roll-backs, snapshots and differences. */
public final class Suite {
    private static Path folder;
    private static final Contexts ALL = new Contexts();
    private static final LabelExpression ANY = new LabelExpression();

    private interface Use {
        void with(Liquibase liquibase) throws Exception;
    }

    private static Database database(String schema) throws Exception {
        Connection connection = Outcomes.connect();
        Database database = DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(connection));
        if (schema != null) {
            connection.setAutoCommit(true);
            connection.createStatement().execute("create schema if not exists " + schema);
            database.setDefaultSchemaName(schema);
            database.setLiquibaseSchemaName(schema);
            connection.createStatement().execute("set search_path to " + schema);
            connection.setAutoCommit(false);
        }
        return database;
    }

    private static void use(String file, String schema, Use use) throws Exception {
        try (Database database = database(schema)) {
            use.with(new Liquibase(file, new DirectoryResourceAccessor(folder), database));
        }
    }

    private static String changes(String sets) {
        return """
            <databaseChangeLog xmlns="http://www.liquibase.org/xml/ns/dbchangelog" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
              xsi:schemaLocation="http://www.liquibase.org/xml/ns/dbchangelog http://www.liquibase.org/xml/ns/dbchangelog/dbchangelog-latest.xsd">
            """ + sets + "</databaseChangeLog>";
    }

    private static int applied(String schema) throws Exception {
        return Integer.parseInt(Outcomes.ask("select count(*) from " + schema + ".databasechangelog"));
    }

    public static void main(String[] arguments) throws Exception {
        folder = Files.createTempDirectory(Path.of("."), "changes").toAbsolutePath();
        Files.writeString(folder.resolve("people.csv"), "id,name,born,score\n51,Ann,1990-05-17,1.5\n52,Bob,NULL,NULL\n");
        Files.writeString(folder.resolve("routine.sql"), "create function one() returns int language sql as $$ select 1; $$");
        Files.writeString(folder.resolve("main.xml"), changes("""
            <changeSet id="1" author="a">
              <createTable tableName="person" remarks="people">
                <column name="id" type="bigint" autoIncrement="true"><constraints primaryKey="true" primaryKeyName="pk_person"/></column>
                <column name="name" type="varchar(80)" remarks="how they are called"><constraints nullable="false"/></column>
                <column name="email" type="varchar(255)"><constraints unique="true" uniqueConstraintName="uq_email"/></column>
                <column name="born" type="date"/><column name="score" type="decimal(10,2)" defaultValueNumeric="0"/>
                <column name="active" type="boolean" defaultValueBoolean="true"/><column name="photo" type="blob"/>
                <column name="note" type="clob"/><column name="token" type="uuid" defaultValueComputed="gen_random_uuid()"/>
                <column name="made" type="timestamp with time zone" defaultValueComputed="now()"/><column name="info" type="jsonb"/>
              </createTable>
              <createTable tableName="post">
                <column name="id" type="int" autoIncrement="true" startWith="100" incrementBy="5" generationType="BY DEFAULT"><constraints primaryKey="true"/></column>
                <column name="person_id" type="bigint"><constraints foreignKeyName="fk_post_person" references="person(id)" deleteCascade="true"/></column>
                <column name="title" type="varchar(100)"/>
              </createTable>
            </changeSet>
            <changeSet id="2" author="a">
              <addColumn tableName="post"><column name="rank" type="int" valueNumeric="7"><constraints nullable="false"/></column></addColumn>
              <renameColumn tableName="post" oldColumnName="title" newColumnName="heading" columnDataType="varchar(100)"/>
              <modifyDataType tableName="post" columnName="heading" newDataType="text"/>
              <addDefaultValue tableName="post" columnName="heading" defaultValue="it's"/>
              <dropNotNullConstraint tableName="post" columnName="rank"/><addNotNullConstraint tableName="post" columnName="rank" defaultNullValue="1"/>
              <createIndex tableName="post" indexName="post_rank"><column name="rank" descending="true"/></createIndex>
              <createIndex tableName="person" indexName="person_lower" unique="true"><column name="lower(name)" computed="true"/></createIndex>
              <addUniqueConstraint tableName="post" columnNames="person_id, heading" constraintName="uq_post" deferrable="true" initiallyDeferred="true"/>
              <createSequence sequenceName="numbers" startValue="10" incrementBy="2" minValue="1" maxValue="1000" cycle="true" cacheSize="5"/>
              <createView viewName="active_person">select id, name from person where active</createView>
            </changeSet>
            <changeSet id="3" author="a">
              <insert tableName="person"><column name="name" value="Cid"/><column name="email" value="c@x"/></insert>
              <loadData tableName="person" file="people.csv"><column name="id" type="NUMERIC"/><column name="name" type="STRING"/><column name="born" type="DATE"/><column name="score" type="NUMERIC"/></loadData>
              <rollback><delete tableName="person"/></rollback>
            </changeSet>
            <changeSet id="4" author="a"><loadUpdateData tableName="person" primaryKey="id" file="people.csv"/><rollback/></changeSet>
            <changeSet id="5" author="a"><update tableName="person"><column name="score" valueNumeric="3"/><where>name = 'Ann'</where></update><rollback/></changeSet>
            <changeSet id="6" author="a"><createProcedure path="routine.sql"/><rollback>drop function one()</rollback></changeSet>
            <changeSet id="7" author="a" context="test"><sql splitStatements="true" endDelimiter=";">create table only_test (a int); insert into only_test values (1)</sql><rollback>drop table only_test</rollback></changeSet>
            <changeSet id="8" author="a" labels="later"><createTable tableName="later"><column name="a" type="int"/></createTable></changeSet>
            <changeSet id="9" author="a" runAlways="true"><sql>select 1</sql><rollback/></changeSet>
            <changeSet id="10" author="a" runInTransaction="false"><sql>create index concurrently post_heading on post (heading)</sql><rollback>drop index post_heading</rollback></changeSet>
            <changeSet id="11" author="a"><preConditions onFail="MARK_RAN"><not><tableExists tableName="person"/></not></preConditions><createTable tableName="person"><column name="a" type="int"/></createTable><rollback/></changeSet>
            <changeSet id="12" author="a"><preConditions>
                <columnExists tableName="post" columnName="heading"/><indexExists indexName="post_rank"/><sequenceExists sequenceName="numbers"/><viewExists viewName="active_person"/>
                <foreignKeyConstraintExists foreignKeyName="fk_post_person"/><primaryKeyExists primaryKeyName="pk_person"/><uniqueConstraintExists constraintName="uq_email" tableName="person" columnNames="email"/><rowCount tableName="post" expectedRows="0"/>
                <sqlCheck expectedResult="3">select count(*) from person</sqlCheck><dbms type="postgresql"/></preConditions>
              <tagDatabase tag="checked"/></changeSet>
            """));
        Files.writeString(folder.resolve("more.yaml"), """
            databaseChangeLog:
              - changeSet:
                  id: 20
                  author: b
                  changes:
                    - createTable: {tableName: tag, columns: [{column: {name: word, type: varchar(20), constraints: {primaryKey: true}}}]}
                    - addForeignKeyConstraint: {baseTableName: tag, baseColumnNames: word, constraintName: fk_self, referencedTableName: tag, referencedColumnNames: word, deferrable: true, initiallyDeferred: true, onUpdate: CASCADE}
                    - renameTable: {oldTableName: tag, newTableName: label}
                    - renameView: {oldViewName: active_person, newViewName: persons}
                    - setTableRemarks: {tableName: label, remarks: "it's one"}
                    - setColumnRemarks: {tableName: label, columnName: word, remarks: a word}
                    - createTable: {tableName: pair, columns: [{column: {name: a, type: varchar(20)}}, {column: {name: b, type: varchar(20)}}]}
                    - mergeColumns: {tableName: pair, column1Name: a, column2Name: b, joinString: " ", finalColumnName: both, finalColumnType: varchar(40)}
                  rollback:
                    - sql: {sql: drop table label}
              - changeSet:
                  id: 21
                  author: b
                  changes:
                    - addLookupTable: {existingTableName: post, existingColumnName: heading, newTableName: heading, newColumnName: text, constraintName: fk_heading}
                    - alterSequence: {sequenceName: numbers, incrementBy: 3}
                    - renameSequence: {oldSequenceName: numbers, newSequenceName: counted}
                    - addAutoIncrement: {tableName: later, columnName: a, columnDataType: int}
                    - dropIndex: {indexName: post_rank}
                    - dropUniqueConstraint: {tableName: post, constraintName: uq_post}
                    - dropDefaultValue: {tableName: post, columnName: heading}
                    - dropForeignKeyConstraint: {baseTableName: post, constraintName: fk_post_person}
                    - dropForeignKeyConstraint: {baseTableName: label, constraintName: fk_self}
                    - dropPrimaryKey: {tableName: label}
                    - dropColumn: {tableName: post, columnName: rank}
                    - dropView: {viewName: persons}
                    - dropSequence: {sequenceName: counted}
                    - dropAllForeignKeyConstraints: {baseTableName: post}
                    - dropTable: {tableName: label, cascadeConstraints: true}
            """);
        Outcomes.test("update by contexts and labels", () -> use("main.xml", "main", l -> {
            l.update(new Contexts("prod"), new LabelExpression("!later"));
            Outcomes.same(10, applied("main"));
        }));
        Outcomes.test("what was loaded", () -> {
            Outcomes.same("3.00", Outcomes.ask("select score from main.person where name = 'Ann'"));
            Outcomes.same("1990-05-17", Outcomes.ask("select born from main.person where name = 'Ann'"));
        });
        Outcomes.test("update the rest, with text first", () -> use("main.xml", "main", l -> {
            StringWriter text = new StringWriter();
            l.update(ALL, ANY, text);
            Outcomes.same(true, text.toString().contains("only_test"));
            l.update(ALL, ANY);
            Outcomes.same(12, applied("main"));
            Outcomes.same(1, l.listUnrunChangeSets(ALL, ANY).size());
        }));
        Outcomes.test("status and validation", () -> use("main.xml", "main", l -> {
            l.validate();
            Outcomes.same(12, l.getDatabase().getRanChangeSetList().size());
        }));
        Outcomes.test("tags", () -> use("main.xml", "main", l -> {
            l.tag("here");
            Outcomes.same(true, l.tagExists("here"));
            Outcomes.same(true, l.tagExists("checked"));
        }));
        Outcomes.test("checksums", () -> use("main.xml", "main", l -> {
            l.clearCheckSums();
            l.update(ALL, ANY);
        }));
        Outcomes.test("a lock is waited for and released", () -> use("main.xml", "main", l -> {
            LockServiceFactory.getInstance().getLockService(l.getDatabase()).waitForLock();
            Outcomes.same(1, l.listLocks().length);
            l.forceReleaseLocks();
            Outcomes.same(0, l.listLocks().length);
        }));
        Outcomes.test("a snapshot shows what is there", () -> {
            try (Database database = database("main")) {
                DatabaseSnapshot snapshot = SnapshotGeneratorFactory.getInstance().createSnapshot(database.getDefaultSchema(), database, new SnapshotControl(database));
                Outcomes.same(true, snapshot.get(Table.class).stream().map(Table::getName).toList().containsAll(java.util.List.of("person", "post", "only_test")));
                Table person = snapshot.get(new Table(null, "main", "person"));
                Outcomes.same("people", person.getRemarks());
                Outcomes.same(11, person.getColumns().size());
                Column name = person.getColumn("name");
                Outcomes.same("varchar", name.getType().getTypeName());
                Outcomes.same(80, name.getType().getColumnSize());
                Outcomes.same("how they are called", name.getRemarks());
                Outcomes.same(false, name.isNullable());
                Outcomes.same(true, person.getColumn("id").isAutoIncrement());
                Outcomes.same("pk_person", person.getPrimaryKey().getName());
                Outcomes.same("fk_post_person", snapshot.get(ForeignKey.class).iterator().next().getName());
                Outcomes.same(true, snapshot.get(Index.class).stream().anyMatch(i -> "post_rank".equals(i.getName())));
                Outcomes.same(true, snapshot.get(UniqueConstraint.class).stream().anyMatch(u -> "uq_post".equals(u.getName())));
                Outcomes.same(true, snapshot.get(Sequence.class).stream().anyMatch(s -> "numbers".equals(s.getName()) && s.getIncrementBy().intValue() == 2 && s.getWillCycle()));
                Outcomes.same(1, snapshot.get(View.class).size());
                Outcomes.same(true, snapshot.get(PrimaryKey.class).size() >= 2);
            }
        });
        Outcomes.test("changelog of a database, applied to another schema", () -> {
            StringBuilder text = new StringBuilder();
            try (Database from = database("main")) {
                DiffResult diff = new Liquibase("main.xml", new DirectoryResourceAccessor(folder), from).diff(from, null, CompareControl.STANDARD);
                java.io.ByteArrayOutputStream out = new java.io.ByteArrayOutputStream();
                new DiffToChangeLog(diff, new DiffOutputControl(false, false, false, null)).print(new java.io.PrintStream(out));
                text.append(out);
            }
            Files.writeString(folder.resolve("generated.xml"), text);
            use("generated.xml", "copied", l -> l.update(ALL, ANY));
            Outcomes.same("3", Outcomes.ask("select count(*) from information_schema.tables where table_schema = 'copied' and table_name in ('person', 'post', 'later')"));
        });
        Outcomes.test("the difference of two schemas", () -> {
            try (Database one = database("main"); Database other = database("copied")) {
                Outcomes.connect().createStatement().execute("alter table copied.post add column extra int");
                CompareControl.SchemaComparison schemas = new CompareControl.SchemaComparison(one.getDefaultSchema(), other.getDefaultSchema());
                DiffResult diff = new Liquibase("main.xml", new DirectoryResourceAccessor(folder), one).diff(one, other, new CompareControl(new CompareControl.SchemaComparison[] {schemas}, (java.util.Set) null));
                Outcomes.same(true, diff.getUnexpectedObjects(Column.class).stream().anyMatch(c -> "extra".equals(c.getName())));
                Outcomes.same(false, diff.getMissingObjects(Table.class).stream().anyMatch(t -> "post".equals(t.getName())));
            }
        });
        Outcomes.test("YAML: renames, merges, remarks", () -> use("more.yaml", "main", l -> {
            l.update(1, new Contexts(), new LabelExpression());
            Outcomes.same("it's one", Outcomes.ask("select obj_description('main.label'::regclass)"));
        }));
        Outcomes.test("YAML: lookup tables and drops", () -> use("more.yaml", "main", l -> {
            l.update(ALL, ANY);
            Outcomes.same(null, Outcomes.ask("select to_regclass('main.label')"));
        }));
        Outcomes.test("roll-back by count", () -> {
            use("main.xml", "back", l -> l.update(ALL, ANY));
            use("main.xml", "back", l -> {
                l.rollback(3, "");
                Outcomes.same(9, applied("back"));
            });
        });
        Outcomes.test("roll-back to a tag", () -> use("main.xml", "back", l -> {
            l.update(ALL, ANY);
            l.tag("whole");
            Files.writeString(folder.resolve("last.xml"), changes("<changeSet id='30' author='c'><createTable tableName='last'><column name='a' type='int'/></createTable></changeSet>"));
            use("last.xml", "back", last -> {
                last.update(ALL, ANY);
                last.rollback("whole", "");
            });
            Outcomes.same(null, Outcomes.ask("select to_regclass('back.last')"));
        }));
        Outcomes.test("a failed change is rolled back", () -> {
            Files.writeString(folder.resolve("bad.xml"), changes("<changeSet id='40' author='d'><sql>create table half (a int)</sql><sql>select 1 / 0</sql></changeSet>"));
            use("bad.xml", "main", l -> Outcomes.fails("division by zero", () -> l.update(ALL, ANY)));
            Outcomes.same(null, Outcomes.ask("select to_regclass('main.half')"));
        });
        Outcomes.test("formatted SQL", () -> {
            Files.writeString(folder.resolve("formatted.sql"), """
                --liquibase formatted sql
                --changeset e:1 splitStatements:false
                create function two() returns int language plpgsql as $$ begin return 2; end; $$;
                --rollback drop function two();
                --changeset e:2 dbms:postgresql runOnChange:true
                create or replace view seen as select 1 as a;
                --rollback drop view seen;
                """);
            use("formatted.sql", "formatted", l -> {
                l.update(ALL, ANY);
                l.rollback(2, "");
            });
        });
        Outcomes.test("dropAll", () -> use("main.xml", "back", l -> {
            l.dropAll();
            Outcomes.same("0", Outcomes.ask("select count(*) from information_schema.tables where table_schema = 'back' and table_name in ('person', 'post')"));
        }));
        System.exit(0);
    }
}
