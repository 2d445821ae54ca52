package installer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// scm is the part of the Windows service manager used here.
type scm interface {
	// Definition returns what was registered last; found is false if there is no such service.
	Definition(name string) (text string, found bool, err error)
	Create(s winService) error
	// Configure changes an existing service to s, and stores the definition with it.
	Configure(s winService, definition string) error
	// Delete marks a service for deletion, which happens once no program has it open.
	Delete(name string) error
	Start(name string) error
	Stop(name string) error // requests a stop
	Query(name string) (State, error)
}

const scmLimit = 60 * time.Second // for a stop, and for a deletion to complete

// winManager is the service manager of Windows.
type winManager struct {
	name    string
	logFile string
	scm     scm
}

func (m *winManager) place() string { return "Windows service " + m.name }

func (m *winManager) packaged() (place string, inEffect bool) { return "", false }
func (m *winManager) additions() []string                     { return nil }
func (m *winManager) available(context.Context) error         { return nil }

func (m *winManager) definition(context.Context) (string, bool, error) {
	return m.scm.Definition(m.name)
}

func (m *winManager) register(ctx context.Context, definition string) error {
	var s winService
	if err := json.NewDecoder(strings.NewReader(definition)).Decode(&s); err != nil {
		return fmt.Errorf("read the definition: %w", err)
	}
	_, found, err := m.scm.Definition(m.name)
	if err != nil {
		return err
	}
	if found {
		return m.scm.Configure(s, definition)
	}
	if err := m.scm.Create(s); err != nil {
		return fmt.Errorf("create the service: %w", err)
	}
	if err := m.scm.Configure(s, definition); err != nil {
		return errors.Join(fmt.Errorf("configure the service: %w", err), m.unregister(ctx))
	}
	return nil
}

func (m *winManager) unregister(ctx context.Context) error {
	if err := m.scm.Delete(m.name); err != nil {
		return err
	}
	err := await(ctx, scmLimit, func() (bool, error) {
		_, found, err := m.scm.Definition(m.name)
		return !found, err
	})
	if errors.Is(err, errTooLong) {
		return fmt.Errorf(
			"the service is deleted once no program has it open: close the Services window and Task Manager (%w)", err)
	}
	return err
}

func (m *winManager) start(ctx context.Context) error {
	s, err := m.scm.Query(m.name)
	if err != nil || s.Phase == running {
		return err
	}
	if err := m.scm.Start(m.name); err != nil {
		return err
	}
	return await(ctx, scmLimit, func() (bool, error) {
		s, err := m.scm.Query(m.name)
		if err == nil && (s.Phase == stopped || s.Phase == failed) {
			err = fmt.Errorf("the service ended while it started (%s)", orElse(s.LastExit, "no exit code"))
		}
		return s.Phase == running, err
	})
}

func (m *winManager) stop(ctx context.Context) error {
	s, err := m.scm.Query(m.name)
	if err != nil || s.Phase == stopped || s.Phase == failed {
		return err
	}
	if err := m.scm.Stop(m.name); err != nil {
		return err
	}
	return await(ctx, scmLimit, func() (bool, error) {
		s, err := m.scm.Query(m.name)
		return s.Phase == stopped || s.Phase == failed, err
	})
}

func (m *winManager) restart(ctx context.Context) error {
	if err := m.stop(ctx); err != nil {
		return err
	}
	return m.start(ctx)
}

func (m *winManager) state(context.Context) (State, error) { return m.scm.Query(m.name) }

func (m *winManager) logs(ctx context.Context, w io.Writer, lines int, follow bool) error {
	return tail(ctx, w, m.logFile, lines, follow)
}
