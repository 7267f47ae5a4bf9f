// pgx against a server given by PGHOST, PGPORT, PGUSER and PGDATABASE: one line a check.
package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

type check struct {
	name string
	run  func(ctx context.Context, conn *pgx.Conn)
}

var checks = []check{
	{"parameters and columns in every format", everyFormat},
	{"go values in every query mode", goValues},
	{"transactions", transactions},
	{"errors", reportedErrors},
	{"prepared statements", preparedStatements},
	{"batches", batches},
	{"portals with row limits", portals},
	{"copy", copying},
	{"notices", notices},
	{"cancel", cancelling},
}

const text, binary int16 = 0, 1

// valuesFile is the first argument.
func recordedValues() (types []string, values map[string][][2][]byte) {
	data, err := os.ReadFile(os.Args[1])
	must(err)
	values = map[string][][2][]byte{}
	for _, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.SplitN(line, "\t", 3)
		raw, err := hex.DecodeString(parts[1])
		must(err)
		if _, seen := values[parts[0]]; !seen {
			types = append(types, parts[0])
		}
		values[parts[0]] = append(values[parts[0]], [2][]byte{[]byte(parts[2]), raw})
	}
	return types, values
}

func everyFormat(ctx context.Context, conn *pgx.Conn) {
	types, values := recordedValues()
	raw := conn.PgConn()
	for number, name := range types {
		table := fmt.Sprintf("pgx_value_%d", number)
		run(ctx, conn, "drop table if exists "+table)
		run(ctx, conn, fmt.Sprintf("create table %s (id serial, v %s)", table, name))
		insert := fmt.Sprintf("insert into %s (v) values ($1)", table)
		for _, value := range values[name] {
			for _, format := range []int16{text, binary} {
				result := raw.ExecParams(ctx, insert, [][]byte{value[format]}, nil, []int16{format}, nil).Read()
				must(result.Err)
			}
		}
		for _, format := range []int16{text, binary} {
			result := raw.ExecParams(ctx, "select v from "+table+" order by id", nil, nil, nil, []int16{format}).Read()
			must(result.Err)
			equal(len(result.Rows), 2*len(values[name]))
			for i, row := range result.Rows {
				if expected := values[name][i/2][format]; !bytes.Equal(row[0], expected) {
					fail("%s, format %d: expected %q, got %q", name, format, expected, row[0])
				}
			}
		}
		run(ctx, conn, "drop table "+table)
	}
}

func goValues(ctx context.Context, conn *pgx.Conn) {
	modes := []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	}
	for _, mode := range modes {
		roundTrip(ctx, conn, mode, "bool", true)
		roundTrip(ctx, conn, mode, "int2", int16(-5))
		roundTrip(ctx, conn, mode, "int4", int32(2147483647))
		roundTrip(ctx, conn, mode, "int8", int64(-9223372036854775808))
		roundTrip(ctx, conn, mode, "float4", float32(0.5))
		roundTrip(ctx, conn, mode, "float8", 0.1)
		roundTrip(ctx, conn, mode, "text", "naïve ☕ 'quoted'")
		roundTrip(ctx, conn, mode, "varchar(10)", "abc")
		roundTrip(ctx, conn, mode, "bytea", []byte{0, 255, '\'', '\\'})
		roundTrip(ctx, conn, mode, "date", time.Date(2026, 2, 28, 0, 0, 0, 0, time.UTC))
		roundTrip(ctx, conn, mode, "timestamp", time.Date(1999, 12, 31, 23, 59, 59, 999999000, time.UTC))
		roundTrip(ctx, conn, mode, "uuid", pgtype.UUID{Bytes: [16]byte{0xa0, 0xee, 15: 0x11}, Valid: true})
		roundTrip(ctx, conn, mode, "interval", pgtype.Interval{Microseconds: 7000001, Days: 3, Months: 14, Valid: true})
		roundTrip(ctx, conn, mode, "time", pgtype.Time{Microseconds: 45296789012, Valid: true})
		if mode != pgx.QueryExecModeExec && mode != pgx.QueryExecModeSimpleProtocol {
			// The other two do not ask the server for the type, and pgx needs it for a map.
			roundTrip(ctx, conn, mode, "jsonb", map[string]any{"a": []any{1.0, 2.5, nil}})
			roundTrip(ctx, conn, mode, "json", map[string]any{"a": "☕"})
		}
		roundTrip(ctx, conn, mode, "int4[]", []int32{1, 2, 3})
		roundTrip(ctx, conn, mode, "text[]", []string{"a", `q"\,{}`, ""})
		roundTrip(ctx, conn, mode, "float8[]", []float64{0.1, -2.5})
		var number pgtype.Numeric
		must(number.Scan("-12345.678900"))
		var returned string
		must(conn.QueryRow(ctx, "select ($1::numeric)::text", mode, number).Scan(&returned))
		equal(returned, "-12345.678900")
		var missing *int32
		must(conn.QueryRow(ctx, "select $1::int4", mode, nil).Scan(&missing))
		equal(missing == nil, true)
	}
}

