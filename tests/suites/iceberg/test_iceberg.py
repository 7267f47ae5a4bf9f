"""What Melba publishes, read by pyiceberg and DuckDB: the answers are those of the table."""
import datetime
import decimal
import os
import tempfile
import uuid

import psycopg2
import psycopg2.extensions
import pytest
from pyiceberg.table import StaticTable

CUBE = decimal.Decimal("12345678901234567890.123456")


def connect():
    connection = psycopg2.connect(os.environ.get("ICEBERG_DSN", ""))
    connection.autocommit = True
    return connection


@pytest.fixture
def cursor():
    with connect().cursor() as cursor:
        cursor.execute("select version()")
        if "Melba" not in cursor.fetchone()[0]:
            pytest.skip("PostgreSQL does not publish as Iceberg")
        cursor.execute("set timezone = 'UTC'; drop schema if exists ice cascade; create schema ice; set search_path = ice")
        cursor.execute("select 1 from pg_publication where pubname = 'ice'")
        if cursor.fetchone():
            cursor.execute("drop publication ice")
        yield cursor


@pytest.fixture
def lake():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield folder


def publish(cursor):
    cursor.execute("select melba_publish('ice')")
    return cursor.fetchone()[0]


def metadata(lake, table, version=None):
    folder = f"{lake}/ice/{table}/metadata"
    if version is None:
        version = open(f"{folder}/version-hint.text").read()
    return f"{folder}/v{version}.metadata.json"


def by_pyiceberg(lake, table, **scan):
    table = StaticTable.from_metadata(metadata(lake, table))
    return table, table.scan(**scan).to_arrow()


def by_duckdb(lake, table, query):
    duckdb = pytest.importorskip("duckdb")
    # Packages of PyPI bring its extensions along.
    here = os.path.join(os.path.dirname(duckdb.__file__), "..", "duckdb_ext", "extensions")
    connection = duckdb.connect(config={"extension_directory": here})
    try:
        connection.execute("load avro; load iceberg")
    except duckdb.Error as problem:
        pytest.skip(f"DuckDB has no extension: {str(problem).splitlines()[0]}")
    return connection.execute(query.format(table=f"iceberg_scan('{metadata(lake, table)}')")).fetchall()


def rows_of(arrow):
    return sorted(tuple(row.values()) for row in arrow.to_pylist())


def same(cursor, lake, table, query="select * from {} order by 1"):
    cursor.execute(query.format(table))
    expected = cursor.fetchall()
    _, arrow = by_pyiceberg(lake, table)
    assert rows_of(arrow) == sorted(expected)


def begin(cursor, lake, what="table t", options=""):
    cursor.execute(
        f"create publication ice for {what} with (format = 'iceberg', location = 'file://{lake}', snapshot_interval = '0' {options})"
    )


def test_all_types(cursor, lake):
    cursor.execute(
        """create table t (b bool, s smallint, i int, l bigint, r real, d double precision, n numeric(10, 2), m numeric(26, 6), f numeric,
        x text, v varchar(5), y bytea, t date, o time, ts timestamp, tz timestamptz, u uuid, j jsonb, k json, a int[], w text[], v2 interval)"""
    )
    cursor.execute(
        """insert into t values (true, -3, 70000, 1::bigint << 40, 1.5, 2.25, 12.34, %s, 1.10, 'täxt', 'abc', '\\x00ff', '2026-02-28',
        '12:34:56.789', '2026-01-01 00:00:00.000001', '1969-12-31 23:59:59+00', '6ba7b810-9dad-11d1-80b4-00c04fd430c8', '{"a": 1}', '[1]',
        '{1,null,3}', '{a,"b c"}', '1 day 02:00'), (%s)""" % (CUBE, ", ".join(["null"] * 22))
    )
    begin(cursor, lake)
    publish(cursor)
    table, arrow = by_pyiceberg(lake, "t")
    utc = datetime.timezone.utc
    expected = dict(
        b=True, s=-3, i=70000, l=1 << 40, r=1.5, d=2.25, n=decimal.Decimal("12.34"), m=CUBE, f="1.10", x="täxt", v="abc", y=b"\x00\xff",
        t=datetime.date(2026, 2, 28), o=datetime.time(12, 34, 56, 789000), ts=datetime.datetime(2026, 1, 1, 0, 0, 0, 1),
        tz=datetime.datetime(1969, 12, 31, 23, 59, 59, tzinfo=utc), u=uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
        j='{"a": 1}', k="[1]", a=[1, None, 3], w=["a", "b c"], v2="1 day 02:00:00",
    )
    found = [row for row in arrow.to_pylist() if row["b"]]
    assert len(found) == 1
    for name, value in expected.items():
        got = found[0][name]
        if name == "u" and isinstance(got, bytes):
            got = uuid.UUID(bytes=got)
        assert got == value, name
    assert [row for row in arrow.to_pylist() if not row["b"]] == [dict.fromkeys(expected)]
    assert str(table.schema().find_type("m")) == "decimal(26, 6)"


