-- Roles are of the whole cluster: made once, whatever databases are made with them.
create role dump_owner login;
create role dump_reader nologin;
create role "odd, ""role""" login nosuperuser createdb connection limit 3 valid until '2040-01-01';
grant dump_reader to dump_owner with admin option;
alter role dump_owner set work_mem = '8MB';
comment on role dump_reader is 'reads';
