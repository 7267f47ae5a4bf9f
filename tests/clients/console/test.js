// The console in a real browser, for the server at PGHOST:PGPORT: each view is used, at two widths, light and dark.
// Fails on an error in the browser's console, on a violation of the content security policy, and on a page wider than its window.

const assert = require("node:assert");
const { spawn } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const puppeteer = require("puppeteer-core");

const MELBA = process.env.MELBA ?? path.join(__dirname, "../../../target/debug/melba");
const SERVER = `host=${process.env.PGHOST ?? "127.0.0.1"} port=${process.env.PGPORT ?? 5432}`;
const USER = process.env.PGUSER ?? "postgres";
const DATABASE = process.env.PGDATABASE ?? "postgres";
// Without `..`, which the browser takes for no place to save in.
const SCREENSHOTS = path.resolve(process.env.SCREENSHOTS);
const MARKUP = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>";

const REPORT = "<!doctype html><title>a report</title><style>h1 { color: rgb(1, 2, 3) }</style><h1>measured</h1><script>document.title = 'owned'</script>";
const reportsFolder = () => {
  const folder = path.join(SCREENSHOTS, "reports");
  fs.mkdirSync(path.join(folder, "tpcb"), { recursive: true });
  fs.writeFileSync(path.join(folder, "tpcb", "results.html"), REPORT);
  return folder;
};

const started = () => new Promise((done, fail) => {
  const child = spawn(MELBA, ["console", SERVER, "--listen", "127.0.0.1:0", "--reports", reportsFolder()], { stdio: ["ignore", "pipe", "inherit"] });
  child.stdout.on("data", (text) => done({ child, url: /http:\S+/.exec(text)[0] }));
  child.on("exit", (code) => fail(new Error(`melba console ended with ${code}`)));
});

