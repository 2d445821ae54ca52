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
	// backupStamp is the moment in the name of a scheduled backup.
	backupStamp = "20060102T150405Z"
	// minBackupEvery is the shortest interval.
	minBackupEvery = time.Minute
	// firstRetry is how long after a failed backup the next is tried; the pause doubles up to the interval.
	firstRetry = time.Minute
	// staleAfter is how old a half-written backup must be to be taken for one that a killed server left.
	staleAfter = 24 * time.Hour
	// maxSeriesName bounds how much of a database's name its backups bear.
	maxSeriesName = 40
)

// backupName is what a scheduled backup is called: its series, and when it was made. Files with
// other names are nobody's.
var backupName = regexp.MustCompile(`^(.+)-([0-9]{8}T[0-9]{6}Z)\.db$`)

// backupSeries is a series that says which database it is of, as seriesOf has it.
var backupSeries = regexp.MustCompile(`^[A-Za-z0-9_]+-[0-9a-f]{8}$`)

// plainSeries is the one of backups that do not say which database they are of, as earlier versions called all.
const plainSeries = "kagzi"

// backupPart is what a backup is called while it is written, or sent, and what then may lie beside it.
var backupPart = regexp.MustCompile(`^(kagzi-backup-.*\.part)(-journal|-wal|-shm|\.lock)?$`)

// backups makes the copies that a server is asked for, one at a time, and those that are due.
type backups struct {
	make   func(ctx context.Context, file string) (engine.Backup, error)
	dir    string
	series string        // what the names of those begin with that are due
	every  time.Duration // 0: only those that are asked for
	keep   int
	turns  engine.BackupTurns            // nil: this server has no rivals
	made   func(at time.Time, err error) // hears of each that was due
	log    *slog.Logger
	now    func() time.Time // time.Now, but for tests that set the clock

	one    chan struct{} // has room for one that is made
	asking chan struct{} // has room for one that is made for somebody, or sent

	mu     sync.Mutex
	last   time.Time // of the newest file
	next   time.Time
	failed string // why the last try failed; empty: it did not
}

// run makes a backup whenever one is due: an interval after the newest file in the directory, at
// once where that was missed.
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
		b.log.Error("the scheduled backup failed", "error", err, "dir", b.dir, "retry_in", min(retry, b.every))
		again := b.now().Add(min(retry, b.every))
		b.plan(again)
		if err := b.sleepUntil(ctx, again); err != nil {
			return err
		}
		retry = min(2*retry, b.every)
	}
}

// sleepUntil waits, a minute at most at a time: a clock that is set, or a machine that slept, moves
// what is due. Where the clock has been set back so far that there is more to wait than there was
// at first, it returns before: what is due now has to be found anew.
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

// due is when the next backup is to be made. One whose name lies more than an interval ahead was
// made while the clock was: when that was nobody knows, and it is no reason to wait, or a server
// that is restarted often would make none until then.
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
	if last.After(now) { // the clock was set back a little
		last = now
	}
	b.mu.Lock()
	b.last = last
	b.mu.Unlock()
	b.made(last, nil)
	return last.Add(b.every), nil
}

// scheduled makes one that is due, unless it is another server's turn.
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

// store makes one in the directory and deletes the oldest. Where those could not be deleted, it is made nevertheless.
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

// send makes a backup for who asked for it and opens it. Closing it deletes it. However long it
// takes to be sent, that keeps none that is due.
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
		b.log.Warn("no place for a backup", "error", err)
		return made, nil, &engine.Error{Kind: engine.KindPrecondition,
			Message: "the server's directory of backups cannot be used; its log says why"}
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
	Message: "another backup is being made or sent; try again when it is done"}

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

// passing is a file that is deleted when it has been sent.
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

// files is the scheduled backups of this database in the directory, newest first. Servers of other
// databases may have theirs there too. Those that do not say which database they are of are this
// one's where no other has any.
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

// drop deletes all but the newest. The one just made is of those whatever the clock said when the others were made.
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

// sweep deletes what a server that was killed has left half-written, with what lies beside it. That
// it could not is no reason not to make a backup.
func (b *backups) sweep(now time.Time) {
	entries, _ := os.ReadDir(b.dir)
	recent := map[string]bool{} // a log may be written while the file is not, and the other way round
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
			b.log.Warn("a half-written backup could not be deleted", "file", e.Name(), "error", err)
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

// facts is what people may want to know of scheduled backups.
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

// backupsDir is where backups go that nobody names a place for.
func (c *Config) backupsDir() (dir string, err error) {
	if c.BackupDir != "" {
		return filepath.Abs(c.BackupDir)
	}
	url, dir, err := c.database()
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok && dir == "" {
		dir, err = filepath.Abs(filepath.Dir(strings.TrimPrefix(path, "//")))
	} else if err == nil && dir == "" {
		_, dir, err = (&Config{DataDir: c.DataDir}).database()
	}
	return filepath.Join(dir, "backups"), err
}

// seriesOf is what the scheduled backups of a database are called, so that servers of several may
// share a directory: after its name, and with a sum of where it is, since two may have one name.
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

// searchPath is the schema or schemas that a database URL names, by which several may share a Postgres database.
func searchPath(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "sqlite" {
		return ""
	}
	return cmp.Or(u.Query().Get("schema"), u.Query().Get("search_path"))
}

// newBackups is the backups of a server on this store.
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
