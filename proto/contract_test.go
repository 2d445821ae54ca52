package proto

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// contractFile lists, a line each, everything that clients and servers of released versions rely
// on.
const contractFile = "testdata/contract.txt"

// contract returns every call, field and value of the wire, sorted. Field names are part of it,
// because JSON uses them.
func contract() (lines []string) {
	protoregistry.GlobalFiles.RangeFilesByPackage("kagzi.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			lines = append(lines, calls(file.Services().Get(i))...)
		}
		for i := range file.Messages().Len() {
			lines = append(lines, fields(file.Messages().Get(i))...)
		}
		for i := range file.Enums().Len() {
			lines = append(lines, values(file.Enums().Get(i))...)
		}
		return true
	})
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(line, "kagzi.v1.", "")
	}
	slices.Sort(lines)
	return lines
}

func calls(s protoreflect.ServiceDescriptor) (lines []string) {
	side := func(m protoreflect.MessageDescriptor, stream bool) string {
		if stream {
			return "stream " + string(m.FullName())
		}
		return string(m.FullName())
	}
	for i := range s.Methods().Len() {
		m := s.Methods().Get(i)
		lines = append(lines, fmt.Sprintf("call %s (%s) returns (%s)", m.FullName(),
			side(m.Input(), m.IsStreamingClient()), side(m.Output(), m.IsStreamingServer())))
	}
	return lines
}

func fields(m protoreflect.MessageDescriptor) (lines []string) {
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		kind := f.Kind().String()
		switch {
		case f.Message() != nil:
			kind = string(f.Message().FullName())
		case f.Enum() != nil:
			kind = string(f.Enum().FullName())
		}
		line := fmt.Sprintf("field %s = %d: %s %s", f.FullName(), f.Number(), f.Cardinality(), kind)
		if f.HasPresence() && f.Message() == nil {
			line += ", present or not"
		}
		if one := f.ContainingOneof(); one != nil && !one.IsSynthetic() {
			line += ", one of " + string(one.Name())
		}
		lines = append(lines, line)
	}
	for i := range m.Messages().Len() {
		lines = append(lines, fields(m.Messages().Get(i))...)
	}
	for i := range m.Enums().Len() {
		lines = append(lines, values(m.Enums().Get(i))...)
	}
	return lines
}

func values(e protoreflect.EnumDescriptor) (lines []string) {
	for i := range e.Values().Len() {
		v := e.Values().Get(i)
		lines = append(lines, fmt.Sprintf("value %s = %d", e.FullName().Append(v.Name()), v.Number()))
	}
	return lines
}

// UPDATE=1 go test ./proto adds new lines. Existing lines must stay: a client of any version must
// be able to talk to today's server, and today's client to a server of any version.
func TestTheContractIsBackwardCompatible(t *testing.T) {
	landed, err := os.ReadFile(contractFile)
	if err != nil {
		t.Fatal(err)
	}
	today := contract()
	known := strings.Split(strings.TrimSpace(string(landed)), "\n")
	for _, line := range known {
		if _, ok := slices.BinarySearch(today, line); !ok {
			t.Errorf("gone or changed: %s", line)
		}
	}
	if t.Failed() || slices.Equal(known, today) {
		return
	}
	if os.Getenv("UPDATE") == "" {
		t.Fatalf("%d lines of the contract are new: add them with UPDATE=1 go test ./proto", len(today)-len(known))
	}
	if err := os.WriteFile(contractFile, []byte(strings.Join(today, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}
