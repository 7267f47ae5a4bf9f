"""TPC-H on a server, as published tables, and in Spark."""

import decimal
import math
import os
import re
from pathlib import Path

from melba.spark import Snapshot
from pg8000 import dbapi
from pyspark.sql import SparkSession

HERE = Path(__file__).resolve().parent
QUERIES = HERE.parents[1] / "tpch"
TABLES = ["region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem"]
# Changes of all kinds, which leave answers to all queries.
CHANGES = [
    "update lineitem set l_discount = l_discount + 0.01, l_shipdate = l_shipdate + 3 where l_orderkey % 7 = 0",
    "delete from lineitem where l_orderkey % 11 = 3",
    "delete from lineitem where ctid < '(0,500)'",
    "insert into lineitem select l_orderkey, l_partkey, l_suppkey, l_linenumber + 10, l_quantity, l_extendedprice, l_discount, l_tax, 'R', "
    "l_linestatus, l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode, l_comment from lineitem where l_orderkey % 13 = 1",
    "update orders set o_orderdate = o_orderdate + 10, o_totalprice = o_totalprice * 1.5 where o_orderkey % 5 = 0",
    "delete from orders where o_orderkey % 17 = 2",
    "update customer set c_acctbal = c_acctbal + 100, c_mktsegment = 'BUILDING' where c_custkey % 3 = 0",
    "update partsupp set ps_supplycost = ps_supplycost / 2 where ps_partkey % 9 = 0",
    "update supplier set s_acctbal = s_acctbal - 50 where s_suppkey % 2 = 0",
    "delete from part where p_partkey % 19 = 0",
]


def address():
    return {"host": os.environ.get("PGHOST", "127.0.0.1"), "port": int(os.environ.get("PGPORT", "5432"))}


def account():
    found = {"user": os.environ.get("PGUSER", "postgres"), "database": os.environ.get("PGDATABASE", "postgres")}
    if "PGPASSWORD" in os.environ:
        found["password"] = os.environ["PGPASSWORD"]
    return found


def connect():
    connection = dbapi.connect(**address(), **account())
    connection.autocommit = True
    return connection


def snapshot():
    return Snapshot(**address(), **account())


def run(connection, statement):
    cursor = connection.cursor()
    cursor.execute(statement)
    return [tuple(row) for row in cursor.fetchall()] if cursor.description else []


def is_melba(connection):
    return "Melba" in run(connection, "select version()")[0][0]


def load(connection):
    """The tables, with varchar for char: blanks at the end count in Spark, and mean nothing in PostgreSQL. They are made once."""
    if run(connection, "select to_regclass('lineitem')")[0][0]:
        for table in TABLES:
            run(connection, f"delete from {table}")
            fill(connection, table)
        return
    for statement in re.sub(r"\bchar\(", "varchar(", (QUERIES / "schema.sql").read_text()).split(";"):
        if statement.strip():
            run(connection, statement)
    for table in TABLES:
        fill(connection, table)


def fill(connection, table):
    with open(Path(os.environ["TABLES"]) / f"{table}.csv", "rb") as file:
        connection.cursor().execute(f"copy {table} from stdin (format csv, header)", stream=file)
    run(connection, f"vacuum analyze {table}")


def query(number):
    return (QUERIES / f"{number}.sql").read_text().strip().rstrip(";")


def spark(workers=2):
    """Workers are processes with one core and 1 GB each."""
    builder = SparkSession.builder.master(f"local-cluster[{workers},1,1024]").appName("melba")
    for name, value in {
        "spark.jars": os.environ["SPARK_JARS"],
        "spark.driver.memory": "1g",
        "spark.executor.memory": "1024m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(2 * workers),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.network.timeout": "120s",
        "spark.sql.catalog.melba": "org.apache.iceberg.spark.SparkCatalog",
        **catalog(),
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def catalog():
    rest = os.environ.get("ICEBERG_REST")
    if rest:
        return {
            "spark.sql.catalog.melba.type": "rest",
            "spark.sql.catalog.melba.uri": rest,
            "spark.sql.catalog.melba.warehouse": f"{account()['database']}/tpch",
        }
    return {"spark.sql.catalog.melba.type": "hadoop", "spark.sql.catalog.melba.warehouse": os.environ["LAKE"]}


def publish(connection):
    """A snapshot of all tables, made and read when it is asked for."""
    if not run(connection, "select 1 from pg_publication where pubname = 'tpch'"):
        tables = ", ".join(TABLES)
        options = f"format = 'iceberg', location = 'file://{os.environ['LAKE']}', snapshot_interval = '0'"
        run(connection, f"create publication tpch for table {tables} with ({options})")
    run(connection, "select melba_publish('tpch')")


def over_iceberg(session):
    """A session whose tables are the published ones."""
    session = session.newSession()
    session.sql("use melba.public")
    return session


def over_jdbc(session, of, partitions=4):
    """A session whose tables are those of a snapshot."""
    session = session.newSession()
    for table in TABLES:
        of.table(session, table, partitions).createOrReplaceTempView(table)
    return session


def is_same(one, other):
    if isinstance(one, (int, float, decimal.Decimal)) and isinstance(other, (int, float, decimal.Decimal)):
        # Spark's quotients and averages have six digits and less behind the point.
        return math.isclose(float(one), float(other), rel_tol=1e-9, abs_tol=1e-5)
    return one == other


def differences(expected, found):
    """What is wrong with an answer; empty when nothing is."""
    if len(expected) != len(found):
        return [f"{len(found)} rows instead of {len(expected)}"]
    return [
        f"row {number}: {there} instead of {row}"
        for number, (row, there) in enumerate(zip(expected, found))
        if len(row) != len(there) or not all(map(is_same, row, there))
    ][:3]
