// A reporter of mocha (`--reporter`) that tells how each test ended as tests/suites/outcomes.py describes; what failed goes to the log.
const { appendFileSync } = require("node:fs");

module.exports = class {
  constructor(runner) {
    const told = (outcome) => (test, error) => {
      appendFileSync(process.env.OUTCOMES, `${outcome}\t${test.fullTitle().split(/\s+/).join(" ")}\n`);
      if (error) console.error(`${test.fullTitle()}: ${error.stack ?? error.message}`);
    };
    runner.on("pass", told("passed"));
    runner.on("fail", told("failed"));
    runner.on("pending", told("skipped"));
  }
};
