"""pgcli: the queries of its completion, and its commands."""

import os

from pgcli.pgexecute import PGExecute
from pgspecial.main import PGSpecial

COMPLETION = ["schemata", "tables", "table_columns", "views", "view_columns", "databases", "foreignkeys", "functions", "datatypes", "casing"]
COMMANDS = [
    "\\d", "\\d orders", "\\d+ orders", "\\d totals", "\\d orders_id_seq", "\\dt+", "\\l", "\\l+", "\\du+", "\\dn+", "\\df twice", "\\df+",
    "\\dv+", "\\dx+", "\\dT+", "\\di+", "\\ds+", "\\dm+", "\\dE", "\\db+", "\\dD+", "\\ddp", "\\dp", "\\z", "\\sf twice", "\\dF+", "\\h select",
    "select * from totals", "explain select 1", "create temporary table x (a int); insert into x values (1)",
]

executor = PGExecute(os.environ["PGDATABASE"], os.environ["PGUSER"], os.environ.get("PGPASSWORD", ""), os.environ["PGHOST"], os.environ["PGPORT"])


def complete(name):
    list(getattr(executor, name)())


def run(command):
    for _, rows, _, status, _, success, *_ in executor.run(command, PGSpecial()):
        assert success, status
        for _ in rows or ():
            pass


with open(os.environ["OUTCOMES"], "a") as outcomes:
    for name, test, argument in [(f"pgcli completes {n}", complete, n) for n in COMPLETION] + [(f"pgcli: {c}", run, c) for c in COMMANDS]:
        print("==", name)
        try:
            test(argument)
            print(f"passed\t{name}", file=outcomes)
        except Exception as error:
            print(repr(error))
            print(f"failed\t{name}", file=outcomes)