func roundTrip[T any](ctx context.Context, conn *pgx.Conn, mode pgx.QueryExecMode, name string, value T) {
	var returned T
	if err := conn.QueryRow(ctx, fmt.Sprintf("select $1::%s", name), mode, value).Scan(&returned); err != nil {
		fail("%s, %v: %v", name, mode, err)
	}
	if !reflect.DeepEqual(returned, value) {
		fail("%s, %v: expected %v, got %v", name, mode, value, returned)
	}
}

func transactions(ctx context.Context, conn *pgx.Conn) {
	run(ctx, conn, "drop table if exists pgx_transaction")
	run(ctx, conn, "create table pgx_transaction (id int primary key)")
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	must(err)
	_, err = tx.Exec(ctx, "insert into pgx_transaction values (1)")
	state(err, "25006")
	must(tx.Rollback(ctx))
	must(pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "insert into pgx_transaction values (1)")
		must(err)
		inner := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "insert into pgx_transaction values (2), (1)")
			return err
		})
		state(inner, "23505")
		_, err = tx.Exec(ctx, "insert into pgx_transaction values (3)")
		return err
	}))
	var ids []int32
	must(conn.QueryRow(ctx, "select array_agg(id order by id) from pgx_transaction").Scan(&ids))
	equal(fmt.Sprint(ids), "[1 3]")
	run(ctx, conn, "drop table pgx_transaction")
}

func reportedErrors(ctx context.Context, conn *pgx.Conn) {
	run(ctx, conn, "drop table if exists pgx_error")
	run(ctx, conn, "create table pgx_error (id int primary key, v int check (v > 0))")
	_, err := conn.Exec(ctx, "insert into pgx_error values ($1, $2)", 1, 0)
	reported := state(err, "23514")
	equal(reported.ConstraintName, "pgx_error_v_check")
	equal(reported.Message, `new row for relation "pgx_error" violates check constraint "pgx_error_v_check"`)
	equal(reported.Detail, "Failing row contains (1, 0).")
	equal(reported.TableName, "pgx_error")
	_, err = conn.Exec(ctx, "select nothing from pgx_error")
	equal(state(err, "42703").Position, int32(8))
	_, err = conn.Exec(ctx, "select 1/$1::int", 0)
	state(err, "22012")
	// The connection is in step after each of them.
	equal(one[int32](ctx, conn, "select 1"), 1)
	run(ctx, conn, "drop table pgx_error")
}

func preparedStatements(ctx context.Context, conn *pgx.Conn) {
	run(ctx, conn, "drop table if exists pgx_prepared")
	run(ctx, conn, "create table pgx_prepared (id int primary key, v varchar(10), n numeric(6, 2))")
	description, err := conn.Prepare(ctx, "insert", "insert into pgx_prepared values ($1, $2, $3) returning v, n")
	must(err)
	equal(fmt.Sprint(description.ParamOIDs), "[23 1043 1700]")
	equal(len(description.Fields), 2)
	equal(description.Fields[1].DataTypeOID, uint32(1700))
	equal(description.Fields[1].TypeModifier, int32(6<<16|2+4))
	equal(description.Fields[0].TableAttributeNumber, uint16(2))
	for i := 0; i < 10; i++ {
		var v, n string
		must(conn.QueryRow(ctx, "insert", i, fmt.Sprint("v", i), pgtype.Numeric{}).Scan(&v, nullText(&n)))
		equal(v, fmt.Sprint("v", i))
	}
	_, err = conn.Prepare(ctx, "wrong", "select * from pgx_missing")
	state(err, "42P01")
	must(conn.Deallocate(ctx, "insert"))
	equal(one[int64](ctx, conn, "select count(*) from pgx_prepared"), 10)
	run(ctx, conn, "drop table pgx_prepared")
}

func nullText(into *string) *pgtype.Text { return &pgtype.Text{String: *into} }

func batches(ctx context.Context, conn *pgx.Conn) {
	run(ctx, conn, "drop table if exists pgx_batch")
	run(ctx, conn, "create table pgx_batch (id int primary key, v text)")
	batch := &pgx.Batch{}
	for i := 0; i < 500; i++ {
		batch.Queue("insert into pgx_batch values ($1, $2)", i, "v")
	}
	batch.Queue("select count(*) from pgx_batch").QueryRow(func(row pgx.Row) error {
		var count int
		must(row.Scan(&count))
		equal(count, 500)
		return nil
	})
	must(conn.SendBatch(ctx, batch).Close())
	batch = &pgx.Batch{}
	batch.Queue("delete from pgx_batch")
	batch.Queue("select 1/0")
	batch.Queue("select 1")
	state(conn.SendBatch(ctx, batch).Close(), "22012")
	equal(one[int64](ctx, conn, "select count(*) from pgx_batch"), 500)
	run(ctx, conn, "drop table pgx_batch")
}

