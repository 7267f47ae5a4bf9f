"""What Melba publishes, read by Spark: from the folder, and by the REST catalog where ICEBERG_REST says where it is."""
import os

import pytest
from test_iceberg import begin, cursor, lake, publish  # noqa: F401

RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.6.1"
CHANGES = [
    "select 1",
    "update t set x = 'new', n = -1 where id % 10 = 0",
    "delete from t where id between 100 and 300",
    "alter table t add c text default 'dd'",
    "alter table t rename x to y",
    "update t set y = null where id < 50",
    "alter table t drop n",
]


@pytest.mark.timeout(600)
def test_spark(cursor, lake):  # noqa: F811
    sql = pytest.importorskip("pyspark.sql")
    cursor.execute(
        """create table t (id int primary key, s smallint, x text, n numeric(8, 2), u uuid, a int[], j jsonb);
        insert into t select i, i % 100, 'x' || i, i / 4.0, gen_random_uuid(), array[i, null], '{"a": 1}' from generate_series(1, 2000) i"""
    )
    begin(cursor, lake)
    publish(cursor)
    session = sql.SparkSession.builder.master("local[1]").config("spark.jars.packages", RUNTIME).config("spark.ui.enabled", "false")
    session = session.config("spark.sql.catalog.folder", "org.apache.iceberg.spark.SparkCatalog")
    session = session.config("spark.sql.catalog.folder.type", "hadoop").config("spark.sql.catalog.folder.warehouse", lake)
    catalogs, uri = ["folder"], os.environ.get("ICEBERG_REST")
    if uri:
        catalogs.append("rest")
        session = session.config("spark.sql.catalog.rest", "org.apache.iceberg.spark.SparkCatalog")
        session = session.config("spark.sql.catalog.rest.type", "rest").config("spark.sql.catalog.rest.uri", uri)
        session = session.config("spark.sql.catalog.rest.warehouse", "ice")
    spark = session.getOrCreate()
    try:
        for change in CHANGES:
            cursor.execute(change)
            publish(cursor)
            for catalog in catalogs:
                spark.sql(f"refresh table {catalog}.ice.t")
                columns = spark.table(f"{catalog}.ice.t").columns
                text = ", ".join(f"{c}::text" if c in "uj" else c for c in columns)
                cursor.execute(f"select {text} from t order by id")
                found = [tuple(row) for row in spark.sql(f"select * from {catalog}.ice.t order by id").collect()]
                assert found == cursor.fetchall(), (change, catalog)
    finally:
        spark.stop()
