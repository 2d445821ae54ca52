package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// scheduled returns backups in a test directory whose make writes the time into the file.
func scheduled(t *testing.T, every time.Duration, keep int) *backups {
	return &backups{
		dir: filepath.Join(t.TempDir(), "backups"), series: plainSeries, every: every, keep: keep,
		log: slog.New(slog.DiscardHandler), now: time.Now, one: make(chan struct{}, 1), asking: make(chan struct{}, 1),
		made: func(time.Time, error) {},
		make: func(_ context.Context, file string) (engine.Backup, error) {
			now := time.Now().UTC()
			return engine.Backup{File: file, TakenAt: now}, os.WriteFile(file, []byte(now.String()), 0o600)
		},
	}
}

// during runs the backups for a while and returns the files in their directory.
func during(t *testing.T, b *backups, d time.Duration) (names []string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error)
	go func() { over <- b.run(ctx) }()
	time.Sleep(d)
	synctest.Wait()
	stop()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("run = %v, want it cancelled", err)
	}
	entries, err := os.ReadDir(b.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// turns are those of a server that must wait each time.
type turns struct {
	waits []time.Duration
	back  int
}

func (s *turns) BackupTurn(context.Context, time.Duration) (wait time.Duration, giveBack func(context.Context) error,
	err error) {
	if len(s.waits) > 0 {
		wait, s.waits = s.waits[0], s.waits[1:]
	}
	return wait, func(context.Context) error { s.back++; return nil }, nil
}

func nameAt(t time.Time) string { return "kagzi-" + t.UTC().Format(backupStamp) + ".db" }

func TestScheduledBackups(t *testing.T) {
	t.Run("makes one at once, then per interval, and keeps the newest", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			got := during(t, scheduled(t, time.Hour, 2), 3*time.Hour+time.Minute)
			want := []string{nameAt(begun.Add(2 * time.Hour)), nameAt(begun.Add(3 * time.Hour))}
			if !slices.Equal(got, want) {
				t.Fatalf("files = %v, want %v", got, want)
			}
		})
	})
	t.Run("keeps the new backup if the clock was ahead before", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := scheduled(t, time.Hour, 2)
			begun := time.Now()
			var want []string
			for _, ahead := range []time.Duration{100 * time.Hour, 200 * time.Hour} {
				name := nameAt(begun.Add(ahead))
				if err := errors.Join(os.MkdirAll(b.dir, 0o700),
					os.WriteFile(filepath.Join(b.dir, name), nil, 0o600)); err != nil {
					t.Fatal(err)
				}
				want = append(want, name)
			}
			want[0] = nameAt(begun.Add(time.Hour))
			if got := during(t, b, time.Hour+time.Minute); !slices.Equal(got, want) {
				t.Fatalf("files = %v, want %v", got, want)
			}
		})
	})
	t.Run("makes backups after restarts if the clock was ahead",
		func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := scheduled(t, time.Hour, 10)
				b.made = func(at time.Time, err error) {
					if now := time.Now(); err != nil || at.After(now) {
						t.Errorf("at %s the last backup is told to be of %s (%v)", now, at, err)
					}
				}
				begun := time.Now()
				ahead := nameAt(begun.Add(1000 * time.Hour))
				if err := errors.Join(os.MkdirAll(b.dir, 0o700),
					os.WriteFile(filepath.Join(b.dir, ahead), nil, 0o600)); err != nil {
					t.Fatal(err)
				}
				var got []string
				for range 4 { // each start ends before the interval is over
					got = during(t, b, 31*time.Minute)
					for _, f := range b.facts() {
						if f.Name == "last" && f.Value > moment(time.Now()) {
							t.Errorf("the last backup is said to be of %s", f.Value)
						}
					}
				}
				if want := []string{nameAt(begun), nameAt(begun.Add(time.Hour)), nameAt(begun.Add(2 * time.Hour)),
					ahead}; !slices.Equal(got, want) {
					t.Fatalf("files = %v, want %v", got, want)
				}
			})
		})
	t.Run("continues if the clock is set back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := scheduled(t, time.Hour, 10)
			begun := time.Now()
			b.now = func() time.Time {
				if now := time.Now(); now.Before(begun.Add(30*time.Minute + time.Second)) {
					return now
				}
				return time.Now().Add(-24 * time.Hour)
			}
			got := during(t, b, 100*time.Minute)
			want := []string{nameAt(begun.Add(-24*time.Hour + 31*time.Minute)),
				nameAt(begun.Add(-24*time.Hour + 91*time.Minute)), nameAt(begun)}
			if !slices.Equal(got, want) {
				t.Fatalf("files = %v, want %v", got, want)
			}
		})
	})
	t.Run("after a restart waits one interval since the last", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := scheduled(t, time.Hour, 10)
			begun := time.Now()
			during(t, b, 10*time.Minute)
			got := during(t, b, 49*time.Minute)
			if !slices.Equal(got, []string{nameAt(begun)}) {
				t.Fatalf("files after 59 minutes = %v, want the first alone", got)
			}
			if got = during(t, b, 2*time.Minute); !slices.Equal(
				got, []string{nameAt(begun), nameAt(begun.Add(time.Hour))}) {
				t.Fatalf("files after 61 minutes = %v, want two", got)
			}
		})
	})
	t.Run("databases sharing a directory keep separate series",
		func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := scheduled(t, time.Hour, 2), scheduled(t, time.Hour, 3)
				a.series, b.series, b.dir = "kagzi-0000000a", "orders-0000000b", a.dir
				unsaid := nameAt(time.Now().Add(-time.Minute)) // could be either database's
				if err := errors.Join(os.MkdirAll(a.dir, 0o700),
					os.WriteFile(filepath.Join(a.dir, "kagzi-0000000a-19900101T000000Z.db"), nil, 0o600),
					os.WriteFile(filepath.Join(a.dir, "orders-0000000b-19900101T000000Z.db"), nil, 0o600),
					os.WriteFile(filepath.Join(a.dir, unsaid), nil, 0o600)); err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				ctx, stop := context.WithCancel(t.Context())
				over := make(chan error)
				go func() { over <- a.run(ctx) }()
				got := during(t, b, 3*time.Hour+time.Minute)
				stop()
				if err := <-over; !errors.Is(err, context.Canceled) {
					t.Errorf("run = %v, want it cancelled", err)
				}
				var want []string
				for hour := range 4 {
					at := begun.Add(time.Duration(hour) * time.Hour).UTC().Format(backupStamp)
					if hour > 1 {
						want = append(want, a.series+"-"+at+".db")
					}
					if hour > 0 {
						want = append(want, b.series+"-"+at+".db")
					}
				}
				want = append(want, unsaid)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("files = %v, want %v", got, want)
				}
			})
		})
	t.Run("keeps foreign files and sweeps half-written ones",
		func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := scheduled(t, time.Hour, 1)
				if err := os.MkdirAll(b.dir, 0o700); err != nil {
					t.Fatal(err)
				}
				others := []string{"kagzi-19900101T000000Z.db.mine", "kagzi-monday.db", "my.db"}
				if err := os.WriteFile(filepath.Join(b.dir, "kagzi-19900101T000000Z.db"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				now := time.Now()
				ages := map[string]time.Duration{
					"kagzi-backup-1.part": 25 * time.Hour, "kagzi-backup-1.part-wal": 25 * time.Hour,
					"kagzi-backup-1.part.lock": 25 * time.Hour,
					"kagzi-backup-2.part":      23 * time.Hour, "kagzi-backup-2.part.lock": 25 * time.Hour,
					"kagzi-backup-3.part": 25 * time.Hour, "kagzi-backup-3.part-wal": 23 * time.Hour,
					"kagzi-backup-4.part-shm": 25 * time.Hour,
				}
				for _, name := range others {
					ages[name] = 0
				}
				for name, age := range ages {
					file := filepath.Join(b.dir, name)
					if err := errors.Join(os.WriteFile(file, nil, 0o600),
						os.Chtimes(file, now.Add(-age), now.Add(-age))); err != nil {
						t.Fatal(err)
					}
				}
				want := append([]string{nameAt(now), "kagzi-backup-2.part", "kagzi-backup-2.part.lock",
					"kagzi-backup-3.part", "kagzi-backup-3.part-wal"}, others...)
				slices.Sort(want)
				if got := during(t, b, time.Minute); !slices.Equal(got, want) {
					t.Fatalf("files = %v, want %v", got, want)
				}
			})
		})
	t.Run("reports a failure and retries with growing delays", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := scheduled(t, time.Hour, 1)
			var tries []time.Duration
			begun, failed := time.Now(), 0
			b.make = func(context.Context, string) (engine.Backup, error) {
				tries = append(tries, time.Since(begun))
				return engine.Backup{}, errors.New("no\x1b room")
			}
			b.made = func(_ time.Time, err error) {
				if err != nil {
					failed++
				}
			}
			during(t, b, 8*time.Minute)
			want := []time.Duration{0, time.Minute, 3 * time.Minute, 7 * time.Minute}
			if !slices.Equal(tries, want) || failed != len(want) {
				t.Errorf("tries after %v, of which %d told, want %v", tries, failed, want)
			}
			facts := b.facts()
			if last := facts[len(facts)-1]; last.Name != "last error" || !strings.Contains(last.Value, "room") {
				t.Errorf("facts = %v, want the error", facts)
			}
		})
	})
	t.Run("one of several servers makes it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := scheduled(t, time.Hour, 10)
			fake := &turns{waits: []time.Duration{20 * time.Minute, 0, 0}}
			b.turns = fake
			begun := time.Now()
			if got := during(t, b, 30*time.Minute); !slices.Equal(got, []string{nameAt(begun.Add(20 * time.Minute))}) {
				t.Fatalf("files = %v, want the one after the other server's", got)
			}
			b.make = func(context.Context, string) (engine.Backup, error) { return engine.Backup{}, errors.New("no") }
			if during(t, b, time.Hour); fake.back == 0 {
				t.Error("a turn whose backup failed was not given back")
			}
		})
	})
	t.Run("keeps its turn if deleting old backups fails", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := scheduled(t, time.Hour, 1)
			fake := &turns{waits: []time.Duration{0}}
			b.turns = fake
			b.make = func(context.Context, string) (engine.Backup, error) {
				b.dir += "\x00" // no system can list this
				return engine.Backup{}, nil
			}
			failed := 0
			b.made = func(_ time.Time, err error) {
				if err != nil {
					failed++
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if err := b.run(ctx); !errors.Is(err, context.DeadlineExceeded) || fake.back != 0 || failed != 1 {
				t.Errorf("%v; given back %d times, told of %d failures, want none given back and one told", err,
					fake.back, failed)
			}
		})
	})
	t.Run("makes none if disabled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := scheduled(t, 0, 1)
			if got := during(t, b, 100*time.Hour); len(got) > 0 || len(b.facts()) > 0 {
				t.Fatalf("files = %v, facts = %v, want none", got, b.facts())
			}
		})
	})
}

