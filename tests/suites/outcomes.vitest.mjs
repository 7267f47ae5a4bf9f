// A reporter of vitest (`--reporter`) that tells how each test ended as tests/suites/outcomes.py describes; what failed goes to the log.
import { appendFileSync } from "node:fs";
import { relative } from "node:path";

export default class {
  onTestCaseResult(test) {
    const { state, errors } = test.result();
    const name = `${relative(".", test.module.moduleId)} ${test.fullName}`.split(/\s+/).join(" ");
    appendFileSync(process.env.OUTCOMES, `${state}\t${name}\n`);
    for (const error of errors ?? []) console.error(`${name}: ${error.stack ?? error.message}`, error.cause ?? "");
  }
}