def test_changes(cursor, lake):
    cursor.execute("create table t (id int primary key, x text); insert into t select i, 'x' || i from generate_series(1, 5000) i")
    begin(cursor, lake)
    first = publish(cursor)
    same(cursor, lake, "t")
    cursor.execute("update t set x = 'new' where id % 100 = 0; delete from t where id between 10 and 30; insert into t values (0, null)")
    second = publish(cursor)
    assert second > first
    same(cursor, lake, "t")
    table, _ = by_pyiceberg(lake, "t")
    summary = table.current_snapshot().summary.additional_properties
    assert summary["melba.csn"] == str(second) and summary["added-records"] == "51" and summary["added-position-deletes"] == "71"
    assert publish(cursor) >= second and len(by_pyiceberg(lake, "t")[0].snapshots()) == 2, "no snapshot of nothing"
    # The first snapshot is still what it was.
    old = table.scan(snapshot_id=table.snapshots()[0].snapshot_id).to_arrow()
    assert len(old) == 5000 and "new" not in old["x"].to_pylist()
    for step in range(20):
        cursor.execute(f"update t set x = 's{step}' where id % 37 = {step}; delete from t where id = {100 + step}")
        publish(cursor)
        same(cursor, lake, "t")
    cursor.execute("truncate t; insert into t values (7, 'seven')")
    publish(cursor)
    same(cursor, lake, "t")


def test_duckdb(cursor, lake):
    cursor.execute("create table t (id int primary key, x text, n numeric(8, 2)); insert into t select i, 'x' || i, i / 4.0 from generate_series(1, 5000) i")
    begin(cursor, lake)
    publish(cursor)
    for change in ["select 1", "update t set x = 'new' where id % 100 = 0", "delete from t where id < 1000", "insert into t values (-1, null, 1.5)",
                   "alter table t add c date", "update t set c = '2026-01-01' where id > 4000", "alter table t drop x", "alter table t rename n to m"]:
        cursor.execute(change)
        publish(cursor)
        cursor.execute("select * from t order by 1")
        assert by_duckdb(lake, "t", "select * from {table} order by 1") == cursor.fetchall(), change


def test_schema_evolution(cursor, lake):
    cursor.execute("create table t (id int, a text, b int); insert into t select i, 'a' || i, i from generate_series(1, 100) i")
    begin(cursor, lake)
    publish(cursor)
    for change in ["alter table t add c date", "update t set c = '2026-01-01' where id = 1", "alter table t drop a", "alter table t add a bigint",
                   "insert into t values (0, 1, null, 1::bigint << 33)", "alter table t rename b to bb", "alter table t add d int default 5",
                   "alter table t alter bb type bigint", "alter table t alter bb type text", "alter table t rename to tt; alter table tt rename to t"]:
        cursor.execute(change)
        publish(cursor)
        cursor.execute("select * from t")
        names = [column.name for column in cursor.description]
        _, arrow = by_pyiceberg(lake, "t")
        assert arrow.column_names == names, change
        key = lambda row: tuple((value is None, value) for value in row)
        assert sorted(rows_of_unsorted(arrow), key=key) == sorted(cursor.fetchall(), key=key), change


