package daemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server"
)

const (
	// backupStamp is the time format in the name of a scheduled backup.
	backupStamp = "20060102T150405Z"
	// minBackupEvery is the shortest interval.
	minBackupEvery = time.Minute
	// firstRetry is the delay after a failed backup. It doubles up to the interval.
	firstRetry = time.Minute
	// staleAfter is the age from which a half-written backup counts as left by a killed server.
	staleAfter = 24 * time.Hour
	// maxSeriesName limits how much of a database's name goes into the names of its backups.
	maxSeriesName = 40
)

// backupName matches the file of a scheduled backup: its series and time. Other files are ignored.
var backupName = regexp.MustCompile(`^(.+)-([0-9]{8}T[0-9]{6}Z)\.db$`)

// backupSeries matches a series that identifies the database, as made by seriesOf.
var backupSeries = regexp.MustCompile(`^[A-Za-z0-9_]+-[0-9a-f]{8}$`)

// plainSeries is the series used by earlier versions for every database.
const plainSeries = "kagzi"

// backupPart matches a backup while it is written or sent, and the files next to it.
var backupPart = regexp.MustCompile(`^(kagzi-backup-.*\.part)(-journal|-wal|-shm|\.lock)?$`)

// backups makes scheduled backups and those requested by calls, one at a time.
type backups struct {
	make   func(ctx context.Context, file string) (engine.Backup, error)
	dir    string
	series string        // prefix of the names of scheduled backups
	every  time.Duration // 0: no scheduled backups
	keep   int
	turns  engine.BackupTurns            // nil: no other server shares the database
	made   func(at time.Time, err error) // called after each scheduled backup
	log    *slog.Logger
	now    func() time.Time // time.Now, except in tests

	one    chan struct{} // holds one token while a backup is made
	asking chan struct{} // holds one token while a requested backup is made or sent

	mu     sync.Mutex
	last   time.Time // of the newest file
	next   time.Time
	failed string // why the last try failed; empty if it did not
}

// run makes a backup one interval after the newest file in the directory, or at once if that time
// has passed.
func (b *backups) run(ctx context.Context) error {
	if b.every == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	retry := firstRetry
	for {
		at, err := b.due(b.now())
		if err == nil {
			b.plan(at)
			if err := b.sleepUntil(ctx, at); err != nil {
				return err
			}
			if b.now().Before(at) {
				continue
			}
			err = b.scheduled(ctx)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			retry = firstRetry
			continue
		}
		b.note(err)
		b.log.Error("scheduled backup failed; will retry", "error", err, "dir", b.dir, "retry_in", min(retry, b.every))
		again := b.now().Add(min(retry, b.every))
		b.plan(again)
		if err := b.sleepUntil(ctx, again); err != nil {
			return err
		}
		retry = min(2*retry, b.every)
	}
}

