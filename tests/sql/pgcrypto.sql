-- pgcrypto and unaccent, as far as PostgreSQL 15 has them.
create extension pgcrypto;
create extension unaccent;
select digest('', 'md5'), digest('abc', 'sha1'), digest('abc', 'SHA224'), digest('abc'::bytea, 'sha256');
select digest('abc', 'sha384'), digest('abc', 'sha512'), digest(null, 'md5');
select digest('a', 'nope');
select hmac('data', 'key', 'md5'), hmac('data', 'key', 'sha1'), hmac('data'::bytea, repeat('k', 200)::bytea, 'sha256');
select hmac('data', 'key', 'sha224'), hmac('', '', 'sha384'), hmac('data', 'key', 'sha512');
select hmac('a', 'k', 'nope');
-- Ciphers.
select encrypt('', 'k', 'aes'), encrypt('a', '', 'aes'), encrypt('0123456789abcdefg', 'k', 'AES-CBC/PAD:PKCS');
select encrypt('0123456789abcdefg', repeat('k', n)::bytea, 'aes-' || m) from (values (16), (17), (24), (25), (32), (33)) k(n), (values ('cbc'), ('ecb')) m(m) order by n, m;
select encrypt_iv('0123456789abcdefg', 'key', 'iv', 'aes'), encrypt_iv('0123456789abcdefg', 'key', repeat('v', 33)::bytea, 'rijndael');
select encrypt('0123456789abcdef', 'k', 'aes/pad:none'), encrypt('', 'k', 'aes/pad:none');
select encrypt('a', 'k', 'aes/pad:none');
select encode(decrypt(encrypt(convert_to(repeat('x', n), 'utf8'), 'key', c), 'key', c), 'escape') from generate_series(14, 17) n, (values ('aes'), ('aes-ecb')) c(c) order by n, c;
select decrypt_iv(encrypt_iv('text', 'key', 'iv', 'aes'), 'key', 'iv', 'aes') = 'text', decrypt('aaaaaaaaaaaaaaaa', 'k', 'aes/pad:none');
select decrypt('aaaaaaaaaaaaaaaa', 'k', 'aes');
select encrypt('a', 'k', 'nope');
select encrypt('a', 'k', 'aes/foo:bar');
select encrypt('a', 'k', 'aes-foo');
select encrypt('a', 'k', 'aes/pad:foo');
-- Passwords.
select crypt('a', '$1$abcdefgh'), crypt('a longer one than that, much longer', '$1$abcdefghijk$'), crypt('', '$1$');
select crypt('a', '$2a$06$RQiOJ.3ELirrXwxIZY8q0OlGbBEpDmx7IRZlNYvGJ1SHXwNi2cEKK'), crypt('', '$2a$04$RQiOJ.3ELirrXwxIZY8q0O'), crypt(repeat('ä', 50), '$2a$05$/OK.fbVrR/bpIqNJ5ianF.');
select crypt('a', '$2a$06$RQiOJ');
select crypt('a', '$2a$03$RQiOJ.3ELirrXwxIZY8q0O');
select crypt('a', '');
select p = crypt('secret', p), p = crypt('Secret', p), length(p) from (select crypt('secret', gen_salt(m)) from (values ('md5'), ('bf')) v(m)) s(p);
select gen_salt('md5') ~ '^\$1\$[./0-9A-Za-z]{8}$', gen_salt('bf', 8) ~ '^\$2a\$08\$[./0-9A-Za-z]{22}$', gen_salt('bf') <> gen_salt('bf');
select gen_salt('nope');
select gen_salt('bf', 3);
select gen_salt('md5', 5);
-- Random bytes.
select length(gen_random_bytes(1)), length(gen_random_bytes(1024)), gen_random_bytes(16) <> gen_random_bytes(16), length(public.gen_random_uuid()::text);
select gen_random_bytes(0);
select gen_random_bytes(1025);
-- Armor.
select armor('zooka'), armor(''), armor(repeat('x', 100)::bytea);
select armor('a', array['k', 'l'], array['v', '']);
select dearmor(armor(repeat('x', n)::bytea)) = repeat('x', n)::bytea from generate_series(0, 100, 25) n;
select * from pgp_armor_headers(armor('a', array['k', 'l'], array['v', 'w: x']));
select dearmor('a');
select encode(dearmor(E'a message:\n\n-----BEGIN PGP MESSAGE-----\nComment: junk\n\nem9va2E=\n\n  =D5cR\n\n-----END PGP MESSAGE-----'), 'escape');
select dearmor(replace(armor('abc'), '=', '=A'));
select armor('a', array['k', 'l'], array['v']);
select armor('a', array[E'k\n'], array['v']);
select armor('a', array['k'], array[E'v\n']);
select armor('a', array['kä'], array['v']);
select armor('a', array['k', null], array['v', 'b']);
create table secret (id int, name bytea default gen_random_bytes(4), word text check (word = crypt('x', word)));
insert into secret (id, word) values (1, crypt('x', gen_salt('md5'))) returning id, length(name);
drop extension pgcrypto;
drop extension pgcrypto cascade;
-- unaccent.
select unaccent('Hôtel'), unaccent('Œuvre ßtraße'), unaccent('Łódź Ørsted'), unaccent('ёлка Й'), unaccent('日本 é'), unaccent('plain'), unaccent(null);
select unaccent('ﬁ'), unaccent('ά'), unaccent('©®«»');
drop table secret;
drop extension unaccent;