def rows_of_unsorted(arrow):
    return [tuple(row.values()) for row in arrow.to_pylist()]


def test_tables_are_as_of_one_commit(cursor, lake):
    cursor.execute("create table a (id int, v int); create table b (id int, v int); insert into a values (1, 100); insert into b values (1, 0)")
    begin(cursor, lake, "table a, b")
    with connect() as other, other.cursor() as mover:
        import threading

        stop = threading.Event()

        def move():
            while not stop.is_set():
                mover.execute("begin; update ice.a set v = v - 1; update ice.b set v = v + 1; commit")

        thread = threading.Thread(target=move)
        thread.start()
        try:
            for _ in range(10):
                publish(cursor)
                total = sum(by_pyiceberg(lake, name)[1]["v"][0].as_py() for name in "ab")
                assert total == 100
        finally:
            stop.set()
            thread.join()


def test_mistakes(cursor, lake):
    cursor.execute("create table t (id int)")
    open(f"{lake}/foreign", "w").write("x")
    begin(cursor, lake)
    with pytest.raises(psycopg2.Error, match="files that are not of a publication"):
        publish(cursor)
    cursor.execute("select error from melba_publications where pubname = 'ice'")
    assert "files that are not" in cursor.fetchone()[0]
    assert open(f"{lake}/foreign").read() == "x"
    os.remove(f"{lake}/foreign")
    cursor.execute("insert into t values (1)")
    publish(cursor)
    cursor.execute("select error from melba_publications where pubname = 'ice'")
    assert cursor.fetchone()[0] is None
    # A table that is dropped stays on the store.
    cursor.execute("drop table t")
    publish(cursor)
    assert rows_of(by_pyiceberg(lake, "t")[1]) == [(1,)]
    cursor.execute("create table t (id text); alter publication ice add table t; insert into t values ('x')")
    publish(cursor)
    assert rows_of(by_pyiceberg(lake, "t")[1]) == [(1,)]


def test_types_that_have_no_form(cursor, lake):
    cursor.execute("create table t (id int, n numeric(5, 2)); insert into t values (1, 'NaN')")
    begin(cursor, lake)
    with pytest.raises(psycopg2.Error, match="value is no decimal"):
        publish(cursor)
    cursor.execute("update t set n = 1")
    publish(cursor)
    same(cursor, lake, "t")


def test_rest_catalog(cursor, lake):
    from pyiceberg.catalog.rest import RestCatalog
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    uri = os.environ.get("ICEBERG_REST")
    if not uri:
        pytest.skip("ICEBERG_REST does not say where the catalog is")
    cursor.execute('create table t (id int, x text); insert into t values (1, \'one\'); create table "Odd name" (id int); insert into "Odd name" values (7)')
    begin(cursor, lake, "all tables")
    publish(cursor)
    catalog = RestCatalog("melba", uri=uri, warehouse="ice")
    assert ("ice",) in catalog.list_namespaces() and catalog.namespace_exists("ice") and not catalog.namespace_exists("absent")
    assert set(catalog.list_tables("ice")) == {("ice", "t"), ("ice", "Odd name")}
    assert catalog.table_exists("ice.t") and not catalog.table_exists("ice.absent")
    assert catalog.load_table("ice.t").scan().to_arrow().to_pylist() == [{"id": 1, "x": "one"}]
    assert catalog.load_table(("ice", "Odd name")).scan().to_arrow().to_pylist() == [{"id": 7}]
    with pytest.raises(NoSuchTableError):
        catalog.load_table("ice.absent")
    with pytest.raises(NoSuchNamespaceError):
        catalog.list_tables("absent")
    cursor.execute("alter table t rename to renamed; update renamed set x = 'two'; drop table \"Odd name\"")
    publish(cursor)
    assert catalog.list_tables("ice") == [("ice", "renamed")]
    assert catalog.load_table("ice.renamed").scan().to_arrow().to_pylist() == [{"id": 1, "x": "two"}]
