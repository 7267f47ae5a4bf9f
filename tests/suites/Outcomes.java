import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** Tests that run one after the other, each told of as tests/suites/outcomes.py describes: how it ended, a tab, its name. */
final class Outcomes {
    interface Body {
        void run() throws Exception;
    }

    static final String URL = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE");
    static final String USER = System.getenv("PGUSER");
    private static final ExecutorService THREAD = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        return thread;
    });

    private Outcomes() {}

    /** Runs a test; one that hangs is failed, and the next one is begun. */
    static void test(String name, Body body) {
        String outcome = "passed";
        try {
            THREAD.submit(() -> {
                body.run();
                return null;
            }).get(60, TimeUnit.SECONDS);
        } catch (Exception error) {
            outcome = "failed";
            System.err.print(name + ": ");
            error.printStackTrace();
        }
        try {
            Files.writeString(Path.of(System.getenv("OUTCOMES")), outcome + "\t" + name + "\n", StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    static Connection connect() throws SQLException {
        return DriverManager.getConnection(URL, USER, "");
    }

    /** The first column of the first row, as text. */
    static String ask(String query) throws SQLException {
        try (Connection connection = connect(); ResultSet rows = connection.createStatement().executeQuery(query)) {
            return rows.next() ? rows.getString(1) : null;
        }
    }

    static void same(Object expected, Object got) {
        if (!java.util.Objects.equals(expected, got)) throw new AssertionError("expected " + expected + ", got " + got);
    }

    /** The body fails with a message that contains a text. */
    static void fails(String text, Body body) throws Exception {
        try {
            body.run();
        } catch (Exception error) {
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                if (String.valueOf(cause.getMessage()).contains(text)) return;
            }
            throw error;
        }
        throw new AssertionError("did not fail with " + text);
    }
}
