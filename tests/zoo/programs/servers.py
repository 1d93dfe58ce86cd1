# SPDX-License-Identifier: MIT
"""servers.py - of the zoo: servers on loopback with their clients; as an ordinary user, and started as root and dropping it"""
from zoo import program

program("redis", packages="redis-server redis-tools", version="redis-server --version", needs="redis-server redis-benchmark",
        sees="redis-server redis-benchmark", seconds=4, script=r"""
redis-server --port $PORT --bind 127.0.0.1 --dir "$TMPDIR" --save '' --io-threads 2 --daemonize no >"$TMPDIR/log" 2>&1 & server=$!
until_ready redis-cli -p $PORT ping
redis-benchmark -p $PORT -q -n 2000 -c 20 -t set,get,lpush,zadd 2>&1 | tr '\r' '\n' | grep -o '^.*requests per second' | sed 's/: .*//'
for i in $(seq 30); do echo "set k$i $i"; done | redis-cli -p $PORT | sort | uniq -c
redis-cli -p $PORT eval 'local s = 0 for i = 1, 30 do s = s + redis.call("get", "k" .. i) end return s' 0
redis-cli -p $PORT bgsave; until_ready sh -c "redis-cli -p $PORT info persistence | grep -q bgsave_in_progress:0"
redis-cli -p $PORT --rdb "$TMPDIR/copy" >/dev/null 2>&1; redis-cli -p $PORT bgrewriteaof | sed 's/scheduled/started/'; redis-cli -p $PORT dbsize  # scheduled as long as the child of --rdb lives
status=0; redis-cli -p $PORT shutdown nosave || :; wait $server || status=$?; echo "status $status"
""")

PAGES = r"""mkdir -p site; seq 5000 > site/page; seq 200000 > site/large
ask() { curl -s "http://127.0.0.1:$PORT/page" | sha256sum; curl -s "http://127.0.0.1:$PORT/large" | sha256sum
	curl -s -o /dev/null -w '%{http_code}\n' "http://127.0.0.1:$PORT/none"; }
load() { ab -q -n 4000 -c 16 "http://127.0.0.1:$PORT/page" | grep -E '^(Complete requests|Failed requests|Non-2xx)'; }
"""
NGINX = PAGES + r"""
cat > "$TMPDIR/nginx.conf" <<end
USER worker_processes 2; pid $TMPDIR/pid; error_log $TMPDIR/error; daemon off;
events { worker_connections 256; }
http { access_log $TMPDIR/access; client_body_temp_path $TMPDIR/b; proxy_temp_path $TMPDIR/p; fastcgi_temp_path $TMPDIR/f; uwsgi_temp_path $TMPDIR/u;
scgi_temp_path $TMPDIR/s; gzip on; sendfile on; server { listen 127.0.0.1:$PORT; root $PWD/site; location / { } } }
end
chmod 755 . site
nginx -e "$TMPDIR/error" -c "$TMPDIR/nginx.conf" & server=$!
until_ready curl -s "http://127.0.0.1:$PORT/page"; ask; load
wrk -t1 -c8 -d1s "http://127.0.0.1:$PORT/page" | grep -c 'requests in'
kill -HUP $server; sleep 0.3; ask
status=0; kill -QUIT $server; wait $server || status=$?; echo "status $status"; wc -l < "$TMPDIR/error"
"""
program("nginx", packages="nginx-light apache2-utils wrk curl", version="nginx -v", needs="nginx ab wrk curl", sees="nginx ab wrk curl", seconds=4,
        user="nobody", script=NGINX.replace("USER", ""))
