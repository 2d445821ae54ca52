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

// mayInstall says whether this process may change services of the machine.
func mayInstall() bool { return windows.GetCurrentProcessToken().IsElevated() }

const howToBeRoot = "run it in a terminal that was opened with \"Run as administrator\""

// chown has nothing to do: access lists are inherited.
func chown(string, string, string) error { return nil }

// protect sets owner and access list of a directory; what is in it inherits.
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
		windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION|windows.PROTECTED_DACL_SECURITY_INFORMATION, owner, nil, dacl, nil)
}

func (h *host) managerOf(s Spec) (manager, error) {
	if s.System != "windows" {
		return nil, errors.New("another system's services are not managed from Windows")
	}
	return &winManager{name: s.Name, logFile: joinOn(s.System, s.LogDir, logName), scm: systemSCM{}}, nil
}

// Event ids are from 1 to 1000, as the standard message file has them.
const eventFailed = 3

// underManager runs serve until it or ctx ends, or the service manager says stop. The library tells
// the manager that the service runs as soon as serve has begun, because a long migration would be
// taken for a failed start.
func underManager(ctx context.Context, name string, serve func(context.Context) error) error {
	managed, err := svc.IsWindowsService()
	if err != nil || !managed {
		return errors.Join(err, serve(ctx)) // called by hand, to see what it says
	}
	p := newProgram(ctx, serve)
	// The manager starts again what ends without saying so, and the library would wait for the manager to say stop.
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

// report writes an error to the event log, where administrators look first.
func report(name string, err error) {
	log, opening := eventlog.Open(name)
	if opening != nil {
		return
	}
	defer log.Close()
	_ = log.Error(eventFailed, plain(err.Error()))
}

// openFollowed opens a log so that its writer can still rotate it: a file that os.Open has open cannot
// be renamed on Windows, and a log that is followed for days would grow past its size.
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
