package installer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// installation carries out a plan. When a step fails, it undoes the steps before.
type installation struct {
	plan    plan
	manager manager
	disk    *disk
	out     io.Writer // what was done, for people
	details io.Writer // what goes with an error and does not fit into its line

	copyFrom string // the binary to copy to the path in the plan; empty when it is there already
	replace  bool   // an installed service with another definition is changed, not refused
	startNow bool

	upgraded bool // set by carryOut: the program was put in its place, of another or of none
}

func (i *installation) say(format string, args ...any) { fmt.Fprintf(i.out, format+"\n", args...) }

// failureLogLines is how many lines of the log are printed of a service that does not start.
const failureLogLines = 15

// run installs the service, changes it, or leaves it as it is.
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
			return fmt.Errorf("%w; and not everything could be taken back: %w", err, back)
		}
		return fmt.Errorf("%w; everything was taken back", err)
	}
	if i.copyFrom != "" {
		finish(i.disk.at(i.plan.spec.Binary))
	}
	if !i.upgraded {
		return nil
	}
	others, err := i.plan.spec.runners(i.manager.place())
	for _, other := range others { // for which the same upgrade finds nothing left to do
		i.say("%s runs this program too, and goes on with the one before until: kagzi service restart%s", other.Name,
			other.flags())
	}
	return err
}

// look reads what is registered, and returns an error when it may not be changed.
func (i *installation) look(ctx context.Context) (old string, found, same bool, err error) {
	if old, found, err = i.manager.definition(ctx); err != nil {
		return old, found, false, err
	}
	same = found && old == i.plan.definition
	if found && !same && !i.replace {
		_, _ = io.WriteString(i.details, difference(old, i.plan.definition))
		if place, inEffect := i.manager.packaged(); inEffect {
			return old, found, same, refuse(exitConflict,
				"a package has installed %[1]s with other settings (%[2]s); start that one with: kagzi service start%[3]s, "+
					"or have it run with yours: kagzi service reconfigure%[3]s", i.plan.spec.Name, plain(place),
				i.plan.spec.flags())
		}
		return old, found, same, refuse(exitConflict,
			"%s is installed with other settings; to change it, say the same with: kagzi service reconfigure%s",
			i.plan.spec.Name, i.plan.spec.flags())
	}
	return old, found, same, nil
}

// carryOut does what the plan says, and records how to undo it.
func (i *installation) carryOut(ctx context.Context, old string, found, same, wasRunning bool) error {
	// Rollback runs in reverse order: recorded first, this restarts the old service after all else is undone.
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
		i.say("%s is installed already, unchanged", name)
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

// prepare puts the binary, the directories and the files in their places.
func (i *installation) prepare() (upgraded bool, err error) {
	if i.copyFrom != "" {
		if upgraded, err = i.disk.copyBinary(i.copyFrom, i.plan.spec.Binary); err != nil {
			return false, fmt.Errorf("copy the binary: %w", err)
		}
		if upgraded {
			i.say("put the binary into %s", plain(i.plan.spec.Binary))
		}
	}
	if s := i.plan.spec; s.dynamic() {
		i.disk.expect(s.DataDir)
		i.disk.expect(s.privateDir())
	}
	for _, d := range i.plan.directories {
		if err := i.disk.makeDirectory(d); err != nil {
			return false, fmt.Errorf("make %s: %w", plain(d.path), err)
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

// register hands the definition to the service manager.
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

// begin starts or restarts the service. When that fails it prints the end of the service's log, because
// rollback may remove it.
func (i *installation) begin(ctx context.Context, what string, do func(context.Context) error) error {
	err := do(ctx)
	if err == nil {
		i.say("%s %s", what, i.plan.spec.Name)
		return nil
	}
	var said bytes.Buffer
	if logs := i.manager.logs(context.WithoutCancel(ctx), &said, failureLogLines, false); logs == nil &&
		said.Len() > 0 {
		fmt.Fprintf(i.details, "the last words of %s:\n%s\n", i.plan.spec.Name,
			strings.TrimRight(plainLines(said.String()), "\n"))
	}
	return fmt.Errorf("the service did not come up: %w", err)
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