program("nginx-from-root", packages="nginx-light apache2-utils wrk curl", version="nginx -v", needs="nginx ab wrk curl", sees="nginx ab wrk", seconds=4,
        root=True, script=NGINX.replace("USER", "user nobody nogroup;") + r"""
# The workers, which dropped root, have to be seen like their master: they serve all requests.
""")
program("apache", packages="apache2 apache2-utils curl", version="apache2 -v", needs="apache2 ab curl /usr/lib/apache2/modules/mod_mpm_event.so",
        sees="apache2 ab", seconds=4, root=True, script=PAGES + r"""
cat > "$TMPDIR/conf" <<end
ServerRoot /usr/lib/apache2
ServerName zoo
PidFile $TMPDIR/pid
ErrorLog $TMPDIR/error
Listen 127.0.0.1:$PORT
LoadModule mpm_event_module modules/mod_mpm_event.so
LoadModule authz_core_module modules/mod_authz_core.so
User nobody
Group nogroup
DefaultRuntimeDir $TMPDIR
DocumentRoot $PWD/site
<Directory />
Require all granted
</Directory>
end
chmod 755 . site
apache2 -D FOREGROUND -f "$TMPDIR/conf" & server=$!
until_ready curl -s "http://127.0.0.1:$PORT/page"; ask; load
apache2 -f "$TMPDIR/conf" -k graceful; sleep 0.3; ask
status=0; kill -TERM $server; wait $server || status=$?; echo "status $status"
""")
program("haproxy", packages="haproxy curl nginx-light", version="haproxy -v", needs="haproxy curl", sees="haproxy", seconds=3, script=r"""
mkdir site; seq 5000 > site/page
(cd site; exec /usr/bin/python3 -m http.server --bind 127.0.0.1 $PORT2 >/dev/null 2>&1) & origin=$!
cat > "$TMPDIR/conf" <<end
global
  nbthread 2
defaults
  mode http
  timeout connect 5s
  timeout client 5s
  timeout server 5s
frontend zoo
  bind 127.0.0.1:$PORT
  default_backend origin
backend origin
  server one 127.0.0.1:$PORT2
end
until_ready curl -s "http://127.0.0.1:$PORT2/page"
haproxy -W -f "$TMPDIR/conf" >/dev/null 2>&1 & server=$!
until_ready curl -sf "http://127.0.0.1:$PORT/page"
for i in 1 2 3 4 5 6; do curl -s "http://127.0.0.1:$PORT/page" | sha256sum; done
status=0; kill -USR1 $server; wait $server || status=$?; echo "status $status"; stop $origin
""")
program("memcached", packages="memcached", version="memcached -V", sees="memcached", user="nobody", script=r"""
memcached -l 127.0.0.1 -p $PORT -t 4 & server=$!
ask() { exec 3<>/dev/tcp/127.0.0.1/$PORT && printf "$1" >&3 && cat <&3 && exec 3>&-; }
until_ready ask 'quit\r\n'
for i in $(seq 200); do ask "set k$i 0 0 3\r\nabc\r\nget k$i\r\nquit\r\n"; done | sort | uniq -c
status=0; kill -TERM $server; wait $server || status=$?; echo "status $status"
""")