func TestDatabasesHaveSeriesOfBackupsOfTheirOwn(t *testing.T) {
	at := func(backend, database, url string) string {
		return seriesOf(engine.Description{Backend: backend, Database: database}, url)
	}
	seen := map[string]bool{}
	for _, series := range []string{
		at("sqlite", "/a/kagzi.db", "sqlite:/a/kagzi.db"), at("sqlite", "/b/kagzi.db", "sqlite:/b/kagzi.db"),
		at("sqlite", "/a/orders.db", "sqlite:/a/orders.db"),
		at("sqlite", "/a/ü.db", "sqlite:/a/ü.db"), at("sqlite", "/a/"+strings.Repeat("x", 200), "sqlite:/a/x"),
		at("postgres", "db/kagzi", "postgres://db/kagzi"),
		at("postgres", "db/kagzi", "postgres://db/kagzi?search_path=b"),
		at("postgres", "db:1/kagzi", "postgres://db:1/kagzi"),
	} {
		if seen[series] || !backupSeries.MatchString(series) || len(series) > 60 {
			t.Errorf("series %q is another's, or no name for a file", series)
		}
		seen[series] = true
	}
	if a, b := at("postgres", "db/kagzi", "postgres://db/kagzi?schema=b"),
		at("postgres", "db/kagzi", "postgres://db/kagzi?search_path=b"); a != b {
		t.Errorf("the series of a schema is %q when named with schema=, and %q with search_path=", a, b)
	}
	if a, b := at("postgres", "db/kagzi", "postgres://a:b@db/kagzi"),
		at("postgres", "db/kagzi", "postgres://a:c@db/kagzi?application_name=x"); a != b {
		t.Errorf("the series of a database is %q, and %q with another password", a, b)
	}
}

