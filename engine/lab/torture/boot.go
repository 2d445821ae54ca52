//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"
)

// pastTimeout is how long Postgres starts after the servers so that each of them gives up and is
// started again.
const pastTimeout = 34 * time.Second

// bootFirst is H-05. Everything goes down and comes back as on a reboot: workers and servers start
// before Postgres, by some seconds or by so much that the servers exit. Then they are restarted, or
// not, as the service's unit says.
func bootFirst(ctx context.Context, t *torture) error {
	unit, err := t.unit(ctx)
	if err != nil {
		return err
	}
	late := pastTimeout
	return t.every(ctx, t.brief(2), t.brief(4), func() (err error) {
		ctx := context.WithoutCancel(ctx)
		for _, s := range t.system.servers {
			s.kill()
		}
		t.system.cluster.Kill()
		for _, w := range t.system.workers {
			w.current().Kill()
			if err := w.start(); err != nil {
				return err
			}
		}
		t.system.fault("Postgres comes "+late.Round(time.Millisecond).String()+" after the servers", func() bool {
			err = t.boot(ctx, unit, late)
			return err == nil
		})
		late = t.system.random.between(time.Second, 5*time.Second)
		return err
	})
}

// boot starts the servers, then Postgres after the delay late, and waits until all serve.
func (t *torture) boot(ctx context.Context, unit unit, late time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, late+fixture.StartLimit)
	defer cancel()
	served := make([]time.Time, len(t.system.servers))
	var group sync.WaitGroup
	for i, s := range t.system.servers {
		group.Go(func() {
			t.serveAs(ctx, unit, s)
			served[i] = time.Now()
		})
	}
	t.pause(ctx, late, late)
	err := t.system.cluster.Start(ctx)
	up := time.Now()
	if err != nil {
		cancel()
	}
	group.Wait()
	for _, at := range served {
		t.boots = append(t.boots, at.Sub(up))
	}
	return err
}

// serveAs starts the server, and restarts it as its unit says when it ends, until it serves.
func (t *torture) serveAs(ctx context.Context, unit unit, s *server) {
	for {
		s.ends = []fixture.Ending{fixture.ExitUnavailable} // while there is no Postgres
		err := s.start(ctx)
		life := s.current()
		switch {
		case err == nil:
			life.MustLast()
			return
		case ctx.Err() != nil || !life.Ended():
			life.Kill()
			t.system.report("a server that was there before Postgres: %v", err)
			return
		}
		if code := life.Exit(); slices.Contains(unit.never, code) {
			t.system.report("its service would not be started again after exit code %d: %v", code, err)
		}
		t.mu.Lock()
		t.gaveUp++
		t.mu.Unlock()
		t.pause(ctx, unit.pause, unit.pause)
	}
}

// unit holds what the service's unit says about restarts.
type unit struct {
	pause time.Duration // until it is started again
	never []int         // the exit codes after which it is not started again
}

// unit reads it from the program.
func (t *torture) unit(ctx context.Context) (unit, error) {
	cmd := exec.CommandContext(ctx, t.system.program, "service", "print", "--os", "linux", "--binary", "/usr/bin/kagzi")
	cmd.Env = slices.DeleteFunc(os.Environ(), isSetting)
	text, err := cmd.Output()
	if err != nil {
		return unit{}, fmt.Errorf("print the service's unit: %w", err)
	}
	return parseUnit(string(text))
}

var unitSetting = regexp.MustCompile(`(?m)^(\w+)=(.*)$`)

func parseUnit(text string) (u unit, err error) {
	said := map[string]string{}
	for _, found := range unitSetting.FindAllStringSubmatch(text, -1) {
		said[found[1]] = found[2]
	}
	if said["Restart"] != "on-failure" || said["StartLimitIntervalSec"] != "0" {
		return u,
			fmt.Errorf(
				"the unit does not have a server started again however often it fails: Restart=%s, StartLimitIntervalSec=%s",
				said["Restart"], said["StartLimitIntervalSec"])
	}
	if u.pause, err = time.ParseDuration(said["RestartSec"]); err != nil {
		return u, fmt.Errorf("the unit's RestartSec: %w", err)
	}
	for _, word := range strings.Fields(said["RestartPreventExitStatus"]) {
		code, err := strconv.Atoi(word)
		if err != nil {
			return u, fmt.Errorf("the unit's RestartPreventExitStatus: %w", err)
		}
		u.never = append(u.never, code)
	}
	return u, nil
}

// serveSoon requires servers that started before Postgres to serve soon after it answers.
func serveSoon(t *torture) figure {
	const limit = 10 * time.Second
	f := figure{name: "from Postgres's first answer until a server serves", got: "never", limit: "≤ " + limit.String(),
		hard: true}
	if len(t.boots) > 0 {
		longest := slices.Max(t.boots)
		f.got = fmt.Sprintf("%d starts, longest %s; servers ended and were started again %d times", len(t.boots),
			round(longest), t.gaveUp)
		f.ok = longest <= limit && t.gaveUp > 0
	}
	return f
}
