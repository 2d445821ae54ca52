package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// startFiles starts a run for each file, all in one commit. A file that has had its run gets no
// second one: it is known by its path, size and time of change.
func startFiles(ctx context.Context, c *kagzi.Client, files []string) ([]*kagzi.Run, error) {
	ids := make([]string, len(files))
	for i, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		if files[i], err = filepath.Abs(file); err != nil {
			return nil, err
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", files[i], info.Size(), info.ModTime().UnixNano()))
		ids[i] = fmt.Sprintf("file:%x", sum[:12])
	}
	opts := kagzi.StartOptions{Queue: queue, ExternalIDReuse: kagzi.ReuseNever}
	return kagzi.StartMany(ctx, c, "file", files, opts, func(i int, o *kagzi.StartOptions) { o.ExternalID = ids[i] })
}

// add starts a run for each file and prints the results.
func add(ctx context.Context, files []string) error {
	c, err := kagzi.NewClient(kagzi.ClientOptions{})
	if err != nil {
		return err
	}
	defer c.Close()
	runs, errs := startFiles(ctx, c, files)
	for i, run := range runs {
		if run == nil { // that start was refused; errs says why
			continue
		}
		r, err := kagzi.Result[Result](ctx, run)
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("%s: %w", files[i], err))
			continue
		}
		fmt.Printf("%s: digested by %s, stored by %s\n", r.Stored, r.DigestedBy, r.StoredBy)
	}
	return errs
}

// watch looks into the folder every two seconds. Move files into it: one that is still being
// written would be taken half.
func watch(ctx context.Context, folder string) error {
	c, err := kagzi.NewClient(kagzi.ClientOptions{})
	if err != nil {
		return err
	}
	defer c.Close()
	for tick := time.Tick(2 * time.Second); ; <-tick {
		files, err := filesIn(folder)
		if err != nil {
			return err
		}
		runs, err := startFiles(ctx, c, files)
		if err != nil {
			fmt.Println(err) // and try again: the starts that went well are not repeated
		}
		for i, run := range runs {
			if run != nil && !run.AlreadyExisted() {
				fmt.Println("started", run.ID(), "for", files[i])
			}
		}
	}
}

// filesIn is at most as many files of a folder as fit into one call.
func filesIn(folder string) (files []string, err error) {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if e.Type().IsRegular() && len(files) < kagzi.MaxBatch {
			files = append(files, filepath.Join(folder, e.Name()))
		}
	}
	return files, err
}
