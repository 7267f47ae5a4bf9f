import jakarta.persistence.CascadeType;
import jakarta.persistence.CollectionTable;
import jakarta.persistence.Column;
import jakarta.persistence.ElementCollection;
import jakarta.persistence.Embeddable;
import jakarta.persistence.Embedded;
import jakarta.persistence.Entity;
import jakarta.persistence.EnumType;
import jakarta.persistence.Enumerated;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Index;
import jakarta.persistence.Inheritance;
import jakarta.persistence.InheritanceType;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.Lob;
import jakarta.persistence.LockModeType;
import jakarta.persistence.LockTimeoutException;
import jakarta.persistence.ManyToMany;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.MapKeyColumn;
import jakarta.persistence.OneToMany;
import jakarta.persistence.OptimisticLockException;
import jakarta.persistence.OrderColumn;
import jakarta.persistence.ParameterMode;
import jakarta.persistence.PessimisticLockException;
import jakarta.persistence.Table;
import jakarta.persistence.UniqueConstraint;
import jakarta.persistence.Version;
import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.hibernate.Hibernate;
import org.hibernate.ScrollMode;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.annotations.Check;
import org.hibernate.annotations.CreationTimestamp;
import org.hibernate.annotations.Formula;
import org.hibernate.annotations.GeneratedColumn;
import org.hibernate.annotations.JdbcTypeCode;
import org.hibernate.annotations.SQLRestriction;
import org.hibernate.annotations.SoftDelete;
import org.hibernate.boot.Metadata;
import org.hibernate.boot.MetadataSources;
import org.hibernate.boot.registry.StandardServiceRegistryBuilder;
import org.hibernate.exception.ConstraintViolationException;
import org.hibernate.type.SqlTypes;

/** Hibernate ORM: what its documentation shows of mappings, schemas, queries and locks. */
public final class Suite {
    public enum Mood { SAD, OK, HAPPY }

    @Embeddable
    public static class Address {
        String street;
        @Column(length = 20) String city;
        public Address() {}
        Address(String street, String city) { this.street = street; this.city = city; }
    }