MARIADB = r"""
AS mariadb-install-db --no-defaults --auth-root-authentication-method=normal --skip-test-db --datadir="$TMPDIR/data" >"$TMPDIR/install" 2>&1 ||
	{ tail -n 20 "$TMPDIR/install"; exit 1; }
AS mariadbd --no-defaults --datadir="$TMPDIR/data" --socket="$TMPDIR/s" --bind-address=127.0.0.1 --port=$PORT --pid-file="$TMPDIR/pid" \
	--innodb-buffer-pool-size=32M --thread-handling=pool-of-threads >"$TMPDIR/log" 2>&1 & server=$!
sql() { mariadb --no-defaults -u root -S "$TMPDIR/s" -BN "$@"; }
until_ready sql -e 'select 1'
sql -e "create database zoo; use zoo; create table t(a int primary key auto_increment, b varchar(40), key(b)) engine=innodb;
insert into t(b) select md5(seq) from seq_1_to_20000; select count(*), min(b), max(b) from t; select left(b, 1) c, count(*) from t group by c order by c;
create table m engine=aria select * from t where a % 3 = 0; select count(*) from m join t using (b); alter table t add c int default 7; check table t"
for n in 1 2 3 4; do (for i in $(seq 40); do echo "insert into t(b) values ('$n-$i'); select count(*) from t where b like '$n-%';"; done | sql zoo | tail -n 1) & workers="${workers-} $!"; done
wait $workers; sql zoo -e "select count(*) from t"
mariadb-dump --no-defaults -u root -S "$TMPDIR/s" --skip-dump-date --compact zoo m | sha256sum
mariadb-admin --no-defaults -u root -S "$TMPDIR/s" shutdown; status=0; wait $server || status=$?; echo "status $status"
grep -c 'ERROR' "$TMPDIR/log" || :
"""
program("mariadb", packages="mariadb-server mariadb-client", version="mariadbd --version", needs="mariadbd mariadb mariadb-install-db", sees="mariadbd mariadb",
        seconds=12, limit_s=120, user="nobody", script=MARIADB.replace("AS ", ""))
program("mariadb-from-root", packages="mariadb-server mariadb-client", version="mariadbd --version", needs="mariadbd mariadb mariadb-install-db",
        sees="mariadbd mariadb", seconds=12, limit_s=120, root=True,
        script=MARIADB.replace("AS mariadb-install-db", "mariadb-install-db --user=mysql").replace("AS mariadbd --no-defaults", "mariadbd --no-defaults --user=mysql")
        .replace("AS ", "").replace("\n", '\nchown mysql "$TMPDIR"\n', 1))

# The regression tests' SQL files are in no package: these statements take the same parts of the server, and pgbench its concurrency.
SQL = r"""
create table t(a serial primary key, b text, c jsonb, d int[]);
insert into t(b, c, d) select md5(i::text), jsonb_build_object('i', i, 'k', i % 7), array[i, i % 3] from generate_series(1, 20000) i;
create index on t(b); create index on t using gin(c); create index on t using gin(d); create index on t using brin(a); analyze t;
select count(*), min(b), max(b) from t; select c->>'k' k, count(*) from t where c @> '{"k": 3}' group by k;
with recursive f(n, a, b) as (select 1, 0::numeric, 1::numeric union all select n + 1, b, a + b from f where n < 200) select a from f where n = 200;
select a, sum(a) over (partition by a % 3 order by a rows 2 preceding) from t order by a limit 5;
create function fact(n int) returns numeric language plpgsql as $$ begin if n < 2 then return 1; end if; return n * fact(n - 1); end $$; select fact(60);
create function bad() returns int language plpgsql as $$ begin perform 1 / 0; exception when division_by_zero then return -1; end $$; select bad();
select 1 / 0; begin; savepoint s; insert into t(a) values (1); rollback to s; update t set b = 'x' where a % 500 = 0; commit;
create materialized view v as select b, count(*) n from t group by b; refresh materialized view v; select max(n) from v;
set max_parallel_workers_per_gather = 2; set parallel_setup_cost = 0; set parallel_tuple_cost = 0; set min_parallel_table_scan_size = 0;
select sum(length(b)) from t; set jit = on; set jit_above_cost = 0; select sum(a * 2 + length(b)) from t;
create table p(a int, b text) partition by range (a); create table p1 partition of p for values from (0) to (100);
create trigger r before insert on p1 for each row execute function suppress_redundant_updates_trigger();
insert into p values (7, 'seven'); select tableoid::regclass, * from p; insert into p values (700, '');
select regexp_replace('zoo 77', '(\d+)', '<\1>'), to_tsvector('english', 'running programs') @@ to_tsquery('program'), xmlelement(name zoo);
copy (select a from t order by a limit 3) to stdout; listen c; notify c; vacuum full t; cluster p1; drop table t cascade;
"""
POSTGRES = r"""
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
AS "$bin/initdb" -D "$TMPDIR/data" -A trust -U zoo --no-sync --locale=C.UTF-8 >"$TMPDIR/initdb" 2>&1 || { tail "$TMPDIR/initdb"; exit 1; }
AS "$bin/postgres" -D "$TMPDIR/data" -k "$TMPDIR" -h 127.0.0.1 -p $PORT -c fsync=off -c autovacuum_naptime=1s >"$TMPDIR/log" 2>&1 & server=$!
export PGHOST=$TMPDIR PGPORT=$PORT PGUSER=zoo PGDATABASE=postgres
until_ready "$bin/psql" -c 'select 1'
"$bin/psql" -XAt -f "$MADE/zoo.sql" 2>&1 | sed -E 's/PID [0-9]+//'
"$bin/pgbench" -i -q -s 1 2>/dev/null; "$bin/pgbench" -c 6 -j 2 -t 60 2>/dev/null | grep -E 'transactions (type|actually)|failed' | sed 's/ (.*//'
"$bin/pgbench" -S -C -c 3 -t 20 2>/dev/null | grep -E 'actually'
"$bin/psql" -XAt -c 'select count(*), sum(abalance) = sum(delta) from pgbench_history, (select sum(abalance) abalance from pgbench_accounts) a group by abalance' | cut -c 1-4
"$bin/pg_dump" -t pgbench_tellers -s | grep -v '^--' | grep -v restrict | sha256sum
status=0; kill -INT $server; wait $server || status=$?; echo "status $status"
"""
for name, how, prefix in (("postgresql", {"user": "nobody"}, ""), ("postgresql-from-root", {"root": True}, '"${drop[@]}" ')):
    program(name, packages="postgresql", version="$(ls /usr/lib/postgresql/*/bin/postgres | tail -n 1) --version", needs="/usr/lib/postgresql/*/bin/postgres",
            sees="postgres psql pgbench", seconds=14, limit_s=120, prepare="cat > zoo.sql <<'end'" + SQL + "end",
            script=POSTGRES.replace("AS ", prefix).replace("\n", '\nchmod 1777 "$TMPDIR"\n', 1), **how)

