"""psycopg 3 and SQLAlchemy against a server given by PGHOST, PGPORT, PGUSER and PGDATABASE: one line a check."""

import datetime
import decimal
import os
import pathlib
import sys
import tempfile
import threading
import traceback
import uuid

import psycopg
import psycopg2
from psycopg import pq, sql
from psycopg.types.json import Json, Jsonb

CHECKS = []
OPTIONS = "options='-c timezone=UTC'"
UTC = datetime.timezone.utc


def check(function):
    CHECKS.append(function)
    return function


def connect(**options):
    return psycopg.connect(OPTIONS, **options)


def recorded_values():
    """Of ../values.tsv: type, binary form, text form."""
    path = pathlib.Path(__file__).parent.parent / "values.tsv"
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            type_name, binary, text = line.split("\t")
            yield type_name, bytes.fromhex(binary), text.encode()


def equal(actual, expected, what=""):
    assert actual == expected, f"{what} expected {expected!r}, got {actual!r}"


def fails(state, function, *args):
    try:
        function(*args)
    except psycopg.Error as error:
        equal(error.sqlstate, state, str(error))
        return error
    raise AssertionError(f"no error, expected {state}")


@check
def parameters_and_columns_in_every_format():
    """Each value goes in as text and as binary, through a table, and comes out as both."""
    with connect(autocommit=True) as connection:
        raw = connection.pgconn
        for number, type_name in enumerate(dict.fromkeys(t for t, _, _ in recorded_values())):
            table = f"psycopg_value_{number}"
            connection.execute(f"drop table if exists {table}")
            connection.execute(f"create table {table} (id int generated always as identity, v {type_name})")
            values = [(b, t) for name, b, t in recorded_values() if name == type_name]
            for binary, text in values:
                for parameter, format in ((text, pq.Format.TEXT), (binary, pq.Format.BINARY)):
                    inserted = raw.exec_params(
                        f"insert into {table} (v) values ($1)".encode(), [parameter], param_formats=[format]
                    )
                    assert inserted.status == pq.ExecStatus.COMMAND_OK, (type_name, inserted.error_message.decode())
                    equal(inserted.command_tuples, 1)
            expected = [value for value in values for _ in range(2)]
            for format in (pq.Format.TEXT, pq.Format.BINARY):
                result = raw.exec_params(f"select v from {table} order by id".encode(), [], result_format=format)
                assert result.status == pq.ExecStatus.TUPLES_OK, (type_name, result.error_message.decode())
                actual = [result.get_value(row, 0) for row in range(result.ntuples)]
                equal(actual, [v[0] if format == pq.Format.BINARY else v[1] for v in expected], f"{type_name} {format.name}")
            connection.execute(f"drop table {table}")


@check
def nulls_of_every_type():
    with connect(autocommit=True) as connection:
        for type_name in dict.fromkeys(t for t, _, _ in recorded_values()):
            row = connection.execute(f"select %s::{type_name}, %b::{type_name} is null", (None, None)).fetchone()
            equal(row, (None, True), type_name)


