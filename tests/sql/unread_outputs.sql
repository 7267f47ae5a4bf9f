-- Outputs of a subquery that nothing reads are not computed; the rows stay the same.
CREATE TABLE sales (region text, amount int);
INSERT INTO sales VALUES ('north', 1), ('north', 0), ('south', 2), ('south', 2);
CREATE SEQUENCE calls;

-- An aggregate that nobody reads still makes one row of all, and one of each group.
SELECT count(*) FROM (SELECT sum(amount) FROM sales WHERE amount > 9) q;
SELECT count(*) FROM (SELECT region, sum(amount), avg(amount) FROM sales GROUP BY region) q;
SELECT region FROM (SELECT region, sum(amount) FROM sales GROUP BY region HAVING sum(amount) > 1) q;
SELECT most FROM (SELECT region, sum(amount), max(amount) AS most FROM sales GROUP BY region ORDER BY sum(amount) LIMIT 1) q;

-- What would fail does not when nobody reads it.
SELECT region FROM (SELECT region, sum(1 / amount) FROM sales GROUP BY region) q ORDER BY region;
SELECT region FROM (SELECT region, 1 / amount FROM sales OFFSET 0) q ORDER BY region;
SELECT region, failing FROM (SELECT region, 1 / amount AS failing FROM sales OFFSET 0) q ORDER BY region;

-- Volatile functions are called and sets make their rows.
SELECT region FROM (SELECT region, nextval('calls') FROM sales OFFSET 0) q ORDER BY region;
SELECT currval('calls');
SELECT region FROM (SELECT region, generate_series(1, amount) FROM sales) q ORDER BY region;

-- Rows that are compared are compared by all columns.
SELECT region FROM (SELECT DISTINCT region, amount FROM sales) q ORDER BY region;
SELECT region FROM (SELECT DISTINCT ON (amount) region, amount, 1 AS one FROM sales ORDER BY amount, region) q ORDER BY region;
SELECT region FROM (SELECT region, amount FROM sales UNION SELECT region, 7 FROM sales) q ORDER BY region;

-- The readers may be a condition, a join, a row, a sibling, a window or a subquery.
SELECT region FROM (SELECT region, sum(amount) AS total FROM sales GROUP BY region) q WHERE total > 1 ORDER BY region;
SELECT q.region, s.amount FROM (SELECT region, max(amount) AS most FROM sales GROUP BY region) q JOIN sales s ON s.amount = q.most
ORDER BY 1, 2;
SELECT q FROM (SELECT region, sum(amount) AS total FROM sales GROUP BY region) q ORDER BY q;
SELECT q.region, l.twice FROM (SELECT region, sum(amount) AS total FROM sales GROUP BY region) q, LATERAL (SELECT q.total * 2 AS twice) l
ORDER BY 1;
SELECT region, rank() OVER (ORDER BY total) FROM (SELECT region, sum(amount) AS total, count(*) FROM sales GROUP BY region) q;
SELECT region, (SELECT count(*) FROM sales s WHERE s.amount < q.total)
FROM (SELECT region, sum(amount) AS total, min(amount) FROM sales GROUP BY region) q ORDER BY region;
SELECT region FROM (SELECT region, row_number() OVER (ORDER BY amount) AS place, count(*) OVER () FROM sales) q WHERE place = 1;
WITH changed AS (
    UPDATE sales SET amount = q.total FROM (SELECT region, sum(amount) AS total, max(amount) FROM sales GROUP BY region) q
    WHERE q.region = sales.region RETURNING sales.*)
SELECT * FROM changed ORDER BY region;
SELECT region FROM (SELECT region, sum(amount), grouping(region) AS part FROM sales GROUP BY ROLLUP (region)) q ORDER BY region;

DROP TABLE sales;
DROP SEQUENCE calls;
