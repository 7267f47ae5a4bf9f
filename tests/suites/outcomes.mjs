// Tests that run one after the other, each told of as tests/suites/outcomes.py describes: how it ended, a tab, its name.
import { appendFileSync } from "node:fs";

const PATIENCE = 30_000;
const tests = [];

export const connection = {
  host: process.env.PGHOST,
  port: Number(process.env.PGPORT),
  user: process.env.PGUSER,
  database: process.env.PGDATABASE,
};

export function test(name, run) {
  tests.push([name, run]);
}

/** Runs all tests, then `end`. A test that hangs is failed, and the next one is begun. */
export async function run(end) {
  for (const [name, body] of tests) {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error("late")), PATIENCE);
    });
    let outcome = "passed";
    try {
      await Promise.race([body(), late]);
    } catch (error) {
      outcome = "failed";
      console.error(`${name}: ${error.message}\n${error.stack}`);
    }
    clearTimeout(timer);
    appendFileSync(process.env.OUTCOMES, `${outcome}\t${name}\n`);
  }
  await end?.();
  process.exit(0);
}
