//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// restartPostgres is F-20: alternately graceful and immediate.
func restartPostgres(ctx context.Context, t *torture) error {
	n := 0
	return t.every(ctx, t.brief(10), t.brief(20), func() error {
		mode, name := syscall.SIGINT, "stop Postgres (fast)"
		if n++; n%2 == 0 {
			mode, name = syscall.SIGQUIT, "stop Postgres (immediate)"
		}
		t.system.fault(name, func() bool { return t.system.cluster.Shut(mode) })
		return t.system.cluster.Start(context.WithoutCancel(ctx))
	})
}

// terminateBackends is F-21.
func terminateBackends(ctx context.Context, t *torture) error {
	return t.withPostgres(ctx, func(conn *pgx.Conn) error {
		const one = `select count(pg_terminate_backend(pid)) from (
			select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() order by random() limit 1) victims`
		return t.every(ctx, 150*time.Millisecond, 250*time.Millisecond, func() (err error) {
			t.system.fault("terminate a backend", func() bool {
				ended := 0
				err = conn.QueryRow(context.WithoutCancel(ctx), one).Scan(&ended)
				return ended == 1
			})
			return err
		})
	})
}

// withPostgres passes a connection of its own to the fault.
func (t *torture) withPostgres(ctx context.Context, do func(conn *pgx.Conn) error) error {
	conn, err := t.system.cluster.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return do(conn)
}

// takeConnections is F-22: all free connections are held while a server starts that needs some. It
// must be refused, and wait.
func takeConnections(ctx context.Context, t *torture) error {
	return t.every(ctx, t.brief(2), t.brief(5), func() (err error) {
		ctx := context.WithoutCancel(ctx)
		t.system.fault("hold all connections", func() bool {
			var held []*pgx.Conn
			s := t.system.servers[len(t.system.servers)-1]
			s.kill()
			for {
				conn, err := t.system.cluster.Connect(ctx)
				if err != nil {
					break
				}
				held = append(held, conn)
			}
			started := make(chan error, 1)
			go func() { started <- s.start(ctx) }()
			t.pause(ctx, t.brief(10), t.brief(20))
			for _, conn := range held {
				conn.Close(ctx)
			}
			err = <-started
			return err == nil && s.current().Out.Has(noConnectionText)
		})
		return err
	})
}

// noConnectionText is what a server logs while it waits for a connection.
const noConnectionText = "the database accepts no more connections"

// pinRows is F-23: a transaction that stays open keeps every dead row.
func pinRows(ctx context.Context, t *torture) error {
	return t.withPostgres(ctx, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "begin isolation level repeatable read"); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "select txid_current(), count(*) from runs"); err != nil {
			return err
		}
		t.system.fault("pin xmin", func() bool { <-ctx.Done(); return true })
		return nil
	})
}

// readEverything is F-24: four analysts, each in a long transaction.
func readEverything(ctx context.Context, t *torture) error {
	var group sync.WaitGroup
	defer group.Wait()
	for range 4 {
		group.Go(func() {
			err := t.withPostgres(ctx, func(conn *pgx.Conn) error {
				if _, err := conn.Exec(ctx, "begin isolation level repeatable read"); err != nil {
					return err
				}
				for ctx.Err() == nil {
					if _, err := conn.Exec(ctx,
						"select count(*), max(length(output)) from runs join steps using (run_id)"); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil && ctx.Err() == nil {
				t.system.report("a reader: %v", err)
			}
		})
	}
	t.system.fault("read everything", func() bool { <-ctx.Done(); return true })
	return nil
}

// lockTables is F-25.
func lockTables(ctx context.Context, t *torture) error {
	return t.every(ctx, t.brief(5), t.brief(10), func() error {
		return t.withPostgres(ctx, func(conn *pgx.Conn) error {
			if _, err := conn.Exec(ctx, "begin"); err != nil {
				return ctxless(ctx, err)
			}
			_, err := conn.Exec(ctx, "lock table runs")
			if err != nil {
				return ctxless(ctx, err)
			}
			t.system.fault("lock a table", func() bool {
				t.pause(context.WithoutCancel(ctx), t.brief(10), t.brief(10)+time.Second)
				_, err := conn.Exec(context.WithoutCancel(ctx), "rollback")
				t.system.cluster.Back.Note()
				return err == nil
			})
			return nil
		})
	})
}

// ctxless returns err unless the faults are over.
func ctxless(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// startBouncer puts PgBouncer in transaction mode between the servers and Postgres.
func (r *system) startBouncer(ctx context.Context) error {
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		return fixture.NotHere("PgBouncer is not installed")
	}
	dir := filepath.Join(r.dir, "bouncer")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	owner, err := fixture.Unprivileged(dir)
	if err != nil {
		return err
	}
	config := filepath.Join(dir, "pgbouncer.ini")
	// With auth_type any, everyone is the user of the database's line.
	text := fmt.Sprintf(
		"[databases]\n* = host=%s user=postgres\n[pgbouncer]\nlisten_addr=\nunix_socket_dir=%s\nlisten_port=6432\nauth_type=any\n"+
			"pool_mode=transaction\nmax_client_conn=200\ndefault_pool_size=20\nignore_startup_parameters=extra_float_digits\n", r.cluster.Dir, dir)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return err
	}
	cmd := exec.Command(path, config)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: owner}
	if r.bouncer, err = fixture.Spawn(cmd, filepath.Join(dir, "log")); err != nil {
		return err
	}
	r.bounce = filepath.Join(dir, ".s.PGSQL.6432")
	limit := time.Now().Add(fixture.StartLimit)
	for time.Now().Before(limit) && !r.bouncer.Ended() {
		if _, err := os.Stat(r.bounce); err == nil {
			return nil
		}
		fixture.Breathe(ctx)
	}
	return fmt.Errorf("PgBouncer does not start: %s", r.bouncer.Out.Tail())
}

// promote makes a fault that kills the primary and promotes a standby, which may lag behind.
func promote(lagging bool) func(context.Context, *torture) error {
	return func(ctx context.Context, t *torture) error {
		n := 0
		return t.every(ctx, t.brief(1), t.brief(3), func() error {
			n++
			ctx := context.WithoutCancel(ctx)
			old := t.system.cluster
			next, err := old.Standby(ctx, filepath.Join(t.system.dir, fmt.Sprintf("pg-%d", n)), "hot_standby=on")
			if err != nil {
				return err
			}
			t.system.spare = next
			if !lagging {
				if err := old.Ask(ctx, "alter system set synchronous_standby_names = '*'",
					"select pg_reload_conf()"); err != nil {
					return err
				}
				if err := old.AwaitTrue(ctx,
					"select count(*) = 1 from pg_stat_replication where sync_state = 'sync'"); err != nil {
					return err
				}
			}
			t.pause(ctx, t.brief(2), t.brief(5))
			lag := span{}
			if lagging {
				if lag.from, err = next.LeaveBehind(ctx, old); err != nil {
					return err
				}
				t.pause(ctx, 2*time.Second, 3*time.Second)
			}
			t.system.fault("kill the primary", old.Kill)
			if lag.to = history.Now(); lagging {
				t.withheld = append(t.withheld, lag)
			}
			old.End() // it does not come back
			t.system.cluster, t.system.spare = next, nil
			if err := next.Promote(ctx); err != nil {
				return err
			}
			for _, s := range t.system.servers {
				s.database.Aim(next.Socket())
			}
			next.Back.Note()
			return nil
		})
	}
}