func portals(ctx context.Context, conn *pgx.Conn) {
	tx, err := conn.Begin(ctx)
	must(err)
	_, err = tx.Exec(ctx, "declare c cursor for select i from generate_series(1, 25) i")
	must(err)
	for _, expected := range []int{10, 10, 5, 0} {
		rows, err := tx.Query(ctx, "fetch 10 from c")
		must(err)
		got, err := pgx.CollectRows(rows, pgx.RowTo[int32])
		must(err)
		equal(len(got), expected)
	}
	must(tx.Commit(ctx))
	// A result that is closed before its end.
	rows, err := conn.Query(ctx, "select i from generate_series(1, 100000) i")
	must(err)
	equal(rows.Next(), true)
	rows.Close()
	must(rows.Err())
}

func copying(ctx context.Context, conn *pgx.Conn) {
	run(ctx, conn, "drop table if exists pgx_copy")
	run(ctx, conn, "create table pgx_copy (a int, b text, c timestamptz, d float8[], e jsonb)")
	when := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	rows := make([][]any, 10000)
	for i := range rows {
		rows[i] = []any{i, fmt.Sprint("text ", i), when.Add(time.Duration(i) * time.Second), []float64{float64(i), 0.5}, map[string]int{"i": i}}
	}
	count, err := conn.CopyFrom(ctx, pgx.Identifier{"pgx_copy"}, []string{"a", "b", "c", "d", "e"}, pgx.CopyFromRows(rows))
	must(err)
	equal(count, int64(len(rows)))
	equal(one[int64](ctx, conn, "select count(*) from pgx_copy where b = 'text ' || a and d[1] = a and (e->>'i')::int = a"), int64(len(rows)))
	var out bytes.Buffer
	tag, err := conn.PgConn().CopyTo(ctx, &out, "copy (select a, b from pgx_copy order by a limit 2) to stdout (format csv, header)")
	must(err)
	equal(tag.String(), "COPY 2")
	equal(out.String(), "a,b\n0,text 0\n1,text 1\n")
	_, err = conn.PgConn().CopyFrom(ctx, strings.NewReader("x\t\\N\t\\N\t\\N\t\\N\n"), "copy pgx_copy from stdin")
	state(err, "22P02")
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"pgx_copy"}, []string{"a"}, pgx.CopyFromFunc(func() ([]any, error) {
		return nil, errors.New("given up")
	}))
	equal(err != nil, true)
	equal(one[int64](ctx, conn, "select count(*) from pgx_copy"), int64(len(rows)))
	run(ctx, conn, "drop table pgx_copy")
}

func notices(ctx context.Context, _ *pgx.Conn) {
	config, err := pgx.ParseConfig("")
	must(err)
	var seen []string
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) {
		seen = append(seen, notice.Severity+" "+notice.Code+" "+notice.Message)
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	must(err)
	defer conn.Close(ctx)
	run(ctx, conn, "drop table if exists pgx_missing")
	equal(strings.Join(seen, "\n"), `NOTICE 00000 table "pgx_missing" does not exist, skipping`)
}

func cancelling(ctx context.Context, conn *pgx.Conn) {
	go func() {
		time.Sleep(300 * time.Millisecond)
		must(conn.PgConn().CancelRequest(ctx))
	}()
	_, err := conn.Exec(ctx, "select pg_sleep(60)")
	state(err, "57014")
	equal(one[int32](ctx, conn, "select 1"), 1)
}

func one[T any](ctx context.Context, conn *pgx.Conn, query string) T {
	var value T
	must(conn.QueryRow(ctx, query).Scan(&value))
	return value
}

func run(ctx context.Context, conn *pgx.Conn, query string) {
	_, err := conn.Exec(ctx, query)
	must(err)
}

func state(err error, expected string) *pgconn.PgError {
	var reported *pgconn.PgError
	if !errors.As(err, &reported) {
		fail("expected %s, got %v", expected, err)
	}
	if reported.Code != expected {
		fail("expected %s, got %s %s", expected, reported.Code, reported.Message)
	}
	return reported
}

func equal[T comparable](actual, expected T) {
	if actual != expected {
		fail("expected %v, got %v", expected, actual)
	}
}

func must(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func fail(format string, arguments ...any) { panic(fmt.Sprintf(format, arguments...)) }

func runCheck(ctx context.Context, c check) (ok bool) {
	defer func() {
		if problem := recover(); problem != nil {
			fmt.Printf("FAILED  pgx: %s: %v\n", c.name, problem)
		}
	}()
	conn, err := pgx.Connect(ctx, "")
	must(err)
	defer conn.Close(ctx)
	run(ctx, conn, "set timezone = 'UTC'")
	c.run(ctx, conn)
	fmt.Printf("ok      pgx: %s\n", c.name)
	return true
}

func main() {
	failures := 0
	for _, c := range checks {
		if !runCheck(context.Background(), c) {
			failures++
		}
	}
	if failures > 0 {
		os.Exit(1)
	}
}