// sleepUntil waits in steps of at most a minute, because the clock may be set or the machine may
// sleep. It returns early if the clock was set back so far that more is left to wait than at first:
// the due time must then be computed again.
func (b *backups) sleepUntil(ctx context.Context, at time.Time) error {
	first := at.Round(0).Sub(b.now().Round(0))
	for {
		left := at.Round(0).Sub(b.now().Round(0))
		if left <= 0 || left > first {
			return ctx.Err()
		}
		timer := time.NewTimer(min(left, time.Minute))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// due returns when the next backup is due. A name more than an interval ahead was made while the
// clock was wrong; it is ignored, because waiting for it could mean no backups for a long time.
func (b *backups) due(now time.Time) (time.Time, error) {
	files, err := b.files()
	if err != nil {
		return now, err
	}
	newest := slices.IndexFunc(files, func(f backupFile) bool { return !f.at.After(now.Add(b.every)) })
	if newest < 0 {
		return now, nil
	}
	last := files[newest].at
	if last.After(now) { // the clock was set back slightly
		last = now
	}
	b.mu.Lock()
	b.last = last
	b.mu.Unlock()
	b.made(last, nil)
	return last.Add(b.every), nil
}

// scheduled makes a due backup, unless it is another server's turn.
func (b *backups) scheduled(ctx context.Context) error {
	if b.turns == nil {
		_, err := b.store(ctx)
		return err
	}
	wait, giveBack, err := b.turns.BackupTurn(ctx, b.every)
	if err != nil {
		return err
	}
	if wait > 0 {
		again := b.now().Add(wait)
		b.plan(again)
		return b.sleepUntil(ctx, again)
	}
	made, err := b.store(ctx)
	if err != nil && !made {
		return errors.Join(err, giveBack(context.WithoutCancel(ctx)))
	}
	return err
}

// store makes a backup in the directory and deletes the oldest. made is true even if deleting
// failed.
func (b *backups) store(ctx context.Context) (made bool, err error) {
	if err := makePrivate(b.dir); err != nil {
		return false, err
	}
	b.sweep(b.now())
	file := filepath.Join(b.dir, b.series+"-"+b.now().UTC().Format(backupStamp)+".db")
	backup, err := b.alone(ctx, file)
	if err != nil {
		return false, err
	}
	b.mu.Lock()
	b.last, b.failed = backup.TakenAt, ""
	b.mu.Unlock()
	b.made(backup.TakenAt, nil)
	b.log.Info("backup made", "file", file, "bytes", backup.Bytes, "runs", backup.Rows.Runs)
	if err := b.drop(filepath.Base(file)); err != nil {
		return true, fmt.Errorf("delete old backups: %w", err)
	}
	return true, nil
}

// alone makes a backup while no other is made.
func (b *backups) alone(ctx context.Context, file string) (engine.Backup, error) {
	select {
	case b.one <- struct{}{}:
		defer func() { <-b.one }()
		return b.make(ctx, file)
	case <-ctx.Done():
		return engine.Backup{}, ctx.Err()
	}
}

// send makes a backup for a caller and opens it; closing it deletes the file. Sending it, however
// slow, does not hold up scheduled backups.
func (b *backups) send(ctx context.Context) (made engine.Backup, file io.ReadCloser, err error) {
	select {
	case b.asking <- struct{}{}:
	default:
		return made, nil, errOtherBackup
	}
	defer func() {
		if err != nil {
			<-b.asking
		}
	}()
	if err := makePrivate(b.dir); err != nil {
		b.log.Warn("cannot use the backup directory; refusing the backup", "error", err)
		return made, nil, &engine.Error{Kind: engine.KindPrecondition,
			Message: "the server cannot use its backup directory; see its log"}
	}
	path := filepath.Join(b.dir, "kagzi-backup-"+rand.Text()+".part")
	if made, err = b.atOnce(ctx, path); err != nil {
		return made, nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return made, nil, errors.Join(err, os.Remove(path))
	}
	return made, &passing{File: f, done: func() { <-b.asking }}, nil
}

var errOtherBackup = &engine.Error{Kind: engine.KindPrecondition,
	Message: "another backup is in progress; try again later"}

// atOnce makes a backup unless another is being made.
func (b *backups) atOnce(ctx context.Context, file string) (engine.Backup, error) {
	select {
	case b.one <- struct{}{}:
	default:
		return engine.Backup{}, errOtherBackup
	}
	defer func() { <-b.one }()
	b.sweep(b.now())
	return b.make(ctx, file)
}

// passing is a file that is deleted once it was sent.
type passing struct {
	*os.File
	once sync.Once
	done func()
}

func (p *passing) Close() (err error) {
	p.once.Do(func() {
		err = errors.Join(p.File.Close(), os.Remove(p.Name()))
		p.done()
	})
	return err
}

type backupFile struct {
	name string
	at   time.Time
}

// files returns the scheduled backups of this database, newest first. The directory may hold
// backups of other databases. Backups of the plain series count as this database's if no other
// database has backups there.
func (b *backups) files() (files []backupFile, err error) {
	entries, err := os.ReadDir(b.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var unsaid []backupFile
	shared := false
	for _, e := range entries {
		m := backupName.FindStringSubmatch(e.Name())
		if m == nil || !e.Type().IsRegular() {
			continue
		}
		at, err := time.Parse(backupStamp, m[2])
		if err != nil {
			continue
		}
		switch file := (backupFile{e.Name(), at}); {
		case m[1] == b.series:
			files = append(files, file)
		case m[1] == plainSeries:
			unsaid = append(unsaid, file)
		case backupSeries.MatchString(m[1]):
			shared = true
		}
	}
	if !shared {
		files = append(files, unsaid...)
	}
	slices.SortFunc(files, func(a, b backupFile) int {
		return cmp.Or(b.at.Compare(a.at), strings.Compare(a.name, b.name))
	})
	return files, err
}

// drop deletes all but the newest backups. It never deletes the one just made, whatever its time.
func (b *backups) drop(made string) error {
	files, err := b.files()
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f backupFile) bool { return f.name == made })
	for _, old := range files[min(len(files), max(b.keep-1, 0)):] {
		if err := os.Remove(filepath.Join(b.dir, old.name)); err != nil {
			return err
		}
		b.log.Info("old backup deleted", "file", old.name)
	}
	return nil
}

// sweep deletes half-written backups left by a killed server. A failure is only logged.
func (b *backups) sweep(now time.Time) {
	entries, _ := os.ReadDir(b.dir)
	recent := map[string]bool{} // the log may be written while the file is not, and vice versa
	for _, e := range entries {
		m := backupPart.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) <= staleAfter {
			recent[m[1]] = true
		}
	}
	for _, e := range entries {
		m := backupPart.FindStringSubmatch(e.Name())
		if m == nil || recent[m[1]] {
			continue
		}
		if err := os.Remove(filepath.Join(b.dir, e.Name())); err != nil {
			b.log.Warn("cannot delete a half-written backup; skipping it", "file", e.Name(), "error", err)
		}
	}
}

