-- SPDX-License-Identifier: MIT
-- The demo's program: a shop's million orders, loaded, indexed, asked about and corrected by an unmodified sqlite3.
-- Each phase is marked by `pem mark`, which does nothing when nobody records. The last line says how long it took.
.bail on
PRAGMA cache_size = -131072;
PRAGMA synchronous = OFF;
CREATE TEMP TABLE clock AS SELECT julianday('now') AS begin;

.system pem mark begin load
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, product INTEGER, cents INTEGER, note TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)
INSERT INTO orders
SELECT i, (i * 7919) % 10007, (i * 104729) % 997, 100 + (i * 31) % 9901, 'order ' || i FROM n;
.system pem mark end load

.system pem mark begin index
CREATE INDEX orders_by_customer ON orders (customer);
.system pem mark end index

.system pem mark begin query
SELECT 'orders', count(*) FROM orders;
SELECT 'best product', product, sum(cents) FROM orders GROUP BY product ORDER BY 3 DESC LIMIT 1;
SELECT 'best customer', customer, sum(cents) FROM orders GROUP BY customer ORDER BY 3 DESC LIMIT 1;
SELECT 'notes that end in 99', count(*) FROM orders WHERE note LIKE '%99';
.system pem mark end query

.system pem mark begin update
UPDATE orders SET cents = cents * 9 / 10 WHERE product % 10 = 3;
SELECT 'after the sale', sum(cents) FROM orders;
.system pem mark end update

SELECT 'seconds', printf('%.4f', (julianday('now') - begin) * 86400) FROM clock;
