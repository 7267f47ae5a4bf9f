-- COPY from and to programs of the server's machine.
create table t (a int, b text);
copy t from program 'printf "1\tx\n2\ty\n"';
copy t (b) from program 'seq 3' where b <> '2';
select * from t order by a, b;
copy (select * from t order by a, b) to program 'cat > /dev/null';
-- more than a pipe holds, both ways
copy t (a) from program 'seq 200000';
select count(*), sum(a) from t;
copy t to program 'cat > /dev/null';
copy t from program 'exit 3';
copy t from program 'echo 5; exit 3' csv;
copy t from program 'printf "7\tz\n"; exit 3';
select count(*) from t where a = 7;
copy t to program 'cat > /dev/null; exit 4';
copy (select 1) to program 'nosuchcommand 2> /dev/null';
copy (select 1) to program '/etc/passwd 2> /dev/null';
copy t from program 'kill -9 $$';
copy t from program 'echo a';
-- for whom
drop role if exists copy_program_user;
create role copy_program_user;
grant all on t to copy_program_user;
set role copy_program_user;
-- 18 has other words
\set VERBOSITY sqlstate
copy t to program 'true';
copy t from program 'true';
\set VERBOSITY default
reset role;
grant pg_execute_server_program to copy_program_user;
set role copy_program_user;
copy t to program 'cat > /dev/null';
reset role;
drop table t;
drop role copy_program_user;