func (b *backups) plan(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = at
}

func (b *backups) note(err error) {
	b.mu.Lock()
	b.failed = err.Error()
	b.mu.Unlock()
	b.made(time.Time{}, err)
}

// facts describes the scheduled backups for server info.
func (b *backups) facts() []server.Fact {
	if b.every == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	const section = "backups"
	last := "none yet"
	if !b.last.IsZero() {
		last = moment(b.last)
	}
	facts := []server.Fact{{Section: section, Name: "last", Value: last}}
	if !b.next.IsZero() {
		facts = append(facts, server.Fact{Section: section, Name: "next", Value: moment(b.next)})
	}
	facts = append(facts, server.Fact{Section: section, Name: "directory", Value: b.dir})
	if b.failed != "" {
		facts = append(facts, server.Fact{Section: section, Name: "last error", Value: b.failed})
	}
	return facts
}

// backupsDir returns the directory for backups.
func (c *Config) backupsDir() (dir string, err error) {
	if c.BackupDir != "" {
		dir, err = filepath.Abs(c.BackupDir)
		return safeDirectory(dir), err
	}
	url, dir, err := c.database()
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok && dir == "" {
		dir, err = filepath.Abs(filepath.Dir(strings.TrimPrefix(path, "//")))
	} else if err == nil && dir == "" {
		_, dir, err = (&Config{DataDir: c.DataDir}).database()
	}
	return filepath.Join(dir, "backups"), err
}

// seriesOf returns the name of a database's series of backups, so that servers of several databases
// can share a directory: its name and a hash of its location, because two databases may have the
// same name.
func seriesOf(d engine.Description, url string) string {
	place := d.Backend + ":" + d.Database + "?" + searchPath(url)
	sum := sha256.Sum256([]byte(place))
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return -1
	}, strings.TrimSuffix(filepath.Base(d.Database), ".db"))
	return fmt.Sprintf("%s-%x", cmp.Or(name[:min(len(name), maxSeriesName)], plainSeries), sum[:4])
}

// searchPath returns the schema or schemas in a database URL, by which several servers can share one Postgres
// database.
func searchPath(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "sqlite" {
		return ""
	}
	return cmp.Or(u.Query().Get("schema"), u.Query().Get("search_path"))
}

// newBackups returns the backups of a server on this store.
func (p *process) newBackups(about engine.Description) (*backups, error) {
	c := p.config.Load()
	dir, err := c.backupsDir()
	if err != nil {
		return nil, err
	}
	out := &backups{dir: dir, series: seriesOf(about, p.opened.database), every: c.BackupEvery, keep: c.BackupKeep,
		log: p.log, now: time.Now, one: make(chan struct{}, 1), asking: make(chan struct{}, 1)}
	out.make = func(ctx context.Context, file string) (engine.Backup, error) {
		return p.backends.Backup(ctx, p.opened.database, file)
	}
	if store, ok := p.store.(engine.Backups); ok {
		out.make = store.Backup
	}
	out.turns, _ = p.store.(engine.BackupTurns)
	return out, nil
}
