package engine

import (
	"maps"
	"testing"
	"time"
)

func TestChildOutputNamesTheRunOnlyIfItIsNotTheFirst(t *testing.T) {
	first, last := NewID(time.Unix(1, 0)), NewID(time.Unix(2, 0))
	named := map[string]string{MetaChildRunID: last.String()}
	for _, c := range []struct {
		what      string
		own, want map[string]string
		ended     ID
	}{
		{"the first run's", nil, nil, first},
		{"the first run's, with metadata", map[string]string{"a": "b"}, map[string]string{"a": "b"}, first},
		{"the first run's, which claims to be another's", map[string]string{MetaChildRunID: last.String()}, nil, first},
		{"a later run's", nil, named, last},
		{"a later run's, which claims to be another's", map[string]string{MetaChildRunID: first.String()}, named, last},
		{"a later run's, with metadata", map[string]string{"a": "b"},
			map[string]string{"a": "b", MetaChildRunID: last.String()}, last},
	} {
		own := maps.Clone(c.own)
		got := ChildOutput(Payload{Data: []byte("x"), Metadata: c.own}, first, c.ended)
		if want := (Payload{Data: []byte("x"), Metadata: c.want}); !got.Equal(want) {
			t.Errorf("%s: %+v, want %+v", c.what, got, want)
		}
		if !maps.Equal(own, c.own) {
			t.Errorf("%s: the run's own metadata is now %v, want it as it was", c.what, c.own)
		}
	}
}
