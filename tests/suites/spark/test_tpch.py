"""TPC-H by other engines: each answer is the server's own, before and after changes, on the snapshot that was asked for."""

import os
import tempfile

import lake
import pyarrow
import pyarrow.compute
import pytest
from pyiceberg.table import StaticTable

NUMBERS = range(1, 23)
# Of a query, and of what a round begins with.
SECONDS = 300


@pytest.fixture(scope="session")
def connection():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        os.environ["LAKE"] = folder
        connection = lake.connect()
        yield connection
        if lake.is_melba(connection):
            lake.run(connection, "drop publication tpch")
        connection.close()


@pytest.fixture(scope="session")
def spark(connection):
    session = lake.spark()
    yield session
    session.stop()


@pytest.fixture(scope="session", params=["loaded", "changed"])
def at(request, connection):
    """A state of the database: its snapshot and its answers. More changes follow before anything is read."""
    lake.load(connection)
    if request.param == "changed":
        for change in lake.CHANGES:
            lake.run(connection, change)
    with lake.snapshot() as snapshot:
        snapshot.answers = [lake.run(snapshot.connection, lake.query(number)) for number in NUMBERS]
        snapshot.counts = {table: lake.run(snapshot.connection, f"select count(*) from {table}")[0][0] for table in lake.TABLES}
        snapshot.publishes = lake.is_melba(connection)
        if snapshot.publishes:
            lake.publish(connection)
        lake.run(connection, "update lineitem set l_extendedprice = l_extendedprice + 1, l_quantity = l_quantity + 1")
        lake.run(connection, "delete from orders where o_orderkey % 29 = 1")
        yield snapshot


def roads(at, road):
    if road == "iceberg" and not at.publishes:
        pytest.skip("PostgreSQL does not publish as Iceberg")


@pytest.fixture(scope="session", params=["iceberg", "jdbc"])
def session(request, at, spark):
    roads(at, request.param)
    return lake.over_iceberg(spark) if request.param == "iceberg" else lake.over_jdbc(spark, at)


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("number", NUMBERS)
def test_spark(at, session, number):
    found = [tuple(row) for row in session.sql(lake.query(number)).collect()]
    assert at.answers[number - 1], "nothing is compared"
    assert not lake.differences(at.answers[number - 1], found)


@pytest.mark.timeout(SECONDS)
def test_spark_reads_in_parts_without_a_row_twice(at, spark):
    for partitions in (1, 3, 7):
        frame = at.table(spark, "lineitem", partitions)
        assert frame.rdd.getNumPartitions() == partitions
        assert frame.count() == at.counts["lineitem"]
        assert frame.select("l_orderkey", "l_linenumber").distinct().count() == at.counts["lineitem"]


@pytest.mark.timeout(SECONDS)
def test_spark_reads_partitioned_and_empty_tables(at, spark, connection):
    lake.run(connection, 'drop table if exists "Parts"; drop table if exists nothing')
    lake.run(connection, 'create table "Parts" (id int, "Name" text) partition by range (id)')
    lake.run(connection, 'create table p1 partition of "Parts" for values from (0) to (5000)')
    lake.run(connection, 'create table p2 ("Name" text, id int)')
    lake.run(connection, 'alter table "Parts" attach partition p2 for values from (5000) to (10000)')
    lake.run(connection, """insert into "Parts" select i, 'n' || i from generate_series(0, 9999) i""")
    lake.run(connection, "create table nothing (a int)")
    with lake.snapshot() as snapshot:
        lake.run(connection, 'update "Parts" set id = 4999 where id = 9999')
        found = snapshot.table(spark, '"Parts"', 3)
        assert (found.count(), found.selectExpr("sum(id)").first()[0], found.where("Name = 'n9999'").first()[0]) == (10000, 49995000, 9999)
        assert snapshot.table(spark, "nothing", 3).count() == 0
    lake.run(connection, 'drop table "Parts"; drop table nothing')


def test_a_snapshot_is_not_read_outside_of_a_transaction(at):
    with pytest.raises(ValueError):
        at.options(fetchsize="0")


def metadata(table):
    folder = f"{os.environ['LAKE']}/public/{table}/metadata"
    with open(f"{folder}/version-hint.text") as hint:
        return f"{folder}/v{hint.read()}.metadata.json"


@pytest.fixture(scope="session")
def duck(at):
    roads(at, "iceberg")
    duckdb = pytest.importorskip("duckdb")
    # Packages of PyPI bring its extensions along.
    here = os.path.join(os.path.dirname(duckdb.__file__), "..", "duckdb_ext", "extensions")
    connection = duckdb.connect(config={"extension_directory": here, "memory_limit": "1GB"})
    try:
        connection.execute("load avro; load iceberg")
    except duckdb.Error as problem:
        pytest.skip(f"DuckDB has no extension: {str(problem).splitlines()[0]}")
    for table in lake.TABLES:
        connection.execute(f"create view {table} as from iceberg_scan('{metadata(table)}')")
    return connection


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("number", NUMBERS)
def test_duckdb(at, duck, number):
    assert not lake.differences(at.answers[number - 1], duck.execute(lake.query(number)).fetchall())


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("table", lake.TABLES)
def test_pyiceberg(at, table):
    roads(at, "iceberg")
    rows = StaticTable.from_metadata(metadata(table)).scan().to_arrow()
    kinds = {"int32": pyarrow.int64(), "decimal128(15, 2)": pyarrow.decimal128(38, 2)}
    summed = {field.name: kinds[str(field.type)] for field in rows.schema if str(field.type) in kinds}
    expected = lake.run(at.connection, f"select count(*), {', '.join(f'sum({name})' for name in summed)} from {table}")
    sums = (pyarrow.compute.sum(rows.column(name).cast(kind)).as_py() for name, kind in summed.items())
    assert not lake.differences(expected, [(rows.num_rows, *sums)])
