package installer

import (
	"context"
	"errors"
	"os"

	"github.com/kardianos/service"
	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/eventlog"
)

// mayInstall reports whether this process may change system services.
func mayInstall() bool { return windows.GetCurrentProcessToken().IsElevated() }

const howToBeRoot = "run it in a terminal that was opened with \"Run as administrator\""

// chown does nothing: access lists are inherited.
func chown(string, string, string) error { return nil }

// protect sets owner and access list of a directory; its contents inherit them.
func protect(path, sddl string) error {
	d, err := windows.SecurityDescriptorFromString(sddl)
	if err != nil {
		return err
	}
	owner, _, err := d.Owner()
	if err != nil {
		return err
	}
	dacl, _, err := d.DACL()
	if err != nil {
		return err
	}
	return windows.SetNamedSecurityInfo(path, windows.SE_FILE_OBJECT,
		windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION|windows.PROTECTED_DACL_SECURITY_INFORMATION,
		owner, nil, dacl, nil)
}

func (h *host) managerOf(s Spec) (manager, error) {
	if s.System != "windows" {
		return nil, errors.New("services of another system cannot be managed from Windows")
	}
	return &winManager{name: s.Name, logFile: joinOn(s.System, s.LogDir, logName), scm: systemSCM{}}, nil
}

// Event ids range from 1 to 1000, as in the standard message file.
const eventFailed = 3

// underManager runs serve until it or ctx ends, or the service manager sends stop. The library
// reports the service as running as soon as serve has started, because a long migration would look
// like a failed start.
func underManager(ctx context.Context, name string, serve func(context.Context) error) error {
	managed, err := svc.IsWindowsService()
	if err != nil || !managed {
		return errors.Join(err, serve(ctx)) // started by hand, to see its output
	}
	p := newProgram(ctx, serve)
	// The manager restarts a process that ends without a report, and the library would wait for
	// stop.
	p.failed = func(err error) {
		report(name, err)
		os.Exit(codeOf(err))
	}
	s, err := service.ChosenSystem().New(p, &service.Config{Name: name})
	if err != nil {
		return err
	}
	return s.Run()
}

// report writes an error to the event log.
func report(name string, err error) {
	log, opening := eventlog.Open(name)
	if opening != nil {
		return
	}
	defer log.Close()
	_ = log.Error(eventFailed, plain(err.Error()))
}

// openFollowed opens a log so that its writer can still rotate it: Windows cannot rename a file
// opened with os.Open, so a log followed for days would exceed its size.
func openFollowed(path string) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	h, err := windows.CreateFile(name, windows.GENERIC_READ,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE,
		nil, windows.OPEN_EXISTING, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}
