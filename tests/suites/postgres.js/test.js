// Runs the tests of postgres.js one after the other: each gives an array of two values, which are to be the same.
import assert from "node:assert/strict";
import { appendFileSync } from "node:fs";
import { clean } from "./bootstrap.js";

let before = Promise.resolve();
let left = 0;

export function t(name, options, body = options) {
  left += 1;
  before = before.then(async () => {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error("late")), (options.timeout ?? 5) * 1000);
    });
    let outcome = "passed";
    try {
      const [expected, got] = await Promise.all(await Promise.race([body(), late]));
      assert.equal(got, expected);
    } catch (error) {
      outcome = "failed";
      console.error(`${name}:`, error);
    }
    clearTimeout(timer);
    if (outcome === "failed") clean();
    appendFileSync(process.env.OUTCOMES, `${outcome}\t${name}\n`);
    left -= 1;
    if (left === 0) process.exit(0);
  });
}

/** A test that its authors have turned off. */
export function nt() {}
export const ot = t;

// An error outside of a test is printed; it fails no other test.
process.on("uncaughtException", (error) => console.error("outside of a test:", error));
process.on("unhandledRejection", (error) => console.error("outside of a test:", error));