    @Entity(name = "Person")
    @Table(name = "person", indexes = @Index(name = "person_born", columnList = "born desc"), uniqueConstraints = @UniqueConstraint(name = "uq_email", columnNames = "email"))
    @Check(name = "balance_is_positive", constraints = "balance >= 0")
    public static class Person {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE) Long id;
        @Version int version;
        @Column(nullable = false, length = 80) String name;
        String email;
        @Column(precision = 10, scale = 2) BigDecimal balance = BigDecimal.ZERO;
        LocalDate born;
        LocalTime wakes;
        LocalDateTime seen;
        OffsetDateTime met;
        Instant at;
        Duration stay;
        UUID token;
        boolean active = true;
        byte[] photo;
        @Lob String essay;
        @Enumerated(EnumType.STRING) Mood mood;
        @Enumerated(EnumType.STRING) @JdbcTypeCode(SqlTypes.NAMED_ENUM) Mood named;
        @JdbcTypeCode(SqlTypes.JSON) Map<String, Object> info = new HashMap<>();
        @JdbcTypeCode(SqlTypes.ARRAY) List<String> tags = new ArrayList<>();
        int[] marks;
        @JdbcTypeCode(SqlTypes.INET) java.net.InetAddress host;
        @CreationTimestamp Instant made;
        @Formula("upper(name)") String loud;
        @Embedded Address address;
        @ElementCollection @CollectionTable(name = "nickname") @OrderColumn(name = "place") List<String> nicknames = new ArrayList<>();
        @ElementCollection @MapKeyColumn(name = "kind") Map<String, String> phones = new HashMap<>();
        @OneToMany(mappedBy = "author", cascade = CascadeType.ALL, orphanRemoval = true) List<Post> posts = new ArrayList<>();
        public Person() {}
        Person(String name) { this.name = name; }
    }

    @Entity(name = "Post")
    public static class Post {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Integer id;
        String title;
        int rank;
        @ManyToOne @JoinColumn(name = "author_id") Person author;
        @ManyToMany Set<Label> labels = new HashSet<>();
        public Post() {}
        Post(String title, int rank, Person author) { this.title = title; this.rank = rank; this.author = author; author.posts.add(this); }
    }

    @Entity(name = "Label")
    public static class Label {
        @Id String word;
        public Label() {}
        Label(String word) { this.word = word; }
    }

    @Entity(name = "Shape") @Inheritance(strategy = InheritanceType.JOINED)
    public static class Shape { @Id @GeneratedValue(strategy = GenerationType.UUID) UUID id; String color; }
    @Entity(name = "Circle") public static class Circle extends Shape { double radius; }
    @Entity(name = "Square") public static class Square extends Shape { double side; }

    @Entity(name = "Animal") @Inheritance(strategy = InheritanceType.SINGLE_TABLE)
    public static class Animal { @Id @GeneratedValue Long id; String name; }
    @Entity(name = "Cat") public static class Cat extends Animal { int lives = 9; }

    @Entity(name = "Vehicle") @Inheritance(strategy = InheritanceType.TABLE_PER_CLASS)
    public static class Vehicle { @Id @GeneratedValue Long id; int wheels; }
    @Entity(name = "Truck") public static class Truck extends Vehicle { int load; }

    @Entity(name = "Note") @SoftDelete
    public static class Note { @Id @GeneratedValue Long id; String text; @GeneratedColumn("length(text)") Integer letters; }

    @Entity(name = "Visible") @Table(name = "visible") @SQLRestriction("hidden = false")
    public static class Visible { @Id Integer id; boolean hidden; }

    private static final Class<?>[] ENTITIES = {Person.class, Post.class, Label.class, Shape.class, Circle.class, Square.class, Animal.class, Cat.class, Vehicle.class, Truck.class, Note.class, Visible.class};
    private static SessionFactory factory;

    private static Metadata metadata(String action) {
        var registry = new StandardServiceRegistryBuilder().applySetting("hibernate.connection.url", Outcomes.URL).applySetting("hibernate.connection.username", Outcomes.USER)
            .applySetting("hibernate.connection.password", "").applySetting("hibernate.hbm2ddl.auto", action).applySetting("hibernate.hbm2ddl.halt_on_error", "true")
            .applySetting("hibernate.jdbc.batch_size", "20").applySetting("hibernate.query.hql.json_functions_enabled", "true").applySetting("hibernate.connection.pool_size", "5").build();
        MetadataSources sources = new MetadataSources(registry);
        for (Class<?> entity : ENTITIES) sources.addAnnotatedClass(entity);
        return sources.buildMetadata();
    }

    private interface Work {
        void with(Session session) throws Exception;
    }

    private static void in(Work work) throws Exception {
        try (Session session = factory.openSession()) {
            session.beginTransaction();
            try {
                work.with(session);
                session.getTransaction().commit();
            } catch (Throwable error) {
                if (session.getTransaction().isActive()) session.getTransaction().rollback();
                throw error;
            }
        }
    }

    private static void test(String name, Work work) {
        Outcomes.test(name, () -> in(work));
    }

    private static Person person(Session session, String name) {
        return session.createQuery("from Person where name = :name", Person.class).setParameter("name", name).getSingleResult();
    }

    public static void main(String[] arguments) throws Exception {
        java.util.logging.Logger.getLogger("org.hibernate").setLevel(java.util.logging.Level.WARNING);
        Outcomes.test("schema: create", () -> factory = metadata("create").buildSessionFactory());
        Outcomes.test("schema: validate", () -> metadata("validate").buildSessionFactory().close());
        Outcomes.test("schema: update changes nothing, then adds what is missing", () -> {
            metadata("update").buildSessionFactory().close();
            Outcomes.connect().createStatement().execute("alter table post drop column rank; drop table note; drop index person_born");
            metadata("update").buildSessionFactory().close();
            Outcomes.same("2", Outcomes.ask("select (select count(*) from information_schema.columns where table_name = 'post' and column_name = 'rank') + (select count(*) from pg_class where relname = 'note')"));
        });
        test("persist with every type", s -> {
            Person ann = new Person("Ann");
            ann.email = "ann@x.org";
            ann.balance = new BigDecimal("12.50");
            ann.born = LocalDate.of(1990, 5, 17);
            ann.wakes = LocalTime.of(6, 30, 15);
            ann.seen = LocalDateTime.of(2020, 2, 29, 23, 59, 58, 123_456_000);
            ann.met = OffsetDateTime.of(2020, 1, 1, 12, 0, 0, 0, ZoneOffset.ofHours(2));
            ann.at = Instant.parse("2021-03-04T05:06:07.000008Z");
            ann.stay = Duration.ofMinutes(90);
            ann.token = UUID.fromString("0191d2b5-0000-7000-8000-000000000001");
            ann.photo = new byte[] {0, 1, -1};
            ann.essay = "long ".repeat(5000);
            ann.mood = ann.named = Mood.HAPPY;
            ann.info.put("city", "Oslo");
            ann.info.put("n", List.of(1, 2));
            ann.tags.addAll(List.of("a", "b,c", "\"d\""));
            ann.marks = new int[] {3, 1};
            ann.host = java.net.InetAddress.getByName("192.168.0.1");
            ann.address = new Address("Main 1", "Oslo");
            ann.nicknames.addAll(List.of("Annie", "An"));
            ann.phones.putAll(Map.of("home", "1", "work", "2"));
            s.persist(ann);
            Note note = new Note();
            note.text = "four";
            s.persist(note);
            s.flush();
            Outcomes.same(4, note.letters);
            s.remove(note);
        });
        test("what was persisted", s -> {
            Person ann = person(s, "Ann");
            Outcomes.same(new BigDecimal("12.50"), ann.balance);
            Outcomes.same(LocalDate.of(1990, 5, 17), ann.born);
            Outcomes.same(LocalDateTime.of(2020, 2, 29, 23, 59, 58, 123_456_000), ann.seen);
            Outcomes.same(Instant.parse("2020-01-01T10:00:00Z"), ann.met.toInstant());
            Outcomes.same(Instant.parse("2021-03-04T05:06:07.000008Z"), ann.at);
            Outcomes.same(Duration.ofMinutes(90), ann.stay);
            Outcomes.same(25000, ann.essay.length());
            Outcomes.same(Mood.HAPPY, ann.named);
            Outcomes.same("Oslo", ann.info.get("city"));
            Outcomes.same(List.of("a", "b,c", "\"d\""), ann.tags);
            Outcomes.same(1, ann.marks[1]);
            Outcomes.same("192.168.0.1", ann.host.getHostAddress());
            Outcomes.same("ANN", ann.loud);
            Outcomes.same(List.of("Annie", "An"), ann.nicknames);
            Outcomes.same("2", ann.phones.get("work"));
        });
        test("batches of inserts, cascades", s -> {
            for (String name : List.of("Bob", "Cid", "Dan")) {
                Person person = new Person(name);
                person.balance = new BigDecimal(name.charAt(0) - 'A');
                for (int i = 0; i < 3; i++) new Post(name + " " + i, i, person).labels.add(s.merge(new Label("l" + i)));
                s.persist(person);
            }
        });
        test("collections change", s -> {
            Person ann = person(s, "Ann");
            ann.nicknames.add(0, "A");
            ann.nicknames.remove("An");
            ann.phones.remove("home");
            person(s, "Bob").posts.remove(0);
            s.flush();
            Outcomes.same(2L, s.createQuery("select count(*) from Post p where p.author.name = 'Bob'", Long.class).getSingleResult());
        });
        test("HQL: joins, fetches, grouping", s -> {
            Outcomes.same(3, s.createQuery("select distinct p from Person p join fetch p.posts order by p.name", Person.class).getResultList().size());
            List<Object[]> rows = s.createQuery("select p.name, count(q), max(q.rank), listagg(q.title, ',') within group (order by q.title) from Person p left join p.posts q group by p.name having count(q) >= 0 order by p.name", Object[].class).getResultList();
            Outcomes.same(2L, rows.get(1)[1]);
            Outcomes.same("Bob 1,Bob 2", rows.get(1)[3]);
            Outcomes.same(8L, s.createQuery("select count(l) from Post p join p.labels l", Long.class).getSingleResult());
        });
        test("HQL: sub-queries, case, set operations, limits", s -> {
            Outcomes.same(List.of("Cid", "Dan"), s.createQuery("select p.name from Person p where exists (from Post q where q.author = p and q.rank = 0) order by p.name", String.class).getResultList());
            Outcomes.same(List.of("rich", "poor"), s.createQuery("select case when balance > 5 then 'rich' else 'poor' end from Person where name in ('Ann', 'Bob') order by name", String.class).getResultList());
            Outcomes.same(3, s.createQuery("select name from Person where name < 'C' union select title from Post where title like 'Bob 1%'", String.class).getResultList().size());
            Outcomes.same(List.of("Bob", "Cid"), s.createQuery("select name from Person order by name limit 2 offset 1", String.class).getResultList());
            Outcomes.same(List.of("Cid"), s.createQuery("select name from Person order by name", String.class).setFirstResult(2).setMaxResults(1).getResultList());
            s.createQuery("select p.name, (select max(q.rank) from Post q where q.author = p) from Person p fetch first 50 percent rows only", Object[].class).getResultList();
        });
        test("HQL: functions", s -> s.createQuery("select upper(name), substring(name, 1, 2), locate('n', name), concat(name, '!'), trim(both ' ' from ' x '), coalesce(email, 'none'), nullif(name, 'x'), abs(balance), round(balance, 1), power(balance, 2), extract(year from born), current date, current timestamp, local datetime, cast(balance as Integer), left(name, 1), replace(name, 'n', 'm'), format(seen as 'yyyy-MM-dd'), truncate(balance, 1), overlay(name placing 'zz' from 1 for 1), lpad(name, 10, '*'), size(posts), seen + 3 day, (current timestamp - at) by second, array_contains(tags, 'a'), array_length(tags), array_append(tags, 'z'), collate(name as ucs_basic) from Person", Object[].class).getResultList());
        test("HQL: windows, CTEs, recursion, lateral", s -> {
            s.createQuery("select name, row_number() over (order by name), rank() over (partition by mood order by balance desc), sum(balance) over (order by name rows between unbounded preceding and current row), lag(name) over (order by name) from Person", Object[].class).getResultList();
            Outcomes.same(4, s.createQuery("with t as (select 1 as n union all select x.n + 1 as n from t x where x.n < 4) select x.n from t x", Integer.class).getResultList().size());
            Outcomes.same(3, s.createQuery("select p.name, t.title from Person p join lateral (select q.title as title from Post q where q.author = p order by q.rank desc limit 1) t", Object[].class).getResultList().size());
            Outcomes.same(List.of(1, 3, 5), s.createQuery("select n from generate_series(1, 5, 2) n", Integer.class).getResultList());
        });
        test("HQL: JSON and arrays", s -> {
            Outcomes.same("Oslo", s.createQuery("select json_value(info, '$.city') from Person where name = 'Ann'", String.class).getSingleResult());
        });
        test("HQL: update, delete, insert, upsert", s -> {
            Outcomes.same(1, s.createMutationQuery("update Person set balance = balance + 1 where name = 'Bob'").executeUpdate());
            Outcomes.same(1, s.createMutationQuery("insert into Label (word) values ('new')").executeUpdate());
            Outcomes.same(0, s.createMutationQuery("insert into Label (word) values ('new') on conflict(word) do nothing").executeUpdate());
            Outcomes.same(1, s.createMutationQuery("delete from Label where word = 'new'").executeUpdate());
            Outcomes.same(3, s.createMutationQuery("insert into Animal (name) select title from Post where author.name = 'Cid'").executeUpdate());
            Outcomes.same(3, s.createMutationQuery("delete from Animal").executeUpdate());
            for (int i = 0; i < 3; i++) s.persist(new Note());
            Outcomes.same(3, s.createMutationQuery("update versioned Person set active = false where balance < 5").executeUpdate());
        });
        test("criteria", s -> {
            var builder = s.getCriteriaBuilder();
            var query = builder.createQuery(Person.class);
            var root = query.from(Person.class);
            query.where(builder.and(builder.like(root.get("name"), "%n%"), builder.greaterThan(root.get("balance"), BigDecimal.ONE), builder.isNotNull(root.get("made")))).orderBy(builder.desc(root.get("name")));
            Outcomes.same("Dan", s.createQuery(query).getResultList().get(0).name);
        });
        test("native queries and entities", s -> {
            Outcomes.same("Ann", s.createNativeQuery("select p.*, upper(name) as loud from person p where name = ?1", Person.class).setParameter(1, "Ann").getSingleResult().name);
            Outcomes.same(2, s.createNativeQuery("select :a + 1", Integer.class).setParameter("a", 1).getSingleResult());
        });
        test("functions and procedures of the database", s -> {
            s.createNativeMutationQuery("create procedure doubled(in a int, inout b int) language plpgsql as $$ begin b := a * 2; end $$").executeUpdate();
            s.createNativeMutationQuery("create function tripled(a int) returns int language sql as 'select a * 3'").executeUpdate();
            var call = s.createStoredProcedureCall("doubled");
            call.registerParameter(1, Integer.class, ParameterMode.IN);
            call.registerParameter(2, Integer.class, ParameterMode.INOUT);
            call.setParameter(1, 21).setParameter(2, 0);
            Outcomes.same(42, call.getOutputParameterValue(2));
            Outcomes.same(9, s.createQuery("select function('tripled', 3)", Integer.class).getSingleResult());
        });
        test("inheritance: joined, single table, a table each", s -> {
            Circle circle = new Circle();
            circle.color = "red";
            circle.radius = 1.5;
            s.persist(circle);
            s.persist(new Cat());
            s.persist(new Animal());
            Truck truck = new Truck();
            truck.load = 7;
            s.persist(truck);
            s.flush();
            s.clear();
            Outcomes.same(Circle.class, Hibernate.getClass(s.createQuery("from Shape", Shape.class).getSingleResult()));
            Outcomes.same(2, s.createQuery("from Animal", Animal.class).getResultList().size());
            Outcomes.same(7, s.createQuery("select treat(v as Truck).load from Vehicle v", Integer.class).getSingleResult());
            Outcomes.same(1, s.createMutationQuery("update Shape set color = 'blue'").executeUpdate());
            Outcomes.same(1, s.createMutationQuery("delete from Shape").executeUpdate());
        });
        test("soft deletion, restrictions", s -> {
            s.remove(s.createQuery("from Note order by id", Note.class).setMaxResults(1).getSingleResult());
            Outcomes.same(2L, s.createQuery("select count(*) from Note", Long.class).getSingleResult());
            s.createNativeMutationQuery("insert into visible (id, hidden) values (1, true), (2, false)").executeUpdate();
            Outcomes.same(1, s.createQuery("from Visible", Visible.class).getResultList().size());
        });
        Outcomes.test("optimistic locks", () -> {
            try (Session one = factory.openSession(); Session other = factory.openSession()) {
                one.beginTransaction();
                other.beginTransaction();
                Person first = person(one, "Cid");
                Person second = person(other, "Cid");
                first.email = "one@x";
                one.getTransaction().commit();
                second.email = "other@x";
                try {
                    other.getTransaction().commit();
                    throw new AssertionError("committed");
                } catch (OptimisticLockException expected) {
                    Outcomes.same("one@x", Outcomes.ask("select email from person where name = 'Cid'"));
                }
            }
        });
        Outcomes.test("pessimistic locks: no wait, skip locked, timeout", () -> in(one -> {
            one.find(Person.class, person(one, "Ann").id, LockModeType.PESSIMISTIC_WRITE);
            in(other -> Outcomes.same("Bob", other.createSelectionQuery("from Person order by name", Person.class).setMaxResults(1)
                .setHibernateLockMode(org.hibernate.LockMode.UPGRADE_SKIPLOCKED).getSingleResult().name));
            try {
                in(other -> other.createSelectionQuery("from Person where name = 'Ann'", Person.class).setHibernateLockMode(org.hibernate.LockMode.UPGRADE_NOWAIT).getSingleResult());
                throw new AssertionError("locked twice");
            } catch (PessimisticLockException | LockTimeoutException expected) {
                Outcomes.same(true, expected.getMessage() != null);
            }
        }));
        test("a lock of the nullable side is refused", s -> Outcomes.fails("nullable side", () ->
            s.createNativeQuery("select p.name from person p left join post q on q.author_id = p.id for update", String.class).getResultList()));
        Outcomes.test("constraints by their names", () -> {
            for (String[] bad : new String[][] {{"uq_email", "insert into person (id, version, name, active, made, email) values (1001, 0, 'x', true, now(), 'ann@x.org')"}, {"balance_is_positive", "insert into person (id, version, name, active, made, balance) values (1002, 0, 'x', true, now(), -1)"}}) {
                try {
                    in(s -> s.createNativeMutationQuery(bad[1]).executeUpdate());
                    throw new AssertionError("inserted");
                } catch (ConstraintViolationException e) {
                    Outcomes.same(bad[0], e.getConstraintName());
                }
            }
        });
        test("scrolling and streams", s -> {
            try (var scroll = s.createSelectionQuery("select name from Person order by name", String.class).setFetchSize(2).scroll(ScrollMode.FORWARD_ONLY)) {
                int rows = 0;
                while (scroll.next()) rows++;
                Outcomes.same(4, rows);
            }
            try (var stream = s.createSelectionQuery("from Post", Post.class).setFetchSize(3).getResultStream()) {
                Outcomes.same(8L, stream.count());
            }
            try (var scroll = s.createSelectionQuery("select name from Person order by name", String.class).scroll(ScrollMode.SCROLL_INSENSITIVE)) {
                scroll.last();
                Outcomes.same("Dan", scroll.get());
                scroll.previous();
                Outcomes.same("Cid", scroll.get());
            }
        });
        Outcomes.test("a stateless session upserts", () -> {
            try (var s = factory.openStatelessSession()) {
                s.beginTransaction();
                s.upsert(new Label("l0"));
                s.upsert(new Label("l9"));
                s.insert(new Label("l8"));
                s.getTransaction().commit();
            }
            Outcomes.same("5", Outcomes.ask("select count(*) from label"));
        });
        Outcomes.test("statement timeouts", () -> Outcomes.fails("cancel", () -> in(s -> s.createNativeQuery("select cast(pg_sleep(10) as text)", String.class).setTimeout(1).getResultList())));
        Outcomes.test("schema: drop", () -> {
            factory.close();
            metadata("drop").buildSessionFactory().close();
            Outcomes.same("0", Outcomes.ask("select count(*) from pg_class where relnamespace = 'public'::regnamespace and relname not like 'nick%' and relkind in ('r', 'S')"));
        });
        System.exit(0);
    }
}
