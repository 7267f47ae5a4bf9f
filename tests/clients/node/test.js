// node-postgres against a server given by PGHOST, PGPORT, PGUSER and PGDATABASE: one line a check.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { pipeline } = require('node:stream/promises');
const { Readable } = require('node:stream');
const { Client, Pool } = require('pg');
const Cursor = require('pg-cursor');
const copyStreams = require('pg-copy-streams');

const checks = {};
const raw = { getTypeParser: () => (value) => value };

async function connected(run, options = {}) {
  const client = new Client({ options: '-c timezone=UTC', ...options });
  await client.connect();
  try {
    return await run(client);
  } finally {
    await client.end();
  }
}

async function fails(code, promise) {
  try {
    await promise;
  } catch (error) {
    assert.equal(error.code, code, error.message);
    return error;
  }
  throw new Error(`no error, expected ${code}`);
}

/** Of ../values.tsv: type, binary form, text form. */
function recordedValues() {
  const text = fs.readFileSync(path.join(__dirname, '..', 'values.tsv'), 'utf8');
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => line.split('\t')).map(([type, hex, value]) => [type, Buffer.from(hex, 'hex'), value]);
}

checks['parameters in every format, columns as text'] = () =>
  connected(async (client) => {
    const types = [...new Set(recordedValues().map(([type]) => type))];
    for (const [number, type] of types.entries()) {
      const table = `node_value_${number}`;
      await client.query(`drop table if exists ${table}`);
      await client.query(`create table ${table} (id serial, v ${type})`);
      const expected = [];
      for (const [, binary, text] of recordedValues().filter(([of]) => of === type)) {
        // A string travels as text and a Buffer as binary.
        await client.query(`insert into ${table} (v) values ($1), ($2)`, [text, null]);
        await client.query(`insert into ${table} (v) values ($1)`, [binary]);
        expected.push(text, null, text);
      }
      // Results as text only: node-postgres decodes every result as UTF-8, so binary ones are lost in it.
      for (const queryMode of ['simple', 'extended']) {
        const query = { text: `select v from ${table} order by id`, rowMode: 'array', types: raw, queryMode };
        const { rows } = await client.query(query);
        assert.deepEqual(rows.map(([v]) => v), expected, `${type} ${queryMode}`);
      }
      await client.query(`drop table ${table}`);
    }
  });

