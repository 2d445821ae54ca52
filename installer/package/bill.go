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

// bill is a bill of materials in CycloneDX's form: what a program is made of.
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

// billOf reads the modules that the Go toolchain noted in a program.
func (r *release) billOf(program string, t target) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("read what the program is made of: %w", err)
	}
	self := componentOf("application", info.Main.Path, "v"+r.version, "")
	self.URL += "?goos=" + t.os + "&goarch=" + t.arch
	self.Ref = self.URL
	b := bill{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: metadata{Timestamp: r.time.Format(time.RFC3339), Component: self}}
	b.Components = append(componentsOf(info.Deps), componentOf("library", "std", strings.TrimPrefix(info.GoVersion, "go"), ""))
	text, err := json.MarshalIndent(b, "", "  ")
	return append(text, '\n'), err
}

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

// componentOf is a module; its hash is the one that go.sum has of its files.
func componentOf(kind, path, version, sum string) component {
	c := component{Type: kind, Name: path, Version: version, URL: "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")}
	c.Ref = c.URL
	if digest, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:")); err == nil && len(digest) > 0 {
		c.Hashes = []hash{{"SHA-256", hex.EncodeToString(digest)}}
	}
	return c
}
