// pgjdbc against a server given by PGHOST, PGPORT, PGUSER and PGDATABASE: one line a check.

import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.*;
import java.time.*;
import java.util.*;
import org.postgresql.PGConnection;
import org.postgresql.largeobject.LargeObject;
import org.postgresql.largeobject.LargeObjectManager;
import org.postgresql.util.PGInterval;
import org.postgresql.util.PSQLException;

public class Test {
    interface Check { void run() throws Exception; }

    static final Map<String, Check> CHECKS = new LinkedHashMap<>();
    static Path valuesFile;

    public static void main(String[] arguments) {
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        valuesFile = Path.of(arguments[0]);
        CHECKS.put("parameters and columns as text", Test::everyType);
        CHECKS.put("java values, never prepared", () -> javaValues("prepareThreshold=0&binaryTransfer=false"));
        CHECKS.put("java values, prepared and binary", () -> javaValues("prepareThreshold=-1&binaryTransfer=true"));
        CHECKS.put("java values, simple protocol", () -> javaValues("preferQueryMode=simple"));
        CHECKS.put("transactions", Test::transactions);
        CHECKS.put("errors", Test::errors);
        CHECKS.put("prepared statements that become named ones", Test::preparedStatements);
        CHECKS.put("batches and generated keys", Test::batches);
        CHECKS.put("fetch size", Test::fetchSize);
        CHECKS.put("scrollable and updatable results", Test::updatableResults);
        CHECKS.put("copy", Test::copying);
        CHECKS.put("large objects", Test::largeObjects);
        CHECKS.put("warnings", Test::warnings);
        CHECKS.put("cancel and timeout", Test::cancelling);
        CHECKS.put("database metadata", Test::metadata);
        int failures = 0;
        for (var check : CHECKS.entrySet()) {
            try {
                check.getValue().run();
                System.out.println("ok      pgjdbc: " + check.getKey());
            } catch (Throwable error) {
                failures++;
                int line = 0;
                for (var frame : error.getStackTrace()) {
                    // The helpers are below; the first line above them is the check's.
                    if (frame.getClassName().startsWith("Test") && line == 0 && !HELPERS.contains(frame.getMethodName())) {
                        line = frame.getLineNumber();
                    }
                }
                String message = String.valueOf(error.getMessage()).replace('\n', ' ');
                System.out.println("FAILED  pgjdbc: " + check.getKey() + ": line " + line + ": " + message);
            }
        }
        System.exit(failures == 0 ? 0 : 1);
    }

    static void everyType() throws Exception {
        try (Connection connection = connect("binaryTransfer=false")) {
            Map<String, List<String>> values = new LinkedHashMap<>();
            for (String line : Files.readAllLines(valuesFile, StandardCharsets.UTF_8)) {
                if (!line.startsWith("#")) {
                    String[] parts = line.split("\t", -1);
                    values.computeIfAbsent(parts[0], k -> new ArrayList<>()).add(parts[2]);
                }
            }
            int number = 0;
            for (var entry : values.entrySet()) {
                String table = "jdbc_value_" + number++;
                run(connection, "drop table if exists " + table);
                run(connection, "create table " + table + " (id serial, v " + entry.getKey() + ")");
                try (var insert = connection.prepareStatement("insert into " + table + " (v) values (?)")) {
                    for (String text : entry.getValue()) {
                        insert.setObject(1, text, Types.OTHER);
                        equal(1, insert.executeUpdate());
                        insert.setNull(1, Types.OTHER);
                        equal(1, insert.executeUpdate());
                    }
                }
                List<String> expected = new ArrayList<>();
                entry.getValue().forEach(text -> { expected.add(text); expected.add(null); });
                equal(expected, column(connection, "select v from " + table + " order by id"), entry.getKey());
                run(connection, "drop table " + table);
            }
        }
    }

