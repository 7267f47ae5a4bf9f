import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Asks questions.sql by the driver that DBeaver has. A test is named by PostgreSQL's answer: columns, their types, and the number of rows. */
final class Suite {
    private static final Pattern PLACE = Pattern.compile("(?<!:):(?:'(\\w+)'|([a-z]\\w*))");

    private Suite() {}

    public static void main(String[] arguments) throws Exception {
        String[] questions = Files.readString(Path.of(arguments[0])).split("(?m)^-- ");
        for (int at = 1; at < questions.length; at++) {
            int line = questions[at].indexOf('\n');
            String text = questions[at].substring(line).strip();
            if (text.isEmpty() || !text.endsWith(";")) continue;
            ask(questions[at].substring(0, line).strip(), text.substring(0, text.length() - 1));
        }
        System.exit(0);
    }

    private static void ask(String name, String text) {
        String[] answer = {""};
        try {
            String told = answer(text, !name.endsWith("~"));
            answer[0] = name.endsWith("~~") ? "rows" : told;
        } catch (Exception error) {
            answer[0] = error.toString();
        }
        String told = (name.replace("~", "").strip() + ": " + answer[0]).replaceAll("\\s+", " ");
        Outcomes.test(told.substring(0, Math.min(told.length(), 2000)), () -> {
            if (answer[0].contains("Exception")) throw new AssertionError(answer[0]);
        });
    }

    private static String answer(String text, boolean counts) throws Exception {
        List<Object> values = new ArrayList<>();
        Matcher place = PLACE.matcher(text);
        StringBuilder asked = new StringBuilder();
        while (place.find()) {
            values.add(place.group(1) != null ? place.group(1) : oid(place.group(2)));
            place.appendReplacement(asked, "?");
        }
        place.appendTail(asked);
        try (Connection connection = Outcomes.connect(); PreparedStatement statement = connection.prepareStatement(asked.toString())) {
            statement.setFetchSize(200);
            for (int at = 0; at < values.size(); at++) {
                if (values.get(at) instanceof Long number) statement.setLong(at + 1, number);
                else statement.setString(at + 1, (String) values.get(at));
            }
            try (ResultSet rows = statement.executeQuery()) {
                ResultSetMetaData columns = rows.getMetaData();
                StringBuilder answer = new StringBuilder();
                for (int at = 1; at <= columns.getColumnCount(); at++) {
                    answer.append(columns.getColumnName(at)).append(' ').append(columns.getColumnTypeName(at)).append(", ");
                }
                int count = 0;
                for (; rows.next(); count++) {
                    for (int at = 1; at <= columns.getColumnCount(); at++) rows.getObject(at);
                }
                return counts ? answer + (count + " rows") : answer + "rows";
            }
        }
    }

    /** Of the one object of this name. */
    private static Long oid(String name) throws Exception {
        String found = Outcomes.ask("select oid from (select oid, relname as name from pg_class union all select oid, nspname from pg_namespace"
            + " union all select oid, proname from pg_proc union all select oid, typname from pg_type where typtype in ('e', 'd')"
            + " union all select oid, rolname from pg_roles) o where name = '" + name + "' order by oid desc limit 1");
        return Long.valueOf(found);
    }
}