func TestARequestedBackupIsDeletedWhenSentAndExcludesOthers(t *testing.T) {
	b := scheduled(t, 0, 1)
	_, file, err := b.send(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(file); err != nil || len(text) == 0 {
		t.Errorf("the file holds %q (%v)", text, err)
	}
	if _, _, err := b.send(t.Context()); !errors.Is(err, engine.ErrPrecondition) {
		t.Errorf("another = %v, want it refused", err)
	}
	for range 2 {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(b.dir); err != nil || len(left) > 0 {
		t.Errorf("left over: %v (%v)", left, err)
	}
	b.make = func(context.Context, string) (engine.Backup, error) { return engine.Backup{}, errors.New("no") }
	if _, _, err := b.send(t.Context()); err == nil || errors.Is(err, engine.ErrPrecondition) {
		t.Errorf("one that fails = %v", err)
	}
	if len(b.one) != 0 || len(b.asking) != 0 {
		t.Error("the one that failed is in the way of others")
	}
}

func TestASlowDownloadDoesNotDelayScheduledBackups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := scheduled(t, time.Hour, 10)
		begun := time.Now()
		_, file, err := b.send(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := during(t, b, 61*time.Minute)
		if err := file.Close(); err != nil {
			t.Error(err)
		}
		if want := []string{nameAt(begun), nameAt(begun.Add(time.Hour))}; !slices.Equal(got[:min(len(got), 2)], want) {
			t.Errorf("while one is sent there are %v, want %v besides", got, want)
		}
	})
}

func TestTheHolderOfADatabaseSaysWhereItCanBeReached(t *testing.T) {
	for holder, want := range map[string]string{
		"process 1, started 2026-11-22T00:00:00Z, serving on 127.0.0.1:50051": "127.0.0.1:50051",
		"process 1, started 2026-11-22T00:00:00Z, serving on [::]:50051":      dialable("[::]:50051"),
		"process 1, started 2026-11-22T00:00:00Z, copying the database":       "",
		"serving on nowhere": "",
		"":                   "",
	} {
		if got := servingOn(holder); got != want {
			t.Errorf("%q = %q, want %q", holder, got, want)
		}
	}
}

func TestTheTicksSinceABackupAreCounted(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	s := &engine.Schedule{CronExpr: "0 * * * *", NextFireAt: now.Add(-3 * time.Hour)}
	next, skipped, err := nextTick(s, now)
	if err != nil || skipped != 4 || !next.Equal(now.Add(time.Hour)) {
		t.Errorf("next = %s after %d ticks (%v), want 11:00 after 7:00 to 10:00", next, skipped, err)
	}
	if _, _, err := nextTick(&engine.Schedule{CronExpr: "no"}, now); err == nil {
		t.Error("an expression that is none was taken")
	}
}