    static void javaValues(String options) throws Exception {
        try (Connection connection = connect(options)) {
            roundTrip(connection, "bool", true, Boolean.class);
            roundTrip(connection, "int2", (short) -5, Short.class);
            roundTrip(connection, "int4", Integer.MAX_VALUE, Integer.class);
            roundTrip(connection, "int8", Long.MIN_VALUE, Long.class);
            roundTrip(connection, "float4", 0.5f, Float.class);
            roundTrip(connection, "float8", 0.1, Double.class);
            roundTrip(connection, "numeric", new BigDecimal("-12345.678900"), BigDecimal.class);
            roundTrip(connection, "text", "naïve ☕ 'quoted' \\", String.class);
            roundTrip(connection, "varchar(10)", "abc", String.class);
            roundTrip(connection, "date", LocalDate.of(2026, 2, 28), LocalDate.class);
            roundTrip(connection, "time", LocalTime.of(12, 34, 56, 789000), LocalTime.class);
            roundTrip(connection, "timestamp", LocalDateTime.of(1999, 12, 31, 23, 59, 59, 999999000), LocalDateTime.class);
            roundTrip(connection, "timestamptz", OffsetDateTime.of(2026, 3, 1, 12, 0, 0, 0, ZoneOffset.UTC), OffsetDateTime.class);
            roundTrip(connection, "uuid", UUID.fromString("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), UUID.class);
            try (var statement = connection.prepareStatement("select ?::bytea, ?::interval, ?::int4[], ?::text[], ?::float8[]")) {
                for (int i = 0; i < 3; i++) {
                    statement.setBytes(1, new byte[] {0, -1, '\'', '\\'});
                    statement.setObject(2, new PGInterval("1 year 2 mons 3 days 04:05:06.5"));
                    statement.setArray(3, connection.createArrayOf("int4", new Integer[] {1, null, 3}));
                    statement.setArray(4, connection.createArrayOf("text", new String[] {"a", "q\"\\,{}", "", "NULL", null}));
                    statement.setArray(5, connection.createArrayOf("float8", new Double[] {0.1, -2.5}));
                    try (var result = statement.executeQuery()) {
                        result.next();
                        equal("[0, -1, 39, 92]", Arrays.toString(result.getBytes(1)));
                        equal(new PGInterval("1 year 2 mons 3 days 04:05:06.5"), result.getObject(2));
                        equal("[1, null, 3]", Arrays.toString((Object[]) result.getArray(3).getArray()));
                        equal("[a, q\"\\,{}, , NULL, null]", Arrays.toString((Object[]) result.getArray(4).getArray()));
                        equal("[0.1, -2.5]", Arrays.toString((Object[]) result.getArray(5).getArray()));
                    }
                }
            }
        }
    }

    static <T> void roundTrip(Connection connection, String type, T value, Class<T> javaClass) throws SQLException {
        try (var statement = connection.prepareStatement("select ?::" + type)) {
            // The driver switches to binary once it knows the result's types, so ask more than once.
            for (int i = 0; i < 3; i++) {
                statement.setObject(1, value);
                try (var result = statement.executeQuery()) {
                    result.next();
                    Object returned = javaClass == Short.class ? (Object) result.getShort(1) : result.getObject(1, javaClass);
                    equal(value, returned, type);
                }
            }
            statement.setObject(1, null);
            try (var result = statement.executeQuery()) {
                result.next();
                equal(null, result.getObject(1), type);
            }
        }
    }

    static void transactions() throws Exception {
        try (Connection connection = connect("")) {
            run(connection, "drop table if exists jdbc_transaction");
            run(connection, "create table jdbc_transaction (id int primary key)");
            connection.setAutoCommit(false);
            connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            run(connection, "insert into jdbc_transaction values (1)");
            Savepoint savepoint = connection.setSavepoint("a \"name\"");
            fails("23505", () -> run(connection, "insert into jdbc_transaction values (1)"));
            fails("25P02", () -> run(connection, "select 1"));
            connection.rollback(savepoint);
            run(connection, "insert into jdbc_transaction values (2)");
            connection.commit();
            run(connection, "delete from jdbc_transaction");
            connection.rollback();
            equal(List.of("1", "2"), column(connection, "select id from jdbc_transaction order by id"));
            connection.commit();
            connection.setReadOnly(true);
            fails("25006", () -> run(connection, "delete from jdbc_transaction"));
            connection.rollback();
            connection.setReadOnly(false);
            run(connection, "drop table jdbc_transaction");
            connection.commit();
        }
    }

    static void errors() throws Exception {
        try (Connection connection = connect("")) {
            run(connection, "drop table if exists jdbc_error");
            run(connection, "create table jdbc_error (id int primary key, v varchar(3) not null)");
            run(connection, "insert into jdbc_error values (1, 'abc')");
            var duplicate = fails("23505", () -> run(connection, "insert into jdbc_error values (1, 'x')")).getServerErrorMessage();
            equal("jdbc_error_pkey", duplicate.getConstraint());
            equal("Key (id)=(1) already exists.", duplicate.getDetail());
            var tooLong = fails("22001", () -> run(connection, "insert into jdbc_error values (2, 'abcd')"));
            equal("ERROR: value too long for type character varying(3)", tooLong.getMessage());
            fails("23502", () -> run(connection, "insert into jdbc_error values (2, null)"));
            equal(8, fails("42703", () -> run(connection, "select nothing from jdbc_error")).getServerErrorMessage().getPosition());
            try (var statement = connection.prepareStatement("select 1 / ?")) {
                statement.setInt(1, 0);
                fails("22012", statement::executeQuery);
                statement.setInt(1, 1);
                try (var result = statement.executeQuery()) { equal(true, result.next()); }
            }
            run(connection, "drop table jdbc_error");
        }
    }

    static void preparedStatements() throws Exception {
        try (Connection connection = connect("prepareThreshold=3")) {
            run(connection, "drop table if exists jdbc_prepared");
            run(connection, "create table jdbc_prepared (id int primary key, v text, n numeric(8, 2))");
            try (var insert = connection.prepareStatement("insert into jdbc_prepared values (?, ?, ?)");
                    var select = connection.prepareStatement("select v, n from jdbc_prepared where id = ?")) {
                for (int i = 0; i < 20; i++) {
                    insert.setInt(1, i);
                    insert.setString(2, "v" + i);
                    insert.setBigDecimal(3, BigDecimal.valueOf(i, 2));
                    equal(1, insert.executeUpdate());
                    select.setInt(1, i);
                    try (var result = select.executeQuery()) {
                        result.next();
                        equal("v" + i, result.getString(1));
                        equal(BigDecimal.valueOf(i, 2), result.getBigDecimal(2));
                    }
                }
                // The type of a parameter changes: the driver must describe anew.
                insert.setLong(1, 20);
                insert.setNull(2, Types.VARCHAR);
                insert.setDouble(3, 0.25);
                equal(1, insert.executeUpdate());
                var described = select.getMetaData();
                equal("text", described.getColumnTypeName(1));
                equal(8, described.getPrecision(2));
                equal("int4", select.getParameterMetaData().getParameterTypeName(1));
                // A column is added while the statement is prepared.
                run(connection, "alter table jdbc_prepared add more int default 7");
                select.setInt(1, 3);
                try (var result = select.executeQuery()) { equal(true, result.next()); }
            }
            run(connection, "drop table jdbc_prepared");
        }
    }

    static void batches() throws Exception {
        try (Connection connection = connect("reWriteBatchedInserts=true")) {
            run(connection, "drop table if exists jdbc_batch");
            run(connection, "create table jdbc_batch (id bigint generated always as identity primary key, v text)");
            try (var insert = connection.prepareStatement("insert into jdbc_batch (v) values (?)", Statement.RETURN_GENERATED_KEYS)) {
                for (int i = 0; i < 100; i++) {
                    insert.setString(1, "v" + i);
                    insert.addBatch();
                }
                equal(100, insert.executeBatch().length);
                try (var keys = insert.getGeneratedKeys()) {
                    for (long i = 1; i <= 100; i++) {
                        equal(true, keys.next());
                        equal(i, keys.getLong(1));
                    }
                }
            }
            try (var statement = connection.createStatement()) {
                statement.addBatch("insert into jdbc_batch (v) values ('a')");
                statement.addBatch("select 1 / 0");
                fails("22012", statement::executeBatch);
            }
            run(connection, "drop table jdbc_batch");
        }
    }

    static void fetchSize() throws Exception {
        try (Connection connection = connect("")) {
            connection.setAutoCommit(false);
            for (int size : new int[] {1, 7, 1000}) {
                try (var statement = connection.prepareStatement("select i, 'row ' || i from generate_series(1, ?) i")) {
                    statement.setFetchSize(size);
                    statement.setInt(1, 50);
                    try (var result = statement.executeQuery()) {
                        int rows = 0;
                        while (result.next()) {
                            rows++;
                            equal(rows, result.getInt(1));
                            equal("row " + rows, result.getString(2));
                            // Another statement runs while the portal is open.
                            equal(List.of("1"), column(connection, "select 1"));
                        }
                        equal(50, rows);
                    }
                }
            }
            connection.commit();
        }
    }

    static void updatableResults() throws Exception {
        try (Connection connection = connect("")) {
            run(connection, "drop table if exists jdbc_updatable");
            run(connection, "create table jdbc_updatable (id int primary key, v text)");
            run(connection, "insert into jdbc_updatable values (1, 'a'), (2, 'b'), (3, 'c')");
            try (var statement = connection.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE);
                    var result = statement.executeQuery("select id, v from jdbc_updatable order by id")) {
                result.absolute(2);
                result.updateString("v", "changed");
                result.updateRow();
                result.last();
                result.deleteRow();
                result.moveToInsertRow();
                result.updateInt("id", 9);
                result.updateString("v", "new");
                result.insertRow();
            }
            equal(List.of("1a", "2changed", "9new"), column(connection, "select id || v from jdbc_updatable order by id"));
            run(connection, "drop table jdbc_updatable");
        }
    }

    static void copying() throws Exception {
        try (Connection connection = connect("")) {
            run(connection, "drop table if exists jdbc_copy");
            run(connection, "create table jdbc_copy (a int, b text)");
            var copies = connection.unwrap(PGConnection.class).getCopyAPI();
            String csv = "1,\"x, \"\"y\"\"\"\n2,\n3,\"\"\n";
            equal(3L, copies.copyIn("copy jdbc_copy from stdin (format csv)", new StringReader(csv)));
            var out = new StringWriter();
            equal(3L, copies.copyOut("copy jdbc_copy to stdout (format csv)", out));
            equal(csv, out.toString());
            fails("22P02", () -> copies.copyIn("copy jdbc_copy from stdin (format csv)", new StringReader("x,y\n")));
            equal(List.of("3"), column(connection, "select count(*) from jdbc_copy"));
            run(connection, "drop table jdbc_copy");
        }
    }

    static void largeObjects() throws Exception {
        try (Connection connection = connect("")) {
            connection.setAutoCommit(false);
            LargeObjectManager manager = connection.unwrap(PGConnection.class).getLargeObjectAPI();
            byte[] content = new byte[200_000];
            new Random(7).nextBytes(content);
            long oid = manager.createLO();
            try (LargeObject object = manager.open(oid, LargeObjectManager.READWRITE)) {
                object.write(content);
                equal(content.length, object.tell());
                object.seek(65_530);
                equal(true, Arrays.equals(Arrays.copyOfRange(content, 65_530, 65_550), object.read(20)));
                object.seek(-3, LargeObject.SEEK_END);
                equal(3, object.read(10).length);
                object.seek64(5_000_000_000L, LargeObject.SEEK_SET);
                object.write("far".getBytes(StandardCharsets.UTF_8));
                equal(5_000_000_003L, object.size64());
                object.truncate64(content.length);
                equal((long) content.length, object.size64());
            }
            connection.commit();
            try (LargeObject object = manager.open(oid, LargeObjectManager.READ); var stream = object.getInputStream()) {
                equal(true, Arrays.equals(content, stream.readAllBytes()));
            }
            Savepoint savepoint = connection.setSavepoint();
            manager.delete(oid);
            fails("42704", () -> manager.open(oid, LargeObjectManager.READ));
            connection.rollback(savepoint);
            run(connection, "create temp table jdbc_blobs (b oid)");
            try (var insert = connection.prepareStatement("insert into jdbc_blobs values (?)")) {
                insert.setBlob(1, new java.io.ByteArrayInputStream(content));
                insert.executeUpdate();
            }
            try (var statement = connection.createStatement(); var result = statement.executeQuery("select b from jdbc_blobs")) {
                result.next();
                equal(true, Arrays.equals(content, result.getBlob(1).getBytes(1, content.length)));
            }
            manager.delete(oid);
            run(connection, "select lo_unlink(b) from jdbc_blobs");
            connection.commit();
        }
    }

    static void warnings() throws Exception {
        try (Connection connection = connect(""); var statement = connection.createStatement()) {
            statement.execute("drop table if exists jdbc_missing");
            equal("table \"jdbc_missing\" does not exist, skipping", statement.getWarnings().getMessage());
            equal("00000", statement.getWarnings().getSQLState());
        }
    }

    static void cancelling() throws Exception {
        try (Connection connection = connect(""); var statement = connection.createStatement()) {
            var timer = new Thread(() -> {
                try {
                    Thread.sleep(300);
                    statement.cancel();
                } catch (Exception error) {
                    throw new IllegalStateException(error);
                }
            });
            timer.start();
            fails("57014", () -> statement.execute("select pg_sleep(60)"));
            timer.join();
            statement.setQueryTimeout(1);
            fails("57014", () -> statement.execute("select pg_sleep(60)"));
            equal(List.of("1"), column(connection, "select 1"));
        }
    }

    static void metadata() throws Exception {
        try (Connection connection = connect("")) {
            run(connection, "drop table if exists jdbc_meta_child, jdbc_meta_parent");
            run(connection, "create table jdbc_meta_parent (a int, b varchar(20), primary key (b, a))");
            run(connection, "create table jdbc_meta_child (id serial primary key, a int not null, b varchar(20) default 'x',"
                    + " foreign key (b, a) references jdbc_meta_parent on delete cascade)");
            run(connection, "create index jdbc_meta_child_index on jdbc_meta_child (a, b)");
            DatabaseMetaData metadata = connection.getMetaData();
            equal("[jdbc_meta_child, jdbc_meta_parent]", all(metadata.getTables(null, "public", "jdbc\\_meta%", new String[] {"TABLE"}), "TABLE_NAME"));
            equal("[id, a, b]", all(metadata.getColumns(null, "public", "jdbc_meta_child", "%"), "COLUMN_NAME"));
            equal("[serial, int4, varchar]", all(metadata.getColumns(null, "public", "jdbc_meta_child", "%"), "TYPE_NAME"));
            equal("[NO, NO, YES]", all(metadata.getColumns(null, "public", "jdbc_meta_child", "%"), "IS_NULLABLE"));
            equal("[b, a]", all(metadata.getPrimaryKeys(null, "public", "jdbc_meta_parent"), "COLUMN_NAME"));
            equal("[b, a]", all(metadata.getImportedKeys(null, "public", "jdbc_meta_child"), "FKCOLUMN_NAME"));
            equal("[jdbc_meta_child_pkey, jdbc_meta_child_index, jdbc_meta_child_index]",
                    all(metadata.getIndexInfo(null, "public", "jdbc_meta_child", false, true), "INDEX_NAME"));
            equal(true, all(metadata.getSchemas(), "TABLE_SCHEM").contains("information_schema"));
            equal(true, all(metadata.getTypeInfo(), "TYPE_NAME").contains("timestamptz"));
            equal("PostgreSQL", metadata.getDatabaseProductName());
            run(connection, "drop table jdbc_meta_child, jdbc_meta_parent");
        }
    }

    // Helpers.

    interface Failing { void run() throws Exception; }

    static final Set<String> HELPERS = Set.of("equal", "fails", "run", "column", "all", "connect");

    static Connection connect(String options) throws SQLException {
        Map<String, String> environment = System.getenv();
        String url = String.format("jdbc:postgresql://%s:%s/%s?user=%s&%s", environment.getOrDefault("PGHOST", "127.0.0.1"),
                environment.getOrDefault("PGPORT", "5432"), environment.getOrDefault("PGDATABASE", "postgres"),
                environment.getOrDefault("PGUSER", "postgres"), options);
        return DriverManager.getConnection(url);
    }

    static void run(Connection connection, String query) throws SQLException {
        try (var statement = connection.createStatement()) { statement.execute(query); }
    }

    static List<String> column(Connection connection, String query) throws SQLException {
        try (var statement = connection.createStatement(); var result = statement.executeQuery(query)) {
            List<String> values = new ArrayList<>();
            while (result.next()) { values.add(result.getString(1)); }
            return values;
        }
    }

    static String all(ResultSet result, String column) throws SQLException {
        try (result) {
            List<String> values = new ArrayList<>();
            while (result.next()) { values.add(result.getString(column)); }
            return values.toString();
        }
    }

    static PSQLException fails(String state, Failing run) throws Exception {
        try {
            run.run();
        } catch (SQLException error) {
            SQLException cause = error;
            while (!(cause instanceof PSQLException) && cause.getNextException() != null) { cause = cause.getNextException(); }
            equal(state, cause.getSQLState(), cause.getMessage());
            return (PSQLException) cause;
        }
        throw new AssertionError("no error, expected " + state);
    }

    static void equal(Object expected, Object actual) { equal(expected, actual, ""); }

    static void equal(Object expected, Object actual, String what) {
        if (!Objects.equals(expected, actual)) {
            throw new AssertionError(what + " expected " + expected + ", got " + actual);
        }
    }
}
