package installer

import "io/fs"

// PackagedFile is a file that a package puts on the disk beside the program.
type PackagedFile struct {
	Path     string // absolute
	Mode     fs.FileMode
	Content  string
	Settings bool // it is the user's to change, and an upgrade leaves it alone
}

// PackagedFiles are the unit and the settings of a package for Linux whose program is at binary. They are what `kagzi service
// install` would write there, so that it takes the package's service for its own.
func PackagedFiles(binary string) ([]PackagedFile, error) {
	s := places{system: "linux"}.layout(Spec{System: "linux", Name: defaultName, Binary: binary})
	if err := s.check(); err != nil {
		return nil, err
	}
	p, err := planOf(s)
	if err != nil {
		return nil, err
	}
	files := []PackagedFile{{Path: "/usr/lib/systemd/system/" + s.Name + ".service", Mode: 0o644, Content: p.definition}}
	for _, f := range p.files {
		files = append(files, PackagedFile{Path: f.path, Mode: f.mode, Content: f.content, Settings: true})
	}
	return files, nil
}