NATIVE = [
    ("bool", True),
    ("int2", -5),
    ("int4", 2**31 - 1),
    ("int8", -(2**63)),
    ("float4", 0.5),
    ("float8", 0.1),
    ("numeric", decimal.Decimal("-12345.678900")),
    ("text", "naïve ☕"),
    ("varchar(10)", "abc"),
    ("bytea", b"\x00\xff'\\"),
    ("date", datetime.date(2026, 2, 28)),
    ("time", datetime.time(12, 34, 56, 789)),
    ("timestamp", datetime.datetime(1999, 12, 31, 23, 59, 59, 999999)),
    ("timestamptz", datetime.datetime(2026, 3, 1, 12, 0, tzinfo=UTC)),
    ("interval", datetime.timedelta(days=3, seconds=7, microseconds=11)),
    ("uuid", uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
    ("json", {"a": [1, 2.5, None]}),
    ("jsonb", {"a": [1, 2.5, None]}),
    ("oid", 1259),
    ("int4[]", [1, None, 3]),
    ("text[]", ["a", 'q"\\,{}', None, ""]),
    ("date[]", [datetime.date(2000, 1, 1)]),
    ("float8[]", [[0.5, 1.5], [2.5, 3.5]]),
]


@check
def python_values():
    for binary in (False, True):
        with connect(autocommit=True) as connection, connection.cursor(binary=binary) as cursor:
            for type_name, value in NATIVE:
                wrapper = {"json": Json, "jsonb": Jsonb}.get(type_name, lambda v: v)
                mark = "%b" if binary else "%t"
                cursor.execute(f"select {mark}::{type_name}", (wrapper(value),))
                equal(cursor.fetchone()[0], value, f"{type_name} binary={binary}")


@check
def column_description():
    with connect(autocommit=True) as connection:
        connection.execute("drop table if exists psycopg_description")
        connection.execute("create table psycopg_description (a int, b varchar(7), c numeric(10,2), d timestamptz)")
        cursor = connection.execute("select a, b as x, c, d, 1 + 1, 'lit' from psycopg_description")
        equal([c.name for c in cursor.description], ["a", "x", "c", "d", "?column?", "?column?"])
        equal([c.type_code for c in cursor.description], [23, 1043, 1700, 1184, 23, 25])
        equal(cursor.description[1].display_size, 7)
        equal((cursor.description[2].precision, cursor.description[2].scale), (10, 2))
        connection.execute("drop table psycopg_description")


@check
def transactions():
    with connect() as connection:
        connection.execute("drop table if exists psycopg_transaction")
        connection.execute("create table psycopg_transaction (id int primary key)")
        connection.commit()
        connection.execute("insert into psycopg_transaction values (1)")
        equal(connection.info.transaction_status, pq.TransactionStatus.INTRANS)
        connection.rollback()
        with connection.transaction():
            connection.execute("insert into psycopg_transaction values (2)")
            try:
                with connection.transaction():
                    connection.execute("insert into psycopg_transaction values (3)")
                    connection.execute("insert into psycopg_transaction values (2)")
            except psycopg.errors.UniqueViolation as error:
                equal(error.diag.constraint_name, "psycopg_transaction_pkey")
            connection.execute("insert into psycopg_transaction values (4)")
        equal(connection.execute("select array_agg(id order by id) from psycopg_transaction").fetchone()[0], [2, 4])
        connection.commit()
        fails("22012", connection.execute, "select 1/0")
        equal(connection.info.transaction_status, pq.TransactionStatus.INERROR)
        fails("25P02", connection.execute, "select 1")
        connection.rollback()
        # DDL is part of the transaction.
        connection.execute("create table psycopg_rolled_back (a int)")
        connection.rollback()
        fails("42P01", connection.execute, "select * from psycopg_rolled_back")
        connection.rollback()
        connection.execute("drop table psycopg_transaction")


@check
def isolation():
    with connect() as one, connect(autocommit=True) as two:
        two.execute("drop table if exists psycopg_isolation")
        two.execute("create table psycopg_isolation (id int primary key, v int)")
        two.execute("insert into psycopg_isolation values (1, 0)")
        count = "select v from psycopg_isolation"
        for level, seen in ((psycopg.IsolationLevel.READ_COMMITTED, 1), (psycopg.IsolationLevel.REPEATABLE_READ, 0)):
            one.isolation_level = level
            two.execute("update psycopg_isolation set v = 0")
            equal(one.execute(count).fetchone(), (0,))
            two.execute("update psycopg_isolation set v = 1")
            equal(one.execute(count).fetchone(), (seen,), level.name)
            if level == psycopg.IsolationLevel.REPEATABLE_READ:
                fails("40001", one.execute, "update psycopg_isolation set v = 2")
            one.rollback()
        two.execute("drop table psycopg_isolation")


@check
def errors():
    with connect(autocommit=True) as connection:
        run = connection.execute
        run("drop table if exists psycopg_child, psycopg_parent")
        run("create table psycopg_parent (id int primary key, v int not null check (v > 0))")
        run("create table psycopg_child (id int primary key, parent int references psycopg_parent)")
        run("insert into psycopg_parent values (1, 1)")
        fails("42601", run, "selec 1")
        equal(fails("42P01", run, "select * from psycopg_missing").diag.statement_position, "15")
        equal(fails("42703", run, "select nothing from psycopg_parent").diag.message_primary, 'column "nothing" does not exist')
        fails("42883", run, "select nothing(1)")
        fails("22P02", run, "select 'x'::int")
        fails("22003", run, "select 1000000 * 1000000")
        unique = fails("23505", run, "insert into psycopg_parent values (1, 1)").diag
        equal(unique.message_detail, "Key (id)=(1) already exists.")
        equal((unique.schema_name, unique.table_name), ("public", "psycopg_parent"))
        equal(unique.constraint_name, "psycopg_parent_pkey")
        equal(fails("23502", run, "insert into psycopg_parent values (2, null)").diag.column_name, "v")
        equal(fails("23514", run, "insert into psycopg_parent values (2, 0)").diag.constraint_name, "psycopg_parent_v_check")
        equal(fails("23503", run, "insert into psycopg_child values (1, 9)").diag.severity_nonlocalized, "ERROR")
        fails("22001", run, "create table psycopg_short (v char(1)); insert into psycopg_short values ('xy')")
        fails("42P07", run, "create table psycopg_parent (a int)")
        fails("2BP01", run, "drop table psycopg_parent")
        run("drop table psycopg_child, psycopg_parent")


@check
def prepared_statements():
    with connect(autocommit=True) as connection:
        connection.prepare_threshold = 0
        for value in range(10):
            equal(connection.execute("select %s::int + 1", (value,)).fetchone(), (value + 1,))
        names = connection.execute("select count(*) from pg_prepared_statements where statement like 'select $1::int + 1'")
        equal(names.fetchone(), (1,))
        raw = connection.pgconn
        equal(raw.prepare(b"by_hand", b"select $1 + 1, $2::text").status, pq.ExecStatus.COMMAND_OK)
        described = raw.describe_prepared(b"by_hand")
        equal([described.param_type(i) for i in range(described.nparams)], [23, 25])
        equal([described.ftype(i) for i in range(described.nfields)], [23, 25])
        equal(raw.exec_prepared(b"by_hand", [b"41", b"x"]).get_value(0, 0), b"42")
        connection.execute("prepare by_sql (int) as select $1 * 2")
        equal(connection.execute("execute by_sql (21)").fetchone(), (42,))
        connection.execute("deallocate by_sql")
        fails("26000", connection.execute, "execute by_sql (21)")


@check
def a_prepared_statement_outlives_a_change_of_its_table():
    with connect(autocommit=True) as connection:
        connection.execute("drop table if exists psycopg_replan")
        connection.execute("create table psycopg_replan (a int)")
        connection.execute("insert into psycopg_replan values (1)")
        query = "select count(*) from psycopg_replan where a = %s"
        equal(connection.execute(query, (1,), prepare=True).fetchone(), (1,))
        connection.execute("alter table psycopg_replan add b text default 'x'")
        equal(connection.execute(query, (1,), prepare=True).fetchone(), (1,))
        connection.execute("drop table psycopg_replan")
        fails("42P01", lambda: connection.execute(query, (1,), prepare=True))


@check
def notifications():
    with connect(autocommit=True) as listener, connect(autocommit=True) as other:
        listener.execute("listen psycopg_news")
        listener.execute("listen psycopg_other")
        # While the listener waits, without asking.
        senders = [threading.Timer(0.2 * n, other.execute, (f"notify psycopg_news, 'number {n}'",)) for n in range(1, 4)]
        for sender in senders:
            sender.start()
        heard = list(listener.notifies(timeout=30, stop_after=3))
        equal([n.payload for n in heard], ["number 1", "number 2", "number 3"])
        equal({(n.channel, n.pid) for n in heard}, {("psycopg_news", other.info.backend_pid)})
        for sender in senders:
            sender.join()
        # Within a transaction nothing is heard; after it, all.
        listener.execute("begin")
        with other.transaction():
            other.execute("select count(pg_notify('psycopg_other', n::text)) from generate_series(1, 2000) n")
            other.execute("notify psycopg_news")
        equal(list(listener.notifies(timeout=0.2)), [])
        listener.execute("commit")
        heard = list(listener.notifies(timeout=30, stop_after=2001))
        equal([n.payload for n in heard], [str(n) for n in range(1, 2001)] + [""])
        listener.execute("unlisten *")
        other.execute("notify psycopg_news")
        equal(list(listener.notifies(timeout=0.2)), [])


@check
def server_side_cursors():
    with connect() as connection:
        with connection.cursor(name="c1") as cursor:
            cursor.itersize = 10
            cursor.execute("select i from generate_series(1, 95) i")
            equal([row[0] for row in cursor], list(range(1, 96)))
        with connection.cursor(name="c2", scrollable=True) as cursor:
            cursor.execute("select i from generate_series(1, 20) i")
            equal(cursor.fetchmany(3), [(1,), (2,), (3,)])
            cursor.scroll(5)
            equal(cursor.fetchone(), (9,))
            cursor.scroll(0, mode="absolute")
            equal(cursor.fetchone(), (1,))
        connection.commit()
        with connection.cursor(name="c3", withhold=True) as cursor:
            cursor.execute("select i from generate_series(1, 5) i")
            connection.commit()
            equal(len(cursor.fetchall()), 5)


@check
def copy():
    rows = [(1, "plain", decimal.Decimal("1.50")), (2, "tab\t and \\ and\nline", None), (3, None, decimal.Decimal("-3"))]
    with connect(autocommit=True) as connection:
        connection.execute("drop table if exists psycopg_copy")
        connection.execute("create table psycopg_copy (a int, b text, c numeric)")
        cursor = connection.cursor()
        for options in ("", "(format csv)", "(format csv, header)", "(delimiter '|', null 'nil')"):
            data = b""
            connection.execute("truncate psycopg_copy")
            with cursor.copy("copy psycopg_copy from stdin") as copy:
                for row in rows:
                    copy.write_row(row)
            equal(cursor.rowcount, 3, options)
            with cursor.copy(f"copy psycopg_copy to stdout {options}") as copy:
                data = b"".join(copy)
            connection.execute("truncate psycopg_copy")
            with cursor.copy(f"copy psycopg_copy from stdin {options}") as copy:
                for start in range(0, len(data), 7):
                    copy.write(data[start : start + 7])
            equal(connection.execute("select * from psycopg_copy order by a").fetchall(), rows, options)
        connection.execute("truncate psycopg_copy")
        with cursor.copy("copy psycopg_copy from stdin (format binary)") as copy:
            copy.set_types(["int4", "text", "numeric"])
            for row in rows:
                copy.write_row(row)
        with cursor.copy("copy (select * from psycopg_copy order by a) to stdout (format binary)") as copy:
            copy.set_types(["int4", "text", "numeric"])
            equal(list(copy.rows()), rows, "binary")

        def broken():
            with cursor.copy("copy psycopg_copy from stdin") as copy:
                copy.write(b"4\tfour\t4\nfive\tfive\t5\n")

        error = fails("22P02", broken)
        equal(error.diag.context, 'COPY psycopg_copy, line 2, column a: "five"')
        equal(connection.execute("select count(*) from psycopg_copy").fetchone(), (3,))

        def given_up():
            with cursor.copy("copy psycopg_copy from stdin") as copy:
                copy.write(b"4\tfour\t4\n")
                raise KeyError("given up")

        try:
            given_up()
        except KeyError:
            pass
        equal(connection.execute("select count(*) from psycopg_copy").fetchone(), (3,))
        connection.execute("drop table psycopg_copy")


@check
def copy_of_parquet():
    """A file goes out and in again; a damaged one loads nothing."""
    with connect() as connection, connection.cursor() as cursor:
        connection.execute("create temp table parquet_out (a int, b text, c numeric(20, 3), d timestamptz, e int[], f jsonb)")
        connection.execute(
            "insert into parquet_out select i, nullif('x' || i % 7, 'x3'), i / 8.0, timestamptz 'epoch' + i * interval '1 hour',"
            " case i % 3 when 0 then array[i, null] when 1 then '{}' end, jsonb_build_object('i', i) from generate_series(1, 10000) i"
        )
        connection.execute("create temp table parquet_in (like parquet_out)")
        rows = connection.execute("select * from parquet_out order by a").fetchall()
        for options in ["", ", compression zstd, row_group_size 999", ", compression none", ", compression lz4"]:
            with cursor.copy(f"copy parquet_out to stdout (format parquet{options})") as copy:
                data = b"".join(copy)
            equal((data[:4], data[-4:]), (b"PAR1", b"PAR1"), options)
            with cursor.copy("copy parquet_in from stdin (format parquet)") as copy:
                for start in range(0, len(data), 1001):
                    copy.write(data[start : start + 1001])
            equal(cursor.rowcount, 10000, options)
            equal(connection.execute("select * from parquet_in order by a").fetchall(), rows, options)
            connection.execute("truncate parquet_in")

        def load(data):
            with connection.transaction(), cursor.copy("copy parquet_in from stdin (format parquet)") as copy:
                copy.write(data)

        fails("22P04", load, b"no file of this kind")
        fails("22P04", load, data[:-10])
        fails("22P04", load, data[:100] + bytes(len(data) - 200) + data[-100:])
        equal(connection.execute("select count(*) from parquet_in").fetchone(), (0,))


@check
def notices():
    with connect(autocommit=True) as connection:
        seen = []
        connection.add_notice_handler(lambda d: seen.append((d.severity_nonlocalized, d.sqlstate, d.message_primary)))
        connection.execute("drop table if exists psycopg_missing")
        equal(seen, [("NOTICE", "00000", 'table "psycopg_missing" does not exist, skipping')])
        connection.execute("set client_min_messages = warning")
        connection.execute("drop table if exists psycopg_missing")
        equal(len(seen), 1)


@check
def cancel():
    with connect(autocommit=True) as connection:
        for query in ("select pg_sleep(60)", "select count(*) from generate_series(1, 100000000000) i"):
            timer = threading.Timer(0.3, connection.cancel_safe)
            timer.start()
            fails("57014", connection.execute, query)
            timer.join()
            equal(connection.execute("select 1").fetchone(), (1,))
        connection.execute("set statement_timeout = '200ms'")
        fails("57014", connection.execute, "select pg_sleep(60)")


@check
def pipelines():
    with connect(autocommit=True) as connection:
        connection.execute("drop table if exists psycopg_pipeline")
        connection.execute("create table psycopg_pipeline (id int primary key)")
        with connection.pipeline():
            cursors = [connection.execute("insert into psycopg_pipeline values (%s) returning id", (i,)) for i in range(100)]
        equal([c.fetchone()[0] for c in cursors], list(range(100)))

        def conflict():
            with connection.pipeline():
                connection.execute("insert into psycopg_pipeline values (100)")
                connection.execute("insert into psycopg_pipeline values (1)")
                connection.execute("insert into psycopg_pipeline values (101)")

        fails("23505", conflict)
        # The error rolls back the statements before it up to the last Sync.
        equal(connection.execute("select count(*) from psycopg_pipeline").fetchone(), (100,))
        cursor = connection.cursor()
        cursor.executemany("insert into psycopg_pipeline values (%s) returning id", [(i,) for i in range(200, 300)], returning=True)
        equal(cursor.fetchone(), (200,))
        connection.execute("drop table psycopg_pipeline")


@check
def settings_and_status():
    with connect(autocommit=True, application_name="psycopg test") as connection:
        equal(connection.execute("show application_name").fetchone(), ("psycopg test",))
        equal(connection.info.parameter_status("TimeZone"), "UTC")
        connection.execute("set timezone = 'Europe/Vienna'")
        equal(connection.info.parameter_status("TimeZone"), "Europe/Vienna")
        value = connection.execute("select '2026-07-01 12:00:00+00'::timestamptz").fetchone()[0]
        equal(value.utcoffset(), datetime.timedelta(hours=2))
        equal(connection.info.encoding, "utf-8")
        assert connection.info.server_version >= 150000
        identifier = sql.Identifier('odd "name"')
        connection.execute(sql.SQL("drop table if exists {}").format(identifier))
        connection.execute(sql.SQL("create table {} (a int)").format(identifier))
        connection.execute(sql.SQL("drop table {}").format(identifier))


@check
def several_statements_in_one_string():
    with connect(autocommit=True) as connection:
        connection.execute("drop table if exists psycopg_several")
        cursor = connection.execute("create table psycopg_several (a int); insert into psycopg_several values (1), (2); select 3")
        equal([cursor.statusmessage, cursor.nextset(), cursor.statusmessage], ["CREATE TABLE", True, "INSERT 0 2"])
        cursor.nextset()
        equal(cursor.fetchone(), (3,))
        # One implicit transaction: the error undoes the insert before it.
        fails("22012", connection.execute, "insert into psycopg_several values (3); select 1/0")
        fails("22012", connection.execute, "insert into psycopg_several values (4); commit; select 1/0")
        equal(connection.execute("select max(a) from psycopg_several").fetchone(), (4,))
        connection.execute("drop table psycopg_several")


@check
def sqlalchemy():
    try:
        import sqlalchemy as sa
    except ImportError:
        print("   SQLAlchemy is not installed", flush=True)
        return
    from sqlalchemy.dialects import postgresql as dialect
    from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

    class Base(DeclarativeBase):
        pass

    class Author(Base):
        __tablename__ = "sa_author"
        id: Mapped[int] = mapped_column(primary_key=True)
        name: Mapped[str] = mapped_column(sa.String(40), unique=True)
        tags: Mapped[list] = mapped_column(dialect.ARRAY(sa.Text), default=list)
        details: Mapped[dict] = mapped_column(dialect.JSONB, default=dict)
        books: Mapped[list["Book"]] = relationship(back_populates="author", cascade="all, delete-orphan")

    class Book(Base):
        __tablename__ = "sa_book"
        id: Mapped[int] = mapped_column(primary_key=True)
        title: Mapped[str] = mapped_column(index=True)
        price: Mapped[decimal.Decimal] = mapped_column(sa.Numeric(8, 2))
        added: Mapped[datetime.datetime] = mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())
        author_id: Mapped[int] = mapped_column(sa.ForeignKey("sa_author.id", ondelete="CASCADE"))
        author: Mapped[Author] = relationship(back_populates="books")

    engine = sa.create_engine("postgresql+psycopg://")
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        for number in range(3):
            author = Author(name=f"author {number}", tags=["a", "b"], details={"n": number})
            author.books = [Book(title=f"book {number}.{i}", price=decimal.Decimal(i) / 4) for i in range(4)]
            session.add(author)
        session.commit()
        totals = session.execute(
            sa.select(Author.name, sa.func.sum(Book.price)).join(Author.books).group_by(Author.name).order_by(Author.name)
        ).all()
        equal([(name, total) for name, total in totals], [(f"author {n}", decimal.Decimal("1.50")) for n in range(3)])
        equal(session.scalar(sa.select(Author.id).where(Author.details["n"].as_integer() == 2)), 3)
        session.delete(session.scalar(sa.select(Author).where(Author.name == "author 1")))
        session.commit()
        equal(session.scalar(sa.select(sa.func.count()).select_from(Book)), 8)
        session.add(Author(name="author 0"))
        try:
            session.commit()
            raise AssertionError("no error")
        except sa.exc.IntegrityError:
            session.rollback()
    inspector = sa.inspect(engine)
    equal(inspector.get_pk_constraint("sa_book")["constrained_columns"], ["id"])
    equal(inspector.get_foreign_keys("sa_book")[0]["options"], {"ondelete": "CASCADE"})
    equal([c["name"] for c in inspector.get_columns("sa_author")], ["id", "name", "tags", "details"])
    equal([i["name"] for i in inspector.get_indexes("sa_book")], ["ix_sa_book_title"])
    equal([u["column_names"] for u in inspector.get_unique_constraints("sa_author")], [["name"]])
    Base.metadata.drop_all(engine)
    engine.dispose()