checks['javascript values'] = () =>
  connected(async (client) => {
    const values = [
      ['bool', true],
      ['int2', -5],
      ['int4', 2147483647],
      ['int8', '9223372036854775807'],
      ['float4', 0.5],
      ['float8', 0.1],
      ['numeric', '-12345.678900'],
      ['text', 'naïve ☕'],
      ['bytea', Buffer.from([0, 255, 39, 92])],
      ['date', new Date(2026, 1, 28)],
      ['timestamptz', new Date(Date.UTC(2026, 2, 1, 12, 34, 56, 789))],
      ['uuid', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
      ['json', { a: [1, 2.5, null] }],
      ['jsonb', { a: [1, 2.5, null] }],
      ['int4[]', [1, null, 3]],
      ['text[]', ['a', 'q"\\,{}', null, '']],
      ['float8[]', [[0.5, 1.5], [2.5, 3.5]]],
    ];
    for (const [type, value] of values) {
      const { rows } = await client.query(`select $1::${type} as v`, [value]);
      assert.deepEqual(rows[0].v, value, type);
    }
    const { rows } = await client.query("select '1 day 02:03:04'::interval as v");
    assert.equal(rows[0].v.toPostgres(), '4 seconds 3 minutes 2 hours 1 days');
  });

checks.transactions = () =>
  connected(async (client) => {
    await client.query('drop table if exists node_transaction');
    await client.query('create table node_transaction (id int primary key)');
    await client.query('begin');
    await client.query('insert into node_transaction values (1)');
    await client.query('savepoint a');
    await fails('23505', client.query('insert into node_transaction values ($1)', [1]));
    await fails('25P02', client.query('select 1'));
    await client.query('rollback to a');
    await client.query('insert into node_transaction values (2)');
    const other = await connected((two) => two.query('select count(*)::int as n from node_transaction'));
    assert.equal(other.rows[0].n, 0);
    await client.query('commit');
    assert.equal((await client.query('select * from node_transaction')).rowCount, 2);
    await client.query('drop table node_transaction');
  });

checks.errors = () =>
  connected(async (client) => {
    await client.query('drop table if exists node_error');
    await client.query('create table node_error (id int primary key, v text not null)');
    await client.query("insert into node_error values (1, 'a')");
    const duplicate = await fails('23505', client.query('insert into node_error values (1, $1)', ['b']));
    assert.equal(duplicate.detail, 'Key (id)=(1) already exists.');
    assert.equal(duplicate.constraint, 'node_error_pkey');
    assert.equal(duplicate.table, 'node_error');
    assert.equal(duplicate.schema, 'public');
    assert.equal((await fails('23502', client.query('insert into node_error values (2, $1)', [null]))).column, 'v');
    assert.equal((await fails('42703', client.query('select nothing from node_error'))).position, '8');
    await fails('22P02', client.query('select $1::int', ['x']));
    await fails('08P01', client.query('select $1::int', [1, 2]));
    await fails('42P02', client.query('select $1::int', []));
    await fails('42P18', client.query('select pg_typeof($1)', [1]));
    await client.query('drop table node_error');
  });

checks['named statements'] = () =>
  connected(async (client) => {
    await client.query('drop table if exists node_named');
    await client.query('create table node_named (id int primary key, v text)');
    for (let i = 0; i < 20; i++) {
      await client.query({ name: 'insert', text: 'insert into node_named values ($1, $2)', values: [i, `v${i}`] });
    }
    for (let i = 0; i < 20; i++) {
      const { rows } = await client.query({ name: 'get', text: 'select v from node_named where id = $1', values: [i] });
      assert.equal(rows[0].v, `v${i}`);
    }
    const { rows } = await client.query('select name from pg_prepared_statements order by name');
    assert.deepEqual(rows.map((r) => r.name), ['get', 'insert']);
    await client.query('drop table node_named');
  });

checks['portals with row limits'] = () =>
  connected(async (client) => {
    const cursor = client.query(new Cursor('select i from generate_series(1, $1::int) i', [25]));
    const sizes = [];
    for (;;) {
      const rows = await cursor.read(10);
      sizes.push(rows.length);
      if (rows.length === 0) break;
    }
    assert.deepEqual(sizes, [10, 10, 5, 0]);
    await cursor.close();
    const early = client.query(new Cursor('select i from generate_series(1, 1000000) i'));
    assert.equal((await early.read(3)).length, 3);
    await early.close();
    assert.equal((await client.query('select 1 as n')).rows[0].n, 1);
  });

checks.copy = () =>
  connected(async (client) => {
    await client.query('drop table if exists node_copy');
    await client.query('create table node_copy (a int, b text)');
    const lines = Array.from({ length: 20000 }, (_, i) => `${i}\ttext ${i} \\\\ \\t\n`);
    const into = client.query(copyStreams.from('copy node_copy from stdin'));
    await pipeline(Readable.from(lines), into);
    assert.equal(into.rowCount, 20000);
    const out = client.query(copyStreams.to('copy (select * from node_copy order by a) to stdout'));
    const chunks = [];
    for await (const chunk of out) chunks.push(chunk);
    assert.equal(Buffer.concat(chunks).toString(), lines.join(''));
    const broken = client.query(copyStreams.from('copy node_copy from stdin (format csv)'));
    await fails('22P04', pipeline(Readable.from(['1,2,3\n']), broken));
    assert.equal((await client.query('select count(*)::int as n from node_copy')).rows[0].n, 20000);
    await client.query('drop table node_copy');
  });

checks.notices = () =>
  connected(async (client) => {
    const seen = [];
    client.on('notice', (notice) => seen.push([notice.severity, notice.code, notice.message]));
    await client.query('drop table if exists node_missing');
    assert.deepEqual(seen, [['NOTICE', '00000', 'table "node_missing" does not exist, skipping']]);
  });

checks.cancel = () =>
  connected(async (client) => {
    const running = fails('57014', client.query('select pg_sleep(60)'));
    await connected((other) => other.query(`select pg_cancel_backend($1)`, [client.processID]));
    await running;
    assert.equal((await client.query('select 1 as n')).rows[0].n, 1);
  });

checks['a pool of connections'] = async () => {
  const pool = new Pool({ max: 8 });
  await pool.query('drop table if exists node_pool');
  await pool.query('create table node_pool (id int primary key, n int not null)');
  await pool.query('insert into node_pool values (1, 0)');
  await Promise.all(Array.from({ length: 200 }, () => pool.query('update node_pool set n = n + 1 where id = 1')));
  assert.equal((await pool.query('select n from node_pool')).rows[0].n, 200);
  await pool.query('drop table node_pool');
  await pool.end();
};

checks['several statements and empty ones'] = () =>
  connected(async (client) => {
    const results = await client.query('select 1 as a; select 2 as b, 3 as c');
    assert.deepEqual(results.map((r) => r.rows), [[{ a: 1 }], [{ b: 2, c: 3 }]]);
    assert.equal((await client.query('')).rowCount, null);
    assert.equal((await client.query(' -- nothing')).rowCount, null);
    const { fields } = await client.query('select 1 as n, null as t');
    assert.deepEqual(fields.map((f) => [f.name, f.dataTypeID]), [['n', 23], ['t', 25]]);
  });

async function main() {
  let failures = 0;
  for (const [name, run] of Object.entries(checks)) {
    if (process.argv.length > 2 && !process.argv.includes(name)) continue;
    try {
      await run();
      console.log(`ok      node-postgres: ${name}`);
    } catch (error) {
      failures++;
      const place = /test\.js:(\d+)/.exec(error.stack)?.[1];
      console.log(`FAILED  node-postgres: ${name}: line ${place}: ${String(error.message).replaceAll('\n', ' ')}`);
    }
  }
  process.exit(failures === 0 ? 0 : 1);
}

main();
