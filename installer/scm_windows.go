package installer

import (
	"errors"
	"fmt"
	"time"

	"github.com/kardianos/service"
	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"
)

// systemSCM is the service manager of this machine.
type systemSCM struct{}

// definitionValue stores the definition below the service's own key, so that it is deleted with the
// service.
const (
	servicesKey     = `SYSTEM\CurrentControlSet\Services\`
	parametersKey   = `\Parameters`
	definitionValue = "Definition"
)

var errNotInstalled = errors.New("not installed")

// with calls use with an open service, with the rights in access.
func with(name string, access uint32, use func(*mgr.Service) error) error {
	m, err := windows.OpenSCManager(nil, nil, windows.SC_MANAGER_CONNECT)
	if err != nil {
		return fmt.Errorf("connect to the service manager: %w", err)
	}
	defer func() { _ = windows.CloseServiceHandle(m) }()
	text, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return err
	}
	h, err := windows.OpenService(m, text, access)
	if errors.Is(err, windows.ERROR_SERVICE_DOES_NOT_EXIST) {
		return errNotInstalled
	}
	if err != nil {
		return fmt.Errorf("open service %s: %w", name, err)
	}
	s := &mgr.Service{Name: name, Handle: h}
	return errors.Join(use(s), s.Close())
}

func (systemSCM) Definition(name string) (string, bool, error) {
	err := with(name, windows.SERVICE_QUERY_CONFIG, func(*mgr.Service) error { return nil })
	if errors.Is(err, errNotInstalled) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, servicesKey+name+parametersKey, registry.QUERY_VALUE)
	if errors.Is(err, registry.ErrNotExist) {
		return "", true, nil // a service of this name created by something else
	}
	if err != nil {
		return "", true, err
	}
	defer k.Close()
	text, _, err := k.GetStringValue(definitionValue)
	if errors.Is(err, registry.ErrNotExist) {
		err = nil
	}
	return text, true, err
}

// Create creates the service and its event source.
func (systemSCM) Create(w winService) error {
	s, err := service.New(nil, &service.Config{
		Name: w.Name, DisplayName: w.DisplayName, Description: w.Description, UserName: w.Account,
		Executable: w.Binary, Arguments: w.Arguments,
	})
	if err != nil {
		return err
	}
	return s.Install()
}

func (systemSCM) Configure(w winService, definition string) error {
	// the rights needed to restart after failures
	const all = windows.SERVICE_CHANGE_CONFIG | windows.SERVICE_QUERY_CONFIG | windows.SERVICE_START
	err := with(w.Name, all, func(s *mgr.Service) error {
		c, err := s.Config()
		if err != nil {
			return err
		}
		c.BinaryPathName, c.ServiceStartName = w.CommandLine, w.Account
		c.DisplayName, c.Description = w.DisplayName, w.Description
		c.StartType, c.SidType = mgr.StartAutomatic, windows.SERVICE_SID_TYPE_UNRESTRICTED
		if err := s.UpdateConfig(c); err != nil {
			return err
		}
		actions := make([]mgr.RecoveryAction, len(w.Recovery))
		for i, r := range w.Recovery {
			actions[i] = mgr.RecoveryAction{Type: mgr.ServiceRestart,
				Delay: time.Duration(r.DelayMS) * time.Millisecond}
		}
		if err := s.SetRecoveryActions(actions, w.RecoveryResetSecs); err != nil {
			return err
		}
		return s.SetRecoveryActionsOnNonCrashFailures(w.RecoverFromBadExits)
	})
	if err != nil {
		return err
	}
	k, _, err := registry.CreateKey(registry.LOCAL_MACHINE, servicesKey+w.Name+parametersKey, registry.SET_VALUE)
	if err != nil {
		return err
	}
	return errors.Join(k.SetStringValue(definitionValue, definition), k.Close())
}

// Delete also removes the event source.
func (systemSCM) Delete(name string) error {
	s, err := service.New(nil, &service.Config{Name: name})
	if err != nil {
		return err
	}
	return s.Uninstall()
}

func (systemSCM) Start(name string) error {
	return with(name, windows.SERVICE_START, func(s *mgr.Service) error { return s.Start() })
}

func (systemSCM) Stop(name string) error {
	return with(name, windows.SERVICE_STOP, func(s *mgr.Service) error {
		_, err := s.Control(svc.Stop)
		return err
	})
}

func (systemSCM) Query(name string) (State, error) {
	state := State{Phase: stopped, Restarts: -1}
	err := with(name, windows.SERVICE_QUERY_STATUS, func(s *mgr.Service) error {
		q, err := s.Query()
		if err != nil {
			return err
		}
		state.PID = int(q.ProcessId)
		switch q.State {
		case svc.Running, svc.Paused, svc.PausePending, svc.ContinuePending:
			state.Phase = running
		case svc.StartPending:
			state.Phase = starting
		case svc.StopPending:
			state.Phase = stopping
		case svc.Stopped:
			state.LastExit, state.Phase = exitOf(q)
		}
		return nil
	})
	return state, err
}

// exitOf returns how a service ended. A custom exit code comes with ERROR_SERVICE_SPECIFIC_ERROR.
func exitOf(q svc.Status) (exit, phase string) {
	switch {
	case q.Win32ExitCode == uint32(windows.ERROR_SERVICE_NEVER_STARTED):
		return "", stopped
	case q.Win32ExitCode == uint32(windows.ERROR_SERVICE_SPECIFIC_ERROR):
		return fmt.Sprintf("exit code %d", q.ServiceSpecificExitCode), failed
	case q.Win32ExitCode != 0:
		return fmt.Sprintf("error %d", q.Win32ExitCode), failed
	}
	return "exit code 0", stopped
}