@check
def large_objects_of_psycopg2():
    """psycopg 3 has none; its predecessor calls libpq's lo_ functions."""
    content = bytes(range(256)) * 1000
    with psycopg2.connect("") as connection, tempfile.TemporaryDirectory() as folder:
        created = connection.lobject(0, "wb")
        equal(created.write(content), len(content))
        equal(created.tell(), len(content))
        created.close()
        connection.commit()
        opened = connection.lobject(created.oid, "rwb")
        equal(opened.read(10), content[:10])
        equal(opened.seek(-10, 2), len(content) - 10)
        equal(opened.read(), content[-10:])
        opened.seek(100)
        opened.write(b"written")
        opened.truncate(1000)
        connection.commit()
        exported = pathlib.Path(folder) / "exported"
        connection.lobject(created.oid, "rb").export(str(exported))
        expected = content[:100] + b"written" + content[107:1000]
        equal(exported.read_bytes(), expected)
        imported = connection.lobject(0, "n", 0, str(exported))
        equal(connection.lobject(imported.oid, "rb").read(), expected)
        connection.rollback()
        connection.lobject(created.oid).unlink()
        connection.commit()
        try:
            connection.lobject(created.oid)
        except psycopg2.OperationalError:
            return
        raise AssertionError("the object is still there")


