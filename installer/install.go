package installer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// installation carries out a plan. If a step fails, it undoes the earlier steps.
type installation struct {
	plan    plan
	manager manager
	disk    *disk
	out     io.Writer // what was done, for people
	details io.Writer // details of an error that do not fit on its line

	copyFrom string // the binary to copy to the plan's path; empty if it is already there
	replace  bool   // change an installed service with another definition instead of refusing
	startNow bool

	upgraded bool // set by carryOut: the program was copied or replaced
}

func (i *installation) say(format string, args ...any) { fmt.Fprintf(i.out, format+"\n", args...) }

// failureLogLines is how many log lines are printed for a service that fails to start.
const failureLogLines = 15

// run installs, changes or keeps the service.
func (i *installation) run(ctx context.Context) error {
	if err := i.manager.available(ctx); err != nil {
		return err
	}
	old, found, same, err := i.look(ctx)
	if err != nil {
		return err
	}
	var was State
	if found {
		if was, err = i.manager.state(ctx); err != nil {
			return err
		}
	}
	if err := i.carryOut(ctx, old, found, same, was.Phase == running || was.Phase == starting); err != nil {
		if back := i.disk.rollback(); back != nil {
			return fmt.Errorf("%w; not every change could be undone: %w", err, back)
		}
		return fmt.Errorf("%w; all changes were undone", err)
	}
	if i.copyFrom != "" {
		finish(i.disk.at(i.plan.spec.Binary))
	}
	if !i.upgraded {
		return nil
	}
	others, err := i.plan.spec.runners(i.manager.place())
	for _, other := range others { // the same upgrade finds nothing left to do for them
		i.say("%s uses this program too; it runs the old version until: kagzi service restart%s", other.Name,
			other.flags())
	}
	return err
}

// look reads the registered definition, and returns an error if it may not be changed.
func (i *installation) look(ctx context.Context) (old string, found, same bool, err error) {
	if old, found, err = i.manager.definition(ctx); err != nil {
		return old, found, false, err
	}
	same = found && old == i.plan.definition
	if found && !same && !i.replace {
		_, _ = io.WriteString(i.details, difference(old, i.plan.definition))
		if place, inEffect := i.manager.packaged(); inEffect {
			return old, found, same, refuse(exitConflict,
				"a package has installed %[1]s with other settings (%[2]s); start it with: kagzi service start%[3]s, "+
					"or use your settings: kagzi service reconfigure%[3]s", i.plan.spec.Name, plain(place),
				i.plan.spec.flags())
		}
		return old, found, same, refuse(exitConflict,
			"%s is installed with other settings; to change them, use the same flags with: kagzi service reconfigure%s",
			i.plan.spec.Name, i.plan.spec.flags())
	}
	return old, found, same, nil
}

// carryOut carries out the plan, and records how to undo it.
func (i *installation) carryOut(ctx context.Context, old string, found, same, wasRunning bool) error {
	// Rollback runs in reverse order: as the first recorded, this restarts the old service last.
	restarted := false
	i.disk.onRollback(func() error {
		if !restarted || !wasRunning {
			return nil
		}
		return i.manager.restart(context.WithoutCancel(ctx))
	})
	upgraded, err := i.prepare()
	if err != nil {
		return err
	}
	i.upgraded = upgraded
	if !same {
		if err := i.register(ctx, old, found); err != nil {
			return err
		}
	}
	name := i.plan.spec.Name
	switch {
	case same && !upgraded:
		i.say("%s is already installed, unchanged", name)
	case !found:
		i.say("installed %s: %s", name, plain(i.manager.place()))
	case !same:
		i.say("changed %s: %s", name, plain(i.manager.place()))
	}
	switch {
	case wasRunning && (upgraded || !same):
		restarted = true
		return i.begin(ctx, "restarted", i.manager.restart)
	case !wasRunning && i.startNow:
		return i.begin(ctx, "started", i.manager.start)
	}
	return nil
}

// prepare writes the binary, the directories and the files.
func (i *installation) prepare() (upgraded bool, err error) {
	if i.copyFrom != "" {
		if upgraded, err = i.disk.copyBinary(i.copyFrom, i.plan.spec.Binary); err != nil {
			return false, fmt.Errorf("copy the binary: %w", err)
		}
		if upgraded {
			i.say("copied the binary to %s", plain(i.plan.spec.Binary))
		}
	}
	if s := i.plan.spec; s.dynamic() {
		i.disk.expect(s.DataDir)
		i.disk.expect(s.privateDir())
	}
	for _, d := range i.plan.directories {
		if err := i.disk.makeDirectory(d); err != nil {
			return false, fmt.Errorf("create %s: %w", plain(d.path), err)
		}
	}
	for _, f := range i.plan.files {
		written, err := i.disk.writeFile(f)
		if err != nil {
			return false, fmt.Errorf("write %s: %w", plain(f.path), err)
		}
		if written {
			i.say("wrote %s", plain(f.path))
		}
	}
	return upgraded, nil
}

// register registers the definition with the service manager.
func (i *installation) register(ctx context.Context, old string, found bool) error {
	i.disk.onRollback(func() error {
		ctx := context.WithoutCancel(ctx)
		if found {
			return i.manager.register(ctx, old)
		}
		if _, there, err := i.manager.definition(ctx); err != nil || !there {
			return err
		}
		return errors.Join(i.manager.stop(ctx), i.manager.unregister(ctx))
	})
	return i.manager.register(ctx, i.plan.definition)
}

// begin starts or restarts the service. If that fails it prints the end of the service's log,
// because rollback may remove it.
func (i *installation) begin(ctx context.Context, what string, do func(context.Context) error) error {
	err := do(ctx)
	if err == nil {
		i.say("%s %s", what, i.plan.spec.Name)
		return nil
	}
	var said bytes.Buffer
	if logs := i.manager.logs(context.WithoutCancel(ctx), &said, failureLogLines, false); logs == nil &&
		said.Len() > 0 {
		fmt.Fprintf(i.details, "last log lines of %s:\n%s\n", i.plan.spec.Name,
			strings.TrimRight(plainLines(said.String()), "\n"))
	}
	return fmt.Errorf("the service did not start: %w", err)
}

// difference returns the lines that only one of two definitions has.
func difference(old, next string) string {
	var b strings.Builder
	only := func(sign string, these, those string) {
		there := map[string]bool{}
		for line := range strings.Lines(those) {
			there[strings.TrimSpace(line)] = true
		}
		for line := range strings.Lines(these) {
			if text := strings.TrimSpace(line); text != "" && !there[text] && !strings.Contains(line, recordMark) {
				fmt.Fprintf(&b, "  %s %s\n", sign, plain(text))
			}
		}
	}
	only("-", old, next)
	only("+", next, old)
	return b.String()
}
