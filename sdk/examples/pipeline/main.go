// Command pipeline compresses files on a machine that may lose power or its link at any time: each
// file is a run, whose steps are recorded in the embedded database of a server on the same machine.
//
//	pipeline work OUT     runs a worker that writes to the folder OUT, and waits for it to exist
//	pipeline watch IN     starts a run for each file that is in the folder IN, or comes into it
//	pipeline add FILE...  starts a run for each file, and waits for the results
package main

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

const queue = "files"

// Result says which worker did what: after a crash they may be two.
type Result struct {
	SHA256, Stored       string
	DigestedBy, StoredBy string
}

// Pipeline holds what the steps need.
type Pipeline struct {
	Out      string
	Compress func(w io.Writer, r io.Reader) error
}

// Process is the workflow of one file. Each step may be run again after a crash, and bears that.
func (p *Pipeline) Process(ctx kagzi.Context, file string) (r Result, err error) {
	worker := kagzi.Info(ctx).WorkerID
	digested, err := kagzi.Step(ctx, "digest", func(context.Context) ([2]string, error) {
		sum, err := digest(file)
		return [2]string{sum, worker}, err
	})
	if err != nil {
		return r, err
	}
	stored, err := kagzi.Step(ctx, "store", func(context.Context) ([2]string, error) {
		name := filepath.Join(p.Out, filepath.Base(file)+"-"+digested[0][:12]+".gz")
		return [2]string{name, worker}, p.store(file, name)
	}, kagzi.Retry{Attempts: -1, Max: 10 * time.Second}) // the disk or the link comes back some day
	if err != nil {
		return r, err
	}
	err = kagzi.Do(ctx, "archive", func(context.Context) error { return archive(file) })
	return Result{digested[0], stored[0], digested[1], stored[1]}, err
}

// digest reads the file.
func digest(file string) (string, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", kagzi.NonRetryable(err) // it will not come back
	} else if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return fmt.Sprintf("%x", h.Sum(nil)), err
}

// store writes to a temporary name first, so that a file under its own name is always whole.
func (p *Pipeline) store(file, name string) error {
	from, err := os.Open(file)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.CreateTemp(p.Out, ".part-*")
	if err != nil {
		return err
	}
	defer os.Remove(to.Name()) // does nothing after the rename
	err = errors.Join(p.Compress(to, from), to.Sync(), to.Close())
	if err != nil {
		return err
	}
	return os.Rename(to.Name(), name)
}

// archive moves the file into the folder done. A second attempt may find it moved already.
func archive(file string) error {
	to := filepath.Join(filepath.Dir(file), "done", filepath.Base(file))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	err := os.Rename(file, to)
	if _, moved := os.Stat(to); errors.Is(err, fs.ErrNotExist) && moved == nil {
		return nil
	}
	return err
}

func compress(w io.Writer, r io.Reader) error {
	z := gzip.NewWriter(w)
	_, err := io.Copy(z, r)
	return errors.Join(err, z.Close())
}

func main() {
	ctx, err := context.Background(), error(nil)
	switch {
	case len(os.Args) == 3 && os.Args[1] == "work":
		p := &Pipeline{Out: os.Args[2], Compress: compress}
		w := kagzi.NewWorker(kagzi.WorkerOptions{Queue: queue, MaxConcurrent: 4})
		kagzi.Handle(w, "file", p.Process)
		err = w.Run(ctx)
	case len(os.Args) == 3 && os.Args[1] == "watch":
		err = watch(ctx, os.Args[2])
	case len(os.Args) > 2 && os.Args[1] == "add":
		err = add(ctx, os.Args[2:])
	default:
		err = errors.New("usage: pipeline work OUT | watch IN | add FILE")
	}
	if err != nil {
		log.Fatal(err)
	}
}
