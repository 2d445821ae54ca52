//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// disk is a file system of its own, which can lose its power or be full.
type disk struct {
	dir   string
	image string // of a loop device; empty: it is in memory
}

// shutdownNoFlush is the ioctl that makes an ext4 forget what it has not written, as a power cut does: _IOR('X', 125, __u32).
const (
	shutdownNoFlush = 0x8004587d
	noLogFlush      = 2
)

// loopDisk makes an ext4 of so many MiB on a loop device.
func loopDisk(ctx context.Context, base string, size int64) (*disk, error) {
	if os.Geteuid() != 0 {
		return nil, notHere("to mount a disk takes root")
	}
	d := &disk{dir: filepath.Join(base, "disk"), image: filepath.Join(base, "disk.img")}
	if err := os.Mkdir(d.dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.Create(d.image)
	if err == nil {
		err = errors.Join(f.Truncate(size<<20), f.Close())
	}
	if err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, "mkfs.ext4", "-q", "-F", d.image).CombinedOutput(); err != nil {
		return nil, notHere("mkfs.ext4: %v: %s", err, out)
	}
	return d, d.tryOut(ctx)
}

// tryOut mounts the disk, and cuts its power once. What this machine cannot do shows here: from now on the same is a failure.
func (d *disk) tryOut(ctx context.Context) error {
	if err := d.mount(ctx); err != nil {
		return notHere("%v", err)
	}
	if err := d.cutPower(); err != nil {
		return errors.Join(notHere("%v", err), d.unmount())
	}
	if err := d.unmount(); err != nil {
		return err
	}
	return d.mount(ctx)
}

func (d *disk) mount(ctx context.Context) error {
	if out, err := exec.CommandContext(ctx, "mount", "-o", "loop,data=ordered", d.image, d.dir).CombinedOutput(); err != nil {
		return fmt.Errorf("a loop device cannot be mounted: %w: %s", err, out)
	}
	return nil
}

// memoryDisk makes a disk of so many MiB in memory.
func memoryDisk(base string, size int64) (*disk, error) {
	d := &disk{dir: filepath.Join(base, "disk")}
	if err := os.Mkdir(d.dir, 0o755); err != nil {
		return nil, err
	}
	if err := unix.Mount("tmpfs", d.dir, "tmpfs", 0, fmt.Sprintf("size=%dm", size)); err != nil {
		return nil, notHere("a disk in memory cannot be mounted: %v", err)
	}
	return d, nil
}

func (d *disk) unmount() error {
	limit := time.Now().Add(10 * time.Second)
	for {
		err := unix.Unmount(d.dir, 0)
		if err == nil || errors.Is(err, unix.EINVAL) { // not mounted
			return nil
		}
		if time.Now().After(limit) {
			return errors.Join(fmt.Errorf("unmount %s: %w", d.dir, err), unix.Unmount(d.dir, unix.MNT_DETACH))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// cutPower makes the file system drop all that it has not written to its device, and fail from now on.
func (d *disk) cutPower() error {
	f, err := os.Open(d.dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), shutdownNoFlush, noLogFlush); err != nil {
		return fmt.Errorf("the file system cannot be shut down: %w", err)
	}
	return nil
}

// fill takes all the room but so many MiB, until the returned function is called.
func (d *disk) fill(left int64) (free func() error, err error) {
	f, err := os.Create(filepath.Join(d.dir, "filler"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	free = func() error { return os.Remove(f.Name()) }
	chunk := make([]byte, 1<<20)
	for {
		var s unix.Statfs_t
		if err := unix.Fstatfs(int(f.Fd()), &s); err != nil {
			return free, err
		}
		if left > 0 && int64(s.Bavail)*s.Bsize <= left<<20 {
			return free, nil
		}
		if _, err := f.Write(chunk); errors.Is(err, unix.ENOSPC) {
			return free, nil
		} else if err != nil {
			return free, err
		}
	}
}

// copyFile copies a file to a path, with the permissions of a database.
func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}