@check
def encrypted_connections():
    """The server's certificate is verified, and the password's exchange is bound to it. Only for a server that says where its is."""
    certificate = os.environ.get("MELBA_CERTIFICATE")
    if not certificate:
        return
    role = "psycopg_encrypted"
    with connect(autocommit=True) as connection:
        connection.execute(f"drop role if exists {role}")
        connection.execute(f"create role {role} login password 'secret'")
        # Only this role has to authenticate; trust for others is what clients of this machine have anyway.
        rules = f"host all {role} all scram-sha-256\nhost all all all trust"
        (directory,) = connection.execute("show data_directory").fetchone()
        connection.execute(f"copy (select unnest(string_to_array('{rules}', e'\\n'))) to '{directory}/pg_hba.conf'")
        connection.execute("select pg_reload_conf()")
    with tempfile.TemporaryDirectory() as folder:
        other = pathlib.Path(folder, "other.crt")
        other.write_text(pathlib.Path(certificate).read_text()[:200])
        for mode in ["require", "verify-ca", "verify-full"]:
            tls = {"sslmode": mode, "sslrootcert": certificate, "user": role, "channel_binding": "require"}
            with connect(**tls, password="secret") as connection:
                row = connection.execute("select ssl, version from pg_stat_ssl where pid = pg_backend_pid()").fetchone()
                equal(row, (True, "TLSv1.3"))
                equal(connection.execute("select repeat('x', 1000000)").fetchone(), ("x" * 1_000_000,))
            for wrong in [{"password": "guess"}, {"password": "secret", "sslrootcert": str(other)}]:
                try:
                    connect(**{**tls, **wrong}).close()
                except psycopg.OperationalError:
                    continue
                raise AssertionError(f"connected with {wrong}")
    with connect(autocommit=True) as connection:
        connection.execute(f"drop role {role}")


def main():
    wanted = sys.argv[1:]
    failures = 0
    for function in CHECKS:
        name = function.__name__.replace("_", " ")
        if wanted and function.__name__ not in wanted:
            continue
        try:
            function()
            print(f"ok      psycopg: {name}", flush=True)
        except Exception as error:  # any exception is a failed check
            failures += 1
            line = traceback.extract_tb(error.__traceback__)
            here = [frame.lineno for frame in line if frame.filename == __file__][-1]
            print(f"FAILED  psycopg: {name}: line {here}: {type(error).__name__}: {error}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