const test = async (page, url, problems) => {
  const click = (text) => page.locator(`::-p-xpath(//main//button[text()=${JSON.stringify(text)}])`).setTimeout(10000).click();
  const waitFor = (selector) => page.waitForSelector(selector, { timeout: 10000 });
  const textOf = (selector) => page.$eval(selector, (element) => element.textContent);
  const settled = (wanted, what) => page.waitForFunction(wanted, { timeout: 10000 }).catch(() => { throw new Error(`it never happened: ${what}`); });
  const go = async (view) => {
    await page.evaluate((hash) => { location.hash = hash; }, view);
    await waitFor("main h1");
  };
  const run = async (sql) => {
    await page.$eval("#sql", (element, text) => {
      element.value = text;
      element.setSelectionRange(0, 0);
      element.focus();
    }, sql);
    await page.keyboard.down("Control");
    await page.keyboard.down("Shift");
    await page.keyboard.press("Enter");
    await page.keyboard.up("Shift");
    await page.keyboard.up("Control");
  };
  const picture = async (name) => {
    await page.evaluate(() => new Promise((done) => setTimeout(done, 150)));
    for (const [width, height] of [[1200, 800], [360, 740]]) {
      for (const scheme of ["light", "dark"]) {
        await page.setViewport({ width, height });
        await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        if (wide > width) problems.push(`${name} is ${wide} px wide in a window of ${width} px`);
        await page.screenshot({ path: path.join(SCREENSHOTS, `${name}-${width}-${scheme}.png`) });
      }
    }
    await page.setViewport({ width: 1200, height: 800 });
  };

  await page.goto(url);
  await waitFor("form.login");
  await picture("login");
  const logIn = async (user, database) => {
    await page.$eval("[name=user]", (e, v) => { e.value = v; }, user);
    await page.$eval("[name=database]", (e, v) => { e.value = v; }, database);
    await page.locator("form.login button").click();
  };
  await logIn(USER, "no such database");
  await waitFor(".error");
  assert.match(await textOf(".error"), /3D000/);
  await logIn(USER, DATABASE);
  await waitFor("#sql");

  // Statements, markup, paging.
  await run(`DROP TABLE IF EXISTS console_test; CREATE TABLE console_test (id int PRIMARY KEY, note text, "odd ""name" numeric);
    INSERT INTO console_test SELECT i, 'row ' || i, i * 1.5 FROM generate_series(1, 450) i; SELECT 'a;b', $$c;d$$ -- e;f`);
  await settled(() => document.querySelectorAll(".result").length === 4 && document.querySelectorAll(".results td").length === 2, "four results");
  await run(`SELECT '${MARKUP.replaceAll("'", "''")}' AS "<b>bold</b>", NULL AS nothing, repeat('x', 100000) AS long`);
  await settled(() => document.querySelector(".results td.null"), "a row with NULL");
  assert.equal(await page.$eval(".results td", (e) => e.textContent), MARKUP);
  assert.equal(await page.$eval(".results th", (e) => e.textContent), "<b>bold</b>");
  assert.equal(await page.$("main img, main td script, main th b"), null, "values became markup");
  await run("SELECT * FROM console_test ORDER BY id");
  await settled(() => document.querySelectorAll(".results tbody tr").length === 200, "a page of rows");
  await picture("editor");
  await click("More rows");
  await settled(() => document.querySelectorAll(".results tbody tr").length === 400, "two pages");
  await click("More rows");
  await settled(() => document.querySelectorAll(".results tbody tr").length === 450, "all rows");
  for (const format of ["CSV", "JSON"]) {
    const file = path.join(SCREENSHOTS, `result.${format.toLowerCase()}`);
    fs.rmSync(file, { force: true });
    await click(`Download ${format}`);
    for (let waits = 0; waits < 100 && !fs.existsSync(file); waits += 1) await new Promise((done) => setTimeout(done, 50));
    const saved = fs.readFileSync(file, "utf8");
    if (format === "CSV") assert.equal(saved.split("\n")[450], "450,row 450,675.0");
    else assert.deepEqual(JSON.parse(saved)[449], { id: 450, note: "row 450", 'odd "name': 675 });
  }

  await run("SELECT i, i * i AS square FROM generate_series(1, 30) i");
  await settled(() => document.querySelectorAll(".results tbody tr").length === 30, "thirty rows");
  await click("Picture");
  for (const kind of ["Bars", "Histogram", "Line"]) {
    await page.select(".plot select", kind);
    await waitFor(kind === "Line" ? ".plot path.line" : ".plot rect.bar");
  }
  await picture("plot");

  // Completion.
  await page.$eval("#sql", (element) => { element.value = ""; element.focus(); });
  await page.keyboard.type("sel");
  await waitFor(".choices:not([hidden]) li");
  await page.keyboard.press("Tab");
  await page.keyboard.type(" * from console_t");
  await settled(() => document.querySelector(".choices:not([hidden]) li")?.textContent === "console_test", "the table's name");
  await page.keyboard.press("Tab");
  assert.equal(await page.$eval("#sql", (element) => element.value), "select * from console_test");

  // The error's place.
  await run("SELECT 1;\nSELECT 'é𝄞', nothing_there FROM console_test");
  await settled(() => document.querySelector(".results mark"), "a mark");
  assert.equal(await textOf(".results mark"), "nothing_there");
  await picture("error");

  // Cancel.
  await run("SELECT pg_sleep(60)");
  await settled(() => [...document.querySelectorAll("button")].some((b) => b.textContent === "Cancel" && !b.disabled), "a statement that runs");
  await page.keyboard.press("Escape");
  await settled(() => document.querySelector(".results .error")?.textContent.includes("57014"), "a cancelled statement");

  await go("overview");
  await settled(() => [...document.querySelectorAll("svg.chart path.line")].filter((path) => /L.*L/.test(path.getAttribute("d"))).length >= 4, "charts");
  await picture("overview");

  await go("tables");
  await waitFor("table.grid tbody tr");
  assert.match(await textOf("table.grid"), /console_test/);
  await picture("tables");

  await go("statements");
  await page.locator("textarea").fill("SELECT count(*) FROM console_test a JOIN console_test b USING (id) WHERE a.id > 10");
  await click("Run and show times");
  await waitFor(".plan .node meter");
  await page.locator("textarea").fill("WITH gone AS (DELETE FROM console_test RETURNING id) SELECT * FROM gone");
  await click("Run and show times");
  await settled(() => document.querySelector("main .error") || document.querySelectorAll(".plan .node").length === 3, "a plan or a refusal");
  await page.locator("textarea").fill("SELECT count(*) FROM console_test a JOIN console_test b USING (id) WHERE a.id > 10");
  await click("Run and show times");
  await waitFor(".plan .node meter");
  await picture("statements");

  await go("sessions");
  await waitFor("table.grid tbody tr");
  assert.match(await textOf("table.grid"), /melba console/);
  await picture("sessions");

  // A row is edited by its key; markup stays text.
  await go("schema/public/console_test");
  await click("Edit");
  await waitFor("dialog[open] textarea");
  await page.evaluate((text) => {
    const input = document.querySelectorAll("dialog textarea")[1];
    input.value = text;
  }, MARKUP);
  await picture("row");
  await page.evaluate(() => [...document.querySelectorAll("dialog button")].find((b) => b.textContent === "Save").click());
  await settled(() => !document.querySelector("dialog"), "a saved row");
  await settled(() => document.querySelector("main td:nth-child(3)")?.textContent.startsWith("<img"), "the new value");
  assert.equal(await page.$("main td img"), null);
  await picture("schema");

  // What a field would not give back as it was is not edited: a value that was cut, lines that end in several ways.
  await go("editor");
  await run("CREATE TABLE console_long (id int PRIMARY KEY, long text, lines text, mixed text); "
    + "INSERT INTO console_long VALUES (1, repeat('x', 9000000), E'a\\r\\nb', E'a\\nb\\r')");
  await settled(() => document.querySelectorAll(".result").length === 2, "a table with a long value");
  await go("schema/public/console_long");
  await click("Edit");
  await waitFor("dialog[open] textarea");
  assert.deepEqual(await page.$$eval("dialog textarea", (inputs) => inputs.map((input) => input.disabled)), [false, true, false, true]);
  assert.match(await textOf("dialog"), /too long to be edited here/);
  await page.evaluate(() => {
    const inputs = document.querySelectorAll("dialog textarea");
    inputs[0].value = "2";
    inputs[2].value += "\nc";
  });
  await page.evaluate(() => [...document.querySelectorAll("dialog button")].find((b) => b.textContent === "Save").click());
  await settled(() => !document.querySelector("dialog"), "a saved row");
  await go("editor");
  await run("SELECT concat_ws(' ', id, length(long), replace(lines, E'\\r\\n', '/'), length(mixed)) FROM console_long; DROP TABLE console_long");
  await settled(() => document.querySelector(".result")?.textContent.includes("2 9000000 a/b/c 4"), "the long value as it was");

  await go("import");
  await page.evaluate(() => {
    const files = new DataTransfer();
    files.items.add(new File(["id,note,\"odd \"\"name\"\n1001,\"a,b\",1\n1002,,2\n"], "console_test.csv", { type: "text/csv" }));
    document.querySelector(".drop").dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true }));
  });
  await click("Import");
  await settled(() => document.querySelector("main .notice")?.textContent === "2 rows loaded", "two rows of CSV");
  await page.evaluate(() => {
    const files = new DataTransfer();
    files.items.add(new File(["[{\"id\": 1003, \"note\": \"x\"}, {\"id\": 1003}]"], "console_test.json"));
    document.querySelector(".drop").dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true }));
  });
  await click("Import");
  await settled(() => document.querySelector("main .error")?.textContent.includes("23505"), "a key that is there already");
  await picture("import");

  // A report is a page of its own, in which nothing runs.
  await go("reports");
  await waitFor("main td a");
  await picture("reports");
  const report = await page.browser().newPage();
  await report.goto(await page.$eval("main td a", (link) => link.href));
  assert.equal(await report.title(), "a report");
  assert.equal(await report.$eval("h1", (element) => getComputedStyle(element).color), "rgb(1, 2, 3)");
  await report.close();

  await go("editor");
  await run("SELECT count(*) FROM console_test; DROP TABLE console_test");
  await settled(() => document.querySelectorAll(".result").length === 2, "two results");
  assert.equal(await textOf(".results td"), "452", "the times of a query with DELETE are shown, its effect is undone");

  await page.locator("header button").click();
  await waitFor("form.login");
  assert.equal(await page.evaluate(async () => (await fetch("/api/query", { method: "POST", body: "{}" })).status), 401, "the session is over");
  assert.notEqual(await page.title(), "owned");
};

(async () => {
  const { child, url } = await started();
  const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  const problems = [];
  try {
    const page = await browser.newPage();
    const devtools = await browser.target().createCDPSession();
    await devtools.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: SCREENSHOTS });
    // Refused logins and ended sessions are answers that the browser calls errors.
    page.on("console", (message) => {
      if (["error", "warn"].includes(message.type()) && !/status of (401|403)/.test(message.text())) problems.push(message.text());
    });
    page.on("pageerror", (e) => problems.push(String(e.stack ?? e)));
    page.on("dialog", (dialog) => dialog.accept());
    await page.evaluateOnNewDocument(() => {
      document.addEventListener("securitypolicyviolation", (e) => console.error(`policy: ${e.violatedDirective} ${e.blockedURI}`));
    });
    try {
      await test(page, url, problems);
    } catch (e) {
      problems.push(e.stack);
      await page.screenshot({ path: path.join(SCREENSHOTS, "failed.png") });
    }
  } finally {
    await browser.close();
    child.kill();
  }
  if (problems.length > 0) {
    console.error(problems.join("\n"));
    process.exit(1);
  }
  console.log(`console: all views work on ${SERVER}`);
  process.exit(0);
})();
