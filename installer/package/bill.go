package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// bill is a CycloneDX bill of materials: the modules of a program.
type bill struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	URL     string `json:"purl"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

// writeBill writes the bill of materials of a program.
func writeBill(version, program, file string) error {
	at, err := sourceDate()
	if err != nil {
		return err
	}
	text, err := billOf(version, program, at)
	if err != nil {
		return err
	}
	return write(file, text)
}

// billOf lists the modules that the Go toolchain recorded in a program.
func billOf(version, program string, at time.Time) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("read the program's modules: %w", err)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	self := componentOf("application", info.Main.Path, "v"+version, "")
	self.URL += "?goos=" + settings["GOOS"] + "&goarch=" + settings["GOARCH"]
	self.Ref = self.URL
	b := bill{Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata: metadata{Timestamp: at.Format(time.RFC3339), Component: self}}
	b.Components = append(componentsOf(info.Deps),
		componentOf("library", "std", strings.TrimPrefix(info.GoVersion, "go"), ""))
	text, err := json.MarshalIndent(b, "", "  ")
	return append(text, '\n'), err
}

// componentsOf returns the modules that the program was built with, in the order of their
// references.
func componentsOf(modules []*debug.Module) []component {
	var all []component
	for _, m := range modules {
		if m.Replace != nil {
			m = m.Replace
		}
		all = append(all, componentOf("library", m.Path, m.Version, m.Sum))
	}
	slices.SortFunc(all, func(a, b component) int { return strings.Compare(a.Ref, b.Ref) })
	return all
}

// componentOf describes a module. Its hash is the one in go.sum.
func componentOf(kind, path, version, sum string) component {
	c := component{Type: kind, Name: path, Version: version,
		URL: "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")}
	c.Ref = c.URL
	if digest, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:")); err == nil && len(digest) > 0 {
		c.Hashes = []hash{{"SHA-256", hex.EncodeToString(digest)}}
	}
	return c
}
