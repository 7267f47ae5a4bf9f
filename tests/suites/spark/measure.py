"""What a worker reads in a second on each road, and how long TPC-H takes: the numbers of docs/handbook/spark.md.

The lake stays where LAKE says (default: a temporary folder), WORKERS says how many there are (default: 1,2). Prints Markdown."""

import os
import tempfile
import time

import lake


def seconds(work, times=3):
    """The shortest of some runs."""
    taken = []
    for _ in range(times):
        began = time.monotonic()
        work()
        taken.append(time.monotonic() - began)
    return min(taken)


def written_to_nothing(frame):
    return lambda: frame.write.format("noop").mode("overwrite").save()


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("LAKE", folder)
        connection = lake.connect()
        lake.load(connection)
        began = time.monotonic()
        lake.publish(connection)
        rows = lake.run(connection, "select count(*) from lineitem")[0][0]
        print(f"scale {os.environ['SCALE']}, {rows} rows of lineitem, published in {time.monotonic() - began:.1f} s\n")
        answers = [seconds(lambda number=number: lake.run(connection, lake.query(number)), 1) for number in range(1, 23)]
        print(f"the 22 queries on the server: {sum(answers):.1f} s; query 1 {answers[0]:.2f} s, query 6 {answers[5]:.2f} s\n")
        print("| road | workers | all columns, rows/s | 3 columns, rows/s | query 1, s | query 6, s | 22 queries, s |\n|---|---|---|---|---|---|---|")
        for workers in map(int, os.environ.get("WORKERS", "1,2").split(",")):
            spark = lake.spark(workers)
            with lake.snapshot() as snapshot:
                for road in ("iceberg", "jdbc"):
                    session = lake.over_iceberg(spark) if road == "iceberg" else lake.over_jdbc(spark, snapshot, 8)
                    wide = seconds(written_to_nothing(session.table("lineitem")))
                    narrow = seconds(written_to_nothing(session.table("lineitem").select("l_orderkey", "l_quantity", "l_shipdate")))
                    taken = [seconds(lambda number=number: session.sql(lake.query(number)).collect(), 1) for number in range(1, 23)]
                    figures = f"{rows / wide:.0f} | {rows / narrow:.0f} | {taken[0]:.1f} | {taken[5]:.1f} | {sum(taken):.1f}"
                    print(f"| {road} | {workers} | {figures} |", flush=True)
            spark.stop()
        lake.run(connection, "drop publication tpch")


if __name__ == "__main__":
    main()
