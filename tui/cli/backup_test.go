package cli

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"testing"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// parts is a backup stream.
type parts struct {
	list []*kagziv1.BackupChunk
	end  error
}

func (p *parts) Recv() (*kagziv1.BackupChunk, error) {
	if len(p.list) == 0 {
		return nil, p.end
	}
	next := p.list[0]
	p.list = p.list[1:]
	return next, nil
}

func TestAnIncompleteBackupIsRefused(t *testing.T) {
	sum := sha256.Sum256([]byte("kagzi"))
	data := func(text string) *kagziv1.BackupChunk { return &kagziv1.BackupChunk{Data: []byte(text), TotalBytes: 5} }
	last := &kagziv1.BackupChunk{TotalBytes: 5, Sha256: sum[:]}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		parts []*kagziv1.BackupChunk
		end   error
		fine  bool
	}{
		"whole":        {parts: []*kagziv1.BackupChunk{data("kag"), data("zi"), last}, fine: true},
		"changed":      {parts: []*kagziv1.BackupChunk{data("kag"), data("zo"), last}},
		"too short":    {parts: []*kagziv1.BackupChunk{data("kag"), last}},
		"without end":  {parts: []*kagziv1.BackupChunk{data("kag"), data("zi")}, end: io.EOF},
		"given up":     {parts: []*kagziv1.BackupChunk{data("kag")}, end: broken},
		"never begun":  {end: io.EOF},
		"unreachable":  {end: broken},
		"empty of all": {parts: []*kagziv1.BackupChunk{last}},
	} {
		var to bytes.Buffer
		err := copyBackup(&to, &parts{c.parts, c.end})
		if c.fine != (err == nil) || c.end == broken && !errors.Is(err, broken) {
			t.Errorf("%s = %v", name, err)
		}
	}
}
