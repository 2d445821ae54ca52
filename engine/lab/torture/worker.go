//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/kagzi/kagzi/engine/lab/torture/workload"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"
)

// worker is a slot for worker processes.
type worker struct {
	system *system
	name   string
	door   *fixture.Proxy

	mu     sync.Mutex
	life   *fixture.Process
	lives  int
	exits  map[int]int // by exit code
	ending bool        // it is not restarted
}

// start begins a life of the worker. A life that a poisonous run ends is followed by another.
func (w *worker) start() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ending {
		return nil
	}
	w.lives++
	spec, err := json.Marshal(workload.WorkerSpec{
		Name: w.name + "." + strconv.Itoa(w.lives), Address: w.door.Address(), Log: w.history(w.lives),
		Slots: w.system.shape.Slots, Spin: w.system.shape.Spin, Stamp: w.lives})
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), isSetting), workload.WorkerVariable+"="+string(spec))
	if w.life, err = fixture.Spawn(cmd, filepath.Join(w.system.dir, w.name+".log")); err != nil {
		return err
	}
	go w.follow(w.life)
	return nil
}

// follow checks a life that ends by itself.
func (w *worker) follow(life *fixture.Process) {
	code := life.Exit()
	w.mu.Lock()
	w.exits[code]++
	mine := w.life == life && !w.ending
	w.mu.Unlock()
	if !mine || code == -1 || code == 0 {
		return
	}
	if code != workload.PoisonExit {
		w.system.report("%s ended by itself with exit code %d: %s", w.name, code, life.Out.Tail())
	}
	if err := w.start(); err != nil {
		w.system.report("%s: %v", w.name, err)
	}
}

func (w *worker) history(life int) string {
	return filepath.Join(w.system.dir, fmt.Sprintf("%s.%d.jsonl", w.name, life))
}

func (w *worker) current() *fixture.Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.life
}