program("openssh", packages="openssh-server openssh-client", version="ssh -V", needs="sshd ssh ssh-keygen", sees="sshd ssh", seconds=3, root=True, script=r"""
mkdir -p /run/sshd "$HOME/.ssh"; chmod 700 "$HOME/.ssh"
ssh-keygen -q -t ed25519 -N '' -f "$TMPDIR/host"; ssh-keygen -q -t ed25519 -N '' -f "$TMPDIR/key"; cp "$TMPDIR/key.pub" "$TMPDIR/authorized"
cat > "$TMPDIR/sshd_config" <<end
Port $PORT
ListenAddress 127.0.0.1
HostKey $TMPDIR/host
AuthorizedKeysFile $TMPDIR/authorized
PidFile $TMPDIR/pid
StrictModes no
UsePAM no
PermitRootLogin yes
Subsystem sftp internal-sftp
end
/usr/sbin/sshd -D -e -f "$TMPDIR/sshd_config" 2>"$TMPDIR/log" & server=$!
go() { ssh -F none -q -p $PORT -i "$TMPDIR/key" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "$@"; }
until_ready go root@127.0.0.1 true
go root@127.0.0.1 'echo $((6 * 7)); exit 3' || echo "status $?"
seq 100000 | go root@127.0.0.1 'cat | sha256sum'
for n in 1 2 3 4; do go root@127.0.0.1 "echo $n" & workers="${workers-} $!"; done | sort
seq 1000 > file; scp -q -F none -P $PORT -i "$TMPDIR/key" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null file root@127.0.0.1:"$PWD/copy"; cmp file copy
status=0; kill -TERM $server; wait $server || status=$?; echo "status $status"
""", env={"HOME": "/root"})
