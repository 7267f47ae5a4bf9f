-- EXPLAIN: its formats where they are the same in all versions, and the node of a change.
create table t (a int, b text);
explain (costs off) insert into t values (1);
explain (costs off) insert into t default values;
explain (costs off) insert into t values (1), (2);
explain (costs off) insert into t select 1;
explain (costs off) update t set a = 2 where b = 'x';
explain (costs off) delete from t where b = 'x' returning a;
explain insert into t values (1);
explain insert into t default values;
explain (format xml) create table x ();
explain (format xml) create table x as execute none;
explain (format json) execute none;
explain (format toml) select 1;
explain (format) select 1;
explain (format xml) select 1 \gdesc
explain (format json) select 1 \gdesc
explain (format yaml) select 1 \gdesc
explain select 1 \gdesc
drop table t;
