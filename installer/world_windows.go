package installer

import (
	"errors"

	"golang.org/x/sys/windows"
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

func (w *world) managerOf(s Spec) (manager, error) {
	if s.System != "windows" {
		return nil, errors.New("another system's services are not managed from Windows")
	}
	return &winManager{name: s.Name, logFile: joinOn(s.System, s.LogDir, logName), scm: systemSCM{}}, nil
}
